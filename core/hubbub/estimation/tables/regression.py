"""Linear regression from a cross table, or from tables of every two attributes of a bundle.

The moments of least squares are sums of their cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.tables.groups import RefusedStatisticError
from hubbub.estimation.tables.shares import TableShares, quantile

Floats = NDArray[np.float64]

LEAST_EIGENVALUE: Final = 4.0
"""Errors by which the least eigenvalue of the planned moments must be above 0."""


@dataclass(frozen=True)
class Regressed:
    """A coefficient with its interval."""

    estimate: float
    low: float
    high: float


def linear_regression(
    table: TableShares,
    columns: Sequence[Sequence[Sequence[float]]],
    *,
    margins: Sequence[Sequence[float] | None] | None = None,
    level: float = 0.95,
) -> list[Regressed]:
    """Return the coefficients of least squares of an attribute on others, an intercept first.

    They are of the devices that have all of these attributes.

    Args:
        table: Of the attributes that explain, and last of the one explained, each with missing last.
        columns: For every attribute its regressors, each a number per reading, missing left out; the one
            explained has one.
        margins: Shares of readings of every attribute that explains, as a census has them; None: evenly
            spread. They decide on a refusal, with the number of devices, and on nothing else.
        level: Coverage, of each alone.

    Raises:
        RefusedStatisticError: If the least eigenvalue of the regressors' correlations, of so many devices of
            that crowd, is not 4 errors above 0.
        ParameterError: If columns or margins are not those of these attributes, or no shares.
    """
    shape = table.shares.shape
    if len(columns) != len(shape) or len(shape) < 2 or len(columns[-1]) != 1:
        had = [len(each) for each in columns]
        raise ParameterError(
            f"columns must be of {len(shape)} attributes, 2 or more, the last one, got {had}"
        )
    there = np.ones(shape)
    design = [there]
    for axis, own in enumerate(columns):
        side = [1] * len(shape)
        side[axis] = shape[axis]
        held = np.append(np.ones(shape[axis] - 1), 0.0).reshape(side)
        there = there * held
        design += [np.broadcast_to(np.append(each, 0.0).reshape(side), shape) for each in own]
    rows = np.array([(each * there).ravel() for each in design])
    x, y = rows[:-1], rows[-1]
    _plan(table, x, there.ravel(), _crowd(shape, margins))
    shares = table.shares.ravel()
    # x has the indicator of "has all" in each row, which is 0 or 1: its products with shares have it once.
    moments = (x * shares) @ x.T
    inverse = np.linalg.pinv(moments)
    beta = inverse @ ((x * shares) @ y)
    influence = inverse @ (x * (y - beta @ x))
    return _regressed(beta, influence @ table.covariance @ influence.T, level)


def _regressed(beta: Floats, covariance: Floats, level: float) -> list[Regressed]:
    halves = quantile(level) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return [Regressed(*each) for each in np.array([beta, beta - halves, beta + halves]).T.tolist()]


def _crowd(shape: tuple[int, ...], margins: Sequence[Sequence[float] | None] | None) -> Floats:
    """Return the crowd of the plan: attributes independent, nobody missing."""
    given = [None] * len(shape) if margins is None else [*margins, None]
    if len(given) != len(shape):
        raise ParameterError(f"margins must be of {len(shape) - 1} attributes, got {len(given) - 1}")
    found = np.ones(())
    for size, margin in zip(shape, given, strict=True):
        own = np.full(size - 1, 1.0 / (size - 1)) if margin is None else np.asarray(margin, dtype=np.float64)
        if own.shape != (size - 1,) or own.min() < 0.0 or not math.isclose(own.sum(), 1.0, abs_tol=1e-6):
            raise ParameterError(
                f"margins must be {size - 1} shares >= 0 that sum to one, got {own.tolist()}"
            )
        found = np.multiply.outer(found, np.append(own / own.sum(), 0.0))
    return found


def _plan(table: TableShares, x: Floats, there: Floats, crowd: Floats) -> None:
    p = crowd.ravel()
    means = x[1:] @ p
    centred = (x[1:] - means[:, None]) * there
    moments = (centred * p) @ centred.T
    scales = np.sqrt(np.diag(moments))
    _check_differ(scales)
    values, vectors = np.linalg.eigh(moments / np.outer(scales, scales))
    along = ((vectors[:, 0] / scales) @ centred) ** 2
    error = table.error_at(crowd, along)
    _check_known(values[0], error, f"{table.devices:,} devices")


def _check_differ(scales: Floats) -> None:
    if not (scales > 0.0).all():
        raise RefusedStatisticError(
            "a regressor must differ between devices of the planned crowd, got one that does not"
        )


def _check_known(least: float, error: float, who: str) -> None:
    if least < LEAST_EIGENVALUE * error:
        raise RefusedStatisticError(
            f"a regression needs a least eigenvalue of {LEAST_EIGENVALUE:g} errors: as planned it is "
            f"{least:.2g}, and {who} know it to {error:.2g}; ask fewer attributes, join readings, or take a "
            "larger epsilon"
        )


class Paired(Protocol):
    """The tables of every two attributes, by their places, and the noise of sums over all of them."""

    def pair(self, a: int, b: int) -> Floats:
        """Return the shares of two attributes, shape (r_a, r_b)."""
        ...

    def covariance(self, parts: Mapping[tuple[int, int], Floats], crowd: Sequence[Floats] | None) -> Floats:
        """Return the covariance of sums of shares, of so many coefficients for every two places a < b."""
        ...


def paired_regression(
    tables: Paired, columns: Sequence[Sequence[Sequence[float]]], *, level: float = 0.95
) -> list[Regressed]:
    """Return the coefficients of least squares of an attribute on others, from tables of two at a time.

    A moment is the mean of a product among the devices that have both attributes: no table says who has all.
    So missing values must have nothing to do with the others.

    Args:
        tables: Of the attributes that explain, and last of the one explained, each with missing last.
        columns: For every attribute its regressors, as of `linear_regression`.
        level: Coverage, of each alone.

    Raises:
        RefusedStatisticError: If the least eigenvalue of the regressors' correlations, of attributes that are
            independent and evenly spread, is not 4 errors above 0.
    """
    design = [(axis, np.array(each)) for axis, own in enumerate(columns) for each in own]
    even = [np.append(np.full(len(own[0]), 1.0 / len(own[0])), 0.0) for own in columns]
    _plan_pairs(tables, design[:-1], even)
    moments = np.eye(len(design) + 1)
    known = {}
    for p, q, cells, values in _products(tables, design):
        held = float(cells[:-1, :-1].sum()) if cells.ndim > 1 else float(cells[:-1].sum())
        moments[p, q] = moments[q, p] = float((cells * values).sum()) / held
        there = np.ones(cells.shape)
        there[(-1,) if cells.ndim == 1 else (slice(None), -1)] = there[-1] = 0.0
        known[p, q] = (values - moments[p, q] * there) / held
    inverse = np.linalg.pinv(moments[:-1, :-1])
    beta = inverse @ moments[:-1, -1]
    weights = np.append(-beta, 1.0)
    parts: dict[tuple[int, int], Floats] = {}
    for (p, q), slope in known.items():
        moved = weights[q] * (inverse[:, p] if p < len(beta) else 0.0 * beta)
        if p != q:
            moved = moved + weights[p] * (inverse[:, q] if q < len(beta) else 0.0 * beta)
        _add(parts, tables, design, (p, q), np.multiply.outer(moved, slope))
    return _regressed(beta, tables.covariance(parts, None), level)


def _products(
    tables: Paired, design: Sequence[tuple[int, Floats]]
) -> Iterator[tuple[int, int, Floats, Floats]]:
    """Yield every two of the intercept (0) and the regressors with a table and their product in its cells."""
    for p, (a, x) in enumerate(design, start=1):
        margin = tables.pair(a, int(a == 0)).sum(axis=1)
        yield 0, p, margin, np.append(x, 0.0)
        for q, (b, other) in enumerate(design[:p], start=1):
            if a == b:
                yield q, p, margin, np.append(x * other, 0.0)
            else:
                yield q, p, tables.pair(b, a), np.outer(np.append(other, 0.0), np.append(x, 0.0))


def _add(
    parts: dict[tuple[int, int], Floats],
    tables: Paired,
    design: Sequence[tuple[int, Floats]],
    pair: tuple[int, int],
    own: Floats,
) -> None:
    """Add the slopes of a moment, shape (k, ...) over its table or margin, to those of tables of two."""
    axes = [design[each - 1][0] for each in pair if each]
    if own.ndim == 2:
        a = axes[-1]
        b = int(a == 0)
        own = np.broadcast_to(own[:, :, None], (len(own), *tables.pair(a, b).shape))
        axes = [a, b]
    if axes[0] > axes[1]:
        axes, own = axes[::-1], own.swapaxes(1, 2)
    key = (axes[0], axes[1])
    parts[key] = parts[key] + own if key in parts else own


def _plan_pairs(tables: Paired, design: Sequence[tuple[int, Floats]], crowd: Sequence[Floats]) -> None:
    means = [float(x @ crowd[axis][:-1]) for axis, x in design]
    centred = [(axis, x - mean) for (axis, x), mean in zip(design, means, strict=True)]
    scales = np.array([math.sqrt(float(x**2 @ crowd[axis][:-1])) for axis, x in centred])
    _check_differ(scales)
    moments = np.diag(scales**2)
    for p, q, _, values in _products(tables, centred):
        if p and values.ndim == 1:
            moments[p - 1, q - 1] = moments[q - 1, p - 1] = float(values @ crowd[centred[p - 1][0]])
    eigen, vectors = np.linalg.eigh(moments / np.outer(scales, scales))
    along = vectors[:, 0] / scales
    parts: dict[tuple[int, int], Floats] = {}
    for p, q, _, values in _products(tables, centred):
        if p:
            times = (1.0 if p == q else 2.0) * along[p - 1] * along[q - 1]
            _add(parts, tables, centred, (p, q), times * values[None])
    error = math.sqrt(max(float(tables.covariance(parts, crowd)[0, 0]), 0.0))
    _check_known(eigen[0], error, "these tables")
