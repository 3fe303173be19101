"""A doubt ends a worker; who starts it again finds it where the store says; an operator's word heals it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest
from confluent_kafka import Producer
from counting_logs import announcement, batch, report_id, segment
from counting_logs import counted as counted_in
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS
from worker_harness import Workers

from hubbub.survey.survey import Survey
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_deploy.cluster import skip_lost
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.commands.replay.log_count import counted as replayed_log
from hubbub_topic.kafka.log import KafkaLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = [pytest.mark.integration, needs_redis]

HEALTH = Survey.parse(LABELS)
PATIENCE_S = 120.0


def records(start: int, n: int) -> list[bytes]:
    return [batch(segment(HEALTH, 0, [(report_id(i), i % 5)])) for i in range(start, start + n)]


def write_in_a_transaction(kafka: str, topic: str, record: bytes) -> None:
    """What no collector does: the transaction's end takes an offset that no reader is ever given."""
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=record, partition=0)
    producer.commit_transaction(30)


def test_worker_ends_at_a_gap_resumes_from_the_store_and_drains_when_asked_to(tmp_path: Path) -> None:
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    create_topic(kafka, topic, partitions=1)
    (tmp_path / "redis").mkdir()
    with (
        running(tmp_path / "redis") as redis,
        KafkaLog(kafka, topic) as log,
        Workers(tmp_path, kafka, topic, redis.url, "1.0") as workers,
    ):
        store = RedisStore.connect(redis.url, log_identity=log.identity, partitions=1)

        def wait(until: Callable[[], bool]) -> None:
            deadline = monotonic() + PATIENCE_S
            while not until():
                workers.supervise()
                assert monotonic() < deadline, workers.said()
                sleep(0.05)

        log.append({0: [announcement(HEALTH), *records(0, 20)]})
        (foreign,) = records(20, 1)
        write_in_a_transaction(kafka, topic, foreign)
        wait(lambda: log.end(0) == 23)  # the mark of its end, the hole, comes when the broker likes
        log.append({0: records(21, 20)})
        assert log.end(0) == 43
        workers.start("faust")
        wait(lambda: len(workers.ended) == 1)
        assert "GapError: partition 0: offset 22 must come next" in workers.said()
        assert store.offset(0) == 22
        # It has been started again by now, and would end again; it may run while the operator speaks.
        settings = ClusterSettings(kafka=kafka, redis=redis.url, topic=topic)
        assert "offsets 22 to 22 are given up" in skip_lost(settings, 0, 23)
        wait(lambda: store.offset(0) == 43)
        assert set(workers.ended) == {1}

        ended = len(workers.ended)
        log.append({0: records(41, 200)})
        wait(lambda: store.offset(0) > 43)
        _, worker = workers.running.pop()
        worker.terminate()
        assert worker.wait(120) == 0
        drained = store.load(0)  # which refuses what contradicts itself
        assert drained.offset > 43
        workers.start("faust")
        wait(lambda: store.offset(0) == 243)
        state = store.load(0)
        store.close()
    assert len(workers.ended) == ended
    tally = state.rounds[HEALTH.digest, 0].verdicts
    assert (tally.attempts, tally.accepted, tally.duplicate) == (241, 241, 0)
    assert [(lost.first, lost.end) for lost in state.lost] == [(22, 23)]


def test_load_that_a_rebalance_overtakes_holds_nobody_up_and_ends_nobody(tmp_path: Path) -> None:
    """The first worker's load of everything hangs; a second one joins, and both must count their half."""
    kafka, topic, gate = bootstrap_or_skip(), new_topic_name(), tmp_path / "gate"
    create_topic(kafka, topic, partitions=2)
    for name in ("redis", "slow", "quick"):
        (tmp_path / name).mkdir()
    with (
        running(tmp_path / "redis") as redis,
        KafkaLog(kafka, topic, 2) as log,
        Workers(tmp_path / "slow", kafka, topic, redis.url, "10.0", str(gate)) as slow,
        Workers(tmp_path / "quick", kafka, topic, redis.url) as quick,
    ):
        store = RedisStore.connect(redis.url, log_identity=log.identity, partitions=2)

        def wait(until: Callable[[], bool]) -> None:
            deadline = monotonic() + PATIENCE_S
            while not until():
                for workers in (slow, quick):
                    workers.supervise()
                assert monotonic() < deadline, slow.said() + quick.said()
                sleep(0.02)

        def counted(most: int) -> int:
            return sum(store.offset(partition) >= most for partition in range(2))

        log.append({0: [announcement(HEALTH), *records(0, 10)], 1: [announcement(HEALTH), *records(0, 10)]})
        gate.touch()
        slow.start("faust")
        wait(gate.with_suffix(".waits").exists)
        quick.start("faust")
        # Every load of the first one still hangs, and the second has got its half.
        wait(lambda: counted(11) == 1)
        gate.unlink()
        wait(lambda: counted(11) == 2)
        log.append({0: records(10, 50), 1: records(10, 50)})
        wait(lambda: counted(61) == 2)
        states = [store.load(partition) for partition in range(2)]
        store.close()
        assert (slow.ended, quick.ended) == ([], []), slow.said() + quick.said()
    for state in states:
        tally = state.rounds[HEALTH.digest, 0].verdicts
        assert (tally.attempts, tally.accepted) == (60, 60)


def test_record_that_an_operator_skips_is_skipped_by_a_replay_too(tmp_path: Path) -> None:
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    create_topic(kafka, topic, partitions=1)
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis, KafkaLog(kafka, topic) as log:
        log.append({0: [announcement(HEALTH), *records(0, 30)]})
        path = tmp_path / "cluster.toml"
        path.write_text(
            f'kafka = "{kafka}"\nredis = "{redis.url}"\ntopic = "{topic}"\ngroup = "{topic}"\nsession_s = 2\n'
        )
        command = [sys.executable, "-m", "hubbub_deploy.cli", "aggregator", str(path)]
        store = RedisStore.connect(redis.url, log_identity=log.identity, partitions=1)
        # The second one is told what was done already, as by a supervisor.
        for skips, end in ((("0:5",), 31), (("0:5", "0:35"), 41)):
            words = [word for skip in skips for word in ("--skip", skip)]
            if end > 31:
                log.append({0: records(30, 10)})
            with (tmp_path / "said.txt").open("ab") as said:
                worker = subprocess.Popen([*command, *words], stdout=said, stderr=said)
            deadline = monotonic() + PATIENCE_S
            while store.offset(0) < end:
                assert worker.poll() is None, (tmp_path / "said.txt").read_text()
                assert monotonic() < deadline, (tmp_path / "said.txt").read_text()
                sleep(0.05)
            worker.terminate()
            assert worker.wait(120) == 0
        refused = subprocess.run([*command, "--skip", "0:7"], capture_output=True, text=True, check=False)
        state = store.load(0)
        store.close()
    assert refused.returncode == 1
    assert "must be at least 41, which comes next, got 7" in refused.stderr
    assert [(lost.first, lost.end) for lost in state.lost] == [(5, 6), (35, 36)]
    assert (state.rounds[HEALTH.digest, 0].verdicts.accepted, state.dead) == (38, 2)
    replayed, _ = replayed_log(f"kafka://{kafka}/{topic}")
    assert (counted_in(replayed[0]), replayed[0].lost) == (counted_in(state), state.lost)
