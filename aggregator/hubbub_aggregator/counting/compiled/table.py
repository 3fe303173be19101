"""The id table as machine code: port, verdicts and stored keys of `dedup`, in less time.

It holds the same 64-bit keys as `dedup.IdTable`, in the same buckets of eight slots, a line of the cache. A
key is placed by SipHash-1-3, as Python places strings, under 16 bytes that the operating system draws for
each table: nobody can choose ids that crowd one place, and the hash decides nothing else.

One random access to memory per id remains to be paid, so looking up and putting in are one step: `fresh` puts
new keys in, `add` leaves them there; without `add` the next question takes them out again.

A small table is one array, copied when it grows. From 512 KB on it has room to grow in: 8 MB of addresses,
of which the system gives memory for what was written to. There its keys are laid anew in place. At 8 MB it
becomes two shards, by the next bit of the hash, and so on::

    directory   first bits of the hash   000    001    010    011    1..
    shards                                [ 0 ]  [ 2 ]  [     1     ]  [ 3 ] ...   each of at most 8 MB

So nothing lasts longer than one shard does, whatever the table holds: see docs/measurements.md.

Memory: 8 bytes a slot, 0.51 to 0.8 of them full: 10 to 15.6 bytes per id, growth included. A shard of 4 MB or
more has large pages of 2 MB; a table below 512 KB is there twice while it grows. A group of new ids makes
room for those that follow; where it turns to repeats, up to three times as much stays until more ids come.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.counting.compiled import loops
from hubbub_aggregator.counting.dedup import KEY_BYTES, Fresh, Keys, keys_of

_BUCKET: Final = 8
_BUCKET_BYTES: Final = _BUCKET * KEY_BYTES
_MAX_LOAD: Final = 0.8
_MIN_BUCKETS: Final = 8
_MB: Final = 1 << 20
# Sizes of a shard, in bytes: about half as much again at each step, from 4 MB on in whole large pages.
_RESERVED_FROM: Final = _MB // 2
_EXTENTS: Final = tuple(int(size * _MB) for size in (0.5, 0.75, 1.125, 1.75, 2.625, 4, 6, 8))
_LARGE_PAGE: Final = 2 * _MB
_LARGE_PAGES_FROM: Final = 4 * _MB
_MAX_BYTES: Final = _EXTENTS[-1]
# Either half of a full shard has a load of 0.53 in these.
_HALF_BYTES: Final = 6 * _MB
# Linux gathers small pages into large ones when told so; Python does not name it.
_MADV_COLLAPSE: Final = 25
# A group that begins with new keys has room for so many times as many, should they go on.
_AHEAD: Final = 2
# Keys taken out before that is written down.
_STEP: Final = 1 << 12


class _Layout(NamedTuple):
    """The place of every key.

    Attributes:
        directory: The shard of each value of a hashed key's first bits, shape (2^bits,), uint32.
        shards: Address, buckets, used slots and the most of them, shape (shards, 4), uint64.
        depths: How many first bits the keys of a shard have in common.
        memory: The slots of each shard.
        shift: 32 less the number of bits of the directory.
    """

    directory: NDArray[np.uint32]
    shards: Keys
    depths: list[int]
    memory: list[Keys]
    shift: np.uint64


class _Pending(NamedTuple):
    """The keys that were put in and not added yet: as many of `keys` as the first number of `state` says."""

    keys: Keys
    state: NDArray[np.int64]


class _Answer(NamedTuple):
    table: CompiledIdTable
    held: int


class CompiledIdTable:
    """An exact set of 64-bit keys with the port `dedup.IdSet`; no two threads may use it at once."""

    __slots__ = ("_held", "_layout", "_pending", "_secret")

    def __init__(self) -> None:
        self._secret: Keys = np.frombuffer(bytearray(os.urandom(16)), dtype=np.uint64)
        shard, memory = _shard(_MIN_BUCKETS * _BUCKET_BYTES)
        self._layout = _Layout(np.zeros(1, dtype=np.uint32), shard[None, :], [0], [memory], np.uint64(32))
        self._held = 0
        self._pending: _Pending | None = None

    def __len__(self) -> int:
        return self._held

    @property
    def nbytes(self) -> int:
        """The bytes of all slots, empty ones included."""
        return int(self._layout.shards[:, loops.BUCKETS].sum()) * _BUCKET_BYTES

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Return which ids were never seen, of equal ids the first; no later answer depends on it."""
        ids = np.frombuffer(columns[0] if len(columns) == 1 else b"".join(columns), dtype=np.uint64)
        keys = np.empty(len(ids) // 2, dtype=np.uint64)
        loops.mix(ids, keys)
        return self.fresh_keys(keys)

    def fresh_keys(self, keys: Keys) -> Fresh:
        """Return which keys, shape (n,), none of them 0, were never seen; new keys come in their order."""
        self._take_back()
        mask = np.empty(len(keys), dtype=np.bool_)
        taken, state = np.empty(len(keys), dtype=np.uint64), np.zeros(2, dtype=np.int64)
        # Known before the first key goes in, so that whatever interrupts this leaves none behind.
        self._pending = _Pending(taken, state)
        at = 0
        while at < len(keys):
            directory, shards, _, _, shift = self._layout
            at = loops.take(keys, at, directory, shards, self._secret, shift, taken, mask, state)
            if state[1] >= 0:
                # Of the next ones of this group as many are new as of those before them, it is supposed.
                following = min(len(keys) - at, _AHEAD * at)
                self._grow(int(state[1]), following * int(state[0]) // at)
        new = taken[: state[0]]
        return Fresh(None if len(new) == len(keys) else mask, new, _Answer(self, self._held))

    def known(self, ids: bytes) -> NDArray[np.bool_]:
        """Return which of the ids were added before, shape (n,), bool; repeats within `ids` do not matter."""
        self._take_back()
        keys = keys_of(ids)
        found = np.empty(len(keys), dtype=np.bool_)
        directory, shards, _, _, shift = self._layout
        loops.find(keys, directory, shards, self._secret, shift, found)
        return found

    def add(self, fresh: Fresh) -> None:
        """Remember the keys that `fresh` returned.

        Raises:
            ValueError: If another table made the answer, or keys were added to this one since.
        """
        answer = fresh.trail
        if not isinstance(answer, _Answer) or answer.table is not self or answer.held != self._held:
            raise ValueError("fresh must be this table's answer about its present contents")
        if self._pending is None or fresh.keys.base is not self._pending.keys:
            self.fresh_keys(fresh.keys)  # something else was asked meanwhile
        self._pending = None
        self._held += len(fresh.keys)

    def _take_back(self) -> None:
        """Take out the keys that were put in and not added."""
        if self._pending is None:
            return
        keys, state = self._pending
        while state[0]:
            some = keys[max(0, state[0] - _STEP) : state[0]]
            directory, shards, _, _, shift = self._layout
            loops.give_back(some, directory, shards, self._secret, shift)
            state[0] -= len(some)
        self._pending = None

    def _grow(self, row: int, coming: int) -> None:
        """Give a shard more room, or make two of it.

        Args:
            row: The shard.
            coming: How many more keys of this group are expected to be new: it grows once for all.
        """
        layout = self._layout
        address, buckets, used, _ = layout.shards[row].tolist()
        size = buckets * _BUCKET_BYTES
        is_split = size == _MAX_BYTES
        more = _HALF_BYTES if is_split else _larger(size, used + (coming >> layout.depths[row]))
        if size < _RESERVED_FROM:
            shard, memory = _shard(more)
            loops.copy(np.uint64(address), np.uint64(_BUCKET * buckets), shard[None, :], 0, self._secret)
            self._layout = layout._replace(shards=shard[None, :], memory=[memory])
            return
        if is_split:
            layout = _with_twin(layout, row)
        else:
            _use_large_pages(layout.memory[row], address, more)
        shards, spare = layout.shards, np.empty(loops.SPARE, dtype=np.uint64)
        counts, others = np.zeros((2, more // _BUCKET_BYTES), dtype=np.uint8)
        # Whatever interrupts this leaves no table behind that has lost keys, but none at all.
        del self._layout
        if is_split:
            bit, other = np.uint64(64 - layout.depths[row]), len(layout.depths) - 1
            left = loops.split(shards, row, other, bit, self._secret, spare, counts, others)
        else:
            left = loops.spread(shards, row, np.uint64(len(counts)), self._secret, spare, counts)
        shards[row, loops.LIMIT] = _limit(more)
        if left >= 0:
            layout = self._rebuilt(spare[:left], layout.memory)
        elif is_split:
            _forget(layout.memory[row], address + more, size - more)
        self._layout = layout

    def _rebuilt(self, spare: Keys, memory: Sequence[Keys]) -> _Layout:
        """Lay the keys in `memory`, and some more, anew under another secret."""
        other = CompiledIdTable()
        other.fresh_keys(np.concatenate([spare, *(keys[keys != 0] for keys in memory)]))
        self._secret = other._secret
        return other._layout


def _with_twin(old: _Layout, row: int) -> _Layout:
    """Return a layout in which a new, empty shard has half of another one's part of the directory."""
    number, depth = len(old.depths), old.depths[row]
    shard, memory = _shard(_HALF_BYTES)
    directory, shift = old.directory.copy(), old.shift
    if 1 << depth == len(directory):
        directory, shift = np.repeat(directory, 2), shift - np.uint64(1)
    places = np.flatnonzero(directory == row)
    directory[places[len(places) // 2 :]] = number
    depths = [*old.depths, depth + 1]
    depths[row] = depth + 1
    return _Layout(directory, np.vstack((old.shards, shard)), depths, [*old.memory, memory], shift)


def _larger(size: int, keys: int) -> int:
    """Return the bytes that a shard grows to: the next size, or one with room for so many keys."""
    while size < _RESERVED_FROM:
        size = 3 * (size // _BUCKET_BYTES) // 2 * _BUCKET_BYTES
        if size > 3 * _RESERVED_FROM // 4:  # a step to 512 KB would move all keys for little
            break
        if _limit(size) >= keys:
            return size
    sizes = [extent for extent in _EXTENTS if extent > size]
    return next((extent for extent in sizes if _limit(extent) >= keys), sizes[-1])


def _limit(size: int) -> int:
    """Return the most slots that may be used in so many bytes."""
    return int(_MAX_LOAD * size / KEY_BYTES)


def _shard(size: int) -> tuple[Keys, Keys]:
    """Return the row of an empty shard of so many bytes, and its memory: from 512 KB on with room to grow."""
    if size < _RESERVED_FROM:
        memory, unit = np.zeros((size + _BUCKET_BYTES) // KEY_BYTES, dtype=np.uint64), _BUCKET_BYTES
    else:
        mapped = mmap.mmap(-1, _MAX_BYTES + _LARGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory, unit = np.frombuffer(mapped, dtype=np.uint64), _LARGE_PAGE
    address = -(-memory.__array_interface__["data"][0] // unit) * unit
    _use_large_pages(memory, address, size)
    return np.array((address, size // _BUCKET_BYTES, 0, _limit(size)), dtype=np.uint64), memory


def _use_large_pages(memory: Keys, address: int, size: int) -> None:
    """Have the system use large pages for a shard that is large enough: they are found sooner."""
    if size < _LARGE_PAGES_FROM or not hasattr(mmap, "MADV_HUGEPAGE"):
        return
    mapped = _mapping(memory)
    mapped.madvise(mmap.MADV_HUGEPAGE)
    with suppress(OSError):  # an older kernel, or no large page left: then small ones do
        mapped.madvise(_MADV_COLLAPSE, address - memory.__array_interface__["data"][0], size)


def _mapping(memory: Keys) -> mmap.mmap:
    """Return the mapping that a large shard's slots lie in."""
    assert isinstance(memory.base, memoryview)  # noqa: S101 - as `_shard` made it
    mapped = memory.base.obj
    assert isinstance(mapped, mmap.mmap)  # noqa: S101 - as above
    return mapped


def _forget(memory: Keys, address: int, size: int) -> None:
    """Give memory back to the system; it is empty where it is written to again."""
    if hasattr(mmap, "MADV_DONTNEED"):
        begin = address - memory.__array_interface__["data"][0]
        _mapping(memory).madvise(mmap.MADV_DONTNEED, begin, size)
