"""The extremes, over a box, of a sum of logarithms of affine functions: the sum for linear regressions."""

from __future__ import annotations

import math
from itertools import product
from typing import Final

import numpy as np

from hubbub.filter.regression.curves import Floats

_STEPS: Final = 30
"""Newton steps for one bound: from the last maximum two are the rule, from nowhere ten."""

_DONE: Final = 1e-10
"""Nats between a point and its bound at which the point is as good as the maximum."""

_ROUNDS: Final = 64
"""For the best point of one parabola; few are the rule. Stopping early is a worse step, not a wrong bound."""

_RIDGE: Final = 1e-12
"""Added to the curvature, relative to its size, where fewer answers than numbers leave it singular."""

_SHORTEST: Final = 2.0**-20
"""Part of a step below which rounding decides whether it is an ascent."""

_ROUNDING: Final = 2.0**-52
"""One unit in the last place: a sum of n terms is off by at most n of them, of the terms' sizes."""


def largest(slopes: Floats, offsets: Floats, start: Floats) -> tuple[float, Floats]:
    """Return an upper bound of the maximum over [-1, 1]^d of sum_i ln(slopes_i.z + offsets_i), and a point.

    A concave function lies below its tangent plane, whose maximum over the box is in closed form, so any
    point gives a bound, and the bound is as good as the point: no grouping, no approximation. The points are
    those of Newton's method, every step of which goes towards the best point of the box for the local
    parabola. Close to a maximum one step is enough, so the last maximum is the place to start from.

    Args:
        slopes: Shape (n, d).
        offsets: Shape (n,); every sum is positive on the whole box.
        start: A point to start from, shape (d,).

    Returns:
        The least bound met, and a point of the box, shape (d,).
    """
    z = np.clip(start, -1.0, 1.0)
    p = slopes @ z + offsets
    terms = np.log(p)
    value, best = float(terms.sum()), np.inf
    for _ in range(_STEPS):
        share = slopes / p[:, None]
        rising = share.sum(axis=0)
        gap = float((np.abs(rising) - rising * z).sum())
        doubt = float(_ROUNDING * (len(p) + 8) * (np.abs(terms).sum() + np.abs(share).sum() + len(p)))
        best = min(best, value + gap + doubt)
        if not gap > _DONE:  # reached, or arithmetic has failed
            break
        curvature = share.T @ share
        curvature.flat[:: z.size + 1] += _RIDGE * (1.0 + curvature.trace())
        step = _parabola(curvature, rising, z) - z
        slope, length = float(rising @ step), 1.0
        while True:
            there = np.clip(z + length * step, -1.0, 1.0)
            p = slopes @ there + offsets
            terms = np.log(p)
            reached = float(terms.sum())
            if reached >= value + 0.1 * length * slope - doubt or length < _SHORTEST:
                break
            length *= 0.5
        z, value = there, reached
    return best, z


def _parabola(curvature: Floats, rising: Floats, z: Floats) -> Floats:
    """Return the point x of the box that is best for rising.(x - z) - (x - z).curvature.(x - z)/2.

    Coordinates that point out of the box at its face are held there; the others go to where the parabola
    has its top, or until one more meets its face. One that is held wrongly is let go, one at a time, so every
    round is better than the last and the rounds come to an end.
    """
    x, pull = z.copy(), rising
    held = np.abs(z) >= 1.0
    held &= z * rising > 0.0
    for _ in range(_ROUNDS):
        free = np.flatnonzero(~held)
        step = np.zeros_like(x)
        step[free] = np.linalg.solve(curvature[free[:, None], free], pull[free])
        aim = x + step
        over = np.abs(aim) - 1.0
        worst = int(over.argmax())
        if over[worst] > 0.0:  # shorten it to where the first coordinate meets its face
            far = np.flatnonzero(over > 0.0)
            share = (np.copysign(1.0, step[far]) - x[far]) / step[far]
            first = far[int(share.argmin())]
            x = x + max(0.0, float(share.min())) * step
            x[first] = math.copysign(1.0, step[first])
            held[first] = True
            pull = rising - curvature @ (x - z)
            continue
        x = aim
        pull = rising - curvature @ (x - z)
        wrong = np.where(held, -x * pull, 0.0)
        loose = int(wrong.argmax())
        if wrong[loose] <= _DONE:
            break
        held[loose] = False
    return x


class Corners:
    """The sum at every corner of a box, kept up to date: the least value of a concave function is at one.

    Attributes:
        points: The corners, shape (2^d, d).
        sums: Shape (2^d,), float64.
    """

    def __init__(self, numbers: int) -> None:
        """Start with zero at every corner.

        Args:
            numbers: d.
        """
        self.points = np.array(list(product((-1.0, 1.0), repeat=numbers)))
        self.sums: Floats = np.zeros(len(self.points))
        self._terms = 0

    def add(self, slope: Floats, offset: float) -> None:
        """Add a term ln(slope.z + offset) for good."""
        self.sums = self.sums + np.log(self.points @ slope + offset)
        self._terms += 1

    def least(self, sums: Floats) -> float:
        """Return a lower bound of the least sum over the corners, with a few more terms than were added."""
        value = float(sums.min())
        return value - 8.0 * _ROUNDING * (self._terms + 8) * (1.0 + float(np.abs(sums).max()))
