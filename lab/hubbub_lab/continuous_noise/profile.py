"""The exact privacy profile of boosted noise: delta(epsilon), epsilon(delta), Renyi, over all neighbours.

Unit of privacy: one report. Neighbours: any two values of the domain at most `sensitivity` apart, in both
directions; for local privacy the sensitivity is the length of the domain. `PairLoss` is exact for a pair;
this module takes the worst pair.

With an absolute region (or none) the law is a translation of one symmetric density g that never rises away
from its centre, and the worst shift is the sensitivity itself, for every epsilon >= 0: where g(w) >
e^epsilon g(w - d), necessarily |w| <= |w - d|, so w - d < 0, where g rises; hence moving the alternative
farther away only lowers it on that event, and delta(epsilon) never falls with d. Renyi divergences are
mixtures of hockey sticks of both directions, so the same holds for them. For relative and fixed regions
nothing of the kind is true: there `PairSearch` scans all pairs on a grid and climbs from the best. What is
reported is then the exact value of a pair, and a lower bound of the supremum between grid points; tests
compare it with denser scans.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.boost import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Interval,
    Region,
    RelativeRegion,
    boost_for,
)
from hubbub_lab.continuous_noise.mixtures import GammaLaplace, LaplaceMixture
from hubbub_lab.continuous_noise.noise import Gaussian, Laplace, NoiseKernel, UniformNoise
from hubbub_lab.continuous_noise.pair import PairLoss, PairSearch
from hubbub_lab.continuous_noise.random_scale import RandomScale, noise_of

__all__ = [
    "AbsoluteRegion",
    "BoostedNoise",
    "FixedRegion",
    "GammaLaplace",
    "Gaussian",
    "Interval",
    "Laplace",
    "LaplaceMixture",
    "NoiseKernel",
    "PairLoss",
    "Profile",
    "RandomScale",
    "Region",
    "RelativeRegion",
    "UniformNoise",
    "boost_for",
    "gaussian_sigma",
    "largest_boost",
    "noise_of",
]

_VALUES: Final = 17
"""Values of the domain in a scan."""

_SHIFTS: Final = 8
"""Shifts of each value in a scan, equally spaced up to the sensitivity, which is one of them."""

_LEAPS: Final = 64
_LEAPS_BEYOND: Final = 4.0
"""Boosts of a scan, equally spaced in -ln(1 - q) up to epsilon and this; a larger leap alone costs more."""

MAX_EPSILON: Final = 1e4
"""No search for epsilon goes beyond: e^epsilon would overflow long before it meant anything."""


@dataclass(frozen=True)
class Profile:
    """The privacy profile of one report: its worst cost over all neighbouring values.

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
        """True if all values share one law up to a shift, so that only the distance of a pair matters."""
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
        """Return the least delta for which one report is (epsilon, delta)-private.

        Args:
            epsilon: >= 0.
        """
        _check(epsilon, "epsilon", 0.0, MAX_EPSILON)
        return self.worst_delta(epsilon)[1]

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon for which one report is (epsilon, delta)-private, from above.

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
            pair, above = self.worst_delta(found)
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
        """Return the largest Renyi divergence of this order, by quadrature.

        Args:
            order: alpha > 1.
        """
        figure: Callable[[PairLoss], float] = lambda pair: pair.renyi(order)  # noqa: E731
        if self._search is None or self.domain is None:
            return self.worst(figure)[1]
        coarse = PairSearch(self.law, self.domain, self.reach, values=5, shifts=2)
        return coarse.best(figure)[1]

    def worst(self, figure: Callable[[PairLoss], float]) -> tuple[PairLoss, float]:
        """Return the pair of neighbours for which a figure is largest, and the figure.

        Args:
            figure: Of a pair, the larger the worse; for delta use `worst_delta`.
        """
        if self._search is None:
            pair = self._translated
            return pair, figure(pair)
        return self._search.best(figure)

    def worst_delta(self, epsilon: float) -> tuple[PairLoss, float]:
        """Return the pair of neighbours for which delta(epsilon) is largest, and that delta.

        Args:
            epsilon: >= 0.
        """
        if self._search is None:
            return self._translated, self._translated.delta(epsilon)
        return self._search.best_delta(epsilon)

    def ridge(self, top: float, steps: int) -> list[tuple[float, PairLoss, float]]:
        """Return the worst pair, and its delta, at equally spaced epsilons from 0 to top.

        Args:
            top: Last epsilon, > 0.
            steps: How many, 0 not counted.
        """
        if self._search is None:
            pair = self._translated
            return [(top * i / steps, pair, pair.delta(top * i / steps)) for i in range(steps + 1)]
        return self._search.ridge(top, steps)

    @cached_property
    def _translated(self) -> PairLoss:
        start = 0.0 if self.domain is None else self.domain[0]
        return PairLoss(self.law, start, start + self.reach)

    @cached_property
    def _search(self) -> PairSearch | None:
        if self.translates or self.domain is None:
            return None
        return PairSearch(self.law, self.domain, self.reach, values=_VALUES, shifts=_SHIFTS)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least sigma at which plain Gaussian noise is (epsilon, delta)-private, from above.

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


def largest_boost(
    kernel: NoiseKernel,
    region: Region,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float,
    domain: Interval | None = None,
) -> float | None:
    """Return the largest boost at which one report stays (epsilon, delta)-private, exactly, from below.

    It is the boost that budget-recycling-dp's Algorithm 1 looks for. delta(epsilon) need not grow with the
    boost: a little boost takes mass from the kernel's tails. So -ln(1 - q) is scanned from above before it is
    bisected.

    Args:
        kernel: Of the noise.
        region: Preferred outputs.
        sensitivity: As for `Profile`.
        epsilon: >= 0.
        delta: In [0, 1).
        domain: As for `Profile`.

    Returns:
        q in [0, 1), or None where no boost, not even 0, is private enough.
    """

    def safe(leap: float) -> bool:
        law = BoostedNoise(kernel, region, -math.expm1(-leap))
        return Profile(law, sensitivity, domain).delta(epsilon) <= delta

    top = epsilon + _LEAPS_BEYOND
    above = top
    for i in range(_LEAPS - 1, -1, -1):
        leap = top * i / _LEAPS
        if safe(leap):
            break
        above = leap
    else:
        return None
    while True:
        middle = 0.5 * (leap + above)
        if not leap < middle < above or above - leap <= 1e-12 * top:
            return -math.expm1(-leap)
        leap, above = (middle, above) if safe(middle) else (leap, middle)


def _least_epsilon(pair: PairLoss, delta: float, above: float) -> float:
    """Return the least epsilon >= above with pair.delta(epsilon) <= delta, from above; inf if none."""
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
