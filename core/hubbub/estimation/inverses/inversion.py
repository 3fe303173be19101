"""The choice of a left inverse for a channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation.intervals.laws import MixedLaw, ScoreLaws
from hubbub.estimation.intervals.population import plausible_populations, population_law
from hubbub.estimation.inverses.inverse import Arithmetic, Inverse, Numbers, Solution, excess
from hubbub.estimation.poison import Reach

# A functional counts as identifiable when its symbol weights reproduce it to this (relative) accuracy: far
# above what rounding leaves for a well-posed design, far below any residual of one that hides something.
IDENTIFIABLE = 1e-7
# Directions that the channel shrinks below this fraction of its largest singular value are lost in float64.
RESOLVED = 1e-12


class DenseInverse:
    """The generalised-least-squares inverse of a (K, M) matrix of weights, O(K M) to apply.

    With more symbols than inputs (M > K) many left inverses exist. The one taken minimises the variance under
    the weights pi, the distribution of symbols when every input is equally common, or as common as a weighted
    channel says:

        B = (P W P^T)^-1 P W,   W = diag(1 / pi),   pi = mean of the rows of P.

    pi is fixed by the design and never by the data: weights plugged in from the counts would bias the
    estimate. Because pi is a mixture of rows, the columns of B sum to one and the estimates to n. Each row of
    B is then the functional's best linear unbiased estimator at that mixture, also when P has no full rank:
    what the channel hides is found by its residual and reported as such.

    Args:
        weights: The channel's integers, shape (K, M).
        total: The row total T.
        category_of: The reported category 0..m-1 of every input, shape (K,); None: each input is its own.
        common: How common every input is taken to be, relatively, shape (K,), > 0; None: all alike.

    Attributes:
        rows: P, shape (K, M).
    """

    def __init__(
        self,
        weights: NDArray[np.int64],
        total: int,
        *,
        category_of: NDArray[np.intp] | None = None,
        common: Sequence[int] | None = None,
    ) -> None:
        self.rows = rows = weights / total
        root = 1.0 / np.sqrt(rows.mean(axis=0) if common is None else np.array(common) / sum(common) @ rows)
        self._scaled = (rows * root).T
        self._b = _solve(self._scaled) * root
        self._values = _Rows(self._b, rows, np.eye(rows.shape[0]))
        if category_of is None:
            self._groups = self._values
        else:
            indicator = np.zeros((int(category_of.max()) + 1, rows.shape[0]))
            indicator[category_of, np.arange(rows.shape[0])] = 1.0
            self._groups = _Rows(indicator @ self._b, rows, indicator)

    @cached_property
    def condition(self) -> float:
        """Ratio of the extreme singular values of W^1/2 P^T; inf when values are hidden."""
        sizes = np.linalg.svd(self._scaled, compute_uv=False)
        full = len(sizes) == self.inputs and sizes[-1] > RESOLVED * sizes[0]
        return float(sizes[0] / sizes[-1]) if full else math.inf

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""
        return int(self.rows.shape[0])

    @property
    def outputs(self) -> int:
        """M, the number of symbols."""
        return int(self.rows.shape[1])

    def solve(self, counts: Numbers) -> Solution:
        """Estimate values and categories, with variances, from counts of shape (M,)."""
        return Solution(*self._values.solve(counts), *self._groups.solve(counts))

    def pull_back(self, functional: Numbers) -> Numbers | None:
        """Return functional @ B, shape (M,), or None when the channel hides the functional."""
        weights = functional @ self._b
        gap = np.abs(self.rows @ weights - functional).max()
        return (
            np.asarray(weights) if gap <= IDENTIFIABLE * max(1.0, float(np.abs(functional).max())) else None
        )

    def laws(self, counts: Numbers, solution: Solution) -> ScoreLaws:
        """Return the laws of the scores behind `solution`; those of hidden cells mean nothing."""
        populations = plausible_populations(solution.values / float(counts.sum()))
        values = self._values.law(counts, populations, self.rows)
        same = self._groups is self._values
        return ScoreLaws(values, values if same else self._groups.law(counts, populations, self.rows))

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to every value and category."""
        return Reach(*self._values.extremes(), *self._groups.extremes())

    def matrix(self) -> Numbers:
        """Return B, shape (K, M); rows of hidden values are nan."""
        table: Numbers = self._b.copy()
        table[self._values.hidden] = np.nan
        return table


