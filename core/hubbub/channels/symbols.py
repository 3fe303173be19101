"""The types of symbols: numbers and packed sets, and columns of them."""

from __future__ import annotations

from typing import Final, NamedTuple

# A set: a bit for each of the most inputs that a channel has, and as many for categories.
MAX_SYMBOL_BYTES: Final = 2**15

Symbol = int | bytes
"""The content of one answer: a number, or a packed set."""


class SparseColumn(NamedTuple):
    """The weights of a symbol, for a channel that has three of them at most; many symbols share one.

    Attributes:
        rest: Weight of every input that is not named below.
        start: The first of a run of inputs.
        stop: The one after its last; an empty run names none.
        near: Weight of the run's inputs.
        true: Weight of the symbol's own input, which is in the run unless that is empty.
    """

    rest: int
    start: int
    stop: int
    near: int
    true: int
