"""The one place where a device touches the network: requests to one collector, bounded in size and time."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from hubbub.survey import MAX_LIST_BYTES
from hubbub_client.errors import TransportError

if TYPE_CHECKING:
    import ssl

    import urllib3

    from hubbub_client.upload.timed_request import TimedRequests


def failure_words(error: BaseException) -> str:
    """Return why a request failed; of an unknown kind its name alone, as a message may quote what was sent.

    Args:
        error: What urllib3, the system or a deadline raised.
    """
    import ssl  # noqa: PLC0415 - at the first request

    import urllib3.exceptions as of  # noqa: PLC0415 - as above

    cause = error.args[0] if isinstance(error, of.SSLError) and error.args else error.__cause__
    if isinstance(error, of.NameResolutionError):
        return "its name is not known"
    if isinstance(cause, ssl.SSLError):
        return _tls_words(cause)
    for each in (error, cause):  # before timeouts, of which urllib3 makes a refused connection one
        if isinstance(each, OSError) and each.errno is not None:
            return os.strerror(each.errno).lower()
    if isinstance(error, of.TimeoutError | TimeoutError):
        return "no answer in time"
    return "the connection broke" if isinstance(error, of.ProtocolError) else type(error).__name__


def _tls_words(error: ssl.SSLError) -> str:
    refused = getattr(error, "verify_message", None)  # of a certificate's errors alone
    if refused is not None:
        return f"its certificate is not accepted: {refused}"
    return f"TLS failed: {(error.reason or 'no reason').replace('_', ' ').lower()}"


PlainHttp: TypeAlias = Literal["local", "anywhere"]
"""Machines to which a device may speak http:// and not https://: this one, or, if it is asked for, any."""

MAX_OUTCOMES_BYTES: Final = 2**16
"""An outcome is at most 11 bytes, and an upload carries a handful of reports."""

UPLOAD_S: Final = 15.0
"""For a whole upload, from the look-up of the name to the last byte of the answer: a collector answers within
its linger, so more means that the way is broken."""

SURVEYS_S: Final = 60.0
"""For a whole list of surveys, which may be a megabyte or two over a slow line."""


SMALLEST_STEP: Final = 1024
LARGEST_STEP: Final = 4096
"""Bytes of the steps to which posts are padded: doubled up to the largest, then multiples of it.

The first step holds eight reports of numbers in one packet. Common proxies take a header line below 8 KiB.
"""


