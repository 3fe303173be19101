"""`hubbub survey consent`: its numbers are the survey's, computed here from the channel's rows."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from surveys import LABELS, small

from hubbub import Survey
from hubbub_deploy.cli import main


def texts(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    file = folder / "survey.toml"
    file.write_text(text)
    assert main(["survey", "consent", str(file), "--json"]) == 0
    found: dict[str, str] = json.loads(capsys.readouterr().out)
    return found


def surest(text: str, answers: int) -> Fraction:
    """The most that even odds become after so many answers: Bayes on the channel's rows, exactly."""
    channel = Survey.parse(text).channel
    rows = [[int(cell) for cell in channel.row(value)] for value in range(channel.inputs)]
    ratio = max(Fraction(a, b) for column in zip(*rows, strict=True) for a in column for b in column)
    return ratio**answers / (1 + ratio**answers)


@pytest.mark.parametrize(("kind", "answers"), [("evolving", 3), ("static", 1)])
@pytest.mark.parametrize("epsilon", ["0.1", "1.0", "2.0"])
def test_what_a_reader_can_learn_is_stated_and_never_too_low(
    kind: str, answers: int, epsilon: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LABELS.replace('"evolving"', f'"{kind}"').replace("epsilon = 1.0", f"epsilon = {epsilon}")
    found = texts(text, tmp_path, capsys)
    said = re.search(r"at most ([\d.]+) % sure", found["privacy page"])
    truth = 100 * surest(text, answers)
    if said is None:
        assert truth > Fraction("99.8")
        assert "nearly sure" in found["privacy page"]
    else:
        assert truth <= Fraction(said[1]) <= truth + Fraction("0.15")


def test_a_rotating_survey_asks_once_in_a_cycle_and_costs_its_cycles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = texts(LABELS.replace("rounds = 3", "rounds = 25\nrotation = 12"), tmp_path, capsys)
    assert "once in 12 days, 3 times at most" in found["dialog"]
    assert "epsilon at most 3 per device" in found["record"]
    assert "from 1 January 2026 to 26 January 2026" in found["privacy page"]


def test_each_text_says_what_is_asked_when_and_of_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = texts(LABELS, tmp_path, capsys)
    assert list(found) == ["dialog", "privacy page", "record", "beware"]
    assert "every 24 hours, 3 times at most" in found["dialog"]
    assert "from 1 January 2026 to 4 January 2026" in found["privacy page"]
    assert "at least 100 answers" in found["privacy page"]
    assert Survey.parse(LABELS).digest.hex() in found["record"]
    assert "epsilon at most 3 per device" in found["record"]
    assert not re.search(r"[{}]", "".join(found.values()))


def test_a_title_with_braces_is_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    survey = small("visits", 'type = "integer"\nlow = 0\nhigh = 5', title="{asked} or {0}?")
    assert "«{asked} or {0}?»" in texts(survey, tmp_path, capsys)["dialog"]
