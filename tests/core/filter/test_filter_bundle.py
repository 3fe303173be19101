"""Answers about sampled parts in the filter: every pair of records beside every other, in logarithms.

A record here has every pin version of every attribute as a value of its own. The truth is the largest loss
over pairs of records of everything recorded and of all that is pending, a bundle at the worst of its parts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from hubbub.errors import BudgetError, ParameterError
from hubbub.filter import BayesianFilter, Joint, Query
from hubbub.mechanisms import SampledPart, SampledParts, grr, subset_selection
from hubbub.testing import seeded

DOMAINS = {("age", 0): 4, ("age", 1): 4, ("sex", 0): 3}
RECORDS = np.array(list(itertools.product(*map(range, DOMAINS.values()))))
PLACE = {key: i for i, key in enumerate(DOMAINS)}
CUTS = {
    # Missing is the last value of each domain and the last reading.
    "low": {"age": np.array([0, 1, 1, 2]), "sex": np.array([0, 1, 2])},
    "high": {"age": np.array([0, 0, 1, 2]), "sex": np.array([0, 1, 2])},
    "odd": {"age": np.array([0, 1, 0, 2]), "sex": np.array([0, 1, 2])},
}
TABLES = [("age",), ("sex",), ("age", "sex")]
SLACK = 1e-8


def parts_of(tables, epsilon, *, interacts=()) -> SampledParts:
    """A part of every table; of those that interact how two attributes go together, by latin squares."""
    attributes = ("age", "sex")
    made, left = [], 2**32
    for number, table in enumerate(tables):
        members = tuple(attributes.index(each) for each in table)
        latin = number in interacts
        oracle = subset_selection(3 ** len(table), epsilon=epsilon, size=3 if latin else None)
        share = left if number == len(tables) - 1 else 2**30
        left -= share
        made.append(SampledPart(members, share, oracle.size, oracle.p_draws, 3 if latin else 1))
    return SampledParts((3, 3), made)


@dataclass
class Asked:
    """One query of a life: its channel, the table that each part reads, and what was answered."""

    cut: str
    versions: dict[str, int]
    channels: list[object]
    tables: list[tuple[str, ...]]
    answer: tuple[int, object] | None = None

    def cells(self, part: int) -> np.ndarray:
        """The cell of every record, by the value that its version pins."""
        found = np.zeros(len(RECORDS), dtype=int)
        for name in self.tables[part]:
            value = RECORDS[:, PLACE[name, self.versions[name]]]
            found = 3 * found + CUTS[self.cut][name][value]
        return found

    def loss(self) -> np.ndarray:
        """The loss of every pair of records, nats."""
        if self.answer is not None:
            part, symbol = self.answer
            logs = np.log(self.channels[part].column(symbol).astype(float))[self.cells(part)]
            return logs[:, None] - logs
        every = []
        for part, channel in enumerate(self.channels):
            cells = self.cells(part)
            every.append(channel.divergence()[np.ix_(cells, cells)])
        return np.max(every, axis=0)


def truth(asked) -> float:
    return max(0.0, float(sum(each.loss() for each in asked).max())) if asked else 0.0


def pinned(name, version, cut):
    return ("pinned", name, version), CUTS[cut][name]


def by_reading(name, version, cut):
    """The error: two cuts of one value have as many readings, and no word of which values they are."""
    return ("reading", name, version), np.arange(3)


def query_of(asked: Asked, part: int, named) -> Query:
    pairs = [named(name, asked.versions[name], asked.cut) for name in asked.tables[part]]
    keys = [key for key, _ in pairs]
    mapping = np.zeros((1,) * len(pairs), dtype=int)
    for place, (_, axis) in enumerate(pairs):
        shape = [1] * len(pairs)
        shape[place] = len(axis)
        mapping = 3 * mapping + axis.reshape(shape)
    return Query(keys[0] if len(keys) == 1 else Joint(*keys), asked.channels[part], mapping)


class Life:
    """A filter, and everything that was asked of one record, side by side."""

    def __init__(self, seed, *, named=pinned):
        self.random = np.random.default_rng(seed)
        self.filter = BayesianFilter(100.0)
        self.named = named
        self.asked: dict[int, Asked] = {}
        self.bundles: dict[int, SampledParts] = {}
        self.version = 0
        self.understated = self.raised = 0.0
        self.branches: set[str] = set()
        self.interactions = 0

    def versions(self):
        return {"age": self.version, "sex": 0}

    def ask(self) -> None:
        cut = str(self.random.choice(list(CUTS)))
        epsilon = float(self.random.choice([0.4, 1.0, 1.7]))
        if self.random.random() < 0.5:
            count = int(self.random.integers(2, 4))
            tables = [TABLES[i] for i in self.random.permutation(3)[:count]]
            if {name for table in tables for name in table} != {"age", "sex"}:
                return
            both = [number for number, table in enumerate(tables) if len(table) == 2]
            interacts = both if self.random.random() < 0.5 else []
            if interacts and self.random.random() < 0.5:  # beside the table itself
                tables.append(("age", "sex"))
            channel = parts_of(tables, epsilon, interacts=interacts)
            self.interactions += len(interacts)
            asked = Asked(cut, self.versions(), list(channel.oracles), tables)
            ticket = self.filter.reserve(("bundle", len(self.asked)), channel.bound)
            if ticket is not None:
                self.bundles[ticket] = channel
        else:
            table = TABLES[int(self.random.integers(3))]
            cells = 3 ** len(table)
            channel = grr(cells, epsilon=epsilon) if cells == 3 else subset_selection(cells, epsilon=epsilon)
            asked = Asked(cut, self.versions(), [channel], [table])
            ticket = self.filter.reserve_all([query_of(asked, 0, self.named)])
            ticket = None if ticket is None else ticket[0]
        if ticket is not None:
            self.asked[ticket] = asked

    def answer(self) -> None:
        waiting = self.filter.pending
        if not waiting:
            return
        ticket = int(self.random.choice(waiting))
        asked = self.asked[ticket]
        part = int(self.random.integers(len(asked.channels)))
        channel = asked.channels[part]
        value = int(self.random.integers(channel.inputs))
        own = channel.perturb(value, source=seeded(int(self.random.integers(1 << 30))))
        before = self.filter.committed
        if ticket in self.bundles:
            bundle = self.bundles[ticket]
            asked.versions = self.versions()  # a correction before the answer forfeits nothing
            symbol = (part.to_bytes(1, "little") + own).ljust(bundle.width, b"\0")
            self.branches.add(self.filter.resolve(ticket, query_of(asked, part, self.named), symbol, own=own))
        else:
            self.filter.record(ticket, own)
        asked.answer = part, own
        self.raised = max(self.raised, self.filter.committed - before)

    def run(self, steps: int) -> Life:
        for step in range(steps):
            if step == steps // 2:
                self.version = 1
            (self.ask if self.random.random() < 0.5 else self.answer)()
            gap = truth(list(self.asked.values())) - self.filter.committed
            self.understated = max(self.understated, gap)
        return self


def test_no_life_is_understated_and_no_answer_raises_what_is_committed():
    branches, interactions = set(), 0
    for seed in range(60):
        life = Life(seed).run(14)
        interactions += life.interactions
        assert life.understated <= SLACK
        assert life.raised <= 0.0
        branches |= life.branches
        if not any(ticket in life.bundles for ticket in life.filter.pending):
            known = truth(list(life.asked.values()))
            assert life.filter.committed == pytest.approx(known, abs=1e-6) or "apart" in life.branches
    assert "joined" in branches and interactions > 60


def test_control_coordinates_named_by_readings_are_caught():
    assert max(Life(seed, named=by_reading).run(14).understated for seed in range(60)) > 0.1


def test_control_what_a_round_reads_is_no_pinned_value():
    """A round's value put on the pinned coordinate: another value speaks, and may speak the other way."""
    channel = parts_of([("age",), ("sex",)], 1.0)
    first, second = b"\1", b"\2"  # one holds the first cell, the other the second
    losses = {}
    for merged in (False, True):
        life = BayesianFilter(10.0)
        asked = []
        for number, own in enumerate((first, second)):
            each = Asked("low", {"age": number, "sex": 0}, list(channel.oracles), [("age",), ("sex",)])
            each.answer = 0, own
            asked.append(each)
            symbol = (b"\0" + own).ljust(channel.width, b"\0")
            ticket = life.reserve(("round", number), channel.bound)
            here = Asked("low", {"age": 0, "sex": 0}, each.channels, each.tables)
            life.resolve(ticket, query_of(here, 0, pinned) if merged else None, symbol, own=own)
        losses[merged] = life.committed - truth(asked)
    assert losses[False] >= -SLACK
    assert losses[True] < -0.1


