"""More partitions while reports flow: every report is counted once, and a round stays where it began."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace

import numpy as np
import pytest
from counting_logs import report_id
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS
from worker_harness import Workers

from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire.record import NO_ROUND, SurveyRecord, encode_record
from hubbub.wire.report import Report
from hubbub_aggregator.errors import PartitionMapGrownError
from hubbub_aggregator.runners.publisher import Publisher
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.web.view import LiveView
from hubbub_collector.admission import Verdict
from hubbub_collector.batching.batcher import Batch
from hubbub_deploy import cluster_topics
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import add_partitions
from hubbub_deploy.commands.replay import log_count, log_replay
from hubbub_deploy.errors import DeployError
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.growing_log import MIN_LEAD_S, GrowingLog
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = [pytest.mark.integration, needs_redis]

HEALTH = Survey.parse(LABELS)
REPORTS, PATIENCE_S = 4_000, 120.0


def reports(number: int) -> list[Report]:
    return [Report(HEALTH.digest, number, report_id(10**6 * number + i), (3 * i) % 5) for i in range(REPORTS)]


def collect(log: GrowingLog, some: list[Report]) -> None:
    """What a gateway makes of uploads."""

    def home(key: tuple[bytes, int] | None) -> range:
        assert key is not None
        return log.partition_map.partitions_at(HEALTH.round_start_s(key[1]))

    for start in range(0, len(some), 100):
        part = some[start : start + 100]
        batch = Batch(log.partitions, home)
        verdicts = [Verdict("accepted", (one.digest, one.round)) for one in part]
        batch.add(part, verdicts, float(HEALTH.round_start_s(part[0].round)))
        log.append({p: [encode_record(record)] for p, record in batch.records(seeded(start)).items()})


@pytest.fixture
def logs() -> Iterator[list[GrowingLog]]:
    """Two collectors on one topic of two partitions."""
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    create_topic(kafka, topic, partitions=2)
    logs = [GrowingLog(kafka, topic, layout_s=0.05) for _ in range(2)]
    for log in logs:
        log.publish_survey(HEALTH.digest, encode_record(SurveyRecord(HEALTH.canonical)))
    yield logs
    for log in logs:
        log.close()


def test_rounds_in_flight_over_growth_are_counted_once(logs: list[GrowingLog], tmp_path: Path) -> None:
    kafka, topic = bootstrap_or_skip(), logs[0].partition_map.periods[0].topic
    one, other = logs
    early, later = reports(0), reports(1)
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis, Workers(tmp_path, kafka, topic, redis.url) as workers:
        workers.start("faust")
        workers.start("faust")
        collect(one, early[: REPORTS // 2])
        before = RedisStore.connect(redis.url, log_identity=one.identity, partitions=2)
        deadline = monotonic() + PATIENCE_S
        while not before.offset(0):
            assert monotonic() < deadline, workers.said()
            sleep(0.05)
        before.close()
        create_topic(kafka, f"{topic}.2", partitions=4)
        with KafkaLog(kafka, f"{topic}.2", 4) as more:
            one.grow(more, from_s=HEALTH.round_start_s(1))
        assert (one.partitions, other.partition_map.partitions) == (6, 2)
        # The other collector learns of it when it writes; the first round goes on where it began.
        collect(other, early[REPORTS // 3 :][::-1])
        assert other.partitions == 6
        collect(one, later)
        collect(other, later[::-1])
        collect(one, early)
        # Both workers end and are started again, for which `hubbub add_partitions` leaves them time.
        deadline = monotonic() + PATIENCE_S
        while len(workers.ended) < 2:
            workers.supervise()
            assert monotonic() < deadline, workers.said()
            sleep(0.05)
        # Somebody who never learnt of it: not counted, and not in silence.
        stale = Batch(2)
        stale.add([later[0]], [Verdict("accepted", (HEALTH.digest, 1))], float(HEALTH.round_start_s(1)))
        one.append({p: [encode_record(record)] for p, record in stale.records(seeded(1)).items()})

        def store() -> RedisStore:
            return RedisStore.connect(
                redis.url, log_identity=one.identity, partitions=6, partition_map=one.partition_map
            )

        archive = SqliteArchive(":memory:")
        now_s = HEALTH.round_end_s(1) + HEALTH.lateness_s + 60.0
        counts = store()
        watcher = Publisher(one, counts, archive=archive, view=LiveView(), clock=lambda: now_s)
        deadline = monotonic() + PATIENCE_S
        while sum(counts.offset(p) for p in range(6)) < sum(one.end(p) for p in range(6)):
            workers.supervise()
            assert monotonic() < deadline, workers.said()
            sleep(0.05)
        counted = [counts.load(partition) for partition in range(6)]
        while len(archive.rounds()) < 2:
            workers.supervise()
            watcher.step()
            assert monotonic() < deadline, workers.said()
            sleep(0.05)
        released = [json.loads(archive.get((HEALTH.digest, number)) or b"") for number in range(2)]
        states = [counts.load(partition) for partition in range(6)]
        counts.close()
        # Replay finds every topic by the first one's name.
        read, layout = log_count.counted(f"kafka://{kafka}/{topic}")
        again = log_replay.releases(read, {HEALTH.digest: HEALTH}, layout)
        assert again == {key: archive.get(key) for key in archive.rounds()}
        assert len(again) == 2
        archive.close()
        assert "PartitionMapGrownError: the log has 6 partitions, this worker knew 2" in workers.said()
    assert [sorted(document["cut"]) for document in released] == [["0", "1"], ["2", "3", "4", "5"]]
    truth = np.bincount([one.symbol for one in early], minlength=5)
    for number in range(2):
        np.testing.assert_array_equal(
            sum(
                state.rounds[HEALTH.digest, number].counts
                for state in counted
                if (HEALTH.digest, number) in state.rounds
            ),
            truth,
        )
        assert released[number]["devices"] == REPORTS
    assert released[0]["accounting"]["duplicate"] == REPORTS // 2 + REPORTS - REPORTS // 3
    assert released[1]["accounting"]["duplicate"] == REPORTS
    assert (
        sum(
            s.rounds[HEALTH.digest, NO_ROUND].verdicts.invalid
            for s in states[:2]
            if (HEALTH.digest, NO_ROUND) in s.rounds
        )
        == 1
    )
    assert [state.unknown for state in states] == [0] * 6


@pytest.mark.parametrize(("wrong_s", "is_taken"), [(-86_400.0, False), (365 * 86_400.0, False), (-3.0, True)])
def test_growth_begins_at_no_moment_of_a_clock_that_is_not_redis(
    logs: list[GrowingLog], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong_s: float, is_taken: bool
) -> None:
    kafka, topic = bootstrap_or_skip(), logs[0].partition_map.periods[0].topic
    now_s = time.time()
    monkeypatch.setattr(cluster_topics, "time", SimpleNamespace(time=lambda: time.time() + wrong_s))
    with running(tmp_path) as redis:
        settings = ClusterSettings(kafka=kafka, redis=redis.url, topic=topic)
        if not is_taken:
            with pytest.raises(DeployError, match="clocks of this machine and of the store must agree"):
                add_partitions(settings, partitions=3, replication=1)
            assert len(logs[0].partition_map.periods) == 1
            return
        with pytest.raises(DeployError, match=r"--at must be .* or later"):
            add_partitions(settings, partitions=3, replication=1, at=datetime.fromtimestamp(now_s, UTC))
        layout = add_partitions(settings, partitions=3, replication=1)
    assert layout.periods[1].from_s >= now_s + HEALTH.skew_s + MIN_LEAD_S


def test_process_that_knows_less_than_the_log_ends_or_refuses(logs: list[GrowingLog], tmp_path: Path) -> None:
    kafka, topic = bootstrap_or_skip(), logs[0].partition_map.periods[0].topic
    with running(tmp_path) as redis:
        settings = ClusterSettings(kafka=kafka, redis=redis.url, topic=topic)
        with pytest.raises(DeployError, match=r"--at must be .* or later"):
            add_partitions(settings, partitions=3, replication=1, at=datetime.now(UTC))
        store = RedisStore.connect(redis.url, log_identity=logs[0].identity, partitions=2)
        archive = SqliteArchive(":memory:")
        watcher = Publisher(logs[0], store, archive=archive, view=LiveView())
        layout = add_partitions(settings, partitions=3, replication=1)
        assert [span.partitions for span in layout.periods] == [2, 3]
        sleep(0.1)
        logs[0].end(0)
        with pytest.raises(PartitionMapGrownError, match="has 5 partitions, 2 are watched"):
            watcher.step()
        archive.close()
        store.close()
        # The survey is in the new topic before anybody writes there.
        assert [len(logs[0].read(partition, 0, 10)) for partition in range(5)] == [1] * 5
        assert logs[1].publish_survey(HEALTH.digest, b"") is False
        # Who opens it later finds all of it; a topic of that name that was made anew is another.
        with GrowingLog(kafka, topic) as late:
            assert late.partition_map == layout
        logs[0]._logs[0].note(b"layout", b'[{"from_s": 0, "topic": "x", "partitions": 1, "identity": "y"}]')
        sleep(0.1)
        for use in (lambda: logs[1].append({}), lambda: GrowingLog(kafka, topic)):
            with pytest.raises(LogError, match="must continue"):
                use()
