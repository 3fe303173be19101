"""Subsets of given sizes, exactly uniform and many together, sixteen cells to a word from the start.

A uniform subset of k of m cells has j of them among the first a cells with probability
C(a, j) C(m-a, k-j) / C(m, k), and is uniform in both parts given j. So counts are split, part by part, down
to words of sixteen cells, where a uniform integer picks one of the listed subsets. No float takes part.

Both kinds of draws are those of `hubbub.numeric.picks`, with laws that differ from row to row; twelve bits
settle nearly all splits, by a table.

A row's cells are in *planes*: cell c is bit c mod 16 of plane c div 16, and planes lie one after another.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.picks import Listed, extended, passed_ends
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes
from hubbub.numeric.subsets import subsets

PLANE: Final = 16
"""Cells of a plane."""

MAX_SPLIT: Final = 2**12
"""Cells up to which counts are split. The tables of more are large, and take long to make."""

_TABLE_BITS: Final = 12
"""Bits of a split's word that its table knows; 8 KiB for every count that has been seen."""

_CHUNK: Final = 2**20
"""Words of the rows that are drawn together: they stay in a processor's cache."""

_LATE: Final = 2**18
"""Ends that are compared at a time."""

_CELLS: Final = 2**21
"""Cells of a byte each that are drawn at a time where counts are not split."""

Planes = NDArray[np.uint16]
"""Sets of n rows, shape (planes, n), uint16."""

Counts = NDArray[np.integer[Any]]


