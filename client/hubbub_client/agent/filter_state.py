"""The privacy filter as a transcript left it, the answers it remembers, and what was closed before it.

`forget` closes every coordinate at once: nothing of it is ever read or answered again, so its loss is a
constant that adds to whatever follows. A fresh filter with the rest of the budget then decides as the old one
would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import TypeAlias

from hubbub.channels import QUANTA_PER_NAT, Symbol
from hubbub.errors import HubbubError
from hubbub.filter import BayesianFilter
from hubbub.survey import Score, Survey
from hubbub_client.errors import LedgerCorrupt
from hubbub_client.ledger.stored import Closed
from hubbub_client.ledger.transcript import Row
from hubbub_client.surveys.schedule import PINNED, pinned_by, pinned_coordinate, slot_query

Slot: TypeAlias = tuple[bytes, int]
"""(survey digest, slot): see `schedule` for what a slot is."""


@dataclass(slots=True)
class Book:
    """The filter as the transcript left it.

    Attributes:
        filter: Ready for the next decision.
        open: Reservations not consumed: slot to (ticket, generation).
        recorded: Answers given: slot to symbol.
        generations: Pin generation of every slot's last reservation. Where a value is pinned anew, the slot's
            earlier reservation and memo are not read again; the filter keeps what they cost.
        closed: What everything before the filter's first step cost.
        pins: The newest pin generation of every attribute that a reservation was made for.
        defaults: What is missing reads as, to the first score of the same pinned numbers.
        regrouped: Whether other scores of them read it as something else: an earlier version, which took
            both for one, may have granted too much.
        void: Slots whose reservation was given back, each with its generation: never reserved again.
        slots: Reservations ever made here, corrections and what was given back included: each is a row.

    Coordinates that are over are closed in the filter: what they cost stays, what they said goes. A round's
    is over once it is answered, because no other query reads it. A corrected value's is over with the first
    reservation for the new one; where a table had joined it with others, their combinations would otherwise
    multiply with every correction.
    """

    filter: BayesianFilter
    closed: Closed = field(default_factory=Closed)
    open: dict[Slot, tuple[int, int]] = field(default_factory=dict)
    recorded: dict[Slot, Symbol] = field(default_factory=dict)
    generations: dict[Slot, int] = field(default_factory=dict)
    pins: dict[str, int] = field(default_factory=dict)
    defaults: dict[tuple[tuple[str, ...], int], tuple[float, ...]] = field(default_factory=dict)
    regrouped: bool = False
    void: set[tuple[bytes, int, int]] = field(default_factory=set)
    slots: int = 0

    @property
    def loss(self) -> float:
        """Realised loss of everything ever answered."""
        return self.closed.loss / QUANTA_PER_NAT + self.filter.loss

    @property
    def committed(self) -> float:
        """The same with all that was ever reserved and not answered at its worst."""
        return self.closed.committed / QUANTA_PER_NAT + self.filter.committed

    def total(self) -> Closed:
        """What everything so far costs, in whole quanta: what `forget` closes.

        It may exceed the budget: see `too_much`.
        """
        return Closed(
            self.closed.loss + math.ceil(Fraction(self.filter.loss) * QUANTA_PER_NAT),
            self.closed.committed + math.ceil(Fraction(self.filter.committed) * QUANTA_PER_NAT),
        )

    def reserved(self, rows: Iterable[Row], surveys: Mapping[bytes, Survey]) -> None:
        """Takes note of reservations that the filter has granted."""
        for row in rows:
            slot = (row.digest, row.slot)
            self.slots += 1
            self.open[slot] = (row.ticket, row.generation)
            self.generations[slot] = row.generation
            self.recorded.pop(slot, None)
            self._read_defaults(row, surveys[row.digest])
            for attribute_id, generation in pinned_by(surveys[row.digest], row.slot, row.generation):
                known = self.pins.setdefault(attribute_id, generation)
                if generation > known:
                    self.filter.close_joined(pinned_coordinate(attribute_id, known))
                    self.pins[attribute_id] = generation

    def _read_defaults(self, row: Row, survey: Survey) -> None:
        form = survey.form
        if isinstance(form, Score) and row.slot == PINNED:
            numbers = tuple(attribute.id for attribute in form.attributes), row.generation
            self.regrouped |= self.defaults.setdefault(numbers, form.defaults) != form.defaults

    def record(self, row: Row, survey: Survey) -> None:
        """Consumes a reservation, in the filter and here."""
        self._consume(row, survey, self.filter.record)

    def repeat(self, row: Row, survey: Survey) -> None:
        """The same for a transcript that is replayed."""
        self._consume(row, survey, self.filter.repeat)

    def _consume(self, row: Row, survey: Survey, take: Callable[[int, Symbol], None]) -> None:
        if row.symbol is None or self.open.get((row.digest, row.slot)) != (row.ticket, row.generation):
            raise LedgerCorrupt("a transcript record must consume an open reservation")
        take(row.ticket, row.symbol)
        if row.slot != PINNED:
            (coordinate,) = slot_query(survey, row.slot, generation=row.generation).keys
            self.filter.close(coordinate)
        del self.open[row.digest, row.slot]
        self.recorded[row.digest, row.slot] = row.symbol

    def unanswered(self, digest: bytes) -> list[Row]:
        """What is reserved for a survey and could still be answered, as the rows that give it back.

        What a correction or a `forget` has given up is not among it: it stays spent.
        """
        return [
            Row("cancel", ticket, digest, slot, generation)
            for (survey, slot), (ticket, generation) in self.open.items()
            if survey == digest
        ]

    def too_much(self) -> list[Row]:
        """Give back open reservations, the newest survey's first, until the rest fits; return their rows.

        Until scores of different defaults were told apart, a ledger could grant more than its budget. What
        was answered then is spent, and is stated as it is; what was not must not be answered any more. A
        survey's schedule goes as a whole, as it was granted. Where no such scores meet, the proof that was
        made when each reservation was granted still holds, however high the bound comes out today.
        """
        given_back: list[Row] = []
        if not self.regrouped:
            return given_back
        newest: dict[bytes, int] = {}
        for (digest, _), (ticket, _) in self.open.items():
            newest[digest] = max(ticket, newest.get(digest, ticket))
        for digest in sorted(newest, key=newest.__getitem__, reverse=True):
            if self.filter.headroom >= 0:
                break
            rows = self.unanswered(digest)
            for row in rows:
                self.cancel(row)
            given_back += rows
        return given_back

    def cancel(self, row: Row) -> None:
        """Gives a reservation back, in the filter and here; its slot is never answered."""
        if self.open.get((row.digest, row.slot)) != (row.ticket, row.generation):
            raise LedgerCorrupt("a transcript cancellation must void an open reservation")
        self.filter.cancel(row.ticket)
        self.void.add((row.digest, row.slot, row.generation))
        del self.open[row.digest, row.slot], self.generations[row.digest, row.slot]


def fresh(budget: float, closed: Closed) -> Book:
    """A book without entries, for what is left of a budget: nothing, if more was closed (`Book.too_much`)."""
    left = int(Fraction(budget) * QUANTA_PER_NAT) - closed.committed
    # Every query costs more than one quantum, so a filter of one accepts none: it stands for nothing left.
    return Book(BayesianFilter(max(left, 1) / QUANTA_PER_NAT), closed)


def replay(
    rows: Iterable[Row], surveys: Mapping[bytes, Survey], *, budget: float, closed: Closed | None = None
) -> Book:
    """The book that `rows` add up to.

    Args:
        rows: The transcript, oldest first.
        surveys: Every survey that it names, by digest.
        budget: The ledger's lifetime budget.
        closed: What was closed before the rows; nothing, if None.

    Raises:
        LedgerCorrupt: If the filter does not come to the same tickets and decisions.
    """
    book = Book(BayesianFilter(budget)) if closed is None else fresh(budget, closed)
    try:
        # An enrolment reserved its schedule in one decision, so it is replayed as one.
        for (kind, digest), group in groupby(rows, key=lambda row: (row.kind, row.digest)):
            steps = list(group)
            survey = surveys[digest]
            if kind != "reserve":
                for row in steps:
                    if kind == "record":
                        book.repeat(row, survey)
                    else:
                        book.cancel(row)
                continue
            queries = [slot_query(survey, row.slot, generation=row.generation) for row in steps]
            if book.filter.repeat_all(queries) != tuple(row.ticket for row in steps):
                raise LedgerCorrupt("a transcript reservation does not follow from the rows before it")
            book.reserved(steps, surveys)
        book.filter.settle()
    except (HubbubError, KeyError):
        raise LedgerCorrupt("the transcript does not replay: a row names what does not exist") from None
    return book
