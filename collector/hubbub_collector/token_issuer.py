"""The HTTP edge of an issuer: blinded token requests in, blind signatures out, a fixed number per device.

Run it apart from the collector, by somebody else if possible: it knows devices by their credentials and sees
no report; the collector sees reports and no device. Neither can tell, nor can both together, which tokens are
whose.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeAlias

from cryptography.hazmat.primitives.asymmetric import rsa
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hubbub.errors import WireError
from hubbub.numeric import SYSTEM
from hubbub.tokens import REQUEST_BYTES, blind_sign, decode_requests, public_of
from hubbub_collector.errors import CollectorError, PeriodOverError, SettingsError
from hubbub_collector.metrics import IssuerCollector, IssuerMetrics
from hubbub_collector.problems import PROBLEM, failed, problem, refused

REQUEST_PATH: Final = "/v1/tokens"
DIRECTORY_PATH: Final = "/.well-known/private-token-issuer-directory"
MAX_QUANTITY: Final = 128
_LOG = logging.getLogger("hubbub.issuer")
# A line has 64 digits; one that never ends is read in pieces, and the first is no hash.
_LINE: Final = 1_024
_ANSWER: Final = "application/private-token-response"

Grant: TypeAlias = Literal["new", "again", "used"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """The settings of an issuer.

    Attributes:
        key: What it signs with.
        credentials: File with the SHA-256 of each device's credential, 64 hexadecimal digits a line; read
            anew when it is replaced.
        quantity: Tokens that every device gets in a period, never fewer or more.
        period_s: Length of a period, whole seconds.

    Raises:
        SettingsError: If a number is out of its range.
    """

    key: rsa.RSAPrivateKey
    credentials: Path
    quantity: int = 4
    period_s: int = 86_400

    def __post_init__(self) -> None:
        if not 1 <= self.quantity <= MAX_QUANTITY:
            raise SettingsError(f"quantity must be in [1, {MAX_QUANTITY}], got {self.quantity}")
        if self.period_s < 60:
            raise SettingsError(f"period must be at least 60 s, got {self.period_s}")


class Grants:
    """The record of who had tokens in which period: a row is on disk before anything is signed.

    A grant lets go of the periods before the one that was granted before it. Where a clock was ahead once,
    that one is the true period, so its grants stay; and no period is granted whose grants are gone.

    Args:
        path: SQLite file; made if absent.

    Raises:
        CollectorError: If the file cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._fault: str | None = None
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._begin()
            except BaseException:
                self._db.close()
                raise
        except (OSError, sqlite3.Error) as error:
            found = repr(error.strerror) if isinstance(error, OSError) else "one of another kind"
            raise CollectorError(f"{path}: must be a file of grants, got {found}") from None

    def _begin(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS issued (period INTEGER NOT NULL, who BLOB NOT NULL, "
            "request BLOB NOT NULL, PRIMARY KEY (period, who)) STRICT, WITHOUT ROWID"
        )
        # The last period whose grants are gone; a file without one let go of all but its last two.
        self._db.execute("CREATE TABLE IF NOT EXISTS swept (period INTEGER NOT NULL) STRICT")
        self._db.execute(
            "INSERT INTO swept SELECT (SELECT coalesce(max(period), 0) - 2 FROM issued) "
            "WHERE NOT EXISTS (SELECT 1 FROM swept)"
        )

    def grant(self, period: int, who: bytes, request: bytes) -> Grant:
        """Return whether a device's request is its first of the period, the same once more, or another.

        Args:
            period: The period's number.
            who: SHA-256 of its credential.
            request: SHA-256 of what it asks to be signed.

        Raises:
            PeriodOverError: If the record has let go of the grants of that period.
            sqlite3.Error: If the file cannot be written.
        """
        try:
            with self._lock, self._db:
                self._db.execute("BEGIN IMMEDIATE")
                found = self._granted(period, who, request)
        except sqlite3.Error as error:
            self._fault = type(error).__name__
            raise
        self._fault = None
        return found

    def _granted(self, period: int, who: bytes, request: bytes) -> Grant:
        self.require(period)
        made = self._db.execute(
            "INSERT INTO issued VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (period, who, request)
        )
        if made.rowcount:
            self._sweep(period)
            return "new"
        (known,) = self._db.execute(
            "SELECT request FROM issued WHERE period = ? AND who = ?", (period, who)
        ).fetchone()
        return "again" if known == request else "used"

    def _sweep(self, period: int) -> None:
        """Let go of the periods before the last one that was granted before `period`."""
        last = "SELECT max(period) FROM issued WHERE period < "
        (gone,) = self._db.execute(f"{last} ({last} ?)", (period,)).fetchone()
        if gone is not None:
            self._db.execute("UPDATE swept SET period = max(period, ?)", (gone,))
            self._db.execute("DELETE FROM issued WHERE period <= ?", (gone,))

    def require(self, period: int) -> None:
        """Refuse a period whose grants are gone: it is over for good.

        Raises:
            PeriodOverError: If it is.
            sqlite3.Error: If the file cannot be read.
        """
        (swept,) = self._db.execute("SELECT period FROM swept").fetchone()
        if period <= swept:
            raise PeriodOverError(f"period must be later than {swept}, whose grants are gone, got {period}")

    @property
    def fault(self) -> str | None:
        """The kind of error that the last grant met, None after one that was stored.

        While there is one, a row of no period is written and taken away, so that it ends without a device's
        help.
        """
        if self._fault is not None:
            with suppress(sqlite3.Error), self._lock, self._db:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.execute("INSERT INTO issued VALUES (-1, ?, x'')", (secrets.token_bytes(32),))
                self._db.execute("DELETE FROM issued WHERE period = -1")
                self._db.execute("COMMIT")
                self._fault = None
        return self._fault

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


class _Credentials:
    """The credentials' hashes of a file, read anew when it is replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[int, int, int] | None = None
        self._hashes: frozenset[bytes] = frozenset()
        self.fault: str | None = None
        self.holds(b"")

    def __len__(self) -> int:
        return len(self._hashes)

    def holds(self, hashed: bytes) -> bool:
        """Return whether the file has a hash; a later file that cannot be read changes nothing."""
        try:
            stat = self._path.stat()
            version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if version != self._read:
                with self._path.open(encoding="ascii") as file:
                    lines = iter(partial(file.readline, _LINE), "")
                    self._hashes = frozenset(_hash(word) for line in lines for word in line.split())
                self._read = version
            self.fault = None
        except (OSError, ValueError) as error:
            if self._read is None:
                found = repr(error.strerror) if isinstance(error, OSError) else "one that is none"
                raise SettingsError(
                    f"{self._path}: must hold the SHA-256 of a credential a line, got {found}"
                ) from None
            if self.fault is None:
                _LOG.warning("credentials cannot be read: %s; those known stay", type(error).__name__)
            self.fault = type(error).__name__
        return hashed in self._hashes


def _hash(word: str) -> bytes:
    """Return the SHA-256 that a word of the file is in hexadecimal digits."""
    if len(word) != 64:
        raise ValueError("a SHA-256 has 64 hexadecimal digits")
    return bytes.fromhex(word)


class _Issuer:
    def __init__(self, settings: IssuerSettings, grants: Grants, clock: Callable[[], float | None]) -> None:
        self._settings, self._grants, self._clock = settings, grants, clock
        self._key = public_of(settings.key)
        self._credentials = _Credentials(settings.credentials)
        self._metrics = IssuerMetrics()
        self._registry = CollectorRegistry()
        self._registry.register(
            IssuerCollector(self._metrics, credentials=lambda: len(self._credentials), faults=self._faults)
        )

    def _faults(self) -> dict[str, str]:
        """Return what keeps the issuer from giving tokens to all of its devices, by part."""
        self._credentials.holds(b"")
        found = {"grants": self._grants.fault, "credentials": self._credentials.fault}
        try:
            self._period()
        except PeriodOverError as error:
            found["clock"] = str(error)
        except sqlite3.Error as error:
            found["grants"] = type(error).__name__
        return {part: fault for part, fault in found.items() if fault is not None}

    def _period(self) -> int:
        """Return the number of the period that it is.

        Raises:
            PeriodOverError: If the clock is not trusted, or names a period whose grants are gone.
        """
        now_s = self._clock()
        if now_s is None:
            raise PeriodOverError(
                "the clock must not run ahead of the boot clock: set it right, or start this process again "
                "if it is right now"
            )
        period = int(now_s // self._settings.period_s)
        self._grants.require(period)
        return period

    async def health(self, _: Request) -> Response:
        """Answer GET /healthz and /readyz: 200 while every known device can have its tokens, else 503."""
        faults = await asyncio.to_thread(self._faults)
        said = {"status": "credentials are old" if list(faults) == ["credentials"] else "tokens are refused"}
        return JSONResponse(said | faults if faults else {"status": "ok"}, 503 if faults else 200)

    async def metrics_page(self, _: Request) -> Response:
        """Answer GET /metrics with the counters for Prometheus."""
        text = await asyncio.to_thread(generate_latest, self._registry)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    async def tokens(self, request: Request) -> Response:
        """Answer POST /v1/tokens, and count the answer."""
        answer = await self._answer(request)
        self._metrics.requests[answer.status_code] += 1
        return answer

    async def _answer(self, request: Request) -> Response:
        """Answer POST /v1/tokens: blind signatures side by side, in the order of the requests."""
        scheme, _, word = request.headers.get("authorization", "").partition(" ")
        who = hashlib.sha256(word.encode("utf-8", "surrogateescape")).digest()
        if scheme.lower() != "bearer" or not self._credentials.holds(who):
            return _problem(401, "a token request must carry a credential that the issuer knows")
        wanted = REQUEST_BYTES * self._settings.quantity
        if request.headers.get("content-length") != str(wanted):
            return _problem(
                400,
                f"a token request must be for {self._settings.quantity} tokens, {wanted} bytes: "
                "whatever the device will send",
            )
        body = await request.body()
        try:
            blinded = decode_requests(body, self._key)
            grant, signed = await asyncio.to_thread(self._sign, who, body, blinded)
        except WireError as error:
            return _problem(400, str(error))
        except (sqlite3.Error, PeriodOverError) as error:
            return _not_given(error)
        self._metrics.grants[grant] += 1
        self._metrics.tokens += len(signed)
        if grant == "used":
            return _problem(429, "the device had its tokens of this period")
        return Response(b"".join(signed), media_type=_ANSWER)

    def _sign(self, who: bytes, body: bytes, blinded: list[bytes]) -> tuple[Grant, list[bytes]]:
        grant = self._grants.grant(self._period(), who, hashlib.sha256(body).digest())
        if grant == "used":
            return grant, []
        return grant, [blind_sign(self._settings.key, message, SYSTEM) for message in blinded]

    async def directory(self, _: Request) -> Response:
        """Answer GET of the directory (RFC 9578, section 4)."""
        key = base64.urlsafe_b64encode(self._key.spki).decode()
        return JSONResponse(
            {"issuer-request-uri": REQUEST_PATH, "token-keys": [{"token-type": 2, "token-key": key}]},
            media_type="application/private-token-issuer-directory",
        )


def create_issuer_app(
    settings: IssuerSettings, grants: Grants, *, clock: Callable[[], float | None]
) -> Starlette:
    """Return an issuer as an ASGI application.

    Args:
        settings: Key, credentials and numbers.
        grants: Who had tokens; the caller opens it before and closes it after.
        clock: Seconds since 1970; None while it is not trusted: then nobody gets tokens.

    Raises:
        SettingsError: If the credentials cannot be read.
    """
    issuer = _Issuer(settings, grants, clock)
    app = Starlette(
        routes=[
            Route(REQUEST_PATH, issuer.tokens, methods=["POST"]),
            Route(DIRECTORY_PATH, issuer.directory),
            Route("/healthz", issuer.health),
            Route("/readyz", issuer.health),
            Route("/metrics", issuer.metrics_page),
        ],
        exception_handlers={HTTPException: refused, Exception: failed},
    )
    app.router.redirect_slashes = False  # to wherever the Host says
    return app


def _not_given(error: sqlite3.Error | PeriodOverError) -> Response:
    if isinstance(error, PeriodOverError):
        _LOG.error("no token is given: %s", error)
        return _problem(503, "the issuer's clock cannot be trusted; try again")
    _LOG.error("grants cannot be written: %s", type(error).__name__)
    return _problem(503, "the grant could not be stored; try again")


def _problem(status: int, text: str) -> Response:
    return Response(problem(status, text), status_code=status, media_type=PROBLEM)
