"""The account of a device's owner: one value that host, command line and page show alike.

Nothing here depends on an answer before it was sent. An owner who could tell what an answer says while it
waits could keep it back, and those who did would bias the survey. A realised loss tells, where the answers of
a channel differ in what they cost; so an answer that waits counts at its worst here, as if it were not given.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from hubbub import wire
from hubbub.channels import UNITS_PER_NAT
from hubbub.filter import MAX_BUDGET, BayesianFilter
from hubbub.survey import Survey
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.stored import SpentBudget, StoredAnswer, StoredRefusal
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys.schedule import (
    MEMOISED,
    Refusal,
    part_query,
    part_symbol,
    scheduled_answer_of,
    scheduled_query,
)
from hubbub_client.surveys.window import read_rounds_s, window_loss
from hubbub_client.upload.outcomes import SentReport

State: TypeAlias = Literal["active", "left", "cancelled"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the owner's record that no answer ever joined with another.

    Attributes:
        attributes: Ids of the attributes that it consists of.
        loss: What an observer can at most have learned about it, nats; an answer that waits to be sent counts
            at its worst.
    """

    attributes: tuple[str, ...]
    loss: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One survey that the device takes or took part in.

    Attributes:
        survey: The survey: what is asked, how, and when.
        state: As `EnrolmentStatus.state`.
        answered: Rounds answered since the last `forget`.
        sent: What the collector has of it, byte for byte.
        loss: What these reports alone can have given away, nats.
    """

    survey: Survey
    state: State
    answered: int
    sent: tuple[SentReport, ...]
    loss: float


@dataclass(frozen=True, slots=True)
class Refused:
    """One survey that asked and was refused, which only the owner learns.

    Attributes:
        survey_id: Its id.
        version: Its version.
        title: What it is called.
        epsilon: What one answer would have cost at most, nats.
        reason: Why; see `Enrolment`.
        headroom: What was left of the budget then, nats; None where it could tell an answer not yet sent.
        at_s: When, epoch seconds.
    """

    survey_id: str
    version: int
    title: str
    epsilon: float
    reason: Refusal
    headroom: float | None
    at_s: float


@dataclass(frozen=True, slots=True)
class Account:
    """The owner's account: neither a value nor an answer that waits to be sent follows from it.

    Attributes:
        budget: Lifetime epsilon.
        loss: What an observer can at most have learned in all, nats; an answer that waits to be sent counts
            at its worst.
        reserved: Set aside for rounds to come, at its worst, and forfeited for rounds that went by.
        left: The rest of the budget, into which a new survey must fit.
        forgotten: How much of `loss` was before the last `forget`.
        window: The most that all answers since then tell about what changed within some 7 days, nats; what
            is not sent counts at its worst. See `window_loss`.
        parts: The parts of the record; their losses add up to `loss` less `forgotten`.
        surveys: Every survey, in the order of enrolment.
        refusals: What was refused, the newest first.
        waiting: Reports in the outbox.
        paused: Whether nothing is answered and nothing sent.
    """

    budget: float
    loss: float
    reserved: float
    left: float
    forgotten: float
    window: float
    parts: tuple[Part, ...]
    surveys: tuple[Asked, ...]
    refusals: tuple[Refused, ...]
    waiting: int
    paused: bool


def account_of(
    *,
    closed: SpentBudget,
    rows: Sequence[TranscriptEntry],
    surveys: Mapping[bytes, Survey],
    states: Mapping[bytes, State],
    answers: Sequence[StoredAnswer],
    refusals: Iterable[StoredRefusal],
    budget: float,
    waiting: int,
    paused: bool,
) -> Account:
    """Return the account, from what the ledger holds.

    Args:
        closed: What everything before the last `forget` cost.
        rows: The transcript.
        surveys: Every survey, by digest.
        states: Whether each is active, left or cancelled.
        answers: Every answer.
        refusals: What was refused.
        budget: Lifetime epsilon.
        waiting: Reports in the outbox.
        paused: Whether the agent is paused.
    """
    sent = sent_reports(answers, rows, surveys)
    shown = {
        (answer.digest, scheduled_answer_of(surveys[answer.digest], answer.round), answer.pin_version)
        for answer in answers
        if answer.outcome not in {None, "withdrawn"}
    }
    given = {_key(row) for row in rows if row.symbol is not None}
    parts = tuple(
        Part(part, _worst(own, surveys, shown))
        for part in _parts(surveys.values())
        if (own := [r for r in rows if _key(r) in given and _ids(surveys[r.digest]) <= set(part)])
    )
    # Queries on different parts never meet in one component, so what the parts cost adds up to the whole.
    forgotten = closed.loss / UNITS_PER_NAT
    loss = forgotten + sum(part.loss for part in parts)
    committed = closed.committed / UNITS_PER_NAT + _worst(rows, surveys, shown)
    realised = {(report.digest, report.round): report.loss for report in sent}
    void = {_key(row) for row in rows if row.kind == "cancel"}
    window = window_loss(
        (
            read_rounds_s(surveys[row.digest], row.slot),
            realised.get((row.digest, row.slot), surveys[row.digest].channel.epsilon),
        )
        for row in rows
        if row.kind == "reserve" and row.slot != MEMOISED and _key(row) not in void
    )
    asked = []
    for digest, survey in surveys.items():
        own_reports = tuple(report for report in sent if report.digest == digest)
        answered = sum(answer.digest == digest for answer in answers)
        cost = sum(report.loss for report in own_reports)
        asked.append(Asked(survey, states[digest], answered, own_reports, cost))
    return Account(
        budget=budget,
        loss=loss,
        reserved=max(0.0, committed - loss),
        left=max(0.0, budget - committed),
        forgotten=forgotten,
        window=window,
        parts=parts,
        surveys=tuple(asked),
        refusals=tuple(
            Refused(r.survey_id, r.version, r.title, r.epsilon, r.reason, r.headroom, r.at_s)
            for r in refusals
        ),
        waiting=waiting,
        paused=paused,
    )


def _ids(survey: Survey) -> set[str]:
    """Return the attributes that a survey reads."""
    return {attribute.id for attribute in survey.attributes}


def _parts(surveys: Iterable[Survey]) -> list[tuple[str, ...]]:
    """Return attributes grouped by the surveys that read several of them."""
    found: list[set[str]] = []
    for survey in surveys:
        joined = _ids(survey)
        apart = [part for part in found if not part & joined]
        found = [*apart, joined.union(*(part for part in found if part & joined))]
    return sorted(tuple(sorted(part)) for part in found)


def _key(row: TranscriptEntry) -> tuple[bytes, int, int]:
    return row.digest, row.slot, row.pin_version


def _worst(
    rows: Sequence[TranscriptEntry], surveys: Mapping[bytes, Survey], shown: Container[tuple[bytes, int, int]]
) -> float:
    """Return the largest cost of the reservations by now, nats: realised where shown, else at worst."""
    accountant = BayesianFilter(MAX_BUDGET)
    void = {_key(row) for row in rows if row.kind != "reserve" and row.symbol is None}  # given back
    places: dict[tuple[bytes, int, int], int] = {}
    beyond = 0.0
    # In the order of the ledger, and bounded once, so that what is searched for ends where its own does.
    for kind, steps in groupby(rows, key=lambda row: row.kind):
        if kind == "reserve":
            asked = [row for row in steps if _key(row) not in void]
            queries = [
                scheduled_query(surveys[row.digest], row.slot, pin_version=row.pin_version) for row in asked
            ]
            tickets = accountant.reapply_all(queries)
            if tickets is None:  # past what a filter counts: each by itself, which is never less
                beyond += sum(surveys[row.digest].channel.epsilon for row in asked)
            else:
                places.update(zip(map(_key, asked), tickets, strict=True))
        else:
            for row in steps:
                if row.symbol is None or _key(row) not in shown or _key(row) not in places:
                    continue
                ticket, survey, symbol = places[_key(row)], surveys[row.digest], row.symbol
                if row.kind == "resolve" and isinstance(symbol, bytes):
                    query = part_query(survey, symbol, row.part_versions)
                    accountant.resolve(ticket, query, symbol, own=part_symbol(survey, symbol))
                else:
                    accountant.reapply(ticket, symbol)
    accountant.tighten()
    return accountant.committed + beyond


def sent_reports(
    answers: Iterable[StoredAnswer], rows: Iterable[TranscriptEntry], surveys: Mapping[bytes, Survey]
) -> tuple[SentReport, ...]:
    """Return every report for which the collector gave an outcome, by survey and round.

    A report is a function of survey, round, id and symbol, so its bytes need not be stored twice.

    Args:
        answers: Every answer.
        rows: The transcript.
        surveys: Every survey, by digest.

    Raises:
        LedgerCorruptError: If an answer has no row.
    """
    symbols = {(row.digest, row.slot, row.pin_version): row.symbol for row in rows if row.symbol is not None}
    found: list[SentReport] = []
    counted: set[tuple[bytes, int, int]] = set()
    for answer in answers:
        survey = surveys[answer.digest]
        key = (answer.digest, scheduled_answer_of(survey, answer.round), answer.pin_version)
        symbol = symbols.get(key)
        if symbol is None:
            raise LedgerCorruptError("an answer in the ledger has no row in its transcript")
        loss = 0.0 if key in counted else survey.channel.loss(symbol)
        counted.add(key)
        if answer.outcome is None or answer.outcome == "withdrawn":
            continue
        data = wire.encode_report(wire.Report(answer.digest, answer.round, answer.id, symbol))
        outcome = answer.outcome
        found.append(SentReport(survey.id, answer.digest, answer.round, answer.id, data, outcome, loss))
    return tuple(found)
