"""The accuracy of a channel for a workload: exact standard errors at the planned number of devices.

Over the randomisation, for devices with shares F and rows m_x, an estimate by a left inverse B has

    covariance = (1/n) [ B diag(pi) B^T - diag(F) ],    pi = sum_x F_x m_x,

because B m_x is the unit vector of x. Its diagonal, and that of sums of its rows, come from the same code
that computes the errors of a release, applied to the expected counts. Nothing is simulated.

The error of a smoothed view's shape is an exact risk over populations that are smooth. Unbiased shares pay
for telling neighbouring points apart, which a smooth population does not need. The risk here is that of the
best linear estimate for a population whose shares are Gaussian about equal ones, with covariance

    L_ij = (1/K)^2 e^(-(i - j)^2 / (2 l^2)),    l = K/8,

centred so that they sum to one: bumps about a third of the range wide, as high as the population itself. With
the information J = n P diag(1/pi) P^T of n reports about the shares, their covariance afterwards is
(L^-1 + J)^-1 = L (I + J L)^-1. Nothing is simulated. It stands for views that need the same assumption, such
as expectation maximisation with smoothing; where that view ends up is another matter, and measured elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.estimation import AnyEstimator, Estimate, InverseEstimator, Reach, TreeEstimator, estimator_for
from hubbub.mechanisms import middle
from hubbub.wire import DIGEST_BYTES, ID_BYTES, Report, encode_report
from hubbub_authoring.design.leverage import Guess, best_guess, representatives, worst_gain, worst_mean
from hubbub_authoring.mechanisms.workload import Objective, Workload

_EDGE = 1e-9
"""A distance counts as within by so much more of itself: both ends are multiples of one step."""


def tolerance_accuracy(channel: Channel, points: NDArray[np.float64], within: float) -> float:
    """Return the least probability, over the values, that a report reads as a number near the value.

    A symbol of boosted noise is read as its place on the grid, one of Duchi, Piecewise and Hybrid as its
    authors read it, one of a channel with as many symbols as inputs as that input. A report that says
    "missing" is no hit.

    Args:
        channel: Over the inputs of `points`.
        points: The number of every input, shape (K,), nan at missing, which is last.
        within: The distance up to which it is a hit, > 0, in the units of the points.

    Returns:
        In [0, 1]; 0 for a channel whose symbols are not read as numbers.
    """
    read = channel.symbol_numbers(points)
    rows = None if read is None else channel.probabilities()
    if read is None or rows is None:
        return 0.0
    inside = np.abs(read - points[:-1, None]) <= within * (1.0 + _EDGE)
    return float(np.where(inside, rows[:-1], 0.0).sum(axis=1).min())


def tolerance_miss_rate(channel: Channel, points: NDArray[np.float64], within: float) -> float:
    """Return one less `tolerance_accuracy`; inf where nothing hits."""
    hits = tolerance_accuracy(channel, points, within)
    return 1.0 - hits if hits > 0.0 else math.inf


MAX_POINTS: Final = 1024
"""Largest K: the risk takes a K by K inverse."""

_LENGTH: Final = 1.0 / 8.0
"""Correlation length of the shares, in ranges."""

_MISSING: Final = 0.25
"""Prior deviation of the share of those who have no number."""


def shape_error(channel: Channel, workload: Workload) -> float:
    """Return the root mean square error of the cumulative frequencies; inf where it has none.

    Args:
        channel: Over the workload's inputs.
        workload: About numbers, equally spaced, missing last.
    """
    inputs = workload.inputs
    if workload.points is None or inputs > MAX_POINTS:
        return math.inf
    rows = channel.probabilities()
    if rows is None:
        return math.inf
    order = np.append(np.argsort(workload.points[:-1], kind="stable"), inputs - 1)
    rows = rows[order]
    information = workload.devices * (rows / (workload.prior[order] @ rows)) @ rows.T
    points = inputs - 1
    place = np.arange(points)
    smooth = np.exp(-0.5 * ((place[:, None] - place) / (_LENGTH * inputs)) ** 2) / points**2
    centring = np.eye(points) - 1.0 / points
    before = np.zeros((inputs, inputs))
    before[:points, :points] = centring @ smooth @ centring
    # one direction more: somebody has no number, and all others have less of a share each
    away = np.append(np.full(points, -_MISSING / points), _MISSING)
    before += np.outer(away, away)
    after = before @ np.linalg.inv(np.eye(inputs) + information @ before)
    curve = np.diag(np.cumsum(np.cumsum(after[:points, :points], axis=0), axis=1))[:-1]
    return math.sqrt(float(np.mean(np.maximum(curve, 0.0))))


MAX_CURVE: Final = 1024
"""Largest K for which errors of cumulative shares are computed: they need the whole covariance."""


@dataclass(frozen=True)
class Errors:
    """The standard errors at the planned number of devices.

    Missing is left out of every average: it is not what was asked.

    Attributes:
        value: Root mean square of the standard errors of the values' shares; inf where values are hidden.
        category: The same of the categories' shares; inf where one of them is hidden.
        mean: Standard error of the mean, in the workload's units; None for labels without numbers.
        cdf: Root mean square of the standard errors of the cumulative shares, inf where values are hidden;
            None unless it is what the workload's objective asks for.
        quantiles: The same over cumulative shares from 1/8 to 7/8; None unless it is what the objective asks
            for.
        shape: That of the cumulative shares for smooth populations (see `shape`); None unless it is what the
            objective asks for.
        miss: The share of reports farther from their value than the objective allows, at the value where it
            is largest; None unless it is what the objective asks for.
    """

    value: float
    category: float
    mean: float | None
    cdf: float | None
    shape: float | None = None
    miss: float | None = None
    quantiles: float | None = None

    def cost(self, workload: Workload) -> float:
        """Return the value of the workload's objective; inf where this cannot be answered."""
        objective: Objective = workload.objective
        if objective.quantity == "value":
            return self.value**2
        if objective.quantity == "category":
            return self.category**2
        if objective.quantity == "both":
            weight, many = objective.category_weight, (1.0, 1.0)
            if objective.of == "totals":
                many = (workload.inputs - 1.0, len(workload.sizes) - 1.0)
            return (1.0 - weight) * many[0] * self.value**2 + weight * many[1] * self.category**2
        if objective.quantity == "hit":
            return math.inf if self.miss is None else self.miss
        error = {
            "mean": self.mean,
            "cdf": self.cdf,
            "quantiles": self.quantiles,
            "shape": self.shape,
        }[objective.quantity]
        return math.inf if error is None else error**2


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a channel, and the size of one report.

    Attributes:
        errors: Standard errors.
        leverage: The most devices by which one report can move the estimated number of devices with some
            value (in some category, where values are hidden): what one forged report is worth.
        bytes_per_report: Bytes of a report on the wire, its largest symbol and a small round.
    """

    errors: Errors
    leverage: float
    bytes_per_report: int
    _gain: Callable[[], float]
    _guess: Callable[[], Guess]
    _mean_gain: Callable[[float], float]

    def mean_moved(self, forged: float) -> float | None:
        """Return the most by which a share of forged reports moves the mean; None where there is none.

        Args:
            forged: In 0..1, among the reports counted.
        """
        if self.errors.mean is None or not math.isfinite(self.errors.mean):
            return None
        try:
            return self._mean_gain(forged)
        except ParameterError:  # too many categories to arrange
            return None

    @cached_property
    def gain(self) -> float:
        """The most that forged reports move a cell's share, per share forged; see `worst_gain`."""
        return self._gain()

    @cached_property
    def guess(self) -> Guess | None:
        """The chance of guessing the input from a report; None of a channel that is too large to look at."""
        try:
            return self._guess()
        except ParameterError:
            return None


