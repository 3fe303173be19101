"""The upper tail of a gamma law, and so of chi-square: no server needs another library for it."""

from __future__ import annotations

import math


def gamma_tail(shape: float, x: float) -> float:
    """Return P(X > x) of a gamma variable of scale 1: the series below shape + 1, else Lentz' fraction.

    Half a chi-square variable is one, of half its degrees of freedom.
    """
    if x <= 0.0:
        return 1.0
    front = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        term = total = 1.0 / shape
        k = shape
        while term > 1e-16 * total:
            k += 1.0
            term *= x / k
            total += term
        return 1.0 - front * total
    b = x + 1.0 - shape
    c, d = 1e300, 1.0 / b
    fraction = d
    for i in range(1, 10_000):
        a = -i * (i - shape)
        b += 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        fraction *= d * c
        if abs(d * c - 1.0) < 1e-14:
            break
    return front * fraction
