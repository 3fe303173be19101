"""What a survey can make a device carry for ever is bounded: answers, rows and bytes."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from devices import HEALTH, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, changed, opener
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import LABELS, START_S, VISITS

from hubbub.channels import UNITS_PER_NAT, BlockDivergence
from hubbub.filter import BayesianFilter
from hubbub.survey.survey import Survey
from hubbub_client import Agent, ClientError, Policy
from hubbub_client.agent.enrolments import rounds_fit
from hubbub_client.surveys.load import survey_load
from hubbub_client.surveys.schedule import scheduled_answers, scheduled_query
from hubbub_lab.simulation import device_simulator
from hubbub_lab.simulation.device_simulator import DeviceSimulator


@pytest.fixture
def open_agent(tmp_path: Path):
    with opener(tmp_path, Clock(START_S + 10), Collector()) as make:
        yield make


def many(rounds: int, epsilon: str = "1e-6", version: int = 1) -> Survey:
    return changed(LABELS, rounds=str(rounds), epsilon=epsilon, version=str(version))


def test_a_survey_of_very_many_rounds_is_refused_whatever_it_costs(open_agent: Callable[..., Agent]) -> None:
    """100,000 rounds at epsilon 1e-6 are 0.1 of the budget, in 141 bytes, and a row each for ever."""
    agent = open_agent(budget=10.0)
    refused = agent.enrol(many(100_000))
    assert (refused.status, refused.reason) == ("refused", "too_large")
    assert agent.status().committed == 0
    assert agent.account().refusals[0].reason == "too_large"
    assert agent.enrol(many(10_001)).reason == "too_large"
    assert agent.enrol(many(10_000)).accepted


def test_a_ledger_takes_so_many_answers_in_all(open_agent: Callable[..., Agent]) -> None:
    policy = Policy(require_opt_in="no", max_slots=60, max_ledger_slots=100)
    agent = open_agent(policy=policy)
    assert agent.enrol(many(60)).accepted
    assert agent.enrol(many(41, version=2)).reason == "too_large"
    assert agent.enrol(many(40, version=2)).accepted
    assert agent.enrol(VISITS_SURVEY).reason == "too_large"  # static: one more
    agent.answer()
    agent.close()
    agent = open_agent(policy=policy)  # the count is the ledger's, not the process's
    assert agent.enrol(VISITS_SURVEY).reason == "too_large"
    agent.forget()  # rows are gone, and with them what they cost at every opening
    assert agent.enrol(VISITS_SURVEY).accepted


def test_a_survey_that_is_left_and_joined_again_counts_once(open_agent: Callable[..., Agent]) -> None:
    policy = Policy(require_opt_in="no", max_slots=3, max_ledger_slots=3)
    agent = open_agent(policy=policy)
    assert agent.enrol(HEALTH_SURVEY).accepted
    agent.opt_out(HEALTH_SURVEY)
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).accepted


def test_a_ledger_takes_surveys_of_so_many_bytes_in_all(open_agent: Callable[..., Agent]) -> None:
    """Every survey ever joined is read again at every opening."""
    size = len(HEALTH_SURVEY.canonical)
    policy = Policy(require_opt_in="no", max_ledger_bytes=size + len(VISITS_SURVEY.canonical) - 1)
    agent = open_agent(policy=policy)
    assert agent.enrol(HEALTH_SURVEY).accepted
    assert agent.enrol(VISITS_SURVEY).reason == "too_large"
    agent.opt_out(HEALTH_SURVEY)
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).accepted  # it is in the ledger already


def test_rounds_that_do_not_fit_are_refused_before_anything_of_them_is_built(
    open_agent: Callable[..., Agent],
) -> None:
    agent = open_agent(
        budget=10.0, policy=Policy(require_opt_in="no", max_slots=10**6, max_ledger_slots=10**6)
    )
    survey = many(100_000, epsilon="0.01")
    tracemalloc.start()
    try:
        assert agent.enrol(survey).reason == "over_budget"
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20  # 100,000 queries alone took 60 MiB


@pytest.mark.parametrize(
    "limit",
    ["max_slots", "max_ledger_slots", "max_ledger_bytes", "max_ledger_work", "max_ledger_memory"],
)
def test_a_limit_below_one_is_no_limit(limit: str) -> None:
    with pytest.raises(ClientError, match=f"{limit} must be at least 1, got 0"):
        Policy(**{limit: 0})


ROUNDS = {
    "labels": many(50, epsilon="0.25"),
    "values": changed(VISITS.replace('kind = "static"', 'kind = "evolving"'), rounds="50"),
}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(ROUNDS)),
    st.integers(1, 40),
    st.integers(-3, 3),
    st.lists(st.integers(0, 4), max_size=3),
)
def test_the_refusal_is_the_filters_own_at_every_margin(
    name: str, count: int, spare: int, answered: list[int]
) -> None:
    """Budgets within three quanta of what the rounds take, after other answers: both say the same."""
    survey = ROUNDS[name]
    wanted = scheduled_answers(survey, 49 - count)
    probe = BayesianFilter(4000.0)
    assert probe.reserve_all([scheduled_query(survey, wanted[0], pin_version=0)]) is not None
    each = int(probe.committed * UNITS_PER_NAT)
    before = BayesianFilter(4000.0)

    def prepare(account: BayesianFilter) -> None:
        for place, symbol in enumerate(answered):
            ticket = account.reserve(("other", place), HEALTH_SURVEY.channel)
            assert ticket is not None
            account.record(ticket, symbol)

    prepare(before)
    budget = (int(before.committed * UNITS_PER_NAT) + count * each + spare) / UNITS_PER_NAT
    account = BayesianFilter(budget + 2.0)  # room for the answers' own reservations
    prepare(account)
    account._limit, account._budget = int(budget * UNITS_PER_NAT), budget
    queries = [scheduled_query(survey, slot, pin_version=0) for slot in wanted]
    fits = rounds_fit(queries[0], count, account.headroom)
    assert fits == (spare >= 0)
    assert fits == (account.reserve_all(queries) is not None)


def test_a_fleet_refuses_as_its_agents_do() -> None:
    fleet = DeviceSimulator(3, budget=10.0)
    fleet.register(HEALTH)
    begun = time.process_time()
    for survey, reason in ((many(100_000), "too_large"), (many(5000, epsilon="0.01"), "over_budget")):
        refused = fleet.enrol(survey, now_s=START_S + 10.0)
        assert (refused.reason, refused.accepted.tolist()) == (reason, [False] * 3)
    assert not fleet.committed.any()
    assert time.process_time() - begun < 5.0
    for version in range(2, 7):
        assert fleet.enrol(many(10_000, version=version), now_s=START_S + 10.0).accepted.all()
    assert fleet.enrol(many(1, version=7), now_s=START_S + 10.0).reason == "too_large"


@pytest.mark.parametrize("room", [0, -1])
def test_a_fleet_takes_surveys_of_as_many_bytes_as_its_agents_do(
    open_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    first, second = many(3), many(4, version=2)
    limit = len(first.canonical) + len(second.canonical) + room
    monkeypatch.setattr(device_simulator, "MAX_LEDGER_BYTES", limit, raising=False)
    fleet = DeviceSimulator(3, budget=10.0)
    fleet.register(HEALTH)
    agent = open_agent(budget=10.0, policy=Policy(require_opt_in="no", max_ledger_bytes=limit))
    for survey in (first, first, second):
        told, decided = agent.enrol(survey), fleet.enrol(survey, now_s=START_S + 10.0)
        assert decided.reason == told.reason
        assert decided.accepted.tolist() == [told.accepted] * 3
    assert told.reason == (None if room == 0 else "too_large")


def grids(count: int, points: int, epsilon: str = "0.001") -> list[Survey]:
    """Surveys of one number by noise on a grid: a dense channel each."""
    text = (
        LABELS.replace('id = "health"', 'id = "weight"')
        .replace('type = "label"', 'type = "number"')
        .replace('name = "grr"', 'name = "square_wave"')
    )
    text = "\n".join(
        "low = 0.0\nhigh = 1.0" if line.startswith("labels") else line for line in text.splitlines()
    )
    text = text.replace('name = "square_wave"', f'name = "square_wave"\npoints = {points}')
    return [changed(text, epsilon=epsilon, version=str(version)) for version in range(1, count + 1)]


class Comparisons:
    """A count of the comparisons of weights that dense divergences take: pairs of rows by symbols."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made = 0
        plain = BlockDivergence.from_weights

        def counted(weights: np.ndarray) -> BlockDivergence:
            self.made += weights.shape[0] * (weights.shape[0] - 1) * weights.shape[1]
            return plain(weights)

        monkeypatch.setattr(BlockDivergence, "from_weights", counted)


