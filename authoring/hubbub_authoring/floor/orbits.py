"""Columns up to symmetry: categories of equal size form a class, and only its counts matter.

A class g has m_g categories of s_g values, N_g = m_g s_g in all; the missing input, where there is one, is a
class of one input with prior 0 that no average counts. All values have the prior 1/K. Permuting the values of
a category, and categories of one size, changes neither the constraint nor the error, and the error is convex:
so some best channel is symmetric, a mixture of *orbits*. With k_g the inputs of class g in the set, Q_g the
sum of squares of its categories' counts and qbar = 1 + (a - 1) k/K, k without missing, an orbit has

    r_g          = [ (N_g + (a - 1) k_g) / qbar - N_g ] / sqrt(N_g)
    between_g    = (a - 1)^2 (Q_g - k_g^2/m_g) / (s_g (m_g - 1) qbar^2)
    within_g     = (a - 1)^2 (s_g k_g - Q_g) / (m_g s_g (s_g - 1) qbar^2)

and for the missing input, where k is 0 or 1, r = (1 + (a - 1) k) / qbar - 1. The deviation r is along the
vector of all values of a class, of length sqrt(N_g). Beside it the information has two eigenvalues a class,
between_g of multiplicity m_g - 1 and within_g of m_g (s_g - 1). Both are linear in Q_g, so of each
k_g the most spread and the most clustered counts are enough. One class without missing has one or two
scalars and nothing else: its frontier is the upper right hull of 2 (K - 1) points in a plane.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_authoring.floor.columns import exp_above, extremes, plane, priced
from hubbub_authoring.floor.programme import GAP, Aim, Certificate, Columns, certify

MAX_ORBITS: Final = 1 << 21
"""Orbits that are listed, some 150 MB of columns; with more, `separable` gives a floor."""

_MANY: Final = 1 << 16
_MANY_GAP: Final = 1e-6
"""The end for many orbits, whose rounds take half a second each: earlier, and a little lower."""


@dataclass(frozen=True)
class Weights:
    """The error to bound: `value` times the mean over values plus `category` times that over categories."""

    value: float
    category: float


@dataclass(frozen=True, eq=False)
class Classes:
    """The categories by size, and the missing input.

    Attributes:
        sizes: s per class, falling.
        many: m per class.
        missing: Whether there is an input for "no value".
    """

    sizes: tuple[int, ...]
    many: tuple[int, ...]
    missing: bool

    @classmethod
    def of(cls, sizes: Sequence[int], *, missing: bool) -> Classes:
        """Return the classes of categories of these sizes, without missing.

        Raises:
            ParameterError: If there are fewer than two inputs, or a size is below 1.
        """
        if not sizes or min(sizes) < 1 or sum(sizes) < 2:
            raise ParameterError(f"sizes must be counts >= 1 of two values or more, got {list(sizes)}")
        found = sorted(Counter(sizes).items(), reverse=True)
        return cls(tuple(s for s, _ in found), tuple(m for _, m in found), missing)

    @property
    def values(self) -> int:
        """K, missing left out."""
        return sum(s * m for s, m in zip(self.sizes, self.many, strict=True))

    @property
    def orbits(self) -> int:
        """The most orbits that `listed` gives."""
        each = [
            (s * m + 1) * (2 if m > 1 and s > 1 else 1) for s, m in zip(self.sizes, self.many, strict=True)
        ]
        return math.prod(each) * (2 if self.missing else 1)


@dataclass(frozen=True, eq=False)
class Orbits:
    """The orbits by their counts.

    Attributes:
        counts: k per class, shape (n, G), int64.
        squares: Q per class, shape (n, G), int64.
        missing: Whether the set holds the missing input, shape (n,), bool; False where there is none.
    """

    counts: NDArray[np.int64]
    squares: NDArray[np.int64]
    missing: NDArray[np.bool_]


def clustered(k: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return Q of whole categories of a size, then a remainder, of k values in all; shape of k."""
    return (k // size) * size * size + (k % size) ** 2


def spread(k: NDArray[np.int64], many: int) -> NDArray[np.int64]:
    """Return Q of k values as evenly as possible over `many` categories; shape of k."""
    low, more = k // many, k % many
    return (many - more) * low**2 + more * (low + 1) ** 2


def listed(classes: Classes) -> Orbits:
    """Return every orbit that can be an extreme one; sets of no value, or of all, are left out.

    Raises:
        ParameterError: If there are more than MAX_ORBITS.
    """
    if classes.orbits > MAX_ORBITS:
        raise ParameterError(f"orbits must be at most {MAX_ORBITS}, got {classes.orbits}")
    pairs = []
    for size, many in zip(classes.sizes, classes.many, strict=True):
        k = np.arange(size * many + 1)
        squares = np.stack([spread(k, many), clustered(k, size)], axis=1)
        differs = squares[:, 0] < squares[:, 1]
        kept = np.stack([np.ones_like(differs), differs], axis=1).ravel()
        pairs.append(np.stack([np.repeat(k, 2), squares.ravel()], axis=1)[kept])
    grid = np.meshgrid(*(np.arange(len(pair)) for pair in pairs), indexing="ij")
    chosen = [axis.ravel() for axis in grid]
    counts = np.stack([pair[at, 0] for pair, at in zip(pairs, chosen, strict=True)], axis=1)
    squares = np.stack([pair[at, 1] for pair, at in zip(pairs, chosen, strict=True)], axis=1)
    total = counts.sum(axis=1)
    if not classes.missing:
        some = (total > 0) & (total < classes.values)
        return Orbits(counts[some], squares[some], np.zeros(int(some.sum()), dtype=np.bool_))
    held = np.repeat([False, True], len(counts))
    counts, squares, total = np.tile(counts, (2, 1)), np.tile(squares, (2, 1)), np.tile(total, 2)
    some = (total + held > 0) & (total + held < classes.values + 1)
    return Orbits(counts[some], squares[some], held[some])


class Programme:
    """The programme of classes at one epsilon: its aim, and the columns of orbits.

    Args:
        classes: The categories.
        epsilon: Of the channels.
        weights: What the error is.
    """

    def __init__(self, classes: Classes, *, epsilon: float, weights: Weights) -> None:
        self.classes = classes
        self.a = exp_above(epsilon)
        s, m = np.array(classes.sizes, dtype=np.float64), np.array(classes.many, dtype=np.float64)
        self._s, self._m, self._n = s, m, s * m
        k = float(classes.values)
        per_value, per_category = weights.value / k, weights.category / m.sum()
        worth = per_value + per_category * s
        u = np.sqrt(self._n) / k
        w = np.sqrt(self._n)
        if classes.missing:
            u, w = np.append(u, 0.0), np.append(w, 1.0)
        self._w = w
        root = np.zeros((len(w), len(s)))
        root[np.arange(len(s)), np.arange(len(s))] = np.sqrt(worth)
        alpha = u @ root
        self._basis = plane(u)
        pull = self._basis.T @ (root - np.outer(w, alpha))
        costs = np.concatenate([worth * (m - 1.0), per_value * m * (s - 1.0)])
        self._asked = np.concatenate([m > 1, s > 1])
        constant = float(alpha @ alpha) - weights.value / k - weights.category / float(m.sum())
        self.aim = Aim(pull, costs[self._asked], constant)

    def columns(self, orbits: Orbits) -> Columns:
        """Return the columns of orbits: r on the plane's basis, and the gains between_g, then within_g.

        All three are the formulas of this module's docstring, with N = N_g and Q = Q_g. A class of one
        category has no between_g and one of single values no within_g: these are left out.
        """
        a1, s, m, N = self.a - 1.0, self._s, self._m, self._n
        k, Q = orbits.counts.astype(np.float64), orbits.squares.astype(np.float64)
        qbar = 1.0 + a1 * k.sum(axis=1, keepdims=True) / N.sum()
        r = (N + a1 * k) / qbar - N
        r /= np.sqrt(N)
        if self.classes.missing:
            of_missing = (1.0 + a1 * orbits.missing[:, None]) / qbar - 1.0
            r = np.concatenate([r, of_missing], axis=1)
        factor = (a1 / qbar) ** 2
        between = factor * (m * Q - k * k) / (m * s * np.maximum(m - 1.0, 1.0))
        within = factor * (s * k - Q) / (m * s * np.maximum(s - 1.0, 1.0))
        gains = np.concatenate([between, within], axis=1)[:, self._asked]
        return Columns(r @ self._basis, gains)


def orbit_floor(sizes: Sequence[int], *, epsilon: float, weights: Weights, missing: bool) -> Certificate:
    """Return the least error of values and categories that any epsilon-LDP channel can have.

    Args:
        sizes: Values per category, missing left out.
        epsilon: Of the channels.
        weights: What the error is.
        missing: Whether there is an input for "no value" that has to be told apart.

    Raises:
        ParameterError: If there are more than MAX_ORBITS orbits.
    """
    classes = Classes.of(sizes, missing=missing)
    programme = Programme(classes, epsilon=epsilon, weights=weights)
    every = programme.columns(listed(classes))
    start = every if len(every) <= 300 else every.take(extremes(every))
    gap = GAP if len(every) < _MANY else _MANY_GAP
    return certify(programme.aim, start, priced(programme.aim, every), gap=gap)
