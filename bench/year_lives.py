"""A programme of surveys over a year, and the lives of the devices that are asked: what `year` counts.

A life follows the agent's rules with the agent's own parts: `scheduled_query` says what an answer asks of the
account, a static value is memoised by its first answer, a correction opens another coordinate and reserves
anew, a round that goes by stays at its worst. Only the account differs. Values, owners' words, weeks switched
off and every symbol are drawn before the lives begin, so that all accounts see the same device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
from harness import integers, survey_text
from numpy.typing import NDArray

from hubbub.channels import Symbol
from hubbub.filter import Query
from hubbub.survey import Attribute, Survey
from hubbub.testing import seeded
from hubbub_client.agent import channel_inputs, encode_many
from hubbub_client.surveys import MEMOISED, scheduled_query
from hubbub_client.surveys.schedule import is_static, memoised_coordinate

WEEKS: Final = 52
WEEK_S: Final = 7 * 86_400
START_S: Final = 1767225600  # 2026-01-01T00:00:00Z, when every survey of the programme begins

Integers = NDArray[np.intp]

RANGES: Final = {
    "age": (17, 90),
    "education": (1, 16),
    "region": (0, 8),
    "household": (1, 8),
    "income": (0, 19),
    "mood": (1, 5),
    "sport": (0, 20),
    "sleep": (0, 14),
}
STATIC: Final = ("age", "education", "region", "household", "income")

TENS = (20, 30, 40, 50, 60, 70, 80)
FIVES = (25, 35, 45, 55, 65, 75)


@dataclass(frozen=True)
class Ask:
    """One survey of the programme.

    Attributes:
        name: Its id.
        attribute: What it reads.
        epsilon: Of one answer.
        start: Its first week.
        weeks: How many it runs.
        every: Weeks of one round.
        cuts: First values of all categories but the first; () for single values by GRR.
        mean: True where the mean alone is wanted, by the mechanism of least variance for it.
    """

    name: str
    attribute: str
    epsilon: float
    start: int
    weeks: int = 12
    every: int = 1
    cuts: tuple[int, ...] = ()
    mean: bool = False

    def survey(self) -> Survey:
        """Return it compiled: PB-GRR at half its epsilon within categories, GRR without categories."""
        low, high = RANGES[self.attribute]
        mechanism = 'name = "optimal"' if self.mean else 'name = "grr"'
        if self.cuts:
            ends = (low, *self.cuts, high + 1)
            mechanism = f'name = "pbgrr"\nboost_epsilon = {self.epsilon / 2}'
            for first, after in pairwise(ends):
                mechanism += f'\n[[category]]\nname = "from {first}"\nrange = [{first}, {after - 1}]'
        start = np.datetime64(START_S + self.start * WEEK_S, "s")
        return Survey.parse(
            survey_text(
                self.name,
                integers(low, high),
                epsilon=self.epsilon,
                attribute=self.attribute,
                kind="static" if self.attribute in STATIC else "evolving",
                cohort=10,
                devices=20_000,
                start=f"{start}Z",
                period=f"{7 * self.every}d",
                rounds=self.weeks // self.every,
                lateness="1d",
                mechanism=mechanism,
            )
        )


def programme() -> list[Ask]:
    """Return the year: four quarters of eight questions about what stays, three about what changes.

    Every quarter another department asks for the same five things, by groupings of its own, and two means.
    """
    asks = [
        Ask("mood", "mood", 0.02, 0, weeks=52),
        Ask("sport", "sport", 0.1, 0, weeks=52, every=4),
        Ask("sleep", "sleep", 0.05, 26, weeks=10),
    ]
    for quarter in range(4):
        at, shift = 13 * quarter, quarter
        asks += [
            Ask(f"age-tens-{quarter}", "age", 1.0, at, cuts=tuple(cut + shift for cut in TENS)),
            Ask(f"region-{quarter}", "region", 0.75, at, cuts=((3, 6), (2, 6), (3, 5), (4, 7))[quarter]),
            Ask(f"income-{quarter}", "income", 0.75, at, cuts=(4 + shift, 10 + shift)),
            Ask(f"education-{quarter}", "education", 0.75, at, cuts=(9, 13) if quarter % 2 else (8, 12)),
            Ask(f"household-{quarter}", "household", 0.5, at),
            Ask(f"household-mean-{quarter}", "household", 0.5, at + 2, weeks=11, mean=True),
            Ask(f"income-mean-{quarter}", "income", 0.75, at + 3, weeks=10, mean=True),
            Ask(f"age-fives-{quarter}", "age", 0.75, at + 1, cuts=tuple(cut - shift for cut in FIVES)),
        ]
    return asks


class Account(Protocol):
    """The decisions that a life needs: a filter, or epsilons added up."""

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        """Reserve a schedule, or nothing of it."""

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Record an answer."""

    def close(self, coordinate: object) -> None:
        """Close the coordinate of a round that is over."""

    def close_joined(self, coordinate: object) -> bool:
        """Close the coordinate of a value that was corrected."""

    @property
    def committed(self) -> float:
        """The loss with what is pending at its worst, nats."""


