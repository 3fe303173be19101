"""Many devices' uploads to a real collector: one connection per thread, the agent's rules for retries.

The standard library's HTTP client is used here, not the agent's: a simulation sends from one machine what
comes from thousands, and a kept connection with as little as possible around it is what makes that fast
enough.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from random import SystemRandom
from typing import Final

from hubbub import wire
from hubbub_client.upload import (
    MAX_OUTCOMES_BYTES,
    UPLOAD_S,
    BackoffState,
    Failed,
    Limits,
    Response,
    Upload,
    checked_url,
    interpret_response,
)

FLEET_LIMITS: Final = Limits(gap_s=0.0, base_s=0.05, cap_s=5.0, retry_after_cap_s=10.0)
"""A simulation's patience: the agent's rules with seconds in place of hours."""

_TICK_S: Final = 0.05
"""The seconds between two lines of progress; a terminal shows no more."""

_JITTER: Final = SystemRandom().random


@dataclass(frozen=True, slots=True)
class Job:
    """One device's upload."""

    device: int
    upload: Upload


@dataclass(frozen=True, slots=True)
class UploadCounts:
    """The counts of many uploads' results.

    Attributes:
        uploads: Uploads that were answered with typed outcomes.
        reports: Reports in them.
        outcomes: How many reports got which outcome.
        retries: Attempts that failed and were repeated with the same bytes.
        failures: Why attempts failed, and how many did.
        given_up: Devices whose upload was not answered in time; their reports still wait.
        taken: Ids of the reports that the collector accepted.
        duration_s: Wall time.
    """

    uploads: int
    reports: int
    outcomes: Mapping[wire.Outcome, int]
    retries: int
    failures: Mapping[str, int]
    given_up: tuple[int, ...]
    taken: frozenset[bytes]
    duration_s: float


class _Sender:
    """The state that the uploading threads share."""

    def __init__(self, jobs: Iterator[Job], url: str, limits: Limits, patience_s: float) -> None:
        self.jobs, self.limits, self.patience_s = jobs, limits, patience_s
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.outcomes: Counter[wire.Outcome] = Counter()
        self.failures: Counter[str] = Counter()
        self.given_up: list[int] = []
        self.taken: set[bytes] = set()
        self.uploads = self.reports = self.retries = 0
        self.error: BaseException | None = None
        parts = checked_url(url, plain_http="anywhere")  # the command looked
        self.host, self.port, self.secure = parts.hostname or "", parts.port, parts.scheme == "https"
        self.path = parts.path.rstrip("/") + "/v1/reports"

    def run(self) -> None:
        """Do one thread's work: jobs until there are none."""
        connect = HTTPSConnection if self.secure else HTTPConnection
        connection = connect(self.host, self.port, timeout=UPLOAD_S)
        try:
            while not self.stop.is_set():
                with self.lock:
                    job = next(self.jobs, None)
                if job is None:
                    return
                self._perform(connection, job)
        except BaseException as error:  # the caller's thread raises it
            self.error = error
            self.stop.set()
        finally:
            connection.close()

    def _perform(self, connection: HTTPConnection, job: Job) -> None:
        body, backoff = job.upload.body, BackoffState()
        deadline_s = time.monotonic() + self.patience_s
        while True:
            response = self._post(connection, body)
            now_s = time.monotonic()
            result = interpret_response(
                job.upload, response, backoff, now_s=now_s, jitter=_JITTER(), limits=self.limits
            )
            if not isinstance(result, Failed):
                with self.lock:
                    self.uploads += 1
                    self.reports += len(result.outcomes)
                    self.outcomes.update(result.outcomes)
                    self.taken.update(
                        report.id
                        for report, outcome in zip(job.upload.reports, result.outcomes, strict=True)
                        if outcome == "accepted"
                    )
                return
            backoff = result.backoff
            # 429, 5xx and silence pass; any other status says that these bytes will never be taken.
            hopeless = response is not None and response.status < 500 and response.status not in {200, 429}
            over = (
                hopeless or backoff.not_before_s > deadline_s or self.stop.wait(backoff.not_before_s - now_s)
            )
            with self.lock:
                self.failures[result.reason] += 1
                if over:
                    self.given_up.append(job.device)
                    return
                self.retries += 1

    def _post(self, connection: HTTPConnection, body: bytes) -> Response | None:
        try:
            connection.request("POST", self.path, body, {"Content-Type": "application/msgpack"})
            reply = connection.getresponse()
            data = reply.read(MAX_OUTCOMES_BYTES)
            if not reply.isclosed():  # more than any answer of the protocol
                connection.close()
                return None
            return Response(reply.status, data, reply.headers.get("Retry-After"))
        except (OSError, HTTPException):
            connection.close()  # the next request connects anew
            return None


def send(
    jobs: Iterator[Job],
    total: int,
    url: str,
    *,
    concurrency: int = 64,
    progress: Callable[[int, int], None] | None = None,
    patience_s: float = 60.0,
    limits: Limits = FLEET_LIMITS,
) -> UploadCounts:
    """Send every upload, each until it is answered or its patience is over.

    Args:
        jobs: Uploads; taken one at a time under a lock, so a generator may make them.
        total: How many there are, for `progress`.
        url: The collector's base URL.
        concurrency: Threads, and connections.
        progress: Told (uploads finished, total) on the calling thread, twenty times a second and at the end.
        patience_s: How long one upload is tried.
        limits: Back-off.

    Raises:
        TransportError: If the URL is not http or https.
    """
    sender = _Sender(jobs, url, limits, patience_s)
    began_s = time.monotonic()
    threads = [
        threading.Thread(target=sender.run, name=f"hubbub-fleet-{i}", daemon=True)
        for i in range(max(1, concurrency))
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(_TICK_S)
                if progress is not None:
                    progress(sender.uploads + len(sender.given_up), total)
    finally:
        sender.stop.set()
        for thread in threads:
            thread.join()
    if sender.error is not None:
        raise sender.error
    return UploadCounts(
        sender.uploads,
        sender.reports,
        dict(sender.outcomes),
        sender.retries,
        dict(sender.failures),
        tuple(sorted(set(sender.given_up))),
        frozenset(sender.taken),
        time.monotonic() - began_s,
    )
