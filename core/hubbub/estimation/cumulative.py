"""Cumulative shares of numbers with a simultaneous band, and quantiles whose intervals come from the band.

With F the shares of the inputs, A that of devices with a value and C_v that of those at or below v, the
cumulative share is the ratio G_v = C_v / A. Its error is that of the linear functional (C_v - G_v A) / A. The
variance comes from the estimator: the larger of two, at shares that are all alike and at the estimated ones
made consistent, since a variance estimated from raw shares can come out too small.

The band is for all v but the last at once (Bonferroni), cut to [0, 1]. Where A is known well, as of channels
made for curves, it is as far from G_v as the kinds of devices reach (`skew_score`): those whose noise is
skewed upwards, downwards, and who was asked about which level; never nearer than z sigma_v. (At large epsilon
noise is a rare lie in either direction: the normal law's band of 5 inputs, epsilon 8 and 200 devices held in
.86 of rounds.) Elsewhere A may be all noise, and it is the larger of that and of Fieller's set of all g with

    (C_v - g A)^2 <= z^2 Var(C_v - g A),

which needs no ratio, and is 0 to 1 where nobody at all may have a value. As the true curve rises, its lower
end may be raised to the highest before it, and its upper end lowered to the least after it.
Of a crowd's curve, who happened to be counted is one more kind of noise.
Where the band covers the curve, the tau-quantile q = min {v: G_v >= tau} has U_q >= tau and L_{q-1} < tau:
all v with that are its interval, for every tau at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.intervals.skew_score import half_jump, reach_of_kinds
from hubbub.estimation.questions import Rounding
from hubbub.estimation.rounds.change import effective_sample_size

Floats = NDArray[np.float64]

Ratio = Literal["delta", "fieller"]

MAX_CURVE: Final = 2048
"""Largest K for which a band is computed: it takes K functionals of K inputs."""

LEAST_PER_INPUT: Final = 0.5
"""The devices for every input below which a release states no curve: few reports are then about each of the
tree's levels, and of 1,000 inputs and 200 devices a band missed one round of five at epsilon 4."""

_CHUNK: Final = 2**20
"""Entries of the functionals that are handled at a time: 8 MiB."""


def populations(values: Floats, points: Floats | None) -> tuple[Floats, Floats]:
    """Return shares that are all alike, and the estimated ones made consistent; missing keeps its share.

    Args:
        values: The estimated shares, shape (K,).
        points: The number of every input, shape (K,), nan at missing.
    """
    missing = np.isnan(points) if points is not None else np.zeros(len(values), dtype=np.bool_)
    real = norm_sub(values, np.zeros(len(values), dtype=np.intp), np.ones(1))
    alike = np.where(missing, real[missing].sum(), real[~missing].sum() / (~missing).sum())
    return alike, real


def curve_cohort(inputs: int) -> int | None:
    """Return the fewest devices of a round whose release states a curve; None where no round's does.

    Args:
        inputs: K of a channel that is made for curves.
    """
    return math.ceil(LEAST_PER_INPUT * inputs) if inputs <= MAX_CURVE else None


