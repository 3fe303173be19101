"""The independence of two attributes of a cross table, and the strength of their association.

Of those who have both let F be the shares, F_u and F_v their margins and P their sum. Independence says that

    D_uv = P F_uv - F_u F_v = 0

for all cells. D needs no division; its covariance C is that of shares which are the product of the margins,
so that D^T C^+ D has the chi-square law of (r - 1)(c - 1) degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.tables.groups import RefusedStatisticError
from hubbub.estimation.tables.shares import TableShares
from hubbub.numeric.gamma import gamma_tail

Floats = NDArray[np.float64]

LEAST_MARGIN: Final = 3.0
"""Errors by which a margin must be above 0 for cells to be divided by it."""


@dataclass(frozen=True)
class Independence:
    """A test of independence.

    Attributes:
        statistic: Wald's.
        degrees: Of freedom.
        p_value: The probability of one as large where the two are independent.
    """

    statistic: float
    degrees: int
    p_value: float


@dataclass(frozen=True)
class Association:
    """A Cramer's V, 0 of independent attributes and 1 where one tells the other, with its interval.

    Attributes:
        estimate: V less what the noise adds.
        plug_in: V as the noisy shares would have it: too large, and never 0.
        low: The interval's lower end.
        high: Its upper end.
        whole: True where a margin is too near 0 for any division: the interval is all there is.
        rare: Which readings' margins are: the axis and the place of each.
    """

    estimate: float
    plug_in: float
    low: float
    high: float
    whole: bool
    rare: tuple[tuple[int, int], ...] = ()


def independence(table: TableShares) -> Independence:
    """Return the Wald test of independence of a table of two attributes, each with missing last.

    Where noise leaves nobody who has both, nothing speaks against it.
    """
    rows, columns = (size - 1 for size in table.shares.shape)
    degrees = (rows - 1) * (columns - 1)
    if not min(table.shares[:rows, :columns].sum(), table.crowd[:rows, :columns].sum()) > 0.0:
        return Independence(0.0, degrees, 1.0)
    d, first, second = _apart(table)
    # Twice the second order too much: where noise is as large as the shares, the test errs to the safe side.
    covariance = first + second
    values, vectors = np.linalg.eigh(covariance)
    kept = slice(len(values) - degrees, None)
    along = vectors[:, kept].T @ d
    statistic = float((along**2 / np.maximum(values[kept], 1e-300)).sum())
    return Independence(statistic, degrees, gamma_tail(degrees / 2.0, statistic / 2.0))


def association(table: TableShares, *, level: float = 0.95) -> Association:
    """Return Cramer's V of a table of two attributes, each with missing last.

    The squares of noisy deviations are too large by the trace of their covariance, which is taken off. The
    interval inverts the law of their sum, a scaled noncentral chi-square with its first two moments.

    Raises:
        RefusedStatisticError: If so many devices would not know even margins to a third of themselves.
    """
    rows, columns = (size - 1 for size in table.shares.shape)
    _plan(table)
    shares = table.shares[:rows, :columns]
    whole, margins = float(shares.sum()), [shares.sum(axis=1), shares.sum(axis=0)]
    most = min(rows, columns) - 1.0
    near = [margin <= LEAST_MARGIN * _errors(table, axis) for axis, margin in enumerate(margins)]
    if rare := tuple((axis, at) for axis in (0, 1) for at in np.flatnonzero(near[axis]).tolist()):
        return Association(math.nan, math.nan, 0.0, 1.0, whole=True, rare=rare)
    # In units of the square root of phi^2: (P F_uv - F_u F_v) / (P sqrt(F_u F_v)).
    scale = 1.0 / (whole * np.sqrt(np.outer(*margins))).ravel()
    d, first, second = _apart(table)
    d, c = d * scale, (first - second) * np.outer(scale, scale)
    total, trace, squares = float(d @ d), float(np.trace(c)), float((c * c).sum())
    unit, degrees = squares / trace, trace * trace / squares
    tail = (1.0 - level) / 2.0
    low, high = (
        math.sqrt(min(unit * _shift(total / unit, degrees, below) / most, 1.0))
        for below in (1.0 - tail, tail)
    )
    known = math.sqrt(min(max(total - trace, 0.0) / most, 1.0))
    return Association(known, math.sqrt(total / most), low, high, whole=False)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values for all tests at once (Holm 1979): one up to .05 errs somewhere in at most 5 %."""
    order = np.argsort(p_values, kind="stable")
    scaled = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    found = np.empty(len(order))
    found[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    kept: list[float] = found.tolist()
    return kept


def _apart(table: TableShares) -> tuple[Floats, Floats, Floats]:
    """Return D less the mean that noise gives it, and its covariance of first and of second order.

    Missing readings are left out, and cells are in one row: shapes (r c,), (r c, r c) and (r c, r c). D is
    quadratic in the shares, and noise may be as large as they are. With S the shares' covariance where the
    devices that have both are independent in the two, written for cells i = (u, v) and j = (u', v'),

        E D_i - truth     = Cov(P, F_i) - Cov(F_u, F_v),
        first order       = G S G^T,    G_ij = P [i = j] + F_u F_v / P - F_v [u = u'] - F_u [v = v'],
        second order      = S_ij Var P + Cov(P, F_i) Cov(P, F_j)
                            - M_ij - M_ji + Cov(F_u, F_u') Cov(F_v, F_v') + Cov(F_u, F_v') Cov(F_v, F_u'),
        M_ij              = Cov(P, F_u') Cov(F_i, F_v') + Cov(P, F_v') Cov(F_i, F_u'),

    by Isserlis for normal deviations; G stands at shares that are the product of the margins. At the
    estimated margins the first order is too large by twice the second, on average.

    In the code's names a pair of letters is a covariance: `e` is of cells, `r` of their rows, `c` of their
    columns, and `all` of P; F_u, F_v and P are `g_row`, `g_column` and `g_whole`, and `p` is F_u F_v / P.
    """
    rows, columns = (size - 1 for size in table.shares.shape)
    shares = table.shares[:rows, :columns]
    d = (shares.sum() * shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).ravel()
    crowd = table.crowd.copy()
    there = crowd[:rows, :columns]
    margins = [np.maximum(shares.sum(axis=at), 0.0) for at in (1, 0)]
    by_row, by_column = (margin / max(float(margin.sum()), 1e-300) for margin in margins)
    crowd[:rows, :columns] = there.sum() * np.outer(by_row, by_column)
    kept = np.arange(table.shares.size).reshape(table.shares.shape)[:rows, :columns].ravel()
    s = table.covariance_at(crowd)[np.ix_(kept, kept)]
    u, v = (at.ravel() for at in np.indices((rows, columns)))
    in_row, in_column = np.eye(rows)[:, u], np.eye(columns)[:, v]
    g_row, g_column, g_whole = shares.sum(axis=1), shares.sum(axis=0), float(shares.sum())
    p = np.outer(g_row, g_column).ravel() / g_whole
    gradient = (
        g_whole * np.eye(len(p))
        + p[:, None]
        - g_column[v][:, None] * in_row[u]
        - g_row[u][:, None] * in_column[v]
    )
    e_r, e_c = (s @ in_row.T)[:, u], (s @ in_column.T)[:, v]
    r_r, c_c, r_c = (
        (one @ s @ two.T) for one, two in ((in_row, in_row), (in_column, in_column), (in_row, in_column))
    )
    r_r, c_c, r_c = r_r[np.ix_(u, u)], c_c[np.ix_(v, v)], r_c[np.ix_(u, v)]
    all_e = s.sum(axis=0)
    all_r, all_c = (in_row @ all_e)[u], (in_column @ all_e)[v]
    mixed = all_r * e_c + all_c * e_r
    second = s.sum() * s + np.outer(all_e, all_e) - mixed - mixed.T + r_r * c_c + r_c * r_c.T
    return d - all_e + np.diag(r_c), gradient @ s @ gradient.T, second


def _errors(table: TableShares, axis: int) -> Floats:
    """Return the errors of a margin's shares among those who have both."""
    rows, columns = (size - 1 for size in table.shares.shape)
    sizes = (rows, columns)
    return np.array([table.error_at(table.crowd, _margin(sizes, axis, at)) for at in range(sizes[axis])])


def _margin(sizes: tuple[int, int], axis: int, at: int) -> Floats:
    """Return the coefficients of a share of a margin among those who have both."""
    whole = np.pad(np.ones(sizes), (0, 1))
    return np.where(np.indices(whole.shape)[axis] == at, whole, 0.0)


def _plan(table: TableShares) -> None:
    """Refuse by what is known before any report: evenly spread margins must be three errors above 0."""
    rows, columns = (size - 1 for size in table.shares.shape)
    even = np.zeros(table.shares.shape)
    even[:rows, :columns] = 1.0 / (rows * columns)
    for axis, size in enumerate((rows, columns)):
        error = table.error_at(even, _margin((rows, columns), axis, 0))
        if 1.0 / size <= LEAST_MARGIN * error:
            raise RefusedStatisticError(
                f"the strength of an association needs margins of {LEAST_MARGIN:g} errors: {size} even "
                f"readings have shares of {1.0 / size:.2g}, and {table.devices:,} devices know one to "
                f"{error:.2g}; join readings"
            )


def _shift(x: float, degrees: float, below: float) -> float:
    """Return the noncentrality at which a number up to x has the probability `below`; 0 if there is none."""
    if noncentral_below(x, degrees, 0.0) <= below:
        return 0.0
    low, high = 0.0, max(x, 1.0)
    while noncentral_below(x, degrees, high) > below:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if noncentral_below(x, degrees, middle) > below else (low, middle)
    return high


def noncentral_below(x: float, degrees: float, shift: float) -> float:
    """Return the probability that a noncentral chi-square number is at most x.

    It is a Poisson mixture of central ones: weights about their mode, and tails of which each is the one
    before it and a term more.

    Args:
        x: Any number.
        degrees: Degrees of freedom, > 0.
        shift: The noncentrality, >= 0.
    """
    if x <= 0.0:
        return 0.0
    if shift <= 0.0:
        return 1.0 - gamma_tail(degrees / 2.0, x / 2.0)
    half = shift / 2.0
    reach = 9.0 * math.sqrt(half) + 40.0  # beyond, a weight is below 1e-16
    j = np.arange(max(0, math.floor(half - reach)), math.ceil(half + reach))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(j[1:]))]) + math.lgamma(j[0] + 1.0)
    weights = np.exp(j * math.log(half) - half - factorials)
    a = degrees / 2.0 + j
    first = a[0] * math.log(x / 2.0) - x / 2.0 - math.lgamma(a[0] + 1.0)
    terms = np.exp(first + np.concatenate([[0.0], np.cumsum(math.log(x / 2.0) - np.log(a[1:]))]))
    tails = gamma_tail(float(a[0]), x / 2.0) + np.concatenate([[0.0], np.cumsum(terms[:-1])])
    return float(np.clip(weights @ (1.0 - np.minimum(tails, 1.0)), 0.0, 1.0))
