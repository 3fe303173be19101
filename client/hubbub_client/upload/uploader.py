"""The decision before an upload and the meaning of its response, as values.

Nothing here does I/O, reads a clock or draws a random number; `OutboxUploader` and `DeviceSimulator` perform
what is decided. Nothing here sees an answer either: the decision reads report ids and bytes as they lie in
the outbox, so that the time of an upload does not depend on what is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final, TypeAlias

from hubbub import wire
from hubbub.errors import WireError
from hubbub_client.upload.transport import Response

_STEPS: Final = 32
"""Doublings of the back-off kept; 2^32 seconds are past any cap, and the exponent stays small."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an uploader.

    Attributes:
        max_reports: Reports in one upload: one large body must not show how long a device was offline.
        max_bytes: Report bytes in one upload; one report is always sent, whatever its size.
        gap_s: Least time between two uploads, seconds.
        base_s: Mean back-off after the first failure, uniform in [0, 2 * base_s); doubled by each failure.
        cap_s: Largest back-off window, seconds.
        retry_after_cap_s: Largest Retry-After believed, seconds: a broken server must not silence devices.
        upload_s: No request is begun later than this into one call of `upload`, seconds: with a request's own
            bound, it bounds the call.
        spread_s: After an answered upload the next waits `gap_s` and up to this more, uniform, seconds. With
            `max_reports` 1, a device's reports then come apart.
    """

    max_reports: int = 8
    max_bytes: int = 4096
    gap_s: float = 1.0
    base_s: float = 1.0
    cap_s: float = 3600.0
    retry_after_cap_s: float = 86400.0
    upload_s: float = 15.0
    spread_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pending:
    """One report that waits in the outbox.

    Attributes:
        id: Its 16-byte report id.
        data: Its bytes, the same at every attempt.
        token: The one-time token that goes with it, the same at every attempt; None where none is asked for.
    """

    id: bytes
    data: bytes
    token: bytes | None = None

    @property
    def size(self) -> int:
        """The bytes of report and token."""
        return len(self.data) + len(self.token or b"")


@dataclass(frozen=True, slots=True)
class BackoffState:
    """The state of the back-off, kept in the ledger so that a restart does not forget a Retry-After.

    Attributes:
        failures: Uploads that failed since the last that was answered.
        not_before_s: Clock time before which nothing is sent, epoch seconds.
        single: Whether to send one report at a time, because the collector refused a whole body.
    """

    failures: int = 0
    not_before_s: float = 0.0
    single: bool = False


@dataclass(frozen=True, slots=True)
class Upload:
    """The decision to send these reports now, in one body."""

    reports: tuple[Pending, ...]

    @property
    def body(self) -> bytes:
        """The upload's bytes."""
        with_tokens = [(report.data, report.token) for report in self.reports if report.token is not None]
        if with_tokens:
            return wire.encode_token_upload(with_tokens)
        return wire.encode_upload([report.data for report in self.reports])


