"""Log-likelihoods of binary answers about scores, in the one form that branch and bound needs.

An answer is seen with probability p = low + rise * phi(t), where t = a.x + k is linear in the record x and
phi is either the ramp min(1, max(0, t)) or the logistic function. To search for the largest log-likelihood
the curve is f(t) = ln p(t), for the smallest f(t) = -ln p(-t); both never fall, are convex up to one point
and concave after it. Such a curve lies below a line up to a point of tangency, and is its own bound after it.

For linear regressions the sum is one of logarithms of affine functions: `largest` bounds it over a box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_NEAR: Final = 1e-9
"""The most that rounding may move the end of an interval by; only Lagrange multipliers depend on it."""

_LOWEST: Final = 1e-4
"""Least probability at which slopes of the logistic function may be had without its tail."""

_HALVINGS: Final = 60
"""Bisection of an interval down to the float grid; a tangent that is off by less is no tangent at all."""


@dataclass(frozen=True, eq=False)
class Curves:
    """A set of n curves, and the scores that they are of.

    Attributes:
        slopes: a of every curve, shape (n, d), float64.
        offsets: k, shape (n,).
        low: The least probability, shape (n,), above 0.
        rise: What phi adds to it at most, shape (n,).
        logistic: Whether phi is the logistic function, shape (n,), bool.
        sign: 1 to search for the largest log-likelihood, -1 for the smallest.
    """

    slopes: Floats
    offsets: Floats
    low: Floats
    rise: Floats
    logistic: NDArray[np.bool_]
    sign: int = 1

    def mirrored(self) -> Curves:
        """Return the answers mirrored, for the other search."""
        return Curves(-self.slopes, -self.offsets, self.low, self.rise, self.logistic, -self.sign)

    def parts(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return f, f' and f'' of every curve at its own t, each of shape (n,)."""
        if self.smooth:
            half, middle, quarter, sway = self._tangents
            share = np.tanh(sway * t)
            p = middle + half * share
            slope = quarter * (1.0 - share * share) / p
            value = np.log(p)
            share += slope
            share *= slope
            return (value, slope, -share) if self.sign > 0 else (-value, slope, share)
        s = self.sign * t
        phi, first, second = self._phi(s)
        p = self.low + self.rise * phi
        slope = self.rise * first / p
        bend = self.sign * (self.rise * second / p - slope * slope)
        return self.sign * np.log(p), slope, bend

    @cached_property
    def smooth(self) -> bool:
        """True where all curves are logistic, and none so low that a tail of it decides."""
        return bool(self.logistic.all()) and float(self.low.min()) > _LOWEST

    @cached_property
    def steep(self) -> float:
        """A slope that no sum of curves comes near, above 0."""
        return float(10.0 * (self.rise / self.low).sum())

    @cached_property
    def scale(self) -> float:
        """The largest rise, as a measure of what a barrier weighs."""
        return float(self.rise.max()) + 1e-12

    @cached_property
    def sizes(self) -> Floats:
        """The slopes without their signs, shape (d, n)."""
        return np.ascontiguousarray(np.abs(self.slopes).T)

    @cached_property
    def _tangents(self) -> tuple[Floats, Floats, Floats, float]:
        """Numbers of a logistic curve as a hyperbolic tangent: p = middle + half tanh(sway t)."""
        half = 0.5 * self.rise
        return half, self.low + half, 0.5 * half, 0.5 * self.sign

    def values(self, t: Floats) -> Floats:
        """Return f of every curve, for t of shape (..., n)."""
        s = self.sign * t
        sharp = sigmoid(s)
        if not self.smooth:
            sharp = np.where(self.logistic, sharp, np.clip(s, 0.0, 1.0))
        values: Floats = self.sign * np.log(self.low + self.rise * sharp)
        return values

    def _phi(self, s: Floats) -> tuple[Floats, Floats, Floats]:
        sigma = sigmoid(s)
        first = sigma * (1.0 - sigma)
        inside = (s >= 0.0) & (s <= 1.0)
        return (
            np.where(self.logistic, sigma, np.clip(s, 0.0, 1.0)),
            np.where(self.logistic, first, inside),
            np.where(self.logistic, first * (1.0 - 2.0 * sigma), 0.0),
        )

    def tangent(self, i: int, start: float, stop: float) -> float:
        """Return the first line's end of the least concave curve above f_i on [start, stop], or start."""
        bend = self.bends[i]
        if start >= bend - _NEAR:
            return start
        base = self._one(i, start)[0]

        def rising(t: float) -> bool:
            value, slope = self._one(i, t)
            return slope * (t - start) >= value - base

        if stop <= bend or rising(stop):
            return stop
        left, right = bend, stop
        for _ in range(_HALVINGS):
            middle = 0.5 * (left + right)
            if not left < middle < right:
                break
            left, right = (middle, right) if rising(middle) else (left, middle)
        return right

    @cached_property
    def kinks(self) -> Floats:
        """The points at which ramps stop rising, shape (n,); infinity for the others."""
        return np.where(self.logistic, np.inf, 1.0 if self.sign > 0 else 0.0)

    @cached_property
    def bends(self) -> list[float]:
        """The points at which curves turn from convex to concave."""
        # ln(low + rise sigma) bends where rise sigma^2 + 2 low sigma = low; a ramp's logarithm at its foot.
        sigma = (np.sqrt(self.low * (self.low + self.rise)) - self.low) / self.rise
        turn = np.where(self.logistic, np.log(sigma) - np.log1p(-sigma), 0.0)
        bends: list[float] = (self.sign * turn).tolist()
        return bends

    def _one(self, i: int, t: float) -> tuple[float, float]:
        s = self.sign * t
        low, rise = float(self.low[i]), float(self.rise[i])
        if self.logistic[i]:
            small = math.exp(-abs(s))
            phi = (1.0 if s >= 0 else small) / (1.0 + small)
            first = small / (1.0 + small) ** 2
        else:
            phi, first = min(1.0, max(0.0, s)), float(0.0 < s < 1.0)
        p = low + rise * phi
        return self.sign * math.log(p), rise * first / p

    @cached_property
    def _floor(self) -> Floats:
        return self.low / self.rise

    def conjugate(self, multipliers: Floats, start: Floats, stop: Floats) -> Floats:
        """Return the largest f(t) - m t on [start, stop] of every curve with multiplier m, shape (n,).

        It is at an end, at a kink of a ramp, or where f' equals m, which is a quadratic equation in the
        logistic function and a linear one on the ramp.
        """
        sign = self.sign
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            half = 0.5 * (1.0 - multipliers)
            root = np.sqrt(half * half - multipliers * self._floor)
            if self.smooth:
                # One root alone is where the curve is concave: at the other, f(t) - m t is least.
                sigma = np.minimum(np.maximum(half + sign * root, 0.0), 1.0)
                still = sign * (np.log(sigma) - np.log1p(-sigma))
                # Not a number, where the slope is nowhere m: an end stands for it.
                still = np.fmin(np.fmax(still, start), stop)
                points = np.concatenate([still, start, stop]).reshape(3, -1)
                tops: Floats = np.maximum.reduce(self.values(points) - multipliers * points)
                return tops
            sigmas = np.clip(np.stack([half - root, half + root]), 0.0, 1.0)
            bent = np.log(sigmas) - np.log1p(-sigmas)
            ramp = 1.0 / multipliers - self._floor
        kinks = np.zeros_like(ramp), np.ones_like(ramp)
        special = np.where(self.logistic, bent, np.stack(kinks))
        still = np.stack([start, stop, *(sign * special), sign * np.where(self.logistic, special[0], ramp)])
        still = np.where(np.isfinite(still), still, start)
        still = np.clip(still, start, stop)
        best: Floats = (self.values(still) - multipliers * still).max(axis=0)
        return best


def sigmoid(s: Floats) -> Floats:
    """Return 1 / (1 + e^-s), without overflow."""
    small = np.exp(-np.abs(s))
    return np.where(s >= 0.0, 1.0, small) / (1.0 + small)


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
