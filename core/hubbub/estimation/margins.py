"""Estimates of a cross table: every combination, and every attribute's margin, from the same counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.estimation.choice import estimator_for
from hubbub.estimation.estimate import Estimate, Estimator, Floats
from hubbub.estimation.intervals.laws import JoinedLaw, ScoreLaws
from hubbub.estimation.poison import Reach


class MarginsEstimator(Estimator):
    """The unbiased estimator of a channel whose inputs are grouped in several ways.

    A margin is one grouping of all inputs, so the estimator of a single grouping gives it with its exact
    errors; what differs between margins are the categories alone.

    Args:
        channel: The channel whose reports were counted.
        margins: Category of every input, one row per grouping, shape (k, K); row j numbers its categories
            from where row j - 1 ended.

    Raises:
        ParameterError: A row is no grouping, or not one that the channel allows.
    """

    def __init__(self, channel: Channel, *, margins: NDArray[np.integer[Any]]) -> None:
        self.channel = channel
        self.category_of = margins
        self._parts = [estimator_for(channel, category_of=row - row.min()) for row in margins]

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts; see `Estimator`.

        Raises:
            ParameterError: The shape, the type or the sum of the counts is wrong.
        """
        return self._joined([part(counts, n) for part in self._parts])

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported; see `Estimator`.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        return self._joined([part.expected_estimate(frequencies, n) for part in self._parts])

    def _joined(self, parts: list[Estimate]) -> Estimate:
        first = parts[0]
        return Estimate(
            n=first.n,
            values=first.values,
            value_errors=first.value_errors,
            categories=np.concatenate([part.categories for part in parts]),
            category_errors=np.concatenate([part.category_errors for part in parts]),
            mean=None,
            mean_error=None,
            _category_of=self.category_of,
            _covariance=first.covariance,
            _reach=partial(_reach, parts),
            _laws=partial(_laws, parts) if all(part.has_laws for part in parts) else None,
        )


def _reach(parts: list[Estimate]) -> Reach:
    reaches = [part.reach() for part in parts]
    return Reach(
        reaches[0].values_low,
        reaches[0].values_high,
        np.concatenate([each.categories_low for each in reaches]),
        np.concatenate([each.categories_high for each in reaches]),
    )


def _laws(parts: list[Estimate]) -> ScoreLaws:
    found = [law for part in parts if (law := part.laws) is not None]
    return ScoreLaws(found[0].values, JoinedLaw([law.categories for law in found]))
