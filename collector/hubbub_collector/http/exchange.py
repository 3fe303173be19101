"""A request that is answered without ASGI, and the way back to its sender."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

if TYPE_CHECKING:
    from hubbub_collector.http.connection import Connection


SENDER: Final = "hubbub.sender"
"""The extension of a request's scope that is its `Sender`."""


class Sender:
    """The sender of a request, for the application: what ASGI has no word for, or only a slow one.

    An upload whose body is there when it is asked for, and whose answer is one piece, needs none of ASGI's
    messages: which are a part of what the server spends on it.

    Args:
        connection: Where the request came; not held.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = weakref.ref(connection)

    def is_gone(self) -> bool:
        """Return whether the sender hung up."""
        return (connection := self._connection()) is None or connection.is_lost

    def whole_body(self, scope: object) -> bytes | None:
        """Return the body of a request if all of it is there and was not asked for before; else None."""
        connection = self._connection()
        cycle = None if connection is None else connection.running(scope)
        if connection is None or cycle is None or cycle.more_body or not cycle.message_event.is_set():
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        cycle.message_event.clear()
        connection.flow.resume_reading()
        return body

    def answer(self, scope: object, head: bytes, body: bytes) -> bool:
        """Send a whole answer with status 200, or nothing: then it must be sent by messages, as any other.

        Args:
            scope: The request's.
            head: The lines of the headers but those of every answer, and the empty line after them.
            body: As long as the head says.

        Returns:
            Whether it was sent.
        """
        connection = self._connection()
        cycle = None if connection is None else connection.running(scope)
        if connection is None or cycle is None or not cycle.keep_alive or connection.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        whole = b"".join((STATUS_LINE[200], common_lines(cycle.default_headers), head, body))
        connection.writes.write_whole(whole)
        cycle.message_event.set()
        cycle.on_response()
        return True


_OK: Final = STATUS_LINE[200]
# As uvicorn answers a request whose task was cancelled.
_CUT: Final = b"Internal Server Error"
_CUT_HEADERS: Final = (
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_CUT)),
)
_CLOSE: Final = b"connection: close\r\n\r\n"


class _CommonLines:
    """The lines of the headers that every answer has; the server makes them anew once a second."""

    def __init__(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._lines = b""

    def of(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Return the lines of a list that is not changed after it was made."""
        if headers is not self._headers:
            self._headers, self._lines = headers, lines_of(headers)
        return self._lines


_COMMON: Final = _CommonLines()


def lines_of(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return headers as lines."""
    return b"".join([b"%s: %s\r\n" % header for header in headers])


def common_lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the lines of the headers that every answer has."""
    return _COMMON.of(headers)


class Exchange:
    """A request that is answered without ASGI, and the way back to its sender.

    To the connection it is the request that runs, to the server a task: it waits for it when it stops, and
    cancels it when that takes too long.

    Args:
        connection: Where the request came.

    Attributes:
        disconnected: Whether the sender hung up.
        keep_alive: Whether another request may follow.
        response_complete: Whether it was answered, or never will be.
    """

    __slots__ = ("_connection", "_is_cut", "disconnected", "keep_alive", "response_complete")

    # The connection asks for these two of every request; no messages belong to this one.
    scope: Final = object()
    message_event: Final = asyncio.Event()

    def __init__(self, connection: Connection) -> None:
        self._connection: Connection | None = connection
        self.keep_alive = True
        self.disconnected = self.response_complete = self._is_cut = False

    @property
    def is_cut(self) -> bool:
        """True once the server has given it up."""
        return self._is_cut

    def answer(self, head: bytes, body: bytes) -> None:
        """Send a whole answer with status 200, unless nobody waits for it any more.

        Args:
            head: The lines of the headers but those of every answer, and the empty line after them.
            body: As long as the head says.
        """
        self._end(_OK, head, body)

    def refuse(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
        """Send a whole answer with another status, unless nobody waits for it any more."""
        self._end(STATUS_LINE[status], lines_of(headers) + b"\r\n", body)

    def drop(self) -> None:
        """End it without an answer: its sender hung up."""
        self._end(b"", b"", b"")

    def cancel(self, msg: object = None) -> bool:
        """Give it up with status 500, soon, as the server does with a task."""
        if self._is_cut or (connection := self._connection) is None:
            return False
        self._is_cut = True
        connection.loop.call_soon(self._cut)
        return True

    def _cut(self) -> None:
        self.keep_alive = False
        self.refuse(500, _CUT_HEADERS, _CUT)

    def _end(self, first: bytes, head: bytes, body: bytes) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.flow.write_paused and not self.disconnected:
            # An earlier answer is not read yet: as by ASGI, no more is written until it is.
            self._connection = connection
            task = connection.loop.create_task(self._end_when_read(connection, first, head, body))
            connection.tasks.add(task)
            task.add_done_callback(connection.tasks.discard)
            return
        self.response_complete = True
        connection.tasks.discard(self)
        if self.disconnected:
            return
        if not self.keep_alive:
            head = head[:-2] + _CLOSE
        common = common_lines(connection.server_state.default_headers)
        try:
            connection.send_answer(b"".join((first, common, head, body)), is_last=not self.keep_alive)
        except Exception as error:  # others wait in the same turn for theirs
            connection.loop.call_exception_handler({"message": "an answer failed", "exception": error})
            connection.transport.abort()

    async def _end_when_read(self, connection: Connection, first: bytes, head: bytes, body: bytes) -> None:
        await connection.flow.drain()
        self._end(first, head, body)
