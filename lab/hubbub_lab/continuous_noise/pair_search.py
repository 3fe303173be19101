"""The worst pair of neighbouring values of a law that is not a translation: scan, then climb.

A pair's delta(epsilon) falls by many e-folds within a small step of epsilon wherever only a sliver of
outputs is left above it, so at one epsilon the few pairs that still matter are needles. They are found from
below: the search starts at a smaller epsilon, where their peaks are wide, and follows them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from hubbub_lab.continuous_noise.boost import BoostedNoise, FixedRegion, Interval
from hubbub_lab.continuous_noise.pair import PairLoss

__all__ = ["PairSearch"]

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
