"""A design for people of whom some have no value promises what rounds with such people have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import surveys

from hubbub import Survey
from hubbub_deploy.cli import main

MISSING, DEVICES, ROUNDS = 0.3, 2000, 600
NUMBER = surveys.DISEASES.split("[mechanism]")[0].replace(
    "planned_devices = 20000", f"planned_devices = {DEVICES}"
)


@pytest.mark.parametrize("mechanism", ['"optimal"\npoints = 7', '"grr"\npoints = 7'])
def test_the_mean_is_promised_as_well_as_rounds_know_it(
    mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """600 rounds of 2,000 devices of which exactly .3 have no value, the others equally spread on the points.

    Their deviation has a standard error of 3 %, so 15 % is missed once in 2 million; that of nobody missing
    is outside. What is counted at its bound is rounding to the grid, which these people need none of.
    """
    file = tmp_path / "survey.toml"
    file.write_text(f"{NUMBER}[mechanism]\nname = {mechanism}\n")
    survey = Survey.load(file)
    told = {}
    for missing in ("0", str(MISSING)):
        assert main(["survey", "design", str(file), "--missing", missing, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        told[missing] = found["standard_error"]["mean"]
    assert found["prior"] == "uniform over the values, 30 % missing"
    assert "of which 30 % have no value" in found["sentence"]
    rng, estimator = np.random.default_rng(28), survey.estimator()
    channel = survey.channel
    people = np.append(np.full(7, round(DEVICES * 0.7 / 7)), round(DEVICES * MISSING))
    rows = channel.weights() / channel.total
    means = []
    for _ in range(ROUNDS):
        counts = sum(rng.multinomial(many, row) for many, row in zip(people, rows, strict=True))
        means.append(estimator(counts, DEVICES).mean)
    rounding = (60.0 / 6 / 2) ** 2 / (DEVICES * (1.0 - MISSING))
    seen = float(np.sqrt(np.var(means) + rounding))
    assert told["0.3"] == pytest.approx(seen, rel=0.15)
    assert told["0"] < 0.8 * seen


def test_a_share_of_missing_out_of_range_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "survey.toml"
    file.write_text(surveys.LABELS)
    for wrong in ("1", "-0.1", "nan"):
        assert main(["survey", "design", str(file), f"--missing={wrong}"]) == 1
        assert "--missing must be at least 0 and below 1, got" in capsys.readouterr().err
