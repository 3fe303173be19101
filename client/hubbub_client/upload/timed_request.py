"""A timed request: an exchange with a server, given up when its time is over, however it is drawn out.

A socket's timeout bounds one read: a server that sends a byte now and then holds its reader for ever, and the
look-up of a name has no bound at all. So an exchange runs in a thread of its own. Whoever waits for it stops
waiting in time, and shuts the connection down, which ends the thread as well.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Generic, TypeVar

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

T = TypeVar("T")


class TimedRequests:
    """A runner of requests with a deadline over one pool of kept connections, for any number of threads."""

    def __init__(self) -> None:
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=1, retries=False)
        self._pool.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
        self._lock = threading.Lock()
        self._running: set[_TimedRequest[Any]] = set()
        self._closed = False

    def run(self, work: Callable[[urllib3.PoolManager], T], timeout_s: float) -> T:
        """Return the result of `work` if it comes within `timeout_s` seconds.

        Raises:
            OSError: It did not (a TimeoutError), or `close` was called.
            Exception: Whatever `work` raises.
        """
        request = _TimedRequest(lambda: work(self._pool))
        with self._lock:
            if self._closed:
                raise OSError("connections must not be closed")
            self._running.add(request)
        try:
            threading.Thread(target=request.perform, name="hubbub-exchange", daemon=True).start()
            return request.answer.result(timeout_s)
        finally:
            request.abort()
            with self._lock:
                self._running.discard(request)

    def close(self) -> None:
        """End every exchange under way, close every connection, and let no other begin."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for request in running:
            request.abort()
        self._pool.clear()


class _TimedRequest(Generic[T]):
    """One exchange: performed by one thread, given up by another.

    Attributes:
        answer: What came of it.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._connection: _AbortableConnection | None = None
        self.answer: Future[T] = Future()

    def perform(self) -> None:
        _CURRENT.exchange = self
        try:
            found = self._work()
        except BaseException as error:
            with contextlib.suppress(InvalidStateError):
                self.answer.set_exception(error)
        else:
            with contextlib.suppress(InvalidStateError):
                self.answer.set_result(found)

    def uses(self, connection: _AbortableConnection) -> None:
        """Take note of the connection in use; raises if the exchange was given up before it was made."""
        with self._lock:
            if self.answer.done():
                raise OSError("exchange was given up")
            self._connection = connection

    def abort(self) -> None:
        """End it, unless it has ended: whoever waits for it is told so, and its connection is shut down."""
        with self._lock, contextlib.suppress(InvalidStateError):
            self.answer.set_exception(ConnectionAbortedError("exchange was given up"))
            if self._connection is not None:
                self._connection.abort()


_CURRENT = threading.local()
"""The exchange that a thread performs."""


class _AbortableConnection(HTTPConnection):
    """A connection that another thread can shut down at any point, within a TLS handshake too.

    TLS takes the socket over and leaves the first object without one; a duplicate stays what it is, and
    shutting that down shuts down the connection itself.
    """

    _twin: socket.socket | None = None
    _unsent: bytearray | None = None

    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        try:
            self._twin = made.dup()
            _CURRENT.exchange.uses(self)
        except BaseException:
            made.close()
            raise
        return made

    def request(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401 - handed on as they are
        if self._twin is not None:
            _CURRENT.exchange.uses(self)  # kept from an earlier exchange
        self._unsent = bytearray()
        try:
            super().request(*arguments, **settings)
            whole, self._unsent = bytes(self._unsent), None
            super().send(whole)
        finally:
            self._unsent = None

    def send(self, data: Any) -> None:  # noqa: ANN401 - as in the standard library
        """Send bytes; those of a request all at once, so that no TLS record has the length of its body."""
        if self._unsent is None:
            super().send(data)
        else:
            self._unsent += data

    def abort(self) -> None:
        """Make every read and write of it fail, those under way included."""
        twin = self._twin
        if twin is not None:
            with contextlib.suppress(OSError):  # it is down already
                twin.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        twin, self._twin = self._twin, None
        if twin is not None:
            twin.close()
        super().close()


class _AbortableTlsConnection(_AbortableConnection, HTTPSConnection):
    """An abortable connection under TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _AbortableConnection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _AbortableTlsConnection
