"""Key-value surveys: files, canonical bytes, inputs, exact estimates, releases, and what refuses them."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import msgpack
import numpy as np
import pytest
from lies import LIES, printed, told
from surveys import MINUTES

from hubbub import Survey, SurveyError
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms import GRR
from hubbub.survey import Attribute, KeyValue, attribute_from_spec
from hubbub.testing import seeded
from hubbub_aggregator.release.verification import verify

ENDS = Survey.parse(MINUTES)
GRID = Survey.parse(MINUTES.replace("epsilon = 1.0", "epsilon = 3.0").replace("share", "points = 9\nshare"))
WHOLE = Survey.parse(
    MINUTES.replace("epsilon = 1.0", "epsilon = 4.0")
    .replace('"number"', '"integer"')
    .replace("low = 0.0", "low = 1")
    .replace("high = 600.0", "high = 6")
)
SURVEYS = {"ends": ENDS, "grid": GRID, "whole": WHOLE}


@pytest.fixture(params=SURVEYS)
def survey(request: pytest.FixtureRequest) -> Survey:
    return SURVEYS[request.param]


def test_a_file_compiles_to_a_channel_with_absent_and_missing_as_last_inputs(survey):
    assert isinstance(survey.form, KeyValue)
    assert survey.input_labels[-2:] == ("absent", "missing")
    assert survey.channel.inputs == survey.form.grid + 2
    assert survey.category_names == ("present", "absent", "missing")
    assert np.bincount(survey.category_of).tolist() == [survey.form.grid, 1, 1]
    again = Survey.from_canonical(survey.canonical)
    assert again == survey
    assert (again.form.grid, again.form.share) == (survey.form.grid, 0.1)
    assert attribute_from_spec(survey.attribute.to_spec()) == survey.attribute


def test_the_better_channel_is_the_ends_at_a_small_epsilon_and_a_grid_at_a_larger_one():
    assert isinstance(ENDS.channel, GRR) and ENDS.form.grid == 2
    assert GRID.channel.kind == WHOLE.channel.kind == "weighted"
    assert (GRID.form.grid, WHOLE.form.grid) == (9, 6)
    assert ENDS.input_labels == ("0", "600", "absent", "missing")
    assert WHOLE.input_labels == ("1", "2", "3", "4", "5", "6", "absent", "missing")


def test_an_attribute_that_may_be_absent_is_another_one_than_without():
    with_it = Attribute.number("minutes", 0, 600, kind="static", absent=True)
    assert ENDS.attribute == with_it != Attribute.number("minutes", 0, 600, kind="static")
    whole = Attribute.integer("steps", 0, 9, kind="static", absent=True)
    assert (whole.size, whole.index_of("absent"), whole.index_of(None)) == (11, 10, 11)
    assert [whole.label_of(index) for index in (0, 9, 10)] == ["0", "9", "absent"]
    plain = Attribute.integer("steps", 0, 9, kind="static")
    assert (plain.size, plain.index_of("absent"), plain.to_spec()) == (
        10,
        10,
        ["steps", "static", "integer", [0, 9]],
    )
    with pytest.raises(WireError):
        attribute_from_spec(["steps", "static", "integer", [0, 9, "present"]])
    with pytest.raises(WireError):
        attribute_from_spec(["steps", "static", "integer", ["absent"]])


def test_the_golden_survey_keeps_its_bytes():
    golden = Path(__file__).parents[2] / "golden"
    assert Survey.load(golden / "key-value.toml").canonical == (golden / "key-value.bin").read_bytes()


def test_absent_is_not_missing_and_a_number_is_rounded_to_its_neighbours_without_bias():
    """9,000 draws: by Hoeffding a mean is off by more than 1.2 % of the range with probability 2e-13."""
    assert {each.input_of("absent") - each.form.grid for each in SURVEYS.values()} == {0}
    for value in (None, "Absent", "", 601, -1.0, float("nan"), float("inf"), True, [1], b"absent"):
        assert {each.input_of(value) - each.missing_input for each in SURVEYS.values()} == {0}
    assert WHOLE.input_of(2.5) == WHOLE.missing_input
    assert [WHOLE.input_of(value) for value in range(1, 7)] == list(range(6))
    for value in (0, 75, 130.5, 600):
        drawn = Counter(GRID.input_of(value, source=seeded(place)) for place in range(9_000))
        assert len(drawn) <= 2
        mean = sum(GRID.points[place] * many for place, many in drawn.items()) / 9_000
        assert mean == pytest.approx(value, abs=0.012 * 75)


def test_many_devices_answer_as_single_ones(survey):
    """Frequencies of 4,000 draws each: .1 apart with probability below 2e-17 each, Hoeffding."""
    for value, held in ((3, 3.0), (5.0, 5.0), (None, np.nan), ("absent", np.inf)):
        column = np.full(4_000, held)
        many = np.bincount(survey.form.inputs_of([column], seeded(3)), minlength=survey.channel.inputs)
        source = seeded(4)
        single = np.bincount(
            [survey.input_of(value, source=source) for _ in range(4_000)], minlength=survey.channel.inputs
        )
        assert np.abs(many - single).max() < 400


def exact_inverse(survey: Survey) -> list[list[Fraction]]:
    """The estimator's matrix as the rationals that its floats are, shape (K, M)."""
    return [[Fraction(each) for each in row] for row in survey.estimator().inverse.matrix().tolist()]


