"""The series of sets, transitions, bundles and absent numbers, from docs/wire-survey.md and wire-channels.md.

    python tests/conformance/form_cases.py   write what is stored of every series

A device may draw a set by steps of its own; the cases have one right set, of these steps. Bytes are read
16 + 4 k at a time. The first 64 bits, and 8 more while they do not settle it, are a number of [0, 1) that
picks i from 1 on by the weights C(L, i) C(K, k - i). Of 64 bits more, halved, that are not below `held`, i
becomes 0. Then come k words w of 32 bits, each with a limit of its own: one at or above it is dropped alone.
Step s from 1 takes of m cells that of number w mod m, or the last of them if that one is in already: up to
s = i the first m = L - i + s of the filled set, then the first m = K - k + s of the other cells.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import msgpack
from case_changes import Case, pack
from random_channels import KINDS, WORD, Chance, Spec, category_grr, pbgrr
from series import Series, write
from tree_cases import TREES

COIN = 2**63


class _Sound(Chance):
    """Numbers for surveys that break no rule: what is to happen once in a dozen times or less never does."""

    def one_in(self, n: int) -> bool:
        return n < 12 and super().one_in(n)


def _sound(chance: Chance) -> Chance:
    return _Sound(chance.token_bytes(8).hex())


def least_float(n: int, d: int) -> float:
    """The least float that is not below ln(n / d)."""
    with localcontext() as context:
        context.prec = 60
        exact = (Decimal(n) / Decimal(d)).ln()
        found = float(exact)
        return found if Decimal(found) >= exact else math.nextafter(found, math.inf)


def _compiled(
    chance: Chance,
    attributes: list[list[object]],
    spec: Spec,
    form: list[object],
    epsilon: float,
    *,
    rounds: int = 9,
) -> bytes:
    if chance.one_in(12):
        epsilon = math.nextafter(epsilon, 0.0)  # of the certified one: to be refused
    head = ["hubbub-survey", 2, f"s-{chance.below(10**6)}", 1, "What?", attributes, epsilon]
    terms = [[chance.below(2**32), 86_400, rounds], 3_600, 300, 100, 10**6, None]
    return pack([*head, dict(sorted(spec.items())), form, *terms])


def _attribute(chance: Chance, name: str, size: int, kind: str = "static") -> list[object]:
    if chance.one_in(2):
        low = chance.pick([0, -3, 10**15])
        return [name, kind, "integer", [low, low + size - 1]]
    return [name, kind, "label", [f"l{i}" for i in range(size)]]


def _reading(chance: Chance, size: int, many: int) -> list[object]:
    """Map and names of an attribute whose values read as so many."""
    mapping = [*range(many), *(chance.below(many) for _ in range(size - many)), many]
    plain = mapping == list(range(size + 1))
    names = None if plain and chance.one_in(2) else [f"r{i}" for i in range(many)]
    return [None if plain else mapping, names]


def _value(chance: Chance, attribute: list[object]) -> object:
    kind, domain = attribute[2:]
    assert isinstance(domain, list)
    if chance.one_in(6):
        return chance.pick([None, True, "l99", -1.5, 2**63, [], {"a": 1}])
    if kind != "integer":
        return chance.pick(domain)
    value = chance.between(domain[0] - 1, domain[1] + 1)
    return float(value) if chance.one_in(4) else value


def _cells(chance: Chance, cells: int, size: int) -> bytes:
    """A set of so many of the cells."""
    held: set[int] = set()
    while len(held) < size:
        held.add(chance.below(cells))
    return sum(1 << cell for cell in held).to_bytes((cells + 7) // 8, "little")


def _life(
    chance: Chance, listed: list[bytes], keys: list[list[int]], symbols: list[object], moves: list[list[int]]
) -> Case:
    """Some surveys, each with coordinates and a symbol; moves are the coordinates of bundles' parts."""
    steps: list[object] = []
    waiting: list[tuple[int, int]] = []
    tickets = 0
    for _ in range(chance.between(6, 14)):
        choice = chance.below(10)
        if choice < 4 or not waiting:
            asked = [chance.below(len(listed)) for _ in range(chance.pick([1, 1, 2]))]
            steps.append([0, [[keys[i], i] for i in asked]])
            waiting += [(tickets + i, survey) for i, survey in enumerate(asked)]
            tickets += len(asked)
        elif choice < (8 if any(moves) else 9):
            ticket, survey = waiting.pop(chance.below(len(waiting)))
            if chance.one_in(8):
                steps.append([2, ticket])
            elif moves[survey] and not chance.one_in(4):
                steps.append([4, ticket, symbols[survey], moves[survey]])
            else:
                steps.append([1, ticket, symbols[survey]])
        else:
            steps.append([3, chance.pick([key for own in (moves if any(moves) else keys) for key in own])])
    # A schedule that does not fit takes no tickets: with a small budget some steps name none.
    budget = chance.pick([8.0, 40.0, 1000.0, 1000.0])
    return Case("filter", (pack(budget), pack(listed), pack(steps)))


