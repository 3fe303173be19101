"""Laws of the random inverse scale u of Laplace noise, by which r2dp builds its mechanisms.

Noise N given u is Laplace of scale 1/u. Everything that is asked of it is an expectation over u:

    density  f(w) = E[u e^(-u |w|)] / 2 = M'(-|w|) / 2,      tail  Pr(|N| > w) = E[e^(-u w)] = M(-w),

with M the moment generating function of u (r2dp, Theorems 3.1 and 3.2). Nothing is drawn from these laws on
a device, which sees integers only.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

_REACH: Final = 60.0
"""Integrands are followed until they have fallen by e^60: what lies beyond is below rounding."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_BISECTIONS: Final = 50


class ScaleLaw(ABC):
    """A law of the inverse scale u > 0, per unit of the value."""

    @abstractmethod
    def tilted(self, power: int, w: Floats) -> Floats:
        """Return E[u^power e^(-u w)] for every w >= 0, shape (n,), and power 0, 1 or 2."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the law of factor times u."""

    def moment(self, power: int, w: float = 0.0) -> float:
        """Return E[u^power e^(-u w)] for one w."""
        return float(self.tilted(power, np.array([w]))[0])

    def epsilon(self, sensitivity: float) -> float:
        """Return the exact epsilon ln[E(u) / M'(-sensitivity)] of this noise (r2dp, Corollary 3.3).

        It holds for every law: the density is a mixture of exponentials, log-convex on each side of 0, so
        its largest log-ratio over a shift is taken at 0. In floats: for design, not for proof.

        Args:
            sensitivity: The largest difference of two values, > 0.
        """
        return math.log(self.moment(1)) - math.log(self.moment(1, _positive(sensitivity, "sensitivity")))

    def fitted(self, epsilon: float, sensitivity: float) -> Self:
        """Return this law rescaled so that its epsilon at a sensitivity is the one asked for.

        Raises:
            ParameterError: If epsilon or sensitivity is not positive.
        """
        _positive(epsilon, "epsilon")
        centre = math.log(epsilon / _positive(sensitivity, "sensitivity") / self.moment(1))

        def exceeds(power: float) -> bool:
            try:
                return self.scaled(math.exp(centre + power)).epsilon(sensitivity) > epsilon
            except (ValueError, OverflowError, ParameterError):
                return True  # e^-u sensitivity has underflowed: much too far

        high = 1.0
        while not exceeds(high):
            high *= 2.0
        low = -1.0
        while exceeds(low):
            low *= 2.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if exceeds(middle) else (middle, high)
        return self.scaled(math.exp(centre + low))


@dataclass(frozen=True)
class TwoPoint(ScaleLaw):
    """A law of inverse scale `fast` with probability `share`, else `slow` (r2dp section IV-B, Bernoulli).

    r2dp's Theorem 4.4 claims ln[p e^(Delta fast) + (1-p) e^(Delta slow)] for it, which is not its epsilon:
    for {1, 3}, p = 1/2 and Delta = 0.1 it claims .20499 where the truth is .24613.

    Attributes:
        fast: The larger inverse scale.
        slow: The smaller one, > 0.
        share: Probability of `fast`, in [0, 1].
    """

    fast: float
    slow: float
    share: float

    def __post_init__(self) -> None:
        _positive(self.slow, "slow")
        if not self.slow <= self.fast < math.inf:
            raise ParameterError(f"fast must be finite and at least slow {self.slow!r}, got {self.fast!r}")
        if not 0.0 <= self.share <= 1.0:
            raise ParameterError(f"share must be within [0, 1], got {self.share!r}")

    def tilted(self, power: int, w: Floats) -> Floats:  # noqa: D102 - inherited
        fast = self.share * self.fast**power * np.exp(-self.fast * w)
        return np.asarray(fast + (1.0 - self.share) * self.slow**power * np.exp(-self.slow * w))

    def scaled(self, factor: float) -> Self:  # noqa: D102 - inherited
        return type(self)(factor * self.fast, factor * self.slow, self.share)


