"""The floors of a workload in the units of its costs: the errors that no mechanism can be below."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, Literal

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import middle
from hubbub_authoring.floor.least import (
    MAX_LISTED,
    Floor,
    cumulative_floor,
    functional_floor,
    mean_floor,
    shares_floor,
    sharper,
)
from hubbub_authoring.floor.orbits import Classes, Weights
from hubbub_authoring.floor.patterns import pattern_floor
from hubbub_authoring.floor.spectral import (
    MAX_SPECTRAL,
    cumulative_questions,
    range_questions,
    spectral_floor,
    spectral_shares,
)
from hubbub_authoring.mechanisms.workload import Objective, Workload

Asked = Literal["value", "category", "both", "mean", "cdf", "quantiles", "ranges"]
ASKED: Final[tuple[Asked, ...]] = ("value", "category", "both", "mean", "cdf", "quantiles", "ranges")
"""The quantities that have a floor; "ranges" is the mean error over all ranges of points."""

MAX_PROVED: Final = 16.0
"""The largest epsilon that has floors."""

MAX_FRONTIER: Final = 30_000
"""Orbits up to which a frontier is drawn: a tenth of a second per weight."""

FRONTIER_WEIGHTS: Final = tuple(1.0 / (1.0 + 10.0**power) for power in np.linspace(-4.0, 2.5, 27).tolist())
"""Weights of categories whose floors make a frontier."""


@dataclass(frozen=True, eq=False)
class Floors:
    """The floors of a workload.

    They are for the workload's prior, on average over crowds drawn from it. Where a coin decides who answers,
    they are for channels behind that coin: the information of a report is at most the coin's share of what
    its answer holds.

    Attributes:
        workload: The workload.
    """

    workload: Workload

    def of(self, quantity: str) -> Floor | None:
        """Return n times the least variance for a quantity of objectives; None where no floor is known.

        Rounding a number to the points of a grid costs every mechanism on that grid the same, at its bound of
        a quarter of the squared gap: it is counted as costs count it.
        """
        asked = self.workload
        # Beyond, the error that a report adds to sampling is below the rounding: a proof would bound nothing.
        if asked.epsilon > MAX_PROVED or quantity not in ASKED:
            return None
        if quantity not in self._known:
            try:
                self._known[quantity] = self._behind_coin(quantity)
            except ParameterError:
                self._known[quantity] = None
        return self._known[quantity]

    def _behind_coin(self, quantity: Asked) -> Floor | None:
        asked = self.workload
        if self.uniform:
            found, sampling = self._proved(quantity)
        else:
            found, sampling = self._of_crowd(quantity)
        rest = 0.0
        if quantity == "mean" and asked.kind == "grid" and asked.points is not None:
            rest = float(np.diff(asked.points[:-1]).min() / 2.0) ** 2
        return found.behind_coin(asked.participation, sampling=sampling, rest=rest)

    def cost(self, quantity: str) -> float | None:
        """Return the floor as costs are counted: divided by the devices, rounded down."""
        found = self.of(quantity)
        return None if found is None else math.nextafter(found.error / self.workload.devices, 0.0)

    @cached_property
    def _known(self) -> dict[str, Floor | None]:
        return {}

    @cached_property
    def uniform(self) -> bool:
        """True where all values are equally common, and nobody has none."""
        return self._alike and self.workload.prior[-1] == 0.0

    @property
    def crowd(self) -> str:
        """The prior in words."""
        k, absent = self.workload.inputs - 1, float(self.workload.prior[-1])
        if self.uniform:
            return f"devices spread evenly over {k:,} values"
        if self._alike:
            return f"devices of which {100.0 * absent:g} % have no value, the others spread evenly over {k:,}"
        return f"devices of the planned shares of {k:,} values"

    @property
    def _alike(self) -> bool:
        prior = self.workload.prior[:-1]
        return bool(np.ptp(prior) <= 1e-12 * prior[0])

    @cached_property
    def objective(self) -> Floor | None:
        """The floor of the objective."""
        return self.of(self.workload.objective.quantity)

    def above(self, cost: float) -> float | None:
        """Return how far a cost is above the objective's floor, as a share of it.

        None without a floor, and of a crowd that is not uniform: floors of others are bounds, and may be far
        below what is possible.
        """
        if self.objective is None or not self.uniform or not math.isfinite(cost):
            return None
        return cost * self.workload.devices / self.objective.error - 1.0

    def _proved(self, quantity: Asked) -> tuple[Floor, float]:
        """Return the floor without a coin, and the error of sampling that was taken off."""
        asked = self.workload
        k = asked.inputs - 1
        if quantity == "mean":
            points = self._points()
            return _mean(tuple(points), asked.epsilon), float(points.var())
        if quantity == "ranges":
            return self._of_crowd(quantity)
        if quantity in ("cdf", "quantiles"):
            self._points()
            low, high = middle(k) if quantity == "quantiles" else (1, k - 1)
            heights = np.arange(low, high + 1) / k
            found = _cumulative(k, asked.epsilon, quantity == "quantiles")
            return found, float((heights * (1.0 - heights)).mean())
        weights = self.weights(quantity)
        return _shares(tuple(asked.sizes[:-1]), asked.epsilon, weights), self._sampling(weights)

    def weights(self, quantity: Asked) -> Weights:
        """Return what the mean error of values and that of categories weigh in a quantity."""
        objective = self.workload.objective
        weight = {"value": 0.0, "category": 1.0}.get(quantity, objective.category_weight)
        many = (1, 1)
        if quantity == "both" and objective.of == "totals":
            many = (self.workload.inputs - 1, len(self.workload.sizes) - 1)
        return Weights((1.0 - weight) * many[0], weight * many[1])

    def _sampling(self, weights: Weights) -> float:
        """Return the error of shares in crowds drawn from a prior that has all values equally common."""
        share = self.workload.prior[0]
        groups = share * np.array(self.workload.sizes[:-1])
        return float(
            weights.value * share * (1.0 - share) + weights.category * (groups * (1.0 - groups)).mean()
        )

    def _of_crowd(self, quantity: Asked) -> tuple[Floor, float]:
        """Return the floor of any prior without a coin, and the error of sampling that was taken off."""
        asked = self.workload
        prior, epsilon, absent = asked.prior, asked.epsilon, float(asked.prior[-1])
        few = asked.inputs <= MAX_LISTED
        if quantity in ("value", "category", "both") and self._alike and not few:
            weights = self.weights(quantity)
            spectral = spectral_shares(asked.sizes[:-1], epsilon=epsilon, weights=weights, absent=absent)
            return Floor(spectral, "spectral"), self._sampling(weights)
        rows = self._rows(quantity)
        spectral = spectral_floor(rows, prior, epsilon=epsilon)
        known: Floor | None = None
        if few:
            known = Floor(pattern_floor(rows, prior, epsilon=epsilon).floor, "patterns")
        elif quantity == "mean":
            known = functional_floor(rows[0], prior, epsilon=epsilon)
        means = rows @ prior
        return sharper(known, spectral), float(((rows - means[:, None]) ** 2 @ prior).sum())

    def _rows(self, quantity: Asked) -> np.ndarray:
        """Return the questions to all inputs, whose summed error a quantity is.

        The mean over those who have a value is a ratio: its questions are the gradient at the prior.
        """
        asked = self.workload
        prior, k = asked.prior, asked.inputs - 1
        if asked.inputs > MAX_SPECTRAL:
            raise ParameterError(f"inputs must be at most {MAX_SPECTRAL} for a floor, got {asked.inputs}")
        if quantity == "mean":
            points, there = self._points(), prior[:-1] / prior[:-1].sum()
            return np.asarray(np.append(points - points @ there, 0.0)[None, :] / prior[:-1].sum())
        if quantity in ("cdf", "quantiles", "ranges"):
            order = np.argsort(self._points(), kind="stable")
            low, high = middle(k) if quantity == "quantiles" else (1, k - 1)
            rows = range_questions(k) if quantity == "ranges" else cumulative_questions(k, low, high)
            found = np.zeros((len(rows), k + 1))
            found[:, order] = rows
            return found
        weights, m = self.weights(quantity), len(asked.sizes) - 1
        values = math.sqrt(weights.value / k) * np.eye(k, k + 1)
        groups = math.sqrt(weights.category / m) * (np.arange(m)[:, None] == asked.category_of)
        return np.concatenate([values, groups])

    def _points(self) -> np.ndarray:
        points = self.workload.points
        if points is None:
            raise ParameterError("numbers must be asked for the mean of them, got labels")
        return np.asarray(points[:-1], dtype=np.float64)


def frontier(workload: Workload, values: np.ndarray) -> np.ndarray | None:
    """Return the least category error for given value errors: no mechanism is left of or below this line.

    Any weighted sum of the two errors has a floor, so the line is the upper envelope of as many lines as
    weights are tried; between them it is a little too low, which keeps it a floor. At its ends it is the
    floor of each error alone.

    Args:
        workload: With two categories or more.
        values: n times mean variances of values, shape (n,).

    Returns:
        n times mean variances of categories, shape (n,), inf where no mechanism has so small a value error;
        None where too many orbits would have to be looked at.

    Raises:
        ParameterError: If there are fewer than two categories.
    """
    sizes = tuple(workload.sizes[:-1])
    if len(sizes) < 2:
        raise ParameterError(f"categories must be two or more for a frontier, got {len(sizes)}")
    if Classes.of(sizes, missing=True).orbits > MAX_FRONTIER:
        return None
    ends = Floors(workload)
    alone, least_value = ends.of("category"), ends.of("value")
    least = np.full(values.shape, -np.inf if alone is None else alone.error)
    for weight in FRONTIER_WEIGHTS:
        asked = replace(workload, objective=Objective("both", weight))
        found = Floors(asked).of("both")
        if found is not None:
            least = np.maximum(least, (found.error - (1.0 - weight) * values) / weight)
    if least_value is not None:
        least[values < least_value.error] = np.inf
    return least


@cache
def _shares(sizes: tuple[int, ...], epsilon: float, weights: Weights) -> Floor:
    if weights.value == 0.0 and len(sizes) == 1:
        raise ParameterError("categories must be two or more to have an error, got one")
    return shares_floor(sizes, epsilon=epsilon, weights=weights)


@cache
def _mean(points: tuple[float, ...], epsilon: float) -> Floor:
    return mean_floor(points, epsilon=epsilon)


@cache
def _cumulative(points: int, epsilon: float, middle: bool) -> Floor:
    return cumulative_floor(points, epsilon=epsilon, middle=middle)
