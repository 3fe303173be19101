"""The loops of the compiled id table, made into machine code by numba and kept on disk for the next process.

Everything here works on addresses and trusts its caller: `compiled_table` owns the memory. Arithmetic is of
unsigned 64-bit integers, modulo 2^64; numba makes floats of such an integer and a signed one, so that every
constant beside one is unsigned, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Word: TypeAlias = np.uint64

# Columns of the shards' table: where a shard lies, its size, how full it is and may be.
ADDRESS, BUCKETS, USED, LIMIT = 0, 1, 2, 3
SPARE: Final = 1 << 12
"""Keys that may wait while a shard is laid anew; see `spread`."""

_ZERO, _ONE, _SLOT, _LINE = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(64)
_SLOTS: Final = np.uint64(8)  # of a bucket
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
# So many keys are hashed, and their buckets asked for, before the first of them is looked at.
_BLOCK: Final = 64

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
_WORDS, _ROWS, _COUNTS = "uint64[::1]", "uint64[:,::1]", "uint8[::1]"
# Of directory, shards, secret and shift.
_PLACES: Final = f"uint32[::1], {_ROWS}, {_WORDS}, uint64"


def _compiled(signature: str) -> Callable[[_Loop], _Loop]:
    """Return a decorator that compiles a loop for this signature now, or loads what was compiled before.

    Machine code is kept beside this file; in the user's cache, where that cannot be written; or where
    NUMBA_CACHE_DIR says. Where that fails, whatever the reason, this process compiles for itself alone, which
    takes some seconds.
    """

    def decorate(loop: _Loop) -> _Loop:
        try:
            return cast(_Loop, numba.njit(signature, cache=True)(loop))
        except (
            Exception
        ):  # no place for a cache, a full disk, a damaged file; what is wrong in a loop remains
            return cast(_Loop, numba.njit(signature)(loop))

    return decorate


def _part(loop: _Loop) -> _Loop:
    """Compile a loop into those that call it."""
    return cast(_Loop, numba.njit(loop))


def _instruction(
    made: Callable[..., Any],
    result: Any,  # noqa: ANN401 - numba ships no annotations
    *arguments: Any,  # noqa: ANN401 - as above
) -> Callable[..., Any]:
    """Return a function for loops that `made` writes in the compiler's own language: (builder, values)."""

    def code(context: Any, builder: Any, _: Any, values: Any) -> Any:  # noqa: ANN401 - as above
        value = made(builder, values)
        return context.get_dummy_value() if result is types.void else value

    signature = result(*arguments)
    if len(arguments) == 1:
        made_of = intrinsic(lambda _, a: (signature, code))
    else:
        made_of = intrinsic(lambda _, a, b: (signature, code))
    return cast(Callable[..., Any], made_of)


def _pointer(builder: Any, address: Any, kind: Any) -> Any:  # noqa: ANN401 - as above
    return builder.inttoptr(address, kind.as_pointer())


def _load_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    word = ir.IntType(64)
    return builder.load(_pointer(builder, values[0], word), typ=word, align=8)


def _store_code(builder: Any, values: Any) -> None:  # noqa: ANN401 - as above
    builder.store(values[1], _pointer(builder, values[0], ir.IntType(64)), align=8)


def _matches_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    lanes, nothing = ir.VectorType(ir.IntType(64), 8), ir.Undefined
    bucket = builder.load(_pointer(builder, values[0], lanes), typ=lanes, align=8)
    first = builder.insert_element(ir.Constant(lanes, nothing), values[1], ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
    sought = builder.shuffle_vector(first, ir.Constant(lanes, nothing), zeros)
    bits = builder.bitcast(builder.icmp_unsigned("==", bucket, sought), ir.IntType(8))
    return builder.zext(bits, ir.IntType(64))


def _first_code(builder: Any, values: Any) -> Any:  # noqa: ANN401 - as above
    return builder.cttz(values[0], ir.IntType(1)(1))


def _ask_code(builder: Any, values: Any) -> None:  # noqa: ANN401 - as above
    byte, number, name = ir.IntType(8), ir.IntType(32), "llvm.prefetch.p0"
    kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), number, number, number])
    ask = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    # To write to it, to keep it near, data.
    builder.call(ask, [_pointer(builder, values[0], byte), number(1), number(3), number(1)])


