"""Commands that read one round's values from a file refuse surveys that ask for those of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub_deploy.cli import main

SURVEY = str(Path(__file__).parents[2] / "golden" / "survey-transition.toml")


@pytest.mark.parametrize(
    "words",
    [["replay", "people.csv", "--survey", SURVEY], ["evaluate", SURVEY, "--data", "uniform"]],
)
def test_a_transition_is_not_asked_of_a_file(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert "must ask for the values of one round, got a transition" in capsys.readouterr().err
