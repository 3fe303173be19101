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
from hubbub_client.agent.encoded_value import (
    EncodedValue,
    channel_input,
    encode,
    pack_encoded,
    unpack_encoded,
)
from hubbub_client.agent.filter_state import replay
from hubbub_client.agent.policy import Policy, consent
from hubbub_client.agent.rounds import rounds_fit
from hubbub_client.errors import AttributeRefused, LedgerCorrupt
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.process_lock import ProcessLock
from hubbub_client.ledger.stored import StoredAttribute, StoredEnrolment, StoredRefusal, StoredValue
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import (
    MEMOISED,
    Enrolment,
    Refusal,
    asks_for,
    check_eligibility,
    due,
    first_round,
    is_static,
    joined_pin_versions,
    last_closed_round,
    scheduled_answer_of,
    scheduled_answers,
    scheduled_query,
    trusted,
)
from hubbub_client.upload.outcomes import Answer, Correction


class Device:
    """A device without a network: the decisions of `Agent`, which is what hosts use.

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
        self._readings: dict[str, EncodedValue] = {}
        self._lock = ProcessLock()
        try:
            self._load()
        except BaseException:
            ledger.close()
            raise

    def _load(self) -> None:
        """Rebuild the filter from the transcript; the ledger is the only memory there is."""
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
        self._kept = {stored.attribute: stored for stored in self._ledger.kept_values()}
        self._refusals = {stored.digest: stored for stored in self._ledger.refusals()}
        self._cancelled = self._ledger.cancelled()
        self._lists = self._ledger.lists()
        self._filter_state = replay(
            self._ledger.transcript(), self._surveys, budget=self._ledger.budget, closed=self._ledger.closed()
        )
        self._give_up()

    def _give_up(self) -> None:
        """Release, on disk and before anything is drawn, what an earlier version granted in excess."""
        rows = self._filter_state.too_much()
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
        """Declare an attribute that this device may be asked about; the same again does nothing.

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
        """Tell the agent the attribute's value from now on.

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
            reading = encode(attribute, value)
            if stored.memoised is None:
                self._readings[attribute_id] = reading
                if attribute.kind == "evolving":
                    self._keep(attribute_id, pack_encoded(reading))
            elif stored.memoised != pack_encoded(reading):
                raise AttributeRefused(
                    f"attribute {attribute_id!r} is static and was pinned by its first answer"
                )

    def _stored(self, attribute_id: str) -> StoredAttribute:
        stored = self._attributes.get(attribute_id)
        if stored is None:
            raise AttributeRefused(f"attribute {attribute_id!r} must be registered first")
        return stored

    def _keep(self, attribute_id: str, value: bytes) -> None:
        """Keep an evolving value across restarts for as long as a round waits for it."""
        now_s = trusted(self._clock())
        ends = [] if now_s is None else [s.round_end_s(r) for s, r in self._due(now_s, attribute_id)]
        if now_s is not None and ends:
            reading = StoredValue(attribute_id, value, now_s, float(max(ends)))
            known = self._kept.get(attribute_id)
            if known is None or (known.value, known.until_s) != (value, reading.until_s):
                self._ledger.keep_value(reading)
                self._kept[attribute_id] = reading
        elif self._kept.pop(attribute_id, None) is not None:
            self._ledger.drop_value(attribute_id)

    def _due(self, now_s: float, attribute_id: str | None = None) -> list[tuple[Survey, int]]:
        """Return surveys, of one attribute or all, whose round is open and not answered, with that round."""
        found: list[tuple[Survey, int]] = []
        for digest, stored in self._enrolments.items():
            survey = self._surveys[digest]
            if stored.state == "active" and (attribute_id is None or asks_for(survey, attribute_id)):
                number = due(survey, stored.last_closed, self._answered[digest], now_s)
                if number is not None:
                    found.append((survey, number))
        return found

    def correct(self, attribute_id: str, value: object) -> Correction:
        """Replace a static value that was pinned by another one: a mistake, or a change after all.

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
            if stored.memoised is None:
                self.set(attribute_id, value)
                return Correction(attribute_id, "corrected")
            pinned = pack_encoded(encode(attribute, value))
            if pinned == stored.memoised:
                return Correction(attribute_id, "unchanged")
            now_s = trusted(self._clock())
            if now_s is None:
                return Correction(attribute_id, "refused", "clock_not_trusted")
            pin_version = stored.pin_version + 1
            wanted = [
                (survey, MEMOISED, self._pin_version(survey, {attribute_id: pin_version}))
                for digest, survey in self._surveys.items()
                if asks_for(survey, attribute_id) and self._enrolments[digest].state == "active"
                # What a round reads with an evolving attribute is a value of its own, whichever was pinned.
                if is_static(survey) and first_round(survey, now_s) is not None
            ]
            rows = self._reserve(wanted)
            if rows is None:
                return Correction(attribute_id, "refused", "over_budget")
            self._ledger.memoise_anew(attribute_id, pin_version, pinned, rows)
            self._refresh_attributes()
            self._filter_state.reserved(rows, self._surveys)
            return Correction(attribute_id, "corrected")

    def _pin_version(self, survey: Survey, anew: Mapping[str, int] | None = None) -> int:
        """Return the pin version of a survey's answers, `anew` being about to be pinned."""
        pinned = {stored.id: stored.pin_version for stored in self._attributes.values()} | dict(anew or {})
        return joined_pin_versions(survey, [pinned[attribute.id] for attribute in survey.attributes])

    def _reserve(self, wanted: list[tuple[Survey, int, int]]) -> list[TranscriptEntry] | None:
        """Reserve all of the wanted answers, or return None.

        The filter in memory is ahead of the file until the rows are written; if that fails, the ledger is
        closed for good and a new agent rebuilds the filter from what the file says.
        """
        if not wanted:
            return []  # nothing is granted, so that it fits even where the budget is overspent
        tickets = self._filter_state.filter.reserve_all(
            [scheduled_query(survey, slot, pin_version=pin_version) for survey, slot, pin_version in wanted]
        )
        if tickets is None:
            return None
        return [
            TranscriptEntry("reserve", ticket, survey.digest, slot, pin_version)
            for (survey, slot, pin_version), ticket in zip(wanted, tickets, strict=True)
        ]

    def enrol(self, survey: Survey) -> Enrolment:
        """Take part in a survey, or say why not; its whole schedule is reserved now, or nothing is.

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
            last_closed = max(last_closed_round(survey, now_s), -1 if known is None else known.last_closed)
            pin_version = self._pin_version(survey)
            served = {
                slot
                for (digest, slot), pinned in self._filter_state.pin_versions.items()
                if digest == survey.digest and (pinned == pin_version or not is_static(survey))
            }
            wanted = [slot for slot in scheduled_answers(survey, last_closed) if slot not in served]
            refusal = self._unfit(survey, wanted, pin_version, before=len(served))
            if refusal is not None:
                return self._refused(survey, refusal, now_s)
            given_up = any((survey.digest, slot, pin_version) in self._filter_state.void for slot in wanted)
            rows = None if given_up else self._reserve([(survey, slot, pin_version) for slot in wanted])
            if rows is None:
                return self._refused(survey, "over_budget", now_s)
            high_water = last_closed if known is None else max(last_closed, known.high_water)
            stored = StoredEnrolment(survey.digest, survey.canonical, last_closed, high_water)
            self._ledger.add_enrolment(stored, rows)
            self._surveys[survey.digest], self._enrolments[survey.digest] = survey, stored
            self._answered.setdefault(survey.digest, set())
            self._filter_state.reserved(rows, self._surveys)
            self._refusals.pop(survey.digest, None)
            return Enrolment(survey.id, survey.version, survey.digest, "enrolled")

    def _unfit(
        self, survey: Survey, wanted: Sequence[int], pin_version: int, *, before: int
    ) -> Refusal | None:
        """Return why a schedule is refused before its queries are built, None if the filter decides.

        Args:
            survey: The survey.
            wanted: Slots that would be reserved.
            pin_version: Pin version of its attributes.
            before: How many slots of it were reserved before.
        """
        canonicals = {digest: len(each.canonical) for digest, each in self._surveys.items()}
        canonicals[survey.digest] = len(survey.canonical)
        if not self._policy.holds(
            before + len(wanted),
            ledger_slots=self._filter_state.slots + len(wanted),
            ledger_bytes=sum(canonicals.values()),
        ):
            return "too_large"
        if not wanted or is_static(survey):
            return None
        one = scheduled_query(survey, wanted[0], pin_version=pin_version)
        return None if rounds_fit(one, len(wanted), self._filter_state.filter.headroom) else "over_budget"

    def _refused(self, survey: Survey, reason: Refusal | None, now_s: float | None) -> Enrolment:
        """Record a refusal for the owner to see; the same refusal is written once."""
        known = self._refusals.get(survey.digest)
        if reason is not None and now_s is not None and (known is None or known.reason != reason):
            self._ledger.keep_refusal(self._told(survey, reason, now_s))
            self._refusals = {stored.digest: stored for stored in self._ledger.refusals()}
        return Enrolment(survey.id, survey.version, survey.digest, "refused", reason)

    def _told(self, survey: Survey, reason: Refusal, now_s: float) -> StoredRefusal:
        """Return a refusal as it is kept; what was left of the budget could tell an answer not yet seen."""
        told = not self._ledger.has_unseen()
        headroom = max(0.0, self._ledger.budget - self._filter_state.committed) if told else None
        epsilon = survey.channel.epsilon
        return StoredRefusal(
            survey.digest, survey.id, survey.version, survey.title, epsilon, reason, headroom, now_s
        )

    def _refusal(self, survey: Survey, now_s: float | None) -> Refusal | None:
        """Return why a survey is refused before the budget is asked, None if it is not."""
        if survey.digest in self._cancelled:
            return "cancelled"
        if now_s is None:
            return "clock_not_trusted"
        known = (self._attributes.get(attribute.id) for attribute in survey.attributes)
        registered = {stored.id: _attribute(stored) for stored in known if stored is not None}
        largest = self._policy.max_epsilon
        largest = self._ledger.budget if largest is None else largest
        return check_eligibility(survey, registered, max_epsilon=largest, now_s=now_s) or consent(
            survey, self._policy, self._ledger.consents()
        )

    def answer(self) -> tuple[Answer, ...]:
        """Answer every survey whose round is open now and not answered yet, each in one transaction on disk.

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
        key = (survey.digest, scheduled_answer_of(survey, round_number))
        symbol = self._filter_state.recorded.get(key)
        record: TranscriptEntry | None = None
        pins: list[tuple[str, bytes]] = []
        pin_version = self._filter_state.pin_versions.get(key)
        if pin_version is None:
            return None  # nothing was reserved for it
        if symbol is None:
            if is_static(survey) and pin_version != self._pin_version(survey):
                # Reserved for a value that was corrected since: on its coordinate the new one would merge
                # wrongly. It stays forfeited, even if the clock is set back into the survey's last round.
                return None
            ticket = self._filter_state.open[key][0]
            encoded = [self._encoded_value(attribute, now_s, pins) for attribute in survey.attributes]
            symbol = self._perturb(survey, encoded)
            record = TranscriptEntry("record", ticket, *key, pin_version, symbol)
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
            pin_version=pin_version,
            spent_values=spent,
        )
        # From here on the answer exists; before, it did not, and the symbol was shown to nobody.
        self._answered[survey.digest].add(round_number)
        if record is not None:
            self._filter_state.record(record, survey)
        if pins:
            self._refresh_attributes()
        for attribute_id, _ in pins:
            self._readings.pop(attribute_id, None)
        for attribute_id in spent:
            del self._kept[attribute_id]
        return Answer(survey.id, survey.digest, round_number, report_id)

    def _encoded_value(
        self, attribute: Attribute, now_s: float, pins: list[tuple[str, bytes]]
    ) -> EncodedValue:
        """Return the reading to answer with; what to pin along with the answer is added to `pins`."""
        pinned = self._attributes[attribute.id].memoised
        if pinned is not None:
            return unpack_encoded(attribute, pinned)
        reading = self._readings.get(attribute.id, encode(attribute, None))
        if attribute.kind == "evolving":
            kept = self._kept.get(attribute.id)
            if attribute.id not in self._readings and kept and kept.since_s <= now_s < kept.until_s:
                reading = unpack_encoded(attribute, kept.value)
            return reading
        # Missing is pinned too: a later survey that read another value on this coordinate would merge
        # wrongly.
        pins.append((attribute.id, pack_encoded(reading)))
        return reading

    def _perturb(self, survey: Survey, encoded: Sequence[EncodedValue]) -> Symbol:
        """Return one symbol for a reading per attribute, drawn from the operating system's generator."""
        return survey.channel.perturb(channel_input(survey, encoded))

    def _refresh_attributes(self) -> None:
        self._attributes = {stored.id: stored for stored in self._ledger.attributes()}


def _attribute(stored: StoredAttribute) -> Attribute:
    try:
        return attribute_from_spec(wire.unpack(stored.spec, "attribute"))
    except HubbubError:
        raise LedgerCorrupt("an attribute in the ledger cannot be read") from None
