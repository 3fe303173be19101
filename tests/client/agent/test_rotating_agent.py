"""Agents of a rotating survey: one answer a cycle through whatever happens, accepted whatever their slots."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from devices import AGREED, DAY_S, HEALTH, Clock, Collector, opener
from independent_bound import Told, largest_log_ratio
from surveys import LABELS, START_S

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub_client import Agent, LedgerCorruptError
from hubbub_client.surveys.rotation import SEED_BYTES, slot_in_cycle

EPSILON = 1.0


@cache
def panel(rounds: int, rotation: int) -> Survey:
    return Survey.parse(LABELS.replace("rounds = 3", f"rounds = {rounds}\nrotation = {rotation}"))


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S + 10.0)


def seed_of(agent: Agent, survey: Survey) -> bytes:
    seed = agent._state.enrolments[survey.digest].slot_seed
    assert seed is not None
    return seed


def seeds(count: int) -> Iterator[bytes]:
    source = np.random.default_rng(5)
    return (source.bytes(SEED_BYTES) for _ in range(count))


def draw_as(monkeypatch: pytest.MonkeyPatch, urandom: Callable[[int], bytes]) -> None:
    monkeypatch.setattr("hubbub_client.agent.enrolments.os", SimpleNamespace(urandom=urandom))


def slots(seed: bytes, survey: Survey, first: int = 0) -> list[int]:
    """Rounds that a seed draws from `first` on, found one by one."""
    w = survey.rotation
    return [n for n in range(first, survey.rounds) if slot_in_cycle(seed, n // w, w) == n % w]


@pytest.mark.parametrize("seed", range(24))
def test_one_answer_a_cycle_through_kills_rejoining_late_joining_and_clocks_set_back(
    tmp_path: Path, seed: int
) -> None:
    """24 rounds in cycles of 6: a device of the first round answers 4 times for 4 epsilon, others as drawn.

    A kill leaves the files as they were copied before an answer. The largest log-ratio is found from bytes
    alone, by code that knows nothing of the filter.
    """
    chance = np.random.default_rng(seed)
    survey, joins = panel(24, 6), 0 if seed % 2 == 0 else int(chance.integers(1, 24))
    clock, collector = Clock(START_S + joins * DAY_S + 10.0), Collector()
    (tmp_path / "life").mkdir()

    def opened() -> Agent:
        made = Agent(
            tmp_path / "life" / "ledger.db",
            "http://collector.invalid",
            budget=4.0 * EPSILON,
            clock=clock,
            http=collector,
            policy=AGREED,
        )
        made.register(HEALTH)
        return made

    agent = opened()
    assert agent.enrol(survey).status == "enrolled"
    own = seed_of(agent, survey)
    wanted = slots(own, survey, joins)
    assert agent.status().committed == pytest.approx(len(wanted) * EPSILON, abs=1e-6)
    told: set[tuple[int, int]] = set()
    day = joins
    for _ in range(60):
        clock.now_s = START_S + day * DAY_S + chance.uniform(0, DAY_S - 1)
        agent.set("health", ["good", "poor", None][chance.integers(3)])
        shutil.copytree(tmp_path / "life", tmp_path / "copy")
        agent.answer()
        what = chance.integers(5)
        if what == 0:
            agent.close()
            agent = opened()
        elif what == 1:  # killed before it answered: nobody has seen that answer
            agent.close()
            shutil.rmtree(tmp_path / "life")
            (tmp_path / "copy").rename(tmp_path / "life")
            agent = opened()
        elif what == 2:
            agent.opt_out(survey)
            agent.opt_in(survey)
            if day < 24:
                assert agent.enrol(survey).status == "enrolled"
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        agent.upload()
        assert seed_of(agent, survey) == own
        # Back over an edge of a cycle now and then, and on from there.
        day = max(0, day - int(chance.integers(1, 8))) if chance.integers(4) == 0 else day + 1
        if day > 23 and chance.integers(2):
            day = int(chance.integers(24))
    status = agent.status()
    for report in collector.received:
        told.add((report.round, report.symbol))
    assert {number for number, _ in told} <= set(wanted)
    assert len(told) == len({number for number, _ in told}) <= 4
    assert status.committed <= len(wanted) * EPSILON + 1e-6
    if joins == 0:
        assert len(wanted) == 4
    said = [Told(survey.digest, number, symbol) for number, symbol in told]
    found = largest_log_ratio([survey.canonical], said) if said else 0.0
    # What was withdrawn or lost with a kill was paid, too; each that was sent is extremal.
    assert found <= status.loss + 1e-9 <= status.committed + 1e-9
    assert found == pytest.approx(len(told) * EPSILON, abs=1e-5)
    agent.close()


def test_whoever_could_not_pay_for_the_worst_slots_is_refused_whatever_was_drawn(
    tmp_path: Path, clock: Clock, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From round 4 of 11 in cycles of 6, both cycles may ask, or neither: a budget of one is too little."""
    survey = panel(11, 6)
    clock.now_s = START_S + 4 * DAY_S + 10.0
    drawn = {len(slots(seed, survey, 4)): seed for seed in seeds(200)}
    assert drawn.keys() == {0, 1, 2}
    for answers, seed in drawn.items():
        for budget, status in ((1.5, "refused"), (2.0, "enrolled")):
            folder = tmp_path / f"{answers}-{budget}"
            folder.mkdir()
            draw_as(monkeypatch, lambda _, seed=seed: seed)
            with opener(folder, clock, collector) as make:
                agent = make(budget)
                found = agent.enrol(survey)
                assert found.status == status
                assert found.reason == (None if status == "enrolled" else "over_budget")
                spent = answers * EPSILON if status == "enrolled" else 0.0
                assert agent.status().committed == pytest.approx(spent, abs=1e-6)


