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
    assert found["of"] == "crowd"
    assert (found["answers"], found["shared"], found["devices"]) == ("fresh", 0, [400, 400])
    assert found["before"] == {"digest": HEALTH.digest.hex(), "round": 1}
    for old, new, cell in zip(before["values"], after["values"], found["values"], strict=True):
        assert cell["label"] == old["label"]
        assert cell["estimate"] == new["estimate"] - old["estimate"]
        f, g = (min(max(each["estimate"], each["crowd_low"]), each["crowd_high"]) for each in (old, new))
        reach = [1.959963984540054 * each["crowd_error"] for each in (old, new)]
        down = max(g - new["crowd_low"], reach[1]), max(old["crowd_high"] - f, reach[0])
        up = max(new["crowd_high"] - g, reach[1]), max(f - old["crowd_low"], reach[0])
        assert cell["low"] == pytest.approx(g - f - math.hypot(*down))
        assert cell["high"] == pytest.approx(g - f + math.hypot(*up))
        assert cell["simultaneous_low"] <= cell["low"] < cell["high"] <= cell["simultaneous_high"]
        assert cell["differs"] == (cell["simultaneous_low"] > 0 or cell["simultaneous_high"] < 0)


def test_memoised_answers_are_narrower_where_the_fleet_is_known() -> None:
    before, after = document(HEALTH, 0, 1), document(HEALTH, 1, 1)
    fresh = change(before, after, kind="evolving")
    unknown, known = (change(before, after, kind="static", asked=asked) for asked in (None, 400))
    assert (unknown["shared"], known["shared"]) == (0, 400)
    assert (unknown["of"], known["of"]) == ("crowd", "devices")
    assert unknown["values"] == fresh["values"]
    for wide, narrow in zip(fresh["values"], known["values"], strict=True):
        assert narrow["high"] - narrow["low"] <= wide["high"] - wide["low"]
    assert known["values"] != fresh["values"]
    # Two surveys have noise of their own, whatever is static.
    assert change(before, document(LATER, 0, 1), kind="static", asked=400)["answers"] == "fresh"


def test_fresh_rounds_are_compared_for_the_crowd_and_memoised_ones_for_the_devices_counted() -> None:
    pair = document(HEALTH, 0, 1), document(HEALTH, 1, 2)
    assert change(*pair, kind="evolving")["of"] == history(pair, kind="evolving")["of"] == "crowd"
    assert history(pair, kind="static")["of"] == "devices"


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
    assert found["rounds"] == [1, 2, 3]
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


def test_two_surveys_are_compared_where_they_ask_for_the_same_attributes() -> None:
    before, after = document(HEALTH, 0, 1), document(LATER, 0, 2)
    same = change(before, after, kind="evolving", attributes=(["health"], ["health"]))
    assert same["values"] == change(before, after, kind="evolving")["values"]
    with pytest.raises(IncomparableError, match="the same attributes, got health and vaccinated"):
        change(before, after, kind="evolving", attributes=(["health"], ["vaccinated"]))
    # A score's formula may differ from version to version, and no release says it.
    scores = [{**each, "values": [], "categories": [], "mean": each["values"][0]} for each in (before, after)]
    with pytest.raises(IncomparableError, match="one formula"):
        change(*scores, kind="evolving")
    own = {**scores[0], "round": 2}
    assert change(scores[0], own, kind="evolving")["mean"]["estimate"] == 0.0


def test_a_trend_says_over_how_many_rounds_it_smooths() -> None:
    """Equal errors without drift make every level the mean of all rounds: the bandwidth is all four."""
    flat = [document(HEALTH, number, 7) for number in range(4)]
    found = history(flat, kind="evolving")
    for line in (*found["values"], *found["categories"]):
        assert line["bandwidth"] == pytest.approx(4.0)
        assert line["trend"] == pytest.approx([line["estimate"][0]] * 4)
    jumps = [{**each, "values": [dict(cell) for cell in each["values"]]} for each in flat]
    for number, each in enumerate(jumps):
        each["values"][0]["estimate"] = 0.5 * (-1) ** number + 0.1 * number
        each["values"][0]["error"] = 0.001
    wild = history(jumps, kind="evolving")["values"][0]
    assert 1.0 <= wild["bandwidth"] < 1.2
    assert history(flat, kind="static")["values"][0]["bandwidth"] is None


def test_trends_add_up_and_a_line_asked_for_alone_is_that_of_all() -> None:
    rounds = [document(HEALTH, number, number) for number in range(6)]
    found = history(rounds, kind="evolving")
    for name in ("values", "categories"):
        sums = np.sum([line["trend"] for line in found[name]], axis=0)
        assert np.abs(sums - 1.0).max() <= 1e-12
        assert min(min(line["trend"]) for line in found[name]) >= 0.0
    alone = history(rounds, kind="evolving", only=("values", found["values"][1]["label"]))
    assert (alone["values"], alone["categories"]) == (found["values"][1:2], [])
    assert history(rounds, kind="evolving", only=("mean", None))["values"] == []


