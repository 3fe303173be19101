"""Stochastic rounding of a number to an equally spaced grid: unbiased, and exact near the secret.

A number between two points goes to the upper one with a probability equal to its relative position, so that
its expectation is the number itself. The draw is part of the device's memory: a value is rounded once, and
the rounded value is kept (rounding anew for every survey would let an observer average the noise away).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.randomness import SYSTEM, Source, bernoulli

_UNIT = 2.0**-53


def stochastic(
    value: Fraction | float,
    low: Fraction | float,
    high: Fraction | float,
    points: int,
    *,
    source: Source = SYSTEM,
) -> int:
    """Return the index 0..points-1 of a neighbouring grid point, whose expectation is the value exactly.

    All arithmetic is on exact fractions (a float is the fraction that its bits say), and the coin is an
    exact rational Bernoulli: no float rounding depends on the value.

    Args:
        value: The number, within low..high.
        low: The first grid point.
        high: The last grid point, above low.
        points: Number of grid points, >= 2.
        source: Where the bytes come from; leave it alone outside simulations and tests.

    Raises:
        ParameterError: If the grid is not one, or the value is not a number within it; the message does
            not repeat the value.

    >>> stochastic(0.25, 0, 1, 5)
    1
    """
    start, width = _grid(low, high, points)
    if not _finite(value) or not start <= Fraction(value) <= start + width:
        raise ParameterError(f"value must be a number within {low} to {high}, got one outside")
    position = (Fraction(value) - start) * (points - 1) / width
    index = math.floor(position)
    part = position - index
    if part == 0:
        return index
    return index + bernoulli(part.numerator, part.denominator, source)


def stochastic_many(
    values: NDArray[Any], low: float, high: float, points: int, *, source: Source = SYSTEM
) -> NDArray[np.int64]:
    """Return an index per number, in floats: for simulations only, within 2^-50 of the law of `stochastic`.

    Args:
        values: Numbers within low..high, shape (n,), float.
        low: The first grid point.
        high: The last grid point, above low.
        points: Number of grid points, >= 2.
        source: Where the bytes come from, eight per value.

    Returns:
        Shape (n,), int64, 0..points-1.

    Raises:
        ParameterError: If the grid is not one, or a value is not a number within it.
    """
    _grid(low, high, points)
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1:
        raise ParameterError(f"values must be one row of numbers, got shape {numbers.shape}")
    if numbers.size and not (numbers.min() >= low and numbers.max() <= high):
        raise ParameterError(f"values must be numbers within {low} to {high}, got one outside")
    position = (numbers - low) / (high - low) * (points - 1)
    index = np.minimum(np.floor(position), points - 2)
    words = np.frombuffer(source.token_bytes(8 * numbers.size), dtype="<u8")
    upper = (words >> np.uint64(11)) * _UNIT < position - index
    return np.asarray(index.astype(np.int64) + upper)


def _grid(low: Fraction | float, high: Fraction | float, points: int) -> tuple[Fraction, Fraction]:
    if isinstance(points, bool) or not isinstance(points, int) or points < 2:
        raise ParameterError(f"points must be an integer of at least 2, got {points!r}")
    if not (_finite(low) and _finite(high) and low < high):
        raise ParameterError(f"a grid must have finite ends with low < high, got {low!r} and {high!r}")
    return Fraction(low), Fraction(high) - Fraction(low)


def _finite(value: object) -> bool:
    return isinstance(value, Fraction | float | int | np.integer) and math.isfinite(value)
