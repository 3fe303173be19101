"""Composition of exact privacy losses: epsilon and delta of many reports together, from above.

Losses of reports add, so their distributions convolve; and whatever dominates every part dominates every
adaptive composition of them. The parts come from `loss_grid`, which only ever makes a loss worse, and
`loss_sum` convolves them.

`loss_distribution` hands the same grid to `dp_accounting`, for an independent check and all else it can do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.loss_grid import (
    MAX_POINTS,
    Extent,
    LossGrid,
    extent,
    grid_of,
    loss_distribution,
    loss_grid,
    worst_pairs,
)
from hubbub_lab.continuous_noise.loss_sum import LossSum
from hubbub_lab.continuous_noise.pair import PairLoss
from hubbub_lab.continuous_noise.profile import Profile

__all__ = ["MAX_TIMES", "Composition", "LossGrid", "loss_distribution", "loss_grid"]

MAX_TIMES: Final = 10**7
"""Reports in one composition: beyond it the rounding bound of the transform is no longer negligible."""

_LEAST_DELTA: Final = 1e-100

_ACCURACY: Final = 3e-4
"""Relative excess of epsilon at which halving the grid's interval stops."""

_PER_DEVIATION: Final = 20.0
"""Grid points per standard deviation of one loss, at first; the excess falls with its square."""

_FEW: Final = 16
_FEW_POINTS: Final = 1500

_CUT: Final = 1e-7
"""Share of delta that may be cut off as tails, all parts together; it is added to delta, not dropped."""


