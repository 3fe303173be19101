"""The sender of a request, as an application of this server may ask of it beside ASGI's messages."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from hubbub_collector.http.exchange import common_lines

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
