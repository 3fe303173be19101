"""Continuous noise kernels: density, tails and log-ratio of two shifted copies, exact to float precision.

Every kernel is symmetric about 0 and its density never rises with the distance from 0. Between the points
named by `kinks` of two copies, one at 0 and one at `shift`, the log-ratio of their densities is continuous
and monotone: that is what makes every privacy figure a finite sum of differences of tails.

Laplace, Gaussian and uniform are the kernels of budget-recycling-dp section 3 and privacy-boosting section 3.
Laplace noise of a random scale is in `mixtures` and `random_scale`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

__all__ = ["Gaussian", "Laplace", "NoiseKernel", "UniformNoise"]

_ROOT2: Final = math.sqrt(2.0)
NEGLIGIBLE: Final = 1e-30
"""Panels of a quadrature end where the tail is below this."""

Floats = NDArray[np.float64]


class NoiseKernel(ABC):
    """A symmetric noise about 0 with a density that never rises away from 0."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """The points where the log-density has a corner or a jump, ascending."""
        return ()

    @abstractmethod
    def log_density(self, w: float) -> float:
        """Return ln f(w) at a finite w; -inf where the density is 0."""

    def density(self, w: float) -> float:
        """Return f(w)."""
        return math.exp(self.log_density(w))

    @abstractmethod
    def tail(self, w: float) -> float:
        """Return Pr(N > w) for w >= 0, accurate relative to itself."""

    @abstractmethod
    def log_ratio(self, w: float, shift: float) -> float:
        """Return ln f(w) - ln f(w - shift), its limit where w is infinite; +-inf where one density is 0."""

    @abstractmethod
    def panels(self, shift: float, order: float) -> list[float]:
        """Return points between which f(w)^order f(w - shift)^(1 - order) is smooth enough to integrate."""

    def mass(self, low: float, high: float) -> float:
        """Return Pr(low < N <= high).

        From the tails on its own side, so that small masses keep their digits.
        """
        if high <= low:
            return 0.0
        if low >= 0.0:
            return self.tail(low) - self.tail(high)
        if high <= 0.0:
            return self.tail(-high) - self.tail(-low)
        return 1.0 - self.tail(-low) - self.tail(high)

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances, shape (n,)."""
        return np.array([self.tail(distance) for distance in w.tolist()])

    def sides(self, w: Floats) -> tuple[Floats, Floats]:
        """Return Pr(N <= w) and Pr(N > w) at many points.

        The smaller of the two accurate relative to itself.
        """
        tails = self.tails(np.abs(w))
        right = w >= 0.0
        return np.where(right, 1.0 - tails, tails), np.where(right, tails, 1.0 - tails)

    def reach(self, mass: float) -> float:
        """Return a distance beyond which, on each side, at most this mass lies.

        Near the least one, or inf.
        """
        high = 1.0
        while self.tail(high) > mass:
            high *= 2.0
        if math.isinf(high):
            return high
        low = 0.5 * high
        while low > 0.0 and self.tail(low) <= mass:
            low, high = 0.5 * low, low
        for _ in range(10):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.tail(middle) <= mass else (middle, high)
        return high

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets, shape (n,)."""
        return np.array([self.crossing(target, low, high, shift) for target in targets.tolist()])

    def crossing(self, target: float, low: float, high: float, shift: float) -> float:
        """Return the w in (low, high) where log_ratio passes target, for a stretch on which it is monotone.

        Args:
            target: Strictly between the log-ratios at the two ends.
            low: Left end, may be -inf.
            high: Right end, may be inf.
            shift: Of the second copy.
        """
        rising = self.log_ratio(high, shift) > self.log_ratio(low, shift)
        step = 1.0
        while math.isinf(high) or math.isinf(low):
            start = 0.0 if math.isinf(high) and math.isinf(low) else (low if math.isinf(high) else high)
            probe = start + (step if math.isinf(high) else -step)
            if (self.log_ratio(probe, shift) > target) == rising:
                high = probe
            else:
                low = probe
            step *= 2.0
        return self._root(target, low, high, shift)

    def _root(self, target: float, low: float, high: float, shift: float) -> float:
        """Return the root by regula falsi (Illinois), with a bisection where the bracket was not halved."""
        at_low, at_high = self.log_ratio(low, shift) - target, self.log_ratio(high, shift) - target
        side = 0
        while True:
            width = high - low
            guess = high - at_high * width / (at_high - at_low)
            if not low < guess < high:
                return low if abs(at_low) < abs(at_high) else high
            for point in (guess, 0.5 * (low + high)):
                if not low < point < high:
                    return guess
                at_point = self.log_ratio(point, shift) - target
                if at_point == 0.0:
                    return point
                if (at_point > 0.0) == (at_high > 0.0):
                    high, at_high, at_low = point, at_point, 0.5 * at_low if side == 1 else at_low
                    side = 1
                else:
                    low, at_low, at_high = point, at_point, 0.5 * at_high if side == -1 else at_high
                    side = -1
                if high - low <= 0.5 * width:
                    break


def positive(value: float, subject: str) -> float:
    """Return a positive value, or raise the ParameterError that names its subject."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value <= 0.0
    ):
        raise ParameterError(f"{subject} must be a positive finite number, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Laplace(NoiseKernel):
    """A kernel of density e^(-|w| / scale) / (2 scale).

    Attributes:
        scale: b > 0, in units of the value; plain Laplace noise costs sensitivity / scale.

    >>> Laplace(2.0).tail(0.0)
    0.5
    """

    scale: float

    def __post_init__(self) -> None:
        positive(self.scale, "the scale of a Laplace kernel")

    @property
    def kinks(self) -> tuple[float, ...]:
        """The corner at 0."""
        return (0.0,)

    def log_density(self, w: float) -> float:
        """Return -|w| / scale - ln(2 scale)."""
        return -abs(w) / self.scale - math.log(2.0 * self.scale)

    def tail(self, w: float) -> float:
        """Return e^(-w / scale) / 2."""
        return 0.5 * math.exp(-w / self.scale)

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances."""
        return np.asarray(0.5 * np.exp(-w / self.scale))

    def log_ratio(self, w: float, shift: float) -> float:
        """Return (|w - shift| - |w|) / scale."""
        # |w - shift| - |w|, without the cancellation that two large distances would bring
        period = abs(shift)
        gap = min(max(period - 2.0 * (w if shift >= 0 else -w), -period), period)
        return gap / self.scale

    def crossing(self, target: float, low: float, high: float, shift: float) -> float:
        """Return the crossing on the line between the two corners."""
        w = 0.5 * (abs(shift) - target * self.scale)
        return min(max(w if shift >= 0 else -w, low), high)

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets."""
        w = 0.5 * (abs(shift) - targets * self.scale)
        return np.clip(w if shift >= 0 else -w, low, high)

    def panels(self, shift: float, order: float) -> list[float]:
        """Return points whose distance halves toward the corners and doubles away from them."""
        reach = [0.5 * self.scale * 2.0**i for i in range(10)]
        ends = [0.0, shift, *between(0.0, shift, self.scale / max(2.0 * order, 1.0))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})