def planes_of(cells: int) -> int:
    """Return how many planes hold that many cells."""
    return -(-cells // PLANE)


def subset_planes(size: int, counts: Counts, source: Source = SYSTEM) -> Planes:
    """Return independent subsets of cells 0..size-1, exactly uniform among those of their count.

    Args:
        size: Cells, >= 0.
        counts: Cells of each subset, shape (n,), each 0 to size.
        source: Where the bytes come from.

    Returns:
        Shape (ceil(size / 16), n), uint16.

    Raises:
        ParameterError: If a count is out of range; the message does not repeat it.
    """
    found = np.zeros((planes_of(size), counts.size), dtype=np.uint16)
    if not counts.size:
        return found
    if size < 0 or not 0 <= int(counts.min()) <= int(counts.max()) <= size:
        raise ParameterError(f"a subset must have 0 to all of {size} cells, got another number")
    if size > MAX_SPLIT:
        _by_count(size, counts, found, source)
    elif size:
        whole = counts.astype(np.int32, copy=False)
        step = max(PLANE, _CHUNK // (2 * len(found)))
        for start in range(0, counts.size, step):
            rows = slice(start, start + step)
            _Draw(size, found[:, rows], source).part(0, size, whole[rows])
    return found


def hold_value(planes: Planes, size: int, place: NDArray[np.intp], inside: NDArray[np.bool_]) -> None:
    """Turn subsets of labels 0..size-2 into subsets of cells 0..size-1 that hold one cell of each row or not.

    Cell `place` of a row is in where `inside` is; its label stood for the last cell.

    Args:
        planes: Shape (ceil(size / 16), n); cell size-1 is not in.
        size: Cells, >= 1.
        place: One cell of each row, shape (n,).
        inside: Whether it is in, shape (n,).
    """
    flat, n = planes.reshape(-1), planes.shape[1]
    at = (place >> 4) * n
    at += np.arange(n)
    shift = (place & 15).astype(np.uint16)
    old = flat.take(at)
    bit = old >> shift & np.uint16(1)
    # The bit becomes `inside`: changed where the two differ.
    flat[at] = old ^ (bit ^ inside) << shift
    # In the row whose place is the last cell the label's bit was 0: nothing is added to it.
    planes[(size - 1) >> 4] |= bit << np.uint16((size - 1) & 15)


def packed_rows(planes: Planes, width: int) -> NDArray[np.uint8]:
    """Return the sets of planes as rows of bytes, cell c in bit c mod 8 of byte c div 8, shape (n, width)."""
    rows = np.ascontiguousarray(planes.T).astype("<u2", copy=False)
    return rows.view(np.uint8)[:, :width]


class _Draw:
    """One draw of some rows: its bytes, and where the planes go."""

    def __init__(self, size: int, out: Planes, source: Source) -> None:
        self.out, self.source = out, source
        planes, rows = out.shape
        leaves = [_leaf(min(PLANE, size - PLANE * i)) for i in range(planes)]
        # Long words lie first, so that all are aligned.
        order = sorted(range(planes), key=lambda i: -leaves[i].word.itemsize)
        ends = [0, *accumulate(rows * leaves[i].word.itemsize for i in order)]
        data = batch_bytes(ends[-1] + 2 * rows * (planes - 1), source)
        self._words: list[NDArray[np.unsignedinteger[Any]]] = [np.empty(0, dtype=np.uint16)] * planes
        for i, start in zip(order, ends, strict=False):
            self._words[i] = np.frombuffer(data, dtype=leaves[i].word, count=rows, offset=start)
        self._splits = np.frombuffer(data, dtype="<u2", offset=ends[-1]).reshape(planes - 1, rows)
        self._leaves = leaves

    def part(self, start: int, cells: int, counts: NDArray[np.int32]) -> None:
        """Draw the subsets of the cells from a whole plane on, given how many of them each row has."""
        first = start // PLANE
        if cells <= PLANE:
            self._leaves[first].draw(counts, self._words[first], self.out[first], self.source)
            return
        # The first part is a power of two of planes: few kinds of splits are made then.
        left = PLANE << (planes_of(cells) - 1).bit_length() - 1
        words = self._splits[(start + left) // PLANE - 1]
        held = _split(cells, left).draw(counts, words, self.source)
        self.part(start, left, held)
        self.part(start + left, cells - left, counts - held)


class _Leaf:
    """The subsets of up to sixteen cells, listed by their number of cells."""

    def __init__(self, cells: int) -> None:
        self._law = Listed([math.comb(cells, k) for k in range(cells + 1)])
        self.word = self._law.word
        every = np.arange(1 << cells, dtype=np.uint32)
        sizes = sum((every >> c & 1 for c in range(cells)), np.zeros_like(every))
        self._masks = np.argsort(sizes, kind="stable").astype(np.uint16)
        self._masks.flags.writeable = False  # shared by all draws

    def draw(
        self,
        counts: NDArray[np.int32],
        words: NDArray[np.unsignedinteger[Any]],
        out: NDArray[np.uint16],
        source: Source,
    ) -> None:
        """Set the subset of every row."""
        np.take(self._masks, self._law.draw(counts, words, source), out=out, mode="clip")


class _Split:
    """The law of how many cells of a subset lie in the first part of all cells.

    A count's row of the table is made when it is first asked for.
    """

    def __init__(self, cells: int, left: int) -> None:
        self.cells, self.left = cells, left
        empty = np.zeros(0, dtype=np.uint16), np.zeros((0, left), dtype=np.uint64)
        self._known = _Known(np.full(cells + 1, -1, dtype=np.int32), *empty)

    def draw(self, counts: NDArray[np.int32], words: NDArray[np.uint16], source: Source) -> NDArray[np.int32]:
        """Return the count of the first part in every row, of its count and a word of its own."""
        known = self._known
        at = known.start.take(counts)
        if int(at.min()) < 0:
            known = self._known = self._with(known, np.unique(counts[at < 0]).tolist())
            at = known.start.take(counts)
        at |= words >> np.uint16(16 - _TABLE_BITS)
        found = known.table.take(at)
        if not found.min():
            self._settle(known, found, counts, words, source)
        held = found.astype(np.int32)
        held -= np.int32(1)
        return held

    def _settle(
        self,
        known: _Known,
        found: NDArray[np.uint16],
        counts: NDArray[np.int32],
        words: NDArray[np.uint16],
        source: Source,
    ) -> None:
        late = np.flatnonzero(found == 0)
        number, of = extended(words[late], source), counts[late]
        step = max(1, _LATE // self.left)
        for start in range(0, late.size, step):
            rows = slice(start, start + step)
            ends = known.ends[known.start[of[rows]] >> _TABLE_BITS]
            passed = (ends <= number[rows, None]).sum(axis=1)
            for i in np.flatnonzero((ends == number[rows, None]).any(axis=1)).tolist():
                least, weights, total = self._weights(int(of[start + i]))
                passed[i] = least + passed_ends(weights, total, int(number[start + i]), source)
            found[late[rows]] = passed + 1

    def _weights(self, count: int) -> tuple[int, list[int], int]:
        """Return the least count of the first part, the ends of all counts but the last, and the last's."""
        right = self.cells - self.left
        least, most = max(0, count - right), min(count, self.left)
        one = math.comb(self.left, least) * math.comb(right, count - least)
        ends = [one]
        for j in range(least, most):
            # C(a, j+1) / C(a, j) and C(b, k-j-1) / C(b, k-j), both of them exact.
            one = one * (self.left - j) // (j + 1) * (count - j) // (right - count + j + 1)
            ends.append(ends[-1] + one)
        return least, ends[:-1], ends[-1]

    def _with(self, known: _Known, counts: list[int]) -> _Known:
        """Return what is known, and the rows of these counts."""
        rows = [self._row(count) for count in counts]
        start = known.start.copy()
        start[counts] = np.arange(len(known.ends), len(known.ends) + len(counts)) << _TABLE_BITS
        table = np.concatenate([known.table, *(each for each, _ in rows)])
        return _Known(start, table, np.concatenate([known.ends, np.array([each for _, each in rows])]))

    def _row(self, count: int) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
        """Return a count's table, one more than the part's or 0 if unsettled, and its ends in 64 bits."""
        least, weights, total = self._weights(count)
        low = np.array([(weight << 64) // total for weight in weights], dtype=np.uint64)
        starts = np.arange(1 << _TABLE_BITS, dtype=np.uint64) << np.uint64(64 - _TABLE_BITS)
        table = (np.searchsorted(low, starts, side="right") + least + 1).astype(np.uint16)
        table[(low >> np.uint64(64 - _TABLE_BITS)).astype(np.intp)] = 0
        # A number that meets an end asks the exact rule: nothing is past the ends that are none.
        ends = np.full(self.left, 2**64 - 1, dtype=np.uint64)
        ends[:least] = 0
        ends[least : least + low.size] = low
        return table, ends


class _Known(NamedTuple):
    """The rows of a split that have been made: never changed, so that threads can share them.

    Attributes:
        start: Per count where its row of the table begins, -1 where it has none, shape (cells + 1,), int32.
        table: One more than the first part's count by the first bits of a word, 0 where they are too few.
        ends: Of every row the ends of the intervals, rounded down to 64 bits, shape (rows, left), uint64.
    """

    start: NDArray[np.int32]
    table: NDArray[np.uint16]
    ends: NDArray[np.uint64]


@lru_cache(maxsize=PLANE)
def _leaf(cells: int) -> _Leaf:
    return _Leaf(cells)


@lru_cache(maxsize=128)
def _split(cells: int, left: int) -> _Split:
    return _Split(cells, left)


def _by_count(size: int, counts: Counts, out: Planes, source: Source) -> None:
    width, step = PLANE * len(out), max(1, _CELLS // (PLANE * len(out)))
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        for start in range(0, rows.size, step):
            at = rows[start : start + step]
            bits = subsets(size, count, at.size, source, stride=width)
            out[:, at] = np.packbits(bits, axis=1, bitorder="little").view("<u2").T
