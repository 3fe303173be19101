"""A device that answers about a dictionary: by the one whose digest the survey names, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import Clock, Collector, opener
from surveys import START_S

from hubbub import Survey
from hubbub.survey import Attribute, dictionary_of
from hubbub_client import Agent, AttributeRefusedError
from hubbub_client.agent import answerer

SURVEY = Survey.from_canonical((Path(__file__).parents[2] / "golden" / "dictionary.bin").read_bytes())
DATA, ORDER = dictionary_of(["mail", "maps", "music", "caf\u00e9", "news", "chess", "go"])
OTHER, _ = dictionary_of(["mail", "maps", "music", "caf\u00e9", "news", "chess", "sudoku"])


@pytest.fixture
def open_agent(tmp_path: Path):
    with opener(tmp_path, Clock(START_S + 10), Collector()) as make:
        yield make


def registered(agent: Agent, data: bytes = DATA) -> Agent:
    agent.register(Attribute.dictionary("site", data, kind="static"))
    return agent


def test_it_answers_with_the_place_of_its_text_also_after_a_restart(
    open_agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(
        answerer, "channel_input", lambda survey, encoded: seen.append(encoded) or survey.missing_input
    )
    agent = registered(open_agent())
    assert agent.enrol(SURVEY).status == "enrolled"
    agent.set("site", "cafe\u0301")
    assert len(agent.answer()) == 1 and seen == [[ORDER.index("caf\u00e9")]]
    agent.close()
    again = open_agent()
    with pytest.raises(AttributeRefusedError, match="must be registered with its dictionary"):
        again.correct("site", "mail")  # it would count as missing, for good
    assert registered(again).correct("site", "cafe\u0301").status == "unchanged"


def test_another_dictionary_is_another_domain(open_agent) -> None:
    agent = registered(open_agent(), OTHER)
    refused = agent.enrol(SURVEY)
    assert (refused.status, refused.reason) == ("refused", "domain_mismatch")
    with pytest.raises(AttributeRefusedError, match="as first registered"):
        registered(agent)


def test_without_its_dictionary_no_text_is_taken(open_agent) -> None:
    agent = open_agent()
    agent.register(SURVEY.attribute)
    with pytest.raises(AttributeRefusedError, match="with its dictionary"):
        agent.set("site", "mail")
