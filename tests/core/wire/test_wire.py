"""Reports, uploads, responses and survey lists on the wire."""

from __future__ import annotations

import dataclasses
import secrets

import msgpack
import numpy as np
import pytest

from hubbub.channels.symbols import MAX_SYMBOL_BYTES
from hubbub.errors import ParameterError, WireError
from hubbub.wire.report import (
    MAX_ROUND,
    MAX_SYMBOL,
    OUTCOMES,
    SHORT_REPORT,
    WIDE_REPORT,
    Malformed,
    Report,
    decode_report,
    decode_response,
    decode_surveys,
    decode_upload,
    encode_report,
    encode_response,
    encode_surveys,
    encode_upload,
    short_reports,
    wide_reports,
)

DIGEST = bytes(range(16))
ID = bytes(range(100, 116))
REPORT = Report(DIGEST, 3, ID, 90)


def test_small_report_takes_37_bytes():
    assert len(encode_report(dataclasses.replace(REPORT, round=127, symbol=127))) == 37
    assert len(encode_report(dataclasses.replace(REPORT, symbol=128))) == 38


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 65535, 65536, MAX_ROUND])
def test_report_of_any_size_of_number_comes_back(number):
    report = Report(DIGEST, number, ID, number)
    assert decode_report(encode_report(report)) == report
    assert decode_report(msgpack.packb([DIGEST + ID, number, number])) == report


@pytest.mark.parametrize("size", [1, 12, 255, 256, MAX_SYMBOL_BYTES])
def test_report_of_a_set_of_any_size_comes_back(size):
    report = Report(DIGEST, 3, ID, bytes(range(256))[-size:] * (size // 256 or 1))
    assert decode_report(encode_report(report)) == report
    assert encode_report(report) == msgpack.packb([DIGEST + ID, 3, report.symbol])


@pytest.mark.parametrize(
    "field",
    [
        {"digest": DIGEST[:15]},
        {"digest": "0123456789abcdef"},
        {"id": ID + b"x"},
        {"round": -1},
        {"round": MAX_ROUND + 1},
        {"round": True},
        {"symbol": MAX_SYMBOL + 1},
        {"symbol": -1},
        {"symbol": 1.0},
        {"symbol": b""},
        {"symbol": bytes(MAX_SYMBOL_BYTES + 1)},
        {"symbol": "01"},
        {"symbol": bytearray(2)},
    ],
)
def test_report_that_breaks_a_rule_is_not_encoded(field):
    with pytest.raises(ParameterError):
        encode_report(dataclasses.replace(REPORT, **field))


@pytest.mark.parametrize(
    "content",
    [
        [DIGEST + ID, 3],
        [DIGEST + ID, 3, 90, 0],
        [DIGEST + ID[:15], 3, 90],
        [(DIGEST + ID).hex()[:32], 3, 90],
        [DIGEST + ID, True, 90],
        [DIGEST + ID, 3, False],
        [DIGEST + ID, 3, 90.0],
        [DIGEST + ID, -1, 90],
        [DIGEST + ID, 3, -1],
        [DIGEST + ID, MAX_ROUND + 1, 90],
        [DIGEST + ID, 3, MAX_SYMBOL + 1],
        [DIGEST + ID, 3, None],
        [DIGEST + ID, 3, b""],
        [DIGEST + ID, 3, "set"],
        [DIGEST + ID, 3, bytes(MAX_SYMBOL_BYTES + 1)],
        {"digest": DIGEST},
        None,
        7,
    ],
)
def test_element_that_is_no_report_does_not_condemn_its_neighbours(content):
    good = encode_report(REPORT)
    found = decode_upload(encode_upload([good, msgpack.packb(content), good]), max_reports=3)
    assert found[0] == found[2] == REPORT
    assert isinstance(found[1], Malformed)
    assert found[1].reason


def test_report_carrying_a_timestamp_or_another_extension_is_malformed():
    for extension in (msgpack.Timestamp(1, 2), msgpack.ExtType(5, b"x"), msgpack.ExtType(5, b"")):
        upload = encode_upload([msgpack.packb([DIGEST + ID, extension, 1])])
        assert isinstance(decode_upload(upload, max_reports=1)[0], Malformed)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 300, 70_000])
def test_upload_of_any_length_is_what_msgpack_would_write(count):
    report = [DIGEST + ID, 3, 90]
    data = encode_upload([encode_report(REPORT)] * count)
    assert data == msgpack.packb([1, [report] * count])
    assert decode_upload(data, max_reports=count) == [REPORT] * count


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x93\x01\x90\x00",
        b"\x91\x01",
        b"\x92\x02\x90",
        b"\x92\xc3\x90",
        b"\x92\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\x90",
        b"\x92\x01\x91",
        b"\x92\x01\xa0",
        b"\x92\x01\x90\x00",
        b"\x92\x01\x80",
        b"\x92\x01\xdd\xff\xff\xff\xff",
        b"\x92\x01\x91" + b"\x91" * 5000 + b"\x90",
    ],
    ids=lambda data: data[:8].hex() or "empty",
)
def test_broken_upload_frame_is_refused(data):
    with pytest.raises(WireError):
        decode_upload(data, max_reports=8)


def reports_of(rows, form=SHORT_REPORT):
    """The reports of rows side by side."""
    return [
        Report(row["digest"].tobytes(), int(row["round"]), row["id"].tobytes(), int(row["symbol"]))
        for row in np.frombuffer(rows, dtype=form)
    ]


