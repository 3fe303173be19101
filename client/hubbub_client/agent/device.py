"""One device's record: what its owner's attributes are, which surveys ask for them, and what was answered.

Everything here is decided by `schedule`, `policy` and the filter, and made to last by the ledger. Nothing is
sent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from hubbub import wire
from hubbub.channels import Symbol
from hubbub.errors import HubbubError
from hubbub.survey import Attribute, Survey, attribute_from_spec
from hubbub_client.agent.encoded_value import Reading, channel_input, pack_reading, read, unpack_reading
from hubbub_client.agent.filter_state import replay
from hubbub_client.agent.policy import Policy, consent
from hubbub_client.agent.rounds import rounds_fit
from hubbub_client.errors import AttributeRefused, LedgerCorrupt
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.process_lock import ProcessLock
from hubbub_client.ledger.stored import StoredAttribute, StoredEnrolment, StoredReading, StoredRefusal
from hubbub_client.ledger.transcript import Row
from hubbub_client.surveys.schedule import (
    PINNED,
    Enrolment,
    Refusal,
    asks_for,
    due,
    first_round,
    floor_at,
    generation_of,
    is_static,
    screen,
    slot_of,
    slot_query,
    slots,
    trusted,
)
from hubbub_client.upload.outcomes import Answer, Correction


class Device:
    """What an agent does without a network; see `Agent`, which is what hosts use.

    Args:
        ledger: An open ledger; closed if it does not make sense.
        policy: What surveys may ask.
        clock: Epoch seconds, or None while they are not to be trusted; see `schedule.trusted`.

    Raises:
        LedgerCorrupt: What the ledger says does not add up.
    """

    def __init__(self, ledger: Ledger, policy: Policy, clock: Callable[[], float | None]) -> None:
        self._ledger, self._policy, self._clock = ledger, policy, clock
        # Values not pinned: an evolving one is on disk only while a round waits for it.
        self._readings: dict[str, Reading] = {}
        self._lock = ProcessLock()
        try:
            self._load()
        except BaseException:
            ledger.close()
            raise

    def _load(self) -> None:
        """Rebuilds the filter from the transcript; the ledger is the only memory there is."""
        self._attributes = {stored.id: stored for stored in self._ledger.attributes()}
        self._enrolments = {stored.digest: stored for stored in self._ledger.enrolments()}
        self._surveys: dict[bytes, Survey] = {}
        for stored in self._enrolments.values():
            try:
                survey = Survey.from_canonical(stored.canonical)
            except HubbubError:
                raise LedgerCorrupt("a survey in the ledger cannot be read") from None
            if survey.digest != stored.digest:
                raise LedgerCorrupt("a survey in the ledger does not have the digest it is stored under")
            self._surveys[stored.digest] = survey
        self._answered: dict[bytes, set[int]] = {digest: set() for digest in self._surveys}
        for answer in self._ledger.answers():
            self._answered[answer.digest].add(answer.round)
        self._kept = {stored.attribute: stored for stored in self._ledger.readings()}
        self._refusals = {stored.digest: stored for stored in self._ledger.refusals()}
        self._cancelled = self._ledger.cancelled()
        self._lists = self._ledger.lists()
        self._book = replay(
            self._ledger.transcript(), self._surveys, budget=self._ledger.budget, closed=self._ledger.closed()
        )
        self._give_up()

    def _give_up(self) -> None:
        """Gives back, on disk and before anything is drawn, what an earlier version granted too much of."""
        rows = self._book.too_much()
        if rows:
            now_s = trusted(self._clock())
            surveys = {row.digest: self._surveys[row.digest] for row in rows}
            refused = (
                [] if now_s is None else [self._told(each, "over_budget", now_s) for each in surveys.values()]
            )
            self._ledger.give_up(rows, refused)
            self._enrolments = {stored.digest: stored for stored in self._ledger.enrolments()}
            self._refusals = {stored.digest: stored for stored in self._ledger.refusals()}

    def register(self, attribute: Attribute) -> None:
        """Declares an attribute that this device may be asked about; the same again does nothing.

        Surveys never declare attributes: what is known about its owner is the host's to say.

        Raises:
            AttributeRefused: It was registered before with another kind or domain. Budget was reserved for
                that domain, so it cannot change; give the changed attribute another id.
        """
        with self._lock:
            spec = wire.pack(attribute.to_spec())
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
        memory; while a round that asks for it is open and not answered, it is kept in the ledger too, so that
        a restart does not turn it into "missing". A static value is pinned by the first answer that reads it,
        missing included, and stays until it is corrected.

        Raises:
            AttributeRefused: No such attribute is registered, or its value is pinned.
        """
        with self._lock:
            stored = self._stored(attribute_id)
            attribute = _attribute(stored)
            reading = read(attribute, value)
            if stored.pinned is None:
                self._readings[attribute_id] = reading
                if attribute.kind == "evolving":
                    self._keep(attribute_id, pack_reading(reading))
            elif stored.pinned != pack_reading(reading):
                raise AttributeRefused(
                    f"attribute {attribute_id!r} is static and was pinned by its first answer"
                )

    def _stored(self, attribute_id: str) -> StoredAttribute:
        stored = self._attributes.get(attribute_id)
        if stored is None:
            raise AttributeRefused(f"attribute {attribute_id!r} must be registered first")
        return stored

    def _keep(self, attribute_id: str, value: bytes) -> None:
        """Keeps an evolving value across restarts for as long as a round waits for it."""
        now_s = trusted(self._clock())
        ends = [] if now_s is None else [s.round_end_s(r) for s, r in self._due(now_s, attribute_id)]
        if now_s is not None and ends:
            reading = StoredReading(attribute_id, value, now_s, float(max(ends)))
            known = self._kept.get(attribute_id)
            if known is None or (known.value, known.until_s) != (value, reading.until_s):
                self._ledger.keep_reading(reading)
                self._kept[attribute_id] = reading
        elif self._kept.pop(attribute_id, None) is not None:
            self._ledger.drop_reading(attribute_id)

    def _due(self, now_s: float, attribute_id: str | None = None) -> list[tuple[Survey, int]]:
        """Surveys, of one attribute or all, whose round is open and not answered, with that round."""
        found: list[tuple[Survey, int]] = []
        for digest, stored in self._enrolments.items():
            survey = self._surveys[digest]
            if stored.state == "active" and (attribute_id is None or asks_for(survey, attribute_id)):
                number = due(survey, stored.floor, self._answered[digest], now_s)
                if number is not None:
                    found.append((survey, number))
        return found

    def correct(self, attribute_id: str, value: object) -> Correction:
        """Replaces a static value that was pinned by another one: a mistake, or a change after all.

        The other value is a coordinate of its own: what the earlier one cost stays spent, what was reserved
        for it and not answered is forfeited, and one new answer is reserved for every survey that is still
        running. If that does not fit, nothing changes: the earlier value stands.

        Raises:
            AttributeRefused: No such attribute is registered, or it is evolving.
        """
        with self._lock:
            stored = self._stored(attribute_id)
            attribute = _attribute(stored)
            if attribute.kind == "evolving":
                raise AttributeRefused(f"attribute {attribute_id!r} is evolving: set its value")
            if stored.pinned is None:
                self.set(attribute_id, value)
                return Correction(attribute_id, "corrected")
            pinned = pack_reading(read(attribute, value))
            if pinned == stored.pinned:
                return Correction(attribute_id, "unchanged")
            now_s = trusted(self._clock())
            if now_s is None:
                return Correction(attribute_id, "refused", "clock_not_trusted")
            generation = stored.generation + 1
            wanted = [
                (survey, PINNED, self._generation(survey, {attribute_id: generation}))
                for digest, survey in self._surveys.items()
                if asks_for(survey, attribute_id) and self._enrolments[digest].state == "active"
                # What a round reads with an evolving attribute is a value of its own, whichever was pinned.
                if is_static(survey) and first_round(survey, now_s) is not None
            ]
            rows = self._reserve(wanted)
            if rows is None:
                return Correction(attribute_id, "refused", "over_budget")
            self._ledger.repin(attribute_id, generation, pinned, rows)
            self._refresh_attributes()
            self._book.reserved(rows, self._surveys)
            return Correction(attribute_id, "corrected")

    def _generation(self, survey: Survey, anew: Mapping[str, int] | None = None) -> int:
        """The pin generation that a survey's answers are reserved for, `anew` being about to be pinned."""
        pinned = {stored.id: stored.generation for stored in self._attributes.values()} | dict(anew or {})
        return generation_of(survey, [pinned[attribute.id] for attribute in survey.attributes])

    def _reserve(self, wanted: list[tuple[Survey, int, int]]) -> list[Row] | None:
        """Sets all of it aside, or None.

        The filter in memory is ahead of the file until the rows are written; if that fails, the ledger is
        closed for good and a new agent rebuilds the filter from what the file says.
        """
        if not wanted:
            return []  # nothing is granted, so that it fits even where the budget is overspent
        tickets = self._book.filter.reserve_all(
            [slot_query(survey, slot, generation=generation) for survey, slot, generation in wanted]
        )
        if tickets is None:
            return None
        return [
            Row("reserve", ticket, survey.digest, slot, generation)
            for (survey, slot, generation), ticket in zip(wanted, tickets, strict=True)
        ]

    def enrol(self, survey: Survey) -> Enrolment:
        """Takes part in a survey, or says why not; its whole schedule is reserved now, or nothing is.

        The decision reads public facts, the owner's words and past outputs, never a value. A survey that was
        left can be joined again: what is still reserved for it serves, and no round is answered twice.

        Raises:
            LedgerError: The ledger failed.
        """
        with self._lock:
            known = self._enrolments.get(survey.digest)
            if known is not None and known.state == "active":
                return Enrolment(survey.id, survey.version, survey.digest, "already_enrolled")
            now_s = trusted(self._clock())
            refusal = self._refusal(survey, now_s)
            if now_s is None or refusal is not None:
                return self._refused(survey, refusal, now_s)
            floor = max(floor_at(survey, now_s), -1 if known is None else known.floor)
            generation = self._generation(survey)
            served = {
                slot
                for (digest, slot), pinned in self._book.generations.items()
                if digest == survey.digest and (pinned == generation or not is_static(survey))
            }
            wanted = [slot for slot in slots(survey, floor) if slot not in served]
            refusal = self._unfit(survey, wanted, generation, before=len(served))
            if refusal is not None:
                return self._refused(survey, refusal, now_s)
            given_up = any((survey.digest, slot, generation) in self._book.void for slot in wanted)
            rows = None if given_up else self._reserve([(survey, slot, generation) for slot in wanted])
            if rows is None:
                return self._refused(survey, "over_budget", now_s)
            high_water = floor if known is None else max(floor, known.high_water)
            stored = StoredEnrolment(survey.digest, survey.canonical, floor, high_water)
            self._ledger.add_enrolment(stored, rows)
            self._surveys[survey.digest], self._enrolments[survey.digest] = survey, stored
            self._answered.setdefault(survey.digest, set())
            self._book.reserved(rows, self._surveys)
            self._refusals.pop(survey.digest, None)
            return Enrolment(survey.id, survey.version, survey.digest, "enrolled")

    def _unfit(
        self, survey: Survey, wanted: Sequence[int], generation: int, *, before: int
    ) -> Refusal | None:
        """Why a schedule is refused before a query of it is built, None if the filter is to be asked.

        Args:
            survey: The survey.
            wanted: Slots that would be reserved.
            generation: Pin generation of its attributes.
            before: How many slots of it were reserved before.
        """
        canonicals = {digest: len(each.canonical) for digest, each in self._surveys.items()}
        canonicals[survey.digest] = len(survey.canonical)
        if not self._policy.holds(
            before + len(wanted),
            ledger_slots=self._book.slots + len(wanted),
            ledger_bytes=sum(canonicals.values()),
        ):
            return "too_large"
        if not wanted or is_static(survey):
            return None
        one = slot_query(survey, wanted[0], generation=generation)
        return None if rounds_fit(one, len(wanted), self._book.filter.headroom) else "over_budget"

    def _refused(self, survey: Survey, reason: Refusal | None, now_s: float | None) -> Enrolment:
        """Says so, and keeps it for the owner to see; the same again is not written again."""
        known = self._refusals.get(survey.digest)
        if reason is not None and now_s is not None and (known is None or known.reason != reason):
            self._ledger.keep_refusal(self._told(survey, reason, now_s))
            self._refusals = {stored.digest: stored for stored in self._ledger.refusals()}
        return Enrolment(survey.id, survey.version, survey.digest, "refused", reason)

    def _told(self, survey: Survey, reason: Refusal, now_s: float) -> StoredRefusal:
        """A refusal as it is kept; what was left of the budget could tell an answer not yet seen."""
        told = not self._ledger.has_unseen()
        headroom = max(0.0, self._ledger.budget - self._book.committed) if told else None
        epsilon = survey.channel.epsilon
        return StoredRefusal(
            survey.digest, survey.id, survey.version, survey.title, epsilon, reason, headroom, now_s
        )

    def _refusal(self, survey: Survey, now_s: float | None) -> Refusal | None:
        """Why a survey is refused before the budget is asked."""
        if survey.digest in self._cancelled:
            return "cancelled"
        if now_s is None:
            return "clock_not_trusted"
        known = (self._attributes.get(attribute.id) for attribute in survey.attributes)
        registered = {stored.id: _attribute(stored) for stored in known if stored is not None}
        largest = self._policy.max_epsilon
        largest = self._ledger.budget if largest is None else largest
        return screen(survey, registered, max_epsilon=largest, now_s=now_s) or consent(
            survey, self._policy, self._ledger.consents()
        )

    def answer(self) -> tuple[Answer, ...]:
        """Answers every survey whose round is open now and not answered yet, each in one transaction on disk.

        A value that is not set is answered as missing: silence would tell. Nothing is sent here.

        Raises:
            LedgerError: The ledger failed. What was being answered is wholly in it or not at all.
        """
        with self._lock:
            now_s = trusted(self._clock())
            if now_s is None or self._ledger.paused():
                return ()
            made = [self._answer(survey, number, now_s) for survey, number in self._due(now_s)]
            return tuple(answer for answer in made if answer is not None)

    def _answer(self, survey: Survey, round_number: int, now_s: float) -> Answer | None:
        key = (survey.digest, slot_of(survey, round_number))
        symbol = self._book.recorded.get(key)
        record: Row | None = None
        pins: list[tuple[str, bytes]] = []
        generation = self._book.generations.get(key)
        if generation is None:
            return None  # nothing was reserved for it
        if symbol is None:
            if is_static(survey) and generation != self._generation(survey):
                # Reserved for a value that was corrected since: on its coordinate the new one would merge
                # wrongly. It stays forfeited, even if the clock is set back into the survey's last round.
                return None
            ticket = self._book.open[key][0]
            readings = [self._reading(attribute, now_s, pins) for attribute in survey.attributes]
            symbol = self._perturb(survey, readings)
            record = Row("record", ticket, *key, generation, symbol)
        report_id = os.urandom(wire.ID_BYTES)
        report = wire.encode_report(wire.Report(survey.digest, round_number, report_id, symbol))
        spent = [
            attribute.id
            for attribute in survey.attributes
            if attribute.id in self._kept and len(self._due(now_s, attribute.id)) == 1
        ]
        self._ledger.add_answer(
            digest=survey.digest,
            round_number=round_number,
            report_id=report_id,
            report=report,
            record=record,
            pins=pins,
            generation=generation,
            spent_readings=spent,
        )
        # From here on the answer exists; before, it did not, and the symbol was shown to nobody.
        self._answered[survey.digest].add(round_number)
        if record is not None:
            self._book.record(record, survey)
        if pins:
            self._refresh_attributes()
        for attribute_id, _ in pins:
            self._readings.pop(attribute_id, None)
        for attribute_id in spent:
            del self._kept[attribute_id]
        return Answer(survey.id, survey.digest, round_number, report_id)

    def _reading(self, attribute: Attribute, now_s: float, pins: list[tuple[str, bytes]]) -> Reading:
        """The reading to answer with; what to pin along with the answer is added to `pins`."""
        pinned = self._attributes[attribute.id].pinned
        if pinned is not None:
            return unpack_reading(attribute, pinned)
        reading = self._readings.get(attribute.id, read(attribute, None))
        if attribute.kind == "evolving":
            kept = self._kept.get(attribute.id)
            if attribute.id not in self._readings and kept and kept.since_s <= now_s < kept.until_s:
                reading = unpack_reading(attribute, kept.value)
            return reading
        # Missing is pinned too: a later survey that read another value on this coordinate would merge
        # wrongly.
        pins.append((attribute.id, pack_reading(reading)))
        return reading

    def _perturb(self, survey: Survey, readings: Sequence[Reading]) -> Symbol:
        """One symbol for a reading per attribute, drawn from the operating system's generator."""
        return survey.channel.perturb(channel_input(survey, readings))

    def _refresh_attributes(self) -> None:
        self._attributes = {stored.id: stored for stored in self._ledger.attributes()}


def _attribute(stored: StoredAttribute) -> Attribute:
    try:
        return attribute_from_spec(wire.unpack(stored.spec, "attribute"))
    except HubbubError:
        raise LedgerCorrupt("an attribute in the ledger cannot be read") from None
