"""The privacy filter as a transcript left it, the answers it remembers, and what was closed before it.

`forget` closes every coordinate at once: nothing of it is ever read or answered again, so its loss is a
constant that adds to whatever follows. A fresh filter with the rest of the budget then decides as the old one
would.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias

from hubbub.channels import UNITS_PER_NAT, Symbol
from hubbub.errors import HubbubError
from hubbub.filter import BayesianFilter
from hubbub.survey import Survey
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.stored import SpentBudget
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.load import SurveyLoad, answer_work, survey_load
from hubbub_client.surveys.schedule import (
    MEMOISED,
    memoised_by,
    memoised_coordinate,
    part_query,
    part_symbol,
    scheduled_query,
    split_part_versions,
)

ScheduledAnswer: TypeAlias = tuple[bytes, int]
"""(survey digest, slot): see `schedule` for what a slot is."""


@dataclass(slots=True)
class FilterState:
    """The filter as the transcript left it.

    Attributes:
        filter: Ready for the next decision.
        open: Reservations not consumed: slot to (ticket, pin version).
        recorded: Answers given: slot to symbol.
        answered_at: How often the values of a bundle's part had been pinned anew when it was answered; of one
            that was kept apart its pin version, which is never more.
        pin_versions: Pin version of every slot's last reservation. Where a value is pinned anew, the slot's
            earlier reservation and memoised answer are not read again; the filter keeps what they cost.
        closed: What everything before the filter's first step cost.
        pins: The newest pin version of every attribute that a reservation was made for.
        void: Slots whose reservation was given back, each with its pin version: never reserved again.
        slots: Reservations ever made here, corrections and what was given back included: each is a row.
        load: The work and the memory of all of them.
        loaded: Digests of their surveys.

    Coordinates that are over are closed in the filter: what they cost stays, what they said goes. A round's
    is over once it is answered, because no other query reads it. A corrected value's is over with the first
    reservation for the new one; where a table had joined it with others, their combinations would otherwise
    multiply with every correction.
    """

    filter: BayesianFilter
    closed: SpentBudget = field(default_factory=SpentBudget)
    open: dict[ScheduledAnswer, tuple[int, int]] = field(default_factory=dict)
    recorded: dict[ScheduledAnswer, Symbol] = field(default_factory=dict)
    answered_at: dict[ScheduledAnswer, int] = field(default_factory=dict)
    pin_versions: dict[ScheduledAnswer, int] = field(default_factory=dict)
    pins: dict[str, int] = field(default_factory=dict)
    void: set[tuple[bytes, int, int]] = field(default_factory=set)
    slots: int = 0
    load: SurveyLoad = field(default_factory=lambda: SurveyLoad(0, 0))
    loaded: set[bytes] = field(default_factory=set)

    @property
    def loss(self) -> float:
        """Realised loss of everything ever answered."""
        return self.closed.loss / UNITS_PER_NAT + self.filter.loss

    @property
    def committed(self) -> float:
        """The loss with all that was ever reserved and not answered at its worst."""
        return self.closed.committed / UNITS_PER_NAT + self.filter.committed

    def total(self) -> SpentBudget:
        """Return what everything so far costs, in whole units: what `forget` closes."""
        return SpentBudget(
            self.closed.loss + math.ceil(Fraction(self.filter.loss) * UNITS_PER_NAT),
            self.closed.committed + math.ceil(Fraction(self.filter.committed) * UNITS_PER_NAT),
        )

    def reserved(self, entries: Iterable[TranscriptEntry], surveys: Mapping[bytes, Survey]) -> None:
        """Note reservations that the filter has granted."""
        for entry in entries:
            slot = (entry.digest, entry.slot)
            self.slots += 1
            self.load = self.load_with(surveys[entry.digest], 1)
            self.loaded.add(entry.digest)
            self.open[slot] = (entry.ticket, entry.pin_version)
            self.pin_versions[slot] = entry.pin_version
            self.recorded.pop(slot, None)
            for attribute_id, pin_version in memoised_by(
                surveys[entry.digest], entry.slot, entry.pin_version
            ):
                known = self.pins.setdefault(attribute_id, pin_version)
                if pin_version > known:
                    self.filter.close_joined(memoised_coordinate(attribute_id, known))
                    self.pins[attribute_id] = pin_version

    def load_with(self, survey: Survey, slots: int) -> SurveyLoad:
        """Return what the load would be with so many more reservations for a survey."""
        if not slots:
            return self.load
        if survey.digest in self.loaded:
            return SurveyLoad(self.load.work + slots * answer_work(survey), self.load.held)
        own = survey_load(survey, slots)
        return SurveyLoad(self.load.work + own.work, self.load.held + own.held)

    def proved(self, entry: TranscriptEntry, survey: Survey) -> TranscriptEntry:
        """Return a row with what is proved of the numbers that it is about, once it is taken in.

        Args:
            entry: A reservation that the filter has granted, or what is about to consume one: that changes
                nothing yet.
            survey: Its survey.
        """
        if entry.kind == "reserve":
            return replace(entry, bound=self.filter.bound(_coordinate(entry, survey)))
        return replace(entry, bound=self.filter.bound_after(entry.ticket, entry.symbol))

    def restore(self, entry: TranscriptEntry, survey: Survey) -> None:
        """Take in what is proved beside a row.

        Raises:
            LedgerCorruptError: A score's row has no proof; nothing is searched for in its place.
        """
        if entry.bound is not None:
            self.filter.restore(_coordinate(entry, survey), entry.bound)
        elif survey.form.shared_point is not None:
            raise LedgerCorruptError("a transcript row of a score must have its proof, got none")

    def record(self, entry: TranscriptEntry, survey: Survey) -> None:
        """Consume a reservation, in the filter and here: as it is answered, and as it is replayed."""
        if entry.symbol is None or self.open.get((entry.digest, entry.slot)) != (
            entry.ticket,
            entry.pin_version,
        ):
            raise LedgerCorruptError("a transcript record must consume an open reservation")
        if entry.kind == "resolve":
            self._join(entry, survey)
        else:
            self.filter.reapply(entry.ticket, entry.symbol)
        self.restore(entry, survey)
        if entry.slot != MEMOISED:
            self.filter.close(_coordinate(entry, survey))
        del self.open[entry.digest, entry.slot]
        self.recorded[entry.digest, entry.slot] = entry.symbol
        told = entry.part_versions
        counted = entry.pin_version if told is None else sum(split_part_versions(told))
        self.answered_at[entry.digest, entry.slot] = counted

    def _join(self, entry: TranscriptEntry, survey: Survey) -> None:
        """Record a bundle's answer with what is known of the values that it read, as it was decided then."""
        symbol, versions = entry.symbol, entry.part_versions
        query = part_query(survey, symbol, versions) if isinstance(symbol, bytes) else None
        if query is None or not isinstance(symbol, bytes):
            raise LedgerCorruptError("a transcript row about a part must be of a bundle's memoised answer")
        self.filter.resolve(entry.ticket, query, symbol, own=part_symbol(survey, symbol), branch="joined")

    def unanswered(self, survey: Survey) -> list[TranscriptEntry]:
        """Return the entries that cancel a survey's open reservations.

        Reservations that a correction or a `forget` has given up are not among them: they stay spent.
        """
        return [
            self.proved(TranscriptEntry("cancel", ticket, digest, slot, pin_version), survey)
            for (digest, slot), (ticket, pin_version) in self.open.items()
            if digest == survey.digest
        ]

    def cancel(self, entry: TranscriptEntry, survey: Survey) -> None:
        """Give a reservation back, in the filter and here; its slot is never answered."""
        if self.open.get((entry.digest, entry.slot)) != (entry.ticket, entry.pin_version):
            raise LedgerCorruptError("a transcript cancellation must void an open reservation")
        self.filter.recancel(entry.ticket)
        self.restore(entry, survey)
        self.void.add((entry.digest, entry.slot, entry.pin_version))
        del self.open[entry.digest, entry.slot], self.pin_versions[entry.digest, entry.slot]


