"""The least error of any channel of few inputs, by a general solver; and random channels to hold beside it.

Nothing here is shared with `hubbub_authoring.floor`, not even the formula of the error. A report is the set S
with probability theta_S q_S(x) for the input x, q = e^epsilon in the set and 1 outside. Whoever reads it adds
b_S to his estimates of the sums L f, r of them. They are unbiased iff sum_S theta_S q_S(x) b_S = L_x for
every x, and their summed variance in a population p, given the devices, is

    sum_S theta_S (p . q_S) |b_S|^2  -  sum_x p_x |L_x|^2.

With g_S = theta_S b_S both conditions are linear and every term is |g_S|^2 / theta_S: channel and estimates
are found together, by clarabel, as a programme over second-order cones with all 2^K - 2 sets. (That the
columns of such sets are enough, Kairouz, Oh and Viswanath 2016, is all that is presumed; `random_channel` has
others.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]

SOLVED = ("Solved", "AlmostSolved")
"""Statuses of which numbers are taken; how near the two are says more than the word."""

ENDS = (1e-10, 1e-9, 1e-8)
"""Tolerances of the solver, tried in turn: rounding stops it short of the first now and then."""

NEAR = 1e-7
"""A share of the error within which both values are taken whatever the status: rounding stopped it there."""


class Between(NamedTuple):
    """The least error twice, up to the solver's tolerance: by the dual programme, and of a channel."""

    low: float
    high: float

    def distance(self, floor: float) -> float:
        """Return how far a floor is from the nearer of the two, as a share of it; 0 between them."""
        low, high = min(self), max(self)
        return max(low - floor, floor - high, 0.0) / high


def every_set(inputs: int) -> NDArray[np.int64]:
    """Return all sets of inputs but none and all, shape (2^K - 2, K)."""
    return (np.arange(1, 2**inputs - 1)[:, None] >> np.arange(inputs)) & 1


def error_of(matrix: Floats, questions: Floats, prior: Floats) -> float:
    """Return the summed error of a channel, from the definition: best linear unbiased, less the sampling."""
    sent = prior @ matrix
    information = (matrix / sent) @ matrix.T
    covariance = np.linalg.inv(information) - np.diag(prior)
    return float(np.trace(questions @ covariance @ questions.T))


def least_error(questions: Floats, prior: Floats, epsilon: float) -> Between:
    """Return the least summed error of questions, shape (r, K), by its primal and its dual programme.

    Raises:
        ArithmeticError: If the solver ends without a solution.
    """
    # The shares' sum is known: only what questions differ by from their mean is to be estimated.
    asked = _without_waste(questions - (questions @ prior)[:, None])
    r, k = asked.shape
    q = 1.0 + (math.exp(epsilon) - 1.0) * every_set(k)
    n, share = len(q), q @ prior
    # Variables: theta (n), v (n) with v theta >= |g|^2, and g (n r), set by set.
    costs = np.concatenate([np.zeros(n), share, np.zeros(n * r)])
    rows = sparse.hstack([q.T, sparse.csc_matrix((k, n + n * r))])
    unbiased = sparse.hstack([sparse.csc_matrix((k * r, 2 * n)), sparse.kron(q.T, sparse.eye(r))])
    # (v + theta, v - theta, 2 g) in a cone of r + 2 dimensions, set by set.
    first, second = sparse.csc_matrix(np.eye(r + 2)[:, :1]), sparse.csc_matrix(np.eye(r + 2)[:, 1:2])
    each = sparse.eye(n)
    cones = -sparse.hstack(
        [
            sparse.kron(each, first - second),
            sparse.kron(each, first + second),
            sparse.kron(each, sparse.csc_matrix(2.0 * np.eye(r + 2)[:, 2:])),
        ]
    )
    programme = (
        sparse.csc_matrix((len(costs), len(costs))),
        costs,
        sparse.vstack([rows, unbiased, cones]).tocsc(),
        np.concatenate([np.ones(k), asked.T.ravel(), np.zeros(n * (r + 2))]),
        [clarabel.ZeroConeT(k + k * r)] + [clarabel.SecondOrderConeT(r + 2)] * n,
    )
    sampling = float(((asked**2) @ prior).sum())
    status = ""
    for end in ENDS:
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel, settings.tol_gap_abs, settings.tol_feas = end, 0.01 * end, end
        found = clarabel.DefaultSolver(*programme, settings).solve()
        status = str(found.status)
        near = abs(found.obj_val - found.obj_val_dual) <= NEAR * abs(found.obj_val - sampling)
        if status in SOLVED or near:
            return Between(found.obj_val_dual - sampling, found.obj_val - sampling)
    raise ArithmeticError(f"the solver must end with a solution, got {status} of {k} inputs")


def _without_waste(questions: Floats) -> Floats:
    """Return as few questions as have the same summed error: R with R^T R = L^T L."""
    _, sizes, directions = np.linalg.svd(questions, full_matrices=False)
    held = sizes > 1e-12 * sizes.max()
    return np.asarray(sizes[held, None] * directions[held])


def random_channel(rng: np.random.Generator, inputs: int, epsilon: float) -> Floats:
    """Return columns between 1 and e^epsilon, or extremal ones, and a last one that fills the rows."""
    outputs = int(rng.integers(inputs, 4 * inputs))
    a = math.exp(epsilon)
    kind = rng.integers(3)
    if kind == 0:
        columns = rng.uniform(1.0, a, size=(inputs, outputs))
    else:
        columns = np.where(rng.random((inputs, outputs)) < rng.uniform(0.1, 0.9), a, 1.0)
    columns = columns * rng.gamma(1.0, size=outputs)
    if kind == 2:
        columns[:, 0] = rng.uniform(1.0, a, size=inputs) * rng.gamma(1.0)
    totals = columns.sum(axis=1)
    # A last column that fills the rows: add a constant until its own ratio is at most a.
    gap = totals.max() - totals
    least = gap.max() / (a - 1.0)
    last = gap + least
    return np.column_stack([columns, last]) / (totals + last)[:, None]
