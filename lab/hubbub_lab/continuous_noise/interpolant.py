"""A smooth function of w >= 0, kept as Chebyshev sums where it was asked for: a value costs microseconds.

The half line is cut at first, 2 first, 4 first, and so on. A function that is analytic where w has a positive
real part, as the logarithm of a Laplace transform without zeros there is, falls on each such panel by
3 + sqrt(8) per coefficient, for the ellipse of that size reaches to 0 (Trefethen 2008, theorem 4.3): what 24
of them leave is some 1e-18. Where there are zeros nearer by, the last coefficients show it, and the panel is
halved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

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
