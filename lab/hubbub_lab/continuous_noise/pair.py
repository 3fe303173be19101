"""The exact privacy loss between two values of one boosted law: hockey-stick, masses, Renyi divergence.

The loss ln f(y|x) / f(y|x') is the kernel's log-ratio plus ln Z(x')/Z(x) plus 0 or -+ln(1 - q), according to
the regions y lies in. Between the ends of the two regions and the corners of the two kernels it is continuous
and monotone, so {y : loss > epsilon} is a few intervals, and

    delta(epsilon) = sum over the intervals I of  P_x(I) - e^epsilon P_x'(I)

is a finite sum of differences of tails. No quadrature, no assumption that the misaligned part of the regions
and the kernel's loss are independent.

The worst pair of neighbouring values of a law that is not a translation is searched for: scan, then climb. A
pair's delta(epsilon) falls by many e-folds within a small step of epsilon wherever only a sliver of outputs
is left above it, so at one epsilon the few pairs that still matter are needles. They are found from below:
the search starts at a smaller epsilon, where their peaks are wide, and follows them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.boost import BoostedNoise, FixedRegion, Interval

__all__ = ["PairLoss", "PairSearch"]

_NODES: Final = 32
"""Nodes of a panel: exact to the last digits while the integrand changes by a dozen e-folds."""

_HALVINGS: Final = 16


@dataclass(frozen=True)
class _Piece:
    """An interval of outputs on which the loss is the kernel's log-ratio plus a constant."""

    low: float
    high: float
    here: float  # weight of P_x: 1 or 1 - q, over Z(x)
    there: float  # the same of P_x'
    offset: float  # ln here / there
    least: float  # the loss at the lower of its two ends
    most: float


