"""The cases of the coverage bench: every mechanism that a survey file can name, about populations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.estimation.choice import AnyEstimator
from hubbub.mechanisms import Hierarchy
from hubbub.mechanisms.tree import tree
from hubbub_authoring import mechanisms as m
from hubbub_authoring.mechanisms.optimal import MAX_POINTS, optimal_curve, optimal_mean
from hubbub_authoring.mechanisms.orbits import orbits

Floats = NDArray[np.float64]
Inputs = NDArray[np.int64]

POPULATIONS = ("even", "zipf", "spike")


def sizes_of(values: int) -> list[int]:
    """Return categories of about sqrt(K) values each, missing left out."""
    rest = values - 1
    each = max(2, round(rest**0.5))
    return [each] * (rest // each) + ([rest % each] if rest % each else [])


Maker = Callable[[int, float], Channel]

LABELS: dict[str, Maker] = {
    "grr": lambda k, e: m.grr(k, epsilon=e),
    "pbgrr": lambda k, e: m.pbgrr([*sizes_of(k), 1], epsilon=e, boost_epsilon=e / 2),
    "pbgrr, by category": lambda k, e: m.pbgrr([*sizes_of(k), 1], epsilon=e, boost_epsilon=0.0),
    "subset": lambda k, e: m.subset_selection(k, epsilon=e),
    "unary": lambda k, e: m.unary(k, epsilon=e),
    "local_hashing": lambda k, e: m.local_hashing(k, epsilon=e),
    "levels": lambda k, e: m.levels([*sizes_of(k), 1], epsilon=e),
    "levels, oracles grr": lambda k, e: m.levels([*sizes_of(k), 1], epsilon=e, oracles="grr"),
    "levels, three": lambda k, e: m.levels([sizes_of(k), [1]], epsilon=e),
    "orbits": lambda k, e: orbits(sizes_of(k), epsilon=e),
    "grr, participation .5": lambda k, e: m.with_dummy_reports(
        m.grr(k, epsilon=e), participation=Fraction(1, 2)
    ),
}
"""Mechanisms about labels, from K inputs, the last one missing, and epsilon."""

NUMBERS: dict[str, Maker] = {
    "neighbourhood": lambda k, e: m.neighbourhood(
        k - 1, epsilon=e, boost_epsilon=0.75 * e, window=1, missing="input"
    ),
    "boosted, laplace": lambda k, e: m.boosted(k - 1, epsilon=e, missing="input"),
    "boosted, uniform": lambda k, e: m.boosted(k - 1, epsilon=e, kernel="uniform", missing="input"),
    "r2dp": lambda k, e: m.r2dp(k - 1, epsilon=e, within=max(1.0, k / 20), missing="input"),
    "brdp": lambda k, e: m.brdp(k - 1, epsilon=e, half_width=max(1.0, k / 10), missing="input"),
    "square_wave": lambda k, e: m.square_wave(k - 1, epsilon=e, missing="input"),
    "piecewise": lambda k, e: m.piecewise(k - 1, epsilon=e, missing="input"),
    "hybrid": lambda k, e: m.hybrid(k - 1, epsilon=e, missing="input"),
    "duchi": lambda k, e: m.duchi(k - 1, epsilon=e, missing="input"),
    "optimal": lambda k, e: optimal_mean(k - 1, epsilon=e),
    "optimal, cdf": lambda k, e: optimal_curve(k - 1, epsilon=e),
    "optimal, quantiles": lambda k, e: optimal_curve(k - 1, epsilon=e, tuned_for="quantiles"),
    "tree": lambda k, e: tree(k - 1, epsilon=e),
    "tree, oracles grr": lambda k, e: tree(k - 1, epsilon=e, branching=4, oracles="grr"),
}
"""Mechanisms about numbers in order, likewise."""


@dataclass(frozen=True)
class Case:
    """A mechanism about a population."""

    mechanism: str
    values: int
    devices: int
    population: str
    epsilon: float

    def estimator(self) -> AnyEstimator:
        """Return the estimator of the channel of K inputs, the last of them missing, with its categories."""
        return _estimator(self.mechanism, self.values, self.epsilon)

    def shares(self) -> Floats:
        """Return the population, a tenth of it missing."""
        rank = np.arange(1.0, self.values)
        some = {
            "even": np.ones(self.values - 1),
            "zipf": rank**-1.5,
            "spike": np.where(rank == 3, 7.0, 3.0 / (self.values - 2)),
        }[self.population]
        return np.append(0.9 * some / some.sum(), 0.1)

    def inputs(self) -> Inputs:
        """Return the devices' inputs in a mixed order, shares rounded to whole devices."""
        want = self.shares() * self.devices
        held = np.floor(want).astype(np.int64)
        short = self.devices - int(held.sum())
        held[np.argsort(-(want - held), kind="stable")[:short]] += 1
        return np.random.default_rng(1).permutation(np.repeat(np.arange(self.values), held))

    def later_inputs(self) -> Inputs:
        """Return the inputs a round later: a fifth of the devices have the next value."""
        found = self.inputs()
        found[::5] = (found[::5] + 1) % self.values
        return found

    @property
    def points(self) -> Floats:
        """The numbers that the inputs stand for, nan at missing."""
        return np.append(np.linspace(-1.0, 1.0, self.values - 1), np.nan)


