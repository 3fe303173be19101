"""The floors of a workload in the units of its costs: the errors that no mechanism can be below."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final, Literal

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import middle
from hubbub_authoring.floor.least import Floor, cumulative_floor, mean_floor, shares_floor
from hubbub_authoring.floor.orbits import Classes, Weights
from hubbub_authoring.floor.programme import MARGIN
from hubbub_authoring.mechanisms.workload import Objective, Workload

Asked = Literal["value", "category", "both", "mean", "cdf", "quantiles"]
ASKED: Final[tuple[Asked, ...]] = ("value", "category", "both", "mean", "cdf", "quantiles")
"""The quantities of objectives that have a floor; shapes and hits have none."""

MAX_CUMULATIVE: Final = 1024
"""Points up to which cumulative shares have a floor, as they have errors."""


MAX_PROVED: Final = 16.0
"""The largest epsilon that has floors."""

MAX_FRONTIER: Final = 30_000
"""Orbits up to which a frontier is drawn: a tenth of a second per weight."""

FRONTIER_WEIGHTS: Final = tuple(1.0 / (1.0 + 10.0**power) for power in np.linspace(-4.0, 2.5, 27).tolist())
"""Weights of categories whose floors make a frontier."""


@dataclass(frozen=True, eq=False)
class Floors:
    """The floors of a workload.

    They are for a uniform prior over the values. Where a coin decides who answers, they are for channels
    behind that coin: the information of a report is at most the coin's share of what its answer holds.

    Attributes:
        workload: The workload.
    """

    workload: Workload

    def of(self, quantity: str) -> Floor | None:
        """Return n times the least variance for a quantity of objectives; None where no floor is known.

        Rounding a number to the points of a grid costs every mechanism on that grid the same, at its bound of
        a quarter of the squared gap: it is counted as costs count it.
        """
        asked, kept = self.workload, self.workload.inputs - 1
        prior = np.append(np.full(kept, 1.0 / kept), 0.0)
        # Beyond, the error that a report adds to sampling is below the rounding: a proof would bound nothing.
        if asked.epsilon > MAX_PROVED or quantity not in ASKED:
            return None
        if not np.allclose(asked.prior, prior, rtol=1e-12, atol=0.0):
            return None
        try:
            found, sampling = self._proved(quantity)
        except ParameterError:
            return None
        share, rest = asked.participation, 0.0
        if quantity == "mean" and asked.kind == "grid" and asked.points is not None:
            rest = float(np.diff(asked.points[:-1]).min() / 2.0) ** 2
        error = (found.error + sampling) / share - sampling + rest
        least = error * (1.0 - MARGIN)
        return Floor(least, found.proof) if least > 0.0 else None

    def cost(self, quantity: str) -> float | None:
        """Return the floor as costs are counted: divided by the devices, rounded down."""
        found = self.of(quantity)
        return None if found is None else math.nextafter(found.error / self.workload.devices, 0.0)

    @cached_property
    def objective(self) -> Floor | None:
        """The floor of the objective."""
        return self.of(self.workload.objective.quantity)

    def above(self, cost: float) -> float | None:
        """Return how far a cost is above the objective's floor, as a share of it; None without a floor."""
        if self.objective is None or not math.isfinite(cost):
            return None
        return cost * self.workload.devices / self.objective.error - 1.0

    def _proved(self, quantity: str) -> tuple[Floor, float]:
        """Return the floor without a coin, and the error of sampling that was taken off."""
        asked, objective = self.workload, self.workload.objective
        k, m = asked.inputs - 1, len(asked.sizes) - 1
        if quantity == "mean":
            points = self._points()
            return _mean(tuple(points), asked.epsilon), float(points.var())
        if quantity in ("cdf", "quantiles"):
            if k > MAX_CUMULATIVE:
                raise ParameterError(f"points must be at most {MAX_CUMULATIVE}, got {k}")
            self._points()
            low, high = middle(k) if quantity == "quantiles" else (1, k - 1)
            heights = np.arange(low, high + 1) / k
            found = _cumulative(k, asked.epsilon, quantity == "quantiles")
            return found, float((heights * (1.0 - heights)).mean())
        weights = {"value": Weights(1.0, 0.0), "category": Weights(0.0, 1.0)}.get(quantity)
        if weights is None:
            weight = objective.category_weight
            many = (k, m) if objective.of == "totals" else (1, 1)
            weights = Weights((1.0 - weight) * many[0], weight * many[1])
        sizes = np.array(asked.sizes[:-1]) / k
        sampling = weights.value / k * (1.0 - 1.0 / k) + weights.category / m * (
            1.0 - float((sizes**2).sum())
        )
        return _shares(tuple(asked.sizes[:-1]), asked.epsilon, weights), sampling

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
