"""The poisoning margin: the forged reports that push an estimate out of its own interval.

Reports are anonymous, so anyone who gets past admission can send the symbol that suits them. With the left
inverse B and n accepted reports, k forged ones of symbol y turn the frequency F_x into

    (n F_x + k B[x, y]) / (n + k),

a move of k |B[x, y] - F_x| / (n + k). It reaches the half-width h of the interval as soon as

    k >= h n / (max_y |B[x, y] - F_x| - h),

and never where the denominator is not above zero. Mixing symbols does no better: the move is linear in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_ROUNDING: Final = 1e-12
"""A move smaller than this share of what one report can add is a rounding error of B."""


@dataclass(frozen=True)
class Reach:
    """The extremes of B over the symbols: what one report can add to the count of devices in a cell.

    Attributes:
        values_low: min_y B[x, y], shape (K,); nan where the channel hides the value.
        values_high: max_y B[x, y], shape (K,); nan where hidden.
        categories_low: The same for sums of B's rows over categories, shape (m,).
        categories_high: Shape (m,).
    """

    values_low: NDArray[Any]
    values_high: NDArray[Any]
    categories_low: NDArray[Any]
    categories_high: NDArray[Any]


@dataclass(frozen=True)
class PoisonMargin:
    """The least number of forged reports that moves an estimate to an end of its interval or beyond.

    It is a property of the channel and of n: the smaller it is, the less an attacker needs. Fewer forged
    reports move the estimate by less than its stated interval.

    Attributes:
        level: The coverage of the intervals.
        values: Forged reports per input, shape (K,), float64, whole numbers >= 1; inf where no number is
            enough, nan where the channel hides the value.
        categories: The same per category, shape (m,).
    """

    level: float
    values: NDArray[np.float64]
    categories: NDArray[np.float64]


def forged_reports(
    estimates: NDArray[np.float64],
    halves: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    n: int,
) -> NDArray[np.float64]:
    """Return the margin of every cell, in whole reports.

    Args:
        estimates: F as frequencies, shape (c,); nan where hidden.
        halves: h as frequencies, shape (c,), >= 0; inf where hidden.
        low: min_y B[x, y], shape (c,).
        high: max_y B[x, y], shape (c,).
        n: Accepted reports, >= 1.

    Returns:
        Shape (c,), >= 1; inf where no number is enough, nan where hidden.
    """
    pull = np.maximum(high - estimates, estimates - low) - halves
    rounding = _ROUNDING * np.maximum(1.0, np.maximum(high, -low))
    needed = np.full(estimates.shape, np.inf)
    np.divide(halves * n, pull, out=needed, where=pull > rounding)
    return np.where(np.isnan(estimates), np.nan, np.maximum(np.ceil(needed), 1.0))
