"""The HTTP server of every process: its socket, its polite stop, and the thread that counts beside it.

A node and a dashboard have one shape: routes that read a view, and a thread that works until the server
stops. If that thread fails, the server stops, too, and the process says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

from hubbub_aggregator import is_foreseen, last_words, web
from hubbub_aggregator.stores import RecountFolder
from hubbub_aggregator.web import LiveView
from hubbub_collector import GatewaySettings, create_server, look_for_cycles_rarely
from hubbub_deploy.errors import DeployError
from hubbub_deploy.transparency import LogKeeper

KEEPER_S: Final = 1.0
"""Seconds between two looks at whether the log has grown: it is asked for its size alone."""

RECOUNTS_S: Final = 5.0
"""Seconds between two looks for new recounts, which come by hand: one folder is listed."""


def base_url(host: str, listener: socket.socket) -> str:
    """Return the address to type into a browser."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{listener.getsockname()[1]}"


@contextlib.contextmanager
def stopping_politely(server: uvicorn.Server) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into a stop of the server, and keep them away from what comes after.

    uvicorn hands a signal on, once it has stopped, to whoever handled it before. By default that ends the
    process at once, with files open and the last batch not counted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        server.should_exit = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def listen(host: str, port: int, *, sharing: Literal["alone", "shared"] = "alone") -> socket.socket:
    """Return a listening socket, bound before anything is promised.

    Args:
        host: Address or name.
        port: TCP port; 0 for any free one.
        sharing: "shared" lets other processes of this user listen on this port, too, if they say the same;
            the system gives each new connection to one of them.

    Raises:
        DeployError: If the address cannot be had.
    """
    if not host:  # for a socket it means every address, which nobody asks for by leaving a variable empty
        raise DeployError("host must be an address or a name, got ''")
    try:
        listener = socket.create_server(
            (host, port),
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
            backlog=2048,
            reuse_port=sharing == "shared",
        )
    except (OSError, OverflowError, ValueError) as error:  # ValueError: a system that cannot share a port
        raise DeployError(f"{host}:{port} cannot be listened on: {error}") from error
    listener.set_inheritable(True)
    return listener


def run(server: uvicorn.Server, listener: socket.socket, *, name: str) -> None:
    """Serve until a signal, or until the server is told to stop.

    Args:
        server: What serves.
        listener: Its socket, from `listen`.
        name: What an error calls the process.

    Raises:
        DeployError: If the application did not start.
    """
    look_for_cycles_rarely()
    try:
        server.run(sockets=[listener])
    except SystemExit as stop:  # uvicorn's word for an application that does not start
        raise DeployError(f"the {name} did not start; the lines above say why") from stop


class _Rest(Mount):
    """A mount of all paths that no route before it has, whatever the method.

    The router takes the first partial match where no match is full: a route's path with another method (405)
    comes before this.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        found, child = super().matches(scope)
        return (Match.PARTIAL if found is Match.FULL else found), child


@dataclass(frozen=True, slots=True, kw_only=True)
class PageServer:
    """A process that shows a view over HTTP while a thread of its own works on what it shows.

    Attributes:
        name: What its errors call it, "node" or "dashboard".
        view: What the page shows.
        work: Run in the thread until the event is set; whatever it raises ends the process, which says what
            it was; what nobody foresaw comes with its traceback.
        kept: What the error names as intact if the thread fails: "the log and the store".
        routes: Paths that come before those of the page and its API.
        running: What must be running while requests are answered; None for nothing.
        settings: Bounds of the server's connections; None for the usual ones.
        read_token: What readers of page and API must know; None where anyone may read.
        streams: Caps on the page's streams of changes.
        recounts: Where recounts are published, looked at again and again; None for nowhere.
        keeper: The publisher of the log's checkpoints; None for none.
        beside: Run in a thread of its own until the event is set; it raises nothing. None for nothing.
    """

    name: str
    view: LiveView
    work: Callable[[threading.Event], None]
    kept: str
    routes: Sequence[BaseRoute] = ()
    running: Callable[[], AbstractAsyncContextManager[object]] = contextlib.nullcontext
    settings: GatewaySettings | None = None
    read_token: str | None = field(default=None, repr=False)
    streams: web.StreamCaps = field(default_factory=web.StreamCaps)
    recounts: RecountFolder | None = None
    keeper: LogKeeper | None = None
    beside: Callable[[threading.Event], None] | None = None

    def serve(self, listener: socket.socket, *, host: str, announce: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM; the thread has ended when this returns.

        Args:
            listener: The socket, from `listen`.
            host: What it was bound to.
            announce: Told the base URL once requests are answered.

        Raises:
            DeployError: If the application did not start, or the thread failed.
        """
        stop = threading.Event()
        failed: list[Exception] = []

        def work() -> None:
            try:
                self.work(stop)
            except Exception as error:
                failed.append(error)
                server.should_exit = True
                # After it: what stderr goes to may be full.
                if not (isinstance(error, DeployError) or is_foreseen(error)):
                    with contextlib.suppress(OSError):
                        traceback.print_exc()

        threads = [threading.Thread(target=work, name=f"hubbub-{self.name}")]
        if self.beside is not None:
            threads.append(threading.Thread(target=self.beside, args=(stop,), name="hubbub-counted"))

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            async with contextlib.AsyncExitStack() as stack:
                await stack.enter_async_context(self.running())
                if (folder := self.recounts) is not None:
                    await asyncio.to_thread(self._look, folder)
                    await stack.enter_async_context(_following(partial(self._look, folder), RECOUNTS_S))
                if self.keeper is not None:
                    await stack.enter_async_context(_following(self.keeper.look, KEEPER_S))
                    stack.callback(self.keeper.close)
                for thread in threads:
                    thread.start()
                announce(base_url(host, listener))
                yield

        page = _Rest(
            "/",
            web.create_app(
                self.view,
                closing=lambda: server.should_exit,
                read_token=self.read_token,
                max_streams=self.streams.total,
                max_client_streams=self.streams.client,
            ),
        )
        app = Starlette(
            routes=[*self.routes, page], lifespan=lifespan, exception_handlers=web.PROBLEM_HANDLERS
        )
        server = create_server(app, host=host, port=listener.getsockname()[1], settings=self.settings)
        with stopping_politely(server):
            try:
                run(server, listener, name=self.name)
            finally:
                stop.set()
                for thread in threads:
                    if thread.ident is not None:
                        thread.join()
        for error in failed:
            words = str(error) if isinstance(error, DeployError) else last_words(error)
            raise DeployError(f"the {self.name} stopped: {words}; {self.kept} are as they were")

    def _look(self, folder: RecountFolder) -> None:
        """Keep what the view shows of recounts as their folder has it."""
        self.view.recounts = folder.by_survey()


@contextlib.asynccontextmanager
async def _following(look: Callable[[], None], pause_s: float) -> AsyncIterator[None]:
    """Look again and again in a thread."""

    async def again() -> None:
        while True:
            await asyncio.to_thread(look)
            await asyncio.sleep(pause_s)

    looking = asyncio.create_task(again())
    try:
        yield
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
