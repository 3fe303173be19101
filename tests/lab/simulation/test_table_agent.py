"""Surveys of several attributes on a device: consent, reservation, answers, corrections, replay."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from devices import DAY_S, HEALTH, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, opener
from surveys import AGE_BY_SEX, START_S, VISITS

from hubbub import Survey
from hubbub.survey.domain import Attribute
from hubbub.testing import seeded
from hubbub_client import Agent, LedgerError, Policy
from hubbub_client.surveys.schedule import MEMOISED, joined_pin_versions, split_pin_versions
from hubbub_lab.simulation.device_simulator import DeviceSimulator

TABLE = Survey.parse(AGE_BY_SEX)
AGE, SEX = TABLE.attributes
AGE_ALONE = Survey.parse(
    VISITS.replace('id = "visits"', 'id = "age"')
    .replace("low = 0\nhigh = 20", "low = 10\nhigh = 19")
    .replace('name = "pbgrr"\nboost_epsilon = 2.0', 'name = "grr"\nreading = "category"')
    .replace("values = [0]", "range = [10, 13]")
    .replace("range = [1, 2]", "range = [14, 15]")
    .replace("range = [3, 20]", "range = [16, 19]")
)
MIXED = Survey.parse(
    AGE_BY_SEX.replace('id = "age-by-sex"', 'id = "mixed"').replace(
        '[[attribute]]\nid = "sex"\nkind = "static"\ntype = "label"\nlabels = ["f", "m"]',
        '[[attribute]]\nid = "health"\nkind = "evolving"\ntype = "label"\n'
        'labels = ["excellent", "good", "fair", "poor"]',
    )
)
SHARP = Survey.parse(AGE_BY_SEX.replace("epsilon = 2.0", "epsilon = 20.0"))
LONGER = Survey.parse(
    AGE_BY_SEX.replace("epsilon = 2.0", "epsilon = 20.0").replace("rounds = 2", "rounds = 3")
)


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:

        def registered(budget: float | None = 10.0, **settings: object) -> Agent:
            agent = make(budget, **settings)
            agent.register(AGE)
            agent.register(SEX)
            return agent

        yield registered


def test_every_attribute_is_read_in_one_answer_and_pinned_by_it(open_agent, collector, clock) -> None:
    """At epsilon 20 an answer is the truth but for 9 e^-20 < 2e-8."""
    agent = open_agent(50.0)
    agent.set("age", 12)
    agent.set("sex", "m")
    assert agent.enrol(SHARP).accepted
    assert len(agent.answer()) == 1
    with pytest.raises(ValueError, match="'age' is static and was pinned"):
        agent.set("age", 13)
    with pytest.raises(ValueError, match="'sex' is static and was pinned"):
        agent.set("sex", "f")
    agent.upload()
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    assert [report.symbol for report in collector.received] == [1, 1]  # child / m, and the memo of it
    assert agent.status().loss == pytest.approx(20.0, abs=1e-6)


def test_what_is_not_set_is_missing_by_itself(open_agent, collector) -> None:
    agent = open_agent(50.0)
    agent.set("age", 17)
    assert agent.enrol(SHARP).accepted
    agent.answer()
    agent.upload()
    assert [report.symbol for report in collector.received] == [5]  # youth / missing


@pytest.mark.parametrize(
    ("yes", "no", "reason"),
    [
        ((), (), "not_opted_in"),
        (("age",), (), "not_opted_in"),
        (("age", "sex"), (), None),
        ((TABLE,), (), None),
        ((TABLE,), ("sex",), "opted_out"),
        (("age", "sex"), (TABLE,), "opted_out"),
    ],
)
def test_the_owner_says_yes_to_the_survey_or_to_every_attribute(open_agent, yes, no, reason) -> None:
    agent = open_agent(policy=Policy())
    for asked in yes:
        agent.opt_in(asked)
    for asked in no:
        agent.opt_out(asked)
    assert agent.enrol(TABLE).reason == reason


def test_host_and_registration_are_asked_about_every_attribute(
    open_agent, tmp_path, clock, collector
) -> None:
    allowed = Policy(attributes=frozenset({"age"}), require_opt_in="no")
    assert open_agent(policy=allowed).enrol(TABLE).reason == "not_allowed"
    settings = {"budget": 9.0, "clock": clock, "http": collector, "policy": Policy(require_opt_in="no")}
    with Agent(tmp_path / "other.db", "http://c.invalid", **settings) as agent:
        agent.register(AGE)
        assert agent.enrol(TABLE).reason == "unknown_attribute"
        agent.register(Attribute.labels("sex", ["m", "f"], kind="static"))
        assert agent.enrol(TABLE).reason == "domain_mismatch"


def test_leaving_one_attribute_leaves_the_table(open_agent) -> None:
    agent = open_agent()
    assert agent.enrol(TABLE).accepted and agent.enrol(VISITS_SURVEY).accepted
    agent.opt_out("sex")
    assert {e.survey_id: e.state for e in agent.status().enrolments} == {
        "age-by-sex": "left",
        "outpatient-visits": "active",
    }


def test_a_table_and_a_survey_of_one_of_its_attributes_share_one_account(open_agent) -> None:
    """The same pair of records is worst for both, at 2.0 and 3.0."""
    agent = open_agent(4.9999)
    assert agent.enrol(TABLE).accepted
    assert agent.enrol(AGE_ALONE).reason == "over_budget"
    agent.set("age", 12)
    agent.answer()
    assert agent.status().loss == pytest.approx(2.0, abs=1e-6)
    symbol = agent._state.filter_state.recorded[TABLE.digest, -1]
    agent.close()
    agent = open_agent(None)  # replayed
    assert agent.status().loss == pytest.approx(2.0, abs=1e-6)
    assert agent._state.filter_state.recorded[TABLE.digest, -1] == symbol


def test_realised_losses_of_a_table_and_one_attribute_merge_as_their_rows_say(open_agent, clock) -> None:
    agent = open_agent(10.0)
    agent.set("age", 12)
    agent.set("sex", "m")
    assert agent.enrol(TABLE).accepted and agent.enrol(AGE_ALONE).accepted
    agent.answer()
    first, second = (agent._state.filter_state.recorded[survey.digest, -1] for survey in (TABLE, AGE_ALONE))
    assert TABLE.mapping is not None and AGE_ALONE.mapping is not None
    both = (
        np.log(TABLE.channel.column(first)[TABLE.mapping])
        + np.log(AGE_ALONE.channel.column(second)[AGE_ALONE.mapping])[:, None]
    )
    assert agent.status().loss == pytest.approx(float(both.max() - both.min()), abs=1e-9)
    before = agent.status()
    agent.close()
    agent = open_agent(None)
    assert (agent.status().loss, agent.status().committed) == (before.loss, before.committed)


def test_a_corrected_attribute_is_another_value_for_the_table(open_agent, collector) -> None:
    agent = open_agent(59.0)
    agent.set("age", 12)
    agent.set("sex", "m")
    assert agent.enrol(LONGER).accepted
    agent.answer()
    assert agent.correct("age", 18).status == "corrected"
    assert agent.status().committed == pytest.approx(40.0, abs=1e-6)
    agent.close()
    agent = open_agent(None)
    agent._clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    assert [report.symbol for report in collector.received] == [1, 4]
    assert agent.correct("sex", "f").status == "refused"  # a third answer of 20 does not fit 59
    agent.close()
    agent = open_agent(None)
    assert agent.status().loss == pytest.approx(40.0, abs=1e-6)


def test_static_and_evolving_together_are_asked_anew_every_round(open_agent, clock, collector) -> None:
    agent = open_agent(4.0)
    agent.register(HEALTH)
    agent.set("age", 12)
    assert agent.enrol(MIXED).accepted
    assert agent.status().committed == pytest.approx(4.0, abs=1e-6)
    agent.set("health", "fair")
    assert len(agent.answer()) == 1
    assert agent.correct("age", 13).status == "corrected"  # no answer was reserved for the old value alone
    agent.close()
    agent = open_agent(None)
    clock.now_s += DAY_S
    agent.set("health", "poor")
    assert len(agent.answer()) == 1
    agent.upload()
    assert {report.round for report in collector.received} == {0, 1}
    assert agent.status().loss == pytest.approx(4.0, abs=1e-6)
    assert agent._ledger.kept_values() == []


def test_corrections_leave_no_combinations_behind_and_lose_nothing(open_agent, clock) -> None:
    """Eleven ages by three sexes: with every age that was ever pinned they would be 11^4 x 3 cells by now.

    The loss is that of brute force over all pinned ages, which are values of their own.
    """
    agent = open_agent(100.0)
    agent.set("age", 12)
    agent.set("sex", "m")
    survey = Survey.parse(AGE_BY_SEX.replace("rounds = 2", "rounds = 4"))
    assert agent.enrol(survey).accepted
    said: list[int] = []
    for age in (18, 10, 15, None):
        agent.answer()
        said.append(agent._state.filter_state.recorded[survey.digest, MEMOISED])
        if age is not None:
            assert agent.correct("age", age).status == "corrected"
            clock.now_s += DAY_S
    assert TABLE.mapping is not None
    logs = [np.log(TABLE.channel.column(symbol)[TABLE.mapping]) for symbol in said]
    most = sum(each.max(axis=0) for each in logs)
    least = sum(each.min(axis=0) for each in logs)
    expected = float(most.max() - least.min())
    for _ in range(2):
        assert agent.status().loss == pytest.approx(expected, abs=1e-9)
        component = agent._state.filter_state.filter._components["pinned", "sex", 0]
        assert sorted(component.shape) == [3, 11]
        agent.close()
        agent = open_agent(None)


def test_a_round_that_is_answered_leaves_its_cost_alone_behind(open_agent, clock) -> None:
    agent = open_agent()
    assert agent.enrol(HEALTH_SURVEY).accepted
    for day in range(2):
        clock.now_s = START_S + 10 + day * DAY_S
        agent.answer()
        for _ in range(2):
            assert agent.status().loss == pytest.approx(day + 1.0, abs=1e-6)
            assert agent.status().committed == pytest.approx(3.0, abs=1e-6)
            assert len(agent._state.filter_state.filter._components) == 2 - day
            agent.close()
            agent = open_agent(None)


def test_forget_ends_a_table_and_its_values(open_agent) -> None:
    agent = open_agent()
    agent.set("age", 12)
    agent.set("sex", "m")
    agent.enrol(TABLE)
    agent.answer()
    spent = agent.status().committed
    agent.forget()
    agent.close()
    agent = open_agent(None)
    assert agent.status().committed == spent
    assert agent.enrol(Survey.parse(AGE_BY_SEX.replace("version = 1", "version = 2"))).accepted
    assert agent.status().committed == pytest.approx(spent + 2.0, abs=1e-6)


def test_generations_of_several_attributes_are_one_number_and_come_back() -> None:
    for generations in ([3], [0, 0], [5, 0, 7], [0, 1] * 5, [63] * 10, [2**31 - 1, 2**31 - 1]):
        joined = joined_pin_versions(TABLE, generations)
        assert 0 <= joined < 2**63
        assert split_pin_versions(joined, len(generations)) == tuple(generations)
    assert joined_pin_versions(TABLE, [41]) == 41
    with pytest.raises(LedgerError, match="fewer than 64 times"):
        joined_pin_versions(TABLE, [0] * 9 + [64])


def test_a_fleet_decides_and_pays_as_an_agent_does(open_agent) -> None:
    """The same answers: an agent's ledger is fed what a device of the fleet drew."""
    fleet = DeviceSimulator(40, budget=4.9, source=seeded(5))
    for attribute in (AGE, SEX):
        fleet.register(attribute)
    fleet.set("age", [10 + i % 10 for i in range(40)])
    fleet.set("sex", ["f", "m", None, "f"] * 10)
    assert fleet.enrol(TABLE, now_s=START_S + 10).accepted.all()
    assert not fleet.enrol(AGE_ALONE, now_s=START_S + 10).accepted.any()
    (column,) = fleet.answer(now_s=START_S + 10)
    assert fleet.loss == pytest.approx(2.0, abs=1e-6)
    other = Survey.parse(AGE_BY_SEX.replace("version = 1", "version = 2").replace("= 2.0", "= 1.5"))
    accepted = fleet.enrol(other, now_s=START_S + 10).accepted
    assert accepted.all()
    (again,) = fleet.answer(now_s=START_S + 20)
    for device in range(40):
        one = TABLE.channel.log_likelihood(int(column.symbols[device]))
        two = other.channel.log_likelihood(int(again.symbols[device]))
        expected = float((one + two).max() - (one + two).min())
        assert fleet.loss[device] == pytest.approx(expected, abs=1e-9)
    assert math.isclose(float(fleet.committed.max()), float(fleet.loss.max()), abs_tol=1e-9)
