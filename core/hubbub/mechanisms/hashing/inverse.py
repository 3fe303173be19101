"""The left inverse of local hashing: an input's support, shifted and scaled.

With p the probability that a report of x supports x, and r + c (p - r) that it supports any other input
(`hubbub.mechanisms.hashing.local_hashing`), c being the same for every pair of inputs,

    B[x, (s, y)] = gain [h_s(x) = y] + base,    gain = 1 / ((1 - c) (p - r)),    base = -gain (r + c (p - r)),

has B P^T = I exactly. With q^d points and S seeds, (1 - c) S = q^(d-1); so both are ratios of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_WEIGHTS
from hubbub.errors import ParameterError
from hubbub.estimation.intervals.laws import MixedLaw, ScoreLaws
from hubbub.estimation.intervals.population import plausible_populations, population_law
from hubbub.estimation.inverses.inverse import Arithmetic, Numbers, Solution, excess, quotients
from hubbub.estimation.poison import Reach

if TYPE_CHECKING:
    from hubbub.mechanisms.hashing.local_hashing import LocalHashing

_KEPT: Final = 2**22
"""Entries of the table of categories by buckets that is kept between rounds, 32 MiB."""


class HashInverse:
    """The inverse of a local hashing channel, two Fourier transforms per round and one per large category.

    Args:
        channel: The channel.
        category_of: The reported category 0..m-1 of every input, shape (K,); None: each input is its own.
        arithmetic: "fractions" computes exactly, in object arrays and without transforms: for proofs on
            small K.
    """

    def __init__(
        self,
        channel: LocalHashing,
        *,
        category_of: NDArray[np.intp] | None = None,
        arithmetic: Arithmetic = "float64",
    ) -> None:
        self._pool, self._exact = channel.pool, arithmetic == "fractions"
        spread = (channel.t - channel.u) * (channel.pool.points // channel.pool.buckets)
        missed = channel.u * channel.pool.seeds + (channel.t - channel.u) * channel.pool.together
        top = np.array([channel.total, -missed])
        self._gain, self._base = quotients(top, np.array([spread, spread]), arithmetic=arithmetic)
        self._category_of = np.arange(channel.inputs) if category_of is None else category_of
        self._sizes = np.bincount(self._category_of)
        self._several = np.flatnonzero(self._sizes > 1)
        self._table: NDArray[np.int64] | None = None
        self._channel = channel
        self._own: Numbers | None = None

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""
        return self._pool.inputs

    @property
    def outputs(self) -> int:
        """M, the number of symbols."""
        return self._pool.symbols

    def solve(self, counts: Numbers) -> Solution:
        """Estimate values and categories, with variances, from counts of shape (M,)."""
        n = counts.sum()
        support = self._hits() @ counts if self._exact else self._pool.supports(counts)
        values = self._gain * support + self._base * n
        near, far = excess(self._gain + self._base), excess(self._base)
        together = np.zeros(len(self._sizes), dtype=support.dtype)
        np.add.at(together, self._category_of, support)
        categories = self._gain * together + self._base * self._sizes * n
        variances = near * together + far * (n - together)  # right where a category is one input
        for category, members in self._members():
            held = self._gain * np.arange(members.max() + 1) + self._base * self._sizes[category]
            variances[category] = excess(held)[members] @ counts
        return Solution(values, near * support + far * (n - support), categories, variances)

    def pull_back(self, functional: Numbers) -> Numbers:
        """Return functional @ B, shape (M,)."""
        held = functional @ self._hits() if self._exact else self._pool.sums_by_bucket(functional)
        return np.asarray(self._gain * held + self._base * functional.sum())

    def laws(self, counts: Numbers, solution: Solution) -> ScoreLaws:
        """Return the laws of the scores behind `solution`: two-valued, or by populations for categories."""
        n = float(counts.sum())
        hit, miss = np.full(self.inputs, self._gain + self._base), np.full(self.inputs, self._base)
        values = replace(MixedLaw.of_two_values(n, hit, miss), step=np.full(self.inputs, float(self._gain)))
        observed = np.full(len(self._sizes), -np.inf)
        categories = values.picked(np.arange(len(self._sizes)))
        if (some := self._several).size:
            part = self._several_law(counts, solution.values / n)
            categories.own[:, some], categories.far[:, some] = part.own, part.far
            categories.step[some], observed[some] = 0.0, part.observed
            assert categories.odds is not None  # noqa: S101 - a law of two values has them
            categories.odds[:, some] = np.nan
        return ScoreLaws(values, replace(categories, observed=observed))

    def _several_law(self, counts: Numbers, estimates: Numbers) -> MixedLaw:
        """Return the law of the categories of several inputs."""
        populations = plausible_populations(estimates)
        reports = np.stack([self._channel.expected(population) for population in populations])
        held, second, third, observed, mine = [], [], [], [], []
        for category, members in self._members():
            inside = self._category_of == category
            kinds = self._gain * np.arange(members.max() + 1) + self._base * self._sizes[category]
            squares, cubes = (kinds**2)[members], (kinds**3)[members]
            held.append(populations[:, inside].sum(axis=1))
            second.append(reports @ squares)
            third.append(reports @ cubes)
            observed.append(squares @ counts / counts.sum())
            if self._own is None:
                law = self._channel.expected(inside / inside.sum())
                variance = float(law @ squares) - 1.0
                mine.append((variance, float(law @ cubes) - 3.0 * variance - 1.0))
        if self._own is None:
            self._own = np.array(mine).T
        return population_law(
            n=float(counts.sum()),
            own=self._own,
            held=np.array(held).T,
            second=np.array(second).T,
            third=np.array(third).T,
            observed=np.array(observed),
        )

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to every value and category."""
        low, high = np.zeros(len(self._sizes)), np.ones(len(self._sizes))
        for category, members in self._members():
            low[category], high[category] = members.min(), members.max()
        ones = np.ones(self.inputs)
        return Reach(
            self._base * ones,
            (self._gain + self._base) * ones,
            self._gain * low + self._base * self._sizes,
            self._gain * high + self._base * self._sizes,
        )

    def matrix(self) -> Numbers:
        """Return B, shape (K, M).

        Raises:
            ParameterError: It would have more than MAX_WEIGHTS entries.
        """
        return np.asarray(self._gain * self._hits() + self._base)

    def _hits(self) -> NDArray[np.int64]:
        """Return which bins hold which inputs, shape (K, M), 0 or 1."""
        if self.inputs * self.outputs > MAX_WEIGHTS:
            raise ParameterError(
                f"a matrix must have at most {MAX_WEIGHTS} entries, got {self.inputs} x {self.outputs}"
            )
        seeds, inputs = np.arange(self._pool.seeds), np.arange(self.inputs)[:, None]
        hits = np.zeros((self.inputs, self.outputs), dtype=np.int64)
        hits[inputs, seeds * self._pool.buckets + self._pool.bucket(seeds, inputs)] = 1
        return hits

    def _members(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Return each category of several inputs, and how many of them every bucket holds, shape (M,)."""
        if self._table is None and len(self._several) * self.outputs <= _KEPT:
            self._table = np.array(
                [self._pool.held(self._category_of == category) for category in self._several.tolist()]
            )
        for row, category in enumerate(self._several.tolist()):
            yield (
                category,
                self._pool.held(self._category_of == category) if self._table is None else self._table[row],
            )
