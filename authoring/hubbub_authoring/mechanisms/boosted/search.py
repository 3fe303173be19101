"""The search for what a boosted design leaves open: the split between kernel and boost, and the half width.

Two numbers are traded: spread, which sets the kernel's epsilon over the grid, and push = ln(1/(1-q)).
Both are found by bisection on the epsilon of the rows; what is free beyond that, by the variance of the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.mechanisms import column_epsilon, with_missing
from hubbub_authoring.mechanisms.boosted.grid import Absolute, Fixed, Grid, Region, grid_of, mean_variance
from hubbub_authoring.mechanisms.boosted.kernels import GridKernel

MAX_BOOST_LOG: Final = 20.0
"""Largest ln(1/(1-q)) searched where boosting is free: outputs outside the region are then 2e-9 as likely."""

SEARCH_POINTS: Final = 65
"""The points of the smaller grid that larger ones are first searched on, since the optimum scales with
them."""

ROUNDING: Final = 1e-9
"""A float design may exceed epsilon by this share, so that kernel_epsilon = epsilon is not refused for its
last digit; the integers it becomes are clamped below epsilon all the same."""

NOTHING: Final = 1e-9
"""Rows closer than this in epsilon say nothing of the input: their differences are rounding errors."""

_BISECTIONS: Final = 44
_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0

_DIGITS: Final = 30
"""Bits kept of a number that was found: the same on machines whose last digits differ."""


@dataclass(frozen=True)
class ParameterSearch:
    """A search for the parameters that the caller leaves open."""

    points: int
    kernel: GridKernel
    target: float
    missing: bool
    margin: int | None

    def grid(self, region: Region) -> Grid:
        """Return the grid of a region with this search's margin."""
        return grid_of(self.points, self.kernel, region, self.margin)

    def extended(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rows with the missing input, where there is one; it spends the epsilon in full."""
        return with_missing(rows, epsilon=self.target) if self.missing else rows

    def split(self, region: Region, spread: float | None, push: float | None) -> tuple[float, float]:
        """Return kernel epsilon and boost ln(1/(1-q)): the given ones checked, the open ones found."""
        shape = self.grid(region)
        if spread is not None and push is not None:
            self._check(shape, spread, push)
            return spread, push
        if spread is not None:
            self._check(shape, spread, 0.0)
            return spread, self._best_push(shape, spread)
        if push is not None:
            self._check(shape, 0.0, push)
            return self._most_spread(shape, push), push
        return self._best_split(region, shape)

    def most_confident(self, region: Region) -> tuple[float, float]:
        """Return kernel epsilon and boost ln(1/(1-q)) with which outputs lie in their region most surely."""
        shape = self.grid(region)

        def misses(spread: float, push: float) -> float:
            return 1.0 - shape.confidence(shape.rows(spread, push))

        if isinstance(region, Fixed):
            highest = self._most_push(shape, 0.0)
            push = least(lambda p: misses(self._most_spread(shape, p), p), 0.0, highest)
            return self._most_spread(shape, push), push
        top = self._most_spread(shape, 0.0)
        spread = least(lambda s: misses(s, self._most_push(shape, s)), 0.0, top)
        return spread, self._most_push(shape, spread)

    def search_region(self, spread: float | None, push: float | None) -> Absolute:
        """Return the half width that lets the mean be estimated best; scanned coarsely, then step by step."""
        small = self._small()
        cost: dict[int, float] = {}

        def judge(width: int) -> float:
            if width not in cost:
                cost[width] = small._cost_of(Absolute(width), spread, push)
            return cost[width]

        last = small.points - 1
        stride = max(1, last // 16)
        best = min(range(0, last + 1, stride), key=judge)
        while stride > 1:
            stride = (stride + 1) // 2
            near = [w for w in (best - stride, best, best + stride) if 0 <= w <= last]
            best = min(near, key=judge)
        if not math.isfinite(judge(best)):
            raise ParameterError(
                "no half_width lets the mean be estimated: leave kernel_epsilon, boost and margin open"
            )
        return Absolute(float(round(best * (self.points - 1) / last)))

    def _cost_of(self, region: Absolute, spread: float | None, push: float | None) -> float:
        shape = self.grid(region)
        if spread is not None and self._excess(shape, spread, push or 0.0):
            return math.inf
        if spread is not None and push is None:
            push = self._most_push(shape, spread)
        elif spread is None and push is not None:
            if self._excess(shape, 0.0, push):
                return math.inf
            spread = self._most_spread(shape, push)
        if spread is not None and push is not None:
            return self._cost(shape, spread, push)
        top = self._most_spread(shape, 0.0)
        splits = [(share * top, self._most_push(shape, share * top)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        return min(self._cost(shape, *one) for one in splits)

    def _best_split(self, region: Region, shape: Grid) -> tuple[float, float]:
        small = self._small()
        scale = (small.points - 1) / (self.points - 1)
        probe = small.grid(region.scaled(scale) if scale < 1 else region)
        if not isinstance(region, Fixed):
            # The boost follows from the kernel's share of what a kernel alone could spend.
            top = small._most_spread(probe, 0.0)
            share = least(lambda s: small._cost(probe, s * top, small._most_push(probe, s * top)), 0.0, 1.0)
            spread = share * self._most_spread(shape, 0.0)
            return spread, self._most_push(shape, spread)
        # A fixed region may cost nothing, so here the kernel follows from the boost.
        highest = small._most_push(probe, 0.0)
        push = least(lambda p: small._cost(probe, small._most_spread(probe, p), p), 0.0, highest)
        return self._most_spread(shape, push), push

    def _best_push(self, shape: Grid, spread: float) -> float:
        highest = self._most_push(shape, spread)
        if highest < MAX_BOOST_LOG:
            return highest
        return least(lambda push: self._cost(shape, spread, push), 0.0, highest)

    def _most_push(self, shape: Grid, spread: float) -> float:
        return largest(lambda push: self._over(shape, spread, push), MAX_BOOST_LOG, MAX_BOOST_LOG)

    def _most_spread(self, shape: Grid, push: float) -> float:
        # A kernel cut to a narrow window, or renormalised by a lopsided region, may cost less than it spends.
        return largest(lambda spread: self._over(shape, spread, push), self.target, 64.0 * self.target)

    def _cost(self, shape: Grid, spread: float, push: float) -> float:
        rows = shape.rows(spread, push)
        if column_epsilon(rows) < NOTHING:
            return math.inf
        return mean_variance(self.extended(rows), self.points)

    def _excess(self, shape: Grid, spread: float, push: float) -> bool:
        return not self._over(shape, spread, push) <= 0.0

    def _over(self, shape: Grid, spread: float, push: float) -> float:
        """Return the epsilon of the rows less what is allowed."""
        return column_epsilon(shape.rows(spread, push)) - self.target * (1.0 + ROUNDING)

    def _check(self, shape: Grid, spread: float, push: float) -> None:
        if not self._excess(shape, spread, push):
            return
        boost = -math.expm1(-push)
        if not self._excess(shape, 0.0, push):
            most = self._most_spread(shape, push)
            raise ParameterError(
                f"kernel_epsilon must be at most {self.kernel.epsilon_of(most):.6g} for boost {boost:.6g} "
                f"to keep within epsilon, got {self.kernel.epsilon_of(spread):.6g}"
            )
        most = -math.expm1(-self._most_push(shape, 0.0))
        raise ParameterError(f"boost must be at most {most:.6g} to keep within epsilon, got {boost:.6g}")

    def _small(self) -> ParameterSearch:
        if self.points <= SEARCH_POINTS:
            return self
        margin = self.margin
        if margin is not None:
            margin = round(margin * (SEARCH_POINTS - 1) / (self.points - 1))
        return ParameterSearch(SEARCH_POINTS, self.kernel, self.target, self.missing, margin)


def largest(over: Callable[[float], float], start: float, limit: float) -> float:
    """Return the largest number up to the limit at which `over` is at most 0, as it is taken to be at 0.

    By doubling, then by the chord (its kept end's value halved, as the Illinois rule has it) with a bisection
    every third time. Where the allowed numbers are not one interval from 0, the result is allowed but may not
    be the largest.
    """
    low, high, at_low = 0.0, start, over(0.0)
    while (at_high := over(high)) <= 0.0:
        if high >= limit:
            return high
        low, at_low, high = high, at_high, min(2.0 * high, limit)
    precision, turn, side = (high - low) * 2.0**-_BISECTIONS, 0, 0
    while high - low > precision:
        turn += 1
        rise = at_high - at_low
        share = -at_low / rise if turn % 3 and at_low <= 0.0 and 0.0 < rise < math.inf else 0.5
        middle = low + share * (high - low)
        # a chord that meets an end has found the crossing: the other end is brought to it
        middle = min(max(middle, low + 0.4 * precision), high - 0.4 * precision)
        at_middle = over(middle)
        if at_middle <= 0.0:
            low, at_low, at_high = middle, at_middle, 0.5 * at_high if side == 1 else at_high
            side = 1
        else:
            high, at_high, at_low = middle, at_middle, 0.5 * at_low if side == -1 else at_low
            side = -1
    rounded = _rounded_down(low)
    return rounded if over(rounded) <= 0.0 else low


def least(cost: Callable[[float], float], low: float, high: float) -> float:
    """Return where the cost is least, by a coarse scan for several valleys, then golden section."""
    marks = np.linspace(low, high, 13).tolist()
    costs = [cost(mark) for mark in marks]
    best = int(np.argmin(costs))
    left, right = marks[max(best - 1, 0)], marks[min(best + 1, len(marks) - 1)]
    found = (costs[best], marks[best])
    for _ in range(20):
        inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        at_inner, at_outer = cost(inner), cost(outer)
        found = min(found, (at_inner, inner), (at_outer, outer))
        if at_inner <= at_outer:
            right = outer
        else:
            left = inner
    return _rounded_down(found[1])


def _rounded_down(number: float) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.floor(math.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)
