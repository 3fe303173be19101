"""A loss distribution on a grid, made worse and never better than the exact one.

The curve delta(epsilon) of a report is replaced by the one that is linear in e^epsilon between grid points:
it lies above and agrees on the grid (Doroshenko et al. 2022, "Connect the dots"). Such a curve is again a
loss distribution, with its masses on the grid. For a profile whose worst pair changes with epsilon, the
largest of the curves of the pairs that a scan finds is used: it dominates all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.pair import PairLoss
from hubbub_lab.continuous_noise.profile import Profile

__all__ = [
    "MAX_POINTS",
    "Extent",
    "LossGrid",
    "extent",
    "grid_of",
    "loss_distribution",
    "loss_grid",
    "worst_pairs",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Extent:
    """The curve and the range that a grid is made from.

    Attributes:
        curve: delta(epsilon), for ascending epsilons of both signs.
        low: The least loss, <= 0, but for a share of the outputs that was allowed to be cut off.
        high: The largest, >= 0.
        distance: delta(0), the total variation distance of the worst pair.
    """

    curve: Callable[[Floats], Floats]
    low: float
    high: float
    distance: float


MAX_POINTS: Final = 1 << 16
"""Points of one grid, half a megabyte."""

_SCANNED: Final = 64
"""Values of epsilon at which a profile's worst pair is looked for."""


