"""Scores whose defaults differ: a missing value is another point to each, so their losses add."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from devices import Clock, Collector, opener
from missing_scores import X, in_turn, score
from surveys import ACTIVITY, START_S

from hubbub import Survey
from hubbub.survey.score import Score
from hubbub.testing import seeded
from hubbub_client import Agent
from hubbub_client.agent.answerer import Answerer
from hubbub_client.surveys.schedule import MEMOISED, scheduled_query
from hubbub_lab.simulation.device_simulator import DeviceSimulator


def truth(answers: list[tuple[Survey, int]]) -> float:
    """The largest log-ratio of the answers over x missing and 1,001 points, by the channel's formula."""
    points = [None, *np.linspace(0.0, 1.0, 1001)]
    logs = np.zeros(len(points))
    for survey, symbol in answers:
        form = survey.form
        assert isinstance(form, Score)
        (slope,), (default,), least = form.coefficients, form.defaults, 1 / (1 + math.exp(form.epsilon))
        g = np.array([form.intercept + slope * (default if x is None else x) for x in points])
        says_one = least + g * (1 - 2 * least)
        logs += np.log(says_one if symbol else 1 - says_one)
    return float(logs.max() - logs.min())


@pytest.fixture
def open_agent(tmp_path: Path):
    with opener(tmp_path, Clock(START_S + 10), Collector()) as make:

        def registered(budget: float | None = 1.0) -> Agent:
            agent = make(budget)
            agent.register(X)
            return agent

        yield registered


@pytest.fixture
def ones(monkeypatch) -> None:
    """Every answer comes out as 1: as unlikely as it may be for some record, it can happen."""
    monkeypatch.setattr(Answerer, "_perturb", lambda *_: 1)


@pytest.mark.parametrize("budget", [1.0, 2.0, 6.0])
def test_what_is_missing_never_costs_more_than_the_account_says(open_agent, ones, budget) -> None:
    """As a collector would that only picks the next survey: answers 1, 1, 1, ... to defaults in turn."""
    agent, said = open_agent(budget), []
    for survey in in_turn(0.5, 14):
        if agent.enrol(survey).accepted:
            agent.answer()
            said.append((survey, 1))
        assert truth(said) <= agent.status().loss + 1e-9 <= budget + 1e-9
    assert len(said) == 2 * budget
    loss = agent.status().loss
    agent.close()
    assert open_agent(None).status().loss == pytest.approx(loss, abs=1e-9)


def test_scores_of_one_default_go_on_taking_each_other_back(open_agent, ones) -> None:
    agent = open_agent(2.0)
    for survey in (
        score("up", 1.0, falling=False, default=0.3),
        score("down", 1.0, falling=True, default=0.3),
    ):
        assert agent.enrol(survey).accepted
        agent.answer()
    assert 0.2 < agent.status().loss < 0.25


def test_one_other_default_among_several_numbers_is_another_coordinate() -> None:
    """Of two numbers both scores read the first one's gap alike, and the second one's differently."""
    texts = [ACTIVITY, ACTIVITY.replace("default = 70.0", "default = 71.0"), ACTIVITY.replace("0.5", "0.6")]
    places = [scheduled_query(Survey.parse(text), MEMOISED, pin_version=0).coordinate for text in texts]
    assert places[0] != places[1]
    assert places[0] == places[2]


def test_a_fleet_adds_what_an_agent_adds(open_agent, ones) -> None:
    surveys = in_turn(0.5, 5)
    fleet = DeviceSimulator(50, budget=10.0, source=seeded(3))
    fleet.register(X)
    agent = open_agent(10.0)
    said = []
    for survey in surveys:
        assert agent.enrol(survey).accepted
        assert fleet.enrol(survey, now_s=START_S + 10.0).accepted.all()
        (column,) = fleet.answer(now_s=START_S + 10.0)
        said.append(column.symbols)
    agent.answer()
    symbols = np.stack(said, axis=1)
    for device in range(50):
        found = list(zip(surveys, symbols[device].tolist(), strict=True))
        assert truth(found) <= fleet.loss[device] + 1e-9
        if symbols[device].all():
            assert fleet.loss[device] == pytest.approx(agent.status().loss, abs=1e-9)
    assert symbols.all(axis=1).any()
