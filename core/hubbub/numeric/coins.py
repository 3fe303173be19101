"""Independent coins of one exact rate, eight in a byte at a time.

A uniform real number, its bits revealed as they are needed, falls into one of 256 intervals whose lengths are
the probabilities of the 256 bytes. Sixteen bits settle all but some 0.4 % of bytes, by a table; 48 more
settle those, but for one in 2^50, which compares all bits of the intervals' ends. So every byte has exactly
its probability.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.picks import extended
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes

_UNSETTLED: Final = 256
"""The entry of the table for sixteen bits that do not settle the byte."""


class CoinBytes:
    """A law of bytes whose bits are independent and one with probability heads/2^bits.

    Attributes:
        heads: 1 to 2^bits - 1.
        bits: The exponent of the rate's denominator, 2^bits.
        ends: Where the interval of each byte ends, in units of 2^(-8 bits); the last ends at 2^(8 bits).
    """

    def __init__(self, heads: int, bits: int) -> None:
        """Work out the intervals and the table.

        Raises:
            ParameterError: If the rate is not within 0 to 1, or has less than 8 or more than 62 bits.
        """
        if not 8 <= bits <= 62 or not 1 <= heads < 1 << bits:
            raise ParameterError("a coin must have a rate within 0 to 1, of 8 to 62 bits")
        self.heads, self.bits = heads, bits
        tails = (1 << bits) - heads
        of_ones = [heads**ones * tails ** (8 - ones) for ones in range(9)]
        self.ends = list(accumulate(of_ones[byte.bit_count()] for byte in range(256)))
        spare = 8 * bits - 64
        # Ends but the last, rounded down: what is above one is past it, what is below is not.
        self._low = np.array([end >> spare for end in self.ends[:-1]], dtype=np.uint64)
        first = np.searchsorted(self._low, np.arange(2**16, dtype=np.uint64) << np.uint64(48), side="right")
        top = np.arange(2**16, dtype=np.uint64) << np.uint64(48) | np.uint64(2**48 - 1)
        last = np.searchsorted(self._low, top, side="right")
        starts = np.isin(np.arange(2**16, dtype=np.uint64), self._low >> np.uint64(48))
        self._table = np.where((first == last) & ~starts, first, _UNSETTLED).astype(np.uint16)
        self._table.flags.writeable = False  # shared by all draws

    def many(self, size: int, source: Source = SYSTEM) -> NDArray[np.uint8]:
        """Return independent bytes, shape (size,), uint8."""
        words = np.frombuffer(batch_bytes(2 * size, source), dtype="<u2")
        drawn = self._table.take(words)
        late = np.flatnonzero(drawn == _UNSETTLED)
        if late.size:
            whole = extended(words[late], source)
            drawn[late] = np.searchsorted(self._low, whole, side="right")
            for i in np.flatnonzero(np.isin(whole, self._low)).tolist():
                spare = 8 * self.bits - 64
                rest = int.from_bytes(source.token_bytes(spare // 8), "little")
                drawn[late[i]] = bisect_right(self.ends, int(whole[i]) << spare | rest)
        return drawn.astype(np.uint8)


@lru_cache(maxsize=64)
def coin_bytes(heads: int, bits: int) -> CoinBytes:
    """Return the bytes of a coin; the same object for the same coin."""
    return CoinBytes(heads, bits)
