"""Composition of exact privacy losses: epsilon and delta of many reports together, from above.

Losses of reports add, so their distributions convolve; and whatever dominates every part dominates every
adaptive composition of them. The parts come from `loss_grid`, which only ever makes a loss worse.

The convolution is a power of a Fourier transform. A plain one has an absolute error, near 1e-13 after a
thousand reports and of unknown sign: useless for delta = 1e-12. So the distributions are tilted first,
p(l) e^(t l), with the t that centres their sum on the epsilon sought, and untilted after: the error is then
relative to delta itself. A worst-case bound of it is added to delta, and so is all that was cut off.
`loss_distribution` hands the same grid to `dp_accounting`: an independent check, and all else it can do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.loss_grid import (
    MAX_POINTS,
    LossGrid,
    extent,
    loss_distribution,
    loss_grid,
    worst_pairs,
)
from hubbub.accounting.pair import PairLoss
from hubbub.accounting.profile import Profile
from hubbub.errors import ParameterError

__all__ = ["MAX_TIMES", "Composition", "LossGrid", "loss_distribution", "loss_grid"]

MAX_TIMES: Final = 10**7
"""Reports in one composition: beyond it the rounding bound of the transform is no longer negligible."""

_LEAST_DELTA: Final = 1e-100

_ACCURACY: Final = 2e-4
"""Relative excess of epsilon at which halving the grid's interval stops."""

_PER_DEVIATION: Final = 16.0
"""Grid points per standard deviation of one loss, at first; the excess falls with its square."""

_FEW: Final = 16
_FEW_POINTS: Final = 1500

_MAX_WINDOW: Final = 1 << 22

_CUT: Final = 1e-7
"""Share of delta that may be cut off as tails, all parts together; it is added to delta, not dropped."""

_NEGLIGIBLE: Final = 1e-10
"""Of the tilted sum, above the window: it is added as well."""

_LARGEST_EXPONENT: Final = 600.0

_SLACK: Final = 1.0 + 1e-9
"""Covers the rounding of the tails that the grids are made of, a few ulp of each, a thousandfold."""


class Composition:
    """Many reports of one person taken together, in any order, adaptively chosen among the parts.

    Args:
        parts: Each a profile (or one pair of values, for what that pair costs) and how many reports of it.

        values: "any" lets the two values differ from report to report (a changing attribute, another reading
            of it), and every part is taken at its worst. "same" keeps one pair of values for all reports, and
            the worst such pair is looked for among those that are worst for a part; all parts must then be
            profiles. No difference where every law is a translation of one density.

    Raises:
        ParameterError: No part, or a number of reports outside 1..MAX_TIMES in total.

    >>> from hubbub.accounting.profile import BoostedNoise, Laplace, Profile
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
        """An epsilon at which all reports together are (epsilon, delta)-private, at most 0.1 % too large.

        Args:
            delta: In [1e-100, 1).

        Returns:
            Nats; inf where no epsilon is enough.
        """
        if isinstance(delta, bool) or not isinstance(delta, float) or not _LEAST_DELTA <= delta < 1.0:
            raise ParameterError(f"delta must be a number in [{_LEAST_DELTA:g}, 1), got {delta!r}")
        if self.pairs:
            return max(composition.epsilon(delta) for composition in self.pairs)
        interval = self._first_interval(delta)
        coarse = _Sum(self._grids(interval, delta)).epsilon(delta)
        while True:
            if math.isinf(coarse) or coarse == 0.0:
                return coarse
            interval *= 0.5
            if self._points(interval, delta) > MAX_POINTS:
                return coarse
            fine = min(coarse, _Sum(self._grids(interval, delta)).epsilon(delta))
            # the excess falls with the square of the interval: a third of the difference is left
            if coarse - fine <= 3.0 * _ACCURACY * fine:
                return fine
            coarse = fine

    def delta(self, epsilon: float) -> float:
        """A delta at which all reports together are (epsilon, delta)-private.

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
            found = _Sum(self._grids(0.125 * self._first_interval(guess), guess)).delta(epsilon)
            if found >= guess or found <= _LEAST_DELTA:
                break
            guess = max(found, _LEAST_DELTA)
        return min(1.0, max(found, _LEAST_DELTA))

    def _common_pairs(self) -> tuple[Composition, ...]:
        """One composition for each pair of values that is worst for some part."""
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

    def _cut(self, delta: float) -> float:
        return _CUT * delta / self.times

    def _grids(self, interval: float, delta: float) -> list[tuple[LossGrid, int]]:
        cut = self._cut(delta)
        return [(loss_grid(part, interval, cut=cut), times) for part, times in self.parts]

    def _points(self, interval: float, delta: float) -> float:
        cut = self._cut(delta)
        extents = (extent(part, cut) for part, _ in self.parts)
        return max((high - low) / interval for _, low, high in extents)

    def _first_interval(self, delta: float) -> float:
        cut = self._cut(delta)
        square, widest, farthest, total = 0.0, 0.0, 0.0, 0.0
        for part, times in self.parts:
            _, low, high = extent(part, cut)
            farthest, total = max(farthest, high), total + times * high
            if high > low:
                square += times * loss_grid(part, (high - low) / 64.0, cut=cut).deviation ** 2
                widest = max(widest, high - low)
        interval = math.sqrt(square / self.times) / _PER_DEVIATION
        if self.times <= _FEW:
            # near the pure epsilon of few reports the excess is the interval itself, not its square
            interval = min(interval, total / self.times / _FEW_POINTS)
        interval = max(interval, widest / MAX_POINTS, 1e-9)
        return farthest / math.ceil(farthest / interval) if farthest > 0.0 else interval


