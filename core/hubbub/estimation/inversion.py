"""Which left inverse fits which channel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.block import BlockInverse, CollapsedInverse
from hubbub.estimation.dense import DenseInverse
from hubbub.estimation.hashing import HashInverse
from hubbub.estimation.inverse import Arithmetic, Inverse
from hubbub.finite import FiniteChannel
from hubbub.mechanisms.grr import GRR
from hubbub.mechanisms.local_hashing import LocalHashing
from hubbub.mechanisms.pbgrr import PBGRR, CategoryGRR


def own_categories(channel: FiniteChannel) -> NDArray[np.intp]:
    """Give the category of every input, shape (K,): the channel's own, or else one per input."""
    return channel.category_of if isinstance(channel, PBGRR) else np.arange(channel.inputs)


def invert(
    channel: FiniteChannel, *, category_of: NDArray[Any] | None = None, arithmetic: Arithmetic = "float64"
) -> Inverse:
    """Give the left inverse of a channel's integers, without a matrix where the channel has structure.

    Args:
        channel: The channel whose symbols will be counted.
        category_of: Category 0..m-1 of every input, shape (K,), none left out; None: `own_categories`.
        arithmetic: "fractions" computes exactly in object arrays, for proofs on small K.

    Raises:
        ParameterError: The matrix of a channel without structure is too large, or fractions were asked of it.
    """
    if isinstance(channel, GRR):
        # One block in which "same category" and "other" weigh the same: any grouping may be laid over it.
        t, u, size = (np.array([number], dtype=np.int64) for number in (channel.t, channel.u, channel.inputs))
        groups = own_categories(channel) if category_of is None else category_of
        return BlockInverse(t, u, u, size, channel.total, category_of=groups, arithmetic=arithmetic)
    if isinstance(channel, CategoryGRR):
        t, o, sizes = channel.t, channel.o, channel.sizes
        return CollapsedInverse(t, o, sizes, channel.total, category_of=category_of, arithmetic=arithmetic)
    if isinstance(channel, PBGRR):
        t, u, o, sizes = channel.t, channel.u, channel.o, channel.sizes
        return BlockInverse(t, u, o, sizes, channel.total, category_of=category_of, arithmetic=arithmetic)
    if isinstance(channel, LocalHashing):
        return HashInverse(channel, category_of=category_of, arithmetic=arithmetic)
    if arithmetic != "float64":
        raise ParameterError(f"a channel without structure is inverted in float64 only, got {arithmetic!r}")
    return DenseInverse(channel.weights(), channel.total, category_of=category_of)
