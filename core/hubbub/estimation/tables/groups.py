"""Groups of a cross table of two attributes: their shares and means, differences, odds, a census's weights.

A table here has the groups as rows and what is asked of them as columns, each with missing last. Every
statistic is of the devices that have both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.tables.shares import RatioSpan, TableShares, fieller, quantile, within

Floats = NDArray[np.float64]

MOST_VARIATION: Final = 0.3
"""The largest coefficient of variation of a group's share, as planned, whose reciprocal is used."""


class RefusedStatisticError(ParameterError):
    """A statistic that so many reports cannot give, by what is known before any report is looked at."""


def conditional_shares(table: TableShares, *, level: float = 0.95) -> list[list[RatioSpan]]:
    """Return for every group the share of each reading among those of the group that have one.

    Args:
        table: Groups by readings.
        level: Coverage, of each alone.
    """
    groups, readings = (size - 1 for size in _two(table))
    return [
        [
            table.ratio(_cells(table, u, [v]), _cells(table, u, range(readings)), level=level)
            for v in range(readings)
        ]
        for u in range(groups)
    ]


def group_means(table: TableShares, numbers: Sequence[float], *, level: float = 0.95) -> list[RatioSpan]:
    """Return for every group the mean of a number among those of the group that have one.

    Args:
        table: Groups by readings.
        numbers: Of the readings, missing left out.
        level: Coverage, of each alone.
    """
    groups, readings = (size - 1 for size in _two(table))
    if len(numbers) != readings:
        raise ParameterError(f"numbers must be those of {readings} readings, got {len(numbers)}")
    x, ends = np.asarray(numbers, dtype=np.float64), (float(min(numbers)), float(max(numbers)))
    found = []
    for u in range(groups):
        there = _cells(table, u, range(readings))
        found.append(table.ratio(there * np.append(x, 0.0), there, level=level, ends=ends))
    return found


def group_difference(
    table: TableShares, first: int, second: int, reading: int, *, level: float = 0.95
) -> RatioSpan:
    """Return the share of a reading in one group less that in another.

    The interval is made of those of both shares by the distances of their ends from the estimates (Zou and
    Donner 2008), with the correlation of the two.

    Args:
        table: Groups by readings.
        first: The group.
        second: The one that is taken off.
        reading: The reading.
        level: Coverage.
    """
    readings = range(_two(table)[1] - 1)
    tops = [_cells(table, u, [reading]) for u in (first, second)]
    bottoms = [_cells(table, u, readings) for u in (first, second)]
    one, two = (table.ratio(top, bottom, level=level) for top, bottom in zip(tops, bottoms, strict=True))
    if one.whole or two.whole or math.isnan(one.estimate + two.estimate):
        return RatioSpan(one.estimate - two.estimate, -1.0, 1.0, whole=True)
    shares, s = table.shares.ravel(), table.covariance
    g, h = (
        (top - span.estimate * bottom).ravel() / float(bottom.ravel() @ shares)
        for top, bottom, span in zip(tops, bottoms, (one, two), strict=True)
    )
    spread = math.sqrt(float(g @ s @ g) * float(h @ s @ h))
    alike = float(g @ s @ h) / spread if spread > 0.0 else 0.0
    ends = []
    for a, b in (
        (one.low - one.estimate, two.high - two.estimate),
        (one.high - one.estimate, two.low - two.estimate),
    ):
        ends.append(math.sqrt(max(a * a - 2.0 * alike * a * b + b * b, 0.0)))
    found = one.estimate - two.estimate
    return RatioSpan(found, *within((found - ends[0], found + ends[1]), (-1.0, 1.0)), whole=False)


