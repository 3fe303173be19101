"""The bound's own reader of survey bytes beside the package: two ways from bytes to probabilities."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import random_surveys
from independent_reading import column, question

from hubbub import Survey
from hubbub.mechanisms.registry import KINDS
from hubbub.survey.domain import LabelDomain
from hubbub.survey.score import Score
from hubbub_client.agent.encoded_value import encode

GOLDEN = Path(__file__).parents[2] / "golden"
RAW = (None, math.nan, math.inf, -math.inf, -(10**9), 0.5, 1e300, "x", b"x", True, [])


def worlds() -> list[Survey]:
    """The golden surveys, and four random ones of every form and mechanism."""
    found = [
        Survey.from_canonical(path.read_bytes())
        for path in sorted(GOLDEN.glob("survey-*.bin"))
        if path.name
        not in ("survey-list.bin", "survey-transition.bin")  # of two rounds: test_transition_agent
    ]
    chance = random.Random(7)  # noqa: S311 - surveys, not answers
    for mechanism in random_surveys.MECHANISMS:
        made: list[Survey] = []
        for number in range(40):
            held = random_surveys.attributes(chance)
            survey = random_surveys.survey(chance, held, f"{mechanism.replace(' ', '-')}-{number}", mechanism)
            if survey is not None:
                made.append(survey)
            if len(made) == 4:
                break
        assert len(made) == 4, mechanism
        found += made
    return found


SURVEYS = worlds()
EIGHTHS = 8
"""Every survey is tested, an eighth of them in one item."""


@pytest.mark.parametrize("each", range(EIGHTHS))
def test_a_column_of_the_bytes_is_the_column_that_is_sampled(each: int) -> None:
    """Up to the row's total, which no log-ratio sees: 30 symbols, every input, to 10^-9 of each."""
    for survey in SURVEYS[each::EIGHTHS]:
        _same_columns(survey)


def _same_columns(survey: Survey) -> None:
    asked = question(survey.canonical)
    assert asked.digest == survey.digest and asked.inputs == survey.channel.inputs
    chance = random.Random(1)  # noqa: S311 - symbols to compare
    for _ in range(30):
        symbol = survey.channel.perturb(chance.randrange(survey.channel.inputs))
        found, truth = column(asked.channel, symbol), survey.channel.column(symbol).astype(float)
        assert found / found.max() == pytest.approx(truth / truth.max(), rel=1e-9), survey.id


@pytest.mark.parametrize("each", range(EIGHTHS))
def test_whatever_a_host_sets_reads_as_the_bytes_say(each: int) -> None:
    """Values, ends, what is between, outside and of no type: by the device's reading, and by the bytes alone.

    A label is its place, and what is none of them is missing.
    """
    for survey in SURVEYS[each::EIGHTHS]:
        _same_reading(survey)


def _same_reading(survey: Survey) -> None:
    asked = question(survey.canonical)
    chance = random.Random(2)  # noqa: S311 - values to compare
    symbols = [random_surveys.symbol(chance, survey) for _ in range(3)]
    for _ in range(40):
        raw = [_raw(chance, attribute) for attribute in survey.attributes]
        values = [np.array([_place(a, value)]) for a, value in zip(survey.attributes, raw, strict=True)]
        for symbol in symbols:
            other = _law(survey, [None] * len(raw), symbol)
            missing = asked.law(symbol, [np.array([math.nan])] * len(raw))
            expected = math.log(_law(survey, raw, symbol) / other)
            assert (asked.law(symbol, values) - missing).item() == pytest.approx(expected, abs=1e-9), (
                survey.id
            )


def _raw(chance: random.Random, attribute) -> object:
    domain = attribute.domain
    if chance.random() < 0.3:
        return chance.choice(RAW)
    if isinstance(domain, LabelDomain):
        return chance.choice(domain.labels)
    if chance.random() < 0.5:
        return chance.choice([domain.low, domain.high, domain.low - 1, domain.high + 1])
    step = chance.choice([1.0, 0.37])
    return min(float(domain.low) + step * chance.randrange(9), float(domain.high))


def _place(attribute, value: object) -> float:
    """A value as the bound has it: what is no number, or a truth value, is nothing."""
    if isinstance(attribute.domain, LabelDomain):
        named = isinstance(value, str) and value in attribute.domain.labels
        return float(attribute.domain.labels.index(value)) if named else math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value)


def _law(survey: Survey, raw: list[object], symbol: int | bytes) -> Fraction:
    """The weight of a symbol by the device's own reading, over both sides of a rounding coin."""
    readings = [encode(attribute, value) for attribute, value in zip(survey.attributes, raw, strict=True)]
    weights = survey.channel.column(symbol).tolist()
    if survey.mapping is not None:
        return Fraction(weights[int(survey.mapping[tuple(readings)])])
    if isinstance(survey.form, Score):
        share = Fraction(survey.form.place(raw))
        return share * weights[1] + (1 - share) * weights[0]
    (number,), domain = readings, survey.attribute.domain
    last = survey.channel.inputs - 2
    if number is None:
        return Fraction(weights[-1])
    at = (Fraction(number) - Fraction(domain.low)) / (Fraction(domain.high) - Fraction(domain.low)) * last
    lower = min(int(at), last - 1)
    return (1 - (at - lower)) * weights[lower] + (at - lower) * weights[lower + 1]


def test_every_kind_of_channel_is_among_the_surveys() -> None:
    # Of sets the law is written down in tests/core/mechanisms/test_set_selection.py; bundles are read beside
    # this in test_bundle_agent.py, over all their records.
    kinds = {question(survey.canonical).channel["kind"] for survey in SURVEYS}
    assert kinds == set(KINDS) - {"set", "parts"}
