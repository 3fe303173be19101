"""The gateway under uvicorn, set up so that no trace of a sender is kept."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from functools import partial
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from hubbub_collector.http import (
    Acceptor,
    Connection,
    Connections,
    Door,
    DoorConnection,
    connections_to_be_had,
)
from hubbub_collector.intake import UPLOADS, Intake
from hubbub_collector.settings import GatewaySettings

_LOG = logging.getLogger("hubbub.collector.connections")
# Bytes of an incomplete request per connection: there is always room for one.
_ONE_REQUEST_BYTES: Final = 2**20
# New objects between two looks for cycles: a few hundred uploads that wait for one batch stay below it.
_OBJECTS_PER_LOOK: Final = 20_000
# A disk that is full of one line helps nobody; a line a minute says that it goes on.
_WARNING_S: Final = 60.0


def look_for_cycles_rarely() -> None:
    """Have Python look for garbage in cycles less often, and not among what is there by now.

    An upload that waits is some dozens of objects, none of them in a cycle; looking through all of them at
    every 700th took a sixth of a gateway's time. It holds for the whole
    process, which should do little else.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_PER_LOOK)


class _RateLimitFilter(logging.Filter):
    """A log filter that lets each warning through once a minute, as anyone who connects can cause one."""

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


_RATE_LIMIT: Final = _RateLimitFilter()


def log_network_faults_shortly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log a fault of the network in a line without a traceback, and leave all else to the event loop.

    A peer that has gone, a way that is broken, no more files: none of them is a bug of this process, and
    a stranger can cause each of them. What is logged names no address.

    Args:
        loop: The event loop that met the fault.
        context: What it says about it.
    """
    error = context.get("exception")
    if isinstance(error, OSError):
        _LOG.warning("a connection failed: %s", error.strerror or type(error).__name__)
    else:
        loop.default_exception_handler(context)


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(log_network_faults_shortly)
        await super().startup(sockets)
        make = partial(
            cast(Any, self.config.http_protocol_class),
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
        listening = [sock for server in self.servers for sock in server.sockets]
        self._acceptor = Acceptor(listening, make)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._acceptor.close()
        await super().shutdown(sockets)


def _door_of(app: object) -> Door | None:
    """Return what takes uploads of an application without ASGI; None if none does, or what is before it."""
    if isinstance(app, Starlette) and not app.user_middleware:
        for route in app.routes:
            if isinstance(route, Route) and route.path == UPLOADS:
                return route.endpoint if isinstance(route.endpoint, Intake) else None
    return None


def create_server(
    app: Starlette, *, host: str = "127.0.0.1", port: int = 8400, settings: GatewaySettings | None = None
) -> uvicorn.Server:
    """Return a uvicorn server that keeps no trace of senders: no access log, no proxy headers.

    `server.run()` serves until a signal, or `server.should_exit = True`; open requests are then finished, the
    last batch is written, and the application's lifespan ends.

    Args:
        app: What `create_app` gave.
        host: Address to listen on.
        port: TCP port; 0 for any free one.
        settings: The same as the application's.
    """
    settings = settings or GatewaySettings()
    for logger in (_LOG, logging.getLogger("uvicorn.error")):
        logger.addFilter(_RATE_LIMIT)
    connections = Connections(
        connections_to_be_had(settings.max_connections), settings.max_pending_bytes + _ONE_REQUEST_BYTES
    )
    door = _door_of(app)
    protocol = (
        partial(Connection, settings, connections)
        if door is None
        else partial(DoorConnection, settings, connections, door)
    )
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=cast(type[asyncio.Protocol], protocol),
        access_log=False,
        proxy_headers=False,
        server_header=False,
        log_level="warning",
        log_config=None,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=settings.shutdown_s,
    )
    return _Server(config)