def _solve(scaled: Numbers) -> Numbers:
    """Return the left inverse, shape (K, M), of an (M, K) matrix; its pseudo-inverse without full rank."""
    if scaled.shape[0] >= scaled.shape[1]:
        # QR costs a tenth of the decomposition below, which only a matrix without full rank needs.
        q, r = np.linalg.qr(scaled)
        diagonal = np.abs(np.diag(r))
        if diagonal.min() > RESOLVED * diagonal.max():
            inverse = np.linalg.solve(r, q.T)
            if np.abs(inverse @ scaled - np.eye(scaled.shape[1])).max() <= IDENTIFIABLE:
                return np.asarray(inverse)
    u, s, vt = np.linalg.svd(scaled, full_matrices=False)
    kept = s > RESOLVED * s[0]
    return np.asarray((vt[kept].T / s[kept]) @ u[:, kept].T)


class _Rows:
    """Some rows of symbol weights, what each report adds to their variances, and which rows are hidden."""

    def __init__(self, weights: Numbers, rows: Numbers, targets: Numbers) -> None:
        self.weights, self.spread, self.targets = weights, excess(weights), targets
        self._own: Numbers | None = None
        self.hidden = np.abs(weights @ rows.T - targets).max(axis=1) > IDENTIFIABLE

    def extremes(self) -> tuple[Numbers, Numbers]:
        low, high = self.weights.min(axis=1), self.weights.max(axis=1)
        low[self.hidden] = high[self.hidden] = np.nan
        return low, high

    def solve(self, counts: Numbers) -> tuple[Numbers, Numbers]:
        estimates, variances = self.weights @ counts, np.maximum(self.spread @ counts, 0.0)
        estimates[self.hidden], variances[self.hidden] = np.nan, np.inf
        return estimates, variances

    def law(self, counts: Numbers, populations: Numbers, rows: Numbers) -> MixedLaw:
        """Return the law of the scores, a member of a cell being any of its inputs alike."""
        squares, cubes = self.weights**2, self.weights**3
        if self._own is None:
            # The targets' rows, each of sum one, are the law of a member.
            members = self.targets / self.targets.sum(axis=1, keepdims=True) @ rows
            variance = (members * squares).sum(axis=1) - 1.0
            self._own = np.stack([variance, (members * cubes).sum(axis=1) - 3.0 * variance - 1.0])
        reports = populations @ rows
        return population_law(
            n=float(counts.sum()),
            own=self._own,
            held=populations @ self.targets.T,
            second=reports @ squares.T,
            third=reports @ cubes.T,
            observed=squares @ counts / counts.sum(),
        )


@runtime_checkable
class Invertible(Protocol):
    """A channel whose structure gives its inverse without a matrix."""

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: Arithmetic = "float64"
    ) -> Inverse:
        """Return the left inverse of the channel; see `invert`."""


def own_categories(channel: FiniteChannel) -> NDArray[np.intp]:
    """Return the category of every input, shape (K,): the channel's own, or else one per input."""
    own: NDArray[np.intp] | None = getattr(channel, "category_of", None)
    return np.arange(channel.inputs) if own is None else own


def invert(
    channel: FiniteChannel, *, category_of: NDArray[Any] | None = None, arithmetic: Arithmetic = "float64"
) -> Inverse:
    """Return the left inverse of a channel's integers, without a matrix where the channel has structure.

    Args:
        channel: The channel whose symbols will be counted.
        category_of: Category 0..m-1 of every input, shape (K,), none left out; None: `own_categories`.
        arithmetic: "fractions" computes exactly in object arrays, for proofs on small K.

    Raises:
        ParameterError: The matrix of a channel without structure is too large, or fractions were asked of it.
    """
    if isinstance(channel, Invertible):
        return channel.inverse(category_of=category_of, arithmetic=arithmetic)
    if arithmetic != "float64":
        raise ParameterError(f"a channel without structure is inverted in float64 only, got {arithmetic!r}")
    common = getattr(channel, "common", None)
    return DenseInverse(channel.weights(), channel.total, category_of=category_of, common=common)
