"""Exact deduplication: 64-bit keys in a NumPy hash table, one per partition and open round.

A key mixes both halves of the 16-byte id, because all ids of one partition agree in their second half modulo
the number of partitions. Read as two little-endian 64-bit integers a, b::

    key = (a * 0x9E3779B97F4A7C15 + b) mod 2^64          (0 is kept as 1: 0 marks an empty slot)

For every b this is a bijection of a, so keys of random ids are uniform whatever the partition: n accepted
reports lose n^2 / 2^65 to false duplicates in expectation (10^7 ids: 3 in a million).

Inside the table a key is multiplied by an odd number that the operating system draws per table: nobody can
choose ids that crowd one place. The drawn number decides where a key lies, never whether it was seen.

Linear probing over buckets of eight slots, 64 bytes, a cache line: a key lies in its home bucket or in the
next one with a free slot, and a bucket fills from its first slot on. One shard, each key drawn as the number
of its home bucket, a dot for an empty slot; the ninth key of bucket 1 found it full::

    multiplied keys   00..  ------------------------------------>  ..ff
    home bucket          0          1          2      ...   size - 1     _SLACK more
    slots           [000.....] [11111111] [122.....]  ...  [........]  [........] ...

A search ends at the first empty slot, since nothing is ever removed. The home bucket follows the order of
the multiplied keys: a sorted group of keys walks memory in one direction, and a table that grows is rebuilt,
new keys among the old, in a few vector operations.

A large table is 64 shards side by side, by the first six bits of the multiplied key. It grows at its end, and
the shards move apart, the last one first, so that there are never two copies::

    before   [shard 0 |slack][shard 1 |slack] ... [shard 63 |slack]
    after    [shard 0    |slack][shard 1    |slack] ...    ...      [shard 63    |slack]

Memory: 8 bytes a slot, 0.53 to 0.72 of them full, make 11.1 to 15.2 bytes per id, and half a byte more while
the table grows. The mapping of a large table is its own and returns to the system with it. A table below
65,536 slots (512 KB) is one shard.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

KEY_BYTES: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd

# Slots that are compared at a time: a cache line. Eight booleans then read as one 64-bit integer.
_BUCKET: Final = 8
# Slots moved at a time when a table grows: a 64th of it.
_SHARD_BITS: Final = 6
_SPLIT_BUCKETS: Final = 1 << 13
# At seven tenths full an absent key costs a bucket and a half on average; half full is 16 bytes a key.
_MAX_LOAD: Final = 0.72
_MIN_LOAD: Final = 0.53
_MIN_BUCKETS: Final = 8
# Buckets behind a shard's last: keys pushed past it go there instead of wrapping round, which keeps buckets
# in order; at this load one in 10^27 shards needs more.
_SLACK: Final = 16
# So many look-ups gather 256 KB, which stay in a second-level cache until they are compared.
_AT_ONCE: Final = 1 << 12

Keys = NDArray[np.uint64]


class Fresh(NamedTuple):
    """The never-seen ids of a group, as a set answers them.

    Attributes:
        mask: True where the id was never seen, neither before nor earlier in this group, shape (n,), bool;
            None: all of them.
        keys: The keys of the never-seen ones, in any order, uint64.
        trail: The positions that the search found, so that `add` need not search again; for the set alone.
    """

    mask: NDArray[np.bool_] | None
    keys: Keys
    trail: object = None


class IdSet(Protocol):
    """A set that remembers ids: `fresh` only looks, and `add` remembers."""

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Return which of the ids (16 bytes each, side by side, column after column) were never seen."""
        ...

    def known(self, ids: bytes) -> NDArray[np.bool_]:
        """Return which of the ids were added before, shape (n,), bool; repeats within `ids` do not matter."""
        ...

    def add(self, fresh: Fresh) -> None:
        """Remember the keys that `fresh` returned; no other key may have been added since."""
        ...

    def __len__(self) -> int:
        """Return the number of remembered keys."""
        ...


