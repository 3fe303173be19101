"""A dashboard whose machine's clock is an hour ahead of Redis': rounds stay open, and it says so."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import urllib3
from counting_logs import report_id, segment
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import needs_redis, running
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, SealRecord, SurveyRecord, decode_record, encode_record
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_deploy.cluster_settings import ClusterSettings
from hubbub_deploy.cluster_topics import make_topic
from hubbub_topic.kafka.growing_log import GrowingLog

pytestmark = [pytest.mark.integration, needs_redis]

PATIENCE_S, HOUR_S = 120.0, 3600
# A dashboard on a machine whose clock is so far ahead: argv[1] seconds.
AHEAD = """
import sys, time
ahead, true = float(sys.argv.pop(1)), time.time
time.time = lambda: true() + ahead
from hubbub_deploy.cli import main
sys.exit(main(sys.argv[1:]))
"""


def survey_due_at(moment_s: float) -> Survey:
    """A survey whose first round is due to be sealed then, after an hour's lateness and 30 s of grace."""
    start_s = int(moment_s) - 86_400 - HOUR_S - 30
    start = datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Survey.parse(LABELS.replace("2026-01-01T00:00:00Z", start))


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ClusterSettings]:
    kafka = bootstrap_or_skip()
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        settings = ClusterSettings(kafka=kafka, redis=redis.url, topic=new_topic_name())
        make_topic(settings, partitions=2, replication=1)
        yield settings


def seals(log: GrowingLog) -> int:
    bodies = [body for p in range(log.partitions) for _, body in log.read(p, 0, 1000)]
    return sum(isinstance(decode_record(body), SealRecord) for body in bodies)


@pytest.mark.parametrize(("due_in_s", "ahead_s", "sealed"), [(-60, 0, True), (1800, HOUR_S, False)])
def test_rounds_are_sealed_by_no_clock_that_is_ahead_of_redis(
    settings: ClusterSettings, tmp_path: Path, due_in_s: float, ahead_s: float, sealed: bool
) -> None:
    survey = survey_due_at(time.time() + due_in_s)
    with GrowingLog(settings.kafka, settings.topic) as log:
        log.publish_survey(survey.digest, encode_record(SurveyRecord(survey.canonical)))
        for partition in range(2):
            pairs = [(report_id(i), i % 5) for i in range(1000 * partition, 1000 * partition + 100)]
            record = ReportsRecord(survey.start_s // 60 + 5, (segment(survey, 0, pairs),))
            log.append({partition: [encode_record(record)]})
        store = RedisStore.connect(
            settings.redis, log_identity=log.identity, partitions=2, partition_map=log.partition_map
        )
        counting = Assignment(store, end=log.end, partition_map=log.partition_map, clock=time.monotonic)
        for partition in counting.load([0, 1]):
            counting.process(partition, log.read(partition, 0, 100))
        store.close()
        path = tmp_path / "cluster.toml"
        path.write_text(
            f"kafka = '{settings.kafka}'\nredis = '{settings.redis}'\ntopic = '{settings.topic}'\n"
        )
        command = [sys.executable, "-c", AHEAD, str(ahead_s), "dashboard", str(path)]
        command += ["--data", str(tmp_path / "data"), "--port", "0"]
        dashboard = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert dashboard.stdout is not None
            url = dashboard.stdout.readline().split(": ", 1)[1].strip()
            deadline = time.monotonic() + PATIENCE_S
            with urllib3.PoolManager(retries=False, timeout=60) as http:
                while http.request("GET", f"{url}/healthz").status == 200 and not seals(log):
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                health = http.request("GET", f"{url}/healthz")
                metrics = http.request("GET", f"{url}/metrics").data.decode()
            assert seals(log) == (2 if sealed else 0)
            assert health.status == (200 if sealed else 503)
            assert f"hubbub_sealing {float(sealed)}\n" in metrics
            if not sealed:
                assert "must agree within 5 s, got 3600 s" in health.json()["unsealed"]
        finally:
            dashboard.terminate()
            dashboard.wait(120)
            dashboard.stdout.close()
