"""Channels whose symbols are sets of the cells that a report supports, one bit each, eight to a byte.

There are up to 2^cells sets, so there is no matrix; all that privacy and estimation need of one is simple.
Cell c of a set is bit c mod 8, counted from the least significant, of byte c div 8; the bits after the last
cell are zero. Reports are counted per cell (*support counts*): how many sets contain it.

Of some kinds (`AttemptChannel`) a single draw is a fixed number of 32-bit little-endian words, an *attempt*.
Each word has a limit, and an attempt with any word at or beyond its limit is dropped whole, so that what each
kept word is reduced to is exactly uniform. Draws of an array have the same law, and may use other bytes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, Final, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.channels.symbols import MAX_SYMBOL_BYTES
from hubbub.errors import ParameterError
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes

Sets = NDArray[np.uint8]
"""Packed sets, shape (n, width), uint8."""

Attempts = NDArray[np.uint32]
"""The words of n attempts, shape (n, words), uint32."""

MAX_BINS: Final = 8 * MAX_SYMBOL_BYTES
"""The most cells of a set that a report has room for."""

WORD: Final = 2**32
"""The bound that a word is drawn below."""

_CHUNK: Final = 1 << 19
"""Words or cells handled at a time: their arrays stay within a few MiB."""

CELLS: Final = 1 << 21
"""Cells of a byte each that are drawn at a time."""

ROWS: Final = 2**14
"""Sets that are drawn at a time without a byte for every cell: more leave a processor's cache."""

FEW: Final = 16
"""Values of an array up to which sets are drawn one by one: arrays take longer, and make tables."""

_BLOCK: Final = 255
"""Sets whose bits add up within a byte."""

_ONES: Final = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


@dataclass(frozen=True)
class Support:
    """The first two moments of a set: exact probabilities that it holds cells, given the true cell v.

    Attributes:
        p: Pr(v in S).
        q: Pr(x in S), x != v.
        p_pair: Pr(v in S and x in S), x != v.
        q_pair: Pr(x in S and y in S), x, y, v all different.
        size: How many cells every set has; None where sets have any number of them.
    """

    p: Fraction
    q: Fraction
    p_pair: Fraction
    q_pair: Fraction
    size: int | None


@dataclass(frozen=True, eq=False)
class Level:
    """One grouping of the inputs that some reports are about.

    Attributes:
        labels: The cell of every input at this level, shape (K,), intp, every cell 0 and up in use.
        share: The exact probability that a report is about this level.
        support: How its reports support its cells.
    """

    labels: NDArray[np.intp]
    share: Fraction
    support: Support

    @property
    def bins(self) -> int:
        """The number of cells that the inputs are grouped into."""
        return int(self.labels.max()) + 1


