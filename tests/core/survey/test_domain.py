"""Attributes and their domains."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from hubbub import Attribute
from hubbub.errors import HubbubError, ParameterError
from hubbub.survey.domain import MAX_SIZE, LabelDomain, attribute_from_spec

VISITS = Attribute.integer("visits", -2, 7, kind="static")
HEALTH = Attribute.labels("health", ["good", "poor"], kind="evolving")


@pytest.mark.parametrize(("value", "index"), [(-2, 0), (7, 9), (3.0, 5), (np.int8(0), 2), (np.float32(1), 3)])
def test_whole_number_of_any_type_has_its_index(value, index):
    assert VISITS.index_of(value) == index


@pytest.mark.parametrize(
    "value",
    [
        None,
        -3,
        8,
        3.5,
        math.nan,
        math.inf,
        True,
        np.True_,
        "3",
        b"3",
        [3],
        10**400,
        Fraction(10**400, 3),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_missing(value):
    assert VISITS.index_of(value) == VISITS.size == 10


def test_only_a_known_label_has_an_index():
    assert [HEALTH.index_of(v) for v in ("good", "poor", "Good", None, 0, [], b"good")] == [
        0,
        1,
        2,
        2,
        2,
        2,
        2,
    ]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attribute.integer("a", 1, 1, kind="evolving"),
        lambda: Attribute.integer("a", 0, MAX_SIZE, kind="evolving"),
        lambda: Attribute.integer("a", 0, 10**9, kind="evolving"),
        lambda: Attribute.integer("a", 0, 2.0, kind="evolving"),
        lambda: Attribute.integer("a", False, True, kind="evolving"),
        lambda: Attribute.integer("", 0, 1, kind="evolving"),
        lambda: Attribute.integer("A b", 0, 1, kind="evolving"),
        lambda: Attribute.integer("a\n", 0, 1, kind="evolving"),
        lambda: Attribute.integer("x" * 65, 0, 1, kind="evolving"),
        lambda: Attribute.integer("a", 0, 1, kind="fluid"),
        lambda: Attribute.labels("a", ["one"], kind="evolving"),
        lambda: Attribute.labels("a", ["one", "one"], kind="evolving"),
        lambda: Attribute.labels("a", ["one", ""], kind="evolving"),
        lambda: Attribute.labels("a", ["one", 2], kind="evolving"),
        lambda: Attribute.number("a", 1.0, 1.0, kind="evolving"),
        lambda: Attribute.number("a", 0.0, math.nan, kind="evolving"),
        lambda: Attribute.number("a", -1.7e308, 1.7e308, kind="evolving"),
        lambda: Attribute("a", "static", "0..9"),
    ],
)
def test_attribute_that_breaks_a_rule_is_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_largest_domain_is_taken():
    assert Attribute.integer("a", 0, MAX_SIZE - 1, kind="evolving").size == MAX_SIZE


def test_numbers_have_no_index_and_no_size():
    number = Attribute.number("a", 0, 1, kind="evolving")
    for use in (lambda: number.size, lambda: number.index_of(0.5), lambda: number.label_of(0)):
        with pytest.raises(ParameterError):
            use()


@pytest.mark.parametrize("attribute", [VISITS, HEALTH, Attribute.number("mass", -0.0, 3, kind="evolving")])
def test_description_gives_back_an_equal_attribute(attribute):
    again = attribute_from_spec(attribute.to_spec())
    assert again == attribute
    assert hash(again) == hash(attribute)
    assert again.to_spec() == attribute.to_spec()


@pytest.mark.parametrize(
    "spec",
    [
        None,
        ["a", "static", "integer"],
        ["a", "static", "integer", [0]],
        ["a", "static", "integer", [0, True]],
        ["a", "static", "integer", [0.0, 1.0]],
        ["a", "static", "number", [0, 1]],
        ["a", "static", "label", ["x", 1]],
        ["a", "static", "label", ["x"] * 2],
        ["a", "solid", "integer", [0, 1]],
        ["a", "static", "colour", [0, 1]],
        ["A", "static", "integer", [0, 1]],
        [1, "static", "integer", [0, 1]],
    ],
)
def test_description_that_is_none_is_refused(spec):
    with pytest.raises(HubbubError):
        attribute_from_spec(spec)


def test_label_domain_of_too_many_labels_is_refused():
    with pytest.raises(ParameterError):
        LabelDomain(tuple(map(str, range(MAX_SIZE + 1))))
