"""The gateway over real HTTP: outcomes, bounds, failures, restarts and kill -9."""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import urllib3
from proxy import Proxy
from starlette.applications import Starlette
from surveys import LABELS, START_S, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import NO_ROUND, ReportsRecord, SurveyRecord, decode_record
from hubbub.wire.report import Report, decode_response, decode_surveys, encode_report, encode_upload
from hubbub_collector.gateway import create_app
from hubbub_collector.server import create_server
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.errors import LogError
from hubbub_topic.sqlite import SqliteLog

pytestmark = pytest.mark.integration

DAY = 86_400
SURVEY = Survey.parse(LABELS)
OUTPUTS = SURVEY.channel.outputs


def report(number: int = 0, symbol: int = 0, digest: bytes = SURVEY.digest) -> Report:
    return Report(digest, number, secrets.token_bytes(16), symbol)


def body_of(*reports: Report) -> bytes:
    return encode_upload([encode_report(one) for one in reports])


class Device:
    """A plain HTTP client: no retries, so that every answer is seen."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._pool = urllib3.HTTPConnectionPool("127.0.0.1", port, retries=False, timeout=60, maxsize=8)

    def ask(self, method: str, path: str, body: bytes | None) -> urllib3.BaseHTTPResponse:
        return self._pool.request(method, path, body=body)

    def get(self, path: str) -> urllib3.BaseHTTPResponse:
        return self._pool.request("GET", path)

    def post(self, body: bytes, **options: object) -> urllib3.BaseHTTPResponse:
        return self._pool.request("POST", "/v1/reports", body=body, **options)

    def upload(self, *reports: Report) -> list[str]:
        response = self.post(body_of(*reports))
        assert response.status == 200, response.data
        return list(decode_response(response.data))

    def close(self) -> None:
        self._pool.close()


@contextlib.contextmanager
def serving(
    log: SqliteLog, *surveys: Survey, now_s: float = START_S + 100, **settings: float
) -> Iterator[Device]:
    chosen = GatewaySettings(**{"metrics_s": 0, **settings})
    app = create_app(log, surveys or (SURVEY,), settings=chosen, clock=lambda: now_s)
    with running(app, chosen) as device:
        yield device


@contextlib.contextmanager
def running(app: Starlette, settings: GatewaySettings) -> Iterator[Device]:
    server = create_server(app, port=0, settings=settings)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    device = Device(server.servers[0].sockets[0].getsockname()[1])
    try:
        yield device
    finally:
        device.close()
        server.should_exit = True
        thread.join()


class GatedLog(SqliteLog):
    """A log whose appends can be held up, and made to fail."""

    def __init__(self, path: Path, partitions: int = 4) -> None:
        super().__init__(path, partitions)
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()
        self.failing = False

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        self.entered.set()
        assert self.gate.wait(120)
        if self.failing:
            raise LogError("disk full")
        return super().append(batches)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GatedLog]:
    with GatedLog(tmp_path / "log.sqlite") as log:
        yield log


def records_of(log: SqliteLog) -> list[tuple[int, SurveyRecord | ReportsRecord]]:
    """(partition, record) of everything in the log."""
    found = []
    for partition in range(log.partitions):
        for _, body in log.read(partition, 0, 1_000_000):
            record = decode_record(body)
            assert isinstance(record, SurveyRecord | ReportsRecord)
            found.append((partition, record))
    return found


def stored(log: SqliteLog) -> Counter[tuple[bytes, int, bytes, int]]:
    """How often each (digest, round, id, symbol) is in the log."""
    found: Counter[tuple[bytes, int, bytes, int]] = Counter()
    for partition, record in records_of(log):
        for segment in record.segments if isinstance(record, ReportsRecord) else ():
            for i, symbol in enumerate(segment.symbols.tolist()):
                identifier = segment.ids[16 * i : 16 * i + 16]
                assert int.from_bytes(identifier[8:], "big") % log.partitions == partition
                found[segment.digest, segment.round, identifier, symbol] += 1
    return found


def tallies(log: SqliteLog) -> Counter[tuple[int, str]]:
    """How often each (round, outcome) is tallied in the log; no round for the unknown."""
    found: Counter[tuple[int, str]] = Counter()
    for _, record in records_of(log):
        if isinstance(record, ReportsRecord):
            found[NO_ROUND, "unknown"] += record.unknown
            for segment in record.segments:
                found[segment.round, "accepted"] += len(segment)
                for reason, count in segment.refused.items():
                    found[segment.round, reason] += count
                assert segment.attempts == len(segment) + sum(segment.refused.values())
    return +found


def key(one: Report) -> tuple[bytes, int, bytes, int]:
    return one.digest, one.round, one.id, one.symbol


def test_an_accepted_report_is_in_the_log_when_its_answer_arrives(log: GatedLog) -> None:
    sent = [report(symbol=i % OUTPUTS) for i in range(20)]
    with serving(log) as device:
        for i in range(0, 20, 4):
            assert device.upload(*sent[i : i + 4]) == ["accepted"] * 4
            assert stored(log) == Counter(map(key, sent[: i + 4]))


def test_no_answer_comes_before_the_record_is_durable_not_even_a_refusal(log: GatedLog) -> None:
    with serving(log) as device:
        log.gate.clear()
        answers: list[list[str]] = []
        thread = threading.Thread(target=lambda: answers.append(device.upload(report(9))))
        thread.start()
        assert log.entered.wait(120)
        thread.join(0.1)
        assert thread.is_alive()
        log.gate.set()
        thread.join()
        assert answers == [["invalid"]]
        assert tallies(log) == {(NO_ROUND, "invalid"): 1}


def test_every_report_of_an_upload_gets_an_outcome_of_its_own_and_a_tally(log: GatedLog) -> None:
    # Round 0 ended two hours ago, round 1 runs, round 2 begins in 22 hours, there is no round 3.
    with serving(log, now_s=START_S + DAY + 7200) as device:
        good = report(1, OUTPUTS - 1)
        broken = b"\xa5hello"
        body = encode_upload(
            [
                encode_report(good),
                encode_report(report(0)),
                broken,
                encode_report(report(2)),
                encode_report(report(3)),
                encode_report(report(1, OUTPUTS)),
                encode_report(report(1, digest=b"?" * 16)),
            ]
        )
        response = device.post(body)
        assert decode_response(response.data) == [
            "accepted",
            "late",
            "invalid",
            "early",
            "invalid",
            "invalid",
            "unknown",
        ]
        assert stored(log) == Counter([key(good)])
        assert tallies(log) == {
            (1, "accepted"): 1,
            (0, "late"): 1,
            (2, "early"): 1,
            (1, "invalid"): 1,
            (NO_ROUND, "invalid"): 1,
            (NO_ROUND, "unknown"): 2,
        }
        page = device.get("/metrics").data.decode()
        assert 'hubbub_gateway_reports_total{outcome="accepted"} 1.0\n' in page
        assert 'hubbub_gateway_reports_total{outcome="invalid"} 3.0\n' in page
        assert 'hubbub_gateway_uploads_total{status="200"} 1.0\n' in page
        assert f"hubbub_gateway_upload_bytes_total {len(body)}.0\n" in page
        assert "hubbub_gateway_pending_bytes 0.0\n" in page


def test_a_gateway_leaves_quotas_to_who_counts(tmp_path: Path) -> None:
    # Each of several would grant the whole quota, and copies of one report would use it up.
    survey = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 3"))
    with SqliteLog(tmp_path / "log.sqlite") as log, serving(log, survey) as device:
        assert device.upload(*[report(digest=survey.digest) for _ in range(8)]) == ["accepted"] * 8
        assert tallies(log) == {(0, "accepted"): 8}


def test_a_collector_that_slept_between_judging_and_writing_does_not_answer(log: GatedLog) -> None:
    up_s = [50.0]

    def clock() -> float:
        # It falls asleep right here: the time is what it was before, the boot clock is not.
        up_s[0] += 60.0
        return START_S + 100.0

    settings = GatewaySettings(max_wait_s=1000.0)  # else it is refused before it is written
    app = create_app(log, (SURVEY,), clock=clock, boot_clock=lambda: up_s[0], settings=settings)
    with running(app, settings) as device:
        answer = device.post(body_of(report()))
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert device.get("/healthz").status == 503
        assert 'hubbub_gateway_batches_total{fate="overdue"} 1.0\n' in device.get("/metrics").data.decode()


def test_a_node_says_at_its_health_and_metrics_that_it_seals_nothing(log: GatedLog) -> None:
    why: list[str | None] = [None]
    settings = GatewaySettings(metrics_s=0)
    app = create_app(
        log, (SURVEY,), clock=lambda: START_S + 100.0, unsealed=lambda: why[0], settings=settings
    )
    with running(app, settings) as device:
        assert device.get("/healthz").json() == {"status": "ok"}
        assert "hubbub_sealing 1.0\n" in device.get("/metrics").data.decode()
        why[0] = "the clock ran ahead"
        health = device.get("/healthz")
        # Uploads are taken all the same, and who balances load must not look elsewhere.
        assert (health.status, health.json()) == (200, {"status": "ok", "unsealed": "the clock ran ahead"})
        assert "hubbub_sealing 0.0\n" in device.get("/metrics").data.decode()
    with serving(log) as device:
        assert "hubbub_sealing" not in device.get("/metrics").data.decode()


def test_who_polls_the_metrics_learns_of_no_single_upload_before_a_minute_is_over(log: GatedLog) -> None:
    up_s = [50.0]
    settings = GatewaySettings()
    app = create_app(
        log, (SURVEY,), settings=settings, clock=lambda: START_S + 100, boot_clock=lambda: up_s[0]
    )
    with running(app, settings) as device:
        before = device.get("/metrics").data
        assert device.upload(report()) == ["accepted"]
        up_s[0] += 59.0
        assert device.get("/metrics").data == before
        up_s[0] += 1.0
        assert b'hubbub_gateway_reports_total{outcome="accepted"} 1.0\n' in device.get("/metrics").data


def test_a_gateway_reads_nothing_at_its_start(log: GatedLog) -> None:
    # Retention takes the first records of a topic that lives long enough: whoever read them would not start.
    def read(partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        raise LogError(f"partition {partition}: retention has taken offset {offset} and {limit} more")

    log.read = read  # type: ignore[method-assign]
    survey = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 3"))
    with serving(log, survey) as device:
        assert device.upload(report(digest=survey.digest)) == ["accepted"]


def test_a_body_sent_twice_is_taken_twice_and_left_for_the_reader_to_tell(log: GatedLog) -> None:
    one = report()
    with serving(log) as device:
        assert device.upload(one) == device.upload(one) == ["accepted"]
    assert stored(log) == {key(one): 2}


@pytest.mark.parametrize(
    "body",
    [b"", b"\xc1", b"\x92\x03\x90", b"hello", body_of(report())[:-1], body_of(report()) + b"\x00"],
    ids=["empty", "no value", "other version", "text", "cut short", "a byte more"],
)
def test_an_undecodable_body_is_400_and_leaves_no_record(log: GatedLog, body: bytes) -> None:
    with serving(log) as device:
        assert device.post(body).status == 400
    assert tallies(log) == {}


def test_an_empty_upload_is_answered_and_leaves_no_record(log: GatedLog) -> None:
    with serving(log) as device:
        assert device.upload() == []
    assert tallies(log) == {}


def test_too_many_reports_are_400(log: GatedLog) -> None:
    with serving(log, max_reports=2) as device:
        assert device.upload(report(), report()) == ["accepted"] * 2
        assert device.post(body_of(report(), report(), report())).status == 400


def headers_only(port: int, *lines: str) -> http.client.HTTPResponse:
    """The answer to a POST of which nothing but the headers is sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall("\r\n".join(["POST /v1/reports HTTP/1.1", "Host: x", *lines, "", ""]).encode())
        response = http.client.HTTPResponse(sock, method="POST")
        response.begin()
        response.read()
        return response


