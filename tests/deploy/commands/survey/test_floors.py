"""The least error as `survey design` and `survey check` say it: every form, every question, the crowd."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from general_solver import error_of
from surveys import ACTIVITY, AGE_BY_SEX, LABELS, VISITS

from hubbub import Survey
from hubbub.survey import forms
from hubbub.testing import seeded
from hubbub_deploy.cli import main

HEAD = VISITS.partition("[mechanism]")[0]
GOLDEN = Path(__file__).parents[3] / "golden"
FORMS = {
    "labels": LABELS,
    "visits": VISITS,
    "tree": HEAD + '[mechanism]\nname = "tree"\n',
    "cdf": HEAD + '[mechanism]\nname = "auto"\nobjective = "cdf"\n',
    "coin": HEAD + '[mechanism]\nname = "subset"\nparticipation = 0.5\n',
    "table": AGE_BY_SEX,
    "score": ACTIVITY,
    **{
        name: (GOLDEN / f"{file}.toml").read_text(encoding="utf-8")
        for name, file in {
            "region": "survey-region",
            "heat map": "survey-heat-map",
            "transition": "survey-transition",
            "set": "sets",
            "bundle": "bundle",
            "key_value": "key-value",
        }.items()
    },
}
BEGUN = {
    "labels": ["--labels", "car,bike,train"],
    "integer": ["--integer", "0", "9"],
    "categories": ["--integer", "0", "9", "--category", "none=0", "--category", "some=1..9"],
    "table": ["--attribute", "age=18..30", "--attribute", "sex=f,m"],
    "pairs": ["--attribute", "age=18..30", "--attribute", "sex=f,m", "--tables", "pairs"],
    "single": ["--attribute", "age=18..30", "--attribute", "sex=f,m", "--tables", "single"],
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name, text in FORMS.items():
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    return {name: str(tmp_path / f"{name}.toml") for name in FORMS}


def told(capsys: pytest.CaptureFixture[str], verb: str, *options: str) -> dict:
    assert main(["survey", verb, *options, "--json"]) == 0
    found: dict = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_every_form_says_its_total_its_floor_and_how_far_above_it(name, files, capsys) -> None:
    found = told(capsys, "design", files[name])
    for each in found["questions"]:
        assert 0.0 < each["floor"] <= each["total"] * (1 + 1e-9)
        above = None if name == "key_value" else max(0.0, each["total"] / each["floor"] - 1.0)
        assert each["above_floor"] == (above if above is None else pytest.approx(above))
        assert any(words in each["crowd"] for words in ("spread evenly", "either end", "drawn evenly"))
    assert found["workload"] == found["questions"][0]
    checked = told(capsys, "check", files[name])
    assert (checked["workload"], checked["questions"]) == (found["workload"], found["questions"])


def test_no_form_is_left_out() -> None:
    shown = [Survey.parse(text).form.to_spec()[0] for text in FORMS.values()]
    assert [form.name for form in forms.FORMS if form.name not in shown] == []


@pytest.mark.parametrize("name", [*BEGUN, "telemetry", pytest.param("number", marks=pytest.mark.only_long)])
def test_every_survey_that_is_begun_says_its_total_and_its_floor(name, tmp_path, capsys) -> None:
    asked = BEGUN.get(name, ["--number", "0", "24"])
    words = ["--preset", name] if name == "telemetry" else ["--id", name, "--epsilon", "1", *asked]
    assert main(["survey", "new", *words, "--out", str(tmp_path / "begun.toml")]) == 0
    capsys.readouterr()
    begun = tmp_path / "begun.toml"
    for file in sorted(begun.glob("*.toml")) if begun.is_dir() else [begun]:
        found = told(capsys, "design", str(file))["workload"]
        assert 0.0 < found["floor"] <= found["total"] * (1 + 1e-9)
        assert found["above_floor"] == pytest.approx(max(0.0, found["total"] / found["floor"] - 1.0))


def test_totals_are_those_of_the_channel_s_matrix(files, capsys) -> None:
    """From the definition: the best linear unbiased estimates, which randomised response has."""
    survey = Survey.load(files["labels"])
    rows = survey.channel.probabilities()
    even = np.append(np.full(4, 0.25), 0.0)
    found = told(capsys, "design", files["labels"])["workload"]
    covariance = np.linalg.inv(rows.T) @ np.diag(even @ rows) @ np.linalg.inv(rows) - np.diag(even)
    assert found["total"] == pytest.approx(np.trace(covariance[:4, :4]), rel=1e-9)
    table = Survey.load(files["table"])
    rows = table.channel.probabilities()
    at, asked = np.arange(9), told(capsys, "design", files["table"])["questions"]
    margins = np.concatenate([at // 3 == at[:3, None], at % 3 == at[:3, None]]).astype(float)
    for each, questions in zip(asked, (np.eye(9), margins), strict=True):
        assert each["total"] == pytest.approx(error_of(rows, questions, np.full(9, 1 / 9)), rel=1e-9)


def test_a_score_is_the_best_there_is(files, capsys) -> None:
    """Randomised response of two ends: (high - low)^2 a/(a - 1)^2."""
    found = told(capsys, "design", files["score"])["workload"]
    low, high = Survey.load(files["score"]).points
    a = math.exp(1.0)
    assert found["total"] == pytest.approx((high - low) ** 2 * a / (a - 1) ** 2, rel=1e-4)
    assert found["above_floor"] < 1e-3


def test_curves_and_ranges_are_told_of_trees_and_where_they_are_asked_for(files, capsys) -> None:
    facts = {name: told(capsys, "check", file) for name, file in files.items()}
    asked = {name: [each["asked"] for each in found["questions"]] for name, found in facts.items()}
    assert asked["tree"] == ["values", "the mean", "cumulative shares", "ranges"]
    assert asked["cdf"][0] == "cumulative shares" and "ranges" in asked["cdf"]
    assert asked["visits"] == ["values and categories", "values", "categories", "the mean"]
    assert asked["table"] == ["combinations", "shares of each attribute"]


def test_people_read_it_in_a_sentence_with_the_crowd(files, capsys) -> None:
    assert main(["survey", "check", files["tree"]]) == 0
    said = capsys.readouterr().out
    crowd = "devices spread evenly over 21 values"
    found = re.search(rf"least  .*epsilon 3 can have, at most, with {crowd}: (.*)\.", said)
    assert found is not None
    percents = dict(re.findall(r"([a-z ]+) (\d+) %", found[1]))
    facts = {each["asked"]: each["above_floor"] for each in told(capsys, "check", files["tree"])["questions"]}
    assert {name.strip(): math.ceil(100 * facts[name.strip()]) for name in percents} == {
        name.strip(): int(percent) for name, percent in percents.items()
    }


def test_with_some_missing_there_is_a_bound_and_no_distance(files, capsys) -> None:
    found = told(capsys, "design", files["visits"], "--missing", "0.1")
    assert found["workload"]["floor"] > 0.0 and found["workload"]["above_floor"] is None
    assert "10 % have no value" in found["workload"]["crowd"]
    assert "10 % have no value" in found["least"] and "above that" not in found["least"]
    assert main(["survey", "design", files["visits"], "--missing", "0.1"]) == 0
    assert "More variance than the least" not in capsys.readouterr().out


def test_what_has_no_such_error_is_null(files, capsys) -> None:
    found = told(capsys, "design", files["visits"], "--objective", "hit", "--within", "2")
    assert (found["workload"]["total"], found["workload"]["floor"]) == (None, None)
    assert found["questions"][1]["asked"] == "values" and found["questions"][1]["floor"] > 0.0


def test_a_compiled_survey_is_checked_beside_the_floor_of_answers_by_all(files, tmp_path, capsys) -> None:
    compiled = str(tmp_path / "coin.bin")
    assert main(["survey", "compile", files["coin"], "--out", compiled]) == 0
    capsys.readouterr()
    text, own = told(capsys, "check", files["coin"]), told(capsys, "check", compiled)
    assert own["workload"]["total"] == text["workload"]["total"]
    assert own["workload"]["floor"] < text["workload"]["floor"]


@pytest.mark.parametrize("name", ["region", "heat map"])
def test_a_tree_says_the_mean_error_of_its_levels_and_every_level_by_itself(name, files, capsys) -> None:
    """By rounds of devices spread evenly: squared misses of every level, within a tenth of what is said."""
    survey, rng = Survey.load(files[name]), np.random.default_rng(3)
    found, k, rounds, n = told(capsys, "design", files[name]), survey.channel.inputs - 1, 400, 3_000
    people = np.arange(n) % k
    estimator = survey.estimator()
    truth = [np.bincount(row[people] - row.min()) / n for row in survey.category_of]
    truth.append(np.bincount(people) / n)
    squares = np.zeros(len(truth))
    for _ in range(rounds):
        drawn = survey.channel.perturb(rng.permutation(people), source=seeded(int(rng.integers(2**31))))
        estimate = estimator(survey.channel.tally(drawn), n)
        ends = np.cumsum([len(each) + 1 for each in truth[:-1]])[:-1]
        parts = [*np.split(estimate.categories, ends), estimate.values]
        squares += [float(((part[:-1] - each) ** 2).sum()) for part, each in zip(parts, truth, strict=True)]
    each = n * squares / rounds
    assert [one["total"] for one in found["questions"][1:]] == pytest.approx(each.tolist(), rel=0.1)
    mean = sum(total / len(cells) for total, cells in zip(each, truth, strict=True))
    assert found["workload"]["total"] == pytest.approx(mean, rel=0.1)
    assert found["alternatives"] == [] and len(found["level_errors"]) == len(truth)
    assert f"at level {len(truth)} (95 % intervals)" in found["sentence"]
