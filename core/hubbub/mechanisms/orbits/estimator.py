"""From counts per orbit to shares: generalised least squares with weights that the design fixes, in O(K).

With qbar_t = 1 + (a_t - 1) k_t/K from an orbit's own integers and mu_t its share of the reports of a
uniform population,

    F_c = (1 - f_0)/m + (1/(n b)) sum_i (a_t - 1)(k_c - k_t/m)/qbar_t
    f_x = F_c/s       + (1/(n w)) sum_i (a_t - 1)(1[x in S] - k_c/s)/qbar_t

summed over reports i of orbit t with k_c values of category c, where b and w are the averages over mu_t of
the orbit's eigenvalues between and within categories. The scores have mean zero over sets of an orbit that
do not know x, so both are unbiased. The missing share comes from which orbits were reported:
f_0 = sum_i (z_t - 1) / (n (Z - 1)), z_t = q_m/qbar and Z its mean square.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.channel import OrbitChannel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OrbitShares:
    """The estimated shares; unbiased, so they may be negative.

    Attributes:
        values: Per value, shape (K,).
        categories: Per category, shape (m,).
        missing: Of the missing input; 0.0 where there is none.
    """

    values: Floats
    categories: Floats
    missing: float


@dataclass(frozen=True)
class OrbitScore:
    """The amount that one report of an orbit adds to estimates, in reports.

    Attributes:
        between: To a category, per value of it in the set beyond the mean.
        within: To a value in the set, before its category's mean is taken off.
        missing: To the missing share.
    """

    between: float
    within: float
    missing: float


class OrbitEstimator:
    """The unbiased linear estimator of an orbit channel.

    Args:
        channel: The channel whose reports were counted.

    Raises:
        ParameterError: If the channel does not tell all values apart.
    """

    def __init__(self, channel: OrbitChannel) -> None:
        self.channel = channel
        s, m, k = channel.size, channel.many, channel.values
        held = np.array([orbit.held for orbit in channel.orbits], dtype=np.float64)
        squares = np.array([sum(n * n for n in orbit.counts) for orbit in channel.orbits], dtype=np.float64)
        odds = np.array([[float(p) / channel.total for p in three] for three in channel.odds])
        # The share of an orbit's reports from a uniform population, and what a set adds when it holds a
        # value.
        self._mu = (odds[:, 0] * held + odds[:, 1] * (k - held)) / k
        extra = np.where((held > 0) & (held < k), odds[:, 0] - odds[:, 1], 0.0)
        self._weight = extra / self._mu
        power = self._mu * self._weight**2
        self._between = float((power * (squares - held**2 / m)).sum()) / (s * max(m - 1, 1))
        self._within = float((power * (s * held - squares)).sum()) / (m * s * max(s - 1, 1))
        if (m > 1 and self._between <= 0.0) or (s > 1 and self._within <= 0.0):
            raise ParameterError("an orbit channel must tell all values apart to be estimated from")
        self._absent = odds[:, 2] / self._mu
        self._spread = float((self._mu * self._absent**2).sum()) - 1.0 if channel.missing else 0.0

    def __call__(self, counts: NDArray[Any], n: float) -> OrbitShares:
        """Estimate shares from counts as `OrbitChannel.tally` gives them.

        Args:
            counts: Shape (bins,).
            n: Reports, >= 1.

        Raises:
            ParameterError: If the shape is wrong, or n below 1.
        """
        channel = self.channel
        table = np.asarray(counts, dtype=np.float64)
        if table.shape != (channel.bins,) or n < 1:
            raise ParameterError(f"counts must have shape ({channel.bins},), got {table.shape} of {n}")
        table = table.reshape(len(channel.orbits), -1)
        s, m = channel.size, channel.many
        hits = self._weight @ table[:, 1 : 1 + channel.values]
        groups = hits.reshape(m, s).sum(axis=1)
        missing = 0.0
        if channel.missing:
            missing = float(table[:, 0] @ (self._absent - 1.0)) / (n * self._spread)
        categories = np.full(m, (1.0 - missing) / m)
        if m > 1:
            categories = categories + (groups - groups.mean()) / (n * self._between)
        values = np.repeat(categories / s, s)
        if s > 1:
            values = values + (hits - np.repeat(groups / s, s)) / (n * self._within)
        return OrbitShares(values, categories, missing)

    def scores(self, t: int) -> OrbitScore:
        """Return what one report of orbit t adds."""
        weight = float(self._weight[t])
        return OrbitScore(
            between=weight / self._between if self._between > 0.0 else 0.0,
            within=weight / self._within if self._within > 0.0 else 0.0,
            missing=float(self._absent[t] - 1.0) / self._spread if self.channel.missing else 0.0,
        )
