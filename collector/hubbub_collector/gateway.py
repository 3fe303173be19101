"""The HTTP edge: uploads in, outcomes out once they are durable, the list of surveys, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from hubbub.errors import ListError
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import MAX_LIST_BYTES, Survey, digest_of, in_list_order, read_unverified
from hubbub.transparency import MAX_NOTE_BYTES, PROOF_SUFFIX
from hubbub.wire import NO_ROUND, SurveyRecord, encode_record, encode_surveys, pack
from hubbub_collector.admission import Admission, AdmissionRules, Key, index_surveys
from hubbub_collector.batching import Writer
from hubbub_collector.body import Headers, Refusal
from hubbub_collector.boot_clock import boot_s
from hubbub_collector.errors import ListFileError
from hubbub_collector.intake import UPLOADS, Intake
from hubbub_collector.metrics import GatewayCollector, Metrics
from hubbub_collector.permits import Permits
from hubbub_collector.problems import failed, refused
from hubbub_collector.settings import GatewaySettings
from hubbub_topic import Log


class ListFile:
    """One file, and the last good contents of it; `cancelled` are the digests that those cancel.

    The key that signs it lies elsewhere, and so does the public one: a gateway cannot tell a good signature
    from a bad one and need not, because every device does.

    Args:
        path: The file.
        served: Digests of the surveys that the gateway takes reports of.

    Raises:
        ListFileError: It cannot be read, is no signed list, or names a survey that is not served.
    """

    def __init__(self, path: Path, served: Collection[bytes]) -> None:
        self._path, self._served = path, frozenset(served)
        self.cancelled: tuple[bytes, ...] = ()
        self._mark = self._stamp()
        self._data = self._read()

    @property
    def current(self) -> bytes:
        """The list to serve; an invalid replacement is reported on stderr once, and ignored."""
        try:
            mark = self._stamp()
            if mark != self._mark:
                self._mark = mark
                self._data = self._read()
        except ListFileError as error:
            with suppress(OSError):  # what stderr goes to may be full
                print(f"hubbub: {error}; the list before it is still served", file=sys.stderr, flush=True)
        return self._data

    @property
    def logged(self) -> bytes | None:
        """The list with the proof beside it that it is in a log, for devices that pin one; None without."""
        try:
            with self._path.with_name(self._path.name + PROOF_SUFFIX).open("rb") as file:
                proof = file.read(MAX_NOTE_BYTES)
        except OSError:
            return None
        return pack(["hubbub-logged-list", self.current, proof])

    def _stamp(self) -> tuple[int, int, int] | None:
        """Return a value that changes with the file, None while there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_LIST_BYTES + 1)
            if len(data) > MAX_LIST_BYTES:  # no device would take it
                raise OSError(errno.EFBIG, f"more than {MAX_LIST_BYTES:,} bytes")
            listed, _ = read_unverified(data)
        except OSError as error:
            raise ListFileError(f"{self._path} must be readable ({error.strerror})") from None
        except ListError as error:
            raise ListFileError(f"{self._path} must be a signed list of surveys ({error})") from None
        if listed is None:
            raise ListFileError(f"{self._path} must be a signed list of surveys, got a plain one")
        for digest in map(digest_of, listed.surveys):
            if digest not in self._served:  # devices would spend budget on reports that nobody takes
                raise ListFileError(f"{self._path} must name served surveys only, got {digest.hex()}")
        self.cancelled = listed.cancelled
        return data


MSGPACK: Final = "application/msgpack"


def _texts(headers: Headers) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers}


