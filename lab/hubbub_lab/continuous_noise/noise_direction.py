"""Of region, confidence and (epsilon, delta) two are given and the third is found, for noise on a line.

`direction` designs the channels that devices use, which are pure. Here is the same for noise with delta,
which someone who holds the records adds: three bisections over one map, (region, confidence, epsilon) to the
least delta of any scale of the kernel. At a scale the boost follows from the confidence in closed form
(privacy-boosting eq. 3) and delta from the exact profile, so the inner search is over the scale alone: a
coarse scan, for delta need not have one valley, then golden section about the best of it.

Where the region does not move with the value, the worst of all pairs of values is looked for. The search goes
by a few pairs; its result is then tightened until the whole profile agrees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from hubbub.errors import ParameterError
from hubbub.numeric import MAX_EPSILON, checked_epsilon
from hubbub_lab.continuous_noise.boost import (
    AbsoluteRegion,
    BoostedNoise,
    FixedRegion,
    Interval,
    Region,
    boost_for,
    hardest,
)
from hubbub_lab.continuous_noise.direction import PRECISION, checked_confidence, rounded_down
from hubbub_lab.continuous_noise.noise import NoiseKernel
from hubbub_lab.continuous_noise.pair import PairLoss
from hubbub_lab.continuous_noise.pair_search import PairSearch
from hubbub_lab.continuous_noise.profile import Profile
from hubbub_lab.continuous_noise.scaled import scaled

_SCALES: Final = 33
_GOLDEN_STEPS: Final = 14
_GOLDEN: Final = 0.5 * (math.sqrt(5.0) - 1.0)

_NARROWEST: Final = 1.0 / 40.0
_WIDEST: Final = 1000.0
"""Scales searched: from so much of the region's width, to so much of the sensitivity or the width."""

_LEAST_ODDS: Final = -14.0
_MOST_ODDS: Final = 30.0
"""Confidences searched, as ln(rho / (1 - rho)): one in a million to all but 1e-13."""

_WIDENING: Final = 27.0
_NARROWING: Final = 14.0
"""Regions searched, as ln of what they are wider or narrower than the sensitivity: 10^12 and 10^-6 times."""

_FINE: Final = 1e-5
"""Precision of a search, in ln of a width or of the odds of a hit."""

_GIVEN_UP: Final = 4.0

_ROUNDING: Final = 1e-12
"""By so much a pure epsilon may exceed the one asked for in a search; what is returned never does."""

_Demand: TypeAlias = tuple[Region, float]


@dataclass(frozen=True)
class NoiseTarget:
    """One point of the map: what is asked for, and the noise that does it.

    Attributes:
        region: What outputs are wanted in.
        confidence: Least probability, over the domain, that the output lies in it.
        epsilon: Of one report; with delta the exact guarantee, `profile.delta(epsilon) <= delta`.
        delta: The one asked for.
        profile: What one report costs, `profile.law` its law.
    """

    region: Region
    confidence: float
    epsilon: float
    delta: float
    profile: Profile


