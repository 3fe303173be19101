"""Subsets of a given size, exactly uniform: one at a time as the bits of integers, many as rows of 0 and 1.

No large binomial is worked out and no float takes part. Where there are few subsets they are listed and a
uniform integer picks one. Else many are drawn by Floyd's algorithm: for j = n - k + 1, ..., n a uniform one
of the first j cells joins, or the j-th where that one is in already (Bentley and Floyd 1987). One is drawn by
tossing the same coin for every cell, which makes all sets of one size equally likely, whatever the coin; then
uniform members leave, or others join, until the size is right, and they are equally likely still.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, combinations, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes, below_many

MAX_LISTED: Final = 2**12
"""Subsets that are listed at most: their table stays in a processor's cache."""

_LISTED_CELLS: Final = 32
"""Cells of a listed subset at most: a row of the table is copied for each draw."""

_SHORT: Final = 2**12
"""The bound up to which integers come from words of 16 bits: less than one word in sixteen is dropped."""

_PLANES: Final = 4
"""Bits of the coin of one draw: its rate is a sixteenth of the cells, the nearest to the size asked for."""

_FEW: Final = 16
"""The size up to which sets are filled cell by cell, without coins."""

_CHUNK: Final = 2**21
"""Cells of the rows that are drawn together: few enough for a cache, with rows enough to amortise a step."""

_BYTE: Final = 2**8

_AHEAD: Final = 64
"""Bytes that are read at once for corrections."""

_WORDS: Final = struct.Struct(f"<{_AHEAD // 2}H")
_WIDE_WORDS: Final = struct.Struct(f"<{_AHEAD // 4}I")

Bits = NDArray[np.uint8]
"""Rows of cells, each 0 or 1."""


class ReadAhead:
    """A source that reads another's bytes some steps ahead, for one draw: none is used twice.

    Args:
        source: The other.
        size: The number of bytes read at once, >= 1.
    """

    __slots__ = ("_at", "_data", "_size", "_source")

    def __init__(self, source: Source, size: int) -> None:
        self._source, self._size = source, size
        self._data, self._at = b"", 0

    def token_bytes(self, n: int, /) -> bytes:
        """Return the next n bytes."""
        at = self._at
        end = at + n
        if end > len(self._data):
            self._data = self._data[at:] + self._source.token_bytes(max(n, self._size))
            at, end = 0, n
        self._at = end
        return self._data[at:end]


