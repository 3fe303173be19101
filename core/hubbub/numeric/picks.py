"""One of several outcomes by integer weights, exactly and many together, and one of a list, from short words.

*By weights.* A uniform real number, its bits revealed as they are needed, falls into one of the intervals
whose lengths are the weights' shares. Sixteen bits settle nearly all, by a table; 64 settle the rest, but for
those that meet an end rounded down to 64 bits, one in 2^64 for each end: they compare exact fractions.

*Of a list.* A word w of b bits picks entry w C div 2^b of C; it is dropped where the remainder of w C by 2^b
is below 2^b mod C, which leaves equally many words to each entry (Lemire 2019). C may differ from row to row.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.numeric.randomness import SYSTEM, Source, batch_bytes

_SHORT: Final = 2**10
"""Entries that words of 16 bits pick from at most: less than one word in sixty-four is dropped."""

MAX_ENTRIES: Final = 2**20
"""Entries of a list at most: a word of 32 bits is then dropped in less than one of 4,000 draws."""

Words = NDArray[np.unsignedinteger[Any]]


def extended(words: NDArray[np.uint16], source: Source) -> NDArray[np.uint64]:
    """Return numbers of 64 bits whose first sixteen are given, shape (n,)."""
    tails = np.frombuffer(batch_bytes(6 * words.size, source), dtype="<u2").reshape(-1, 3)
    number = words.astype(np.uint64) << np.uint64(48)
    for place, shift in enumerate((32, 16, 0)):
        number |= tails[:, place].astype(np.uint64) << np.uint64(shift)
    return number


def passed_ends(ends: Sequence[int], total: int, number: int, source: Source) -> int:
    """Return how many ends, each divided by the total, a real number in [0, 1) is not below.

    Args:
        ends: Rising, each 0 to total.
        total: >= 1.
        number: The first 64 bits of the real number; more are drawn until they settle it.
        source: Where they come from.
    """
    bits = 64
    while True:
        # The number lies from number / 2^bits on, and below (number + 1) / 2^bits.
        passed = sum(end << bits <= number * total for end in ends)
        if passed == sum(end << bits < (number + 1) * total for end in ends):
            return passed
        number = number << 8 | source.token_bytes(1)[0]
        bits += 8


class Weighted:
    """A law of outcomes 0, 1, ... with integer weights.

    Attributes:
        ends: The running sums of the weights; the last is the total.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        """Work out the intervals and the table.

        Raises:
            ParameterError: If there are no weights, or one is not positive.
        """
        if not weights or min(weights) < 1:
            raise ParameterError("a law must have weights, all of them positive")
        self.ends = list(accumulate(weights))
        total = self.ends[-1]
        # Ends but the last, rounded down: what is above one is past it, what is below is not.
        self._low = np.array([(end << 64) // total for end in self.ends[:-1]], dtype=np.uint64)
        starts = np.arange(2**16, dtype=np.uint64) << np.uint64(48)
        self._unsettled = len(weights)  # an outcome that is none
        self._table = np.searchsorted(self._low, starts, side="right").astype(
            np.min_scalar_type(len(weights))
        )
        self._table[(self._low >> np.uint64(48)).astype(np.intp)] = self._unsettled
        self._table.flags.writeable = False  # shared by all draws

    def many(self, size: int, source: Source = SYSTEM) -> NDArray[np.unsignedinteger[Any]]:
        """Return independent outcomes, shape (size,), of the least dtype that holds them."""
        words = np.frombuffer(batch_bytes(2 * size, source), dtype="<u2")
        found = self._table.take(words)
        late = np.flatnonzero(found == self._unsettled)
        if late.size:
            number = extended(words[late], source)
            found[late] = np.searchsorted(self._low, number, side="right")
            for i in np.flatnonzero(np.isin(number, self._low)).tolist():
                found[late[i]] = passed_ends(self.ends[:-1], self.ends[-1], int(number[i]), source)
        return found


class Listed:
    """A uniform entry of one of several lists that stand one after another, the list given for every draw.

    Attributes:
        word: The dtype of the words that a draw takes: 16 bits for short lists, else 32.
    """

    def __init__(self, choices: Sequence[int]) -> None:
        """Work out where lists begin.

        Args:
            choices: Entries of every list, each 1 to MAX_ENTRIES.

        Raises:
            ParameterError: If a list is empty or too long.
        """
        if not 1 <= min(choices) <= max(choices) <= MAX_ENTRIES:
            raise ParameterError(f"a list must have 1 to {MAX_ENTRIES} entries")
        self._most = max(choices)
        short = self._most <= _SHORT
        self._bits = 16 if short else 32
        self.word = np.dtype("<u2" if short else "<u4")
        self._wide = np.dtype(np.uint32 if short else np.uint64)
        self._low = np.dtype(np.uint16 if short else np.uint32)
        self._choices = np.array(choices, dtype=self._wide)
        self._starts = np.array([0, *accumulate(choices)][:-1], dtype=self._wide)
        self._dropped = np.array([2**self._bits % each for each in choices], dtype=self._low)
        for table in (self._choices, self._starts, self._dropped):
            table.flags.writeable = False  # shared by all draws

    def many(self, of: NDArray[np.integer[Any]], source: Source = SYSTEM) -> NDArray[np.integer[Any]]:
        """Return entries of the lists given by their numbers; see `draw`."""
        data = batch_bytes(of.size * self.word.itemsize, source)
        return self.draw(of, np.frombuffer(data, dtype=self.word), source)

    def draw(self, of: NDArray[np.integer[Any]], words: Words, source: Source) -> NDArray[np.integer[Any]]:
        """Return entries, counted from the first of all lists, of the lists given by their numbers.

        Args:
            of: Whose entry, shape (n,).
            words: A uniform word for each.
            source: Where those come from that stand in for dropped ones.
        """
        found = self._choices.take(of)
        if self._most > 1:
            found *= words
            low = self._remainder(found)
            if low.size and int(low.min()) < self._most:
                late = np.flatnonzero(low < self._dropped.take(of))
                while late.size:
                    again = np.frombuffer(
                        batch_bytes(late.size * self.word.itemsize, source), dtype=self.word
                    )
                    found[late] = self._choices.take(of[late]) * again
                    late = late[found[late].astype(self._low) < self._dropped.take(of[late])]
            found >>= self._wide.type(self._bits)
        else:
            found -= self._wide.type(1)
        found += self._starts.take(of)
        return found.view(np.int64) if self._bits == 32 else found  # an index as it is

    def _remainder(self, products: Words) -> Words:
        if sys.byteorder == "big":
            return products.astype(self._low)
        return products.view(self._low)[:: self._wide.itemsize // self._low.itemsize]
