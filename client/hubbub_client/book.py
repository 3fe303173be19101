"""The privacy filter as a transcript left it, and the answers it remembers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from hubbub.accounting import BayesianFilter
from hubbub.errors import HubbubError
from hubbub.survey import Survey
from hubbub_client.errors import LedgerCorrupt
from hubbub_client.schedule import slot_query
from hubbub_client.transcript import Row

Slot: TypeAlias = tuple[bytes, int]
"""(survey digest, slot): see `schedule` for what a slot is."""


@dataclass(slots=True)
class Book:
    """The filter as the transcript left it.

    Attributes:
        filter: Ready for the next decision.
        open: Reservations not consumed: slot to (ticket, generation).
        recorded: Answers given: slot to symbol.
    """

    filter: BayesianFilter
    open: dict[Slot, tuple[int, int]] = field(default_factory=dict)
    recorded: dict[Slot, int] = field(default_factory=dict)

    def reserved(self, rows: Iterable[Row]) -> None:
        """Takes note of reservations that the filter has granted."""
        for row in rows:
            self.open[row.digest, row.slot] = (row.ticket, row.generation)

    def record(self, row: Row) -> None:
        """Consumes a reservation, in the filter and here."""
        if row.symbol is None or self.open.get((row.digest, row.slot)) != (row.ticket, row.generation):
            raise LedgerCorrupt("a transcript record must consume an open reservation")
        self.filter.record(row.ticket, row.symbol)
        del self.open[row.digest, row.slot]
        self.recorded[row.digest, row.slot] = row.symbol


def replay(rows: Iterable[Row], surveys: Mapping[bytes, Survey], *, budget: float) -> Book:
    """The book that `rows` add up to.

    Args:
        rows: The transcript, oldest first.
        surveys: Every survey that it names, by digest.
        budget: The ledger's lifetime budget.

    Raises:
        LedgerCorrupt: If the filter does not come to the same tickets and decisions.
    """
    book = Book(BayesianFilter(budget))
    try:
        # An enrolment reserved its schedule in one decision, so it is replayed as one.
        for (kind, digest), group in groupby(rows, key=lambda row: (row.kind, row.digest)):
            steps = list(group)
            if kind == "record":
                for row in steps:
                    book.record(row)
                continue
            survey = surveys[digest]
            queries = [slot_query(survey, row.slot, generation=row.generation) for row in steps]
            if book.filter.reserve_all(queries) != tuple(row.ticket for row in steps):
                raise LedgerCorrupt("a transcript reservation does not follow from the rows before it")
            book.reserved(steps)
    except (HubbubError, KeyError):
        raise LedgerCorrupt("the transcript does not replay: a row names what does not exist") from None
    return book
