"""A consistent view of estimates: non-negative, summing to one, values adding up to their categories.

Norm-Sub (Wang et al. 2020, "Locally differentially private frequency estimation with consistency"): subtract
one constant from all estimates and cut at zero, so that they sum to the target. It is the projection on the
simplex. The view is biased near zero and is shown beside the raw estimates, never instead of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Consistent:
    """The consistent view of one estimate.

    Attributes:
        values: Frequencies, shape (K,), >= 0, summing within each category to its entry; nan where hidden.
        categories: Frequencies, shape (m,), >= 0, summing to one (each margin of a cross table by itself);
            nan where hidden.
    """

    values: NDArray[np.float64]
    categories: NDArray[np.float64]


def norm_sub(
    estimates: NDArray[np.float64], group_of: NDArray[Any], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Project every group of estimates on the non-negative vectors that sum to the group's total.

    Args:
        estimates: Raw estimates, shape (K,), finite.
        group_of: Group 0..G-1 of every estimate, shape (K,); every group has a member.
        totals: Sum to reach per group, shape (G,), >= 0.

    Returns:
        Shape (K,), >= 0; each group sums to its total up to rounding.
    """
    order = np.lexsort((-estimates, group_of))
    ranked, groups = estimates[order], group_of[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    rank = np.arange(len(ranked)) - np.repeat(starts, np.diff(starts, append=len(ranked)))
    running = np.cumsum(ranked)
    running -= (running[starts] - ranked[starts])[groups]
    # The shift that makes the r largest of the group sum to its total; the right r is the last one
    # whose smallest member stays positive.
    shift = (running - totals[groups]) / (rank + 1)
    positive = ranked > shift
    positive[starts] = True
    kept = np.add.reduceat(positive.astype(np.intp), starts)
    return np.asarray(np.maximum(estimates - shift[starts + kept - 1][group_of], 0.0))


def consistent_view(
    values: NDArray[np.float64], categories: NDArray[np.float64], category_of: NDArray[Any]
) -> Consistent:
    """Make categories consistent first, then the values inside each.

    The raw values of a linear estimate already sum to their categories, so the weighted least squares of the
    two-level tree would change nothing; going down from the categories keeps their much smaller errors.

    Args:
        values: Raw value frequencies, shape (K,); nan where hidden.
        categories: Raw category frequencies, shape (m,); nan where hidden.
        category_of: Category of every value, shape (K,); for a cross table one row per margin, shape (k, K):
            then the values come first, and the margins are their sums. For a tree of labels one row per
            level, coarsest first: then each level is made consistent within the one before.
    """
    if category_of.ndim == 2 and not len(category_of):  # items of sets, whose shares have no total
        return Consistent(np.clip(values, 0.0, 1.0), np.empty(0))
    if is_nested(category_of):
        return _nested_view(values, categories, category_of)
    if category_of.ndim == 2:
        return _cross_view(values, category_of, len(categories))
    if np.isnan(categories).any():
        return Consistent(np.full(len(values), np.nan), np.full(len(categories), np.nan))
    one = np.zeros(len(categories), dtype=np.intp)
    tops = norm_sub(categories, one, np.ones(1))
    hidden = np.isin(category_of, category_of[np.isnan(values)])
    below = norm_sub(np.where(hidden, 0.0, values), category_of, tops)
    return Consistent(np.where(hidden, np.nan, below), tops)


def is_nested(category_of: NDArray[Any]) -> bool:
    """Return whether rows of categories are the levels of a tree, each splitting those of the row before.

    The margins of a cross table are not: every reading of one attribute goes with all of another's.
    """
    if category_of.ndim != 2 or not category_of.size:
        return False
    for above, below in pairwise(category_of):
        parent = np.zeros(int(below.max()) + 1, dtype=np.intp)
        parent[below] = above
        if not np.array_equal(parent[below], above):
            return False
    return True


def _nested_view(
    values: NDArray[np.float64], categories: NDArray[np.float64], levels: NDArray[Any]
) -> Consistent:
    if np.isnan(values).any() or np.isnan(categories).any():
        return Consistent(np.full(len(values), np.nan), np.full(len(categories), np.nan))
    found = np.zeros(len(categories))
    group_of, totals = np.zeros(len(values), dtype=np.intp), np.ones(1)
    for row in levels:
        cells, first = np.unique(row, return_index=True)
        found[cells] = totals = norm_sub(categories[cells], group_of[first], totals)
        group_of = row - row.min()
    return Consistent(norm_sub(values, group_of, totals), found)


def _cross_view(values: NDArray[np.float64], margins: NDArray[Any], categories: int) -> Consistent:
    if not len(values):  # of a score, which has a mean alone
        return Consistent(values, values)
    if np.isnan(values).any():
        return Consistent(np.full(len(values), np.nan), np.full(categories, np.nan))
    cells = norm_sub(values, np.zeros(len(values), dtype=np.intp), np.ones(1))
    sums = np.zeros(categories)
    for margin in margins:
        np.add.at(sums, margin, cells)
    return Consistent(cells, sums)
