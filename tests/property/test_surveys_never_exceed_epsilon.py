"""No survey compiles to a channel above its declared epsilon; the judge is a little exact arithmetic."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import surveys
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hubbub import Survey, SurveyError
from hubbub.channels.finite import DenseChannel

HEAD = """\
id = "random"
version = 1
title = "Random"
epsilon = {epsilon!r}
minimum_cohort = 10
planned_devices = 1000
[schedule]
start = 2026-01-01T00:00:00Z
round = "1h"
rounds = 1
lateness = "1h"
skew = "5m"
[attribute]
id = "thing"
kind = "static"
"""

epsilons = st.floats(0.01, 12.0)


def worst_ratio(weights: np.ndarray) -> Fraction:
    """The largest ratio within a column, from the integers alone."""
    return max(Fraction(max(column), min(column)) for column in weights.T.tolist())


def keeps(weights: np.ndarray, epsilon: float) -> bool:
    """Whether every column's ratio is at most e^epsilon, by 60 digits rounded down."""
    with localcontext() as context:
        context.prec, context.rounding = 60, ROUND_FLOOR
        ceiling = Decimal(epsilon).exp() * (1 - Decimal(10) ** -50)
        worst = worst_ratio(weights)
        return Decimal(worst.numerator) <= ceiling * Decimal(worst.denominator)


@st.composite
def partitions(draw):
    """TOML of categories that partition 0..size-1, of unequal sizes, scattered or in runs."""
    size = draw(st.integers(2, 40))
    count = draw(st.integers(2, min(size, 6)))
    owners = draw(st.lists(st.integers(0, count - 1), min_size=size - count, max_size=size - count))
    owners = draw(st.permutations([*range(count), *owners]))
    tables = [
        f'[[category]]\nname = "c{c}"\nvalues = {np.flatnonzero(np.equal(owners, c)).tolist()}'
        for c in set(owners)
    ]
    return size, "\n".join(tables)


@st.composite
def discrete(draw):
    epsilon = draw(epsilons)
    size, tables = draw(partitions())
    share = draw(st.sampled_from([0.0, 1.0]) | st.floats(0.01, 1.0))
    mechanism = draw(
        st.sampled_from(
            [
                'name = "grr"',
                'name = "grr"\nreading = "category"',
                f'name = "pbgrr"\nboost_epsilon = {min(share * epsilon, epsilon)!r}',
            ]
        )
    )
    attribute = f'type = "integer"\nlow = 0\nhigh = {size - 1}\n'
    return HEAD.format(epsilon=epsilon) + attribute + f"[mechanism]\n{mechanism}\n{tables}\n"


@st.composite
def numeric(draw):
    epsilon = draw(st.floats(0.1, 8.0))
    points = draw(st.integers(2, 12))
    keys = [f"points = {points}"]
    if draw(st.booleans()):
        # A region must touch the attribute's values, 0 to 1.
        low = draw(st.floats(-0.5, 1.0))
        high = draw(st.floats(max(low, 0.0), 1.5))
        keys += ['kernel = "laplace"', 'region = "fixed"', f"low = {low!r}", f"high = {high!r}"]
    else:
        keys += [f"kernel = {draw(st.sampled_from(['laplace', 'uniform']))!r}", 'region = "absolute"']
        keys += [f"half_width = {draw(st.floats(0.0, 0.9))!r}"]
    if "laplace" in " ".join(keys) and draw(st.booleans()):
        keys += [f"kernel_epsilon = {draw(st.floats(0.0, 1.0)) * epsilon!r}"]
    attribute = 'type = "number"\nlow = 0.0\nhigh = 1.0\n'
    return HEAD.format(epsilon=epsilon) + attribute + '[mechanism]\nname = "boosted"\n' + "\n".join(keys)


def check(survey: Survey) -> None:
    weights = survey.channel.weights()
    assert weights.min() >= 1
    assert set(weights.sum(axis=1).tolist()) == {survey.channel.total}
    assert keeps(weights, survey.epsilon)
    assert keeps(weights, survey.channel.epsilon)
    assert survey.channel.epsilon <= survey.epsilon
    again = Survey.from_canonical(survey.canonical)
    assert again == survey
    assert np.array_equal(again.channel.weights(), weights)


@settings(max_examples=250, deadline=None)
@given(discrete())
def test_no_discrete_survey_exceeds_its_declared_epsilon(text):
    check(Survey.parse(text))


@settings(max_examples=60, deadline=None)
@given(numeric())
def test_no_numeric_survey_exceeds_its_declared_epsilon(text):
    try:
        survey = Survey.parse(text)
    except SurveyError as error:
        # A kernel and region that tell nothing apart are refused, and say so; nothing else may be.
        assert error.key == "mechanism"
        assume(False)
    check(survey)


def test_judge_refuses_one_unit_of_weight_too_many():
    """Negative control: the same judge must fail a channel that is barely above what it declares."""
    survey = Survey.parse(surveys.LABELS)
    weights = np.array(survey.channel.weights())
    assert keeps(weights, survey.epsilon)
    assert not keeps(weights, survey.channel.epsilon - 1e-12)
    sharper = weights * 4
    sharper[0, 0] += 1
    assert worst_ratio(sharper) > worst_ratio(weights)


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_moving_weight_within_a_row_never_lowers_what_is_certified_below_the_truth(row, column, amount):
    weights = np.array(Survey.parse(surveys.LABELS).channel.weights())
    weights[row, column] += amount
    weights[row, (column + 1) % 5] -= amount
    assert keeps(weights, DenseChannel(weights).epsilon)


def test_judge_is_right_about_a_ratio_that_can_be_checked_by_hand():
    assert keeps(np.array([[2, 1], [1, 2]]), 0.6931471805599454)
    assert not keeps(np.array([[2, 1], [1, 2]]), 0.6931471805599452)
    assert worst_ratio(np.array([[2, 1], [1, 2]])) == 2
    with pytest.raises(ZeroDivisionError):
        worst_ratio(np.array([[1, 0], [0, 1]]))
