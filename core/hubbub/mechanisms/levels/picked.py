"""Levels of which one is picked, and only that one's set is drawn: trees of labels, and of ranges.

A symbol is one byte, the level, and then the set of that level's cells, cell c in bit c mod 8 of byte
c div 8; the rest is zero. Drawing takes a word for the level, and then an attempt of that level's subset
selection alone. The draws of an array are a word for each, and then the sets of each level, coarsest first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import WORD, Sets, sizes_of
from hubbub.errors import ParameterError
from hubbub.mechanisms.levels.hierarchy import Hierarchy
from hubbub.mechanisms.levels.set_levels import SetLevels
from hubbub.numeric.randomness import SYSTEM, Source, below, below_many


class PickedLevels(SetLevels):
    """A channel that sends a level, and a set of that level's cells; see the module.

    Attributes:
        width: Bytes of a symbol: one for the level, and those of the widest set.
    """

    def __init__(
        self, hierarchy: Hierarchy, shares: Sequence[int], sizes: Sequence[int], p_draws: Sequence[int]
    ) -> None:
        """Set the channel from its integers; see `SetLevels`.

        Raises:
            ParameterError: If the integers do not make a channel that tells cells apart.
        """
        super().__init__(hierarchy, shares, sizes, p_draws)
        self.width = 1 + max(oracle.width for oracle in self.oracles)
        self._bounds = list(accumulate(self.shares[:-1]))
        self._outside = np.full((len(self.oracles), self.width - 1), 0xFF, dtype=np.uint8)
        for level, oracle in enumerate(self.oracles):
            whole, rest = divmod(oracle.inputs, 8)
            self._outside[level, :whole] = 0
            if rest:
                self._outside[level, whole] = 0xFF << rest & 0xFF

    @property
    def widest_symbol(self) -> bytes:  # noqa: D102 - inherited
        return bytes(self.width)

    @overload
    def perturb(self, values: int, *, source: Source = SYSTEM) -> bytes: ...
    @overload
    def perturb(
        self, values: NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> Sets: ...
    def perturb(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> bytes | Sets:
        """Return one freshly drawn symbol per value; see `SetChannel.perturb`.

        Every report is `epsilon`-differentially private for its value, missing included. One value draws
        the same as an array of it alone.
        """
        if isinstance(values, int):
            return self.draw(self._checked_input(values), source)
        array = self._checked_values(values)
        if not array.size:
            return np.zeros((0, self.width), dtype=np.uint8)
        if array.ndim == 0:
            return self.draw(int(array), source)
        symbols = np.zeros((array.size, self.width), dtype=np.uint8)
        picked = np.searchsorted(self._bounds, below_many(WORD, array.size, source), side="right")
        symbols[:, 0] = picked
        for level, oracle in enumerate(self.oracles):
            rows = np.flatnonzero(picked == level)
            cells = self.hierarchy.labels[level][array[rows]]
            symbols[rows, 1 : 1 + oracle.width] = oracle.perturb(cells, source=source)
        return symbols

    def draw(self, value: int, source: Source) -> bytes:  # noqa: D102 - inherited
        level = bisect_right(self._bounds, below(WORD, source))
        drawn = self.oracles[level].draw(int(self.hierarchy.labels[level][value]), source)
        return (bytes((level,)) + drawn).ljust(self.width, b"\0")

    def _about(self, symbol: bytes | Sets) -> tuple[int, NDArray[np.bool_]]:
        data = symbol.tobytes() if isinstance(symbol, np.ndarray) else symbol
        if not self.admits(data):
            raise ParameterError(
                f"a symbol must be a level and a set of {self.width} bytes that the channel can send, "
                "got another one"
            )
        level = data[0]
        bits = np.frombuffer(data, dtype=np.uint8)[1:]
        members = np.unpackbits(bits, count=self.oracles[level].inputs, bitorder="little")
        return level, members.astype(np.bool_)

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        if not isinstance(symbol, bytes) or len(symbol) != self.width or symbol[0] >= len(self.oracles):
            return False
        oracle, members = self.oracles[symbol[0]], int.from_bytes(symbol[1:], "little")
        return members >> oracle.inputs == 0 and oracle.sends(members)

    def sends(self, members: int) -> bool:
        """Return whether the channel can send a symbol, given as the integer of its bytes."""
        return members >> 8 * self.width == 0 and self.admits(members.to_bytes(self.width, "little"))

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        level = symbols[:, 0]
        valid = level < len(self.oracles)
        known = np.where(valid, level, 0)
        valid &= ~(symbols[:, 1:] & self._outside[known]).any(axis=1)
        valid &= sizes_of(symbols[:, 1:]) == np.array([oracle.size for oracle in self.oracles])[known]
        return np.asarray(valid)

    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
        """Return how many valid symbols are about each level, and hold each of its nodes, shape (bins,)."""
        counts = np.zeros(self.bins, dtype=np.int64)
        for level, (oracle, cells) in enumerate(zip(self.oracles, self._cells, strict=True)):
            own = symbols[symbols[:, 0] == level]
            counts[level] = len(own)
            counts[cells] = oracle.tally(own[:, 1 : 1 + oracle.width])
        return counts
