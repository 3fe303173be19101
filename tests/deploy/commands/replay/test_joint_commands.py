"""Surveys of several attributes at the command line: check, design and replay; the examples in docs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from surveys import ACTIVITY, AGE_BY_SEX

from hubbub import Survey
from hubbub.testing import seeded
from hubbub_deploy.cli import main
from hubbub_deploy.commands.replay.csv_replay import replay
from hubbub_lab.evaluation.evaluation import rows_of, truth_of

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
TABLE, SCORE = Survey.parse(AGE_BY_SEX), Survey.parse(ACTIVITY)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made = {}
    for name, text in (("table", AGE_BY_SEX), ("score", ACTIVITY)):
        made[name] = tmp_path / f"{name}.toml"
        made[name].write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_compiles(path: Path) -> None:
    survey = Survey.load(path)
    assert Survey.from_canonical(survey.canonical) == survey
    assert survey.channel.epsilon <= survey.epsilon


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "table",
            "With 20,000 devices, a combination's share is known to ±0.96 points, "
            "a share of one attribute's to ±1.4 points (95 % intervals).",
        ),
        (
            "score",
            "With 20,000 devices, the mean score, 0 to 1, is known to ±0.015 or better (95 % intervals).",
        ),
    ],
)
def test_a_design_says_what_a_survey_buys(files, capsys, name, sentence) -> None:
    assert main(["survey", "design", str(files[name])]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == sentence
    assert main(["survey", "design", str(files[name]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sentence"] == sentence and found["mechanism"] == "grr"
    survey = {"table": TABLE, "score": SCORE}[name]
    inputs = survey.channel.inputs
    assert (found["outputs"], found["bytes_per_report"]) == (inputs, 37)
    expected = survey.estimator().expected_estimate(np.full(inputs, 1 / inputs), 20_000)
    if name == "score":
        assert found["standard_error"] == {"value": None, "category": None, "mean": expected.mean_error}
        ratio = math.exp(survey.channel.epsilon)
        assert found["leverage"] == pytest.approx(ratio / (ratio - 1))
        assert found["alternatives"] == []
    else:
        direct = survey.channel.weights() / survey.channel.total
        assert found["leverage"] == pytest.approx(np.abs(np.linalg.inv(direct)).max())
        assert {other["mechanism"] for other in found["alternatives"]} == {"subset", "unary"}
        assert all(other["cost"] > 0 and other["leverage"] > 1 for other in found["alternatives"])
        assert found["standard_error"]["value"] == pytest.approx(expected.value_errors[0])
        assert found["standard_error"]["category"] == pytest.approx(
            math.sqrt(float(np.mean(expected.category_errors**2)))
        )


def test_a_design_of_several_attributes_draws_and_writes_nothing(files, tmp_path, capsys) -> None:
    for option, value in (
        ("--write", tmp_path / "new.toml"),
        ("--plot", tmp_path / "p.png"),
        ("--objective", "value"),
    ):
        assert main(["survey", "design", str(files["table"]), option, str(value)]) == 1
        rule = "must be absent for a table, a tree, a bundle or a score"
        assert f"{option} {rule}, got {value}" in capsys.readouterr().err
    assert main(["survey", "design", str(files["table"]), "--shuffled", "1000", "--delta", "1e-6"]) == 1
    assert f"--shuffled {rule}, got 1000\n" in capsys.readouterr().err


def test_check_names_every_attribute(files, capsys) -> None:
    assert main(["survey", "check", str(files["score"]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["attributes"], found["kind"], found["outputs"]) == (["age", "weight"], "static", 2)


def test_the_truth_of_a_table_is_counted_by_cell_and_by_margin() -> None:
    truth = truth_of(TABLE, [(12, "m"), (12, None), (None, None), (18, "f")])
    assert truth.values.tolist() == [0, 0.25, 0.25, 0.25, 0, 0, 0, 0, 0.25]
    assert truth.categories.tolist() == [0.5, 0.25, 0.25, 0.25, 0.25, 0.5]
    assert truth.mean is None


def test_the_truth_of_a_score_is_the_mean_of_its_outputs_defaults_included() -> None:
    scores = [1 / (1 + math.exp(-t)) for t in (0.5 + 0.05 * 12 - 0.5, 0.5 + 0.05 * 15 - 0.7)]
    truth = truth_of(SCORE, [(12, 50.0), (None, "x")])
    assert truth.mean == pytest.approx(sum(scores) / 2)
    assert truth.values.size == truth.categories.size == 0


@pytest.mark.parametrize("survey", [TABLE, SCORE], ids=["table", "score"])
def test_a_replay_finds_the_truth_within_its_errors(survey) -> None:
    """3,000 devices: no estimate is off by more than 5.5 standard errors (false alarm below 1e-6)."""
    chance = np.random.default_rng(1)
    columns: dict[str, list[object]] = {
        "age": [None if age < 10 else age for age in chance.integers(8, 20, 3000).tolist()],
        "sex": chance.choice(["f", "m", ""], 3000).tolist(),
        "weight": chance.uniform(20, 120, 3000).tolist(),
    }
    people = list(zip(*(columns[attribute.id] for attribute in survey.attributes), strict=True))
    found = replay(survey, people, source=seeded(6))
    rows = rows_of(found.release, found.truth)
    assert len(rows) == (15 if survey is TABLE else 1)
    for row in rows:
        assert abs(row.estimate - row.truth) < 5.5 * row.error, row.label


def test_replay_reads_columns_by_the_ids_of_attributes(files, tmp_path, capsys) -> None:
    people = tmp_path / "people.csv"
    lines = [f"{10 + i % 10},{'fm'[i % 2]},{20 + i % 100}" for i in range(400)]
    people.write_text("years,sex,weight\n" + "\n".join(lines) + "\n?,,NA\n", encoding="utf-8")
    arguments = [
        str(people),
        "--column",
        "age=years",
        "--seed",
        "3",
        "--json",
        "--out",
        str(tmp_path / "out"),
    ]
    for name in files:
        arguments += ["--survey", str(files[name])]
    assert main(["replay", *arguments]) == 0
    table, score = json.loads(capsys.readouterr().out)
    assert table["release"]["devices"] == score["release"]["devices"] == 401
    assert [row["kind"] for row in score["rows"]] == ["mean"]
    assert {row["kind"] for row in table["rows"]} == {"category", "value"}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "activity-v1.counts",
        "activity-v1.json",
        "activity-v1.png",
        "activity-v1.survey",
        "age-by-sex-v1.counts",
        "age-by-sex-v1.json",
        "age-by-sex-v1.png",
        "age-by-sex-v1.survey",
        "summary.json",
    ]
