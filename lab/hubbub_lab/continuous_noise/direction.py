"""Utility first: of region, confidence and epsilon, two are given and the third is found.

Confidence is the probability, at the input where it is least, that the output lies in the input's region
(privacy-boosting section 6.1, budget-recycling-dp section 5). It rises with epsilon and with the region's
width, so each direction is a bisection over one map: region and epsilon to the confidence of the best split
between kernel and boost. The epsilon of that map is the exact one of the rows, and what is returned is
compiled to integers and certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import PBGRR
from hubbub.numeric import MAX_EPSILON, MIN_EPSILON, checked_epsilon
from hubbub_authoring import mechanisms
from hubbub_authoring.mechanisms import Absolute, Boosted, Fixed, KernelName, Region, Relative

PRECISION: Final = 1e-4
"""An epsilon found is the least one to this share of itself, rounded up."""

SMALLEST: Final = 0.01
"""The least epsilon searched: below it a report says next to nothing, and confidence hardly changes."""


@dataclass(frozen=True, eq=False)
class Target:
    """One point of the map: what is asked for and the channel that does it.

    Attributes:
        region: What outputs are wanted in.
        confidence: Least probability, over the inputs, that the output lies in it.
        epsilon: The declared epsilon; the channel's certified one is below it.
        channel: The compiled channel, its split in `channel.design`.
    """

    region: Region
    confidence: float
    epsilon: float
    channel: Boosted


def most_confidence(
    points: int, *, region: Region, epsilon: float, kernel: KernelName = "laplace", margin: int | None = None
) -> Target:
    """Return the channel whose outputs lie in the region most surely at an epsilon.

    Args:
        points: Grid points K.
        region: Absolute, Relative or Fixed, in grid steps.
        epsilon: The declared epsilon, per report.
        kernel: The noise kernel, any but "r2dp".
        margin: Grid steps of outputs beyond each end; None: as `boosted`.

    Raises:
        ParameterError: If a parameter breaks its rule, or the region holds no input.
    """
    _check_region(points, region)
    channel = mechanisms.boosted(
        points, epsilon=epsilon, kernel=kernel, region=region, margin=margin, objective="hits"
    )
    return Target(region, channel.design.confidence, float(epsilon), channel)


def least_epsilon(
    points: int,
    *,
    region: Region,
    confidence: float,
    kernel: KernelName = "laplace",
    margin: int | None = None,
) -> Target:
    """Return the channel of least epsilon whose outputs lie in the region with a confidence.

    Args:
        points: Grid points K.
        region: Absolute, Relative or Fixed, in grid steps.
        confidence: rho, in (0, 1).
        kernel: The noise kernel, any but "r2dp".
        margin: Grid steps of outputs beyond each end; None: as `boosted`.

    Raises:
        ParameterError: If a parameter breaks its rule, or no epsilon up to MAX_EPSILON reaches the
            confidence; the message names the most that one does.
    """
    wanted = checked_confidence(confidence)

    def at(epsilon: float) -> Target:
        return most_confidence(points, region=region, epsilon=epsilon, kernel=kernel, margin=margin)

    below, found = at(SMALLEST), at(SMALLEST)
    while found.confidence < wanted:
        if found.epsilon >= MAX_EPSILON:
            raise ParameterError(
                f"confidence must be at most {rounded_down(found.confidence)} for this region up to epsilon "
                f"{MAX_EPSILON:g}, got {wanted:.12g}"
            )
        below, found = found, at(min(2.0 * found.epsilon, MAX_EPSILON))
    turn = 0
    while found.epsilon > below.epsilon * (1.0 + PRECISION):
        # The log-odds of a hit are nearly a line in epsilon; every third step halves, should they not be.
        turn += 1
        start, room = below.epsilon, found.epsilon - below.epsilon
        rise = _log_odds(found.confidence) - _log_odds(below.confidence)
        share = (_log_odds(wanted) - _log_odds(below.confidence)) / rise if rise > 0 and turn % 3 else 0.5
        step = min(max(share * room, 0.0) + (turn % 3 == 1) * PRECISION * start / 2.0, 0.99 * room)
        tried = at(start + max(step, PRECISION * start / 2.0))
        if tried.confidence >= wanted:
            found = tried
        else:
            below = tried
    return found


def narrowest_region(
    points: int,
    *,
    region: Region,
    confidence: float,
    epsilon: float,
    kernel: KernelName = "laplace",
) -> Target:
    """Return the channel of the narrowest region that its outputs lie in with a confidence, at an epsilon.

    Args:
        points: Grid points K.
        region: Its kind: Absolute() or Relative(share, ...), whose half_width is found in whole grid steps;
            or Fixed(low, high), which is widened about its middle by whole steps.
        confidence: rho, in (0, 1).
        epsilon: The declared epsilon, per report.
        kernel: The noise kernel, any but "r2dp".

    Raises:
        ParameterError: If a parameter breaks its rule, or no region within the grid reaches the confidence;
            the message names the most that one does.
    """
    wanted = checked_confidence(confidence)
    checked_epsilon(epsilon)

    def at(steps: int) -> Target:
        return most_confidence(points, region=_widened(region, steps), epsilon=epsilon, kernel=kernel)

    high = max(int(points) - 2, 1)
    found = at(high)
    if found.confidence < wanted:
        raise ParameterError(
            f"confidence must be at most {rounded_down(found.confidence)} for a region within the grid "
            f"at epsilon {epsilon:g}, got {wanted:g}"
        )
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        tried = at(middle)
        if tried.confidence >= wanted:
            high, found = middle, tried
        else:
            low = middle
    return found


def category_confidence(channel: PBGRR) -> float:
    """Return the least probability, over the values, that the symbol is of the value's category."""
    sizes = channel.sizes if channel.outputs == channel.inputs else np.ones_like(channel.sizes)
    inside = channel.t + (sizes - 1) * channel.u
    return float(inside.min() / channel.total)


