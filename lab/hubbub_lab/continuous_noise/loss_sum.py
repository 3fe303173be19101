"""The sum of independent losses, each on a grid: epsilon and delta from above, by a tilted Fourier transform.

The convolution is a power of a Fourier transform. A plain one has an absolute error, near 1e-13 after a
thousand reports and of unknown sign: useless for delta = 1e-12. So the distributions are tilted first,
p(l) e^(t l), with the t that centres their sum on the epsilon sought, and untilted after: the error is then
relative to delta itself. A worst-case bound of it is added to delta, and so is all that was cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_lab.continuous_noise.loss_grid import LossGrid

__all__ = ["LossSum"]

Floats = NDArray[np.float64]

_MAX_WINDOW: Final = 1 << 22

_SPREADS: Final = 16.0
"""Width of the first window tried, in deviations of the tilted sum."""

_AT_ONCE: Final = 1 << 18
"""Masses transformed together, two megabytes."""

_CENTRED: Final = 4.0
"""E-folds of precision that an epsilon may lose to its distance from where the sum was centred."""

_SHAPES: Final = (4, 5, 6)
"""Sizes of transforms, times a power of two."""

_ENOUGH: Final = 0.05
"""Of a tilt, relative: the bound is flat about the best one."""

_NEGLIGIBLE: Final = 1e-10
"""Of the tilted sum, above the window: it is added as well."""

_LARGEST_EXPONENT: Final = 600.0

_SLACK: Final = 1.0 + 1e-9
"""Covers the rounding of the tails that the grids are made of, a few ulp of each, a thousandfold."""


@dataclass(frozen=True)
class _Tail:
    """The masses above each loss of a window, divided by `factor`.

    Attributes:
        losses: Shape (n,), equally spaced.
        masses: Total mass of the losses strictly above each.
        others: The same under the alternative: mass times e^(centre - loss).
        allowance: Bound of what rounding and the window's ends may have taken away.
        factor: e^(K(tilt) - tilt * centre).
        centre: Where the window is looked at.
    """

    losses: Floats
    masses: Floats
    others: Floats
    allowance: Floats
    factor: float
    centre: float

    def deltas(self) -> Floats:
        """Return an upper bound of delta at each loss, infinite losses apart."""
        grown = np.exp(np.minimum(self.losses - self.centre, _LARGEST_EXPONENT))
        exact = np.maximum(self.masses - grown * self.others, 0.0)
        return _SLACK * self.factor * (exact + self.allowance)


class LossSum:
    """The sum of independent losses on grids of one interval, by a tilted Fourier transform.

    Attributes:
        found: The last epsilon that was found, and the tilt that it was found with.
    """

    def __init__(self, grids: Sequence[tuple[LossGrid, int]]) -> None:
        self.interval = grids[0][0].interval
        self.times = np.array([n for _, n in grids])
        self.lowest = np.array([grid.lowest for grid, _ in grids])
        self.sizes = np.array([grid.masses.size for grid, _ in grids])
        self.starts = np.cumsum(self.sizes) - self.sizes
        # all grids end to end: their masses, and their losses as whole numbers of intervals
        self.masses = np.concatenate([grid.masses for grid, _ in grids])
        self.places = np.arange(self.masses.size) + np.repeat(self.lowest - self.starts, self.sizes)
        self.top = self.lowest + self.sizes - 1
        self.below = (self.places - np.repeat(self.top, self.sizes)).astype(np.float64)
        finite = (n * math.log1p(-grid.infinite) if grid.infinite < 1.0 else -math.inf for grid, n in grids)
        self.infinite = -math.expm1(sum(finite))
        self.found = (0.0, 0.0)

    def epsilon(self, delta: float, *, like: LossSum | None = None) -> float:
        """Return the least epsilon >= 0 whose delta is at most this one.

        Args:
            delta: In (0, 1).
            like: The same sum on other grids, whose epsilon is known; the search begins there.
        """
        if self.infinite >= delta:
            return math.inf
        if like is None:
            # the infinite losses have their share of delta already
            wanted = math.log(_SLACK / (delta - self.infinite))

            def bound(t: float) -> float:
                return (self._log_moment(t) + wanted + _gain(t)) / t

            tilt = self._least(bound)
            found = bound(tilt)
        else:
            found, tilt = like.found
        for _ in range(3):
            # every tilt gives a bound; the one that centres the sum on epsilon itself loses the fewest digits
            better = self._epsilon_at(delta, tilt, max(found, 0.0))
            if tilt * (found - better) <= _CENTRED:
                found = min(found, better)
                break
            found, tilt = better, self._centring(better, tilt)
        self.found = found, tilt
        return max(0.0, found)

    def _centring(self, epsilon: float, tilt: float) -> float:
        """Return a tilt that centres the sum near an epsilon, by Newton's method from another tilt."""
        for _ in range(4):
            weights, log_total = self._tilted(tilt)
            if math.isinf(log_total):
                return tilt
            means, variances = self._moments(weights)
            slope = float(self.times @ means) * self.interval - epsilon - math.log1p(1.0 / tilt)
            bend = float(self.times @ variances) * self.interval**2 + 1.0 / (tilt * (1.0 + tilt))
            step = slope / bend
            tilt = min(max(tilt - step, 0.25 * tilt), 4.0 * tilt)
            if abs(step) < 0.01 * tilt:
                break
        return tilt

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
        """Return a bound of the delta of this epsilon."""
        if epsilon >= int(self.times @ self.top) * self.interval:
            return self.infinite
        tilt = self._least(lambda t: self._log_moment(t) - t * epsilon + _gain(t))
        tail = self._tail(tilt, epsilon)
        j = int(np.searchsorted(tail.losses, epsilon, side="right")) - 1
        if j < 0:
            return 1.0
        exact = max(0.0, float(tail.masses[j] - tail.others[j]))
        return min(1.0, self.infinite + _SLACK * tail.factor * (exact + float(tail.allowance[j])))

    def _log_moment(self, tilt: float) -> float:
        """Return sum of ln E[e^(tilt * loss); loss finite]."""
        step = tilt * self.interval
        totals = np.add.reduceat(self.masses * np.exp(step * self.below), self.starts)
        if not totals.all():
            return math.inf  # too steep for floats: no tilt to be taken
        return float(self.times @ (np.log(totals) + step * self.top))

    def _tilted(self, tilt: float) -> tuple[Floats, float]:
        """Return the masses times e^(tilt * loss), normalised per grid, and the sum of their ln E."""
        step = tilt * self.interval
        weights = self.masses * np.exp(step * self.below)
        totals = np.add.reduceat(weights, self.starts)
        if not totals.all():
            return weights, math.inf  # too steep for floats: no tilt to be taken
        weights /= np.repeat(totals, self.sizes)
        return weights, float(self.times @ (np.log(totals) + step * self.top))

    def _moments(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return the mean index and its variance, for each grid, under masses that sum to one."""
        means = np.add.reduceat(weights * self.places, self.starts)
        squares = weights * (self.places - np.repeat(means, self.sizes)) ** 2
        return means, np.add.reduceat(squares, self.starts)

    def _least(self, objective: Callable[[float], float]) -> float:
        """Return the tilt > 0 at which a function with one valley is least: golden section in ln t."""
        low, high = math.log(1e-6), math.log(20.0 / self.interval)
        golden = 0.5 * (math.sqrt(5.0) - 1.0)
        a, b = high - golden * (high - low), low + golden * (high - low)
        at_a, at_b = objective(math.exp(a)), objective(math.exp(b))
        while high - low > _ENOUGH:
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
        weights, log_total = self._tilted(tilt)
        means, variances = self._moments(weights)
        base = int(self.times @ self.lowest)
        first, size, beyond = self._window(
            tilt,
            centre,
            log_total=log_total,
            mean=float(self.times @ means),
            spread=math.sqrt(float(self.times @ variances)),
            base=base,
        )
        spectrum = self._spectrum(weights, size)
        law = np.roll(np.maximum(np.fft.irfft(spectrum, size), 0.0), (base - first) % size)
        losses = np.arange(first, first + size, dtype=np.float64) * self.interval
        keep = (1.0 + tilt) * (centre - losses) < _LARGEST_EXPONENT
        losses, law = losses[keep], law[keep]
        untilted = np.exp(-tilt * (losses - centre))
        masses = law * untilted
        # log2(size) levels of butterflies, each with a few ulp of the sum of what it adds (one in all): so
        # much may be wrong in a frequency, that times the power in a mass, and in each of those above a loss
        rounding = 2.0**-50 * math.log2(size) * (int(self.times.sum()) + 4)
        reach = min(float(size), -1.0 / math.expm1(-tilt * self.interval))
        return _Tail(
            losses=losses,
            masses=_strictly_above(masses),
            others=_strictly_above(masses * np.exp(centre - losses)),
            allowance=rounding * reach * untilted + beyond,
            factor=math.exp(log_total - tilt * centre),
            centre=centre,
        )

    def _spectrum(self, weights: Floats, size: int) -> NDArray[np.complex128]:
        """Return the transform of the sum of all reports, shape (size / 2 + 1,), from each grid's masses."""
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        rows = max(1, _AT_ONCE // size)
        for i in range(0, len(self.sizes), rows):
            sizes, times = self.sizes[i : i + rows], self.times[i : i + rows]
            start, stop = self.starts[i], self.starts[i] + int(sizes.sum())
            place = np.arange(start, stop) - np.repeat(self.starts[i : i + rows], sizes)
            cells = np.repeat(np.arange(len(sizes)) * size, sizes) + place % size
            folded = np.bincount(cells, weights[start:stop], minlength=len(sizes) * size)
            spectra = np.fft.rfft(folded.reshape(len(sizes), size), axis=1)
            for k in np.flatnonzero(times > 1):
                spectra[k] **= times[k]
            spectrum *= np.multiply.reduce(spectra, axis=0)
        return spectrum

    def _window(
        self, tilt: float, centre: float, *, log_total: float, mean: float, spread: float, base: int
    ) -> tuple[int, int, float]:
        """Return the first index and the size of a window about the tilted sum, and a bound of what is above.

        Its size is one that transforms are fast at. A sum outside it wraps around: from below that only adds
        to delta.
        """
        support = int(self.times @ (self.sizes - 1))
        wanted = min(support + 1, math.ceil(_SPREADS * spread) + 64)
        while True:
            octave = max(2, (wanted - 1).bit_length() - 3)
            size = next(n << k for k in (octave, octave + 1) for n in _SHAPES if n << k >= wanted)
            if size > support:
                return base, size, 0.0
            if spread == 0.0:
                return math.floor(mean - 0.5 * size), size, 0.0
            first = math.floor(mean - 0.5 * size)
            last = (first + size - 1) * self.interval
            beyond = math.exp(min(0.0, tilt * (centre - last)))
            for more in (8.0, 4.0, 12.0, 2.0):
                if beyond < _NEGLIGIBLE:
                    break
                s = more / (spread * self.interval)
                chernoff = self._log_moment(tilt + s) - log_total - s * last
                beyond = min(beyond, math.exp(min(0.0, tilt * (centre - last)) + min(0.0, chernoff)))
            if beyond < _NEGLIGIBLE or size >= _MAX_WINDOW:
                return first, size, beyond
            wanted = 2 * size


def _gain(tilt: float) -> float:
    """Return the logarithm of the largest (1 - e^-x) e^(-t x), which tightens a Chernoff bound."""
    return tilt * math.log(tilt) - (1.0 + tilt) * math.log1p(tilt)


def _strictly_above(masses: Floats) -> Floats:
    return np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
