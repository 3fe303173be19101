"""The estimator of counts per symbol: the channel's own integers, inverted once and applied often."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation.cumulative import Functionals, populations
from hubbub.estimation.em import MAX_CELLS, Smoothed, maximise, neighbours
from hubbub.estimation.estimate import Estimate, Estimator, Floats
from hubbub.estimation.intervals.fieller import LEAST, RatioMean
from hubbub.estimation.intervals.judged_mean import JudgedMean, MeanScores
from hubbub.estimation.intervals.laws import MeanLaw, ScoreLaws
from hubbub.estimation.inverses.inverse import Inverse, Solution
from hubbub.estimation.inverses.inversion import DenseInverse, invert, own_categories
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import InputNumbers, Rounding, checked_categories, expected_counts
from hubbub.estimation.trees.set_moments import noise_kinds


class InverseEstimator(Estimator):
    """The unbiased linear estimator of one survey.

    Built once per survey, then called per round: O(K) for GRR and PB-GRR, O(K M) for a dense channel.

    Args:
        channel: The channel whose symbols were counted.
        category_of: Category 0..m-1 of every input, shape (K,), each used at least once. None: the
            channel's own categories; a channel without any has one per input.
        points: The number that each input stands for, shape (K,), finite; nan at `missing` and, where that
            is stated, at any other input without a number; None for a survey without numbers.
        missing: The input that means "no value", left out of the mean; None when there is none.
        rounding: "stochastic" when devices round their number to the two nearest points at random: the
            mean's error then holds that variance too, at most gap^2/4 per device, taken at this bound since
            no count tells where between two points the devices stood (one with gap^2/4 and a mixture of
            two that need no rounding look the same). On 33 points this is under 1 % of the
            variance at epsilon <= 4.

    Raises:
        ParameterError: Shapes or ranges do not fit the channel.
    """

    def __init__(
        self,
        channel: FiniteChannel,
        *,
        category_of: NDArray[np.integer[Any]] | None = None,
        points: Floats | None = None,
        missing: int | None = None,
        rounding: Rounding = "none",
    ) -> None:
        inputs = channel.inputs
        groups = None if category_of is None else checked_categories(category_of, inputs)
        self.channel = channel
        self.inverse = invert(channel, category_of=groups)
        self.category_of = own_categories(channel) if groups is None else groups
        numbers = InputNumbers.of(inputs, points=points, missing=missing, rounding=rounding)
        self._mean = None if numbers is None else _Mean(self.inverse, numbers)
        self._points, self._missing, self._rounding = points, missing, rounding

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts.

        Args:
            counts: Reports per symbol, shape (M,), integers >= 0.
            n: Number of reports, the sum of counts, >= 1.

        Raises:
            ParameterError: The shape, the type or the sum is wrong.
        """
        tallies = np.asarray(counts)
        if tallies.shape != (self.channel.outputs,):
            raise ParameterError(f"counts must have shape ({self.channel.outputs},), got {tallies.shape}")
        if tallies.dtype.kind not in "iu":
            raise ParameterError(f"counts must be integers, got {tallies.dtype}")
        if tallies.min() < 0:
            raise ParameterError(f"counts must not be negative, got {tallies.min()}")
        if n < 1 or int(tallies.sum()) != n:
            raise ParameterError(f"n must be the sum of counts and at least 1, got {n} for {tallies.sum()}")
        return self._estimate(tallies.astype(np.float64), n)

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported: their shares, and exact errors.

        A variance is linear in the counts, and its estimate unbiased: so at the expected counts it is the
        variance itself, over the randomisation of devices whose values are these. (That of the mean is
        exact for the linear part of its ratio.)

        Args:
            frequencies: The share of the devices that holds each input, shape (K,), >= 0, summing to one.
            n: Number of devices, >= 1.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        return self._estimate(expected_counts(self.channel, frequencies, n), n)

    def reach(self) -> Reach:
        """Return the extremes of what one report can add."""
        return self.inverse.reach()

    def _estimate(self, reports: Floats, n: int) -> Estimate:
        solution = self.inverse.solve(reports)
        mean, mean_error = (None, None) if self._mean is None else self._mean(reports, n)
        # A category that everyone is in has no variance, and rounding may leave a little less than none.
        return Estimate(
            n=n,
            values=solution.values / n,
            value_errors=np.sqrt(np.maximum(solution.value_variances, 0.0)) / n,
            categories=solution.categories / n,
            category_errors=np.sqrt(np.maximum(solution.category_variances, 0.0)) / n,
            mean=mean,
            mean_error=mean_error,
            _category_of=self.category_of,
            _covariance=partial(self._covariance, reports, n),
            _reach=self.reach,
            _smoothed=partial(self._smoothed, reports),
            _laws=partial(self._laws, reports, solution),
            _functionals=self._functionals(solution.values / n, n),
        )

    def _functionals(self, values: Floats, n: int) -> Functionals | None:
        if self._points is None or not self.channel.shows_curve:
            return None
        moments = partial(self._variances, values, n), partial(self._kinds, values, n)
        return Functionals(values, self._points, self._rounding, *moments, n)

    def _variances(self, values: Floats, n: int, functionals: Floats) -> Floats:
        """Return the variances at shares that are all alike and at the estimate's."""
        squares = (functionals.T @ self.inverse.matrix()) ** 2
        found = [
            squares @ self.channel.expected(population) - population @ functionals**2
            for population in populations(values, self._points)
        ]
        return np.maximum(found, 0.0) / n

    def _kinds(self, values: Floats, n: int, functionals: Floats) -> Floats:
        scores, chances = (functionals.T @ self.inverse.matrix()).T, self.channel.probabilities()
        square, cube = chances @ scores**2, chances @ scores**3
        variance = np.maximum(square - functionals**2, 0.0) / n
        third = (cube - 3.0 * functionals * square + 2.0 * functionals**3) / n**2
        return noise_kinds(np.stack(populations(values, self._points)), variance, third)

    def _laws(self, reports: Floats, solution: Solution) -> ScoreLaws:
        laws = self.inverse.laws(reports, solution)
        return laws if self._mean is None else replace(laws, mean=self._mean.law(reports, solution))

    def _smoothed(self, reports: Floats) -> Smoothed:
        order, cells = neighbours(self._points, self._missing), self.channel.inputs * self.channel.outputs
        if cells > MAX_CELLS:
            raise ParameterError(f"a smoothed view needs K M <= {MAX_CELLS}, got {cells}")
        return maximise(self.channel.weights() / self.channel.total, reports, order=order)

    def _covariance(self, reports: Floats, n: int) -> Floats:
        table = self.inverse.matrix()
        covariance = (table * reports) @ table.T
        spread = covariance.diagonal() - table @ reports
        covariance[np.diag_indices(len(covariance))] = np.maximum(spread, 0.0)
        return np.asarray(covariance / n**2)


