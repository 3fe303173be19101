"""Certificates of interval ends: an end is accepted by the rule of intervals, and nothing beyond it is.

Nothing here searches for an end. The rule (docs/intervals.md) is asked at the end that a release states,
moved inward by SLACK, and where it has to refuse, moved outward. It is written from that page, and reads
none of the estimator's code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

SLACK: Final = 2.0**-40
"""The distance by which an end is moved inward before the rule is asked: float64 rounds less than that."""

WIDTH: Final = 2.0**-26
"""The distance from an end at which the rule must refuse: ends are halved down to it."""

TAIL_SLACK: Final = 3e-5
"""The distance of an exact tail's logarithm from the limit at most: the method gives away 1e-5 of a tail."""

GIVEN_AWAY: Final = 1e-5
"""The part of an exact tail that ends of the method lie outward by."""

_SYMMETRIC: Final = 1e-6
"""The skewness below which a sum is read as having none."""

_POINTS: Final = 96
"""Points of a half circle in a tail: seven times those of the method, so that this error is no matter."""

_ROWS: Final = 2**13
"""Tails computed at a time."""


@dataclass(frozen=True, eq=False)
class CellsLaw:
    """The law of the scores of c cells, as two or three kinds of devices and what chance adds to each.

    Attributes:
        n: Reports.
        own: Variance and third central moment of one score of a device in the cell, shape (2, c).
        far: The same of a device elsewhere, shape (2, c).
        step: What one report more moves the sum by where it lies on a lattice, else 0, shape (c,).
        odds: How often a device in the cell is counted for it, and any other, shape (2, c); nan where more
            than a count is needed.
        near: As `own`, of a device of the cell's category but not in the cell; None where there is none.
        around: The estimated share of the cell's category, shape (c,), with `near`.
        observed: The mean squared score of the reports, shape (c,); -inf where it is not asked.
        most_skew: The skewness beyond which a short tail is read as normal.
    """

    n: int
    own: Floats
    far: Floats
    step: Floats
    odds: Floats
    near: Floats | None = None
    around: Floats | None = None
    observed: Floats | None = None
    most_skew: float = math.inf

    def parts(self, share: Floats) -> tuple[Floats, Floats]:
        """Return variances and third moments of the kinds of devices at a share, shape (kinds, c) each."""
        held = [share, 1.0 - share]
        moments = [self.own, self.far]
        if self.near is not None and self.around is not None:
            beside = np.minimum(np.maximum(self.around, share), 1.0) - share
            held, moments = [share, beside, 1.0 - share - beside], [self.own, self.near, self.far]
        variances, thirds = (
            self.n * np.array([part * each[row] for part, each in zip(held, moments, strict=True)])
            for row in (0, 1)
        )
        if self.observed is not None:
            more = self.n * (self.observed - share) - variances.sum(axis=0)
            variances[-1] = variances[-1] + np.maximum(more, 0.0)
        return variances, thirds

    def errors(self, share: Floats) -> Floats:
        """Return the standard errors of the cells at a share, shape (c,)."""
        variances, _ = self.parts(share)
        return np.asarray(np.sqrt(np.maximum(variances.sum(axis=0), 0.0)) / self.n)

    def of_crowd(self, share: Floats, drawn: float) -> tuple[Floats, Floats]:
        """Return `parts` and what the draw of the devices counted adds as one more kind."""
        variances, thirds = self.parts(share)
        luck = drawn * self.n * share * (1.0 - share)
        tilt = share * (self.n * self.own[0] - variances.sum(axis=0))
        skew = luck * (1.0 - 2.0 * share) * (2.0 * drawn - 1.0) + 3.0 * drawn * tilt
        return np.vstack([variances, luck]), np.vstack([thirds, skew])

    @property
    def is_exact(self) -> Flags:
        """True for cells that have the interval of a count, shape (c,)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(((self.odds > 0.0) & (self.odds < 1.0)).all(axis=0))


def wrong_ends(
    estimates: Floats, low: Floats, high: Floats, law: CellsLaw, *, z: float, drawn: float | None = None
) -> Flags:
    """Return which intervals are not those of the rule, shape (c,).

    Args:
        estimates: Unbiased estimates, shape (c,).
        low: The lower ends stated, shape (c,).
        high: The upper ends, shape (c,).
        law: The law of the cells' scores.
        z: The normal quantile of the coverage, > 0.
        drawn: None for intervals of the devices counted; of everybody, the part of the draw left to chance.
    """
    within = np.clip(estimates, 0.0, 1.0)
    exact = law.is_exact if drawn is None else np.zeros(len(estimates), np.bool_)
    bad = ~((low >= 0.0) & (low <= within + SLACK) & (within <= high + SLACK) & (high <= 1.0))
    for ends, side in ((low, 1.0), (high, -1.0)):
        by_moments = _wrong_by_moments(within, ends, law, z=side * z, drawn=drawn)
        bad |= np.where(exact, False, by_moments)
    if exact.any():
        limit = math.log(math.erfc(z / math.sqrt(2.0)) / 2.0) - GIVEN_AWAY
        p, q = law.odds[:, exact]
        counts = np.clip(np.rint(law.n * (q + (p - q) * estimates[exact])), 0.0, law.n)
        few = _wrong_counts(np.stack([counts, p, q, low[exact], within[exact]]), law.n, limit)
        others = np.stack([law.n - counts, 1.0 - q, 1.0 - p, 1.0 - high[exact], 1.0 - within[exact]])
        many = _wrong_counts(others, law.n, limit)
        bad[exact] |= few | many
    return bad


def _wrong_by_moments(within: Floats, ends: Floats, law: CellsLaw, *, z: float, drawn: float | None) -> Flags:
    """Return which lower ends, or upper ones where z < 0, are refused or have something accepted beyond."""
    side, bound = (1.0, 0.0) if z > 0 else (-1.0, 1.0)

    def accepts(share: Floats) -> Flags:
        variances, thirds = law.parts(share) if drawn is None else law.of_crowd(share, drawn)
        jumps = np.abs(thirds) / np.where(variances > 0.0, variances, np.inf)
        spare = np.where(law.step > 0.0, law.step, jumps.max(axis=0)) / 2.0
        reach = _reach(variances, thirds, abs(z), side, law.most_skew)
        return np.asarray(side * law.n * (within - share) <= reach + spare)

    inward = np.clip(ends + side * SLACK, 0.0, 1.0)
    inward = np.minimum(inward, within) if side > 0 else np.maximum(inward, within)
    outward = np.clip(ends - side * (WIDTH + SLACK), 0.0, 1.0)
    refused = ~accepts(inward) & (np.abs(within - ends) > SLACK)
    more = accepts(outward) & (np.abs(ends - bound) > WIDTH + SLACK)
    return np.asarray(refused | more | (accepts(np.full_like(ends, bound)) & (ends != bound)))


def _reach(variances: Floats, thirds: Floats, z: float, side: float, most_skew: float) -> Floats:
    """Return how far above its mean (side 1), or below it (-1), a sum of kinds of devices reaches, >= 0."""
    whole = _quantile(variances.sum(axis=0), side * thirds.sum(axis=0), z, most_skew)
    apart = np.sqrt(
        sum(_quantile(v, side * k, z, most_skew) ** 2 for v, k in zip(variances, thirds, strict=True))
    )
    # Beyond rounding: a kind of skewness 0 is of neither sign.
    least = _SYMMETRIC * np.maximum(variances, 0.0) ** 1.5
    mixed = (thirds > least).any(axis=0) & (thirds < -least).any(axis=0)
    return np.where(mixed, np.maximum(apart, whole), whole)


def _quantile(variance: Floats, third: Floats, z: float, most_skew: float) -> Floats:
    """Return the upper quantile at z of a sum about its mean: a gamma law's, by Wilson and Hilferty."""
    root = np.sqrt(np.maximum(variance, 0.0))
    skew = third / np.where(root > 0.0, np.maximum(variance, 0.0) * root, np.inf)
    size = np.minimum(np.abs(skew), 3.0 * z)
    g = np.where(size < _SYMMETRIC, 1.0, size) * np.where(skew < 0.0, -1.0, 1.0)
    base = np.maximum(1.0 + g * z / 6.0 - g * g / 36.0, 0.0)
    skewed = np.where(size < _SYMMETRIC, z, 2.0 / g * (base**3 - 1.0))
    return np.asarray(root * np.where(skew < -most_skew, z, skewed))


