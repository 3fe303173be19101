"""The uploader's decisions, as values: no clock, no network, no chance."""

import pytest

from hubbub.wire import report as wire
from hubbub_client.upload.transport import Response
from hubbub_client.upload.uploader import (
    BackoffState,
    Done,
    Failed,
    Limits,
    Pending,
    Settled,
    Upload,
    Wait,
    backoff_s,
    decide,
    interpret_response,
    parse_retry_after,
)

LIMITS = Limits(max_reports=3, max_bytes=100, gap_s=1.0, base_s=2.0, cap_s=60.0, retry_after_cap_s=600.0)


def reports(count: int, size: int = 30) -> list[Pending]:
    return [Pending(bytes([i]) * 16, bytes([i]) * size) for i in range(count)]


def ok(*outcomes: wire.Outcome) -> Response:
    return Response(200, wire.encode_response(outcomes))


def test_an_empty_outbox_is_done() -> None:
    assert decide([], BackoffState(), now_s=0.0, limits=LIMITS) == Done()


def test_the_oldest_reports_go_first_within_both_caps() -> None:
    assert decide(reports(5), BackoffState(), now_s=0.0, limits=LIMITS) == Upload(tuple(reports(3)))
    assert decide(reports(5, 45), BackoffState(), now_s=0.0, limits=LIMITS) == Upload(tuple(reports(2, 45)))


def test_a_report_above_the_byte_cap_still_goes_alone() -> None:
    assert decide(reports(2, 500), BackoffState(), now_s=0.0, limits=LIMITS) == Upload(tuple(reports(1, 500)))


def test_nothing_is_sent_before_the_time_that_was_set() -> None:
    assert decide(reports(1), BackoffState(not_before_s=12.0), now_s=10.0, limits=LIMITS) == Wait(2.0)
    assert isinstance(decide(reports(1), BackoffState(not_before_s=12.0), now_s=12.0, limits=LIMITS), Upload)


def test_a_clock_set_back_does_not_silence_the_device() -> None:
    assert isinstance(decide(reports(1), BackoffState(not_before_s=1e9), now_s=0.0, limits=LIMITS), Upload)


def test_only_one_outcome_per_report_settles() -> None:
    upload = Upload(tuple(reports(2)))
    args = {"now_s": 100.0, "jitter": 0.5, "limits": LIMITS}
    assert interpret_response(
        upload, ok("accepted", "late"), BackoffState(4, 9.0, single=True), **args
    ) == Settled(("accepted", "late"), BackoffState(0, 101.0, single=False))
    for answer in (
        ok("accepted"),
        ok("accepted", "late", "late"),
        Response(200, b"<html>"),
        Response(200, b""),
    ):
        assert isinstance(interpret_response(upload, answer, BackoffState(), **args), Failed)
    for status in (201, 204, 301, 302, 400, 404, 413, 429, 500, 503):
        answer = Response(status, wire.encode_response(["accepted", "accepted"]))
        assert isinstance(interpret_response(upload, answer, BackoffState(), **args), Failed), status


def test_an_outcome_that_this_version_does_not_know_settles_nothing() -> None:
    unknown = Response(200, b"\x92\x01\x91\xa5later")
    result = interpret_response(
        Upload(tuple(reports(1))), unknown, BackoffState(), now_s=0.0, jitter=0.0, limits=LIMITS
    )
    assert isinstance(result, Failed)


def test_back_off_doubles_with_full_jitter_up_to_its_cap() -> None:
    assert [backoff_s(n, jitter=0.5, limits=LIMITS) for n in (1, 2, 3, 4, 5, 6)] == [2, 4, 8, 16, 30, 30]
    assert backoff_s(3, jitter=0.0, limits=LIMITS) == 0.0
    assert backoff_s(10**9, jitter=0.5, limits=LIMITS) == 30.0


def test_failures_accumulate_until_an_answer_comes() -> None:
    upload, pace = Upload(tuple(reports(1))), BackoffState()
    for failures in (1, 2, 3):
        result = interpret_response(upload, None, pace, now_s=10.0, jitter=0.5, limits=LIMITS)
        assert result == Failed("unreachable", BackoffState(failures, 10.0 + 2.0**failures))
        pace = result.backoff


def test_retry_after_is_honoured_with_jitter_on_top_and_capped() -> None:
    upload = Upload(tuple(reports(1)))

    def wait_of(header: str) -> float:
        answer = Response(429, b"", header)
        return interpret_response(
            upload, answer, BackoffState(), now_s=0.0, jitter=0.5, limits=LIMITS
        ).backoff.not_before_s

    assert wait_of("30") == 32.0
    assert wait_of("Thu, 01 Jan 1970 00:00:30 GMT") == 32.0
    assert wait_of("999999999") == 602.0
    assert wait_of("-5") == wait_of("nonsense") == wait_of("") == 2.0


@pytest.mark.parametrize("status", [400, 413])
def test_a_refused_body_is_sent_again_one_report_at_a_time_until_answered(status: int) -> None:
    waiting = reports(3)
    refused = interpret_response(
        Upload(tuple(waiting)), Response(status, b""), BackoffState(), now_s=0.0, jitter=0.0, limits=LIMITS
    )
    assert decide(waiting, refused.backoff, now_s=0.0, limits=LIMITS) == Upload(tuple(waiting[:1]))
    unreachable = interpret_response(
        Upload(tuple(waiting)), None, refused.backoff, now_s=0.0, jitter=0.0, limits=LIMITS
    )
    assert unreachable.backoff.single
    answered = interpret_response(
        Upload(tuple(waiting[:1])), ok("accepted"), unreachable.backoff, now_s=0.0, jitter=0.0, limits=LIMITS
    )
    assert decide(waiting, answered.backoff, now_s=1.0, limits=LIMITS) == Upload(tuple(waiting))


def test_retry_after_without_a_header_asks_for_nothing() -> None:
    assert parse_retry_after(None, now_s=0.0) == 0.0
    assert parse_retry_after("1" * 400, now_s=0.0) < float("inf")


@pytest.mark.parametrize(
    "header",
    [
        "Thu, 01 Jan 1970 00:01:00 +99999999999999999999",
        "Thu, 01 Jan 99999999999999 00:00:00 GMT",
        "\u0661\u0662",
        "1e9",
        ", ".join("x" * 500),
    ],
)
def test_a_hostile_retry_after_asks_for_nothing_and_raises_nothing(header: str) -> None:
    assert parse_retry_after(header, now_s=0.0) == 0.0


def test_an_upload_carries_the_outbox_bytes_as_they_are() -> None:
    report = wire.encode_report(wire.Report(b"d" * 16, 3, b"i" * 16, 1))
    body = Upload((Pending(b"i" * 16, report),)).body
    assert report in body
    assert wire.decode_upload(body, max_reports=8) == [wire.Report(b"d" * 16, 3, b"i" * 16, 1)]
