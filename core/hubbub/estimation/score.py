"""The mean of a score, from yes-or-no answers about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.estimate import Estimate, Estimator, Floats
from hubbub.estimation.intervals.laws import ScoreLaws
from hubbub.estimation.intervals.skew_score import score_interval
from hubbub.estimation.questions import checked_frequencies

_NONE = np.empty(0)
_STEPS: Final = 46
"""Halvings of the place's interval: there is one, so all digits of the mean's ends cost nothing."""


class TwoAnswers(Protocol):
    """The part of a channel that this estimator reads: randomised response of two inputs."""

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""

    @property
    def t(self) -> int:
        """Weight of the truth."""

    @property
    def u(self) -> int:
        """Weight of the other answer."""

    @property
    def total(self) -> int:
        """Their sum."""

    def expected(self, shares: Floats, /) -> Floats:
        """Return the counts expected of one report, shape (2,)."""


class ScoreEstimator(Estimator):
    """The unbiased estimator of the mean output of a population (Pan, eq. 9, with the factor that it lacks).

    A device whose output lies at place g answers 1 with probability p = q + g (1 - 2q), q = u/T. With s the
    share of answers 1, (s - q)/(1 - 2q) is unbiased for the mean place. Its error is that of n draws of the
    mean probability, sqrt(s (1 - s)/n)/(1 - 2q): the sum of p (1 - p) over devices is at most that of
    their mean (Jensen), so the error is never too small on average, and exact where all devices have one
    score. It is never below what q alone makes unavoidable.

    Args:
        channel: Randomised response of two inputs, the ends of the output.
        low: The lower end.
        high: The upper one.
    """

    def __init__(self, channel: TwoAnswers, *, low: float, high: float) -> None:
        if channel.inputs != 2 or not low < high:
            raise ParameterError(f"a score must have two ends, low < high, got {low!r} and {high!r}")
        self.channel, self._low, self._high = channel, low, high
        self.category_of = np.empty((0, 2), dtype=np.intp)

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate the mean from one round's counts of the two answers, shape (2,).

        Raises:
            ParameterError: The shape, the type or the sum is wrong.
        """
        tallies = np.asarray(counts)
        if tallies.shape != (2,) or tallies.dtype.kind not in "iu" or tallies.min() < 0:
            raise ParameterError(f"counts must be two integers >= 0, got {tallies.dtype} {tallies.shape}")
        if n < 1 or int(tallies.sum()) != n:
            raise ParameterError(f"n must be the sum of counts and at least 1, got {n} for {tallies.sum()}")
        return self._estimate(float(tallies[1]) / n, n)

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices, given the shares of them at the two ends of the output.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        population = checked_frequencies(frequencies, 2)
        if n < 1:
            raise ParameterError(f"n must be at least 1, got {n}")
        return self._estimate(float(self.channel.expected(population)[1]), n)

    def _estimate(self, share: float, n: int) -> Estimate:
        least = self.channel.u / self.channel.total
        width = (self._high - self._low) * self.channel.total / (self.channel.t - self.channel.u)
        spread = min(max(share, least), 1.0 - least)
        step = self.channel.total / (self.channel.t - self.channel.u)
        place, law, nobody = step * (share - least), _PlaceLaw(n, np.array([step])), _PlaceLaw(n, _NONE)
        return Estimate(
            n=n,
            values=_NONE,
            value_errors=_NONE,
            categories=_NONE,
            category_errors=_NONE,
            mean=self._low + width * (share - least),
            mean_error=width * math.sqrt(spread * (1.0 - spread) / n),
            _category_of=self.category_of,
            _covariance=partial(np.empty, (0, 0)),
            _laws=partial(ScoreLaws, nobody, nobody, _PlaceMean(place, law, self._low, self._high)),
        )


@dataclass(frozen=True, eq=False)
class _PlaceLaw:
    """The law of the mean place if all devices are at it: by Jensen the largest variance there can be."""

    n: int
    step: Floats

    @property
    def odds(self) -> None:
        """None: the odds of an answer are those of the place itself."""
        return None

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the moments of the one kind of devices, shape (1, c) each."""
        variance, third = self.moments(shares)
        return variance[None], third[None]

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variance and third central moment of n times the estimated place, shape (c,) each."""
        # An answer 1 moves the estimate by `step` = 1/(1 - 2q), and at place g has probability q + g/step.
        odds = 0.5 + (shares - 0.5) / self.step
        spread = self.n * odds * (1.0 - odds)
        return self.step**2 * spread, self.step**3 * spread * (1.0 - 2.0 * odds)

    def tilt(self, shares: Floats) -> Floats:
        """Return 0: the law is that of devices drawn from a crowd already."""
        return np.zeros_like(shares)


@dataclass(frozen=True, eq=False)
class _PlaceMean:
    """The mean as a place between two ends."""

    place: float
    law: _PlaceLaw
    low: float
    high: float

    def of_crowd(self, drawn: float) -> _PlaceMean:
        """Return the law itself: an answer of a device drawn at random is a yes at the crowd's mean place."""
        return self

    def interval(self, z: float) -> tuple[float, float]:
        """Return the ends of the mean's interval, between the two ends of the output."""
        ends = score_interval(np.array([self.place]), self.law, n=self.law.n, z=z, steps=_STEPS)
        low, high = (self.low + (self.high - self.low) * float(end[0]) for end in ends)
        return low, high
