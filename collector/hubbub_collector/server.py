"""The gateway under uvicorn, set up so that no trace of a sender is kept."""

from __future__ import annotations

import asyncio
import gc
import logging
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from hubbub_collector.settings import GatewaySettings

# New objects between two looks for cycles: a few hundred uploads that wait for one batch stay below it.
_OBJECTS_PER_LOOK: Final = 20_000
# Request line and headers: as much as an upload may be, and several times what any client sends.
_MAX_HEAD_BYTES: Final = 64 * 2**10
# A disk that is full of one line helps nobody; a line a minute says that it goes on.
_WARNING_S: Final = 60.0


def look_for_cycles_rarely() -> None:
    """Has Python look for garbage in cycles less often, and not among what is there by now.

    An upload that waits is some dozens of objects, none of them in a cycle; looking through all of them at
    every 700th took a sixth of a gateway's time. It goes for the whole process, which should do little else.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_LOOK)


class _Seldom(logging.Filter):
    """Lets each warning through once a minute: whoever can connect can cause one with every request."""

    def __init__(self) -> None:
        super().__init__()
        self._again_s: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        if record.created < self._again_s.get(str(record.msg), 0.0):
            return False
        self._again_s[str(record.msg)] = record.created + _WARNING_S
        return True


_SELDOM: Final = _Seldom()


class WholeWrites:
    """A connection that sends at once what is written to it in one turn of the event loop.

    uvicorn writes the head of an answer, then its body. As two system calls, and two packets, they cost more
    than judging a few reports does.

    Args:
        transport: The connection; all but writing is left to it.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._call_soon = asyncio.get_running_loop().call_soon
        self._parts: list[bytes] = []
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Sends `data` before the event loop turns to anything that comes later."""
        if not self._parts:
            self._call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Sends what was written and closes."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._transport, name)


class _Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, as installed
    """uvicorn's own, on such a connection, and with bounds on what comes before a body.

    Without them a head that never ends would fill the memory, and connections that say nothing would take
    all there are.
    """

    def __init__(self, head_timeout_s: float, **rest: Any) -> None:  # noqa: ANN401 - what uvicorn gives
        super().__init__(**rest)
        self._head_timeout_s = head_timeout_s
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(WholeWrites(cast(asyncio.Transport, transport)))
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and self.cycle.scope is self.scope:
            # The newest request's head is complete.
            if self._head_timer is not None:
                self._head_bytes = 0
                self._head_timer.cancel()
                self._head_timer = None
            return
        self._head_bytes += len(data)
        if self._head_timer is None:
            self._await_head()
        if self._head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response(f"The head of a request must have at most {_MAX_HEAD_BYTES} bytes.")

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._head_timeout_s, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)


def create_server(
    app: Starlette, *, host: str = "127.0.0.1", port: int = 8400, settings: GatewaySettings | None = None
) -> uvicorn.Server:
    """A uvicorn server that keeps no trace of senders: no access log, no proxy headers, nothing about itself.

    `server.run()` serves until a signal, or `server.should_exit = True`; open requests are then finished, the
    last batch is written, and the application's lifespan ends.

    Args:
        app: What `create_app` gave.
        host: Address to listen on.
        port: TCP port; 0 for any free one.
        settings: The same as the application's.
    """
    settings = settings or GatewaySettings()
    logging.getLogger("uvicorn.error").addFilter(_SELDOM)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=cast(type[asyncio.Protocol], partial(_Protocol, settings.body_timeout_s)),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        log_config=None,
        ws="none",
        lifespan="on",
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=settings.shutdown_s,
    )
    return uvicorn.Server(config)
