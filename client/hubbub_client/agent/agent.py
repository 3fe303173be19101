"""The device agent: what a host app embeds to answer surveys without ever sending a value.

    with Agent("ledger.db", "https://collect.example.org", budget=4.0) as agent:
        agent.register(Attribute.integer("visits", 0, 77, kind="static"))
        agent.set("visits", 3)
        agent.opt_in(survey)
        agent.enrol(survey)
        agent.answer()
        agent.upload()

The unit of privacy is the whole record of the installation's owner, all attributes over all rounds: for any
two records, the probability of everything that this agent ever sends differs by a factor of at most e^budget.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from random import SystemRandom
from types import TracebackType
from typing import Final, Self

from hubbub.survey import Survey
from hubbub_client.agent.background import Background
from hubbub_client.agent.listed_device import ListedDevice
from hubbub_client.agent.policy import Policy, subject_of
from hubbub_client.agent.sender import OutboxUploader
from hubbub_client.errors import TransportError
from hubbub_client.ledger.file import Counter
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.owner_page.account import Account, account_of
from hubbub_client.owner_page.history import sent_reports
from hubbub_client.owner_page.page import OwnerPage
from hubbub_client.surveys.schedule import asks_for, decode_listed_surveys
from hubbub_client.surveys.survey_lists import pinned, unverified
from hubbub_client.upload.outcomes import EnrolmentStatus, SentReport, Status, UploadOutcome
from hubbub_client.upload.transport import HttpTransport, Transport
from hubbub_client.upload.uploader import Limits

SURVEYS_PATH: Final = "/v1/surveys"

JITTER: Final = SystemRandom().random


class Agent(ListedDevice):
    """One device: attributes of its owner, a ledger, an outbox and a way to one collector.

    Answers draw from the operating system's generator; there is no way to hand in another. Errors never carry
    a value, and nothing is logged. Calls are safe from several threads.

    Args:
        path: The ledger file, kept out of backups: a restored copy would spend the same budget twice.
        collector_url: Where reports go.
        budget: Lifetime epsilon of the owner's whole record, fixed by the first open of the ledger; None to
            open one that exists as it was fixed.
        policy: What surveys may ask; by default whatever the owner has said yes to.
        device_key: A secret of this device, at least 16 bytes, that no backup carries, where the host has
            one: then a ledger copied to another device is refused.
        counter: A number of this device that only grows, where the host has one: then a ledger that was set
            back to an earlier state, or made anew, is refused.
        limits: The uploader's caps.
        clock: Epoch seconds, or None while the device does not trust its clock: then nothing is answered or
            sent, and what waits stays.
        jitter: Uniform draws in [0, 1) for the back-off; never used for an answer.
        http: Another transport, for hosts with an HTTP stack of their own.
        survey_key: Public key of who may ask, as `hubbub survey keygen` prints it, or several while one takes
            another's place. Then lists of surveys must be signed by one of them, and may cancel surveys.
            None: the collector is trusted to choose surveys, within budget and policy.

    Raises:
        ClientError: A survey key is not one.
        LedgerError: The ledger cannot be used; its subclasses say why.
        CollectorError: The URL is not http or https.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collector_url: str,
        *,
        budget: float | None,
        policy: Policy | None = None,
        device_key: bytes | None = None,
        counter: Counter | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float | None] = time.time,
        jitter: Callable[[], float] = JITTER,
        http: Transport | None = None,
        survey_key: str | Iterable[str] | None = None,
    ) -> None:
        self._survey_keys = pinned(survey_key)
        self._http: Transport = HttpTransport(collector_url) if http is None else http
        ledger = Ledger(
            path, budget=None if budget is None else float(budget), device_key=device_key, counter=counter
        )
        super().__init__(ledger, policy or Policy(), clock)
        self._sender = OutboxUploader(
            ledger, self._lock, self._http, limits=limits or Limits(), clock=clock, jitter=jitter
        )
        self._background = Background(self._step)
        self._page: OwnerPage | None = None

    def fetch_surveys(self) -> tuple[Survey, ...]:
        """Return the surveys that the collector serves; taking part in one is a separate step.

        A survey that this version cannot read is left out: it is the collector's business, and no reason to
        lose the others. So is what lies beyond `schedule.MAX_LISTED` inputs.

        Raises:
            CollectorError: The collector cannot be reached, or its answer is not a list of surveys.
            ListRefused: See `read_surveys`.
            LedgerError: The ledger failed.
        """
        self._lock.check()  # a fork would write into the connections of the process that it came from
        response = self._http.get(SURVEYS_PATH)
        if response.status != 200:
            raise TransportError(f"collector must answer {SURVEYS_PATH} with 200, got {response.status}")
        return self.read_surveys(response.body)

    def read_surveys(self, data: bytes) -> tuple[Survey, ...]:
        """Return the surveys of a list, wherever it came from; those that were ever cancelled are left out.

        With a pinned key, what the list cancels is cancelled first, for good: nothing of it is answered or
        sent any more, and what was reserved for answers that were not drawn is free again.

        Raises:
            ListRefused: It is no list; or, with a pinned key, it is unsigned, signed by another, expired, or
                older than one that was seen. Its `reason` says which.
            LedgerError: The ledger failed.
        """
        with self._lock:
            listed = self._take_list(data, self._survey_keys) if self._survey_keys else unverified(data)
            cancelled = self._cancelled
        return tuple(survey for survey in decode_listed_surveys(listed) if survey.digest not in cancelled)

    def opt_in(self, asked: Survey | str) -> None:
        """Keep the owner's yes, to one survey or to whatever asks for one attribute (by its id)."""
        with self._lock:
            self._ledger.set_consents({subject_of(asked): True})

    def opt_out(self, asked: Survey | str) -> None:
        """Keep the owner's no, and leave the survey, or all on the attribute.

        What waits to be sent for them is withdrawn. What was answered stays spent and what was reserved stays
        reserved: a refund could be spent twice.
        """
        with self._lock:
            leave = [
                digest
                for digest, survey in self._surveys.items()
                if (survey == asked if isinstance(asked, Survey) else asks_for(survey, asked))
            ]
            self._ledger.set_consents({subject_of(asked): False}, leave=leave)
            self._enrolments = {stored.digest: stored for stored in self._ledger.enrolments()}

    def pause(self) -> None:
        """Answer and send nothing until `resume`; rounds that go by are not answered later."""
        with self._lock:
            self._ledger.set_paused("paused")

    def resume(self) -> None:
        """End a pause."""
        with self._lock:
            self._ledger.set_paused("running")

    def forget(self) -> None:
        """Erase every value, every answer and all that waits to be sent; the budget is not renewed.

        All surveys end and every yes is taken back (a no stays). What was answered stays spent; what was
        reserved is spent at its worst. Attributes stay registered; a value set from now on is another one.
        """
        with self._lock:
            self._ledger.forget(self._filter_state.total())
            self._readings.clear()
            self._load()

    def upload(self) -> UploadOutcome:
        """Send what waits, oldest first, until the outbox is empty or the collector must be left alone.

        A report leaves the outbox only for a typed outcome; whatever else happens, the same bytes are sent
        again later. A collector that cannot be reached is an outcome, not an error. The call ends within
        `Limits.upload_s` and the bound of one request, 30 seconds in all by default, however the collector
        draws out its answers; while another thread uploads, it ends at once.

        Raises:
            LedgerError: The ledger failed.
        """
        return self._sender.upload()

    def status(self) -> Status:
        """Return what was spent, what is reserved and what waits."""
        with self._lock:
            enrolments = tuple(
                EnrolmentStatus(
                    survey.id,
                    survey.version,
                    digest,
                    survey.rounds,
                    max(self._enrolments[digest].high_water, *self._answered[digest], -1),
                    len(self._answered[digest]),
                    self._enrolments[digest].state,
                )
                for digest, survey in self._surveys.items()
            )
            return Status(
                self._ledger.budget,
                self._filter_state.loss,
                self._filter_state.committed,
                enrolments,
                sum(map(len, self._answered.values())),
                self._ledger.waiting(),
                self._background.errors,
                self._background.last_error,
                self._ledger.paused(),
                "signed" if self._survey_keys else "unverified",
            )

    def surveys(self) -> tuple[Survey, ...]:
        """Return every survey that the device takes part in or took, in the order of enrolment."""
        with self._lock:
            return tuple(self._surveys.values())

    def sent(self) -> tuple[SentReport, ...]:
        """Return all that the collector has, byte for byte, since the last `forget`.

        A report appears when the collector has answered for it, not before: an owner who saw an answer in
        the outbox could keep it back, and those who did would bias the survey.
        """
        with self._lock:
            return sent_reports(self._ledger.answers(), self._ledger.transcript(), self._surveys)

    def account(self) -> Account:
        """Return the owner's account: what was asked and sent, what it can reveal, and what is left.

        Unlike `status`, it says nothing of an answer that waits, and counts it at its worst.
        """
        with self._lock:
            account = partial(
                account_of,
                closed=self._ledger.closed(),
                rows=self._ledger.transcript(),
                surveys=dict(self._surveys),
                states={digest: stored.state for digest, stored in self._enrolments.items()},
                answers=self._ledger.answers(),
                refusals=self._ledger.refusals(),
                budget=self._ledger.budget,
                waiting=self._ledger.waiting(),
                paused=self._ledger.paused(),
            )
        return account()  # it takes a while on an old ledger, and needs it no more

    def serve_page(self, *, port: int = 0) -> OwnerPage:
        """Serve the owner's page on this machine until `close`, and say where; see `page`.

        Args:
            port: Where to listen on 127.0.0.1; 0 for any free port.

        Raises:
            OSError: The port is taken.
            LedgerError: The ledger is closed, or failed.
        """
        with self._lock:
            self._ledger.paused()  # raises where the ledger is closed
            if self._page is None:
                self._page = OwnerPage(lambda: nullcontext(self), port=port)
            return self._page

    def run_background(self, *, poll_s: float = 60.0) -> None:
        """Answer and upload in a daemon thread until `close`; it never raises into the host.

        Args:
            poll_s: Seconds between two looks at clock and outbox; rounds shorter than this may be missed.

        Raises:
            ClientError: `poll_s` is no time to wait.
            LedgerError: The ledger is closed, or failed.
        """
        with self._lock:
            self._ledger.paused()  # raises where the ledger is closed
            self._background.start(poll_s)

    def _step(self) -> float | None:
        self.answer()
        return self.upload().wait_s

    def close(self) -> None:
        """Stop the background thread, close connections and give up the ledger.

        What the background thread is at is waited for, at most two seconds; an upload that takes longer is
        cut off. Its reports stay in the outbox and are sent again as they are; an `upload` of another thread
        ends in a LedgerError. In a forked child it does nothing: the agent is its parent's.
        """
        if self._lock.inherited:
            return
        self._background.stop()
        if self._page is not None:
            self._page.close()
        with self._lock:
            self._http.close()
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Agent of {len(self._surveys)} surveys>"
