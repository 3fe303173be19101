"""A smoothed trend over rounds: a local level with known errors, its drift by maximum likelihood.

The level a_t of a cell is a random walk, and the estimate y_t of round t is the level plus an error whose
standard deviation sigma_t is known (the local level model of Durbin and Koopman 2012, ch. 2):

    y_t = a_t + e_t,   Var e_t = sigma_t^2,         a_{t+1} = a_t + d_t,   Var d_t = q.

Kalman's filter goes forwards from a_0 = y_0, V_0 = sigma_0^2, with a_t and V_t the level given rounds 0..t
and its variance, and P_t its variance before round t is read:

    P_t = V_{t-1} + q,   F_t = P_t + sigma_t^2,   v_t = y_t - a_{t-1},   K_t = P_t / F_t,
    a_t = a_{t-1} + K_t v_t,   V_t = (1 - K_t) P_t,   ln likelihood = -(sum of ln F_t + v_t^2 / F_t) / 2.

The smoother of Rauch, Tung and Striebel goes back from the last round, with C_t = V_t / P_{t+1}:

    level_t = a_t + C_t (level_{t+1} - a_t),   spread_t = V_t + C_t^2 (spread_{t+1} - P_{t+1}).

The walk's step, sqrt(q), is the likeliest of a grid, all rounds read together. It is a view: biased where the
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
    _, a, V = _filtered(y, sigma, step)
    q = step * step
    level, spread = a.copy(), V.copy()
    for t in range(len(y) - 2, -1, -1):
        P = V[t] + q
        C = V[t] / P
        level[t] += C * (level[t + 1] - a[t])
        spread[t] += C * C * (spread[t + 1] - P)
    return Trend(level, np.sqrt(np.maximum(spread, 0.0)), step)


def _filtered(y: Floats, sigma: Floats, step: float) -> tuple[float, Floats, Floats]:
    """Return the log-likelihood given the first round, and the filtered levels a and their variances V."""
    a, V = np.empty_like(y), np.empty_like(y)
    a[0], V[0] = y[0], sigma[0] ** 2
    likelihood = 0.0
    for t in range(1, len(y)):
        P = V[t - 1] + step * step
        F = P + sigma[t] ** 2
        v = y[t] - a[t - 1]
        likelihood -= 0.5 * (math.log(F) + v * v / F)
        K = P / F
        a[t], V[t] = a[t - 1] + K * v, (1.0 - K) * P
    return likelihood, a, V
