"""Bands that hold at every look: a reader may watch a round while it fills, and stop when they like.

Of a cell's scores b_1, b_2, ... let own(l) and rest(l) be the logarithms of E exp(l b), or bounds on them,
for a device in the cell and for any other. Whatever devices hold, and in whatever order they come, which may
depend on the past,

    exp( l sum b - n (rest(l) + f (own(l) - rest(l))) ),      f the share among the n devices so far

never grows in expectation: a martingale where the laws are exact, as of scores of two values. So does the
mean over 2 m numbers +-l_1 ... +-l_m chosen beforehand, and by Ville's inequality it ever reaches 1/alpha
with a probability of at most alpha. The band is every f at which it has not. Its logarithm is convex in f.

Of a crowd, of which those who answer are a random part, rest + f (own - rest) is log((1 - f) exp(rest) +
f exp(own)) in its place: since the logarithm is concave, it holds for the mean over reports of shares that
move, and for a score's mean, whose devices stand between its two ends.

The band must not be intersected with those before it: a share among the devices so far moves. (Ville 1939;
Waudby-Smith, Wu and Ramdas 2023 for means under local privacy.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.alerts.score_noise import ScoreNoise

Floats = NDArray[np.float64]
Of: TypeAlias = Literal["devices", "crowd"]

_LEAST_SPAN: Final = 16
_MOST_SPAN: Final = 1024
"""Last reports over first ones: within these a band is narrow, beyond them it still holds."""

_FOR_SLACK: Final = 0.1
"""The part of the error that goes to numbers of reports about levels, where there are several."""

_DRAWN: Final = 0.1
"""The variance of who is drawn from a crowd that a band is narrow for, that of a share of a ninth."""

_STEPS: Final = 40
_CHUNK: Final = 2**17


@dataclass(frozen=True)
class Looks:
    """The design of a band, chosen before any report is seen; it holds whatever comes.

    Attributes:
        first: Reports at the first look, >= 1, such as the minimum cohort.
        last: Reports at the last one.

    Raises:
        ParameterError: If the first number is below 1.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        if self.first < 1:
            raise ParameterError(f"the first look must be at one report or more, got {self.first}")

    def sizes(self) -> Floats:
        """Return the numbers of reports that the band is narrow at, shape (m,)."""
        span = min(max(self.last / self.first, _LEAST_SPAN), _MOST_SPAN)
        return np.geomspace(self.first, self.first * span, math.ceil(math.log(span, 4.0)) + 1)


def always_valid(
    estimates: Floats, noise: ScoreNoise, n: NDArray[np.int64], *, alpha: float, looks: Looks, of: Of
) -> tuple[Floats, Floats]:
    """Return the ends of bands of which any ever leaves out its share with probability `alpha` at most.

    The probability is of a cell over all looks; of several cells together, give each its part.

    Args:
        estimates: Raw estimates at looks, shape (looks, c); nan where hidden.
        noise: Of the cells, c.
        n: Reports behind them, shape (looks,), >= 1.
        alpha: Above 0, below 1.
        looks: The band's design.
        of: "devices": the share among the devices counted so far. "crowd": the mean over reports so far of
            shares of the crowd, and of a score's mean.

    Returns:
        Lower and upper ends within 0 to 1, shape (looks, c) each; nan where the estimate is.

    Raises:
        ParameterError: If alpha is out of range.
    """
    slack = np.zeros_like(estimates)
    if noise.slack is not None:
        slack = np.stack([noise.slack.always(int(size), rate=_FOR_SLACK * alpha) for size in n])
    return _band(estimates, noise, n, slack, alpha=alpha, looks=looks, of=of)


def always_valid_so_far(
    estimates: Floats, noise: ScoreNoise, n: NDArray[np.int64], *, alpha: float, looks: Looks, newest: int
) -> tuple[Floats, Floats, Floats]:
    """Return the estimates of all reports so far after every round, and bands that hold at every look.

    They are of the mean over these reports of the crowd's shares, which may move.

    Args:
        estimates: Raw estimates of rounds of fresh answers in order of time, shape (rounds, c).
        noise: Of the cells.
        n: Reports of every round, shape (rounds,), >= 1.
        alpha: Above 0, below 1.
        looks: The band's design.
        newest: How many of the last rounds are wanted.

    Returns:
        Estimates, lower and upper ends, shape (newest or fewer, c) each.

    Raises:
        ParameterError: If alpha is out of range.
    """
    sums = np.cumsum(n)
    running = np.cumsum(n[:, None] * estimates, axis=0) / sums[:, None]
    slack = np.zeros_like(estimates)
    if noise.slack is not None:  # of every round, with probabilities that add up to the part for it
        parts = [
            size * noise.slack.at(int(size), rate=_FOR_SLACK * alpha / ((i + 1) * (i + 2)))
            for i, size in enumerate(n)
        ]
        slack = np.cumsum(np.stack(parts), axis=0) / sums[:, None]
    kept = slice(-newest, None)
    low, high = _band(running[kept], noise, sums[kept], slack[kept], alpha=alpha, looks=looks, of="crowd")
    return running[kept], low, high


