"""The laws of an orbit estimator's scores, for intervals that hold in small rounds.

A report adds to a value's share a number that depends on its orbit, on how many values of the category its
set holds, and on whether the value is among them (`estimator`). Its second and third moments are exact for a
device that holds the value; those of the rest of the population depend on where the rest is, and are taken at
the worst of two plausible populations (`hubbub.estimation.intervals.population`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.intervals.fieller import LEAST, RatioMean
from hubbub.estimation.intervals.laws import CellLaw, MixedLaw, ScoreLaws
from hubbub.estimation.intervals.population import plausible_populations, population_law

if TYPE_CHECKING:
    from hubbub.mechanisms.orbits.estimator import OrbitEstimator

Floats = NDArray[np.float64]

_SAME: Final = 1e-9
"""Scores closer than this, relative to the largest, are one."""


def orbit_laws(estimator: OrbitEstimator, values: Floats, n: int) -> ScoreLaws:
    """Return the laws of values, categories and mean, in O(K).

    Args:
        estimator: The estimator.
        values: The estimated shares of the inputs, shape (K,), missing last.
        n: Reports.
    """
    of_values, of_categories = _Cells(len(values)), _Cells(int(estimator.category_of[-1]) + 1)
    populations = plausible_populations(values)
    layout = estimator.layout
    groups = [_class_shares(estimator, population) for population in populations]
    for g, members in enumerate(layout.members):
        own_categories = np.flatnonzero(layout.class_of == g)
        for power in (2, 3):
            for which, population in enumerate(populations):
                value, category = estimator.power_means(g, groups[which], power)
                f = population[members]
                of = f.sum(axis=1)
                rest = groups[which][g] - of
                mixed = value[0] * f + value[1] * (of[:, None] - f) + value[2] * rest[:, None] + value[3]
                of_values.set(members, (power, which), held=f, own=value[0], mean=mixed)
                whole = category[0] * of + category[1] * rest + category[2]
                of_categories.set(own_categories, (power, which), held=of, own=category[0], mean=whole)
        value_step, category_step = _steps(estimator, g)
        of_values.step[members], of_categories.step[own_categories] = value_step, category_step
    if estimator.channel.missing:
        scores, chances = estimator.totals[-1], estimator.chances
        for power in (2, 3):
            means = scores**power @ chances
            for which, shares in enumerate(groups):
                for cells in (of_values, of_categories):
                    cells.set(-1, (power, which), held=shares[-1], own=means[-1], mean=means @ shares)
        of_values.step[-1] = of_categories.step[-1] = _widest_gap(scores)
    return ScoreLaws(of_values.law(n), of_categories.law(n), _mean_law(estimator, values, n))


class _Cells:
    """The moments of some cells' scores, filled class by class."""

    def __init__(self, cells: int) -> None:
        self.own = np.zeros((4, cells))
        self.held = np.zeros((2, cells))
        self.raw = np.zeros((4, 2, cells))
        self.step = np.zeros(cells)

    def set(
        self,
        cells: NDArray[np.intp] | int,
        place: tuple[int, int],
        *,
        held: Floats | float,
        own: float,
        mean: Floats | float,
    ) -> None:
        """Set the mean of a power of the score, for a device in the cell and over a population.

        Args:
            cells: The cells.
            place: The power, and the number of the population.
            held: The share of the population in the cell.
            own: The mean for a device in the cell.
            mean: The mean over the population.
        """
        power, population = place
        self.own[power, cells] = own
        self.held[population, cells] = held
        self.raw[power, population, cells] = mean

    def law(self, n: int) -> CellLaw:
        """Return the law of the cells."""
        variance = np.maximum(self.own[2] - 1.0, 0.0)
        law: MixedLaw = population_law(
            n=n,
            own=np.stack([variance, self.own[3] - 3.0 * variance - 1.0]),
            held=self.held,
            second=self.raw[2],
            third=self.raw[3],
            observed=np.full(len(self.step), -np.inf),
        )
        return replace(law, step=self.step, observed=None, most_skew=np.inf)


def _class_shares(estimator: OrbitEstimator, population: Floats) -> Floats:
    """Return a population's share of every class, and of missing or 0."""
    layout = estimator.layout
    of_class = layout.class_of[layout.labels]
    shares = np.bincount(of_class, weights=population[: layout.values], minlength=layout.classes)
    return np.append(shares, population[-1] if estimator.channel.missing else 0.0)


def _steps(estimator: OrbitEstimator, g: int) -> tuple[float, float]:
    """Return the steps of the main lattices of a class's values and categories.

    A mixture's scores lie on no one lattice: the widest of its orbits' is taken.
    """
    size = estimator.layout.class_sizes[g]
    category = 0.0
    for t, orbit in enumerate(estimator.channel.orbits):
        found = np.array([n for n, _ in orbit.kinds[g]], dtype=np.float64)
        category = max(category, _widest_gap(estimator.between[g, t] * found))
    return (float(estimator.within[g].max()) if size > 1 else category), category


def _widest_gap(scores: Floats) -> float:
    """Return the widest gap between neighbours among a score's values; 0.0 where it takes one."""
    if len(scores) < 2:
        return 0.0
    gaps = np.diff(np.sort(scores))
    widest = float(gaps.max())
    return widest if widest > _SAME * float(np.abs(scores).max()) else 0.0


def _mean_law(estimator: OrbitEstimator, values: Floats, n: int) -> RatioMean | None:
    numbers = estimator.numbers
    if numbers is None:
        return None
    both = np.stack([numbers.unit, numbers.answered], axis=1)
    covariance = n * estimator.second(both, values)
    even = n * estimator.second(both, np.full(len(values), 1.0 / len(values)))
    # The devices' own spread adds the mean square of the scores to the variance; where few have been asked
    # about very many values, both may be estimated below nothing.
    spread = covariance.diagonal() + n * values @ both**2
    least = np.maximum(covariance.diagonal(), LEAST * spread)
    least = np.where(least > 0.0, least, even.diagonal())
    total, answered = (n * float(both[:, i] @ values) for i in (0, 1))
    everyone = bool((numbers.answered == 1.0).all())
    return RatioMean(
        total,
        answered,
        float(least[0]) + numbers.rounding_variance * max(answered, 0.0),
        0.0 if everyone else float(covariance[0, 1]),
        0.0 if everyone else float(least[1]),
        numbers.centre,
        numbers.scale,
        n,
        n * float(numbers.unit**2 @ values),
    )
