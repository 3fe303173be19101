"""Picks by weight and of lists: the intervals are the law, and every word has its place in it exactly."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from math import ceil

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.numeric.picks import Listed, Weighted, passed_ends
from hubbub.testing import RecordedSource, seeded

WEIGHTS = [
    [1],
    [1, 1],
    [1, 2**62],
    [2**62, 1],
    [3, 5, 7],
    [1] * 60,
    [2**60 // 3, 1, 2**60, 17],
    [1 << i for i in range(120)],
]


def read(law: Weighted, number: int, bits: int) -> int:
    """The outcome that a number of so many bits gives, by as many of its bits as are read."""
    first, rest = number >> bits - 64, number & (1 << bits - 64) - 1
    words = [first >> 48, first >> 32 & 0xFFFF, first >> 16 & 0xFFFF, first & 0xFFFF]
    data = b"".join(word.to_bytes(2, "little") for word in words) + rest.to_bytes((bits - 64) // 8, "big")
    return int(law.many(1, RecordedSource(data))[0])


@pytest.mark.parametrize("weights", WEIGHTS)
def test_outcomes_are_those_whose_interval_holds_the_number(weights):
    """At both sides of all ends, of what 16 and 64 bits round them to, and at random, by exact fractions."""
    law, bits = Weighted(weights), 64 + 192
    ends = [Fraction(end, sum(weights)) for end in accumulate(weights)]
    assert law.ends == list(accumulate(weights))
    numbers = set()
    for end in ends:
        whole = int(end * 2**bits)
        for cut in (0, bits - 64, bits - 16):
            near = whole >> cut << cut
            numbers |= {near - 1, near, near + 1, near + (1 << cut) - 1, near + (1 << cut)}
    source = seeded(1)
    numbers |= {int.from_bytes(source.token_bytes(bits // 8), "little") for _ in range(300)}
    for number in numbers:
        if 0 <= number < 2**bits:
            # The number is known to within one in its last bit: here no end lies inside.
            due = bisect_right(ends, Fraction(number, 2**bits))
            if due == sum(end < Fraction(number + 1, 2**bits) for end in ends):
                assert read(law, number, bits) == due


def test_more_bytes_are_read_until_an_end_is_past_or_not():
    """A third, in 64 bits 0x5555...: a further byte of 0x55 leaves it open, the first other settles it."""
    third = int("55" * 8, 16)
    source = RecordedSource(b"\x55\x55\x54\x99")
    assert passed_ends([1], 3, third, source) == 0
    assert source.left == b"\x99"
    assert passed_ends([1], 3, third, RecordedSource(b"\x55\x56")) == 1
    assert passed_ends([1, 2], 4, 2**63, RecordedSource(b"")) == 2  # exactly on an end: past it


def test_many_outcomes_are_settled_each_by_its_own_words():
    law = Weighted([1, 2])  # the end is a third: 0x5555 does not settle
    words = [0x5555, 0, 0xFFFF, 0x5555]
    late = [(0x5555, 0x5555, 0x5554), (0x5556, 0, 0)]
    data = b"".join(word.to_bytes(2, "little") for word in [*words, *late[0], *late[1]])
    assert law.many(4, RecordedSource(data)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("weights", [[], [0], [3, 0], [1, -1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ParameterError, match="weights, all of them positive"):
        Weighted(weights)


def kept_of(law: Listed, of: int, words: np.ndarray) -> tuple[np.ndarray, int]:
    """The entries of words, and how many were dropped and replaced by the word 2^b - 1, which never is."""
    last = (2 ** (8 * law.word.itemsize) - 1).to_bytes(law.word.itemsize, "little")
    source = RecordedSource(last * words.size)
    found = law.draw(np.full(words.size, of), words.astype(law.word), source)
    return np.asarray(found), words.size - len(source.left) // len(last)


@pytest.mark.parametrize("choices", [[1], [2, 3], [252, 1, 7], [1024, 1000]])
def test_all_words_of_sixteen_bits_are_as_many_for_every_entry(choices):
    """Every word, list by list: all entries have floor(2^16 / C) words, the last one the replaced too."""
    law, words = Listed(choices), np.arange(2**16)
    assert law.word == np.dtype("<u2")
    for of, count in enumerate(choices):
        found, replaced = kept_of(law, of, words)
        start = sum(choices[:of])
        times = Counter(found.tolist())
        assert replaced == 2**16 % count
        times[start + count - 1] -= replaced
        assert times == dict.fromkeys(range(start, start + count), 2**16 // count)


@pytest.mark.parametrize("count", [1025, 12870, 2**20 - 1, 2**20])
def test_words_of_an_entry_are_as_many_for_every_entry_where_they_have_32_bits(count):
    """Of some entries the first and last word and those beside them: floor(2^32 / C) of them are kept."""
    law = Listed([5, count])
    assert law.word == np.dtype("<u4")
    for entry in {0, 1, count // 3, count // 2, count - 2, count - 1}:
        first, beyond = ceil(Fraction(entry * 2**32, count)), ceil(Fraction((entry + 1) * 2**32, count))
        words = np.array([first, first + 1, beyond - 1])
        drops = first * count % 2**32 < 2**32 % count
        found, replaced = kept_of(law, 1, words)
        assert replaced == drops
        assert beyond - first - drops == 2**32 // count
        assert found.tolist() == [5 + (count - 1 if drops else entry), 5 + entry, 5 + entry]


def test_replaced_words_may_be_replaced_again_and_belong_to_their_list():
    law = Listed([3, 5])
    low = 0  # 0 C mod 2^16 is 0, below 2^16 mod 3 = 1 and 2^16 mod 5 = 1
    words = np.array([low, 30_000, low, 40_000])
    data = b"".join(word.to_bytes(2, "little") for word in (low, 2**16 - 1, 2**16 - 1))
    source = RecordedSource(data)
    assert law.draw(np.array([0, 0, 1, 1]), words.astype("<u2"), source).tolist() == [2, 1, 7, 6]
    assert not source.left


def test_draws_of_lists_read_a_word_each():
    law = Listed([4, 2])
    source = RecordedSource(b"\xff\xff\x00\x00\x00\x80")
    assert law.many(np.array([0, 1, 1]), source).tolist() == [3, 4, 5]
    assert not source.left
    assert law.many(np.zeros(0, dtype=np.intp), source).size == 0


@pytest.mark.parametrize("choices", [[0], [2, 0], [2**20 + 1]])
def test_lists_without_entries_or_with_too_many_are_refused(choices):
    with pytest.raises(ParameterError, match="a list must have 1 to 1048576 entries"):
        Listed(choices)
