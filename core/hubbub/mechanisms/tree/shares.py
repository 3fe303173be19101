"""The levels of a tree of ranges, and the share of devices that each level should have.

Level l groups the K points into m_l ranges of nearly equal length. A report about level j measures sums over
its ranges, each with variance v_j, so that with shares w the information about what differs between ranges of
level l, and not between ranges of level l - 1 (the space V_l of Haar functions), is

    e_l = sum over j >= l of w_j g_j,    g_j = K / (m_j v_j).

The error of functionals T of the points' shares is the sum of c_l / e_l with c_l = trace(T P_l T'), where P_l
projects on V_l; the missing input adds mean_T(T 1/K)^2 / (sum over j of w_j / u_j), with u_j the variance of
its estimate from level j. Both are convex in w. For ranges of equal length this is exact, and the least that
shares can reach; otherwise it is close, and errors that are printed come from the estimator itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import Support
from hubbub.errors import ParameterError
from hubbub.mechanisms.levels.hierarchy import MAX_LEVELS

Purpose = Literal["cdf", "quantiles", "value", "mean"]
"""The error that shares make small: of cumulative shares, those near quartiles, values, or the mean."""

PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)

STEPS: Final = 1000
"""Shares are whole thousandths: the same on every machine, whatever the last digits of a search."""

MIDDLE: Final = (1 / 8, 7 / 8)
"""Cumulative shares between which "quantiles" are looked for, of equally common points."""

_ROUNDS: Final = 4000

Floats: TypeAlias = NDArray[np.float64]


def cells_of(points: int, branching: int) -> list[int]:
    """Return the number of ranges of each level, coarsest first; the last is the points themselves.

    Args:
        points: K, the missing input not counted.
        branching: Ranges that a range is split into, at least 2, less than K. The last split is into fewer or
            more, so that it ends at single points.

    Raises:
        ParameterError: If points or branching are out of range.

    >>> cells_of(65, 2)
    [2, 4, 8, 16, 32, 65]
    """
    if not 2 <= branching < points:
        raise ParameterError(
            f"branching must be within 2 to {points - 1} on {points} points, got {branching}"
        )
    depth = 2
    while depth < MAX_LEVELS and branching**depth * branching <= points * branching**0.5:
        depth += 1
    # As many levels as bring the last split nearest to the others, by ratio; at least two.
    return [*(branching**level for level in range(1, depth)), points]


def middle(points: int) -> tuple[int, int]:
    """Return the first and the last number of points whose cumulative share "quantiles" judges by."""
    low, high = (max(1, min(points - 1, round(end * points))) for end in MIDDLE)
    return low, high


def best_shares(cells: Sequence[int], supports: Sequence[Support], purpose: Purpose) -> list[int]:
    """Return the thousandths of devices that report about each level, each at least 1.

    They make sum c_l / e_l, and the missing input's error beside it, least (this module's docstring). The
    variances are exact: v_j of `Moments` for sums over m_j equal ranges, u_j that of one cell's estimate.

    Args:
        cells: Ranges per level, as of `cells_of`.
        supports: How reports about each level support its ranges and the missing input.
        purpose: The error that is made small.

    Raises:
        ParameterError: If the purpose is not known.
    """
    if purpose not in PURPOSES:
        raise ParameterError(f"tuned_for must be one of {', '.join(PURPOSES)}, got {purpose!r}")
    g, missing = _information(cells, supports)
    c, c_missing = _spectrum(cells, purpose)
    return _in_steps(_least(g, missing, c, c_missing))


def nested_shares(cells: Sequence[int], supports: Sequence[Support], level: int | None) -> list[int]:
    """Return the thousandths of devices that report about each level of a tree of labels, each at least 1.

    They make the mean over levels of the mean error of a level's cells least, or that of one level. Of level
    j that is the trace over V_l of its m_j sums of K/m_j values each, K/m_j^2 times the size of V_l, in all
    c_l = (m_l - m_{l-1}) sum over j >= l of K/m_j^2. Nodes are taken to be of one size, as above.

    Args:
        cells: Cells per level, missing left out; the last is the values themselves.
        supports: How reports about each level support its cells and the missing input.
        level: The level, 0 the coarsest; None: all of them alike.

    Raises:
        ParameterError: If there is no such level.
    """
    if level is not None and not 0 <= level < len(cells):
        raise ParameterError(f"tuned_for must be a level from 0 to {len(cells) - 1}, got {level}")
    g, missing = _information(cells, supports)
    m = np.array(cells, dtype=np.float64)
    asked = cells[-1] / m**2
    if level is not None:  # levels below it could only take from it
        asked = np.where(np.arange(len(m)) == level, asked, 0.0)[: level + 1]
    known = len(asked)
    c = np.cumsum(asked[::-1])[::-1] * np.diff(m[:known], prepend=1.0)
    found = np.zeros(len(m))
    found[:known] = _least(g[:known], missing[:known], c, float(asked.sum()) / cells[-1])
    return _in_steps(found)


def _information(cells: Sequence[int], supports: Sequence[Support]) -> tuple[Floats, Floats]:
    """Return g_j = K / (m_j v_j) and 1 / u_j per level, shape (levels,) each.

    With b_x = (1[x in S] - q) / (p - q) a report's unbiased score of cell x, v_j is the variance of h . b for
    any h of sum 0 and sum of squares 1, where all m_j ranges are equally common, and u_j that of b_x for a
    cell that nobody is in, as the missing input's is taken to be.
    """
    points = cells[-1]
    g, missing = [], []
    for m, support in zip(cells, supports, strict=True):
        p, q = support.p, support.q
        # For h of sum 0 over m equal ranges the variance is (a1/m + a3) sum h^2, in the constants of Moments.
        a1 = 1 + (p * (1 - p) - q * (1 - q) - 2 * (support.p_pair - p * q)) / (p - q) ** 2
        a1 += 2 * (support.q_pair - q * q) / (p - q) ** 2
        a3 = (q * (1 - q) - (support.q_pair - q * q)) / (p - q) ** 2
        v, u = a1 / m + a3, q * (1 - q) / (p - q) ** 2
        g.append(points / float(m * v))
        missing.append(1.0 / float(u))
    return np.array(g), np.array(missing)


def _spectrum(cells: Sequence[int], purpose: Purpose) -> tuple[Floats, float]:
    """Return c_l per level, and the weight of the missing input's error."""
    points = cells[-1]
    starts = [np.arange(many + 1) * points // many for many in cells]
    if purpose == "value":
        return np.diff(np.array(cells, dtype=np.float64), prepend=1.0) / points, 1.0 / points**2
    if purpose == "mean":
        place = np.cumsum(np.append(0.0, np.linspace(-1.0, 1.0, points)))
        squares = [0.0]
        for start in starts:
            squares.append(float((np.diff(place[start]) ** 2 / np.diff(start)).sum()))
        return np.diff(squares), 0.0
    low, high = (1, points - 1) if purpose == "cdf" else middle(points)
    prefix = np.arange(low, high + 1)
    held = [prefix.astype(np.float64) ** 2 / points]
    for start in starts:
        cell = np.searchsorted(start, prefix, side="right") - 1
        within = prefix - start[cell]
        length = start[np.minimum(cell + 1, len(start) - 1)] - start[cell]
        held.append(start[cell] + within**2 / np.maximum(length, 1))
    return np.array([float((fine - coarse).mean()) for coarse, fine in pairwise(held)]), float(
        ((prefix / points) ** 2).mean()
    )


def _least(g: Floats, missing: Floats, c: Floats, c_missing: float) -> Floats:
    """Return the shares w of least error, by the multiplicative algorithm for optimal designs.

    The error is sum c_l / e_l + c_missing / (w . missing). A step multiplies each share by the square root of
    what a little more of it takes off the error,

        slope_j = g_j sum over l <= j of c_l / e_l^2  +  missing_j c_missing / (w . missing)^2;

    at the optimum all slopes are alike.

    Args:
        g: K / (m_j v_j) per level.
        missing: 1 / u_j per level.
        c: The weight of 1 / e_l per level.
        c_missing: The weight of the missing input's error.
    """
    w = np.full(len(g), 1.0 / len(g))
    for _ in range(_ROUNDS):
        e = np.cumsum((w * g)[::-1])[::-1]
        slope = g * np.cumsum(c / e**2) + missing * c_missing / float(w @ missing) ** 2
        grown = w * np.sqrt(slope)
        grown /= grown.sum()
        if np.abs(grown - w).max() < 1e-9:
            break
        w = grown
    return w


def _in_steps(shares: Floats) -> list[int]:
    """Return shares in whole steps that sum to all of them, each at least one (largest remainders)."""
    free = STEPS - len(shares)
    exact = shares * free
    whole = np.floor(exact).astype(int)
    for level in np.argsort(whole - exact, kind="stable")[: free - int(whole.sum())]:
        whole[level] += 1
    return [int(each) + 1 for each in whole]
