"""The stream of changes: server-sent events, one stream per reader, bounded for all and for one client."""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hubbub_aggregator.web.documents import to_json
from hubbub_aggregator.web.responses import problem
from hubbub_aggregator.web.snapshot_cache import SnapshotCache

POLL_S = 0.25
"""Seconds between two looks of a stream at the view's version: four repaints a second at most."""
HEARTBEAT_S = 15.0
"""A stream silent this long sends a beat: proxies commonly drop connections after 30 to 60 idle seconds."""
RETRY_MS = 1500
"""The time that a browser waits before it reconnects a broken stream."""
_PIECE_BYTES = 64 * 2**10

# Buffering proxies would hold events back; nginx reads the second header.
_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class Events:
    """The stream of rendered snapshots, one generator per reader; a slow reader skips to the newest."""

    def __init__(
        self,
        desk: SnapshotCache,
        *,
        poll_s: float,
        heartbeat_s: float,
        max_streams: int,
        max_client_streams: int,
        closing: Callable[[], bool],
    ) -> None:
        self._desk, self._closing = desk, closing
        self._poll_s, self._heartbeat_s = poll_s, heartbeat_s
        self._max_streams, self._max_client_streams = max_streams, max_client_streams
        # Streams by client, for as long as they are open: addresses are kept nowhere else.
        self._open: Counter[str] = Counter()

    async def respond(self, request: Request) -> Response:
        """Answer GET api/events with a stream, or 503 where too many are open."""
        if request.method == "HEAD":  # it reads no events, so it holds no stream
            return Response(headers=_STREAM_HEADERS, media_type="text/event-stream")
        client = _client(request)
        for subject, bound, count in (
            ("open streams", self._max_streams, self._open.total()),
            ("open streams of one client", self._max_client_streams, self._open[client]),
        ):
            if count >= bound:
                return problem(503, subject, f"must stay below {bound}", count, {"retry-after": "30"})
        # The header comes when a browser reconnects by itself, the query when the page starts a new stream.
        seen = request.headers.get("last-event-id") or request.query_params.get("last") or ""
        # Counted before anything is awaited: readers who all come at once see each other.
        self._open[client] += 1
        return _EventStream(self._stream(request, seen), lambda: self._left(client))

    def _left(self, client: str) -> None:
        self._open[client] -= 1
        if not self._open[client]:
            del self._open[client]

    async def _stream(self, request: Request, seen: str) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        yield b"retry: %d\n\n" % RETRY_MS
        # The first beat is due at once: who resumes at the current edition learns that it is current.
        beat_at = loop.time()
        while not self._closing() and not await request.is_disconnected():
            edition = await self._desk.current()
            if edition.token != seen:
                seen = edition.token
                # One object for all who read it, and in pieces, of which a reader who does not read gets one.
                for at in range(0, len(edition.event), _PIECE_BYTES):
                    yield edition.event[at : at + _PIECE_BYTES]
                beat_at = loop.time() + self._heartbeat_s
            elif loop.time() >= beat_at:
                yield b"event: beat\ndata: %s\n\n" % to_json({"edition": seen})
                beat_at = loop.time() + self._heartbeat_s
            await asyncio.sleep(self._poll_s)


def _client(request: Request) -> str:
    """Return the sender of a request: its IPv4 address, or the 64-bit network of its IPv6 address."""
    host = request.client.host if request.client is not None else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 6 and address.ipv4_mapped is None:
        return str(ipaddress.ip_network((address.packed[:8] + bytes(8), 64)))
    return host


class _EventStream(StreamingResponse):
    """A stream that says when it is over, however it ends, even before its first event."""

    def __init__(self, events: AsyncIterator[bytes], left: Callable[[], None]) -> None:
        super().__init__(events, headers=_STREAM_HEADERS, media_type="text/event-stream")
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()
