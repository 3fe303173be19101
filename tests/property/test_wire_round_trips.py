"""Whatever is encoded comes back; whatever else arrives is refused with WireError and nothing worse."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
import surveys
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub import Survey, SurveyError, WireError
from hubbub.wire import packing
from hubbub.wire.record import (
    MAX_MINUTE,
    NO_ROUND,
    REFUSALS,
    ReportsRecord,
    SealRecord,
    Segment,
    SurveyRecord,
    decode_record,
    encode_record,
)
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

EXAMPLES = settings(max_examples=300, deadline=None)

sixteen = st.binary(min_size=16, max_size=16)
rounds = st.integers(0, MAX_ROUND) | st.integers(0, 300)
symbols = st.integers(0, MAX_SYMBOL) | st.integers(0, 300)
sets = st.binary(min_size=1, max_size=400)
reports = st.builds(Report, sixteen, rounds, sixteen, symbols | sets)


@st.composite
def segments(draw):
    column = draw(st.lists(symbols, max_size=12))
    answers = np.array(column, dtype=np.uint32)
    if column and draw(st.booleans()):
        width = draw(st.integers(1, 300))
        answers = np.frombuffer(
            draw(st.binary(min_size=width * len(column), max_size=width * len(column))), "u1"
        )
        answers = answers.reshape(len(column), width)
    refused = draw(st.dictionaries(st.sampled_from(REFUSALS), st.integers(0, 2**26)))
    number = draw(rounds) if column else draw(rounds | st.just(NO_ROUND))
    return Segment(
        draw(sixteen),
        number,
        b"".join(draw(sixteen) for _ in column),
        answers,
        len(column) + sum(refused.values()),
        refused,
    )


records = (
    st.builds(SurveyRecord, st.binary(max_size=200))
    | st.builds(SealRecord, sixteen, rounds)
    | st.builds(
        ReportsRecord,
        st.integers(0, MAX_MINUTE),
        st.lists(segments(), max_size=4).map(tuple),
        st.integers(0, 2**29),  # all tallies of a record are at most 2^31 together
    )
)

CANONICALS = [Survey.parse(text).canonical for text in surveys.ALL.values()]


@EXAMPLES
@given(st.lists(reports, max_size=20))
def test_upload_gives_back_its_reports(batch):
    assert decode_upload(encode_upload([encode_report(r) for r in batch]), max_reports=20) == batch


@EXAMPLES
@given(records)
def test_record_gives_back_itself_and_its_bytes(record):
    data = encode_record(record)
    assert decode_record(data) == record
    assert encode_record(decode_record(data)) == data


@EXAMPLES
@given(st.lists(st.sampled_from(OUTCOMES), max_size=30), st.lists(st.binary(max_size=50), max_size=5))
def test_responses_and_survey_lists_give_back_what_they_carry(outcomes, canonicals):
    assert decode_response(encode_response(outcomes)) == outcomes
    assert decode_surveys(encode_surveys(canonicals)) == canonicals


@st.composite
def mutations(draw, originals):
    """Valid bytes after some of: a byte changed, a slice cut out, a slice doubled, bytes put in."""
    data = bytearray(draw(originals))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        kind = draw(st.sampled_from(["change", "cut", "double", "insert"]))
        if kind == "change" and start < len(data):
            data[start] = draw(st.integers(0, 255))
        elif kind == "cut":
            del data[start:end]
        elif kind == "double":
            data[start:start] = data[start:end]
        else:
            data[start:start] = draw(st.binary(max_size=6))
    return bytes(data)


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=40)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4) | st.integers(0, 9), inner)
    ),
    max_leaves=12,
).map(msgpack.packb)

uploads = st.lists(reports.map(encode_report) | plain, max_size=4).map(encode_upload)
junk = st.binary(max_size=120) | plain


def survives(read, data):
    """The result of a decoder, or None where it refused in the one way that is allowed."""
    try:
        return read(data)
    except WireError:
        return None


numbers = st.integers(0, 130) | st.sampled_from([255, 256, 65_535, 65_536, 2**31 - 1])
small_uploads = st.lists(
    st.builds(
        Report, st.binary(min_size=16, max_size=16), numbers, st.binary(min_size=16, max_size=16), numbers
    ),
    max_size=18,
).map(lambda batch: encode_upload([encode_report(report) for report in batch]))


@settings(max_examples=500, deadline=None)
@given(small_uploads | mutations(small_uploads))
def test_reports_side_by_side_are_those_of_the_upload(data):
    for read, form in ((short_reports, SHORT_REPORT), (wide_reports, WIDE_REPORT)):
        rows = read(data, max_reports=15)
        if rows is not None:
            found = [
                Report(row["digest"].tobytes(), int(row["round"]), row["id"].tobytes(), int(row["symbol"]))
                for row in np.frombuffer(rows, dtype=form)
            ]
            assert found == decode_upload(data, max_reports=15)


@pytest.mark.parametrize(("number", "read"), [(127, short_reports), (128, wide_reports)])
def test_upload_of_few_small_reports_lies_side_by_side(number, read):
    report = Report(bytes(16), number, bytes(16), number)
    for n in range(1, 16):
        rows = read(encode_upload([encode_report(report)] * n), max_reports=15)
        assert rows is not None
        assert len(rows) == n * (SHORT_REPORT if read is short_reports else WIDE_REPORT).itemsize


@settings(max_examples=300, deadline=None)
@given(junk | mutations(plain) | records.map(encode_record) | mutations(records.map(encode_record)))
def test_short_way_of_reading_takes_and_gives_what_the_long_way_does(data):
    def read(way):
        try:
            return repr(way(data, "value"))  # NaN is not equal to itself
        except WireError as error:
            return error.args

    assert read(packing.unpack) == read(packing._walked)


@settings(max_examples=1500, deadline=None)
@given(junk | mutations(uploads) | mutations(records.map(encode_record)))
def test_decoders_refuse_any_bytes_with_wire_error_only(data):
    for read in (decode_report, decode_record, decode_response, decode_surveys):
        survives(read, data)
    found = survives(lambda body: decode_upload(body, max_reports=8), data)
    for item in found or ():
        assert isinstance(item, Report | Malformed)
        if isinstance(item, Report):
            assert decode_report(encode_report(item)) == item
    record = survives(decode_record, data)
    if record is not None:
        assert decode_record(encode_record(record)) == record


@settings(max_examples=1500, deadline=None)
@given(junk | mutations(st.sampled_from(CANONICALS)))
def test_survey_from_any_bytes_is_canonical_and_certified_or_refused(data):
    try:
        survey = Survey.from_canonical(data)
    except (WireError, SurveyError):
        return
    assert survey.canonical == data
    assert survey.channel.epsilon <= survey.epsilon


@st.composite
def transplants(draw):
    """A valid survey whose fields are replaced by arbitrary values or by those of another survey."""
    fields = msgpack.unpackb(draw(st.sampled_from(CANONICALS)))
    other = msgpack.unpackb(draw(st.sampled_from(CANONICALS)))
    for place in draw(st.sets(st.integers(0, len(fields) - 1), min_size=1, max_size=3)):
        use = draw(st.sampled_from(["other", "any", "inside"]))
        if use == "other":
            fields[place] = other[place]
        elif use == "inside" and isinstance(fields[place], dict):
            key = draw(st.sampled_from(sorted(fields[place])))
            fields[place][key] = msgpack.unpackb(draw(plain), strict_map_key=False)
        else:
            fields[place] = msgpack.unpackb(draw(plain), strict_map_key=False)
    return msgpack.packb(fields)


@settings(max_examples=1000, deadline=None)
@given(transplants())
def test_survey_of_transplanted_fields_is_certified_or_refused(data):
    try:
        survey = Survey.from_canonical(data)
    except (WireError, SurveyError):
        return
    assert survey.canonical == data
    assert survey.channel.epsilon <= survey.epsilon
