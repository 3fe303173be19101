"""The gateway under uvicorn, set up so that no trace of a sender is kept.

Plain requests go through a door, without ASGI: its messages, task and scope took 40 % of an upload's
processor time.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol, cast

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hubbub_collector.http import Connection, Connections, Exchange, connections_to_be_had
from hubbub_collector.intake import UPLOADS, Intake
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


# In one turn of the event loop, so that connections that are there get theirs.
_PER_TURN: Final = 128
# If no file is left, each new attempt would fail at once.
_PAUSE_S: Final = 1.0
_NO_FILES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """An acceptor of connections beside the event loop's own server, until it is closed.

    uvloop (since libuv 1.48) takes one connection in a turn of the event loop. Where a thousand connections
    keep every turn busy, too few are taken, and the queue of new ones fills up with honest senders as well.

    Args:
        sockets: What is listened on; they stay open.
        protocol: Return the protocol of a new connection.
    """

    def __init__(self, sockets: Iterable[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> None:
        self._loop = asyncio.get_running_loop()
        self._protocol = protocol
        # Files of their own: the event loop watches its server's already.
        self._sockets = [socket.socket(fileno=sock.dup().detach()) for sock in sockets]
        self._tasks: set[asyncio.Task[None]] = set()
        for sock in self._sockets:
            sock.setblocking(False)
            self._watch(sock)

    def close(self) -> None:
        """Take no more connections."""
        sockets, self._sockets = self._sockets, []
        for sock in sockets:
            self._loop.remove_reader(sock)
            sock.close()

    def _watch(self, sock: socket.socket) -> None:
        if sock in self._sockets:
            self._loop.add_reader(sock, self._accept, sock)

    def _accept(self, sock: socket.socket) -> None:
        for _ in range(_PER_TURN):
            try:
                connection, _ = sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_FILES:
                    raise
                self._loop.remove_reader(sock)
                self._loop.call_later(_PAUSE_S, self._watch, sock)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._connect(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        # A sender that has gone meanwhile is no fault of this process.
        with contextlib.suppress(OSError):
            await self._loop.connect_accepted_socket(self._protocol, connection)


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
