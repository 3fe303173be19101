"""Strict mode: what passes in silence on an owner's device raises while an app is developed."""

from __future__ import annotations

from pathlib import Path

import pytest
from surveys import small

from hubbub.survey import Attribute, Survey
from hubbub_client import Agent, AttributeRefusedError, ClientError, Policy
from hubbub_client.testing import FakeClock, FakeCollector

VISITS = Attribute.integer("visits", 0, 77, kind="static")
TRAVEL = Attribute.labels("travel", ["car", "bike"], kind="evolving")
HOURS = Attribute.number("hours", 0.0, 24.0, kind="evolving")

SURVEY = small("travel", 'type = "label"\nlabels = ["car", "bike"]')


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    file = tmp_path / "travel.toml"
    file.write_text(SURVEY)
    return Survey.load(file)


def opened(tmp_path: Path, *, strict: bool | None, policy: Policy | None = None) -> Agent:
    clock = FakeClock(0.0)
    agent = Agent(
        tmp_path / "ledger.db",
        "http://test",
        budget=4.0,
        policy=policy,
        clock=clock,
        http=FakeCollector(clock=clock),
        strict=strict,
    )
    for attribute in (VISITS, TRAVEL, HOURS):
        agent.register(attribute)
    return agent


WRONG = [
    ("visits", 78, "a whole number from 0 to 77, or None for missing, got one of type int"),
    ("visits", "3", "a whole number from 0 to 77, or None for missing, got one of type str"),
    ("visits", 2.5, "got one of type float"),
    ("visits", True, "got one of type bool"),
    ("travel", "Bike", "one of its 2 labels, or None for missing, got one of type str"),
    ("hours", float("nan"), "a number from 0.0 to 24.0, or None for missing, got one of type float"),
    ("hours", 24.5, "got one of type float"),
]


@pytest.mark.parametrize(("attribute_id", "value", "rule"), WRONG)
def test_a_value_outside_its_domain_raises_and_is_not_quoted(
    tmp_path: Path, attribute_id: str, value: object, rule: str
) -> None:
    with opened(tmp_path, strict=True) as agent:
        with pytest.raises(AttributeRefusedError) as refused:
            agent.set(attribute_id, value)
        text = str(refused.value)
        assert rule in text
        assert attribute_id in text
        assert repr(value) not in text.replace(rule, "")
        if attribute_id == "visits":
            with pytest.raises(AttributeRefusedError, match="whole number"):
                agent.correct(attribute_id, value)
    with opened(tmp_path, strict=False) as agent:
        agent.set(attribute_id, value)


def test_missing_and_what_is_in_the_domain_pass(tmp_path: Path) -> None:
    with opened(tmp_path, strict=True) as agent:
        for attribute_id, value in (("visits", 77), ("travel", "bike"), ("hours", 24), ("hours", None)):
            agent.set(attribute_id, value)
        agent.set("visits", None)


def test_an_opt_in_that_lets_nothing_in_raises(tmp_path: Path, survey: Survey) -> None:
    with opened(tmp_path, strict=True, policy=Policy(attributes=frozenset({"travel"}))) as agent:
        agent.opt_in("travel")
        agent.opt_in(survey)
        with pytest.raises(AttributeRefusedError, match="'trvael' must be registered first"):
            agent.opt_in("trvael")
        with pytest.raises(AttributeRefusedError, match="the policy's attributes must hold 'visits'"):
            agent.opt_in("visits")
    with opened(tmp_path, strict=False) as agent:
        agent.opt_in("trvael")


def test_an_opt_in_to_a_survey_whose_attribute_is_registered_otherwise_raises(
    tmp_path: Path, survey: Survey
) -> None:
    clock = FakeClock(0.0)
    collector = FakeCollector(clock=clock)
    path = tmp_path / "ledger.db"
    with Agent(path, "http://test", budget=4.0, clock=clock, http=collector, strict=True) as agent:
        with pytest.raises(AttributeRefusedError, match="'travel' must be registered first"):
            agent.opt_in(survey)
        agent.register(Attribute.labels("travel", ["car", "bike", "train"], kind="evolving"))
        with pytest.raises(AttributeRefusedError, match="registered with another kind or domain"):
            agent.opt_in(survey)


@pytest.mark.parametrize(("said", "strict"), [("1", True), ("0", False), ("", False), (None, False)])
def test_the_environment_decides_where_the_app_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, strict: bool
) -> None:
    if said is None:
        monkeypatch.delenv("HUBBUB_STRICT", raising=False)
    else:
        monkeypatch.setenv("HUBBUB_STRICT", said)
    with opened(tmp_path, strict=None) as agent:
        if strict:
            with pytest.raises(AttributeRefusedError):
                agent.set("visits", 99)
        else:
            agent.set("visits", 99)
    with opened(tmp_path, strict=False) as agent:
        agent.set("visits", 99)


def test_an_environment_that_says_neither_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_STRICT", "yes")
    with pytest.raises(ClientError, match="HUBBUB_STRICT must be 0 or 1, got 'yes'"):
        opened(tmp_path, strict=None)