@dataclass(frozen=True)
class PairLoss:
    """The loss of a report whose value is x, for an observer who wonders whether it is x'.

    Attributes:
        law: What reports are drawn from.
        x: The true value.
        other: The alternative x'.
    """

    law: BoostedNoise
    x: float
    other: float
    _shift: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.x) and math.isfinite(self.other)):
            raise ParameterError(f"a pair must be two finite values, got {self.x!r} and {self.other!r}")
        object.__setattr__(self, "_shift", self.other - self.x)

    @property
    def swapped(self) -> PairLoss:
        """The pair in the other direction."""
        return PairLoss(self.law, self.other, self.x)

    @cached_property
    def _pieces(self) -> tuple[_Piece, ...]:
        law, x, shift = self.law, self.x, self._shift
        regions = [tuple(end - x for end in law.around(value)) for value in (x, self.other)]
        kinks = law.kernel.kinks
        breaks = {*regions[0], *regions[1], *kinks, *(kink + shift for kink in kinks)}
        inner = sorted(point for point in breaks if math.isfinite(point))
        ends = [-math.inf, *inner, math.inf]
        norms = (law.normaliser(x), law.normaliser(self.other))
        pieces = []
        for low, high in pairwise(ends):
            probe = _inside(low, high)
            here, there = (
                (1.0 if region[0] <= probe <= region[1] else 1.0 - law.boost) / norm
                for region, norm in zip(regions, norms, strict=True)
            )
            ratio = law.kernel.log_ratio(probe, shift)
            if here == 0.0 or law.kernel.mass(low, high) == 0.0 or ratio == -math.inf:
                continue  # x never reports it
            if there == 0.0 or ratio == math.inf:
                pieces.append(_Piece(low, high, here, 0.0, math.inf, math.inf, math.inf))
                continue
            offset = math.log(here / there)
            left, right = self._limit(low, probe) + offset, self._limit(high, probe) + offset
            pieces.append(_Piece(low, high, here, there, offset, min(left, right), max(left, right)))
        return tuple(pieces)

    def _limit(self, end: float, probe: float) -> float:
        """Return the kernel's log-ratio at the end of a piece, from its inside."""
        ratio = self.law.kernel.log_ratio(end, self._shift)
        if math.isinf(ratio) and math.isfinite(end):
            # the density jumps here: it is constant on both sides
            return self.law.kernel.log_ratio(probe, self._shift)
        return ratio

    @cached_property
    def largest(self) -> float:
        """The supremum of the loss: the pure epsilon of this pair and direction; inf when it has none."""
        if self._shift == 0.0:
            return 0.0
        return max(piece.most for piece in self._pieces)

    @cached_property
    def smallest(self) -> float:
        """The infimum of the loss over what x can report; -inf when it has none."""
        return 0.0 if self._shift == 0.0 else min(piece.least for piece in self._pieces)

    @cached_property
    def infinite(self) -> float:
        """The probability under x of outputs that x' never reports."""
        mass = self.law.kernel.mass
        return math.fsum(p.here * mass(p.low, p.high) for p in self._pieces if p.there == 0.0)

    def masses_above(self, epsilon: float) -> tuple[float, float]:
        """Return the probabilities, under x and under x', of the outputs whose loss exceeds epsilon.

        Args:
            epsilon: Any sign.
        """
        if self._shift == 0.0:
            return (1.0, 1.0) if epsilon < 0.0 else (0.0, 0.0)
        kernel, shift = self.law.kernel, self._shift
        here, there = [], []
        for piece in self._pieces:
            if piece.most <= epsilon:
                continue
            low, high = piece.low, piece.high
            if piece.least < epsilon:
                cut = kernel.crossing(epsilon - piece.offset, low, high, shift)
                rising = kernel.log_ratio(high, shift) > kernel.log_ratio(low, shift)
                low, high = (cut, high) if rising else (low, cut)
            here.append(piece.here * kernel.mass(low, high))
            there.append(piece.there * kernel.mass(low - shift, high - shift))
        return math.fsum(here), math.fsum(there)

    def delta(self, epsilon: float) -> float:
        """Return sup over events of Pr_x - e^epsilon Pr_x', exactly; of either sign of epsilon.

        Args:
            epsilon: Finite.
        """
        here, there = self.masses_above(epsilon)
        return min(1.0, max(0.0, here - math.exp(epsilon) * there)) if there else here

    def deltas(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return `delta` of many epsilons at once.

        Args:
            epsilons: Ascending and finite, of either sign, shape (n,).

        Returns:
            Shape (n,), float64.
        """
        if self._shift == 0.0:
            return np.maximum(-np.expm1(epsilons), 0.0)
        kernel, shift = self.law.kernel, self._shift
        here, there = np.zeros(epsilons.size), np.zeros(epsilons.size)
        cut: list[tuple[_Piece, slice, bool]] = []
        points: list[NDArray[np.float64]] = [np.zeros(0)]
        for piece in self._pieces:
            low, high = piece.low, piece.high
            whole, some = epsilons.searchsorted((piece.least, piece.most)).tolist()
            here[:whole] += piece.here * kernel.mass(low, high)
            there[:whole] += piece.there * kernel.mass(low - shift, high - shift)
            if whole < some:
                rising = kernel.log_ratio(high, shift) > kernel.log_ratio(low, shift)
                cut.append((piece, slice(whole, some), rising))
                points.append(kernel.crossings(epsilons[whole:some] - piece.offset, low, high, shift))
        at = np.concatenate(points)
        for shifted, sums in ((0.0, here), (shift, there)):
            sides, start = kernel.sides(at - shifted), 0
            for piece, where, rising in cut:
                stop = start + where.stop - where.start
                weight = piece.here if sums is here else piece.there
                end = (piece.high if rising else piece.low) - shifted
                # what lies between a cut and an end, from the tail of the end's own side
                side = end > 0.0 if rising else end >= 0.0
                known = kernel.mass(end, math.inf) if side else kernel.mass(-math.inf, end)
                sums[where] += weight * np.abs(sides[side][start:stop] - known)
                start = stop
        with np.errstate(over="ignore"):
            return np.clip(np.where(there > 0.0, here - np.exp(epsilons) * there, here), 0.0, 1.0)

    def within(self, cut: float) -> tuple[float, float]:
        """Return the least and the largest finite loss, but for outputs of probability at most `cut` under x.

        Args:
            cut: In (0, 1); the kernel's two tails of that mass are left aside.
        """
        if self._shift == 0.0:
            return 0.0, 0.0
        reach = self.law.kernel.reach(0.5 * cut * self.law.normaliser(self.x))
        losses: list[float] = []
        for piece in self._pieces:
            low, high = max(piece.low, -reach), min(piece.high, reach)
            if low < high and piece.there > 0.0:
                probe = _inside(low, high)
                losses += [self._limit(end, probe) + piece.offset for end in (low, high)]
        return (min(losses), max(losses)) if losses else (0.0, 0.0)

    def renyi(self, order: float) -> float:
        """Return the Renyi divergence of this order, by Gauss-Legendre quadrature between all breaks.

        Args:
            order: alpha > 1.

        Returns:
            D_alpha in nats; inf where x can report what x' cannot.

        Raises:
            ParameterError: order is not a finite number above 1.
        """
        if not (math.isfinite(order) and order > 1.0):
            raise ParameterError(f"the order of a Renyi divergence must be finite and above 1, got {order!r}")
        if self._shift == 0.0:
            return 0.0
        if any(piece.there == 0.0 for piece in self._pieces):
            return math.inf
        kernel, shift = self.law.kernel, self._shift
        panels = kernel.panels(shift, order)
        nodes, weights = _gauss_legendre(_NODES)
        logs: list[float] = []
        for piece in self._pieces:
            inner = sorted(
                point for point in {*panels, *_toward_ends(piece)} if piece.low < point < piece.high
            )
            ends = [end for end in (piece.low, *inner, piece.high) if math.isfinite(end)]
            for low, high in pairwise(ends):
                half, middle = 0.5 * (high - low), 0.5 * (high + low)
                for node, weight in zip(nodes, weights, strict=True):
                    w = middle + half * node
                    ratio = kernel.log_ratio(w, shift) + piece.offset
                    density = kernel.log_density(w) + math.log(piece.here * weight * half)
                    logs.append(density + (order - 1.0) * ratio)
        top = max(logs)
        return (top + math.log(math.fsum(math.exp(value - top) for value in logs))) / (order - 1.0)


def _toward_ends(piece: _Piece) -> list[float]:
    """Return points that halve their distance to each finite end, where steep integrands have mass."""
    low, high = piece.low, piece.high
    width = high - low if math.isfinite(high - low) else max(abs(low if math.isfinite(low) else high), 1.0)
    steps = [width * 2.0**-i for i in range(1, _HALVINGS)]
    return [low + step for step in steps] + [high - step for step in steps]


def _inside(low: float, high: float) -> float:
    if math.isinf(low):
        return (high if math.isfinite(high) else 1.0) - 1.0
    return low + 1.0 if math.isinf(high) else 0.5 * (low + high)


@lru_cache(maxsize=4)
def _gauss_legendre(count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return tuple(nodes.tolist()), tuple(weights.tolist())


Figure = Callable[[PairLoss], float]

_STARTS: Final = 3
"""The number of best pairs of a scan that are climbed from."""

_STAGES: Final = (0.5, 0.8, 0.95, 0.99, 1.0)
"""Shares of epsilon at which peaks are followed, from wide to narrow."""

_FINEST: Final = 1e-9
"""Least step of a climb, as a share of the domain."""


class PairSearch:
    """A search for the pair of values, at most `reach` apart, for which a figure is largest.

    Args:
        law: Of the reports.
        domain: Least and largest value.
        reach: Largest distance of two neighbours.
        values: Values in the scan; landmarks of the region are added, and both directions of every pair.
        shifts: Distances of each value's neighbours, equally spaced up to reach.
    """

    def __init__(
        self, law: BoostedNoise, domain: Interval, reach: float, *, values: int, shifts: int
    ) -> None:
        self.law, self.domain, self.reach = law, domain, reach
        self.scanned = self._scan(values, shifts)

    def best(self, figure: Figure, starts: Iterable[PairLoss] = ()) -> tuple[PairLoss, float]:
        """Return the pair with the largest figure found, and the figure.

        Args:
            figure: Of a pair; may be inf.
            starts: Pairs to climb from, besides the best of the scan.
        """
        scored = sorted(((figure(pair), i) for i, pair in enumerate(self.scanned)), reverse=True)
        found = [(self.scanned[i], value) for value, i in scored[:_STARTS]]
        found += [(pair, figure(pair)) for pair in starts]
        return max((self._climb(figure, pair, value) for pair, value in found), key=lambda result: result[1])

    def best_delta(self, epsilon: float) -> tuple[PairLoss, float]:
        """Return the pair with the largest delta(epsilon) found, following peaks from smaller epsilons."""
        starts: list[PairLoss] = []
        for share in _STAGES:
            pair, value = self.best(_delta_at(share * epsilon), starts[-1:])
            starts.append(pair)
        return pair, value

    def ridge(self, top: float, steps: int) -> list[tuple[float, PairLoss, float]]:
        """Return the worst pair at equally spaced epsilons from 0 to top, each found from the one before.

        Args:
            top: Last epsilon.
            steps: How many, 0 not counted.

        Returns:
            Epsilon, pair and its delta, ascending in epsilon.
        """
        found: list[tuple[float, PairLoss, float]] = []
        for i in range(steps + 1):
            at = top * i / steps
            found.append((at, *self.best(_delta_at(at), [pair for _, pair, _ in found[-1:]])))
        return found

    def _climb(self, figure: Figure, pair: PairLoss, value: float) -> tuple[PairLoss, float]:
        """Climb by compass search: moves of one value, the other, and both, of falling size."""
        if math.isinf(value):
            return pair, value
        low, high = self.domain
        step = 0.05 * (high - low)
        least = _FINEST * (high - low)
        while step > least:
            moved = False
            for along, across in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)):
                near = self._pair(pair.x + along * step, pair.other + across * step)
                if near is not None and (there := figure(near)) > value:
                    pair, value, moved = near, there, True
            if not moved:
                step *= 0.25
        return pair, value

    def _scan(self, values: int, shifts: int) -> list[PairLoss]:
        low, high = self.domain
        region = self.law.region
        points = [low + (high - low) * i / (values - 1) for i in range(values)]
        points += [region.low, region.high] if isinstance(region, FixedRegion) else [0.0]
        pairs: set[tuple[float, float]] = set()
        for x in points:
            for i in range(1, shifts + 1):
                for sign in (-1.0, 1.0):
                    near = self._pair(x, x + sign * self.reach * i / shifts)
                    if near is not None:
                        pairs |= {(near.x, near.other), (near.other, near.x)}
        return [PairLoss(self.law, x, other) for x, other in sorted(pairs)]

    def _pair(self, x: float, other: float) -> PairLoss | None:
        """Return the pair, moved into the domain; None where nothing of its distance is left, or too much."""
        low, high = self.domain
        x, other = min(max(x, low), high), min(max(other, low), high)
        return PairLoss(self.law, x, other) if 0.0 < abs(x - other) <= self.reach * (1.0 + 1e-12) else None


def _delta_at(epsilon: float) -> Figure:
    return lambda pair: pair.delta(epsilon)
