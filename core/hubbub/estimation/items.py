"""The estimator of reports about sets of items: each item's share by itself."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.estimate import Estimate, Estimator, Floats
from hubbub.estimation.intervals.laws import MixedLaw, ScoreLaws
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import checked_counts


class Items(Protocol):
    """The part of a channel that this estimator reads."""

    @property
    def inputs(self) -> int:
        """V, the number of items."""

    @property
    def bins(self) -> int:
        """The length of a round's counts, V first."""

    @property
    def p(self) -> Fraction:
        """The probability that a report has an item that the device has."""

    @property
    def q(self) -> Fraction:
        """The probability that it has an item that the device has not."""

    def expected(self, frequencies: Floats, /) -> Floats:
        """Return the counts expected of one report, shape (bins,)."""


class ItemsEstimator(Estimator):
    """The unbiased estimator of the share of devices that have each item.

    With C_i reports that have item i, f_i = (C_i/n - q)/(p - q), whose variance is exactly that of a score of
    two values, [f p (1 - p) + (1 - f) q (1 - q)]/(p - q)^2/n, whatever else devices have.

    Args:
        channel: The channel whose reports were counted.
    """

    def __init__(self, channel: Items) -> None:
        self.channel = channel
        self.category_of = np.empty((0, channel.inputs), dtype=np.intp)
        gap = channel.p - channel.q
        self._hit, self._miss = float((1 - channel.q) / gap), float(-channel.q / gap)
        self._p, self._q = float(channel.p), float(channel.q)

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate shares from one round's support counts, shape (bins,), each 0 to n.

        Raises:
            ParameterError: The shape, the type or a count is wrong.
        """
        return self._estimate(checked_counts(counts, self.channel.bins, n), n)

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices: their shares, and exact errors.

        Args:
            frequencies: The share of the devices that has each item, shape (V,), 0 to 1.
            n: Number of devices, >= 1.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        shares = np.asarray(frequencies, dtype=np.float64)
        if shares.shape != (self.channel.inputs,) or not ((shares >= 0.0) & (shares <= 1.0)).all() or n < 1:
            raise ParameterError(f"frequencies must be {self.channel.inputs} shares of one device or more")
        return self._estimate(n * self.channel.expected(shares), n)

    def _estimate(self, counts: NDArray[Any], n: int) -> Estimate:
        held = counts[: self.channel.inputs] / n
        values = self._hit * held + self._miss * (1.0 - held)
        spread = values * self._p * (1.0 - self._p) + (1.0 - values) * self._q * (1.0 - self._q)
        none = np.empty(0)
        return Estimate(
            n=n,
            values=values,
            value_errors=np.sqrt(np.maximum(spread, 0.0) / n) / (self._p - self._q),
            categories=none,
            category_errors=none,
            mean=None,
            mean_error=None,
            _category_of=self.category_of,
            _covariance=self._no_covariance,
            _reach=partial(self._reach, len(values)),
            _laws=partial(self._laws, len(values), n),
        )

    def _laws(self, items: int, n: int) -> ScoreLaws:
        law = MixedLaw.of_two_values(n, np.full(items, self._hit), np.full(items, self._miss))
        return ScoreLaws(law, law.picked(np.empty(0, dtype=np.intp)))

    def _reach(self, items: int) -> Reach:
        """Return the least and the largest that one report can add to each item."""
        none = np.empty(0)
        return Reach(np.full(items, self._miss), np.full(items, self._hit), none, none)

    @staticmethod
    def _no_covariance() -> Floats:
        raise ParameterError("a covariance needs shares of one value a device, got those of items of sets")
