"""Uniform integers that are exactly uniform, one and many at a time.

An integer below `total` is drawn by rejection: take a little-endian word of 32 bits (of 64 above 2^32), drop
it when it falls beyond the last whole multiple of `total`, and reduce the first that is kept. No float takes
part. Many draws are, by definition, what as many single draws would have been from the same bytes.

Real reports draw from the operating system: one at a time its own bytes, and in batches the keystream of
ChaCha20 with keys that are fresh from it, each for one stretch of one call (`batch_bytes`). Anything else
with a `token_bytes` can stand in for it in simulations and tests, see `hubbub.testing`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

Words = NDArray[np.unsignedinteger[Any]]
"""Draws below a total: 32-bit words when the total is at most 2^32, 64-bit ones above."""

MAX_TOTAL: Final = 2**63
"""Totals lie below it: sums and comparisons of weights then fit a signed 64-bit integer everywhere."""

EXPANDED: Final = 2**12
"""Bytes from which a key is expanded: below, making the cipher takes longer than the system's generator."""

_STRETCH: Final = 2**16
"""Bytes of one key at most: they stay in a processor's cache, and making a key is a small part of them."""

_KEY_BYTES: Final = 32

_WORDS: Final = {4: struct.Struct("<I"), 8: struct.Struct("<Q")}
"""Readers of one word, by its bytes: they refuse a source that gives too few."""


class Source(Protocol):
    """A source of random bytes."""

    def token_bytes(self, n: int, /) -> bytes:
        """Return the next n bytes of the stream."""
        ...


class SystemSource:
    """The operating system's cryptographically secure generator.

    Each draw takes the bytes that it needs, and none is kept: whatever copies the memory of the process - a
    fork, the snapshot of a machine - finds nothing that will be drawn again.
    """

    def token_bytes(self, n: int, /) -> bytes:
        """Return n fresh bytes."""
        return os.urandom(n)


SYSTEM: Final = SystemSource()
"""The source of every real report."""


def batch_bytes(n: int, source: Source = SYSTEM) -> bytes | memoryview:
    """Return n bytes for the draws of many reports.

    From the system's source, and where there are at least `EXPANDED` of them, they are ChaCha20 keystream of
    keys of 32 bytes that the operating system gives for this call; no key makes more than 64 KiB. They are as
    good as the system's own if ChaCha20 is a pseudorandom function, which is what Linux builds its generator
    on. Neither key nor keystream outlives the call, so that nothing is there for a fork, or a machine set
    back, to draw again. Where the cipher is not to be had they are the operating system's.

    Raises:
        OSError: If the operating system gives no bytes, or too few for a key.
    """
    if source is not SYSTEM or n < EXPANDED or (keystream := _keystream()) is None:
        return source.token_bytes(n)
    found = memoryview(bytearray(n))
    for start in range(0, n, _STRETCH):
        piece = found[start : start + _STRETCH]
        key = os.urandom(_KEY_BYTES)
        if len(key) != _KEY_BYTES:
            raise OSError(f"the system's generator must give {_KEY_BYTES} bytes, got {len(key)}")
        # A keystream is what zeros are encrypted to: here in place.
        if keystream(key).update_into(piece, piece) != len(piece):
            raise OSError("the cipher must give as many bytes as it is asked for, got another number")
    return found.toreadonly()


@lru_cache(maxsize=1)
def _keystream() -> Callable[[bytes], CipherContext] | None:
    """Return what makes a ChaCha20 keystream of a key, None where the cipher is missing or not allowed."""
    try:  # loaded by the first large batch: a device that draws one report at a time has no use for it
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms  # noqa: PLC0415
    except ImportError:
        return None

    def of(key: bytes) -> CipherContext:
        return Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()

    try:
        of(bytes(_KEY_BYTES))
    except UnsupportedAlgorithm:
        return None
    return of


