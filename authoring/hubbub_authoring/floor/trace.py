"""A floor of any quadratic error from the trace of the information alone, in closed form.

With a uniform prior over K values, a set of k of them has r = (a - 1)(1_S - k/K)/qbar, qbar = 1 + (a - 1)
k/K, so

    |r|^2 = t_k = (a - 1)^2 k (1 - k/K) / qbar^2

and the centred information S = sum mu r r^T has the trace at most t = max_k t_k. Taking Y Y^T as a multiple
of the projection in the certificate of `programme` gives for questions L with W = L^T L, P the projection
off the ones,

    error >= (tr (P W P)^(1/2))^2 / t + sum (l . p)^2 - tr(W)/K.

It is attained where every eigenvalue of S may be chosen at will under that trace: by subset selection for
values. For cumulative shares it is a bound and not the optimum, and weaker the larger epsilon is: a channel
is 3.8 % above it at 33 points and epsilon 1, 9 % at epsilon 2; at epsilon 4 it can be below zero. An input
for "no value" can only add to the error, so the bound holds with it too.
"""

from __future__ import annotations

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above
from hubbub_authoring.floor.programme import MARGIN, Floats


def trace_floor(questions: Floats, *, epsilon: float) -> float:
    """Return a number that no epsilon-LDP channel's summed error is below, for a uniform prior.

    Args:
        questions: L, shape (r, K).
        epsilon: Of the channels.

    Raises:
        ParameterError: If L is not a matrix of at least two columns.
    """
    asked = np.asarray(questions, dtype=np.float64)
    if asked.ndim != 2 or asked.shape[1] < 2:
        raise ParameterError(f"questions must have shape (r, K) with K >= 2, got {asked.shape}")
    means = asked.mean(axis=1)
    return _bound(asked - means[:, None], epsilon) + float(
        (means**2).sum() - (asked**2).sum() / asked.shape[1]
    ) * (1.0 + MARGIN)


def _bound(centred: Floats, epsilon: float) -> float:
    """Return the first term, rounded down: the centred questions give singular values as square roots."""
    inputs = centred.shape[1]
    values = np.linalg.svd(centred, compute_uv=False)
    # LAPACK's singular values are off by less than their largest times the size of the matrix and 2^-52.
    roots = float(np.maximum(values - values.max() * max(centred.shape) * 2.0**-48, 0.0).sum())
    a1, k = exp_above(epsilon) - 1.0, np.arange(1, inputs)
    most = float((k * (1.0 - k / inputs) * (a1 / (1.0 + a1 * k / inputs)) ** 2).max())
    return roots**2 / most * (1.0 - MARGIN)


def cumulative_questions(points: int, low: int = 1, high: int | None = None) -> Floats:
    """Return L of the mean over the cumulative shares of the first `low` to `high` of K points.

    Args:
        points: K.
        low: At least 1.
        high: At most K - 1, which None means.

    Returns:
        Shape (high - low + 1, K).
    """
    rows = np.tril(np.ones((points - 1, points)))[low - 1 : high]
    return np.asarray(rows / np.sqrt(len(rows)))
