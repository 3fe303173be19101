"""A topic that somebody gave more partitions (`kafka-topics --alter`): its reports stay where they belong.

Reports are placed by their id modulo P. With another P copies would meet in other partitions and be counted
twice, and partitions without the surveys' records would count everything as unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import confluent_kafka.admin as kafka_admin
import numpy as np
import pytest
from confluent_kafka import Producer
from counting_logs import report_id
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS
from worker_harness import Workers

from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire.record import SurveyRecord, encode_record
from hubbub.wire.report import Report
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_collector.admission import Verdict
from hubbub_collector.batching.batcher import Batch
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import ensure_topic, make_topic
from hubbub_deploy.commands.replay import log_count
from hubbub_deploy.errors import DeployError
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.consumer import consumer, end_offsets
from hubbub_topic.kafka.growing_log import GrowingLog
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic, metadata_topic

pytestmark = pytest.mark.integration

HEALTH = Survey.parse(LABELS)
REPORTS, PATIENCE_S = 1_000, 120.0


def alter(kafka: str, topic: str, partitions: int) -> None:
    """What `kafka-topics --alter --partitions` does; returns when the broker says so itself."""
    admin = kafka_admin.AdminClient({"bootstrap.servers": kafka})
    for future in admin.create_partitions([kafka_admin.NewPartitions(topic, partitions)]).values():
        future.result(20)
    deadline = monotonic() + PATIENCE_S
    while len(admin.list_topics(topic, timeout=10).topics[topic].partitions) != partitions:
        assert monotonic() < deadline
        sleep(0.05)


def collect(log: GrowingLog, number: int = 0, start: int = 0) -> None:
    """What a gateway makes of REPORTS uploads of a round."""
    key = (HEALTH.digest, number)

    def home(_: tuple[bytes, int] | None) -> range:
        return log.partition_map.partitions_at(HEALTH.round_start_s(number))

    batch = Batch(log.partitions, home)
    reports = [Report(*key, report_id(i), i % 5) for i in range(start, start + REPORTS)]
    batch.add(reports, [Verdict("accepted", key)] * REPORTS, float(HEALTH.round_start_s(number)))
    log.append({p: [encode_record(record)] for p, record in batch.records(seeded(start)).items()})


def published_surveys(log: GrowingLog) -> GrowingLog:
    log.publish_survey(HEALTH.digest, encode_record(SurveyRecord(HEALTH.canonical)))
    return log


@pytest.fixture
def place() -> Iterator[tuple[str, str]]:
    """A broker, and a topic of two partitions."""
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    create_topic(kafka, topic, partitions=2)
    yield kafka, topic


def counted(kafka: str, topic: str, number: int = 0) -> tuple[int, int, int]:
    """Accepted, duplicate and unknown reports of a recount of the whole log."""
    states, _ = log_count.counted(f"kafka://{kafka}/{topic}")
    key = (HEALTH.digest, number)
    rounds = [state.rounds[key] for state in states.values() if key in state.rounds]
    return (
        sum(known.verdicts.accepted for known in rounds),
        sum(known.verdicts.duplicate for known in rounds),
        sum(state.unknown for state in states.values()),
    )


def test_a_restarted_collector_places_reports_as_those_before_it(
    place: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    kafka, topic = place
    with published_surveys(GrowingLog(kafka, topic, identity_s=0.0)) as one:
        collect(one)
        alter(kafka, topic, 4)
        # One that runs goes on, and another that starts now, as after a restart, does the same.
        with caplog.at_level(logging.WARNING, "hubbub.collector"):
            collect(one)
            with published_surveys(GrowingLog(kafka, topic, identity_s=0.0)) as other:
                assert (other.partitions, other.partition_map) == (2, one.partition_map)
                for _ in range(3):
                    collect(other)
                    collect(one)
                collect(other, start=REPORTS)
        warned = [record.getMessage() for record in caplog.records if topic in record.getMessage()]
        # Two processes would say it once each.
        assert len(warned) == 2
        assert all("has 4 partitions, and 2 of them are used" in said for said in warned)
        assert "`hubbub add-partitions` is the way to more" in warned[0]
    assert counted(kafka, topic) == (2 * REPORTS, 7 * REPORTS, 0)


@needs_redis
def test_the_way_on_after_an_alter_counts_all_reports(place: tuple[str, str], tmp_path: Path) -> None:
    kafka, topic = place
    (tmp_path / "redis").mkdir()
    with (
        running(tmp_path / "redis") as redis,
        published_surveys(GrowingLog(kafka, topic, layout_s=0.05)) as one,
        Workers(tmp_path, kafka, topic, redis.url) as workers,
    ):
        collect(one)
        alter(kafka, topic, 4)
        # Somebody's own producer, or a collector of an older release: nobody counts what lies there.
        stranger = Producer({"bootstrap.servers": kafka})
        stranger.produce(topic, value=b"not ours", partition=3)
        assert stranger.flush(20) == 0
        workers.start("faust")
        before = RedisStore.connect(
            redis.url, log_identity=one.identity, partitions=2, partition_map=one.partition_map
        )
        deadline = monotonic() + PATIENCE_S
        while not before.offset(0):
            assert monotonic() < deadline, workers.said()
            sleep(0.05)
        before.close()
        collect(one, start=REPORTS)
        create_topic(kafka, f"{topic}.2", partitions=3)
        with KafkaLog(kafka, f"{topic}.2", 3) as more:
            one.grow(more, from_s=HEALTH.round_start_s(1))
        # The topic that the log grew by may be altered too.
        alter(kafka, f"{topic}.2", 5)
        with published_surveys(GrowingLog(kafka, topic)) as other:
            assert [span.partitions for span in other.partition_map.periods] == [2, 3]
            collect(other, number=1)
            collect(one, number=1)
            store = RedisStore.connect(
                redis.url, log_identity=other.identity, partitions=5, partition_map=other.partition_map
            )
            deadline = monotonic() + PATIENCE_S
            while [store.offset(p) for p in range(5)] != [other.end(p) for p in range(5)]:
                workers.supervise()
                assert monotonic() < deadline, workers.said()
                sleep(0.05)
            states = [store.load(partition) for partition in range(5)]
            store.close()
        assert "PartitionMapGrownError" in workers.said()
        assert "KeyError" not in workers.said()
    truth = np.bincount([i % 5 for i in range(REPORTS)])
    for number, n in ((0, 2), (1, 1)):
        key = (HEALTH.digest, number)
        rounds = [state.rounds[key] for state in states if key in state.rounds]
        np.testing.assert_array_equal(sum(known.counts for known in rounds), n * truth)
    assert sum(state.unknown + state.dead for state in states) == 0
    assert counted(kafka, topic) == (2 * REPORTS, 0, 0)
    assert counted(kafka, topic, 1) == (REPORTS, REPORTS, 0)


def test_a_topic_that_is_made_notes_its_partitions(tmp_path: Path) -> None:
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    settings = ClusterSettings(kafka=kafka, redis="redis://nowhere:1", topic=topic)
    make_topic(settings, partitions=2, replication=1)
    # Before anything was started.
    alter(kafka, topic, 4)
    with GrowingLog(kafka, topic) as log:
        assert log.partitions == 2
    assert ensure_topic(settings, partitions=2, replication=1).partitions == 2
    with pytest.raises(DeployError, match="must have 4 partitions, got 2"):
        ensure_topic(settings, partitions=4, replication=1)


def test_a_note_of_more_partitions_than_there_are_is_refused(place: tuple[str, str]) -> None:
    kafka, topic = place
    with GrowingLog(kafka, topic) as log:
        span = log.partition_map.periods[0]
        log._logs[0].note(
            b"layout",
            b'[{"from_s": 0, "topic": "%s", "partitions": 3, "identity": "%s"}]'
            % (topic.encode(), span.identity.encode()),
        )
    with pytest.raises(LogError, match="must have 3 partitions, got 2"):
        GrowingLog(kafka, topic)


def test_who_only_reads_writes_no_note(place: tuple[str, str]) -> None:
    kafka, topic = place
    asker = consumer(kafka)
    log_count.counted(f"kafka://{kafka}/{topic}")
    assert end_offsets(asker, metadata_topic(topic), 0) == (0, 0)
    with GrowingLog(kafka, topic):
        pass
    with GrowingLog(kafka, topic):
        assert end_offsets(asker, metadata_topic(topic), 0) == (0, 1)
    asker.close()