def test_a_score_is_decided_on_for_the_worst_slots_too(open_agent, clock, monkeypatch) -> None:
    evolving = Survey.parse(_SCORE)
    lucky = next(seed for seed in seeds(200) if len(slots(seed, evolving, 2)) == 0)
    draw_as(monkeypatch, lambda _: lucky)
    clock.now_s = START_S + 2 * DAY_S + 10.0
    agent = open_agent(0.9)
    agent.register(Attribute.number("weight", 20.0, 120.0, kind="evolving"))
    assert agent.enrol(evolving).reason == "over_budget"
    agent.close()


_SCORE = """\
id = "weighed"
version = 1
title = "A score of a weight"
epsilon = 0.5
minimum_cohort = 100
planned_devices = 12000
[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 5
rotation = 3
lateness = "1h"
skew = "5m"
[[attribute]]
id = "weight"
kind = "evolving"
type = "number"
low = 20.0
high = 120.0
coefficient = 1.0
default = 20.0
[mechanism]
name = "regression"
score = "linear"
intercept = 0.0
low = 20.0
high = 120.0
"""


def test_a_rotating_year_of_rounds_counts_its_answers_alone_against_the_device_limits(open_agent) -> None:
    agent = open_agent()
    assert agent.enrol(panel(100_000, 50_000)).status == "enrolled"
    assert agent.enrol(panel(100_000, 7)).reason == "too_large"


def test_tokens_and_kept_values_are_for_the_drawn_rounds_alone(open_agent, clock) -> None:
    survey = panel(24, 6)
    agent = open_agent()
    agent.enrol(survey)
    wanted = slots(seed_of(agent, survey), survey)
    coming = agent._state.coming_rounds(clock.now_s, 30 * DAY_S)
    assert coming == [(survey.digest, number) for number in wanted]
    for number in range(24):
        clock.now_s = START_S + number * DAY_S + 10.0
        agent.set("health", "good")
        assert [kept.attribute for kept in agent._ledger.kept_values()] == ["health"] * (number in wanted)
        assert [answer.round for answer in agent.answer()] == [number] * (number in wanted)


def test_a_seed_is_drawn_from_the_system_once_and_outlives_forgetting(open_agent, clock, monkeypatch) -> None:
    survey, other = panel(24, 6), panel(12, 4)
    drawn: list[int] = []
    draw_as(monkeypatch, lambda n: (drawn.append(n), bytes([len(drawn)] * n))[1])
    agent = open_agent(20.0)
    agent.enrol(survey)
    agent.enrol(other)
    own = [seed_of(agent, each) for each in (survey, other)]
    assert drawn == [SEED_BYTES] * 2 and own[0] != own[1]
    agent.forget()
    assert agent.enrol(survey).status == "enrolled"
    assert seed_of(agent, survey) == own[0] and drawn == [SEED_BYTES] * 2
    assert agent._ledger.enrolments()[0].slot_seed == own[0]


def test_a_seed_is_in_the_ledger_and_cannot_be_exchanged(open_agent, tmp_path) -> None:
    agent = open_agent()
    agent.enrol(panel(24, 6))
    agent.enrol(Survey.parse(LABELS))
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db")
    assert [row[0] and len(row[0]) for row in db.execute("SELECT slot_seed FROM enrolment")] == [32, None]
    for value in (os.urandom(32), None):
        with pytest.raises(sqlite3.IntegrityError, match="an enrolment stays"):
            db.execute("UPDATE enrolment SET slot_seed = ? WHERE seq = 1", (value,))
    db.execute("DROP TRIGGER survey_is_fixed")
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        db.execute("UPDATE enrolment SET slot_seed = x'00' WHERE seq = 1")
    db.execute("UPDATE enrolment SET slot_seed = NULL WHERE seq = 1")
    db.commit()
    db.close()
    with pytest.raises(
        LedgerCorruptError, match="must have a seed if it rotates or has parts, and only then"
    ):
        open_agent(None)
