"""The worker's loop: counts to the end, seals what is due, releases once, and starts again from the store."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.transparency import Entry, entries_of
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.errors import AheadError, ArchiveError, DivergedError, StoreConflictError
from hubbub_aggregator.release.after_shuffling import ShufflingStatements
from hubbub_aggregator.release.disclosure import Shown
from hubbub_aggregator.release.estimates import METHOD
from hubbub_aggregator.release.round_release import canonical_bytes
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.transparency import TransparencyLog
from hubbub_aggregator.web.view import LiveView

HEALTH, VISITED = Survey.parse(LABELS), Survey.parse(VISITS)
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + 30.0


class Setting:
    """A log, a store, an archive, a view and a clock; `worker()` starts a worker on them, again and again."""

    def __init__(self, folder: Path) -> None:
        self.log, self.store, self.view = MemoryLog(), MemoryStore(), LiveView()
        self.archive = SqliteArchive(folder / "archive.sqlite")
        self.entries: TransparencyLog | None = None
        self.now_s = float(HEALTH.start_s)
        self.log.everywhere(announcement(HEALTH))

    def worker(self, read_records: int = 64) -> Worker:
        return Worker(
            self.log,
            self.store,
            archive=self.archive,
            view=self.view,
            clock=lambda: self.now_s,
            read_records=read_records,
            entries=self.entries,
        )

    def write(self, start: int, n: int, survey: Survey = HEALTH) -> None:
        for i in range(start, start + n):
            self.log.append({i % 2: [batch(segment(survey, 0, [(report_id(i), i % 5)]))]})

    def shown(self) -> dict[str, object]:
        (survey,) = self.view.snapshot()["surveys"]
        (document,) = survey["rounds"]
        return document


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.archive.close()


def drain(worker: Worker) -> None:
    while worker.step():
        pass


def test_step_applies_what_the_log_holds_and_says_how_much(setting: Setting) -> None:
    setting.write(0, 30)
    worker = setting.worker(read_records=10)
    assert [worker.step() for _ in range(3)] == [20, 12, 0]
    assert worker.is_caught_up
    snapshot = setting.view.snapshot()
    assert snapshot["accounting"]["accepted"] == 30
    assert snapshot["partitions"] == [{"partition": p, "offset": 16, "end": 16, "lag": 0} for p in range(2)]
    assert snapshot["log"] == "memory-log"


def test_lag_is_shown_before_it_is_worked_off(setting: Setting) -> None:
    setting.write(0, 30)
    setting.worker(read_records=10)
    assert [p["lag"] for p in setting.view.snapshot()["partitions"]] == [16, 16]


def test_view_changes_its_version_only_when_something_changed(setting: Setting) -> None:
    worker = setting.worker()
    drain(worker)
    version = setting.view.version()
    worker.step()
    assert setting.view.version() == version
    setting.write(0, 1)
    worker.step()
    assert setting.view.version() == version + 1


@pytest.mark.parametrize("last", [0, 1])
def test_round_is_released_when_its_last_seal_comes_even_where_nobody_answered(
    setting: Setting, last: int
) -> None:
    seal = encode_record(SealRecord(HEALTH.digest, 0))
    setting.log.append({0: [batch(segment(HEALTH, 0, [(report_id(i), i % 5) for i in range(150)]))]})
    worker = setting.worker()
    drain(worker)
    setting.log.append({1 - last: [seal]})
    drain(worker)
    assert setting.archive.rounds() == []
    setting.log.append({last: [seal]})
    drain(worker)
    assert setting.archive.rounds() == [(HEALTH.digest, 0)]


def test_due_round_is_sealed_released_and_shown_once(setting: Setting) -> None:
    setting.write(0, 150)
    worker = setting.worker()
    drain(worker)
    assert setting.archive.rounds() == []
    setting.now_s = DUE_S
    worker.step()
    drain(worker)
    assert setting.archive.rounds() == [(HEALTH.digest, 0)]
    data = setting.archive.get((HEALTH.digest, 0))
    assert data is not None
    shown = setting.shown()
    beside = ShufflingStatements().of(HEALTH, json.loads(data))
    assert beside is not None and beside["reports"] == 100
    assert shown == json.loads(data) | {"as_of": 150, "after_shuffling": beside}
    assert shown["accounting"]["accepted"] == 150
    ends = [setting.log.end(p) for p in range(2)]
    drain(worker)
    assert [setting.log.end(p) for p in range(2)] == ends


def test_rounds_that_nobody_answered_cost_nothing(setting: Setting) -> None:
    old = Survey.parse(
        LABELS.replace('round = "1d"', 'round = "60s"')
        .replace("rounds = 3", "rounds = 100000")
        .replace("epsilon = 1.0", "epsilon = 0.01")
    )
    setting.log.everywhere(announcement(old))
    # Refusals, which anybody can cause, are in the totals and open no round.
    setting.log.append({0: [batch(*(segment(old, number, [], late=1) for number in range(50)))]})
    setting.now_s = 2.0 * DUE_S
    worker = setting.worker()
    drain(worker)
    ends = [setting.log.end(p) for p in range(2)]
    worker.step()
    drain(worker)
    assert [setting.log.end(p) for p in range(2)] == ends
    assert setting.archive.rounds() == []
    snapshot = setting.view.snapshot()
    assert [survey["rounds"] for survey in snapshot["surveys"]] == [[], []]
    assert snapshot["accounting"]["late"] == snapshot["accounting"]["attempts"] == 50


def test_report_that_comes_when_its_round_is_over_is_counted_and_sealed(setting: Setting) -> None:
    setting.now_s = DUE_S
    worker = setting.worker()
    drain(worker)
    worker.step()
    setting.write(0, 150)
    drain(worker)
    worker.step()
    drain(worker)
    assert setting.shown()["sealed"] is True
    assert setting.shown()["devices"] == 150


def test_worker_that_lags_does_not_seal(setting: Setting) -> None:
    setting.now_s = DUE_S
    setting.write(0, 100)
    worker = setting.worker(read_records=10)
    assert worker.step() == 20
    assert setting.log.end(0) == 51
    drain(worker)
    worker.step()
    assert setting.shown()["sealed"] is True
    assert setting.shown()["devices"] == 100


def test_host_may_seal_before_the_time(setting: Setting) -> None:
    setting.write(0, 100)
    worker = setting.worker()
    worker.seal([(HEALTH.digest, 0)])
    drain(worker)
    assert setting.shown()["sealed"] is True


def test_provisional_estimates_step_by_cohorts_and_end_with_the_seal(setting: Setting) -> None:
    worker = setting.worker()
    as_of = []
    for start in range(0, 400, 20):
        setting.write(start, 20)
        worker.step()
        shown = setting.shown()
        assert shown["accounting"]["accepted"] == start + 20
        assert (shown["as_of"] == 0) == shown["suppressed"]
        assert all(cell["always_low"] <= cell["low"] for cell in shown["values"])
        as_of.append(shown["as_of"])
    assert sorted(set(as_of)) == [0, 100, 200, 300]
    assert as_of == sorted(as_of)
    assert as_of[9] == 100  # the step at 100 is shown when 200 have come
    worker.seal([(HEALTH.digest, 0)])
    drain(worker)
    assert setting.shown()["as_of"] == 400
    assert not any("always_low" in cell for cell in setting.shown()["values"])  # sealed: one look
    assert setting.store.load_gates() == {}


def test_steps_survive_a_restart(setting: Setting) -> None:
    worker = setting.worker()
    for start in (0, 110):
        setting.write(start, 110)
        worker.step()
    assert setting.shown()["as_of"] == 110
    setting.write(220, 50)
    worker = setting.worker()
    drain(worker)
    assert setting.shown()["as_of"] == 110


def test_a_store_that_is_lost_shows_nothing_near_to_what_was_shown(setting: Setting) -> None:
    worker = setting.worker()
    for start in (0, 110):
        setting.write(start, 110)
        worker.step()
    assert setting.shown()["as_of"] == 110
    setting.store = MemoryStore()
    worker = setting.worker(read_records=5)
    as_of = set()
    for start in range(220, 510, 10):
        drain(worker)
        as_of.add(setting.shown()["as_of"])
        setting.write(start, 10)
    # Counts at 110 were shown and those at 220 to be next: the first step is a cohort past both.
    assert as_of == {0, 320}
    worker.seal([(HEALTH.digest, 0)])
    drain(worker)
    kept = setting.archive.shown((HEALTH.digest, 0))
    assert kept is not None
    assert [cut.n for cut in Shown.decode(kept).cuts] == [110, 220, 320]


def test_an_archive_that_is_lost_is_followed_by_the_release_and_nothing_else(
    setting: Setting, tmp_path: Path
) -> None:
    """The record of what was shown is lost: no step comes after it, and no issuer is compared."""

    def write(start: int, n: int) -> None:
        for issuer in "ab":
            pairs = [(report_id(2 * i + (issuer == "b")), i % 5) for i in range(start, start + n)]
            setting.log.append({0: [batch(segment(HEALTH, 0, pairs, Voucher(issuer)))]})

    worker = setting.worker()
    for start in (0, 60):
        write(start, 60)
        worker.step()
    assert setting.shown()["as_of"] == 120
    setting.archive.close()
    setting.archive = SqliteArchive(tmp_path / "another.sqlite")
    worker = setting.worker()
    for start in (120, 180, 240):
        write(start, 60)
        worker.step()
        assert (setting.shown()["as_of"], setting.shown()["accounting"]["accepted"]) == (
            120,
            2 * (start + 60),
        )
        worker = setting.worker()  # it is kept that it is not known
    worker.seal([(HEALTH.digest, 0)])
    drain(worker)
    assert setting.shown()["as_of"] == 600
    assert [line["accepted"] for line in setting.shown()["issuers"]] == [300, 300]
    assert [line["output"] for line in setting.shown()["issuers"]] == [None, None]


def test_a_round_that_was_sealed_before_its_archive_was_lost_compares_no_issuer(
    setting: Setting, tmp_path: Path
) -> None:
    for name in ("archive", "another"):
        for issuer in "ab" if name == "archive" else "":
            pairs = [(report_id(ord(issuer) * 1000 + i), i % 5) for i in range(150)]
            setting.log.append({0: [batch(segment(HEALTH, 0, pairs, Voucher(issuer)))]})
        worker = setting.worker()
        worker.seal([(HEALTH.digest, 0)])
        drain(worker)
        compared = [line["output"] is not None for line in setting.shown()["issuers"]]
        assert compared == [name == "archive"] * 2
        setting.archive.close()
        setting.archive = SqliteArchive(tmp_path / "another.sqlite")


def test_half_sealed_round_shows_nothing_new(setting: Setting) -> None:
    setting.write(0, 250)
    worker = setting.worker()
    drain(worker)
    before = setting.shown()
    seals = MemoryLog()
    worker.seal([(HEALTH.digest, 0)])
    seals.records[1] = setting.log.records[1][-1:]
    setting.log.records[1].pop()
    setting.write(250, 250)
    drain(worker)
    assert setting.shown()["accounting"]["accepted"] == 375
    assert setting.shown() == before | {"accounting": setting.shown()["accounting"]}
    assert before["sealed"] is False
    setting.log.append({1: seals.records[1]})
    drain(worker)
    assert setting.shown()["sealed"] is True
    assert setting.shown()["accounting"]["accepted"] == 375


def test_restarted_worker_goes_on_where_the_store_says(setting: Setting) -> None:
    setting.write(0, 40)
    first = setting.worker(read_records=7)
    first.step()
    second = setting.worker()
    drain(second)
    assert setting.view.snapshot()["accounting"]["accepted"] == 40
    with pytest.raises(StoreConflictError):
        first.step()


def test_round_sealed_but_not_released_before_a_crash_is_released_at_the_next_start(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.write(0, 120)
    worker = setting.worker()
    drain(worker)
    worker.seal([(HEALTH.digest, 0)])

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(setting.archive, "put", killed)
        with pytest.raises(KeyboardInterrupt):
            drain(worker)
    setting.worker()
    assert setting.shown()["sealed"] is True
    assert setting.archive.rounds() == [(HEALTH.digest, 0)]


def test_release_that_differs_from_the_archived_one_stops_the_worker(setting: Setting) -> None:
    setting.archive.put((HEALTH.digest, 0), canonical_bytes({"method": METHOD}))
    worker = setting.worker()
    drain(worker)
    worker.seal([(HEALTH.digest, 0)])
    with pytest.raises(DivergedError):
        drain(worker)


def test_an_archived_release_of_another_method_stops_the_worker_and_its_next_start(
    setting: Setting, tmp_path: Path
) -> None:
    setting.write(0, 200)
    whole = setting.worker()
    drain(whole)
    whole.seal([(HEALTH.digest, 0)])
    drain(whole)
    made = json.loads(setting.archive.get((HEALTH.digest, 0)))
    setting.archive.close()
    setting.archive = SqliteArchive(tmp_path / "older.sqlite")
    setting.archive.put((HEALTH.digest, 0), canonical_bytes(made | {"method": 5}))
    said = "round 1: a release's method must be 10, got 5"
    with pytest.raises(ArchiveError, match=said):
        setting.worker()
    setting.store = MemoryStore()
    with pytest.raises(ArchiveError, match=said):
        drain(setting.worker())


def test_store_rebuilt_from_the_log_releases_the_same_bytes(setting: Setting) -> None:
    setting.write(0, 200)
    worker = setting.worker(read_records=7)
    drain(worker)
    worker.seal([(HEALTH.digest, 0)])
    drain(worker)
    setting.store = MemoryStore()
    drain(setting.worker())  # would raise DivergedError
    assert setting.shown()["sealed"] is True


def test_store_ahead_of_its_log_is_refused(setting: Setting) -> None:
    setting.write(0, 40)
    drain(setting.worker())
    setting.log.records[1].pop()
    with pytest.raises(AheadError, match="partition 1"):
        setting.worker()
    for _ in range(3):
        setting.write(40, 40)
    with pytest.raises(AheadError, match=r"partition 1: the .* records before offset .* must be counted"):
        setting.worker()


def test_several_surveys_are_shown_in_order(setting: Setting) -> None:
    setting.log.everywhere(announcement(VISITED))
    setting.write(0, 3, survey=VISITED)
    setting.write(10, 3)
    drain(setting.worker())
    snapshot = setting.view.snapshot()
    assert [survey["id"] for survey in snapshot["surveys"]] == ["outpatient-visits", "self-rated-health"]
    assert [len(survey["rounds"]) for survey in snapshot["surveys"]] == [1, 1]
    assert json.loads(json.dumps(snapshot)) == snapshot


def test_run_works_until_it_is_told_to_stop(setting: Setting) -> None:
    setting.write(0, 20)
    worker, stop = setting.worker(), threading.Event()
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    deadline = threading.Event()
    while setting.view.snapshot()["accounting"]["accepted"] < 20 and not deadline.wait(0.005):
        assert thread.is_alive()
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def logged(entries: TransparencyLog) -> list[Entry]:
    return [Entry.decode(data) for data in entries_of(entries.entries(0, entries.size) or b"")]


def test_what_is_published_is_entered_once_surveys_before_their_releases(
    setting: Setting, tmp_path: Path
) -> None:
    setting.entries = TransparencyLog(tmp_path / "entries.sqlite")
    setting.write(0, 60)
    drain(setting.worker())
    assert [each.kind for each in logged(setting.entries)] == ["layout", "survey"]
    setting.now_s = DUE_S
    for _ in range(2):  # the second worker has entered nothing yet, and everything is there
        drain(setting.worker())
    found = logged(setting.entries)
    assert [each.kind for each in found] == ["layout", "survey", "release"]
    sealed = setting.archive.get((HEALTH.digest, 0))
    assert sealed is not None
    assert found[2].fields == (HEALTH.digest, 1, hashlib.sha256(sealed).digest())
    setting.entries.close()


@pytest.mark.skipif(sys.platform != "linux", reason="a life must end with the process that forked it")
def test_a_kill_at_any_statement_of_archive_and_log_leaves_them_in_agreement(tmp_path: Path) -> None:
    sizes, statement, was_killed = set(), 0, True
    while was_killed:
        statement += 1
        folder = tmp_path / str(statement)
        folder.mkdir()
        child = os.fork()
        if not child:
            life = Setting(folder)
            life.entries = TransparencyLog(folder / "entries.sqlite")
            life.write(0, 60)
            life.now_s = DUE_S
            count = 0

            def traced(_: str) -> None:
                nonlocal count
                count += 1
                if count == statement:  # noqa: B023 - this life's
                    os.kill(os.getpid(), signal.SIGKILL)

            for db in (life.archive._db, life.entries._db):
                db.set_trace_callback(traced)
            worker = life.worker()
            drain(worker)
            drain(worker)  # the first sealed
            os._exit(0)
        was_killed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        after = Setting(folder)
        after.entries = TransparencyLog(folder / "entries.sqlite")
        sizes.add((len(after.archive.rounds()), after.entries.size))
        after.write(0, 60)
        after.now_s = DUE_S
        worker = after.worker()
        drain(worker)
        drain(worker)
        (key,) = after.archive.rounds()
        found = [each for each in logged(after.entries) if each.kind == "release"]
        sealed = after.archive.get(key)
        assert sealed is not None and [each.fields[2] for each in found] == [hashlib.sha256(sealed).digest()]
        assert after.entries.size == 3
        after.archive.close()
        after.entries.close()
        shutil.rmtree(folder)
    assert sizes == {(0, 0), (0, 1), (0, 2), (1, 2), (1, 3)}  # nothing, layout, survey, archived, logged
