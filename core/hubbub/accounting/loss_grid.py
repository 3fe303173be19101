"""A loss distribution on a grid, made worse and never better than the exact one.

The curve delta(epsilon) of a report is replaced by the one that is linear in e^epsilon between grid points:
it lies above and agrees on the grid (Doroshenko et al. 2022, "Connect the dots"). Such a curve is again a
loss distribution, with its masses on the grid. For a profile whose worst pair changes with epsilon, the
largest of the curves of the pairs that a scan finds is used: it dominates all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.pair import PairLoss
from hubbub.accounting.profile import MAX_EPSILON, Profile
from hubbub.errors import ParameterError

__all__ = ["MAX_POINTS", "LossGrid", "extent", "loss_distribution", "loss_grid", "worst_pairs"]

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
        masses: Probability of each loss, shape (n,), float64, >= 0.
        infinite: Probability of an infinite loss.
    """

    interval: float
    lowest: int
    masses: NDArray[np.float64]
    infinite: float

    @property
    def losses(self) -> NDArray[np.float64]:
        """The loss of each mass, shape (n,)."""
        return np.arange(self.lowest, self.lowest + self.masses.size, dtype=np.float64) * self.interval

    @property
    def deviation(self) -> float:
        """Standard deviation of the finite losses."""
        total = float(self.masses.sum())
        if total <= 0.0:
            return 0.0
        share = self.masses / total
        mean = float(share @ self.losses)
        return math.sqrt(float(share @ (self.losses - mean) ** 2))


def loss_grid(part: Profile | PairLoss, interval: float, *, cut: float = 1e-18) -> LossGrid:
    """The loss distribution of one report on a grid, dominating the exact one.

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
    curve, low, high = extent(part, cut)
    lowest, highest = (
        math.floor(low / interval),
        max(math.ceil(high / interval), math.floor(low / interval) + 1),
    )
    if highest - lowest > MAX_POINTS:
        raise ParameterError(
            f"the interval of a loss grid must be >= {(high - low) / MAX_POINTS:g} here, got {interval!r}"
        )
    deltas = np.array([curve(i * interval) for i in range(lowest, highest + 1)])
    deltas = np.minimum.accumulate(np.clip(deltas, 0.0, 1.0))
    falls = -np.diff(deltas)
    grown = math.expm1(interval)
    masses = np.zeros(deltas.size)
    # a fall of delta between two grid points is a line in e^epsilon, that is, mass on the two points
    masses[1:] += falls * (1.0 + 1.0 / grown)
    masses[:-1] -= falls / grown
    masses[0] += 1.0 - deltas[0]
    return LossGrid(interval, lowest, np.maximum(masses, 0.0), float(deltas[-1]))


def loss_distribution(part: Profile | PairLoss, interval: float, *, cut: float = 1e-18) -> Any:  # noqa: ANN401 - the class is the other library's
    """The same grid as a `PrivacyLossDistribution` of `dp_accounting`, to be composed and asked there.

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


@lru_cache(maxsize=256)
def extent(part: Profile | PairLoss, cut: float) -> tuple[Callable[[float], float], float, float]:
    """The curve delta(epsilon) of a part, for both signs, and the losses that hold all but `cut` of it."""
    if isinstance(part, Profile) and part.translates:
        return extent(part.worst(lambda pair: 0.0)[0], cut)
    if isinstance(part, PairLoss):
        return part.delta, *_bounds(part, cut)
    pairs, highest, excess = _ridge(part, cut)

    def curve(epsilon: float) -> float:
        # neighbours are symmetric, and delta(-e) of a pair is 1 - e^-e + e^-e delta(e) of the swapped pair
        size = abs(epsilon)
        above = min(1.0, excess * max(pair.delta(size) for pair in pairs))
        return above if epsilon >= 0.0 else -math.expm1(-size) + math.exp(-size) * above

    return curve, -highest, highest


def worst_pairs(profile: Profile, cut: float) -> list[PairLoss]:
    """The pairs that are worst at some epsilon, of which a profile that translates has one.

    Args:
        profile: Of one report.
        cut: Probability beyond which no loss is looked at.
    """
    if profile.translates:
        return [profile.worst(lambda pair: 0.0)[0]]
    return list(_ridge(profile, cut)[0])


@lru_cache(maxsize=64)
def _ridge(profile: Profile, cut: float) -> tuple[tuple[PairLoss, ...], float, float]:
    """Pairs of which some is worst at any epsilon, the largest loss, and a factor >= 1 for what they miss.

    Every second pair of a walk along the worst ones is left out at first, to see how much of delta the
    others miss. With all of them a quarter is left, as it falls with the square of the step; half is allowed.
    """
    top = profile.worst(lambda pair: _bounds(pair, cut)[1])[1]
    walk = profile.ridge(top, _SCANNED)
    kept = tuple({pair for _, pair, _ in walk[::2]})
    missed = 0.0
    for epsilon, _, delta in walk[1::2]:
        if delta > cut:
            missed = max(missed, delta / max(pair.delta(epsilon) for pair in kept) - 1.0)
    return tuple({pair for _, pair, _ in walk}), top, 1.0 + 0.5 * missed


def _bounds(pair: PairLoss, cut: float) -> tuple[float, float]:
    """Finite losses above and below which at most `cut` of the finite ones lies."""
    high, low = pair.largest, pair.smallest
    if math.isinf(high) or pair.masses_above(0.5 * high)[0] <= cut:
        high = _edge(lambda loss: pair.masses_above(loss)[0] - pair.infinite <= cut)
    if math.isinf(low):
        back = pair.swapped
        low = -_edge(lambda loss: back.masses_above(loss)[1] <= cut)
    return min(low, 0.0), max(high, 0.0)


def _edge(beyond: Callable[[float], bool]) -> float:
    """A loss >= 0 at which a falling tail has been cut, within a hundredth."""
    low, high = 0.0, 1e-6
    while not beyond(high) and high < MAX_EPSILON:
        low, high = high, 2.0 * high
    for _ in range(7):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if beyond(middle) else (middle, high)
    return high
