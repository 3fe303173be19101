"""Changes and histories from releases: their numbers, and the refusals with their reasons."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from surveys import LABELS, VISITS

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release import AcceptedCounts, IncomparableError, Release, change, history

HEALTH = Survey.parse(LABELS)
LATER = Survey.parse(LABELS.replace("version = 1", "version = 2"))


def document(survey: Survey, number: int, seed: int, devices: int = 400) -> dict:
    inputs = np.arange(devices) % survey.channel.inputs
    counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(seed)))
    made = Release(survey, number, "sealed", AcceptedCounts({0: 1}, counts, devices), VerdictCounts())
    return json.loads(json.dumps(made.document()))


def test_change_is_the_difference_with_both_bands() -> None:
    before, after = document(HEALTH, 0, 1), document(HEALTH, 1, 2)
    found = change(before, after, kind="evolving")
    assert (found["answers"], found["shared"], found["devices"]) == ("fresh", 0, [400, 400])
    assert found["before"] == {"digest": HEALTH.digest.hex(), "round": 0}
    for old, new, cell in zip(before["values"], after["values"], found["values"], strict=True):
        assert cell["label"] == old["label"]
        assert cell["estimate"] == new["estimate"] - old["estimate"]
        f, g = (min(max(each["estimate"], each["low"]), each["high"]) for each in (old, new))
        assert cell["low"] == pytest.approx(g - f - math.hypot(g - new["low"], old["high"] - f))
        assert cell["high"] == pytest.approx(g - f + math.hypot(new["high"] - g, f - old["low"]))
        assert cell["simultaneous_low"] <= cell["low"] < cell["high"] <= cell["simultaneous_high"]
        assert cell["differs"] == (cell["simultaneous_low"] > 0 or cell["simultaneous_high"] < 0)


def test_memoised_answers_are_narrower_where_the_fleet_is_known() -> None:
    before, after = document(HEALTH, 0, 1), document(HEALTH, 1, 1)
    fresh = change(before, after, kind="evolving")
    unknown, known = (change(before, after, kind="static", asked=asked) for asked in (None, 400))
    assert (unknown["shared"], known["shared"]) == (0, 400)
    assert unknown["values"] == fresh["values"]
    for wide, narrow in zip(fresh["values"], known["values"], strict=True):
        assert narrow["high"] - narrow["low"] <= wide["high"] - wide["low"]
    assert known["values"] != fresh["values"]
    # Two surveys have noise of their own, whatever is static.
    assert change(before, document(LATER, 0, 1), kind="static", asked=400)["answers"] == "fresh"


def test_rounds_that_cannot_be_compared_are_refused_with_the_reason() -> None:
    one = document(HEALTH, 0, 1)
    for other, why in (
        (document(HEALTH, 1, 1, devices=20), "with too few devices"),
        (one, "rounds must be two"),
        (document(Survey.parse(VISITS), 0, 1), "must have the same values"),
        ({**document(HEALTH, 1, 1), "level": 0.9}, "must be of one level"),
    ):
        with pytest.raises(IncomparableError, match=why):
            change(one, other, kind="evolving")


def test_history_has_every_round_and_a_trend_of_fresh_answers_alone() -> None:
    rounds = [document(HEALTH, number, number) for number in (2, 0, 1)]
    rounds.append(document(HEALTH, 3, 3, devices=20))
    found = history(rounds, kind="evolving")
    assert found["rounds"] == [0, 1, 2]
    line = found["values"][0]
    assert line["estimate"] == [rounds[place]["values"][0]["estimate"] for place in (1, 2, 0)]
    assert len(line["trend"]) == 3
    assert np.ptp(line["trend"]) < np.ptp(line["estimate"])
    assert "smoothed view" in found["smoothed"]
    static = history(rounds, kind="static")
    assert static["values"][0]["trend"] is None
    assert "memoised" in static["smoothed"]
    with pytest.raises(IncomparableError, match="one survey"):
        history([rounds[0], document(LATER, 0, 1)], kind="static")
