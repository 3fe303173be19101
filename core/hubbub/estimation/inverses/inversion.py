"""The choice of a left inverse for a channel."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.finite import FiniteChannel
from hubbub.errors import ParameterError
from hubbub.estimation.inverses.dense import DenseInverse
from hubbub.estimation.inverses.inverse import Arithmetic, Inverse


@runtime_checkable
class Invertible(Protocol):
    """A channel whose structure gives its inverse without a matrix."""

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: Arithmetic = "float64"
    ) -> Inverse:
        """Return the left inverse of the channel; see `invert`."""


def own_categories(channel: FiniteChannel) -> NDArray[np.intp]:
    """Return the category of every input, shape (K,): the channel's own, or else one per input."""
    own: NDArray[np.intp] | None = getattr(channel, "category_of", None)
    return np.arange(channel.inputs) if own is None else own


def invert(
    channel: FiniteChannel, *, category_of: NDArray[Any] | None = None, arithmetic: Arithmetic = "float64"
) -> Inverse:
    """Return the left inverse of a channel's integers, without a matrix where the channel has structure.

    Args:
        channel: The channel whose symbols will be counted.
        category_of: Category 0..m-1 of every input, shape (K,), none left out; None: `own_categories`.
        arithmetic: "fractions" computes exactly in object arrays, for proofs on small K.

    Raises:
        ParameterError: The matrix of a channel without structure is too large, or fractions were asked of it.
    """
    if isinstance(channel, Invertible):
        return channel.inverse(category_of=category_of, arithmetic=arithmetic)
    if arithmetic != "float64":
        raise ParameterError(f"a channel without structure is inverted in float64 only, got {arithmetic!r}")
    common = getattr(channel, "common", None)
    return DenseInverse(channel.weights(), channel.total, category_of=category_of, common=common)