class Gateway:
    """The state that the routes share: surveys, admission, writer, bounds, counters.

    Args:
        log: Where admitted reports go.
        surveys: The surveys served and admitted.
        settings: Bounds and waits.
        clock: Seconds since 1970.
        source: Randomness of the order within a batch.
        survey_list: File of the signed list to serve; None to serve a plain one.
        boot_clock: Seconds since the machine started, suspended ones included.
        unsealed: Return why this process seals no round, None while it does; absent where it never does.
        permits: What senders must show.
    """

    def __init__(
        self,
        log: Log,
        surveys: Iterable[Survey],
        *,
        settings: GatewaySettings,
        clock: Callable[[], float],
        source: Source,
        survey_list: Path | None,
        boot_clock: Callable[[], float],
        unsealed: Callable[[], str | None] | None,
        permits: Permits,
    ) -> None:
        self._log = log
        self._surveys = index_surveys(surveys)
        self._settings = settings
        self._clock, self._boot_clock, self._unsealed = clock, boot_clock, unsealed
        self._source = source
        self._admission = Admission(
            {digest: AdmissionRules.of(survey) for digest, survey in self._surveys.items()}
        )
        self._signed = None if survey_list is None else ListFile(survey_list, self._surveys)
        if self._signed is not None:
            self._admission.withdraw(self._signed.cancelled)
        self.metrics = Metrics()
        self.intake = Intake(
            settings,
            permits,
            self._admission,
            [*self._surveys.values()],
            metrics=self.metrics,
            clock=clock,
            boot_clock=boot_clock,
        )
        self._registry = CollectorRegistry()
        self._registry.register(
            GatewayCollector(
                self.metrics,
                held_bytes=lambda: self.intake.held_bytes,
                healthy=lambda: self._healthy,
                is_sealing=None if unsealed is None else lambda: unsealed() is None,
            )
        )
        self._metrics_s = settings.metrics_s
        self._metrics_text = b"", -math.inf  # what is said, and until when
        self._writer: Writer | None = None
        self._plain = encode_surveys([each.canonical for each in in_list_order(self._surveys.values())])

    def add_metrics(self, collector: Collector) -> None:
        """Show the metrics of another part of this process at /metrics, too."""
        self._registry.register(collector)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Publish the surveys, take uploads, and on the way out write what still waits."""
        await asyncio.to_thread(self.publish_surveys)
        self._writer = Writer(
            self._log,
            self._settings,
            self._admission,
            source=self._source,
            metrics=self.metrics,
            target_partitions=self._target_partitions,
            boot_clock=self._boot_clock,
        )
        self._writer.start()
        self.intake.open(self._writer)
        try:
            yield
        finally:
            await self._writer.stop()

    def _target_partitions(self, key: Key | None) -> range:
        """Return the partitions in force when a round starts; those in force now for what belongs to none."""
        if key is None or key[1] == NO_ROUND:
            return self._log.partition_map.partitions_at(self._clock())
        return self._log.partition_map.partitions_at(self._surveys[key[0]].round_start_s(key[1]))

    def publish_surveys(self) -> None:
        """Put every survey into every partition, before any report of it can come; again changes nothing.

        Raises:
            LogError: If the log does not take them.
        """
        for digest, survey in self._surveys.items():
            self._log.publish_survey(digest, encode_record(SurveyRecord(survey.canonical)))

    async def preflight(self, request: Request) -> Response:
        """Answer OPTIONS /v1/reports: whether a page may upload."""
        try:
            found = self.intake.origins.preflight(request.headers.raw)
        except Refusal as refusal:
            raise HTTPException(refusal.status, str(refusal)) from None
        return Response(status_code=204, headers=_texts(found))

    def _listed(self, request: Request, body: bytes) -> Response:
        """Return a list of surveys, which a page of a listed origin may read."""
        more = self.intake.origins.reading(request.headers.raw)
        return Response(body, media_type=MSGPACK, headers=_texts(more))

    async def surveys(self, request: Request) -> Response:
        """Answer GET /v1/surveys with the signed list as it is, or a plain one of every survey served."""
        if self._signed is None:
            return self._listed(request, self._plain)
        body = self._signed.current
        # Devices that read this list send no more of what it cancels; what others send is not taken either.
        self._admission.withdraw(self._signed.cancelled)
        return self._listed(request, body)

    async def logged_surveys(self, request: Request) -> Response:
        """Answer GET /v2/surveys with the signed list and the proof that it is in a log; 404 without one."""
        body = None if self._signed is None else self._signed.logged
        if self._signed is None or body is None:
            raise HTTPException(404, "there is no list with a proof here")
        self._admission.withdraw(self._signed.cancelled)
        return self._listed(request, body)

    async def health(self, _: Request) -> Response:
        """Answer GET /healthz: 200 while the log takes uploads, else 503; and why a node seals nothing."""
        healthy, unsealed = self._healthy, self._unsealed and self._unsealed()
        found = {"status": "ok" if healthy else "uploads are refused"}
        if unsealed:
            found["unsealed"] = unsealed
        return JSONResponse(found, status_code=200 if healthy else 503)

    async def metrics_page(self, _: Request) -> Response:
        """Answer GET /metrics with the counters for Prometheus, as they were at most `metrics_s` ago."""
        now_s, (text, until_s) = self._boot_clock(), self._metrics_text
        if now_s >= until_s:
            text = generate_latest(self._registry)
            self._metrics_text = text, now_s + self._metrics_s
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    @property
    def _healthy(self) -> bool:
        return self._writer is not None and self._writer.healthy


class _Application(Starlette):
    """A Starlette application with a short cut for uploads, which routing would slow by a third."""

    intake: Intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == UPLOADS and scope["method"] == "POST":
            await self.intake(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(
    log: Log,
    surveys: Iterable[Survey],
    *,
    settings: GatewaySettings | None = None,
    clock: Callable[[], float] = time.time,
    source: Source = SYSTEM,
    survey_list: Path | None = None,
    boot_clock: Callable[[], float] = boot_s,
    unsealed: Callable[[], str | None] | None = None,
    permits: Permits | None = None,
) -> Starlette:
    """Return the gateway as an ASGI application; its lifespan publishes the surveys and, at the end, drains.

    Args:
        log: Where admitted reports go. The caller opens it before and closes it after.
        surveys: The surveys served and admitted.
        settings: Bounds and waits; the defaults if absent.
        clock: Seconds since 1970.
        source: Randomness of the order within a batch; the operating system's but in tests.
        survey_list: File of the signed list to serve, read anew when it is replaced; None for a plain one.
        boot_clock: Seconds since the machine started, suspended ones included.
        unsealed: Return why this process seals no round, None while it does; absent where it never does.
        permits: What senders must show; nothing if absent.

    Raises:
        CollectorError: If two surveys share an id and a version, or the list does not fit the surveys.
    """
    gateway = Gateway(
        log,
        surveys,
        settings=settings or GatewaySettings(),
        clock=clock,
        source=source,
        survey_list=survey_list,
        boot_clock=boot_clock,
        unsealed=unsealed,
        permits=permits or Permits(),
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    app = _Application(
        routes=[
            Route(UPLOADS, gateway.intake, methods=["POST"]),
            *([Route(UPLOADS, gateway.preflight, methods=["OPTIONS"])] if gateway.intake.origins else []),
            Route("/v1/surveys", gateway.surveys),
            Route("/v2/surveys", gateway.logged_surveys),
            Route("/healthz", gateway.health),
            Route("/readyz", gateway.health),
            Route("/metrics", gateway.metrics_page),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: refused, Exception: failed},
    )
    app.intake, app.state.gateway = gateway.intake, gateway
    return app
