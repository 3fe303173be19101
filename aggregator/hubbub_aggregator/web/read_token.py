"""The check of the read token before page and API; health and metrics stay open.

Programs send it as `Authorization: Bearer TOKEN`. A browser asks its reader for a name and a password
(Basic): the name is anything, the password the token; from then on page, stream and downloads send it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from hubbub_aggregator.web.responses import problem

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
