"""The channel of a key-value survey: the better of two for the mean among those who have a number.

One is randomised response over the two ends of the number, absent and missing; the other boosted noise on a
grid, with absent and missing as two last inputs, its outputs weighed as the planned crowd makes them likely.
Each reserves what missing takes. Where few have a number or epsilon is small, the grid's best half width is
half of it, and its outputs tell little but which half: then it gains next to nothing, and the ends are taken.
An odd grid has a point in the middle that is in neither half, and loses up to 1.5 % by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub import mechanisms
from hubbub.channels import Channel, WeightedChannel
from hubbub.estimation import InverseEstimator
from hubbub.mechanisms import integer_rows, with_missing
from hubbub.survey import Attribute, IntegerDomain, KeyValue, NumberDomain
from hubbub_authoring.mechanisms.boosted.boosted import Absolute, boosted

Floats = NDArray[np.float64]

MAX_POINTS: Final = 129
"""Points of a grid: beyond, a survey has megabytes, and rounding to it is a thousandth of the error."""

USUAL: Final = 32
"""Points of a grid where nobody says how many."""

WORTH: Final = 0.99
"""The share of the ends' variance below which a grid is worth its kilobytes, which every device gets."""

PLANNED: Final = 65
"""Numbers that stand for a range in a planned crowd."""

_SHARES: Final = 2**20
"""The crowd's shares in a weighted channel are rounded to so many parts."""


@dataclass(frozen=True)
class Crowd:
    """The planned crowd of a key-value survey: its numbers spread evenly over their range, nobody missing.

    Attributes:
        numbers: The numbers, each equally common, shape (m,).
        share: The share that has one.
    """

    numbers: Floats
    share: float

    @classmethod
    def of(cls, attribute: Attribute, share: float) -> Crowd:
        """Return the crowd of an attribute: all its integers if they are few, else some spaced evenly."""
        domain = attribute.domain
        assert isinstance(domain, IntegerDomain | NumberDomain)  # noqa: S101 - its survey was checked
        low, high = float(domain.low), float(domain.high)
        whole = isinstance(domain, IntegerDomain) and attribute.size - 1 <= MAX_POINTS
        return cls(np.linspace(low, high, attribute.size - 1 if whole else PLANNED), share)

    def shares(self, grid: int) -> Floats:
        """Return the shares of a grid's inputs, after rounding at random: points, absent, missing."""
        low, high = self.numbers[0], self.numbers[-1]
        place = (self.numbers - low) * ((grid - 1) / (high - low))
        below = np.minimum(place.astype(np.intp), grid - 2)
        points = np.bincount(below, below + 1 - place, grid) + np.bincount(below + 1, place - below, grid)
        return np.append(self.share * points / len(place), [1.0 - self.share, 0.0])

    def gradient(self) -> Floats:
        """Return what a device adds to the mean among those who have a number, shape (m + 2,)."""
        return np.append((self.numbers - self.numbers.mean()) / self.share, [0.0, 0.0])

    def prior(self) -> Floats:
        """Return the shares of the numbers themselves, absent and missing, shape (m + 2,)."""
        many = len(self.numbers)
        return np.append(np.full(many, self.share / many), [1.0 - self.share, 0.0])

    @property
    def sampling(self) -> float:
        """N times the variance of the mean among so many devices drawn from the crowd, were nothing noisy."""
        return float(self.numbers.var()) / self.share


def mean_variance(estimates: Floats, rows: Floats, points: Floats, shares: Floats) -> float:
    """Return n times the variance of the mean among those who have a number, sampling included.

    By the delta method: the mean's influence is h_x = (a_x - mean)/f of an input with the number a_x and 0 of
    another, a report scores g = h B, and the variance is that of g over crowd and channel.

    Args:
        estimates: B, the left inverse, shape (K, M).
        rows: The channel's probabilities, shape (K, M).
        points: a, shape (K,), nan where there is none.
        shares: The crowd's inputs, shape (K,); f is the sum over those with a number.
    """
    held = ~np.isnan(points)
    share = shares[held].sum()
    mean = (shares[held] @ points[held]) / share
    return _variance(np.where(held, points - mean, 0.0) / share, estimates, rows, shares)


