"""Requests to the read API: a token, a cache by entity tag, pages, and errors in words."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote, urlencode, urljoin, urlsplit

import urllib3

from hubbub_results.errors import (
    BadAnswerError,
    NotComparableError,
    NotFoundError,
    UnauthorizedError,
    UnreachableError,
    reading,
)

PlainHttp: TypeAlias = Literal["local", "anywhere"]
"""Machines to which a token may go by http:// and not https://: this one, or, if it is asked for, any."""
ATTEMPTS: Final = 3
"""Most attempts of a request for which no connection can be made; to read twice does no harm."""
KEPT_BYTES: Final = 64 * 2**20
"""Most bytes of answers kept for their tags, the oldest given up first."""


class ResultsTransport:
    """A way to one server; answers are kept, and fetched again only if they changed.

    Args:
        url: The server's address, such as "https://results.example.org".
        token: The read token of a server that asks for one; None without.
        timeout_s: Seconds in which a connection, and each piece of an answer, must come.
        plain_http: Where a token may go by http: "local", to this machine alone, or "anywhere".

    Raises:
        ValueError: If the address is no http or https address, or would show a token to everybody.
    """

    def __init__(self, url: str, *, token: str | None, timeout_s: float, plain_http: PlainHttp) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must begin with http:// or https:// and name a host, got {url!r}")
        if sign := next((sign for sign in "@?#" if sign in url), None):  # as of the page's own address
            raise ValueError(f"url must end after host, port and path, got one with {sign!r}")
        is_shown = parts.scheme == "http" and plain_http == "local" and not _is_this_machine(parts.hostname)
        if token is not None and is_shown:
            raise ValueError(
                "a token must go by https://, or by http:// to this machine; elsewhere plain http must be "
                f"asked for (plain_http='anywhere'), got {url!r}"
            )
        self.url = url.rstrip("/")
        self._base = self.url + "/api/v1/"
        self._headers = {"accept-encoding": "gzip"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        retries = urllib3.Retry(ATTEMPTS - 1, backoff_factor=0.2, redirect=0, status=0)
        self._pool = urllib3.PoolManager(retries=retries, timeout=timeout_s)
        self._kept: OrderedDict[str, tuple[str, bytes]] = OrderedDict()

    def get(self, *parts: str, **parameters: str | float) -> dict[str, Any]:
        """Return a JSON document.

        Args:
            *parts: The path below `/api/v1/`, in parts.
            **parameters: The query.

        Raises:
            ResultsError: If it cannot be had.
        """
        return self._decoded(self._address(parts, parameters))

    def blob(self, *parts: str) -> bytes:
        """Return bytes as they are; arguments and errors as those of `get`."""
        return self._body(self._address(parts, {}))

    def rows(self, *parts: str, **parameters: str | float) -> list[dict[str, Any]]:
        """Return the rows of a table of JSON lines; arguments and errors as those of `get`."""
        address = self._address(parts, parameters)
        try:
            found: list[dict[str, Any]] = [json.loads(line) for line in self._body(address).splitlines()]
        except (ValueError, RecursionError) as error:
            raise BadAnswerError(f"{address} must answer with JSON lines, got other bytes") from error
        with reading(address):
            _ = [(row["kind"], row["view"], row["label"], row["estimate"]) for row in found]
            return found

    def pages(self, key: str, *parts: str) -> Iterator[dict[str, Any]]:
        """Yield the entries of a list, page by page; arguments and errors as those of `get`."""
        address: str | None = self._address(parts, {})
        while address is not None:
            page = self._decoded(address)
            with reading(address):
                found = [_object(entry) for entry in page[key]]
                address = self._next(address, page["next"]) if page["next"] else None
            yield from found

    def _address(self, parts: tuple[str, ...], parameters: Mapping[str, str | float]) -> str:
        query = "?" + urlencode(parameters) if parameters else ""
        return self._base + "/".join(quote(part, safe="") for part in parts) + query

    def _next(self, address: str, given: str) -> str:
        """Return the address of the next page: on the same server, which alone may see the token."""
        found = urljoin(address, given)
        if not found.startswith(self._base):
            raise BadAnswerError(f"{address} must name a next page below {self._base}, got {found!r:.80}")
        return found

    def _decoded(self, address: str) -> dict[str, Any]:
        try:
            found = json.loads(self._body(address))
        except (ValueError, RecursionError) as error:
            raise BadAnswerError(f"{address} must answer with JSON, got other bytes") from error
        with reading(address):
            return _object(found)

    def _body(self, address: str) -> bytes:
        kept = self._kept.get(address)
        headers = self._headers if kept is None else {**self._headers, "if-none-match": kept[0]}
        try:
            answer = self._pool.request("GET", address, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise UnreachableError(f"{address} must answer, got {_why(error)}") from error
        if answer.status == 304 and kept is not None:
            self._kept.move_to_end(address)
            return kept[1]
        if answer.status != 200:
            raise _error(address, answer)
        if tag := answer.headers.get("etag"):
            self._keep(address, tag, answer.data)
        return answer.data

    def _keep(self, address: str, tag: str, body: bytes) -> None:
        self._kept[address] = (tag, body)
        self._kept.move_to_end(address)
        while sum(len(kept) for _, kept in self._kept.values()) > KEPT_BYTES:
            self._kept.popitem(last=False)


def _object(found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise TypeError(f"no object but {found!r:.40}")
    return found


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _why(error: BaseException) -> str:
    """Return why there is no answer, in words; what the library says stays in the error's cause."""
    of = urllib3.exceptions
    found = error.reason if isinstance(error, of.MaxRetryError) and error.reason else error
    cause = found.__cause__
    if isinstance(found, of.NameResolutionError):
        return "a host whose name is not known"
    if isinstance(found, of.SSLError):
        return f"no TLS that can be trusted ({found.args[0] if found.args else found})"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    if isinstance(found, of.TimeoutError):
        return "nothing in time"
    return f"{type(found).__name__}: {found}"


def _error(address: str, answer: urllib3.BaseHTTPResponse) -> Exception:
    try:
        said = str(answer.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return BadAnswerError(f"{address} must be one of Hubbub's read API, got status {answer.status}")
    if answer.status == 401:
        return UnauthorizedError(f"{address}: {said}; give connect(url, token=...)")
    if answer.status == 404:
        return NotFoundError(said)
    if answer.status == 409:
        return NotComparableError(said)
    return BadAnswerError(f"{address} must answer 200, got {answer.status}: {said}")
