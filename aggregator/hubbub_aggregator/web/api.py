"""The aggregator's HTTP face: a JSON API, a stream of changes, and the dashboard page.

    GET /                                     the dashboard; everything it loads comes from here
    GET /api/surveys                          the surveys, with a line per round
    GET /api/surveys/{digest}                 one survey
    GET /api/surveys/{digest}/rounds/{r}      one round: its release, or provisional estimates
    GET /api/surveys/{digest}/rounds/{r}.csv  the same as a table
    GET /api/live                             all that the page shows, in one document
    GET /api/events                           the same, pushed whenever it changes (server-sent events)
    GET /healthz                              503 while no round is sealed because clocks differ, else 200
    GET /metrics                              hubbub_sealing, hubbub_following: 1 or 0, for Prometheus

What is refused is answered in JSON with `subject`, `rule` and `value`. Every document has an entity tag and
`Cache-Control: no-cache`: a browser may keep it, and asks before showing it again. Sealed rounds too, for a
demo that starts anew at the same address may seal other numbers under the same survey.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass
from importlib import resources

from anyio import to_thread
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub_aggregator.web.documents import RenderedSnapshot, csv_name, etag, to_csv, to_json
from hubbub_aggregator.web.metrics import ViewCollector
from hubbub_aggregator.web.view import View

POLL_S = 0.25
"""How often a stream asks the view for its version: four repaints a second at most, and no wait felt."""
HEARTBEAT_S = 15.0
"""A stream silent this long sends a beat: proxies commonly drop connections after 30 to 60 idle seconds."""
RETRY_MS = 1500
"""How long a browser waits before it reconnects a broken stream."""
MAX_STREAMS = 256
"""Streams open at once. Each costs a connection and a poll; further pages are told to poll instead."""
MAX_CLIENT_STREAMS = 32
"""Streams of one client, an eighth of all: enough for a room full of pages behind one address. Behind a
reverse proxy all pages are one client; those past the bound poll."""
_PIECE_BYTES = 64 * 2**10

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# Buffering proxies would hold events back; nginx reads the second header.
_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
_UNKEPT = {"cache-control": "no-store"}
_JSON = "application/json; charset=utf-8"
_CSV = "text/csv; charset=utf-8; header=present"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class _SnapshotCache:
    """The current edition of a view, rendered once per version however many readers ask."""

    def __init__(self, view: View) -> None:
        self._view = view
        # A restarted process may reach the same version over other counts: this tells them apart.
        self._process = secrets.token_hex(4)
        self._version: int | None = None
        self._edition: RenderedSnapshot | None = None
        self._lock = asyncio.Lock()

    async def current(self) -> RenderedSnapshot:
        if self._edition is None or self._view.version() != self._version:
            async with self._lock:
                # The version is read before the snapshot: a change in between is shown again, never missed.
                version = self._view.version()
                if self._edition is None or version != self._version:
                    edition = await to_thread.run_sync(self._render, version)
                    self._version, self._edition = version, edition
        return self._edition

    def _render(self, version: int) -> RenderedSnapshot:
        edition = RenderedSnapshot(token=f"{self._process}-{version}", snapshot=self._view.snapshot())
        edition.live  # noqa: B018 - rendered here, in the thread, not later in the event loop
        return edition


class _Events:
    """The stream of editions, one generator per reader; a slow reader skips to the newest by itself."""

    def __init__(
        self,
        desk: _SnapshotCache,
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
        if request.method == "HEAD":  # it reads no events, so it holds no stream
            return Response(headers=_STREAM_HEADERS, media_type="text/event-stream")
        client = _client(request)
        for subject, bound, count in (
            ("open streams", self._max_streams, self._open.total()),
            ("open streams of one client", self._max_client_streams, self._open[client]),
        ):
            if count >= bound:
                return _refusal(503, subject, f"must stay below {bound}", count, {"retry-after": "30"})
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


@dataclass(frozen=True)
class _PageFile:
    body: bytes
    media_type: str
    tag: str


def create_app(
    view: View,
    *,
    poll_s: float = POLL_S,
    heartbeat_s: float = HEARTBEAT_S,
    max_streams: int = MAX_STREAMS,
    max_client_streams: int = MAX_CLIENT_STREAMS,
    closing: Callable[[], bool] = lambda: False,
) -> Starlette:
    """Return the ASGI application that serves a view; it keeps nothing but the current edition.

    Args:
        view: Where the counts are read.
        poll_s: Seconds between two looks at `view.version()` by an open stream.
        heartbeat_s: Seconds of silence after which a stream sends a beat.
        max_streams: Streams open at once; the next one is answered 503.
        max_client_streams: The same of one client, an IPv4 address or an IPv6 network of 64 bits.
        closing: Asked at every look; once true, streams end, so that a server can shut down without waiting
            for readers to leave.
    """
    desk = _SnapshotCache(view)
    files = _page_files()
    events = _Events(
        desk,
        poll_s=poll_s,
        heartbeat_s=heartbeat_s,
        max_streams=max_streams,
        max_client_streams=max_client_streams,
        closing=closing,
    )

    async def page(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        file = files.get(name)
        if file is None:
            return _refusal(404, "page file", "must be one of " + ", ".join(sorted(files)), name)
        return _document(request, file.body, file.media_type, tag=file.tag)

    async def live(request: Request) -> Response:
        edition = await desk.current()
        return _document(request, edition.live, _JSON, tag=f'"{edition.token}"')

    async def surveys(request: Request) -> Response:
        edition = await desk.current()
        document = {"edition": edition.token, "surveys": edition.surveys}
        return await _rendered(request, edition, "surveys", lambda: to_json(document))

    async def survey(request: Request) -> Response:
        digest = request.path_params["digest"].lower()
        edition = await desk.current()
        found = edition.digests.get(digest)
        if found is None:
            return _unknown_survey(digest)
        return await _rendered(request, edition, digest, lambda: to_json(found))

    async def round_(request: Request) -> Response:
        digest, name = request.path_params["digest"].lower(), request.path_params["round"]
        number, as_csv = name.removesuffix(".csv"), name.endswith(".csv")
        edition = await desk.current()
        if digest not in edition.digests:
            return _unknown_survey(digest)
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None
        document = None if wanted is None else edition.rounds.get((digest, wanted))
        if document is None:
            known = [r for d, r in edition.rounds if d == digest]
            period = (
                f"a number from {min(known)} to {max(known)}"
                if known
                else "a round that has reports; none has yet"
            )
            return _refusal(404, f"round of survey {digest}", f"must be {period}", number)
        if as_csv:
            disposition = {"content-disposition": f'attachment; filename="{csv_name(document)}"'}
            return await _rendered(
                request, edition, (digest, wanted, "csv"), lambda: to_csv(document), _CSV, extra=disposition
            )
        return await _rendered(request, edition, (digest, wanted), lambda: to_json(document))

    async def health(_: Request) -> Response:
        unsealed = view.snapshot().get("unsealed")
        if unsealed is None:
            return Response(to_json({"status": "ok"}), 200, _UNKEPT, _JSON)
        why = {"status": "no round is sealed", "unsealed": unsealed}
        return Response(to_json(why), 503, _UNKEPT, _JSON)

    registry = CollectorRegistry()
    registry.register(ViewCollector(view))

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), 200, _UNKEPT, CONTENT_TYPE_PLAIN_0_0_4)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/page/{name}", page),
            Route("/api/surveys", surveys),
            Route("/api/surveys/{digest}", survey),
            Route("/api/surveys/{digest}/rounds/{round}", round_),
            Route("/api/live", live),
            Route("/api/events", events.respond),
            Route("/healthz", health),
            Route("/metrics", metrics),
        ],
        middleware=[Middleware(_SafeHeaders)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )


class _SafeHeaders:
    """An ASGI wrapper that adds the security headers to every response; streams pass unbuffered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def _page_files() -> dict[str, _PageFile]:
    files = {}
    for item in (resources.files(__package__) / "page").iterdir():
        suffix = "." + item.name.rpartition(".")[2]
        if suffix in _TYPES:
            body = item.read_bytes()
            files[item.name] = _PageFile(body, _TYPES[suffix], etag(body))
    return files


