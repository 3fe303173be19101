"""Responses of the API: documents with an entity tag, compressed where large, and problems (RFC 9457)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from http import HTTPStatus

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hubbub_aggregator.web.documents import RenderedSnapshot, etag, to_json

JSON = "application/json; charset=utf-8"
PROBLEM = "application/problem+json"
CSV = "text/csv; charset=utf-8; header=present"
ANY_ORIGIN: Mapping[str, str] = {"access-control-allow-origin": "*"}
"""The header of what is public: the pages of any site may read it, without anybody's credentials."""
GZIP_BYTES = 1024
"""Shorter bodies travel as they are: one packet carries them, and the header of gzip takes 20 bytes."""
_GZIPPED = '-gzip"'


def accepts_gzip(request: Request) -> bool:
    """Return whether the reader takes gzip, by name or by `*`, with a weight above 0."""
    weights = {}
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip()] = _weight(parameters)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(parameters: str) -> float:
    name, _, value = parameters.strip().partition("=")
    if name.strip() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0


def is_known(request: Request, tag: str) -> bool:
    """Return whether the reader says (If-None-Match) that it has the body of this tag, compressed or not."""
    asked = request.headers.get("if-none-match", "").split(",")
    known = {part.strip().removeprefix("W/").replace(_GZIPPED, '"') for part in asked}
    return tag in known or "*" in known


def document(
    request: Request,
    body: bytes,
    media_type: str,
    *,
    tag: str | None = None,
    gzipped: bytes | None = None,
    extra: Mapping[str, str] | None = None,
) -> Response:
    """Return a document that a reader may keep and must ask for again: 304 if it has these very bytes.

    Args:
        request: The reader's request.
        body: The bytes.
        media_type: Their type.
        tag: Their entity tag; by default a hash of them.
        gzipped: The bytes compressed, for a reader who takes them; None where that is not worth it.
        extra: Further headers.
    """
    tag = tag or etag(body)
    headers = {"cache-control": "no-cache", "vary": "accept-encoding", "etag": tag, **(extra or {})}
    is_compressed = gzipped is not None and accepts_gzip(request)
    if is_compressed:
        # Other bytes, another strong tag.
        headers |= {"etag": tag[:-1] + _GZIPPED, "content-encoding": "gzip"}
    if is_known(request, tag):
        headers.pop("content-encoding", None)
        return Response(status_code=304, headers=headers)
    return Response(gzipped if is_compressed else body, headers=headers, media_type=media_type)


async def rendered(
    request: Request,
    edition: RenderedSnapshot,
    key: Hashable,
    render: Callable[[], bytes],
    media_type: str = JSON,
    *,
    tag: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> Response:
    """Return a document of an edition, rendered and compressed in a thread, once for all who ask for it."""
    body = await _body(edition, key, render)
    gzipped = None
    if len(body) >= GZIP_BYTES and accepts_gzip(request):
        gzipped = await _body(edition, ("gzip", key), lambda: compress(body))
    return document(request, body, media_type, tag=tag, gzipped=gzipped, extra=extra)


async def _body(edition: RenderedSnapshot, key: Hashable, render: Callable[[], bytes]) -> bytes:
    known = edition.known_body(key)
    return await to_thread.run_sync(edition.body, key, render) if known is None else known


def compress(body: bytes) -> bytes:
    """Return the body in gzip, the same bytes for the same body."""
    return gzip.compress(body, 6, mtime=0)


def compressed_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces compressed as they come, the same bytes for the same pieces."""
    # 16 more than the window's bits: a header and a checksum of gzip around it.
    compressor = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    for piece in pieces:
        if small := compressor.compress(piece):
            yield small
    yield compressor.flush()


def problem(
    status: int, subject: str, rule: str, value: object, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem (RFC 9457): what is wrong, by which rule, and the value that came.

    Args:
        status: HTTP's status.
        subject: The thing that is wrong: "round of survey 0123...".
        rule: The rule that it breaks, "must be a number from 0 to 6".
        value: What came, cut to 200 characters.
        headers: Further headers.
    """
    came = str(value)[:200]
    body = to_json(
        {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": f"{subject} {rule}, got {came}" if came else f"{subject} {rule}",
            "subject": subject,
            "rule": rule,
            "value": came,
        }
    )
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, PROBLEM)


async def refused(request: Request, error: Exception) -> Response:
    """Answer what routing refuses: an unknown path, or a known one by a method that it does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    path = request.url.path
    if error.status_code == 404:
        return problem(404, "path", "must be one that this server knows; see /api/v1/openapi.json", path)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "GET, HEAD")
        methods = " or ".join(sorted(name.strip() for name in allowed.split(",")))
        return problem(405, "method", f"must be {methods}", request.method, {"allow": allowed})
    return problem(error.status_code, "request", error.detail, path, error.headers)


async def failed(request: Request, error: Exception) -> Response:
    """Answer 500 without the error itself, whose text could hold what no reader should see."""
    return problem(500, "server", "must not fail; the log of the server says why", request.url.path)


PROBLEM_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    HTTPException: refused,
    Exception: failed,
}
"""Starlette's handlers that answer every error as a problem; for an application around the API's, too."""