# The integer at an address, and writing one there.
_load = _instruction(_load_code, types.uint64, types.uint64)
_store = _instruction(_store_code, types.void, types.uint64, types.uint64)
# Eight bits: which slots of the bucket at an address hold a key.
_matches = _instruction(_matches_code, types.uint64, types.uint64, types.uint64)
# The place of the lowest bit that is set; there must be one.
_first = _instruction(_first_code, types.uint64, types.uint64)
# Have the processor fetch the line at an address, and go on.
_ask_for = _instruction(_ask_code, types.void, types.uint64)


@_part
def _turned(word: Word, by: int) -> Word:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


@_part
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


@_part
def _home(word: Word, shards: Words, row: int | np.int64) -> Word:
    """Return the address of the home bucket of a hashed key: its low half is a fraction of the shard."""
    return np.uint64(shards[row, ADDRESS] + ((word & _LOW) * shards[row, BUCKETS] >> _HALF) * _LINE)


@_part
def _next(line: Word, shards: Words, row: int | np.int64) -> Word:
    """Return the address of the bucket after one; the first comes after the last."""
    line += _LINE
    is_end = line == shards[row, ADDRESS] + shards[row, BUCKETS] * _LINE
    return np.uint64(shards[row, ADDRESS]) if is_end else line


@_part
def _filled(line: Word) -> Word:
    """Return how many slots of a bucket are filled; they are its first ones."""
    empty = _matches(line, _ZERO)
    return np.uint64(_first(empty) if empty != _ZERO else _SLOTS)


@_part
def _put(key: Word, line: Word, shards: Words, row: int) -> None:
    """Put an absent key into the first empty slot from its home bucket on."""
    filled = _filled(line)
    while filled == _SLOTS:
        line = _next(line, shards, row)
        filled = _filled(line)
    _store(line + filled * _SLOT, key)
    shards[row, USED] += _ONE


@_compiled(
    f"int64({_WORDS}, int64, uint32[::1], {_ROWS}, {_WORDS}, uint64, {_WORDS}, bool_[::1], int64[::1])"
)
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
            _ask_for(lines[j])
        for j in range(n):
            key, row, line = keys[base + j], rows[j], lines[j]
            is_new = False
            while _matches(line, key) == _ZERO:
                filled = _filled(line)
                if filled != _SLOTS:
                    taken[state[0]] = key
                    state[0] += 1
                    _store(line + filled * _SLOT, key)
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


@_compiled(f"void({_WORDS}, {_PLACES}, bool_[::1])")
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
        while _matches(line, keys[i]) == _ZERO and _matches(line, _ZERO) == _ZERO:
            line = _next(line, shards, row)
        found[i] = _matches(line, keys[i]) != _ZERO


@_compiled(f"void(uint64, uint64, {_ROWS}, int64, {_WORDS})")
def copy(address: Word, slots: Word, shards: Words, row: int, secret: Words) -> None:
    """Put the keys in so many slots at an address into an empty shard that has room for them."""
    end = address + slots * _SLOT
    while address < end:
        key = _load(address)
        if key != _ZERO:
            _put(key, _home(sip(key, secret[0], secret[1]), shards, row), shards, row)
        address += _SLOT


