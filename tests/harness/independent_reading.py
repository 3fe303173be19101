"""Canonical survey bytes as probabilities, by docs/wire*.md alone: nothing of the package is imported here.

A value is a float: a number or an integer as it is, a label as its place, nan or anything out of the domain
as missing. A law says, for many records at once, how probable a symbol is from each.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgpack
import numpy as np

FLOATS = np.ndarray
POLYNOMIALS = (7, 11, 19, 37, 67, 131, 283, 515, 1033, 2053, 4105, 8219, 16417, 32771, 65579, 131081)
"""The least irreducible polynomial over two elements of degree 2, 3, ..., 17."""


@dataclass(frozen=True)
class Field:
    """An attribute: its id, whether it is static, and its domain."""

    id: str
    static: bool
    type: str
    domain: tuple

    @property
    def size(self) -> int:
        """How many values a finite domain has; the index of missing."""
        return self.domain[1] - self.domain[0] + 1 if self.type == "integer" else len(self.domain)

    def indices(self, values: FLOATS) -> FLOATS:
        """The index of each value in a finite domain, missing last."""
        low = self.domain[0] if self.type == "integer" else 0
        with np.errstate(invalid="ignore"):
            inside = (values >= low) & (values < low + self.size) & (values == np.floor(values))
        return np.where(inside, values - low, self.size).astype(np.int64)

    def numbers(self, values: FLOATS) -> FLOATS:
        """Each value as a number of the domain, nan for missing."""
        low, high = self.domain
        with np.errstate(invalid="ignore"):
            inside = (values >= low) & (values <= high)
            if self.type == "integer":
                inside &= values == np.floor(values)
        return np.where(inside, values, np.nan)


@dataclass(frozen=True)
class Question:
    """One survey, as its canonical bytes have it."""

    digest: bytes
    fields: tuple[Field, ...]
    channel: dict[str, Any]
    form: list[Any]

    @property
    def static(self) -> bool:
        return all(field.static for field in self.fields)

    @property
    def inputs(self) -> int:
        """How many inputs the channel has, missing included."""
        if "inputs" in self.channel:
            return self.channel["inputs"]
        return sum(self.channel["sizes"]) + any(self.channel.get("absent", []))

    @cached_property
    def _columns(self) -> dict[int | bytes, FLOATS]:
        return {}

    def column(self, symbol: int | bytes) -> FLOATS:
        """The probability of a symbol from every input."""
        known = self._columns.get(symbol)
        if known is None:
            known = self._columns[symbol] = column(self.channel, symbol)
        return known

    def law(self, symbol: int | bytes, values: list[FLOATS]) -> FLOATS:
        """The logarithm of a symbol's probability from each record.

        Args:
            symbol: What was said.
            values: One array per attribute; they broadcast.
        """
        if self.form[0] == "score":
            return self._score(symbol, values)
        by_input = self.column(symbol)
        if self.form[0] == "grid":
            return np.log(self._grid(by_input, values[0]))
        if self.form[0] == "tree":
            return np.log(by_input)[self._leaf(values)]
        place = np.int64(0)
        for field, reading, mine in zip(self.fields, self.form[1], values, strict=True):
            index = field.indices(mine)
            place = place * (max(reading) + 1 if reading else field.size + 1) + (
                np.array(reading)[index] if reading else index
            )
        return np.log(by_input)[place]

    def _leaf(self, values: list[FLOATS]) -> Any:
        """The place of a value in the order of its tree; of a map's cell, its bits in turn, across first."""
        if self.form[1] != "quadtree":
            index = self.fields[0].indices(values[0])
            return index if self.form[1] is None else np.array(self.form[1])[index]
        across, up = (field.indices(mine) for field, mine in zip(self.fields, values, strict=True))
        side = self.fields[0].size
        place = sum(
            (np.minimum(axis, side - 1) >> bit & 1) << 2 * bit + second
            for bit in range(side.bit_length() - 1)
            for second, axis in enumerate((across, up))
        )
        return np.where((across == side) | (up == side), side * side, place)

    def _grid(self, by_input: FLOATS, values: FLOATS) -> FLOATS:
        low, high = self.fields[0].domain
        last = len(by_input) - 2
        numbers = self.fields[0].numbers(values)
        missing = np.isnan(numbers)
        at = np.where(missing, 0.0, (numbers - low) / (high - low) * last)
        lower = np.clip(np.floor(at).astype(np.int64), 0, max(last - 1, 0))
        share = at - lower
        mixed = (1.0 - share) * by_input[lower] + share * by_input[np.minimum(lower + 1, last)]
        return np.where(missing, by_input[-1], mixed)

    def _score(self, symbol: int | bytes, values: list[FLOATS]) -> FLOATS:
        _, kind, terms, intercept, (low, high) = self.form
        total = intercept
        for field, (slope, default), mine in zip(self.fields, terms, values, strict=True):
            numbers = field.numbers(mine)
            total = total + slope * np.where(np.isnan(numbers), default, numbers)
        t, u = self.channel["t"], self.channel["u"]
        return score_law(kind, total, (low, high), u / (t + u), symbol)


