"""The device agent: what a host app embeds to answer surveys without ever sending a value.

    with Agent("ledger.db", "https://collect.example.org", budget=4.0) as agent:
        agent.register(Attribute.integer("visits", 0, 77, kind="static"))
        agent.set("visits", 3)
        agent.enrol(survey)
        agent.answer()
        agent.upload()

The unit of privacy is the whole record of the installation's owner, all attributes over all rounds: for any
two records, the probability of everything that this agent ever sends differs by a factor of at most e^budget.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from random import SystemRandom
from types import TracebackType
from typing import Final, Self

from hubbub import packing, wire
from hubbub.domain import Attribute, attribute_from_spec
from hubbub.errors import HubbubError, WireError
from hubbub.survey import Survey
from hubbub_client.book import replay
from hubbub_client.errors import AttributeRefused, CollectorError, LedgerCorrupt, LedgerError
from hubbub_client.ledger import Ledger, StoredAttribute, StoredEnrolment
from hubbub_client.outcomes import Answer, EnrolmentStatus, Status, UploadOutcome
from hubbub_client.reading import Reading, channel_input, pack_reading, read, unpack_reading
from hubbub_client.schedule import Enrolment, due, readable, screen, slot_of, slot_query, slots, water_mark
from hubbub_client.transcript import Row
from hubbub_client.transport import HttpTransport, Transport
from hubbub_client.uploader import Limits, Settled, Upload, Wait, decide, judge

REPORTS_PATH: Final = "/v1/reports"
SURVEYS_PATH: Final = "/v1/surveys"

_PATIENCE_S: Final = 2.0
"""What `close` grants the background thread: enough for any answer, and no host waits longer to exit."""

_JITTER: Final = SystemRandom().random


class Agent:
    """One device: attributes of its owner, a ledger, an outbox and a way to one collector.

    Answers draw from the operating system's generator; there is no way to hand in another. Errors never carry
    a value, and nothing is logged. Calls are safe from several threads.

    Args:
        path: The ledger file, kept out of backups: a restored copy would spend the same budget twice.
        collector_url: Where reports go.
        budget: Lifetime epsilon of the owner's whole record, fixed by the first open of the ledger.
        max_epsilon: Largest epsilon of one answer that this device accepts; None for no limit but the budget.
        limits: The uploader's caps.
        clock: Epoch seconds.
        jitter: Uniform draws in [0, 1) for the back-off; never used for an answer.
        http: Another transport, for hosts with an HTTP stack of their own.

    Raises:
        LedgerError: The ledger cannot be used; its subclasses say why.
        CollectorError: The URL is not http or https.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collector_url: str,
        *,
        budget: float,
        max_epsilon: float | None = None,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = _JITTER,
        http: Transport | None = None,
    ) -> None:
        self._http: Transport = HttpTransport(collector_url) if http is None else http
        self._budget = float(budget)
        self._max_epsilon = self._budget if max_epsilon is None else float(max_epsilon)
        self._limits = limits or Limits()
        self._clock, self._jitter = clock, jitter
        # Values not pinned live here and nowhere else: an evolving one is never written down.
        self._readings: dict[str, Reading] = {}
        self._lock, self._upload_lock = threading.RLock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._errors, self._last_error = 0, None  # type: int, str | None
        self._ledger = Ledger(path, budget=self._budget)
        try:
            self._load()
        except BaseException:
            self._ledger.close()
            raise

    def _load(self) -> None:
        """Rebuilds the filter from the transcript; the ledger is the only memory there is."""
        self._attributes = {stored.id: stored for stored in self._ledger.attributes()}
        self._high_water: dict[bytes, int] = {}
        self._surveys: dict[bytes, Survey] = {}
        for stored in self._ledger.enrolments():
            try:
                survey = Survey.from_canonical(stored.canonical)
            except HubbubError:
                raise LedgerCorrupt("a survey in the ledger cannot be read") from None
            if survey.digest != stored.digest:
                raise LedgerCorrupt("a survey in the ledger does not have the digest it is stored under")
            self._surveys[stored.digest] = survey
            self._high_water[stored.digest] = stored.high_water
        self._book = replay(self._ledger.transcript(), self._surveys, budget=self._budget)

    def register(self, attribute: Attribute) -> None:
        """Declares an attribute that this device may be asked about; the same again does nothing.

        Surveys never declare attributes: what is known about its owner is the host's to say.

        Raises:
            AttributeRefused: It was registered before with another kind or domain. Budget was reserved for
                that domain, so it cannot change; give the changed attribute another id.
        """
        with self._lock:
            spec = packing.pack(attribute.to_spec())
            stored = self._attributes.get(attribute.id)
            if stored is None:
                self._ledger.add_attribute(attribute.id, spec)
                self._refresh_attributes()
            elif stored.spec != spec:
                raise AttributeRefused(
                    f"attribute {attribute.id!r} must be as first registered: same kind and domain"
                )

    def set(self, attribute_id: str, value: object) -> None:
        """Tells the agent the attribute's value from now on.

        None, or anything outside the domain, is "missing". An evolving value stands until it is replaced, in
        memory only: after a restart it is missing until set again. A static value is pinned by the first
        answer that reads it, missing included, and stays.

        Raises:
            AttributeRefused: No such attribute is registered, or its value is pinned.
        """
        with self._lock:
            stored = self._attributes.get(attribute_id)
            if stored is None:
                raise AttributeRefused(f"attribute {attribute_id!r} must be registered first")
            reading = read(_attribute(stored), value)
            if stored.pinned is None:
                self._readings[attribute_id] = reading
            elif stored.pinned != pack_reading(reading):
                raise AttributeRefused(
                    f"attribute {attribute_id!r} is static and was pinned by its first answer"
                )

    def fetch_surveys(self) -> tuple[Survey, ...]:
        """The surveys that the collector serves; taking part in one is a separate step.

        A survey that this version cannot read is left out: it is the collector's business, and no reason to
        lose the others. So is what lies beyond `schedule.MAX_LISTED` inputs.

        Raises:
            CollectorError: The collector cannot be reached, or its answer is not a list of surveys.
        """
        response = self._http.get(SURVEYS_PATH)
        if response.status != 200:
            raise CollectorError(f"collector must answer {SURVEYS_PATH} with 200, got {response.status}")
        try:
            listed = wire.decode_surveys(response.body)
        except WireError:
            raise CollectorError("collector's list of surveys cannot be read") from None
        return readable(listed)

    def enrol(self, survey: Survey) -> Enrolment:
        """Takes part in a survey, or says why not; its whole schedule is reserved now, or nothing is.

        The decision reads public facts and past outputs, never a value.

        Raises:
            LedgerError: The ledger failed.
        """
        with self._lock:
            if survey.digest in self._surveys:
                return Enrolment(survey.id, survey.version, survey.digest, "already_enrolled")
            now_s = self._clock()
            stored = self._attributes.get(survey.attribute.id)
            registered = None if stored is None else _attribute(stored)
            refusal = screen(survey, registered, max_epsilon=self._max_epsilon, now_s=now_s)
            if stored is None or refusal is not None:
                return Enrolment(survey.id, survey.version, survey.digest, "refused", refusal)
            wanted = slots(survey, now_s)
            tickets = self._book.filter.reserve_all(
                [slot_query(survey, slot, generation=stored.generation) for slot in wanted]
            )
            if tickets is None:
                return Enrolment(survey.id, survey.version, survey.digest, "refused", "over_budget")
            rows = [
                Row("reserve", ticket, survey.digest, slot, stored.generation)
                for slot, ticket in zip(wanted, tickets, strict=True)
            ]
            high_water = water_mark(survey, now_s)
            # The filter in memory is ahead of the file until this returns; if it fails, the ledger is closed
            # for good and a new agent rebuilds the filter from what the file says.
            self._ledger.add_enrolment(StoredEnrolment(survey.digest, survey.canonical, high_water), rows)
            self._surveys[survey.digest], self._high_water[survey.digest] = survey, high_water
            self._book.reserved(rows)
            return Enrolment(survey.id, survey.version, survey.digest, "enrolled")

    def answer(self) -> tuple[Answer, ...]:
        """Answers every survey whose round is open now and not answered yet, each in one transaction on disk.

        A value that is not set is answered as missing: silence would tell. Nothing is sent here.

        Raises:
            LedgerError: The ledger failed. What was being answered is wholly in it or not at all.
        """
        with self._lock:
            now_s = self._clock()
            made: list[Answer] = []
            for digest, survey in self._surveys.items():
                round_number = due(survey, self._high_water[digest], now_s)
                if round_number is not None:
                    answer = self._answer(survey, round_number)
                    if answer is not None:
                        made.append(answer)
            return tuple(made)

    def _answer(self, survey: Survey, round_number: int) -> Answer | None:
        key = (survey.digest, slot_of(survey, round_number))
        symbol = self._book.recorded.get(key)
        record: Row | None = None
        pin: tuple[str, bytes] | None = None
        if symbol is None:
            if key not in self._book.open:
                return None  # a round that had ended at enrolment, seen again by a clock that was set back
            ticket, generation = self._book.open[key]
            reading, pin = self._reading(survey.attribute)
            symbol = self._perturb(survey, reading)
            record = Row("record", ticket, *key, generation, symbol)
        report_id = os.urandom(wire.ID_BYTES)
        report = wire.encode_report(wire.Report(survey.digest, round_number, report_id, symbol))
        self._ledger.add_answer(
            digest=survey.digest,
            round_number=round_number,
            report_id=report_id,
            report=report,
            record=record,
            pin=pin,
        )
        # From here on the answer exists; before, it did not, and the symbol was shown to nobody.
        self._high_water[survey.digest] = round_number
        if record is not None:
            self._book.record(record)
        if pin is not None:
            self._refresh_attributes()
            self._readings.pop(survey.attribute.id, None)
        return Answer(survey.id, survey.digest, round_number, report_id)

    def _reading(self, attribute: Attribute) -> tuple[Reading, tuple[str, bytes] | None]:
        """The reading to answer with, and what to pin along with the answer."""
        pinned = self._attributes[attribute.id].pinned
        if pinned is not None:
            return unpack_reading(attribute, pinned), None
        reading = self._readings.get(attribute.id, read(attribute, None))
        if attribute.kind == "evolving":
            return reading, None
        # Missing is pinned too: a later survey that read another value on this coordinate would merge
        # wrongly.
        return reading, (attribute.id, pack_reading(reading))

    def _perturb(self, survey: Survey, reading: Reading) -> int:
        """One symbol for a reading, drawn from the operating system's generator."""
        return survey.channel.perturb(channel_input(survey, reading))

    def _refresh_attributes(self) -> None:
        self._attributes = {stored.id: stored for stored in self._ledger.attributes()}

    def upload(self) -> UploadOutcome:
        """Sends what waits, oldest first, until the outbox is empty or the collector must be left alone.

        A report leaves the outbox only for a typed outcome; whatever else happens, the same bytes are sent
        again later. A collector that cannot be reached is an outcome, not an error.

        Raises:
            LedgerError: The ledger failed.
        """
        settled: dict[bytes, wire.Outcome] = {}
        failure: str | None = None
        with self._upload_lock:
            while True:
                with self._lock:
                    now_s, pace = self._clock(), self._ledger.pace()
                    waiting = self._ledger.outbox(self._limits.max_reports)
                decision = decide(waiting, pace, now_s=now_s, limits=self._limits)
                if not isinstance(decision, Upload):
                    break
                try:
                    response = self._http.post(REPORTS_PATH, decision.body)
                except CollectorError:
                    response = None
                result = judge(
                    decision,
                    response,
                    pace,
                    now_s=self._clock(),
                    jitter=self._jitter(),
                    limits=self._limits,
                )
                with self._lock:
                    if isinstance(result, Settled):
                        outcomes = [
                            (report.id, outcome)
                            for report, outcome in zip(decision.reports, result.outcomes, strict=True)
                        ]
                        self._ledger.settle(outcomes, result.pace)
                        settled.update(outcomes)
                        failure = None
                    else:
                        self._ledger.slow(result.pace)
                        failure = result.reason
            with self._lock:
                left = self._ledger.waiting()
        delay_s = decision.delay_s if isinstance(decision, Wait) else None
        return UploadOutcome(settled, left, delay_s, failure)

    def status(self) -> Status:
        """What was spent, what is reserved, and what waits."""
        with self._lock:
            enrolments = tuple(
                EnrolmentStatus(survey.id, survey.version, digest, survey.rounds, self._high_water[digest])
                for digest, survey in self._surveys.items()
            )
            return Status(
                self._budget,
                self._book.filter.loss,
                self._book.filter.committed,
                enrolments,
                len(self._ledger.answers()),
                self._ledger.waiting(),
                self._errors,
                self._last_error,
            )

    def run_background(self, *, poll_s: float = 60.0) -> None:
        """Answers and uploads in a daemon thread until `close`; it never raises into the host.

        Args:
            poll_s: Seconds between two looks at clock and outbox; rounds shorter than this may be missed.
        """
        with self._lock:
            if self._thread is None:
                self._stop.clear()
                self._thread = threading.Thread(
                    target=self._run, args=(poll_s,), name="hubbub-agent", daemon=True
                )
                self._thread.start()

    def _run(self, poll_s: float) -> None:
        while not self._stop.is_set():
            delay_s = poll_s
            try:
                self.answer()
                outcome = self.upload()
                if outcome.wait_s is not None:
                    delay_s = min(poll_s, outcome.wait_s)
            except Exception as error:  # whatever it is, it is not the host's to handle
                # Only the kind is kept: a message of a layer below might quote what it choked on.
                self._errors += 1
                self._last_error = type(error).__name__
                if isinstance(error, LedgerError):
                    return  # it must be opened again, by the host
            self._stop.wait(delay_s)

    def close(self) -> None:
        """Stops the background thread, closes connections and gives up the ledger.

        An upload under way is not waited for, because a collector can draw out its answer for as long as it
        likes. Its reports stay in the outbox and are sent again as they are; an `upload` of another
        thread ends in a LedgerError.
        """
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE_S)
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


def _attribute(stored: StoredAttribute) -> Attribute:
    try:
        return attribute_from_spec(packing.unpack(stored.spec, "attribute"))
    except HubbubError:
        raise LedgerCorrupt("an attribute in the ledger cannot be read") from None