def test_too_long_a_body_is_413_before_it_is_read(log: GatedLog) -> None:
    with serving(log, max_upload_bytes=100, max_pending_bytes=1000) as device:
        for length in (101, 2**40, 10**17):
            response = headers_only(device.port, f"Content-Length: {length}")
            assert response.status == 413
            assert response.headers["Connection"] == "close"
        assert device.post(bytes(100)).status == 400  # read, and found not to be an upload


def test_a_body_without_a_length_is_411(log: GatedLog) -> None:
    with serving(log) as device:
        assert headers_only(device.port).status == 411


def test_a_chunked_body_is_taken_up_to_the_limit_and_no_further(log: GatedLog) -> None:
    one = report()
    with serving(log, max_upload_bytes=100, max_pending_bytes=250) as device:
        body = body_of(one)
        response = device.post(iter([body[:7], body[7:]]), chunked=True)  # type: ignore[arg-type]  # urllib3 takes an iterator
        assert decode_response(response.data) == ["accepted"]
        with socket.create_connection(("127.0.0.1", device.port), timeout=20) as sock:
            sock.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            sock.sendall(b"3c\r\n" + bytes(60) + b"\r\n3c\r\n" + bytes(60) + b"\r\n")
            answer = http.client.HTTPResponse(sock, method="POST")
            answer.begin()
            assert answer.status == 413
        assert "hubbub_gateway_pending_bytes 0.0\n" in device.get("/metrics").data.decode()
    assert stored(log) == {key(one): 1}