@dataclass(frozen=True)
class _Tail:
    """What lies above each loss of a window, divided by `factor`.

    Attributes:
        losses: Shape (n,), equally spaced.
        masses: Total mass of the losses strictly above each.
        others: The same under the alternative: mass times e^(centre - loss).
        allowance: Bound of what rounding and the window's ends may have taken away.
        factor: e^(K(tilt) - tilt * centre).
        centre: Where the window is looked at.
    """

    losses: NDArray[np.float64]
    masses: NDArray[np.float64]
    others: NDArray[np.float64]
    allowance: NDArray[np.float64]
    factor: float
    centre: float

    def deltas(self) -> NDArray[np.float64]:
        """An upper bound of delta at each loss, infinite losses apart."""
        grown = np.exp(np.minimum(self.losses - self.centre, _LARGEST_EXPONENT))
        exact = np.maximum(self.masses - grown * self.others, 0.0)
        return _SLACK * self.factor * (exact + self.allowance)


class _Sum:
    """The sum of independent losses on grids of one interval, by a tilted Fourier transform."""

    def __init__(self, grids: Sequence[tuple[LossGrid, int]]) -> None:
        self.grids = grids
        self.interval = grids[0][0].interval
        finite = (n * math.log1p(-grid.infinite) if grid.infinite < 1.0 else -math.inf for grid, n in grids)
        self.infinite = -math.expm1(sum(finite))

    def epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 whose delta is at most this one."""
        if self.infinite >= delta:
            return math.inf
        wanted = -math.log(delta)

        def bound(t: float) -> float:
            return (self._log_moment(t) + wanted + _gain(t)) / t

        tilt = self._least(bound)
        found = bound(tilt)
        for _ in range(3):
            # every tilt gives a bound; the one that centres the sum on epsilon itself loses the fewest digits
            better = self._epsilon_at(delta, tilt, max(found, 0.0))
            if better >= found * (1.0 - _ACCURACY / 10.0):
                return max(0.0, min(found, better))
            found = better
            tilt = self._least(lambda t, at=found: self._log_moment(t) - t * at + _gain(t))  # type: ignore[misc] # bound now
        return max(0.0, found)

    def _epsilon_at(self, delta: float, tilt: float, centre: float) -> float:
        tail = self._tail(tilt, centre)
        over = np.flatnonzero(self.infinite + tail.deltas() > delta)
        if over.size == 0:
            return max(0.0, float(tail.losses[0]))
        j = int(over[-1])
        if j + 1 == tail.losses.size:
            return math.inf
        scale = _SLACK * tail.factor
        excess = self.infinite + scale * float(tail.masses[j] + tail.allowance[j]) - delta
        others = scale * float(tail.others[j])
        upper = float(tail.losses[j + 1])
        exact = centre + math.log(excess / others) if others > 0.0 and excess > 0.0 else upper
        return max(0.0, float(tail.losses[j]), min(exact, upper))

    def delta(self, epsilon: float) -> float:
        """A bound of the delta of this epsilon."""
        highest = sum(n * (grid.lowest + grid.masses.size - 1) for grid, n in self.grids)
        if epsilon >= highest * self.interval:
            return self.infinite
        tilt = self._least(lambda t: self._log_moment(t) - t * epsilon + _gain(t))
        tail = self._tail(tilt, epsilon)
        j = int(np.searchsorted(tail.losses, epsilon, side="right")) - 1
        if j < 0:
            return 1.0
        exact = max(0.0, float(tail.masses[j] - tail.others[j]))
        return min(1.0, self.infinite + _SLACK * tail.factor * (exact + float(tail.allowance[j])))

    def _log_moment(self, tilt: float) -> float:
        """Sum of ln E[e^(tilt * loss); loss finite]."""
        return math.fsum(n * _log_sum(tilt * grid.losses, grid.masses) for grid, n in self.grids)

    def _least(self, objective: Callable[[float], float]) -> float:
        """The tilt > 0 at which a function with one valley is least: golden section in ln t."""
        low, high = math.log(1e-6), math.log(20.0 / self.interval)
        golden = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = high - golden * (high - low), low + golden * (high - low)
        at_a, at_b = objective(math.exp(a)), objective(math.exp(b))
        while high - low > 1e-2:
            if at_a <= at_b:
                high, b, at_b = b, a, at_a
                a = high - golden * (high - low)
                at_a = objective(math.exp(a))
            else:
                low, a, at_a = a, b, at_b
                b = low + golden * (high - low)
                at_b = objective(math.exp(b))
        return math.exp(0.5 * (low + high))

    def _tail(self, tilt: float, centre: float) -> _Tail:
        tilted, mean, variance, base, support = [], 0.0, 0.0, 0, 0
        for grid, n in self.grids:
            logs = tilt * grid.losses
            weights = grid.masses * np.exp(np.minimum(logs - float(logs[grid.masses > 0.0].max()), 0.0))
            weights /= weights.sum()
            index = grid.lowest + np.arange(weights.size)
            centroid = float(weights @ index)
            mean += n * centroid
            variance += n * float(weights @ (index - centroid) ** 2)
            base += n * grid.lowest
            support += n * (weights.size - 1)
            tilted.append((weights, n))
        log_total = self._log_moment(tilt)
        first, size, beyond = self._window(
            tilt, centre, mean=mean, spread=math.sqrt(variance), base=base, support=support
        )
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        for weights, n in tilted:
            folded = np.bincount(np.arange(weights.size) % size, weights, minlength=size)
            spectrum *= np.fft.rfft(folded) ** n
        law = np.roll(np.maximum(np.fft.irfft(spectrum, size), 0.0), (base - first) % size)
        losses = np.arange(first, first + size, dtype=np.float64) * self.interval
        keep = (1.0 + tilt) * (centre - losses) < _LARGEST_EXPONENT
        losses, law = losses[keep], law[keep]
        untilted = np.exp(-tilt * (losses - centre))
        masses = law * untilted
        # log2(size) levels of butterflies, each with a few ulp of the sum of what it adds (one in all): so
        # much may be wrong in a frequency, that times the power in a mass, and in each of those above a loss
        rounding = 2.0**-50 * math.log2(size) * (sum(n for _, n in tilted) + 4)
        reach = min(float(size), -1.0 / math.expm1(-tilt * self.interval))
        return _Tail(
            losses=losses,
            masses=_strictly_above(masses),
            others=_strictly_above(masses * np.exp(centre - losses)),
            allowance=rounding * reach * untilted + beyond,
            factor=math.exp(log_total - tilt * centre),
            centre=centre,
        )

    def _window(
        self, tilt: float, centre: float, *, mean: float, spread: float, base: int, support: int
    ) -> tuple[int, int, float]:
        """First index and size of a window about the tilted sum, and a bound of what lies above it.

        The window is a power of two; a sum outside it wraps around: from below that only adds to delta.
        """
        wanted = min(support + 1, math.ceil(28.0 * spread) + 64)
        log_total = self._log_moment(tilt)
        while True:
            size = 1 << max(4, (wanted - 1).bit_length())
            if size > support:
                return base, size, 0.0
            if spread == 0.0:
                return math.floor(mean - 0.5 * size), size, 0.0
            first = math.floor(mean - 0.5 * size)
            last = (first + size - 1) * self.interval
            chernoff = min(
                self._log_moment(tilt + s) - log_total - s * last
                for s in (k / (spread * self.interval) for k in (2.0, 4.0, 8.0, 12.0))
            )
            beyond = math.exp(min(0.0, tilt * (centre - last)) + min(0.0, chernoff))
            if beyond < _NEGLIGIBLE or size >= _MAX_WINDOW:
                return first, size, beyond
            wanted = 2 * size


def _gain(tilt: float) -> float:
    """The most that (1 - e^-x) e^(-t x) can be, as a logarithm: delta is below a Chernoff bound by it."""
    return tilt * math.log(tilt) - (1.0 + tilt) * math.log1p(tilt)


def _strictly_above(masses: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)


def _log_sum(logs: NDArray[np.float64], masses: NDArray[np.float64]) -> float:
    held = masses > 0.0
    if not held.any():
        return -math.inf
    top = float(logs[held].max())
    return top + math.log(float(masses[held] @ np.exp(logs[held] - top)))