def odds_ratio(table: TableShares, group: int, reading: int, *, level: float = 0.95) -> RatioSpan:
    """Return the odds of a reading in a group over those in all other groups together.

    The two products of shares are unbiased once their covariance is taken off, and their ratio has Fieller's
    interval.

    Args:
        table: Groups by readings.
        group: The group.
        reading: The reading.
        level: Coverage.
    """
    groups, readings = (list(range(size - 1)) for size in _two(table))
    cells = []
    for rows in ([group], [u for u in groups if u != group]):
        for columns in ([reading], [v for v in readings if v != reading]):
            cells.append(np.sum([_cells(table, u, columns) for u in rows], axis=0).ravel())
    h = np.array(cells)
    f, s = h @ table.shares.ravel(), h @ table.covariance @ h.T
    top, bottom = np.array([f[3], 0.0, 0.0, f[0]]), np.array([0.0, f[2], f[1], 0.0])
    return fieller(
        float(f[0] * f[3] - s[0, 3]),
        float(f[1] * f[2] - s[1, 2]),
        float(top @ s @ top),
        float(top @ s @ bottom),
        float(bottom @ s @ bottom),
        z=quantile(level),
        ends=(0.0, math.inf),
    )


def reweighted_shares(table: TableShares, census: Sequence[float], *, level: float = 0.95) -> list[RatioSpan]:
    """Return the shares of readings in a population whose groups have the sizes of a census.

    Within every group those who answered count as a random part of it. It rests on division by the groups'
    estimated shares, and is refused where so many devices would not know these at the census's own sizes: the
    estimates have no say in that, or what is shown would be a choice of them.

    Args:
        table: Groups by readings.
        census: The share of every group in the population, missing left out; >= 0, summing to one.
        level: Coverage, of each alone.

    Raises:
        RefusedStatisticError: If a group's planned share has a coefficient of variation above MOST_VARIATION.
        ParameterError: If the census is none of these groups.
    """
    groups, readings = (size - 1 for size in _two(table))
    sizes = np.asarray(census, dtype=np.float64)
    if sizes.shape != (groups,) or sizes.min() < 0.0 or not math.isclose(sizes.sum(), 1.0, abs_tol=1e-6):
        raise ParameterError(f"a census must have {groups} shares >= 0 that sum to one, got {list(census)}")
    plan = np.zeros(table.shares.shape)
    plan[:groups, :readings] = sizes[:, None] / readings
    whole = [_cells(table, u, range(readings)) for u in range(groups)]
    for u in np.flatnonzero(sizes > 0.0).tolist():
        variation = table.error_at(plan / plan.sum(), whole[u]) / sizes[u]
        if variation > MOST_VARIATION:
            raise RefusedStatisticError(
                f"group {u} of the census must have a share that {table.devices:,} devices know to "
                f"{MOST_VARIATION:.0%} of itself, got {variation:.0%}"
            )
    shares, s, z = table.shares.ravel(), table.covariance, quantile(level)
    found = []
    for v in range(readings):
        estimate, gradient, known = 0.0, np.zeros(shares.shape), True
        for u in np.flatnonzero(sizes > 0.0).tolist():
            top, bottom = _cells(table, u, [v]).ravel(), whole[u].ravel()
            size = float(bottom @ shares)
            known = known and size > 0.0
            ratio = float(top @ shares) / size if size > 0.0 else math.nan
            estimate += sizes[u] * ratio
            gradient += sizes[u] * (top - ratio * bottom) / (size if size > 0.0 else math.nan)
        if not known:  # as planned, a matter of one round in a thousand
            found.append(RatioSpan(math.nan, 0.0, 1.0, whole=True))
            continue
        half = z * math.sqrt(float(gradient @ s @ gradient))
        span = within((estimate - half, estimate + half), (0.0, 1.0))
        found.append(RatioSpan(min(max(estimate, 0.0), 1.0), *span, whole=False))
    return found


def _two(table: TableShares) -> tuple[int, int]:
    if table.shares.ndim != 2 or min(table.shares.shape) < 3:
        raise ParameterError(
            f"a table must have two attributes of two readings beside missing, got {table.shares.shape}"
        )
    rows, columns = table.shares.shape
    return rows, columns


def _cells(table: TableShares, row: int, columns: Sequence[int] | range) -> Floats:
    """Return the coefficients of the sum of some cells of a row."""
    found = np.zeros(table.shares.shape)
    found[row, list(columns)] = 1.0
    return found
