"""What a device does with a value that is missing, outside its domain, corrected, or pinned anew."""

import math
from pathlib import Path

import pytest
from devices import DAY_S, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, opener
from surveys import DISEASES

from hubbub.survey.survey import Survey
from hubbub_client import AttributeRefusedError
from hubbub_client.agent.encoded_value import unpack_encoded

DISEASES_SURVEY = Survey.parse(DISEASES)


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock):
    with opener(tmp_path, clock, Collector()) as make:
        yield make


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the channels are given, in order."""
    inputs: list[int] = []
    for survey in (HEALTH_SURVEY, VISITS_SURVEY, DISEASES_SURVEY):
        perturb = survey.channel.perturb

        def watched(x: int, perturb=perturb) -> object:
            inputs.append(int(x))
            return perturb(x)

        monkeypatch.setattr(survey.channel, "perturb", watched)
    return inputs


OUTSIDE = [21, -1, 10**30, 3.5, "3", True, math.nan, math.inf, None, [3], b"3"]


@pytest.mark.parametrize("value", OUTSIDE, ids=repr)
def test_what_is_outside_the_domain_is_answered_and_pinned_as_missing(
    open_agent, clock, value, given
) -> None:
    agent = open_agent()
    agent.set("visits", value)
    assert agent.enrol(VISITS_SURVEY).accepted
    assert len(agent.answer()) == 1
    assert given == [VISITS_SURVEY.missing_input]
    with pytest.raises(AttributeRefusedError) as refused:
        agent.set("visits", 3)
    assert "3" not in str(refused.value)
    agent.set("visits", None)  # the same as what is pinned


@pytest.mark.parametrize("value", ["superb", 2, None, math.nan])
def test_an_evolving_value_outside_its_domain_is_missing_for_its_round_only(
    open_agent, clock, value, given
) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.set("health", value)
    agent.answer()
    clock.now_s += DAY_S
    agent.set("health", "good")
    agent.answer()
    assert given == [HEALTH_SURVEY.missing_input, 1]


@pytest.mark.parametrize("value", [60.0001, -0.001, math.nan, -math.inf, "12", None, True])
def test_a_number_outside_its_domain_is_missing(open_agent, value, given) -> None:
    agent = open_agent()
    agent.register(DISEASES_SURVEY.attribute)
    agent.set("diseases", value)
    agent.enrol(DISEASES_SURVEY)
    agent.answer()
    assert given == [DISEASES_SURVEY.missing_input]


def test_a_correction_to_outside_the_domain_is_one_to_missing(open_agent, clock, given) -> None:
    agent = open_agent(20.0)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    assert agent.correct("visits", 99).status == "corrected"
    assert agent.correct("visits", -5).status == "unchanged"  # missing already
    clock.now_s += DAY_S
    agent.answer()
    assert given == [3, VISITS_SURVEY.missing_input]


def test_a_correction_back_is_paid_for_again(open_agent, clock) -> None:
    """That two generations hold one value is not used: the account would depend on it."""
    agent = open_agent(20.0)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    once = agent.status().committed
    assert agent.correct("visits", 4).status == "corrected"
    assert agent.correct("visits", 3).status == "corrected"
    assert agent.status().committed == pytest.approx(3 * once, abs=1e-6)
    (stored,) = [each for each in agent._ledger.attributes() if each.id == "visits"]
    assert (stored.pin_version, unpack_encoded(VISITS_SURVEY.attribute, stored.memoised)) == (2, 3)


def test_a_value_set_after_forget_is_pinned_anew_and_paid_for(open_agent, given) -> None:
    agent = open_agent(20.0)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    before = agent.status().committed
    agent.forget()
    agent.set("visits", 5)  # nothing is pinned any more
    assert agent.enrol(VISITS_SURVEY).accepted
    assert agent.answer() == ()  # this round was answered before
    agent._clock.now_s += DAY_S
    assert len(agent.answer()) == 1 and given == [3, 5]
    assert agent.status().committed == pytest.approx(2 * before, abs=1e-6)
