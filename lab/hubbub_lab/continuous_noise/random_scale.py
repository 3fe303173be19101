"""Laplace noise whose inverse scale u follows a continuous law: uniform, or a Gaussian that is cut (r2dp).

Density E[u e^(-u|w|)] / 2 and tail E[e^(-u w)] / 2 (r2dp, Theorems 3.1 and 3.2). With `low` the least u and
v = u - low, both are e^(-low w) times

    E[(low + v) e^(-v w)]   and   E[e^(-v w)],

taken by 96 nodes of Gauss and Legendre over where the integrand is within e^-60 of its peak. Those are exact
to the last digits of a float. On that interval, made [-1, 1], the exponent is a quadratic that falls by at
most 60: its curvature adds at most 60 (4/3)^2 < 107 at a height of 4/3 above the axis, its slope at most 20
up to 5/3. So on the ellipse whose half axes, 5/3 and 4/3, add up to 3, the integrand is at most e^127 times
its peak, and the rule's error at most 64/15 e^127 3^-192 < e^-82 of the peak (Trefethen 2008, theorem 4.5).

One value at a time is taken from an `Interpolant` of their logarithms, which is made of those sums.

Two more laws have closed forms, in `mixtures`: finitely many atoms, and Gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms import Gamma, ScaleLaw, TruncatedGaussian, TwoPoint, UniformScale
from hubbub_lab.continuous_noise.interpolant import Interpolant
from hubbub_lab.continuous_noise.mixtures import GammaLaplace, LaplaceMixture
from hubbub_lab.continuous_noise.noise import NEGLIGIBLE, Floats, NoiseKernel, between

__all__ = ["RandomScale", "noise_of"]

_SIGMAS: Final = 10.0
"""The distance above its mean up to which a Gaussian rate gets panels."""

_DOUBLINGS: Final = 400
_BISECTIONS: Final = 52
_FAR: Final = 60
"""Doublings of a shift beyond which no log-ratio differs from its limit by more than rounding."""


@dataclass(frozen=True)
class RandomScale(NoiseKernel):
    """A Laplace kernel of an inverse scale with a continuous law.

    Attributes:
        law: Of the inverse scale, per unit of the value.
    """

    law: UniformScale | TruncatedGaussian
    _above: UniformScale | TruncatedGaussian = field(init=False, repr=False)
    _log_total: Interpolant = field(init=False, repr=False, compare=False)
    _log: Interpolant = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        law = self.law
        if isinstance(law, UniformScale):
            above: UniformScale | TruncatedGaussian = UniformScale(0.0, law.high - law.low)
        elif isinstance(law, TruncatedGaussian):
            above = TruncatedGaussian(law.mean - law.low, law.sigma, 0.0, law.high - law.low)
        else:
            raise ParameterError(f"law must be uniform or a truncated Gaussian, got {type(law).__name__}")
        object.__setattr__(self, "_above", above)
        first = 0.5 / (self._fastest - law.low)
        object.__setattr__(self, "_log_total", Interpolant(self._log_totals, first))
        object.__setattr__(self, "_log", Interpolant(self._logs, first))

    @property
    def kinks(self) -> tuple[float, ...]:
        """The corner at 0."""
        return (0.0,)

    def log_density(self, w: float) -> float:
        """Return -ln 2 + ln E[u e^(-u |w|)]."""
        return self._log(abs(w)) - self.law.low * abs(w) - math.log(2.0)

    def tail(self, w: float) -> float:
        """Return E[e^(-u w)] / 2; 0 at infinity."""
        return 0.0 if math.isinf(w) else 0.5 * math.exp(self._log_total(w) - self.law.low * w)

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many finite distances."""
        total, _, log = self._above.factored(w)
        return np.asarray(0.5 * total * np.exp(log - self.law.low * w))

    def log_ratio(self, w: float, shift: float) -> float:
        """Return the log-ratio; far out it tends to that of the least rate."""
        if math.isinf(w):
            return -self.law.low * shift if w > 0 else self.law.low * shift
        near, far = abs(w), abs(w - shift)
        return self.law.low * (far - near) + self._log(near) - self._log(far)

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets, all by bisection at once."""
        nodes = _nodes(low, high, abs(shift))
        known = self._ratios(nodes, shift)
        sign = 1.0 if self.log_ratio(high, shift) > self.log_ratio(low, shift) else -1.0
        place = np.clip(np.searchsorted(sign * known, sign * targets), 1, nodes.size - 1)
        left, right = nodes[place - 1], nodes[place]
        for _ in range(_BISECTIONS):
            middle = 0.5 * (left + right)
            beyond = sign * (self._ratios(middle, shift) - targets) > 0.0
            left, right = np.where(beyond, left, middle), np.where(beyond, middle, right)
        return np.asarray(0.5 * (left + right))

    def panels(self, shift: float, order: float) -> list[float]:
        """Return points that double from the scale of the fastest rate until nothing is left of the tail."""
        fastest = self._fastest
        reach = [0.5 / fastest]
        while len(reach) < _DOUBLINGS and self.tail(reach[-1]) > NEGLIGIBLE:
            reach.append(2.0 * reach[-1])
        ends = [0.0, shift, *between(0.0, shift, 1.0 / (fastest * max(2.0 * order, 1.0)))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})

    @property
    def _fastest(self) -> float:
        """The largest rate that there is any of."""
        law = self.law
        if isinstance(law, TruncatedGaussian):
            return min(law.high, max(law.mean, law.low) + _SIGMAS * law.sigma)
        return law.high

    def _ratios(self, w: Floats, shift: float) -> Floats:
        near, far = np.abs(w), np.abs(w - shift)
        logs = self._logs(np.concatenate([near, far]))
        return np.asarray(self.law.low * (far - near) + logs[: w.size] - logs[w.size :])

    def _log_totals(self, w: Floats) -> Floats:
        """Return the logarithm of E[e^(-(u - low) w)]: of twice the tail, without its slowest exponential."""
        total, _, log = self._above.factored(w)
        return np.asarray(np.log(total) + log)

    def _logs(self, w: Floats) -> Floats:
        """Return ln E[u e^(-(u - low) w)]: of twice the density, without its slowest exponential."""
        total, first, log = self._above.factored(w)
        return np.asarray(np.log(self.law.low * total + first) + log)


def _nodes(low: float, high: float, step: float) -> Floats:
    """Return the points of a stretch in order, ends included: even, or doubling from the finite end."""
    away = step * 2.0 ** np.arange(-8, _FAR)
    if math.isinf(high):
        return np.concatenate([[low], low + away])
    if math.isinf(low):
        return np.concatenate([high - away[::-1], [high]])
    return np.linspace(low, high, 65)


def noise_of(law: ScaleLaw) -> NoiseKernel:
    """Return the noise kernel of any law of the inverse scale.

    Raises:
        ParameterError: If there is none for it.

    >>> noise_of(TwoPoint(3.0, 1.0, 0.25)).weights
    (0.25, 0.75)
    """
    if isinstance(law, TwoPoint):
        atoms = [(u, p) for u, p in ((law.fast, law.share), (law.slow, 1.0 - law.share)) if p > 0.0]
        return LaplaceMixture([u for u, _ in atoms], [p for _, p in atoms])
    if isinstance(law, Gamma):
        return GammaLaplace(law.shape, law.scale)
    if isinstance(law, UniformScale | TruncatedGaussian):
        return RandomScale(law)
    raise ParameterError(f"law must be a law of the inverse scale, got {type(law).__name__}")
