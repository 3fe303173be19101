"""Which report ids were seen before: 64-bit keys in a NumPy hash table, one per partition and open round.

A key mixes both halves of the 16-byte id, because all ids of one partition agree in their second half modulo
the number of partitions. Read as two little-endian 64-bit integers a, b::

    key = (a * 0x9E3779B97F4A7C15 + b) mod 2^64          (0 is kept as 1: 0 marks an empty cell)

For every b this is a bijection of a, so keys of random ids are uniform whatever the partition: n accepted
reports lose n^2 / 2^65 to false duplicates in expectation (10^7 ids: 3 in a million).

Inside the table a key is multiplied by an odd number that the operating system draws per table: nobody can
choose ids that crowd one place. The drawn number decides where a key lies, never whether it was seen.
Cells follow the order of the multiplied keys; a sorted group of keys then walks memory in one direction, and
a shard that grows is laid out anew in a few vector operations.

Memory: a large table is 16 shards that grow by 1.4 at different times, one at a time, so that the whole stays
near 14 bytes per id and below 16 while growing. A table below 65,536 cells (512 KB) is one shard.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

KEY_BYTES: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd

# One shard costs one round of NumPy calls, sixteen bound what growing takes beside the table.
_SHARD_BITS: Final = 4
_SPLIT_CELLS: Final = 1 << 16
# At seven tenths full an absent key looks at six cells on average: mostly one window.
_MAX_LOAD: Final = 0.72
_GROWTH: Final = 1.4
_MIN_CELLS: Final = 64
# One cache line of cells is compared at a time; eight booleans then read as one 64-bit integer.
_WINDOW: Final = 8
# Keys pushed past the last cell find room here instead of wrapping round, which keeps cells in order.
_SLACK: Final = 128

Keys = NDArray[np.uint64]


class Fresh(NamedTuple):
    """What a set knows about a group of ids.

    Attributes:
        mask: True where the id was never seen, neither before nor earlier in this group, shape (n,), bool;
            None: all of them.
        keys: The keys of the never-seen ones, in any order, uint64.
        trail: Where the set looked, so that `add` need not look again; only the set itself reads it.
    """

    mask: NDArray[np.bool_] | None
    keys: Keys
    trail: object = None


class IdSet(Protocol):
    """Remembers ids. `fresh` only looks; `add` remembers."""

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Which of the ids (16 bytes each, side by side, column after column) were never seen."""
        ...

    def add(self, fresh: Fresh) -> None:
        """Remembers the keys that `fresh` returned; no other key may have been added since."""
        ...

    def __len__(self) -> int:
        """How many keys it remembers."""
        ...


class Unchecked:
    """Takes every id for new: to measure what counting alone costs. Never for a count anyone relies on."""

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """All of them, without a look."""
        return Fresh(None, _NONE)

    def add(self, fresh: Fresh) -> None:
        """Forgets them."""

    def __len__(self) -> int:
        return 0


_NONE: Final = np.empty(0, dtype=np.uint64)


def keys_of(ids: bytes) -> Keys:
    """The 64-bit keys of ids that lie side by side, shape (len(ids) / 16,), never 0."""
    halves = np.frombuffer(ids, dtype="<u8").reshape(-1, 2)
    keys: Keys = halves[:, 0] * _MIX + halves[:, 1]
    np.maximum(keys, np.uint64(1), out=keys)
    return keys


class _Trail(NamedTuple):
    table: IdTable
    held: int
    ascending: Keys
    position: NDArray[np.intp]


