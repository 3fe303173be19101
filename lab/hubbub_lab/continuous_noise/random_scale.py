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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms import Gamma, ScaleLaw, TruncatedGaussian, TwoPoint, UniformScale
from hubbub_lab.continuous_noise.mixtures import GammaLaplace, LaplaceMixture
from hubbub_lab.continuous_noise.noise import NEGLIGIBLE, Floats, NoiseKernel, between

_TERMS: Final = 24
_LAST: Final = 4
_ROUNDING: Final = 1e-14
"""A panel's last terms, beside its largest value or 1, once rounding is all that is left of them."""

_DEPTH: Final = 8
"""Halvings of a panel at most: a function whose values are rounded more coarsely would have no end."""

_ANGLES: Final = np.pi * (np.arange(_TERMS) + 0.5) / _TERMS
_NODES: Final = np.cos(_ANGLES)
_TRANSFORM: Final = np.cos(np.outer(np.arange(_TERMS), _ANGLES)) * (2.0 / _TERMS)


@dataclass(frozen=True, slots=True)
class _Panel:
    middle: float
    half: float
    terms: tuple[float, ...]  # from the last one down to the first

    def __call__(self, w: float) -> float:
        """Return the Chebyshev sum at a point, by Clenshaw's recurrence."""
        twice = 2.0 * (w - self.middle) / self.half
        one = two = 0.0
        for term in self.terms:
            one, two = term + twice * one - two, one
        return one - 0.5 * twice * two


_Tree: TypeAlias = "_Panel | tuple[float, _Tree, _Tree]"


class Interpolant:
    """A function of one number >= 0, as good as its own rounding.

    The half line is cut at first, 2 first, 4 first, and so on. A function that is analytic where w has a
    positive real part, as the logarithm of a Laplace transform without zeros there is, falls on each such
    panel by 3 + sqrt(8) per coefficient, for the ellipse of that size reaches to 0 (Trefethen 2008, theorem
    4.3): what 24 of them leave is some 1e-18. Where there are zeros nearer by, the last coefficients show it,
    and the panel is halved.

    Args:
        function: Of many numbers, shape (n,), smooth.
        first: Up to where the first panel reaches, > 0: no more than the function's own scale at 0.
    """

    def __init__(self, function: Callable[[Floats], Floats], first: float) -> None:
        self._function, self._first = function, first
        self._trees: dict[int, _Tree] = {}

    def __call__(self, w: float) -> float:
        """Return the function at one finite w >= 0."""
        place = math.frexp(w / self._first)[1] if w >= self._first else 0
        tree = self._trees.get(place)
        if tree is None:
            low = math.ldexp(self._first, place - 1) if place else 0.0
            tree = self._trees[place] = self._grown(low, math.ldexp(self._first, place), _DEPTH)
        while isinstance(tree, tuple):
            tree = tree[1] if w < tree[0] else tree[2]
        return tree(w)

    def _grown(self, low: float, high: float, depth: int) -> _Tree:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        values = self._function(middle + half * _NODES)
        terms = _TRANSFORM @ values
        coarse = float(np.abs(terms[-_LAST:]).max()) > _ROUNDING * max(1.0, float(np.abs(values).max()))
        if coarse and depth:
            return middle, self._grown(low, middle, depth - 1), self._grown(middle, high, depth - 1)
        terms[0] *= 0.5
        return _Panel(middle, half, tuple(terms[::-1].tolist()))


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
