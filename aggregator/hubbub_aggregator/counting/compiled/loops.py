"""The loops of the compiled id table, made into machine code by numba and kept on disk for the next process.

Everything here works on addresses and trusts its caller: `table` owns the memory. Arithmetic is of
unsigned 64-bit integers, modulo 2^64; numba makes floats of such an integer and a signed one, so that every
constant beside one is unsigned, too.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.counting.compiled.instructions import (
    OUT_OF_BYTES,
    ask_for,
    compiled,
    first,
    load,
    matches,
    part,
    store,
)

Words: TypeAlias = NDArray[np.uint64]
Word: TypeAlias = np.uint64

# Columns of the shards' table: where a shard lies, its size, how full it is and may be.
ADDRESS, BUCKETS, USED, LIMIT = 0, 1, 2, 3
SPARE: Final = 1 << 12
"""Keys that may wait while a shard is laid anew; see `spread`."""

_ZERO, _ONE, _SLOT, _LINE = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(64)
_SLOTS: Final = np.uint64(8)  # of a bucket
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)  # as in `dedup`
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
# So many keys are hashed, and their buckets asked for, before the first of them is looked at.
_BLOCK: Final = 64

_WORDS, _ROWS, _COUNTS = "uint64[::1]", "uint64[:,::1]", "uint8[::1]"
# Of directory, shards, secret and shift.
_PLACES: Final = f"uint32[::1], {_ROWS}, {_WORDS}, uint64"


@part
def _turned(word: Word, by: int) -> Word:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@part
def sip(key: Word, secret0: Word, secret1: Word) -> Word:
    """Return SipHash-1-3 of the eight bytes of a key (Aumasson and Bernstein 2012)."""
    v0 = secret0 ^ np.uint64(0x736F6D6570736575)
    v1 = secret1 ^ np.uint64(0x646F72616E646F6D)
    v2 = secret0 ^ np.uint64(0x6C7967656E657261)
    v3 = secret1 ^ np.uint64(0x7465646279746573) ^ key
    for step in range(5):
        v0 += v1
        v1 = _turned(v1, 13) ^ v0
        v0 = _turned(v0, 32)
        v2 += v3
        v3 = _turned(v3, 16) ^ v2
        v0 += v3
        v3 = _turned(v3, 21) ^ v0
        v2 += v1
        v1 = _turned(v1, 17) ^ v2
        v2 = _turned(v2, 32)
        if step == 0:  # the key is in; its length comes next
            v0 ^= key
            v3 ^= np.uint64(8 << 56)
        elif step == 1:
            v0 ^= np.uint64(8 << 56)
            v2 ^= np.uint64(0xFF)
    return v0 ^ v1 ^ v2 ^ v3


@part
def _home(word: Word, shards: Words, row: int | np.int64) -> Word:
    """Return the address of the home bucket of a hashed key: its low half is a fraction of the shard."""
    return np.uint64(shards[row, ADDRESS] + ((word & _LOW) * shards[row, BUCKETS] >> _HALF) * _LINE)


@part
def _next(line: Word, shards: Words, row: int | np.int64) -> Word:
    """Return the address of the bucket after one; the first comes after the last."""
    line += _LINE
    is_end = line == shards[row, ADDRESS] + shards[row, BUCKETS] * _LINE
    return np.uint64(shards[row, ADDRESS]) if is_end else line


@part
def _filled(line: Word) -> Word:
    """Return how many slots of a bucket are filled; they are its first ones."""
    empty = matches(line, _ZERO)
    return np.uint64(first(empty) if empty != _ZERO else _SLOTS)


@part
def _put(key: Word, line: Word, shards: Words, row: int) -> None:
    """Put an absent key into the first empty slot from its home bucket on."""
    filled = _filled(line)
    while filled == _SLOTS:
        line = _next(line, shards, row)
        filled = _filled(line)
    store(line + filled * _SLOT, key)
    shards[row, USED] += _ONE


@compiled(OUT_OF_BYTES)
def mix(ids: Words, keys: Words) -> None:
    """Write the keys of ids that lie side by side, two words each, as `dedup.keys_of` makes them."""
    for i in range(len(keys)):
        keys[i] = max(ids[2 * i] * _MIX + ids[2 * i + 1], _ONE)


@compiled(f"int64({_WORDS}, int64, uint32[::1], {_ROWS}, {_WORDS}, uint64, {_WORDS}, bool_[::1], int64[::1])")
def take(
    keys: Words,
    start: int,
    directory: NDArray[np.uint32],
    shards: Words,
    secret: Words,
    shift: Word,
    taken: Words,
    fresh: NDArray[np.bool_],
    state: NDArray[np.int64],
) -> int:
    """Put the keys from `start` on into their shards, but for those that are there.

    Args:
        keys: The keys, none of them 0.
        start: The first of them to take.
        directory: The shard of each value of a hashed key's first bits.
        shards: Address, buckets, used slots and the most that may be used, by shard.
        secret: SipHash's key.
        shift: 32 less the number of those bits.
        taken: Room for the keys that were not there, in their order.
        fresh: Room for whether each key was not there.
        state: How many keys were put into `taken`; the shard that has too many now, or -1.

    Returns:
        The first key that is left: all are taken, or the one before it was one too many for its shard.
    """
    words, lines = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    rows = np.empty(_BLOCK, np.int64)
    state[1] = -1
    for base in range(start, len(keys), _BLOCK):
        n = min(_BLOCK, len(keys) - base)
        for j in range(n):
            words[j] = sip(keys[base + j], secret[0], secret[1])
        for j in range(n):
            rows[j] = directory[words[j] >> _HALF >> shift]
            lines[j] = _home(words[j], shards, rows[j])
            ask_for(lines[j])
        for j in range(n):
            key, row, line = keys[base + j], rows[j], lines[j]
            is_new = False
            while matches(line, key) == _ZERO:
                filled = _filled(line)
                if filled != _SLOTS:
                    taken[state[0]] = key
                    state[0] += 1
                    store(line + filled * _SLOT, key)
                    is_new = True
                    break
                line = _next(line, shards, row)
            fresh[base + j] = is_new
            if is_new:
                shards[row, USED] += _ONE
                if shards[row, USED] > shards[row, LIMIT]:
                    state[1] = row
                    return base + j + 1
    return len(keys)


@compiled(f"void({_WORDS}, {_PLACES}, bool_[::1])")
def find(
    keys: Words,
    directory: NDArray[np.uint32],
    shards: Words,
    secret: Words,
    shift: Word,
    found: NDArray[np.bool_],
) -> None:
    """Say of each key whether it is there; arguments as for `take`."""
    for i in range(len(keys)):
        word = sip(keys[i], secret[0], secret[1])
        row = np.int64(directory[word >> _HALF >> shift])
        line = _home(word, shards, row)
        while matches(line, keys[i]) == _ZERO and matches(line, _ZERO) == _ZERO:
            line = _next(line, shards, row)
        found[i] = matches(line, keys[i]) != _ZERO


@compiled(f"void(uint64, uint64, {_ROWS}, int64, {_WORDS})")
def copy(address: Word, slots: Word, shards: Words, row: int, secret: Words) -> None:
    """Put the keys in so many slots at an address into an empty shard that has room for them."""
    end = address + slots * _SLOT
    while address < end:
        key = load(address)
        if key != _ZERO:
            _put(key, _home(sip(key, secret[0], secret[1]), shards, row), shards, row)
        address += _SLOT


@part
def _emptied(line: Word, keys: Words, n: int | np.int64) -> int | np.int64:
    """Move the keys of a bucket to `keys` from `n` on, where there is room for eight; return their end."""
    filled = _filled(line)
    for slot in range(8):
        # The empty ones, too, and the next bucket's come over them: quicker than to ask of each slot.
        at = line + np.uint64(slot) * _SLOT
        keys[n + slot] = load(at)
        store(at, _ZERO)
    return n + np.int64(filled)


@part
def _laid(
    key: Word, bucket: int | np.int64, address: Word, end: int | np.int64, counts: NDArray[np.uint8]
) -> bool:
    """Put a key into the first bucket from its home on that is not full; False where `end` comes first."""
    while bucket < end and counts[bucket] == 8:
        bucket += 1
    if bucket >= end:
        return False
    store(address + np.uint64(bucket) * _LINE + np.uint64(counts[bucket]) * _SLOT, key)
    counts[bucket] += 1
    return True


@part
def _settle(spare: Words, held: int, shards: Words, row: int, secret: Words) -> None:
    """Put the keys that had to wait into a shard that has its new size."""
    shards[row, USED] -= np.uint64(held)
    for i in range(held):
        _put(spare[i], _home(sip(spare[i], secret[0], secret[1]), shards, row), shards, row)


@compiled(f"int64({_ROWS}, int64, uint64, {_WORDS}, {_WORDS}, {_COUNTS})")
def spread(
    shards: Words, row: int, buckets: Word, secret: Words, spare: Words, counts: NDArray[np.uint8]
) -> int:
    """Lay a shard anew in so many more buckets at the same address, with room for its keys.

    Its buckets are emptied from the last to the first, and each key goes to its new home, which lies behind
    what is still to be read. The few of which that is not so wait in `spare`: those of the first buckets that
    were pushed on, and those for which there is no room before the end.

    Args:
        shards: As for `take`.
        row: The shard.
        buckets: How many it will have.
        secret: SipHash's key.
        spare: Room for SPARE keys.
        counts: A zero for each of those buckets.

    Returns:
        -1, or, where too many keys had to wait, the number of them: the others lie in no order then.
    """
    address, held = shards[row, ADDRESS], 0
    left = np.int64(shards[row, BUCKETS])
    keys, words = np.empty(_BLOCK + 8, np.uint64), np.empty(_BLOCK + 8, np.uint64)
    while left > 0:
        n: int | np.int64 = 0
        while n < _BLOCK and left > 0:
            left -= 1
            n = _emptied(address + np.uint64(left) * _LINE, keys, n)
        for j in range(n):
            words[j] = sip(keys[j], secret[0], secret[1])
        for j in range(n):
            bucket = np.int64((words[j] & _LOW) * buckets >> _HALF)
            filled = counts[np.uint64(bucket)]
            if bucket >= left and filled < 8:
                # Counted, not looked into: the processor would have to wait for what it has just written.
                store(address + np.uint64(bucket) * _LINE + np.uint64(filled) * _SLOT, keys[j])
                counts[np.uint64(bucket)] = filled + 1
            elif bucket < left or not _laid(keys[j], bucket, address, len(counts), counts):
                spare[held] = keys[j]
                held += 1
        if held > len(spare) - len(keys):
            return held
    shards[row, BUCKETS] = buckets
    _settle(spare, held, shards, row, secret)
    return -1


@compiled(f"int64({_ROWS}, int64, int64, uint64, {_WORDS}, {_WORDS}, {_COUNTS}, {_COUNTS})")
def split(
    shards: Words,
    row: int,
    other: int,
    bit: Word,
    secret: Words,
    spare: Words,
    counts: NDArray[np.uint8],
    others: NDArray[np.uint8],
) -> int:
    """Move keys that have a bit of their hash set into an empty shard, and lay those that stay anew.

    Buckets are emptied from the first to the last: there will be fewer, so that each key's new home lies
    before what is still to be read. The others wait in `spare`, as with `spread`.

    Args:
        shards: As for `take`.
        row: The shard.
        other: The empty one.
        bit: The bit's place.
        secret: SipHash's key.
        spare: As for `spread`.
        counts: A zero for each bucket that the shard will have.
        others: A zero for each bucket of the empty one.

    Returns:
        As `spread`; the number is 0 or more also where one of the shards has no room.
    """
    address, at, held, read = shards[row, ADDRESS], shards[other, ADDRESS], 0, 0
    old, most = np.int64(shards[row, BUCKETS]), shards[other, LIMIT]
    keys, words = np.empty(_BLOCK + 8, np.uint64), np.empty(_BLOCK + 8, np.uint64)
    while read < old:
        n: int | np.int64 = 0
        while n < _BLOCK and read < old:
            n = _emptied(address + np.uint64(read) * _LINE, keys, n)
            read += 1
        end = min(read, len(counts))
        for j in range(n):
            words[j] = sip(keys[j], secret[0], secret[1])
        for j in range(n):
            fraction = words[j] & _LOW
            if words[j] >> bit & _ONE == _ZERO:
                bucket = np.int64(fraction * np.uint64(len(counts)) >> _HALF)
                filled = counts[np.uint64(bucket)]
                if bucket < end and filled < 8:
                    store(address + np.uint64(bucket) * _LINE + np.uint64(filled) * _SLOT, keys[j])
                    counts[np.uint64(bucket)] = filled + 1
                elif not _laid(keys[j], bucket, address, end, counts):
                    spare[held] = keys[j]
                    held += 1
            elif shards[other, USED] < most:
                bucket = np.int64(fraction * shards[other, BUCKETS] >> _HALF)
                filled = others[np.uint64(bucket)]
                if filled < 8:
                    store(at + np.uint64(bucket) * _LINE + np.uint64(filled) * _SLOT, keys[j])
                    others[np.uint64(bucket)] = filled + 1
                elif not _laid(keys[j], bucket, at, len(others), others):
                    _laid(keys[j], 0, at, len(others), others)
                shards[other, USED] += _ONE
                shards[row, USED] -= _ONE
            else:
                spare[held] = keys[j]
                held += 1
        if held > len(spare) - len(keys) or shards[other, USED] >= most:
            return held
    if shards[row, USED] >= most:
        return held
    shards[row, BUCKETS] = np.uint64(len(counts))
    _settle(spare, held, shards, row, secret)
    return -1


@compiled(f"void({_WORDS}, {_PLACES})")
def give_back(keys: Words, directory: NDArray[np.uint32], shards: Words, secret: Words, shift: Word) -> None:
    """Take keys out again, all of which are there; arguments as for `take`.

    The last key of its bucket takes the place of a removed one. A bucket that was full may have sent keys on:
    the first one behind it that came past it returns, and leaves the next gap.
    """
    for i in range(len(keys)):
        word = sip(keys[i], secret[0], secret[1])
        row = np.int64(directory[word >> _HALF >> shift])
        line = _home(word, shards, row)
        while matches(line, keys[i]) == _ZERO:
            line = _next(line, shards, row)
        shards[row, USED] -= _ONE
        size = shards[row, BUCKETS] * _LINE
        slot = line + first(matches(line, keys[i])) * _SLOT
        filled = _filled(line)
        last = line + (filled - _ONE) * _SLOT
        store(slot, load(last))
        store(last, _ZERO)
        gap = line
        while filled == _SLOTS:
            line = _next(line, shards, row)
            filled = _filled(line)
            slot, end = line, line + filled * _SLOT
            while slot < end:
                key = load(slot)
                home = _home(sip(key, secret[0], secret[1]), shards, row)
                # Distances go round, too: the key passed the gap if its home is no nearer.
                from_home = line - home if line >= home else line + size - home
                from_gap = line - gap if line >= gap else line + size - gap
                if from_home >= from_gap:
                    store(gap + _LINE - _SLOT, key)
                    store(slot, load(end - _SLOT))
                    store(end - _SLOT, _ZERO)
                    gap = line
                    break
                slot += _SLOT