async def _rendered(
    request: Request,
    edition: RenderedSnapshot,
    key: Hashable,
    render: Callable[[], bytes],
    media_type: str = _JSON,
    *,
    extra: Mapping[str, str] | None = None,
) -> Response:
    """Return a document of an edition, rendered in a thread and once for all who ask for it."""
    body = await to_thread.run_sync(edition.body, key, render)
    return _document(request, body, media_type, extra=extra)


def _document(
    request: Request,
    body: bytes,
    media_type: str,
    *,
    tag: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> Response:
    tag = tag or etag(body)
    headers = {"cache-control": "no-cache", "etag": tag, **(extra or {})}
    asked = [part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")]
    if tag in asked or "*" in asked:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=media_type)


def _refusal(
    status: int, subject: str, rule: str, value: object, headers: Mapping[str, str] | None = None
) -> Response:
    body = to_json({"subject": subject, "rule": rule, "value": str(value)[:200]})
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, _JSON)


def _unknown_survey(digest: str) -> Response:
    return _refusal(
        404, "survey", "must be the digest (32 hexadecimal digits) of a survey listed at /api/surveys", digest
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    if error.status_code == 404:
        return _refusal(404, "path", "must be one that this server knows; see /api/surveys", request.url.path)
    if error.status_code == 405:
        return _refusal(405, "method", "must be GET or HEAD", request.method, error.headers)
    return _refusal(error.status_code, "request", error.detail, request.url.path, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    # The error itself goes to the server's log; its text could hold what no reader should see.
    return _refusal(500, "server", "must not fail; the log of the server says why", request.url.path)
