"""The ledgers that a survey names: its bytes change with them, and a device of another ledger is silent."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest
from devices import SETUP, Clock, Collector
from surveys import LABELS, START_S

from hubbub import Survey, SurveyError
from hubbub_client import Agent, Attribute

PLAIN = Survey.parse(LABELS)


def named(words: str) -> Survey:
    return Survey.parse(LABELS.replace("version = 1", f"version = 1\nledgers = {words}"))


def test_the_default_is_the_durable_and_keeps_its_bytes() -> None:
    assert PLAIN.ledgers == ("durable",)
    assert named('["durable"]').canonical == PLAIN.canonical


def test_others_are_one_field_more_at_the_end_of_another_layout() -> None:
    fields = msgpack.unpackb(named('["site-data", "durable"]').canonical)
    plain = msgpack.unpackb(PLAIN.canonical)
    assert fields == ["hubbub-survey", 3, *plain[2:], ["durable", "site-data"]]
    assert Survey.from_canonical(msgpack.packb(fields)).ledgers == ("durable", "site-data")


@pytest.mark.parametrize("words", ["[]", '["cloud"]', '["durable", "durable"]', '"durable"', "[1]", "[[]]"])
def test_a_ledger_that_is_none_is_refused_with_its_key(words: str) -> None:
    with pytest.raises(SurveyError, match="ledgers: must name one or more of durable, site-data"):
        named(words)


def test_an_agent_answers_where_the_durable_ledger_is_named(tmp_path: Path) -> None:
    with Agent(
        tmp_path / "ledger",
        "http://localhost",
        budget=9.0,
        clock=Clock(START_S + 1),
        http=Collector(),
        **SETUP,
    ) as agent:
        agent.register(Attribute.labels("health", PLAIN.attribute.domain.labels, kind="evolving"))
        refused = agent.enrol(named('["site-data"]'))
        assert (refused.status, refused.reason) == ("refused", "wrong_ledger")
        assert agent.enrol(named('["durable", "site-data"]')).accepted
