"""The writer: an upload waits until its record is durable or forgotten, and a record is produced once."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from hubbub.mechanisms import grr
from hubbub.numeric.randomness import SYSTEM
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub.wire.report import (
    WIDE_REPORT,
    Report,
    decode_response,
    encode_report,
    encode_upload,
    wide_reports,
)
from hubbub_collector.admission import Admission, AdmissionRules, Verdict
from hubbub_collector.batching import batcher
from hubbub_collector.batching.batcher import LARGEST_ROW
from hubbub_collector.batching.writer import Writer
from hubbub_collector.errors import NotDurableError
from hubbub_collector.metrics import Metrics
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.topic import MAX_RECORD_BYTES
from hubbub_topic.sqlite import SqliteLog

KEY = (b"d" * 16, 0)
TERMS = AdmissionRules(channel=grr(4, epsilon=1.0), start_s=0, round_s=1000, rounds=1, lateness_s=0, skew_s=0)


class GatedLog(SqliteLog):
    """A log whose appends wait for a gate, and fail while `failure` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 1)
        self.gate = threading.Event()
        self.entered = threading.Event()
        self.failure: Exception | None = None
        self.appends = 0

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        self.appends += 1
        self.entered.set()
        assert self.gate.wait(20)
        if self.failure is not None:
            raise self.failure
        return super().append(batches)

    def stored_ids(self) -> list[list[int]]:
        """The ids of each record, sorted."""
        found = []
        for _, body in self.read(0, 0, 1000):
            record = decode_record(body)
            assert isinstance(record, ReportsRecord)
            (segment,) = record.segments
            found.append(
                sorted(int.from_bytes(segment.ids[i : i + 16]) for i in range(0, len(segment.ids), 16))
            )
        return found


@pytest.fixture
def log(tmp_path: Path):
    with GatedLog(tmp_path / "log.sqlite") as log:
        yield log


def writer_on(log: GatedLog, **settings: float) -> Writer:
    admission = Admission({KEY[0]: TERMS})
    writer = Writer(log, GatewaySettings(**settings), admission, source=SYSTEM, metrics=Metrics())
    writer.start()
    return writer


def submit(writer: Writer, *numbers: int) -> asyncio.Future[bytes]:
    reports = [Report(*KEY, number.to_bytes(16, "big"), 0) for number in numbers]
    return writer.submit(reports, [Verdict("accepted", KEY)] * len(reports), 0.0)


def submit_rows(writer: Writer, *symbols: int, now_s: float = 0.0) -> asyncio.Future[bytes]:
    rows = [encode_report(Report(*KEY, number.to_bytes(16, "big"), s)) for number, s in enumerate(symbols)]
    return writer.submit_rows(b"".join(rows), now_s)


def submit_wide(writer: Writer, *symbols: int) -> asyncio.Future[bytes]:
    reports = [Report(*KEY, number.to_bytes(16, "little"), s) for number, s in enumerate(symbols)]
    rows = wide_reports(encode_upload([encode_report(report) for report in reports]), max_reports=15)
    assert rows is not None
    return writer.submit_rows(rows, 0.0, WIDE_REPORT)


async def entered(log: GatedLog) -> None:
    assert await asyncio.to_thread(log.entered.wait, 20)
    log.entered.clear()


def test_an_upload_waits_until_its_record_is_durable_while_others_are_taken(log: GatedLog) -> None:
    async def run() -> None:
        writer = writer_on(log, linger_s=0)
        first = submit(writer, 1)
        await entered(log)
        second, third = submit(writer, 2), submit(writer, 3)
        assert not first.done()
        log.gate.set()
        await asyncio.gather(first, second, third)
        assert log.stored_ids() == [[1], [2, 3]]
        await writer.stop()

    asyncio.run(run())


def test_uploads_of_one_linger_share_one_record(log: GatedLog) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=0.01)
        await asyncio.gather(*(submit(writer, i) for i in range(50)))
        await writer.stop()
        assert log.stored_ids() == [list(range(50))]

    asyncio.run(run())


def test_each_of_many_short_uploads_gets_its_own_answer_however_they_came(log: GatedLog) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=0.01)
        answers = await asyncio.gather(
            submit_rows(writer, 0, 9, 1),
            submit(writer, 100),
            submit_wide(writer, 300, 0),
            submit_rows(writer, 9),
            submit_rows(writer, 2, now_s=1001.0),
            submit_wide(writer, 70_000),
            submit_rows(writer, 3, 3),
        )
        assert [list(decode_response(answer)) for answer in answers] == [
            ["accepted", "invalid", "accepted"],
            ["accepted"],
            ["invalid", "accepted"],
            ["invalid"],
            ["late"],
            ["invalid"],
            ["accepted", "accepted"],
        ]
        await writer.stop()
        assert writer._metrics.reports == Counter(
            accepted=6, invalid=4, late=1, over_quota=0, early=0, unknown=0
        )
        assert len(log.stored_ids()) == 1
        assert len(log.stored_ids()[0]) == 6

    asyncio.run(run())


