"""The noise of a cross table: four numbers that say the covariance of all its cells, and of any sums of them.

The channels of a table treat all K combinations alike, so that over the randomisation and for shares f the
covariance of the unbiased estimates is

    n Cov = A I + B 1 1^T + C diag(f) + D (f 1^T + 1 f^T),

and a sum of m cells of mass P has n times the variance m A + m^2 B + P C + 2 m P D. For devices drawn from a
crowd of these shares diag(f) - f f^T is added: that is what is used here, so that statistics are of everybody
who could have been asked, if those who answered are like a random part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.sets import Support
from hubbub.errors import ParameterError
from hubbub.estimation.margins import MarginsEstimator

Floats = NDArray[np.float64]


class Noise(Protocol):
    """A law of the errors of a table's shares."""

    def covariance(self, shares: Floats, *, cells: int, devices: int) -> Floats:
        """Return the covariance of shares of groups of so many combinations, of devices of that crowd."""
        ...

    def along(self, axes: Sequence[int]) -> Noise:
        """Return the noise of the table's margin over some attributes, in that order."""
        ...


@dataclass(frozen=True)
class TableNoise:
    """The four numbers, per report.

    Local hashing treats cells nearly alike; its numbers are averages over them.

    Attributes:
        own: A.
        common: B.
        by_share: C.
        shared: D.
    """

    own: float
    common: float
    by_share: float
    shared: float

    @classmethod
    def of(cls, channel: Channel) -> TableNoise:
        """Return the noise of the channel of a table, from four exact variances.

        Args:
            channel: Over at least four combinations, all alike to it.

        Raises:
            ParameterError: If it does not tell single combinations.
        """
        inputs = channel.inputs
        if inputs < 4 or not channel.tells_inputs:
            raise ParameterError(
                f"a table must have a channel of 4 inputs or more, got {inputs} and {channel.kind}"
            )
        half = np.arange(inputs) % 2
        m, rest = int((half == 0).sum()), int(half.sum())
        estimator = MarginsEstimator(channel, margins=half[None, :])
        known = estimator.expected_estimate((half == 0) / m, 1)
        one, sums = known.value_errors**2, known.category_errors**2
        # Cells that nobody has: A + B each, and their sum m A + m^2 B. The others have a share of 1/m each.
        alone = float(one[half == 1].mean())
        common = (float(sums[1]) - rest * alone) / (rest * rest - rest)
        own = alone - common
        each = m * (float(one[half == 0].mean()) - alone)
        shared = (float(sums[0]) - m * own - m * m * common - each) / (2.0 * (m - 1.0))
        return cls(own, common, each - 2.0 * shared, shared)

    @classmethod
    def of_sets(cls, support: Support) -> TableNoise:
        """Return the noise of subset selection, from the chances that a set holds one cell, and two."""
        p, q, own, other = (float(x) for x in (support.p, support.q, support.p_pair, support.q_pair))
        scale = (p - q) ** 2
        common, shared = (other - q * q) / scale, (own - p * q - other + q * q) / scale
        alone = q * (1.0 - q) / scale
        by_share = p * (1.0 - p) / scale - alone - 2.0 * shared
        return cls(alone - common, common, by_share, shared)

    def along(self, axes: Sequence[int]) -> Self:
        """Return the same: it says the noise of any sums of cells."""
        del axes
        return self

    def covariance(self, shares: Floats, *, cells: int, devices: int) -> Floats:
        """Return the covariance of the shares of equal groups of combinations, of devices drawn from a crowd.

        Args:
            shares: The crowd's, shape (R,), >= 0, summing to one.
            cells: m, the combinations of each group.
            devices: n.

        Returns:
            Shape (R, R).
        """
        beside = cells * self.shared * shares
        common = cells * cells * self.common + beside[:, None] + beside - np.outer(shares, shares)
        return np.asarray((np.diag(cells * self.own + (1.0 + self.by_share) * shares) + common) / devices)