@dataclass(frozen=True)
class Quantile:
    """A quantile of the devices with a value, in the points' own terms.

    Attributes:
        share: tau: the share of devices that have at most the quantile.
        estimate: The estimate.
        low: The lower end of its interval, the lowest point where the band does not exclude it.
        high: The upper end.
    """

    share: float
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cumulative:
    """The cumulative shares of the devices with a value, and their simultaneous band.

    Where devices round a number to the two nearest points at random, the curve is that of rounded numbers; a
    quantile's interval is a step wider at each end, and so one of the numbers themselves.

    Attributes:
        level: The coverage of the whole band.
        points: The numbers, rising, shape (P,).
        shares: The estimated shares at or below each, shape (P,); the last is 1. They need not rise.
        errors: Standard errors, shape (P,).
        low: Lower ends of the band, rising, shape (P,).
        high: Upper ends of the band, rising, shape (P,).
        rounding: How devices made numbers points.
    """

    level: float
    points: Floats
    shares: Floats
    errors: Floats
    low: Floats
    high: Floats
    rounding: Rounding

    @property
    def rising(self) -> Floats:
        """The curve made to rise within 0 to 1: the middle of its highest before and its least after."""
        up = np.maximum.accumulate(self.shares)
        down = np.minimum.accumulate(self.shares[::-1])[::-1]
        return np.asarray(np.clip((up + down) / 2.0, 0.0, 1.0))

    @property
    def effective_size(self) -> float | None:
        """The devices with a value that would know all points as well without noise; None for one point."""
        return effective_sample_size(self.shares[:-1], self.errors[:-1], total=float(self.shares[:-1].sum()))

    def quantile(self, share: float) -> Quantile:
        """Return the estimated number that a share of the devices has at most, and its interval.

        The intervals of all quantiles hold at once with the band's level.

        Args:
            share: tau, strictly between 0 and 1.

        Raises:
            ParameterError: If it is not.
        """
        if not 0.0 < share < 1.0:
            raise ParameterError(f"the share of a quantile must lie strictly between 0 and 1, got {share!r}")
        last = len(self.points) - 1
        low = min(int(np.searchsorted(self.high, share, side="left")), last)
        high = min(int(np.searchsorted(self.low, share, side="right")), last)
        if self.rounding == "stochastic":
            low, high = max(low - 1, 0), min(high + 1, last)
        return Quantile(share, self._at(share), float(self.points[low]), float(self.points[high]))

    def _at(self, share: float) -> float:
        curve = self.rising
        if self.rounding == "none":
            return float(self.points[min(int(np.searchsorted(curve, share, side="left")), len(curve) - 1)])
        # Rounded numbers at or below a point are on average those up to half a step above it.
        ends = (self.points[:-1] + self.points[1:]) / 2.0
        places = np.concatenate([self.points[:1], ends, self.points[-1:]])
        heights = np.concatenate([[0.0], curve[:-1], [1.0]])
        return float(np.interp(share, heights, places))


