"""A device that answers who changed: the older value is kept for its answer, and for nothing after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import DAY_S, Clock, Collector, opener
from surveys import START_S, small

from hubbub import Survey
from hubbub_client import Agent
from hubbub_client.agent import answerer
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys import slot_in_cycle

DOMAIN = 'type = "label"\nlabels = ["car", "train", "foot"]'
ASKED = '\n[transition]\nlag = 2\nasks = "pairs"\n'
SURVEY = Survey.parse(small("way", DOMAIN, rounds=6, epsilon=0.5) + ASKED)
TURNS = Survey.parse(small("way-in-turns", DOMAIN, rounds=12, rotation=4, attribute="way") + ASKED)
LEVELS = Survey.parse(small("today", DOMAIN, rounds=6, attribute="way", epsilon=0.1))


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S + 10)


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock):
    with opener(tmp_path, clock, Collector()) as make:

        def opened() -> Agent:
            agent = make()
            agent.register(SURVEY.attribute)
            return agent

        yield opened


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[object, ...]]]:
    """The values then and now that answers were made of, by survey, in the order of answering."""
    seen: list[tuple[str, tuple[object, ...]]] = []
    through = answerer.channel_input

    def noted(survey: Survey, encoded):
        labels = [*survey.attributes[0].domain.labels, None]
        seen.append((survey.id, tuple(labels[place] for place in encoded)))
        found = through(survey, encoded)
        assert found == survey.input_of(*seen[-1][1])
        return found

    monkeypatch.setattr(answerer, "channel_input", noted)
    return seen


def kept(agent: Agent) -> list[tuple[int, bool]]:
    """The rounds that kept values wait for, and whether a value of now is kept too."""
    return [(past.round, row.value is not None) for row in agent._ledger.kept_values() for past in row.past]


def test_an_answer_reads_the_value_of_two_rounds_before(open_agent, clock, read) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    ways = ["car", "train", "train", "foot", "foot", "car"]
    for number, way in enumerate(ways):
        clock.now_s = START_S + number * DAY_S + 10
        agent.set("way", way)
        made = agent.answer()
        assert [each.round for each in made] == ([] if number < 2 else [number])
        agent.answer()
    assert read == [("way", pair) for pair in zip(ways, ways[2:], strict=False)]
    assert agent._ledger.kept_values() == []
    assert agent.status().committed == pytest.approx(4 * SURVEY.channel.epsilon)


def test_the_older_value_outlives_restarts_and_goes_with_its_answer(open_agent, clock, read) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    agent.set("way", "train")
    agent.answer()
    assert kept(agent) == [(2, False)]
    for number, rounds in ((1, [2]), (2, [])):
        agent.close()
        agent = open_agent()
        clock.now_s = START_S + number * DAY_S + 10
        if number == 2:
            agent.set("way", "foot")
            assert kept(agent) == [(2, True)]
        agent.answer()
        assert [place for place, _ in kept(agent)] == [*rounds, *([4] if number == 2 else [])]
    assert read == [("way", ("train", "foot"))]
    # What is left is the value of round 3, for round 5.
    agent.close()
    agent = open_agent()
    clock.now_s = START_S + 4 * DAY_S + 10
    agent.answer()
    assert agent._ledger.kept_values() == [] and read[1] == ("way", ("foot", None))


def test_a_value_that_was_not_set_then_is_missing_then(open_agent, clock, read) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    agent.answer()
    assert kept(agent) == []
    clock.now_s = START_S + 2 * DAY_S + 10
    agent.set("way", "foot")
    agent.answer()
    clock.now_s += DAY_S
    agent.set("way", None)
    agent.answer()
    assert read == [("way", (None, "foot")), ("way", (None, None))]


def test_the_first_value_of_a_round_is_the_one_kept(open_agent, clock, read) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    for way in ("car", "train"):
        agent.set("way", way)
        agent.answer()
    clock.now_s += 2 * DAY_S
    agent.answer()
    assert read == [("way", ("car", "train"))]


def test_only_rounds_before_a_drawn_one_are_kept(open_agent, clock) -> None:
    agent = open_agent()
    agent.enrol(TURNS)
    seed = agent._state.enrolments[TURNS.digest].slot_seed
    drawn = {4 * cycle + slot_in_cycle(seed, cycle, 4) for cycle in range(3)}
    for number in range(12):
        clock.now_s = START_S + number * DAY_S + 10
        agent.set("way", "car")
        made = agent.answer()
        assert [each.round for each in made] == ([number] if number in drawn and number >= 2 else [])
        assert {place for place, _ in kept(agent)} == {
            each for each in drawn if number < each <= number + 2 and each >= 2
        }
    assert agent._ledger.kept_values() == []


@pytest.mark.parametrize("way", ["left", "forgotten", "missed", "paused"])
def test_a_value_that_nothing_waits_for_is_deleted(open_agent, clock, way: str) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    agent.set("way", "car")
    agent.answer()
    assert kept(agent) == [(2, False)]
    if way == "left":
        agent.opt_out(SURVEY)
        assert agent._ledger.kept_values() == []
    elif way == "forgotten":
        agent.forget()
    else:
        clock.now_s += 9 * DAY_S
    if way == "paused":
        agent.pause()
        clock.now_s += 9 * DAY_S
    agent.answer()
    assert agent._ledger.kept_values() == []


def test_a_survey_of_now_beside_it_keeps_its_own(open_agent, clock, read) -> None:
    agent = open_agent()
    for survey in (SURVEY, LEVELS):
        assert agent.enrol(survey).accepted
    for number, way in enumerate(["car", "train", "foot"]):
        clock.now_s = START_S + number * DAY_S + 10
        agent.set("way", way)
        agent.answer()
    assert [pair for name, pair in read if name == "way"] == [("car", "foot")]
    assert [pair for name, pair in read if name == "today"] == [("car",), ("train",), ("foot",)]


def test_the_owner_is_told_of_both_rounds(open_agent, clock) -> None:
    agent = open_agent()
    agent.enrol(SURVEY)
    agent.set("way", "car")
    page = agent.account()
    # Answers of rounds 3 to 6 read rounds 1 to 6, all within seven days.
    assert page.window == pytest.approx(4 * SURVEY.channel.epsilon)
    assert "now and 2 rounds before" in descriptions.asked(SURVEY)
    assert "kept on this device until the answer" in descriptions.mechanism(SURVEY)