def test_an_answer_that_may_share_nothing_stays_at_the_most_that_it_told():
    channel = parts_of([("age", "sex")], 1.0)
    oracle = channel.oracles[0]
    own = oracle.perturb(4, source=seeded(1))
    symbol = (b"\0" + own).ljust(channel.width, b"\0")
    accountant = BayesianFilter(1.0)
    ticket = accountant.reserve(("bundle", b""), channel.bound)
    assert accountant.resolve(ticket, None, symbol, own=own) == "apart"
    assert accountant.loss == accountant.committed == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(BudgetError):
        accountant.resolve(ticket, None, symbol, own=own)


def test_too_many_combinations_are_kept_apart_and_replay_obeys_the_branch():
    oracle = grr(3, epsilon=0.5)
    channel = parts_of([("age", "sex")], 1.0)
    own = channel.oracles[0].perturb(4, source=seeded(1))
    symbol = (b"\0" + own).ljust(channel.width, b"\0")
    wide = np.zeros((600, 600), dtype=int)
    wide[:, 1:] = 8
    accountant = BayesianFilter(4.0)
    ticket = accountant.reserve(("bundle", b""), channel.bound)
    for key in "ab":
        accountant.record(accountant.reserve(key, oracle, mapping=np.arange(600) % 3), 1)
    before = accountant.committed
    big = Query(Joint("a", "b"), channel.oracles[0], wide[:300, :300])
    with pytest.raises(ParameterError):
        accountant.resolve(ticket, big, symbol, own=own, branch="joined")  # another domain than was known
    assert accountant.committed == before
    small = Query(Joint("c", "d"), channel.oracles[0], np.arange(9).reshape(3, 3))
    assert accountant.resolve(ticket, small, symbol, own=own, branch="apart") == "apart"
    other = accountant.reserve(("bundle", b"2"), channel.bound)
    assert accountant.resolve(other, small, symbol, own=own) == "joined"
    assert math.isclose(accountant.committed, accountant.loss)
    third = accountant.reserve(("bundle", b"3"), channel.bound)
    accountant.close("c")
    assert accountant.resolve(third, small, symbol, own=own) == "apart"


def test_queries_that_wait_on_the_same_values_are_kept_and_recorded_after_the_join():
    life = Life(0)
    channel = parts_of([("age", "sex"), ("age",)], 1.0)
    ticket = life.filter.reserve(("bundle", 0), channel.bound)
    single = Asked("low", {"age": 0, "sex": 0}, [grr(3, epsilon=0.7)], [("age",)])
    waiting = life.filter.reserve_all([query_of(single, 0, pinned)])[0]
    table = Asked("high", {"age": 0, "sex": 0}, list(channel.oracles), [("age", "sex"), ("age",)])
    own = channel.oracles[0].perturb(4, source=seeded(2))
    symbol = (b"\0" + own).ljust(channel.width, b"\0")
    assert life.filter.resolve(ticket, query_of(table, 0, pinned), symbol, own=own) == "joined"
    assert life.filter.pending == (waiting,)
    table.answer = 0, own
    assert life.filter.committed == pytest.approx(truth([single, table]), abs=1e-6)
    life.filter.record(waiting, 1)
    single.answer = 0, 1
    assert life.filter.committed == pytest.approx(truth([single, table]), abs=1e-6)
