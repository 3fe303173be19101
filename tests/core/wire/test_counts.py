"""The public counts of a release have one encoding, and no other bytes are any."""

from __future__ import annotations

import random

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.errors import WireError
from hubbub.wire import PublicCounts, decode_counts, encode_counts

DIGEST = bytes(range(16))


def counts(cells: list[int], n: int = 2**40) -> PublicCounts:
    return PublicCounts(DIGEST, 3, "bins", n, np.array(cells, dtype=np.int64))


def bytes_of(data: bytes, *, n: int = 2**40, **fields: object) -> bytes:
    """The bytes of counts as the module's docstring has them, written by hand."""
    known = {"name": "hubbub-counts", "layout": 1, "digest": DIGEST, "round": 3, "kind": "bins", "n": n}
    return msgpack.packb([*(known | fields).values(), data])


def test_counts_are_the_bytes_that_the_format_names() -> None:
    # 300 = 0b10_0101100: its lowest seven bits first, and the top bit says that more follows.
    assert encode_counts(counts([0, 127, 128, 300])) == bytes_of(b"\x00\x7f\x80\x01\xac\x02")


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=50), st.integers(0, 2**31))
def test_counts_come_back_as_they_went(cells: list[int], number: int) -> None:
    sent = PublicCounts(DIGEST, number, "support", 2**62, np.array(cells, dtype=np.int64))
    data = encode_counts(sent)
    back = decode_counts(data)
    assert back.cells.tolist() == cells
    assert (back.digest, back.round, back.kind, back.n) == (DIGEST, number, "support", 2**62)
    assert sent.statement()["cells"] == len(cells)


@pytest.mark.parametrize(
    "data",
    [
        bytes_of(b""),
        bytes_of(b"\x80"),  # a cell cut short
        bytes_of(b"\x80\x00"),  # 0 in two bytes
        bytes_of(b"\x05", n=4),  # more than all reports
        bytes_of(b"\xff" * 9 + b"\x01"),  # above 2^63
        bytes_of(b"\x00", n=0),
        bytes_of(b"\x00", n=2**63),
        bytes_of(b"\x00", n=True),
        bytes_of(b"\x00", round=-1),
        bytes_of(b"\x00", kind="words"),
        bytes_of(b"\x00", kind=["bins"]),
        bytes_of(b"\x00", digest=DIGEST[:15]),
        bytes_of(b"\x00", layout=2),
        bytes_of(b"\x00", layout=True),
        bytes_of(b"\x00", name="hubbub-log"),
        bytes_of(b"\x00") + b"\x00",
        b"\x97" + bytes_of(b"\x00")[1:-1] + b"",
        b"\xdc\x00\x07" + bytes_of(b"\x00")[1:],  # a longer header of the same array
        msgpack.packb("hubbub-counts"),
        b"",
    ],
)
def test_other_bytes_are_no_counts(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_counts(data)


def test_damaged_bytes_are_refused_or_are_other_counts_whole() -> None:
    chance, data = random.Random(5), encode_counts(counts([7, 300, 2**35, 0, 1], n=2**36))  # noqa: S311 - test cases
    for _ in range(3_000):
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        try:
            found = decode_counts(bytes(damaged))
        except WireError:
            continue
        assert encode_counts(found) == damaged


def test_cells_beyond_all_reports_are_not_encoded() -> None:
    for cells, n in (([5], 4), ([-1], 4), ([], 4)):
        with pytest.raises(WireError):
            encode_counts(counts(cells, n))
