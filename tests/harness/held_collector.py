"""A collector in a thread; its log can be held up, and its clock be moved; and plain senders to it."""

from __future__ import annotations

import contextlib
import re
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from surveys import LABELS, START_S

from hubbub.survey import Survey
from hubbub_collector import GatewaySettings, Permits, create_app, create_server
from hubbub_collector.http import Connection
from hubbub_topic import LogError, SqliteLog

SURVEY = Survey.parse(LABELS)
SETS = Survey.parse(LABELS.replace('"self-rated-health"', '"sets"').replace('"grr"', '"subset"'))
GONE = Survey.parse(LABELS.replace('"self-rated-health"', '"withdrawn"'))
PATIENCE_S = 60.0
REPORTS, LIMIT = 45, 1800  # the most of one upload, and its most bytes
END = b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"


class FaultyLog(SqliteLog):
    """A log that can be held up, and made to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, 1)
        self.gate, self.entered, self.failing = threading.Event(), threading.Event(), False
        self.gate.set()

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
        if self.failing:
            raise LogError("disk full")
        return super().append(batches)


class Collector:
    """A collector in a thread, whose boot clock stands still unless it is moved."""

    def __init__(self, log: FaultyLog, permits: Permits, settings: GatewaySettings) -> None:
        self.log, self.boot_s = log, 1000.0
        # Bytes that were read of each sender, by its port.
        self.heard: Counter[int] = Counter()
        surveys = [SURVEY, SETS, GONE]
        self.app = create_app(
            log,
            surveys,
            settings=settings,
            permits=permits,
            clock=lambda: START_S + 100.0,
            boot_clock=lambda: self.boot_s,
        )
        self.app.state.gateway._admission.withdraw([GONE.digest])
        self.server = create_server(self.app, port=0, settings=settings)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        self.wait(lambda: self.server.started)
        self.address = self.server.servers[0].sockets[0].getsockname()

    def wait(self, done: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < ends, "it takes too long"
            assert self.thread.is_alive()
            time.sleep(0.002)

    def wait_for_tasks(self, number: int) -> None:
        self.wait(lambda: len(self.server.server_state.tasks) == number)

    def wait_for_heard(self, sock: socket.socket, size: int) -> None:
        port = sock.getsockname()[1]
        self.wait(lambda: self.heard[port] >= size)

    def wait_for_uploads(self, number: int) -> None:
        """Wait until so many uploads are in the writer's hands, beside the batch that it writes."""
        self.wait(
            lambda: sum(batch.uploads for batch in list(self.app.state.gateway._writer._queue)) >= number
        )

    def wait_for_accepted(self, number: int) -> None:
        accepted = f'hubbub_gateway_reports_total{{outcome="accepted"}} {number}.0'
        self.wait(lambda: accepted in self.counts())

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE_S)

    def hold(self) -> None:
        """Hold up the log from now on."""
        self.log.entered.clear()
        self.log.gate.clear()

    def counts(self) -> list[str]:
        """What /metrics says, but for the time it took."""
        with self.connect() as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            page = b"".join(iter(lambda: sock.recv(65_536), b"")).decode()
        return lines(page.split("\r\n\r\n", 1)[1])

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def lines(page: str) -> list[str]:
    return [line for line in page.splitlines() if not line.startswith(("#", "hubbub_gateway_write_seconds"))]


def read(sock: socket.socket, number: int = 1) -> bytes:
    """What came, once so many answers are whole in it, or the connection has ended."""
    found, begin = b"", 0
    while number and (more := received(sock)):
        found += more
        while match := re.compile(rb"(?s)HTTP/1.1 .*?\r\n\r\n").match(found, begin):
            length = re.search(rb"content-length: (\d+)", match[0])
            ends = match.end() + (int(length[1]) if length else 0)
            if ends > len(found):
                break
            number -= not match[0].startswith(b"HTTP/1.1 100")  # that one asks to go on
            begin = ends
    return found


def received(sock: socket.socket) -> bytes:
    """What is there; nothing at the end, however it comes."""
    try:
        return sock.recv(65_536)
    except ConnectionError:
        return b""


def send(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        sock.sendall(data)


def dateless(answers: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*", b"date", answers)


Said = dict[str, Any]


@contextlib.contextmanager
def collecting(
    folder: Path, *, permits: Permits | None = None, **settings: float
) -> Iterator[tuple[Collector, Said]]:
    chosen: Any = {
        "metrics_s": 0,
        "linger_s": 0.01,
        "max_upload_bytes": LIMIT,
        "max_reports": REPORTS,
        **settings,
    }
    with (
        FaultyLog(folder / f"{secrets.token_hex(4)}.sqlite") as log,
        pytest.MonkeyPatch.context() as patch,
    ):
        collector = Collector(log, permits or Permits(), GatewaySettings(**(chosen | settings)))
        receive = Connection.data_received

        def noted(connection: Connection, data: bytes) -> None:
            port = connection.client[1] if connection.client else 0
            receive(connection, data)
            collector.heard[port] += len(data)

        patch.setattr(Connection, "data_received", noted)
        try:
            yield collector, {}
        finally:
            log.gate.set()
            collector.stop()


def whole_requests(data: bytes) -> int:
    """How many requests with a length, or without a body, are whole at the beginning of this."""
    found, at = 0, 0
    while head := re.compile(rb"(?s)[A-Z]+ \S+ HTTP/1\.\d\r\n.*?\r\n\r\n").match(data, at):
        length = re.search(rb"Content-Length: (\d+)", head[0])
        at = head.end() + (int(length[1]) if length else 0)
        if at > len(data):
            break
        found += 1
    return found


def conversation(collector: Collector, parts: Sequence[bytes | tuple[bytes]]) -> bytes:
    """All that is said to who sends this.

    The next part is sent when the collector has read this one, and has answered what is whole in it: by which
    way an upload goes depends on what has come and on what is still to be answered.
    """
    with collector.connect() as sock:
        found, sent = b"", 0
        for part in parts:
            data = part if isinstance(part, bytes) else part[0]
            send(sock, data)
            sent += len(data)
            if isinstance(part, bytes):
                found += read(sock, max(1, whole_requests(data)))
            else:
                collector.wait_for_heard(sock, sent)
                if whole_requests(data):
                    collector.wait_for_tasks(0)
        send(sock, END)
        return dateless(found + b"".join(iter(lambda: received(sock), b"")))


def one_after_another(collector: Collector, requests: Sequence[bytes]) -> list[bytes]:
    with collector.connect() as sock:
        found = []
        for request in requests:
            send(sock, request)
            found.append(dateless(read(sock)))
        return found


def senders(collector: Collector, stack: contextlib.ExitStack, *requests: bytes) -> list[socket.socket]:
    """Senders of uploads that wait, the first of them in a batch of its own that is being written.

    A task that is made has taken nothing yet: each whole upload is waited for until the writer has it.
    """
    collector.hold()
    found, waiting = [], -1  # the first is written, and waits no more
    for number, request in enumerate(requests, start=1):
        found.append(stack.enter_context(collector.connect()))
        found[-1].sendall(request)
        collector.wait_for_tasks(number)
        assert collector.log.entered.wait(PATIENCE_S)
        waiting += min(1, whole_requests(request))
        collector.wait_for_uploads(waiting)
    return found


def answers(socks: Sequence[socket.socket], *numbers: int) -> list[bytes]:
    """One answer to each, or so many."""
    return [
        dateless(read(sock, number)) for sock, number in zip(socks, numbers or [1] * len(socks), strict=True)
    ]