@dataclass(frozen=True, slots=True)
class Wait:
    """The decision to send nothing for `delay_s` seconds."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Done:
    """The decision to send nothing, as nothing waits."""


Decision: TypeAlias = Upload | Wait | Done


def decide(waiting: Sequence[Pending], backoff: BackoffState, *, now_s: float, limits: Limits) -> Decision:
    """Return what to do now.

    Args:
        waiting: The oldest reports in the outbox, oldest first; more than fit are left for the next upload.
        backoff: Where the back-off stands.
        now_s: Clock time, epoch seconds.
        limits: Caps.
    """
    if not waiting:
        return Done()
    delay_s = backoff.not_before_s - now_s
    # No delay we ever set is longer than this: a larger one means that the clock was set back, and is void.
    longest_s = limits.retry_after_cap_s + limits.cap_s + limits.gap_s + limits.spread_s
    if 0 < delay_s <= longest_s:
        return Wait(delay_s)
    count, size = 0, 0
    for report in waiting[: 1 if backoff.single else limits.max_reports]:
        size += report.size
        if count and size > limits.max_bytes:
            break
        count += 1
    return Upload(tuple(waiting[:count]))


@dataclass(frozen=True, slots=True)
class Settled:
    """The collector answered: one typed outcome for every report of the upload, in its order.

    A report that is "early" stays in the outbox and is sent again, the same bytes, when its round has come.
    """

    outcomes: tuple[wire.Outcome, ...]
    backoff: BackoffState


@dataclass(frozen=True, slots=True)
class Failed:
    """The reports stay in the outbox, byte for byte, until `backoff` allows another attempt.

    Attributes:
        reason: What happened, without anything of the reports in it.
        backoff: The back-off from here on.
    """

    reason: str
    backoff: BackoffState


Result: TypeAlias = Settled | Failed


def interpret_response(
    upload: Upload,
    response: Response | None,
    backoff: BackoffState,
    *,
    now_s: float,
    jitter: float,
    limits: Limits,
) -> Result:
    """Return what an upload's response means.

    Only a 200 with exactly one known outcome per report settles anything. Whatever else comes back, the
    reports may or may not have been counted, so they are kept and sent again as they are; the aggregator
    drops a second copy by id.

    Args:
        upload: What was sent.
        response: What came back; None if the collector could not be reached.
        backoff: The back-off before this attempt.
        now_s: Clock time, epoch seconds.
        jitter: A uniform draw in [0, 1).
        limits: Caps.
    """
    if response is None:
        return Failed("unreachable", _slower(backoff, now_s, jitter, limits))
    if response.status == 200:
        try:
            outcomes = tuple(wire.decode_response(response.body))
        except WireError:
            return Failed("unreadable answer", _slower(backoff, now_s, jitter, limits))
        if len(outcomes) != len(upload.reports):
            return Failed("unreadable answer", _slower(backoff, now_s, jitter, limits))
        if outcomes and all(outcome == "early" for outcome in outcomes):
            # This clock is ahead of the collector's; the same reports are in time later.
            return Settled(outcomes, _slower(backoff, now_s, jitter, limits))
        return Settled(outcomes, BackoffState(not_before_s=now_s + limits.gap_s + jitter * limits.spread_s))
    retry_after_s = parse_retry_after(response.retry_after, now_s=now_s)
    # 400 and 413 condemn the body as a whole; one report at a time finds out which one it was.
    single = backoff.single or response.status in {400, 413}
    return Failed(
        f"status {response.status}", _slower(backoff, now_s, jitter, limits, retry_after_s, single=single)
    )


def backoff_s(failures: int, *, jitter: float, limits: Limits) -> float:
    """Return full-jitter exponential back-off: uniform in [0, min(cap, base * 2^failures)).

    Args:
        failures: Failures so far, this one included, >= 1.
        jitter: A uniform draw in [0, 1).
        limits: Caps.
    """
    return jitter * min(limits.cap_s, limits.base_s * 2.0 ** min(failures, _STEPS))


def _slower(
    backoff: BackoffState,
    now_s: float,
    jitter: float,
    limits: Limits,
    retry_after_s: float = 0.0,
    *,
    single: bool | None = None,
) -> BackoffState:
    failures = backoff.failures + 1
    # The jitter comes on top of Retry-After: devices that were turned away together must not return together.
    delay_s = min(retry_after_s, limits.retry_after_cap_s) + backoff_s(failures, jitter=jitter, limits=limits)
    return BackoffState(failures, now_s + delay_s, backoff.single if single is None else single)


def parse_retry_after(header: str | None, *, now_s: float) -> float:
    """Return the seconds that a Retry-After header asks for, 0 if none can be read (RFC 9110, 10.2.3).

    >>> parse_retry_after("120", now_s=0.0)
    120.0
    >>> parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now_s=15.0)
    45.0
    >>> parse_retry_after("soon", now_s=0.0)
    0.0
    """
    text = (header or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few answers have a date

    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, when.timestamp() - now_s)
