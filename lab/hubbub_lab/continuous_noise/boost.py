"""The law of boosted noise on the real line: a kernel, a preferred region, and what the boost makes of them.

    f(y|x) = k(y - x) * { 1 if y in S(x), else 1 - q } / Z(x),      Z(x) = 1 - q Pr(x + N not in S(x))

(privacy-boosting eq. 2; with the absolute region it is budget-recycling-dp eq. 3, whose recycler is
rejection sampling of this law). Devices never sample it: they use integer channels on a grid. It serves to
know, before a grid is chosen, what a kernel, a region and a boost cost exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.noise import NoiseKernel

__all__ = [
    "AbsoluteRegion",
    "BoostedNoise",
    "FixedRegion",
    "Interval",
    "Region",
    "RelativeRegion",
    "boost_for",
]

Interval = tuple[float, float]

EVERYWHERE: Final[Interval] = (-math.inf, math.inf)


@dataclass(frozen=True)
class AbsoluteRegion:
    """A region of outputs within half_width of the value: |y - x| <= half_width.

    Attributes:
        half_width: >= 0, in units of the value.
    """

    half_width: float

    def __post_init__(self) -> None:
        _number(self.half_width, "the half_width of an absolute region", least=0.0)

    def around(self, x: float) -> Interval:
        """Return the region of x, both ends included."""
        return x - self.half_width, x + self.half_width


@dataclass(frozen=True)
class RelativeRegion:
    """A region of outputs within a share of the value and an offset: |y - x| <= ratio |x| + half_width.

    Attributes:
        ratio: theta >= 0.
        half_width: tau >= 0, in units of the value; the whole of it at x = 0.
    """

    ratio: float
    half_width: float

    def __post_init__(self) -> None:
        _number(self.ratio, "the ratio of a relative region", least=0.0)
        _number(self.half_width, "the half_width of a relative region", least=0.0)

    def around(self, x: float) -> Interval:
        """Return the region of x, both ends included."""
        reach = self.ratio * abs(x) + self.half_width
        return x - reach, x + reach


@dataclass(frozen=True)
class FixedRegion:
    """A region of outputs that is one range, whatever the value.

    Attributes:
        low: Its lower end.
        high: Its upper end, > low.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _number(self.low, "the low end of a fixed region")
        _number(self.high, "the high end of a fixed region")
        if self.low >= self.high:
            raise ParameterError(
                f"the low end of a fixed region must be below its high, got {self.low!r} and {self.high!r}"
            )

    def around(self, x: float) -> Interval:
        """Return the region of x, both ends included."""
        return self.low, self.high


Region = AbsoluteRegion | RelativeRegion | FixedRegion


@dataclass(frozen=True)
class BoostedNoise:
    """The output law of every value x: kernel noise, reweighted by the preferred region.

    Attributes:
        kernel: Of the noise.
        region: Preferred outputs; None for plain noise.
        boost: q in [0, 1]: outside the region the density is multiplied by 1 - q. 1 is bounded noise.

    >>> from hubbub_lab.continuous_noise.noise import Laplace
    >>> law = BoostedNoise(Laplace(1.0), AbsoluteRegion(1.0), 0.5)
    >>> round(law.confidence(0.0), 4), round(law.density(0.0, 0.0), 4)
    (0.7746, 0.6127)
    """

    kernel: NoiseKernel
    region: Region | None = None
    boost: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, NoiseKernel):
            raise ParameterError(f"kernel must be a noise kernel, got {type(self.kernel).__name__}")
        if self.region is not None and not isinstance(self.region, Region):
            raise ParameterError(
                f"region must be absolute, relative, fixed or None, got {type(self.region).__name__}"
            )
        _number(self.boost, "boost", least=0.0)
        if self.boost > 1.0:
            raise ParameterError(f"boost must be at most 1, got {self.boost!r}")
        if self.boost > 0.0 and self.region is None:
            raise ParameterError(f"boost needs a region unless it is 0, got {self.boost!r} without one")

    def around(self, x: float) -> Interval:
        """Return the region of x; the whole line without one."""
        return EVERYWHERE if self.region is None else self.region.around(x)

    def outside(self, x: float) -> float:
        """Return Pr(x + N not in S(x)) of the kernel alone, from its two tails."""
        low, high = self.around(x)
        return (self.kernel.mass(-math.inf, low - x) if low > -math.inf else 0.0) + (
            self.kernel.mass(high - x, math.inf) if high < math.inf else 0.0
        )

    def normaliser(self, x: float) -> float:
        """Return Z(x) = 1 - boost * outside(x).

        Raises:
            ParameterError: Nothing would be left: a boost of 1 about a region that the kernel never reaches.
        """
        z = 1.0 - self.boost * self.outside(x)
        if z <= 0.0:
            raise ParameterError(
                f"the kernel must reach the region for a boost of {self.boost!r}, got no mass in it"
            )
        return z

    def confidence(self, x: float) -> float:
        """Return Pr(y in S(x)), the confidence or acceptance rate (privacy-boosting eq. 1)."""
        low, high = self.around(x)
        return self.kernel.mass(low - x, high - x) / self.normaliser(x)

    def density(self, y: float, x: float) -> float:
        """Return the density of the output y given the value x."""
        low, high = self.around(x)
        weight = 1.0 if low <= y <= high else 1.0 - self.boost
        return weight * self.kernel.density(y - x) / self.normaliser(x)


def boost_for(
    kernel: NoiseKernel, region: Region, confidence: float, domain: Interval | None = None
) -> float:
    """Return the least boost at which every value has its output in its region with this confidence.

    q = max_x (rho - p(x)) / (rho (1 - p(x))), p the kernel's own chance (privacy-boosting eq. 3), 0 where the
    kernel meets it alone. p is least at the end of the domain that is farther from a fixed region's middle,
    and at the value nearest to 0 for a relative one.

    Args:
        kernel: Of the noise.
        region: Preferred outputs.
        confidence: rho in (0, 1).
        domain: Least and largest value; may be None for an absolute region.

    Raises:
        ParameterError: confidence is outside (0, 1), or a domain is needed and missing.
    """
    _number(confidence, "confidence", least=0.0)
    if not 0.0 < confidence < 1.0:
        raise ParameterError(f"confidence must be strictly between 0 and 1, got {confidence!r}")
    law = BoostedNoise(kernel, region, 0.0)
    outside = max(law.outside(x) for x in hardest(region, domain))
    return max(0.0, 1.0 - (1.0 - confidence) * (1.0 - outside) / (confidence * outside)) if outside else 0.0


def hardest(region: Region | None, domain: Interval | None) -> tuple[float, ...]:
    """Return the values among which the kernel's chance of the region is least."""
    if domain is None:
        if region is None or isinstance(region, AbsoluteRegion):
            return (0.0,)
        raise ParameterError(f"domain must be given for {type(region).__name__}, got None")
    low, high = domain
    if isinstance(region, RelativeRegion):
        return (min(max(0.0, low), high),)
    return (low, high)


def _number(value: float, subject: str, *, least: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ParameterError(f"{subject} must be a finite number, got {value!r}")
    if value < least:
        raise ParameterError(f"{subject} must be at least {least:g}, got {value!r}")