def test_a_body_that_does_not_arrive_is_408_and_lets_go_of_its_bytes(log: GatedLog) -> None:
    with serving(log, body_timeout_s=0.05) as device:
        assert headers_only(device.port, "Content-Length: 100").status == 408
        assert "hubbub_gateway_pending_bytes 0.0\n" in device.get("/metrics").data.decode()


def connected(device: Device) -> socket.socket:
    return socket.create_connection(("127.0.0.1", device.port), timeout=20)


def test_a_head_that_never_ends_is_refused_and_not_kept(log: GatedLog) -> None:
    with serving(log) as device:
        with connected(device) as sock:
            sock.sendall(b"POST /v1/reports HTTP/1.1\r\nX: " + b"a" * 2**17)
            assert sock.recv(100).startswith(b"HTTP/1.1 400")
        with connected(device) as sock, pytest.raises(ConnectionError):
            for _ in range(64):
                sock.sendall(b"X: " + b"a" * 2**20)
        # What comes in pieces, but comes, is a request like any.
        body = body_of(report())
        with connected(device) as sock:
            for _ in range(3):
                sock.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000)
                sock.sendall(b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                answer = http.client.HTTPResponse(sock, method="POST")
                answer.begin()
                assert decode_response(answer.read()) == ["accepted"]


def test_a_connection_that_says_too_little_ends_and_one_that_waits_for_its_answer_does_not(
    log: GatedLog,
) -> None:
    with serving(log, body_timeout_s=0.1) as device:
        log.gate.clear()
        answers: list[list[str]] = []
        thread = threading.Thread(target=lambda: answers.append(device.upload(report())))
        thread.start()
        assert log.entered.wait(120)
        with connected(device) as silent, connected(device) as slow:
            slow.sendall(b"POST /v1/reports HTTP/1.1\r\nX: ")
            with contextlib.suppress(ConnectionError):
                while not select.select([slow], [], [], 0.01)[0]:
                    slow.send(b"a")
            assert silent.recv(1) == b""
        log.gate.set()
        thread.join()
    assert answers == [["accepted"]]


def test_past_the_bound_uploads_get_429_before_they_are_read_and_recover(log: GatedLog) -> None:
    one, other = report(), report()
    size = len(body_of(one))
    with serving(log, max_upload_bytes=size, max_pending_bytes=size, retry_after_s=7) as device:
        log.gate.clear()
        answers: list[list[str]] = []
        thread = threading.Thread(target=lambda: answers.append(device.upload(one)))
        thread.start()
        assert log.entered.wait(120)
        refused = headers_only(device.port, f"Content-Length: {size}")
        assert refused.status == 429
        assert refused.headers["Retry-After"] == "7"
        assert headers_only(device.port, "Transfer-Encoding: chunked").status == 429
        assert device.post(body_of(other)).status == 429
        # The loop still answers while the log is held up.
        assert 'hubbub_gateway_uploads_total{status="429"} 3.0\n' in device.get("/metrics").data.decode()
        log.gate.set()
        thread.join()
        assert answers == [["accepted"]]
        assert device.upload(other) == ["accepted"]
    assert stored(log) == {key(one): 1, key(other): 1}
    assert tallies(log) == {(0, "accepted"): 2}


def test_when_the_log_fails_uploads_get_503_and_are_forgotten(log: GatedLog) -> None:
    survey = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 1"))
    one = report(digest=survey.digest)
    with serving(log, survey) as device:
        log.failing = True
        response = device.post(body_of(one, report(9, digest=survey.digest)))
        assert response.status == 503
        assert response.headers["Retry-After"] == "1"
        assert device.get("/healthz").status == 503
        log.failing = False
        assert device.upload(one) == ["accepted"]
        assert device.get("/healthz").status == 200
        page = device.get("/metrics").data.decode()
        assert 'hubbub_gateway_uploads_total{status="503"} 1.0\n' in page
        assert 'hubbub_gateway_reports_total{outcome="accepted"} 1.0\n' in page
    assert tallies(log) == {(0, "accepted"): 1}


def test_surveys_are_served_and_stand_before_every_report_once_across_restarts(tmp_path: Path) -> None:
    path, other = tmp_path / "log.sqlite", Survey.parse(VISITS)
    sent = [report() for _ in range(40)]
    for surveys in ([SURVEY], [SURVEY], [SURVEY, other]):
        with SqliteLog(path) as log, serving(log, *surveys) as device:
            assert decode_surveys(device.get("/v1/surveys").data) == [s.canonical for s in surveys]
            assert device.upload(*sent) == ["accepted"] * 40
    with SqliteLog(path) as log:
        for partition in range(log.partitions):
            kinds = [
                r.canonical if isinstance(r, SurveyRecord) else b""
                for p, r in records_of(log)
                if p == partition
            ]
            assert [kind for kind in kinds if kind] == [SURVEY.canonical, other.canonical]
            assert kinds[0] == SURVEY.canonical
            assert len(kinds) == 5


def test_no_trace_of_a_sender_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    needle = "7fd1c0de-needle"
    with caplog.at_level(logging.DEBUG), SqliteLog(tmp_path / "log.sqlite") as log:
        with serving(log, now_s=START_S + 119) as device:
            # Even where an operator turns the server's own logging up.
            for name in ("uvicorn", "uvicorn.access", "uvicorn.error"):
                caplog.set_level(logging.DEBUG, name)
            for body in (body_of(report()), body_of(report(9)), b"not msgpack"):
                headers = {
                    "User-Agent": needle,
                    "X-Forwarded-For": "203.0.113.77",
                    "Cookie": needle,
                    "Referer": needle,
                    "X-Request-Id": needle,
                }
                answer = device._pool.request("POST", f"/v1/reports?q={needle}", body=body, headers=headers)
                assert needle not in str(answer.headers) + repr(answer.data)
            page = device.get("/metrics").data.decode()
        assert tallies(log) == {(0, "accepted"): 1, (NO_ROUND, "invalid"): 1}
        minutes = {r.minute for _, r in records_of(log) if isinstance(r, ReportsRecord)}
        assert minutes == {START_S // 60 + 1}
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    # The device's own client logs its requests; what the server side logs is what counts.
    told = "\n".join(r.getMessage() for r in caplog.records if not r.name.startswith("urllib3"))
    for trace in (needle, "203.0.113", "127.0.0.1"):
        assert trace.encode() not in kept
        assert trace not in told + page


def test_stopping_finishes_what_waits(log: GatedLog) -> None:
    one = report()
    answers: list[list[str]] = []
    with serving(log) as device:
        log.gate.clear()
        thread = threading.Thread(target=lambda: answers.append(device.upload(one)))
        thread.start()
        assert log.entered.wait(120)
        release = threading.Timer(0.2, log.gate.set)
        release.start()
    thread.join()
    release.join()
    assert answers == [["accepted"]]
    assert stored(log) == {key(one): 1}


def test_a_get_on_reports_is_405(log: GatedLog) -> None:
    with serving(log) as device:
        answer = device.get("/v1/reports")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["detail"] == "method must be POST, got GET"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/reports", b"\xc1", 400),
        ("POST", "/v1/reports", bytes(2**20), 413),
        ("DELETE", "/v1/surveys", None, 405),
        ("GET", "/v1/nothing", None, 404),
    ],
)
def test_refusals_are_problems(
    log: GatedLog, method: str, path: str, body: bytes | None, status: int
) -> None:
    with serving(log) as device:
        answer = device.ask(method, path, body)
        assert answer.status == status
        assert answer.headers["content-type"] == "application/problem+json"
        found = answer.json()
        assert found["status"] == status
        assert found["title"] == http.client.responses[status]
        assert found["detail"]


