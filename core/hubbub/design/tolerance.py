"""Accuracy within a tolerance: the probability that a report reads as a number near its value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.mechanisms.boosted.boosted import Boosted
from hubbub.mechanisms.boosted.scalar import ScalarChannel

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
    read = _decoded(channel, points)
    if read is None or not isinstance(channel, FiniteChannel):
        return 0.0
    inside = np.abs(read - points[:-1, None]) <= within * (1.0 + _EDGE)
    rows = channel.weights()[:-1] / channel.total
    return float(np.where(inside, rows, 0.0).sum(axis=1).min())


def tolerance_miss_rate(channel: Channel, points: NDArray[np.float64], within: float) -> float:
    """Return one less `tolerance_accuracy`; inf where nothing hits."""
    hits = tolerance_accuracy(channel, points, within)
    return 1.0 - hits if hits > 0.0 else math.inf


def _decoded(channel: Channel, points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the number of every symbol, shape (M,), nan for "missing"; None where symbols are no numbers."""
    low, high = points[0], points[-2]
    if isinstance(channel, ScalarChannel):
        read = 0.5 * (low + high) + 0.5 * (high - low) * channel.decoded
        return np.append(read[:-1], np.nan)
    if isinstance(channel, Boosted):
        margin = channel.design.margin
        places = np.arange(channel.outputs - 1) - margin
        return np.append(low + places * ((high - low) / (len(points) - 2)), np.nan)
    if isinstance(channel, FiniteChannel) and channel.outputs == channel.inputs == len(points):
        return points
    return None