class IdTable:
    """An exact set of 64-bit keys: linear-probing shards whose cells follow the order of the keys."""

    __slots__ = ("_bits", "_cells", "_held", "_salt")

    def __init__(self) -> None:
        self._salt = _drawn()
        self._bits = 0
        self._cells = [_empty(_MIN_CELLS)]
        self._held = [0]

    def __len__(self) -> int:
        return sum(self._held)

    @property
    def nbytes(self) -> int:
        """Bytes of all cells, empty ones included."""
        return sum(cells.nbytes for cells in self._cells)

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Which of the ids were never seen; of equal ids the first is. Changes nothing."""
        return self.fresh_keys(keys_of(columns[0] if len(columns) == 1 else b"".join(columns)))

    def fresh_keys(self, keys: Keys) -> Fresh:
        """The same for keys, shape (n,), none of them 0; the answer's keys come in the table's order."""
        placed = keys * self._salt
        order = np.argsort(placed)
        ascending = placed[order]
        repeated = ascending[1:] == ascending[:-1]
        if repeated.any():
            # Only now does it matter which of equal keys comes first: the first report counts.
            order = np.argsort(placed, kind="stable")
            ascending = placed[order]
        new = np.empty(len(keys), dtype=np.bool_)
        position = np.empty(len(keys), dtype=np.intp)
        for shard, low, high in self._slices(ascending):
            new[low:high], position[low:high] = _search(self._cells[shard], ascending[low:high], self._bits)
        new[1:] &= ~repeated
        if new.all():
            return Fresh(None, keys[order], _Trail(self, len(self), ascending, position))
        mask = np.empty(len(keys), dtype=np.bool_)
        mask[order] = new
        return Fresh(mask, keys[order[new]], _Trail(self, len(self), ascending[new], position[new]))

    def add(self, fresh: Fresh) -> None:
        """Remembers the keys that `fresh` returned.

        Raises:
            ValueError: If another table made the answer, or keys were added to this one since.
        """
        trail = fresh.trail
        if not isinstance(trail, _Trail) or trail.table is not self or trail.held != len(self):
            raise ValueError("fresh must be this table's answer about its present contents")
        ascending = trail.ascending
        position: NDArray[np.intp] | None = trail.position
        if not self._bits and len(self) + len(ascending) > _MAX_LOAD * _SPLIT_CELLS:
            self._split()
            position = None
        for shard, low, high in self._slices(ascending):
            part, cells = ascending[low:high], self._cells[shard]
            held = self._held[shard] + len(part)
            crowded = held > _MAX_LOAD * (len(cells) - _SLACK)
            start = _homes(part, len(cells), self._bits) if position is None else position[low:high]
            if crowded or not _insert(cells, part, start):
                rebuilt = _rebuilt(cells, part, held, self._bits)
                if rebuilt is None:
                    # Some of the ascending keys may lie in the cells already.
                    self._fill(
                        np.unique(np.concatenate((*(old[old != 0] for old in self._cells), ascending)))
                    )
                    return
                self._cells[shard] = rebuilt
            self._held[shard] = held

    def _split(self) -> None:
        """Goes from one shard to sixteen, each f^(1/16) larger than the last: they fill one after another."""
        ascending = self._cells[0][self._cells[0] != 0]
        ascending.sort()
        self._bits, shards = _SHARD_BITS, 1 << _SHARD_BITS
        self._cells = [_empty(int(_SPLIT_CELLS / shards * _GROWTH ** (j / shards))) for j in range(shards)]
        self._fill(ascending)

    def _fill(self, ascending: Keys) -> None:
        """Lays all keys anew, given in their order; where they crowd, under another multiplier."""
        while True:
            filled = [(_empty(len(cells) - _SLACK), 0) for cells in self._cells]
            crowded = False
            for shard, low, high in self._slices(ascending):
                cells = _rebuilt(filled[shard][0], ascending[low:high], high - low, self._bits)
                crowded |= cells is None
                if cells is not None:
                    filled[shard] = cells, high - low
            if not crowded:
                self._cells, self._held = [cells for cells, _ in filled], [held for _, held in filled]
                return
            keys = ascending * np.uint64(pow(int(self._salt), -1, 1 << 64))
            self._salt = _drawn()
            ascending = np.sort(keys * self._salt)

    def _slices(self, ascending: Keys) -> list[tuple[int, int, int]]:
        """(shard, low, high) for every shard that some of the ascending keys belong to by their top bits."""
        if not self._bits:
            return [(0, 0, len(ascending))] if len(ascending) else []
        starts = np.arange(1 << self._bits, dtype=np.uint64) << np.uint64(64 - self._bits)
        bounds = [*np.searchsorted(ascending, starts).tolist(), len(ascending)]
        return [(j, bounds[j], bounds[j + 1]) for j in range(len(starts)) if bounds[j] < bounds[j + 1]]


def _drawn() -> np.uint64:
    """An odd multiplier that nobody can guess."""
    return np.uint64(int.from_bytes(os.urandom(KEY_BYTES), "little") | 1)


def _empty(cells: int) -> Keys:
    return np.zeros(cells + _SLACK, dtype=np.uint64)


def _homes(ascending: Keys, cells: int, bits: int) -> NDArray[np.intp]:
    """Where each key would like to lie, non-decreasing, in [0, cells - _SLACK)."""
    homes = ascending << np.uint64(bits)
    homes >>= np.uint64(32)
    homes *= np.uint64(cells - _SLACK)
    homes >>= np.uint64(32)
    return homes.view(np.int64).astype(np.intp, copy=False)


def _windows(cells: Keys) -> Keys:
    """Row i is cells[i : i + 8]: a view."""
    return np.lib.stride_tricks.as_strided(
        cells, (len(cells) - _WINDOW + 1, _WINDOW), (KEY_BYTES, KEY_BYTES), writeable=False
    )


def _words(flags: NDArray[np.bool_]) -> Keys:
    """The eight flags of each row as one integer, the first flag lowest, shape (n,)."""
    words: Keys = flags.view("<u8")[:, 0]
    return words


def _passed(empty: Keys) -> NDArray[np.uint8]:
    """How many cells of each window come before its first empty one; 8 where none is empty."""
    # The bits below the lowest flag, counted: eight per cell, 64 where there is no flag.
    bits: NDArray[np.uint8] = np.bitwise_count((empty & (~empty + np.uint64(1))) - np.uint64(1))
    bits >>= 3
    return bits


def _search(cells: Keys, ascending: Keys, bits: int) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Which keys are not in the cells, and for those the first empty cell after their home.

    Nothing is ever removed, so a key lies before the first empty cell.
    """
    windows = _windows(cells)
    position = _homes(ascending, len(cells), bits)
    rows = windows[position]
    empty = _words(rows == 0)
    absent = _words(rows == ascending[:, None]) == 0
    position += _passed(empty)
    index = np.flatnonzero(absent & (empty == 0))
    while len(index):
        start = position[index]
        rows = windows[start]
        empty = _words(rows == 0)
        missing = _words(rows == ascending[index, None]) == 0
        absent[index] = missing
        position[index] = start + _passed(empty)
        index = index[missing & (empty == 0)]
    return absent, position


