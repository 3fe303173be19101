"""Linear regression from a cross table: the moments of least squares are sums of its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
    errors = np.sqrt(np.maximum(np.diag(influence @ table.covariance @ influence.T), 0.0))
    z = quantile(level)
    return [
        Regressed(float(b), float(b - z * error), float(b + z * error))
        for b, error in zip(beta, errors, strict=True)
    ]


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
    if not (scales > 0.0).all():
        raise RefusedStatisticError(
            "a regressor must differ between devices of the planned crowd, got one that does not"
        )
    values, vectors = np.linalg.eigh(moments / np.outer(scales, scales))
    along = ((vectors[:, 0] / scales) @ centred) ** 2
    error = table.error_at(crowd, along)
    if values[0] < LEAST_EIGENVALUE * error:
        raise RefusedStatisticError(
            f"a regression needs a least eigenvalue of {LEAST_EIGENVALUE:g} errors: as planned it is "
            f"{values[0]:.2g}, and {table.devices:,} devices know it to {error:.2g}; ask fewer attributes, "
            "join readings, or take a larger epsilon"
        )
