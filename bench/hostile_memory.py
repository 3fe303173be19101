"""Memory of a node while strangers send what never ends or read nothing of what they asked for.

    python bench/hostile_memory.py             every attack, each on a node of its own
    python bench/hostile_memory.py trailers    one of: trailers, pipelined, unread, files

trailers: one connection sends 40 MiB of chunked trailers. pipelined: 200 connections send 525 KB of uploads
each, 105 MB together, and read no answer. unread: 200 connections ask again and again for a list of surveys
of 2 MB and read none of it. files: a node that may open 1,024 files, and 1,500 connections that each get an
answer before their body is read, send one byte of it and wait; then an honest upload.

The figures are resident bytes of the node's process, before and at the most, looked at every 10 ms.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import resource
import secrets
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hubbub.survey.survey import Survey
from hubbub.wire.report import Report, encode_report, encode_upload
from hubbub_collector.settings import GatewaySettings

MIB = 2**20
MOST = GatewaySettings().max_connections
TRAILERS = 40 * MIB
CONNECTIONS, PIPELINED = 200, 525_000
FILES, STRANGERS = 1024, 1500
LABELS = 16_000  # of 120 bytes: a list of surveys of 2 MB
SURVEY = """
id = "hostile"
version = 1
title = "Hostile"
epsilon = 2.0
minimum_cohort = 100
planned_devices = 100000
[schedule]
start = {start}
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"
[attribute]
id = "age"
kind = "evolving"
{values}
[mechanism]
name = "grr"
"""
NUMBERS = 'type = "integer"\nlow = 10\nhigh = 99'


def survey(*, large: bool) -> Survey:
    """Return a survey whose round began a minute ago; a large one fills a list of 2 MB."""
    values = NUMBERS
    if large:
        labels = ",\n".join(f'"{number:0>120}"' for number in range(LABELS))
        values = f'type = "label"\nlabels = [{labels}]'
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    return Survey.parse(SURVEY.format(start=start, values=values))


class Node:
    """A node in a process of its own, and its resident memory."""

    def __init__(
        self,
        asked: Survey,
        folder: Path,
        *,
        files: int | None = None,
        connections: int = MOST,
        words: Sequence[str] = (),
    ) -> None:
        (folder / "survey").write_bytes(asked.canonical)
        self.process = subprocess.Popen(
            words or [sys.executable, __file__, "serve", str(folder), str(files or 0), str(connections)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self.most = self.before = self.resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def resident(self) -> int:
        """Return resident bytes now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)

    def _look(self) -> None:
        while not self._stop.wait(0.01):
            self.most = max(self.most, self.resident())

    def connect(self) -> socket.socket:
        """Return a connection to the node."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=5)

    def honest(self, asked: Survey) -> str:
        """Return the status that an honest upload got, and the seconds that it took."""
        body, began = upload(asked), time.monotonic()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("POST", "/v1/reports", body)
            return f"{connection.getresponse().status} after {time.monotonic() - began:.2f} s"
        except OSError as error:
            return f"{error!r} after {time.monotonic() - began:.2f} s"

    def end(self) -> str:
        """Return the node's stderr."""
        self._stop.set()
        self._thread.join()
        self.process.kill()
        return self.process.communicate()[1]


def upload(asked: Survey, reports: int = 8) -> bytes:
    """Return the body of an upload of reports with new ids."""
    return encode_upload(
        [encode_report(Report(asked.digest, 0, secrets.token_bytes(16), 1)) for _ in range(reports)]
    )


