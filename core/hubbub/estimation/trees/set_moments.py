"""The first three moments of a linear score of a random set, exact for every support.

A report supports cells; for the report at hand b_x = (1[x in S] - q)/(p - q), and its score is the sum of
h_x b_x. Given the true cell v the others are exchangeable, so the moments of the score need no more of h than
h_v and the sums of h, h^2, h^3 - and are linear in h_v, h_v^2, h_v^3, whose means over a population give its
mixture.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import Support

Floats = NDArray[np.float64]


_PLACES = np.array([-1.0, 0.0, 1.0, 2.0])
_POLYNOMIAL = np.linalg.inv(np.vander(_PLACES, increasing=True))
"""The coefficients of a cubic from its values at these places."""
_SKEWED = 1e-6
"""The least skewness of noise that is skewed upwards: rounding has less."""


def noise_kinds(shares: Floats, variances: Floats, thirds: Floats) -> Floats:
    """Return the sums over devices whose noise is skewed upwards, and all others, shape (p, 2, 2, c).

    Noise without skew is among the others, on every processor.

    Args:
        shares: Populations of the inputs, or of a level's cells, shape (p, K).
        variances: Of a device's score over its own noise, shape (K, c).
        thirds: Its third central moments, likewise.
    """
    up = thirds > _SKEWED * variances**1.5
    sums = [[shares @ (each * side) for side in (up, ~up)] for each in (variances, thirds)]
    return np.moveaxis(np.array(sums), 2, 0)


class SetMoments:
    """The moments of scores of one level's reports.

    Args:
        support: How reports support the level's cells.
        bins: The level's cells.
    """

    def __init__(self, support: Support, bins: int) -> None:
        self._support, self._others = support, bins - 1
        self._p, self._q = float(support.p), float(support.q)
        self.gap = self._p - self._q
        self._t3 = [
            self._expectation(own, *others)
            for own, others in (
                (3, ()),
                (2, (1,)),
                (1, (2,)),
                (1, (1, 1)),
                (0, (3,)),
                (0, (2, 1)),
                (0, (1, 1, 1)),
            )
        ]
        self._t2 = [
            self._expectation(own, *others) for own, others in ((2, ()), (1, (1,)), (0, (2,)), (0, (1, 1)))
        ]

    def raw(self, held: Floats, sums: Floats) -> Floats:
        """Return the means of the score, its square and its cube, shape (3, ...).

        Args:
            held: The means of h_v, h_v^2, h_v^3 over the devices' true cells v, shape (3, ...).
            sums: The sums of h, h^2, h^3 over the level's cells, of the same shape.
        """
        m1, m2, m3 = held
        s1, s2, s3 = sums
        a, b, c, d = self._t2
        square = a * m2 + 2 * b * (m1 * s1 - m2) + c * (s2 - m2) + d * (s1**2 - s2 - 2 * (m1 * s1 - m2))
        one = m2 * s1 - m3  # h_v^2 times the sum over the others
        two = m1 * s2 - m3  # h_v times the sum of their squares
        pairs = m1 * s1**2 - 2 * m2 * s1 + 2 * m3 - m1 * s2
        mixed = s2 * s1 - m2 * s1 - m1 * s2 + 2 * m3 - s3
        three = s1**3 - 3 * s1 * s2 + 2 * s3 - 3 * m1 * s1**2 + 6 * m2 * s1 + 3 * m1 * s2 - 6 * m3
        t = self._t3
        cube = (
            t[0] * m3
            + 3 * (t[1] * one + t[2] * two + t[3] * pairs)
            + t[4] * (s3 - m3)
            + 3 * t[5] * mixed
            + t[6] * three
        )
        return np.stack([m1, square, cube])

    def noise(self, h: Floats) -> tuple[Floats, Floats]:
        """Return the variance of a score given the true cell, and its third central moment.

        Both are polynomials in h_v, found by four of its values: a tree has many cells. For sets of one
        size, whose scores sum to 1, a constant in h is no noise and is taken off; and h is brought to the
        size of those values. Else small noise, and the sign of its third moment, would be rounding alone.

        Args:
            h: Shape (cells, c), of c scores.

        Returns:
            Shape (cells, c) each.
        """
        if self._support.size is not None:
            h = h - h.mean(axis=0)
        size = np.abs(h).max(axis=0)
        size = np.where(size > 0.0, size, 1.0)
        h = h / size
        sums = np.stack([h.sum(axis=0), (h * h).sum(axis=0), (h * h * h).sum(axis=0)])
        powers = _PLACES[:, None] * np.ones(h.shape[1])
        mean, square, cube = self.raw(np.stack([powers, powers**2, powers**3]), sums[:, None])
        a = _POLYNOMIAL @ (square - mean**2)
        b = _POLYNOMIAL @ (cube - 3.0 * mean * square + 2.0 * mean**3)
        variance = np.maximum((a[2] * h + a[1]) * h + a[0], 0.0)
        return variance * size**2, (((b[3] * h + b[2]) * h + b[1]) * h + b[0]) * size**3

    def _expectation(self, own: int, *others: int) -> float:
        """Return E[b_v^own b_x^a b_y^b ...] for as many other cells as there are powers."""
        total = 0.0
        for first in (True, False):
            chance = self._p if first else 1.0 - self._p
            for rest in product((True, False), repeat=len(others)):
                off = (first - self._q) ** own
                for member, power in zip(rest, others, strict=True):
                    off *= (member - self._q) ** power
                total += chance * self._odds(first, rest) * off
        return total / self.gap ** (own + sum(others))

    def _odds(self, first: bool, rest: tuple[bool, ...]) -> float:
        """Return the probability of memberships of given others; 0 where there are not so many."""
        if len(rest) > self._others:
            return 0.0
        if self._support.size is None:
            return float(np.prod([self._q if member else 1.0 - self._q for member in rest]))
        left, found = self._support.size - first, 1.0
        for seen, member in enumerate(rest):
            held = sum(rest[:seen])
            inside = (left - held) / (self._others - seen)
            found *= inside if member else 1.0 - inside
        return found