def _wrong_counts(cells: Floats, n: int, limit: float) -> Flags:
    """Return which lower ends are not where a tail's logarithm crosses its limit, shape (c,).

    Args:
        cells: Reports for the cell; how often its own devices are counted for it, and any other; the end and
            the estimate, as shares within 0 to 1: shape (5, c).
        n: All reports.
        limit: The logarithm of the least probability that is no surprise.
    """
    columns, back = np.unique(cells, axis=1, return_inverse=True)
    count, first, second, end, estimate = columns
    devices = end * n
    # Ends and counts are floats: a whole number of devices is read as such.
    devices = np.where(np.abs(devices - np.rint(devices)) <= SLACK * n, np.rint(devices), devices)
    below = np.minimum(np.floor(devices), n - 1.0)
    part = devices - below
    tails = [log_tail(count, held, n, first, second) for held in (below, below + 1.0)]
    # The search of the method never asks at n: there everything is accepted.
    tails[1] = np.where(below + 1.0 >= n, 0.0, tails[1])
    found = tails[0] + part * (tails[1] - tails[0])
    off = np.abs(found - limit) > TAIL_SLACK
    at_zero = (devices == 0.0) & (tails[0] >= limit - TAIL_SLACK)
    # The estimate is inside always; and one beyond 0 has no end below it.
    at_estimate = (np.abs(end - estimate) <= SLACK) & (found <= limit + TAIL_SLACK)
    return np.asarray((off & ~at_zero & ~at_estimate)[back.reshape(-1)])


