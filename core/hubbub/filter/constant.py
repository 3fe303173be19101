"""A law for answers of which the filter keeps the largest loss alone, and nothing of what they say."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.divergence import BlockDivergence, fixed_up

_NEAR: Final = 2**62
"""The larger of the two weights; the other one is rounded down, which adds next to nothing to the loss."""


class ConstantLaw:
    """A law of two readings, as far apart as any two values of a channel whose columns have two weights.

    They stand for all values that a coordinate could have: an answer costs as much recorded as it does
    pending, its worst. So it suits a coordinate that no other query reads, and whose values are too many.

    Args:
        channel: The channel, any two of whose inputs some symbol tells apart by all of its epsilon.
        odds: The ratio of the weights of any of its columns, as two integers.
    """

    inputs: Final = 2

    def __init__(self, channel: Channel, odds: tuple[int, int]) -> None:
        near, far = odds
        self._channel, self._weights = channel, (_NEAR, _NEAR * far // near)

    def column(self, symbol: Any, /) -> NDArray[np.int64]:  # noqa: ANN401 - of whichever type it sends
        """Return the weights of the two readings, shape (2,), whatever a symbol of the channel is.

        Raises:
            ParameterError: If the channel cannot send it.
        """
        self._channel.column_of([symbol])
        return np.array(self._weights, dtype=np.int64)

    def blocks(self) -> BlockDivergence:
        """Return the one distance that there is."""
        return BlockDivergence.constant(2, fixed_up(*self._weights))


@lru_cache(maxsize=64)
def constant_law(channel: Channel, odds: tuple[int, int]) -> ConstantLaw:
    """Return the constant law of a channel, one and the same: a filter knows laws by identity."""
    return ConstantLaw(channel, odds)
