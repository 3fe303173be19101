"""Yes-or-no answers about a score of several numbers: a linear, truncated or logistic regression.

The device holds numbers x in a box and evaluates the score. With g in [0, 1] its place between the ends of
the output, the answer is 1 with probability 1/(e^eps + 1) + g (e^eps - 1)/(e^eps + 1) (Pan, eq. 8), so that
e^eps is the largest ratio there can be. The weight of a 1 is an integer between two certified ones, whatever
the float arithmetic of g gave: the epsilon of one answer does not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from hubbub.channels.divergence import UNITS_PER_NAT, fixed_up
from hubbub.errors import ParameterError
from hubbub.filter.regression.curves import Curves
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below
from hubbub.numeric.randomness import SYSTEM, Source, bernoulli

TOTAL: Final = 1 << 62
"""Weights of both answers together: rounding g to one changes no likelihood by more than a unit."""

MAX_NUMBERS: Final = 64
"""Numbers in a box; a device evaluates them in microseconds."""

_MAX_TERM: Final = 1e150
"""Of what a score adds up: no sum of such terms, and no square of one, leaves the floats."""

_MAX_SLACK: Final = 1e-6
"""Nats that float arithmetic in g may cost an answer; coefficients that cost more are refused."""


@dataclass(frozen=True, slots=True)
class Box:
    """The domain of a record's numbers.

    Attributes:
        low: The least value of each, d of them.
        high: The largest; above the least.
        whole: Positions of those that are whole numbers, such as 0 for one sex and 1 for the other.

    Raises:
        ParameterError: The numbers do not make such a box.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    whole: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.low) == len(self.high) <= MAX_NUMBERS:
            raise ParameterError(f"a box must have 1 to {MAX_NUMBERS} pairs of ends, got {len(self.low)}")
        for low, high in zip(self.low, self.high, strict=True):
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ParameterError(f"a box must have finite ends, low < high, got {low!r} and {high!r}")
        if len(set(self.whole)) < len(self.whole) or not all(0 <= j < len(self.low) for j in self.whole):
            raise ParameterError(f"whole numbers of a box must be among its positions, got {self.whole}")
        combinations = math.prod(math.floor(self.high[j]) - math.ceil(self.low[j]) + 1 for j in self.whole)
        if not 1 <= combinations <= 64:
            raise ParameterError(f"whole numbers must have 1 to 64 combinations, got {combinations}")


