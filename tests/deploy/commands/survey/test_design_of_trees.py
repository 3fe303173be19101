"""`hubbub survey check` and `design` of a tree say from how many devices on it has a curve, and how wide."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from surveys import VISITS

from hubbub import Survey
from hubbub_deploy.cli import main

HEAD = VISITS.partition("[mechanism]")[0]


def test_design_states_the_width_of_the_median_s_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: the points whose band at equal shares does not exclude a half, from the whole covariance."""
    file = tmp_path / "survey.toml"
    file.write_text(HEAD + '[mechanism]\nname = "tree"\n')
    assert main(["survey", "design", str(file)]) == 0
    told = re.search(r"the median to an interval of ([\d.]+)", capsys.readouterr().out)
    assert told is not None
    survey = Survey.load(file)
    points = survey.channel.inputs - 1
    uniform = np.append(np.full(points, 1 / points), 0.0)
    covariance = survey.estimator().expected_estimate(uniform, survey.planned_devices).covariance()
    shares = np.arange(1, points + 1) / points
    held = np.arange(points + 1) < points
    errors = []
    for v in range(points - 1):
        ratio = (np.arange(points + 1) <= v) - shares[v] * held
        errors.append(np.sqrt(ratio @ covariance @ ratio))
    z = norm.isf(0.025 / (points - 1))
    high = np.minimum.accumulate((shares[:-1] + z * np.array(errors))[::-1])[::-1]
    low = np.maximum.accumulate(shares[:-1] - z * np.array(errors))
    allowed = [v for v in range(points - 1) if high[v] >= 0.5 and (v == 0 or low[v - 1] <= 0.5)]
    assert float(told[1]) == allowed[-1] - allowed[0]


def test_design_of_other_mechanisms_says_nothing_of_a_median(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "survey.toml"
    file.write_text(VISITS)
    assert main(["survey", "design", str(file)]) == 0
    assert "median" not in capsys.readouterr().out


LONG = HEAD.replace("high = 20", "high = 600").replace("minimum_cohort = 100", "minimum_cohort = 50")
LEAST = "a release states its curve and quartiles from"
LONGEST = "a release states a curve of at most 2,048 inputs, and here are"
TREE = '[mechanism]\nname = "tree"\n'


def of(tmp_path: Path, text: str) -> str:
    file = tmp_path / "survey.toml"
    file.write_text(text)
    return str(file)


def checked(capsys: pytest.CaptureFixture[str], file: str) -> dict[str, object]:
    assert main(["survey", "check", "--json", file]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_check_says_from_how_many_devices_on_a_release_states_a_curve(tmp_path, capsys) -> None:
    """602 inputs: `test_release_curve` has releases of 300 devices without a curve, and of 301 with it."""
    facts = checked(capsys, of(tmp_path, LONG + TREE))
    assert (facts["inputs"], facts["least_cohort"], facts["curve_cohort"]) == (602, 50, 301)
    said_of_least = f"{LEAST} 301 devices on, and 50 are enough for a release"
    assert facts["rounds_without_curve"] == said_of_least
    assert main(["survey", "check", str(tmp_path / "survey.toml")]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said if "cohort" in line.split()[0]] == [
        "minimum_cohort",
        "least_cohort",
        "curve_cohort",
    ]
    large = LONG.replace("minimum_cohort = 50", "minimum_cohort = 301")
    assert "rounds_without_curve" not in checked(capsys, of(tmp_path, large + TREE))
    assert "curve_cohort" not in checked(capsys, of(tmp_path, LONG + '[mechanism]\nname = "subset"\n'))


def test_check_says_that_a_long_survey_never_has_a_curve(tmp_path, capsys) -> None:
    facts = checked(capsys, of(tmp_path, LONG.replace("high = 600", "high = 2047") + TREE))
    assert (facts["inputs"], facts["curve_cohort"]) == (2049, None)
    assert facts["rounds_without_curve"] == LONGEST + " 2,049"


def test_design_promises_no_median_to_rounds_that_have_none(tmp_path, capsys) -> None:
    planned = re.sub(r"planned_devices = \d+", "planned_devices = 300", LONG)
    assert main(["survey", "design", of(tmp_path, planned + TREE)]) == 0
    said = capsys.readouterr().out
    assert "the median" not in said
    assert f"Warning: {LEAST} 301 devices on, and 300 are planned.\n" in said
