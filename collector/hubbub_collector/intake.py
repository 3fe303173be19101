"""The way of an upload from its request to the batch, and of its answer back.

Of a request it reads the length, the body, and whether a listed page sends it. Addresses, other headers and
cookies are never looked at, so that none can be stored, counted or logged; no more is an origin.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from starlette.types import Receive, Scope, Send

from hubbub.errors import WireError
from hubbub.survey import Survey
from hubbub.wire import (
    Malformed,
    Report,
    Voucher,
    decode_response,
    decode_token_upload,
    decode_upload,
    encode_response,
    is_token_upload,
    side_by_side,
)
from hubbub_collector.admission import Admission, Verdict
from hubbub_collector.batching import ByteBudget, Writer, never_gone
from hubbub_collector.body import Bodies, Headers, HungUp, Refusal
from hubbub_collector.errors import NotDurableError
from hubbub_collector.http import SENDER, Exchange, Sender
from hubbub_collector.metrics import Metrics
from hubbub_collector.origins import Origins
from hubbub_collector.permits import Issuer, Permits, TokenGate
from hubbub_collector.problems import PROBLEM, problem
from hubbub_collector.settings import GatewaySettings

# Answers are as long as steps of this many bytes: else their lengths tell how many reports an upload had.
_ANSWER_STEP: Final = 128
_PADDING: Final = tuple(b"0" * length for length in range(_ANSWER_STEP))


def outcome_headers(length: int, more: Headers = ()) -> list[tuple[bytes, bytes]]:
    """Return the headers of a body of outcomes that has `length` bytes, `more` of them for a page."""
    digits = b"%d" % length
    # Nothing about caching: of a POST, nothing is kept that does not say that it may be.
    return [
        (b"content-type", b"application/msgpack"),
        (b"padding", _PADDING[-(length + len(digits)) % _ANSWER_STEP]),
        (b"content-length", digits),
        *more,
    ]


# As many lengths as there are numbers of reports in usual uploads, for some mixtures of outcomes each.
@lru_cache(maxsize=1024)
def outcome_head(length: int, more: Headers = ()) -> bytes:
    """Return the same headers as lines, and the empty line after them."""
    return b"".join(b"%s: %s\r\n" % header for header in outcome_headers(length, more)) + b"\r\n"


# Devices come in clumps, at the begin of a round and after a collector was away: ten seconds' worth at once.
BURST_S: Final = 10.0
# Seconds times a rate are rounded; a sender that waits as long as it was told finds something all the same.
_ROUNDING_S: Final = 1e-6


class RateLimit:
    """A token bucket for each permit; a bucket that is empty turns uploads away until it has something again.

    An upload is taken whole while there is anything in the bucket, which may fall below zero by it: so no
    upload is too large to be ever taken, and in the long run no more than the rate is.

    Args:
        rate: Reports a second; 0 for any number.
        clock: Seconds that only grow.
    """

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self._rate, self._clock = rate, clock
        self._levels: dict[str, tuple[float, float]] = {}

    def take(self, reports: Mapping[str, int]) -> tuple[str, int] | None:
        """Take an upload's reports from their permits' buckets, or nothing where one of these is empty.

        Args:
            reports: Permit -> how many reports of the upload it lets in.

        Returns:
            None if they were taken; else a permit whose bucket is empty, and after how many whole seconds it
            is not, at least 1.
        """
        if not self._rate:
            return None
        now_s = self._clock()
        levels = {permit: self._level(permit, now_s) for permit in reports}
        for permit, level in levels.items():
            if level <= 0.0:
                return permit, 1 + math.floor(-level / self._rate + _ROUNDING_S)
        for permit, level in levels.items():
            self._levels[permit] = level - reports[permit], now_s
        return None

    def _level(self, permit: str, now_s: float) -> float:
        full = BURST_S * self._rate
        level, at_s = self._levels.get(permit, (full, now_s))
        return min(full, level + max(0.0, now_s - at_s) * self._rate)


UPLOADS: Final = "/v1/reports"
"""The path of uploads."""
_PROBLEM_HEADERS: Final[Headers] = ((b"content-type", PROBLEM.encode()),)


class Intake:
    """The intake of uploads: what is asked of each, what may wait at once, and what is answered.

    It is an ASGI endpoint, which takes and refuses whatever comes, and a door for plain uploads, by which
    they come to the batch and their answers to the socket without ASGI (`hubbub_collector.http.Door`).

    Args:
        settings: Bounds and waits.
        permits: What senders must show.
        admission: The judge of reports that do not lie side by side.
        surveys: The surveys whose reports may be admitted.
        metrics: Where uploads are counted.
        clock: Seconds since 1970.
        boot_clock: Seconds since the machine started, suspended ones included.

    Attributes:
        path: The path of uploads.
    """

    path: Final = UPLOADS.encode()

    def __init__(
        self,
        settings: GatewaySettings,
        permits: Permits,
        admission: Admission,
        surveys: Sequence[Survey],
        *,
        metrics: Metrics,
        clock: Callable[[], float],
        boot_clock: Callable[[], float],
    ) -> None:
        self._settings, self._permits, self._admission, self._metrics = settings, permits, admission, metrics
        self._clock, self._boot_clock = clock, boot_clock
        # The widths of the sets that may be admitted: others need not be judged fast.
        self._set_bytes = {survey.channel.width for survey in surveys} - {0}
        self.origins = Origins(settings.allowed_origins)
        self._gate = TokenGate(permits.issuers) if permits.issuers else None
        self._rate = RateLimit(settings.permit_rate, boot_clock)
        self._shared = "everybody" if permits.password is None else "password"
        self._bytes = ByteBudget(settings.max_pending_bytes)
        self._writer: Writer | None = None
        self._bodies: Bodies | None = None

    def open(self, writer: Writer) -> None:
        """Take uploads from now on, into this writer's batches."""
        self._bodies = Bodies(self._settings.max_upload_bytes, self._settings.body_timeout_s)
        self._writer = writer

    @property
    def held_bytes(self) -> int:
        """Bytes of uploads that are not answered."""
        return self._bytes.held

    def take(self, headers: Headers, body: bytes, exchange: Exchange) -> bool:
        """Take a plain upload whose reports are judged by columns, as `__call__` would, or do nothing.

        Whatever is to be refused at once is not taken here: `__call__` says why.
        """
        writer, bodies = self._writer, self._bodies
        if writer is None or bodies is None or self._gate is not None or not writer.takes_uploads:
            return False
        scope = {"headers": headers}
        try:
            more = self.origins.answer(headers)
            if bodies.announced(scope) is None:
                return False
            self._permits.check(scope)
        except Refusal:
            return False
        began_s = self._boot_clock()
        now_s = self._clock()
        found = side_by_side(body, max_reports=self._settings.max_reports, set_bytes=self._set_bytes)
        size = len(body)
        if found is None or not self._bytes.has_room(size):
            return False
        form, rows = found
        if self._rate.take({self._shared: len(rows) // form.itemsize}) is not None:
            return False
        writer.take_rows(rows, now_s, form, _PlainUpload(self, exchange, size, began_s, more))
        self._bytes.take(size)
        self._metrics.upload_bytes += size
        return True

    def let_go(self, size: int) -> None:
        """Hold so many bytes of a plain upload no longer."""
        self._bytes.give(size)

    def count(self, status: int) -> None:
        """Count a plain upload that was answered."""
        self._metrics.uploads[status] += 1

    def not_stored(self) -> Refusal:
        """Return why an upload is turned away that was taken, and is not in the log."""
        return Refusal(503, "the upload could not be stored; try again", self._retry_after)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer POST /v1/reports: an upload in, one outcome per report out, when their record is durable."""
        sender: Sender | None = scope.get("extensions", {}).get(SENDER)
        more: Headers = ()
        try:
            more = self.origins.answer(scope["headers"])
            status, body = 200, await self._outcomes(scope, receive, sender)
            if sender is not None and sender.answer(scope, outcome_head(len(body), more), body):
                self._metrics.uploads[200] += 1
                return
            headers: Headers = outcome_headers(len(body), more)
        except HungUp:
            return
        except Refusal as refusal:
            status = refusal.status
            headers, body = _said(refusal, more)
        self._metrics.uploads[status] += 1
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
        self._metrics.upload_bytes += len(body)
        if not self._bytes.take(len(body)):
            raise self._full()
        is_gone = never_gone if sender is None else sender.is_gone
        try:
            return await self._submit(writer, body, is_gone)
        except NotDurableError:
            if is_gone():
                raise HungUp from None
            raise self.not_stored() from None
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
        self._metrics.rate_limited[permit] += 1
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
        self._metrics.tokens.update(
            ("taken", one.name) if isinstance(one, Issuer) else ("refused", one) for one in found
        )
        return encode_response([next(outcomes) if is_good else "invalid" for is_good in admitted])

    @property
    def _retry_after(self) -> Headers:
        return ((b"retry-after", b"%d" % self._settings.retry_after_s),)


def _said(refusal: Refusal, more: Headers) -> tuple[Headers, bytes]:
    """Return the headers and the body of a refusal, `more` of them for a page."""
    body = problem(refusal.status, str(refusal))
    return (*_PROBLEM_HEADERS, *refusal.headers, (b"content-length", b"%d" % len(body)), *more), body


class _PlainUpload:
    """A plain upload that waits for its batch; it holds its bytes until it is answered, and no longer.

    Args:
        intake: What took it.
        exchange: The way back to its sender.
        size: Bytes that it holds.
        began_s: When it came, by the boot clock.
        more: Headers of its answer for a page.
    """

    __slots__ = ("_exchange", "_intake", "_more", "_size", "began_s")

    def __init__(self, intake: Intake, exchange: Exchange, size: int, began_s: float, more: Headers) -> None:
        self._intake, self._exchange, self._size, self.began_s = intake, exchange, size, began_s
        self._more = more

    @property
    def has_given_up(self) -> bool:
        """True if nobody will read the answer."""
        return self._exchange.disconnected or self._exchange.is_cut

    def answer(self, outcomes: bytes) -> None:
        """Send the outcomes; count them even if the sender hung up, as they are stored."""
        self._intake.let_go(self._size)
        if not self._exchange.is_cut:
            self._intake.count(200)
            self._exchange.answer(outcome_head(len(outcomes), self._more), outcomes)

    def refuse(self, error: NotDurableError) -> None:
        """Say that it was not stored, if anybody is there."""
        self._intake.let_go(self._size)
        if self._exchange.is_cut:
            return
        if self._exchange.disconnected:
            self._exchange.drop()
            return
        refusal = self._intake.not_stored()
        self._intake.count(refusal.status)
        self._exchange.refuse(refusal.status, *_said(refusal, self._more))