def padding(body: bytes) -> str:
    """Return the characters that make a post as long as its step: below LARGEST_STEP of them.

    Body, digits of its length and padding have together 1, 2 or 4 KiB, or a multiple of 4 KiB.

    >>> len(padding(bytes(42))) + 42 + len("42")
    1024
    """
    size = len(body) + len(str(len(body)))
    step = SMALLEST_STEP
    while step < min(size, LARGEST_STEP):
        step *= 2
    return "0" * (-size % step)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response.

    Attributes:
        status: HTTP status.
        body: The whole body.
        retry_after: The Retry-After header as it came, None without one.
    """

    status: int
    body: bytes
    retry_after: str | None = None


class Transport(Protocol):
    """The HTTP methods that the agent needs; tests hand in their own."""

    def get(self, path: str) -> Response:
        """Return the answer to GET; raises TransportError if there is none."""

    def post(self, path: str, body: bytes) -> Response:
        """Return the answer to POST of a MessagePack body; raises TransportError if there is none."""

    def close(self) -> None:
        """Close kept connections."""


def checked_url(url: str, subject: str = "collector", *, plain_http: PlainHttp = "local") -> SplitResult:
    """Return the parts of the URL of a collector, or of whom `subject` names.

    Raises:
        TransportError: If it is not http or https with a host, and a port from 0 to 65535 if any; if it has
            a user, a query or a fragment; or if it is http to another machine, and that was not asked for.
    """
    try:
        parts = urlsplit(url)
        well_formed = parts.scheme in {"http", "https"} and (parts.port is None or parts.port >= 0)
        host = parts.hostname if well_formed else None
    except ValueError:  # what `urlsplit` and `port` raise
        host = None
    if not host:
        raise TransportError(f"{subject} URL must be http(s)://host[:port], got {url!r}")
    if sign := next((sign for sign in "@?#" if sign in url), None):  # what is after it may be a password
        raise TransportError(f"{subject} URL must end after host, port and path, got one with {sign!r}")
    if parts.scheme == "http" and plain_http == "local" and not _is_this_machine(host):
        raise TransportError(
            f"{subject} URL must be https://, or http:// to this machine; elsewhere plain http must be asked "
            f"for (plain_http='anywhere', --plain-http), got {url!r}"
        )
    return parts


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return False


class HttpTransport:
    """A client of one collector over kept connections: no redirects, no cookies, no retries of its own.

    Retrying is the uploader's decision; a library that retries by itself would hide it. A request is given up
    when its time is over, however the collector draws it out: byte by byte, in the middle of a header or of
    a handshake, or in the look-up of its name.

    Args:
        url: Where the collector is, for example "https://collect.example.org"; a path is kept as a prefix.
        timeout_s: For a whole exchange; None for UPLOAD_S and SURVEYS_S.
        bearer: What every request says as `Authorization: Bearer`, printable ASCII; None for nothing.
        content_type: The media type of what is posted.
        plain_http: Where it may be http, which everybody on the way reads and can change.

    Raises:
        TransportError: If `url` is not http or https with a host, or http where it may not be.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float | None = None,
        bearer: str | None = None,
        content_type: str = "application/msgpack",
        plain_http: PlainHttp = "local",
    ) -> None:
        checked_url(url, plain_http=plain_http)
        self._bearer, self._content_type = bearer, content_type
        self._base = url.rstrip("/")
        self._upload_s = UPLOAD_S if timeout_s is None else timeout_s
        self._surveys_s = SURVEYS_S if timeout_s is None else timeout_s
        self._made: TimedRequests | None = None
        self._closed = False
        self._making = threading.Lock()

    def get(self, path: str) -> Response:
        """Return the answer to GET.

        Raises:
            TransportError: If no whole answer of acceptable size came in time.
        """
        return self._request("GET", path, None, MAX_LIST_BYTES, self._surveys_s)

    def post(self, path: str, body: bytes) -> Response:
        """Return the answer to POST of a MessagePack body.

        Raises:
            TransportError: If no whole answer of acceptable size came in time.
        """
        return self._request("POST", path, body, MAX_OUTCOMES_BYTES, self._upload_s)

    def close(self) -> None:
        """Close all connections; a request under way fails at once."""
        with self._making:
            self._closed, made = True, self._made
        if made is not None:
            made.close()

    @property
    def _exchanges(self) -> TimedRequests:
        # A device that only records answers never loads an HTTP library.
        from hubbub_client.upload.timed_request import TimedRequests  # noqa: PLC0415 - at the first request

        with self._making:
            if self._made is None:
                self._made = TimedRequests()
                if self._closed:
                    self._made.close()
            return self._made

    def _request(
        self, method: str, path: str, body: bytes | None, max_bytes: int, timeout_s: float
    ) -> Response:
        import urllib3  # noqa: PLC0415 - at the first request

        # The agent string is the same for every device: a version would sort devices into groups.
        headers = {"User-Agent": "hubbub"}
        if body is not None:
            headers["Content-Type"] = self._content_type
            # A header, as collectors read none: what is encrypted still shows its length.
            headers["Padding"] = padding(body)
        if self._bearer is not None:
            headers["Authorization"] = f"Bearer {self._bearer}"

        def exchange(pool: urllib3.PoolManager) -> Response:
            reply = pool.request(
                method,
                self._base + path,
                body=body,
                headers=headers,
                redirect=False,
                preload_content=False,
                timeout=urllib3.Timeout(connect=timeout_s, read=timeout_s),
            )
            try:
                data = b""
                # To the end: only the read after the last byte notices that the answer was cut short.
                while chunk := reply.read(max_bytes + 1 - len(data), decode_content=False):
                    data += chunk
                    if len(data) > max_bytes:
                        reply.close()
                        raise TransportError(f"collector's answer must be at most {max_bytes} bytes")
                if not {"content-length", "transfer-encoding"} & {name.lower() for name in reply.headers}:
                    # Cut in its head, or nobody can tell whether it was cut: an empty list is another thing.
                    raise TransportError("an answer must say where it ends, got one without a length")
                return Response(reply.status, data, reply.headers.get("Retry-After"))
            finally:
                reply.release_conn()

        try:
            return self._exchanges.run(exchange, timeout_s)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TransportError(f"collector cannot be reached: {failure_words(error)}") from None
