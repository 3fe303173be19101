"""Agents that are closed and opened, or killed and opened: the account and what fits are what they were.

What an agent has committed is a function of what it granted and answered. A restart that states more, or lets
something else fit, has forgotten a proof, or made one up.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import random
import shutil
from pathlib import Path

import pytest
import random_cases
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import DAY_S, FAST_SETUP, Clock, Collector
from random_surveys import MECHANISMS, SCORES
from surveys import START_S, small

from hubbub.errors import ParameterError
from hubbub.survey.domain import LabelDomain
from hubbub.survey.signed_list import SurveyList, public_text
from hubbub.survey.survey import Survey
from hubbub_client import Agent, ClientError
from hubbub_client.surveys.schedule import scheduled_answers, scheduled_query

KEY = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
LIVES = 300 if "HUBBUB_TEST_LONG" in os.environ else 12


def opened(path: Path, clock: Clock, surveys: list[Survey], budget: float) -> Agent:
    agent = Agent(
        path,
        "http://collector.invalid",
        budget=budget,
        clock=clock,
        http=Collector(),
        survey_key=public_text(KEY),
        **FAST_SETUP,
    )
    for attribute in {each.id: each for survey in surveys for each in survey.attributes}.values():
        agent.register(attribute)
    return agent


def stated(agent: Agent, surveys: list[Survey]) -> tuple[object, ...]:
    """All that the account says, and which schedules fit it, each asked of a copy."""
    state = agent._state
    accountant = state.filter_state.filter
    fits: list[bool | None] = []
    for survey in surveys:
        queries = [
            scheduled_query(survey, slot, pin_version=state.pin_version(survey))
            for slot in scheduled_answers(survey, -1)
        ]
        try:
            fits.append(copy.deepcopy(accountant).reserve_all(queries) is not None)
        except ParameterError:  # a round that was answered is closed
            fits.append(None)
    return accountant.committed, accountant.loss, accountant.pending, tuple(fits)


def step(agent: Agent, surveys: list[Survey], chance: random.Random, clock: Clock, sequence: int) -> None:
    """One deed of an owner, a clock or an operator."""
    what = chance.random()
    survey = chance.choice(surveys)
    attribute = chance.choice(survey.attributes)
    domain = attribute.domain
    values = domain.labels if isinstance(domain, LabelDomain) else (domain.low, domain.high, None)
    if what < 0.4:
        agent.enrol(survey)
    elif what < 0.6:
        agent.answer()
    elif what < 0.75:
        clock.now_s = START_S + chance.randrange(4) * DAY_S + 10.0
    elif what < 0.95:
        change = agent.set if attribute.kind == "evolving" else agent.correct
        change(attribute.id, chance.choice(values))
    elif what < 0.99:
        ends = (survey.digest,) if chance.random() < 0.5 else ()
        signed = SurveyList(sequence, START_S, START_S + 9 * DAY_S, (), ends).signed(KEY)
        agent._lists.take(signed, now_s=clock.now_s)
    else:
        agent.forget()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(LIVES))
def test_an_opening_changes_neither_what_is_committed_nor_what_fits(tmp_path: Path, seed: int) -> None:
    """25 deeds of a life with surveys of every form; after half of them it is opened anew, or from a copy."""
    chance = random.Random(f"reopened {seed}")  # noqa: S311 - a game, not an answer
    (world,) = random_cases.worlds(1, seed, (*MECHANISMS, *SCORES * 8))
    surveys = random_cases._chosen(world, chance) + chance.sample(world, 4)
    surveys += [score("rounds", 0.5, 4), score("more", 0.4, 3, slope=-2.0)]
    surveys += [score(f"once-{i}", 0.4, 2, "static", slope=chance.uniform(-3.0, 3.0)) for i in range(3)]
    surveys = list({survey.digest: survey for survey in surveys}.values())
    clock, budget = Clock(START_S + 10.0), chance.choice([1.0, 2.0, 4.0])
    folder = tmp_path / "0"
    folder.mkdir()
    agent = opened(folder / "ledger.db", clock, surveys, budget)
    for number in range(25):
        with contextlib.suppress(ClientError):
            step(agent, surveys, chance, clock, number + 1)
        if chance.random() < 0.5:
            continue
        before = stated(agent, surveys)
        assert before[0] <= budget
        if chance.random() < 0.3:  # killed: what is on the disk now is all there is
            folder = Path(shutil.copytree(folder, tmp_path / str(number + 1)))
        agent.close()
        agent = opened(folder / "ledger.db", clock, surveys, budget)
        assert stated(agent, surveys) == before
    agent.close()


LABEL = 'type = "label"\nlabels = ["f", "m", "x"]'


def grr(name: str, epsilon: float) -> Survey:
    return Survey.parse(small(name, LABEL, attribute="sex", kind="static", epsilon=epsilon, rounds=1))


def score(
    name: str,
    epsilon: float,
    rounds: int,
    kind: str = "evolving",
    *,
    slope: float = 0.5,
    default: float = 0.0,
) -> Survey:
    """A logistic score of one number from 0 to 1."""
    number = f'type = "number"\nlow = 0.0\nhigh = 1.0\ncoefficient = {slope}\ndefault = {default}'
    text = small(name, number, attribute=f"steps-{kind}", kind=kind, epsilon=epsilon, rounds=rounds)
    return Survey.parse(
        text.split("[mechanism]")[0]
        + """
