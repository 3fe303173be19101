"""What one stranger may hold of a server: bytes, requests in a row, connections, time. Over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import http.client
import io
import json
import logging
import secrets
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shown_view import ShownView
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send
from surveys import LABELS, START_S

from hubbub.survey.survey import Survey
from hubbub.wire.record import ReportsRecord, decode_record
from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub_aggregator.web import api
from hubbub_collector.gateway import create_app
from hubbub_collector.server import create_server
from hubbub_collector.settings import GatewaySettings
from hubbub_topic.sqlite import SqliteLog

pytestmark = pytest.mark.integration

SURVEY = Survey.parse(LABELS)
KIB = 2**10
POST = b"POST %s HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
# The gateway's own path, one that only takes GET, one of the page, and none at all.
PATHS = [b"/v1/reports", b"/v1/surveys", b"/api/live", b"/nowhere"]
PATIENCE_S = 120.0


class Server:
    """A server in a thread, with the gateway's few paths before the page's, as a node has them."""

    def __init__(self, app: object, settings: GatewaySettings) -> None:
        self.server = create_server(app, port=0, settings=settings)  # type: ignore[arg-type]  # any ASGI
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        self.wait(lambda: self.server.started)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def wait(self, done: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < ends, "it takes too long"
            assert self.thread.is_alive()
            time.sleep(0.005)

    def connect(self, receive_bytes: int | None = None) -> socket.socket:
        sock = socket.socket()
        if receive_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        sock.settimeout(PATIENCE_S)
        sock.connect(("127.0.0.1", self.port))
        return sock

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def upload(self) -> list[str]:
        status, body = self.post(upload())
        assert status == 200
        return list(decode_response(body))

    def post(self, body: bytes, **headers: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST", "/v1/reports", body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()


class GatedLog(SqliteLog):
    """A log that can be held up."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate, self.entered = threading.Event(), threading.Event()
        self.gate.set()

    def append(self, batches):
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
        return super().append(batches)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GatedLog]:
    with GatedLog(tmp_path / "log.sqlite") as log:
        yield log


@contextlib.contextmanager
def serving(app: object, **settings: float) -> Iterator[Server]:
    server = Server(app, GatewaySettings(**settings))  # type: ignore[arg-type]  # as the settings say
    try:
        yield server
    finally:
        server.server.should_exit = True
        server.thread.join()


@contextlib.contextmanager
def node(log: SqliteLog, **settings: float) -> Iterator[Server]:
    ingest = create_app(
        log,
        [SURVEY],
        settings=GatewaySettings(**settings),  # type: ignore[arg-type]  # as above
        clock=lambda: START_S + 100.0,
    )
    page = api.create_app(ShownView(), closing=lambda: server.server.should_exit)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette):
        async with ingest.state.gateway.running():
            yield

    with serving(Starlette(routes=[*ingest.routes, *page.routes], lifespan=lifespan), **settings) as server:
        yield server


def upload(reports: int = 1) -> bytes:
    return encode_upload(
        [encode_report(Report(SURVEY.digest, 0, secrets.token_bytes(16), 0)) for _ in range(reports)]
    )


def posted(body: bytes, path: bytes = b"/v1/reports") -> bytes:
    return POST % path + b"Content-Length: %d\r\n\r\n" % len(body) + body


