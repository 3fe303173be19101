"""`hubbub survey rehearse` shows a survey's course on one device, and refuses what the device would drop."""

from __future__ import annotations

from pathlib import Path

import pytest
from surveys import small

from hubbub_deploy.cli import main

SURVEY = small("visits", 'type = "integer"\nlow = 0\nhigh = 5', title="Visits to a doctor")


@pytest.fixture
def survey(tmp_path: Path) -> str:
    file = tmp_path / "visits.toml"
    file.write_text(SURVEY)
    return str(file)


def test_it_says_what_is_asked_and_sent_and_writes_the_owners_page(
    survey: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    words = ["survey", "rehearse", survey, "--value", "visits=3", "--rounds", "2", "--page", str(page)]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["asked: Visits to a doctor, about visits", "a device with a budget of 4: enrolled"]
    assert [line.split(":")[0] for line in lines[2:4]] == ["round 1", "round 2"]
    assert lines[4] == "spent 2.000, reserved 1.000, left 1.000"
    assert "Visits to a doctor" in page.read_text()


def test_a_refusal_is_said(survey: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["survey", "rehearse", survey, "--budget", "2"]) == 0
    assert "a device with a budget of 2: refused: over_budget" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("visits=9", "must be a whole number from 0 to 5"),
        ("visits=three", "must be a whole number from 0 to 5"),
        ("age=3", "--value must name an attribute of the survey, got 'age'"),
        ("visits", "--value must be ATTRIBUTE=VALUE, got 'visits'"),
    ],
)
def test_a_wrong_value_is_refused(
    survey: str, capsys: pytest.CaptureFixture[str], value: str, rule: str
) -> None:
    assert main(["survey", "rehearse", survey, "--value", value]) == 1
    assert rule in capsys.readouterr().err