def _coordinate(entry: TranscriptEntry, survey: Survey) -> Hashable:
    return scheduled_query(survey, entry.slot, pin_version=entry.pin_version).coordinate


def filter_state_of(budget: float, closed: SpentBudget) -> FilterState:
    """Return a state without entries for what is left of a budget: 0, if more was closed."""
    left = int(Fraction(budget) * UNITS_PER_NAT) - closed.committed
    # Every query costs more than one unit, so a filter of one accepts none: it stands for nothing left.
    return FilterState(BayesianFilter(max(left, 1) / UNITS_PER_NAT), closed)


def replay(
    rows: Iterable[TranscriptEntry],
    surveys: Mapping[bytes, Survey],
    *,
    budget: float,
    closed: SpentBudget | None = None,
) -> FilterState:
    """Return the filter state that `rows` add up to.

    Args:
        rows: The transcript, oldest first.
        surveys: Every survey that it names, by digest.
        budget: The ledger's lifetime budget.
        closed: What was closed before the rows; nothing, if None.

    Raises:
        LedgerCorruptError: If the filter does not come to the same tickets and decisions, or a row of a score
            has no proof.
    """
    state = FilterState(BayesianFilter(budget)) if closed is None else filter_state_of(budget, closed)
    try:
        # An enrolment reserved its schedule in one decision, so it is replayed as one.
        for (kind, digest), group in groupby(rows, key=lambda row: (row.kind, row.digest)):
            steps = list(group)
            survey = surveys[digest]
            if kind != "reserve":
                take = state.cancel if kind == "cancel" else state.record
                for row in steps:
                    take(row, survey)
                continue
            queries = [scheduled_query(survey, row.slot, pin_version=row.pin_version) for row in steps]
            if state.filter.reapply_all(queries) != tuple(row.ticket for row in steps):
                raise LedgerCorruptError("a transcript reservation does not follow from the rows before it")
            for row in steps:
                state.restore(row, survey)
            state.reserved(steps, surveys)
    except (HubbubError, KeyError):
        raise LedgerCorruptError("the transcript does not replay: a row names what does not exist") from None
    return state