def expected_error(channel: Channel, workload: Workload) -> Errors:
    """Return the exact errors of a channel of K inputs.

    Raises:
        ParameterError: If the channel does not fit the workload.
    """
    return _errors(channel, workload_estimator(channel, workload), workload)


def accuracy(channel: Channel, workload: Workload) -> Accuracy:
    """Return the exact errors of a channel of K inputs, and what one report weighs.

    Raises:
        ParameterError: If the channel does not fit the workload.
    """
    estimator = workload_estimator(channel, workload)
    return Accuracy(
        errors=_errors(channel, estimator, workload),
        leverage=_of_set(estimator, workload)
        if isinstance(estimator, TreeEstimator)
        else _of_reach(
            estimator.inverse.reach() if isinstance(estimator, InverseEstimator) else estimator.reach()
        ),
        bytes_per_report=report_bytes(channel),
        _gain=lambda: worst_gain(estimator, workload.prior),
        _guess=lambda: best_guess(channel),
        _mean_gain=lambda forged: worst_mean(
            estimator, workload.prior, cast(NDArray[np.float64], workload.points), forged=forged
        ),
    )


def report_bytes(channel: Channel) -> int:
    """Return the bytes of one report on the wire, its largest symbol and a small round.

    A packed set takes its bytes and a head of two or three in place of a small number's one.
    """
    return len(encode_report(Report(bytes(DIGEST_BYTES), 0, bytes(ID_BYTES), channel.widest_symbol)))


