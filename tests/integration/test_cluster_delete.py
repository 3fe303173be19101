"""`hubbub delete --cluster`: topics, keys and archive of one cluster go, and nobody else's."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import redis
from confluent_kafka import Consumer
from counting_logs import announcement, batch, report_id, segment
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.transparency import Entry
from hubbub_aggregator.runners.counters import LogCounter
from hubbub_aggregator.stores import (
    RecountFolder,
    RedisStore,
    SqliteArchive,
    TransparencyLog,
    connected,
    namespace_keys,
)
from hubbub_deploy.cli import main
from hubbub_topic.kafka import GrowingLog, create_topic, topics_of

pytestmark = [pytest.mark.integration, needs_redis]

HEALTH = Survey.parse(LABELS)


def test_a_cluster_is_deleted_when_it_is_meant_and_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka, name = bootstrap_or_skip(), new_topic_name()
    data, settings = tmp_path / "data", tmp_path / "cluster.toml"
    for folder in (data, tmp_path / "redis"):
        folder.mkdir()
    for topic in (name, f"{name}x"):  # another cluster's, whose name begins alike
        create_topic(kafka, topic, partitions=2)
    with running(tmp_path / "redis") as server, contextlib.closing(connected(server.url)) as client:
        settings.write_text(
            f"kafka = '{kafka}'\nredis = '{server.url}'\n"
            f"topic = '{name}'\nnamespace = 'a*'\ngroup = '{name}'\n"
        )
        with GrowingLog(kafka, name, rebuild_s=3600) as log:
            log.publish_survey(HEALTH.digest, announcement(HEALTH))
            log.append({p: [batch(segment(HEALTH, 0, [(report_id(p), 1)]))] for p in range(2)})
            for namespace in ("a*", "ab", "a*:0"):
                identity = {"log_identity": log.identity, "partitions": 2, "namespace": namespace}
                store = RedisStore(client, **identity)
                counter = LogCounter(log, store)
                while not counter.is_caught_up:
                    for partition in range(2):
                        counter.advance(partition)
                if namespace == "a*":
                    store.hold_lease()
                    assert main(["delete", str(data), "--cluster", str(settings), "--yes"]) == 1
                    assert "got a dashboard at work" in capsys.readouterr().err
                    store.release_lease()
        own = (b"{a*:0}:", b"{a*:1}:", b"{a*:steps}:")
        others = {key for key in client.scan_iter() if not key.startswith(own)}
        assert others
        with contextlib.closing(SqliteArchive(data / "archive.sqlite")) as archive:
            archive.put((HEALTH.digest, 0), b"{}")
        with contextlib.closing(TransparencyLog(data / "transparency.sqlite")) as entries:
            entries.append([Entry("release", (HEALTH.digest, 1, bytes(32)))])
        about = {"survey": {"digest": HEALTH.digest.hex()}, "round": 1, "recount": {"without_issuers": ["x"]}}
        beside = RecountFolder(data).put(about)
        before = sorted(client.scan_iter())
        reader = Consumer({"bootstrap.servers": kafka, "group.id": name, "log_level": 0})
        reader.subscribe([name])
        while not reader.assignment():
            reader.poll(0.1)
        assert main(["delete", str(data), "--cluster", str(settings), "--yes"]) == 1
        assert "got 1 aggregators at work" in capsys.readouterr().err
        reader.close()
        assert main(["delete", str(data), "--cluster", str(settings)]) == 0
        said = capsys.readouterr().out
        assert f"topics   {name}, {name}.announced, {name}.dead\n" in said
        assert f"{len(before) - len(others)} keys of the namespace a*" in said
        assert "Nothing was deleted" in said
        assert str(beside) in said
        assert (sorted(client.scan_iter()), (data / "archive.sqlite").exists()) == (before, True)
        assert main(["delete", str(data), "--cluster", str(settings), "--yes"]) == 0
        assert set(client.scan_iter()) == others
        with contextlib.closing(TransparencyLog(data / "transparency.sqlite")) as entries:
            assert entries.since(1) == [Entry("erased", (HEALTH.digest,))]
        assert namespace_keys(client, "ab")
        assert list(data.iterdir()) == [data / "transparency.sqlite"]
        assert (topics_of(kafka, name), len(topics_of(kafka, f"{name}x"))) == ([], 3)
        assert main(["delete", str(data), "--cluster", str(settings), "--yes"]) == 0  # nothing is left to do
        assert "topics   none" in capsys.readouterr().out


def test_a_cluster_that_is_out_of_reach_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "cluster.toml"
    settings.write_text("kafka = '127.0.0.1:1'\nredis = 'redis://127.0.0.1:1/0'\n")
    with pytest.raises(redis.RedisError):
        redis.Redis.from_url("redis://127.0.0.1:1/0").ping()
    capsys.readouterr()
    assert main(["delete", str(tmp_path), "--cluster", str(settings)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
