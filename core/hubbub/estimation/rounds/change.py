"""The change between two estimates, with its interval from the two intervals (Zou and Donner 2008).

Where g and f are the later and the earlier share, with intervals [l_g, u_g] and [l_f, u_f] and correlation r,

    low  = g - f - sqrt((g - l_g)^2 + (u_f - f)^2 - 2 r (g - l_g)(u_f - f)),
    high = g - f + sqrt((u_g - g)^2 + (f - l_f)^2 - 2 r (u_g - g)(f - l_f)).

So the change of a rare cell is as skewed as the two shares are. Estimates beyond what is possible are read as
its ends here, as the intervals read them; the raw difference stays beside it. An interval that is cut at what
is possible ends nearer than its error reaches, and squares of so short a side would make too little of it: a
side is at least a normal quantile of standard errors.

Fresh answers make rounds independent, r = 0. A memoised answer is the very same symbol in both rounds, and
the noise of the m devices in both cancels. It is m/sqrt(n n') of the noise only if those who join or leave
are like those who stay: a cell's noise may be mostly that of the devices in it. With v the variance of a
device in the cell, w that of any other and a the shared devices in it, r = (a v + (m - a) w) / sqrt(V V'),
and the a is taken that makes it least (`correlation`). The noise of two means may even be opposite, where
devices lie between them (`mean_correlation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

_SLACK: Final = 1e-12

_LEAST_CELLS: Final = 3
"""Fewer cells are always on a line."""

_ON_A_LINE: Final = 1e-9
"""Variances this near to a line, relative to the largest, are on it: errors are released unrounded."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Some estimates with their intervals, shape (c,) each; nan where hidden.

    Attributes:
        estimate: The estimates.
        low: Lower ends.
        high: Upper ends.
        reach: Standard errors times the normal quantile of the coverage, in which ends that are cut at what
            is possible are read.
    """

    estimate: Floats
    low: Floats
    high: Floats
    reach: Floats


@dataclass(frozen=True, eq=False)
class Difference:
    """The later estimates less the earlier ones.

    Attributes:
        estimate: The raw difference, unbiased, shape (c,).
        low: Lower ends, shape (c,).
        high: Upper ends, shape (c,).
    """

    estimate: Floats
    low: Floats
    high: Floats

    @property
    def differs(self) -> NDArray[np.bool_]:
        """The cells whose interval leaves out 0, shape (c,)."""
        return np.asarray((self.low > _SLACK) | (self.high < -_SLACK))


def shared_devices(before: int, after: int, *, asked: int | None) -> int:
    """Return how many devices are in both rounds, at least.

    A device is counted once a round, so of `asked` devices no fewer than these are in both. Where nobody
    states how many were asked, there may be none; too low a number only makes intervals wider.

    Args:
        before: Reports of the one round, >= 1.
        after: Reports of the other.
        asked: Devices that the survey was offered to; None if unknown.

    Raises:
        ParameterError: If fewer were asked than answered.
    """
    if asked is None:
        return 0
    if asked < max(before, after):
        raise ParameterError(f"asked must be at least the devices of a round, got {asked}")
    return max(0, before + after - asked)


def device_variances(rounds: Sequence[tuple[Ends, Floats, int]]) -> tuple[float, float] | None:
    """Return the variance of the score of a device in a cell, and of one elsewhere, as released errors tell.

    Where all cells have one law and no device but those in the cell differs from the rest, n times a squared
    error is on a straight line in the share: its ends are the two. None where it is not, or too few cells are
    known to tell: two cells are each other's mirror, and always on one.

    Args:
        rounds: Of each the estimates with intervals, their standard errors, and its reports.
    """
    shares = np.concatenate([np.clip(ends.estimate, 0.0, 1.0) for ends, _, _ in rounds])
    spread = np.concatenate([n * np.square(errors) for _, errors, n in rounds])
    known = np.isfinite(shares) & np.isfinite(spread)
    shares, spread = shares[known], spread[known]
    if len(rounds[0][1]) < _LEAST_CELLS or len(np.unique(shares)) < _LEAST_CELLS:
        return None
    first, last = int(shares.argmin()), int(shares.argmax())
    slope = (spread[last] - spread[first]) / (shares[last] - shares[first])
    far = float(spread[first] - slope * shares[first])
    own = far + float(slope)
    if np.abs(far + slope * shares - spread).max() > _ON_A_LINE * spread.max() or min(own, far) < 0.0:
        return None
    return own, far


def correlation(
    before: Ends,
    after: Ends,
    *,
    devices: tuple[int, int],
    shared: int,
    variances: tuple[float, float] | None,
) -> Floats:
    """Return the least correlation of two rounds' errors that both rounds allow, by cell, shape (c,).

    Devices in both rounds that sent one memoised answer to both have the same noise in both. They may be
    unlike those who left and those who joined: then of the shared devices as few are in the cell as can be
    where its own are the noisier, or as many where the others are.

    Args:
        before: The earlier estimates.
        after: The later ones.
        devices: Reports of both rounds, >= 1.
        shared: Devices that are in both with one memoised answer, at least; 0 where answers are fresh.
        variances: See `device_variances`; None where they are not known: then nothing is taken off, unless
            all devices are shared.

    Raises:
        ParameterError: If numbers are out of range.
    """
    if min(devices) < 1 or not 0 <= shared <= min(devices):
        raise ParameterError(
            f"shared must be within 0 to the devices of either round, got {shared} of {devices[0]} and "
            f"{devices[1]}"
        )
    cells = before.estimate.shape
    if shared == max(devices):
        return np.ones(cells)
    if variances is None or shared == 0:
        return np.zeros(cells)
    own, far = variances
    each = (before, after)
    if own >= far:
        least = [n * ends.low - (n - shared) for ends, n in zip(each, devices, strict=True)]
        inside = np.maximum(np.maximum(*least), 0.0)
    else:
        inside = np.minimum(*(n * ends.high for ends, n in zip(each, devices, strict=True)))
    inside = np.clip(inside, 0.0, shared)
    common = inside * own + (shared - inside) * far
    whole = [
        n * (far + (own - far) * np.clip(ends.estimate, ends.low, ends.high))
        for ends, n in zip(each, devices, strict=True)
    ]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = common / np.sqrt(whole[0] * whole[1])
    return np.where(np.isfinite(found), np.clip(found, 0.0, 1.0), 0.0)


def mean_correlation(
    change: float, *, errors: tuple[float, float], answered: tuple[float, float], noise: tuple[float, float]
) -> float:
    """Return the least correlation of two means' errors where devices may have sent one answer to both.

    A device's part in the error of a mean m is (Y - m B)/(n A), with Y and B its unbiased number, and whether
    it has one. In two rounds with means m and m + d it has covariance Var(Z) - d Cov(Z, B), with Z = Y - m B:
    by Cauchy and Schwarz at least -d^2 Var(B)/4, and of the sum of B no more is known than its error in A.

    Args:
        change: d, the later mean less the earlier.
        errors: Standard errors of the two means, > 0.
        answered: A of both rounds, the shares of devices with a value.
        noise: Standard errors of these shares.

    Returns:
        -1 to 0; -1 where nobody may have a value.
    """
    scale = 4.0 * math.prod(answered) * math.prod(errors)
    if not (min(answered) > 0.0 and scale > 0.0):
        return -1.0
    found = -(change**2) * math.prod(noise) / scale
    return max(found, -1.0) if math.isfinite(found) else -1.0


def difference(before: Ends, after: Ends, *, correlation: float | Floats = 0.0) -> Difference:
    """Return the change between two rounds, with intervals of the coverage of those given.

    Args:
        before: The earlier estimates.
        after: The later ones, of the same cells.
        correlation: Of their errors, -1 to 1; of all cells, or of each, shape (c,).

    Raises:
        ParameterError: If shapes differ or the correlation is out of range.
    """
    if before.estimate.shape != after.estimate.shape:
        raise ParameterError(
            f"both rounds must have the same cells, got {before.estimate.shape} and {after.estimate.shape}"
        )
    if not np.max(np.abs(correlation), initial=0.0) <= 1.0:
        raise ParameterError(f"correlation must be within -1 to 1, got {correlation!r}")
    f, g = (np.clip(each.estimate, each.low, each.high) for each in (before, after))

    def arm(one: Floats, other: Floats) -> Floats:
        one, other = np.fmax(one, after.reach), np.fmax(other, before.reach)
        known = np.isfinite(one) & np.isfinite(other)
        one, other = np.where(known, one, 0.0), np.where(known, other, 0.0)
        square = one * one + other * other - 2.0 * correlation * one * other
        return np.where(known, np.sqrt(np.maximum(square, 0.0)), np.inf)

    return Difference(
        after.estimate - before.estimate,
        g - f - arm(g - after.low, before.high - f),
        g - f + arm(after.high - g, f - before.low),
    )


def effective_sample_size(shares: ArrayLike, errors: ArrayLike, *, total: float = 1.0) -> float | None:
    """Return how many devices without any noise would know the shares as well, all cells together.

    A share f of a sample of n has a variance of f (1 - f)/n, so n = (T - sum of f^2)/(sum of sigma^2) with T
    the sum of all f. Squares of noisy shares are too large by sigma^2, which is taken off.

    Args:
        shares: Estimates, shape (c,), unbiased; nan where hidden.
        errors: Their standard errors, shape (c,); cells without one above 0 are left out.
        total: T, what the shares add up to.

    Returns:
        None where fewer than two cells are known, or where it is below one device.
    """
    f, sigma = np.asarray(shares, np.float64), np.asarray(errors, np.float64)
    known = np.isfinite(f) & np.isfinite(sigma) & (sigma > 0.0)
    if known.sum() < 2:
        return None
    noise = float(np.square(sigma[known]).sum())
    squares = float(np.square(f[known]).sum()) - noise
    size = (total - min(max(squares, 0.0), total)) / noise
    return size if size >= 1.0 else None
