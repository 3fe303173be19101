"""A smoothed trend over rounds that adds up, and a band that holds if no round moves further than stated.

The level a_t of a cell is a random walk, and the estimate y_t of round t is the level plus an error whose
standard deviation sigma_t is known (the local level model of Durbin and Koopman 2012, ch. 2):

    y_t = a_t + e_t,   Var e_t = sigma_t^2,         a_{t+1} = a_t + d_t,   Var d_t = q.

Kalman's filter goes forwards from a_0 = y_0, V_0 = sigma_0^2, with a_t and V_t the level given rounds 0..t
and its variance, and P_t its variance before round t is read:

    P_t = V_{t-1} + q,   F_t = P_t + sigma_t^2,   v_t = y_t - a_{t-1},   K_t = P_t / F_t,
    a_t = a_{t-1} + K_t v_t,   V_t = (1 - K_t) P_t,   ln likelihood = -(sum of ln F_t + v_t^2 / F_t) / 2.

The smoother of Rauch, Tung and Striebel goes back from the last round, with C_t = V_t / P_{t+1}:

    level_t = a_t + C_t (level_{t+1} - a_t),   spread_t = V_t + C_t^2 (spread_{t+1} - P_{t+1}).

The walk's step, sqrt(q), is the likeliest of a grid, all rounds read together. Cells that add up to one by
rights do not when each is smoothed by itself: level j takes spread_j / sum spread of what is missing. It is a
view: biased where the level jumps, and not for tests. How much it gains over raw rounds depends on how far
cells move, and varies by a tenth from forty runs to forty others. Memoised answers cannot be smoothed, since
their errors do not average out.

Where a reader states a season, such as 7 rounds, y_t has a part b of the round's place in it, too. The parts
add up to 0 and follow by generalised least squares, in which y and a column for every part have gone through
the filter and are over sqrt(F_t). A season is never chosen by the estimates: on a flat line it costs most of
what is gained.

The model's error is no interval: at a jump it is false. Whoever states how far a share moves in a round at
most, |f_t - f_(t-1)| <= delta, gets an interval that holds for that: with weights k_j of the rounds,

    bias <= B = delta sum |k_j| |j - t|,    sd = sqrt(sum k_j^2 sigma_j^2),    half = sd cv(B / sd),

cv(b) the .95 quantile of |N(b, 1)| (Armstrong and Kolesar 2018). Weights are boxes and triangles, the one of
the least half width by the errors alone: nothing is chosen by what the estimates say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

_STEPS: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 5.0)
"""The walk's steps tried, in mean standard errors of a round."""

_WIDTHS: Final = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 52)
"""Rounds on either side that weights reach to."""


@dataclass(frozen=True, eq=False)
class Trend:
    """The smoothed levels.

    Attributes:
        level: Shape (rounds, c).
        error: Their standard errors under the model, shape (rounds, c).
        step: The standard deviation of a round's drift that was likeliest, shape (c,).
    """

    level: Floats
    error: Floats
    step: Floats


@dataclass(frozen=True, eq=False)
class StepBand:
    """A band of 95 % that holds if no round moves further than stated.

    Attributes:
        estimate: Weighted means of rounds, shape (rounds, c).
        half: Half the intervals' lengths, shape (rounds, c).
    """

    estimate: Floats
    half: Floats


def smoothed_trend(
    estimates: ArrayLike,
    errors: ArrayLike,
    *,
    total: float | None = None,
    places: ArrayLike | None = None,
) -> Trend:
    """Return the trends of cells over rounds of fresh answers.

    Args:
        estimates: Raw estimates in order of time, shape (rounds, c), at least two rounds.
        errors: Their standard errors, shape (rounds, c), > 0.
        total: The sum of all cells by rights, such as 1 of a distribution; None where they have none.
        places: The place of every round in a season that is stated, shape (rounds,); None states none.

    Raises:
        ParameterError: If shapes or errors break a rule, or a season has one place, or one of a single round.
    """
    y, sigma = _checked(estimates, errors)
    x = np.empty((0, len(y), 1)) if places is None else _parts(np.asarray(places), len(y))
    columns = np.concatenate([y[None], np.broadcast_to(x, (len(x), *y.shape))])
    steps = np.array(_STEPS)[:, None] * sigma.mean(axis=0)
    likelihoods = np.stack([_filtered(columns, sigma, step).likelihood for step in steps])
    step = np.take_along_axis(steps, likelihoods.argmax(axis=0)[None], axis=0)[0]
    found = _filtered(columns, sigma, step)
    level, spread, P = found.a.copy(), found.V.copy(), found.V + step * step
    for t in range(len(y) - 2, -1, -1):
        C = found.V[t] / P[t]
        level[:, t] += C * (level[:, t + 1] - found.a[:, t])
        spread[t] += C * C * (spread[t + 1] - P[t])
    # The smoother leaves of a part's column how far the part moves the level.
    left = columns[1:] - level[1:]
    trend = level[0] + np.einsum("jtc,cj->tc", left, found.b)
    spread = np.maximum(spread, 0.0) + np.einsum("jtc,cjk,ktc->tc", left, found.covariance, left)
    if total is not None:
        trend += spread / spread.sum(axis=1, keepdims=True) * (total - trend.sum(axis=1, keepdims=True))
    return Trend(trend, np.sqrt(spread), step)