@pytest.mark.parametrize("limits", [{"max_batch_reports": 4}, {"max_batch_bytes": 4 * LARGEST_ROW}])
def test_short_reports_fill_a_batch_as_others_do(log: GatedLog, limits: dict[str, int]) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=1000, shutdown_s=2000, **limits)
        full = [submit_rows(writer, 0, 0), submit(writer, 1), submit_rows(writer, 0)]
        waiting = submit_rows(writer, 0)
        await asyncio.gather(*full)
        assert not waiting.done()
        await writer.stop()
        assert decode_response(await waiting) == ["accepted"]

    asyncio.run(run())


def test_a_full_batch_does_not_linger_and_the_next_one_begins(log: GatedLog) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=1000, shutdown_s=2000, max_batch_reports=3)
        full = [submit(writer, 0, 1), submit(writer, 2, 3)]
        waiting = submit(writer, 4)
        await asyncio.gather(*full)
        assert log.stored_ids() == [[0, 1, 2, 3]]
        assert not waiting.done()
        await asyncio.gather(submit(writer, 5, 6), waiting)
        assert log.stored_ids()[1:] == [[4, 5, 6]]
        await writer.stop()

    asyncio.run(run())


@pytest.mark.parametrize("send", [submit, submit_rows], ids=["judged", "rows"])
def test_a_batch_with_company_enough_lingers_no_longer(
    log: GatedLog, send: Callable[..., asyncio.Future[bytes]]
) -> None:
    async def run() -> None:
        writer = writer_on(log, linger_s=1000, shutdown_s=2000, linger_uploads=3)
        first = [send(writer, i) for i in range(3)]
        await entered(log)
        # What comes while it is written shares one batch, however much it is.
        second = [send(writer, i) for i in range(7)]
        log.gate.set()
        await asyncio.gather(*first, *second)
        assert log.appends == 2
        few = [send(writer, i) for i in range(2)]
        await asyncio.sleep(0.05)
        assert not any(future.done() for future in few)
        await asyncio.gather(send(writer, 2), *few)
        assert log.appends == 3
        await writer.stop()

    asyncio.run(run())


def test_a_batch_with_company_enough_takes_no_more_when_it_can_be_written_at_once(log: GatedLog) -> None:
    # Else all who wait for answers are in it, and the process has nothing to do until it is durable.
    up_s = [1000.0]

    async def run() -> None:
        settings = GatewaySettings(linger_s=1.0, linger_uploads=3, max_wait_s=3.0)
        writer = Writer(
            log,
            settings,
            Admission({KEY[0]: TERMS}),
            source=SYSTEM,
            metrics=Metrics(),
            boot_clock=lambda: up_s[0],
        )
        writer.start()
        log.gate.set()
        found = [submit(writer, number) for number in range(8)]
        # All of them fit into one batch: none is refused, however long the process then stood still.
        up_s[0] += 4.1
        assert {*map(tuple, map(decode_response, await asyncio.gather(*found)))} == {("accepted",)}
        await writer.stop()
        assert log.stored_ids() == [[0, 1, 2], [3, 4, 5, 6, 7]]

    asyncio.run(run())


def test_a_record_stays_below_what_a_broker_takes_whatever_is_sent(log: GatedLog) -> None:
    def far_rounds(first: int) -> tuple[list[Report], list[Verdict]]:
        numbers = range(first, first + 1700)
        reports = [Report(KEY[0], number, number.to_bytes(16, "big"), 0) for number in numbers]
        return reports, [Verdict("early", (KEY[0], number)) for number in numbers]

    def sets(first: int) -> tuple[list[Report], list[Verdict]]:
        reports = [Report(*KEY, (first + i).to_bytes(16, "big"), b"s" * 32_000) for i in range(2)]
        return reports, [Verdict("accepted", KEY)] * 2

    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=0.2, delivery_s=1e6, max_wait_s=1e6)
        for uploads in (far_rounds, sets):
            await asyncio.gather(*(writer.submit(*uploads(2000 * i), 0.0) for i in range(60)))
        await writer.stop()

    asyncio.run(run())
    sizes = [len(body) for offset in range(log.end(0)) for _, body in log.read(0, offset, 1)]
    assert len(sizes) > 4
    assert max(sizes) < MAX_RECORD_BYTES
    assert sum(sizes) > 3 * MAX_RECORD_BYTES