@dataclass(frozen=True)
class Gaussian(NoiseKernel):
    """A kernel of density e^(-w^2 / (2 sigma^2)) / (sigma sqrt(2 pi)).

    Attributes:
        sigma: Standard deviation > 0, in units of the value.
    """

    sigma: float

    def __post_init__(self) -> None:
        positive(self.sigma, "the sigma of a Gaussian kernel")

    def log_density(self, w: float) -> float:
        """Return -w^2 / (2 sigma^2) - ln(sigma sqrt(2 pi))."""
        return -0.5 * (w / self.sigma) ** 2 - math.log(self.sigma * math.sqrt(2.0 * math.pi))

    def tail(self, w: float) -> float:
        """Return erfc(w / (sigma sqrt 2)) / 2."""
        return 0.5 * math.erfc(w / (self.sigma * _ROOT2))

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances."""
        z = w / (self.sigma * _ROOT2)
        return 0.5 * np.fromiter(map(math.erfc, z.tolist()), dtype=np.float64, count=z.size)

    def log_ratio(self, w: float, shift: float) -> float:
        """Return (shift - 2 w) shift / (2 sigma^2)."""
        return 0.5 * (shift / self.sigma) * ((shift - 2.0 * w) / self.sigma)

    def crossing(self, target: float, low: float, high: float, shift: float) -> float:
        """Return the crossing; the log-ratio is linear in w everywhere."""
        return min(max(0.5 * shift - target * self.sigma * (self.sigma / shift), low), high)

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets."""
        return np.clip(0.5 * shift - targets * (self.sigma * (self.sigma / shift)), low, high)

    def panels(self, shift: float, order: float) -> list[float]:
        """Return points a sigma apart about the integrand, a Gaussian about (1 - order) shift."""
        centre = (1.0 - order) * shift
        return [centre + self.sigma * i for i in range(-12, 13)]


@dataclass(frozen=True)
class UniformNoise(NoiseKernel):
    """A kernel of density 1 / (2 half_width) on [-half_width, half_width]: bounded, hence never pure.

    Attributes:
        half_width: > 0, in units of the value.
    """

    half_width: float

    def __post_init__(self) -> None:
        positive(self.half_width, "the half_width of a uniform kernel")

    @property
    def kinks(self) -> tuple[float, ...]:
        """The two jumps."""
        return (-self.half_width, self.half_width)

    def log_density(self, w: float) -> float:
        """Return -ln(2 half_width) inside."""
        return -math.log(2.0 * self.half_width) if abs(w) <= self.half_width else -math.inf

    def tail(self, w: float) -> float:
        """Return (1 - w / half_width) / 2, and 0 beyond."""
        return 0.5 * max(0.0, 1.0 - w / self.half_width)

    def log_ratio(self, w: float, shift: float) -> float:
        """Return 0 where both densities are positive, +-inf where only one is."""
        here, there = abs(w) <= self.half_width, abs(w - shift) <= self.half_width
        if here == there:
            return 0.0
        return math.inf if here else -math.inf

    def panels(self, shift: float, order: float) -> list[float]:
        """Return the jumps of both densities, four in all."""
        h = self.half_width
        return sorted({-h, h, shift - h, shift + h})


def between(low: float, high: float, step: float) -> list[float]:
    """Return equally spaced points strictly between two others, at most 256 of them."""
    low, high = min(low, high), max(low, high)
    count = min(256, math.ceil((high - low) / step))
    return [low + (high - low) * i / count for i in range(1, count)]