def least_epsilon_of_categories(sizes: list[int], *, confidence: float, boost_epsilon: float = 0.0) -> PBGRR:
    """Return PB-GRR of the least epsilon whose symbols are of the value's category with a confidence.

    Args:
        sizes: Values per category.
        confidence: rho, in (0, 1).
        boost_epsilon: eps0, what values of one category may differ by.

    Raises:
        ParameterError: If a parameter breaks its rule, or no epsilon up to MAX_EPSILON reaches the
            confidence; the message names the most that one does.
    """
    wanted = checked_confidence(confidence)
    low = max(boost_epsilon, MIN_EPSILON)
    channel = mechanisms.pbgrr(sizes, epsilon=low, boost_epsilon=boost_epsilon)
    if category_confidence(channel) >= wanted:
        return channel
    high = low
    while category_confidence(channel) < wanted:
        if high >= MAX_EPSILON:
            most = rounded_down(category_confidence(channel))
            raise ParameterError(f"confidence must be at most {most} for these categories, got {wanted:g}")
        low, high = high, min(max(2.0 * high, SMALLEST), MAX_EPSILON)
        channel = mechanisms.pbgrr(sizes, epsilon=high, boost_epsilon=boost_epsilon)
    while high > low * (1.0 + PRECISION):
        middle = math.sqrt(low * high)
        tried = mechanisms.pbgrr(sizes, epsilon=middle, boost_epsilon=boost_epsilon)
        if category_confidence(tried) >= wanted:
            high, channel = middle, tried
        else:
            low = middle
    return channel


def most_boost_of_categories(sizes: list[int], *, epsilon: float, confidence: float) -> PBGRR:
    """Return PB-GRR of the largest boost_epsilon, hence the best known values, that keeps a confidence.

    Args:
        sizes: Values per category.
        epsilon: The declared epsilon, per report.
        confidence: rho, in (0, 1).

    Raises:
        ParameterError: If a parameter breaks its rule, or not even boost_epsilon 0 keeps the confidence; the
            message names the most that it does.
    """
    wanted = checked_confidence(confidence)
    found = mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=0.0)
    if category_confidence(found) < wanted:
        most = rounded_down(category_confidence(found))
        raise ParameterError(f"confidence must be at most {most} at epsilon {epsilon:g}, got {wanted:g}")
    low, high = MIN_EPSILON, epsilon
    for tried in (high, low):
        channel = mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=tried)
        if category_confidence(channel) >= wanted:
            found = channel
            break
    else:
        return found
    if tried == high:
        return found
    while high > low * (1.0 + PRECISION):
        middle = math.sqrt(low * high)
        channel = mechanisms.pbgrr(sizes, epsilon=epsilon, boost_epsilon=middle)
        if category_confidence(channel) >= wanted:
            low, found = middle, channel
        else:
            high = middle
    return found


def _check_region(points: int, region: Region) -> None:
    if not isinstance(region, Fixed) or isinstance(points, bool) or not isinstance(points, int):
        return
    last = points - 1
    if math.floor(region.high) < 0 or math.ceil(region.low) > last or region.low > region.high:
        near = Fixed(0, region.high - region.low) if region.high < 0 else Fixed(last, last)
        raise ParameterError(f"region must hold one of the inputs 0 to {last}, got {region}; nearest: {near}")


def _widened(region: Region, steps: int) -> Region:
    if isinstance(region, Fixed):
        middle = (region.low + region.high) / 2.0
        return Fixed(middle - steps / 2.0, middle + steps / 2.0)
    if isinstance(region, Relative):
        return replace(region, half_width=float(steps))
    return Absolute(float(steps))


def checked_confidence(confidence: float) -> float:
    """Return a confidence unchanged, if it is one.

    Raises:
        ParameterError: If it is not a number within (0, 1).
    """
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.0 < confidence < 1.0:
        nearest = ""
        if isinstance(confidence, int | float) and confidence >= 1.0:
            nearest = "; below 1 the nearest is as near as its epsilon allows, 0.999 for one"
        raise ParameterError(f"confidence must be within (0, 1), got {confidence!r}{nearest}")
    return float(confidence)


def _log_odds(share: float) -> float:
    return math.log(share / (1.0 - share)) if 0.0 < share < 1.0 else math.copysign(50.0, share - 0.5)


def rounded_down(confidence: float) -> str:
    """Return six digits, rounded down so that what is named can be reached."""
    return f"{math.floor(confidence * 1e6) / 1e6:.6f}"