@_compiled(f"int64({_ROWS}, int64, uint64, {_WORDS}, {_WORDS}, {_COUNTS})")
def spread(
    shards: Words, row: int, buckets: Word, secret: Words, spare: Words, counts: NDArray[np.uint8]
) -> int:
    """Lay a shard anew in so many buckets at the same address, with room for its keys.

    Its keys are pushed to the end of the larger room, in the order in which they lie, and then put into place
    from the first to the last. They lie nearly in the order of their homes, and these are further apart than
    keys that were pushed together: what is written stays behind what is read. The last keys, and those that
    had come round to the begin, wait in `spare`.

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
    source = address + shards[row, BUCKETS] * _LINE
    end = max(source, address + buckets * _LINE)
    sink = end
    shards[row, BUCKETS] = buckets
    while source > address:
        source -= _SLOT
        key = _load(source)
        if key != _ZERO:
            _store(source, _ZERO)
            if held < len(spare) // 2:
                spare[held] = key
                held += 1
            else:
                sink -= _SLOT
                _store(sink, key)
    keys, words = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    while sink < end:
        n = 0
        while n < _BLOCK and sink < end:
            keys[n] = _load(sink)
            _store(sink, _ZERO)
            n += 1
            sink += _SLOT
        for j in range(n):
            words[j] = sip(keys[j], secret[0], secret[1])
        for j in range(n):
            bucket = np.int64((words[j] & _LOW) * buckets >> _HALF)
            while bucket < len(counts) and counts[bucket] == 8:
                bucket += 1
            line = address + np.uint64(bucket) * _LINE
            if line + _LINE <= sink:
                # Counted, not looked for: the processor would have to wait for what it has just written.
                _store(line + np.uint64(counts[bucket]) * _SLOT, keys[j])
                counts[bucket] += 1
            elif held < len(spare):
                spare[held] = keys[j]
                held += 1
            else:
                for left in range(j, n):
                    sink -= _SLOT
                    _store(sink, keys[left])
                return held
    shards[row, USED] -= np.uint64(held)
    for i in range(held):
        _put(spare[i], _home(sip(spare[i], secret[0], secret[1]), shards, row), shards, row)
    return -1


@_compiled(f"int64({_ROWS}, int64, int64, uint64, {_WORDS}, {_WORDS}, {_COUNTS}, {_COUNTS})")
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

    Args:
        shards: As for `take`.
        row: The shard.
        other: The empty one.
        bit: The bit's place.
        secret: SipHash's key.
        spare: Room for SPARE keys.
        counts: A zero for each bucket that the shard will have.
        others: A zero for each bucket of the empty one.

    Returns:
        As `spread`; 0 where one of the shards has no room, and some keys were moved.
    """
    place, at = shards[row, ADDRESS], shards[other, ADDRESS]
    end = place + shards[row, BUCKETS] * _LINE
    while place < end:
        key = _load(place)
        if key != _ZERO:
            word = sip(key, secret[0], secret[1])
            if word >> bit & _ONE != _ZERO:
                if shards[other, USED] >= shards[other, LIMIT]:
                    return 0
                bucket = np.int64((word & _LOW) * shards[other, BUCKETS] >> _HALF)
                while others[bucket] == 8:
                    bucket = bucket + 1 if bucket + 1 < len(others) else np.int64(0)
                _store(at + np.uint64(bucket) * _LINE + np.uint64(others[bucket]) * _SLOT, key)
                others[bucket] += 1
                shards[other, USED] += _ONE
                shards[row, USED] -= _ONE
                _store(place, _ZERO)
        place += _SLOT
    if shards[row, USED] >= shards[other, LIMIT]:
        return 0
    return spread(shards, row, np.uint64(len(counts)), secret, spare, counts)


@_compiled(f"void({_WORDS}, {_PLACES})")
def give_back(keys: Words, directory: NDArray[np.uint32], shards: Words, secret: Words, shift: Word) -> None:
    """Take keys out again, all of which are there; arguments as for `take`.

    The last key of its bucket takes the place of a removed one. A bucket that was full may have sent keys on:
    the first one behind it that came past it returns, and leaves the next gap.
    """
    for i in range(len(keys)):
        word = sip(keys[i], secret[0], secret[1])
        row = np.int64(directory[word >> _HALF >> shift])
        line = _home(word, shards, row)
        while _matches(line, keys[i]) == _ZERO:
            line = _next(line, shards, row)
        shards[row, USED] -= _ONE
        size = shards[row, BUCKETS] * _LINE
        slot = line + _first(_matches(line, keys[i])) * _SLOT
        filled = _filled(line)
        last = line + (filled - _ONE) * _SLOT
        _store(slot, _load(last))
        _store(last, _ZERO)
        gap = line
        while filled == _SLOTS:
            line = _next(line, shards, row)
            filled = _filled(line)
            slot, end = line, line + filled * _SLOT
            while slot < end:
                key = _load(slot)
                home = _home(sip(key, secret[0], secret[1]), shards, row)
                # Distances go round, too: the key passed the gap if its home is no nearer.
                from_home = line - home if line >= home else line + size - home
                from_gap = line - gap if line >= gap else line + size - gap
                if from_home >= from_gap:
                    _store(gap + _LINE - _SLOT, key)
                    _store(slot, _load(end - _SLOT))
                    _store(end - _SLOT, _ZERO)
                    gap = line
                    break
                slot += _SLOT