class _Unbuffered:
    """A socket of which no byte behind the answer is read: the next answer stays in it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def makefile(self, mode: str) -> io.RawIOBase:
        return self._sock.makefile(mode, buffering=0)  # type: ignore[call-overload, no-any-return]


def answer(sock: socket.socket, method: str = "POST") -> http.client.HTTPResponse:
    """The next answer, its body read."""
    got = http.client.HTTPResponse(_Unbuffered(sock), method=method)  # type: ignore[arg-type]
    got.begin()
    got.body = b"".join(iter(lambda: got.read(2**16), b""))  # type: ignore[attr-defined]  # to look at later
    return got


def status_after(sock: socket.socket, pieces: Iterator[bytes], most: int) -> tuple[int, int]:
    """Bytes sent until the server has had enough, and the status that it answered; 0 for none."""
    sent = 0
    with contextlib.suppress(OSError):
        for piece in pieces:
            sock.sendall(piece)
            sent += len(piece)
            if sent >= most:
                break
    with contextlib.suppress(OSError, http.client.HTTPException):
        return sent, answer(sock).status
    return sent, 0


def again(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


def end_of(sock: socket.socket) -> bool:
    """Whether the server ends the connection; waits for it."""
    try:
        while sock.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


# Trailers and what else is no body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"0\r\n", b"a:\r\n" * 4096),
        (b"0\r\na: ", b"v" * 2**14),
        (b"1;", b"e" * 2**14),
        (b"", b"1\r\nx\r\n" * 3000),
    ],
    ids=["trailers", "one trailer", "extensions", "chunks of a byte"],
)
def test_what_is_no_body_of_a_chunked_request_ends_at_a_bound(
    log: GatedLog, path: bytes, begin: bytes, piece: bytes
) -> None:
    """Kernel buffers on both sides may take up to some 7 MB beyond what the server reads."""
    with node(log) as server, server.connect() as sock:
        sock.sendall(CHUNKED % path + begin)
        sent, _ = status_after(sock, again(piece), 32 * 2**20)
        assert sent < 16 * 2**20
        assert end_of(sock)
        assert server.upload() == ["accepted"]


def test_trailers_and_extensions_that_are_short_are_taken_and_not_kept(log: GatedLog) -> None:
    body = upload()
    with node(log) as server, server.connect() as sock:
        for _ in range(3):
            sock.sendall(
                CHUNKED % b"/v1/reports" + b"%x;a=b\r\n" % len(body) + body + b"\r\n0\r\nT: v\r\n\r\n"
            )
            assert decode_response(answer(sock).body) == ["accepted"]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        while (await receive()).get("more_body"):
            pass
        names = b",".join(name for name, _ in scope["headers"])
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", b"%d" % len(names))],
            }
        )
        await send({"type": "http.response.body", "body": names})

    with serving(_lifespan(app)) as server, server.connect() as sock:
        sock.sendall(CHUNKED % b"/" + b"1\r\nx\r\n0\r\nadmin: yes\r\n\r\n")
        assert answer(sock).body == b"host,transfer-encoding"


def _lifespan(app):
    """The application, with a lifespan that does nothing."""

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
        else:
            await app(scope, receive, send)

    return whole


def test_too_many_headers_are_refused_though_they_are_short(log: GatedLog) -> None:
    with node(log) as server:
        for count, status in ((128 - 1, 200), (128, 400)):
            with server.connect() as sock:
                sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * count + b"\r\n")
                assert answer(sock, "GET").status == status


def test_trailers_count_as_headers_so_that_thousands_cost_no_time(log: GatedLog) -> None:
    """Below the bound in bytes: 16,000 trailers of a byte took 5 ms of the event loop, again and again."""
    with node(log) as server:
        for count, status in ((128 - 2, 200), (128 - 1, 400)):
            body = upload()
            with server.connect() as sock:
                sock.sendall(CHUNKED % b"/v1/reports" + b"%x\r\n%s\r\n0\r\n" % (len(body), body))
                sock.sendall(b"a:\r\n" * count + b"\r\n")
                assert answer(sock).status == status


@pytest.mark.parametrize("sent", ["whole", "silent", "half a head", "half a body", "pipelined", "refused"])
def test_a_connection_that_is_lost_is_freed_without_a_search_for_cycles(log: GatedLog, sent: str) -> None:
    """Thousands of open connections make that search take half a second, and each lost one hastens it."""
    messages = {
        "whole": posted(upload()),
        "silent": b"",
        "half a head": POST % b"/v1/reports" + b"X: ",
        "half a body": POST % b"/v1/reports" + b"Content-Length: 9\r\n\r\na",
        "pipelined": posted(upload()) * 3,
        "refused": b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"a:\r\n" * 200,
    }
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        with node(log) as server:
            with server.connect() as sock:
                sock.sendall(messages[sent])
                server.wait(lambda: server.connections == 1)
                (lost,) = map(weakref.ref, list(server.server.server_state.connections))
                if sent in ("whole", "pipelined", "refused"):
                    assert answer(sock).status in (200, 400)
            server.wait(lambda: server.connections == 0)
            server.wait(lambda: lost() is None)
    finally:
        if was_enabled:
            gc.enable()


# Requests in a row


def test_a_few_requests_may_be_queued_and_the_sender_of_more_hears_where_it_ended(log: GatedLog) -> None:
    with node(log) as server:
        for count, answered in ((5, 5), (6, 5), (300, 5)):
            log.gate.clear()
            log.entered.clear()
            with server.connect() as sock:
                sock.sendall(posted(upload()) * count)
                assert log.entered.wait(PATIENCE_S)
                log.gate.set()
                got = [answer(sock) for _ in range(answered)]
                assert [one.status for one in got] == [200] * answered
                kept = [one.headers["Connection"] != "close" for one in got]
                assert kept == [True] * (answered - 1) + [count == answered]
                if count > answered:
                    assert end_of(sock)
                else:
                    sock.sendall(posted(upload()))
                    assert answer(sock).status == 200


def test_nothing_is_read_while_a_request_is_queued_and_all_is_answered_after(log: GatedLog) -> None:
    """Requests of 60 kB each: more than one read takes; the buffers of the kernel hold the rest meanwhile."""
    body = upload(1400)
    with node(log) as server, server.connect() as sock:
        log.gate.clear()
        sender = threading.Thread(target=sock.sendall, args=(posted(body) * 20,))
        sender.start()
        assert log.entered.wait(PATIENCE_S)
        (connection,) = server.server.server_state.connections
        server.wait(lambda: len(connection.pipeline) > 0)
        assert len(connection.pipeline) <= 1
        assert connection._held <= 2**18 + 2**16
        log.gate.set()
        for _ in range(20):
            assert len(decode_response(answer(sock).body)) == 1400
        sender.join()


def test_a_stream_with_a_request_behind_it_ends_when_its_reader_leaves(log: GatedLog) -> None:
    with node(log) as server:
        for _ in range(3):
            with server.connect() as sock:
                sock.sendall(
                    b"GET /api/events HTTP/1.1\r\nHost: x\r\n\r\n" + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                )
                assert sock.recv(100).startswith(b"HTTP/1.1 200")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait(lambda: not server.server.server_state.tasks)


# The end of a connection


def test_a_sender_that_is_refused_can_send_on_and_read_why(log: GatedLog) -> None:
    body = bytes(700_000)
    with node(log) as server:
        for _ in range(5):
            with server.connect() as sock:
                sock.sendall(POST % b"/v1/reports" + b"Content-Length: %d\r\n\r\n" % len(body))
                assert select.select([sock], [], [], PATIENCE_S)[0]  # the answer is there before the body
                for at in range(0, len(body), 10_000):
                    sock.sendall(body[at : at + 10_000])
                got = answer(sock)
                assert (got.status, got.headers["Connection"]) == (413, "close")
                assert sock.recv(1) == b""


@pytest.mark.parametrize("path", PATHS)
def test_a_request_that_is_answered_before_its_body_is_read_ends_its_connection(
    log: GatedLog, path: bytes
) -> None:
    with node(log, body_timeout_s=0.2) as server, server.connect() as sock:
        sock.sendall(POST % path + b"Content-Length: 65537\r\n\r\n")
        assert answer(sock).headers["Connection"] == "close"
        sock.sendall(b"1")
        server.wait(lambda: server.connections == 0)


@pytest.mark.parametrize("path", [PATHS[0], PATHS[-1]])
@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"GET / HTTP/1.1\r\nX: ",
        CHUNKED + b"1;",
        CHUNKED + b"0\r\na:",
        POST + b"Content-Length: 999\r\n\r\n",
    ],
    ids=["blank", "head", "extension", "trailer", "body"],
)
def test_a_byte_now_and_then_gains_no_time(log: GatedLog, path: bytes, begin: bytes) -> None:
    """Also after a request that was complete. Two times a body's, and what a busy machine adds."""
    with node(log, body_timeout_s=0.2) as server:
        for before in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
            with server.connect() as sock:
                sock.sendall(before)
                if before:
                    assert answer(sock, "GET").status == 200
                sock.sendall(begin % path if b"%s" in begin else begin)
                ends = time.monotonic() + PATIENCE_S
                with contextlib.suppress(OSError):
                    while time.monotonic() < ends:
                        sock.send(b"\r\n" if not begin else b"1")
                        select.select([], [], [], 0.01)
                assert time.monotonic() < ends, "it was let go on"


