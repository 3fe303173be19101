"""The list of a cluster's counted reports: a dashboard builds it from Kafka, after another one was killed."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import urllib3
from counting_logs import report_id, segment
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.transparency import LogPolicy, NoteKey, found_in, logged_round, tile_of
from hubbub.wire.record import ReportsRecord, SurveyRecord, encode_record
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.counted import RoundReports
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.stores.transparency import TransparencyLog
from hubbub_deploy.cli import main
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import make_topic, opened
from hubbub_topic.kafka.growing_log import GrowingLog

pytestmark = [pytest.mark.integration, needs_redis]

PATIENCE_S = 120.0


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ClusterSettings]:
    kafka = bootstrap_or_skip()
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        settings = ClusterSettings(kafka=kafka, redis=redis.url, topic=new_topic_name())
        make_topic(settings, partitions=2, replication=1)
        yield settings


def until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ended_round() -> Survey:
    """A survey whose first round is due to be sealed, after an hour's lateness and 30 s of grace."""
    start = datetime.fromtimestamp(int(time.time()) - 86_400 - 3_600 - 90, UTC)
    return Survey.parse(LABELS.replace("2026-01-01T00:00:00Z", start.strftime("%Y-%m-%dT%H:%M:%SZ")))


def write(log: GrowingLog, survey: Survey) -> set[bytes]:
    """Write a round in which every report was sent twice, and return its leaves by their definition."""
    log.publish_survey(survey.digest, encode_record(SurveyRecord(survey.canonical)))
    leaves = set()
    for partition in range(2):
        pairs = [(report_id(i), i % 5) for i in range(1000 * partition, 1000 * partition + 400)]
        minute = survey.start_s // 60 + 5
        for some in (pairs[:150], pairs[100:], pairs, [(report_id(9_000 + partition), 99)]):
            log.append({partition: [encode_record(ReportsRecord(minute, (segment(survey, 0, some),)))]})
        for identifier, symbol in pairs:
            told = b"hubbub counted\0" + survey.digest + bytes(4) + identifier + bytes([symbol])
            leaves.add(hashlib.sha256(told).digest()[:16])
    return leaves


def test_a_dashboard_lists_what_was_counted_after_another_was_killed(
    settings: ClusterSettings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, toml = tmp_path / "data", tmp_path / "cluster.toml"
    toml.write_text(f"kafka = '{settings.kafka}'\nredis = '{settings.redis}'\ntopic = '{settings.topic}'\n")
    assert main(["log", "keygen", "--name", "log.example", "--out", str(tmp_path / "log.pem")]) == 0
    policy = LogPolicy(NoteKey.parse(capsys.readouterr().out.strip()))
    command = [sys.executable, "-m", "hubbub_deploy.cli", "dashboard", str(toml), "--data", str(data)]
    command += ["--port", "0", "--log-key", str(tmp_path / "log.pem"), "--log-name", "log.example"]
    survey = ended_round()
    dashboards: list[subprocess.Popen[str]] = []
    with GrowingLog(settings.kafka, settings.topic) as log:
        leaves = write(log, survey)
        store = RedisStore.connect(
            settings.redis, log_identity=log.identity, partitions=2, partition_map=log.partition_map
        )
        counting = Assignment(store, end=log.end, partition_map=log.partition_map, clock=time.monotonic)
        offsets = counting.load([0, 1])

        def entries(kind: str) -> list[tuple[bytes | int, ...]]:
            """Count what is new, and return the entries of a kind."""
            for partition, offset in offsets.items():
                if records := log.read(partition, offset, 100):
                    counting.process(partition, records)
                    offsets[partition] = records[-1][0] + 1
            with closing(TransparencyLog(data / "transparency.sqlite")) as logged:
                return [each.fields for each in logged.since(0) if each.kind == kind]

        try:
            for _ in range(2):  # the first holds the lease, the second stands by on the same folder
                dashboards.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
                assert dashboards[-1].stdout is not None
                url = dashboards[-1].stdout.readline().split(": ", 1)[1].strip()
            until(lambda: entries("release"))
            os.kill(dashboards[0].pid, signal.SIGKILL)  # before or after it listed what was counted
            until(lambda: entries("counted"))
            ((digest, number, n, bits, root, over),) = entries("counted")
            assert (digest, number, n, bits) == (survey.digest, 1, 800, 1)
            with urllib3.PoolManager(retries=False, timeout=60) as http:
                path = f"{url}/log/counted/{survey.digest.hex()}/1"
                until(lambda: http.request("GET", path).status == 200)
                entry, _ = logged_round(http.request("GET", path).data, policy, survey.digest, 1)
                tiles = [http.request("GET", f"{path}/{place}").data for place in range(2)]
            assert entry.fields == (digest, number, n, bits, root, over)
            assert {found_in(each, entry, tiles[tile_of(each, 1)]) for each in leaves} == {"counted"}
            assert sum(map(len, tiles)) < 16 * len(leaves) + 200
            with closing(SqliteArchive(data / "archive.sqlite")) as archive:
                document = json.loads(archive.get((survey.digest, 0)) or b"")
            for _ in range(2):  # each replay reads the topic anew
                made = RoundReports(lambda: opened(settings)).counted(document)
                assert made is not None and (made.entry, made.tiles) == (entry, tiles)
        finally:
            store.close()
            for each in dashboards:
                each.terminate()
                each.communicate(timeout=120)
