"""The choice of an estimator for a channel."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation.estimate import Estimator
from hubbub.estimation.estimator import InverseEstimator
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import Floats, Rounding
from hubbub.estimation.tree_estimator import Layered, TreeEstimator


class OwnEstimator(Estimator, Protocol):
    """The estimator that a mechanism brings along."""

    def reach(self) -> Reach:
        """Return the extremes of what one report can add."""


@runtime_checkable
class Estimated(Protocol):
    """A channel with an estimator of its own."""

    def own_estimator(self, **asked: Any) -> OwnEstimator:  # noqa: ANN401 - those of `estimator_for`
        """Return the estimator."""


AnyEstimator: TypeAlias = InverseEstimator | TreeEstimator | OwnEstimator
"""Whatever `estimator_for` gives: called with counts and n, it gives an Estimate."""


def estimator_for(
    channel: Channel,
    *,
    category_of: NDArray[np.integer[Any]] | None = None,
    points: Floats | None = None,
    missing: int | None = None,
    rounding: Rounding = "none",
) -> AnyEstimator:
    """Return the unbiased estimator of a channel; see `InverseEstimator` for the arguments.

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
        return InverseEstimator(
            channel, category_of=category_of, points=points, missing=missing, rounding=rounding
        )
    raise ParameterError(f"a channel must be one that can be estimated from, got {type(channel).__name__}")
