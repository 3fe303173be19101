"""Surveys that ask who changed: their inputs, by pairs of values, and what is refused."""

from __future__ import annotations

from itertools import product

import pytest
from surveys import small

from hubbub import Survey
from hubbub.errors import SurveyError, WireError
from hubbub.survey.domain import Attribute
from hubbub.survey.forms import form_from_spec

DOMAIN = 'type = "integer"\nlow = 0\nhigh = 3'
CATEGORIES = '[[category]]\nname = "few"\nrange = [0, 1]\n[[category]]\nname = "many"\nrange = [2, 3]\n'


def asked(asks: str, rest: str = "", *, domain: str = DOMAIN, lag: int = 2, **terms: object) -> Survey:
    text = small("visits", domain, rounds=6, **terms)
    return Survey.parse(f'{text}\n[transition]\nlag = {lag}\nasks = "{asks}"\n{rest}')


def label(survey: Survey, then: object, now: object) -> str:
    return survey.input_labels[survey.input_of(then, now)]


def test_pairs_tell_every_value_then_and_now_and_each_may_be_missing() -> None:
    survey = asked("pairs")
    assert survey.channel.inputs == 25 and survey.category_names == ("answered", "missing")
    values = [0, 1, 2, 3, None]
    names = ["0", "1", "2", "3", "missing"]
    told = {pair: label(survey, *pair) for pair in product(values, repeat=2)}
    expected = {(a, b): f"{x} > {y}" for (a, x), (b, y) in product(zip(values, names, strict=True), repeat=2)}
    assert told == expected | {(None, None): "missing"}
    assert label(survey, 9, "no number") == "missing"


def test_changed_has_the_pairs_of_two_values_in_two_categories() -> None:
    survey = asked("changed")
    assert survey.channel.inputs == 17 and survey.category_names == ("same", "changed", "missing")
    for then, now in product([0, 1, 2, 3, None], repeat=2):
        place = survey.input_of(then, now)
        kind = survey.category_names[survey.category_of[place]]
        if None in (then, now):
            assert (kind, survey.input_labels[place]) == ("missing", "missing")
        else:
            assert kind == ("same" if then == now else "changed")
            assert survey.input_labels[place] == f"{then} > {now}"


def test_a_direction_is_up_same_or_down() -> None:
    survey = asked("direction", domain='type = "label"\nlabels = ["no", "yes"]')
    told = {pair: label(survey, *pair) for pair in product(["no", "yes", None], repeat=2)}
    assert told == {
        ("no", "yes"): "up",
        ("yes", "no"): "down",
        ("no", "no"): "same",
        ("yes", "yes"): "same",
        **{pair: "missing" for pair in product(["no", "yes", None], repeat=2) if None in pair},
    }


def test_values_are_read_by_category_where_there_are_some() -> None:
    survey = asked("direction", CATEGORIES)
    assert [label(survey, *pair) for pair in ((0, 1), (1, 2), (3, 0))] == ["same", "up", "down"]
    pairs = asked("pairs", CATEGORIES)
    assert label(pairs, 3, 1) == "many > few" and pairs.channel.inputs == 9
    assert Survey.from_canonical(pairs.canonical) == pairs


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"asks": "direction"}, "must be of two values for a direction, got 4"),
        ({"asks": "net"}, "transition.asks: must be one of pairs, changed, direction"),
        ({"asks": "pairs", "kind": "static"}, "must be evolving in a transition"),
        ({"asks": "pairs", "lag": 6}, "transition.lag: must be below the 6 rounds, got 6"),
        ({"asks": "pairs", "lag": 0}, "transition.lag: must be an integer from 1"),
        (
            {"asks": "pairs", "domain": 'type = "number"\nlow = 0.0\nhigh = 1.0'},
            "in a transition, got 'number'",
        ),
        ({"asks": "pairs", "domain": 'type = "integer"\nlow = 0\nhigh = 999'}, "must have at most"),
        (
            {"asks": "pairs", "domain": 'type = "label"\nlabels = ["a", "a > a"]'},
            "every input a name of its own",
        ),
    ],
)
def test_what_is_no_transition_is_refused(terms: dict[str, object], said: str) -> None:
    with pytest.raises(SurveyError, match=said):
        asked(**terms)  # type: ignore[arg-type]  # as a file may have them


def test_several_attributes_and_a_mechanism_of_its_own_are_refused() -> None:
    text = small("visits", DOMAIN, rounds=6).replace("[attribute]", "[[attribute]]")
    with pytest.raises(SurveyError, match=r"transition: must be of one \[attribute\]"):
        Survey.parse(text + '\n[transition]\nlag = 1\nasks = "pairs"\n')
    scored = small("visits", f"{DOMAIN}\ncoefficient = 1.0\ndefault = 0.0", rounds=6)
    scored = scored.replace('"grr"', '"regression"\nscore = "logistic"\nintercept = 0.0')
    with pytest.raises(SurveyError, match="must be one for labels in a transition"):
        Survey.parse(f'{scored}\n[transition]\nlag = 1\nasks = "pairs"\n')


@pytest.mark.parametrize(
    "fields",
    [
        ["transition", None, None, 1],
        ["transition", None, None, "1", "pairs"],
        ["transition", None, None, 0, "pairs"],
        ["transition", None, None, 1, "other"],
        ["transition", [], None, 1, "pairs"],
        ["transition", None, [1], 1, "pairs"],
    ],
)
def test_bytes_of_another_shape_are_refused(fields: list[object]) -> None:
    attribute = Attribute.integer("visits", 0, 3, kind="evolving")
    with pytest.raises(WireError):
        form_from_spec((attribute,), fields, 1.0)
    with pytest.raises(WireError, match="one attribute, got 2"):
        form_from_spec((attribute, attribute), ["transition", None, None, 1, "pairs"], 1.0)
