"""Intervals that hold too seldom, as controls: by the normal law, and by one gamma law of every sum."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq

from hubbub.estimation import Estimate
from hubbub.estimation.intervals import CellLaw

Pair = tuple[np.ndarray, np.ndarray]


def normal_interval(estimate: Estimate, level: float) -> Pair:
    """Return the ends of every value's interval by its own error, read off the counts and uncut."""
    half = NormalDist().inv_cdf((1.0 + level) / 2.0) * estimate.value_errors
    return estimate.values - half, estimate.values + half


def one_gamma_interval(estimates: np.ndarray, law: CellLaw, *, n: int, z: float) -> Pair:
    """Return ends where an estimate is as far as a gamma law of the whole sum's skewness reaches.

    Own devices that lie and others that land in a cell cancel in that skewness.
    """
    within = np.clip(estimates, 0.0, 1.0)

    def beyond(share: float, cell: int, side: float) -> float:
        variance, third = (moment[cell] for moment in law.moments(np.full(len(within), share)))
        root = np.sqrt(max(variance, 0.0))
        skewness = third / (variance * root) if variance > 0.0 else 0.0
        return side * n * (within[cell] - share) - root * _quantile(z, side * skewness) - law.step[cell] / 2.0

    def end(cell: int, side: float) -> float:
        bound = 0.0 if side > 0 else 1.0
        if beyond(bound, cell, side) <= 0.0:
            return bound
        return float(brentq(beyond, bound, within[cell], args=(cell, side), xtol=1e-13))

    low, high = (np.array([end(cell, side) for cell in range(len(within))]) for side in (1.0, -1.0))
    return low, high


def _quantile(z: float, skewness: float) -> float:
    """Wilson and Hilferty's cubes, of a sum that is mirrored where its lower tail is asked for."""
    g = min(abs(skewness), 3.0 * z)
    if g < 1e-6:
        return z
    sign = 1.0 if skewness > 0 else -1.0
    return float(sign * 2.0 / g * (max(1.0 + g * sign * z / 6.0 - g * g / 36.0, 0.0) ** 3 - 1.0))