def score_law(kind: str, total: FLOATS, ends: tuple[float, float], least: float, symbol: int) -> FLOATS:
    """The logarithm of an answer's probability from scores; `least` is that of 1 at the lower end."""
    low, high = ends
    if kind == "logistic":
        small = np.exp(-np.abs(total))
        place = np.where(total >= 0, 1.0, small) / (1.0 + small)
    else:
        place = np.clip((total - low) / (high - low), 0.0, 1.0)
    one = least + place * (1.0 - 2.0 * least)
    zero = least + (1.0 - place) * (1.0 - 2.0 * least)
    return np.log(one if symbol else zero)


@lru_cache(maxsize=4096)
def question(canonical: bytes) -> Question:
    """What canonical bytes ask."""
    parts = msgpack.unpackb(canonical, strict_map_key=False)
    assert parts[0] == "hubbub-survey", parts[0]
    several = parts[1] in (2, 4)
    fields = tuple(
        Field(name, kind == "static", type_, tuple(domain))
        for name, kind, type_, domain in (parts[5] if several else [parts[5]])
    )
    if not several:
        form = ["grid"] if fields[0].type == "number" else ["table", [parts[8]]]
    elif parts[8][0] == "table":
        form = ["table", [reading for reading, _ in parts[8][1]]]
    else:
        form = parts[8]
    return Question(hashlib.sha256(canonical).digest()[:16], fields, parts[7], form)


def column(channel: dict[str, Any], symbol: int | bytes) -> FLOATS:
    """The probability of a symbol from every input of a channel."""
    return _KINDS[channel["kind"]](channel, symbol)


def _grr(channel: dict[str, Any], symbol: int) -> FLOATS:
    count, t, u = channel["inputs"], channel["t"], channel["u"]
    found = np.full(count, float(u))
    found[symbol] = t
    return found / (t + (count - 1) * u)


def _pbgrr(channel: dict[str, Any], symbol: int) -> FLOATS:
    of = np.repeat(np.arange(len(channel["sizes"])), channel["sizes"])
    mine = of[symbol]
    found = np.where(of == mine, float(channel["u"][mine]), float(channel["o"][mine]))
    found[symbol] = channel["t"][mine]
    sizes, t, u, o = (channel[key] for key in ("sizes", "t", "u", "o"))
    total = sum(s * each for s, each in zip(sizes, o, strict=True)) + sizes[0] * (u[0] - o[0]) + t[0] - u[0]
    return found / total


def _category(channel: dict[str, Any], symbol: int) -> FLOATS:
    sizes, t, o = channel["sizes"], channel["t"], channel["o"]
    of = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(of == symbol, float(t), float(o)) / (t + (len(sizes) - 1) * o)


def _dense(channel: dict[str, Any], symbol: int) -> FLOATS:
    word = "<u4" if channel["total"] <= 2**32 else "<u8"
    rows = np.frombuffer(channel["weights"], word).reshape(channel["inputs"], channel["outputs"])
    return rows[:, symbol] / channel["total"]


def groups(channel: dict[str, Any], levels: int) -> list[FLOATS]:
    """The group of every input on each level, the single inputs last."""
    sizes, count, found = list(channel["sizes"]), channel["inputs"], []
    while sizes:
        level = []
        while sum(level) < count:
            level.append(sizes.pop(0))
        found.append(np.repeat(np.arange(len(level)), level))
    found.append(np.arange(count))
    assert len(found) == levels
    return found