def test_a_list_of_dense_grids_makes_no_opening_long(
    open_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve grids at epsilon 0.001 cost a thousandth of the budget each, and K^2 M at every opening."""
    surveys = grids(12, 40)
    limit = 4 * survey_load(surveys[0], surveys[0].rounds).work
    count = Comparisons(monkeypatch)
    policy = Policy(require_opt_in="no", max_ledger_work=limit)
    agent = open_agent(budget=10.0, policy=policy)
    agent.register(surveys[0].attributes[0])
    fleet = DeviceSimulator(3, budget=10.0)
    fleet.register(surveys[0].attributes[0])
    monkeypatch.setattr(device_simulator, "MAX_LEDGER_WORK", limit)
    decided = []
    for survey in surveys:
        told, twin = agent.enrol(survey), fleet.enrol(survey, now_s=START_S + 10.0)
        assert (told.reason, [told.accepted] * 3) == (twin.reason, twin.accepted.tolist())
        decided.append(told.reason)
    assert decided == [None] * 4 + ["too_large"] * 8
    assert 0 < count.made <= 2 * limit  # the agent's and the fleet's
    agent.close()
    count.made = 0
    agent = open_agent(budget=10.0, policy=policy)
    assert 0 < count.made <= limit  # each survey once, however many rounds it has
    assert agent.enrol(surveys[4]).reason == "too_large"  # counted from the ledger, not by the process
    agent.forget()
    assert agent.enrol(surveys[4]).accepted


def test_a_refusal_for_its_work_builds_nothing(
    open_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = grids(1, 40)[0]
    count = Comparisons(monkeypatch)
    agent = open_agent(policy=Policy(require_opt_in="no", max_ledger_work=survey_load(survey, 1).work - 1))
    agent.register(survey.attributes[0])
    assert agent.enrol(survey).reason == "too_large"
    assert count.made == 0


def test_a_ledger_holds_so_many_divergences_in_memory(
    open_agent: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys = grids(3, 40)
    limit = 3 * survey_load(surveys[0], surveys[0].rounds).held - 1
    agent = open_agent(budget=10.0, policy=Policy(require_opt_in="no", max_ledger_memory=limit))
    agent.register(surveys[0].attributes[0])
    fleet = DeviceSimulator(3, budget=10.0)
    fleet.register(surveys[0].attributes[0])
    monkeypatch.setattr(device_simulator, "MAX_LEDGER_MEMORY", limit)
    for survey, reason in zip(surveys, (None, None, "too_large"), strict=True):
        assert agent.enrol(survey).reason == fleet.enrol(survey, now_s=START_S + 10.0).reason == reason


@pytest.mark.parametrize(
    "survey", [HEALTH_SURVEY, VISITS_SURVEY, *grids(1, 200)], ids=["labels", "pbgrr", "grid"]
)
def test_a_survey_holds_no_more_memory_than_it_is_counted_for(survey: Survey) -> None:
    canonical = survey.canonical
    tracemalloc.start()
    try:
        read = Survey.from_canonical(canonical)
        divergence = read.channel.blocks()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    small = 2**16  # objects of Python, whatever the size
    assert divergence.blocks <= read.channel.most_blocks
    assert held <= survey_load(survey, 1).held + small
