"""Retention of a node's log: what is open stays, what went is named, and a kill at any step loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS, VISITS

from hubbub.survey import Survey
from hubbub.wire import ReportsRecord, decode_record
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.runners.retention import INTERVAL_S, Retention, name_of, rounds_of
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.commands.replay import log_replay
from hubbub_topic import BoundedLog, Cut, LogError, SqliteLog

HEALTH = Survey.parse(LABELS.replace("rounds = 3", "rounds = 20").replace("= 100\n", "= 1\n"))
VISITED = Survey.parse(VISITS)
DAY = 86_400
PARTITIONS = 2


class Node:
    """The files of a node, its worker and a clock."""

    def __init__(self, folder: Path, keep_s: float = 0.0, keep_bytes: int = 0) -> None:
        self.now_s, self.folder = float(HEALTH.start_s), folder
        self._open = ExitStack()
        add = self._open.enter_context
        self.log = add(SqliteLog(folder / "log.sqlite", PARTITIONS))
        store = SqliteStore(folder / "store.sqlite", log_identity=self.log.identity, partitions=PARTITIONS)
        self.store = add(closing(store))
        self.archive = add(closing(SqliteArchive(folder / "archive.sqlite")))
        self.retention = Retention(
            self.log, self.archive, keep_s=keep_s, keep_bytes=keep_bytes, clock=lambda: self.now_s
        )
        self.log.publish_survey(HEALTH.digest, announcement(HEALTH))
        self.worker = self.begun()

    def begun(self, retention: Retention | None = None) -> Worker:
        return Worker(
            self.log,
            self.store,
            archive=self.archive,
            view=LiveView(),
            clock=lambda: self.now_s,
            retention=retention,
        )

    def answer(self, number: int, reports: int = 20, survey: Survey = HEALTH, size: int = 1) -> None:
        """Write a round's reports by a gateway's minute within it."""
        minute = survey.round_start_s(number) // 60 + 120
        for i in range(reports):
            ids = [(report_id(1000 * number + 10_000 * size + i * size + j), j % 4) for j in range(size)]
            self.log.append({i % PARTITIONS: [batch(segment(survey, number, ids), minute=minute)]})

    def count(self) -> None:
        while self.worker.step():
            pass

    def seal(self, number: int) -> None:
        """Count, seal and release a round."""
        self.now_s = HEALTH.round_end_s(number) + HEALTH.lateness_s + 60.0
        for _ in range(4):
            self.count()
        assert self.archive.get((HEALTH.digest, number)) is not None

    def trim(self) -> int:
        states = {partition: self.store.load(partition) for partition in range(PARTITIONS)}
        return self.retention.trim(states, self.now_s)

    def rounds(self) -> set[int]:
        """The rounds that the log still has reports of, read record by record."""
        return {
            number
            for partition in range(PARTITIONS)
            for _, body in self.log.read(partition, self.log.begin(partition), 10_000)
            for number in range(HEALTH.rounds)
            if _holds(body, (HEALTH.digest, number))
        }

    def close(self) -> None:
        self._open.close()


def _holds(body: bytes, key: RoundKey) -> bool:
    record = decode_record(body)
    return isinstance(record, ReportsRecord) and key in {
        (each.digest, each.round) for each in record.segments
    }


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    opened: list[Node] = []

    def made(**bounds: float) -> Node:
        opened.append(Node(tmp_path, **bounds))
        return opened[-1]

    yield made
    for node in opened:
        node.close()


def test_by_age_only_counted_records_of_released_rounds_go(make: Callable[..., Node], tmp_path: Path) -> None:
    node = make(keep_s=2.0 * DAY)
    for number in range(4):
        node.answer(number)
        node.seal(number)
    released = {key: node.archive.get(key) for key in node.archive.rounds()}
    assert node.rounds() == {0, 1, 2, 3}
    # Two days before now is an hour into round 2: rounds 0 and 1 are older.
    assert node.trim() > 0 and node.rounds() == {2, 3}
    assert rounds_of(node.log.trimmed()[1]) == {(HEALTH.digest, 0), (HEALTH.digest, 1)}
    assert node.trim() == 0
    assert {key: node.archive.get(key) for key in node.archive.rounds()} == released
    # Who reads from the cut on meets the survey first, and a worker goes on from its store.
    for partition in range(PARTITIONS):
        ((_, first),) = node.log.read(partition, node.log.begin(partition), 1)
        assert first == announcement(HEALTH)
    node.worker = node.begun()
    node.answer(4)
    node.seal(4)
    node.close()
    with SqliteLog(tmp_path / "log.sqlite", PARTITIONS) as log:  # the schema's checks hold
        assert log.begin(0) > 0 and log.trimmed()[0] == {0: log.begin(0), 1: log.begin(1)}


def test_what_is_open_uncounted_or_of_another_survey_stays(make: Callable[..., Node]) -> None:
    node = make(keep_s=1.0)
    node.answer(0)
    node.log.publish_survey(VISITED.digest, announcement(VISITED))
    node.answer(1, survey=VISITED, size=2)
    node.now_s += 30 * DAY
    assert node.trim() == 0  # nothing is counted
    node.now_s -= 30 * DAY
    node.seal(0)  # the round of the other survey is open for another day
    begins = [node.log.begin(partition) for partition in range(PARTITIONS)]
    assert node.trim() == 20  # the first round's reports, and not its seal, which comes behind the others'
    for partition, begin in enumerate(begins):
        kept = [body for _, body in node.log.read(partition, node.log.begin(partition), 1000)]
        assert node.log.begin(partition) == begin + 10 and kept[:2] == [
            announcement(HEALTH),
            announcement(VISITED),
        ]
        assert sum(VISITED.digest in body for body in kept[2:]) == 10
    assert node.trim() == 0


def test_by_size_the_oldest_go_and_no_more_than_needed(make: Callable[..., Node]) -> None:
    node = make(keep_bytes=120_000)
    for number in range(6):
        node.answer(number, reports=10, size=200)
        node.seal(number)
    before = node.log.size_bytes
    assert before > 200_000
    assert node.trim() > 0
    after = node.log.size_bytes
    assert 90_000 < after <= 130_000 and {4, 5} <= node.rounds()
    assert 0 not in node.rounds()


def test_a_step_trims_once_a_minute_and_survives_a_clock_set_back(make: Callable[..., Node]) -> None:
    node = make(keep_s=1.0)
    node.worker = node.begun(node.retention)
    node.answer(0)
    node.seal(0)
    node.count()
    begin = node.log.begin(0)
    node.answer(1)
    node.seal(1)
    node.now_s += INTERVAL_S
    node.count()
    node.count()
    assert node.log.begin(0) > begin
    states = {partition: node.store.load(partition) for partition in range(PARTITIONS)}
    node.answer(2)
    node.seal(2)
    node.now_s -= 10 * DAY
    node.retention.step(states)  # at once, as if it had never run: nothing is old by this clock
    assert node.rounds() >= {2}


def test_replay_compares_what_is_there_and_names_what_is_gone(
    make: Callable[..., Node], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = make(keep_s=2.0 * DAY)
    for number in range(4):
        node.answer(number)
        node.seal(number)
    assert node.trim() > 0
    node.close()
    assert log_replay.run(log_replay.LogReplaySettings(source=str(tmp_path))) == 0
    out, err = capsys.readouterr()
    assert out.count("the same bytes") == 2 and "differs" not in out
    said = [f"round {number + 1}: its records are gone by retention" in err for number in range(4)]
    assert said == [True, True, False, False]


def test_a_kill_at_any_statement_of_a_trim_finds_the_log_before_it_or_after(tmp_path: Path) -> None:
    """The process kills itself at its n-th statement, for every n; the parent reads what it left."""
    kills, ready = 0, tmp_path / "ready"
    ready.mkdir()
    node = Node(ready)
    for number in range(4):
        node.answer(number, reports=4)
        node.seal(number)
    node.close()
    for at in range(1, 100):
        folder = tmp_path / str(at)
        shutil.copytree(ready, folder)
        child = os.fork()
        if child == 0:
            _trim_and_die(folder, at)
        _, status = os.waitpid(child, 0)
        kills += (killed := os.WIFSIGNALED(status))
        assert killed or os.waitstatus_to_exitcode(status) == 0
        node = Node(folder, keep_s=2.0 * DAY)
        begins, names = node.log.trimmed()
        assert names in (frozenset(), frozenset(name_of((HEALTH.digest, number)) for number in (0, 1)))
        assert node.rounds() == ({2, 3} if names else {0, 1, 2, 3})
        assert begins == ({0: node.log.begin(0), 1: node.log.begin(1)} if names else {})
        node.now_s = HEALTH.round_end_s(3) + HEALTH.lateness_s + 60.0
        assert (node.trim() == 0) == bool(names) and node.rounds() == {2, 3}
        counted = [
            json.loads(node.archive.get((HEALTH.digest, number)) or b"")["devices"] for number in range(4)
        ]
        assert counted == [4] * 4
        node.close()
        if not killed:
            break
    assert kills > 8


def _trim_and_die(folder: Path, at: int) -> None:
    try:
        node = Node(folder, keep_s=2.0 * DAY)
        node.now_s = HEALTH.round_end_s(3) + HEALTH.lateness_s + 60.0
        left = at

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

        node.log._writer.set_trace_callback(count)
        node.trim()
        os._exit(0)
    finally:
        os._exit(1)


def test_a_bounded_log_refuses_reports_and_lets_seals_through(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.sqlite", 1) as log:
        bounded = BoundedLog(log, log.size_bytes + 40_000)
        taken = 0
        with pytest.raises(LogError, match=r"must stay below log_max_bytes = \d+, got \d+"):
            while True:
                bounded.append({0: [bytes(1000)]})
                taken += 1
        assert 30 < taken < 45 and bounded.end(0) == taken
        assert bounded.publish_survey(b"key", b"survey") and log.append({0: [b"seal"]}) == {0: taken + 1}
        log.trim({0: Cut(taken)}, [b"name"])
        assert bounded.append({0: [b"more"]}) == {0: taken + 2} and bounded.begin(0) == taken
        assert b"\0" * 900 in (tmp_path / "log.sqlite").read_bytes()
        for before in (taken - 1, taken + 4):
            with pytest.raises(LogError, match="a cut must lie within the records that are there"):
                log.trim({0: Cut(before)}, [])


def test_records_of_a_released_round_wait_for_the_list_of_its_answers(tmp_path: Path) -> None:
    node, waiting = Node(tmp_path, keep_s=1.0), {(HEALTH.digest, 0)}
    with closing(node):
        node.answer(0)
        node.seal(0)
        node.now_s += DAY
        node.retention._is_waiting = waiting.__contains__
        assert node.trim() == 0 and node.rounds() == {0}
        waiting.clear()
        assert node.trim() > 0 and node.rounds() == set()