def test_who_reads_nothing_is_left(log: GatedLog) -> None:
    large = bytes(2 * 2**20)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"%d" % len(large))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": large})

    with serving(_lifespan(app), body_timeout_s=0.3) as server:
        socks = [server.connect(4096) for _ in range(10)]
        for sock in socks:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
        server.wait(lambda: server.connections == 10)
        server.wait(lambda: server.connections == 0)
        for sock in socks:
            sock.close()
        # Who reads slowly, but reads, gets all of it.
        with server.connect() as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer(sock, "GET").body == large


def test_network_faults_leave_no_traceback(log: GatedLog, caplog: pytest.LogCaptureFixture) -> None:
    with node(log) as server:
        for _ in range(20):
            with server.connect() as sock:
                sock.sendall(b"GET /page/page.js HTTP/1.1\r\nHost: x\r\n\r\n" * 4 + posted(upload()))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        server.wait(lambda: server.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info] == []


# All connections together


def test_many_connections_are_taken_in_few_turns_of_the_event_loop() -> None:
    """One connection a turn lets a sender that keeps turns busy shut others out: 150 a second were taken."""
    blocked, gate, turns = threading.Event(), threading.Event(), [0]

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        blocked.set()
        assert gate.wait(PATIENCE_S)  # nothing is accepted meanwhile
        while server.connections < 201:
            turns[0] += 1
            await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    with serving(_lifespan(app)) as server, contextlib.ExitStack() as stack:
        first = stack.enter_context(server.connect())
        first.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert blocked.wait(PATIENCE_S)
        for _ in range(200):
            stack.enter_context(server.connect())
        gate.set()
        assert answer(first, "GET").status == 200
        assert turns[0] < 50


