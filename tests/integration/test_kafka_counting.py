"""Counted once, whatever is killed: real Kafka, real Redis, workers in processes of their own."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Literal

import numpy as np
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from counting_logs import MINUTE
from kafka_harness import bootstrap_or_skip, mortal_broker, new_topic_name
from numpy.typing import NDArray
from redis_harness import RedisServer, needs_redis, running
from surveys import VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, Segment, SurveyRecord, decode_record, encode_record
from hubbub_aggregator.errors import ArchiveError
from hubbub_aggregator.release.round_release import sum_counts
from hubbub_aggregator.runners.publisher import Publisher
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.cluster import skip_lost
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.errors import DeployError
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = [pytest.mark.integration, needs_redis]

VISITED = Survey.parse(VISITS)
KEY = (VISITED.digest, 0)
DUE_S = VISITED.round_end_s(0) + VISITED.lateness_s + 30.0
PARTITIONS, REPORTS, TIMES, RECORD = 4, 40_000, 3, 50
PROCESS = Path(__file__).parents[1] / "harness" / "aggregator_process.py"
PATIENCE_S = 120.0

Kind = Literal["faust", "plain"]


class Crowd:
    """REPORTS reports of seeded devices, each sent TIMES times, in records of RECORD, in random order."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        ids = rng.bytes(16 * REPORTS)
        symbols = rng.integers(0, VISITED.channel.outputs, REPORTS).astype(np.uint8)
        self.truth = np.bincount(symbols, minlength=VISITED.channel.outputs)
        column = np.frombuffer(ids, dtype=np.dtype((np.void, 16)))
        partition = np.frombuffer(ids, dtype=">u8").reshape(-1, 2)[:, 1] % PARTITIONS
        self.records: list[tuple[int, bytes]] = []
        for number in range(PARTITIONS):
            mine = np.tile(np.flatnonzero(partition == number), TIMES)
            for part in np.array_split(rng.permutation(mine), len(mine) // RECORD):
                n = len(part)
                segment = Segment(
                    VISITED.digest, 0, column[part].tobytes(), symbols[part], n + 1, {"late": 1}
                )
                self.records.append((number, encode_record(ReportsRecord(MINUTE, (segment,), 0))))
        self.late = len(self.records)
        random.Random(seed).shuffle(self.records)  # noqa: S311 - the order of a test


class Setting:
    """A topic, a Redis, workers that are started again when they end, and who watches them."""

    def __init__(self, bootstrap: str, redis: RedisServer, folder: Path) -> None:
        self.bootstrap, self.redis, self.folder, self.topic = bootstrap, redis, folder, new_topic_name()
        create_topic(bootstrap, self.topic, partitions=PARTITIONS)
        self.log = KafkaLog(bootstrap, self.topic, PARTITIONS)
        self.log.publish_survey(VISITED.digest, encode_record(SurveyRecord(VISITED.canonical)))
        self.workers: list[tuple[Kind, subprocess.Popen[bytes]]] = []
        self.ended: list[int] = []
        self.counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def store(self) -> RedisStore:
        return RedisStore.connect(self.redis.url, log_identity=self.log.identity, partitions=PARTITIONS)

    def start(self, kind: Kind) -> None:
        command = [sys.executable, str(PROCESS), kind, self.bootstrap, self.topic, self.redis.url]
        with (self.folder / "workers.txt").open("ab") as log:
            self.workers.append((kind, subprocess.Popen(command, stdout=log, stderr=log)))

    def kill(self, place: int) -> None:
        kind, worker = self.workers.pop(place)
        worker.kill()
        worker.wait()
        self.start(kind)

    def supervise(self) -> None:
        """Starts what has ended again, as a supervisor would."""
        for kind, worker in [pair for pair in self.workers if pair[1].poll() is not None]:
            self.workers.remove((kind, worker))
            self.ended.append(worker.returncode)
            self.start(kind)

    def send(self, records: list[tuple[int, bytes]]) -> None:
        for start in range(0, len(records), 200):
            batches: dict[int, list[bytes]] = {}
            for partition, record in records[start : start + 200]:
                batches.setdefault(partition, []).append(record)
            self.log.append(batches)

    def applied(self) -> int:
        store = self.store()
        try:
            return sum(store.offset(partition) for partition in range(PARTITIONS))
        finally:
            store.close()

    def sent(self) -> int:
        return sum(self.log.end(partition) for partition in range(PARTITIONS))

    def wait_for(self, applied: int) -> None:
        deadline, store = monotonic() + PATIENCE_S, self.store()
        try:
            while sum(store.offset(partition) for partition in range(PARTITIONS)) < applied:
                self.supervise()
                assert monotonic() < deadline, (self.folder / "workers.txt").read_text()[-4000:]
                sleep(0.002)
        finally:
            store.close()

    def release(self, archive: SqliteArchive) -> bytes:
        """Seals the round and waits until it is released."""
        view, deadline = LiveView(), monotonic() + PATIENCE_S
        store = self.store()
        watcher = Publisher(self.log, store, archive=archive, view=view, clock=lambda: DUE_S)
        while (data := archive.get(KEY)) is None:
            self.supervise()
            assert monotonic() < deadline, (self.folder / "workers.txt").read_text()[-4000:]
            watcher.step()
            sleep(0.05)
        # What was released; the store has let go of it by now.
        rounds = [state.rounds[KEY] for state in watcher.states.values()]
        if not any(known.is_archived for known in rounds):
            self.counts = sum_counts(known.counts for known in rounds)
        store.close()
        return data

    def close(self) -> None:
        for _, worker in self.workers:
            worker.kill()
            worker.wait()
        self.log.close()


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    bootstrap = bootstrap_or_skip()
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        setting = Setting(bootstrap, redis, tmp_path)
        try:
            yield setting
        finally:
            setting.close()


@pytest.fixture
def archive() -> Iterator[Callable[[], SqliteArchive]]:
    made: list[SqliteArchive] = []

    def archive() -> SqliteArchive:
        made.append(SqliteArchive(":memory:"))
        return made[-1]

    yield archive
    for one in made:
        one.close()


def check(setting: Setting, crowd: Crowd, released: bytes) -> None:
    """Every counter against the truth."""
    store = setting.store()
    states = [store.load(partition) for partition in range(PARTITIONS)]
    store.close()
    np.testing.assert_array_equal(setting.counts, crowd.truth)
    assert sum(state.past.accepted for state in states) == REPORTS
    document = json.loads(released)
    assert document["devices"] == REPORTS
    assert document["accounting"] == {
        "attempts": REPORTS * TIMES + crowd.late,
        "accepted": REPORTS,
        "duplicate": REPORTS * (TIMES - 1),
        "early": 0,
        "late": crowd.late,
        "invalid": 0,
        "over_quota": 0,
    }
    assert all(state.dead == state.unknown == 0 for state in states)


def test_workers_that_are_killed_count_every_report_once(
    setting: Setting, archive: Callable[[], SqliteArchive]
) -> None:
    crowd, dice = Crowd(1), random.Random(1)  # noqa: S311 - when a test kills
    for _ in range(2):
        setting.start("faust")
    parts = np.array_split(np.arange(len(crowd.records)), 6)
    in_the_midst = 0
    for part in parts[:5]:
        before = setting.sent()
        setting.send([crowd.records[place] for place in part])
        # Somewhere within this part, which would be finished a moment later.
        setting.wait_for(before + dice.randrange(1, len(part) // 2))
        setting.kill(0)
        in_the_midst += setting.applied() < setting.sent()
    assert in_the_midst >= 2
    setting.send([crowd.records[place] for place in parts[5]])
    setting.wait_for(setting.sent())
    check(setting, crowd, setting.release(archive()))


def test_workers_that_come_and_go_count_every_report_once(
    setting: Setting, archive: Callable[[], SqliteArchive]
) -> None:
    crowd, left = Crowd(6), []
    setting.start("faust")
    for part in np.array_split(np.arange(len(crowd.records)), 5):
        before = setting.sent()
        setting.start("faust")
        setting.send([crowd.records[place] for place in part])
        setting.wait_for(before + len(part) // 3)
        _, worker = setting.workers.pop(0)
        worker.terminate()
        left.append(worker)
    setting.wait_for(setting.sent())
    assert [worker.wait(120) for worker in left] == [0] * 5
    assert setting.ended == []
    check(setting, crowd, setting.release(archive()))


def test_broker_that_is_killed_and_returns_loses_nothing(
    tmp_path: Path, archive: Callable[[], SqliteArchive]
) -> None:
    bootstrap_or_skip()
    crowd, broker = Crowd(7), mortal_broker()
    half = len(crowd.records) // 2
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        setting = Setting(broker.bootstrap, redis, tmp_path)
        try:
            for _ in range(2):
                setting.start("faust")
            setting.send(crowd.records[:half])
            setting.wait_for(half // 2)
            broker.kill_node()
            broker.stop()
            broker.start()
            setting.send(crowd.records[half:])
            setting.wait_for(setting.sent())
            check(setting, crowd, setting.release(archive()))
        finally:
            setting.close()


def test_redis_that_comes_back_older_loses_nothing_and_changes_no_release(
    setting: Setting, archive: Callable[[], SqliteArchive]
) -> None:
    crowd = Crowd(2)
    third = len(crowd.records) // 3
    for _ in range(2):
        setting.start("faust")
    setting.send(crowd.records[:third])
    setting.wait_for(third // 2)
    store = setting.store()
    store._redis.save()
    store.close()
    setting.send(crowd.records[third:])
    setting.wait_for(setting.sent())
    kept = archive()
    released = setting.release(kept)
    check(setting, crowd, released)
    setting.redis.kill()
    setting.redis.start()
    assert setting.applied() < setting.sent()
    # The workers learn of it by a conflict, or by not reaching Redis, and start again from what it knows.
    setting.send([crowd.records[0]])
    setting.wait_for(setting.sent())
    assert setting.release(archive()) == released
    assert setting.release(kept) == released
    # An archive without it comes too late: the store has let go of the counts.
    with pytest.raises(ArchiveError):
        setting.release(archive())
    check_after_seal(setting)


def check_after_seal(setting: Setting) -> None:
    """What was sent after the seal is late, and in no release."""
    store = setting.store()
    states = [store.load(partition) for partition in range(PARTITIONS)]
    store.close()
    assert sum(state.past.late + state.rounds[KEY].after_seal.late for state in states) > 0
    assert sum(state.past.accepted for state in states) == REPORTS
    assert all(state.rounds[KEY].sealed_at is not None for state in states)


def test_plain_worker_and_faust_release_the_same_bytes(
    setting: Setting, archive: Callable[[], SqliteArchive]
) -> None:
    crowd = Crowd(3)
    setting.start("plain")
    setting.send(crowd.records)
    setting.wait_for(len(crowd.records) // 2)
    setting.kill(0)
    setting.wait_for(setting.sent())
    plain = setting.release(archive())
    check(setting, crowd, plain)
    _, worker = setting.workers.pop()
    worker.terminate()
    assert worker.wait(120) == 0
    store = setting.store()
    store._redis.flushall()
    store.close()
    setting.start("faust")
    setting.wait_for(setting.sent())
    assert setting.release(archive()) == plain
    _, worker = setting.workers.pop()
    worker.terminate()
    assert worker.wait(120) == 0


@pytest.mark.parametrize("kind", ["faust", "plain"])
def test_worker_whose_records_are_gone_ends_and_says_so(setting: Setting, kind: Kind) -> None:
    crowd = Crowd(4)
    setting.send(crowd.records[:100])
    admin = AdminClient({"bootstrap.servers": setting.bootstrap})
    for future in admin.delete_records([TopicPartition(setting.topic, 1, 5)]).values():
        future.result(10)
    setting.start(kind)
    _, worker = setting.workers[0]
    assert worker.wait(PATIENCE_S) == 1
    said = (setting.folder / "workers.txt").read_text()
    assert "LostError: partition 1: offset 0 must come next, and the log begins at 5" in said
    store = setting.store()
    assert store.offset(1) == 0
    store.close()


def test_crash_loop_ends_when_the_operator_gives_up_what_is_gone_and_the_release_says_so(
    setting: Setting, archive: Callable[[], SqliteArchive]
) -> None:
    crowd = Crowd(8)
    setting.send(crowd.records[:400])
    admin = AdminClient({"bootstrap.servers": setting.bootstrap})
    for future in admin.delete_records([TopicPartition(setting.topic, 1, 5)]).values():
        future.result(10)
    settings = ClusterSettings(kafka=setting.bootstrap, redis=setting.redis.url, topic=setting.topic)
    with pytest.raises(DeployError, match="nothing is lost"):
        skip_lost(settings, 0, 3)
    for offset in (4, 6, 10**6):
        with pytest.raises(DeployError, match="must be 5, the first that is there from 0 on"):
            skip_lost(settings, 1, offset)
    # Its supervisor starts it again and again, and goes on doing so while the operator speaks.
    setting.start("faust")
    deadline = monotonic() + PATIENCE_S
    while len(setting.ended) < 2:
        setting.supervise()
        assert monotonic() < deadline
        sleep(0.05)
    assert setting.applied() == 0
    assert "partition 1: offsets 0 to 4 are given up" in skip_lost(settings, 1, 5)
    with pytest.raises(DeployError, match="nothing is lost"):
        skip_lost(settings, 1, 5)
    setting.wait_for(setting.sent())
    assert set(setting.ended) == {1}
    said = (setting.folder / "workers.txt").read_text()
    assert said.count("LostError: partition 1: offset 0 must come next") == len(setting.ended)
    document = json.loads(setting.release(archive()))
    assert document["lost"] == [{"partition": 1, "from": 0, "until": 5}]
    # The survey's record was among them; its reports are known all the same. Every attempt has its verdict.
    kept = [record for partition, record in crowd.records[:400] if partition != 1]
    kept += [record for partition, record in crowd.records[:400] if partition == 1][4:]
    tally = document["accounting"]
    assert tally["late"] == 396
    assert tally["attempts"] == sum(decode_record(record).segments[0].attempts for record in kept)
    assert tally["attempts"] == sum(tally[verdict] for verdict in tally if verdict != "attempts")
    store = setting.store()
    assert [store.load(partition).unknown for partition in range(PARTITIONS)] == [0] * 4
    store.close()


def test_worker_whose_topic_was_cut_ends_and_says_so(setting: Setting) -> None:
    crowd = Crowd(5)
    setting.start("faust")
    setting.send(crowd.records[:100])
    setting.wait_for(setting.sent())
    store = setting.store()
    store._redis.hset("{hubbub:1}:head", "offset", setting.log.end(1) + 1)
    store.close()
    setting.kill(0)
    _, worker = setting.workers[0]
    assert worker.wait(PATIENCE_S) == 1
    assert "AheadError: partition 1: offset must be at most" in (setting.folder / "workers.txt").read_text()
    settings = ClusterSettings(kafka=setting.bootstrap, redis=setting.redis.url, topic=setting.topic)
    with pytest.raises(DeployError, match="it was cut, and only another namespace counts"):
        skip_lost(settings, 1, setting.log.end(1))
