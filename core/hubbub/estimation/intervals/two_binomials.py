"""The exact interval of a cell whose score takes two values: a count that is the sum of two binomials.

With c of n reports in favour of a cell that h devices are in, c is of Bin(h, p) + Bin(n - h, q). So h is kept
if and only if neither P(C >= c) nor P(C <= c) is below half of what the interval may miss (Clopper and
Pearson's rule): no cell can miss more. No skewness stands for the whole law, which at large epsilon is two
rare things of opposite skew: own devices that say something else, and others that say this.

A tail is the integral of the generating function G over a circle of radius r > 1,

    P(C >= c) = 1/(2 pi) int G(z) z^-c / (1 - 1/z) dy,        z = r exp(iy), -pi <= y <= pi,

with r the saddle point of G(z) z^-(c - 1/2), a root of a quadratic. The integrand is then largest at y = 0,
nothing cancels, and the trapezoidal rule has a small tail to 1e-5 of itself with few points.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_POINTS: Final = 14
"""Points of the trapezoidal rule on a half circle."""

_WIDTH: Final = 9.0
"""Standard deviations of the tilted law beyond which the integrand is nothing: exp(-9^2 / 2) is 3e-18."""

_APART: Final = 0.75
"""Standard deviations that the circle's saddle point is above the mean, at least."""

_OUTWARD: Final = 1e-5
"""The relative error of a small tail, at most (measured 4e-6): it is given away, so ends lie outward."""

_CELLS: Final = 2**14
"""Cells whose tails are computed at a time: a few MiB."""


def log_tail(count: Floats, held: Floats, other: Floats, odds: Floats) -> Floats:
    """Return log P(Bin(held, p) + Bin(other, q) >= count); 0 where count is at most the mean and a half.

    Args:
        count: Shape (c,), whole numbers from 0 to held + other.
        held: Whole numbers >= 0, shape (c,).
        other: The same.
        odds: p and q, strictly between 0 and 1, shape (2, c).
    """
    p, q = odds
    found = np.zeros(len(count))
    far = np.flatnonzero(count - 0.5 > held * p + other * q)
    for start in range(0, len(far), _CELLS):
        some = far[start : start + _CELLS]
        found[some] = _log_tail(count[some], held[some], other[some], p[some], q[some])
    return found


def _log_tail(count: Floats, held: Floats, other: Floats, p: Floats, q: Floats) -> Floats:
    # K'(t) = x in u = exp(t): a u^2 + b u - c = 0, of one positive root. A circle too near to the pole at 1
    # would need more points; no tail there is small.
    apart = _APART * np.sqrt(held * p * (1.0 - p) + other * q * (1.0 - q))
    x = np.minimum(np.maximum(count - 0.5, held * p + other * q + apart), held + other - 0.25)
    a = p * q * (held + other - x)
    b = held * p * (1.0 - q) + other * q * (1.0 - p) - x * (q * (1.0 - p) + p * (1.0 - q))
    c = x * (1.0 - p) * (1.0 - q)
    root = np.sqrt(b * b + 4.0 * a * c)
    u = np.where(b > 0.0, 2.0 * c / (np.abs(b) + root), (root - b) / (2.0 * a))
    s = [odds * u / (1.0 - odds + odds * u) for odds in (p, q)]
    spread = held * s[0] * (1.0 - s[0]) + other * s[1] * (1.0 - s[1])
    step = np.minimum(np.pi, _WIDTH / np.sqrt(spread)) / _POINTS
    y = step[:, None] * np.arange(_POINTS + 1)
    turn = np.exp(1j * y)
    power = -1j * count[:, None] * y
    for devices, tilted in ((held, s[0]), (other, s[1])):
        power = power + devices[:, None] * np.log1p(tilted[:, None] * (turn - 1.0))
    terms = (np.exp(power) / (1.0 - 1.0 / (u[:, None] * turn))).real
    terms[:, 0] /= 2.0
    terms[:, -1] /= 2.0
    at_saddle = held * np.log1p(p * (u - 1.0)) + other * np.log1p(q * (u - 1.0)) - count * np.log(u)
    return np.asarray(at_saddle + np.log(step / np.pi * terms.sum(axis=1)))


def two_binomials_interval(estimates: Floats, odds: Floats, *, n: int, z: float) -> tuple[Floats, Floats]:
    """Return the ends of every cell's interval, within 0 to 1; the estimate is always inside.

    Args:
        estimates: Unbiased estimates of the shares, shape (c,).
        odds: How often a device in the cell is counted for it, and any other, shape (2, c), p > q.
        n: Reports, >= 1.
        z: The normal quantile of the coverage, > 0.
    """
    p, q = odds
    counts = np.clip(np.rint(n * (q + (p - q) * estimates)), 0, n)
    # Cells of one count have one interval, and in small rounds most cells are alike.
    cells, back = np.unique(np.stack([counts, p, q]), axis=1, return_inverse=True)
    count, kinds = cells[0], cells[1:]
    limit = math.log(math.erfc(z / math.sqrt(2.0)) / 2.0) - _OUTWARD
    fewest = _fewest(count, kinds, n, limit)
    # Reports against a cell: those who are in it send them with 1 - p, the others with 1 - q.
    most = n - _fewest(n - count, 1.0 - kinds[::-1], n, limit)
    within = np.clip(estimates, 0.0, 1.0)
    back = back.reshape(-1)
    return np.minimum(fewest[back] / n, within), np.maximum(most[back] / n, within)


def _fewest(count: Floats, odds: Floats, n: int, limit: float) -> Floats:
    """Return the least number of devices in the cell at which so many reports for it are no surprise.

    Between the last number that is refuted and the first that is not, it is where the logarithm of the tail
    crosses the limit on a straight line: so all that are not refuted are inside, and ends are not jagged.

    Args:
        count: Reports for the cell, shape (c,).
        odds: Of members and of others, shape (2, c), the first larger.
        n: All reports.
        limit: The logarithm of the least probability that is no surprise.
    """

    def tail(held: Floats) -> Floats:
        return log_tail(count, held, n - held, odds)

    kept, refuted = np.full_like(count, n), np.zeros_like(count)
    above, below = np.zeros_like(count), tail(refuted)
    none = below >= limit
    kept[none] = 0.0
    while (kept - refuted > 1.0).any():
        middle = np.floor((kept + refuted) / 2.0)
        found = tail(middle)
        fine = found >= limit
        kept, above = np.where(fine, middle, kept), np.where(fine, found, above)
        refuted, below = np.where(fine, refuted, middle), np.where(fine, below, found)
    gap = np.where(none, 1.0, above - below)
    return np.asarray(np.where(none, 0.0, kept - (above - limit) / gap))
