"""`hubbub survey design` of a tree says how wide the median's interval will be, before launch."""

from __future__ import annotations

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
