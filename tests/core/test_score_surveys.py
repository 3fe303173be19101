"""A survey that asks for a score of several numbers: its file, its channel, its estimate, its bytes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from exponentials import exp_bounds
from surveys import ACTIVITY, LABELS

from hubbub import Survey, SurveyError
from hubbub.errors import ParameterError, WireError
from hubbub.filter.regression.regression import TOTAL
from hubbub.survey.score import Score
from hubbub.testing import seeded
from hubbub.wire import packing

LOGISTIC = Survey.parse(ACTIVITY)


def changed(*pairs: tuple[str, str]) -> str:
    text = ACTIVITY
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


LINEAR = Survey.parse(changed(('score = "logistic"', 'score = "linear"\nlow = -0.5\nhigh = 1.3')))
TRUNCATED = Survey.parse(changed(('score = "logistic"', 'score = "truncated"\nlow = 0.0\nhigh = 0.5')))
ALL = {"logistic": LOGISTIC, "linear": LINEAR, "truncated": TRUNCATED}
PEOPLE = list(product([None, *range(10, 20)], [None, 20.0, 33.7, 71.25, 120.0]))
"""Ages and weights, corners of the box included."""


def form(survey: Survey) -> Score:
    assert isinstance(survey.form, Score)
    return survey.form


def chance(survey: Survey, values: tuple[object, ...]) -> Fraction:
    """The probability of an answer 1: an exact coin picks an end, and its row is answered from."""
    place = Fraction(form(survey).place(values))
    rows = survey.channel.weights().tolist()
    return (place * rows[1][1] + (1 - place) * rows[0][1]) / TOTAL


def test_numbers_are_read_in_the_order_of_ids_and_missing_ones_count_as_their_default() -> None:
    assert [attribute.id for attribute in LOGISTIC.attributes] == ["age", "weight"]
    score = form(LOGISTIC)
    assert (score.coefficients, score.defaults) == ((0.05, -0.01), (15.0, 70.0))
    expected = 1 / (1 + math.exp(-(0.5 + 0.05 * 12 - 0.01 * 50.0)))
    assert score.place([12, 50.0]) == pytest.approx(expected, rel=1e-15)
    assert score.score([12, 50.0]) == score.place([12, 50.0])
    default = score.place([15, 70.0])
    for values in ([None, None], [20, "x"], [True, math.nan], [12.5, 19.99], ["15", 1e308], [9, math.inf]):
        assert score.place(values) == default, values
    assert score.place([12, None]) == score.place([12, 70.0]) != default
    assert form(TRUNCATED).score([19, 20.0]) == 0.5  # 1.25, cut
    assert form(LINEAR).score([19, 20.0]) == pytest.approx(1.25)


@pytest.mark.parametrize("name", ALL)
def test_epsilon_is_certified_by_rows_over_a_whole_box(name) -> None:
    """Any two records, missing numbers included: no answer is more than e^epsilon times as probable."""
    survey = ALL[name]
    chances = [chance(survey, values) for values in PEOPLE]
    worst = max(max(chances) / min(chances), (1 - min(chances)) / (1 - max(chances)))
    assert worst <= exp_bounds(Fraction(survey.channel.epsilon))[1]
    assert survey.channel.epsilon <= survey.epsilon - 2.0**-36
    if name == "truncated":  # its ends are reached, so the bound is the truth
        assert worst >= exp_bounds(Fraction(survey.channel.epsilon) - Fraction(1, 10**12))[0]


@pytest.mark.parametrize("name", ALL)
def test_the_mean_is_unbiased_to_the_last_digit(name) -> None:
    """In fractions, through the inverse of the very rows that are drawn from."""
    survey = ALL[name]
    least = Fraction(int(survey.channel.weights()[0, 1]), TOTAL)
    for values in PEOPLE:
        place = (chance(survey, values) - least) / (1 - 2 * least)
        assert place == Fraction(form(survey).place(values))
    estimator = survey.estimator()
    mean = estimator.expected_estimate(np.array([0.25, 0.75]), 1000).mean
    assert mean == pytest.approx(form(survey).low + 0.75 * (form(survey).high - form(survey).low), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_answers_are_drawn_as_the_rows_say(name) -> None:
    """n = 20,000 answers of one record, |z| < 5.5 (false alarm 4e-8); at half the epsilon it must fail."""
    survey, n = ALL[name], 20_000
    source = seeded(20)
    values = (19, 20.0)
    inputs = np.array([survey.input_of(*values, source=source) for _ in range(n)])
    ones = int(survey.channel.perturb(inputs, source=source).sum())

    def z(chance_of_one: float) -> float:
        return (ones - n * chance_of_one) / math.sqrt(n * chance_of_one * (1 - chance_of_one))

    assert abs(z(float(chance(survey, values)))) < 5.5
    weaker = Survey.parse(
        changed(("epsilon = 1.0", "epsilon = 0.5"), ('score = "logistic"', _score_lines(survey)))
    )
    assert abs(z(float(chance(weaker, values)))) > 5.5


def _score_lines(survey: Survey) -> str:
    score = form(survey)
    ends = "" if score.kind == "logistic" else f"\nlow = {score.low}\nhigh = {score.high}"
    return f'score = "{score.kind}"{ends}'


@pytest.mark.parametrize("name", ALL)
def test_intervals_hold_the_mean_of_a_crowd(name) -> None:
    """20,000 devices of many scores: the error is at most 5.5 standard errors (false alarm 4e-8)."""
    survey = ALL[name]
    random = np.random.default_rng(8)
    ages, weights = random.integers(10, 20, 20_000), random.uniform(20, 120, 20_000)
    ages[::7] = 0  # missing
    columns = [np.where(ages == 0, np.nan, ages), weights]
    inputs = form(survey).inputs_of(columns, seeded(9))
    symbols = survey.channel.perturb(inputs, source=seeded(10))
    estimate = survey.estimator()(np.bincount(symbols, minlength=2), 20_000)
    truth = np.mean(
        [form(survey).score(person) for person in zip(ages.tolist(), weights.tolist(), strict=True)]
    )
    assert estimate.mean is not None and estimate.mean_error is not None
    assert abs(estimate.mean - float(truth)) < 5.5 * estimate.mean_error
    least = survey.channel.weights()[0, 1] / TOTAL
    span = (form(survey).high - form(survey).low) / (1 - 2 * least)
    assert 0.4 * span / math.sqrt(20_000) < estimate.mean_error <= 0.5 * span / math.sqrt(20_000)


def test_a_score_has_a_mean_alone() -> None:
    estimate = LOGISTIC.estimator()(np.array([400, 600]), 1000)
    assert estimate.values.size == estimate.categories.size == 0
    assert estimate.consistent().values.size == 0
    assert estimate.simultaneous(0.95).mean_low == estimate.intervals(0.95).mean_low
    with pytest.raises(ParameterError, match="reach of one report"):
        estimate.poison_margin()
    assert LOGISTIC.estimator()(np.array([0, 1]), 1).mean_error > 0
    for counts, n in (([1, 2, 3], 6), ([1, 2], 4), ([-1, 2], 1), ([0, 0], 0)):
        with pytest.raises(ParameterError):
            LOGISTIC.estimator()(np.array(counts), n)


def test_canonical_bytes_give_back_the_score_whatever_the_order_of_the_file() -> None:
    again = Survey.from_canonical(LOGISTIC.canonical)
    assert again == LOGISTIC
    assert form(again).place([13, 44.0]) == form(LOGISTIC).place([13, 44.0])
    tables = ACTIVITY[ACTIVITY.index("[[attribute]]") : ACTIVITY.index("[mechanism]")].split("[[attribute]]")[
        1:
    ]
    swapped = ACTIVITY.replace(
        "".join(f"[[attribute]]{t}" for t in tables), "".join(f"[[attribute]]{t}" for t in tables[::-1])
    )
    assert swapped != ACTIVITY
    assert Survey.parse(swapped).digest == LOGISTIC.digest


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (6, 1.5, "must be the randomised response of its epsilon"),
        (7, {"inputs": 3, "kind": "grr", "t": 3, "u": 1}, "randomised response"),
        (8, ["score", "cubic", [[0.05, 15.0], [-0.01, 70.0]], 0.5, [0.0, 1.0]], "must be one of linear"),
        (8, ["score", "logistic", [[0.05, 15.0]], 0.5, [0.0, 1.0]], "must have 2 coefficients, got 1"),
        (8, ["score", "logistic", [[0.05, 15.0], [-0.01, 170.0]], 0.5, [0.0, 1.0]], "attribute.1..default"),
        (8, ["score", "logistic", [[0.05, 15.0], [-0.01, 70.0]], 0.5, [0.0, 2.0]], "must run from 0 to 1"),
        (8, ["score", "logistic", [[0.05, 15.0], [-0.01, 70.0]], math.inf, [0.0, 1.0]], "finite float"),
        (8, ["score", "logistic", [[0.05, 15.0], [-1e9, 70.0]], 0.5, [0.0, 1.0]], "keep rounding below"),
        (8, ["score", "linear", [[0.05, 15.0], [-0.01, 70.0]], 0.5, [0.0, 0.5]], "must be within"),
        (8, ["score"], "score must"),
        (8, ["score", "truncated", [[0.0, 15.0], [0.0, 70.0]], 0.0, [0.0, 5e-324]], "keep rounding below"),
        (8, ["score", "logistic", [[1e308, 15.0], [1e308, 70.0]], 1e308, [0.0, 1.0]], "at most 1e.150"),
        (
            5,
            [["age", "static", "integer", [10, 19]], ["weight", "static", "label", ["f", "m"]]],
            "integer or number",
        ),
        (
            5,
            [["weight", "static", "number", [20.0, 120.0]], ["age", "static", "integer", [10, 19]]],
            "order of ids|default",
        ),
        (5, [], "must have 0 coefficients"),
    ],
)
def test_bytes_that_describe_no_score_are_refused(place, value, words) -> None:
    fields = packing.unpack(LOGISTIC.canonical, "survey")
    assert isinstance(fields, list)
    fields[place] = value
    with pytest.raises((WireError, SurveyError), match=words):
        Survey.from_canonical(packing.pack(fields))


WRONG = {
    "no coefficient": (
        changed(("coefficient = 0.05\n", "")),
        "attribute[1].coefficient",
        "must be given",
        "nothing",
    ),
    "no default": (changed(("default = 15\n", "")), "attribute[1].default", "must be given", "nothing"),
    "default outside": (
        changed(("default = 15\n", "default = 9\n")),
        "attribute[1].default",
        "from 10 to 19",
        "9",
    ),
    "a text": (
        changed(("coefficient = 0.05", 'coefficient = "x"')),
        "attribute[1].coefficient",
        "number",
        "x",
    ),
    "a label": (
        changed(('type = "integer"\nlow = 10\nhigh = 19', 'type = "label"\nlabels = ["a", "b"]')),
        "attribute[1].type",
        "integer or number",
        "label",
    ),
    "a category": (
        changed(("default = 15\n", 'default = 15\n[[attribute.category]]\nname = "all"\nrange = [10, 19]\n')),
        "attribute[1].category",
        "must not be given",
        "all",
    ),
    "no score": (changed(('score = "logistic"\n', "")), "mechanism.score", "must be given", "nothing"),
    "no intercept": (changed(("intercept = 0.5\n", "")), "mechanism.intercept", "must be given", "nothing"),
    "another score": (changed(('"logistic"', '"cubic"')), "mechanism.score", "one of linear", "cubic"),
    "ends of a logistic score": (
        changed(('"logistic"', '"logistic"\nlow = 0.0')),
        "mechanism.low",
        "absent for a logistic",
        "0.0",
    ),
    "no ends": (changed(('"logistic"', '"linear"\nlow = 0.0')), "mechanism.high", "must be given", "nothing"),
    "ends in disorder": (
        changed(('"logistic"', '"truncated"\nlow = 1.0\nhigh = 0.0')),
        "mechanism",
        "low < high",
        "regression",
    ),
    "a linear score beyond its ends": (
        changed(('"logistic"', '"linear"\nlow = 0.0\nhigh = 0.5')),
        "mechanism",
        "must be within 0.0 to 0.5",
        "regression",
    ),
    "a coin": (
        changed(("intercept = 0.5", "intercept = 0.5\nparticipation = 0.5")),
        "mechanism.participation",
        "must be 1",
        "0.5",
    ),
    "one id twice": (changed(('id = "age"', 'id = "weight"')), "attribute[1].id", "its own", "weight"),
    "a coefficient without a score": (
        LABELS.replace('kind = "evolving"', 'kind = "evolving"\ncoefficient = 1.0'),
        "attribute.coefficient",
        "known key",
        "1.0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_scores_are_refused_by_file_key_rule_and_value(name) -> None:
    text, key, rule, value = WRONG[name]
    with pytest.raises(SurveyError) as caught:
        Survey.parse(text, file="wrong.toml")
    message = str(caught.value)
    for part in ("wrong.toml", key, rule):
        assert part in message, message
    assert value in caught.value.value


def test_one_number_may_be_a_table_of_its_own() -> None:
    tables = ACTIVITY[ACTIVITY.index("[[attribute]]") : ACTIVITY.index("[mechanism]")].split("[[attribute]]")
    one = Survey.parse(
        ACTIVITY.replace(f"[[attribute]]{tables[1]}", "").replace("[[attribute]]", "[attribute]")
    )
    assert [attribute.id for attribute in one.attributes] == ["age"]
    assert form(one).place([None]) == pytest.approx(1 / (1 + math.exp(-1.25)))