def test_shares_are_unbiased_in_exact_arithmetic(survey):
    """B P' = I: with the estimator's own numbers as rationals, but for what rounding them left."""
    weights = survey.channel.weights().tolist()
    total = sum(weights[0])
    for x, row in enumerate(weights):
        for z, scores in enumerate(exact_inverse(survey)):
            found = sum(Fraction(w, total) * b for w, b in zip(row, scores, strict=True))
            assert abs(found - (x == z)) < Fraction(1, 10**12)


def test_the_mean_is_among_those_who_have_a_number_whoever_is_absent_or_missing(survey):
    """At the expected counts the estimates are the crowd's own: with half absent, and a fifth missing."""
    grid, shares = survey.form.grid, np.zeros(survey.channel.inputs)
    shares[[0, grid - 1]] = 0.1, 0.2
    shares[-2:] = 0.5, 0.2
    estimate = survey.estimator().expected_estimate(shares, 10_000)
    assert estimate.categories == pytest.approx([0.3, 0.5, 0.2], abs=1e-9)
    low, high = survey.form.ends
    assert estimate.mean == pytest.approx((low + 2 * high) / 3, rel=1e-9)


def test_a_release_is_verified_and_lies_about_it_are_named(survey):
    honest = printed(survey, 3_000, np.random.default_rng(5), asked=4_000)
    assert verify(survey, *honest, survey.estimator()).differences == []
    chance, told_lies = random.Random(1), 0  # noqa: S311 - test cases
    # Of an end of a mean up to 600 a millionth is what processors may differ by; a thousandth is a lie.
    own = {"the mean's end": lambda document: document["mean"].update(low=document["mean"]["low"] - 1e-3)}
    for lie in sorted(LIES):
        lied = told(lie, honest, chance)
        if lie in own:
            own[lie](lied[0])
        if lied is not None:
            told_lies += 1
            assert verify(survey, *lied, survey.estimator()).differences, lie
    assert told_lies > 5


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("absent = true\n", "", "absent"),
        ("absent = true", 'absent = "yes"', "true or false"),
        ("share = 0.1", "", "must be given"),
        ("share = 0.1", "share = 1.0", "strictly"),
        ("share = 0.1", "share = 0.0", "strictly"),
        ("share = 0.1", 'share = "some"', "share"),
        ("share = 0.1", "share = 0.1\npoints = 1", "points"),
        ("share = 0.1", "share = 0.1\npoints = 130", "points"),
        ("share = 0.1", "share = 0.1\nboost = 1", "known key"),
        ('name = "key_value"\nshare = 0.1', 'name = "boosted"\npoints = 9', "key_value"),
        ('name = "key_value"\nshare = 0.1', 'name = "auto"', "key_value"),
        ('type = "number"\nlow = 0.0\nhigh = 600.0', 'type = "label"\nlabels = ["a", "b"]', "known key"),
        ("[mechanism]", '[[category]]\nname = "few"\nrange = [0, 1]\n\n[mechanism]', "category"),
        ("[mechanism]", '[transition]\nlag = 1\nasks = "changed"\n\n[mechanism]', "transition"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused_in_a_sentence(old, new, word):
    assert old in MINUTES
    with pytest.raises(SurveyError, match=word) as refused:
        Survey.parse(MINUTES.replace(old, new))
    assert "\n" not in str(refused.value)


def test_bytes_of_another_form_or_channel_are_refused():
    for place, value in ((1, 3), (1, 1), (2, 0.0), (2, 1), (0, "key_values")):
        fields = msgpack.unpackb(GRID.canonical)
        fields[8][place] = value
        with pytest.raises((SurveyError, WireError)):
            Survey.from_canonical(msgpack.packb(fields))
    fields = msgpack.unpackb(GRID.canonical)
    fields[5][0][3] = fields[5][0][3][:2]
    with pytest.raises(SurveyError, match="absent"):
        Survey.from_canonical(msgpack.packb(fields))
    with pytest.raises(ParameterError):
        KeyValue(GRID.attribute, 9, 0.1).estimator(ENDS.channel)
