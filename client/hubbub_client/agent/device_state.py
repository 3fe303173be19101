"""The state of one device, as its ledger has it: attributes, surveys, answers, lists and the filter.

The other parts of an agent decide and write; they share this state, and each keeps it equal to the ledger
that it has just written to. Callers hold the agent's lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from hubbub import wire
from hubbub.errors import HubbubError
from hubbub.survey import Attribute, Survey, attribute_from_spec
from hubbub_client.agent.filter_state import replay
from hubbub_client.errors import AttributeRefusedError, LedgerCorruptError
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.stored import StoredAttribute, StoredEnrolment
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import (
    MEMOISED,
    asks_for,
    attributes_of,
    draws,
    due,
    is_drawn,
    joined_pin_versions,
    last_closed_round,
    members_of,
    part_of,
    scheduled_answer_of,
    scheduled_query,
)
from hubbub_client.upload.outcomes import EnrolmentStatus

Wanted: TypeAlias = tuple[Survey, int, int]
"""(survey, slot, pin version): an answer to reserve."""

_MOST_COMING: Final = 128
"""Rounds of one survey that are looked at for tokens: as many as any issuer gives in a period."""


class DeviceState:
    """The state of one device.

    Args:
        ledger: An open ledger; the only memory there is.

    Attributes:
        ledger: The ledger.
        attributes: Registered attributes, by id.
        enrolments: Surveys that the device takes or took part in, by digest, in the order of enrolment.
        surveys: The surveys of `enrolments`, decoded, by digest.
        answered: Rounds answered, by digest.
        kept: Evolving values that the ledger holds for a round still to be answered, by attribute id.
        refusals: Surveys that were refused, by digest.
        cancelled: Digests of surveys that are cancelled for good.
        lists: The newest list of surveys seen of every key.
        filter_state: The filter as the transcript left it.

    Raises:
        LedgerCorruptError: What the ledger says does not add up.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.load()

    def load(self) -> None:
        """Read the ledger, and rebuild the filter from the transcript."""
        self.refresh_attributes()
        self.refresh_enrolments()
        self.surveys = {stored.digest: _survey(stored) for stored in self.enrolments.values()}
        self.answered: dict[bytes, set[int]] = {digest: set() for digest in self.surveys}
        for answer in self.ledger.answers():
            self.answered[answer.digest].add(answer.round)
        self.kept = {stored.attribute: stored for stored in self.ledger.kept_values()}
        self.refresh_refusals()
        self.refresh_lists()
        self.replay()

    def replay(self) -> None:
        """Rebuild the filter from the transcript."""
        self.filter_state = replay(
            self.ledger.transcript(), self.surveys, budget=self.ledger.budget, closed=self.ledger.closed()
        )

    def refresh_attributes(self) -> None:
        """Read the attributes again, after a change of one."""
        self.attributes = {stored.id: stored for stored in self.ledger.attributes()}

    def refresh_enrolments(self) -> None:
        """Read the enrolments again, after surveys were left or cancelled."""
        self.enrolments = {stored.digest: stored for stored in self.ledger.enrolments()}

    def refresh_refusals(self) -> None:
        """Read the refusals again, after one was stored: the ledger keeps only the newest."""
        self.refusals = {stored.digest: stored for stored in self.ledger.refusals()}

    def refresh_lists(self) -> None:
        """Read again which lists were seen, and what they cancelled."""
        self.cancelled, self.lists = self.ledger.cancelled(), self.ledger.lists()

    def stored_attribute(self, attribute_id: str) -> StoredAttribute:
        """Return a registered attribute as it is stored.

        Raises:
            AttributeRefusedError: No such attribute is registered.
        """
        stored = self.attributes.get(attribute_id)
        if stored is None:
            raise AttributeRefusedError(f"attribute {attribute_id!r} must be registered first")
        return stored

    def open_rounds(self, now_s: float, attribute_id: str | None = None) -> list[tuple[Survey, int]]:
        """Return surveys, all or those that read an attribute, with their round, open and not answered."""
        found: list[tuple[Survey, int]] = []
        for digest, stored in self.enrolments.items():
            survey = self.surveys[digest]
            if stored.state == "active" and (attribute_id is None or asks_for(survey, attribute_id)):
                number = due(survey, stored.last_closed, self.answered[digest], now_s, stored.slot_seed)
                if number is not None and self._reads(survey, number, attribute_id):
                    found.append((survey, number))
        return found

    def _reads(self, survey: Survey, number: int, attribute_id: str | None) -> bool:
        """Return whether an answer in a round reads an attribute of its survey; a bundle's reads its part."""
        seed = self.enrolments[survey.digest].slot_seed
        if attribute_id is None or seed is None or not survey.form.samples_parts:
            return True
        members = members_of(survey, part_of(survey, seed, scheduled_answer_of(survey, number)))
        return any(attribute.id == attribute_id for attribute in members)

    def rounds_after_lag(self, now_s: float) -> list[tuple[Survey, int]]:
        """Return transitions that will ask for the values of now, with the round that does."""
        found: list[tuple[Survey, int]] = []
        for digest, survey in self.surveys.items():
            current = survey.round_at(now_s) if survey.form.lag else None
            if current is not None and self.waits_for(digest, number := current + survey.form.lag, now_s):
                found.append((survey, number))
        return found

    def waits_for(self, digest: bytes, number: int, now_s: float) -> bool:
        """Return whether a round of a survey will be answered: it is drawn, not answered, and not over."""
        survey, stored = self.surveys[digest], self.enrolments[digest]
        return (
            stored.state == "active"
            and max(last_closed_round(survey, now_s), stored.last_closed) < number < survey.rounds
            and number not in self.answered[digest]
            and is_drawn(survey, number, stored.slot_seed)
        )

    def coming_rounds(self, now_s: float, ahead_s: float) -> list[tuple[bytes, int]]:
        """Return (digest, round) of what may be answered within `ahead_s` seconds, soonest first."""
        found: list[tuple[int, bytes, int]] = []
        for digest, stored in self.enrolments.items():
            survey = self.surveys[digest]
            if stored.state != "active":
                continue
            first = max(last_closed_round(survey, now_s), stored.last_closed) + 1
            for number in range(first, min(survey.rounds, first + _MOST_COMING)):
                begins_s = survey.round_start_s(number)
                if begins_s > now_s + ahead_s:
                    break
                if number not in self.answered[digest] and is_drawn(survey, number, stored.slot_seed):
                    found.append((begins_s, digest, number))
        return [(digest, number) for _, digest, number in sorted(found)]

    def last_answered_s(self) -> int:
        """Return the begin of the latest round that was ever answered, or was over at enrolment; else 0.

        What counts as over before the first round that can be answered may have its time to come.
        """
        return max(
            (
                self.surveys[digest].round_start_s(number)
                for digest, stored in self.enrolments.items()
                for number in (stored.high_water, *self.answered[digest])
                if number >= self.surveys[digest].form.lag
            ),
            default=0,
        )

    def pin_version(self, survey: Survey, anew: Mapping[str, int] | None = None) -> int:
        """Return the pin version of a survey's answers, with the versions in `anew` in place of today's.

        What is reserved for a bundle covers every version, so its own changes only where it was answered, and
        an attribute of its part was pinned anew since.
        """
        pinned = {stored.id: stored.pin_version for stored in self.attributes.values()} | dict(anew or {})
        if survey.form.samples_parts:
            slot = (survey.digest, MEMOISED)
            known, symbol = self.filter_state.pin_versions.get(slot, 0), self.filter_state.recorded.get(slot)
            if not isinstance(symbol, bytes):
                return known
            now = sum(pinned[attribute.id] for attribute in attributes_of(survey, symbol))
            return max(known + 1, now) if now > self.filter_state.answered_at[slot] else known
        return joined_pin_versions(survey, [pinned[attribute.id] for attribute in survey.attributes])

    def reserve(self, wanted: list[Wanted]) -> list[TranscriptEntry] | None:
        """Reserve all of the wanted answers, or return None; the caller writes the entries to the ledger.

        The filter in memory is ahead of the file until they are written; if that fails, the ledger is
        closed for good and a new agent rebuilds the filter from what the file says.
        """
        if not wanted:
            return []  # nothing is granted, so that it fits even where nothing is left
        tickets = self.filter_state.filter.reserve_all(
            [scheduled_query(survey, slot, pin_version=pin_version) for survey, slot, pin_version in wanted]
        )
        if tickets is None:
            return None
        return [
            self.filter_state.proved(
                TranscriptEntry("reserve", ticket, survey.digest, slot, pin_version), survey
            )
            for (survey, slot, pin_version), ticket in zip(wanted, tickets, strict=True)
        ]

    def enrolment_statuses(self) -> tuple[EnrolmentStatus, ...]:
        """Return where each survey stands, in the order of enrolment."""
        return tuple(
            EnrolmentStatus(
                survey.id,
                survey.version,
                digest,
                survey.rounds,
                max(self.enrolments[digest].high_water, *self.answered[digest], -1),
                len(self.answered[digest]),
                self.enrolments[digest].state,
            )
            for digest, survey in self.surveys.items()
        )


def decode_attribute(stored: StoredAttribute) -> Attribute:
    """Return the attribute that is stored.

    Raises:
        LedgerCorruptError: It cannot be read.
    """
    try:
        return attribute_from_spec(wire.unpack(stored.spec, "attribute"))
    except HubbubError:
        raise LedgerCorruptError("an attribute in the ledger cannot be read") from None


def _survey(stored: StoredEnrolment) -> Survey:
    try:
        survey = Survey.from_canonical(stored.canonical)
    except HubbubError:
        raise LedgerCorruptError("a survey in the ledger cannot be read") from None
    if survey.digest != stored.digest:
        raise LedgerCorruptError("a survey in the ledger does not have the digest it is stored under")
    if (stored.slot_seed is not None) != draws(survey):
        raise LedgerCorruptError(
            "a survey in the ledger must have a seed if it rotates or has parts, and only then"
        )
    return survey
