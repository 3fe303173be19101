"""The extremes of a sum of logarithms of affine functions over a box: what linear regressions add up to."""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np

from hubbub.accounting.curves import Floats

_WEIGHTS: Final = (1e-2, 5e-4, 2e-5, 1e-6, 5e-8, 2e-9)
"""Of the barrier, from far inside the box to almost on it."""

_STEPS: Final = 30
"""Newton steps for each weight; three are the rule."""

_ROUNDING: Final = 2.0**-49
"""Of each term of a bound, relative to the size of the terms: eight units in the last place."""


def largest(slopes: Floats, offsets: Floats, start: Floats) -> tuple[float, Floats]:
    """An upper bound of the maximum over [-1, 1]^d of sum_i ln(slopes_i.z + offsets_i), and a point near.

    A concave function lies below its tangent plane, whose maximum over the box is in closed form, so any
    point gives a bound, and the bound is as good as the point: no grouping, no approximation. The points are
    those of Newton's method with a logarithmic barrier.

    Args:
        slopes: Shape (n, d).
        offsets: Shape (n,); every sum is positive on the whole box.
        start: A point to start from, shape (d,).

    Returns:
        The bound, and a point of the box, shape (d,).
    """
    z = np.clip(start, -0.99, 0.99)
    best = np.inf
    for weight in _WEIGHTS:
        for _ in range(_STEPS):
            share = 1.0 / (slopes @ z + offsets)
            inside = 1.0 - z * z
            rising = share @ slopes
            gradient = rising - weight * 2.0 * z / inside
            scaled = slopes * share[:, None]
            curvature = scaled.T @ scaled
            curvature.flat[:: z.size + 1] += weight * 2.0 * (1.0 + z * z) / (inside * inside)
            step = np.linalg.solve(curvature, gradient)  # the barrier alone makes it positive definite
            gain = float(step @ gradient)
            room = float(np.maximum(step / (1.0 - z), -step / (1.0 + z)).max())
            z = z + min(1.0, 0.7 / max(room, 1e-9)) * step
            if gain < 0.01 * weight:
                break
        p = slopes @ z + offsets
        rising = (1.0 / p) @ slopes
        terms = np.log(p)
        size = np.abs(terms).sum() + np.abs(slopes / p[:, None]).sum() + len(p)
        bound = float(terms.sum() + (np.abs(rising) - rising * z).sum() + _ROUNDING * size)
        best = min(best, bound)
    return best, z


class Corners:
    """The sum at every corner of a box, kept up to date: the least value of a concave function is at one.

    Attributes:
        points: The corners, shape (2^d, d).
        sums: Shape (2^d,), float64.
    """

    def __init__(self, numbers: int) -> None:
        """All zero.

        Args:
            numbers: d.
        """
        self.points = np.array(list(product((-1.0, 1.0), repeat=numbers)))
        self.sums: Floats = np.zeros(len(self.points))
        self._terms = 0

    def add(self, slope: Floats, offset: float) -> None:
        """Adds a term ln(slope.z + offset) for good."""
        self.sums = self.sums + np.log(self.points @ slope + offset)
        self._terms += 1

    def least(self, sums: Floats) -> float:
        """A lower bound of the least of sums, which have a few terms more than were added."""
        value = float(sums.min())
        return value - _ROUNDING * (self._terms + 8) * (1.0 + float(np.abs(sums).max()))