@dataclass(frozen=True, eq=False)
class Regression:
    """The channel of one question about a score.

    Attributes:
        kind: "linear": the score, which stays within the output's ends on the whole box; "truncated": the
            score cut to them; "logistic": 1/(1 + e^-score), with ends 0 and 1.
        box: The domain of the numbers.
        coefficients: One per number.
        intercept: Added to their sum.
        epsilon: Declared, per answer.
        low: The output's lower end; an answer 0 stands for it.
        high: Its upper end; an answer 1.

    Raises:
        ParameterError: A number is not finite, a linear score leaves its ends, or the coefficients are so
            large that float arithmetic could move a likelihood by more than 10^-6 nats.
    """

    kind: Literal["linear", "truncated", "logistic"]
    box: Box
    coefficients: tuple[float, ...]
    intercept: float
    epsilon: float
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("linear", "truncated", "logistic"):
            raise ParameterError(f"a regression must be linear, truncated or logistic, got {self.kind!r}")
        if len(self.coefficients) != len(self.box.low):
            raise ParameterError(
                f"a regression must have {len(self.box.low)} coefficients, got {len(self.coefficients)}"
            )
        checked_epsilon(self.epsilon)
        numbers = (*self.coefficients, self.intercept, self.low, self.high)
        if not all(map(math.isfinite, numbers)) or not self.low < self.high:
            raise ParameterError("a regression must have finite numbers and low < high, got others")
        ends = zip(self.coefficients, self.box.low, self.box.high, strict=True)
        terms = (abs(a) * max(abs(low), abs(high)) for a, low, high in ends)
        largest = max(abs(self.intercept), abs(self.low), abs(self.high), *terms)
        if not largest <= _MAX_TERM:
            raise ParameterError(f"terms of a score must be at most {_MAX_TERM:g}, got {largest:g}")
        if self.kind == "logistic" and (self.low, self.high) != (0.0, 1.0):
            raise ParameterError(f"a logistic output must run from 0 to 1, got {self.low!r} to {self.high!r}")
        if self.kind == "linear":
            least, most = self._score_range
            spare = self._score_error + 1e-12 * (self.high - self.low)
            if least < self.low - spare or most > self.high + spare:
                raise ParameterError(
                    f"a linear score must be within {self.low!r} to {self.high!r}, got {least!r} to {most!r}"
                )
        if not self._slack_nats <= _MAX_SLACK:  # nan, of ends too near to tell apart, proves nothing
            raise ParameterError(
                f"coefficients must keep rounding below {_MAX_SLACK} nats, got {self._slack_nats:.2g}"
            )

    @property
    def outputs(self) -> int:
        """The number of answers: two."""
        return 2

    @cached_property
    def least(self) -> int:
        """The least weight of either answer; TOTAL less this is the largest."""
        return math.ceil(TOTAL / (1 + exp_below(self.epsilon - HEADROOM)))

    @cached_property
    def worst(self) -> int:
        """The largest log-ratio of two records' probabilities of an answer, units, rounded up.

        That of the epsilon, or where the score does not use all of its output, that of its two ends.
        """
        return min(fixed_up(TOTAL - self.least, self.least), max(self.loss_of(0), self.loss_of(1)))

    @cached_property
    def slack(self) -> int:
        """By how many units a likelihood may differ from that of exact arithmetic."""
        return math.ceil(self._slack_nats * UNITS_PER_NAT)

    def place(self, numbers: Sequence[float]) -> float:
        """Return g, the place of the output between its ends, in [0, 1].

        Numbers outside the box are moved into it.
        """
        inside = [
            min(max(float(x), low), high)
            for x, low, high in zip(numbers, self.box.low, self.box.high, strict=True)
        ]
        score = math.fsum([self.intercept, *(a * x for a, x in zip(self.coefficients, inside, strict=True))])
        if self.kind == "logistic":
            small = math.exp(-abs(score))
            return (1.0 if score >= 0.0 else small) / (1.0 + small)
        return min(1.0, max(0.0, (score - self.low) / (self.high - self.low)))

    def weight(self, numbers: Sequence[float]) -> int:
        """Return the number of the TOTAL equally likely draws that answer 1."""
        numerator, denominator = self.place(numbers).as_integer_ratio()
        return self.least + (numerator * (TOTAL - 2 * self.least) + denominator // 2) // denominator

    def loss_of(self, symbol: int) -> int:
        """Return an upper bound of how far one answer alone can tell two records apart, units.

        The output never falls as the score grows, and the score is largest at one corner of the box and least
        at another. Every likelihood is within `slack` of that of exact arithmetic; this counts twice for the
        pair of records, and twice for the two corners.
        """
        ends = list(zip(self.coefficients, self.box.low, self.box.high, strict=True))
        most = self.weight([high if a > 0.0 else low for a, low, high in ends])
        least = self.weight([low if a > 0.0 else high for a, low, high in ends])
        likely, unlikely = (most, least) if symbol else (TOTAL - least, TOTAL - most)
        return max(0, fixed_up(likely, unlikely)) + 4 * self.slack

    def perturb(self, numbers: Sequence[float], *, source: Source = SYSTEM) -> int:
        """Return one freshly drawn answer, 0 or 1; private for the whole box at `epsilon`."""
        return int(bernoulli(self.weight(numbers), TOTAL, source))

    def mean(self, share: float) -> float:
        """Return the mean output of a population from its share of answers 1, without bias.

        Pan, eq. 9, with the factor that it lacks: low + (high - low) ((e^eps + 1) share - 1)/(e^eps - 1).
        """
        least = self.least / TOTAL
        return self.low + (self.high - self.low) * (share - least) / (1.0 - 2.0 * least)

    @cached_property
    def _score_range(self) -> tuple[float, float]:
        ends = list(zip(self.coefficients, self.box.low, self.box.high, strict=True))
        return (
            math.fsum([self.intercept, *(min(a * low, a * high) for a, low, high in ends)]),
            math.fsum([self.intercept, *(max(a * low, a * high) for a, low, high in ends)]),
        )

    @property
    def _score_error(self) -> float:
        largest = (max(abs(low), abs(high)) for low, high in zip(self.box.low, self.box.high, strict=True))
        size = abs(self.intercept) + math.fsum(
            abs(a) * x for a, x in zip(self.coefficients, largest, strict=True)
        )
        # A product and the sum are rounded once each, and the model of the score in `curves` likewise.
        return (len(self.coefficients) + 8) * 2.0**-52 * size

    @property
    def _slack_nats(self) -> float:
        steep = 0.25 if self.kind == "logistic" else 1.0 / (self.high - self.low)
        shift = steep * self._score_error + 2.0**-49
        if self.kind != "logistic":
            shift += 2.0**-50 * steep * max(abs(self.low), abs(self.high))
        return 2.0 * shift * (TOTAL - 2 * self.least) / self.least


def curves_of(answers: Sequence[tuple[Regression, int]]) -> Curves:
    """Return the log-likelihoods of answers, as the search for their largest sum takes them.

    Args:
        answers: Regressions over one box, each with its answer, 0 or 1; one or more.
    """
    slopes, offsets, low, rise, logistic = [], [], [], [], []
    for query, symbol in answers:
        sigma = query.kind == "logistic"
        scale = 1.0 if sigma else 1.0 / (query.high - query.low)
        slope, offset = np.array(query.coefficients) * scale, query.intercept * scale
        if not sigma:
            offset -= query.low * scale
        if symbol == 0:  # one less a rising curve is the same curve of the score's negative
            slope, offset = -slope, (0.0 if sigma else 1.0) - offset
        slopes.append(slope)
        offsets.append(offset)
        low.append(query.least / TOTAL)
        rise.append((TOTAL - 2 * query.least) / TOTAL)
        logistic.append(sigma)
    return Curves(np.array(slopes), np.array(offsets), np.array(low), np.array(rise), np.array(logistic))