@lru_cache(maxsize=4)
def _estimator(mechanism: str, values: int, epsilon: float) -> AnyEstimator:
    labels = mechanism in LABELS
    channel = (LABELS if labels else NUMBERS)[mechanism](values, epsilon)
    sizes = [*sizes_of(values), 1] if labels else [values - 1, 1]
    points = np.append(np.linspace(-1.0, 1.0, values - 1), np.nan)
    return estimator_for(
        channel,
        category_of=np.repeat(np.arange(len(sizes)), sizes),
        points=points,
        missing=values - 1,
    )


def exists(mechanism: str, values: int, epsilon: float) -> bool:
    """Return whether the mechanism has a channel of this size."""
    if mechanism.startswith("optimal") and values > MAX_POINTS:
        return False
    try:
        _estimator(mechanism, values, epsilon)
    except ParameterError:
        return False
    return True


def cases(names: list[str], values: list[int], epsilons: list[float], devices: list[int]) -> list[Case]:
    """Return the cases, those of one channel one after the other."""
    return [
        Case(name, k, n, population, epsilon)
        for name in names
        for k in values
        for epsilon in epsilons
        for n in devices
        for population in POPULATIONS
        if not (name.startswith("optimal") and k > MAX_POINTS)
    ]


LABEL_TREE = (5, 40, 300)
"""Cells of the levels of a tree of labels."""
COMMON = 5
"""Of the crowd of a tree three quarters have one of so many values, the others any."""


def label_tree() -> Hierarchy:
    """Return a tree whose categories differ in size by three times at most, and missing."""
    chance = np.random.default_rng(LABEL_TREE)

    def cut(total: int, parts: int) -> list[int]:
        weights = np.cumsum(chance.uniform(1.0, 3.0, parts))
        ends = np.rint(weights[:-1] / weights[-1] * (total - parts)).astype(int) + np.arange(1, parts)
        return np.diff([0, *ends, total]).tolist()

    inner = cut(LABEL_TREE[2], LABEL_TREE[1])
    ends = np.cumsum([0, *cut(LABEL_TREE[1], LABEL_TREE[0])])
    return Hierarchy.of([*(inner[a:b] for a, b in pairwise(ends)), 1])


def rows_of(hierarchy: Hierarchy) -> NDArray[np.intp]:
    """Return the categories of every level above the values."""
    starts = np.cumsum([0, *hierarchy.bins[:-1]])
    return np.stack([each + start for each, start in zip(hierarchy.labels[:-1], starts, strict=False)])


def common(inputs: int) -> Floats:
    """Return the shares of a crowd of which three quarters have one of a few values."""
    crowd = np.full(inputs, 0.25 / (inputs - COMMON))
    crowd[np.random.default_rng(7).choice(inputs, COMMON, replace=False)] = 0.75 / COMMON
    return crowd