@dataclass(frozen=True, eq=False)
class LossGrid:
    """A pessimistic loss distribution on whole multiples of an interval.

    Attributes:
        interval: Grid step in nats.
        lowest: Index of the first mass: its loss is lowest * interval.
        deltas: delta(loss) at each loss, what the masses are made of, shape (n,), float64, never rising.
        masses: Probability of each loss, shape (n,), float64, >= 0.
        infinite: Probability of an infinite loss.
    """

    interval: float
    lowest: int
    deltas: Floats
    masses: Floats = field(init=False)
    infinite: float = field(init=False)

    def __post_init__(self) -> None:
        # One mass m at a point makes delta fall by f = m (1 - e^-h) in the interval h below it, by f e^-h in
        # the next, and so on:
        #
        #     delta   1 |\
        #               |  `-.
        #               |     ` - .           each piece is a line in e^epsilon
        #             0 +-----+-----+-----+
        #                   i - 1   i   i + 1
        #
        # The fall just below i gives m = f (1 + 1/g) at i, where g = e^h - 1. All lower falls would put mass
        # there too, f e^-h (1 + 1/g) = f/g: the same amount is taken away, and what is left is zero.
        falls = -np.diff(self.deltas)
        grown = math.expm1(self.interval)
        masses = np.zeros(self.deltas.size)
        masses[1:] += falls * (1.0 + 1.0 / grown)
        masses[:-1] -= falls / grown
        # Below the grid no loss is told apart: whatever mass is there is raised to its lowest point.
        masses[0] += 1.0 - self.deltas[0]
        # Rounding may leave a mass a hair below zero.
        object.__setattr__(self, "masses", np.maximum(masses, 0.0))
        object.__setattr__(self, "infinite", float(self.deltas[-1]))

    @property
    def losses(self) -> Floats:
        """The loss of each mass, shape (n,)."""
        return np.arange(self.lowest, self.lowest + self.masses.size, dtype=np.float64) * self.interval

    def coarser(self) -> LossGrid:
        """Return the curve on every second point: on multiples of twice the interval."""
        deltas, lowest = self.deltas, self.lowest
        if lowest % 2:
            # below the lowest loss, delta(e) = 1 - e^e E'[1], E' under the alternative
            below = 1.0 - math.exp(-self.interval) * (1.0 - float(deltas[0]))
            deltas, lowest = np.insert(deltas, 0, below), lowest - 1
        # The last point must be one that is kept: past it delta is the infinite mass, and no longer falls.
        if deltas.size % 2 == 0:
            deltas = np.append(deltas, deltas[-1])
        return LossGrid(2.0 * self.interval, lowest // 2, deltas[::2])


def loss_grid(part: Profile | PairLoss, interval: float, *, cut: float = 1e-18) -> LossGrid:
    """Return the loss distribution of one report on a grid, dominating the exact one.

    Args:
        part: A profile, worst over its neighbours, or one pair of values in one direction.
        interval: Grid step in nats, > 0.
        cut: Probability that may be moved to infinity above, and up to the lowest loss below.

    Raises:
        ParameterError: interval or cut is not positive.
    """
    if not (math.isfinite(interval) and interval > 0.0):
        raise ParameterError(f"the interval of a loss grid must be a positive number, got {interval!r}")
    if not 0.0 < cut < 1.0:
        raise ParameterError(f"cut must be strictly between 0 and 1, got {cut!r}")
    return grid_of(extent(part, cut), interval)


def grid_of(known: Extent, interval: float) -> LossGrid:
    """Return `loss_grid` of a part whose extent is known.

    Args:
        known: The result of `extent`.
        interval: Grid step in nats, > 0.

    Raises:
        ParameterError: The interval is too small for the losses to fit a grid.
    """
    # Outwards, so that the grid holds all of the curve; the lowest loss is raised, the highest never lowered.
    lowest = math.floor(known.low / interval)
    highest = max(math.ceil(known.high / interval), lowest + 1)
    if highest - lowest > MAX_POINTS:
        raise ParameterError(
            f"the interval of a loss grid must be >= {(known.high - known.low) / MAX_POINTS:g} here, "
            f"got {interval!r}"
        )
    deltas = known.curve(np.arange(lowest, highest + 1, dtype=np.float64) * interval)
    # delta never rises, its rounded values may.
    return LossGrid(interval, lowest, np.minimum.accumulate(deltas))


def loss_distribution(part: Profile | PairLoss, interval: float, *, cut: float = 1e-18) -> Any:  # noqa: ANN401 - the class is the other library's
    """Return the grid as a `PrivacyLossDistribution` of `dp_accounting`.

    Args:
        part: As for `loss_grid`.
        interval: Grid step in nats; all that are composed must share it.
        cut: As for `loss_grid`.

    Raises:
        ParameterError: As `loss_grid`, or dp_accounting is not installed.
    """
    try:
        # mypy finds no types in it; it is imported here because servers and devices do without it
        from dp_accounting.pld import pld_pmf  # type: ignore[import-untyped] # noqa: PLC0415 - see above
        from dp_accounting.pld import privacy_loss_distribution as pld  # noqa: PLC0415 - see above
    except ImportError:
        raise ParameterError(
            "loss_distribution needs dp_accounting, got none: install hubbub[bench]"
        ) from None
    grid = loss_grid(part, interval, cut=cut)
    pmf = pld_pmf.DensePLDPmf(grid.interval, grid.lowest, grid.masses, grid.infinite, True)
    return pld.PrivacyLossDistribution(pmf)


def extent(part: Profile | PairLoss, cut: float) -> Extent:
    """Return the curve delta(epsilon) of a part, for both signs, and the losses that hold all but `cut`."""
    if isinstance(part, PairLoss):
        low, high = part.within(cut)
        return Extent(part.deltas, min(low, 0.0), max(high, 0.0), part.delta(0.0))
    if part.translates:
        pair = worst_pairs(part, cut)[0]
        return _both_signs(pair.deltas, max(pair.within(cut)[1], 0.0), pair.delta(0.0))
    pairs, highest, excess = _ridge(part, cut)

    def largest(epsilons: Floats) -> Floats:
        worst = np.max([pair.deltas(epsilons) for pair in pairs], axis=0)
        return np.asarray(np.minimum(1.0, excess * worst))

    return _both_signs(largest, highest, float(largest(np.zeros(1))[0]))


def _both_signs(curve: Callable[[Floats], Floats], highest: float, distance: float) -> Extent:
    """Return the extent of neighbours either of whom may be the true one, from their curve at epsilons >= 0.

    delta(-e) of a pair is 1 - e^-e + e^-e delta(e) of the swapped pair, and that has the same curve.
    """

    def whole(epsilons: Floats) -> Floats:
        sizes, places = np.unique(np.abs(epsilons), return_inverse=True)
        shrunk = np.exp(np.minimum(epsilons, 0.0))
        return np.asarray(1.0 - shrunk + shrunk * curve(sizes)[places])

    return Extent(whole, -highest, highest, distance)


def worst_pairs(profile: Profile, cut: float) -> list[PairLoss]:
    """Return the pairs that are worst at some epsilon, of which a profile that translates has one.

    Args:
        profile: Of one report.
        cut: Probability beyond which no loss is looked at.
    """
    if profile.translates:
        return [profile.worst(lambda pair: 0.0)[0]]
    return list(_ridge(profile, cut)[0])


@lru_cache(maxsize=64)
def _ridge(profile: Profile, cut: float) -> tuple[tuple[PairLoss, ...], float, float]:
    """Return pairs of which some is worst at any epsilon, the largest loss, and a factor for the rest.

    Every second pair of a walk along the worst ones is left out at first, to see how much of delta the
    others miss. With all of them a quarter is left, as it falls with the square of the step; half is allowed.
    """
    top = max(0.0, profile.worst(lambda pair: pair.within(cut)[1])[1])
    walk = profile.ridge(top, _SCANNED)
    kept = tuple({pair for _, pair, _ in walk[::2]})
    missed = 0.0
    for epsilon, _, delta in walk[1::2]:
        if delta > cut:
            missed = max(missed, delta / max(pair.delta(epsilon) for pair in kept) - 1.0)
    return tuple({pair for _, pair, _ in walk}), top, 1.0 + 0.5 * missed
