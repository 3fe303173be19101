"""Chi-square laws of any degrees of freedom, central and not: no server needs another library for them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

_STEPS: Final = 10_000
_END: Final = 1e-15


def upper_tail(x: float, degrees: float) -> float:
    """Return the probability that a chi-square number is above x.

    Args:
        x: Any number; the answer is 1 up to 0.
        degrees: Degrees of freedom, > 0, whole or not.
    """
    return 1.0 if x <= 0.0 else _upper(degrees / 2.0, x / 2.0)


def noncentral_below(x: float, degrees: float, shift: float) -> float:
    """Return the probability that a noncentral chi-square number is at most x.

    It is a Poisson mixture of central ones: weights about their mode, and tails of which each is the one
    before it and a term more.

    Args:
        x: Any number.
        degrees: Degrees of freedom, > 0.
        shift: The noncentrality, >= 0.
    """
    if x <= 0.0:
        return 0.0
    if shift <= 0.0:
        return 1.0 - upper_tail(x, degrees)
    half = shift / 2.0
    reach = 9.0 * math.sqrt(half) + 40.0  # beyond, a weight is below 1e-16
    j = np.arange(max(0, math.floor(half - reach)), math.ceil(half + reach))
    factorials = np.concatenate([[0.0], np.cumsum(np.log(j[1:]))]) + math.lgamma(j[0] + 1.0)
    weights = np.exp(j * math.log(half) - half - factorials)
    a = degrees / 2.0 + j
    first = a[0] * math.log(x / 2.0) - x / 2.0 - math.lgamma(a[0] + 1.0)
    terms = np.exp(first + np.concatenate([[0.0], np.cumsum(math.log(x / 2.0) - np.log(a[1:]))]))
    tails = _upper(float(a[0]), x / 2.0) + np.concatenate([[0.0], np.cumsum(terms[:-1])])
    return float(np.clip(weights @ (1.0 - np.minimum(tails, 1.0)), 0.0, 1.0))


def _upper(a: float, x: float) -> float:
    """Return the regularised incomplete gamma function Q(a, x): its series, or beyond a + 1 its fraction."""
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1.0:
        term = total = 1.0 / a
        for k in range(1, _STEPS):
            term *= x / (a + k)
            total += term
            if term < total * _END:
                break
        return max(0.0, 1.0 - scale * total)
    b, c = x + 1.0 - a, 1e300
    d = 1.0 / b
    h = d
    for k in range(1, _STEPS):
        factor = -k * (k - a)
        b += 2.0
        d, c = 1.0 / (factor * d + b), b + factor / c
        h *= d * c
        if abs(d * c - 1.0) < _END:
            break
    return min(1.0, scale * h)
