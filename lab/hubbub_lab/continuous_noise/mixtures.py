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

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.noise import NEGLIGIBLE, Floats, NoiseKernel, between, positive

__all__ = ["GammaLaplace", "LaplaceMixture"]

_NODES: Final = 65
_SHARES: Final = np.linspace(0.0, 1.0, _NODES)
_STEPS: Final = 60
_CLOSE: Final = 1e-6
"""For many crossings at once: so many points to start from and so many steps at most, the last one from where
the loss misses its target by less than this. Newton's step about squares that, and delta is stationary in
where an event is cut: its error is the square again."""


@dataclass(frozen=True)
class LaplaceMixture(NoiseKernel):
    """A Laplace kernel whose inverse scale is drawn anew from finitely many (r2dp section IV).

    Attributes:
        rates: Inverse scales u > 0, per unit of the value.
        weights: Their probabilities, > 0; they are divided by their sum.
    """

    rates: tuple[float, ...]
    weights: tuple[float, ...]
    _parts: tuple[tuple[float, float], ...] = field(init=False, repr=False)
    _slowest: float = field(init=False, repr=False)
    _faster: Floats = field(init=False, repr=False, compare=False)  # (k, 1): slowest - rate
    _moments: Floats = field(init=False, repr=False, compare=False)  # (2, k): p u, and p u^2

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
        slowest, (u, p) = min(self.rates), np.array(self._parts).T
        object.__setattr__(self, "_slowest", slowest)
        object.__setattr__(self, "_faster", (slowest - u)[:, None])
        object.__setattr__(self, "_moments", np.array([p * u, p * u * u]))

    @property
    def kinks(self) -> tuple[float, ...]:
        """The corner at 0."""
        return (0.0,)

    def log_density(self, w: float) -> float:
        """Return -ln 2 + ln E[u e^(-u |w|)]."""
        return math.log(0.5 * self._excess(abs(w))) - self._slowest * abs(w)

    def tail(self, w: float) -> float:
        """Return E[e^(-u w)] / 2."""
        total = 0.0
        for u, p in self._parts:
            total += p * math.exp(-u * w)
        return 0.5 * total

    def log_ratio(self, w: float, shift: float) -> float:
        """Return the log-ratio; far out it tends to that of the slowest rate."""
        if math.isinf(w):
            return -self._slowest * shift if w > 0 else self._slowest * shift
        near, far = abs(w), abs(w - shift)
        return self._slowest * (far - near) + math.log(self._excess(near) / self._excess(far))

    def _excess(self, w: float) -> float:
        """Return the density without its slowest exponential, so that it never underflows."""
        slowest, total = self._slowest, 0.0
        for u, p in self._parts:
            total += p * u * math.exp((slowest - u) * w)
        return total

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances."""
        return np.asarray(0.5 * sum(p * np.exp(-u * w) for u, p in self._parts))

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets: the w between low and high where R(w) is the target.

        R is `log_ratio` at the shift, which rises or falls all the way. Its values at equally spaced nodes
        give each target a bracket, left < w < right, and from a line's guess in it all take Newton's steps

            w <- w - (R(w) - target) / R'(w),

        or the bracket's middle where that would leave the bracket.
        """
        far = abs(shift) + 40.0 / self._slowest  # beyond it the ratio is that of the slowest rate alone
        low, high = max(low, -far), min(high, far)
        nodes = low + (high - low) * _SHARES
        at_nodes = self._ratios(nodes, shift)[0]
        sign = 1.0 if at_nodes[-1] > at_nodes[0] else -1.0  # R rises, or falls
        place = np.minimum(np.maximum((sign * at_nodes).searchsorted(sign * targets), 1), _NODES - 1)
        left, right, at_left, at_right = nodes[place - 1], nodes[place], at_nodes[place - 1], at_nodes[place]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = (targets - at_left) / (at_right - at_left)
            w = left + np.where((part >= 0.0) & (part <= 1.0), part, 0.5) * (right - left)
        for _ in range(_STEPS):
            ratio, slope = self._ratios(w, shift)
            miss = ratio - targets
            too_far = sign * miss > 0.0
            left, right = np.where(too_far, left, w), np.where(too_far, w, right)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = w - miss / slope
            inside, close = (left < newton) & (newton < right), np.abs(miss) <= _CLOSE
            # One that is close already stays where it is.
            w = np.where(inside, newton, np.where(close, w, 0.5 * (left + right)))
            if close.all():
                break
        return np.asarray(w)

    def _ratios(self, w: Floats, shift: float) -> tuple[Floats, Floats]:
        """Return `log_ratio` at many points, and its slope there."""
        count = w.size
        signed = np.concatenate([w, w - shift])
        distances = np.abs(signed)
        # the densities without their slowest exponential, so that they never underflow, and their slopes
        sizes, falls = self._moments @ np.exp(self._faster * distances)
        logs, slopes = np.log(sizes) - self._slowest * distances, -np.sign(signed) * falls / sizes
        return logs[:count] - logs[count:], slopes[:count] - slopes[count:]

    def panels(self, shift: float, order: float) -> list[float]:
        """Return points from the scale of the fastest rate to well beyond that of the slowest."""
        fastest, slowest = max(self.rates), min(self.rates)
        reach = [0.5 / fastest * 2.0**i for i in range(10 + math.ceil(math.log2(fastest / slowest)))]
        ends = [0.0, shift, *between(0.0, shift, 1.0 / (fastest * max(2.0 * order, 1.0)))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})