def _variance(functional: Floats, estimates: Floats, rows: Floats, shares: Floats) -> float:
    scores, told = functional @ estimates, shares @ rows
    return float(told @ scores**2 - (told @ scores) ** 2)


def survey_variance(form: KeyValue, channel: Channel, share: float | None = None) -> float:
    """Return n times the variance of a survey's mean at its planned crowd, or at another share of it."""
    shares = Crowd.of(form.attribute, form.share if share is None else share).shares(form.grid)
    return mean_variance(*_matrices(form, channel), form.points, shares)


def share_variance(form: KeyValue, channel: Channel) -> float:
    """Return n times the variance of the share who have a number, at the planned crowd, sampling included."""
    shares = Crowd.of(form.attribute, form.share).shares(form.grid)
    return _variance((form.category_of == 0).astype(np.float64), *_matrices(form, channel), shares)


def _matrices(form: KeyValue, channel: Channel) -> tuple[Floats, Floats]:
    """Return the left inverse and the rows of a channel, shape (K, M) both."""
    estimator, rows = form.estimator(channel), channel.probabilities()
    assert isinstance(estimator, InverseEstimator) and rows is not None  # noqa: S101 - tables of weights
    return np.asarray(estimator.inverse.matrix()), rows


def key_value_channel(form: KeyValue, epsilon: float) -> Channel:
    """Return the channel of a form: of two points that of the ends, of more that of the grid.

    Raises:
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    if form.grid == 2:
        return mechanisms.grr(4, epsilon=epsilon)

    @cache
    def cost(width: int) -> float:
        return survey_variance(form, boosted_on_grid(form, epsilon, width))

    # The variance has one valley over the half widths: coarsely, then between the best one's neighbours.
    last, stride = form.grid - 2, max(1, (form.grid - 2) // 8)
    best = min(range(0, last + 1, stride), key=cost)
    while stride > 1:
        stride = (stride + 1) // 2
        best = min((width for width in (best, best - stride, best + stride) if 0 <= width <= last), key=cost)
    return boosted_on_grid(form, epsilon, best)


def boosted_on_grid(form: KeyValue, epsilon: float, width: int) -> WeightedChannel:
    """Return boosted noise of one half width in grid steps, with absent and missing behind the points."""
    region = Absolute(float(width))
    rows = boosted(form.grid, epsilon=epsilon, kernel="uniform", region=region).probabilities()
    for _ in range(2):
        rows = with_missing(rows, epsilon=epsilon)
    shares = Crowd.of(form.attribute, form.share).shares(form.grid)
    common = np.maximum(np.rint(shares * _SHARES).astype(np.int64), 1)
    return WeightedChannel(integer_rows(rows, epsilon=epsilon), common.tolist())


def candidates(
    attribute: Attribute, share: float, grid: int, epsilon: float
) -> list[tuple[KeyValue, Channel]]:
    """Return the two forms with their channels: the ends, and the grid, which is the usual one for 2.

    Args:
        attribute: What is asked for.
        share: The share of the devices that is planned to have a number.
        grid: Points of the grid.
        epsilon: Declared.

    Raises:
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    grids = {2, grid if grid > 2 else usual_grid(attribute)}
    forms = [KeyValue(attribute, points, share) for points in sorted(grids)]
    return [(form, key_value_channel(form, epsilon)) for form in forms]


def better(attribute: Attribute, share: float, grid: int, epsilon: float) -> tuple[KeyValue, Channel]:
    """Return the candidate of least exact variance at the planned share: the grid if it is `WORTH` it."""
    ends, *grids = candidates(attribute, share, grid, epsilon)
    return min([ends, *grids], key=lambda each: survey_variance(*each) * (WORTH if each is ends else 1.0))


def usual_grid(attribute: Attribute) -> int:
    """Return the points of a grid where nobody says how many: all values of few integers."""
    whole = isinstance(attribute.domain, IntegerDomain)
    return min(USUAL, attribute.size - 1) if whole else USUAL
