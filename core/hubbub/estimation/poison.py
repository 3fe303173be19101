"""Bounds on what noise does not explain: forged reports, and devices that were refused.

The poisoning margin is the forged reports that push an estimate out of its own interval. Reports are
anonymous, so anyone who gets past admission can send the symbol that suits them. With the left inverse B and
n accepted reports, k forged ones of symbol y turn the frequency F_x into

    (n F_x + k B[x, y]) / (n + k),

a move of k |B[x, y] - F_x| / (n + k). It reaches the half-width h of the interval as soon as

    k >= h n / (max_y |B[x, y] - F_x| - h),

and never where the denominator is not above zero. Mixing symbols does no better: the move is linear in them.

Refusals bias a frequency: devices that answer are not a random part of those asked. A filter refuses a survey
by what the device answered before, hence, a little, by what its owner's record is. Let d be the share of the
devices asked that are not counted, g a cell's frequency among those that are, h among those that are not, and
f = (1-d) g + d h among all. Then f - g = d (h - g), whoever is missing and why.

If the missing were refused by filters, none of whose records had lost more than s by then, the probability of
a refusal differs by a factor of at most e^s between any two records. So h <= e^s f and h >= e^-s f, and
solving for h and inserting gives

    |f - g| <= d min( max(g, 1 - g),  g (e^s - 1) / (1 - d e^s) )        the second where d e^s < 1

which is d/(1-d) min(max(f, 1 - f), f (e^s - 1)) in terms of what is estimated, g, and not of what is not: to
write g for f there would give too small a bound. The first of the two holds for any reason to be missing.

All of it is about expectations over the answers: in a fleet of N, the share that was really refused, and with
it the bias, differs from its expectation by the order of 1/sqrt(N).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError

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


def selection_bound(low: ArrayLike, high: ArrayLike, *, absent: float, epsilon: float) -> NDArray[np.float64]:
    """Return a bound of |f - g| of every cell, for any g within its interval.

    Args:
        low: Lower ends of the cells' intervals for g, shape (k,); nan where nothing is known.
        high: Upper ends, shape (k,).
        absent: d, the share of the devices asked that are not counted, in 0 <= d <= 1.
        epsilon: s, at least the loss that any device could have reached by then, nats: its lifetime budget
            will do. The realised losses, or their mean, will not.

    Returns:
        Shape (k,), each in 0..1: as a frequency.

    Raises:
        ParameterError: If `absent` is not a share, or `epsilon` is negative.
    """
    if not 0.0 <= absent <= 1.0:
        raise ParameterError(f"absent must be a share of the devices asked, got {absent!r}")
    if not epsilon >= 0.0:
        raise ParameterError(f"epsilon must be at least 0, got {epsilon!r}")
    lows, highs = (np.clip(np.asarray(ends, dtype=np.float64), 0.0, 1.0) for ends in (low, high))
    lows, highs = np.where(np.isnan(lows), 0.0, lows), np.where(np.isnan(highs), 1.0, highs)
    # max(g, 1 - g) is largest at an end, and the other term grows with g.
    anybody = absent * np.maximum(np.maximum(highs, 1.0 - highs), np.maximum(lows, 1.0 - lows))
    growth = math.exp(min(epsilon, 700.0))
    if absent * growth >= 1.0:
        return anybody
    refused = absent * highs * (growth - 1.0) / (1.0 - absent * growth)
    return np.minimum(anybody, refused)
