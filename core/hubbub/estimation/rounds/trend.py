"""A smoothed trend over rounds: a local level with known errors, its drift by maximum likelihood.

The level of a cell is a random walk, and each round's estimate is the level plus an error whose standard
deviation is known (Durbin and Koopman 2012, ch. 2). The walk's step is the likeliest of a grid, all rounds
read together; then every level is smoothed by all rounds, later ones too. It is a view: biased where the
level jumps, and not for tests. Memoised answers cannot be smoothed, since their errors do not average out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

_STEPS: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 5.0)
"""The walk's steps tried, in mean standard errors of a round."""


@dataclass(frozen=True, eq=False)
class Trend:
    """The smoothed levels.

    Attributes:
        level: Shape (rounds,).
        error: Their standard errors under the model, shape (rounds,).
        step: The standard deviation of a round's drift that was likeliest.
    """

    level: Floats
    error: Floats
    step: float


def smoothed_trend(estimates: ArrayLike, errors: ArrayLike) -> Trend:
    """Return the trend of one cell over rounds of fresh answers.

    Args:
        estimates: Raw estimates in order of time, shape (rounds,), at least two.
        errors: Their standard errors, shape (rounds,), > 0.

    Raises:
        ParameterError: If shapes or errors break a rule.
    """
    y, sigma = np.asarray(estimates, np.float64), np.asarray(errors, np.float64)
    if y.ndim != 1 or y.shape != sigma.shape or len(y) < 2:
        raise ParameterError(
            f"a trend must have two rounds or more with an error each, got {y.shape} and {sigma.shape}"
        )
    if not (np.isfinite(y).all() and np.isfinite(sigma).all() and (sigma > 0.0).all()):
        raise ParameterError("a trend must have finite estimates and errors above 0")
    unit = float(sigma.mean())
    step = max((tried * unit for tried in _STEPS), key=lambda tried: _filtered(y, sigma, tried)[0])
    _, levels, variances = _filtered(y, sigma, step)
    drift = step * step
    level, spread = levels.copy(), variances.copy()
    for t in range(len(y) - 2, -1, -1):
        ahead = variances[t] + drift
        gain = variances[t] / ahead
        level[t] += gain * (level[t + 1] - levels[t])
        spread[t] += gain * gain * (spread[t + 1] - ahead)
    return Trend(level, np.sqrt(np.maximum(spread, 0.0)), step)


def _filtered(y: Floats, sigma: Floats, step: float) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood given the first round, and the filtered levels and their variances."""
    levels, variances = np.empty_like(y), np.empty_like(y)
    levels[0], variances[0] = y[0], sigma[0] ** 2
    likelihood = 0.0
    for t in range(1, len(y)):
        ahead = variances[t - 1] + step * step
        total = ahead + sigma[t] ** 2
        off = y[t] - levels[t - 1]
        likelihood -= 0.5 * (math.log(total) + off * off / total)
        gain = ahead / total
        levels[t], variances[t] = levels[t - 1] + gain * off, (1.0 - gain) * ahead
    return likelihood, levels, variances
