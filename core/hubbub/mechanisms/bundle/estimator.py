"""The estimator of a bundle: all tables asked for, and every attribute's own shares, with errors.

A cell of a pooled table is 1/R plus a sum over parts of the mean of a score h_T over the n_T reports about
that part. The device's part is drawn by a coin that knows no value, so with f the cell's share

    variance = sum_T (E h_T^2 - (E h_T)^2) / n_T - (f - f^2) / n ,

where the last term is what the choice of devices adds and the devices counted do not have. E h_T^2 is linear
in the part's own shares, by the exact first two moments of its sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.consistency import Consistent, norm_sub
from hubbub.estimation.estimate import Estimate, Estimator
from hubbub.estimation.poison import Reach
from hubbub.mechanisms.bundle.channel import Members, SampledParts
from hubbub.mechanisms.bundle.pooling import Floats, Pooling


@dataclass(frozen=True, eq=False, repr=False)
class BundleEstimate(Estimate):
    """The estimate of a bundle: its values are the cells of all tables, one table after the other.

    Each table sums to one, and tables agree in every margin that they share. Cells are nan where no report
    told them.
    """

    _table_of: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)
    _margin_of: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)

    def consistent(self) -> Consistent:
        """Return a biased view: each table, and each attribute's shares, non-negative and of sum one."""
        return Consistent(_cut(self.values, self._table_of), _cut(self.categories, self._margin_of))

    def empirical_bayes(self) -> Consistent:
        """Return the consistent view: tables of different sizes share no law to shrink by."""
        return self.consistent()

    def effective_size(self, of: Literal["values", "categories"] = "values") -> float | None:
        """Return None: parts of different sizes are known by different numbers of devices."""
        del of
        return None


