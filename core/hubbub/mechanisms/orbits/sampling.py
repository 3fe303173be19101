"""Orbits and how their sets are drawn: exactly, by uniform integers and subsets, without large binomials."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import factorial, prod
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.orbits.layout import Layout
from hubbub.numeric.randomness import Source, UniformInteger, below
from hubbub.numeric.subsets import ReadAhead, short_many, subset_masks, subsets

MAX_LISTED: Final = 512
"""Arrangements that are listed at most; one integer picks one of them."""

_LISTED_PLACES: Final = 64
"""Places of a listed arrangement at most."""

Numbers = NDArray[np.integer[Any]]


class Arrangements:
    """The orders of a row of numbers, equal ones being alike, all equally likely.

    Where they are few they are listed. Else a uniform subset of the places is kept for all but the commonest
    number, and what is kept there is shuffled (Fisher and Yates).

    Attributes:
        numbers: Those of the row, rising.
        few: Whether they are listed.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = tuple(sorted(numbers))
        times = Counter(self.numbers)
        self._common = max(times, key=times.__getitem__, default=0)
        self._rest = [n for n in self.numbers if n != self._common]
        few = len(self.numbers) <= _LISTED_PLACES
        self.few = few and (
            factorial(len(self.numbers)) // prod(map(factorial, times.values())) <= MAX_LISTED
        )

    @cached_property
    def listed(self) -> list[tuple[int, ...]]:
        """All of them, each once."""
        found: list[tuple[int, ...]] = [()]
        times = Counter(self.numbers)
        for _ in self.numbers:
            found = [(*row, n) for row in found for n in times if row.count(n) < times[n]]
        return found

    @cached_property
    def table(self) -> Numbers:
        """All of them as rows, int32."""
        return np.array(self.listed, dtype=np.int32).reshape(len(self.listed), len(self.numbers))

    def one(self, source: Source) -> list[int]:
        """Return one of them."""
        if self.few:
            return list(self.listed[below(len(self.listed), source)])
        if not self._rest:
            return list(self.numbers)
        rest = self._rest.copy()
        if rest[0] != rest[-1]:
            for last in range(len(rest) - 1, 0, -1):
                other = below(last + 1, source)
                rest[other], rest[last] = rest[last], rest[other]
        found = [self._common] * len(self.numbers)
        (places,) = subset_masks(len(found), [len(rest)], source)
        for n in rest:
            found[(places & -places).bit_length() - 1] = n
            places &= places - 1
        return found

    def many(self, rows: int, source: Source) -> Numbers:
        """Return independent ones, shape (rows, places), int32."""
        if self.few:
            return self.table.take(short_many(len(self.table), rows, source), axis=0)
        if not self._rest:
            return np.full((rows, len(self.numbers)), self._common, dtype=np.int32)
        rest = np.tile(np.array(self._rest, dtype=np.int32), (rows, 1))
        if self._rest[0] != self._rest[-1]:
            every = np.arange(rows)
            for last in range(len(self._rest) - 1, 0, -1):
                other = short_many(last + 1, rows, source)
                moved = rest[every, other]
                rest[every, other] = rest[:, last]
                rest[:, last] = moved
        found = np.full((rows, len(self.numbers)), self._common, dtype=np.int32)
        places = np.flatnonzero(subsets(len(self.numbers), len(self._rest), rows, source))
        found.reshape(-1)[places] = rest.reshape(-1)
        return found


BITS: Final = 62
"""Bits of the total of a row: what every orbit's weights, times its values, must sum to fits an int64."""