# A gateway in a process of its own. argv: log file, and when it dies by itself: never, or at the first append
# of reports, before or after it is stored - unless it died like that already.
_NODE = """
import os, signal, socket, sys, time
from pathlib import Path
from hubbub.survey.survey import Survey
from hubbub_collector.gateway import create_app
from hubbub_collector.server import create_server
from hubbub_topic.sqlite import SqliteLog

path, death = sys.argv[1:]

class Mortal(SqliteLog):
    def append(self, batches):
        mark = Path(path + ".died")
        if death == "never" or mark.exists():
            return super().append(batches)
        mark.touch()
        if death == "after":
            super().append(batches)
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

survey = Survey.parse(sys.stdin.read())
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
app = create_app(Mortal(path), [survey], clock=lambda: survey.start_s + 100.0)
create_server(app).run(sockets=[listener])
"""


class Node:
    """A gateway process that is started again on the same log as often as it dies."""

    def __init__(self, path: Path, death: str = "never") -> None:
        self._arguments = [sys.executable, "-c", _NODE, str(path), death]
        self.port = 0
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(LABELS)
        self.process.stdin.close()
        self.port = int(self.process.stdout.readline())

    def end(self, number: int = signal.SIGKILL) -> int:
        """Sends a signal to this process, waits for it, and gives its exit code."""
        assert self.process.stdout is not None
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        code = self.process.wait(120)
        self.process.stdout.close()
        return code


