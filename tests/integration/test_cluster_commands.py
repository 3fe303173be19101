"""The commands of a cluster against each other: a device's upload reaches the dashboard, counted once."""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import urllib3
from counting_logs import report_id
from kafka_harness import bootstrap_or_skip, new_topic_name
from node_fixture import wait_until
from redis_harness import RedisServer, free_port, needs_redis, running
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub_deploy import cli
from hubbub_topic.kafka import errors
from hubbub_topic.kafka.log import KafkaLog

pytestmark = [pytest.mark.integration, needs_redis]

HUBBUB = [sys.executable, "-m", "hubbub_deploy.cli"]
PATIENCE_S = 120.0


# A collector's counter of reports that it took.
TAKEN = 'hubbub_gateway_reports_total{outcome="accepted"}'


class Cluster:
    """The processes of one cluster, ended with it."""

    def __init__(self, folder: Path, kafka: str, redis: str) -> None:
        self.folder, self.settings = folder, folder / "cluster.toml"
        self.kafka, self.topic = kafka, new_topic_name()
        self.settings.write_text(
            f"kafka = '{kafka}'\nredis = '{redis}'\ntopic = '{self.topic}'\nevent_loop = 'uvloop'\n"
            f"group = '{new_topic_name()}'\nsession_s = 2\n"
        )
        self.empty = folder / "empty"
        self.empty.mkdir()
        self.redis: RedisServer | None = None
        self.processes: list[subprocess.Popen[str]] = []
        self.said = ""

    def run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that ends by itself, in this process: imports would take most of the time of another."""
        line = [command, str(self.settings), *arguments]
        with redirect_stdout(StringIO()) as said, redirect_stderr(StringIO()) as talked:
            code = cli.main(line)
        return subprocess.CompletedProcess(line, code, said.getvalue(), talked.getvalue())

    def start(self, command: str, *arguments: str) -> subprocess.Popen[str]:
        line = [*HUBBUB, command, str(self.settings), *arguments]
        with (self.folder / "log.txt").open("a") as log:
            process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True, cwd=self.empty)
        self.processes.append(process)
        return process

    def url(self, process: subprocess.Popen[str]) -> str:
        """Where a process says that it listens; others may start meanwhile."""
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.match("Hubbub (collector|aggregator|dashboard): http://", line), (
            self.folder / "log.txt"
        ).read_text()
        return line.split(": ", 1)[1].strip()

    def stop(self) -> list[int]:
        for process in self.processes:
            process.terminate()
        codes = []
        for process in self.processes:
            try:
                codes.append(process.wait(120))
            except subprocess.TimeoutExpired:
                process.kill()
                codes.append(process.wait())
            assert process.stdout is not None
            self.said += process.stdout.read()
            process.stdout.close()
        self.processes.clear()
        return codes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    kafka = bootstrap_or_skip()
    (tmp_path / "redis").mkdir()
    with running(tmp_path / "redis") as redis:
        cluster = Cluster(tmp_path, kafka, redis.url)
        cluster.redis = redis
        try:
            yield cluster
        finally:
            cluster.stop()


def survey_of_now(folder: Path) -> Path:
    path = folder / "survey.toml"
    today = datetime.now(UTC).strftime("%Y-%m-%dT00:00:00Z")
    path.write_text(LABELS.replace("2026-01-01T00:00:00Z", today))
    return path


def test_uploads_of_devices_reach_the_dashboard_counted_once(cluster: Cluster, tmp_path: Path) -> None:
    made = cluster.run("topic", "--partitions", "3")
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("3 partitions, identity ")
    assert cluster.run("topic", "--partitions", "3").returncode == 1
    assert cluster.run("topic", "--partitions", "3", "--if-absent").stdout == made.stdout
    other = cluster.run("topic", "--partitions", "4", "--if-absent")
    assert (other.returncode, "must have 4 partitions, got 3" in other.stderr) == (1, True)
    path = survey_of_now(tmp_path)
    survey = Survey.load(path)
    number = survey.round_at(time.time())
    assert number is not None
    gateway = cluster.start("collector", str(path), "--port", "0")
    watching = cluster.start("dashboard", "--data", str(tmp_path / "data"), "--port", "0")
    workers = [cluster.start("aggregator", "--port", "0") for _ in range(2)]
    collector, page = cluster.url(gateway), cluster.url(watching)

    with urllib3.PoolManager() as http:
        for url in [cluster.url(worker) for worker in workers]:  # each has partitions, and hears a signal
            wait_until(lambda url=url: http.request("GET", f"{url}/readyz").status == 200)
        with KafkaLog(cluster.kafka, cluster.topic) as log:
            log.append({1: [b"neither ours nor anybody's"]})
        for _ in range(2):
            for device in range(100):
                reports = [
                    encode_report(Report(survey.digest, number, report_id(10 * device + i), i % 5))
                    for i in range(10)
                ]
                answer = http.request("POST", f"{collector}/v1/reports", body=encode_upload(reports))
                assert answer.status == 200
                assert decode_response(answer.data) == ["accepted"] * 10
        accounting: dict[str, Any] = {}
        deadline = time.monotonic() + PATIENCE_S
        while accounting.get("attempts") != 2000:
            assert time.monotonic() < deadline, (accounting, (cluster.folder / "log.txt").read_text())
            time.sleep(0.1)
            live = http.request("GET", f"{page}/api/live").json()
            accounting = live["accounting"]
    assert (accounting["accepted"], accounting["duplicate"]) == (1000, 1000)
    assert [entry["lag"] for entry in live["partitions"]] == [0, 0, 0]
    assert live["dead"] == 1
    listed = cluster.run("dead-letters")
    assert listed.returncode == 0, listed.stderr
    (letter,) = map(json.loads, listed.stdout.splitlines())
    assert (letter["partition"], letter["reason"]) == (1, "no record")
    assert "record" not in letter
    assert cluster.stop() == [0, 0, 0, 0]
    # In a container neither may be: the folder is somebody else's, and the output is a log.
    assert list(cluster.empty.iterdir()) == []
    assert "\x1b" not in cluster.said + (cluster.folder / "log.txt").read_text()


def test_simulated_devices_are_set_beside_a_release_of_the_cluster(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounds follow each other: whichever is open once all processes run is answered."""
    assert cluster.run("topic", "--partitions", "2").returncode == 0
    with cluster.settings.open("a") as file:
        file.write("grace_s = 10\n")
    drink = tmp_path / "drink.toml"
    new = ["--epsilon", "2", "--labels", "tea,coffee", "--start", "now", "--round", "20s", "--rounds", "30"]
    assert cli.main(["survey", "new", "--id", "drink", *new, "--out", str(drink)]) == 0
    people = tmp_path / "people.csv"
    people.write_text("drink\n" + "tea\n" * 700 + "coffee\n" * 300)
    gateway = cluster.start("collector", str(drink), "--port", "0")
    watching = cluster.start("dashboard", "--data", str(tmp_path / "data"), "--port", "0")
    worker = cluster.url(cluster.start("aggregator", "--port", "0"))
    urls = ["--collector", cluster.url(gateway), "--dashboard", cluster.url(watching)]
    capsys.readouterr()
    assert cli.main(["simulate", str(people), *urls, "--seed", "7", "--compare", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["evaluations"]
    assert found["release"]["devices"] == found["release"]["accounting"]["accepted"] == 1000
    truth = {row["label"]: row["truth"] for row in found["rows"] if row["kind"] == "value"}
    assert truth == {"tea": 0.7, "coffee": 0.3, "missing": 0.0}
    with urllib3.PoolManager() as http:
        assert http.request("GET", f"{worker}/readyz").status == 200
        shown = http.request("GET", f"{worker}/metrics").data.decode()
    numbers = dict(line.rsplit(" ", 1) for line in shown.splitlines() if not line.startswith("#"))
    assert float(numbers["hubbub_worker_partitions"]) == 2
    offsets = [float(numbers[f'hubbub_worker_offset{{partition="{k}"}}']) for k in range(2)]
    assert float(numbers["hubbub_worker_records_total"]) == sum(offsets) > 0  # it counted all there are


def test_dashboard_outlives_redis_and_another_one_stands_by(cluster: Cluster, tmp_path: Path) -> None:
    with Pages(cluster, tmp_path) as pages:
        watched = pages.at_work()
        assert cluster.redis is not None
        cluster.redis.kill()
        pages.wait_for(watched, "the counts are out of reach")
        cluster.redis.start()
        number = pages.at_work()
        cluster.processes[number].kill()
        pages.wait_for(1 - number, None)


def test_a_dashboard_paused_past_its_lease_gives_way_and_stands_by(cluster: Cluster, tmp_path: Path) -> None:
    """Stopped for longer than the ten seconds of its lease, then continued, knowing nothing of it."""
    with Pages(cluster, tmp_path) as pages:
        paused = pages.at_work()
        cluster.processes[paused].send_signal(signal.SIGSTOP)
        try:
            pages.wait_for(1 - paused, None)
        finally:
            cluster.processes[paused].send_signal(signal.SIGCONT)
        pages.wait_for(paused, "another dashboard is at work")
        assert pages.at_work() == 1 - paused
        assert all(process.poll() is None for process in cluster.processes)


class Pages:
    """Two dashboards on one cluster, by what their API says of the counts."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        assert cluster.run("topic", "--partitions", "1").returncode == 0
        command = ("dashboard", "--data", str(folder / "data"), "--port", "0")
        self.cluster = cluster
        self.urls = [cluster.url(process) for process in [cluster.start(*command), cluster.start(*command)]]

    def __enter__(self) -> Pages:
        self.http = urllib3.PoolManager()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.clear()

    def stale(self, number: int) -> str | None:
        """Why a page stands still, None while it does not."""
        found = self.http.request("GET", f"{self.urls[number]}/api/live").json().get("stale")
        return None if found is None else str(found["why"])

    def wait_for(self, number: int, why: str | None) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (stale := self.stale(number)) != why:
            assert time.monotonic() < deadline, (stale, (self.cluster.folder / "log.txt").read_text()[-3000:])
            time.sleep(0.1)
        logging.getLogger("page").warning("page %d: %s", number, why or "live")

    def at_work(self) -> int:
        """Return the dashboard that was first; the other one stands by."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            said = [self.stale(0), self.stale(1)]
            if None in said and "another dashboard is at work" in said:
                return said.index(None)
            assert time.monotonic() < deadline, said
            time.sleep(0.1)


def test_collectors_share_a_port_and_one_goes_on_when_the_other_dies(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Each upload has a connection of its own, and the kernel gives it to either: 60 of one kind is 2^-59."""
    assert cluster.run("topic", "--partitions", "1").returncode == 0
    path, port = survey_of_now(tmp_path), str(free_port())
    survey = Survey.load(path)
    number = survey.round_at(time.time())
    assert number is not None
    both = [cluster.start("collector", str(path), "--port", port, "--reuse-port") for _ in range(2)]
    urls = {cluster.url(process) for process in both}
    assert urls == {f"http://127.0.0.1:{port}"}
    refused = cluster.run("collector", str(path), "--port", port)
    assert (refused.returncode, "cannot be listened on" in refused.stderr) == (1, True)

    def ask(method: str, path: str, body: bytes | None = None) -> urllib3.BaseHTTPResponse:
        with urllib3.PoolManager(retries=False, timeout=60) as http:
            return http.request(method, f"http://127.0.0.1:{port}{path}", body=body)

    def upload(count: int) -> None:
        report = encode_report(Report(survey.digest, number, report_id(count), count % 5))
        answer = ask("POST", "/v1/reports", encode_upload([report]))
        assert (answer.status, decode_response(answer.data)) == (200, ["accepted"])

    def taken(text: str) -> float:
        return sum(float(line.split()[1]) for line in text.splitlines() if line.startswith(TAKEN))

    for count in range(60):
        upload(count)
    shares = {taken(ask("GET", "/metrics").data.decode()) for _ in range(60)}
    assert all(0 < share < 60 for share in shares)
    assert sum(shares) == 60 or shares == {30.0}
    both[0].kill()
    both[0].wait()
    for count in range(60, 120):
        upload(count)
    with KafkaLog(cluster.kafka, cluster.topic) as log:
        records = [decode_record(data) for _, data in log.read(0, 0, log.end(0))]
    columns = [each.ids for one in records if isinstance(one, ReportsRecord) for each in one.segments]
    ids = b"".join(columns)
    kept = sorted(ids[start : start + 16] for start in range(0, len(ids), 16))
    assert kept == sorted(report_id(count) for count in range(120))


def test_process_without_its_topic_says_so_in_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors, "UNKNOWN_S", 0.2)  # in a cluster of one, nobody hears of it later
    for command, *arguments in (
        ("collector", str(survey_of_now(tmp_path)), "--port", "0"),
        ("aggregator",),
        ("dashboard", "--data", str(tmp_path / "data"), "--port", "0"),
    ):
        ended = cluster.run(command, *arguments)
        assert ended.returncode == 1
        assert ended.stderr.startswith("hubbub: topic reports-")
        assert ended.stderr.count("\n") == 1
