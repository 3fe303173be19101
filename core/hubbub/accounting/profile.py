"""The exact privacy profile of boosted noise: delta(epsilon), epsilon(delta), Renyi, over all neighbours.

Unit of privacy: one report. Neighbours: any two values of the domain at most `sensitivity` apart, in both
directions; for local privacy the sensitivity is the length of the domain. `PairLoss` is exact for a pair;
this module takes the worst pair.

With an absolute region (or none) the law is a translation of one symmetric density g that never rises away
from its centre, and the worst shift is the sensitivity itself, for every epsilon >= 0: where g(w) > e^epsilon
g(w - d), necessarily |w| <= |w - d|, so w - d < 0, where g rises; hence moving the alternative farther away
only lowers it on that event, and delta(epsilon) never falls with d. Renyi divergences are mixtures of hockey
sticks of both directions, so the same holds for them. For relative and fixed regions nothing of the kind is
true: there all pairs are scanned on a grid and the best ones refined. What is reported is then a pair's exact
value, and a lower bound of the supremum between grid points; tests compare it with denser scans.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hubbub.accounting.boost import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Interval,
    Region,
    RelativeRegion,
    boost_for,
)
from hubbub.accounting.noise import GammaLaplace, Gaussian, Kernel, Laplace, LaplaceMixture, Uniform
from hubbub.accounting.pair import PairLoss
from hubbub.errors import ParameterError

__all__ = [
    "AbsoluteRegion",
    "BoostedNoise",
    "FixedRegion",
    "GammaLaplace",
    "Gaussian",
    "Interval",
    "Kernel",
    "Laplace",
    "LaplaceMixture",
    "PairLoss",
    "Profile",
    "Region",
    "RelativeRegion",
    "Uniform",
    "boost_for",
    "gaussian_sigma",
]

_VALUES: Final = 17
"""Values of the domain in a scan; its ends, 0 and the region's landmarks are added."""

_SHIFTS: Final = 8
"""Shifts of each value in a scan, equally spaced up to the sensitivity, which is one of them."""

_REFINED: Final = 2
"""How many of the best pairs of a scan are refined."""

MAX_EPSILON: Final = 1e4
"""No search for epsilon goes beyond: e^epsilon would overflow long before it meant anything."""


