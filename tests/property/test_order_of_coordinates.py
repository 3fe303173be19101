"""Whether schedules fit does not depend on which coordinate asks first, or whether all ask at once.

A schedule is some queries of several coordinates, a few of them answered. Its budget is what it commits when
it is asked in one order, or a unit less: then nothing is far from being refused, in any other order.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from hubbub.channels import UNITS_PER_NAT
from hubbub.filter import BayesianFilter, Box, Query, Regression
from hubbub.filter.bayesian import MAX_BUDGET
from hubbub_authoring import mechanisms

LONG = "HUBBUB_TEST_LONG" in os.environ
BOX = Box((0.0, -1.0), (1.0, 1.0))
CHANNELS = [
    *(mechanisms.grr(4, epsilon=epsilon) for epsilon in (0.1, 0.37, 1.3)),
    *(mechanisms.pbgrr([2, 2], epsilon=0.5, boost_epsilon=boost) for boost in (0.0, 0.4)),
]

Step = tuple[Query, int | None]
"""A query with its answer, None where it stays pending."""


def finite(chance: random.Random, key: Hashable) -> Query:
    return Query(key, chance.choice(CHANNELS), np.array([0, 1, 2, 3, 0]))


def numeric(chance: random.Random, key: Hashable) -> Query:
    kind = chance.choice(["linear", "truncated", "logistic"])
    slopes = (chance.uniform(-3.0, 3.0), chance.uniform(-3.0, 3.0))
    size = 1.0 if kind != "linear" else 8.0
    slopes = (slopes[0] / size, slopes[1] / size)
    ends = (-1.0, 2.0) if kind == "linear" else (0.0, 1.0)
    return Query(key, Regression(kind, BOX, slopes, 0.5, chance.choice([0.1, 0.4, 1.0]), *ends))


def lives(chance: random.Random, numbers: int) -> list[list[Step]]:
    """The steps of two to four coordinates; so many of them are boxes of numbers."""
    made = []
    for key in range(max(numbers, chance.randint(2, 4))):
        draw = numeric if key < numbers else finite
        count = chance.randint(1, 3)
        steps = [(draw(chance, key), chance.choice([None, None, 0, 1])) for _ in range(count)]
        made.append(steps)
    return made


def asked(steps: Sequence[Step], budget: float) -> BayesianFilter | None:
    """Ask one after the other; None where one is refused."""
    accountant = BayesianFilter(budget)
    for query, symbol in steps:
        ticket = accountant.reserve_all([query])
        if ticket is None:
            return None
        if symbol is not None:
            accountant.record(ticket[0], symbol)
    return accountant


def merged(chance: random.Random, lives: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of all coordinates in a random order, those of one in their own."""
    order = [i for i, steps in enumerate(lives) for _ in steps]
    chance.shuffle(order)
    left = [iter(steps) for steps in lives]
    return [next(left[i]) for i in order]


def at_most(units: int) -> float:
    return units / UNITS_PER_NAT


def check(chance: random.Random, numbers: int) -> None:
    made = lives(chance, numbers)
    one = [step for steps in made for step in steps]
    whole = asked(one, MAX_BUDGET)
    assert whole is not None
    for _ in range(2):
        other = asked(merged(chance, made), MAX_BUDGET)
        assert other is not None and (other.loss, other.committed) == (whole.loss, whole.committed)
    # All pending, one after the other by coordinate, and in one schedule in any order of coordinates.
    pending = [[(query, None) for query, _ in steps] for steps in made]
    whole = asked([step for steps in pending for step in steps], MAX_BUDGET)
    assert whole is not None
    committed = round(whole.committed * UNITS_PER_NAT)
    for budget, fits in ((at_most(committed), True), (at_most(committed - 1), False)):
        for _ in range(2):
            assert (asked(merged(chance, pending), budget) is not None) is fits
    at_once = set()
    for _ in range(2):
        accountant = BayesianFilter(MAX_BUDGET)
        assert accountant.reserve_all([query for query, _ in merged(chance, pending)]) is not None
        at_once.add(accountant.committed)
    assert len(at_once) == 1
    if not numbers:
        assert at_once == {whole.committed}


@pytest.mark.long  # a twentieth in CI
@pytest.mark.parametrize("part", range(10))
def test_schedules_without_scores_fit_in_every_order_of_coordinates_or_in_none(part: int) -> None:
    chance = random.Random(f"finite {part}")  # noqa: S311 - a game, not an answer
    for _ in range(1000 if LONG else 50):
        check(chance, 0)


@pytest.mark.long  # a twentieth in CI
@pytest.mark.parametrize("part", range(5))
def test_schedules_with_scores_fit_in_every_order_of_coordinates_or_in_none(part: int) -> None:
    chance = random.Random(f"scores {part}")  # noqa: S311 - a game, not an answer
    for _ in range(100 if LONG else 5):
        check(chance, chance.choice([1, 1, 2]))


def test_twenty_rounds_of_a_weak_score_and_a_label_fit_in_either_order_at_once_or_one_by_one() -> None:
    """Each tells numbers apart by .0618 of its epsilon .5: 20 times that is 1.236, of a budget of 1.5."""
    high, rise = 1.0 / (1.0 + math.exp(-0.5)), math.expm1(0.5)
    apart = math.log((math.exp(0.5) - 0.5 * rise) / (math.exp(0.5) - high * rise))  # by an answer 0
    box = Box((0.0,), (1.0,))
    score = Regression("logistic", box, (0.5,), 0.0, 0.5)
    rounds = [Query(("round", number), score) for number in range(20)]
    whole = BayesianFilter(1.5)
    assert whole.reserve_all(rounds) is not None
    assert whole.committed == pytest.approx(20 * apart, abs=1e-6)
    assert asked([(query, None) for query in rounds], 1.5) is not None
    label = Query("sex", mechanisms.grr(3, epsilon=1.3))
    for order in ([rounds[0], label], [label, rounds[0]]):
        assert asked([(query, None) for query in order], 1.5) is not None
