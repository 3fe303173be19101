"""`hubbub programme`: a folder of surveys under one budget, its numbers simulated, its reservation real."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from surveys import START_S, small

from hubbub import Survey
from hubbub.filter import BayesianFilter
from hubbub.testing import seeded
from hubbub_deploy.cli import main
from hubbub_deploy.commands.programme import compiled, queries
from hubbub_lab.simulation import DeviceSimulator

DEVICES = 2400
WORDS = ["--devices", str(DEVICES), "--want", "health=12.5pt", "--want", "visits=11pt"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two surveys of days, and one that is answered once; epsilons are the most of an answer."""
    health = small("health", 'type = "label"\nlabels = ["well", "ill"]', epsilon=1.0, rounds=48)
    visits = small("visits", 'type = "integer"\nlow = 0\nhigh = 10', epsilon=2.0, rounds=30)
    home = small("home", 'type = "integer"\nlow = 0\nhigh = 10', epsilon=0.5, kind="static")
    (tmp_path / "health.toml").write_text(health)
    (tmp_path / "visits.toml").write_text(visits.replace('"grr"', '"auto"'))
    (tmp_path / "home.toml").write_text(home)
    return tmp_path


def facts(capsys: pytest.CaptureFixture[str], folder: Path, *more: str, code: int = 0) -> dict[str, Any]:
    assert main(["programme", str(folder), *WORDS, *more, "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_filter_accepts_what_was_planned_and_refuses_it_with_a_rotation_halved(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = facts(capsys, folder)
    assert found["accepted"] and found["years"] is None
    lines = compiled(folder, DEVICES, {"health": (12.5, "pt"), "visits": (11.0, "pt")})
    assert sum(line.reserved for line in lines) == found["reserved"]
    whole = [line.survey for line in lines]
    assert BayesianFilter(found["reserved"]).reserve_all(queries(whole)) is not None
    for place, survey in enumerate(whole):
        if survey.rotation == 1:
            continue
        text = (
            (folder / f"{survey.id}.toml")
            .read_text()
            .replace("lateness", f"rotation = {max(2, survey.rotation // 2)}\nlateness")
        )
        halved = Survey.parse(re.sub(r"epsilon = [\d.]+", f"epsilon = {survey.epsilon}", text))
        other = [*whole[:place], halved, *whole[place + 1 :]]
        assert BayesianFilter(found["reserved"]).reserve_all(queries(other)) is None


def test_standard_errors_are_as_simulated(folder: Path) -> None:
    """Rounds of repeated lives beside the planned error, within 3 %.

    A mean of m squares of normal errors has a standard error of sqrt(2/m), half of that under the root. The
    two cells of the first survey move as one, so its 13,440 rounds have 0.61 %, of which 3 % are 4.9:
    two-sided 1e-6. The eleven of the second count as ten: 1,500 rounds have 0.58 %.
    """
    for line in compiled(folder, DEVICES, {"health": (12.5, "pt"), "visits": (11.0, "pt")}):
        if line.planned is None:
            continue
        survey, (attribute,) = line.survey, line.survey.attributes
        values, lives = (["well", "ill"], 280) if survey.id == "health" else (list(range(11)), 50)
        held = np.arange(DEVICES) % len(values)
        truth, squares = np.bincount(held) / DEVICES, []
        for life in range(lives):
            fleet = DeviceSimulator(DEVICES, budget=line.reserved, source=seeded(life))
            fleet.register(attribute)
            fleet.set(attribute.id, [values[place] for place in held])
            assert fleet.enrol(survey, now_s=START_S).accepted.all()
            for number in range(survey.rounds):
                (column,) = fleet.answer(now_s=START_S + number * 86_400)
                fleet.drain()
                estimate = survey.estimator()(survey.channel.tally(column.symbols), len(column.devices))
                squares.append(float(np.mean(np.square(estimate.values[: len(values)] - truth))))
        assert math.sqrt(np.mean(squares)) == pytest.approx(line.planned.error, rel=0.03)


def test_a_budget_is_said_to_last_so_many_years_and_a_rate_is_no_lifetime(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = facts(capsys, folder, "--budget", "100")
    rate = sum(line["epsilon"] * 365.25 / line["rotation"] for line in found["surveys"] if line["a_year"])
    assert found["rate_a_year"] == pytest.approx(rate)
    assert found["years"] == pytest.approx((100 - 0.5) / rate)
    assert main(["programme", str(folder), *WORDS, "--budget", "100"]) == 0
    out = capsys.readouterr().out
    assert "is a rate and no bound for life" in out and "a budget of 100 lasts" in out
    assert "In any 7 days at most" in out
    assert "A privacy filter with a budget of 100 accepts the whole programme." in out
    assert re.search(r"^home +0\.5 +none +100 % +- +- +0\.5 +-$", out, re.MULTILINE)


def test_a_budget_that_is_too_small_is_told_how_wide_intervals_it_buys(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = facts(capsys, folder, "--budget", "4", code=1)
    assert not found["accepted"] and found["widened"] > 1.0
    wide = [
        f"{name}={width * found['widened'] * 1.0001:.6f}pt"
        for name, width in (("health", 12.5), ("visits", 11))
    ]
    words = [word for name in wide for word in ("--want", name)]
    assert main(["programme", str(folder), "--devices", str(DEVICES), *words, "--budget", "4"]) == 0
    assert "accepts the whole programme" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--want", "healt=1pt"], "must name one survey of"),
        (["--want", "home=1pt"], "must be of a survey of one evolving attribute, got home"),
        (["--want", "health=1"], "must be in percentage points (1pt), got 1"),
        (["--want", "health=0.1pt"], "an answer in every round at epsilon 1 with 2,400 devices, got 0.1pt"),
        (["--want", "health=12.5pt", "--budget", "-1"], "--budget must be above 0 and finite, got -1"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["programme", str(folder), "--devices", "2400", *words]) == 1
    assert said in capsys.readouterr().err
