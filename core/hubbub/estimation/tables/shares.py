"""The shares of a cross table, and what is asked of them: functionals, ratios, their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.tables.noise import Noise

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RatioSpan:
    """A ratio of two estimates with its interval.

    Attributes:
        estimate: The ratio, within its range; nan where the estimated denominator is not above 0.
        low: The interval's lower end.
        high: Its upper end.
        whole: True where the data exclude little: the set of ratios is unbounded, and this is its hull.
    """

    estimate: float
    low: float
    high: float
    whole: bool


@dataclass(frozen=True, eq=False)
class TableShares:
    """The unbiased shares of some attributes' combinations, each attribute's missing reading last.

    Attributes:
        shares: F, shape (r_1, ..., r_k); they may be negative.
        cells: m, the combinations of the whole table that each share is the sum of.
        devices: n.
        noise: Of the table's channel, or of all parts that tell it.
    """

    shares: Floats
    cells: int
    devices: int
    noise: Noise

    def of(self, axes: Sequence[int]) -> TableShares:
        """Return the shares of some attributes' combinations, in the order asked.

        Raises:
            ParameterError: If an axis is not one of the table's, or named twice.
        """
        if len(set(axes)) != len(axes) or not set(axes) <= set(range(self.shares.ndim)):
            raise ParameterError(f"attributes must be different ones of the table, got {list(axes)}")
        rest = tuple(axis for axis in range(self.shares.ndim) if axis not in axes)
        kept = sorted(axes)
        summed = self.shares.sum(axis=rest)
        turned = np.transpose(summed, [kept.index(axis) for axis in axes])
        many = self.shares.size // summed.size
        return TableShares(turned, self.cells * many, self.devices, self.noise.along(axes))

    @cached_property
    def crowd(self) -> Floats:
        """The shares as those of a crowd: none negative, summing to one."""
        kept = np.maximum(self.shares, 0.0)
        return np.asarray(kept / kept.sum())

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the shares for devices drawn from that crowd, shape (R, R), R their number."""
        return self.covariance_at(self.crowd)

    def covariance_at(self, crowd: Floats) -> Floats:
        """Return the covariance of the shares for devices drawn from a crowd of the same shape."""
        return self.noise.covariance(crowd.ravel(), cells=self.cells, devices=self.devices)

    def error_at(self, crowd: Floats, functional: Floats) -> float:
        """Return the standard error of a functional of the shares for devices drawn from a crowd."""
        h = functional.ravel()
        return math.sqrt(max(float(h @ self.covariance_at(crowd) @ h), 0.0))

    def ratio(
        self, top: Floats, bottom: Floats, *, level: float, ends: tuple[float, float] = (0.0, 1.0)
    ) -> RatioSpan:
        """Return the ratio of two functionals of the shares with Fieller's interval.

        Args:
            top: Coefficients of the shares, of their shape.
            bottom: The same of the denominator.
            level: Coverage.
            ends: The range of the ratio.
        """
        h, g = top.ravel(), bottom.ravel()
        a, b = float(h @ self.shares.ravel()), float(g @ self.shares.ravel())
        s = self.covariance
        return fieller(
            a, b, float(h @ s @ h), float(h @ s @ g), float(g @ s @ g), z=quantile(level), ends=ends
        )


def fieller(
    a: float, b: float, v_aa: float, v_ab: float, v_bb: float, *, z: float, ends: tuple[float, float]
) -> RatioSpan:
    """Return a/b and the hull, within a range, of all r with (a - r b)^2 <= z^2 (v_aa - 2 r v_ab + r^2 v_bb).

    Args:
        a: The numerator.
        b: The denominator, >= 0 in truth.
        v_aa: Its variance, and so on.
        v_ab: Their covariance.
        v_bb: The denominator's variance.
        z: The quantile.
        ends: The range of the ratio.
    """
    low, high = ends
    estimate = min(max(a / b, low), high) if b > 0.0 else math.nan
    p, q, c = b * b - z * z * v_bb, a * b - z * z * v_ab, a * a - z * z * v_aa
    root = math.sqrt(max(q * q - p * c, 0.0))
    if p > 0.0:
        return RatioSpan(estimate, *within(((q - root) / p, (q + root) / p), ends), whole=False)
    if p == 0.0 or q * q <= p * c:
        return RatioSpan(estimate, low, high, whole=True)
    # Two rays: all below one root and all above the other.
    below, above = sorted(((q - root) / p, (q + root) / p))
    left, right = below >= low, above <= high
    if left == right:
        return RatioSpan(estimate, low, high, whole=True)
    found = (low, min(below, high)) if left else (max(above, low), high)
    return RatioSpan(min(max(estimate, found[0]), found[1]), *found, whole=True)


def within(span: tuple[float, float], ends: tuple[float, float]) -> tuple[float, float]:
    """Return an interval cut to a range; one beyond it is the nearest end, with its own width."""
    (low, high), (least, most) = span, ends
    width = min(high - low, most - least)
    if low >= most:
        return most - width, most
    if high <= least:
        return least, least + width
    return max(low, least), min(high, most)


def quantile(level: float) -> float:
    """Return the normal quantile of a two-sided interval.

    Raises:
        ParameterError: If the level is not strictly between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ParameterError(f"level must be within (0, 1), got {level!r}")
    return NormalDist().inv_cdf((1.0 + level) / 2.0)
