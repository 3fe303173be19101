"""The embedded node as a process: whose files they are, how it stops, what it refuses, what it survives."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import hubbub, node, one_line
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.wire.report import Report, decode_response, decode_surveys, encode_report, encode_upload
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import ARCHIVE_FILE, LOG_FILE, STORE_FILE, NodeSettings, serve
from hubbub_topic.errors import LogError
from hubbub_topic.sqlite import SqliteLog

pytestmark = pytest.mark.integration

PROMPT_S = 20.0  # within which a node must be gone once it is asked to
VERDICTS = ("accepted", "duplicate", "early", "late", "invalid", "over_quota")


def now_open(text: str, rounds: str) -> str:
    """The survey's text with a schedule whose first round began a minute ago."""
    start = time.strftime("start = %Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    assert rounds in text
    return text.replace("start = 2026-01-01T00:00:00Z", start).replace(rounds, "rounds = 1")


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.toml"
    path.write_text(now_open(LABELS, "rounds = 3"), encoding="utf-8")
    return path


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    path.write_text(now_open(VISITS, "rounds = 2"), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture(scope="module")
def node_of_labels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("node")
    survey = folder / "labels.toml"
    survey.write_text(now_open(LABELS, "rounds = 3"), encoding="utf-8")
    with node(folder / "data", survey) as (_, port):
        yield port


def request(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def live(port: int) -> dict[str, Any]:
    status, body = request(port, "GET", "/api/live")
    assert status == 200
    document: dict[str, Any] = json.loads(body)
    accounting = document["accounting"]
    assert accounting["attempts"] == sum(accounting[verdict] for verdict in VERDICTS)
    return document


def upload(port: int, survey: Survey, n: int, symbol: int = 0) -> list[str]:
    reports = [encode_report(Report(survey.digest, 0, secrets.token_bytes(16), symbol)) for _ in range(n)]
    status, body = request(port, "POST", "/v1/reports", encode_upload(reports))
    assert status == 200
    return list(decode_response(body))


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.01)


def asked_to_stop(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, float]:
    """The exit code after a signal, and how long it took."""
    began = time.monotonic()
    os.kill(process.pid, number)
    return process.wait(60), time.monotonic() - began


def test_second_node_on_the_same_files_is_refused_until_the_first_is_gone(labels: Path, data: Path) -> None:
    with node(data, labels) as (process, port):
        second = hubbub("node", labels, "--data", data, "--port", 0)
        assert (second.returncode, second.stdout) == (1, "")
        assert one_line(second.stderr)
        assert "another node runs on these files" in second.stderr
        # The first one noticed nothing.
        assert upload(port, Survey.load(labels), 2) == ["accepted", "accepted"]
        process.kill()
        assert process.wait(120) == -signal.SIGKILL
    with node(data, labels) as (process, port):
        wait_until(lambda: live(port)["accounting"]["accepted"] == 2)


def test_files_of_a_node_are_its_owners_alone(labels: Path, data: Path) -> None:
    with node(data, labels) as (_, port):
        upload(port, Survey.load(labels), 2)
        modes = {file.name: file.stat().st_mode & 0o077 for file in (data, *data.iterdir())}
    assert len(modes) > 4
    assert set(modes.values()) == {0}, modes


def test_port_in_use_is_refused_in_one_line(labels: Path, data: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = hubbub("node", labels, "--data", data, "--port", port)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert f"127.0.0.1:{port} cannot be listened on" in found.stderr


def test_empty_host_does_not_mean_every_address(labels: Path, data: Path) -> None:
    found = hubbub("node", labels, "--data", data, "--port", 0, "--host", "")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.endswith("argument --host: must be a text that is not empty, got ''\n")


@pytest.mark.parametrize("place", ["a file", "below a file", "locked"])
def test_data_folder_that_cannot_be_used_is_refused_in_one_line(
    place: str, labels: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    if place == "locked":
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
        folder.mkdir(mode=0o500)
        folder /= "data"
    else:
        folder.write_text("not a folder")
        folder = folder / "data" if place == "below a file" else folder
    found = hubbub("node", labels, "--data", folder, "--port", 0)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert str(folder) in found.stderr


@pytest.mark.parametrize("file", [LOG_FILE, STORE_FILE, ARCHIVE_FILE])
def test_file_of_something_else_is_refused_in_one_line_and_left_alone(
    file: str, labels: Path, data: Path
) -> None:
    data.mkdir()
    (data / file).write_bytes(b"a diary\n" * 1000)
    found = hubbub("node", labels, "--data", data, "--port", 0)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert str(data) in found.stderr
    assert (data / file).read_bytes() == b"a diary\n" * 1000


def test_other_number_of_partitions_is_refused(labels: Path, data: Path) -> None:
    with node(data, labels):
        pass
    found = hubbub("node", labels, "--data", data, "--port", 0, "--partitions", 3)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert "4 partitions, which never changes; got 3" in found.stderr


def test_store_of_another_log_is_refused(labels: Path, data: Path) -> None:
    with node(data, labels):
        pass
    for path in data.glob(LOG_FILE + "*"):
        path.unlink()
    found = hubbub("node", labels, "--data", data, "--port", 0)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)


def test_survey_that_changed_without_a_new_version_is_refused(labels: Path, data: Path) -> None:
    with node(data, labels):
        pass
    text = labels.read_text(encoding="utf-8")
    labels.write_text(text.replace("epsilon = 1.0", "epsilon = 1.5"), encoding="utf-8")
    found = hubbub("node", labels, "--data", data, "--port", 0)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)
    assert "must have a new version when it changes" in found.stderr
    labels.write_text(
        text.replace("epsilon = 1.0", "epsilon = 1.5").replace("version = 1", "version = 2"), encoding="utf-8"
    )
    with node(data, labels) as (_, port):
        wait_until(lambda: [survey["version"] for survey in live(port)["surveys"]] == [1, 2])


def test_one_survey_given_twice_is_refused(labels: Path, data: Path) -> None:
    found = hubbub("node", labels, labels, "--data", data, "--port", 0)
    assert (found.returncode, found.stdout) == (1, "")
    assert one_line(found.stderr)


def test_survey_that_is_served_no_more_keeps_its_counts(labels: Path, visits: Path, data: Path) -> None:
    health = Survey.load(labels)
    with node(data, labels, visits) as (_, port):
        assert upload(port, health, 5) == ["accepted"] * 5
    with node(data, visits) as (_, port):
        wait_until(lambda: live(port)["accounting"]["accepted"] == 5)
        assert upload(port, health, 1) == ["unknown"]
        wait_until(lambda: live(port)["unknown"] == 1)
        shown = [(survey["id"], len(survey["rounds"])) for survey in live(port)["surveys"]]
        assert shown == [("outpatient-visits", 0), ("self-rated-health", 1)]
        served = decode_surveys(request(port, "GET", "/v1/surveys")[1])
        assert served == [Survey.load(visits).canonical]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_node_stops_at_once_with_streams_and_idle_connections_open(
    number: int, labels: Path, data: Path
) -> None:
    with node(data, labels) as (process, port), contextlib.ExitStack() as readers:
        streams = []
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            readers.callback(connection.close)
            connection.request("GET", "/api/events")
            streams.append(connection.getresponse())
            assert streams[-1].readline().startswith(b"retry:")
        readers.enter_context(socket.create_connection(("127.0.0.1", port)))
        half = readers.enter_context(socket.create_connection(("127.0.0.1", port)))
        half.sendall(b"POST /v1/reports HT")
        code, seconds = asked_to_stop(process, number)
        assert code == 0
        assert seconds < PROMPT_S
        for stream in streams:
            stream.read()  # ends: raises if the stream was cut in the middle
        assert process.stderr.read() == ""


def test_what_was_acknowledged_is_counted_before_a_polite_end(labels: Path, data: Path) -> None:
    survey = Survey.load(labels)
    with node(data, labels) as (process, port):
        for symbol in (0, 1, 1, 2):
            assert upload(port, survey, 3, symbol) == ["accepted"] * 3
        assert asked_to_stop(process)[0] == 0
    with SqliteLog(data / LOG_FILE) as log:
        store = SqliteStore(data / STORE_FILE, log_identity=log.identity, partitions=4)
        states = [store.load(partition) for partition in range(4)]
        store.close()
        assert [state.offset for state in states] == [log.end(partition) for partition in range(4)]
    rounds = [state.rounds[survey.digest, 0] for state in states if (survey.digest, 0) in state.rounds]
    total = sum(known.counts for known in rounds if len(known.counts))
    assert total.tolist() == [3, 6, 3, 0, 0]


def test_worker_that_doubts_ends_the_node_and_the_next_start_goes_on(labels: Path, data: Path) -> None:
    """Somebody else writes to the store: nothing is counted on top, and nothing acknowledged is lost."""
    survey = Survey.load(labels)
    with node(data, labels) as (process, port):
        assert upload(port, survey, 40) == ["accepted"] * 40
        wait_until(lambda: live(port)["accounting"]["accepted"] == 40)
        with contextlib.closing(sqlite3.connect(data / STORE_FILE)) as other, other:
            other.execute("UPDATE partition SET offset = offset + 1")
        # The node may be gone before it answers.
        with contextlib.suppress(OSError, http.client.HTTPException):
            upload(port, survey, 40)
        assert process.wait(120) == 1
        said = process.stderr.read()
        assert "StoreConflictError" in said
        assert said.endswith("the log and the store are as they were\n")
    with contextlib.closing(sqlite3.connect(data / STORE_FILE)) as other, other:
        other.execute("UPDATE partition SET offset = offset - 1")
    with node(data, labels) as (_, port):
        wait_until(lambda: all(entry["lag"] == 0 for entry in live(port)["partitions"]))
        assert live(port)["accounting"]["accepted"] in (40, 80)


def test_node_that_cannot_announce_its_surveys_does_not_start(
    labels: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> bool:
        raise LogError("no space left on the disk")

    monkeypatch.setattr(SqliteLog, "publish_survey", full)
    told: list[str] = []
    with pytest.raises(DeployError, match="did not start"):
        serve(NodeSettings(surveys=(Survey.load(labels),), data_dir=data), ready=told.append)
    assert told == []
    # Its files are free again, in this very process.
    SqliteLog(data / LOG_FILE).close()


def test_hostile_requests_leave_the_node_as_it_was(labels: Path, data: Path) -> None:
    survey = Survey.load(labels)
    with node(data, labels) as (process, port):
        assert upload(port, survey, 3) == ["accepted"] * 3
        wait_until(lambda: live(port)["accounting"]["accepted"] == 3)
        before = live(port)
        memory_kb = resident_kb(process.pid)
        statuses = set()
        for body in (b"", b"\xc1", b"\x92\x01\x91" * 9000, b"\xdd\xff\xff\xff\xff", bytes(64 * 2**10)):
            statuses.add(request(port, "POST", "/v1/reports", body)[0])
        assert statuses == {400}
        assert request(port, "DELETE", "/v1/reports")[0] == 405
        for path in (
            "/v1/reports/..%2f",
            "/page/..%2f..%2fnode.py",
            "/%00",
            "/api/surveys/%ff",
            "/" + "a" * 9000,
        ):
            assert request(port, "GET", path)[0] in (400, 404, 414)
        endless = f"/api/surveys/{survey.digest.hex()}/rounds/{'9' * 5000}"
        assert request(port, "GET", endless)[0] in (400, 404)
        threads = [threading.Thread(target=drown, args=(port,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert upload(port, survey, 1, symbol=2**32 - 1) == ["invalid"]
        wait_until(lambda: live(port)["accounting"]["invalid"] == 1)
        after = live(port)
        assert after["accounting"]["accepted"] == 3
        assert after["surveys"][0]["shown"]["values"] == before["surveys"][0]["shown"]["values"]
        # 8 MiB of bodies at once take some 80 MB; the rest is the allocator's.
        assert resident_kb(process.pid) < memory_kb + 200_000
        assert request(port, "GET", "/healthz")[0] == 200
        assert asked_to_stop(process)[0] == 0
        # Of requests that are no HTTP the server says so much, and nothing of their senders.
        assert set(process.stderr.read().splitlines()) <= {"Invalid HTTP request received."}


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/v1/reports", 405, {"POST"}),
        ("POST", "/v1/surveys", 405, {"GET", "HEAD"}),
        ("DELETE", "/healthz", 405, {"GET", "HEAD"}),
        ("POST", "/api/live", 405, {"GET", "HEAD"}),
        ("POST", "/", 405, {"GET", "HEAD"}),
        ("GET", "/v1/nothing", 404, None),
    ],
)
def test_a_known_path_says_its_methods_and_an_unknown_one_is_a_problem(
    node_of_labels: int, method: str, path: str, status: int, allowed: set[str] | None
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", node_of_labels, timeout=60)
    connection.request(method, path)
    reply = connection.getresponse()
    found = json.loads(reply.read())
    connection.close()
    assert (reply.status, found["status"]) == (status, status)
    assert reply.headers["content-type"] == "application/problem+json"
    if allowed is not None:
        assert {name.strip() for name in reply.headers["allow"].split(",")} == allowed


def drown(port: int) -> None:
    """Announces huge bodies, sends what is taken of them, and leaves in the middle."""
    for announced in (2**20, 2**40, 10**17, 64 * 2**10):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
            peer.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % announced)
            for _ in range(32):
                peer.sendall(bytes(2**14))
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as peer:
        peer.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(64):
            peer.sendall(b"4000\r\n" + bytes(2**14) + b"\r\n")


def resident_kb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("needs /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def test_schedule_that_began_years_ago_costs_nothing(labels: Path, data: Path) -> None:
    text = LABELS.replace("2026-01-01", "2015-01-01").replace('round = "1d"', 'round = "1m"')
    text = text.replace("rounds = 3", "rounds = 100000").replace("epsilon = 1.0", "epsilon = 0.01")
    labels.write_text(text, encoding="utf-8")
    with node(data, labels) as (process, port):
        assert upload(port, Survey.load(labels), 500) == ["late"] * 500
        wait_until(lambda: live(port)["accounting"]["late"] == 500)
        assert len(request(port, "GET", "/api/live")[1]) < 4096
        assert asked_to_stop(process)[1] < PROMPT_S
    with contextlib.closing(SqliteArchive(data / ARCHIVE_FILE)) as archive:
        assert archive.rounds() == []
    with SqliteLog(data / LOG_FILE) as log:
        assert max(log.end(partition) for partition in range(4)) < 10


def test_node_answers_on_ipv6(labels: Path, data: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with node(data, labels, options=("--host", "::1")) as (_, port):
        connection = http.client.HTTPConnection("::1", port, timeout=60)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
