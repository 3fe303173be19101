"""The bias of a frequency by refusals: devices that answer are not a random part of those asked.

A filter refuses a survey by what the device answered before, hence, a little, by what its owner's record is.
Let d be the share of the devices asked that are not counted, g a cell's frequency among those that are, h
among those that are not, and f = (1-d) g + d h among all. Then f - g = d (h - g), whoever is missing and why.

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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError


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
