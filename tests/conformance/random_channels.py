"""Random small channels of every kind, by integers alone, so that they are the same on every machine."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Spec = dict[str, object]

WORD = 2**32


class Chance:
    """Numbers that follow from a text: SHA-256 of it and a counter, word by word."""

    def __init__(self, text: str) -> None:
        self._text, self._count, self._rest = text, 0, b""

    def token_bytes(self, n: int, /) -> bytes:
        while len(self._rest) < n:
            self._rest += hashlib.sha256(f"{self._text}/{self._count}".encode()).digest()
            self._count += 1
        taken, self._rest = self._rest[:n], self._rest[n:]
        return taken

    def below(self, n: int) -> int:
        return int.from_bytes(self.token_bytes(16), "little") % n

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def one_in(self, n: int) -> bool:
        return self.below(n) == 0

    def cut(self, total: int, parts: int) -> list[int]:
        """Whole numbers of at least 1 that sum to a total."""
        ends: set[int] = set()
        while len(ends) < parts - 1:
            ends.add(self.between(1, total - 1))
        at = [0, *sorted(ends), total]
        return [high - low for low, high in itertools.pairwise(at)]


def _pair(chance: Chance) -> tuple[int, int]:
    """A smaller and a larger weight, at most some e^5 apart; now and then beyond 32 bits."""
    other = chance.between(1, chance.pick([3, 100, 2**20, 2**20, 2**28, 2**50]))
    return other, other + chance.between(1, chance.pick([other, 5 * other, 150 * other]))


def grr(chance: Chance, inputs: int) -> Spec:
    u, t = _pair(chance)
    return {"kind": "grr", "inputs": inputs, "t": t, "u": u}


def _sizes(chance: Chance, inputs: int) -> list[int]:
    """Sizes of categories, missing last and alone."""
    return [*chance.cut(inputs - 1, chance.between(1, min(4, inputs - 1))), 1]


def pbgrr(chance: Chance, inputs: int, sizes: list[int] | None = None) -> Spec:
    sizes, high = sizes or _sizes(chance, inputs), chance.pick([4, 1000, 2**20, 2**40])
    o = [chance.between(max(1, high // 3), high) for _ in sizes]
    u = [low if size == 1 else chance.between(low, 2 * low) for size, low in zip(sizes, o, strict=True)]
    near = [size * (w - low) for size, w, low in zip(sizes, u, o, strict=True)]
    total = max(near) + chance.between(1, 3 * high)
    t = [w + total - each for w, each in zip(u, near, strict=True)]
    return {"kind": "pbgrr", "sizes": sizes, "t": t, "u": u, "o": o}


def category_grr(chance: Chance, inputs: int, sizes: list[int] | None = None) -> Spec:
    o, t = _pair(chance)
    return {"kind": "category_grr", "sizes": sizes or _sizes(chance, inputs), "t": t, "o": o}


def dense(chance: Chance, inputs: int) -> Spec:
    outputs, high = chance.between(2, 7), chance.pick([5, 1000, 2**28, 2**40])
    total, rows = outputs * high, []
    for _ in range(inputs):
        if rows and chance.one_in(4):
            rows.append(chance.pick(rows))
            continue
        row = [chance.between(max(1, high // 9), high) for _ in range(outputs - 1)]
        rows.append([*row, total - sum(row)])
    width = 4 if total <= WORD else 8
    weights = b"".join(weight.to_bytes(width, "little") for row in rows for weight in row)
    return {"kind": "dense", "inputs": inputs, "outputs": outputs, "total": total, "weights": weights}


def curve(chance: Chance, inputs: int) -> Spec:
    return {**dense(chance, inputs), "kind": "curve"}


def weighted(chance: Chance, inputs: int) -> Spec:
    """A table, and how common its inputs were taken to be."""
    high = chance.pick([1, 9, 10**6, 2**31 - 1])
    common = [chance.between(1, high) for _ in range(inputs)]
    return {**dense(chance, inputs), "kind": "weighted", "common": common}


def _hierarchy(chance: Chance, inputs: int) -> list[list[int]]:
    """One or two groupings, missing alone in each; the finer splits the coarser."""
    top = [*chance.cut(inputs - 1, chance.between(1, max(1, (inputs - 1) // 3))), 1]
    wide = max(top)
    if wide < 4 or chance.one_in(2):
        return [top]
    split = chance.between(2, wide - 1)
    place = top.index(wide)
    return [top, [*top[:place], split, wide - split, *top[place + 1 :]]]


def _weighed(chance: Chance, levels: int) -> Spec:
    pairs = [_pair(chance) for _ in range(levels)]
    return {"t": [min(t, 2**55) for _, t in pairs], "u": [min(u, 2**55 - 1) for u, _ in pairs]}


def levels(chance: Chance, inputs: int) -> Spec:
    groups = _hierarchy(chance, inputs)
    joined = [size for level in groups for size in level]
    weights = _weighed(chance, len(groups) + 1)
    return {"kind": "levels", "inputs": inputs, "sizes": joined, **weights}


def _cells(chance: Chance, points: int) -> list[int]:
    first = chance.between(1, points // 2)
    cells = [first]
    while cells[-1] * 2 < points and chance.one_in(2):
        cells.append(cells[-1] * 2)
    return [*cells, points]


def tree_node(chance: Chance, inputs: int) -> Spec:
    cells = _cells(chance, inputs - 1)
    return {"kind": "tree_node", "inputs": inputs, "cells": cells, **_weighed(chance, len(cells))}


def local_hashing(chance: Chance, inputs: int) -> Spec:
    u, t = _pair(chance)
    buckets = chance.pick([2, 3, 4, 5, 7, 8, 16, 31, 32])
    return {
        "kind": "local_hashing",
        "inputs": inputs,
        "buckets": buckets,
        "t": t % 2**50 + 1,
        "u": u % 2**49 + 1,
    }


def _subset(chance: Chance, cells: int) -> tuple[int, int]:
    size = chance.between(1, cells - 1)
    least = WORD * size // cells + 1
    return size, chance.between(least, min(least + (WORD - least) * 9 // 10, WORD - 1))


def subset(chance: Chance, inputs: int) -> Spec:
    size, held = _subset(chance, inputs)
    return {"kind": "subset", "inputs": inputs, "size": size, "held": held}


def unary(chance: Chance, inputs: int) -> Spec:
    other = chance.between(2**20, 2**30)
    return {
        "kind": "unary",
        "inputs": inputs,
        "held": chance.between(other + 1, 2**31 - 2**20),
        "other": other,
    }


def _shared(chance: Chance, counts: list[int]) -> Spec:
    pairs = [_subset(chance, cells) for cells in counts]
    return {
        "shares": chance.cut(WORD, len(counts)),
        "subset": [size for size, _ in pairs],
        "held": [held for _, held in pairs],
    }


def set_levels(chance: Chance, inputs: int) -> Spec:
    groups = _hierarchy(chance, inputs)
    shared = _shared(chance, [*map(len, groups), inputs])
    joined = [size for level in groups for size in level]
    return {"kind": "set_levels", "inputs": inputs, "sizes": joined, **shared}


def tree(chance: Chance, inputs: int) -> Spec:
    cells = _cells(chance, inputs - 1)
    shared = _shared(chance, [cell + 1 for cell in cells])
    return {"kind": "tree", "inputs": inputs, "cells": cells, **shared}


def orbits(chance: Chance, inputs: int) -> Spec:
    """Weights T_t + (N - k) z in a set and T_t - k z out of it: rows sum to T, whatever z is."""
    short = chance.one_in(3)
    values = inputs - 1
    sizes = chance.cut(values, chance.between(1, min(4, values)))
    classes = sorted(set(sizes), reverse=True)
    unit = chance.pick([1, 1, 2, 10])
    total = unit << 62 - (values * unit).bit_length()
    parts = chance.cut(total // 1000, chance.between(1, 3))
    spec: Spec = {"kind": "short_orbits" if short else "orbits", "sizes": sizes, "unit": unit}
    counts: list[list[int]] = []
    inside, outside, absent = [], [], []
    for place, part in enumerate(parts):
        own = total - 1000 * sum(parts[1:]) if place == 0 else 1000 * part
        row: list[int] = []
        only = chance.below(len(classes))
        for g, size in enumerate(classes):
            many = sizes.count(size)
            drawn = [chance.between(0, size) for _ in range(many)]
            if short:
                drawn = [chance.between(1, size) if g == only and not i else 0 for i in range(many)]
            drawn.sort(reverse=True)
            row += drawn
            k, n = sum(drawn), size * many
            z = chance.below(9 * own // (10 * n) + 1)
            inside.append(own + (n - k) * z)
            outside.append(own - k * z)
        counts.append(row)
        absent.append(own)
    missing = [chance.below(2) for _ in parts]
    flat = [n for row in counts for n in row]
    return spec | {"counts": flat, "missing": missing, "inside": inside, "outside": outside, "absent": absent}


KINDS: dict[str, Callable[[Chance, int], Spec]] = {
    each.__name__: each
    for each in (
        grr,
        pbgrr,
        category_grr,
        dense,
        curve,
        weighted,
        levels,
        tree_node,
        local_hashing,
        subset,
        unary,
        set_levels,
        tree,
        orbits,
    )
}  # fmt: skip
FOR_TABLES = ("grr", "dense", "curve", "weighted", "local_hashing", "subset", "unary")