def workload_estimator(channel: Channel, workload: Workload) -> AnyEstimator:
    """Return the unbiased estimator of a channel of K inputs.

    Raises:
        ParameterError: If the channel does not fit the workload.
    """
    return estimator_for(
        channel,
        category_of=workload.category_of,
        points=workload.points,
        missing=workload.inputs - 1,
        rounding="stochastic" if workload.kind == "grid" else "none",
    )


def _errors(channel: Channel, estimator: AnyEstimator, workload: Workload) -> Errors:
    foreseen = estimator.expected_estimate(workload.prior, workload.devices)
    return Errors(
        value=_rms(foreseen.value_errors[:-1]),
        category=_rms(foreseen.category_errors[:-1]),
        mean=None if foreseen.mean_error is None else float(foreseen.mean_error),
        cdf=_curve_error(foreseen, workload) if workload.objective.quantity == "cdf" else None,
        quantiles=_curve_error(foreseen, workload) if workload.objective.quantity == "quantiles" else None,
        shape=shape_error(channel, workload) if workload.objective.quantity == "shape" else None,
        miss=None
        if workload.objective.within is None or workload.points is None
        else tolerance_miss_rate(channel, workload.points, workload.objective.within),
    )


def _rms(errors: NDArray[np.float64]) -> float:
    return math.sqrt(float(np.mean(errors**2)))


def _curve_error(foreseen: Estimate, workload: Workload) -> float:
    """Return the root mean square error of the frequencies at or below each point but the last.

    For the objective "quantiles" only of those points where equally common points have 1/8 to 7/8 below.
    """
    if workload.points is None or workload.inputs > MAX_CURVE:
        quantity = workload.objective.quantity
        raise ParameterError(
            f"objective {quantity} must be asked of numbers with at most {MAX_CURVE} inputs, "
            f"got {workload.inputs}"
        )
    order = np.argsort(workload.points[:-1], kind="stable")
    covariance = foreseen.covariance()[np.ix_(order, order)]
    variances = np.diag(np.cumsum(np.cumsum(covariance, axis=0), axis=1))[:-1]
    if workload.objective.quantity == "quantiles":
        low, high = middle(workload.inputs - 1)
        variances = variances[low - 1 : high]
    return math.inf if np.isnan(variances).any() else _rms(np.sqrt(np.maximum(variances, 0.0)))


def _of_reach(reach: Reach) -> float:
    if np.isnan(reach.values_low).any():
        return float(np.nanmax(np.maximum(-reach.categories_low, reach.categories_high)))
    return float(np.maximum(-reach.values_low, reach.values_high).max())


def _of_set(estimator: TreeEstimator, workload: Workload) -> float:
    """Return the most that one set or level report can add to the number of devices with some value.

    A value's share is a sum over levels of means of h . b over the level's own reports, b being 1/(p - q) for
    the cells of the set, less q/(p - q) for all: so what is largest is a sum over the largest (or least) h.
    """
    found = 0.0
    for x in representatives(estimator.tree, np.zeros(workload.inputs)).tolist():
        unit = np.zeros(workload.inputs)
        unit[x] = 1.0
        for level, h in zip(estimator.tree.levels, estimator.tree.coefficients(unit), strict=True):
            if level.share == 0:
                continue
            held, other = float(level.support.p), float(level.support.q)
            ranked = np.sort(h)
            # Unary encoding sends sets of any size, all others of one.
            size = round(held + (level.bins - 1) * other)
            low, high = (
                (ranked[ranked < 0].sum(), ranked[ranked > 0].sum())
                if level.support.size is None
                else (ranked[:size].sum(), ranked[-size:].sum())
            )
            base = other * h.sum()
            most = max(high - base, base - low) / (held - other) / float(level.share)
            found = max(found, float(most))
    return found