def test_there_is_no_band_without_a_stated_step() -> None:
    rounds = [document(HEALTH, number, number) for number in range(6)]
    assert all("band" not in line for line in history(rounds, kind="evolving")["values"])
    assert all("band" not in line for line in history(rounds, kind="static", step=0.01)["values"])
    still, free = (history(rounds, kind="evolving", step=step)["values"][0] for step in (0.0, 1.0))
    assert still["band"]["estimate"] == pytest.approx([np.mean(still["estimate"])] * 6)
    assert free["band"]["estimate"] == pytest.approx(free["estimate"])
    widths = [np.subtract(line["band"]["high"], line["band"]["low"]) for line in (still, free)]
    assert widths[0].max() == pytest.approx(widths[1].max() / np.sqrt(6), rel=1e-6)  # others are cut at 0


def test_a_trend_has_a_season_only_where_one_is_stated_and_every_place_was_twice() -> None:
    """Every third round is another share: the trend follows it, as far as rounds are released."""
    rounds = [document(HEALTH, number, 7 if number % 3 else 8) for number in range(9)]
    line, cell = (found["values"][0] for found in (history(rounds, kind="evolving", season=3), rounds[0]))
    assert line["trend"] == pytest.approx(line["estimate"], abs=1e-9)
    assert line["estimate"][0] == cell["estimate"] != line["estimate"][1]
    gone = history([rounds[i] for i in (0, 1, 2, 4, 5, 6)], kind="evolving", season=3)
    assert gone["values"][0]["trend"] == pytest.approx(gone["values"][0]["estimate"], abs=1e-9)
    few = history(rounds[:5], kind="evolving", season=3, step=0.1)
    assert "a season of 3 rounds must have two" in few["smoothed"]
    for season in (1, 10**17):
        none = history(rounds, kind="evolving", season=season)
        assert none["values"][0]["trend"] is None and "season must be two rounds or" in none["smoothed"]
    assert few["values"][0]["trend"] is None and "band" in few["values"][0]
    assert "stated season of 3" not in history(rounds, kind="static", season=3)["smoothed"]


def test_the_attributes_of_a_cross_table_add_up_each_by_itself() -> None:
    cells = [{"label": f"a{i}, b{k}", "category": None} for i in range(2) for k in range(2)]
    names = ["a: 1", "a: 2", "b: 1", "b: 2"]
    one = document(HEALTH, 0, 0)
    draws = np.random.default_rng(3)

    def made(labels: list[dict[str, object]]) -> list[dict[str, object]]:
        facts = [{"estimate": float(draws.normal(0.5, 0.1)), "error": 0.1} for _ in labels]
        ends = {"low": 0.0, "high": 1.0, "crowd_low": 0.0, "crowd_high": 1.0, "crowd_error": 0.1}
        return [each | fact | ends for each, fact in zip(labels, facts, strict=True)]

    rounds = [
        {**one, "round": r, "values": made(cells), "categories": made([{"label": name} for name in names])}
        for r in range(4)
    ]
    lines = history(rounds, kind="evolving")["categories"]
    for part in (lines[:2], lines[2:]):
        assert np.abs(np.sum([line["trend"] for line in part], axis=0) - 1.0).max() <= 1e-12


def test_the_trend_of_a_mean_knows_who_was_counted() -> None:
    """Its error is that of the crowd's interval, wider than the noise alone."""
    means = [
        document(HEALTH, k, k)
        | {"mean": {"estimate": 2.0 + (k % 2), "error": 0.01, "crowd_low": 0.0, "crowd_high": 4.0}}
        for k in range(6)
    ]
    wide = history(means, kind="evolving")["mean"]
    for each in means:
        each["mean"] |= {
            "crowd_low": each["mean"]["estimate"] - 0.01,
            "crowd_high": each["mean"]["estimate"] + 0.01,
        }
    narrow = history(means, kind="evolving")["mean"]
    assert wide["bandwidth"] > 3.0
    assert narrow["bandwidth"] < 1.5


def test_history_follows_the_mean() -> None:
    means = [
        document(HEALTH, k, k)
        | {"mean": {"estimate": 2.0 + k, "error": 0.5, "crowd_low": 1 + k, "crowd_high": 3 + k}}
        for k in range(3)
    ]
    line = history(means, kind="evolving")["mean"]
    assert line["estimate"] == [2.0, 3.0, 4.0]
    assert (line["low"][0], line["high"][2]) == (1.0, 5.0)
    assert 2.0 < line["trend"][0] < line["trend"][1] < line["trend"][2] < 4.0
    assert history([document(HEALTH, 0, 0)], kind="evolving")["mean"] is None