def test_the_connection_idle_longest_gives_way_to_a_new_one(
    log: GatedLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine five seconds are over soon.
    monkeypatch.setattr("hubbub_collector.http.connection.KEEP_ALIVE_S", 10 * PATIENCE_S)
    with node(log, max_connections=8) as server, contextlib.ExitStack() as stack:
        silent = [stack.enter_context(server.connect()) for _ in range(8)]
        server.wait(lambda: server.connections == 8)
        # A byte does not make a connection younger; an answer does.
        silent[0].sendall(b"G")
        silent[1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer(silent[1], "GET").status == 200
        for _ in range(2):
            assert server.upload() == ["accepted"]
        assert end_of(silent[0])
        assert server.connections <= 8
        silent[1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer(silent[1], "GET").status == 200
    assert any("idle longest" in record.getMessage() for record in caplog.records)


def test_who_waits_for_an_answer_gives_way_to_nobody(log: GatedLog) -> None:
    with node(log, max_connections=4) as server, contextlib.ExitStack() as stack:
        log.gate.clear()
        waiting = [stack.enter_context(server.connect()) for _ in range(3)]
        for sock in waiting:
            sock.sendall(posted(upload()))
        server.wait(lambda: len(server.server.server_state.tasks) == 3)
        for _ in range(10):
            stack.enter_context(server.connect())
        log.gate.set()
        assert [answer(sock).status for sock in waiting] == [200] * 3


def test_uploads_of_senders_that_hung_up_are_not_worked_through(log: GatedLog) -> None:
    with node(log) as server, server.connect() as first:
        log.gate.clear()
        log.entered.clear()
        first.sendall(posted(upload()))
        assert log.entered.wait(PATIENCE_S)
        for number in range(40):
            with server.connect() as sock:
                sock.sendall(posted(upload()))
                if number % 2:  # a reset, not an end
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with server.connect() as stays:
            stays.sendall(posted(upload()))
            server.wait(lambda: len(server.server.server_state.tasks) == 42)
            server.wait(lambda: server.connections == 2)
            log.gate.set()
            assert [decode_response(answer(sock).body) for sock in (first, stays)] == [["accepted"]] * 2
    assert stored_reports(log) == 2


def stored_reports(log: SqliteLog) -> int:
    records = [decode_record(body) for p in range(log.partitions) for _, body in log.read(p, 0, 1000)]
    segments = [s for record in records if isinstance(record, ReportsRecord) for s in record.segments]
    return sum(len(segment.ids) // 16 for segment in segments)


def test_bodies_that_do_not_come_keep_nobody_out(log: GatedLog) -> None:
    """Bodies of 64 KiB but a byte: 200 of them are 13 MB, where 1 MiB and a request's may be held."""
    with node(log, max_pending_bytes=2**20) as server, contextlib.ExitStack() as stack:
        for _ in range(200):
            sock = stack.enter_context(server.connect())
            with contextlib.suppress(OSError):
                sock.sendall(POST % b"/v1/reports" + b"Content-Length: 65536\r\n\r\n" + bytes(65_000))
        for _ in range(10):
            assert server.upload() == ["accepted"]
        assert server.connections <= 1 + 2 * 2**20 // 65_000


def test_bodies_that_are_only_announced_keep_nobody_out(log: GatedLog) -> None:
    with node(log, max_pending_bytes=2**16) as server, contextlib.ExitStack() as stack:
        for _ in range(20):
            sock = stack.enter_context(server.connect())
            sock.sendall(POST % b"/v1/reports" + b"Content-Length: 65536\r\n\r\n")
        server.wait(lambda: len(server.server.server_state.tasks) == 20)
        assert server.upload() == ["accepted"]


_LIMITS = """
import json, logging, resource, sys
from hubbub_collector.http.connections import connections_to_be_had
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(json.dumps([connections_to_be_had(wanted), *resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "had", "raised", "lines"),
    [
        (1024, 1024, 100, 100, 1024, 0),
        (512, 1024, 800, 800, 928, 0),
        (512, 1024, 8192, 896, 1024, 1),
        (1024, 1024, 8192, 896, 1024, 1),
        (64, 64, 8192, 32, 64, 1),
    ],
)
def test_the_limit_of_open_files_is_raised_and_the_connections_fit_below_it(
    soft: int, hard: int, *, wanted: int, had: int, raised: int, lines: int
) -> None:
    words = [sys.executable, "-c", _LIMITS, str(soft), str(hard), str(wanted)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [had, raised, hard]
    assert len(done.stderr.splitlines()) == lines
    assert not lines or f"{had} it is" in done.stderr


# Other protocols, and who else may upload


def test_a_wish_for_another_protocol_is_answered_as_any_request(
    log: GatedLog, caplog: pytest.LogCaptureFixture
) -> None:
    body = upload()
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    with node(log) as server:
        with server.connect() as sock:
            sock.sendall(
                b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n" + b"PRI * HTTP/2.0\r\n\r\n"
            )
            assert answer(sock, "GET").status == 200
            assert end_of(sock)
        with server.connect() as sock:
            sock.sendall(POST % b"/v1/reports" + upgrade + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            # The parser takes what follows such a head for the other protocol: there is no body to count.
            assert answer(sock).status == 400
            assert end_of(sock)
        with server.connect() as sock:
            sock.sendall(b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(1000))
            assert answer(sock, "GET").status == 400
        with server.connect() as sock:
            sock.sendall(
                POST % b"/v1/reports" + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            assert sock.recv(100).startswith(b"HTTP/1.1 100")
            sock.sendall(body)
            assert decode_response(answer(sock).body) == ["accepted"]
    assert not [record for record in caplog.records if record.levelno > logging.WARNING]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1", "Content-Type": "text/plain"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-origin"},
    ],
)
def test_an_upload_out_of_a_browser_is_refused(log: GatedLog, headers: dict[str, str]) -> None:
    with node(log) as server:
        assert server.post(upload(), **headers)[0] == 403
        assert server.upload() == ["accepted"]
    records = [body for p in range(log.partitions) for _, body in log.read(p, 0, 1000)]
    assert len(records) == log.partitions + 1  # the survey in each, and the one upload