def _band(
    estimates: Floats,
    noise: ScoreNoise,
    n: NDArray[np.int64],
    slack: Floats,
    *,
    alpha: float,
    looks: Looks,
    of: Of,
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of bands around estimates, shape (looks, c) each; nan where hidden.

    Args:
        estimates: The mean scores of all reports so far, give or take `slack`, shape (looks, c); nan where
            hidden.
        noise: Of the cells, c.
        n: Reports behind them, shape (looks,), >= 1.
        slack: How far estimates are from the mean scores at most, shape (looks, c); that it ever fails takes
            _FOR_SLACK of alpha, and the band the rest. Zero without levels.
        alpha: As of `always_valid`, and so are looks and of.
        looks: The band's design.
        of: Whose shares.
    """
    if not 0.0 < alpha < 1.0:
        raise ParameterError(f"alpha must be strictly between 0 and 1, got {alpha!r}")
    if noise.slack is not None:
        alpha *= 1.0 - _FOR_SLACK
    low, high = np.full((2, *estimates.shape), np.nan)
    width = max(1, _CHUNK // max(len(n), 1))
    for start in range(0, estimates.shape[1], width):
        some = slice(start, start + width)
        part = noise.picked(some)
        weights = _weights(part, alpha, looks, of)
        own, rest = part.logs(weights)
        # `logs` is of b less its mean, which is 1 for own and 0 for rest.
        law = _Law(weights, own + weights, rest, alpha, of)
        told = np.isfinite(estimates[:, some])
        near, reach = (np.where(told, each[:, some], 0.0) for each in (estimates, slack))
        for ends, side in ((low, -1.0), (high, 1.0)):
            # The end of slack is read as the mean score, cut to 0 to 1: the band about a mean has the share
            # that equals it (by Jensen no exponent there is above 0), so the search starts from inside.
            from_here = np.clip(np.clip(near, 0.0, 1.0) + side * reach, 0.0, 1.0)
            found = law.farthest(from_here, side, n)
            ends[:, some] = np.where(told, found, np.nan)
    return low, high


@dataclass(frozen=True, eq=False)
class _Law:
    """The numbers l, own(l) and rest(l), shape (2 m, c) each, and what the band is for.

    In the names of this module's docstring `weights` are l; the cells' mean scores are `estimates`.
    """

    weights: Floats
    own: Floats
    rest: Floats
    alpha: float
    of: Of

    def holds(self, estimates: Floats, shares: Floats, n: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether shares f are in the bands, shape (looks, c).

        They are while the sum over the numbers l of exp(n (l mean(b) - log)) is below 2 m / alpha, where for
        devices log = rest + f (own - rest), and for a crowd log = ln((1 - f) exp(rest) + f exp(own)). The sum
        is computed with its largest exponent, `most`, taken out.

        Args:
            estimates: mean(b), shape (looks, c).
            shares: f, shape (looks, c), within 0 to 1.
            n: Reports so far, shape (looks,).
        """
        weights, own, rest = (each[:, None, :] for each in (self.weights, self.own, self.rest))
        if self.of == "devices":
            log = rest + shares * (own - rest)
        else:
            log = rest + np.log1p(shares * np.expm1(own - rest))
        exponents = n[:, None] * (weights * estimates - log)
        most = exponents.max(axis=0)
        limit = math.log(len(weights) / self.alpha)
        return np.asarray(most + np.log(np.exp(exponents - most).sum(axis=0)) < limit)

    def farthest(self, estimates: Floats, side: float, n: NDArray[np.int64]) -> Floats:
        """Return the farthest share below or above the estimates that is in the band, shape (looks, c)."""
        inside, outside = estimates, np.full_like(estimates, 0.0 if side < 0.0 else 1.0)
        inside = np.where(self.holds(estimates, outside, n), outside, inside)
        for _ in range(_STEPS):
            middle = (inside + outside) / 2.0
            kept = self.holds(estimates, middle, n)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        return inside


def _weights(noise: ScoreNoise, alpha: float, looks: Looks, of: Of) -> Floats:
    """Return +-l_k, shape (2 m, c): the best of a normal law at n_k reports, smaller where a cell is rare."""
    sizes = looks.sizes()[:, None]
    variance = noise.rest * (1.0 + noise.extra)
    variance = np.where(np.isfinite(variance), variance, 1.0) + (_DRAWN if of == "crowd" else 0.0)
    size = np.sqrt(2.0 * math.log(2 * len(sizes) / alpha) / np.maximum(variance * sizes, 1.0))
    return np.concatenate([size, -size])
