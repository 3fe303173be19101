"""Score intervals for shares that hold in small rounds: skewness corrected, half a lattice step wider.

A cell's estimate is S/n, the mean over n reports of a score b whose expectation is 1 for a device in the cell
and 0 for any other. Under a candidate share f the variance V(f) and the third central moment K(f) of S follow
from the channel's own integers, so f is judged by the law that it implies itself (Wilson 1927), and not by a
variance read off the counts, which a rare cell shows as nothing at all. f is accepted if and only if

    sqrt(V) W(-z, g) - h  <=  S - n f  <=  sqrt(V) W(z, g) + h,        g = K / V^(3/2),

with W the quantile of a gamma law of skewness g by the cubes of Wilson and Hilferty (1931), and h half the
step of the lattice that S lies on; where it lies on none, h is half of what one rare report moves it. Where
kinds of devices are of opposite skew, as at large epsilon, the reach is the larger of that and of the kinds'
own, added as squares. It is an approximation and no theorem; docs/intervals.md says where its coverage was
computed.

A cell whose score takes two values has an exact interval: its count is the sum of two binomials. With c of n
reports in favour of a cell that h devices are in, c is of Bin(h, p) + Bin(n - h, q). So h is kept if and only
if neither P(C >= c) nor P(C <= c) is below half of what the interval may miss (Clopper and Pearson's rule):
no cell can miss more. No skewness stands for the whole law, which at large epsilon is two rare things of
opposite skew: own devices that say something else, and others that say this.

A tail is the integral of the generating function G over a circle of radius r > 1,

    P(C >= c) = 1/(2 pi) int G(z) z^-c / (1 - 1/z) dy,        z = r exp(iy), -pi <= y <= pi,

with r the saddle point of G(z) z^-(c - 1/2), a root of a quadratic. The integrand is then largest at y = 0,
nothing cancels, and the trapezoidal rule has a small tail to 1e-5 of itself with few points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.intervals.laws import SumLaw

Floats = NDArray[np.float64]
Accepts: TypeAlias = Callable[[Floats], NDArray[np.bool_]]

STEPS: Final = 26
"""Halvings of an interval of length one at most: ends are exact to 2^-26."""

SYMMETRIC: Final = 1e-6
"""A skewness below which the quantile is z itself, to 1e-5 at any z in use."""


def skew_quantile(z: Floats | float, skewness: Floats | float) -> Floats:
    """Return the standardised quantile of a skewed sum at a normal quantile, by Wilson and Hilferty.

    Args:
        z: Normal quantiles, of either sign.
        skewness: The sums' skewness, of either sign; above 3 |z| it is read as 3 |z|.

    Returns:
        The quantiles, of the shape that both broadcast to.
    """
    z, skewness = np.asarray(z, np.float64), np.asarray(skewness, np.float64)
    sign = np.where(skewness < 0, -1.0, 1.0)
    g = np.minimum(np.abs(skewness), 3.0 * np.abs(z))
    plain = g < SYMMETRIC
    g = np.where(plain, 1.0, g)
    base = np.maximum(1.0 + g * (sign * z) / 6.0 - g * g / 36.0, 0.0)
    return np.asarray(np.where(plain, z, sign * (2.0 / g) * (base * base * base - 1.0)))


def score_interval(
    estimates: Floats, law: SumLaw, *, n: int, z: float, steps: int = STEPS
) -> tuple[Floats, Floats]:
    """Return the ends of every cell's interval, within 0 to 1.

    A cell whose score takes two values has its exact interval (`two_binomials`). An estimate below 0 is
    read as 0 for the upper end, and one above 1 as 1 for the lower end: so no interval is empty.

    Args:
        estimates: Unbiased estimates of the shares, shape (c,); nan where hidden.
        law: The law of the cells' scores.
        n: Reports, >= 1.
        z: The normal quantile of the coverage, > 0.
        steps: Halvings by which an end is found that is not exact: it is so to 2^-steps.

    Returns:
        Lower and upper ends, shape (c,) each; nan where the estimate is.
    """
    if len(estimates) > _CELLS and getattr(law, "is_even", False):
        some, back = np.unique(estimates, return_inverse=True)
        if len(some) <= _CELLS:  # of a million texts a few thousand differ in how many reports hold them
            ends = score_interval(some, law.picked(np.arange(len(some))), n=n, z=z, steps=steps)  # type: ignore[attr-defined]  # an even law has it
            return ends[0][back], ends[1][back]
    odds = law.odds
    exact = np.zeros(len(estimates), np.bool_)
    if odds is not None:
        with np.errstate(invalid="ignore"):
            exact = ((odds > 0.0) & (odds < 1.0)).all(axis=0) & ~np.isnan(estimates)
    low, high = np.full((2, len(estimates)), np.nan)
    if not exact.all():
        low, high = _by_moments(estimates, law, n=n, z=z, steps=steps)
    if odds is not None:
        low[exact], high[exact] = two_binomials_interval(estimates[exact], odds[:, exact], n=n, z=z)
    return low, high


def _by_moments(estimates: Floats, law: SumLaw, *, n: int, z: float, steps: int) -> tuple[Floats, Floats]:
    """Return `score_interval` of laws by their moments alone."""
    within = np.clip(estimates, 0.0, 1.0)
    accepts = partial(is_accepted, within, law=law, n=n)
    with np.errstate(invalid="ignore"):
        low = _boundary(within, 0.0, partial(accepts, z=z), steps)
        high = _boundary(within, 1.0, partial(accepts, z=-z), steps)
    hidden = np.isnan(estimates)
    return np.where(hidden, np.nan, low), np.where(hidden, np.nan, high)


def is_accepted(estimates: Floats, shares: Floats, law: SumLaw, *, n: int, z: float) -> NDArray[np.bool_]:
    """Return whether the estimates, within 0 to 1, are within the reach of shares that lie below, shape (c,).

    With z < 0 it is the reach downward, of shares above.
    """
    variances, thirds = law.kinds(shares)
    reach = reach_of_kinds(variances, thirds, z, getattr(law, "most_skew", np.inf))
    spare = half_jump(variances, thirds, law.step) + law.step / 2.0
    off = n * (estimates - shares)
    return np.asarray(off <= reach + spare if z > 0 else off >= reach - spare)


def _reach(variance: Floats, third: Floats, z: float, most_skew: float) -> Floats:
    """Return how far a sum of these moments reaches at a normal quantile."""
    side = 1.0 if z > 0 else -1.0
    variance = np.maximum(variance, 0.0)
    root = np.sqrt(variance)
    skewness = np.divide(third, variance * root, out=np.zeros_like(root), where=variance > 0)
    reach = root * skew_quantile(z, skewness)
    return np.asarray(
        reach if most_skew == np.inf else np.where(side * skewness < -most_skew, z * root, reach)
    )


def half_jump(variances: Floats, thirds: Floats, step: Floats) -> Floats:
    """Return half of what one rare report moves a sum on no lattice, shape (c,); 0 where it is on one.

    A sum of rare jumps of size a has the variance a^2 and the third moment a^3 times their number.
    """
    if (step > 0.0).all():
        return np.zeros_like(step)
    jumps = np.divide(np.abs(thirds), variances, out=np.zeros_like(thirds), where=variances > 0.0)
    return np.where(step > 0.0, 0.0, jumps.max(axis=0) / 2.0)


def reach_of_kinds(variances: Floats, thirds: Floats, z: float, most_skew: float) -> Floats:
    """Return how far a sum of kinds of devices reaches: the larger of two where kinds are of opposite skew.

    The whole then has little skew, and yet each end is as far as one of the kinds makes it.

    Args:
        variances: Shape (kinds, c).
        thirds: Third central moments, of the same shape.
        z: Normal quantile.
        most_skew: See `MixedLaw.most_skew`.

    Returns:
        Shape (c,), of the sign of z.
    """
    whole = _reach(variances.sum(axis=0), thirds.sum(axis=0), z, most_skew)
    if not ((thirds > 0.0).any(axis=0) & (thirds < 0.0).any(axis=0)).any():
        return whole
    # A kind without skew has a third moment of rounding alone, whose sign says nothing.
    least = SYMMETRIC * np.maximum(variances, 0.0) ** 1.5
    mixed = (thirds > least).any(axis=0) & (thirds < -least).any(axis=0)
    apart = np.sqrt(np.square(_reach(variances, thirds, z, most_skew)).sum(axis=0))
    side = 1.0 if z > 0 else -1.0
    return np.asarray(np.where(mixed, side * np.maximum(apart, side * whole), whole))


def _boundary(accepted: Floats, bound: float, accepts: Accepts, steps: int) -> Floats:
    """Return the farthest accepted share from `accepted` towards the bound, by bisection."""
    outside = np.full_like(accepted, bound)
    inside = np.where(accepts(outside), bound, accepted)
    for _ in range(steps):
        middle = (inside + outside) / 2.0
        kept = accepts(middle)
        inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return np.asarray(inside)


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
