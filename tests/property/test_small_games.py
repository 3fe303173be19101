"""Every adaptive adversary of small games, against the filters that test_filter_budget does not play.

A game is a few records, a menu of queries and a filter. All positions are visited: everything that may be
asked, answered in any order, and closed. In each, the exact ratio of probabilities is worked out in rational
numbers from the channels' integers, pending queries at their worst answers, for all pairs of records.
"""

import copy
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from exponentials import exp_bounds

from hubbub.accounting import (
    QUANTA_PER_NAT,
    BayesianFilter,
    Box,
    Joint,
    Odometer,
    Query,
    Regression,
    SimplifiedFilter,
)
from hubbub.accounting.component import Component
from hubbub.accounting.numbers import Numbers
from hubbub.accounting.regression import TOTAL
from hubbub.finite import DenseChannel

SLACK = Fraction(4, QUANTA_PER_NAT)


@dataclass
class Game:
    """A menu, each query with its weights for every record: rows[record][symbol]."""

    menu: list[tuple[Query, list[list[int]]]]
    budget: float
    reservations: int
    closable: tuple[Hashable, ...] = ()
    met: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("positions", "refused", "tight"), 0))
    seen: set = field(default_factory=set)

    def play(self, make: Callable[[float], BayesianFilter]) -> dict[str, int]:
        self.visit(make(self.budget), (), ())
        return self.met

    def visit(self, account: BayesianFilter, asked: tuple, closed: tuple) -> None:
        """A position: what was asked, as (choice, answer or None), by ticket; and what was closed."""
        position = (
            tuple(sorted((choice, -1 if y is None else y) for choice, y in asked)),
            tuple(sorted(closed)),
        )
        if position in self.seen:
            return
        self.seen.add(position)
        self.met["positions"] += 1
        worst = self.ratio(asked)
        assert worst <= exp_bounds(Fraction(self.budget))[0], f"beyond the budget: {asked}"
        assert worst <= exp_bounds(Fraction(account.committed))[0]
        realised = self.ratio([pair for pair in asked if pair[1] is not None])
        assert realised <= exp_bounds(Fraction(account.loss))[0]
        self.met["tight"] += worst > exp_bounds(Fraction(self.budget) * Fraction(9, 10))[1]

        for choice, (query, _) in enumerate(self.menu if len(asked) < self.reservations else []):
            if set(query.keys) & set(closed):
                continue
            trial = copy.deepcopy(account)
            if trial.reserve(query.coordinate, query.channel, mapping=query.mapping) is None:
                self.met["refused"] += 1
                self.refused(account, asked, choice)
            else:
                self.visit(trial, (*asked, (choice, None)), closed)
        for ticket, (choice, known) in enumerate(asked):
            for symbol in range(len(self.menu[choice][1][0]) if known is None else 0):
                answered = copy.deepcopy(account)
                answered.record(ticket, symbol)
                assert answered.committed <= account.committed
                self.visit(answered, (*asked[:ticket], (choice, symbol), *asked[ticket + 1 :]), closed)
        pending = {key for choice, y in asked if y is None for key in self.menu[choice][0].keys}
        used = {key for choice, _ in asked for key in self.menu[choice][0].keys}
        for key in self.closable:
            if key in used - pending - set(closed):
                done = copy.deepcopy(account)
                done.close(key)
                assert (done.loss, done.committed) == (account.loss, account.committed)
                self.visit(done, asked, (*closed, key))

    def refused(self, account: BayesianFilter, asked: tuple, choice: int) -> None:
        """What a refusal must be worth; by default, that accepting could have exceeded the budget."""
        needed = exp_bounds(Fraction(self.budget) - (len(asked) + 1) * SLACK)[0]
        assert self.ratio((*asked, (choice, None))) > needed, f"refused without need: {asked}, {choice}"

    def ratio(self, asked: Sequence) -> Fraction:
        """The largest ratio of two records, what is pending at its worst."""
        tables = [(self.menu[choice][1], symbol) for choice, symbol in asked]
        worst = Fraction(1)
        for x, other in itertools.permutations(range(len(self.menu[0][1])), 2):
            ratio = Fraction(1)
            for rows, symbol in tables:
                pairs = list(zip(rows[x], rows[other], strict=True))
                ratio *= max(Fraction(*pair) for pair in (pairs if symbol is None else [pairs[symbol]]))
            worst = max(worst, ratio)
        return worst


def dense(*rows: list[int]) -> DenseChannel:
    return DenseChannel(np.array(rows))


def finite(records: list[dict], *queries: Query) -> list[tuple[Query, list[list[int]]]]:
    """Queries with their weights for every record."""
    menu = []
    for query in queries:
        rows = []
        for record in records:
            cell = tuple(record[key] for key in query.keys)
            value = cell[0] if query.mapping is None else int(query.mapping[cell])
            rows.append(query.channel.row(value).tolist())
        menu.append((query, rows))
    return menu


