"""Orbits and how their sets are drawn: from a fixed number of words, exactly, without large binomials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import WORD, Attempts
from hubbub.mechanisms.orbits.layout import Layout

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


class OrbitSampler:
    """The use that a channel of orbits makes of the words of an attempt.

    A row of a class of N values sums to N unit 2^b: two words give b bits and a word per class a number below
    N unit, which pick the orbit and "in" or "out". Two words per orbit and class pick the count of the true
    value's category: of n with weight n if the value is in, s - n if it is out. For each class a word for
    each of the moduli 2..m shuffles the other counts (Fisher and Yates), and for each place in the list of
    counts there are the words of Floyd's algorithm, which picks the members of the category that got this
    count, or those that are left out where they are fewer.

    Attributes:
        limits: From where on each word is dropped.
    """

    def __init__(self, layout: Layout, orbits: Sequence[Orbit], unit: int) -> None:
        self.layout, self.orbits, self.unit = layout, tuple(orbits), unit
        self.shift = shift_of(layout.values, unit)
        limits = [WORD, WORD]
        self._pick: list[int] = []
        self._own: list[list[int]] = []
        self._shuffle: list[int] = []  # the word of class g and modulus v is at _shuffle[g] + v
        self._rank: list[list[int]] = []  # the word of class g, place i, modulus v is at _rank[g][i] - v
        self._gone = len(limits)
        limits.append(WORD - WORD % unit)
        for values in layout.held:
            self._pick.append(len(limits))
            limits.append(WORD - WORD % (values * unit))
        for g, (size, many) in enumerate(zip(layout.class_sizes, layout.many, strict=True)):
            own = []
            for orbit in self.orbits:
                own.append(len(limits))
                limits += [_limit(max(orbit.held[g], 1)), _limit(max(layout.held[g] - orbit.held[g], 1))]
            self._own.append(own)
            self._shuffle.append(len(limits) - 2)
            limits += [_limit(v) for v in range(2, many + 1)]
            ranks = []
            for i in range(many):
                least = min(_least_modulus(orbit.counts[g][i], size) for orbit in self.orbits)
                ranks.append(len(limits) + size)
                limits += [_limit(v) for v in range(size, least - 1, -1)]
            self._rank.append(ranks)
        self.limits = limits
        self._bounds = [self._row(g) for g in range(layout.classes)]
        self._absent = np.cumsum(np.array([orbit.absent for orbit in self.orbits], dtype=np.uint64))

    def _row(self, g: int) -> NDArray[np.uint64]:
        weights = []
        for orbit in self.orbits:
            inside = orbit.held[g] * orbit.inside[g]
            weights += [inside, orbit.weight(g, self.layout.held[g]) - inside]
        return np.cumsum(np.array(weights, dtype=np.uint64))

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:
        """Set out[i] to the set of attempt i for input values[i]; see `SetChannel.fill`."""
        layout = self.layout
        low = (attempts[:, 0].astype(np.uint64) << np.uint64(32)) | attempts[:, 1].astype(np.uint64)
        low >>= np.uint64(64 - self.shift)
        gone = values == layout.values
        safe = np.where(gone, 0, values)
        categories = layout.labels[safe]
        picked = np.zeros(len(values), dtype=np.intp)
        at = np.flatnonzero(gone)
        if at.size:
            drawn = self._drawn(attempts[at, self._gone], low[at], self.unit)
            picked[at] = 2 * np.searchsorted(self._absent, drawn, side="right")
        classes = np.where(gone, -1, layout.class_of[categories])
        for g, count in enumerate(layout.held):
            at = np.flatnonzero(classes == g)
            drawn = self._drawn(attempts[at, self._pick[g]], low[at], count * self.unit)
            picked[at] = np.searchsorted(self._bounds[g], drawn, side="right")
        for t, orbit in enumerate(self.orbits):
            rows = np.flatnonzero(picked // 2 == t)
            if not rows.size:
                continue
            words = attempts[rows]
            inside = (picked[rows] % 2 == 0) & ~gone[rows]
            for g, (size, many) in enumerate(zip(layout.class_sizes, layout.many, strict=True)):
                own = np.where(classes[rows] == g, layout.rank[categories[rows]], -1)
                sets = np.zeros((rows.size, many, size), dtype=np.bool_)
                truth = (own, inside & (own >= 0), layout.place[safe[rows]])
                self._draw(self._ranks(t, g, words, *truth[:2]), (t, g), words, truth, sets)
                out[rows[:, None], layout.members[g].ravel()] = sets.reshape(rows.size, -1)
            if orbit.missing:
                out[rows, layout.values] = True

    def _drawn(self, words: NDArray[np.uint32], low: NDArray[np.uint64], top: int) -> NDArray[np.uint64]:
        high = words.astype(np.uint64) % np.uint64(top)
        return np.asarray((high << np.uint64(self.shift)) | low)

    def _draw(
        self,
        ranks: NDArray[np.intp],
        which: tuple[int, int],
        words: Attempts,
        truth: tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]],
        sets: NDArray[np.bool_],
    ) -> None:
        """Draw sets of a class of an orbit.

        `truth` is the number of the true value's category in the class or -1, if it is in, and its place.
        """
        (t, g), (own, inside, place) = which, truth
        size, many = self.layout.class_sizes[g], self.layout.many[g]
        counts = np.array(self.orbits[t].counts[g])[ranks]
        rows, categories = np.divmod(np.arange(ranks.size), many)
        count, rank = counts.reshape(-1), ranks.reshape(-1)
        true = own[rows] == categories
        held = true & inside[rows]
        labels = size - true  # the true value is set apart: its label stands for the last one
        wanted = count - held
        fewer = np.minimum(wanted, labels - wanted)
        flat = sets.reshape(-1, size)
        first = np.array(self._rank[g])[rank]
        # Floyd: for modulus v = labels - fewer + 1, ..., labels the label (word mod v), or v - 1 if it is
        # taken.
        for step in range(int(fewer.max(initial=0)), 0, -1):
            at = np.flatnonzero(fewer >= step)
            modulus = labels[at] - step + 1
            label = words[rows[at], first[at] - modulus] % modulus.astype(np.uint32)
            label = np.where(flat[at, label], modulus - 1, label)
            flat[at, label] = True
        most = fewer != wanted
        flat[most] = ~flat[most]
        at = np.flatnonzero(true)
        spot = place[rows[at]]
        flat[at, size - 1] = flat[at, spot]
        flat[at, spot] = inside[rows[at]]

    def _ranks(
        self, t: int, g: int, words: Attempts, own: NDArray[Any], inside: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Return the place in the orbit's list of counts that every category has, shape (n, m)."""
        n, size, many = np.arange(len(words)), self.layout.class_sizes[g], self.layout.many[g]
        counts = np.array(self.orbits[t].counts[g])
        ranks = np.tile(np.arange(many), (len(words), 1))
        real = own >= 0
        # The own category's count: rank i with weight counts[i] if the value is in, s - counts[i] if not.
        for chosen, weights, word in (
            (real & inside, counts, self._own[g][t]),
            (real & ~inside, size - counts, self._own[g][t] + 1),
        ):
            at = np.flatnonzero(chosen)
            if at.size:
                i = np.searchsorted(
                    np.cumsum(weights), words[at, word] % np.uint32(weights.sum()), side="right"
                )
                ranks[at, i], ranks[at, 0] = ranks[at, 0], ranks[at, i]
        # Fisher and Yates over the other places, or over all where there is no own category.
        start = real.astype(np.intp)
        for last in range(many - 1, 0, -1):
            modulus = last + 1 - start
            at = np.flatnonzero(modulus >= 2)
            other = start[at] + words[at, self._shuffle[g] + modulus[at]] % modulus[at].astype(np.uint32)
            ranks[at, other], ranks[at, last] = ranks[at, last], ranks[at, other]
        home = np.where(real, own, 0)
        ranks[n, home], ranks[n, 0] = ranks[n, 0], ranks[n, home]
        return ranks


def _limit(modulus: int) -> int:
    return WORD - WORD % modulus


def _least_modulus(count: int, size: int) -> int:
    """Return the least modulus that Floyd's algorithm may need for a count of a category, own or not."""
    least = size - min(count, size - count) + 1
    for wanted in (count - 1, count):  # own category, the value in or out
        if 0 < wanted < size - 1:
            least = min(least, size - min(wanted, size - 1 - wanted))
    return least