# Sets.


def set_survey(chance: Chance) -> bytes:
    items, most = chance.between(2, 13), 257 if chance.one_in(30) else chance.pick([1, 2, 3, 3, 5, 20, 256])
    inputs = items + 1
    size = chance.pick([1, chance.between(1, inputs), chance.between(1, min(4, inputs))])
    missed = math.comb(inputs, size)
    meeting = math.comb(inputs + most, size) - missed
    least = COIN * meeting // (missed + meeting) + 1
    # The last that may be is so sure that no epsilon of 40 covers it.
    sure = COIN - 2 ** chance.between(10, 50)
    held = chance.pick([least, least + (COIN - least) * chance.between(1, 99) // 100, sure])
    spec: Spec = {"kind": "set", "inputs": inputs, "most": most, "size": size, "held": min(held, COIN - 1)}
    ratio = Fraction(min(held, COIN - 1) * missed, max(COIN - held, 1) * meeting)
    epsilon = least_float(ratio.numerator, ratio.denominator) if ratio > 1 else 1.0
    if chance.one_in(15):
        spec[chance.pick(["inputs", "most", "size"])] = chance.pick([inputs + 1, most + 1, 1])
    attribute = ["a", chance.pick(["static", "evolving"]), "set", [f"l{i}" for i in range(items)]]
    if chance.one_in(20):
        attribute[2] = "label"
    return _compiled(chance, [attribute], spec, ["set", most], max(epsilon, 1e-6))


def _set_values(chance: Chance, fields: list) -> list[object]:  # type: ignore[type-arg]
    if chance.one_in(6):
        return [chance.pick([None, "l0", 3, 0.5, {"l1": 1}, b"l1", [3, None], [["l0"]]])]
    items, most = fields[5][0][3], fields[8][1]
    held = [chance.pick(items) for _ in range(chance.below(min(most, 6) + 1))]
    return [[*held, *held[:1], *chance.pick([[], ["no item", 7]])]]


def _set_symbol(chance: Chance, canonical: bytes) -> bytes:
    spec = msgpack.unpackb(canonical)[7]
    cells = spec["inputs"] + spec["most"]
    return _cells(chance, cells, min(spec["size"], cells))


def _set_life(chance: Chance, canonical: bytes) -> Case:
    del canonical
    listed = [set_survey(_sound(chance)) for _ in range(2)]
    symbols: list[object] = [_set_symbol(chance, each) for each in listed]
    return _life(chance, listed, [[0], [1]], symbols, [[], []])


# Transitions.


def transition_survey(chance: Chance) -> bytes:
    asks = chance.pick(["pairs", "changed", "direction"])
    many = 2 if asks == "direction" else chance.between(2, 4)
    size = chance.between(many, many + 3)
    sizes = {"pairs": [(many + 1) ** 2 - 1, 1], "changed": [many, many * (many - 1), 1], "direction": [3, 1]}[
        asks
    ]
    spec = _channel(chance, sizes)
    rounds = chance.between(2, 9)
    lag = rounds if chance.one_in(15) else chance.between(1, rounds - 1)
    kind = "static" if chance.one_in(15) else "evolving"
    if chance.one_in(20):
        asks = chance.pick(["pairs", "direction", "anything"])
    form = ["transition", *_reading(chance, size, many), lag, asks]
    return _compiled(chance, [_attribute(chance, "a", size, kind)], spec, form, 40.0, rounds=rounds)


def _channel(chance: Chance, sizes: list[int]) -> Spec:
    inputs = sum(sizes)
    kind = chance.pick(
        ["pbgrr", "category_grr", "levels", "grr", "dense", "local_hashing", "subset", "unary", "tree"]
    )
    if kind == "pbgrr":
        return pbgrr(chance, inputs, sizes)
    if kind == "category_grr":
        return category_grr(chance, inputs, sizes)
    if kind == "levels":
        u = [chance.between(1, 2**20) for _ in range(2)]
        t = [each + chance.between(1, 2**22) for each in u]
        return {"kind": "levels", "inputs": inputs, "sizes": sizes, "t": t, "u": u}
    return KINDS[kind](chance, inputs)


def _transition_values(chance: Chance, fields: list) -> list[object]:  # type: ignore[type-arg]
    return [_value(chance, fields[5][0]) for _ in range(1 if chance.one_in(15) else 2)]


def _any_symbol(chance: Chance, canonical: bytes) -> int | bytes:
    """A symbol of a table or of sets; now and then one that the channel cannot send."""
    spec = msgpack.unpackb(canonical)[7]
    kind = spec["kind"]
    if kind == "subset":
        return _cells(chance, spec["inputs"], spec["size"])
    if kind == "unary":
        return _cells(chance, spec["inputs"], chance.between(0, spec["inputs"]))
    if kind == "tree":
        level = chance.below(len(spec["cells"]))
        own = _cells(chance, spec["cells"][level] + 1, spec["subset"][level])
        return bytes([level]) + own.ljust((spec["inputs"] + 7) // 8, b"\0")
    sizes = spec.get("sizes", [])
    many = {"category_grr": len(sizes), "dense": spec.get("outputs"), "local_hashing": spec.get("buckets")}
    return chance.below((many.get(kind) or spec.get("inputs") or sum(sizes)) + chance.one_in(20))


def _transition_life(chance: Chance, canonical: bytes) -> Case:
    del canonical
    listed = [transition_survey(_sound(chance)) for _ in range(2)]
    symbols: list[object] = [_any_symbol(chance, each) for each in listed]
    return _life(chance, listed, [[0], [1]], symbols, [[], []])


# Bundles.


def bundle_survey(chance: Chance, sizes: list[int] | None = None) -> bytes:
    """A bundle; of static attributes of these sizes, each value read as itself, where they are given."""
    plain = sizes is not None
    wide = not plain and chance.one_in(10)
    many = chance.pick([13, 13, 26, 27, 31, 31, 32]) if wide else chance.between(2, 5)
    sizes = sizes or [3 if wide else chance.between(2, 5) for _ in range(many)]
    if not plain and not wide and chance.one_in(8):
        sizes[:] = [520, 600, 2]  # more than 2^18 pairs of values
    readings = [size if plain or size < 3 else chance.between(2, min(size, 4)) for size in sizes]
    if wide:
        readings = [3 for _ in sizes]
    kind = "static" if plain else chance.pick(["static", "static", "evolving"])
    attributes = [_attribute(chance, f"a{i}", size, kind) for i, size in enumerate(sizes)]
    maps = [
        [None, None] if plain else _reading(chance, size, read)
        for size, read in zip(sizes, readings, strict=True)
    ]
    parts = _parts(chance, len(sizes), wide)
    cells = [math.prod(readings[member] + 1 for member in part) for part in parts]
    subset = [chance.between(1, max(1, each // 2)) for each in cells]
    least = [WORD * d // each + 1 for d, each in zip(subset, cells, strict=True)]
    held = [low + (WORD - low) * chance.between(0, 8) // 10 for low in least]
    odds = [Fraction(h * (k - d), (WORD - h) * d) for h, k, d in zip(held, cells, subset, strict=True)]
    spec: Spec = {
        "kind": "parts",
        "readings": [read + 1 for read in readings],
        "orders": [len(part) for part in parts],
        "members": [member + 1 for part in parts for member in part],
        "shares": chance.cut(WORD, len(parts)),
        "subset": subset,
        "held": held,
    }
    asked = [part for part in parts if plain or chance.one_in(2)]
    missing = set(range(len(sizes))) - {member for part in asked for member in part}
    asked += [[member] for member in sorted(missing) if not chance.one_in(40)]
    asked = [list(each) for each in dict.fromkeys(map(tuple, asked))] or [[0, 1]]
    if not plain and chance.one_in(15):
        asked.append(chance.pick([[0, 1, 2, 3, 4], [1, 0], [0, 0], [], asked[0], [len(sizes)]]))
    epsilon = least_float(max(odds).numerator, max(odds).denominator)
    return _compiled(chance, attributes, spec, ["bundle", maps, asked], epsilon)


def _parts(chance: Chance, many: int, wide: bool) -> list[list[int]]:
    """Different parts that have every attribute; with thirteen attributes more than a byte counts."""
    if wide:
        pairs = [[i, j] for i in range(many) for j in range(i)] if many == 13 else []
        threes = [[i, j, k] for i, j in pairs for k in range(j)]
        return [sorted(each) for each in ([i] for i in range(many))] + [
            sorted(each) for each in pairs + threes
        ][:260]
    found: set[tuple[int, ...]] = set()
    while len(found) < 2 or {member for part in found for member in part} != set(range(many)):
        own = {chance.below(many) for _ in range(chance.between(1, 4))}
        found.add(tuple(sorted(own)))
    return [list(part) for part in sorted(found)]


def _bundle_values(chance: Chance, fields: list) -> list[object]:  # type: ignore[type-arg]
    return [_value(chance, attribute) for attribute in fields[5]]


def _bundle_symbol(chance: Chance, canonical: bytes, part: int | None = None) -> bytes:
    spec = msgpack.unpackb(canonical)[7]
    sets = _part_sets(spec)
    part = chance.below(len(sets)) if part is None else part
    number = part.to_bytes(1 if len(sets) <= 256 else 2, "little")
    width = max((cells + 7) // 8 for _, cells, _ in sets)
    classes = spec["classes"][part] if "classes" in spec else 1
    if classes > 1 and not chance.one_in(4):
        own, cells, size = sets[part]
        held = _latin(chance, [spec["readings"][member] for member in own], classes, size * classes // cells)
        return number + held.ljust(width, b"\0")
    return number + _cells(chance, *sets[part][1:]).ljust(width, b"\0")


def _latin(chance: Chance, shape: list[int], classes: int, band: int) -> bytes:
    """A latin set: the cells whose row and column are in classes of so small a sum."""
    rows, columns = ([i % classes for i in range(many)] for many in shape)
    for places in (rows, columns):
        places.sort(key=lambda _: chance.token_bytes(8))
    held = [(row + column) % classes < band for row in rows for column in columns]
    return sum(is_in << cell for cell, is_in in enumerate(held)).to_bytes((len(held) + 7) // 8, "little")


def _part_sets(spec: Spec) -> list[tuple[list[int], int, int]]:
    """Of every part its attributes, cells, and cells of a set."""
    readings, orders, members, subset = (
        list(spec[name])
        for name in ("readings", "orders", "members", "subset")  # type: ignore[call-overload]
    )
    found = []
    for order, size in zip(orders, subset, strict=True):
        own, members = [member - 1 for member in members[:order]], members[order:]
        found.append((own, math.prod(readings[member] for member in own), size))
    return found


def _bundle_life(chance: Chance, canonical: bytes, survey: Callable[..., bytes] = bundle_survey) -> Case:
    """Two bundles over some attributes, and single ones among them: answers that move to their values."""
    sizes = [chance.between(2, 4) for _ in range(chance.between(2, 4))]
    own = _sound(chance)
    canonical = survey(own)
    listed = [canonical, survey(own, sizes), survey(own, sizes)]
    keys, symbols, moves = [[50], [51], [52]], [], []
    for each in listed:
        sets = _part_sets(msgpack.unpackb(each)[7])
        part = chance.below(len(sets))
        symbols.append(_bundle_symbol(chance, each, part))
        moves.append([member if each is not canonical else 60 + member for member in sets[part][0]])
    if chance.one_in(10):
        moves[1] = chance.pick([moves[1][:-1], [51], moves[1] * 2, [member + 1 for member in moves[1]]])
    for i, size in enumerate(sizes):
        spec = KINDS[chance.pick(["grr", "subset", "pbgrr", "dense"])](chance, size + 1)
        categories = [*spec["sizes"]] if spec["kind"] == "pbgrr" else [size, 1]  # type: ignore[misc]
        named = [[f"c{j}", many] for j, many in enumerate(categories[:-1])] + [["missing", 1]]
        head = ["hubbub-survey", 1, f"one-{i}", 1, "One?", _attribute(chance, f"a{i}", size), 40.0]
        terms = [[0, 60, 1], 0, 0, 1, 1, None]
        listed.append(pack([*head, dict(sorted(spec.items())), None, named, *terms]))
        keys.append([i])
        symbols.append(_any_symbol(chance, listed[-1]))
        moves.append([])
    return _life(chance, listed, keys, symbols, moves)


# Bundles with interactions among their parts.


def interaction_survey(chance: Chance, sizes: list[int] | None = None) -> bytes:
    """A bundle with every single attribute, some pairs and the interactions of some."""
    plain = sizes is not None
    sizes = sizes or [chance.pick([2, 3, 5, 5, 7, 11]) for _ in range(chance.between(2, 4))]
    pairs = [[i, j] for j in range(len(sizes)) for i in range(j)]
    parts = [([i], 1) for i in range(len(sizes))]
    parts += [(pair, 1) for pair in pairs if chance.one_in(3)]
    for pair in pairs:
        shared = math.gcd(*(sizes[member] + 1 for member in pair))
        own = [g for g in range(2, shared + 1) if shared % g == 0] or [1 + chance.one_in(20)]
        if not chance.one_in(5):
            parts.append((pair, chance.pick(own) + chance.one_in(40)))
    parts = [(own, g) for i, (own, g) in enumerate(parts) if g > 1 or (own, g) not in parts[:i]]
    cells = [math.prod(sizes[member] + 1 for member in own) for own, _ in parts]
    subset = [
        chance.between(1, max(1, k // 2 if g == 1 else g - 1)) * max(1, k // g if g > 1 else 1)
        for k, (_, g) in zip(cells, parts, strict=True)
    ]
    least = [WORD * d // k + 1 for d, k in zip(subset, cells, strict=True)]
    held = [low + (WORD - low) * chance.between(0, 8) // 10 for low in least]
    odds = [Fraction(h * (k - d), (WORD - h) * d) for h, k, d in zip(held, cells, subset, strict=True)]
    attributes = [_attribute(chance, f"a{i}", size) for i, size in enumerate(sizes)]
    spec: Spec = {
        "kind": "parts",
        "readings": [size + 1 for size in sizes],
        "orders": [len(own) for own, _ in parts],
        "members": [member + 1 for own, _ in parts for member in own],
        "shares": chance.cut(WORD, len(parts)),
        "subset": subset,
        "held": held,
    }
    if any(g > 1 for _, g in parts) or chance.one_in(20):
        spec["classes"] = [g for _, g in parts]
    told = [own for own, _ in parts]
    asked = [pair for pair in pairs if pair in told and (plain or not chance.one_in(3))]
    asked += [[i] for i in range(len(sizes)) if not any(i in own for own in asked)]
    if not plain and chance.one_in(15):
        asked.append(chance.pick([pair for pair in pairs if pair not in asked] or [[1, 0]]))
    epsilon = least_float(max(odds).numerator, max(odds).denominator)
    maps: list[object] = [[None, None] for _ in sizes]
    return _compiled(chance, attributes, spec, ["bundle", maps, asked], epsilon)


# Numbers that may be absent, and tables, transitions and bundles of them.


def key_value_survey(chance: Chance) -> bytes:
    if chance.one_in(4):
        return _with_absent(chance)
    points = chance.between(2, 12)
    low, high = chance.pick([(0, 600), (-3, points - 4), (-(2**53) + 1, 2**53 - 1), (7, 8), (5, 17)])
    ends: list[object] = [low, high]
    kind = chance.pick(["integer", "number"])
    if kind == "number":
        ends = chance.pick([[0.0, 1.0], [-2.5, 1e300], [0.1, 0.7], [-(2.0**60), 2.0**-60]])
        if chance.one_in(12):
            ends = chance.pick([[1.0, 1.0 + 2**-51], [0.0, 5e-324], [-1e308, 1e308], [0.0, 4e-323]])
    if kind == "integer" and high - low >= 2**17:
        ends = [low, low + chance.between(1, 40)]
    sizes = [points, 1, 1]
    many = points + chance.one_in(20)
    share = chance.pick([0.0, 1.0, -0.5, 1, math.nan] if chance.one_in(12) else [0.1, 0.3, 0.999])
    told = [] if chance.one_in(25) else ["missing" if chance.one_in(25) else "absent"]
    attribute = ["a", chance.pick(["static", "evolving"]), kind, [*ends, *told]]
    return _compiled(chance, [attribute], _channel(chance, sizes), ["key_value", many, share], 40.0)


def _with_absent(chance: Chance) -> bytes:
    """A table, transition or bundle of integers that may be absent; now and then a form that has none."""
    size = chance.between(2, 4)
    attributes = [
        [name, "static", "integer", [0, size - 2, "absent"]] if size > 2 else _attribute(chance, name, size)
        for name in ("a", "b")
    ]
    attributes[0] = ["a", "static", "integer", [5, 3 + size + (size == 2), *(["absent"] if size > 2 else [])]]
    turn = chance.below(6)
    if chance.one_in(12):
        names = (
            [["missing", 1]] if chance.one_in(2) else [[f"c{i}", 1] for i in range(size)] + [["missing", 1]]
        )
        head = ["hubbub-survey", 1, "s", 1, "What?", attributes[0], 40.0, KINDS["grr"](chance, size + 1)]
        return pack([*head, None, names, [0, 60, 3], 0, 0, 1, 1, None])  # "absent" is no value there
    if turn <= 1:
        attributes = [[attributes[0][0], "evolving", *attributes[0][2:]]]
        spec = _channel(chance, [(size + 1) ** 2 - 1, 1])
        return _compiled(chance, attributes, spec, ["transition", None, None, 2, "pairs"], 40.0)
    if turn <= 3:
        spec = KINDS[chance.pick(["grr", "subset", "dense"])](chance, (size + 1) ** 2)
        return _compiled(chance, attributes, spec, ["table", [[None, None], [None, None]]], 40.0)
    subset, cells = [1, 2], [(size + 1) ** 2, size + 1]
    held = [WORD * d // each + 2**29 for d, each in zip(subset, cells, strict=True)]
    spec = {
        "kind": "parts",
        "readings": [size + 1, size + 1],
        "orders": [2, 1],
        "members": [1, 2, 2],
        "shares": chance.cut(WORD, 2),
        "subset": subset,
        "held": held,
    }
    form = ["bundle", [[None, None], [None, None]], [[0, 1]]]
    return _compiled(chance, attributes, spec, form, 40.0)


def _key_value_values(chance: Chance, fields: list) -> list[object]:  # type: ignore[type-arg]
    attributes = [fields[5]] if fields[1] == 1 else fields[5]
    asked = attributes * 2 if fields[1] == 2 and fields[8][0] == "transition" else attributes
    return [_number(chance, *attribute[2:]) for attribute in asked]


def _number(chance: Chance, kind: str, domain: list) -> object:  # type: ignore[type-arg]
    low, high = domain[:2]
    if chance.one_in(4):
        return chance.pick(
            ["absent", "absent", "missing", None, True, math.nan, math.inf, [], "Absent", 2**63]
        )
    if kind == "integer" or isinstance(low, str):
        value = chance.between(low, high) if isinstance(low, int) else low
        return (
            chance.pick([value, value, low - 1, high + 1, float(value), value + 0.5])
            if low != value
            else value
        )
    return chance.pick([low, high, low + (high - low) * chance.below(1000) / 1000, -high - 1.0, 1])


def _key_value_symbol(chance: Chance, canonical: bytes) -> int | bytes:
    bundle = msgpack.unpackb(canonical)[7]["kind"] == "parts"
    return _bundle_symbol(chance, canonical) if bundle else _any_symbol(chance, canonical)


def _key_value_life(chance: Chance, canonical: bytes) -> Case:
    """A survey of the series, and two of it on one coordinate where they are of as many points."""
    del canonical
    listed = [key_value_survey(_sound(chance)) for _ in range(3)]
    fields = [msgpack.unpackb(each) for each in listed]
    table = [each[1] == 2 and each[8][0] == "table" for each in fields]
    keys = [[10 * i, 10 * i + 1] if table[i] else [10 * (i > 0)] for i in range(len(listed))]
    symbols: list[object] = [_key_value_symbol(chance, each) for each in listed]
    return _life(chance, listed, keys, symbols, [[] for _ in listed])


# Dictionaries: the file is in the case, and texts are looked up there.


def _texts(chance: Chance, size: int) -> tuple[list[str], bytes]:
    """Texts, and the hashes of them, rising."""
    letters = ["mail", "caf\u00e9", "\u4e2d\u6587", "\U0001f600", "x" * 200]
    found = [f"{chance.pick(letters)} {i}" for i in range(size)]
    hashes = sorted(hashlib.sha256(text.encode()).digest()[:8] for text in found)
    if chance.one_in(12):
        hashes[:2] = hashes[1::-1]
    return found, b"".join(hashes)[: -1 if chance.one_in(25) else None]


def _named(chance: Chance, size: int, digest: bytes) -> bytes:
    """A survey of a dictionary; one of a large one is hashed, as it must be."""
    kind = chance.pick(["local_hashing", "local_hashing", "grr", "subset"])
    if size >= 2**17 and not chance.one_in(12):
        kind = "local_hashing"
    spec = (
        {"kind": "grr", "inputs": size + 1, "t": 9, "u": 1}
        if size >= 2**17
        else KINDS[kind](chance, size + 1)
    )
    if kind == "local_hashing":
        spec = KINDS[kind](chance, size + 1) | {"buckets": chance.pick([2, 3, 4, 5, 8, 31, 64])}
    attribute = ["site", chance.pick(["static", "evolving"]), "dictionary", [size, digest]]
    epsilon = least_float(spec["t"], spec["u"]) if chance.one_in(4) and kind == "local_hashing" else 40.0  # type: ignore[arg-type]
    head = ["hubbub-survey", 1, f"s-{chance.below(10**6)}", 1, "What?", attribute, epsilon]
    terms = [[chance.below(2**32), 86_400, 9], 3_600, 300, 100, 10**6, None]
    pairs = [["answered", size], ["missing", 1]]
    return pack([*head, dict(sorted(spec.items())), None, pairs, *terms])


def dictionary_survey(chance: Chance) -> bytes:
    size = chance.between(2, 12)
    if chance.one_in(6):
        size = chance.pick([2**17 - 1, 2**17, 2**18, 2**20 - 1, 2**20])
    return _named(chance, size, chance.token_bytes(31 if chance.one_in(25) else 32))


def _dictionary_life(chance: Chance, canonical: bytes) -> Case:
    del canonical
    size = chance.between(2, 6)
    listed = [_named(_sound(chance), size, bytes(32)) for _ in range(3)]
    symbols: list[object] = [_any_symbol(chance, each) for each in listed]
    return _life(chance, listed, [[0], [0], [1]], symbols, [[] for _ in listed])


class _OfTexts(Series):
    """A series whose answers look a text up."""

    def answer(self, chance: Chance, canonical: bytes) -> Case:
        del canonical
        size = chance.between(2, 30)
        texts, data = _texts(chance, size)
        digest = hashlib.sha256(data).digest() if not chance.one_in(12) else chance.token_bytes(32)
        value = chance.pick([*texts, None, "elsewhere", "", True, 3.0, b"mail 1", ["mail 0"]])
        random, identifier = chance.token_bytes(200), chance.token_bytes(16)
        rest = (identifier, pack(chance.below(200)), random, data)
        return Case("looked-up", (_named(chance, size, digest), pack([value]), *rest))

    def weights(self, chance: Chance, canonical: bytes) -> Case:
        del canonical
        made = _named(chance, chance.between(2, 12), bytes(32))
        return Case("weights", (made, pack(_any_symbol(chance, made))))


SETS = Series("set", set_survey, _set_values, _set_symbol, _set_life)
TRANSITIONS = Series("transition", transition_survey, _transition_values, _any_symbol, _transition_life)
BUNDLES = Series("bundle", bundle_survey, _bundle_values, _bundle_symbol, _bundle_life, sample=50)
KEY_VALUES = Series("key_value", key_value_survey, _key_value_values, _key_value_symbol, _key_value_life)
INTERACTIONS = Series(
    "interaction",
    interaction_survey,
    _bundle_values,
    _bundle_symbol,
    partial(_bundle_life, survey=interaction_survey),
    sample=50,
)
DICTIONARIES = _OfTexts(
    "dictionary", dictionary_survey, lambda chance, fields: [None], _any_symbol, _dictionary_life, sample=50
)
ALL = (TREES, SETS, TRANSITIONS, BUNDLES, KEY_VALUES, INTERACTIONS, DICTIONARIES)

if __name__ == "__main__":
    write(ALL)
