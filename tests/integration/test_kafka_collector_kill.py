"""Collectors killed between the brokers' acceptance and their answer, and devices that repeat themselves."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
import urllib3
from counting_logs import MemoryStore, report_id
from kafka_harness import bootstrap_or_skip, new_topic_name
from redis_harness import free_port
from surveys import LABELS, START_S

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_topic.kafka.growing_log import GrowingLog
from hubbub_topic.kafka.topic import create_topic

pytestmark = pytest.mark.integration

HEALTH = Survey.parse(LABELS)
PROCESS = Path(__file__).parents[1] / "harness" / "kafka_gateway_process.py"
PARTITIONS, UPLOADS, EACH, PATIENCE_S = 3, 300, 5, 120.0


class Collector:
    """A gateway's process on one port, started again whenever it ends."""

    def __init__(self, kafka: str, topic: str, survey: Path, folder: Path, dies_after: list[int]) -> None:
        self.port, self.killed = free_port(), 0
        self._words, self._folder, self._dies_after = (kafka, topic), folder, dies_after
        self._survey = survey
        self._start()

    def _start(self) -> None:
        after = self._dies_after.pop(0) if self._dies_after else 0
        words = [*self._words, self.port, after, START_S + 100, self._survey]
        with (self._folder / "collectors.txt").open("ab") as log:
            command = [sys.executable, str(PROCESS), *map(str, words)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def supervise(self) -> None:
        if self._process.poll() is not None:
            assert self._process.returncode == -9, (self._folder / "collectors.txt").read_text()[-3000:]
            self.killed += 1
            self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def collectors(tmp_path: Path) -> Iterator[tuple[list[Collector], str, str]]:
    kafka, topic = bootstrap_or_skip(), new_topic_name()
    create_topic(kafka, topic, partitions=PARTITIONS)
    survey = tmp_path / "survey.bin"
    survey.write_bytes(HEALTH.canonical)
    made = [
        Collector(kafka, topic, survey, tmp_path, [6, 9]),
        Collector(kafka, topic, survey, tmp_path, [9, 6]),
    ]
    yield made, kafka, topic
    for collector in made:
        collector.stop()


class Devices(threading.Thread):
    """Sends each body until it is answered, to whichever collector; counts what it was told."""

    def __init__(self, ports: list[int], bodies: list[bytes], seed: int) -> None:
        super().__init__()
        self._ports, self._bodies = ports, bodies
        self._dice = random.Random(seed)  # noqa: S311 - the order of a test
        self.unanswered, self.told = 0, Counter[str]()

    def run(self) -> None:
        deadline = monotonic() + PATIENCE_S
        with urllib3.PoolManager(retries=False, timeout=60) as http:
            for body in self._bodies:
                while monotonic() < deadline:
                    port = self._dice.choice(self._ports)
                    try:
                        answer = http.request("POST", f"http://127.0.0.1:{port}/v1/reports", body=body)
                    except urllib3.exceptions.HTTPError:
                        self.unanswered += 1
                        sleep(0.05)
                        continue
                    if answer.status == 200:
                        self.told.update(decode_response(answer.data))
                        break
                    sleep(0.05)


def test_uploads_thrice_over_two_dying_collectors_count_once(
    collectors: tuple[list[Collector], str, str],
) -> None:
    made, kafka, topic = collectors
    reports = [Report(HEALTH.digest, 0, report_id(i), (3 * i) % 5) for i in range(UPLOADS * EACH)]
    bodies = [
        encode_upload([encode_report(one) for one in reports[start : start + EACH]])
        for start in range(0, len(reports), EACH)
    ]
    ports = [collector.port for collector in made]
    crowd = [
        Devices(ports, random.Random(10 * time + part).sample(bodies[part::3], UPLOADS // 3), seed=time)  # noqa: S311
        for time in range(3)
        for part in range(3)
    ]
    for devices in crowd:
        devices.start()
    while any(devices.is_alive() for devices in crowd):
        for collector in made:
            collector.supervise()
        sleep(0.02)
    assert sum((devices.told for devices in crowd), Counter()) == {"accepted": 3 * len(reports)}
    assert sum(collector.killed for collector in made) == 4
    assert sum(devices.unanswered for devices in crowd) > 0

    with GrowingLog(kafka, topic) as log:
        store, stored = MemoryStore(), 0
        assignment = Assignment(store, end=log.end, clock=monotonic)
        for partition, begin in assignment.load(range(PARTITIONS)).items():
            following = begin
            while records := log.read(partition, following, 64):
                assignment.process(partition, records)
                following = records[-1][0] + 1
                for _, body in records:
                    record = decode_record(body)
                    stored += isinstance(record, ReportsRecord) and sum(s.attempts for s in record.segments)
    states = [store.load(partition) for partition in range(PARTITIONS)]
    tallies = [state.rounds[HEALTH.digest, 0].verdicts for state in states]
    assert all(tally.holds for tally in tallies)
    assert sum(tally.accepted for tally in tallies) == len(reports)
    np.testing.assert_array_equal(
        sum(state.rounds[HEALTH.digest, 0].counts for state in states),
        np.bincount([one.symbol for one in reports], minlength=5),
    )
    # Every attempt that reached the log has its verdict, those of which no device ever heard included.
    assert sum(tally.attempts for tally in tallies) == stored
    assert sum(tally.duplicate for tally in tallies) == stored - len(reports)
    assert stored > 3 * len(reports)
    assert sum(state.unknown + state.dead for state in states) == 0
