"""Reading MessagePack from strangers costs memory in proportion to what they sent."""

from __future__ import annotations

import tracemalloc

import pytest

from hubbub.errors import WireError
from hubbub.wire import packing
from hubbub.wire.record import decode_record
from hubbub.wire.report import decode_surveys, decode_upload

# Nested headers that each announce 2^20 elements and deliver one: naive readers reserve 8 MiB per header.
BOMB = b"\xdd\x00\x10\x00\x00" * 400


@pytest.mark.parametrize(
    "read",
    [
        lambda data: packing.unpack(data, "bomb"),
        lambda data: decode_upload(data, max_reports=1 << 21),
        lambda data: decode_upload(b"\x92\x01\x91" + data, max_reports=8),
        decode_record,
        decode_surveys,
    ],
)
def test_announced_lengths_reserve_no_memory(read):
    data = BOMB + b"\x00" * (1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(data)


@pytest.mark.parametrize(
    "data", [b"", b"\x01\x02", b"\x91", b"\xc1", b"\xa1\xff", b"\x81\x01\x02", b"\xd4\x05x"]
)
def test_what_is_not_one_plain_value_is_refused(data):
    with pytest.raises(WireError):
        packing.unpack(data, "value")


def test_bool_is_not_an_integer_and_integer_is_not_a_float():
    for check in (lambda: packing.integer(True, "x", 0, 1), lambda: packing.real(1, "x")):
        with pytest.raises(WireError):
            check()


LONGEST = b"\xc9\xff\xff\xff\xff"
"""The head of an extension that announces 2^32 - 1 bytes, after which comes its type."""


@pytest.mark.parametrize("element", [LONGEST, b"\x91" + LONGEST, b"\x93\x01" + LONGEST + b"\x05"])
def test_an_extension_that_announces_all_that_32_bits_can_is_cut_short(element):
    with pytest.raises(WireError):
        decode_upload(b"\x92\x01\x91" + element, max_reports=8)
    with pytest.raises(WireError):
        packing.element_end(element, 0, "element")


def test_bytes_like_the_head_of_the_longest_extension_are_bytes_inside_a_binary():
    for value in (LONGEST, [1, LONGEST * 3], [[LONGEST], "x"]):
        element = packing.pack(value)
        assert packing.element_end(element + b"\x01", 0, "element") == len(element)
        assert packing.unpack(element, "element") == value
