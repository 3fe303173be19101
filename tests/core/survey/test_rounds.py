"""Rounds are counted from 1 for people and programs, and from 0 in keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from surveys import LABELS

from hubbub.errors import ParameterError
from hubbub.survey import Survey, index_of_round, number_of_round, round_words

ROOT = Path(__file__).parents[3]
SHOWN_BY_HAND = re.compile(
    r"""round[^\n"'`]*\{[^}\n]*\+ 1\}|"round": [^\n]*\+ 1\b|round\) \+ 1|\.round \+ 1"""
)
"""A round's number made in place, in Python or in the page's scripts."""


def test_the_first_round_is_1_and_the_last_is_their_number() -> None:
    survey = Survey.parse(LABELS)
    assert [number_of_round(survey.round_at(survey.start_s + 86_400 * day)) for day in range(3)] == [1, 2, 3]
    assert [index_of_round(number) for number in (1, 2, 3)] == [0, 1, 2]
    assert round_words(survey, 0) == "round 1 of 3"


@pytest.mark.parametrize("number", [0, -1])
def test_no_round_has_a_number_below_1(number: int) -> None:
    with pytest.raises(ParameterError, match=f"a round's number must be at least 1, got {number}"):
        index_of_round(number)


def test_nobody_counts_rounds_by_hand() -> None:
    """One function each way: a number that is made in place is forgotten where the next one stands."""
    houses = ("core", "client", "topic", "collector", "aggregator", "deploy", "results", "authoring", "lab")
    files = [
        path for house in houses for ending in ("py", "js") for path in (ROOT / house).rglob(f"*.{ending}")
    ]
    by_hand = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in files
        if "node_modules" not in path.parts
        for found in SHOWN_BY_HAND.finditer(path.read_text(encoding="utf-8"))
    ]
    assert len(files) > 400
    assert by_hand == []
