"""The transport of a connection, which lingers at its end, and its flow: it reads on when there is room."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.flow_control import FlowControl

if TYPE_CHECKING:
    from hubbub_collector.http.connection import Connection


# Parts from here on are sent by themselves: a list of surveys of megabytes is one object for all who ask.
WHOLE_BYTES: Final = 64 * 2**10


class CoalescingTransport:
    """A transport that sends at once what is written to it in one turn of the event loop.

    uvicorn writes the head of an answer, then its body: two system calls, and two packets. As one they cost a
    gateway a few per cent less of its time. Large parts are not joined:
    they would be copied for every reader.

    Args:
        transport: The connection; all but writing and closing is left to it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._call_soon = asyncio.get_running_loop().call_soon
        self._parts: list[bytes] = []
        self._closing = False

    def is_closing(self) -> bool:
        """Return whether nothing more can be written."""
        return self._closing or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        """Send `data` before the event loop turns to anything later; nothing once it is closing."""
        if self._closing or self._transport.is_closing():
            return
        if len(data) >= WHOLE_BYTES:
            self._send()
            self._transport.write(data)
            return
        if not self._parts:
            self._call_soon(self._send)
        self._parts.append(data)

    def write_whole(self, data: bytes) -> None:
        """Send `data` at once, after what was written before it: nothing is to be joined to it."""
        if self._parts:
            self._send()
        if not self._closing and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Send what was written, and close."""
        self._send()
        self._closing = True
        self._transport.close()

    def half_close(self) -> None:
        """Send what was written and then the end, and go on receiving."""
        self._send()
        self._closing = True
        if not self._transport.is_closing():
            self._transport.write_eof()

    def resume_reading(self) -> None:
        """Receive again, if there is anything to receive from."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._transport, name)


class LingeringTransport(CoalescingTransport):
    """A transport that is closed at once, or after what its sender may still be sending."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        super().__init__(transport)
        self._connection = weakref.proxy(connection)

    def close(self) -> None:
        """Close, or end the answers and leave it to the connection to linger."""
        if not self.is_closing() and self._connection.expects_input:
            self.half_close()
            self._connection.linger()
        elif not self._connection.lingers:
            super().close()


class BoundedFlow(FlowControl):
    """A flow control that reads on only when no request is queued and all that came before is parsed."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        super().__init__(transport)
        self._connection = weakref.proxy(connection)
        self._stopped = False

    def pause_reading(self) -> None:
        """Parse nothing more, and receive nothing more."""
        self.read_paused = True
        if not self._stopped:
            self._stopped = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Parse what is left and receive again; not while a request is queued."""
        if self.read_paused and not self._connection.pipeline:
            self.read_paused = False
            self._connection.parse_soon()

    def receive_again(self) -> None:
        """Have the transport receive again, if it does not."""
        self.read_paused = False
        if self._stopped:
            self._stopped = False
            self._transport.resume_reading()