@contextlib.contextmanager
def node(asked: Survey, files: int | None = None) -> Iterator[Node]:
    """Run a node for one attack, and yield it; its figures are taken afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        started = Node(asked, Path(folder), files=files)
        try:
            yield started
            print(f"    an honest upload: {started.honest(asked)}")
        finally:
            lines = started.end().splitlines()
        print(f"    {started.before // MIB} -> {started.most // MIB} MiB; {len(lines)} lines in the log")
        for line in lines[:3]:
            print(f"      {line[:150]}")


def trailers() -> None:
    """Send trailers over one connection."""
    asked = survey(large=False)
    for path in ("/v1/reports", "/api/live", "/nowhere"):
        print(f"trailers, {TRAILERS // MIB} MiB to {path}")
        with node(asked) as attacked, attacked.connect() as sock:
            sock.sendall(
                b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" % path.encode()
            )
            sent = 0
            with contextlib.suppress(OSError):
                while sent < TRAILERS:
                    sock.sendall(b"a:\r\n" * 2**14)
                    sent += 2**16
            print(f"    {sent / MIB:.1f} MiB were sent")


def pour(attacked: Node, data: bytes, times: int) -> int:
    """Send `data` so many times over every connection, read nothing, and return the bytes sent."""
    with contextlib.ExitStack() as stack:
        left = {}
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(attacked.connect())
            sock.setblocking(False)
            left[sock] = memoryview(data * times)
        sent, quiet_at = 0, time.monotonic() + 5.0
        while left and time.monotonic() < quiet_at:
            for sock in select.select([], list(left), [], 0.5)[1]:
                try:
                    done = sock.send(left[sock][: 2**16])
                except OSError:
                    del left[sock]
                    continue
                sent, quiet_at = sent + done, time.monotonic() + 5.0
                left[sock] = left[sock][done:]
                if not left[sock]:
                    del left[sock]
        time.sleep(1.0)
        return sent


def pipelined() -> None:
    """Send uploads over connections that read no answers."""
    asked = survey(large=False)
    body = upload(asked, 0)
    request = b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    print(f"pipelined, {CONNECTIONS} connections with {PIPELINED} bytes each")
    with node(asked) as attacked:
        sent = pour(attacked, request, PIPELINED // len(request))
        print(f"    {sent / 1e6:.1f} MB were sent")


def unread() -> None:
    """Ask for much over connections that read nothing."""
    asked = survey(large=True)
    print(f"unread, {CONNECTIONS} connections that ask for {len(asked.canonical)} bytes eight times")
    with node(asked) as attacked:
        pour(attacked, b"GET /v1/surveys HTTP/1.1\r\nHost: x\r\n\r\n", 8)


def files() -> None:
    """Open connections that never end, at a node that may open few files."""
    asked = survey(large=False)
    print(f"files, {STRANGERS} connections at {FILES} open files")
    with node(asked, FILES) as attacked, contextlib.ExitStack() as stack:
        began, strangers = time.monotonic(), []
        for _ in range(STRANGERS):
            with contextlib.suppress(OSError):
                sock = stack.enter_context(attacked.connect())
                sock.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
                strangers.append(sock)
        time.sleep(1.0)  # until all that are served have their answers
        for sock in strangers:
            with contextlib.suppress(OSError):
                sock.sendall(b"1")
        print(f"    {len(strangers)} were open after {time.monotonic() - began:.2f} s")
        print(f"    an honest upload at once: {attacked.honest(asked)}")
        time.sleep(25.0)
        there = 0
        for sock in strangers:
            sock.setblocking(False)
            try:
                while sock.recv(4096):
                    pass
            except BlockingIOError:
                there += 1
            except OSError:
                pass
        print(f"    {there} are still open 25 s later")


def serve(folder: str, files: str, connections: str) -> None:
    """Run the node."""
    from hubbub_deploy.node import NodeSettings  # noqa: PLC0415 - not needed by the attacker
    from hubbub_deploy.node import serve as serve_node  # noqa: PLC0415 - as above

    if limit := int(files):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    asked = Survey.from_canonical((Path(folder) / "survey").read_bytes())
    bounds = GatewaySettings(max_connections=int(connections))
    serve_node(NodeSettings(surveys=(asked,), data_dir=Path(folder) / "data", gateway=bounds))


ATTACKS = {attack.__name__: attack for attack in (trailers, pipelined, unread, files)}


def main(words: list[str]) -> None:
    if words[:1] == ["serve"]:
        serve(*words[1:])
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in words or ATTACKS:
        ATTACKS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
