"""A number that may be absent on a device: joined, answered, kept, corrected, and told in words."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from devices import DAY_S, Clock, Collector, opener
from surveys import MINUTES, START_S

from hubbub.survey import Attribute
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_client import AttributeRefusedError
from hubbub_client.agent import encode_many
from hubbub_client.agent.encoded_value import (
    channel_input,
    channel_inputs,
    encode,
    pack_encoded,
    unpack_encoded,
)
from hubbub_client.agent.strict import check_value
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.owner_page import descriptions
from hubbub_client.surveys.schedule import MEMOISED, memoised_by, memoised_coordinate, scheduled_query

SURVEY = Survey.parse(MINUTES)
EVOLVING = Survey.parse(MINUTES.replace("static", "evolving"))
WHOLE = Survey.parse(
    MINUTES.replace("epsilon = 1.0", "epsilon = 4.0")
    .replace('"number"', '"integer"')
    .replace("low = 0.0", "low = 0")
    .replace("high = 600.0", "high = 5")
)
MINUTES_ATTRIBUTE, STEPS = SURVEY.attribute, WHOLE.attribute


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


@pytest.mark.parametrize("survey", [SURVEY, EVOLVING, WHOLE], ids=["static", "evolving", "whole"])
@pytest.mark.parametrize("value", ["absent", 3, None])
def test_a_device_answers_whether_it_has_the_number_and_outlives_a_crash(
    survey, value, open_agent, collector, clock
):
    for _ in range(survey.rounds):
        agent = open_agent()
        agent.register(survey.attribute)
        if value is not None:
            agent.set("minutes", value)
        agent.enrol(survey)
        assert agent.status().committed <= survey.rounds * survey.channel.epsilon + 1e-9
        assert len(agent.answer()) == 1
        before = agent.status()
        agent.close()
        agent = open_agent()  # killed between answer and upload, and replayed
        assert agent.status() == before
        assert list(agent.upload().settled.values()) == ["accepted"]
        agent.close()
        clock.now_s += DAY_S
    symbols = [report.symbol for report in collector.received]
    assert len(symbols) == survey.rounds and all(map(survey.channel.admits, symbols))
    assert len(set(symbols)) == 1 or survey is EVOLVING


def test_a_correction_from_absent_is_a_value_of_its_own(open_agent):
    agent = open_agent()
    agent.register(MINUTES_ATTRIBUTE)
    agent.set("minutes", "absent")
    agent.enrol(SURVEY)
    agent.answer()
    assert agent.correct("minutes", "absent").status == "unchanged"
    assert agent.correct("minutes", 30).status == "corrected"


def test_absent_is_kept_beside_missing_and_every_number():
    for attribute, absent, five in ((MINUTES_ATTRIBUTE, math.inf, 5.0), (STEPS, 6, 5)):
        assert (encode(attribute, "absent"), encode(attribute, 5)) == (absent, five)
        kept = [encode(attribute, value) for value in ("absent", 5, None)]
        assert [unpack_encoded(attribute, pack_encoded(each)) for each in kept] == kept
        for strange in (math.inf, -math.inf, "ABSENT", b"absent", np.array(["absent"])):
            assert encode(attribute, strange) == encode(attribute, None)
    plain = Attribute.number("minutes", 0, 600, kind="static")
    assert encode(plain, "absent") is None
    with pytest.raises(LedgerCorruptError):
        unpack_encoded(plain, pack_encoded(math.inf))
    with pytest.raises(LedgerCorruptError):
        unpack_encoded(MINUTES_ATTRIBUTE, pack_encoded(-math.inf))


@pytest.mark.parametrize("survey", [SURVEY, WHOLE], ids=["ends", "whole"])
def test_columns_of_devices_have_the_inputs_of_single_ones(survey):
    values = ["absent", None, 5, 0, "absent"]
    columns = [encode_many(survey.attribute, values)]
    many = channel_inputs(survey, columns, source=seeded(1)).tolist()
    for value, got in zip(values, many, strict=True):
        if value in ("absent", None, 0):
            assert got == channel_input(survey, [encode(survey.attribute, value)])
    assert many[0] == survey.form.grid and many[1] == survey.missing_input


def test_strict_mode_takes_absent_and_names_it_where_something_else_is_given():
    check_value(MINUTES_ATTRIBUTE, "absent")
    with pytest.raises(AttributeRefusedError, match=r'from 0\.0 to 600\.0 or "absent"'):
        check_value(MINUTES_ATTRIBUTE, "none")


def test_integers_share_the_coordinate_of_the_stored_value_and_rounded_numbers_have_a_draw_of_their_own():
    whole = scheduled_query(WHOLE, MEMOISED, pin_version=2)
    assert whole.coordinate == memoised_coordinate("minutes", 2)
    assert list(memoised_by(WHOLE, MEMOISED, 2)) == [("minutes", 2)]
    assert whole.mapping.tolist() == list(range(8))
    rounded = scheduled_query(SURVEY, MEMOISED, pin_version=2)
    assert rounded.coordinate == ("rounded", ("minutes",), 2, SURVEY.digest)
    assert rounded.mapping is None


def test_the_owner_reads_that_having_none_is_told():
    assert descriptions.asked(SURVEY).startswith(
        "minutes, a number from 0 to 600, or that you have none, once"
    )
    assert "absent" in descriptions.symbol(SURVEY, 2)
