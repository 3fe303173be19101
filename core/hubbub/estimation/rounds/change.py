"""The change between two estimates, with its interval from the two intervals (Zou and Donner 2008).

Where g and f are the later and the earlier share, with intervals [l_g, u_g] and [l_f, u_f] and correlation r,

    low  = g - f - sqrt((g - l_g)^2 + (u_f - f)^2 - 2 r (g - l_g)(u_f - f)),
    high = g - f + sqrt((u_g - g)^2 + (f - l_f)^2 - 2 r (u_g - g)(f - l_f)).

So the change of a rare cell is as skewed as the two shares are. Estimates beyond what is possible are read as
its ends here, as the intervals read them; the raw difference stays beside it.

Fresh answers make rounds independent, r = 0. A memoised answer is the very same symbol in both rounds: with m
devices in both, of n and n', the noise of those cancels, and r = m/sqrt(n n').
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]
Answers = Literal["fresh", "memoised"]

_SLACK: Final = 1e-12


@dataclass(frozen=True, eq=False)
class Ends:
    """Some estimates with their intervals, shape (c,) each; nan where hidden."""

    estimate: Floats
    low: Floats
    high: Floats


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


def correlation(before: int, after: int, *, answers: Answers, shared: int = 0) -> float:
    """Return the correlation of two rounds' errors.

    Args:
        before: Reports of the one round, >= 1.
        after: Reports of the other, >= 1.
        answers: "memoised" where a device sends its first answer again, else "fresh".
        shared: Devices that are in both, at least.

    Raises:
        ParameterError: If numbers are out of range.
    """
    if min(before, after) < 1 or not 0 <= shared <= min(before, after):
        raise ParameterError(
            f"shared must be within 0 to the devices of either round, got {shared} of {before} and {after}"
        )
    return 0.0 if answers == "fresh" else shared / math.sqrt(before * after)


def difference(before: Ends, after: Ends, *, correlation: float = 0.0) -> Difference:
    """Return the change between two rounds, with intervals of the coverage of those given.

    Args:
        before: The earlier estimates.
        after: The later ones, of the same cells.
        correlation: Of their errors, 0 to 1.

    Raises:
        ParameterError: If shapes differ or the correlation is out of range.
    """
    if before.estimate.shape != after.estimate.shape:
        raise ParameterError(
            f"both rounds must have the same cells, got {before.estimate.shape} and {after.estimate.shape}"
        )
    if not 0.0 <= correlation <= 1.0:
        raise ParameterError(f"correlation must be within 0 to 1, got {correlation!r}")
    f, g = (np.clip(each.estimate, each.low, each.high) for each in (before, after))

    def arm(one: Floats, other: Floats) -> Floats:
        return np.sqrt(np.maximum(one * one + other * other - 2.0 * correlation * one * other, 0.0))

    return Difference(
        after.estimate - before.estimate,
        g - f - arm(g - after.low, before.high - f),
        g - f + arm(after.high - g, f - before.low),
    )


def effective_sample_size(shares: ArrayLike, errors: ArrayLike, *, squares: float | None = None) -> float:
    """Return how many devices without any noise would know the shares as well, all cells together.

    A sample of n has a total squared error of (1 - sum of squared shares)/n.

    Args:
        shares: A distribution, such as the consistent view, shape (K,).
        errors: Standard errors of the estimates, shape (K,), > 0.
        squares: The sum of the squared shares, where they are noisy and an unbiased one is at hand; read as 0
            or 1 beyond.

    Raises:
        ParameterError: If an error is not above 0.
    """
    f, sigma = np.asarray(shares, np.float64), np.asarray(errors, np.float64)
    if not (sigma > 0.0).all():
        raise ParameterError(f"errors must be above 0, got {sigma.min()}")
    known = float((f * f).sum()) if squares is None else min(max(squares, 0.0), 1.0)
    return (1.0 - known) / float((sigma * sigma).sum())