class SetChannel(Channel):
    """A randomised map from inputs 0..K-1 to sets of cells.

    Attributes:
        width: Bytes of a symbol, ceil(cells / 8).
    """

    def __init__(self, inputs: int, cells: int) -> None:
        """Keep the numbers of inputs and of cells.

        Args:
            inputs: K.
            cells: Bits of a symbol.
        """
        super().__init__(inputs)
        if not 1 <= cells <= MAX_BINS:
            raise ParameterError(f"a set must have 1 to {MAX_BINS} cells, got {cells}")
        self._cell_count, self.width = cells, (cells + 7) // 8

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.inputs} inputs, sets of {self.bins} cells, "
            f"epsilon {self.epsilon:.9g}>"
        )

    @property
    def widest_symbol(self) -> bytes:  # noqa: D102 - inherited
        return bytes(self.width)

    # Each kind of set channel defines these.

    @property
    @abstractmethod
    def levels(self) -> tuple[Level, ...]:
        """The levels of the cells, coarsest first; the last level has one cell per input."""

    @abstractmethod
    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Return per level how many reports are about it, and their support counts, shape (cells of it,)."""

    @abstractmethod
    def sends(self, members: int) -> bool:
        """Return whether the channel can send a set, given as the sum of 2^c over its cells c."""

    @abstractmethod
    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:
        """Return which packed sets, of the right width, the channel can send, shape (n,), bool."""

    @abstractmethod
    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:
        """Return whether support counts, each within 0 to n, can be those of n sets."""

    @abstractmethod
    def draw(self, value: int, source: Source) -> bytes:
        """Return one set for an input in 0..K-1, packed."""

    @abstractmethod
    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:
        """Return one set per input, packed, shape (n, width), for inputs of shape (n,) in 0..K-1.

        They are independent and have the law of `draw`. One call has at most `chunk` inputs.
        """

    # The rest follows for all of them.

    @overload
    def perturb(self, values: int, *, source: Source = SYSTEM) -> bytes: ...
    @overload
    def perturb(
        self, values: NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> Sets: ...
    def perturb(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> bytes | Sets:
        """Return one freshly drawn set per value, packed; see `Channel.perturb`.

        Returns:
            `width` bytes for one value; else shape (n, width), uint8, from the same bytes perhaps other sets.
        """
        if isinstance(values, int):
            return self.draw(self._checked_input(values), source)
        array = self._checked_values(values)
        return self._many(array, source) if array.ndim else self.draw(int(array), source)

    def _many(self, array: NDArray[np.integer[Any]], source: Source) -> Sets:
        symbols = np.empty((array.size, self.width), dtype=np.uint8)
        step = self.chunk
        for start in range(0, array.size, step):
            symbols[start : start + step] = self.draw_many(array[start : start + step], source)
        return symbols

    def _one_by_one(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:
        drawn = b"".join(self.draw(value, source) for value in values.tolist())
        return np.frombuffer(drawn, dtype=np.uint8).reshape(len(values), self.width)

    @property
    def chunk(self) -> int:
        """Inputs of one call of `draw_many` at most: what it makes of them stays within a few MiB."""
        return max(1, CELLS // self._cell_count)

    @property
    def bins(self) -> int:
        """The number of bits of a symbol; K unless a mechanism says otherwise."""
        return self._cell_count

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        if not isinstance(symbol, bytes) or len(symbol) != self.width:
            return False
        members = int.from_bytes(symbol, "little")
        return members >> self.bins == 0 and self.sends(members)

    def contains(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_]:  # noqa: D102
        if symbols.ndim != 2 or symbols.shape[1] != self.width or symbols.dtype != np.uint8:
            return np.zeros(len(symbols), dtype=np.bool_)
        return self.contains_sets(symbols.view(np.uint8))

    def agrees(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        if counts.size == 0:
            return n == 0
        within = counts.shape == (self.bins,) and 0 <= int(counts.min()) <= int(counts.max()) <= n
        return within and self.could_count(counts, n)

    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
        """Return the support counts of valid packed sets, shape (cells,), int64: how many hold each cell."""
        counts = np.zeros(self.bins, dtype=np.int64)
        step = max(1, _CHUNK // (self.bins * _BLOCK)) * _BLOCK
        for start in range(0, len(symbols), step):
            bits = np.unpackbits(symbols[start : start + step], axis=1, count=self.bins, bitorder="little")
            whole = len(bits) // _BLOCK * _BLOCK
            blocks = bits[:whole].reshape(-1, _BLOCK, self.bins)
            counts += blocks.sum(axis=1, dtype=np.uint8).sum(axis=0, dtype=np.int64)
            counts += bits[whole:].sum(axis=0, dtype=np.int64)
        return counts

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected support counts of one report of a population, shape (cells,), float64.

        Args:
            frequencies: The share of the population that holds each input, shape (K,), >= 0, summing to one.
        """
        parts = []
        for level in self.levels:
            held, other = float(level.support.p), float(level.support.q)
            population = np.bincount(level.labels, weights=frequencies, minlength=level.bins)
            parts.append(float(level.share) * (other * frequencies.sum() + (held - other) * population))
        return self._joined(parts)

    def _joined(self, parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.concatenate(parts)

    def _members(self, symbol: bytes | Sets) -> NDArray[np.bool_]:
        """Return the cells of one symbol, shape (cells,), bool, if the channel can send it."""
        data = symbol.tobytes() if isinstance(symbol, np.ndarray) else symbol
        if not isinstance(data, bytes) or not self.admits(data):
            raise ParameterError(
                f"a symbol must be a set of {self.width} bytes that the channel can send, got another one"
            )
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=self.bins, bitorder="little")
        return bits.astype(np.bool_)

    def _spare_is_zero(self, symbols: Sets) -> NDArray[np.bool_]:
        """Return whether the bits after the last cell are zero, shape (n,), bool."""
        spare = 8 * self.width - self.bins
        clean: NDArray[np.bool_] = symbols[:, -1] < (1 << (8 - spare))
        return clean


