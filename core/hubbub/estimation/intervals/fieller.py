"""The interval of a mean, which is a ratio of two estimates, after Fieller (1954).

The mean of the devices that have a value is A/R, with A the estimated sum of their numbers and R their
estimated count. The delta method fails where few have one. Fieller's set needs no ratio:

    (A - mu R)^2 <= z^2 (V_AA - 2 mu V_AR + mu^2 V_RR),

a quadratic in mu; where R may be nothing it is unbounded, and the whole range is the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

LEAST: Final = 0.25
"""A variance is at least this share of the mean square that it comes from, whatever is taken off."""


@dataclass(frozen=True)
class RatioMean:
    """The two sums and their variances, in devices; numbers are on a scale from -1 to 1.

    Attributes:
        total: A, the estimated sum of the numbers.
        answered: R, the estimated devices that have one.
        variance: V_AA.
        covariance: V_AR; read as at most what the two variances allow.
        answered_variance: V_RR; 0 where everyone has a number.
        centre: The number that 0 stands for.
        scale: The number that 1 stands for, less the centre.
        devices: Reports.
        squares: The estimated sum of the squared numbers; 0 where it is hidden and so still in the variance.
    """

    total: float
    answered: float
    variance: float
    covariance: float
    answered_variance: float
    centre: float
    scale: float
    devices: int
    squares: float

    def of_crowd(self, drawn: float) -> RatioMean:
        """Return the law about the crowd's mean: who is counted adds its own variances of both sums.

        Args:
            drawn: See `crowd_laws`.
        """
        n, answered = self.devices, min(max(self.answered, 0.0), float(self.devices))
        spread = max(min(self.squares, answered) - self.total**2 / n, 0.0)
        whole = replace(self, variance=self.variance + drawn * spread)
        if self.answered_variance == 0.0:
            return whole
        return replace(
            whole,
            covariance=self.covariance + drawn * self.total * (1.0 - answered / n),
            answered_variance=self.answered_variance + drawn * answered * (1.0 - answered / n),
        )

    def interval(self, z: float) -> tuple[float, float]:
        """Return the ends of the mean's interval at a normal quantile z > 0, within the survey's numbers."""
        low, high = self._unit(z)
        return self.centre + self.scale * low, self.centre + self.scale * high

    def _unit(self, z: float) -> tuple[float, float]:
        most = math.sqrt(self.variance * self.answered_variance)
        covariance = min(max(self.covariance, -most), most)
        a = self.answered**2 - z * z * self.answered_variance
        if a <= 0.0 or self.answered <= 0.0:
            return -1.0, 1.0
        b = self.total * self.answered - z * z * covariance
        c = self.total**2 - z * z * self.variance
        root = math.sqrt(max(b * b - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
        # A set beyond the numbers' range says that the nearest end is all that is left: with its own width.
        if low >= 1.0 or high <= -1.0:
            width = min(high - low, 2.0)
            return (1.0 - width, 1.0) if low >= 1.0 else (-1.0, -1.0 + width)
        return max(low, -1.0), min(high, 1.0)