@dataclass(frozen=True)
class GammaLaplace(NoiseKernel):
    """A Laplace kernel whose inverse scale is Gamma(shape, rate_scale): tail (1 + rate_scale w)^-shape / 2.

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
        """Return ln(k theta / 2) - (k + 1) ln(1 + theta |w|)."""
        grown = math.log1p(self.rate_scale * abs(w))
        return math.log(0.5 * self.shape * self.rate_scale) - (self.shape + 1.0) * grown

    def tail(self, w: float) -> float:
        """Return (1 + theta w)^-k / 2."""
        return 0.5 * math.exp(-self.shape * math.log1p(self.rate_scale * w))

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances."""
        return np.asarray(0.5 * np.exp(-self.shape * np.log1p(self.rate_scale * w)))

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets: a fraction of two lines between the corners and beyond each."""
        sign = 1.0 if shift >= 0.0 else -1.0
        period, near, far = abs(shift), sign * low, sign * high
        near, far = min(near, far), max(near, far)
        ratio = np.exp(targets / (self.shape + 1.0))  # (1 + theta |v - span|) / (1 + theta |v|), v = sign w
        grown = np.expm1(targets / (self.shape + 1.0))
        with np.errstate(divide="ignore"):
            if near >= 0.0 and far <= period:
                v = (period + (1.0 - ratio) / self.rate_scale) / (1.0 + ratio)
            elif far <= 0.0:
                v = 1.0 / self.rate_scale - period / grown
            else:
                v = -1.0 / self.rate_scale - period / grown
        return np.clip(sign * v, low, high)

    def log_ratio(self, w: float, shift: float) -> float:
        """Return (k + 1) ln((1 + theta |w - shift|) / (1 + theta |w|))."""
        if math.isinf(w):
            return 0.0
        gap = abs(w - shift) - abs(w)
        return (self.shape + 1.0) * math.log1p(self.rate_scale * gap / (1.0 + self.rate_scale * abs(w)))

    def panels(self, shift: float, order: float) -> list[float]:
        """Return points that double until nothing is left of the tail."""
        reach: list[float] = []
        step = 0.125 / (self.rate_scale * max(self.shape, 1.0))
        while len(reach) < 400 and (not reach or self.tail(reach[-1]) > NEGLIGIBLE):
            reach.append(step)
            step *= 2.0
        ends = [0.0, shift, *between(0.0, shift, _step_of(self, order))]
        return sorted({*ends, *(min(0.0, shift) - r for r in reach), *(max(0.0, shift) + r for r in reach)})


def _step_of(kernel: GammaLaplace, order: float) -> float:
    """Return a width over which the integrand of a Renyi divergence changes by a few e-folds at most."""
    return 1.0 / (kernel.rate_scale * (kernel.shape + 1.0) * max(2.0 * order, 1.0))
