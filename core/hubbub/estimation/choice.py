"""The choice of an estimator for a channel."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation.estimate import Estimate
from hubbub.estimation.estimator import Estimator
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import Floats, Rounding
from hubbub.estimation.tree_estimator import Layered, TreeEstimator


class OwnEstimator(Protocol):
    """The estimator that a mechanism brings along; see `Estimator` for what its members do."""

    category_of: NDArray[np.intp]

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts."""

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported."""

    def reach(self) -> Reach:
        """Return the extremes of what one report can add."""


@runtime_checkable
class Estimated(Protocol):
    """A channel with an estimator of its own."""

    def own_estimator(self, **asked: Any) -> OwnEstimator:  # noqa: ANN401 - those of `estimator_for`
        """Return the estimator."""


AnyEstimator: TypeAlias = Estimator | TreeEstimator | OwnEstimator
"""Whatever `estimator_for` gives: called with counts and n, it gives an Estimate."""


def estimator_for(
    channel: Channel,
    *,
    category_of: NDArray[np.integer[Any]] | None = None,
    points: Floats | None = None,
    missing: int | None = None,
    rounding: Rounding = "none",
) -> AnyEstimator:
    """Return the unbiased estimator of a channel; see `Estimator` for the arguments.

    Raises:
        ParameterError: Shapes or ranges do not fit the channel.
    """
    if isinstance(channel, Estimated):
        return channel.own_estimator(
            category_of=category_of, points=points, missing=missing, rounding=rounding
        )
    if isinstance(channel, Layered):
        return TreeEstimator(
            channel, category_of=category_of, points=points, missing=missing, rounding=rounding
        )
    if isinstance(channel, FiniteChannel):
        return Estimator(channel, category_of=category_of, points=points, missing=missing, rounding=rounding)
    raise ParameterError(f"a channel must be one that can be estimated from, got {type(channel).__name__}")
