"""The body of an upload, within a length and a time, and why an upload is turned away as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

# If bytes may still come that nobody will read, the connection ends with the answer.
CLOSE: Final[Headers] = ((b"connection", b"close"),)
# A Content-Length of more digits is no length, and is not turned into a number.
_LENGTH_DIGITS: Final = 18


class Refusal(Exception):  # noqa: N818  # stays within the gateway, and names what the sender gets
    """An upload turned away as a whole: status, a sentence for its sender, headers."""

    def __init__(self, status: int, text: str, headers: Headers = ()) -> None:
        super().__init__(text)
        self.status, self.headers = status, headers


class HungUp(Exception):  # noqa: N818  # stays within the gateway
    """The sender closed the connection before its body was complete, or before the upload was stored."""


class Bodies:
    """A reader of bodies of at most `limit` bytes, each within `timeout_s` seconds, on one event loop.

    Almost every body is there when it is asked for. So one timer serves all that are not, in place of one
    each.

    Args:
        limit: Most bytes of one body.
        timeout_s: Seconds in which all of it must have come.
    """

    def __init__(self, limit: int, timeout_s: float) -> None:
        self._limit, self._timeout_s = limit, timeout_s
        self._loop = asyncio.get_running_loop()
        # Readers, and their deadlines. All get the same time, so the first to begin is due first.
        self._due: dict[asyncio.Task[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def announced(self, scope: Scope) -> int | None:
        """Return the body's announced length, which is within the limit; None for a chunked body.

        Raises:
            Refusal: If there is neither length nor chunks, or it is above the limit.
        """
        length: int | None = None
        chunked = False
        for name, value in scope["headers"]:
            if name == b"transfer-encoding":
                chunked = True
            elif name == b"content-length":
                if not value.isdigit() or len(value) > _LENGTH_DIGITS:
                    raise Refusal(400, "Content-Length must be a number", CLOSE)
                length = int(value)
        if chunked:
            return None
        if length is None:
            raise Refusal(411, "an upload must say its length, got no Content-Length", CLOSE)
        if length > self._limit:
            raise self._too_long(f"{length}")
        return length

    async def read(self, receive: Receive) -> bytes:
        """Return the body.

        Raises:
            Refusal: If there is more than the limit, or not all of it in time.
            HungUp: If the sender hung up.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        asked = task.cancelling()
        self._due[task] = self._loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._expire)
        try:
            # One buffer: a list of parts of two bytes would take twenty times what they hold.
            body: bytes | bytearray = b""
            more = True
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    raise HungUp
                part: bytes = message.get("body", b"")
                if len(body) + len(part) > self._limit:
                    raise self._too_long()
                more = message.get("more_body", False)
                if not body and not more:
                    return part
                body = bytearray(body) if isinstance(body, bytes) else body
                body += part
        except asyncio.CancelledError:
            # Somebody else may have cancelled too, and more strongly: the server, when it stops.
            if task not in self._due and task.uncancel() <= asked:
                raise Refusal(408, f"the body must arrive in {self._timeout_s:g} s", CLOSE) from None
            raise
        finally:
            self._due.pop(task, None)
        return bytes(body)

    def check(self, body: bytes) -> None:
        """Raise Refusal if a body that came at once is above the limit."""
        if len(body) > self._limit:
            raise self._too_long()

    def _too_long(self, came: str = "more") -> Refusal:
        return Refusal(413, f"an upload must have at most {self._limit} bytes, got {came}", CLOSE)

    def _expire(self) -> None:
        """End the reading of all whose time is over, and wait for the next."""
        self._timer = None
        now = self._loop.time()
        for task in [*self._overdue(now)]:
            del self._due[task]
            task.cancel()
        for due in self._due.values():
            self._timer = self._loop.call_at(due, self._expire)
            break

    def _overdue(self, now: float) -> Iterator[asyncio.Task[Any]]:
        for task, due in self._due.items():
            if due > now:
                return
            yield task
