"""Moments of an orbit's sets over a population: up to pairs of values, in O(K).

A set S of an orbit, drawn evenly, has weight A + sum over its values x of e_x for a population with shares f,
e_x = f_x (h - l)/T and A = (sum of l F over the classes + a f_0)/T. Values of a category, categories of a
class and classes are exchangeable, so third moments of "x is in S" depend only on which of three values share
a category or a class: six numbers per class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import Orbit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Inclusion:
    """The probabilities that an evenly drawn set of an orbit holds values of one class.

    Attributes:
        one: One value.
        same: Two of a category.
        apart: Two of different categories.
        three: Three of a category.
        two_one: Two of a category, one of another.
        scattered: Three of different categories.
    """

    one: float
    same: float
    apart: float
    three: float
    two_one: float
    scattered: float

    @classmethod
    def of(cls, counts: Sequence[int], size: int) -> Self:
        """Return them for a class whose categories have `size` values."""
        n = np.array(counts, dtype=np.float64)
        m, s = len(n), float(size)
        n2, n3 = n * (n - 1.0), n * (n - 1.0) * (n - 2.0)
        total, pairs = n.sum(), m * (m - 1.0)
        triple = total**3 - 3.0 * total * (n * n).sum() + 2.0 * (n**3).sum()
        return cls(
            one=float(total / (m * s)),
            same=_over(float(n2.sum()), m * s * (s - 1.0)),
            apart=_over(float(total**2 - (n * n).sum()), pairs * s * s),
            three=_over(float(n3.sum()), m * s * (s - 1.0) * (s - 2.0)),
            two_one=_over(float(n2.sum() * total - (n2 * n).sum()), pairs * s * s * (s - 1.0)),
            scattered=_over(float(triple), pairs * (m - 2.0) * s**3),
        )


@dataclass(frozen=True, eq=False)
class OrbitMoments:
    """An orbit's sets under a population.

    Attributes:
        inclusion: Per class.
        base: A.
        extra: e per class, shape (m, s).
    """

    inclusion: tuple[Inclusion, ...]
    base: float
    extra: tuple[Floats, ...]

    @classmethod
    def of(cls, layout: Layout, orbit: Orbit, total: int, frequencies: Floats) -> Self:
        """Return the moments of an orbit.

        Args:
            layout: The categories.
            orbit: The orbit.
            total: T of the channel.
            frequencies: Shape (K,) with missing, or without where there is none.
        """
        parts = layout.split(frequencies[: layout.values])
        gone = float(frequencies[layout.values]) if len(frequencies) > layout.values else 0.0
        base = orbit.absent / total * gone
        extra = []
        for f, h, low in zip(parts, orbit.inside, orbit.outside, strict=True):
            base += low / total * float(f.sum())
            extra.append(f * ((h - low) / total))
        sizes = layout.class_sizes
        inclusion = tuple(Inclusion.of(c, s) for c, s in zip(orbit.counts, sizes, strict=True))
        return cls(inclusion, base, tuple(extra))

    @property
    def _rest(self) -> list[float]:
        """Per class the sum of e over other classes, each times the chance of a value there."""
        each = [p.one * float(e.sum()) for p, e in zip(self.inclusion, self.extra, strict=True)]
        return [sum(each) - own for own in each]

    @property
    def reports(self) -> float:
        """The probability of the orbit."""
        return self.base + sum(
            p.one * float(e.sum()) for p, e in zip(self.inclusion, self.extra, strict=True)
        )

    def _own(self) -> list[Floats]:
        """Return per class v: sum over z in x's class of e_z Pr(x and z in S), shape (m, s)."""
        found = []
        for p, e in zip(self.inclusion, self.extra, strict=True):
            category, group = e.sum(axis=1, keepdims=True), float(e.sum())
            found.append(e * (p.one - p.same) + category * (p.same - p.apart) + group * p.apart)
        return found

    def hits(self) -> list[Floats]:
        """Return per class the probability of the orbit with a set that holds a value, shape (m, s)."""
        return [
            v + p.one * (self.base + rest)
            for v, p, rest in zip(self._own(), self.inclusion, self._rest, strict=True)
        ]

    def product(self, weights: Sequence[Floats]) -> list[Floats]:
        """Return per class the product of the matrix E[1 1^T; the orbit] with columns, shape (m, s, c).

        Args:
            weights: Per class, shape (m, s, c).
        """
        own, diagonal, rest = self._own(), self.hits(), self._rest
        sums = [g.sum(axis=(0, 1)) for g in weights]
        turned = [(v[:, :, None] * g).sum(axis=(0, 1)) for v, g in zip(own, weights, strict=True)]
        found = []
        for i, (p, e, g) in enumerate(zip(self.inclusion, self.extra, weights, strict=True)):
            e1, ec = e[:, :, None], e.sum(axis=1)[:, None, None]
            eg, base = float(e.sum()), self.base + rest[i]
            gc, ge = g.sum(axis=1, keepdims=True), (e1 * g).sum(axis=1, keepdims=True)
            common = p.same * base + ec * p.three + (eg - ec) * p.two_one
            out = diagonal[i][:, :, None] * g + common * (gc - g)
            out = out + (p.same - p.three) * (e1 * (gc - g) + ge - e1 * g)
            far, far_e = gc.sum(axis=0) - gc, ge.sum(axis=0) - ge
            far_c = (ec * gc).sum(axis=0) - ec * gc
            out = out + (p.apart * base + eg * p.scattered) * far
            out = out + (p.apart - p.two_one) * (e1 * far + far_e)
            out = out + (p.two_one - p.scattered) * (ec * far + far_c)
            for j, q in enumerate(self.inclusion):
                if j == i:
                    continue
                others = self.base + rest[i] - q.one * float(self.extra[j].sum())
                out = out + p.one * (q.one * others * sums[j] + turned[j])
                out = out + own[i][:, :, None] * (q.one * sums[j])
            found.append(out)
        return found


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 0.0
