"""Refusals in the form of RFC 9457: a status, its phrase, and a sentence about this one."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PROBLEM: Final = "application/problem+json"


def problem(status: int, detail: str) -> bytes:
    """Return a problem: HTTP's status, its phrase, and what is wrong here, a sentence."""
    found = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


async def failed(request: Request, error: Exception) -> Response:
    """Answer 500 without the error itself, whose text could hold what no sender should see."""
    return Response(problem(500, "the server failed; its log says why"), 500, None, PROBLEM)


async def refused(request: Request, error: Exception) -> Response:
    """Answer what routing refuses: an unknown path, or a known one by a method that it does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for nothing else
    detail, headers = error.detail, error.headers or {}
    if error.status_code == 404:
        detail = f"path must be one that this server knows, got {request.url.path[:200]}"
    elif error.status_code == 405:
        detail = f"method must be {headers.get('Allow', 'another')}, got {request.method}"
    return Response(problem(error.status_code, detail), error.status_code, headers, PROBLEM)