class BundleEstimator(Estimator):
    """The unbiased estimator of the tables of a bundle, pooled over all parts.

    Args:
        channel: The channel whose reports were counted.
        tables: The attributes of every table asked for, rising.
    """

    def __init__(self, channel: SampledParts, *, tables: Sequence[Members]) -> None:
        self.channel, self.tables = channel, tuple(tables)
        self.sizes = [math.prod(channel.readings[j] for j in table) for table in self.tables]
        self.category_of = np.empty((0, sum(self.sizes)), dtype=np.intp)

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> BundleEstimate:
        """Estimate the tables from one round's counts.

        Args:
            counts: The channel's counts of n reports, shape (bins,), integers >= 0.
            n: Number of reports, >= 1.

        Raises:
            ParameterError: They are not those of n reports.
        """
        tallies = np.asarray(counts)
        if tallies.dtype.kind not in "iu" or n < 1 or not self.channel.agrees(tallies.astype(np.int64), n):
            raise ParameterError(f"counts must be those of {self.channel.bins} bins and n = {n} >= 1 reports")
        reports, cells = self.channel.split(tallies.astype(np.float64))
        return self._estimate(reports, cells, n)

    def expected_estimate(self, frequencies: Floats, n: int) -> BundleEstimate:
        """Return what to expect of n devices; see `Estimator`, for a small product of readings."""
        reports, cells = self.channel.split(n * self.channel.expected(frequencies))
        return self._estimate(reports, cells, n)

    def uniform_estimate(self, n: int) -> BundleEstimate:
        """Return what to expect of n devices whose combinations are all equally common."""
        cells = [oracle.inputs for oracle in self.channel.oracles]
        return self.expected_of_parts([np.full(many, 1.0 / many) for many in cells], n)

    def expected_of_parts(self, tables: Sequence[Floats], n: int) -> BundleEstimate:
        """Return what to expect of n devices with these shares in each part's table."""
        reports = n * np.array([part.share for part in self.channel.parts]) / 2**32
        cells = [
            about * oracle.expected(shares)
            for about, oracle, shares in zip(reports, self.channel.oracles, tables, strict=True)
        ]
        return self._estimate(reports, cells, n)

    def _estimate(self, reports: Floats, cells: list[Floats], n: int) -> BundleEstimate:
        pooling = Pooling(self.channel, reports)
        shares = [
            self._own(part, held, about)
            for part, (held, about) in enumerate(zip(cells, reports.tolist(), strict=True))
        ]
        margins: list[Members] = [(j,) for j in range(len(self.channel.readings))]
        values = [self._table(table, pooling, shares, n) for table in self.tables]
        categories = [self._table(table, pooling, shares, n) for table in margins]
        return BundleEstimate(
            n=n,
            values=np.concatenate([estimates for estimates, _ in values]),
            value_errors=np.concatenate([errors for _, errors in values]),
            categories=np.concatenate([estimates for estimates, _ in categories]),
            category_errors=np.concatenate([errors for _, errors in categories]),
            mean=None,
            mean_error=None,
            _category_of=self.category_of,
            _covariance=self._covariance,
            _reach=partial(self._reach, pooling, n),
            _table_of=np.repeat(np.arange(len(self.sizes)), self.sizes),
            _margin_of=np.repeat(np.arange(len(margins)), self.channel.readings),
        )

    def _own(self, part: int, held: Floats, about: float) -> Floats:
        """Return the unbiased shares of a part's cells, or of its interaction; 0 where nobody reported."""
        if about <= 0.0:
            return np.zeros(len(held))
        p, q = self._chances(part)
        return np.asarray((held / about - q) / (p - q))

    def _chances(self, part: int) -> tuple[float, float]:
        support = self.channel.oracles[part].levels[0].support
        return float(support.p), float(support.q)

    def _table(self, table: Members, pooling: Pooling, shares: list[Floats], n: int) -> tuple[Floats, Floats]:
        """Return the pooled shares of a table's cells, and their standard errors."""
        cells = math.prod(self.channel.readings[j] for j in table)
        if not pooling.is_told(table):
            return np.full(cells, np.nan), np.full(cells, np.inf)
        estimates, variances = np.full(cells, 1.0 / cells), np.zeros(cells)
        for part, matrix in pooling.scores(table).items():
            told = _times(matrix, shares[part])
            estimates += told
            spread = self._second_moments(part, matrix, shares[part]) - told**2
            variances += spread / pooling.reports[part]
        variances -= (estimates - estimates**2) / n
        return estimates, np.sqrt(np.maximum(variances, 0.0))

    def _second_moments(self, part: int, matrix: Floats, shares: Floats) -> Floats:
        """Return E h^2 of the score of every cell, shape (cells of the table,).

        A report's score is (sum of g over its set) - q sum g, with g = matrix / (p - q); its mean square
        follows from the chances that a set holds one cell, and two, given the true one.
        """
        support = self.channel.oracles[part].levels[0].support
        p, q, own, other = (float(x) for x in (support.p, support.q, support.p_pair, support.q_pair))
        g = matrix / (p - q)
        total, squares = g.sum(axis=1), g * g
        held = _times(g, shares)
        ones = _times(squares, q + (p - q) * shares)
        pairs = other * (total**2 - squares.sum(axis=1)) + 2.0 * (own - other) * (
            total * held - _times(squares, shares)
        )
        mean = q * total + (p - q) * held
        return np.asarray(ones + pairs - 2.0 * q * total * mean + (q * total) ** 2)

    def _covariance(self) -> Floats:
        raise ParameterError("a bundle must be asked for its errors: its covariance is not stated")

    def _reach(self, pooling: Pooling, n: int) -> Reach:
        margins: list[Members] = [(j,) for j in range(len(self.channel.readings))]
        values = [self._reach_of(table, pooling, n) for table in self.tables]
        categories = [self._reach_of(table, pooling, n) for table in margins]
        return Reach(
            *(np.concatenate([each[end] for each in values]) for end in (0, 1)),
            *(np.concatenate([each[end] for each in categories]) for end in (0, 1)),
        )

    def _reach_of(self, table: Members, pooling: Pooling, n: int) -> tuple[Floats, Floats]:
        """Return the least and the most that one report, about any part, adds to the count of each cell."""
        cells = math.prod(self.channel.readings[j] for j in table)
        if not pooling.is_told(table):
            return np.full(cells, np.nan), np.full(cells, np.nan)
        low, high = np.zeros(cells), np.zeros(cells)
        for part, matrix in pooling.scores(table).items():
            p, q = self._chances(part)
            size = self.channel.oracles[part].size
            ranked = np.sort(matrix / (p - q), axis=1)
            centre = q * ranked.sum(axis=1)
            weight = n / pooling.reports[part]
            low = np.minimum(low, weight * (ranked[:, :size].sum(axis=1) - centre))
            high = np.maximum(high, weight * (ranked[:, -size:].sum(axis=1) - centre))
        return low + 1.0 / cells, high + 1.0 / cells


def _times(matrix: Floats, vector: Floats) -> Floats:
    """Return matrix @ vector, summed in one order on every machine, so that releases have the same bytes."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _cut(shares: Floats, group_of: NDArray[np.intp]) -> Floats:
    """Return the shares of each group cut at zero and shifted to a sum of one; nan for a group with one."""
    hidden = np.isin(group_of, group_of[np.isnan(shares)])
    cut = norm_sub(np.where(hidden, 0.0, shares), group_of, np.ones(int(group_of.max()) + 1))
    return np.where(hidden, np.nan, cut)
