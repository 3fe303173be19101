"""The HTTP edge: uploads in, outcomes out once they are durable, the list of surveys, health and metrics.

Of a request it reads the length and the body. Addresses, other headers and cookies are never looked at, so
that none can be stored, counted or logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
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

from hubbub.errors import WireError
from hubbub.numeric import SYSTEM, Source
from hubbub.survey import Survey
from hubbub.wire import (
    NO_ROUND,
    Malformed,
    Report,
    SurveyRecord,
    Voucher,
    decode_response,
    decode_token_upload,
    decode_upload,
    encode_record,
    encode_response,
    encode_surveys,
    is_token_upload,
    side_by_side,
)
from hubbub_collector.admission import Admission, AdmissionRules, Key, Verdict, index_surveys
from hubbub_collector.batching import ByteBudget, Writer, never_gone
from hubbub_collector.body import Bodies, Headers, HungUp, Refusal
from hubbub_collector.boot_clock import boot_s
from hubbub_collector.errors import NotDurable
from hubbub_collector.http import SENDER, Sender, outcome_head, outcome_headers
from hubbub_collector.list_file import ListFile
from hubbub_collector.metrics import GatewayCollector, Metrics
from hubbub_collector.permits import Issuer, Permits, TokenGate
from hubbub_collector.problems import PROBLEM, failed, problem, refused
from hubbub_collector.rate_limit import RateLimit
from hubbub_collector.settings import GatewaySettings
from hubbub_topic import Log

MSGPACK: Final = "application/msgpack"


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
        # The widths of the sets that may be admitted: others need not be judged fast.
        self._set_bytes = {survey.channel.width for survey in self._surveys.values()} - {0}
        self._settings = settings
        self._clock, self._boot_clock, self._unsealed = clock, boot_clock, unsealed
        self._source = source
        self._permits = permits
        self._gate = TokenGate(permits.issuers) if permits.issuers else None
        self._rate = RateLimit(settings.permit_rate, boot_clock)
        self._shared = "everybody" if permits.password is None else "password"
        self._admission = Admission(
            {digest: AdmissionRules.of(survey) for digest, survey in self._surveys.items()}
        )
        self._signed = None if survey_list is None else ListFile(survey_list, self._surveys)
        if self._signed is not None:
            self._admission.withdraw(self._signed.cancelled)
        self._bytes = ByteBudget(settings.max_pending_bytes)
        self.metrics = Metrics()
        self._registry = CollectorRegistry()
        self._registry.register(
            GatewayCollector(
                self.metrics,
                held_bytes=lambda: self._bytes.held,
                healthy=lambda: self._healthy,
                is_sealing=None if unsealed is None else lambda: unsealed() is None,
            )
        )
        self._metrics_s = settings.metrics_s
        self._metrics_text = b"", -math.inf  # what is said, and until when
        self._writer: Writer | None = None
        self._bodies: Bodies | None = None
        self._plain = encode_surveys([survey.canonical for survey in self._surveys.values()])

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
        self._bodies = Bodies(self._settings.max_upload_bytes, self._settings.body_timeout_s)
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

    async def uploads(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer POST /v1/reports: an upload in, one outcome per report out, when their record is durable."""
        sender: Sender | None = scope.get("extensions", {}).get(SENDER)
        try:
            status, body = 200, await self._outcomes(scope, receive, sender)
            if sender is not None and sender.answer(scope, outcome_head(len(body)), body):
                self.metrics.uploads[200] += 1
                return
            headers: Headers = outcome_headers(len(body))
        except HungUp:
            return
        except Refusal as refusal:
            status, body = refusal.status, problem(refusal.status, str(refusal))
            headers = (*_PROBLEM_HEADERS, *refusal.headers, (b"content-length", b"%d" % len(body)))
        self.metrics.uploads[status] += 1
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _outcomes(self, scope: Scope, receive: Receive, sender: Sender | None) -> bytes:
        """Return the encoded outcomes of an upload.

        Whatever is held of the byte budget is held within this call.

        Raises:
            Refusal: If the upload is turned away as a whole.
            HungUp: If the sender went before its body was complete, or before it was stored.
        """
        writer, bodies = self._writer, self._bodies
        if writer is None or bodies is None:
            raise RuntimeError("the gateway must be running to take uploads")
        announced = bodies.announced(scope)
        self._permits.check(scope)
        # A full store is said before a body is read; but room is taken by what has come, not by what was
        # announced: else whoever announces much and sends nothing keeps everybody out.
        if not self._bytes.has_room(self._settings.max_upload_bytes if announced is None else announced):
            raise self._full()
        body = None if sender is None else sender.whole_body(scope)
        if body is None:
            body = await bodies.read(receive)
        else:
            bodies.check(body)
        self.metrics.upload_bytes += len(body)
        if not self._bytes.take(len(body)):
            raise self._full()
        is_gone = never_gone if sender is None else sender.is_gone
        try:
            return await self._submit(writer, body, is_gone)
        except NotDurable:
            if is_gone():
                raise HungUp from None
            raise Refusal(503, "the upload could not be stored; try again", self._retry_after) from None
        finally:
            self._bytes.give(len(body))

    def _full(self) -> Refusal:
        return Refusal(429, "too many uploads wait to be stored; try again", self._retry_after)

    def _submit(self, writer: Writer, body: bytes, is_gone: Callable[[], bool]) -> Awaitable[bytes]:
        """Hand an upload to the writer, and return the answer to it, which is there once it is durable.

        Reports that lie side by side (`hubbub.wire.report`) are judged with their batch, others before.

        Raises:
            Refusal: If the body is no upload.
        """
        # Before the clock: a pause between the two counts.
        began_s = self._boot_clock()
        now_s = self._clock()
        if is_token_upload(body):
            return self._submit_with_tokens(writer, body, now_s, began_s, is_gone)
        if self._gate is not None:
            raise Refusal(401, "every report must carry a token of an issuer that is taken here")
        found = side_by_side(body, max_reports=self._settings.max_reports, set_bytes=self._set_bytes)
        if found is not None:
            form, rows = found
            self._within_rate({self._shared: len(rows) // form.itemsize})
            return writer.submit_rows(rows, now_s, form, began_s=began_s, is_gone=is_gone)
        try:
            reports = decode_upload(body, max_reports=self._settings.max_reports)
        except WireError as error:
            raise Refusal(400, str(error)) from None
        self._within_rate({self._shared: len(reports)})
        return self._judged(writer, reports, now_s, began_s, is_gone)

    def _within_rate(self, reports: Mapping[str, int]) -> None:
        """Raise Refusal with status 429 if a permit lets in no more now; else count its reports."""
        if (refused := self._rate.take(reports)) is None:
            return
        permit, wait_s = refused
        self.metrics.rate_limited[permit] += 1
        headers = ((b"retry-after", b"%d" % max(wait_s, self._settings.retry_after_s)),)
        text = f"uploads must keep to {self._settings.permit_rate:g} reports a second; try again"
        raise Refusal(429, text, headers)

    def _judged(
        self,
        writer: Writer,
        reports: list[Report | Malformed],
        now_s: float,
        began_s: float,
        is_gone: Callable[[], bool],
        *,
        vouchers: Sequence[Voucher] | None = None,
    ) -> Awaitable[bytes]:
        verdicts = self._admission.judge(reports, now_s)
        if vouchers is not None:
            verdicts = [Verdict(*verdict[:2], one) for verdict, one in zip(verdicts, vouchers, strict=True)]
        return writer.submit(reports, verdicts, now_s, began_s=began_s, is_gone=is_gone)

    async def _submit_with_tokens(
        self, writer: Writer, body: bytes, now_s: float, began_s: float, is_gone: Callable[[], bool]
    ) -> bytes:
        """Do as `_submit` does for the reports that a token admits; the others are invalid, and not written.

        Without issuers the tokens are not looked at.
        """
        try:
            pairs = decode_token_upload(body, max_reports=self._settings.max_reports)
        except WireError as error:
            raise Refusal(400, str(error)) from None
        reports = [report for report, _ in pairs]
        if self._gate is None:
            self._within_rate({self._shared: len(reports)})
            return await self._judged(writer, reports, now_s, began_s, is_gone)
        found = self._gate.judge(pairs)
        self._within_rate(Counter(f"issuer {one.name}" for one in found if isinstance(one, Issuer)))
        admitted = [isinstance(one, Issuer) for one in found]
        good = [report for report, is_good in zip(reports, admitted, strict=True) if is_good]
        vouchers = [one.voucher for one in found if isinstance(one, Issuer)]
        outcomes = iter(
            decode_response(await self._judged(writer, good, now_s, began_s, is_gone, vouchers=vouchers))
            if good
            else ()
        )
        self.metrics.tokens.update(
            ("taken", one.name) if isinstance(one, Issuer) else ("refused", one) for one in found
        )
        return encode_response([next(outcomes) if is_good else "invalid" for is_good in admitted])

    @property
    def _retry_after(self) -> Headers:
        return ((b"retry-after", b"%d" % self._settings.retry_after_s),)

    async def surveys(self, _: Request) -> Response:
        """Answer GET /v1/surveys with the signed list as it is, or a plain one of every survey served."""
        if self._signed is None:
            return Response(self._plain, media_type=MSGPACK)
        body = self._signed.current
        # Devices that read this list send no more of what it cancels; what others send is not taken either.
        self._admission.withdraw(self._signed.cancelled)
        return Response(body, media_type=MSGPACK)

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


_PROBLEM_HEADERS: Final[Headers] = ((b"content-type", PROBLEM.encode()),)

_UPLOADS: Final = "/v1/reports"


class _Application(Starlette):
    """A Starlette application with a short cut for uploads, which routing would slow by a third."""

    gateway: Gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == _UPLOADS and scope["method"] == "POST":
            await self.gateway.uploads(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class _Uploads:
    """An ASGI endpoint of uploads, for an application that is mounted below another path."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gateway.uploads(scope, receive, send)


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
            Route(_UPLOADS, _Uploads(gateway), methods=["POST"]),
            Route("/v1/surveys", gateway.surveys),
            Route("/healthz", gateway.health),
            Route("/readyz", gateway.health),
            Route("/metrics", gateway.metrics_page),
        ],
        lifespan=lifespan,
        exception_handlers={HTTPException: refused, Exception: failed},
    )
    app.gateway = app.state.gateway = gateway
    return app