@dataclass(frozen=True)
class Gamma(ScaleLaw):
    """A Gamma law of the inverse scale; epsilon = (shape + 1) ln(1 + scale Delta) (r2dp, Theorem 4.5).

    Attributes:
        shape: k > 0. The noise has a mean only for k > 1, a variance only for k > 2.
        scale: theta > 0, per unit of the value; E(u) = k theta.
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        _positive(self.shape, "shape")
        _positive(self.scale, "scale")

    def tilted(self, power: int, w: Floats) -> Floats:  # noqa: D102 - inherited
        size = math.prod((self.shape + i) * self.scale for i in range(power))
        return np.asarray(size * np.exp(-(self.shape + power) * np.log1p(self.scale * w)))

    def scaled(self, factor: float) -> Self:  # noqa: D102 - inherited
        return type(self)(self.shape, factor * self.scale)


@dataclass(frozen=True)
class UniformScale(ScaleLaw):
    """A uniform law of the inverse scale on [low, high] (r2dp, Theorem 4.7).

    Attributes:
        low: >= 0. At 0 the noise has no mean.
        high: > low.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_range(self.low, self.high)
        if self.high == math.inf:
            raise ParameterError(f"high must be finite, got {self.high!r}")

    def tilted(self, power: int, w: Floats) -> Floats:  # noqa: D102 - inherited
        length = np.minimum(self.high - self.low, _REACH / np.maximum(w, 1e-300))
        inner = _integral(lambda v: (self.low + v) ** power * np.exp(-v * w[:, None]), 0.0 * w, length)
        return np.asarray(np.exp(-self.low * w) * inner / (self.high - self.low))

    def factored(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E[e^(-u w)] and E[u e^(-u w)], each less a common factor, and the factor's logarithm.

        For w so large that the two underflow; the factor is e^(-low w).
        """
        length = np.minimum(self.high - self.low, _REACH / np.maximum(w, 1e-300))
        half = (length / 2.0)[:, None]
        v = half * (_NODES + 1.0)
        share = np.exp(-v * w[:, None]) * _WEIGHTS * half / (self.high - self.low)
        return share.sum(axis=1), (share * (self.low + v)).sum(axis=1), -self.low * w

    def scaled(self, factor: float) -> Self:  # noqa: D102 - inherited
        return type(self)(factor * self.low, factor * self.high)


@dataclass(frozen=True)
class TruncatedGaussian(ScaleLaw):
    """A Gaussian law of the inverse scale, cut to [low, high] (r2dp, Theorem 4.9).

    Attributes:
        mean: Of the Gaussian before it is cut.
        sigma: Its standard deviation, > 0.
        low: >= 0. At 0 the noise has no mean.
        high: > low; inf: not cut above.
    """

    mean: float
    sigma: float
    low: float
    high: float = math.inf

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean):
            raise ParameterError(f"mean must be finite, got {self.mean!r}")
        _positive(self.sigma, "sigma")
        _check_range(self.low, self.high)

    def tilted(self, power: int, w: Floats) -> Floats:
        """Return E[u^power e^(-u w)] by quadrature about the tilted law's peak, where all of it is."""
        start, end = self._window(w)
        # Integrands are taken relative to their value at the peak, which alone may underflow.
        peak = np.clip(self.mean - self.sigma**2 * w, self.low, self.high)

        def density(u: Floats) -> Floats:
            log = self._exponent(u, w[:, None]) - self._exponent(peak, w)[:, None]
            return np.asarray(u**power * np.exp(-log))

        inner = _integral(density, start, end)
        return np.asarray(inner * np.exp(self._norm - self._exponent(peak, w)))

    def factored(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E[e^(-u w)] and E[u e^(-u w)], each less a common factor, and the factor's logarithm.

        For w so large that the two underflow; the factor is the tilted density's peak.
        """
        start, end = self._window(w)
        peak = np.clip(self.mean - self.sigma**2 * w, self.low, self.high)
        top = self._exponent(peak, w)
        half = ((end - start) / 2.0)[:, None]
        u = start[:, None] + half * (_NODES + 1.0)
        share = np.exp(top[:, None] - self._exponent(u, w[:, None])) * _WEIGHTS * half
        return share.sum(axis=1), (share * u).sum(axis=1), self._norm - top

    def scaled(self, factor: float) -> Self:  # noqa: D102 - inherited
        return type(self)(factor * self.mean, factor * self.sigma, factor * self.low, factor * self.high)

    @cached_property
    def _norm(self) -> float:
        """Minus the logarithm of the integral of e^-exponent over the range, at w = 0."""
        zero = np.zeros(1)
        peak = np.clip(self.mean, self.low, self.high)
        best = float(self._exponent(np.array([peak]), zero)[0])
        start, end = self._window(zero)
        whole = _integral(lambda u: np.exp(best - self._exponent(u, zero)), start, end)
        return best - math.log(float(whole[0]))

    def _exponent(self, u: Floats, w: Floats) -> Floats:
        return np.asarray(((u - self.mean) / self.sigma) ** 2 / 2.0 + u * w)

    def _window(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the range where the tilted density is within e^-_REACH of its peak, per w."""
        centre = self.mean - self.sigma**2 * w
        peak = np.clip(centre, self.low, self.high)
        away = np.abs(peak - centre)
        room = 2.0 * _REACH * self.sigma**2
        radius = np.sqrt(away**2 + room)
        beyond = room / (radius + away)  # radius - away without its cancellation
        start = np.where(peak > centre, peak, np.where(peak < centre, peak - beyond, centre - radius))
        end = np.where(peak < centre, peak, np.where(peak > centre, peak + beyond, centre + radius))
        return np.maximum(start, self.low), np.minimum(end, self.high)


def _integral(density: Callable[[Floats], Floats], start: Floats, end: Floats) -> Floats:
    """Return integrals over [start, end], shape (n,), of a density on points of shape (n, nodes)."""
    half = ((end - start) / 2.0)[:, None]
    points = start[:, None] + half * (_NODES + 1.0)
    return np.asarray((density(points) * _WEIGHTS).sum(axis=1) * half[:, 0])


def _positive(number: float, subject: str) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 < number < math.inf:
        raise ParameterError(f"{subject} must be a finite number above 0, got {number!r}")
    return float(number)


def _check_range(low: float, high: float) -> None:
    if not 0.0 <= low < math.inf:
        raise ParameterError(f"low must be a finite number of at least 0, got {low!r}")
    if not high > low:
        raise ParameterError(f"high must be above low {low!r}, got {high!r}")