def log_tail(counts: Floats, held: Floats, n: int, p: Floats, q: Floats) -> Floats:
    """Return log P(Bin(held, p) + Bin(n - held, q) >= counts); 0 up to half a report above the mean.

    It is the integral of the generating function over a circle through the saddle point.

    Args:
        counts: Whole numbers, shape (c,).
        held: Whole numbers of devices in the cell, shape (c,).
        n: All devices.
        p: Probabilities, strictly between 0 and 1, shape (c,).
        q: The same.
    """
    mean = held * p + (n - held) * q
    far = np.flatnonzero(counts - 0.5 > mean)
    found = np.zeros(len(counts))
    for start in range(0, len(far), _ROWS):
        some = far[start : start + _ROWS]
        found[some] = _log_tail(counts[some], held[some], n - held[some], p[some], q[some])
    return found


def _log_tail(count: Floats, held: Floats, other: Floats, p: Floats, q: Floats) -> Floats:
    """Return `log_tail` of counts above the mean, by the trapezoid rule on a circle of radius u > 1.

    With g(x) = (1 - p + p x)^held (1 - q + q x)^other, the generating function of the count, and N = count,

        P(count or more) = g(u) u^-N / pi  integral over a from 0 to pi of
                           Re( g(u e^(ia)) / g(u) e^(-iNa) / (1 - 1 / (u e^(ia))) ) da.

    The code's `turn` is e^(ia), `peak` is ln g(u), and `tilted` are p u / (1 - p + p u) and the same of q:
    the probabilities of the tilted law, whose mean is `aim`. Angles end at 12 / width, width that law's
    standard deviation, beyond which the integrand is negligible.
    """
    spread = np.sqrt(held * p * (1.0 - p) + other * q * (1.0 - q))
    # The saddle point of g(u) u^-(count - 1/2), the half from 1 - 1/u, has a tilted mean of count - 1/2. The
    # aim stays 0.75 spreads above the mean, off the pole at u = 1, and below the devices, which no u reaches.
    aim = np.maximum(count - 0.5, held * p + other * q + 0.75 * spread)
    aim = np.minimum(aim, held + other - 0.25)
    # The radius at which the tilted mean is the aim, by halving for its logarithm.
    low, high = np.zeros_like(aim), np.full_like(aim, 800.0)
    for _ in range(60):
        middle = (low + high) / 2.0
        is_low = _tilted_mean(middle, held, other, p, q) < aim
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    logarithm = (low + high) / 2.0
    u = np.exp(logarithm)
    tilted = [odds * u / (1.0 - odds + odds * u) for odds in (p, q)]
    width = np.sqrt(held * tilted[0] * (1 - tilted[0]) + other * tilted[1] * (1 - tilted[1]))
    step = np.minimum(np.pi, 12.0 / width) / _POINTS
    angles = step[:, None] * np.arange(_POINTS + 1)
    turn = np.exp(1j * angles)
    power = -1j * count[:, None] * angles
    for devices, share in zip((held, other), tilted, strict=True):
        power = power + devices[:, None] * np.log1p(share[:, None] * (turn - 1.0))
    terms = (np.exp(power) / (1.0 - 1.0 / (u[:, None] * turn))).real
    total = terms.sum(axis=1) - (terms[:, 0] + terms[:, -1]) / 2.0
    peak = held * np.log1p(p * np.expm1(logarithm)) + other * np.log1p(q * np.expm1(logarithm))
    return np.asarray(peak - count * logarithm + np.log(step / np.pi * total))


