"""A survey that asks for several attributes at once: its file, its inputs, its margins, its bytes."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
import pytest
from surveys import AGE_BY_SEX, LABELS

from hubbub import Survey, SurveyError
from hubbub.errors import ParameterError, WireError
from hubbub.estimation.inverses.inversion import invert
from hubbub.wire import packing

TABLE = Survey.parse(AGE_BY_SEX)
CATEGORIES = AGE_BY_SEX[
    AGE_BY_SEX.index("[[attribute.category]]") : AGE_BY_SEX.index('[[attribute]]\nid = "sex"')
]


def changed(*pairs: tuple[str, str]) -> str:
    text = AGE_BY_SEX
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_every_combination_of_readings_is_an_input_and_missing_is_one_of_each_attribute() -> None:
    assert TABLE.channel.inputs == 9
    assert TABLE.input_labels == (
        *("child / f", "child / m", "child / missing"),
        *("youth / f", "youth / m", "youth / missing"),
        *("missing / f", "missing / m", "missing / missing"),
    )
    assert [attribute.id for attribute in TABLE.attributes] == ["age", "sex"]
    cases = {
        (12, "f"): 0,
        (13, "m"): 1,
        (10, None): 2,
        (19.0, "f"): 3,
        (20, "m"): 7,
        ("12", "x"): 8,
        (None, None): TABLE.missing_input,
    }
    for values, expected in cases.items():
        assert TABLE.input_of(*values) == expected, values
    assert TABLE.mapping is not None and TABLE.mapping.shape == (11, 3)
    assert TABLE.mapping[3, 1] == 1 and TABLE.mapping[10, 2] == 8
    with pytest.raises(ParameterError, match="must ask for one attribute, got 2"):
        _ = TABLE.attribute


def test_margins_are_the_categories_and_every_input_is_in_one_of_each() -> None:
    assert TABLE.category_names == (
        *("age: child", "age: youth", "age: missing"),
        *("sex: f", "sex: m", "sex: missing"),
    )
    assert TABLE.category_of.tolist() == [[0, 0, 0, 1, 1, 1, 2, 2, 2], [3, 4, 5, 3, 4, 5, 3, 4, 5]]


def test_cells_and_margins_are_unbiased_to_the_last_digit() -> None:
    """In fractions: the expected counts of any crowd give back its cells, and sums of them its margins."""
    channel = TABLE.channel
    for margin in TABLE.category_of:
        inverse = invert(channel, category_of=margin - margin.min(), arithmetic="fractions")
        for x in range(channel.inputs):
            expected = np.array([Fraction(int(w), channel.total) for w in channel.row(x)], dtype=object)
            solution = inverse.solve(expected)
            assert solution.values.tolist() == [int(y == x) for y in range(channel.inputs)]
            assert solution.categories.tolist() == [int(c == margin[x] - margin.min()) for c in range(3)]


@pytest.mark.parametrize("mechanism", ["grr", "subset", "unary", "auto"])
def test_errors_of_margins_are_those_of_the_sums_of_their_cells(mechanism) -> None:
    survey = Survey.parse(changed(('"grr"', f'"{mechanism}"')))
    shares = np.array([0.2, 0.1, 0.05, 0.25, 0.2, 0.05, 0.05, 0.05, 0.05])
    estimate = survey.estimator().expected_estimate(shares, 20_000)
    assert estimate.values == pytest.approx(shares, abs=1e-12)
    assert estimate.categories == pytest.approx([0.35, 0.5, 0.15, 0.5, 0.35, 0.15], abs=1e-12)
    covariance = estimate.covariance()
    for name, margin in enumerate(survey.category_of):
        together = np.stack([margin == category for category in range(3 * name, 3 * name + 3)]).astype(float)
        variances = np.diag(together @ covariance @ together.T)
        assert estimate.category_errors[3 * name : 3 * name + 3] == pytest.approx(
            np.sqrt(variances), rel=1e-9
        )
    seen = estimate.consistent()
    assert seen.values.sum() == pytest.approx(1.0)
    assert seen.categories == pytest.approx([0.35, 0.5, 0.15, 0.5, 0.35, 0.15])
    margin = estimate.poison_margin()
    assert margin.values.shape == (9,) and margin.categories.shape == (6,)
    assert (margin.categories >= 1).all()


def test_a_consistent_view_is_not_negative_and_its_margins_are_its_sums() -> None:
    counts = np.array([900, 10, 10, 10, 10, 10, 10, 30, 10])
    estimate = TABLE.estimator()(counts, int(counts.sum()))
    assert estimate.values.min() < 0
    seen = estimate.consistent()
    assert seen.values.min() >= 0
    assert seen.values.sum() == pytest.approx(1.0)
    assert seen.categories[:3] == pytest.approx(seen.values.reshape(3, 3).sum(axis=1))
    assert seen.categories[3:] == pytest.approx(seen.values.reshape(3, 3).sum(axis=0))


def test_canonical_bytes_give_back_the_survey() -> None:
    again = Survey.from_canonical(TABLE.canonical)
    assert again == TABLE and again.attributes == TABLE.attributes
    assert again.input_labels == TABLE.input_labels
    assert np.array_equal(again.mapping, TABLE.mapping)
    assert TABLE.digest == hashlib.sha256(TABLE.canonical).digest()[:16]


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (1, 5, "version must be one of"),
        (5, [], "must describe its 0 attributes, got 2"),
        (5, "age", "attributes must be an array"),
        (8, ["tables", []], "a form must be"),
        (8, ["table", [[None, None]]], "must describe its 2 attributes, got 1"),
        (8, ["table", [[[], None], [None, None]]], "encoded values must be at least one"),
        (8, ["table", [[[0] * 10 + [1], ["a"]], [None, None]]], "at least two encoded values"),
        (8, ["table", [[[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2], None], [None, None]]], "must have names"),
        (8, ["table", [[[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2], ["a"]], [None, None]]], "must be 2 names"),
        (8, ["table", [[[0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2], ["a", "a"]], [None, None]]], "that differ"),
        (8, ["table", [[[0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2], ["a", "b"]], [None, None]]], "only missing"),
        (8, ["table", [[[0, 1, 2], ["a", "b"]], [None, None]]], "must have 11 encoded values"),
        (8, ["table", [[None, None], [None, None]]], "9 combinations of encoded values"),
        (5, [["age", "static", "integer", [10, 19]]] * 2, "must be its own in the survey"),
        (
            5,
            [["age", "static", "number", [1.0, 2.0]], ["b", "static", "label", ["f", "m"]]],
            "integer or label",
        ),
    ],
)
def test_bytes_that_describe_no_table_are_refused(place, value, words) -> None:
    fields = packing.unpack(TABLE.canonical, "survey")
    assert isinstance(fields, list)
    fields[place] = value
    with pytest.raises((WireError, SurveyError), match=words):
        Survey.from_canonical(packing.pack(fields))


def test_a_table_of_one_attribute_has_no_second_encoding() -> None:
    fields = packing.unpack(TABLE.canonical, "survey")
    assert isinstance(fields, list)
    fields[5], fields[8] = fields[5][:1], ["table", [[None, None]]]
    with pytest.raises(SurveyError, match=r"must be 2 to 10 \[\[attribute\]\] tables"):
        Survey.from_canonical(packing.pack(fields))


WRONG = {
    "one attribute as a list": (
        AGE_BY_SEX[: AGE_BY_SEX.index('[[attribute]]\nid = "sex"')] + '[mechanism]\nname = "grr"\n',
        "attribute",
        "2 to 10",
        "1",
    ),
    "one id twice": (changed(('id = "sex"', 'id = "age"')), "attribute[1].id", "its own", "age"),
    "a number": (
        changed(('type = "label"\nlabels = ["f", "m"]', 'type = "number"\nlow = 0\nhigh = 1')),
        "attribute[1].type",
        "integer or label",
        "number",
    ),
    "categories of the whole": (
        AGE_BY_SEX + '[[category]]\nname = "all"\nvalues = ["f", "m"]\n',
        "category",
        "below its own",
        "category",
    ),
    "a category that leaves out": (
        changed(("range = [10, 13]", "range = [10, 12]")),
        "attribute[0].category",
        "whole domain",
        "13",
    ),
    "categories that overlap": (
        changed(("range = [10, 13]", "range = [10, 14]")),
        "attribute[0].category[1].values",
        "must not overlap",
        "14",
    ),
    "one category": (
        changed((CATEGORIES, '[[attribute.category]]\nname = "all"\nrange = [10, 19]\n\n')),
        "attribute[0].category",
        "two or more",
        "all",
    ),
    "a mechanism of categories": (
        changed(('name = "grr"', 'name = "pbgrr"\nboost_epsilon = 1.0')),
        "mechanism.name",
        "in a table",
        "pbgrr",
    ),
    "a mechanism of numbers": (
        changed(('name = "grr"', 'name = "duchi"\npoints = 3')),
        "mechanism.name",
        "in a table",
        "duchi",
    ),
    "a reading of the whole": (
        changed(('name = "grr"', 'name = "grr"\nreading = "category"')),
        "mechanism.reading",
        "absent in a table",
        "category",
    ),
    "an objective": (
        changed(('name = "grr"', 'name = "auto"\nobjective = "category"')),
        "mechanism.objective",
        "absent in a table",
        "category",
    ),
    "an unknown key": (
        changed(('labels = ["f", "m"]', 'labels = ["f", "m"]\nlow = 1')),
        "attribute[1].low",
        "known",
        "1",
    ),
    "an unknown kind": (
        changed(('kind = "static"', 'kind = "fixed"')),
        "attribute[0].kind",
        "must be one of",
        "fixed",
    ),
    "too many values": (
        changed((CATEGORIES, ""), ("high = 19", "high = 131000")),
        "attribute",
        "131072 combinations of encoded values",
        "392976",
    ),
    "too many values behind few readings": (
        changed(("high = 19", "high = 99999"), ("values = [14, 15, 16, 17, 18, 19]", "range = [14, 99999]")),
        "attribute",
        "262144 combinations of values",
        "299973",
    ),
    "attributes that are no tables": (
        changed().replace("[[attribute]]", "[[other]]").replace("[[attribute.category]]", "[[other.c]]"),
        "other",
        "known key",
        "age",
    ),
    "attribute as a list of numbers": (
        "attribute = [1, 2]\n" + LABELS.replace("[attribute]", "[other]"),
        "other",
        "known key",
        "health",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tables_are_refused_by_file_key_rule_and_value(name) -> None:
    text, key, rule, value = WRONG[name]
    with pytest.raises(SurveyError) as caught:
        Survey.parse(text, file="wrong.toml")
    message = str(caught.value)
    for part in ("wrong.toml", key, rule, value):
        assert part in message, message
