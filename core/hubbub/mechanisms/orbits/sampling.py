"""Orbits and how their sets are drawn: from a fixed number of words, exactly, without large binomials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import WORD, Attempts

BITS: Final = 62
"""Bits of a weight of a column: the total is 2^62 over the square of the values, and a power of two."""


@dataclass(frozen=True)
class Orbit:
    """One orbit and its integer weights.

    Attributes:
        counts: Values of the set per category, falling, one number per category.
        missing: Whether the set holds the missing input.
        inside: H, of T, for a value in the set.
        outside: L, for a value not in the set.
        absent: M, for the missing input; 0 in a channel without one.
    """

    counts: tuple[int, ...]
    missing: bool
    inside: int
    outside: int
    absent: int

    @property
    def held(self) -> int:
        """k, the values in the set."""
        return sum(self.counts)


def total_of(values: int) -> int:
    """Return the power of two that every row sums to: it leaves H K (K - k) below 2^62."""
    return int(2 ** (BITS - 2 * values.bit_length()))


class OrbitSampler:
    """The use that a channel of orbits makes of the words of an attempt.

    Two words pick the orbit and "in" or "out" by the true input's row of weights. Two words per orbit pick
    the count of the true value's category: of n with weight n if the value is in, s - n if it is out. A
    word for each of the moduli 2..m shuffles the other counts (Fisher and Yates). For each place in the
    list of counts there are the words of Floyd's algorithm, which picks the members of the category that
    got this count, or those that are left out where they are fewer.

    Attributes:
        limits: From where on each word is dropped.
    """

    def __init__(self, size: int, many: int, orbits: Sequence[Orbit]) -> None:
        self.size, self.many, self.orbits = size, many, tuple(orbits)
        self.values, self.total = size * many, total_of(size * many)
        self.missing = any(orbit.absent for orbit in orbits)
        limits = [WORD, WORD]
        self._own: list[tuple[int, int]] = []
        for orbit in self.orbits:
            self._own.append((len(limits), len(limits) + 1))
            limits += [_limit(max(orbit.held, 1)), _limit(max(self.values - orbit.held, 1))]
        self._shuffle = len(limits) - 2  # the word of modulus v is at _shuffle + v
        limits += [_limit(v) for v in range(2, self.many + 1)]
        self._rank: list[int] = []  # the word of rank i and modulus v is at _rank[i] - v
        for i in range(self.many):
            least = min(_least_modulus(orbit.counts[i], self.size) for orbit in self.orbits)
            self._rank.append(len(limits) + self.size)
            limits += [_limit(v) for v in range(self.size, least - 1, -1)]
        self.limits = limits

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:
        """Set out[i] to the set of attempt i for input values[i]; see `SetChannel.fill`."""
        drawn = (attempts[:, 0].astype(np.uint64) << np.uint64(32)) | attempts[:, 1].astype(np.uint64)
        drawn >>= np.uint64(65 - self.total.bit_length())
        picked = np.searchsorted(self._bounds(), drawn, side="right")
        gone = np.zeros(len(values), dtype=np.bool_)
        if self.missing:
            gone = values == self.values
            picked[gone] = 2 * np.searchsorted(self._absent_bounds(), drawn[gone], side="right")
        for t, orbit in enumerate(self.orbits):
            rows = np.flatnonzero(picked // 2 == t)
            if not rows.size:
                continue
            own = np.where(gone[rows], -1, values[rows] // self.size)
            inside = (picked[rows] % 2 == 0) & ~gone[rows]
            place = np.where(gone[rows], 0, values[rows] % self.size)
            sets = np.zeros((rows.size, self.many, self.size), dtype=np.bool_)
            self._draw(
                self._ranks(t, attempts[rows], own, inside), t, attempts[rows], (own, inside, place), sets
            )
            out[rows, : self.values] = sets.reshape(rows.size, -1)
            if self.missing:
                out[rows, self.values] = orbit.missing

    def _bounds(self) -> NDArray[np.uint64]:
        weights = [w for orbit in self.orbits for w in (orbit.inside, orbit.outside)]
        return np.cumsum(np.array(weights, dtype=np.uint64))

    def _absent_bounds(self) -> NDArray[np.uint64]:
        return np.cumsum(np.array([orbit.absent for orbit in self.orbits], dtype=np.uint64))

    def _draw(
        self,
        ranks: NDArray[np.intp],
        t: int,
        words: Attempts,
        truth: tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]],
        sets: NDArray[np.bool_],
    ) -> None:
        """Draw sets of one orbit; truth is the true value's category or -1, if it is in, and its place."""
        own, inside, place = truth
        counts = np.array(self.orbits[t].counts)[ranks]
        rows, categories = np.divmod(np.arange(ranks.size), self.many)
        count, rank = counts.reshape(-1), ranks.reshape(-1)
        true = own[rows] == categories
        held = true & inside[rows]
        labels = self.size - true  # the true value is set apart: its label stands for the last one
        wanted = count - held
        fewer = np.minimum(wanted, labels - wanted)
        flat = sets.reshape(-1, self.size)
        first = np.array(self._rank)[rank]
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
        flat[at, self.size - 1] = flat[at, spot]
        flat[at, spot] = inside[rows[at]]

    def _ranks(
        self, t: int, words: Attempts, own: NDArray[Any], inside: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Return the place in the orbit's list of counts that every category has, shape (n, m)."""
        orbit, n = self.orbits[t], np.arange(len(words))
        ranks = np.tile(np.arange(self.many), (len(words), 1))
        real = own >= 0
        # The own category's count: rank i with weight counts[i] if the value is in, s - counts[i] if not.
        for chosen, weights, word in (
            (real & inside, np.array(orbit.counts), self._own[t][0]),
            (real & ~inside, self.size - np.array(orbit.counts), self._own[t][1]),
        ):
            at = np.flatnonzero(chosen)
            if at.size:
                i = np.searchsorted(
                    np.cumsum(weights), words[at, word] % np.uint32(weights.sum()), side="right"
                )
                ranks[at, i], ranks[at, 0] = ranks[at, 0], ranks[at, i]
        # Fisher and Yates over the other places, or over all where there is no own category.
        start = real.astype(np.intp)
        for last in range(self.many - 1, 0, -1):
            modulus = last + 1 - start
            at = np.flatnonzero(modulus >= 2)
            other = start[at] + words[at, self._shuffle + modulus[at]] % modulus[at].astype(np.uint32)
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