PAIRS = [{"a": a, "b": b} for a in range(3) for b in range(2)]
SINGLE = finite(
    PAIRS,
    Query("a", dense([4, 1, 1], [1, 4, 1], [1, 1, 4])),
    Query("a", dense([6, 3, 2], [3, 6, 2], [2, 2, 7])),
    Query("a", dense([2, 1], [1, 2]), np.array([0, 0, 1])),
    Query("b", dense([3, 1], [1, 3])),
)
JOINT = finite(
    PAIRS,
    Query("a", dense([3, 1, 1], [1, 3, 1], [1, 1, 3])),
    Query("b", dense([2, 1], [1, 2])),
    Query(Joint("a", "b"), dense([3, 1], [1, 3]), np.array([[0, 1], [1, 0], [1, 1]])),
)
BOX = Box((0.0, -1.0), (1.0, 1.0), whole=(0, 1))
POINTS = [(float(x), float(y)) for x in range(2) for y in (-1, 0, 1)]
SCORES = [
    Regression("linear", BOX, (0.5, -0.5), 0.0, 0.7, -0.5, 1.0),
    Regression("truncated", BOX, (1.0, 1.0), 0.0, 0.5, -0.5, 1.0),
    Regression("logistic", BOX, (-2.0, 3.0), 0.5, 0.6),
]
REGRESSIONS = [
    (Query("x", each), [[TOTAL - each.weight(point), each.weight(point)] for point in POINTS])
    for each in SCORES
]


class Simple(Game):
    """The simplified filter's own rule: a refusal needs that the epsilons of what is pending do not fit."""

    def refused(self, account: BayesianFilter, asked: tuple, choice: int) -> None:
        waiting = [self.menu[each][0].channel.epsilon for each, y in asked if y is None]
        assert account.loss + sum(waiting) + self.menu[choice][0].channel.epsilon > self.budget - 1e-9


class Bounded(Game):
    """Bounds may be a little high: a refusal needs that accepting comes within 10^-5 nats of the budget."""

    def refused(self, account: BayesianFilter, asked: tuple, choice: int) -> None:
        assert (
            self.ratio((*asked, (choice, None))) > exp_bounds(Fraction(self.budget) - Fraction(1, 10**5))[0]
        )


@pytest.mark.parametrize("budget", [1.8, 2.8])
def test_no_adversary_of_the_simplified_filter_exceeds_the_budget(budget):
    met = Simple(SINGLE, budget, reservations=3).play(SimplifiedFilter)
    assert min(met["positions"], met["refused"]) > 20
    assert met["tight"] > 0


@pytest.mark.parametrize("budget", [1.9, 2.4])
def test_no_adversary_of_joint_queries_and_closed_coordinates_exceeds_the_budget(budget):
    """Joins by recorded and by pending queries, either coordinate closed at any time; refusals are needed."""

    met = Game(JOINT, budget, reservations=4, closable=("a", "b")).play(BayesianFilter)
    assert met["positions"] > 150
    assert met["refused"] > 20
    assert met["tight"] > 0


def test_no_adversary_of_regressions_exceeds_the_budget():
    """Numbers are whole, so that records are few and every weight is the device's own integer."""
    met = Bounded(REGRESSIONS, 1.3, reservations=3).play(BayesianFilter)
    assert met["positions"] > 30
    assert met["refused"] > 10
    assert met["tight"] > 0


def test_an_odometer_is_never_below_the_exact_loss_of_any_transcript():
    """All transcripts of up to three answers, whoever chose the queries; tight to a few quanta an answer."""
    moves = [(i, y) for i, (_, rows) in enumerate(SINGLE) for y in range(len(rows[0]))]
    judge, count = Game(SINGLE, 1.0, 3), 0
    for length in (1, 2, 3):
        for transcript in itertools.combinations_with_replacement(moves, length):
            odometer = Odometer()
            for choice, symbol in transcript:
                query = SINGLE[choice][0]
                odometer.observe(query.coordinate, query.channel, symbol, mapping=query.mapping)
            exact = judge.ratio(transcript)
            assert exact <= exp_bounds(Fraction(odometer.loss))[0]
            assert exact >= exp_bounds(Fraction(odometer.loss) - length * SLACK)[0]
            count += 1
    assert count > 250


@pytest.mark.parametrize(
    ("game", "make", "owner", "method"),
    [
        (Simple(SINGLE, 1.8, 2), SimplifiedFilter, Component, "worst_with"),
        (Game(JOINT, 1.9, 2), BayesianFilter, Component, "worst_with"),
        (Bounded(REGRESSIONS, 1.0, 2), BayesianFilter, Numbers, "worst_with"),
    ],
)
def test_the_adversary_would_catch_a_filter_that_forgets_what_is_pending(
    monkeypatch, game, make, owner, method
):
    """Negative control: with the realised loss in place of the worst one, two pending queries overspend."""
    monkeypatch.setattr(owner, method, lambda self, *_, **__: self.loss)
    game.budget *= 0.6
    with pytest.raises(AssertionError):
        game.play(make)