class _Mean:
    """The ratio estimator of the mean over devices that have a value.

    With a_x the points (0 at missing) and r_x = 1 unless missing, mean = a.F / r.F. Its influence per
    device is h = (a - mean r) / (r.F), so by the delta method its variance is the one of the linear
    functional h: sum_j g_j^2 C_j - sum_x h_x^2 F_x in counts, with g = h B. The second sum is itself
    estimated; where the channel hides it, it is left out, which makes the error larger, never smaller.
    """

    def __init__(self, inverse: Inverse, numbers: InputNumbers) -> None:
        self._numbers = numbers
        self._answered = inverse.pull_back(numbers.answered)
        self._first = inverse.pull_back(numbers.unit)
        self._second = inverse.pull_back(numbers.unit * numbers.unit)
        self._inverse = inverse

    @cached_property
    def _scores(self) -> MeanScores | None:
        """The moments of the scores given every input; None without a matrix, or where it hides squares."""
        inverse, hidden = self._inverse, self._second is None
        if hidden or self._first is None or self._answered is None or not isinstance(inverse, DenseInverse):
            return None
        return MeanScores(inverse.rows, inverse.matrix(), self._numbers, self._first, self._answered)

    def law(self, reports: Floats, solution: Solution) -> MeanLaw | None:
        """Return the law of the mean; None where it is hidden.

        Without `MeanScores` it is Fieller's: with S the sum of squared scores, S less the sum of squared
        numbers is the variance over the randomisation; at least LEAST of S is left, as the second sum is
        itself estimated. Where the channel hides the second sum, nothing is taken off: that makes no
        interval too narrow.

        Args:
            reports: Counts of shape (M,), float64.
            solution: The estimate from them.
        """
        if self._answered is None or self._first is None:
            return None
        if self._scores is not None:
            n = round(float(reports.sum()))
            return JudgedMean(self._scores, reports[:, None], solution.values[:, None] / n, n)
        total, answered = _dot(self._first, reports), _dot(self._answered, reports)
        square = _dot(self._first * self._first, reports)
        second = 0.0 if self._second is None else _dot(self._second, reports)
        both, counted = _dot(self._first * self._answered, reports), _dot(self._answered**2, reports)
        everyone = bool((self._numbers.answered == 1.0).all())
        return RatioMean(
            total,
            answered,
            max(square - second, LEAST * square) + self._numbers.rounding_variance * max(answered, 0.0),
            0.0 if everyone else both - total,
            0.0 if everyone else max(counted - answered, LEAST * counted),
            self._numbers.centre,
            self._numbers.scale,
            round(float(reports.sum())),
            0.0 if self._second is None else second,
        )

    def __call__(self, reports: Floats, n: int) -> tuple[float, float]:
        """Return the mean and its standard error from counts of shape (M,), float64."""
        if self._answered is None or self._first is None:
            return math.nan, math.inf
        answered = _dot(self._answered, reports)
        if answered <= 0:
            return math.nan, math.inf
        mean = _dot(self._first, reports) / answered
        influence = (self._first - mean * self._answered) / answered
        variance = _dot(influence * influence, reports)
        if self._second is not None:
            second = _dot(self._second, reports) / answered
            variance -= max(second - mean * mean, 0.0) / answered
        return self._numbers.scaled(mean, max(variance, 0.0) + self._numbers.rounding_variance / answered)


def _dot(a: Floats, b: Floats) -> float:
    # Not a @ b: at K = 100,000 BLAS would wake its threads, which costs more than the sum on a busy machine.
    return float(np.einsum("i,i->", a, b))