def _levels(channel: dict[str, Any], symbol: int) -> FLOATS:
    t, u = channel["t"], channel["u"]
    found, total = None, 0
    for of, held, other in zip(groups(channel, len(t)), t, u, strict=True):
        count = int(of[-1]) + 1
        total += held + (count - 1) * other
        if found is None and symbol < count:
            found = np.where(of == symbol, float(held), float(other))
        symbol -= count
    assert found is not None
    return found / total


def _times(a: FLOATS, b: int, q: int) -> FLOATS:
    """Products in the field of q elements."""
    if q & (q - 1) or q == 2:
        return a * b % q
    degree = q.bit_length() - 1
    found = np.zeros_like(a)
    for bit in range(degree):
        if b >> bit & 1:
            found ^= a << bit
    for bit in range(2 * degree - 2, degree - 1, -1):
        found = np.where(found >> bit & 1, found ^ POLYNOMIALS[degree - 2] << bit - degree, found)
    return found


def _hashing(channel: dict[str, Any], symbol: int) -> FLOATS:
    count, q, t, u = channel["inputs"], channel["buckets"], channel["t"], channel["u"]
    digits = 1
    while q**digits < count:
        digits += 1
    whole = q**digits
    seed, cell = divmod(symbol, q)
    step = -(-618 * whole // 1000)
    while math.gcd(step, q) > 1:
        step += 1
    lead = 0
    while seed >= q**lead:  # directions q^j to 2 q^j - 1, j rising
        seed -= q**lead
        lead += 1
    direction = q**lead + seed
    points = np.arange(count, dtype=np.int64) * step % whole
    cells = np.zeros(count, dtype=np.int64)
    for digit in range(digits):
        product = _times(points // q**digit % q, direction // q**digit % q, q)
        cells = (cells + product) % q if q & (q - 1) or q == 2 else cells ^ product
    seeds = (whole - 1) // (q - 1)
    return np.where(cells == cell, float(t), float(u)) / (seeds * (t + (q - 1) * u))


def _bits(symbol: bytes, cells: int) -> FLOATS:
    bits = np.unpackbits(np.frombuffer(symbol, np.uint8), bitorder="little")
    assert not bits[cells:].any()
    return bits[:cells].astype(bool)


def _subset_of(held: FLOATS, size: int, share: int) -> FLOATS:
    """The probability of a set of so many cells, by whether it holds the input's own."""
    count = len(held)
    assert held.sum() == size
    keeps, drops = share / 2**32, 1.0 - share / 2**32
    return np.where(held, keeps / math.comb(count - 1, size - 1), drops / math.comb(count - 1, size))


def _subset(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    return _subset_of(_bits(symbol, channel["inputs"]), channel["size"], channel["held"])


def _unary(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    held = _bits(symbol, channel["inputs"])
    yes, other = channel["held"] / 2**31, channel["other"] / 2**31
    rest = np.where(held, np.log(other), np.log(1.0 - other))
    own = np.where(held, np.log(yes), np.log(1.0 - yes))
    return np.exp(rest.sum() - rest + own)


def _set_levels(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    of = groups(channel, len(channel["shares"]))
    counts = [int(each[-1]) + 1 for each in of]
    bits = _bits(symbol, len(of) + sum(counts))
    (level,) = np.flatnonzero(bits[: len(of)])
    start = len(of) + sum(counts[:level])
    held = bits[start : start + counts[level]]
    assert held.sum() == bits[len(of) :].sum()
    law = _subset_of(held, channel["subset"][level], channel["held"][level])
    return channel["shares"][level] / 2**32 * law[of[level]]


def _nested(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    of = groups(channel, len(channel["shares"]))
    level = symbol[0]
    assert len(symbol) == 1 + -(-channel["inputs"] // 8)
    held = _bits(symbol[1:], int(of[level][-1]) + 1)
    law = _subset_of(held, channel["subset"][level], channel["held"][level])
    return channel["shares"][level] / 2**32 * law[of[level]]


def _ranges(channel: dict[str, Any]) -> list[FLOATS]:
    """The node of every input on each level, missing the last of all."""
    points = channel["inputs"] - 1
    found = []
    for many in channel["cells"]:
        first = [i * points // many for i in range(many)] + [points]
        found.append(np.repeat(np.arange(many + 1), [*np.diff(first), 1]))
    return found


def _tree(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    assert len(symbol) == 1 + -(-channel["inputs"] // 8)
    level = symbol[0]
    of = _ranges(channel)[level]
    held = _bits(symbol[1:], int(of[-1]) + 1)
    law = _subset_of(held, channel["subset"][level], channel["held"][level])
    return channel["shares"][level] / 2**32 * law[of]


def _tree_node(channel: dict[str, Any], symbol: int) -> FLOATS:
    found, total = None, 0
    for of, held, other in zip(_ranges(channel), channel["t"], channel["u"], strict=True):
        count = int(of[-1]) + 1
        total += held + (count - 1) * other
        if 0 <= symbol < count:
            found = np.where(of == symbol, float(held), float(other))
        symbol -= count
    assert found is not None
    return found / total


def _orbits(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    sizes, orbits = channel["sizes"], len(channel["missing"])
    gone = any(channel["absent"])
    values = sum(sizes)
    assert len(symbol) == -(-(values + gone) // 8)
    held = _bits(symbol, values + gone)
    of = np.repeat(np.arange(len(sizes)), sizes)
    classes = sorted(set(sizes), reverse=True)
    class_of = np.array([classes.index(size) for size in sizes])
    found = np.bincount(of, weights=held[:values], minlength=len(sizes))
    shape = [int(n) for g in range(len(classes)) for n in sorted(-found[class_of == g]) for n in [-n]]
    flag = int(held[values]) if gone else 0
    counts = np.reshape(channel["counts"], (orbits, len(sizes))).tolist()
    (t,) = (i for i in range(orbits) if counts[i] == shape and channel["missing"][i] == flag)
    inside, outside = (np.reshape(channel[key], (orbits, len(classes)))[t] for key in ("inside", "outside"))
    sets, place = 1, 0
    for g, size in enumerate(classes):
        many = int((class_of == g).sum())
        own = counts[t][place : place + many]
        place += many
        sets *= math.factorial(many)
        for n in set(own):
            sets = sets * math.comb(size, n) ** own.count(n) // math.factorial(own.count(n))
    mine = class_of[of]
    weights = np.where(held[:values], inside[mine], outside[mine]).astype(float)
    unit = channel["unit"]
    total = unit << 62 - (values * unit).bit_length()
    return np.append(weights, [float(channel["absent"][t])] * gone) / total / sets


def _short_orbits(channel: dict[str, Any], symbol: bytes) -> FLOATS:
    """Return the law of orbits: the set is read first, and sent as a bit for every input."""
    sizes, counts = channel["sizes"], np.reshape(channel["counts"], (len(channel["missing"]), -1))
    classes = [size for size in sorted(set(sizes), reverse=True) for _ in range(sizes.count(size))]
    largest = max(size for row in counts for size, n in zip(classes, row, strict=True) if n)
    name = 1 if len(sizes) <= 256 else 2
    assert len(symbol) == 1 + name + -(-largest // 8)
    category = int.from_bytes(symbol[1 : 1 + name], "little")
    members = int.from_bytes(symbol[1 + name :], "little") << sum(sizes[:category])
    members |= channel["missing"][symbol[0]] << sum(sizes)
    inputs = sum(sizes) + any(channel["absent"])
    return _orbits(channel, members.to_bytes(-(-inputs // 8), "little"))


_KINDS = {
    "orbits": _orbits,
    "short_orbits": _short_orbits,
    "grr": _grr,
    "pbgrr": _pbgrr,
    "category_grr": _category,
    "dense": _dense,
    "curve": _dense,
    "weighted": _dense,
    "levels": _levels,
    "local_hashing": _hashing,
    "subset": _subset,
    "unary": _unary,
    "set_levels": _set_levels,
    "nested_levels": _nested,
    "tree": _tree,
    "tree_node": _tree_node,
}
