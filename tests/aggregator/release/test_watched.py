"""Bands that hold at every look: beside open rounds alone, and over all rounds of fresh answers so far."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest
from asgi_reader import get
from shown_view import ShownView, round_of, snapshot_of, survey_of
from surveys import ACTIVITY, LABELS

from hubbub import Survey
from hubbub.estimation import Looks, SurveyNoise, always_valid, survey_noise
from hubbub.testing import seeded
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.export import COLUMNS, tidy_rows
from hubbub_aggregator.release import AcceptedCounts, Release, SoFar, with_bands
from hubbub_aggregator.release.watched import KEPT
from hubbub_aggregator.web import create_app

HEALTH = Survey.parse(LABELS)
STATIC = Survey.parse(LABELS.replace('"evolving"', '"static"'))
SCORE = Survey.parse(ACTIVITY)


def noise_of(survey: Survey) -> SurveyNoise:
    return survey_noise(survey.channel, survey.estimator())


def document(
    number: int, *, survey: Survey = HEALTH, devices: int = 900, stage: Any = "provisional"
) -> dict[str, Any]:
    inputs = np.arange(devices) % survey.channel.inputs
    counts = survey.channel.tally(survey.channel.perturb(inputs, source=seeded(number)))
    made = Release(survey, number, stage, AcceptedCounts({0: 1}, counts, devices), VerdictCounts()).document()
    return json.loads(json.dumps(made))


def test_an_open_round_has_bands_by_its_design_wider_than_one_looks_interval() -> None:
    made = document(0)
    found = with_bands(made, HEALTH, noise_of(HEALTH))
    estimates = np.array([[cell["estimate"] for cell in made["values"]]])
    n, looks, noise = np.array([900]), Looks(HEALTH.minimum_cohort, HEALTH.planned_devices), noise_of(HEALTH)
    for names, alpha in (
        (("always_low", "always_high"), 0.05),
        (("always_simultaneous_low", "always_simultaneous_high"), 0.05 / 5),
    ):
        ends = always_valid(estimates, noise.values, n, alpha=alpha, looks=looks, of="devices")
        for name, end in zip(names, ends, strict=True):
            assert [cell[name] for cell in found["values"]] == pytest.approx(end[0].tolist())
    for family in ("values", "categories"):
        for cell in found[family]:
            assert cell["always_simultaneous_low"] <= cell["always_low"] <= cell["low"]
            assert cell["high"] <= cell["always_high"] <= cell["always_simultaneous_high"]
    assert {key: value for key, value in found.items() if key not in ("values", "categories")} == {
        key: value for key, value in made.items() if key not in ("values", "categories")
    }


def test_the_mean_of_a_score_has_a_band_in_its_unit() -> None:
    found = with_bands(document(0, survey=SCORE), SCORE, noise_of(SCORE))["mean"]
    assert SCORE.points is not None
    low, high = float(SCORE.points[0]), float(SCORE.points[-1])
    assert low <= found["always_low"] < found["low"] < found["high"] < found["always_high"] <= high


def test_there_is_no_band_where_none_holds() -> None:
    """Nothing shown, no bound, or answers that were seen in an earlier round."""
    small, later = document(0, devices=20), document(1, survey=STATIC)
    assert with_bands(small, HEALTH, noise_of(HEALTH)) == small
    assert with_bands(later, STATIC, noise_of(STATIC)) == later
    first = document(0, survey=STATIC)
    assert with_bands(first, STATIC, noise_of(STATIC)) != first
    assert with_bands(first, STATIC, SurveyNoise(None, None)) == first


def so_far_of(survey: Survey, *batches: list[int]) -> dict[str, Any]:
    found, known = SoFar(survey, noise_of(survey)), {}
    for batch in batches:
        known |= {number: document(number, survey=survey, stage="sealed") for number in batch}
        found.update(known)
    return found.document()


def test_rounds_so_far_are_the_same_at_once_and_one_by_one_in_any_order() -> None:
    at_once = so_far_of(HEALTH, [0, 1, 2, 3])
    assert at_once["rounds"] == [1, 2, 3, 4] and at_once["devices"] == [900, 1800, 2700, 3600]
    for batches in ([[0], [1], [2], [3]], [[0, 1], [2, 3]], [[3], [0], [2, 1]]):
        other = so_far_of(HEALTH, *batches)
        assert other["rounds"] == at_once["rounds"]
        for family in ("values", "categories"):
            for one, two in zip(at_once[family], other[family], strict=True):
                assert one["label"] == two["label"]
                for name in ("estimate", "low", "high"):
                    assert one[name] == pytest.approx(two[name])
    for i, line in enumerate(at_once["values"]):
        each = [document(number, stage="sealed")["values"][i]["estimate"] for number in range(4)]
        assert line["estimate"] == pytest.approx([np.mean(each[: t + 1]) for t in range(4)])
        assert all(
            low < f < high for low, f, high in zip(line["low"], line["estimate"], line["high"], strict=True)
        )
        assert line["high"][3] - line["low"][3] < line["high"][0] - line["low"][0]


def test_of_many_rounds_the_newest_are_told_and_static_surveys_tell_none() -> None:
    first = document(0, stage="sealed")
    found = SoFar(HEALTH, noise_of(HEALTH))
    found.update({number: {**first, "round": number} for number in range(KEPT + 3)})
    many = found.document()
    assert many["rounds"] == list(range(4, KEPT + 4)) and many["devices"][-1] == 900 * (KEPT + 3)
    assert len(many["values"][0]["low"]) == KEPT
    assert so_far_of(STATIC, [0, 1])["rounds"] == []
    mean = so_far_of(Survey.parse(ACTIVITY.replace('"static"', '"evolving"')), [0, 1])["mean"]
    assert mean["low"][1] < mean["estimate"][1] < mean["high"][1]


def test_the_api_has_both_and_tables_the_bands_of_open_rounds() -> None:
    so_far = so_far_of(HEALTH, [0, 1])
    survey = survey_of("visits", *(round_of(number, sealed=True) for number in range(2)))
    label = survey["rounds"][0]["values"][1]["label"]
    so_far["values"][1]["label"] = label
    app = create_app(ShownView(snapshot_of(survey | {"so_far": so_far})))
    assert get(app, "/api/v1/surveys/visits/history").json["so_far"] == so_far
    one = get(app, "/api/v1/surveys/visits/history?kind=value&label=" + label).json
    assert one["so_far"]["values"] == so_far["values"][1:2]
    assert one["so_far"]["categories"] == []
    assert "so_far" not in get(app, "/api/surveys").json["surveys"][0]
    assert "so_far" not in get(app, "/api/live").json["surveys"][0]
    lines = list(csv.DictReader(io.StringIO(get(app, "/api/v1/surveys/visits/so_far.csv").body.decode())))
    assert [line["label"] for line in lines if line["round"] == "2" and line["kind"] == "value"] == [
        each["label"] for each in so_far["values"]
    ]
    second = next(line for line in lines if (line["round"], line["label"]) == ("2", label))
    assert (second["devices"], second["kind"]) == (str(so_far["devices"][1]), "value")
    for name, key in (("estimate", "estimate"), ("always_low", "low"), ("always_high", "high")):
        assert float(second[name]) == so_far["values"][1][key][1]
    assert len(lines) == 2 * (len(so_far["values"]) + len(so_far["categories"]))
    names = [column.name for column in COLUMNS if column.name.startswith("always_")]
    made = with_bands(document(0), HEALTH, noise_of(HEALTH))
    rows = [row for row in tidy_rows([made]) if row["view"] == "raw"]
    assert len(names) == 4 and all(None not in [row[name] for name in names] for row in rows)
    sealed = [row for row in tidy_rows([document(0, stage="sealed")]) if row["view"] == "raw"]
    assert all([row[name] for name in names] == [None] * 4 for row in sealed)
