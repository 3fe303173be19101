"""The best channel for one linear functional, as a linear programme over outputs and their decoded values.

Let every output t be a number, its decoded value, here its *reading*: the estimate is the mean of the
readings of what was sent. Columns of an extremal channel are between theta_t and e^epsilon theta_t, so with M
= theta + d

    minimise   sum_t t^2 sum_x p_x M[x, t]
    subject to sum_t M[x, t] = 1,  sum_t t M[x, t] = l_x,  0 <= d[x, t] <= (e^epsilon - 1) theta_t

is linear: its value, less sum p l^2, is the error of the functional l, and its multipliers alpha (of the
rows) and lambda (of the readings) are a dual point y = lambda/2, nu = -alpha of `programme`, which the exact
pricing of `linear` turns into a floor. Readings lie on a grid that covers what is used; the value falls,
and the floor rises, by the square of its step. A functional that a reversal of the inputs negates, such as
the mean of a grid, needs half of the variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_authoring.floor.programme import Floats

FIRST: Final = 61
"""Readings of the first grid, which only has to find the largest that is used."""

FINE: Final = 241
"""Readings of the second grid: up to 0.15 % between value and floor at 65 points, most at epsilon 6."""

_USED: Final = 1e-7


@dataclass(frozen=True, eq=False)
class Readings:
    """A channel and its readings.

    Attributes:
        numbers: The reading of every output, shape (T,).
        rows: Probabilities, shape (K, T).
        error: n times the variance over the randomisation, in floats.
        alpha: Multipliers of the rows for the functional less its mean, shape (K,).
        slopes: Multipliers of the readings for it, shape (K,).
    """

    numbers: Floats
    rows: Floats
    error: float
    alpha: Floats
    slopes: Floats


def best_readings(functional: Floats, prior: Floats, a: float, *, fine: int = FINE) -> Readings:
    """Return the best channel of a functional whose readings lie on a grid.

    Args:
        functional: l, shape (K,).
        prior: p, shape (K,).
        a: e^epsilon, > 1.
        fine: Readings of the grid.

    Raises:
        ParameterError: If the programme has no solution.
        ModuleNotFoundError: If scipy is not installed.
    """
    centre = float(functional @ prior)
    scale = float(np.abs(functional - centre).max())
    if scale <= 0.0:
        raise ParameterError("a functional must differ between inputs, got a constant one")
    centred = (functional - centre) / scale
    reach = 2.5 * (a + 1.0) / (a - 1.0)
    found = _solved(centred, prior, a, np.linspace(-reach, reach, FIRST))
    step = 2.0 * reach / (FIRST - 1)
    for _ in range(3):
        used = found.numbers[found.rows.max(axis=0) > _USED]
        low, high = max(float(used.min()) - step, -reach), min(float(used.max()) + step, reach)
        if _mirror(centred, prior) is not None:
            high = max(-low, high)
            low = -high
        found = _solved(centred, prior, a, np.linspace(low, high, fine))
        used = found.numbers[found.rows.max(axis=0) > _USED]
        if (low < used.min() and used.max() < high) or high - low >= 2.0 * reach:
            break
    return Readings(
        found.numbers * scale + centre,
        found.rows,
        found.error * scale**2,
        found.alpha * scale**2,
        found.slopes * scale,
    )


def _solved(functional: Floats, prior: Floats, a: float, grid: Floats) -> Readings:
    from scipy import sparse  # noqa: PLC0415 - only a designer solves programmes
    from scipy.optimize import linprog  # noqa: PLC0415

    inputs, many = len(functional), len(grid)
    twin = _mirror(functional, prior)
    keep_x = np.arange(inputs) if twin is None else np.flatnonzero(np.arange(inputs) <= twin)
    # Variables: a theta per reading, d a/(a - 1) per input and reading, of one scale at any epsilon; a mirror
    # image has the same. Costs are divided by the square of the largest reading.
    of_d, largest = (a - 1.0) / a, float(np.abs(grid).max())
    t = np.arange(many)
    theta_of, d_of = t, np.arange(inputs * many).reshape(inputs, many)
    if twin is not None:
        theta_of = np.minimum(t, t[::-1])
        d_of = np.minimum(d_of, d_of[twin][:, ::-1])
    kept_theta, theta_at = np.unique(theta_of, return_inverse=True)
    kept_d, d_at = np.unique(d_of.ravel(), return_inverse=True)
    d_at = d_at.reshape(inputs, many) + len(kept_theta)
    size = len(kept_theta) + len(kept_d)

    def summed(weights: Floats, rows: NDArray[Any]) -> Any:  # noqa: ANN401 - scipy's sparse matrix
        """Return the matrix of sum_t weights_t (theta_t + d[x, t]) for the inputs x of `rows`."""
        at = np.concatenate([np.broadcast_to(theta_at, (len(rows), many)), d_at[rows]], axis=1)
        row = np.repeat(np.arange(len(rows)), 2 * many)
        values = np.tile(np.concatenate([weights / a, weights * of_d]), len(rows))
        return sparse.csr_matrix((values, (row, at.ravel())), shape=(len(rows), size))

    ones = np.ones(many)
    cost = np.zeros(size)
    squares = (grid / largest) ** 2
    np.add.at(cost, theta_at, squares * prior.sum() / a)
    np.add.at(cost, d_at, np.outer(prior, squares * of_d))
    # A mirrored pair has one row: an input that is its own mirror image reads 0 in any case.
    equal = sparse.vstack([summed(ones, keep_x), summed(grid, keep_x)])
    t_of, count = kept_d % many, len(kept_d)
    above: Any = sparse.csr_matrix(
        (
            np.concatenate([np.ones(count), np.full(count, -1.0)]),
            (
                np.tile(np.arange(count), 2),
                np.concatenate([np.arange(count) + len(kept_theta), theta_at[t_of]]),
            ),
        ),
        shape=(count, size),
    )
    wanted = np.concatenate([np.ones(len(keep_x)), functional[keep_x]])
    found: Any = linprog(cost, A_ub=above, b_ub=np.zeros(count), A_eq=equal, b_eq=wanted, method="highs-ipm")
    if found.x is None or found.status != 0:
        raise ParameterError(f"the programme of readings must have a solution, got status {found.status}")
    multipliers = np.asarray(found.eqlin.marginals) * largest**2
    alpha, slopes = np.zeros(inputs), np.zeros(inputs)
    alpha[keep_x], slopes[keep_x] = multipliers[: len(keep_x)], multipliers[len(keep_x) :]
    if twin is not None:
        # The multiplier of a pair is shared by its two rows.
        pair = keep_x[twin[keep_x] != keep_x]
        alpha[pair] /= 2.0
        slopes[pair] /= 2.0
        alpha[twin[pair]], slopes[twin[pair]] = alpha[pair], -slopes[pair]
    theta = np.maximum(found.x[theta_at], 0.0)
    rows = theta / a + np.clip(found.x[d_at], 0.0, theta) * of_d
    return Readings(grid, rows, float(found.fun * largest**2 - prior @ functional**2), alpha, slopes)


def _mirror(functional: Floats, prior: Floats) -> NDArray[np.intp] | None:
    """Return for every input the one of the opposite value; None where some has none."""
    order = np.lexsort((np.arange(len(functional)), functional, prior))
    back = np.lexsort((np.arange(len(functional)), -functional, prior))
    twin = np.empty(len(functional), dtype=np.intp)
    twin[order] = back
    size = 1e-12 * max(float(np.abs(functional).max()), 1e-300)
    same = np.abs(functional + functional[twin]).max() <= size and np.abs(prior - prior[twin]).max() <= 1e-15
    return twin if same and (twin[twin] == np.arange(len(functional))).all() else None
