"""Scores on a device: what is read and reserved, that losses add where they must, that a ledger replays."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from devices import DAY_S, Clock, Collector, opener
from surveys import ACTIVITY, START_S, VISITS

from hubbub import Survey
from hubbub.filter import BayesianFilter, Box, Query, Regression
from hubbub.filter.regression.component import RegressionComponent
from hubbub.testing import seeded
from hubbub_client import Agent
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.schedule import MEMOISED
from hubbub_lab.simulation.device_simulator import DeviceSimulator

SCORE = Survey.parse(ACTIVITY)
WEIGHT, AGE = (next(a for a in SCORE.attributes if a.id == name) for name in ("weight", "age"))
# The score is one end or the other, and the answer is the truth but for e^-14 < 9e-7.
SHARP = Survey.parse(
    ACTIVITY.replace(
        'score = "logistic"\nintercept = 0.5',
        'score = "truncated"\nlow = 0.0\nhigh = 0.05\nintercept = -0.65',
    )
    .replace("coefficient = -0.01", "coefficient = 0.0")
    .replace("epsilon = 1.0", "epsilon = 14.0")
)
AGE_ALONE = Survey.parse(
    VISITS.replace('id = "visits"', 'id = "age"')
    .replace("low = 0\nhigh = 20", "low = 10\nhigh = 19")
    .replace('name = "pbgrr"\nboost_epsilon = 2.0', 'name = "grr"\nreading = "category"')
    .replace("values = [0]", "range = [10, 13]")
    .replace("range = [1, 2]", "range = [14, 15]")
    .replace("range = [3, 20]", "range = [16, 19]")
)
EVOLVING = Survey.parse(
    ACTIVITY.replace('kind = "static"\ntype = "number"', 'kind = "evolving"\ntype = "number"')
)

# 0.5 - 0.01 weight + 0.05 age runs from -0.2 to 1.25 here, so that an answer 0 tells most.
ENDS = [1.0 / (1.0 + math.exp(-score)) for score in (-0.2, 1.25)]
ONE_SCORE = math.log((math.e - ENDS[0] * (math.e - 1.0)) / (math.e - ENDS[1] * (math.e - 1.0)))
"""The most that one answer of epsilon 1 to the logistic score can cost, nats: .341."""


def version(number: int, text: str = ACTIVITY) -> Survey:
    return Survey.parse(text.replace("version = 1", f"version = {number}"))


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:

        def registered(budget: float | None = 10.0, **settings: object) -> Agent:
            agent = make(budget, **settings)
            agent.register(WEIGHT)
            agent.register(AGE)
            return agent

        yield registered


@pytest.mark.parametrize(("age", "expected"), [(19, 1), (10, 0), (None, 1), ("x", 1), (13, 0)])
def test_an_answer_tells_the_end_that_the_score_is_at(open_agent, collector, age, expected) -> None:
    """The score is 0.05 age - 0.65, cut to 0 and 0.05; a missing age counts as 15."""
    agent = open_agent(30.0)
    agent.set("age", age)
    assert agent.enrol(SHARP).accepted
    assert len(agent.answer()) == 1
    agent.upload()
    assert [report.symbol for report in collector.received] == [expected]


def test_the_numbers_of_a_score_are_pinned_and_its_answer_is_memoised(open_agent, collector, clock) -> None:
    agent = open_agent()
    agent.set("age", 12)
    agent.set("weight", 50.5)
    assert agent.enrol(SCORE).accepted
    assert agent.status().committed == pytest.approx(ONE_SCORE, abs=1e-6)
    agent.answer()
    for attribute in ("age", "weight"):
        with pytest.raises(ValueError, match="pinned by its first answer"):
            agent.set(attribute, 15)
    agent.close()
    agent = open_agent(None)
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    first, second = collector.received
    assert first.symbol == second.symbol and first.round != second.round
    # A logistic score stays away from its ends: less is lost than epsilon allows.
    assert 0.1 < agent.status().loss <= ONE_SCORE + 1e-6


def test_an_evolving_number_makes_every_round_an_answer_of_its_own(tmp_path, collector, clock) -> None:
    with opener(tmp_path, clock, collector) as make:
        agent = make(2.0)
        for attribute in EVOLVING.attributes:
            agent.register(attribute)
        agent.set("age", 12)
        assert agent.enrol(EVOLVING).accepted
        assert agent.status().committed == pytest.approx(2.0 * ONE_SCORE, abs=1e-6)
        agent.set("weight", 30.0)
        agent.answer()
        clock.now_s += DAY_S
        agent.set("weight", 110.0)
        agent.answer()
        agent.upload()
        assert [report.round for report in collector.received] == [0, 1]
        assert 0.2 < agent.status().loss <= 2.0 * ONE_SCORE + 1e-6
        loss = agent.status().loss
        agent.close()
        assert make(None).status().loss == pytest.approx(loss, abs=1e-9)


def test_scores_of_the_same_numbers_share_an_account_and_never_cost_more_than_their_sum(open_agent) -> None:
    agent = open_agent(2.9)
    agent.set("age", 12)
    assert agent.enrol(SCORE).accepted and agent.enrol(version(2)).accepted
    assert agent.status().committed == pytest.approx(2.0 * ONE_SCORE, abs=1e-6)
    agent.answer()
    loss = agent.status().loss
    symbols = {agent._state.filter_state.recorded[survey.digest, MEMOISED] for survey in (SCORE, version(2))}
    if len(symbols) == 2:  # the same question answered yes and no tells next to nothing
        assert loss < 0.2
    else:
        assert 0.2 < loss <= 2.0 * ONE_SCORE + 1e-6
    assert agent.enrol(version(3)).accepted
    before = agent.status()
    agent.close()
    agent = open_agent(None)
    assert agent.status().loss == pytest.approx(before.loss, abs=1e-9)
    assert agent.status().committed == pytest.approx(before.committed, abs=1e-9)


def test_losses_of_a_score_and_of_a_finite_survey_on_one_value_add(open_agent) -> None:
    """The account of a box and that of a finite domain know nothing of each other: sound, never less."""
    agent = open_agent()
    agent.set("age", 12)
    assert agent.enrol(AGE_ALONE).accepted
    assert agent.enrol(SCORE).accepted
    assert agent.status().committed == pytest.approx(3.0 + ONE_SCORE, abs=1e-6)
    agent.answer()
    alone = 3.0  # GRR of three categories realises its epsilon
    assert alone + 0.1 < agent.status().loss <= alone + ONE_SCORE + 1e-6
    agent.close()
    agent = open_agent(None)
    assert alone + 0.1 < agent.status().loss <= alone + ONE_SCORE + 1e-6


def test_a_corrected_number_is_another_record_of_numbers(open_agent, collector, clock) -> None:
    agent = open_agent(41.0)
    agent.set("age", 12)
    assert agent.enrol(SHARP).accepted
    agent.answer()
    assert agent.correct("age", 18).status == "corrected"
    assert agent.correct("weight", 44.0).status == "refused"
    agent.close()
    agent = open_agent(None)
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    assert [report.symbol for report in collector.received] == [0, 1]


def test_forgetting_scores_leaves_what_they_cost(open_agent) -> None:
    agent = open_agent()
    agent.enrol(SCORE)
    agent.answer()
    agent.forget()
    committed = agent.status().committed
    agent.close()
    agent = open_agent(None)
    assert agent.status().committed == committed
    assert 0.1 < committed <= 1.0


def test_an_owner_is_told_of_a_score_in_words(open_agent) -> None:
    agent = open_agent()
    agent.enrol(SCORE)
    agent.answer()
    agent.upload()
    (asked,) = agent.account().surveys
    assert descriptions.asked(asked.survey) == (
        "a score of age, a number from 10 to 19; weight, a number from 20 to 120, once, "
        "the same noisy answer every round, epsilon 1.000"
    )
    said = descriptions.mechanism(asked.survey)
    assert "logistic score, 0.5 + 0.05 x age - 0.01 x weight, from 0 to 1" in said
    assert "Its cost adds to that of every survey but scores of the same values" in said
    assert "at most the sum of what each says" in said
    assert "likeliest from" in descriptions.symbol(asked.survey, asked.sent[0].symbol)


def test_a_ledger_repeats_what_was_granted_even_if_a_bound_comes_out_higher(monkeypatch) -> None:
    """As on a machine whose floats end a search elsewhere: nothing is lost, and nothing more is granted."""
    box = Box((0.0,), (1.0,))
    queries = [Query("numbers", Regression("logistic", box, (8.0,), -4.0, 1.0)) for _ in range(3)]
    accountant, again = BayesianFilter(2.0), BayesianFilter(2.0)
    for query in queries[:2]:
        assert accountant.reserve_all([query]) == again.reapply_all([query]) is not None
    accountant.record(0, 1), accountant.record(1, 0)
    again.record(0, 1), again.record(1, 0)
    assert accountant.reserve_all([queries[2]]) == (2,)
    higher = RegressionComponent.worst_with
    monkeypatch.setattr(
        RegressionComponent, "worst_with", lambda *args, **keys: higher(*args, **keys) + 2 * 2**40
    )
    assert again.reserve_all([queries[2]]) is None
    assert again.reapply_all([queries[2]]) == (2,)
    assert again.reapply_all([queries[2]]) == (3,)
    assert again.committed > again.budget
    monkeypatch.undo()
    assert again.reserve_all([Query("other", queries[0].channel)]) is None
    # Without numbers a repeated decision is made again: what does not fit was never granted.
    finite = BayesianFilter(1.0)
    assert finite.reapply_all([Query("age", AGE_ALONE.channel, AGE_ALONE.mapping)]) is None


def test_a_fleet_answers_scores_by_the_same_law(open_agent) -> None:
    """4,000 devices, half of them at either end: each answers the truth but for e^-14."""
    fleet = DeviceSimulator(4000, budget=15.0, source=seeded(5))
    for attribute in (AGE, WEIGHT):
        fleet.register(attribute)
    fleet.set("age", [[10, 19, None, 99][i % 4] for i in range(4000)])
    assert fleet.enrol(SHARP, now_s=START_S + 10).accepted.all()
    (column,) = fleet.answer(now_s=START_S + 10)
    assert column.symbols.tolist() == [0, 1, 1, 1] * 1000
    assert fleet.loss.max() <= 14.0 + 1e-6
    assert (fleet.committed <= 15.0).all()
    second = Survey.parse(ACTIVITY)
    assert fleet.enrol(second, now_s=START_S + 10).accepted.all()
