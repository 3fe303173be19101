"""Sets of items on a device: joined, answered, kept, corrected, and accounted for by a constant."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import DAY_S, Clock, Collector, opener
from surveys import SETS, START_S

from hubbub.survey import Attribute
from hubbub.survey.survey import Survey
from hubbub_client import AttributeRefusedError
from hubbub_client.agent import encode_many
from hubbub_client.agent.encoded_value import channel_input, encode, pack_encoded, unpack_encoded
from hubbub_client.errors import ClientError, LedgerCorruptError
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.schedule import MEMOISED, memoised_by, scheduled_query

SURVEY = Survey.parse(SETS)
EVOLVING = Survey.parse(SETS.replace("static", "evolving"))
APPS = SURVEY.attribute


@pytest.fixture
def clock() -> Clock:
    return Clock(START_S + 10)


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:
        yield make


@pytest.mark.parametrize("survey", [SURVEY, EVOLVING], ids=["static", "evolving"])
def test_a_set_is_answered_once_or_every_round_at_a_constant_cost(survey, open_agent, collector, clock):
    answers = 1 if survey is SURVEY else survey.rounds
    for number in range(survey.rounds):
        agent = open_agent()
        agent.register(survey.attribute)
        agent.set("apps", {"mail", "maps", "chess"})
        agent.enrol(survey)
        worst = answers * survey.channel.epsilon
        assert agent.status().committed == pytest.approx(worst, abs=1e-9)
        assert len(agent.answer()) == 1
        assert agent.status().committed == pytest.approx(worst, abs=1e-9)  # nothing is given back
        assert agent.status().loss == pytest.approx(
            min(number + 1, answers) * survey.channel.epsilon, abs=1e-9
        )
        before = agent.status()
        agent.close()
        agent = open_agent()  # killed between answer and upload, and replayed
        assert agent.status() == before
        assert list(agent.upload().settled.values()) == ["accepted"]
        agent.close()
        clock.now_s += DAY_S
    symbols = [report.symbol for report in collector.received]
    assert len(symbols) == survey.rounds
    assert all(map(survey.channel.admits, symbols))
    assert len(set(symbols)) == 1 or survey is EVOLVING


def test_a_correction_is_a_set_of_its_own(open_agent, clock):
    agent = open_agent()
    agent.register(APPS)
    agent.set("apps", ["mail"])
    agent.enrol(SURVEY)
    agent.answer()
    with pytest.raises(AttributeRefusedError):
        agent.set("apps", ["maps"])
    assert agent.correct("apps", ["mail"]).status == "unchanged"
    assert agent.correct("apps", ["maps"]).status == "corrected"
    assert agent.status().committed == pytest.approx(2 * SURVEY.channel.epsilon, abs=1e-9)
    clock.now_s += DAY_S
    agent.answer()
    assert agent.status().loss == pytest.approx(2 * SURVEY.channel.epsilon, abs=1e-9)


def test_every_survey_has_a_coordinate_of_its_own_without_cells():
    again = Survey.parse(SETS.replace("version = 1", "version = 2"))
    query, other = (scheduled_query(each, MEMOISED, pin_version=3) for each in (SURVEY, again))
    assert query.coordinate == ("set", ("apps",), 3, SURVEY.digest) != other.coordinate
    assert query.channel.inputs == 2
    assert query.channel is scheduled_query(SURVEY, MEMOISED, pin_version=3).channel
    assert memoised_by(SURVEY, MEMOISED, 3) == []


@pytest.mark.parametrize("value", [[], ["mail"], {"photos", "news", "chess"}, None, "mail", 7])
def test_what_is_kept_is_the_set_and_reads_as_the_value_does(value):
    kept = unpack_encoded(APPS, pack_encoded(encode(APPS, value)))
    assert kept == encode(APPS, value)
    assert channel_input(SURVEY, [kept]) == SURVEY.input_of(value)


@pytest.mark.parametrize("found", [b"", b"\x40", b"\x01\x00", 1, "mail"])
def test_a_kept_value_of_no_set_is_a_corrupt_ledger(found):
    with pytest.raises(LedgerCorruptError):
        unpack_encoded(APPS, pack_encoded(found))


def test_sets_are_not_simulated_by_columns():
    with pytest.raises(ClientError, match="must not be of sets"):
        encode_many(APPS, [["mail"]])


def test_its_owner_reads_what_is_asked():
    assert descriptions.asked(SURVEY).startswith("apps, which of 6 items, 3 of yours at most, once")
    assert "from one set as from another" in descriptions.mechanism(SURVEY)


def test_a_strict_host_is_told_what_a_set_is(open_agent):
    agent = open_agent(strict=True)
    agent.register(Attribute.items("apps", ["mail", "maps"], kind="static"))
    agent.set("apps", ["mail", "chess"])
    with pytest.raises(AttributeRefusedError, match="a collection of its items"):
        agent.set("apps", 7)