@pytest.mark.parametrize("max_reports", [1, 3, 15, 16, 1724])
def test_short_reports_lie_side_by_side_as_they_are_decoded(max_reports):
    every = [Report(secrets.token_bytes(16), i, secrets.token_bytes(16), 127 - i) for i in range(17)]
    for count in range(18):
        reports = every[:count]
        data = encode_upload([encode_report(one) for one in reports])
        rows = short_reports(data, max_reports=max_reports)
        if 1 <= count <= max_reports:
            assert rows is not None
            assert reports_of(rows) == reports == decode_upload(data, max_reports=max_reports)
        else:
            assert rows is None


@pytest.mark.parametrize(
    "changes", [{"round": 128}, {"symbol": 128}, {"symbol": 70_000}, {"symbol": b"\x05"}, {"round": 300}]
)
def test_one_report_that_is_not_short_makes_the_upload_another(changes):
    long = dataclasses.replace(REPORT, **changes)
    for reports in ([long], [REPORT, long], [long, REPORT]):
        assert short_reports(encode_upload([encode_report(one) for one in reports]), max_reports=9) is None


NUMBERS = [0, 1, 127, 128, 255, 256, 300, 65_535, 65_536, 70_000, 2**31 - 1]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("max_reports", [10, 11])
def test_reports_of_any_number_lie_side_by_side_as_they_are_decoded(number, max_reports):
    fresh = [Report(secrets.token_bytes(16), number, secrets.token_bytes(16), one) for one in NUMBERS]
    data = encode_upload([encode_report(one) for one in fresh])
    rows = wide_reports(data, max_reports=max_reports)
    if max_reports < len(NUMBERS):
        assert rows is None
    else:
        assert rows is not None
        assert reports_of(rows, WIDE_REPORT) == fresh == decode_upload(data, max_reports=max_reports)


@pytest.mark.parametrize("symbol", [b"\x05", 2**31, 2**32 - 1])
def test_one_symbol_that_is_a_set_or_beyond_makes_the_upload_another(symbol):
    other = dataclasses.replace(REPORT, symbol=symbol)
    for reports in ([other], [REPORT, other], [other, REPORT]):
        assert wide_reports(encode_upload([encode_report(one) for one in reports]), max_reports=9) is None


def test_numbers_in_a_longer_form_than_they_need_are_the_same_numbers():
    identity = b"\x93\xc4\x20" + REPORT.digest + REPORT.id
    for one in (b"\x05", b"\xcc\x05", b"\xcd\x00\x05", b"\xce\x00\x00\x00\x05"):
        data = b"\x92\x01\x91" + identity + one + b"\xcc\x81"
        rows = wide_reports(data, max_reports=9)
        assert rows is not None
        assert reports_of(rows, WIDE_REPORT) == decode_upload(data, max_reports=9)


def test_a_changed_byte_makes_no_wide_reports_that_are_not_there():
    numbers = [(5, 300), (200, 7), (70_000, 128), (300, 70_000)]
    reports = [dataclasses.replace(REPORT, round=number, symbol=symbol) for number, symbol in numbers]
    upload = encode_upload([encode_report(one) for one in reports])
    for place in range(len(upload)):
        for byte in range(256):
            data = upload[:place] + bytes([byte]) + upload[place + 1 :]
            if (rows := wide_reports(data, max_reports=99)) is not None:
                assert reports_of(rows, WIDE_REPORT) == decode_upload(data, max_reports=99)
    for data in (upload[:-1], upload + b"\x00", upload + upload[3:43], upload[:3], b""):
        assert wide_reports(data, max_reports=99) is None


def test_a_changed_byte_makes_no_short_reports_that_are_not_there():
    upload = encode_upload([encode_report(REPORT)] * 3)
    frame = {0, 1, 2} | {3 + 37 * i + place for i in range(3) for place in (0, 1, 2, 35, 36)}
    for place in frame:
        for byte in range(256):
            data = upload[:place] + bytes([byte]) + upload[place + 1 :]
            if (rows := short_reports(data, max_reports=99)) is not None:
                assert reports_of(rows) == decode_upload(data, max_reports=99)
    for data in (upload[:-1], upload + b"\x00", upload[:-37], upload + upload[3:40], upload[:3], b""):
        assert short_reports(data, max_reports=99) is None


def test_upload_above_its_limit_is_refused_and_at_it_is_taken():
    data = encode_upload([encode_report(REPORT)] * 4)
    assert len(decode_upload(data, max_reports=4)) == 4
    with pytest.raises(WireError, match="at most 3"):
        decode_upload(data, max_reports=3)


def test_response_repeats_every_outcome_in_order():
    assert decode_response(encode_response(OUTCOMES)) == list(OUTCOMES)
    assert decode_response(encode_response([])) == []


@pytest.mark.parametrize("content", [[1, ["maybe"]], [1, [b"accepted"]], [1, [3]], [2, []], [1], "accepted"])
def test_response_outside_the_vocabulary_is_refused(content):
    with pytest.raises(WireError):
        decode_response(msgpack.packb(content))


def test_survey_list_comes_back_byte_for_byte():
    assert decode_surveys(encode_surveys([b"one", b"", b"\x00" * 300])) == [b"one", b"", b"\x00" * 300]


@pytest.mark.parametrize("content", [[1, ["text"]], [1, [1]], [0, []], [1, None], {}])
def test_survey_list_of_anything_but_bytes_is_refused(content):
    with pytest.raises(WireError):
        decode_surveys(msgpack.packb(content))
