"""The least cohort at which a survey's intervals hold, and how wide they are there.

Intervals were measured from LEAST devices on (`make evidence NAME=coverage`), for every mechanism; where a
score takes two values they hold at any number. One thing asks for more: where reports are about several
levels, a round in which one of them gets no report has no estimates at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.estimation import Estimate, Intervals, TreeEstimator
from hubbub.mechanisms import BundleEstimator
from hubbub.survey import AnyEstimator

LEAST: Final = 50
"""The fewest devices at which intervals of all mechanisms were measured."""

SILENT: Final = 1e-6
"""A level may get no report in a round of the least cohort with this probability at most."""


@dataclass(frozen=True)
class Cohort:
    """A number of devices, and the widths of the 95 % intervals that they give.

    Attributes:
        devices: How many.
        value: Mean width of a value's interval, 0 to 1; None where none is identifiable.
        category: Mean width of a category's.
        mean: The width of the mean's, in the attribute's unit; None without numbers.
    """

    devices: int
    value: float | None
    category: float | None
    mean: float | None


def least_cohort(estimator: AnyEstimator) -> int:
    """Return the fewest devices of a round at which the intervals hold.

    Args:
        estimator: A survey's.
    """
    return max(LEAST, _heard(estimator))


def cohort_widths(estimator: AnyEstimator, devices: int, *, inputs: int) -> Cohort:
    """Return how wide the intervals of so many devices are, where all inputs are equally common.

    Args:
        estimator: A survey's.
        devices: How many, >= 1.
        inputs: K of its channel.
    """
    spans = _expected(estimator, devices, inputs).intervals()
    mean = None
    if spans.mean_low is not None and spans.mean_high is not None:
        mean = spans.mean_high - spans.mean_low
    return Cohort(devices, _width(spans, "values"), _width(spans, "categories"), mean)


def _width(spans: Intervals, kind: str) -> float | None:
    widths = getattr(spans, f"{kind}_high") - getattr(spans, f"{kind}_low")
    known = widths[np.isfinite(widths)]
    return float(known.mean()) if known.size else None


def _expected(estimator: AnyEstimator, devices: int, inputs: int) -> Estimate:
    if isinstance(estimator, BundleEstimator):
        return estimator.uniform_estimate(devices)
    return estimator.expected_estimate(np.full(inputs, 1.0 / inputs), devices)


def _heard(estimator: AnyEstimator) -> int:
    """Return the devices at which every level that must have reports gets some.

    A tree whose cells are known to add up to one does without a level above the finest.
    """
    if isinstance(estimator, BundleEstimator):
        return _silent([part.share / 2**32 for part in estimator.channel.parts])
    if not isinstance(estimator, TreeEstimator):
        return 1
    levels = estimator.tree.levels if estimator.tree.total == "free" else estimator.tree.levels[-1:]
    return _silent([float(level.share) for level in levels])


def _silent(shares: Sequence[float]) -> int:
    """Return the reports of which every one of some shares gets some, but with probability SILENT."""
    shares = [share for share in shares if 0.0 < share < 1.0]
    if not shares:
        return 1
    return math.ceil(math.log(SILENT / len(shares)) / math.log1p(-min(shares)))