@dataclass(frozen=True)
class Profile:
    """What one report costs at worst, over all neighbouring values.

    Attributes:
        law: What reports are drawn from.
        sensitivity: Largest distance of two neighbouring values, > 0.
        domain: Least and largest value; None: the whole line, for no or an absolute region only.

    >>> profile = Profile(BoostedNoise(Laplace(1.0)), 1.0)
    >>> profile.largest, round(profile.delta(0.5), 6)
    (1.0, 0.221199)
    """

    law: BoostedNoise
    sensitivity: float
    domain: Interval | None = None

    def __post_init__(self) -> None:
        value = self.sensitivity
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < math.inf:
            raise ParameterError(f"sensitivity must be a positive finite number, got {value!r}")
        if self.domain is not None:
            low, high = self.domain
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ParameterError(
                    f"domain must be two finite values, the lower first, got {self.domain!r}"
                )
        elif not self.translates:
            raise ParameterError(f"domain must be given for {type(self.law.region).__name__}, got None")

    @property
    def translates(self) -> bool:
        """Whether all values share one law up to a shift, so that only the distance of a pair matters."""
        return self.law.boost == 0.0 or isinstance(self.law.region, AbsoluteRegion)

    @property
    def reach(self) -> float:
        """The largest distance of two neighbours that the domain really holds."""
        return (
            self.sensitivity
            if self.domain is None
            else min(self.sensitivity, self.domain[1] - self.domain[0])
        )

    def delta(self, epsilon: float) -> float:
        """The least delta for which one report is (epsilon, delta)-private.

        Args:
            epsilon: >= 0.
        """
        _check(epsilon, "epsilon", 0.0, MAX_EPSILON)
        return self.worst(lambda pair: pair.delta(epsilon))[1]

    def epsilon(self, delta: float) -> float:
        """The least epsilon for which one report is (epsilon, delta)-private, to the last digits, from above.

        Args:
            delta: In [0, 1]; 0 gives the pure epsilon.

        Returns:
            Nats; inf where no epsilon is enough.
        """
        _check(delta, "delta", 0.0, 1.0)
        if delta == 0.0:
            return max(0.0, self.largest)
        found = 0.0
        while True:
            pair, above = self.worst(lambda pair, at=found: pair.delta(at))  # type: ignore[misc] # bound default
            if above <= delta:
                return found
            least = _least_epsilon(pair, delta, found)
            if math.isinf(least) or least <= found:
                return max(least, found)
            found = least

    @property
    def largest(self) -> float:
        """The pure epsilon of one report; inf for a Gaussian or bounded kernel."""
        return self.worst(lambda pair: pair.largest)[1]

    def renyi(self, order: float) -> float:
        """The largest Renyi divergence of this order, by quadrature.

        Args:
            order: alpha > 1.
        """
        return self.worst(lambda pair: pair.renyi(order), values=5, shifts=2)[1]

    def worst(
        self, figure: Callable[[PairLoss], float], *, values: int = _VALUES, shifts: int = _SHIFTS
    ) -> tuple[PairLoss, float]:
        """The pair of neighbours for which a figure is largest, and the figure.

        Args:
            figure: Of a pair, the larger the worse.
            values: Values of the domain that are scanned, where a scan is needed.
            shifts: Shifts of each.
        """
        reach = self.reach
        if self.translates:
            start = 0.0 if self.domain is None else self.domain[0]
            pair = PairLoss(self.law, start, start + reach)
            return pair, figure(pair)
        found: dict[tuple[float, float], float] = {}

        def at(x: float, other: float) -> float:
            if (x, other) not in found:
                found[x, other] = figure(PairLoss(self.law, x, other))
            return found[x, other]

        for x in self._landmarks(values):
            for i in range(1, shifts + 1):
                for sign in (-1.0, 1.0):
                    other = self._inside(x + sign * reach * i / shifts)
                    if 0.0 < abs(other - x) <= reach:
                        at(x, other)
        best = sorted(found, key=lambda key: found[key], reverse=True)[:_REFINED]
        spread = (self.domain[1] - self.domain[0]) / values if self.domain else reach
        for start_pair in best:
            if math.isfinite(found[start_pair]):
                self._climb(at, start_pair, spread)
        x, other = max(found, key=lambda key: found[key])
        return PairLoss(self.law, x, other), found[x, other]

    def _climb(self, at: Callable[[float, float], float], pair: tuple[float, float], spread: float) -> None:
        """Compass search from a pair: moves of one value, the other, and both, of halving size."""
        x, other = pair
        step = spread
        while step > 1e-9 * spread:
            moved = False
            for along, across in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1)):
                a, b = self._inside(x + along * step), self._inside(other + across * step)
                if 0.0 < abs(a - b) <= self.reach and at(a, b) > at(x, other):
                    x, other, moved = a, b, True
            if not moved:
                step *= 0.25

    def _landmarks(self, values: int) -> list[float]:
        """Values to scan: a grid, 0, and where regions begin and end."""
        if self.domain is None:
            return [0.0]
        low, high = self.domain
        region = self.law.region
        points = [low + (high - low) * i / (values - 1) for i in range(values)]
        points += [0.0] if not isinstance(region, FixedRegion) else [region.low, region.high]
        return sorted({point for point in points if low <= point <= high})

    def _inside(self, value: float) -> float:
        return value if self.domain is None else min(max(value, self.domain[0]), self.domain[1])


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """The least sigma at which plain Gaussian noise is (epsilon, delta)-private, from above.

    Args:
        epsilon: > 0.
        delta: In (0, 1).
        sensitivity: > 0.
    """
    _check(epsilon, "epsilon", 0.0, MAX_EPSILON)
    _check(delta, "delta", 0.0, 1.0)
    if epsilon == 0.0 or not 0.0 < delta < 1.0:
        raise ParameterError(
            f"a Gaussian needs epsilon > 0 and delta strictly between 0 and 1, got {epsilon!r} and {delta!r}"
        )

    def safe(sigma: float) -> bool:
        return Profile(BoostedNoise(Gaussian(sigma)), sensitivity).delta(epsilon) <= delta

    high = sensitivity / epsilon
    while not safe(high):
        high *= 2.0
    low = high
    while safe(low):
        low *= 0.5
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (low, middle) if safe(middle) else (middle, high)


def _least_epsilon(pair: PairLoss, delta: float, above: float) -> float:
    """The least epsilon >= above with pair.delta(epsilon) <= delta, from above; inf where there is none."""
    low, high = above, max(1.0, 2.0 * above)
    while pair.delta(high) > delta:
        low, high = high, 2.0 * high
        if low >= MAX_EPSILON:
            return math.inf
        high = min(high, MAX_EPSILON)
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (low, middle) if pair.delta(middle) <= delta else (middle, high)


def _check(value: float, subject: str, low: float, high: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ParameterError(f"{subject} must be a number in [{low:g}, {high:g}], got {value!r}")