class AttemptChannel(SetChannel):
    """A set channel whose single draw is an attempt of 32-bit words; see the module.

    Attributes:
        limits: From where on each word of an attempt is dropped, shape (words,), uint64, at most 2^32.
        words: 32-bit words of an attempt.
    """

    def __init__(self, inputs: int, cells: int, limits: Sequence[int] | NDArray[np.uint64]) -> None:
        """Keep the numbers of inputs, of cells and of words per attempt.

        Args:
            inputs: K.
            cells: Bits of a symbol.
            limits: Per word of an attempt the limit from which on it is dropped, shape (words,), <= 2^32.
        """
        super().__init__(inputs, cells)
        self.limits = np.array(limits, dtype=np.uint64)
        self.words = self.limits.size
        self._drops = bool((self.limits < WORD).any())

    @abstractmethod
    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:
        """Set out[i, c] to whether the set of attempt i for input values[i] contains cell c.

        This is the whole law of the channel. Every word lies below its limit; `out`, of shape (n, cells),
        is False throughout.
        """

    @property
    def chunk(self) -> int:  # noqa: D102 - inherited
        return max(1, _CHUNK // max(self.words, self._cell_count))

    def draw(self, value: int, source: Source) -> bytes:
        """Return one set for an input in 0..K-1, packed: what `fill` makes of the first attempt kept."""
        return self._filled(np.array([value]), source).tobytes()

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:
        """Return one set per input: here those of as many single draws from the same bytes."""
        return self._filled(values, source)

    def _filled(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:
        members = np.zeros((values.size, self._cell_count), dtype=np.bool_)
        self.fill(values, self._attempts(values.size, source), members)
        return np.packbits(members, axis=1, bitorder="little")

    def _attempts(self, size: int, source: Source) -> Attempts:
        kept: list[Attempts] = []
        missing = size
        while missing:
            length = 4 * missing * self.words
            data = source.token_bytes(length) if size == 1 else batch_bytes(length, source)
            words = np.frombuffer(data, dtype="<u4").reshape(missing, self.words)
            if self._drops:
                words = words[(words < self.limits).all(axis=1)]
            kept.append(words.astype(np.uint32, copy=False))
            missing -= len(words)
        return kept[0] if len(kept) == 1 else np.concatenate(kept)


def packed_chunk(cells: int) -> int:
    """Return how many sets of that many cells are drawn at a time where a cell takes a bit or two."""
    return max(1, min(ROWS, 8 * CELLS // cells))


def sizes_of(symbols: Sets) -> NDArray[np.int64]:
    """Return how many cells each packed set has, shape (n,), int64."""
    return np.asarray(_ONES[symbols].sum(axis=1, dtype=np.int64))


def draws_between(p_draws: int, dummy: Fraction, share: Fraction) -> int:
    """Return the draws of a coin that is tossed with probability `share`, else one of the rate `dummy`.

    Rounded down: the share is met from below, to within one step of the coin.

    Raises:
        ParameterError: If nothing is left that such a coin can tell.
    """
    mixed = floor(share * p_draws + (1 - share) * dummy)
    if mixed <= dummy:
        raise ParameterError("participation must leave something that a coin of so few bits can tell")
    return mixed