class Composition:
    """A composition of many reports of one person, in any order, adaptively chosen among the parts.

    Args:
        parts: Each a profile (or one pair of values, for what that pair costs) and how many reports of it.

        values: "any" lets the two values differ from report to report (a changing attribute, another reading
            of it), and every part is taken at its worst. "same" keeps one pair of values for all reports, and
            the worst such pair is looked for among those that are worst for a part; all parts must then be
            profiles. It makes no difference where every law is a translation of one density.

    Raises:
        ParameterError: No part, or a number of reports outside 1..MAX_TIMES in total.

    >>> from hubbub_lab.continuous_noise.profile import BoostedNoise, Laplace, Profile
    >>> laplace = Profile(BoostedNoise(Laplace(10.0)), 1.0)
    >>> round(Composition([(laplace, 1000)]).epsilon(1e-5), 2)
    17.42
    """

    def __init__(
        self, parts: Sequence[tuple[Profile | PairLoss, int]], *, values: Literal["any", "same"] = "any"
    ) -> None:
        if values not in ("any", "same"):
            raise ParameterError(f"values must be any or same, got {values!r}")
        merged: dict[Profile | PairLoss, int] = {}
        for part, times in parts:
            if not isinstance(part, Profile | PairLoss):
                raise ParameterError(
                    f"a part of a composition must be a Profile or a PairLoss, got {type(part).__name__}"
                )
            if isinstance(times, bool) or not isinstance(times, int) or times < 1:
                raise ParameterError(f"the reports of a part must be a whole number >= 1, got {times!r}")
            merged[part] = merged.get(part, 0) + times
        if not merged:
            raise ParameterError("a composition must have at least one part, got none")
        self.parts = tuple(merged.items())
        self.times = sum(merged.values())
        if self.times > MAX_TIMES:
            raise ParameterError(f"a composition must have at most {MAX_TIMES} reports, got {self.times}")
        self.pairs = self._common_pairs() if values == "same" else ()

    def epsilon(self, delta: float) -> float:
        """Return an epsilon of all reports together at this delta, at most 0.1 % too large.

        Args:
            delta: In [1e-100, 1).

        Returns:
            Nats; inf where no epsilon is enough.
        """
        if isinstance(delta, bool) or not isinstance(delta, float) or not _LEAST_DELTA <= delta < 1.0:
            raise ParameterError(f"delta must be a number in [{_LEAST_DELTA:g}, 1), got {delta!r}")
        if self.pairs:
            return max(composition.epsilon(delta) for composition in self.pairs)
        extents = self._extents(delta)
        interval = self._first_interval(extents)
        grids = self._grids(extents, interval)
        before = LossSum([(grid.coarser(), times) for grid, times in grids])
        coarse = before.epsilon(delta)
        while True:
            if math.isinf(coarse) or coarse == 0.0:
                return coarse
            after = LossSum(grids)
            fine = min(coarse, after.epsilon(delta, like=before))
            interval *= 0.5
            # the excess falls with the square of the interval: a third of the difference is left
            if coarse - fine <= 3.0 * _ACCURACY * fine or _points(extents, interval) > MAX_POINTS:
                return fine
            before, coarse, grids = after, fine, self._grids(extents, interval)

    def delta(self, epsilon: float) -> float:
        """Return a delta at which all reports together are (epsilon, delta)-private.

        Args:
            epsilon: >= 0 and finite.

        Returns:
            In [0, 1]; never below the exact one, and at least 1e-100.
        """
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0.0 <= epsilon < math.inf:
            raise ParameterError(f"epsilon must be a finite number >= 0, got {epsilon!r}")
        if self.pairs:
            return max(composition.delta(epsilon) for composition in self.pairs)
        guess = 1e-12
        for _ in range(3):
            extents = self._extents(guess)
            found = LossSum(self._grids(extents, 0.25 * self._first_interval(extents))).delta(epsilon)
            if found >= guess or found <= _LEAST_DELTA:
                break
            guess = max(found, _LEAST_DELTA)
        return min(1.0, max(found, _LEAST_DELTA))

    def _common_pairs(self) -> tuple[Composition, ...]:
        """Return one composition for each pair of values that is worst for some part."""
        profiles = [(part, times) for part, times in self.parts if isinstance(part, Profile)]
        if len(profiles) < len(self.parts):
            raise ParameterError('the parts of a composition of values="same" must be profiles, got a pair')
        if all(profile.translates for profile, _ in profiles):
            return ()
        reach = min(profile.reach for profile, _ in profiles)
        found = {
            (x, other)
            for profile, _ in profiles
            for pair in worst_pairs(profile, _CUT)
            for x, other in ((pair.x, pair.other), (pair.other, pair.x))
            if abs(x - other) <= reach
        }
        return tuple(
            Composition([(PairLoss(profile.law, x, other), times) for profile, times in profiles])
            for x, other in sorted(found)
        )

    def _extents(self, delta: float) -> list[Extent]:
        cut = _CUT * delta / self.times
        return [extent(part, cut) for part, _ in self.parts]

    def _grids(self, extents: Sequence[Extent], interval: float) -> list[tuple[LossGrid, int]]:
        interval = max(interval, _points(extents, 1.0) / MAX_POINTS)
        known = zip(extents, self.parts, strict=True)
        return [(grid_of(one, interval), times) for one, (_, times) in known]

    def _first_interval(self, extents: Sequence[Extent]) -> float:
        """Return the interval of the finer of the first two grids."""
        square, farthest, total = 0.0, 0.0, 0.0
        for known, (_, times) in zip(extents, self.parts, strict=True):
            farthest, total = max(farthest, known.high), total + times * known.high
            # delta(0) is at most half the mean distance of the loss from 0, hence half its deviation from it
            square += times * (2.0 * known.distance) ** 2
        interval = math.sqrt(square / self.times) / _PER_DEVIATION
        if self.times <= _FEW:
            # near the pure epsilon of few reports the excess is the interval itself, not its square
            interval = min(interval, 0.5 * total / self.times / _FEW_POINTS)
        interval = max(interval, 2.0 * _points(extents, 1.0) / MAX_POINTS, 1e-9)
        return 0.5 * farthest / math.ceil(0.5 * farthest / interval) if farthest > 0.0 else interval


def _points(extents: Sequence[Extent], interval: float) -> float:
    """Return the number of points of the widest grid."""
    return max((known.high - known.low) / interval for known in extents)