def step_band(estimates: ArrayLike, errors: ArrayLike, *, delta: float) -> StepBand:
    """Return intervals of 95 % that hold if no share moves further than `delta` from round to round.

    Args:
        estimates: Raw estimates in order of time, shape (rounds, c), at least two rounds.
        errors: Their standard errors by design, shape (rounds, c), > 0.
        delta: The largest move of a round, >= 0, in the estimates' unit; it is a statement about the world.

    Raises:
        ParameterError: If shapes or errors break a rule, or delta is negative.
    """
    y, sigma = _checked(estimates, errors)
    if not (math.isfinite(delta) and delta >= 0.0):
        raise ParameterError(f"delta must be at least 0, got {delta!r}")
    rounds = len(y)
    away = np.abs(np.arange(rounds)[:, None] - np.arange(rounds))
    centre, half = y.copy(), np.full_like(y, np.inf)
    ratio = np.full_like(y, 0.0)
    errors_of = sigma.copy()
    for width in _WIDTHS:
        for form in (away <= width, np.maximum(width + 1 - away, 0)):
            weights = form / form.sum(axis=1, keepdims=True)
            bias = delta * (weights * away).sum(axis=1)[:, None]
            sd = np.sqrt(np.square(weights) @ np.square(sigma))
            found = sd * np.interp(bias / sd, _GRID, _CRITICAL) + np.maximum(bias - _GRID[-1] * sd, 0.0)
            better = found < half
            centre = np.where(better, weights @ y, centre)
            half = np.where(better, found, half)
            ratio, errors_of = np.where(better, bias / sd, ratio), np.where(better, sd, errors_of)
        if width >= rounds:  # wider ones are the same
            break
    exact = np.vectorize(critical_value, otypes=[np.float64])(ratio)
    return StepBand(centre, errors_of * exact)


def critical_value(bias: float) -> float:
    """Return the .95 quantile of the absolute value of a normal variable of mean `bias` and variance 1.

    Args:
        bias: >= 0.
    """
    cdf = NormalDist().cdf
    low, high = bias, bias + 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if cdf(middle - bias) - cdf(-middle - bias) < 0.95:
            low = middle
        else:
            high = middle
    return high


_GRID: Final = np.linspace(0.0, 6.0, 121)
_CRITICAL: Final = np.array([critical_value(float(bias)) for bias in _GRID])


def _checked(estimates: ArrayLike, errors: ArrayLike) -> tuple[Floats, Floats]:
    y, sigma = np.asarray(estimates, np.float64), np.asarray(errors, np.float64)
    if y.ndim != 2 or y.shape != sigma.shape or len(y) < 2:
        raise ParameterError(
            f"a trend must have two rounds or more with an error each, got {y.shape} and {sigma.shape}"
        )
    if not (np.isfinite(y).all() and np.isfinite(sigma).all() and (sigma > 0.0).all()):
        raise ParameterError("a trend must have finite estimates and errors above 0")
    return y, sigma


def _parts(places: NDArray[np.integer[Any]], rounds: int) -> Floats:
    """Return the columns of a season's parts, which add up to 0, shape (places - 1, rounds, 1)."""
    names, counts = np.unique(places, return_counts=True)
    if len(places) != rounds or len(names) < 2 or counts.min() < 2:
        raise ParameterError(
            f"a season must have two places or more with two rounds each, got {len(names)} in {rounds} rounds"
        )
    every = (places == names[:, None]).astype(np.float64)
    return np.asarray((every[:-1] - every[-1])[..., None])


@dataclass(frozen=True, eq=False)
class _Filtered:
    """The filter's levels a of y and of every part's column, shape (1 + k, rounds, c), and their variances V.

    `b` are the parts, shape (c, k), `covariance` is theirs, shape (c, k, k), and `likelihood` that of the
    step given the first round, shape (c,), with the parts as little known before.
    """

    a: Floats
    V: Floats
    b: Floats
    covariance: Floats
    likelihood: Floats


def _filtered(columns: Floats, sigma: Floats, step: Floats) -> _Filtered:
    """Return what the filter makes of y and the columns of parts, shape (1 + k, rounds, c)."""
    a, V, v = np.empty_like(columns), np.empty_like(sigma), np.zeros_like(columns)
    a[:, 0], V[0] = columns[:, 0], sigma[0] ** 2
    scale = np.zeros(sigma.shape[1])
    for t in range(1, len(sigma)):
        P = V[t - 1] + step * step
        F = P + sigma[t] ** 2
        v[:, t] = (columns[:, t] - a[:, t - 1]) / np.sqrt(F)
        scale += np.log(F)
        K = P / F
        a[:, t], V[t] = a[:, t - 1] + K * (columns[:, t] - a[:, t - 1]), (1.0 - K) * P
    squares = np.einsum("jtc,ktc->cjk", v[1:], v[1:])
    covariance = np.linalg.inv(squares)
    b = np.einsum("cjk,ktc,tc->cj", covariance, v[1:], v[0])
    off = v[0] - np.einsum("cj,jtc->tc", b, v[1:])
    known = scale + np.square(off).sum(axis=0) + np.linalg.slogdet(squares)[1]
    return _Filtered(a, V, b, covariance, -0.5 * known)
