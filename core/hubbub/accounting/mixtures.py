"""Laplace noise whose inverse scale u is drawn anew for every report, in closed form (r2dp section III).

Density E[u e^(-u|w|)] / 2 and tail E[e^(-u w)] / 2, with u from finitely many atoms or from a Gamma law;
`random_scale` has two more laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from hubbub.accounting.noise import NEGLIGIBLE, Floats, Kernel, between, positive
from hubbub.errors import ParameterError

__all__ = ["GammaLaplace", "LaplaceMixture"]

_NODES: Final = 1025
_HALVINGS: Final = 18
"""For many crossings at once: so many brackets, halved so often. Delta is stationary in where an event is
cut: its error is the square of theirs, 4e-9 of a stretch."""


@dataclass(frozen=True)
class LaplaceMixture(Kernel):
    """Laplace noise whose inverse scale is drawn anew for every report from finitely many (r2dp section IV).

    Attributes:
        rates: Inverse scales u > 0, per unit of the value.
        weights: Their probabilities, > 0; they are divided by their sum.
    """

    rates: tuple[float, ...]
    weights: tuple[float, ...]
    _parts: tuple[tuple[float, float], ...] = field(init=False, repr=False)

    def __init__(self, rates: Sequence[float], weights: Sequence[float]) -> None:
        if len(rates) != len(weights) or not rates:
            raise ParameterError(
                f"rates and weights must be as many, at least one, got {len(rates)} and {len(weights)}"
            )
        for rate, weight in zip(rates, weights, strict=True):
            positive(rate, "a rate of a Laplace mixture")
            positive(weight, "a weight of a Laplace mixture")
        total = math.fsum(weights)
        object.__setattr__(self, "rates", tuple(float(rate) for rate in rates))
        object.__setattr__(self, "weights", tuple(weight / total for weight in weights))
        object.__setattr__(self, "_parts", tuple(zip(self.rates, self.weights, strict=True)))

    @property
    def kinks(self) -> tuple[float, ...]:
        """The corner at 0."""
        return (0.0,)

    def log_density(self, w: float) -> float:
        """-ln 2 + ln E[u e^(-u |w|)]."""
        slowest = min(self.rates)
        return math.log(0.5 * self._excess(abs(w), slowest)) - slowest * abs(w)

    def tail(self, w: float) -> float:
        """E[e^(-u w)] / 2."""
        return 0.5 * math.fsum(p * math.exp(-u * w) for u, p in self._parts)

    def log_ratio(self, w: float, shift: float) -> float:
        """Tends to that of the slowest rate."""
        slowest = min(self.rates)
        if math.isinf(w):
            return -slowest * shift if w > 0 else slowest * shift
        gap = abs(w - shift) - abs(w)
        here = self._excess(abs(w), slowest)
        return slowest * gap + math.log(here / self._excess(abs(w - shift), slowest))

    def _excess(self, w: float, slowest: float) -> float:
        """The density without its slowest exponential, so that it never underflows."""
        return math.fsum(p * u * math.exp(-(u - slowest) * w) for u, p in self._parts)

    def tails(self, w: Floats) -> Floats:
        """`tail` of many distances."""
        return np.asarray(0.5 * sum(p * np.exp(-u * w) for u, p in self._parts))

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """`crossing` of many targets, all by bisection at once."""
        slowest = min(self.rates)
        far = abs(shift) + 40.0 / slowest
        low, high = max(low, -far), min(high, far)

        def ratios(w: Floats) -> Floats:
            near, off = np.abs(w), np.abs(w - shift)
            parts = [(p * u, u - slowest) for u, p in self._parts]
            here, there = (sum(v * np.exp(-u * d) for v, u in parts) for d in (near, off))
            return np.asarray(slowest * (off - near) + np.log(here / there))

        nodes = np.linspace(low, high, _NODES)
        known = ratios(nodes)
        sign = 1.0 if known[-1] > known[0] else -1.0
        place = np.clip(np.searchsorted(sign * known, sign * targets), 1, _NODES - 1)
        left, right = nodes[place - 1], nodes[place]
        for _ in range(_HALVINGS):
            middle = 0.5 * (left + right)
            beyond = sign * (ratios(middle) - targets) > 0.0
            left, right = np.where(beyond, left, middle), np.where(beyond, middle, right)
        return right

    def panels(self, shift: float, order: float) -> list[float]:
        """From the fastest rate to well beyond the slowest."""
        fastest, slowest = max(self.rates), min(self.rates)
        reach = [0.5 / fastest * 2.0**i for i in range(10 + math.ceil(math.log2(fastest / slowest)))]
        ends = [0.0, shift, *between(0.0, shift, 1.0 / (fastest * max(2.0 * order, 1.0)))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})


@dataclass(frozen=True)
class GammaLaplace(Kernel):
    """Laplace noise whose inverse scale is Gamma(shape, rate_scale): tail (1 + rate_scale w)^-shape / 2.

    Its pure epsilon is (shape + 1) ln(1 + rate_scale * sensitivity) (r2dp Theorem 4.5).

    Attributes:
        shape: k > 0.
        rate_scale: theta > 0, per unit of the value.
    """

    shape: float
    rate_scale: float

    def __post_init__(self) -> None:
        positive(self.shape, "the shape of a Gamma-Laplace kernel")
        positive(self.rate_scale, "the rate_scale of a Gamma-Laplace kernel")

    @property
    def kinks(self) -> tuple[float, ...]:
        """The corner at 0."""
        return (0.0,)

    def log_density(self, w: float) -> float:
        """ln(k theta / 2) - (k + 1) ln(1 + theta |w|)."""
        grown = math.log1p(self.rate_scale * abs(w))
        return math.log(0.5 * self.shape * self.rate_scale) - (self.shape + 1.0) * grown

    def tail(self, w: float) -> float:
        """(1 + theta w)^-k / 2."""
        return 0.5 * math.exp(-self.shape * math.log1p(self.rate_scale * w))

    def tails(self, w: Floats) -> Floats:
        """`tail` of many distances."""
        return np.asarray(0.5 * np.exp(-self.shape * np.log1p(self.rate_scale * w)))

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """`crossing` of many targets: a fraction of two lines between the corners and beyond each."""
        sign = 1.0 if shift >= 0.0 else -1.0
        span, near, far = abs(shift), sign * low, sign * high
        near, far = min(near, far), max(near, far)
        ratio = np.exp(targets / (self.shape + 1.0))  # (1 + theta |v - span|) / (1 + theta |v|), v = sign w
        grown = np.expm1(targets / (self.shape + 1.0))
        with np.errstate(divide="ignore"):
            if near >= 0.0 and far <= span:
                v = (span + (1.0 - ratio) / self.rate_scale) / (1.0 + ratio)
            elif far <= 0.0:
                v = 1.0 / self.rate_scale - span / grown
            else:
                v = -1.0 / self.rate_scale - span / grown
        return np.clip(sign * v, low, high)

    def log_ratio(self, w: float, shift: float) -> float:
        """(k + 1) ln((1 + theta |w - shift|) / (1 + theta |w|))."""
        if math.isinf(w):
            return 0.0
        gap = abs(w - shift) - abs(w)
        return (self.shape + 1.0) * math.log1p(self.rate_scale * gap / (1.0 + self.rate_scale * abs(w)))

    def panels(self, shift: float, order: float) -> list[float]:
        """Doublings until nothing is left of the tail."""
        reach: list[float] = []
        step = 0.125 / (self.rate_scale * max(self.shape, 1.0))
        while len(reach) < 400 and (not reach or self.tail(reach[-1]) > NEGLIGIBLE):
            reach.append(step)
            step *= 2.0
        ends = [0.0, shift, *between(0.0, shift, _step_of(self, order))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})


def _step_of(kernel: GammaLaplace, order: float) -> float:
    """A width over which the integrand of a Renyi divergence changes by a few e-folds at most."""
    return 1.0 / (kernel.rate_scale * (kernel.shape + 1.0) * max(2.0 * order, 1.0))