class AddedEpsilons:
    """An account that adds the certified epsilon of every answer that was ever reserved.

    Args:
        budget: Nats.
    """

    def __init__(self, budget: float) -> None:
        self.budget, self.committed, self._tickets = budget, 0.0, 0

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        """Reserve a schedule if its epsilons fit what is left."""
        cost = sum(query.channel.epsilon for query in queries)
        if self.committed + cost > self.budget:
            return None
        self.committed += cost
        first, self._tickets = self._tickets, self._tickets + len(queries)
        return tuple(range(first, self._tickets))

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Do nothing: an answer gives nothing back."""

    def close(self, coordinate: object) -> None:
        """Do nothing."""

    def close_joined(self, coordinate: object) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, eq=False)
class Fleet:
    """A fleet as it is drawn before the lives begin.

    Attributes:
        asks: The programme.
        surveys: The same, compiled.
        values: Of every attribute, by pin version or by week: shape (versions, n), as indices.
        corrected: Week in which an owner corrects a static attribute, WEEKS for never, shape (n,).
        willing: Surveys that an owner says yes to, shape (surveys, n).
        on: Weeks in which a device is on, shape (WEEKS, n).
        symbols: For every survey the symbols of its slots, or of pin versions 0 and 1: shape (slots, n).
    """

    asks: list[Ask]
    surveys: list[Survey]
    values: dict[str, Integers]
    corrected: dict[str, Integers]
    willing: NDArray[np.bool_]
    on: NDArray[np.bool_]
    symbols: list[NDArray[np.unsignedinteger]]
    _queries: dict[tuple[int, int, int], Query] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """The number of devices."""
        return self.on.shape[1]

    def queries(self, survey: int, slots: Sequence[int], *, pin_version: int) -> list[Query]:
        """Return what answers of a survey ask of an account."""
        found = []
        for slot in slots:
            key = (survey, slot, pin_version)
            if key not in self._queries:
                asked = self.surveys[survey]
                self._queries[key] = scheduled_query(asked, slot, pin_version=pin_version)
            found.append(self._queries[key])
        return found


def fleet(devices: int, *, seed: int = 1, corrections: float = 0.08, away: float = 0.1) -> Fleet:
    """Draw a fleet: owners of all ages, of whom the older say no more often.

    Args:
        devices: How many.
        seed: Of everything.
        corrections: Share of owners who correct a static attribute in the year, of each attribute.
        away: Share of weeks in which a device is off.
    """
    rng = np.random.default_rng(seed)
    asks = programme()
    surveys = [ask.survey() for ask in asks]
    sizes = {name: high - low + 1 for name, (low, high) in RANGES.items()}
    values, corrected = {}, {}
    for name, size in sizes.items():
        law = rng.dirichlet(np.full(size, 1.0 if size > 20 else 2.0))
        values[name] = rng.choice(size, (2 if name in STATIC else WEEKS, devices), p=law)
        first, second = values[name][:2]
        values[name][1] = np.where(second == first, (second + 1) % size, second)
        changed = rng.random(devices) < corrections
        corrected[name] = np.where(changed, rng.integers(1, WEEKS, devices), WEEKS)
    old = values["age"][0] >= 45
    willing = rng.random((len(asks), devices)) >= np.where(old, 0.2, 0.05)
    symbols = []
    for number, (ask, survey) in enumerate(zip(asks, surveys, strict=True)):
        known, attribute = values[ask.attribute], survey.attribute
        weeks = range(2) if is_static(survey) else range(ask.start, ask.start + ask.weeks, ask.every)
        symbols.append(
            np.stack(
                [
                    survey.channel.perturb(
                        channel_inputs(survey, [encoded(attribute, known[week])]),
                        source=seeded(1_000_000 * seed + 1000 * number + week),
                    )
                    for week in weeks
                ]
            )
        )
    return Fleet(asks, surveys, values, corrected, willing, rng.random((WEEKS, devices)) >= away, symbols)


def encoded(attribute: Attribute, indices: Integers) -> NDArray[np.intp]:
    """Return values, given by their index in the domain, as a device keeps them."""
    low, _ = RANGES[attribute.id]
    return encode_many(attribute, indices + low)


@dataclass
class Life:
    """One device and its account through the year.

    Attributes:
        fleet: What was drawn.
        device: Its number.
        account: Any.
        sent: (survey, week, pin version or slot) of every report.
        refused: Requests for a survey that the account refused, repetitions included.
        uncorrected: Corrections that the account refused.
    """

    fleet: Fleet
    device: int
    account: Account
    sent: list[tuple[int, int, int]] = field(default_factory=list)
    refused: int = 0
    uncorrected: int = 0
    _open: dict[tuple[int, int], int] = field(default_factory=dict)
    _recorded: set[tuple[int, int]] = field(default_factory=set)
    _joined: dict[int, int] = field(default_factory=dict)  # survey -> the pin version of its slot
    _pins: dict[str, int] = field(default_factory=dict)
    _memoised: set[str] = field(default_factory=set)
    _versions: set[str] = field(default_factory=set)  # attributes whose second value holds

    def live(self) -> Life:
        """Go through all weeks in which the device is on, and return it."""
        due = {
            name: int(weeks[self.device]) for name, weeks in self.fleet.corrected.items() if name in STATIC
        }
        for week in np.flatnonzero(self.fleet.on[:, self.device]).tolist():
            for name in [name for name, when in due.items() if when <= week]:
                del due[name]
                self._correct(name, week)
            for number, ask in enumerate(self.fleet.asks):
                if ask.start <= week < ask.start + ask.weeks and number not in self._joined:
                    self._enrol(number, week)
            for number in list(self._joined):
                ask = self.fleet.asks[number]
                if week < ask.start + ask.weeks:
                    self._answer(number, week)
        return self

    def _enrol(self, number: int, week: int) -> None:
        if not self.fleet.willing[number, self.device]:
            return
        ask = self.fleet.asks[number]
        static = ask.attribute in STATIC
        pin_version = self._pins.get(ask.attribute, 0) if static else 0
        slots = [MEMOISED] if static else range((week - ask.start) // ask.every, ask.weeks // ask.every)
        tickets = self.account.reserve_all(self.fleet.queries(number, slots, pin_version=pin_version))
        if tickets is None:
            self.refused += 1
            return
        self._joined[number] = pin_version
        self._open.update({(number, slot): t for slot, t in zip(slots, tickets, strict=True)})

    def _correct(self, name: str, week: int) -> None:
        """Replace a memoised value; the same rules as `Values.correct` and `FilterState.reserved`."""
        pin_version = self._pins.get(name, 0)
        if name not in self._memoised:
            self._versions.add(name)  # nothing was said yet: the new value is the first to be memoised
            return
        running = [
            number
            for number in self._joined
            if (ask := self.fleet.asks[number]).attribute == name and week < ask.start + ask.weeks
        ]
        queries = [
            query for n in running for query in self.fleet.queries(n, [MEMOISED], pin_version=pin_version + 1)
        ]
        tickets = self.account.reserve_all(queries) if queries else ()
        if tickets is None:
            self.uncorrected += 1
            return
        if queries:
            self.account.close_joined(memoised_coordinate(name, pin_version))
        self._pins[name] = pin_version + 1
        for number, ticket in zip(running, tickets, strict=True):
            self._joined[number] = pin_version + 1
            self._open[number, MEMOISED] = ticket
            self._recorded.discard((number, MEMOISED))
        self._versions.add(name)

    def _answer(self, number: int, week: int) -> None:
        ask = self.fleet.asks[number]
        static = ask.attribute in STATIC
        slot = MEMOISED if static else (week - ask.start) // ask.every
        version = int(ask.attribute in self._versions) if static else slot
        if (number, slot) not in self._recorded:
            ticket = self._open.pop((number, slot), None)
            if ticket is None:
                return  # its round was over before the device joined
            self.account.record(ticket, int(self.fleet.symbols[number][version, self.device]))
            self._recorded.add((number, slot))
            if static:
                self._memoised.add(ask.attribute)
            else:
                (query,) = self.fleet.queries(number, [slot], pin_version=0)
                self.account.close(query.keys[0])
        elif not static:
            return  # its round was answered in an earlier week
        self.sent.append((number, week, version))
