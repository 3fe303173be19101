"""Random records asked by random surveys: what the account states beside what the transcript tells at least.

A case is some surveys of every form and mechanism on the same few attributes, answered at random for random
versions of the pinned values, in a random order of enrolling, answering, correcting and giving back. A
third of the cases decide as a device does while it lives, a third are replayed with the proofs of that life,
as a ledger that is opened again, a third are summed without them, as on the page of the device's owner.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import random_surveys
from independent_bound import ROUNDING, Told, largest_log_ratio
from independent_reading import Field, question
from random_surveys import MECHANISMS, SCORES

from hubbub.filter import BayesianFilter
from hubbub.filter.bayesian import MAX_BUDGET
from hubbub.survey.score import Score
from hubbub.survey.survey import Survey
from hubbub_client.agent import filter_state as book_module
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.surveys import schedule

CASES_OF_A_WORLD = 100
SURVEYS_OF_A_WORLD = 26
MOST_ASKED = 8
CURVED = (0, 1, 1, 1, 1, 1, 1, 1, 1, 3)
"""Truncated and logistic answers of a case: the account searches for their bound, up to a second."""


@dataclass(frozen=True)
class Case:
    """One record's life.

    Attributes:
        seed: Makes it again.
        stated: Loss by the account, nats.
        committed: The same with what is pending at its worst.
        found: What two records were found to differ by, in what was answered.
        filled: The same with random answers to what is pending.
        forms: Survey forms and kinds of channel that took part.
    """

    seed: tuple[int, int]
    stated: float
    committed: float
    found: float
    filled: float
    forms: frozenset[str]

    @property
    def understated(self) -> bool:
        return self.found > self.stated + ROUNDING or self.filled > self.committed + ROUNDING


def worlds(
    count: int, seed: int, mechanisms: Sequence[str] = (*MECHANISMS, *MECHANISMS, *SCORES * 5)
) -> Iterator[list[Survey]]:
    """The surveys of so many worlds."""
    for world in range(count):
        yield _world(random.Random(f"{seed} {world}"), mechanisms)  # noqa: S311 - a game, not an answer


def cases(
    count: int, *, seed: int = 0, mechanisms: Sequence[str] = (*MECHANISMS, *MECHANISMS, *SCORES * 5)
) -> Iterator[Case]:
    """So many random cases, the same for the same seed; by default two surveys in five are scores."""
    made = 0
    for world, asked in enumerate(worlds(-(-count // CASES_OF_A_WORLD), seed, mechanisms)):
        for number in range(min(CASES_OF_A_WORLD, count - made)):
            yield case(asked, random.Random(f"{seed} {world} {number}"), (world, number))  # noqa: S311
            made += 1


def _world(chance: random.Random, mechanisms: Sequence[str]) -> list[Survey]:
    """Surveys about one set of attributes."""
    held = random_surveys.attributes(chance)
    found: list[Survey] = []
    while len(found) < SURVEYS_OF_A_WORLD:
        made = random_surveys.survey(chance, held, f"s{len(found)}", chance.choice(mechanisms))
        found += [] if made is None else [made]
    return found


def case(surveys: Sequence[Survey], chance: random.Random, seed: tuple[int, int]) -> Case:
    """Lives one life, and looks at what it stated."""
    chosen = _chosen(surveys, chance)
    rows, told, pending = _life(chosen, chance, _hostile(chance) if chance.random() < 0.6 else _any)
    by_digest = {survey.digest: survey for survey in chosen}
    book = (_lived, _replayed, _summed)[seed[1] % 3](rows, by_digest)
    canonicals = [survey.canonical for survey in chosen]
    drawn = chance.randrange(2**31)
    found = largest_log_ratio(canonicals, told, seed=drawn)
    filled = largest_log_ratio(canonicals, [*told, *pending], seed=drawn) if pending else found
    forms = frozenset(
        survey.form.kind if isinstance(survey.form, Score) else survey.channel.kind for survey in chosen
    )
    return Case(seed, book.loss, book.committed, found, filled, forms)


def _chosen(surveys: Sequence[Survey], chance: random.Random) -> list[Survey]:
    """Some of the surveys, those of one attribute before others, so that many meet on one value."""
    about = chance.choice([attribute.id for survey in surveys for attribute in survey.attributes])
    near = [survey for survey in surveys if schedule.asks_for(survey, about)]
    wanted = chance.sample(near, min(len(near), chance.randint(1, MOST_ASKED)))
    wanted += chance.sample(surveys, chance.choice([0, 0, 1, 2]))
    found: list[Survey] = []
    curved, most = 0, chance.choice(CURVED)
    for survey in dict.fromkeys(wanted):
        curved += isinstance(survey.form, Score) and survey.form.kind != "linear"
        if curved <= most or not isinstance(survey.form, Score):
            found.append(survey)
    return found


def _any(chance: random.Random, asked: Survey) -> int | bytes:
    return random_surveys.symbol(chance, asked)


def _hostile(chance: random.Random) -> Callable[[random.Random, Survey], int | bytes]:
    """Answers that speak for one record against another, each made of what is missing and of ends."""
    records: list[dict[str, float]] = [{}, {}]

    def value(record: dict[str, float], field: Field) -> np.ndarray:
        low, high = (0, field.size - 1) if field.type == "label" else field.domain
        return np.array([record.setdefault(field.id, chance.choice([math.nan, math.nan, low, high]))])

    def said(chance: random.Random, asked: Survey) -> int | bytes:
        asks = question(asked.canonical)
        one, other = ([value(record, field) for field in asks.fields] for record in records)
        drawn = [random_surveys.symbol(chance, asked) for _ in range(4)]
        return max(drawn, key=lambda each: (asks.law(each, one) - asks.law(each, other)).item())

    return said


def _life(
    surveys: Sequence[Survey], chance: random.Random, say: Callable[[random.Random, Survey], int | bytes]
) -> tuple[list[TranscriptEntry], list[Told], list[Told]]:
    """The rows of a life, what was said, and what could yet be."""
    pins = dict.fromkeys((a.id for survey in surveys for a in survey.attributes if a.kind == "static"), 0)
    rows: list[TranscriptEntry] = []
    told: list[Told] = []
    open_: list[tuple[TranscriptEntry, Survey, Told]] = []
    ticket = 0
    left = [*surveys]
    while left or (open_ and chance.random() < 0.85):
        step = chance.random()
        if left and (step < 0.5 or not open_):
            survey = left.pop()
            generation = schedule.joined_pin_versions(survey, [pins.get(a.id, 0) for a in survey.attributes])
            about = tuple((a.id, pins[a.id]) for a in survey.attributes if a.kind == "static")
            for slot in schedule.scheduled_answers(survey, -1):
                row = TranscriptEntry("reserve", ticket, survey.digest, slot, generation)
                rows.append(row)
                said = Told(survey.digest, slot, say(chance, survey), about)
                open_.append((row, survey, said))
                ticket += 1
        elif open_ and step < 0.9:
            row, survey, said = open_.pop(chance.randrange(len(open_)))
            rows.append(
                TranscriptEntry("record", row.ticket, row.digest, row.slot, row.pin_version, said.symbol)
            )
            told.append(said)
        elif open_ and step < 0.93:
            row, _, _ = open_.pop(chance.randrange(len(open_)))
            rows.append(TranscriptEntry("cancel", row.ticket, row.digest, row.slot, row.pin_version))
        elif pins and step < 0.95:
            pins[chance.choice(list(pins))] += 1
    return rows, told, [said for _, _, said in open_]


Surveys = Mapping[bytes, Survey]


def _lived(rows: Sequence[TranscriptEntry], surveys: Surveys) -> book_module.FilterState:
    """The account as it was while the device lived: every reservation decided, every answer recorded."""
    return _life_of(rows, surveys)[0]


def _replayed(rows: Sequence[TranscriptEntry], surveys: Surveys) -> book_module.FilterState:
    """The account that a ledger states when it is opened: its rows have what was proved with each."""
    return book_module.replay(_life_of(rows, surveys)[1], surveys, budget=MAX_BUDGET)


def _life_of(
    rows: Sequence[TranscriptEntry], surveys: Surveys
) -> tuple[book_module.FilterState, list[TranscriptEntry]]:
    book, proved = book_module.FilterState(BayesianFilter(MAX_BUDGET)), []
    for row in rows:
        survey = surveys[row.digest]
        if row.kind == "reserve":
            query = book_module.scheduled_query(survey, row.slot, pin_version=row.pin_version)
            assert book.filter.reserve_all([query]) == (row.ticket,)
            book.reserved([row], surveys)
        proved.append(book.proved(row, survey))
        if row.kind != "reserve":
            take = book.record if row.kind == "record" else book.cancel
            take(proved[-1], survey)
    return book, proved


def _summed(rows: Sequence[TranscriptEntry], surveys: Surveys) -> BayesianFilter:
    """The account without proofs: what was granted is repeated, and bounded once at the end."""
    summed = BayesianFilter(MAX_BUDGET)
    for row in rows:
        if row.kind == "reserve":
            query = book_module.scheduled_query(surveys[row.digest], row.slot, pin_version=row.pin_version)
            assert summed.reapply_all([query]) == (row.ticket,)
        elif row.symbol is not None:
            summed.reapply(row.ticket, row.symbol)
        else:
            summed.recancel(row.ticket)
    summed.tighten()
    return summed
