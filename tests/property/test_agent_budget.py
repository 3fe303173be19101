"""What an agent promises of all its surveys together, against an adversary who tries everything.

The adversary serves surveys of one attribute and of several, in any order, whenever it likes, and sees every
answer. Whatever it does, and whatever the agent accepts, no transcript may be more than e^budget times as
probable under one record as under another.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from exponentials import exp_bounds
from independent_bound import ROUNDING, Told, largest_log_ratio
from memory_ledger import MemoryLedger

from hubbub import Survey
from hubbub.survey.score import Score
from hubbub_client import Policy
from hubbub_client.agent.answerer import Answerer
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.agent.enrolments import Enrolments
from hubbub_client.agent.values import Values

NOW_S = 1767225610.0
TERMS = """\
id = "{id}"
version = 1
title = "A survey"
epsilon = {epsilon}
minimum_cohort = 1
planned_devices = 1000
[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 1
lateness = "1h"
skew = "5m"
"""
SEX = 'id = "sex"\nkind = "static"\ntype = "label"\nlabels = ["f", "m"]\n'
OLD = 'id = "old"\nkind = "static"\ntype = "integer"\nlow = 0\nhigh = 1\n'
MOOD = 'id = "mood"\nkind = "evolving"\ntype = "label"\nlabels = ["good", "bad"]\n'
GRR = '[mechanism]\nname = "grr"\n'


def survey(name: str, epsilon: float, *attributes: str) -> Survey:
    tables = (
        f"[attribute]\n{attributes[0]}"
        if len(attributes) == 1
        else "".join(f"[[attribute]]\n{attribute}" for attribute in attributes)
    )
    return Survey.parse(TERMS.format(id=name, epsilon=epsilon) + tables + GRR)


SURVEYS = (
    survey("sex", 0.7, SEX),
    survey("sex-and-old", 0.9, SEX, OLD),
    survey("old-and-mood", 0.5, OLD, MOOD),
)
SCORED = Survey.parse(
    TERMS.format(id="old-score", epsilon=0.6)
    + f"[[attribute]]\n{OLD}coefficient = 1.0\ndefault = 1\n"
    + '[mechanism]\nname = "regression"\nscore = "linear"\nintercept = 0.0\nlow = 0.0\nhigh = 1.0\n'
)
"""Reads a value that others read too: its answer 1 speaks for 1, and for missing, which counts as 1."""

OPPOSED = Survey.parse(
    TERMS.format(id="old-opposed", epsilon=0.6)
    + f"[[attribute]]\n{OLD}coefficient = -1.0\ndefault = 0\n"
    + '[mechanism]\nname = "regression"\nscore = "linear"\nintercept = 1.0\nlow = 0.0\nhigh = 1.0\n'
)
"""Its answer 1 speaks for 0, and for missing, which counts as 0: what is missing says 1 to both."""

ATTRIBUTES = {attribute.id: attribute for each in SURVEYS for attribute in each.attributes}
RECORDS = [dict(zip(ATTRIBUTES, values, strict=True)) for values in product(range(3), repeat=len(ATTRIBUTES))]
"""Every record: the index of each attribute's value, 2 for missing."""


class Chosen(Answerer):
    """Answers that the test chooses: whatever a device's channels may send can come up."""

    chosen: dict[bytes, int]

    def _perturb(self, asked: Survey, encoded: object) -> int:
        return self.chosen[asked.digest]


class Device:
    """The parts of an agent that decide, on a ledger in memory; nothing is sent."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.state = DeviceState(ledger)  # type: ignore[arg-type]
        self.values = Values(self.state)
        self.enrolments = Enrolments(self.state, Policy(require_opt_in="no"))
        self.answerer = Chosen(self.state, self.values)


def row(asked: Survey, symbol: int) -> list[int]:
    """The weight of a symbol under every record."""
    if isinstance(asked.form, Score):
        told = (0, 1, 1) if asked is SCORED else (1, 0, 1)
        ends = [told[record["old"]] for record in RECORDS]
        return [int(asked.channel.weights()[end, symbol]) for end in ends]
    assert asked.mapping is not None
    column = asked.channel.column(symbol)
    cells = (tuple(record[attribute.id] for attribute in asked.attributes) for record in RECORDS)
    return [int(column[asked.mapping[cell]]) for cell in cells]


def explore(budget: float, surveys: tuple[Survey, ...]) -> dict[str, int]:
    """Plays every game: any surveys in any order, answered at once or after others were enrolled too.

    Before every enrolment the device is made anew from its ledger, so that a replayed account decides.
    """
    rows = {
        (each.digest, symbol): row(each, symbol) for each in surveys for symbol in range(each.channel.outputs)
    }
    ceiling = exp_bounds(Fraction(budget))[0]
    met = {"refused": 0, "all accepted": 0, "near the budget": 0, "positions": 0}
    bounds: dict[frozenset, float] = {}

    def check(weights: list[int], loss: float, said: dict[bytes, int]) -> None:
        place = frozenset(said.items())
        if place not in bounds:
            told = [Told(digest, 0, symbol) for digest, symbol in said.items()]
            bounds[place] = largest_log_ratio([each.canonical for each in surveys], told)
        assert bounds[place] <= loss + ROUNDING
        reached = Fraction(max(weights), min(weights))
        assert reached <= ceiling
        assert reached <= exp_bounds(Fraction(loss))[1]  # the odometer is never below the truth
        met["positions"] += 1
        met["near the budget"] += reached > ceiling * Fraction(9, 10)

    def play(
        ledger: MemoryLedger,
        left: tuple[Survey, ...],
        pending: tuple[Survey, ...],
        weights: list[int],
        said: dict[bytes, int],
    ) -> None:
        if pending:  # all that is pending is answered now, in every way
            for symbols in product(*(range(each.channel.outputs) for each in pending)):
                if not {SCORED, OPPOSED} & {*surveys} and len(set(weights)) == 1 and symbols[0]:
                    continue  # the first answer of all: the others are this one with values renamed
                after, book = weights, ledger.copy()
                device = Device(book)
                chosen = dict(zip((each.digest for each in pending), symbols, strict=True))
                device.answerer.chosen = chosen
                assert len(device.answerer.answer(now_s=NOW_S)) == len(pending)
                for step in chosen.items():
                    after = [a * b for a, b in zip(after, rows[step], strict=True)]
                known = said | chosen
                check(after, device.state.filter_state.loss, known)
                play(book, left, (), after, known)
        for asked in left:
            book = ledger.copy()
            device = Device(book)
            rest = tuple(each for each in left if each is not asked)
            if device.enrolments.enrol(asked, now_s=NOW_S).accepted:
                met["all accepted"] += not rest
                play(book, rest, (*pending, asked), weights, said)
            else:
                met["refused"] += 1
                play(ledger, rest, pending, weights, said) if not pending else None

    first = MemoryLedger(budget)
    values = Device(first).values
    for attribute in ATTRIBUTES.values():
        values.register(attribute)
    play(first, surveys, (), [1] * len(RECORDS), {})
    return met


@pytest.mark.parametrize(
    ("surveys", "budget"),
    [
        (SURVEYS, 1.45),
        (SURVEYS, 2.11),
        ((SCORED, *SURVEYS[1:]), 1.51),
        ((SCORED, OPPOSED, SURVEYS[2]), 1.25),
    ],
)
def test_no_adaptive_adversary_gets_beyond_the_budget(surveys: tuple[Survey, ...], budget: float) -> None:
    met = explore(budget, surveys)
    assert met["positions"] > 50
    assert met["near the budget"]
    assert met["all accepted"] if budget > 2.0 else met["refused"]
