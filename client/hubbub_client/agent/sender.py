"""The sender of the outbox: performs what `upload/uploader.py` decides, and writes outcomes to the ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hubbub import wire
from hubbub_client.errors import TransportError
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.process_lock import ProcessLock
from hubbub_client.surveys.schedule import trusted
from hubbub_client.upload.outcomes import UploadOutcome
from hubbub_client.upload.transport import Transport
from hubbub_client.upload.uploader import Limits, Pending, Settled, Upload, Wait, decide, interpret_response

if TYPE_CHECKING:
    from hubbub_client.tokens.wallet import Wallet

REPORTS_PATH: Final = "/v1/reports"
_LOOKED_AT: Final = 1024
"""Reports whose tokens are looked for: a device has far fewer that wait."""


class OutboxUploader:
    """The uploads of one agent, one at a time.

    Args:
        ledger: Where reports wait.
        lock: Held around every use of the ledger, never while the collector is waited for.
        http: The way to the collector.
        limits: The uploader's caps.
        clock: Epoch seconds; None while they are not to be trusted.
        jitter: Uniform draws in [0, 1).
        elapsed: Seconds of a monotonic clock.
        wallet: The tokens that go with reports; None where none do.
    """

    def __init__(
        self,
        ledger: Ledger,
        lock: ProcessLock,
        http: Transport,
        *,
        limits: Limits,
        clock: Callable[[], float | None],
        jitter: Callable[[], float],
        elapsed: Callable[[], float] = time.monotonic,
        wallet: Wallet | None = None,
    ) -> None:
        self._wallet = wallet
        self._ledger, self._lock, self._http = ledger, lock, http
        self._limits, self._clock, self._jitter, self._elapsed = limits, clock, jitter, elapsed
        self._uploading = threading.Lock()

    def upload(self) -> UploadOutcome:
        """Send what waits; see `Agent.upload`."""
        if not self._uploading.acquire(blocking=False):
            with self._lock:
                return UploadOutcome({}, self._ledger.waiting(), None, "another upload is under way")
        try:
            return self._upload(self._elapsed() + self._limits.upload_s)
        finally:
            self._uploading.release()

    def _ready(self) -> list[Pending]:
        """Return the oldest reports that may be sent: where tokens are asked for, those that have one."""
        if self._wallet is None:
            return self._ledger.outbox(self._limits.max_reports)
        found: list[Pending] = []
        for report in self._ledger.outbox(_LOOKED_AT):
            token = self._wallet.token_of(report.id)
            if token is not None and len(found) < self._limits.max_reports:
                found.append(Pending(report.id, report.data, token))
        return found

    def _upload(self, until: float) -> UploadOutcome:
        settled: dict[bytes, wire.Outcome] = {}
        failure: str | None = None
        delay_s: float | None = None
        while True:
            with self._lock:
                now_s, backoff = trusted(self._clock()), self._ledger.backoff()
                waiting = self._ready()
                paused = self._ledger.paused()
            if waiting and (paused or now_s is None):
                failure = "paused" if paused else "clock not trusted"
                break
            if now_s is None:
                break
            decision = decide(waiting, backoff, now_s=now_s, limits=self._limits)
            if not isinstance(decision, Upload):
                delay_s = decision.delay_s if isinstance(decision, Wait) else None
                break
            if self._elapsed() >= until:
                delay_s = 0.0
                break
            try:
                response = self._http.post(REPORTS_PATH, decision.body)
            except TransportError:
                response = None
            after_s = trusted(self._clock())
            result = interpret_response(
                decision,
                response,
                backoff,
                now_s=now_s if after_s is None else after_s,
                jitter=self._jitter(),
                limits=self._limits,
            )
            with self._lock:
                if isinstance(result, Settled):
                    outcomes = [
                        (report.id, outcome)
                        for report, outcome in zip(decision.reports, result.outcomes, strict=True)
                    ]
                    self._ledger.store_outcomes(outcomes, result.backoff)
                    if self._wallet is not None:
                        self._wallet.spent(i for i, outcome in outcomes if outcome != "early")
                    settled.update((i, outcome) for i, outcome in outcomes if outcome != "early")
                    failure = "early" if {outcome for _, outcome in outcomes} == {"early"} else None
                else:
                    self._ledger.slow(result.backoff)
                    failure = result.reason
        with self._lock:
            left = self._ledger.waiting()
            if left and failure is None and delay_s is None and self._wallet is not None:
                failure = "no token yet"
        return UploadOutcome(settled, left, delay_s, failure)