@dataclass(frozen=True)
class NoiseDesign:
    """The quantities that are fixed in all three directions.

    Attributes:
        kernel: The shape of the noise; its own width does not matter, the scale is searched.
        delta: In [0, 1); 0 asks for pure epsilon.
        sensitivity: Largest distance of two neighbouring values, > 0.
        domain: Least and largest value; None: the whole line, for an absolute region only.

    >>> from hubbub_lab.continuous_noise.profile import AbsoluteRegion, Gaussian
    >>> found = NoiseDesign(Gaussian(1.0), 1e-5, 1.0).least_epsilon(AbsoluteRegion(1.0), 0.9)
    >>> round(found.epsilon, 3), round(found.profile.law.boost, 3)
    (2.853, 0.868)
    """

    kernel: NoiseKernel
    delta: float
    sensitivity: float
    domain: Interval | None = None

    def __post_init__(self) -> None:
        delta = self.delta
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0.0 <= delta < 1.0:
            nearest = "; nearest: 0" if isinstance(delta, int | float) and delta < 0.0 else ""
            raise ParameterError(f"delta must be within [0, 1), got {delta!r}{nearest}")
        if not isinstance(self.kernel, NoiseKernel):
            raise ParameterError(f"kernel must be a noise kernel, got {type(self.kernel).__name__}")
        Profile(BoostedNoise(self.kernel), self.sensitivity, self.domain)

    def least_epsilon(self, region: Region, confidence: float) -> NoiseTarget:
        """Return the noise of least epsilon whose output lies in the region with a confidence.

        Args:
            region: Absolute, relative or fixed.
            confidence: rho in (0, 1).

        Raises:
            ParameterError: If a parameter breaks its rule, or no epsilon up to MAX_EPSILON reaches the
                confidence; the message names the most that one does.
        """
        wanted = checked_confidence(confidence)
        self._check(region)
        kernel, least = self._best(region, wanted, self._roughly)
        law = self._law(kernel, region, wanted) if least <= MAX_EPSILON else None
        found = math.inf if law is None else self._profile(law).epsilon(self.delta)
        if law is None or found > MAX_EPSILON:
            most = rounded_down(self.most_confidence(region, MAX_EPSILON).confidence)
            raise ParameterError(
                f"confidence must be at most {most} for this region up to epsilon {MAX_EPSILON:g} "
                f"at delta {self.delta:g}, got {wanted:.12g}"
            )
        return self._target(law, found)

    def most_confidence(self, region: Region, epsilon: float) -> NoiseTarget:
        """Return the noise whose output lies in the region most surely at an epsilon.

        Args:
            region: Absolute, relative or fixed.
            epsilon: Of one report.

        Raises:
            ParameterError: If a parameter breaks its rule, or no noise of this kernel is that private; the
                message names the least epsilon of one.
        """
        checked_epsilon(epsilon)
        self._check(region)

        law = self._most_demanding(
            lambda odds: (region, _share(odds)), epsilon, low=_LEAST_ODDS, high=_MOST_ODDS
        )
        if law is None:
            least = self._best(region, _share(_LEAST_ODDS), self._roughly)[1]
            raise ParameterError(
                f"epsilon must be at least {least:.6g} for this kernel, region and delta {self.delta:g}, "
                f"got {epsilon:g}"
            )
        return self._target(law, float(epsilon))

    def narrowest_region(self, region: Region, confidence: float, epsilon: float) -> NoiseTarget:
        """Return the noise of the narrowest region that its output lies in with a confidence at an epsilon.

        Args:
            region: Its kind: an absolute or relative one, whose half_width is found, or a fixed one, which is
                widened or narrowed about its middle.
            confidence: rho in (0, 1).
            epsilon: Of one report.

        Raises:
            ParameterError: If a parameter breaks its rule, or no region is wide enough; the message names the
                most confidence of a very wide one.
        """
        wanted = checked_confidence(confidence)
        checked_epsilon(epsilon)
        self._check(region)

        start = math.log(self.sensitivity)
        law = self._most_demanding(
            lambda narrow: (_of_width(region, math.exp(-narrow)), wanted),
            epsilon,
            low=-start - _WIDENING,
            high=-start + _NARROWING,
        )
        if law is None:
            wide = _of_width(region, math.exp(start + _WIDENING))
            most = rounded_down(self.most_confidence(wide, epsilon).confidence)
            raise ParameterError(
                f"confidence must be at most {most} for any region at epsilon {epsilon:g} and delta "
                f"{self.delta:g}, got {wanted:.12g}"
            )
        return self._target(law, float(epsilon))

    def _most_demanding(
        self, demand: Callable[[float], _Demand], epsilon: float, *, low: float, high: float
    ) -> BoostedNoise | None:
        """Return the law of the largest x in [low, high] at which some scale is private enough.

        None at none.
        """

        def allowed(kernel: NoiseKernel, x: float) -> bool:
            return self._excess(self._law(kernel, *demand(x)), epsilon) <= 0.0

        def best(x: float) -> NoiseKernel:
            return self._best(*demand(x), lambda law: self._excess(law, epsilon))[0]

        if not allowed(best(low), low):
            return None
        at = _largest(lambda x: allowed(best(x), x), low, high)
        kernel = best(at)
        return self._kept(lambda back: self._law(kernel, *demand(max(at - back, low))), epsilon)

    def _check(self, region: Region) -> None:
        if not isinstance(region, Region):
            raise ParameterError(f"region must be absolute, relative or fixed, got {type(region).__name__}")
        if self.domain is None:
            if not isinstance(region, AbsoluteRegion):
                raise ParameterError(f"domain must be given for {type(region).__name__}, got None")
        elif isinstance(region, FixedRegion):
            low, high = self.domain
            if region.high <= low or region.low >= high:
                width = min(region.high - region.low, high - low)
                near = (low, low + width) if region.high <= low else (high - width, high)
                raise ParameterError(
                    f"region must overlap the domain [{low:g}, {high:g}], got [{region.low:g}, "
                    f"{region.high:g}]; nearest: [{near[0]:g}, {near[1]:g}]"
                )

    def _law(self, kernel: NoiseKernel, region: Region, confidence: float) -> BoostedNoise | None:
        """Return the law of this confidence.

        None where the boost would be 1, by all digits that there are.
        """
        boost = boost_for(kernel, region, confidence, self.domain)
        return BoostedNoise(kernel, region, boost) if boost < 1.0 else None

    def _profile(self, law: BoostedNoise) -> Profile:
        return Profile(law, self.sensitivity, self.domain)

    def _target(self, law: BoostedNoise, epsilon: float) -> NoiseTarget:
        assert law.region is not None  # noqa: S101 - every law here has been given one
        confidence = min(law.confidence(x) for x in hardest(law.region, self.domain))
        return NoiseTarget(law.region, confidence, epsilon, self.delta, self._profile(law))

    def _pairs(self, law: BoostedNoise) -> list[PairLoss]:
        """Return the worst pair where it is known, else a few of which one is near it."""
        profile = self._profile(law)
        if profile.translates or self.domain is None:
            return [profile.worst(lambda pair: 0.0)[0]]
        return PairSearch(law, self.domain, profile.reach, values=3, shifts=2).scanned

    def _excess(self, law: BoostedNoise | None, epsilon: float) -> float:
        """Return how far a law exceeds what is asked, at most 0 if it is within."""
        if law is None:
            return math.inf
        pairs = self._pairs(law)
        if self.delta == 0.0:
            return max(pair.largest for pair in pairs) - epsilon * (1.0 + _ROUNDING)
        worst = max(pair.delta(epsilon) for pair in pairs)
        return math.log(worst / self.delta) if worst > 0.0 else -math.inf

    def _roughly(self, law: BoostedNoise | None) -> float:
        """Return the epsilon of a law by the same few pairs."""
        if law is None:
            return math.inf
        pairs = self._pairs(law)
        if self.delta == 0.0:
            return max(pair.largest for pair in pairs)

        def allowed(epsilon: float) -> bool:
            return all(pair.delta(epsilon) <= self.delta for pair in pairs)

        high = 1e-3
        while not allowed(high):
            high *= 2.0
            if high > 4.0 * MAX_EPSILON:
                return math.inf
        return -_largest(lambda epsilon: allowed(-epsilon), -high, 0.0)

    def _best(
        self, region: Region, confidence: float, figure: Callable[[BoostedNoise | None], float]
    ) -> tuple[NoiseKernel, float]:
        """Return the kernel, among its scales, whose law of this confidence has the least figure.

        And the figure.
        """

        def at(log_scale: float) -> tuple[float, float]:
            return figure(self._law(kernel(log_scale), region, confidence)), log_scale

        def kernel(log_scale: float) -> NoiseKernel:
            return scaled(self.kernel, math.exp(log_scale) / unit)

        unit = self.kernel.reach(0.25)
        width = max(_width(region, self.domain), 1e-9 * self.sensitivity)
        low, high = math.log(width * _NARROWEST), math.log(max(width, self.sensitivity) * _WIDEST)
        step = (high - low) / (_SCALES - 1)
        best = min((at(low + i * step) for i in range(_SCALES)), key=lambda one: one[0])
        left, right = best[1] - step, best[1] + step
        a, b = at(right - _GOLDEN * (right - left)), at(left + _GOLDEN * (right - left))
        for _ in range(_GOLDEN_STEPS):
            best = min(best, a, b, key=lambda one: one[0])
            if a[0] <= b[0]:
                right, b = b[1], a
                a = at(right - _GOLDEN * (right - left))
            else:
                left, a = a[1], b
                b = at(left + _GOLDEN * (right - left))
        return kernel(best[1]), best[0]

    def _kept(self, law_at: Callable[[float], BoostedNoise | None], epsilon: float) -> BoostedNoise | None:
        """Return the law of the least step back at which the whole profile keeps within (epsilon, delta)."""

        def kept(law: BoostedNoise | None) -> bool:
            if law is None:
                return False
            profile = self._profile(law)
            if self.delta == 0.0:
                return profile.largest <= epsilon
            return profile.delta(epsilon) <= self.delta

        law, low, step = law_at(0.0), 0.0, PRECISION
        if kept(law):
            return law
        while not kept(law := law_at(step)):
            low, step = step, 2.0 * step
            if step > _GIVEN_UP:
                return None
        for _ in range(4):
            middle = 0.5 * (low + step)
            tried = law_at(middle)
            if kept(tried):
                law, step = tried, middle
            else:
                low = middle
        return law


def _width(region: Region, domain: Interval | None) -> float:
    """Return half the width of a region, where it is widest."""
    ends = (0.0,) if domain is None else domain
    return max(0.5 * (high - low) for low, high in map(region.around, ends))


def _of_width(region: Region, half_width: float) -> Region:
    if isinstance(region, FixedRegion):
        middle = 0.5 * (region.low + region.high)
        return FixedRegion(middle - half_width, middle + half_width)
    return replace(region, half_width=half_width)


def _share(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-odds))


def _largest(allowed: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number that is allowed, low being so, by bisection."""
    if allowed(high):
        return high
    while high - low > _FINE:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low