@contextlib.contextmanager
def node(path: Path, death: str = "never") -> Iterator[Node]:
    started = Node(path, death)
    try:
        yield started
    finally:
        started.end()


def try_upload(port: int, body: bytes) -> list[str] | None:
    """The outcomes of an upload; None where it must be tried again."""
    device = Device(port)
    try:
        response = device.post(body)
    except urllib3.exceptions.HTTPError:
        return None
    finally:
        device.close()
    return list(decode_response(response.data)) if response.status == 200 else None


@pytest.mark.parametrize(("death", "copies"), [("before", 1), ("after", 2)])
def test_a_retry_after_kill_nine_between_accept_and_answer_is_stored(
    tmp_path: Path, death: str, copies: int
) -> None:
    path, one = tmp_path / "log.sqlite", report()
    with node(path, death) as gateway:
        assert try_upload(gateway.port, body_of(one)) is None
        assert gateway.process.wait(120) == -signal.SIGKILL
        gateway.end()
        gateway.start()
        assert try_upload(gateway.port, body_of(one)) == ["accepted"]
    with SqliteLog(path) as log:
        assert stored(log) == {key(one): copies}


def test_a_retry_after_an_answer_that_was_cut_off_is_stored_for_the_reader_to_tell(tmp_path: Path) -> None:
    """The way back is shut: the sender hears nothing, the log has the report, the same bytes come again."""
    path, one = tmp_path / "log.sqlite", report()
    with node(path) as gateway:
        proxy = Proxy(gateway.port)
        proxy.to_client.clear()
        device = Device(proxy.port)
        with pytest.raises(urllib3.exceptions.HTTPError) as cut:
            device.post(body_of(one), timeout=2.0)
        logging.getLogger("device").warning("device: %s", type(cut.value).__name__)
        device.close()
        proxy.to_client.set()
        outcomes = try_upload(proxy.port, body_of(one))
        logging.getLogger("device").warning("device: %s", outcomes)
        assert outcomes == ["accepted"]
        proxy.close()
    with SqliteLog(path) as log:
        assert stored(log) == {key(one): 2}  # one id: the reader counts it once


def test_kill_nine_at_any_time_loses_no_acknowledged_report(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    acknowledged: list[Report] = []
    stop = threading.Event()

    with node(path) as gateway:

        def keep_sending() -> None:
            while not stop.is_set():
                one = report(symbol=secrets.randbelow(OUTPUTS))
                body = body_of(one)
                while (outcomes := try_upload(gateway.port, body)) is None:
                    time.sleep(0.01)
                assert outcomes == ["accepted"]
                acknowledged.append(one)

        threads = [threading.Thread(target=keep_sending) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            before = len(acknowledged)
            while len(acknowledged) < before + 8:
                time.sleep(0.01)
            time.sleep(secrets.randbelow(50) / 1000)
            assert gateway.end() == -signal.SIGKILL
            gateway.start()
        stop.set()
        for thread in threads:
            thread.join()
        # Asked politely, it leaves by itself and with success.
        assert gateway.end(signal.SIGTERM) in (0, -signal.SIGTERM)
    with SqliteLog(path) as log:
        found = stored(log)
    assert len(acknowledged) >= 40
    assert {key(one) for one in acknowledged} == set(found)
