"""The aggregator's HTTP face: a JSON API, a stream of changes, and the dashboard page.

    GET /                                     the dashboard; everything it loads comes from here
    GET /api/v1/...                           surveys, rounds and tables for programs: see `read_api`
    GET /api/surveys                          older than v1, kept: the surveys, with a line per round
    GET /api/surveys/{digest}                 one survey
    GET /api/surveys/{digest}/rounds/{r}      one round: its release, or provisional estimates
    GET /api/surveys/{digest}/rounds/{r}.csv  the same as a table
    GET /api/live                             all that the page shows, in one document
    GET /api/events                           the same, pushed whenever it changes (server-sent events)
    GET /page/{name}                          the files of the page
    GET /healthz                              503 while no round is sealed because clocks differ, else 200
    GET /readyz                               503 while the page stands still or stands by, too
    GET /metrics                              for Prometheus: sealing, following, lag, verdicts, rounds

In a node the gateway answers the last three (`hubbub_collector.gateway`), and its health is about uploads.

What is refused is a problem (RFC 9457) with `subject`, `rule` and `value`. Every document has an entity tag
and `Cache-Control: no-cache`: a browser may keep it, and asks before showing it again. Sealed rounds too, for
a demo that starts anew at the same address may seal other numbers under the same survey.

A read token is asked for before page and API; health and metrics stay open. Programs send it as
`Authorization: Bearer TOKEN`. A browser asks its reader for a name and a password (Basic): the name is
anything, the password the token; from then on page, stream and downloads send it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hubbub_aggregator.web.comparison_api import ComparisonApi
from hubbub_aggregator.web.documents import csv_name, etag, to_csv, to_json
from hubbub_aggregator.web.events import HEARTBEAT_S, POLL_S, Events
from hubbub_aggregator.web.metrics import ViewCollector
from hubbub_aggregator.web.read_api import ReadApi
from hubbub_aggregator.web.responses import (
    CSV,
    GZIP_BYTES,
    JSON,
    PROBLEM_HANDLERS,
    compress,
    document,
    problem,
    rendered,
)
from hubbub_aggregator.web.snapshot_cache import SnapshotCache
from hubbub_aggregator.web.statistics_api import StatisticsApi
from hubbub_aggregator.web.stream_caps import MAX_CLIENT_STREAMS, MAX_STREAMS
from hubbub_aggregator.web.view import View

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
_UNKEPT = {"cache-control": "no-store"}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class _PageFile:
    body: bytes
    media_type: str
    tag: str
    gzipped: bytes | None


def create_app(
    view: View,
    *,
    poll_s: float = POLL_S,
    heartbeat_s: float = HEARTBEAT_S,
    max_streams: int = MAX_STREAMS,
    max_client_streams: int = MAX_CLIENT_STREAMS,
    closing: Callable[[], bool] = lambda: False,
    read_token: str | None = None,
) -> Starlette:
    """Return the ASGI application that serves a view; it keeps nothing but the newest snapshot.

    Args:
        view: Where the counts are read.
        poll_s: Seconds between two looks at `view.version()` by an open stream.
        heartbeat_s: Seconds of silence after which a stream sends a beat.
        max_streams: Streams open at once; the next one is answered 503.
        max_client_streams: The same of one client, an IPv4 address or an IPv6 network of 64 bits.
        closing: Asked at every look; once true, streams end, so that a server can shut down without waiting
            for readers to leave.
        read_token: What a reader must know, see `read_token`; None where anyone may read.
    """
    desk = SnapshotCache(view)
    files = _page_files()
    events = Events(
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
            return problem(404, "page file", "must be one of " + ", ".join(sorted(files)), name)
        return document(request, file.body, file.media_type, tag=file.tag, gzipped=file.gzipped)

    async def live(request: Request) -> Response:
        edition = await desk.current()
        return await rendered(request, edition, "live", lambda: edition.live, tag=f'"{edition.token}"')

    async def surveys(request: Request) -> Response:
        edition = await desk.current()
        listed = {"edition": edition.token, "surveys": edition.surveys}
        return await rendered(request, edition, "surveys", lambda: to_json(listed))

    async def survey(request: Request) -> Response:
        digest = request.path_params["digest"].lower()
        edition = await desk.current()
        found = edition.digests.get(digest)
        if found is None:
            return _unknown_survey(digest)
        return await rendered(request, edition, digest, lambda: to_json(found))

    async def round_(request: Request) -> Response:
        digest, name = request.path_params["digest"].lower(), request.path_params["round"]
        number, as_csv = name.removesuffix(".csv"), name.endswith(".csv")
        edition = await desk.current()
        if digest not in edition.digests:
            return _unknown_survey(digest)
        wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None
        found = None if wanted is None else edition.rounds.get((digest, wanted))
        if found is None:
            known = [r for d, r in edition.rounds if d == digest]
            period = (
                f"a number from {min(known)} to {max(known)}"
                if known
                else "a round that has reports; none has yet"
            )
            return problem(404, f"round of survey {digest}", f"must be {period}", number)
        if as_csv:
            disposition = {"content-disposition": f'attachment; filename="{csv_name(found)}"'}
            return await rendered(
                request, edition, (digest, wanted, "csv"), lambda: to_csv(found), CSV, extra=disposition
            )
        return await rendered(request, edition, (digest, wanted), lambda: to_json(found))

    async def health(_: Request) -> Response:
        unsealed = view.snapshot().get("unsealed")
        if unsealed is None:
            return Response(to_json({"status": "ok"}), 200, _UNKEPT, JSON)
        why = {"status": "no round is sealed", "unsealed": unsealed}
        return Response(to_json(why), 503, _UNKEPT, JSON)

    async def ready(request: Request) -> Response:
        if (stale := view.snapshot().get("stale")) is None:
            return await health(request)
        return Response(to_json({"status": "the page stands still", "stale": stale}), 503, _UNKEPT, JSON)

    registry = CollectorRegistry()
    registry.register(ViewCollector(view))

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), 200, _UNKEPT, CONTENT_TYPE_PLAIN_0_0_4)

    app = Starlette(
        routes=[
            Route("/", page),
            Route("/page/{name}", page),
            *ComparisonApi(desk).routes(),
            *StatisticsApi(desk).routes(),
            *ReadApi(desk, view, is_public=read_token is None).routes(),
            Route("/api/surveys", surveys),
            Route("/api/surveys/{digest}", survey),
            Route("/api/surveys/{digest}/rounds/{round}", round_),
            Route("/api/live", live),
            Route("/api/events", events.respond),
            Route("/healthz", health),
            Route("/readyz", ready),
            Route("/metrics", metrics),
        ],
        middleware=[
            Middleware(_SafeHeaders),
            *([] if read_token is None else [Middleware(ReadToken, token=read_token)]),
        ],
        exception_handlers=PROBLEM_HANDLERS,
    )
    app.router.redirect_slashes = False  # to wherever the Host says: a proxy's name, or a stranger's
    return app


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
            gzipped = compress(body) if len(body) >= GZIP_BYTES else None
            files[item.name] = _PageFile(body, _TYPES[suffix], etag(body), gzipped)
    return files


def _unknown_survey(digest: str) -> Response:
    return problem(
        404, "survey", "must be the digest (32 hexadecimal digits) of a survey listed at /api/surveys", digest
    )


OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths without a token: load balancers and Prometheus read them, and they hold no estimate."""


class ReadToken:
    """An ASGI wrapper that answers 401 to whoever does not know the token.

    Args:
        app: The page and its API.
        token: The token.
    """

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app, self._token = app, token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, 401 where it does not know the token."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_known(scope):
            await self._app(scope, receive, send)
            return
        answer = problem(401, "authorization", "must be the token of this server, as Bearer or as Basic", "")
        for way in ("Bearer", "Basic"):
            answer.headers.append("www-authenticate", f'{way} realm="hubbub", charset="UTF-8"')
        await answer(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(_secret(given[0]), self._token)


def _secret(authorization: bytes) -> bytes:
    """Return the token of a header, empty where it has none."""
    way, _, rest = authorization.strip().partition(b" ")
    if way.lower() == b"bearer":
        return rest.strip()
    if way.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
