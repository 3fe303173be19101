"""The answers of a device: one report for every round that is open, drawn, stored and queued at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from hubbub import wire
from hubbub.channels import Symbol
from hubbub.survey import Survey
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.agent.encoded_value import EncodedValue, channel_input
from hubbub_client.agent.values import Values
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.stored import StoredCheck
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import (
    attributes_of,
    is_static,
    joined_part_versions,
    part_of,
    part_query,
    part_symbol,
    scheduled_answer_of,
)
from hubbub_client.upload.outcomes import Answer

if TYPE_CHECKING:
    from hubbub.mechanisms import SampledParts
    from hubbub.survey import Bundle


def random_id(digest: bytes, round_number: int) -> bytes:
    """Return the random id of a report."""
    return os.urandom(wire.ID_BYTES)


class Answerer:
    """The answers of one device, each in one transaction on disk.

    Nothing is sent here.

    Args:
        state: The device's state.
        values: The values to answer with.
        report_id: Return the id of the report of a survey (its digest) and round, the same at every call
            until the answer is stored.
        planned: Return the check that will be taken for a report, None for almost all.
    """

    def __init__(
        self,
        state: DeviceState,
        values: Values,
        report_id: Callable[[bytes, int], bytes] = random_id,
        planned: Callable[[Survey, wire.Report], StoredCheck | None] | None = None,
    ) -> None:
        self._state, self._values, self._report_id, self._planned = state, values, report_id, planned

    def answer(self, *, now_s: float | None) -> tuple[Answer, ...]:
        """Answer every survey whose round is open and not answered yet; see `Agent.answer`.

        Args:
            now_s: Clock time, epoch seconds; None if it is not trusted: then nothing is answered.
        """
        if now_s is None:
            return ()
        if self._state.ledger.paused():
            self._values.drop_unwaited(now_s, "past")
            return ()
        self._values.keep_past(now_s)
        made = [self._answer(survey, number, now_s) for survey, number in self._state.open_rounds(now_s)]
        return tuple(answer for answer in made if answer is not None)

    def _answer(self, survey: Survey, round_number: int, now_s: float) -> Answer | None:
        state, filter_state = self._state, self._state.filter_state
        key = (survey.digest, scheduled_answer_of(survey, round_number))
        symbol = filter_state.recorded.get(key)
        record: TranscriptEntry | None = None
        pins: list[tuple[str, bytes]] = []
        pin_version = filter_state.pin_versions.get(key)
        if pin_version is None:
            return None  # nothing was reserved for it
        if symbol is None:
            if is_static(survey) and pin_version != state.pin_version(survey):
                # Reserved for a value that was corrected since: on its coordinate the new one would merge
                # wrongly. It stays forfeited, even if the clock is set back into the survey's last round.
                return None
            ticket = filter_state.open[key][0]
            if survey.form.samples_parts:
                symbol, pins = self._answer_part(survey, cast("Bundle", survey.form), key[1], now_s)
                record = self._part_record(
                    TranscriptEntry("record", ticket, *key, pin_version, symbol), survey
                )
            else:
                encoded, pins = self._values.read(survey, round_number, now_s)
                symbol = self._perturb(survey, encoded)
                entry = TranscriptEntry("record", ticket, *key, pin_version, symbol)
                record = filter_state.proved(entry, survey)
        report_id = self._report_id(survey.digest, round_number)
        report = wire.Report(survey.digest, round_number, report_id, symbol)
        kept = self._values.after(survey, round_number, now_s)
        state.ledger.add_answer(
            digest=survey.digest,
            round_number=round_number,
            report_id=report_id,
            report=wire.encode_report(report),
            record=record,
            pins=pins,
            pin_version=pin_version,
            kept=kept,
            check=None if self._planned is None else self._planned(survey, report),
        )
        # From here on the answer exists; before, it did not, and the symbol was shown to nobody.
        state.answered[survey.digest].add(round_number)
        if record is not None:
            filter_state.record(record, survey)
        self._values.answered(pins, kept)
        return Answer(survey.id, survey.digest, round_number, report_id)

    def _answer_part(
        self, survey: Survey, form: Bundle, slot: int, now_s: float
    ) -> tuple[bytes, list[tuple[str, bytes]]]:
        """Return one symbol about the part that the coin picks, and what it memoises: no other value is read.

        The coin was tossed with the enrolment, and is not tossed again for another value.
        """
        channel = cast("SampledParts", survey.channel)
        seed = self._state.enrolments[survey.digest].slot_seed
        if seed is None:
            raise LedgerCorruptError("a bundle in the ledger must have a seed")
        part = part_of(survey, seed, slot)
        members = channel.parts[part].members
        encoded, pins = self._values.read_now([survey.attributes[member] for member in members], now_s)
        own = [int(form.encodings[m][cast(int, value)]) for m, value in zip(members, encoded, strict=True)]
        return channel.answer(part, channel.cell_in(part, own)), pins

    def _part_record(self, entry: TranscriptEntry, survey: Survey) -> TranscriptEntry:
        """Return the row of a bundle's answer: joined with what is known of its values, or by itself."""
        symbol = cast(bytes, entry.symbol)
        versions = [self._state.attributes[each.id].pin_version for each in attributes_of(survey, symbol)]
        joined = joined_part_versions(versions)
        query, own = part_query(survey, symbol, joined), part_symbol(survey, symbol)
        if self._state.filter_state.filter.branch_of(entry.ticket, query, own) == "apart":
            return entry
        return replace(entry, kind="resolve", part_versions=joined)

    def _perturb(self, survey: Survey, encoded: Sequence[EncodedValue]) -> Symbol:
        """Return one symbol for a value per attribute, drawn from the operating system's generator."""
        return survey.channel.perturb(channel_input(survey, encoded))
