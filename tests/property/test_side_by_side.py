"""Uploads of any length, of numbers or sets, honest or hostile: columns get what single reports get."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hubbub.channels import SetChannel
from hubbub.mechanisms import grr, subset_selection, unary
from hubbub.numeric.randomness import SYSTEM
from hubbub.testing import SeededSource
from hubbub.wire import Report, decode_upload, encode_report, encode_upload, set_reports, side_by_side
from hubbub_collector.admission import Admission, AdmissionRules
from hubbub_collector.batching.batcher import Batch, largest_row

# Rounds of 1,000 s; the one of number 300 is open at 310,500 s in those with 400 of them.
RULES = AdmissionRules(
    grr(4, epsilon=1.0), start_s=10_000, round_s=1000, rounds=400, lateness_s=100, skew_s=30
)
CHANNELS = {
    b"n" * 16: grr(4, epsilon=1.0),
    b"w" * 16: grr(1000, epsilon=1.0),
    b"s" * 16: subset_selection(20, epsilon=1.0),
    b"u" * 16: unary(9, epsilon=1.0),
    b"t" * 16: unary(2100, epsilon=1.0),
}
ROUNDS = {digest: dataclasses.replace(RULES, channel=channel) for digest, channel in CHANNELS.items()}
HONEST = {
    digest: [one.tobytes() for one in channel.draw_many(np.arange(4), SeededSource(3))]
    for digest, channel in CHANNELS.items()
    if isinstance(channel, SetChannel)
}
ONE = {digest: HONEST[digest][0] if digest in HONEST else 3 for digest in CHANNELS}
WIDTHS = {channel.width for channel in CHANNELS.values()} - {0}
NOW_S = (10_500.0, 137_500.0, 310_500.0, 11_100.5, 0.0)
MOST = 40


@st.composite
def crowds(draw: st.DrawFn) -> list[Report]:
    """Reports that are alike in form, as those of an agent are, but for one of them now and then."""
    form = draw(st.sampled_from(["short", "short", "set", "set", "wide"]))
    digest = draw(st.sampled_from([one for one in CHANNELS if (one in HONEST) == (form == "set")]))
    if form == "short":
        numbers = [0, 1, 127]
    else:
        numbers = draw(st.sampled_from([[0, 1, 127], [128, 200], [300], [65_536, 2**31 - 1], [0, 300]]))
    if form == "set":
        none = bytes(CHANNELS[digest].width)
        symbols: st.SearchStrategy[int | bytes] = st.sampled_from([*HONEST[digest], none, none[1:] + b"\xff"])
    else:
        symbols = st.integers(0, 5 if form == "short" else draw(st.sampled_from([130, 70_000, 2**32 - 1])))
    digests = st.sampled_from([digest] * 5 + [b"?" * 16, *CHANNELS])
    drawn = draw(
        st.lists(st.tuples(digests, st.sampled_from(numbers), symbols), min_size=1, max_size=MOST + 2)
    )
    found = [
        Report(digest, number, bytes(8) + struct.pack(">Q", 7 * i), symbol)
        for i, (digest, number, symbol) in enumerate(drawn)
    ]
    if draw(st.integers(0, 9)) == 0:
        odd = draw(st.integers(0, 2**32 - 1) | st.binary(min_size=1, max_size=300))
        found[draw(st.integers(0, len(found) - 1))].symbol = odd
    return found


HEADS = {
    "own": lambda n: encode_upload([b""] * n),
    "sixteen": lambda n: b"\x92\x01\xdc" + struct.pack(">H", n),
    "thirty-two": lambda n: b"\x92\x01\xdd" + struct.pack(">I", n),
}


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Uploads, their arrays announced in any of three forms."""
    reports = [encode_report(report) for report in draw(crowds())]
    return HEADS[draw(st.sampled_from(list(HEADS)))](len(reports)) + b"".join(reports)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Uploads with a false number of reports, one report cut short or continued, or bytes of one changed."""
    reports = [bytearray(encode_report(report)) for report in draw(crowds())]
    n = len(reports)
    one = draw(st.sampled_from(reports))
    match draw(st.sampled_from(["count", "type", "byte", "end", "long form"])):
        case "count":
            n = draw(st.sampled_from([n - 1, n + 1, 2 * n, n + 16, 65_535]))
        case "type":  # what says of which type and length a field is
            place = draw(st.sampled_from([0, 1, 2, 35, 36, 37, 38]))
            one[place % len(one)] = draw(
                st.sampled_from([0, 0x7F, 0x80, 0x92, 0xC4, 0xC5, 0xCC, 0xCD, 0xE0, 0xFF])
            )
        case "byte":
            one[draw(st.integers(0, len(one) - 1))] = draw(st.integers(0, 255))
        case "end":
            one[:] = one[: draw(st.integers(0, len(one)))] + draw(st.binary(max_size=3))
        case "long form":  # a length in more bytes than it needs
            for other in reports:
                other[36:36] = other[36:37] and b"\xc5\x00"
                del other[38:39]
    return HEADS[draw(st.sampled_from(list(HEADS)))](n) + b"".join(reports)


def stored(batch: Batch) -> tuple[object, ...]:
    """Everything that a batch puts into the log, whatever its order."""
    found = []
    for partition, record in batch.records(SYSTEM).items():
        kept = [
            (segment.digest, segment.round, segment.ids[16 * i : 16 * i + 16], np.asarray(symbol).tolist())
            for segment in record.segments
            for i, symbol in enumerate(segment.symbols)
        ]
        tallies = [(one.digest, one.round, one.attempts, dict(one.refused)) for one in record.segments]
        found.append((partition, record.minute, record.unknown, sorted(kept, key=repr), tallies))
    return tuple(found)


@settings(max_examples=400, deadline=None)
@given(st.lists(bodies() | damaged(), min_size=1, max_size=3), st.sampled_from(NOW_S), st.booleans())
@example([encode_upload([encode_report(Report(b"n" * 16, 0, bytes(16), 3))] * MOST)], NOW_S[0], False)
@example(
    [encode_upload([encode_report(Report(b"u" * 16, 127, bytes(16), b"\xff\x01"))] * 16)], NOW_S[1], True
)
@example([encode_upload([encode_report(Report(b"u" * 16, 300, bytes(16), b"\xff\x01"))])], NOW_S[2], True)
@example(
    [
        encode_upload([encode_report(Report(b"n" * 16, 0, bytes(16), symbol))])
        for symbol in (3, b"\x01\x00\x00")
    ],
    NOW_S[0],
    True,
)
def test_uploads_by_columns_get_what_they_get_one_by_one(
    uploads: list[bytes], now_s: float, warm: bool
) -> None:
    admission, columns, singles = Admission(ROUNDS), Batch(3), Batch(3)
    if warm:  # rounds that took a report are judged another way
        for digest, symbol in ONE.items():
            admission.judge([Report(digest, n, bytes(16), symbol) for n in (0, 127, 128, 300)], now_s)
    most = 0
    for body in uploads:
        found = side_by_side(body, max_reports=MOST, set_bytes=WIDTHS)
        if found is None:
            continue
        form, data = found
        rows = np.frombuffer(data, dtype=form)
        verdicts, which = admission.judge_rows(rows, np.full(len(rows), now_s))
        # Whatever is no upload fails here.
        reports = decode_upload(body, max_reports=MOST)
        expected = Admission(ROUNDS).judge(reports, now_s)
        assert [verdicts[place] for place in which.tolist()] == expected
        columns.add_rows(rows, verdicts, which, now_s)
        singles.add(reports, expected, now_s)
        most += len(rows) * largest_row(form)
    assert columns.outcomes() == singles.outcomes()
    assert columns.attempts == singles.attempts
    assert columns.size == singles.size <= most
    assert stored(columns) == stored(singles)


def upload(digest: bytes, number: int, symbol: int | bytes, n: int) -> bytes:
    return encode_upload([encode_report(Report(digest, number, bytes([i]) * 16, symbol)) for i in range(n)])


@pytest.mark.parametrize(
    "symbol",
    [3, 300, b"\xff\x01", b"s" * 255, b"s" * 256, b"s" * 3000],
    ids=lambda symbol: f"{len(symbol)} bytes" if isinstance(symbol, bytes) else str(symbol),
)
def test_uploads_of_one_form_go_by_columns_whatever_their_length(symbol: int | bytes) -> None:
    widths = {2, 255, 256, 3000}
    numbers = (0, 127, 128, 255, 256, 65_535, 65_536, 2**31 - 1)
    for n, number in itertools.product((1, 2, 15, 16, 40), numbers):
        body = upload(b"n" * 16, number, symbol, n)
        found = side_by_side(body, max_reports=MOST, set_bytes=widths)
        assert found is not None, (n, number)
        form, data = found
        assert len(np.frombuffer(data, dtype=form)) == n, number
        assert side_by_side(body, max_reports=n - 1, set_bytes=widths) is None, (n, number)
        if isinstance(symbol, bytes):
            assert side_by_side(body, max_reports=MOST, set_bytes={7}) is None, (n, number)


def test_forms_are_few_whatever_is_sent() -> None:
    forms = Counter(
        found[0]
        for number in (0, 127, 128, 200, 300, 65_535, 70_000, 2**31 - 1)
        for width in range(1, 300)
        if (
            found := side_by_side(upload(b"u" * 16, number, b"s" * width, 2), max_reports=9, set_bytes=WIDTHS)
        )
    )
    assert len(forms) <= 4 * len(WIDTHS)


def test_a_changed_byte_makes_no_rows_that_are_not_there() -> None:
    for number in (5, 200, 300, 70_000):
        body = upload(b"u" * 16, number, b"\xff\x01", 3)
        for place in range(len(body)):
            for byte in range(256):
                data = body[:place] + bytes([byte]) + body[place + 1 :]
                if (found := set_reports(data, max_reports=99, set_bytes=WIDTHS)) is not None:
                    rows = np.frombuffer(found[1], dtype=found[0])
                    assert [
                        Report(
                            row["digest"].tobytes(),
                            int(row["round"]),
                            row["id"].tobytes(),
                            row["symbol"].tobytes(),
                        )
                        for row in rows
                    ] == decode_upload(data, max_reports=99)
        for data in (body[:-1], body + b"\x00", body + body[3:], body[:3], body[:40], b""):
            assert side_by_side(data, max_reports=99, set_bytes=WIDTHS) is None
