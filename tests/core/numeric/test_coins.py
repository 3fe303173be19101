"""Coins eight at a time: the intervals are the law, and every stage of bits agrees with them exactly."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.mechanisms.unary import CoinBytes
from hubbub.testing import RecordedSource, seeded

COINS = [(1, 31), (2**31 - 1, 31), (577532427, 31), (2**30, 31), (3, 8), (128, 8), (2**62 // 3, 62)]


@pytest.mark.parametrize(("heads", "bits"), COINS)
def test_intervals_have_the_products_of_the_coins(heads, bits):
    coin = CoinBytes(heads, bits)
    p = Fraction(heads, 2**bits)
    lengths = [end - start for start, end in zip([0, *coin.ends], coin.ends, strict=False)]
    for byte, length in enumerate(lengths):
        ones = byte.bit_count()
        assert Fraction(length, 2 ** (8 * bits)) == p**ones * (1 - p) ** (8 - ones)
    assert coin.ends[-1] == 2 ** (8 * bits)


def read(coin: CoinBytes, number: int) -> int:
    """The byte that a number of all bits of the law gives, by as many of its bits as are read."""
    spare = 8 * coin.bits - 64
    first, rest = number >> spare, number & ((1 << spare) - 1)
    words = [first >> 48, first >> 32 & 0xFFFF, first >> 16 & 0xFFFF, first & 0xFFFF]
    data = b"".join(word.to_bytes(2, "little") for word in words) + rest.to_bytes(spare // 8, "little")
    return int(coin.many(1, RecordedSource(data))[0])


@pytest.mark.parametrize(("heads", "bits"), COINS)
def test_bytes_are_those_whose_interval_holds_the_number(heads, bits):
    """At both sides of all ends and of all that the first 16 and 64 bits round them to; and at random."""
    coin = CoinBytes(heads, bits)
    whole = 8 * bits
    numbers = set()
    for end in coin.ends:
        for cut in (0, whole - 64, whole - 16):
            near = end >> cut << cut
            numbers |= {near - 1, near, near + 1, near + (1 << cut) - 1, near + (1 << cut)}
    source = seeded(1)
    numbers |= {int.from_bytes(source.token_bytes(whole // 8), "little") for _ in range(500)}
    for number in numbers:
        if 0 <= number < 2**whole:
            assert read(coin, number) == bisect_right(coin.ends, number)


def test_many_bytes_are_settled_each_by_its_own_words():
    """Two that sixteen bits do not settle beside two that they do."""
    coin = CoinBytes(3, 8)
    end = coin.ends[0] >> 48  # 64 bits in all
    late = (end << 48 | 2**48 - 1, end << 48)
    words = [end, 0, 100, end]
    data = b"".join(word.to_bytes(2, "little") for word in words)
    for number in late:
        data += b"".join((number >> shift & 0xFFFF).to_bytes(2, "little") for shift in (32, 16, 0))
    due = [bisect_right(coin.ends, late[0]), 0, 0, bisect_right(coin.ends, late[1])]
    assert due[0] != due[3]
    found = coin.many(4, RecordedSource(data))
    assert found.dtype == np.uint8
    assert found.tolist() == due


@pytest.mark.parametrize(("heads", "bits"), [(0, 31), (2**31, 31), (1, 7), (1, 63)])
def test_coins_that_are_none_are_refused(heads, bits):
    with pytest.raises(ParameterError, match="rate within 0 to 1"):
        CoinBytes(heads, bits)
