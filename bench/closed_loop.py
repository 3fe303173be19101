"""A load of many keep-alive connections, each of which waits for its answer before it asks again.

Cheap, so that a bench measures the server and not its load: prebuilt requests, plain sockets, epoll. It takes
5 to 7 us for an upload, asyncio's streams 8 to 12.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from servers import pinned

_MOST_BYTES = 65_536


class Took(NamedTuple):
    """The seconds of the clock, and of processor time of the server and of the load."""

    wall: float
    server: float
    load: float


def cpu_s(pid: int) -> float:
    """Return seconds of processor time of a process, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def ask(port: int, pid: int, requests: Sequence[bytes], connections: int) -> Took:
    """Send all requests to a server from core 1, and return what that took."""
    with pinned(1):
        began = Took(time.perf_counter(), cpu_s(pid), time.process_time())
        post_all(port, requests, connections)
        ended = Took(time.perf_counter(), cpu_s(pid), time.process_time())
    return Took(*(after - before for before, after in zip(began, ended, strict=True)))


def _length(head: bytes) -> int:
    """Return the length of the body that follows a head."""
    assert head.startswith(b"HTTP/1.1 200"), head
    return int(head.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])


def post_all(port: int, requests: Iterable[bytes], connections: int) -> None:
    """Send all requests, each on the first of the connections that is free, and read their answers.

    Args:
        port: Where the server listens, on this machine.
        requests: Each whole, head and body; every one must be answered with 200.
        connections: Open at once.

    Raises:
        ConnectionError: If the server ends a connection.
    """
    waiting = iter(requests)
    with contextlib.ExitStack() as stack:
        poll = stack.enter_context(select.epoll())
        found: dict[int, socket.socket] = {}
        for _ in range(connections):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            poll.register(one, select.EPOLLIN)
            found[one.fileno()] = one
        busy = 0
        for one, request in zip(found.values(), waiting, strict=False):
            one.sendall(request)
            busy += 1
        parts: dict[int, bytes] = {}
        lengths: dict[bytes, int] = {}  # of heads that came before: they differ in their second at most
        while busy:
            for number, _ in poll.poll():
                one = found[number]
                data = one.recv(_MOST_BYTES)
                if not data:
                    raise ConnectionError("the server ended a connection")
                if parts and number in parts:
                    data = parts.pop(number) + data
                head, end, body = data.partition(b"\r\n\r\n")
                if end:
                    length = lengths.get(head)
                    if length is None:
                        length = lengths[head] = _length(head)
                if not end or len(body) < length:
                    parts[number] = data
                    continue
                assert len(body) == length
                if (request := next(waiting, None)) is None:
                    busy -= 1
                else:
                    one.sendall(request)