[mechanism]
name = "regression"
score = "logistic"
intercept = 0.0
"""
    )


def test_pending_rounds_of_a_score_cost_after_an_opening_what_they_cost_before(tmp_path: Path) -> None:
    """Six rounds of epsilon .5 that tell numbers apart by .0618 each: 4.1 were stated of a budget of 1.5."""
    surveys = [grr("first", 1.1), score("six", 0.5, 6), grr("last", 0.01)]
    clock = Clock(START_S + 10.0)
    agent = opened(tmp_path / "ledger.db", clock, surveys, 1.5)
    assert [agent.enrol(survey).status for survey in surveys[:2]] == ["enrolled"] * 2
    before = stated(agent, surveys)
    high, rise = 1.0 / (1.0 + math.exp(-0.5)), math.expm1(0.5)
    apart = math.log((math.exp(0.5) - 0.5 * rise) / (math.exp(0.5) - high * rise))  # by an answer 0
    assert before[0] == pytest.approx(1.1 + 6 * apart, abs=1e-6)
    for _ in range(2):
        agent.close()
        agent = opened(tmp_path / "ledger.db", clock, surveys, 1.5)
        assert stated(agent, surveys) == before
    assert agent.enrol(surveys[2]).status == "enrolled"
    agent.close()


def test_an_opening_gives_up_nothing_that_was_granted(tmp_path: Path) -> None:
    """Two scores of one number with other defaults are two coordinates: nothing was merged."""
    scores = [score(f"d{default}", 0.1, 1, "static", default=default) for default in (0.0, 1.0)]
    surveys = [*scores, grr("sex", 0.9), score("six", 0.5, 6)]
    clock = Clock(START_S + 10.0)
    agent = opened(tmp_path / "ledger.db", clock, surveys, 1.5)
    assert [agent.enrol(survey).status for survey in surveys] == ["enrolled"] * 4
    before = stated(agent, surveys)
    agent.close()
    agent = opened(tmp_path / "ledger.db", clock, surveys, 1.5)
    assert {status.state for status in agent.status().enrolments} == {"active"}
    assert len(agent.answer()) == 4
    assert stated(agent, surveys)[0] <= before[0]
    agent.close()


def test_a_later_version_that_searches_worse_takes_nothing_back(tmp_path: Path, monkeypatch) -> None:
    """Its searches find nothing at all; the ledger still says what was proved, and that can be answered."""
    surveys = [score(f"s{i}", 0.5, 1, "static", slope=0.5 + 0.1 * i) for i in range(3)]
    clock = Clock(START_S + 10.0)
    agent = opened(tmp_path / "ledger.db", clock, surveys, 0.6)
    assert [agent.enrol(survey).status for survey in surveys] == ["enrolled"] * 3
    assert len(agent.answer()) == 3
    before = stated(agent, [])
    agent.close()
    monkeypatch.setattr("hubbub.filter.regression.component.MAX_SEARCHED", 0)
    agent = opened(tmp_path / "ledger.db", clock, surveys, 0.6)
    assert stated(agent, []) == before
    agent.close()