def test_a_batch_that_fails_is_forgotten_and_never_appended_again(log: GatedLog) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=0)
        log.failure = LogError("disk full")
        failed = await asyncio.gather(submit(writer, 1), submit(writer, 2), return_exceptions=True)
        assert [type(error) for error in failed] == [NotDurableError] * 2
        assert not writer.healthy
        log.failure = None
        await submit(writer, 3)
        assert writer.healthy
        await writer.stop()
        assert log.stored_ids() == [[3]]
        assert log.appends == 2

    asyncio.run(run())


def test_a_failing_log_is_told_once_and_its_recovery_once(
    log: GatedLog, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        log.gate.set()
        writer = writer_on(log, linger_s=0)
        log.failure = LogError("disk full")
        for i in range(5):
            with pytest.raises(NotDurableError, match="disk full"):
                await submit(writer, i)
        log.failure = None
        for i in range(5):
            await submit(writer, i)
        await writer.stop()

    with caplog.at_level(logging.INFO, "hubbub.collector"):
        asyncio.run(run())
    assert [r.levelname for r in caplog.records] == ["WARNING"] * 2


def test_a_bug_stops_the_writer_for_good_and_is_told_with_its_place(
    log: GatedLog, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        writer = writer_on(log, linger_s=0)
        first = submit(writer, 1)
        await entered(log)
        second = submit(writer, 2)
        log.failure = RuntimeError("a bug")
        log.gate.set()
        assert all(
            isinstance(e, NotDurableError)
            for e in await asyncio.gather(first, second, return_exceptions=True)
        )
        log.failure = None
        with pytest.raises(NotDurableError):
            await submit(writer, 3)
        assert not writer.healthy
        await writer.stop()

    asyncio.run(run())
    assert log.appends == 1
    assert log.stored_ids() == []
    assert caplog.records[0].exc_info is not None


def test_stopping_writes_what_waits_without_lingering_and_takes_no_more(log: GatedLog) -> None:
    async def run() -> None:
        writer = writer_on(log, linger_s=1000, shutdown_s=2000)
        waiting = submit(writer, 1)
        log.gate.set()
        await writer.stop()
        assert waiting.done()
        assert waiting.exception() is None
        with pytest.raises(NotDurableError, match="running"):
            await submit(writer, 2)
        assert log.stored_ids() == [[1]]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("asleep_s", "answered"), [(0.0, True), (4.9, True), (5.1, False), (86_400.0, False)]
)
@pytest.mark.parametrize("form", ["judged", "rows"])
def test_a_batch_that_took_too_long_from_judgement_to_log_is_answered_for_by_nobody(
    log: GatedLog, asleep_s: float, answered: bool, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    # A collector that was stopped, or slept, in between: the round may have been sealed meanwhile.
    up_s = [1000.0]

    async def run() -> None:
        admission, metrics = Admission({KEY[0]: TERMS}), Metrics()
        settings = GatewaySettings(linger_s=0, delivery_s=5.0)
        writer = Writer(log, settings, admission, source=SYSTEM, metrics=metrics, boot_clock=lambda: up_s[0])
        writer.start()
        sent = submit if form == "judged" else submit_rows
        for _ in range(2):
            log.gate.clear()
            waiting = sent(writer, 1)
            await entered(log)
            up_s[0] += asleep_s
            log.gate.set()
            if answered:
                assert decode_response(await waiting) == ["accepted"]
            else:
                with pytest.raises(NotDurableError, match=r"5 s after it was judged, took"):
                    await waiting
            assert writer.healthy is answered
        # It lies in the log all the same: a repeat is a duplicate, or late, to whoever counts.
        assert len(log.stored_ids()) == 2
        assert metrics.batches == {"stored": 2 * answered, "overdue": 2 * (not answered), "forgotten": 0}
        assert metrics.reports["accepted"] == 2 * answered
        assert decode_response(await sent(writer, 2)) == ["accepted"]
        assert writer.healthy
        await writer.stop()

    asyncio.run(run())
    # Said once when it begins, and once when it is over.
    assert len(caplog.records) == (0 if answered else 2)


def test_the_first_judgement_of_a_batch_counts(log: GatedLog) -> None:
    async def run() -> None:
        admission = Admission({KEY[0]: TERMS})
        settings = GatewaySettings(linger_s=0, delivery_s=5.0, max_wait_s=1000.0)
        writer = Writer(log, settings, admission, source=SYSTEM, metrics=Metrics(), boot_clock=lambda: 100.0)
        writer.start()
        report = [Report(*KEY, bytes(16), 0)]
        verdicts = [Verdict("accepted", KEY)]
        old = writer.submit(report, verdicts, 0.0, began_s=94.0)
        young = writer.submit(report, verdicts, 0.0, began_s=99.0)
        log.gate.set()
        results = await asyncio.gather(old, young, return_exceptions=True)
        assert [type(found) for found in results] == [NotDurableError] * 2
        await writer.stop()

    asyncio.run(run())


def test_a_batch_of_many_rounds_is_written_as_several_records(
    log: GatedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "MOST_SEGMENTS", 2, raising=False)

    async def run() -> None:
        admission, metrics = Admission({KEY[0]: TERMS}), Metrics()
        writer = Writer(log, GatewaySettings(), admission, source=SYSTEM, metrics=metrics)
        writer.start()
        reports = [Report(KEY[0], number, number.to_bytes(16, "big"), 0) for number in range(5)]
        log.gate.set()
        answer = await writer.submit(reports, [Verdict("accepted", (KEY[0], i)) for i in range(5)], 0.0)
        assert decode_response(answer) == ["accepted"] * 5
        await writer.stop()
        assert (log.appends, metrics.records) == (1, 3)
        found = [decode_record(body) for _, body in log.read(0, 0, 1000)]
        rounds = [[one.round for one in part.segments] for part in found if isinstance(part, ReportsRecord)]
        assert rounds == [[0, 1], [2, 3], [4]]

    asyncio.run(run())


def test_a_cancelled_request_harms_no_other_of_its_batch(log: GatedLog) -> None:
    async def run() -> None:
        writer = writer_on(log, linger_s=0)
        one, other = submit(writer, 1), submit(writer, 2)
        await entered(log)
        one.cancel()
        log.gate.set()
        await other
        await writer.stop()
        assert log.stored_ids() == [[1, 2]]

    asyncio.run(run())


@pytest.mark.parametrize("send", ["judged", "rows", "wide"])
def test_an_upload_that_waited_too_long_is_refused_and_not_written(log: GatedLog, send: str) -> None:
    # Its sender has given it up by now; who came a moment ago must not wait for such work.
    up_s = [1000.0]

    async def run() -> None:
        # Two uploads fill a batch: only where more waits than one takes is anything refused.
        settings = GatewaySettings(linger_s=0, max_wait_s=3.0, max_batch_reports=2 if send == "judged" else 4)
        admission, metrics = Admission({KEY[0]: TERMS}), Metrics()
        writer = Writer(log, settings, admission, source=SYSTEM, metrics=metrics, boot_clock=lambda: up_s[0])
        writer.start()
        one = {"judged": lambda: submit(writer, 7), "rows": lambda: submit_rows(writer, 0, 1)}
        one["wide"] = lambda: submit_wide(writer, 300, 0)
        first = submit(writer, 1)
        await entered(log)
        old = [one[send](), one[send]()]
        up_s[0] += 3.1
        young = [one[send](), submit(writer, 200)]
        log.gate.set()
        assert decode_response(await first) == ["accepted"]
        for found in await asyncio.gather(*old, return_exceptions=True):
            assert isinstance(found, NotDurableError)
            assert "3 s" in str(found)
        answers = [decode_response(await future) for future in young]
        reports = sum(map(len, answers))
        assert answers[1] == ["accepted"]
        assert log.appends == 2
        assert sum(map(len, log.stored_ids())) == 1 + sum(answer.count("accepted") for answer in answers)
        # What was refused so is counted nowhere.
        assert sum(metrics.reports.values()) == 1 + reports
        assert metrics.batches == {"stored": 2, "overdue": 0, "forgotten": 0}
        assert metrics.shed == {"waited": 2, "gone": 0}
        assert writer.healthy
        # A batch of which nothing is left is not written; what waits alone is, however old.
        for alone in (False, True):
            log.gate.clear()
            blocking = submit(writer, 3)
            await entered(log)
            late = [one[send]()] if alone else [one[send](), one[send]()]
            up_s[0] += 3.1
            log.gate.set()
            await blocking
            found = await asyncio.gather(*late, return_exceptions=True)
            assert [isinstance(answer, NotDurableError) for answer in found] == [not alone] * len(late)
        await writer.stop()
        assert log.appends == 5

    asyncio.run(run())
