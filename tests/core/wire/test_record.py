"""Log records: what is encoded comes back, and nothing else is taken."""

from __future__ import annotations

import dataclasses

import msgpack
import numpy as np
import pytest

from hubbub.channels.symbols import MAX_SYMBOL_BYTES
from hubbub.errors import ParameterError, WireError
from hubbub.wire.record import (
    NO_ROUND,
    ReportsRecord,
    SealRecord,
    Segment,
    SurveyRecord,
    decode_record,
    encode_record,
)

DIGEST = bytes(range(16))


def segment(n: int, highest: int = 90, **changes) -> Segment:
    symbols = np.linspace(0, highest, n).astype(np.uint64)
    whole = Segment(DIGEST, 2, bytes(i % 251 for i in range(16 * n)), symbols, n + 3, {"late": 2, "early": 1})
    return dataclasses.replace(whole, **changes)


@pytest.mark.parametrize(
    "record",
    [
        SurveyRecord(b""),
        SurveyRecord(b"x" * 1000),
        SealRecord(DIGEST, 0),
        SealRecord(DIGEST, 2**31 - 1),
        ReportsRecord(0, ()),
        ReportsRecord(29_000_000, (segment(3), segment(0), segment(300, 2**16)), 5),
        ReportsRecord(1, (segment(0, round=NO_ROUND),)),
    ],
)
def test_record_comes_back(record):
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    ("highest", "width"), [(0, 1), (255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4)]
)
def test_symbols_take_the_fewest_bytes_that_hold_them(highest, width):
    found = decode_record(encode_record(ReportsRecord(1, (segment(5, highest),)))).segments[0]
    assert found.symbols.dtype.itemsize == width
    assert found.symbols.max() == highest


@pytest.mark.parametrize("width", [1, 2, 12, 300])
def test_sets_come_back_as_rows_of_their_bytes(width):
    sets = np.arange(5 * width, dtype=np.uint32).astype(np.uint8).reshape(5, width)
    (found,) = decode_record(encode_record(ReportsRecord(1, (segment(5, symbols=sets),)))).segments
    assert found.symbols.dtype == np.uint8
    assert found.symbols.tolist() == sets.tolist()
    if width == 1:
        numbers = segment(5, symbols=sets[:, 0])
        assert found != numbers
        assert encode_record(ReportsRecord(1, (numbers,))) != encode_record(ReportsRecord(1, (found,)))


@pytest.mark.parametrize(("n", "highest"), [(100, 255), (1000, 255), (100, 65535)])
def test_record_takes_at_most_20_bytes_per_report(n, highest):
    record = ReportsRecord(29_000_000, (segment(n, highest, round=100_000, attempts=n + 3),), 2**20)
    assert len(encode_record(record)) <= 20 * n


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": DIGEST[:15]},
        {"round": -2},
        {"round": 2**31},
        {"ids": b"x" * 47},
        {"ids": b""},
        {"symbols": np.array([1, 2, 3])},
        {"symbols": np.array([[1, 2, 3]], dtype=np.uint8)},
        {"symbols": np.array([[1, 2], [3, 4]], dtype=np.uint8)},
        {"symbols": np.ones((3, 2), dtype=np.uint16)},
        {"symbols": np.ones((3, 0), dtype=np.uint8)},
        {"symbols": np.ones((3, MAX_SYMBOL_BYTES + 1), dtype=np.uint8)},
        {"symbols": np.ones((3, 1, 1), dtype=np.uint8)},
        {"symbols": np.array([1, 2, 2**32], dtype=np.uint64)},
        {"attempts": 5},
        {"attempts": 7},
        {"refused": {"late": 3, "odd": 0}},
        {"refused": {"late": -1, "early": 4}},
        {"round": NO_ROUND},
    ],
)
def test_segment_that_would_not_decode_is_not_encoded(changes):
    with pytest.raises(ParameterError):
        encode_record(ReportsRecord(1, (segment(3, **changes),)))


@pytest.mark.parametrize("record", [SealRecord(DIGEST, -1), SealRecord(b"", 0), ReportsRecord(-1, ())])
def test_record_that_would_not_decode_is_not_encoded(record):
    with pytest.raises(ParameterError):
        encode_record(record)


GOOD = [DIGEST, 2, bytes(48), 1, bytes(3), 6, [0, 1, 2, 0]]


def test_hand_made_segment_decodes():
    assert len(decode_record(msgpack.packb([1, 1, 7, 0, [GOOD]])).segments[0]) == 3


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, DIGEST + b"x"),
        (0, "0123456789abcdef"),
        (1, True),
        (1, -2),
        (1, 2.0),
        (2, bytes(47)),
        (2, "x" * 48),
        (3, 3),
        (3, 0),
        (3, 2),
        (3, -2),
        (3, -4),
        (3, -(2**15) - 1),
        (3, -1.0),
        (3, True),
        (4, bytes(4)),
        (4, [0, 0, 0]),
        (5, 5),
        (5, -6),
        (5, None),
        (6, [0, 1, 2]),
        (6, [0, 1, 2, 0, 0]),
        (6, [0, 1, True, 0]),
        (6, [-1, 2, 2, 0]),
        (6, {"late": 3}),
        (1, NO_ROUND),
    ],
)
def test_segment_with_one_wrong_field_is_refused(place, value):
    fields = list(GOOD)
    fields[place] = value
    with pytest.raises(WireError):
        decode_record(msgpack.packb([1, 1, 7, 0, [fields]]))


@pytest.mark.parametrize(
    "content",
    [
        [],
        [1],
        [2, 0, b""],
        [True, 0, b""],
        [1, 3, b""],
        [1, True, 7, 0, []],
        [1, 0, "text"],
        [1, 0, b"", b""],
        [1, 2, DIGEST],
        [1, 2, DIGEST, NO_ROUND],
        [1, 2, DIGEST[:8], 0],
        [1, 1, 7, 0, None],
        [1, 1, 7, 0, [None]],
        [1, 1, -7, 0, []],
        [1, 1, 7, -1, []],
        [1, 1, 7, 0],
        "record",
        None,
    ],
)
def test_record_of_another_shape_is_refused(content):
    with pytest.raises(WireError):
        decode_record(msgpack.packb(content))