@dataclass(frozen=True, eq=False)
class Functionals:
    """The estimated shares of a survey of numbers, and the variance of any linear functional of them.

    Attributes:
        values: Shares of the inputs, shape (K,).
        points: The number of every input, shape (K,), nan at missing.
        rounding: How devices made numbers points.
        variances: From functionals of shape (K, c) their variances at each of a few populations that the
            estimate leaves possible, shape (populations, c); the largest counts.
        kinds: Likewise their variances and third central moments by kinds of devices, shape
            (populations, 2, kinds, c): the first two are noise skewed upwards and downwards.
        n: Reports.
        ratio: The law of the band: of the linear part of a ratio, or Fieller's of ratios of any error.
        drawn: The part of the draw of devices that is left to chance; 0 of the devices counted.
    """

    values: Floats
    points: Floats
    rounding: Rounding
    variances: Callable[[Floats], Floats]
    kinds: Callable[[Floats], Floats]
    n: int
    ratio: Ratio = "delta"
    drawn: float = 0.0

    def of_crowd(self, drawn: float) -> Functionals:
        """Return the same about the crowd of which a random part is counted; see `crowd_laws`."""
        return replace(self, drawn=drawn)

    def between(self, low: float, high: float) -> tuple[float, float]:
        """Return the share of all devices with a number from low to high, and its standard error.

        Raises:
            ParameterError: If no point lies there.
        """
        inside = (self.points >= low) & (self.points <= high)
        if not inside.any():
            raise ParameterError(f"a range must hold a point, got {low!r} to {high!r}")
        variance = float(self._spreads(inside.astype(np.float64)[:, None]).max())
        return float(self.values[inside].sum()), float(np.sqrt(max(variance, 0.0)))

    def cumulative(self, level: float) -> Cumulative | None:
        """Return the cumulative shares and their band; None where nobody seems to have a value.

        Args:
            level: The coverage of the whole band, strictly between 0 and 1.

        Raises:
            ParameterError: If the level is not in (0, 1), or K exceeds MAX_CURVE.
        """
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level must lie strictly between 0 and 1, got {level!r}")
        if len(self.values) > MAX_CURVE:
            raise ParameterError(f"a band needs K <= {MAX_CURVE}, got {len(self.values)}")
        order = np.argsort(self.points, kind="stable")[: int(np.isfinite(self.points).sum())]
        answered = float(self.values[order].sum())
        if not answered > 0.0:
            return None
        shares = np.cumsum(self.values[order]) / answered
        shares[-1] = 1.0
        spreads = self._curve_moments(order, shares, self._spreads)
        variances = spreads.max(axis=0) / answered**2
        errors = np.append(np.sqrt(np.maximum(variances, 0.0)), 0.0)
        z = -NormalDist().inv_cdf((1.0 - level) / (2.0 * max(len(order) - 1, 1)))
        kinds = self._curve_moments(order, shares, self._all_kinds)
        below = shares - np.maximum(z * errors, _reach(kinds, z) / answered)
        above = shares + np.maximum(z * errors, -_reach(kinds, -z) / answered)
        if self.ratio == "fieller":
            least, most = self._fieller(order, answered, z)
            below, above = np.minimum(below, least), np.maximum(above, most)
        low = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
        high = np.minimum.accumulate(np.clip(above, 0.0, 1.0)[::-1])[::-1]
        return Cumulative(level, self.points[order], shares, errors, low, high, self.rounding)

    def _spreads(self, functionals: Floats) -> Floats:
        return self.variances(functionals) + self._draw(functionals)[:, 0]

    def _all_kinds(self, functionals: Floats) -> Floats:
        return np.concatenate([self.kinds(functionals), self._draw(functionals)[:, :, None]], axis=2)

    def _draw(self, functionals: Floats) -> Floats:
        """Return variances and third central moments of who is counted, shape (populations, 2, c)."""
        crowds, d = np.stack(populations(self.values, self.points)), self.drawn
        one, two, three = (crowds @ functionals**power for power in (1, 2, 3))
        variance, third = two - one**2, three - 3.0 * one * two + 2.0 * one**3
        return np.stack([d * variance / self.n, d * (2.0 * d - 1.0) * third / self.n**2], axis=1)

    def _fieller(self, order: NDArray[np.intp], answered: float, z: float) -> tuple[Floats, Floats]:
        """Return the ends of Fieller's sets of all points, shape (P,) each; the last is 1."""
        below = np.cumsum(self.values[order])[:-1]
        # Var(C - g A) is a quadratic in g for each population: from its values at 0, 1/2 and 1.
        at = [self._curve_moments(order, np.full(len(order), g), self._spreads) for g in (0.0, 0.5, 1.0)]
        own, both = at[0], 2.0 * (at[0] + at[2]) - 4.0 * at[1]  # both: Var(A)
        cross = (own + both - at[2]) / 2.0
        a = answered**2 - z * z * both
        b = below * answered - z * z * cross
        c = below**2 - z * z * own
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(np.maximum(b * b - a * c, 0.0))
            low, high = (b - root) / a, (b + root) / a
        known = a > 0.0
        low, high = np.where(known, low, 0.0).min(axis=0), np.where(known, high, 1.0).max(axis=0)
        return np.append(low, 1.0), np.append(high, 1.0)

    def _curve_moments(
        self, order: NDArray[np.intp], shares: Floats, moments: Callable[[Floats], Floats]
    ) -> Floats:
        """Return moments of C_v - G_v A for every point but the last, shape (populations, ..., P - 1)."""
        place = np.full(len(self.values), len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        held = place < len(order)
        step = max(1, _CHUNK // len(self.values))
        found = []
        for first in range(0, max(len(order) - 1, 1), step):
            columns = np.arange(first, min(first + step, len(order) - 1))
            below = (place[:, None] <= columns).astype(np.float64)
            found.append(moments(below - held[:, None] * shares[columns]))
        return np.concatenate(found, axis=-1)


def _reach(kinds: Floats, z: float) -> Floats:
    """Return how far C_v - G_v A reaches at a normal quantile, shape (P,), of its sign; the last is 0.

    Half of what one rare report moves is on top, as counts go in steps.
    """
    side, found = math.copysign(1.0, z), []
    for variances, thirds in kinds:
        jump = half_jump(variances[:2], thirds[:2], np.zeros(variances.shape[-1]))
        found.append(side * reach_of_kinds(variances, thirds, z, 0.0) + jump)
    return side * np.append(np.max(found, axis=0), 0.0)