class KeySet(IdSet, Protocol):
    """A set of ids that a store can fill again with the keys that it kept."""

    def fresh_keys(self, keys: Keys) -> Fresh:
        """Return which keys, shape (n,), none of them 0, were never seen."""
        ...


_NONE: Final = np.empty(0, dtype=np.uint64)


def keys_of(ids: bytes) -> Keys:
    """Return the 64-bit keys of ids that lie side by side, shape (len(ids) / 16,), never 0."""
    halves = np.frombuffer(ids, dtype="<u8").reshape(-1, 2)
    keys: Keys = halves[:, 0] * _MIX + halves[:, 1]
    np.maximum(keys, np.uint64(1), out=keys)
    return keys


class _Trail(NamedTuple):
    table: IdTable
    held: int
    ascending: Keys
    position: NDArray[np.int64]


class IdTable:
    """An exact set of 64-bit keys: linear probing over buckets in the order of the multiplied keys."""

    __slots__ = ("_bits", "_held", "_memory", "_salt", "_size", "_slots")

    def __init__(self) -> None:
        self._salt = _drawn()
        self._bits, self._size, self._held = 0, _MIN_BUCKETS, 0
        self._memory: mmap.mmap | None = None
        self._slots: Keys = np.zeros(_BUCKET * (_MIN_BUCKETS + _SLACK), dtype=np.uint64)

    def __len__(self) -> int:
        return self._held

    @property
    def nbytes(self) -> int:
        """The bytes of all slots, empty ones included."""
        return self._slots.nbytes

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Return which ids were never seen, of equal ids the first; nothing changes."""
        return self.fresh_keys(keys_of(columns[0] if len(columns) == 1 else b"".join(columns)))

    def fresh_keys(self, keys: Keys) -> Fresh:
        """Return which keys, shape (n,), none of them 0, were never seen.

        New keys come in the table's order.
        """
        placed = keys * self._salt
        # Sorted, so that the search walks memory in one direction and equal keys come side by side.
        ascending = np.sort(placed)
        absent, position = _search(self._slots, ascending, _home_buckets(ascending, self._size, self._bits))
        absent[1:] &= ascending[1:] != ascending[:-1]
        if absent.all():
            return Fresh(None, self._keys(ascending), _Trail(self, self._held, ascending, position))
        # Only now does it matter where each key came from, and which of equal keys is the first: it counts.
        mask = np.empty(len(keys), dtype=np.bool_)
        mask[np.argsort(placed, kind="stable")] = absent
        ascending, position = ascending[absent], position[absent]
        return Fresh(mask, self._keys(ascending), _Trail(self, self._held, ascending, position))

    def known(self, ids: bytes) -> NDArray[np.bool_]:
        """Return which of the ids were added before, shape (n,), bool; repeats within `ids` do not matter."""
        placed = keys_of(ids) * self._salt
        order = np.argsort(placed)
        ascending = placed[order]
        absent, _ = _search(self._slots, ascending, _home_buckets(ascending, self._size, self._bits))
        found = np.empty(len(placed), dtype=np.bool_)
        found[order] = ~absent
        return found

    def add(self, fresh: Fresh) -> None:
        """Remember the keys that `fresh` returned.

        Raises:
            ValueError: If another table made the answer, or keys were added to this one since.
        """
        trail = fresh.trail
        if not isinstance(trail, _Trail) or trail.table is not self or trail.held != self._held:
            raise ValueError("fresh must be this table's answer about its present contents")
        held, ascending = self._held + len(trail.ascending), trail.ascending
        if held > _MAX_LOAD * (_BUCKET * self._size << self._bits):
            self._grow(int(held / (_MIN_LOAD * _BUCKET)) + 1, ascending)
        elif not _insert(self._slots, ascending, trail.position) or self._is_crowded():
            self._rebuild(np.unique(_merged(self._slots, ascending)), self._size << self._bits)
        self._held = held

    def _keys(self, ascending: Keys) -> Keys:
        """Return the keys before they were multiplied."""
        # An odd number has an inverse modulo 2^64: the multiplication loses nothing.
        return ascending * np.uint64(pow(int(self._salt), -1, 1 << 64))

    def _is_crowded(self) -> bool:
        """Return whether a shard has reached its last slots; those stay empty, to end every search."""
        ends = self._slots.reshape(1 << self._bits, -1)[:, -2 * _BUCKET :]
        return bool(ends.any())

    def _grow(self, buckets: int, ascending: Keys) -> None:
        """Rebuild every shard with `buckets` buckets within the same memory, new keys among the old.

        From the last to the first: each begins at or after its old place, so none is overwritten too soon.
        """
        if not self._bits:
            self._rebuild(_merged(self._slots, ascending), buckets)
            return
        size = -(-buckets >> self._bits)
        old, new = _BUCKET * (self._size + _SLACK), _BUCKET * (size + _SLACK)
        self._extend(new << self._bits)
        for shard, more in reversed(list(enumerate(_parts(ascending, self._bits)))):
            keys = _merged(self._slots[shard * old : (shard + 1) * old], more)
            if not _rebuild_shard(self._slots[shard * new : (shard + 1) * new], keys, self._bits):
                # Its old place is as it was; of the shards behind it there may be two copies.
                self._rebuild(np.unique(_merged(self._slots, ascending)), buckets)
                return
        self._size = size

    def _rebuild(self, ascending: Keys, buckets: int) -> None:
        """Put ascending keys into new buckets; where they crowd a shard, under another multiplier."""
        if buckets > _SPLIT_BUCKETS:
            self._bits = _SHARD_BITS
        self._size = -(-buckets >> self._bits)
        while True:
            self._allocate(_BUCKET * (self._size + _SLACK) << self._bits)
            shards = self._slots.reshape(1 << self._bits, -1)
            parts = _parts(ascending, self._bits)
            if all(
                _rebuild_shard(slots, part, self._bits) for slots, part in zip(shards, parts, strict=True)
            ):
                return
            keys = self._keys(ascending)
            self._salt = _drawn()
            ascending = np.sort(keys * self._salt)

    def _allocate(self, slots: int) -> None:
        """Take new memory in place of the old; a large table has a mapping of its own, freed as a whole."""
        if self._bits:
            self._memory = _mapped(slots)
            self._slots = np.frombuffer(self._memory, dtype=np.uint64)
        else:
            self._slots = np.zeros(slots, dtype=np.uint64)

    def _extend(self, slots: int) -> None:
        """Append empty slots, without a copy where the system can do that."""
        assert self._memory is not None  # noqa: S101 - there is more than one shard
        self._slots = _NONE  # memory with a view on it cannot be resized
        try:
            self._memory.resize(KEY_BYTES * slots)
        except (SystemError, BufferError):
            old, self._memory = self._memory, _mapped(slots)
            self._memory.write(old)
        self._slots = np.frombuffer(self._memory, dtype=np.uint64)


def _drawn() -> np.uint64:
    """Return a random odd multiplier that no sender can guess."""
    return np.uint64(int.from_bytes(os.urandom(KEY_BYTES), "little") | 1)


def _mapped(slots: int) -> mmap.mmap:
    """Return memory for so many slots, all empty, of the kind that can be extended."""
    memory = mmap.mmap(-1, KEY_BYTES * slots, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Every look-up is a random access: with large pages the processor finds them a tenth sooner.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _home_buckets(ascending: Keys, size: int, bits: int) -> NDArray[np.int64]:
    """Return the home bucket of each key, non-decreasing: shards of `size` buckets, each with slack."""
    # The first `bits` bits name the shard; the 32 bits after them are a fraction of it, which times `size`
    # and without its own 32 bits of fraction is the bucket. Multiplied so, buckets need not be a power of
    # two.
    homes = ascending << np.uint64(bits)
    homes >>= np.uint64(32)
    homes *= np.uint64(size)
    homes >>= np.uint64(32)
    if bits:
        homes += (ascending >> np.uint64(64 - bits)) * np.uint64(size + _SLACK)
    return homes.view(np.int64)


def _parts(ascending: Keys, bits: int) -> list[Keys]:
    """Return the keys of each shard."""
    starts = np.arange(1, 1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    return np.split(ascending, np.searchsorted(ascending, starts))


def _merged(slots: Keys, more: Keys) -> Keys:
    """Return the keys in the slots together with more keys, ascending."""
    keys = np.concatenate((np.compress(slots != 0, slots), more))
    keys.sort(kind="stable")  # two runs nearly in order already: quicker than the default sort
    return keys


def _words(flags: NDArray[np.bool_]) -> Keys:
    """Return the eight flags of each row as one integer, shape (n,)."""
    words: Keys = flags.view("<u8")[:, 0]
    return words


def _filled(rows: Keys) -> NDArray[np.uint8]:
    """Return the number of filled slots of each bucket; they are its first ones."""
    filled: NDArray[np.uint8] = np.bitwise_count(_words(rows != 0))
    return filled


def _search(
    slots: Keys, ascending: Keys, homes: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which keys are absent, and for those the first empty slot from their home bucket on.

    Nothing is ever removed, so a key lies before the first empty slot.
    """
    buckets = slots.reshape(-1, _BUCKET)
    absent = np.empty(len(ascending), dtype=np.bool_)
    filled = np.empty(len(ascending), dtype=np.uint8)
    for start in range(0, len(ascending), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        absent[part], filled[part] = _scan_buckets(buckets, homes[part], ascending[part])
    position = homes * _BUCKET + filled
    # A key that is absent from a full bucket may lie in the next one; few do, and their number falls each
    # time.
    index = np.flatnonzero(absent & (filled == _BUCKET))
    bucket, sought = homes.take(index), ascending.take(index)
    while len(index):
        bucket += 1
        missing, filled = _scan_buckets(buckets, bucket, sought)
        absent[index], position[index] = missing, bucket * _BUCKET + filled
        onward = np.flatnonzero(missing & (filled == _BUCKET))
        index, bucket, sought = index.take(onward), bucket.take(onward), sought.take(onward)
    return absent, position


def _scan_buckets(
    buckets: Keys, bucket: NDArray[np.int64], sought: Keys
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Return whether each key is absent from its bucket, and how many slots of that bucket are filled."""
    rows = buckets.take(bucket, axis=0)
    return _words(rows == sought[:, None]) == 0, _filled(rows)


def _insert(slots: Keys, ascending: Keys, position: NDArray[np.int64]) -> bool:
    """Put absent keys into empty slots from `position` on; False if slots ran out, with some put already.

    No slot between a key's home and its own may stay empty, or a search would stop early. Keys of this group
    that want the same slot are spread over the slots behind it; a key whose slot an older key has moves on.
    """
    buckets = slots.reshape(-1, _BUCKET)
    while len(ascending):
        position = _probe_positions(position)
        if position[-1] >= len(slots) - 2 * _BUCKET:
            return False
        # All are written at once. Older keys are put back; newcomers look on from their bucket's first free
        # slot.
        was = slots.take(position)
        slots[position] = ascending
        taken = np.flatnonzero(was)
        position, ascending = position.take(taken), ascending.take(taken)
        slots[position] = was.take(taken)
        bucket = position // _BUCKET
        position = bucket * _BUCKET + _filled(buckets.take(bucket, axis=0))
    return True


def _probe_positions(homes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the slots that linear probing gives to keys with these ascending homes in empty slots."""
    # Each key takes its home or the slot after the key before it: position_i = max(home_i, position_(i-1) +
    # 1), in closed form i + max over j <= i of (home_j - j).
    index = np.arange(len(homes))
    position = homes - index
    np.maximum.accumulate(position, out=position)
    position += index
    return position


def _rebuild_shard(slots: Keys, ascending: Keys, bits: int) -> bool:
    """Make a shard hold just these ascending keys; return False where they do not fit."""
    size = len(slots) // _BUCKET - _SLACK
    position = _probe_positions(_home_buckets(ascending << np.uint64(bits), size, 0) * _BUCKET)
    if len(position) and position[-1] >= len(slots) - 2 * _BUCKET:
        return False
    slots[:] = 0
    slots[position] = ascending
    return True
