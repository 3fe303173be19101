"""Bounds on all connections of a server together: how many there are, and how much of unfinished requests."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from typing import Final, Protocol

_LOG = logging.getLogger("hubbub.collector.connections")
# Anybody can cause a warning with every connection; one a minute says that it goes on.
_WARNING_S: Final = 60.0
# A request that holds no more gives way after all that do: it makes no room, and coming back costs more.
_LITTLE_BYTES: Final = 1024
# Files that are no connections: the databases with their journals, Kafka's and Redis' sockets, the listener.
OTHER_FILES: Final = 128


class Bounded(Protocol):
    """A connection as `Connections` sees it."""

    def give_way(self) -> None:
        """End at once, without a word: the server needs the room."""


class Connections:
    """The open connections of one server, those that are idle in the order in which they became so.

    A connection is idle while nothing is owed to it: from its start, from its last complete answer, or from
    the moment it stopped reading its answers. Bytes that come in between do not move it, so that whoever
    sends one byte now and then is as old as whoever sends none.

    Args:
        most: Connections at once; past it the one idle longest gives way, be it the new one.
        most_bytes: Bytes of requests that are not complete, over all connections; past it one gives way:
            among those of more than 1 KiB the one that grew beyond it first, else the oldest. A request that
            comes whole, as almost every honest one does, is never counted.
        clock: Seconds that only grow.
    """

    def __init__(self, most: int, most_bytes: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._most_bytes, self._clock = most, most_bytes, clock
        self._open: set[Bounded] = set()
        # Dictionaries keep the order of insertion: the first is the oldest.
        self._idle: dict[Bounded, None] = {}
        self._held: dict[Bounded, int] = {}
        # Those of them that hold more than a little.
        self._large: dict[Bounded, None] = {}
        self._held_bytes = 0
        self._warn_again: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def held_bytes(self) -> int:
        """Bytes of requests that are not complete."""
        return self._held_bytes

    def join(self, connection: Bounded) -> None:
        """Count a new connection, which is idle, and make room for it if there is none."""
        self._open.add(connection)
        self._idle[connection] = None
        if len(self._open) > self._most:
            self._warn("there may be %d connections: past it, the one idle longest is closed", self._most)
            self._end(next(iter(self._idle)))

    def leave(self, connection: Bounded) -> None:
        """Forget a connection; to forget it again changes nothing."""
        self._open.discard(connection)
        self._idle.pop(connection, None)
        self._held_bytes -= self._held.pop(connection, 0)
        self._large.pop(connection, None)

    def became_busy(self, connection: Bounded) -> None:
        """Note that an answer is owed to a connection: it gives way to nobody."""
        self._idle.pop(connection, None)

    def became_idle(self, connection: Bounded) -> None:
        """Note that nothing is owed to a connection any more; one that is idle already keeps its place."""
        if connection in self._open:
            self._idle.setdefault(connection)

    def hold(self, connection: Bounded, size: int) -> None:
        """Note how much is held of a connection's unfinished request, and make room for it if there is none.

        Args:
            connection: One that has joined.
            size: Bytes; 0 when the request is complete.
        """
        if connection not in self._open:
            return
        self._held_bytes += size - self._held.get(connection, 0)
        if size:
            self._held[connection] = size
        else:
            self._held.pop(connection, None)
        if size > _LITTLE_BYTES:
            self._large.setdefault(connection)
        else:
            self._large.pop(connection, None)
        while self._held_bytes > self._most_bytes:
            self._warn(
                "requests that are not complete may hold %d bytes: past it, an old one is cut off",
                self._most_bytes,
            )
            self._end(next(iter(self._large or self._held)))

    def _warn(self, text: str, bound: int) -> None:
        now = self._clock()
        if now >= self._warn_again.get(text, -math.inf):
            self._warn_again[text] = now + _WARNING_S
            _LOG.warning(text, bound)

    def _end(self, connection: Bounded) -> None:
        self.leave(connection)
        connection.give_way()


def connections_to_be_had(wanted: int) -> int:
    """Return how many connections the process may have open at once, after asking for as many as are wanted.

    The soft limit of open files is raised as far as the hard one lets it be, and never lowered.

    Args:
        wanted: Connections at once that the settings allow.
    """
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    except (OSError, ValueError):  # a system may have a limit of its own below its hard one
        raised = soft
    if raised >= needed:
        return wanted
    had = max(1, raised - OTHER_FILES if raised >= 2 * OTHER_FILES else raised // 2)
    _LOG.warning(
        "max_connections must be at most %d with %d open files, got %d: %d it is; raise the limit of open "
        "files (ulimit -n, LimitNOFILE) to %d for all of them",
        had,
        raised,
        wanted,
        had,
        needed,
    )
    return had