def _insert(cells: Keys, ascending: Keys, position: NDArray[np.intp]) -> bool:
    """Puts absent keys into empty cells from `position` on; False if room ran out, with some put already.

    Between a key's home and its cell none may stay empty, or a search would stop early. Neighbours that
    find the same empty cell take it and those after it, by rank; whoever finds those taken looks further.
    """
    windows = _windows(cells)
    last = len(cells) - 2 * _WINDOW  # the cells after it stay empty: every search ends
    while len(ascending):
        index = np.arange(len(position))
        first = np.empty(len(position), dtype=np.bool_)
        first[0] = True
        np.not_equal(position[1:], position[:-1], out=first[1:])
        position = position + (index - np.maximum.accumulate(index * first))
        if position.max() > last:
            return False
        free = cells[position] == 0
        cells[position[free]] = ascending[free]
        left = np.flatnonzero(cells[position] != ascending)
        position, ascending = position[left], ascending[left]
        position += _passed(_words(windows[position] == 0))
    return True


def _rebuilt(cells: Keys, ascending: Keys, held: int, bits: int) -> Keys | None:
    """New cells with the old keys and the ascending ones, sized by the growth steps for `held` keys.

    None if one size more than they need is not room enough: growing further would not part such keys.
    """
    old = cells[cells != 0]
    # After an insert that ran out of room some of the new keys lie in the old cells already.
    keys = np.concatenate((old, ascending))
    if len(keys) > held:
        keys = np.unique(keys)
    del old  # what growing takes for a moment counts too
    keys.sort(kind="stable")  # nearly in order already: quicker than the default sort
    size = len(cells) - _SLACK
    while held > _MAX_LOAD * size:
        size = int(size * _GROWTH)
    laid = _laid(keys, size, bits)
    return _laid(keys, int(size * _GROWTH), bits) if laid is None else laid


def _laid(keys: Keys, size: int, bits: int) -> Keys | None:
    """Cells that hold ascending keys, each at its home or just after the one before; None without room."""
    cells = _empty(size)
    # This is linear probing in closed form: position_i = i + max over j <= i of (home_j - j).
    position = _homes(keys, len(cells), bits)
    index = np.arange(len(keys), dtype=np.intp)
    position -= index
    np.maximum.accumulate(position, out=position)
    position += index
    if position[-1] > len(cells) - 2 * _WINDOW:
        return None
    cells[position] = keys
    return cells
