"""The transport of a connection, which lingers at its end, and its flow: it reads on when there is room."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING

from uvicorn.protocols.http.flow_control import FlowControl

from hubbub_collector.http.transport import CoalescingTransport

if TYPE_CHECKING:
    from hubbub_collector.http.connection import Connection


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
