"""An acceptor that takes many new connections in one turn of the event loop, where uvloop takes one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable, Iterable
from typing import Final

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