def _tilted_mean(logarithm: Floats, held: Floats, other: Floats, p: Floats, q: Floats) -> Floats:
    # In the form that does not overflow: p u / (1 - p + p u).
    falling = np.exp(-logarithm)
    return np.asarray(held * p / (p + (1.0 - p) * falling) + other * q / (q + (1.0 - q) * falling))


def plausible(estimates: Floats) -> list[Floats]:
    """Return the two populations to take the worst of, shape (K,) each: see docs/intervals.md."""
    view = on_simplex(np.nan_to_num(estimates, nan=0.0))
    return [trust * view + (1.0 - trust) / len(view) for trust in (0.5, 0.9)]


def on_simplex(estimates: Floats, total: float = 1.0) -> Floats:
    """Return the nearest vector that is non-negative and of a sum, by halving for the shift."""
    low, high = float(estimates.min()) - total, float(estimates.max())
    for _ in range(200):
        shift = (low + high) / 2.0
        if not low < shift < high:
            break
        if np.maximum(estimates - shift, 0.0).sum() > total:
            low = shift
        else:
            high = shift
    above = estimates > high
    if above.any():
        high = (float(estimates[above].sum()) - total) / int(above.sum())
    return np.maximum(estimates - high, 0.0)


def is_shifted(estimates: Floats, cells: Floats, total: float) -> bool:
    """Return whether cells are raw estimates less one constant, cut at zero, and of a total.

    These are the conditions of Karush, Kuhn and Tucker for the nearest such vector: of one group, there is
    one constant for all cells above zero, and cells at zero have raw estimates of at most that.
    """
    slack = SLACK * max(1.0, float(np.abs(estimates).max()))
    positive = cells > 0.0
    if (cells < 0.0).any() or abs(math.fsum(cells) - total) > len(cells) * slack:
        return False
    if not positive.any():
        return True
    shifts = (estimates - cells)[positive]
    beyond = estimates[~positive] > shifts.max() + slack
    return not (float(np.ptp(shifts)) > slack or beyond.any())
