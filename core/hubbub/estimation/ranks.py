"""The ranks that cells could have, from intervals that hold for all of them at once.

Where all intervals hold, a cell whose lower end is above another's upper end has the larger share. So a
cell's rank is at least one more than the cells that are surely larger, and at most their number less those
that are surely smaller; and where the intervals hold with some probability, all rank sets hold with it
(Klein, Wright and Wieczorek 2020, "A joint confidence region for an overall ranking of populations").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ranks = NDArray[np.int64]


def rank_sets(low: ArrayLike, high: ArrayLike) -> tuple[Ranks, Ranks]:
    """Return the best and the worst rank that each cell could have; 1 is the largest share.

    Args:
        low: Lower ends of simultaneous intervals, shape (c,); nan where nothing is known.
        high: Upper ends, shape (c,).

    Returns:
        Best and worst ranks, shape (c,) each; cells of one share may have any rank among them.
    """
    lows, highs = np.asarray(low, np.float64), np.asarray(high, np.float64)
    lows, highs = np.where(np.isnan(lows), -np.inf, lows), np.where(np.isnan(highs), np.inf, highs)
    larger = len(lows) - np.searchsorted(np.sort(lows), highs, side="right")
    smaller = np.searchsorted(np.sort(highs), lows, side="left")
    return np.asarray(1 + larger, np.int64), np.asarray(len(lows) - smaller, np.int64)
