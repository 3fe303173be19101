"""The interval of a mean whose candidates are judged by the law that each of them implies.

Of the devices that have a number the mean is A/R, A the estimated sum of numbers and R the estimated devices
with one. Where mu is the mean, the sum of A - mu R over devices is 0, so its estimate is noise alone: mu is
accepted if that is within the reach of the noise (`skew_score`). Given a device's input x, the variance v(x)
and third moment of its score are the channel's; what is not known is how many devices hold which input. A
variance read off the reports is far too small where the inputs that make noise are told by reports so rare
that none came. So it is taken at a likely population that makes it large: the consistent estimate, moved by
one standard error in the direction in which the estimated shares F move with their own noise,

    f = F + Cov(F, v.F) / sd(v.F),

made consistent again; the covariance is that at shares that are all alike. It is at least what the reports'
own squares say. Where estimates are sharp one such error moves the variance by little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.intervals.population import MOST_SKEW
from hubbub.estimation.intervals.skew_score import SYMMETRIC, half_jump, reach_of_kinds, score_interval

if TYPE_CHECKING:
    from hubbub.estimation.questions import InputNumbers

Floats = NDArray[np.float64]


class MeanScores:
    """The moments of the scores behind A and R, given every input.

    Args:
        rows: The channel's probabilities, shape (K, M).
        inverse: Its left inverse, shape (K, M); nan where it hides a value.
        numbers: The inputs' numbers.
        total: The score of a report for A, shape (M,).
        answered: That for R, shape (M,).
    """

    def __init__(
        self, rows: Floats, inverse: Floats, numbers: InputNumbers, total: Floats, answered: Floats
    ) -> None:
        self.numbers, self.total, self.answered = numbers, total, answered
        a, r, u, w = total, answered, numbers.unit, numbers.answered
        # Powers of A - mu R are polynomials in mu, whose terms are these.
        self.squares = np.stack([a * a, -2.0 * a * r, r * r])
        self.second = rows @ self.squares.T
        self.third = rows @ np.stack([a**3, -3.0 * a * a * r, 3.0 * a * r * r, -(r**3)]).T
        noise = self.second - np.stack([u * u, -2.0 * u * w, w * w], axis=1)
        shown = np.nan_to_num(inverse)
        self.together = (shown * rows.mean(axis=0)) @ (noise.T @ shown).T - noise / len(rows)


@dataclass(frozen=True, eq=False)
class JudgedMean:
    """The laws of the means of c rounds of n reports each, as places: 0 the least number, 1 the largest.

    Attributes:
        scores: What the channel fixes.
        counts: Reports per symbol, shape (M, c).
        values: The estimated shares of the inputs, shape (K, c); nan where hidden.
        n: Reports of a round.
        drawn: The part of the draw of devices that is left to chance; 0 of the devices counted.
    """

    scores: MeanScores
    counts: Floats
    values: Floats
    n: int
    drawn: float = 0.0

    odds = None
    most_skew = MOST_SKEW

    def of_crowd(self, drawn: float) -> JudgedMean:
        """Return the law about the crowd's mean, of which a random part is counted; see `crowd_laws`."""
        return replace(self, drawn=drawn)

    @property
    def step(self) -> Floats:
        """0: the sums lie on no lattice, shape (c,)."""
        return np.zeros(self.counts.shape[1])

    @property
    def with_number(self) -> Floats:
        """R, the estimated devices that have a number, shape (c,)."""
        return np.asarray(self.scores.answered @ self.counts)

    @property
    def places(self) -> Floats:
        """The places of the estimated means, shape (c,)."""
        return np.asarray((self.scores.total @ self.counts / self.with_number + 1.0) / 2.0)

    @property
    def error(self) -> float:
        """The standard error of one round's mean, by the law at the estimate, in the numbers' own terms."""
        variances, _ = self.kinds(np.clip(self.places, 0.0, 1.0))
        return 2.0 * self.scores.numbers.scale * float(np.sqrt(variances.sum())) / self.n

    def interval(self, z: float) -> tuple[float, float]:
        """Return the ends of the mean's interval of one round, within the survey's numbers."""
        low, high = (float(end[0]) for end in self.ends(z))
        centre, scale = self.scores.numbers.centre, self.scores.numbers.scale
        return centre + scale * (2.0 * low - 1.0), centre + scale * (2.0 * high - 1.0)

    def ends(self, z: float) -> tuple[Floats, Floats]:
        """Return the places of the intervals' ends, shape (c,): the whole range where R is unknown."""
        unknown = self.unknown(z)
        estimates = np.where(unknown, 0.5, self.places)
        low, high = score_interval(estimates, self, n=self.n, z=z)
        return np.where(unknown, 0.0, low), np.where(unknown, 1.0, high)

    def unknown(self, z: float) -> NDArray[np.bool_]:
        """Return whether it is within the noise of R that nobody has a number, shape (c,)."""
        answered = self.with_number
        noise = self._noise(np.zeros_like(answered), -np.ones_like(answered))
        reach = reach_of_kinds(*noise, z, self.most_skew) + half_jump(*noise, self.step)
        return np.asarray(answered <= reach)

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the moments of n times the estimated place by kinds of devices, shape (3, c) each.

        They are those whose noise is skewed upwards, downwards, and the draw of who is counted.
        """
        variances, thirds = self._noise(np.ones_like(shares), 2.0 * shares - 1.0)
        # A - mu R is 2 R times what the place is off, for small and large R alike.
        scale = self.n / (2.0 * self.with_number)
        return variances * scale**2, thirds * scale**3

    def _noise(self, one: Floats, mu: Floats) -> tuple[Floats, Floats]:
        """Return the moments of the estimate of the sum of `one` A - mu R, of kinds, shape (3, c) each."""
        s, n, numbers = self.scores, self.n, self.scores.numbers
        two = np.stack([one * one, one * mu, mu * mu])
        held = np.outer(numbers.unit, one) - np.outer(numbers.answered, mu)
        second = s.second @ two
        noise = np.maximum(second - held**2, 0.0)
        third = s.third @ np.stack([one**3, one**2 * mu, one * mu**2, mu**3])
        third -= 3.0 * held * second - 2.0 * held**3
        f = self._likely(noise, s.together @ two)
        off = held - (f * held).sum(axis=0)
        third += 3.0 * self.drawn * off * noise
        up = third > SYMMETRIC * noise**1.5
        draw = self.drawn * (f * off**2).sum(axis=0)
        variances = n * np.stack([*((f * noise * side).sum(axis=0) for side in (up, ~up)), draw])
        lean = self.drawn * (2.0 * self.drawn - 1.0) * (f * off**3).sum(axis=0)
        thirds = n * np.stack([*((f * third * side).sum(axis=0) for side in (up, ~up)), lean])
        observed = ((s.squares @ self.counts) * two).sum(axis=0) - n * (f * held**2).sum(axis=0) + n * draw
        variances[2] += np.maximum(observed - variances.sum(axis=0), 0.0)
        variances[2] += one**2 * numbers.rounding_variance * np.maximum(self.with_number, 0.0)
        return variances, thirds

    def _likely(self, noise: Floats, together: Floats) -> Floats:
        """Return the likely populations that make the noise large, shape (K, c)."""
        spread = (noise * together).sum(axis=0)
        far = np.sqrt(self.n * np.where(spread > 0.0, spread, np.inf))
        return _consistent(self._view + together / far)

    @cached_property
    def _view(self) -> Floats:
        return _consistent(np.where(np.isnan(self.values), 0.0, self.values))


def _consistent(shares: Floats) -> Floats:
    """Return the nearest shares that are not negative and sum to 1 in each column, shape (K, c)."""
    inputs, many = shares.shape
    found = norm_sub(shares.T.ravel(), np.repeat(np.arange(many), inputs), np.ones(many))
    return found.reshape(many, inputs).T
