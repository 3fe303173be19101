"""Accuracy within a tolerance: the probability that a report reads as a number near its value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel

_EDGE = 1e-9
"""A distance counts as within by so much more of itself: both ends are multiples of one step."""


def tolerance_accuracy(channel: Channel, points: NDArray[np.float64], within: float) -> float:
    """Return the least probability, over the values, that a report reads as a number near the value.

    A symbol of boosted noise is read as its place on the grid, one of Duchi, Piecewise and Hybrid as its
    authors read it, one of a channel with as many symbols as inputs as that input. A report that says
    "missing" is no hit.

    Args:
        channel: Over the inputs of `points`.
        points: The number of every input, shape (K,), nan at missing, which is last.
        within: The distance up to which it is a hit, > 0, in the units of the points.

    Returns:
        In [0, 1]; 0 for a channel whose symbols are not read as numbers.
    """
    read = channel.symbol_numbers(points)
    rows = None if read is None else channel.probabilities()
    if read is None or rows is None:
        return 0.0
    inside = np.abs(read - points[:-1, None]) <= within * (1.0 + _EDGE)
    return float(np.where(inside, rows[:-1], 0.0).sum(axis=1).min())


def tolerance_miss_rate(channel: Channel, points: NDArray[np.float64], within: float) -> float:
    """Return one less `tolerance_accuracy`; inf where nothing hits."""
    hits = tolerance_accuracy(channel, points, within)
    return 1.0 - hits if hits > 0.0 else math.inf
