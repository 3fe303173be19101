"""The least cohort at which a survey's intervals hold, and how wide they are there.

Score intervals were measured from LEAST devices on (`make evidence NAME=coverage`), for every mechanism. Two
things may ask for more, and both follow from the channel: where a score takes two values the exact law of a
cell's estimate is the sum of two binomials, so that its coverage needs no simulation; and where reports are
about several levels, a round in which one of them gets no report has no estimates at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation import Estimate, Intervals, TreeEstimator
from hubbub.estimation.intervals import MixedLaw, ScoreLaws, score_interval
from hubbub.survey import AnyEstimator

Floats = NDArray[np.float64]

LEAST: Final = 50
"""The fewest devices at which intervals of all mechanisms were measured."""

SILENT: Final = 1e-6
"""A level may get no report in a round of the least cohort with this probability at most."""

MISSED: Final = 0.06
"""A cell's 95 % interval may miss the truth with this probability at most."""

MOST: Final = 10**6
"""The search ends here: a survey whose intervals do not hold at a million devices has none."""

_Z: Final = 1.959963984540054
_HELD: Final = (0.0, 0.02, 0.1, 0.5, 0.9, 1.0)
"""The shares of a cell at which its coverage is computed."""


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


def least_cohort(estimator: AnyEstimator, *, inputs: int) -> int:
    """Return the fewest devices of a round at which the intervals hold.

    Args:
        estimator: A survey's.
        inputs: K of its channel.

    Raises:
        ParameterError: If they do not hold at MOST devices.
    """
    devices = max(LEAST, _heard(estimator))
    while not _holds(estimator, devices, inputs):
        devices *= 2
        if devices > MOST:
            raise ParameterError(f"a survey's intervals must hold at {MOST} devices, got one whose do not")
    return devices


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
    return estimator.expected_estimate(np.full(inputs, 1.0 / inputs), devices)


def _heard(estimator: AnyEstimator) -> int:
    """Return the devices at which every level that must have reports gets some.

    A tree whose cells are known to add up to one does without a level above the finest.
    """
    if not isinstance(estimator, TreeEstimator):
        return 1
    levels = estimator.tree.levels if estimator.tree.total == "free" else estimator.tree.levels[-1:]
    shares = [float(level.share) for level in levels if 0 < level.share < 1]
    if not shares:
        return 1
    return math.ceil(math.log(SILENT / len(shares)) / math.log1p(-min(shares)))


def _holds(estimator: AnyEstimator, devices: int, inputs: int) -> bool:
    laws = _expected(estimator, devices, inputs).laws
    if laws is None:
        return True
    return all(missed(devices, p, q, step) <= MISSED for p, q, step in sorted(_two_valued(laws)) if p > q)


def _two_valued(laws: ScoreLaws) -> set[tuple[float, float, float]]:
    """Return the different scores of two values: how often a device in and outside the cell has which."""
    found: set[tuple[float, float, float]] = set()
    for law in (laws.values, laws.categories):
        if not isinstance(law, MixedLaw) or law.near is not None:
            continue
        steps = law.step
        some = (steps > 0) & (law.own[0] > 0) & (law.far[0] > 0)
        # A score of two values h apart has moments h^2 p (1 - p) and h^3 p (1 - p)(1 - 2p).
        own, far, step = law.own[:, some], law.far[:, some], steps[some]
        odds = [(1.0 - kind[1] / (kind[0] * step)) / 2.0 for kind in (own, far)]
        spread = [
            np.isclose(kind[0], step**2 * p * (1 - p)) for kind, p in zip((own, far), odds, strict=True)
        ]
        two = spread[0] & spread[1] & np.isclose((odds[0] - odds[1]) * step, 1.0)
        table = np.unique(np.stack([*(part.round(9) for part in odds), step.round(6)])[:, two], axis=1)
        found |= {(float(p), float(q), float(h)) for p, q, h in table.T}
    return found


def missed(devices: int, p: float, q: float, step: float) -> float:
    """Return how often a cell's 95 % interval misses the truth at most, over some shares: exact.

    Args:
        devices: How many report.
        p: How often the score of a device in the cell is the larger value.
        q: How often that of another is.
        step: The difference of the two values.
    """
    counts = np.arange(devices + 1)
    own, far = (
        np.array([[step**2 * odds * (1 - odds)], [step**3 * odds * (1 - odds) * (1 - 2 * odds)]])
        for odds in (p, q)
    )
    every = np.ones(devices + 1)
    law = MixedLaw(devices, own * every, far * every, step * every)
    low, high = score_interval((counts / devices - q) * step, law, n=devices, z=_Z)
    worst = 0.0
    for share in _HELD:
        held = round(share * devices)
        chance = _sum_of(_binomial(held, p), _binomial(devices - held, q))
        truth = held / devices
        worst = max(worst, float(chance[(truth < low - 1e-9) | (truth > high + 1e-9)].sum()))
    return worst


def _sum_of(one: Floats, other: Floats) -> Floats:
    """Return the law of a sum of two independent counts; by Fourier, within 1e-14 of each chance."""
    size = len(one) + len(other) - 1
    length = 1 << (size - 1).bit_length()
    chance = np.fft.irfft(np.fft.rfft(one, length) * np.fft.rfft(other, length), length)[:size]
    return np.asarray(np.maximum(chance, 0.0))


def _binomial(n: int, p: float) -> Floats:
    """Return the binomial law, shape (n + 1,), for 0 < p < 1."""
    k = np.arange(n + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(np.exp(logs[n] - logs[k] - logs[n - k] + k * math.log(p) + (n - k) * math.log1p(-p)))