class UniformInteger:
    """A uniform law on the integers 0 to total - 1, prepared once for many draws.

    Attributes:
        total: How many integers, 1 <= total < 2^63.
        word_bytes: Bytes taken per try, 4 or 8.
        limit: Words from here on are dropped: the largest multiple of total that a word can reach.
    """

    __slots__ = ("dtype", "limit", "total", "word_bytes")

    def __init__(self, total: int) -> None:
        """Work out the word size and the limit.

        Raises:
            ParameterError: If total is outside 1 to 2^63 - 1.
        """
        if not 1 <= total < MAX_TOTAL:
            raise ParameterError(f"the total of a uniform draw must be within 1 to 2^63 - 1, got {total}")
        self.total = int(total)
        self.word_bytes = 4 if self.total <= 2**32 else 8
        period = 1 << (8 * self.word_bytes)
        self.limit = period - period % self.total
        self.dtype = np.dtype(np.uint32 if self.word_bytes == 4 else np.uint64)

    def one(self, source: Source = SYSTEM) -> int:
        """Return one integer in 0 to total - 1."""
        read = _WORDS[self.word_bytes].unpack
        while True:
            (word,) = read(source.token_bytes(self.word_bytes))
            if word < self.limit:
                return int(word % self.total)

    def many(self, size: int, source: Source = SYSTEM) -> Words:
        """Return `size` independent integers in 0 to total - 1.

        Args:
            size: How many, >= 0.
            source: Where the bytes come from.

        Returns:
            Shape (size,), uint32 when total <= 2^32, else uint64; read-only.
        """
        words = self._words(size, source)
        if self.limit < 1 << (8 * self.word_bytes) and size and int(words.max()) >= self.limit:
            kept = [words[words < self.limit]]
            missing = size - kept[0].size
            while missing:
                more = self._words(missing, source)
                kept.append(more[more < self.limit])
                missing -= kept[-1].size
            words = np.concatenate(kept)
        if self.limit > self.total:
            # A division by a constant is vectorised in NumPy, a remainder is not.
            words = words - words // self.dtype.type(self.total) * self.dtype.type(self.total)
        return words

    def _words(self, size: int, source: Source) -> Words:
        words: Words = np.frombuffer(
            batch_bytes(size * self.word_bytes, source), dtype=self.dtype.newbyteorder("<"), count=size
        )
        return words


@lru_cache(maxsize=64)
def _uniform(total: int) -> UniformInteger:
    return UniformInteger(total)


def below(total: int, source: Source = SYSTEM) -> int:
    """Return an exactly uniform integer in 0 to total - 1.

    Args:
        total: How many integers, 1 <= total < 2^63.
        source: Where the bytes come from.

    Raises:
        ParameterError: If total is out of range.

    >>> below(1)
    0
    """
    return _uniform(total).one(source)


def below_many(total: int, size: int, source: Source = SYSTEM) -> Words:
    """Return `size` independent, exactly uniform integers in 0 to total - 1.

    Args:
        total: How many integers, 1 <= total < 2^63.
        size: How many draws, >= 0.
        source: Where the bytes come from.

    Returns:
        Shape (size,), uint32 when total <= 2^32, else uint64.

    Raises:
        ParameterError: If total is out of range or size is negative.
    """
    if size < 0:
        raise ParameterError(f"the number of draws must not be negative, got {size}")
    return _uniform(total).many(size, source)


def bernoulli(numerator: int, denominator: int, source: Source = SYSTEM) -> bool:
    """Return True with probability exactly numerator/denominator.

    The integers may be of any size: beyond 63 bits the draw takes as many bytes as the denominator has.

    Args:
        numerator: 0 <= numerator <= denominator.
        denominator: >= 1.
        source: Where the bytes come from.

    Raises:
        ParameterError: If the two do not make a probability. The message names neither: a probability
            may be a rounding of a person's value.

    >>> bernoulli(0, 3), bernoulli(3, 3)
    (False, True)
    """
    if not 0 <= numerator <= denominator or denominator < 1:
        raise ParameterError("a probability must be within 0 to 1 with a denominator of at least 1")
    if denominator < MAX_TOTAL:
        return below(denominator, source) < numerator
    size = (denominator.bit_length() + 7) // 8
    excess = 8 * size - denominator.bit_length()
    while True:
        draw = int.from_bytes(source.token_bytes(size), "little") >> excess
        if draw < denominator:
            return draw < numerator