def subset_masks(size: int, counts: Sequence[int], source: Source = SYSTEM) -> list[int]:
    """Return independent, exactly uniform subsets of cells 0..size-1, each as the sum of 2^c over its cells.

    Args:
        size: Cells, >= 1.
        counts: Cells of each subset, each 0 to size.
        source: Where the bytes come from.

    Raises:
        ParameterError: If a count is out of range; the message does not repeat it.

    >>> subset_masks(3, [0, 3])
    [0, 7]
    """
    _check(size, counts)
    found = [0] * len(counts)
    kinds = {count: _listed(size, count) for count in set(counts)}
    rest = [i for i, count in enumerate(counts) if kinds[count] is None]
    if len(rest) < len(counts):
        shorts = chain.from_iterable(_WORDS.unpack(source.token_bytes(_AHEAD)) for _ in repeat(None))
        for i, count in enumerate(counts):
            if (listed := kinds[count]) is not None:
                masks, limit = listed
                word = next(shorts) if limit else 0
                while word >= limit > 0:
                    word = next(shorts)
                found[i] = masks[word % len(masks)]
    if rest:
        cells, full = size * len(rest), (1 << size) - 1
        fewer = [min(counts[i], size - counts[i]) for i in rest]
        rate, tossed = _rate(size, fewer), 0
        if rate:
            data = int.from_bytes(source.token_bytes((_PLANES * cells + 7) // 8), "little")
            tossed = tossed_mask([data >> i * cells & (1 << cells) - 1 for i in range(_PLANES)], rate)
        drawn = uniform_bits(size, source)
        for i, count in zip(rest, fewer, strict=True):
            mask = corrected_mask(tossed & full, count, drawn)
            found[i] = mask if count == counts[i] else mask ^ full
            tossed >>= size
    return found


def _rate(size: int, counts: Sequence[int]) -> int:
    """Return the sixteenths of a coin for sets of at most half of the cells; any would do.

    It tosses too few rather than too many: a member is harder to find than a cell that can join. Where all
    sets are small they begin empty.
    """
    if max(counts) <= _FEW:
        return 0
    mean = sum(counts) / len(counts)
    return max(round((mean - 0.7 * math.sqrt(mean)) * (1 << _PLANES) / size), 0)


def tossed_mask(planes: Sequence[int], rate: int) -> int:
    """Return the cells whose coins came up: each with probability rate/2^b, by b planes of fair bits.

    Args:
        planes: b integers of independent fair bits, one bit for every cell.
        rate: 1 to 2^b - 1.
    """
    found = 0
    for i, plane in enumerate(planes):
        # The bits of the rate from the lowest: each halves the probability, and adds a half where it is one.
        found = plane | found if rate >> i & 1 else plane & found
    return found


def corrected_mask(mask: int, count: int, bits: Iterable[int]) -> int:
    """Return a mask of `count` cells, from one in which all sets of one size are equally likely.

    Args:
        mask: The cells.
        count: How many to have.
        bits: 2^c of independent uniform cells c, or 0, as many as it takes.
    """
    excess = mask.bit_count() - count
    if excess < 0:
        for bit in bits:
            more = mask | bit
            if more != mask:
                mask = more
                excess += 1
                if not excess:
                    break
    elif excess:
        for bit in bits:
            if mask & bit:
                mask ^= bit
                excess -= 1
                if not excess:
                    break
    return mask


def uniform_bits(size: int, source: Source) -> Iterator[int]:
    """Return 2^c of independent, exactly uniform cells c in 0 to size - 1, without end; perhaps with zeros.

    Words have 8 bits for sizes to 2^8, 16 to 2^12, else 32. A word is no cell if it is not below the last
    whole multiple of the size.
    """
    if size <= _BYTE:
        by_byte = _bits_of_bytes(size).__getitem__
        return chain.from_iterable(map(by_byte, source.token_bytes(_AHEAD)) for _ in repeat(None))
    words = _WORDS if size <= _SHORT else _WIDE_WORDS
    span = 1 << (16 if words is _WORDS else 32)
    limit = span - span % size
    return chain.from_iterable(
        [1 << word % size for word in words.unpack(source.token_bytes(_AHEAD)) if word < limit]
        for _ in repeat(None)
    )


@lru_cache(maxsize=64)
def _bits_of_bytes(size: int) -> tuple[int, ...]:
    """Return 2^c per byte, c being the byte modulo the size; 0 past the last whole multiple of it."""
    whole = _BYTE - _BYTE % size
    return tuple(1 << byte % size if byte < whole else 0 for byte in range(_BYTE))


def subsets(size: int, count: int, rows: int, source: Source = SYSTEM, *, stride: int | None = None) -> Bits:
    """Return independent, exactly uniform subsets of cells 0..size-1.

    Args:
        size: Cells, >= 1.
        count: Cells of each subset, 0 to size.
        rows: How many subsets.
        source: Where the bytes come from.
        stride: Cells of a row; those from `size` on are 0. None: `size`.

    Returns:
        Shape (rows, stride), uint8, 1 where a cell is in.

    Raises:
        ParameterError: If the count is out of range; the message does not repeat it.
    """
    _check(size, [count])
    out = np.zeros((rows, size if stride is None else stride), dtype=np.uint8)
    if count in (0, size):
        out[:, :size] = count == size
        return out
    listed = _listed_rows(size, count)
    if listed is not None:
        out[:, :size] = listed.take(short_many(len(listed), rows, source), axis=0)
        return out
    fewer = min(count, size - count)
    step = max(1, _CHUNK // out.shape[1])
    for start in range(0, rows, step):
        _floyd(size, fewer, out[start : start + step], source)
    if fewer != count:
        out[:, :size] ^= 1
    return out


def _floyd(size: int, count: int, out: Bits, source: Source) -> None:
    """Set `count` of the first `size` cells of every row of zeros."""
    rows, stride = out.shape
    flat, base = out.reshape(-1), np.arange(0, rows * stride, stride)
    for j in range(size - count, size):
        label = short_many(j + 1, rows, source) + base
        # Cell j cannot be in yet: it joins where the drawn one is in already.
        flat[base + j] = flat.take(label)
        flat[label] = 1


def short_many(total: int, size: int, source: Source) -> NDArray[np.unsignedinteger]:
    """Return `size` independent, exactly uniform integers in 0 to total - 1, of short words where that pays.

    Args:
        total: At least 1, below 2^63.
        size: How many.
        source: Where the bytes come from.

    Returns:
        Shape (size,), uint16 for totals to 2^12, else as `hubbub.numeric.randomness.below_many` gives them.
    """
    if total > _SHORT:
        return below_many(total, size, source)
    words = np.frombuffer(batch_bytes(2 * size, source), dtype="<u2").astype(np.uint16, copy=False)
    limit = 2**16 - 2**16 % total
    if limit < 2**16:
        late = np.flatnonzero(words >= limit)
        if late.size:
            words = words.copy()
        while late.size:
            again = np.frombuffer(batch_bytes(2 * late.size, source), dtype="<u2")
            words[late] = again
            late = late[again >= limit]
    # A division by a constant is vectorised in NumPy, a remainder is not.
    return words - words // np.uint16(total) * np.uint16(total)


@lru_cache(maxsize=512)
def _listed(size: int, count: int) -> tuple[tuple[int, ...], int] | None:
    """Return all subsets as masks where they are few, else None; and the limit of the words that pick one.

    The limit is 0 where there is nothing to pick.
    """
    if count in (0, size):
        return ((1 << size) - 1 if count else 0,), 0
    if size > _LISTED_CELLS or math.comb(size, count) > MAX_LISTED:
        return None
    masks = tuple(sum(1 << cell for cell in cells) for cells in combinations(range(size), count))
    return masks, 2**16 - 2**16 % len(masks)


@lru_cache(maxsize=64)
def _listed_rows(size: int, count: int) -> Bits | None:
    """Return all subsets as rows of 0 and 1 where they are few, else None."""
    listed = _listed(size, count)
    if listed is None:
        return None
    rows = (np.array(listed[0], dtype=np.int64)[:, None] >> np.arange(size) & 1).astype(np.uint8)
    rows.flags.writeable = False  # shared by all draws
    return rows


def _check(size: int, counts: Sequence[int]) -> None:
    if size < 1 or (counts and not 0 <= min(counts) <= max(counts) <= size):
        raise ParameterError(f"a subset must have 0 to all of {size} cells, got another number")