@dataclass(frozen=True)
class Orbit:
    """One orbit and the integer weights of each of its sets.

    Attributes:
        counts: Per class the values of the set in each category, falling.
        missing: Whether the set holds the missing input.
        inside: h per class, for a value in the set.
        outside: l per class, for a value not in the set.
        absent: For the missing input; 0 in a channel without one.
    """

    counts: tuple[tuple[int, ...], ...]
    missing: bool
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    absent: int

    @cached_property
    def held(self) -> tuple[int, ...]:
        """K per class, the values in the set."""
        return tuple(sum(part) for part in self.counts)

    @cached_property
    def kinds(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per class the different counts, each with the number of categories that have it."""
        return tuple(tuple(sorted(Counter(part).items())) for part in self.counts)

    def weight(self, g: int, values: int) -> int:
        """Return N_g times the orbit's weight given a value of class g: k h + (N - k) l."""
        return self.held[g] * self.inside[g] + (values - self.held[g]) * self.outside[g]


def shift_of(values: int, unit: int = 1) -> int:
    """Return b: weights of a set sum to unit 2^b over the orbits, and rows stay below 2^62."""
    return BITS - (values * unit).bit_length()


class Outcome(NamedTuple):
    """A part of a row: the orbit, whether the true value is in the set, the count of its category.

    For the missing input `inside` and `own_count` mean nothing.
    """

    orbit: int
    inside: bool
    own_count: int


class OutcomeRow:
    """The outcomes of a class, or of the missing input, with their integer weights."""

    def __init__(self, weighed: Sequence[tuple[Outcome, int]]) -> None:
        kept = [(outcome, weight) for outcome, weight in weighed if weight]
        self.outcomes = [outcome for outcome, _ in kept]
        self.bounds = list(accumulate(weight for _, weight in kept))
        self.law = UniformInteger(self.bounds[-1])

    def one(self, source: Source) -> Outcome:
        """Return one of them."""
        return self.outcomes[bisect_right(self.bounds, self.law.one(source))]


class OrbitSampler:
    """The law of a channel of orbits, step by step, every step by integers.

    One uniform integer below a row's total picks the orbit, whether the true value is in, and the count of
    its category: of n with weight h n if the value is in, l (s - n) if it is out. The other counts go to the
    other categories in a uniform order, and each category gets a uniform subset of its count; the category
    of the true value draws among its other values. Many at a time: `hubbub.mechanisms.orbits.batches`.
    """

    def __init__(self, layout: Layout, orbits: Sequence[Orbit], unit: int) -> None:
        self.layout, self.orbits, self.unit = layout, tuple(orbits), unit
        self.rows = [self._row(g) for g in range(layout.classes)]
        absent = [(Outcome(t, False, 0), orbit.absent) for t, orbit in enumerate(orbits)]
        if any(weight for _, weight in absent):
            self.rows.append(OutcomeRow(absent))
        self._arrangements: dict[tuple[int, int, int], Arrangements] = {}
        self._home = list(zip(layout.labels.tolist(), layout.place.tolist(), strict=True))
        self._number = list(zip(layout.class_of.tolist(), layout.rank.tolist(), strict=True))
        self._starts = [members[:, 0].tolist() for members in layout.members]
        self._ahead = 256 + 5 * layout.values // 8  # about as many bytes as a draw takes

    def _row(self, g: int) -> OutcomeRow:
        size, weighed = self.layout.class_sizes[g], []
        for t, orbit in enumerate(self.orbits):
            for n, times in orbit.kinds[g]:
                weighed += [
                    (Outcome(t, True, n), times * n * orbit.inside[g]),
                    (Outcome(t, False, n), times * (size - n) * orbit.outside[g]),
                ]
        return OutcomeRow(weighed)

    def arranged(self, t: int, g: int, own: int = -1) -> Arrangements:
        """Return the orders of a class's counts: of all, or of those besides the true value's category."""
        key = (t, g, own)
        if key not in self._arrangements:
            counts = list(self.orbits[t].counts[g])
            if own >= 0:
                counts.remove(own)
            self._arrangements[key] = Arrangements(counts)
        return self._arrangements[key]

    def one(self, value: int, source: Source) -> tuple[int, int]:
        """Return an orbit and one set of it, as the sum of 2^x over its inputs x."""
        layout, source = self.layout, ReadAhead(source, self._ahead)
        gone = value == layout.values
        category, place = (-1, 0) if gone else self._home[value]
        home, rank = (layout.classes, -1) if gone else self._number[category]
        t, inside, own = self.rows[home].one(source)
        found = 0
        for g, size in enumerate(layout.class_sizes):
            starts = self._starts[g]
            if g != home:
                counts = self.arranged(t, g).one(source)
            else:
                counts = self.arranged(t, g, own).one(source)
                counts.insert(rank, 0)  # its own members come below
                start = starts[rank]
                if size > 1:
                    (mask,) = subset_masks(size - 1, [own - inside], source)
                    # The true value is set apart: its label stands for the last one.
                    mask = mask & ~(1 << place) | (mask >> place & 1) << size - 1
                    found |= mask << start
                found |= inside << start + place
            some = [i for i, n in enumerate(counts) if n]
            for i, mask in zip(some, subset_masks(size, [counts[i] for i in some], source), strict=True):
                found |= mask << starts[i]
        return t, found | self.orbits[t].missing << layout.values
