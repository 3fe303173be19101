"""A door through which plain requests go without ASGI, and a connection with one.

Of what the server spends on an upload, the messages of ASGI, a task and what it is told of the request were
two fifths.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hubbub_collector.http.connection import Connection
from hubbub_collector.http.connections import Connections
from hubbub_collector.http.exchange import Exchange
from hubbub_collector.settings import GatewaySettings

_NO_SCOPE: Final = cast(HTTPScope, {})


class Door(Protocol):
    """A taker of plain requests: POST, whole, the only one of its connection, which stays open after it."""

    @property
    def path(self) -> bytes:
        """The path of the requests that it takes."""

    def take(self, headers: Sequence[tuple[bytes, bytes]], body: bytes, exchange: Exchange) -> bool:
        """Take a request, and see to its answer; or return False, and have done nothing.

        Args:
            headers: Its headers, with their names in lower case.
            body: All of it.
            exchange: The way back.
        """


class DoorConnection(Connection):
    """A connection that offers plain requests to a door; whatever is not plain, or not taken, goes by ASGI.

    What a request is to ASGI is not made before it is known to go that way. The bounds are the same.

    Args:
        settings: Bounds and times.
        connections: All connections of the server.
        door: Where plain requests go.
        rest: What uvicorn gives its protocols.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        connections: Connections,
        door: Door,
        **rest: Any,  # noqa: ANN401 - uvicorn's
    ) -> None:
        super().__init__(settings, connections, **rest)
        self._door, self._path = door, door.path
        # The body of a request that is plain so far; None of any other, and of one that was started or taken.
        self._plain: bytes | None = None

    def _parse(self, data: bytes) -> None:
        super()._parse(data)
        if self._plain is not None and not self._deaf:
            self._start()  # more is to come, for which the application waits

    def on_message_begin(self) -> None:
        """Begin a request, and count from here."""
        if self._deaf:
            return
        self.url, self.expect_100_continue, self.headers = b"", False, []
        self.scope, self._plain = _NO_SCOPE, None
        self._begin_request()

    def _start(self) -> None:
        if self._plain is None and self._is_plain():
            self._plain = b""
            return
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"], self.scope["extensions"] = headers, self._extensions
        super()._start()
        body, self._plain = self._plain, None
        if body:
            HttpToolsProtocol.on_body(self, body)

    def _is_plain(self) -> bool:
        """Return whether the door may take the request, by its head and by what the connection does."""
        parser, running = self.parser, self._running
        return (
            self.url == self._path
            and (running is None or running.response_complete)
            and parser.get_method() == b"POST"
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not (parser.should_upgrade() or self.expect_100_continue or self.flow.write_paused)
        )

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body for the application, or for the door."""
        if self._plain is None:
            super().on_body(body)
        else:
            self._overhead -= len(body)
            self._plain += body

    def _end_request(self) -> None:
        if self._plain is not None:
            if self._goes_through(self._plain):
                return
            self._start()
        super()._end_request()

    def _goes_through(self, body: bytes) -> bool:
        """Return whether the door took the request."""
        exchange = Exchange(self)
        try:
            if not self._door.take(self.headers, body, exchange):
                return False
        except Exception:  # the parser would answer 400 for it; ASGI's way says what is wrong
            self.logger.exception("the door failed")
            return False
        self._plain = None
        self.cycle = self._running = cast(RequestResponseCycle, exchange)
        self.tasks.add(cast("asyncio.Task[None]", exchange))
        return True
