"""Canonical bytes of tables and scores from a hostile server: read whole, or refused as Hubbub refuses."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from surveys import ACTIVITY, AGE_BY_SEX

from hubbub import HubbubError, Survey
from hubbub.survey.score import Score
from hubbub.wire import packing

TABLE, SCORE = (packing.unpack(Survey.parse(text).canonical, "survey") for text in (AGE_BY_SEX, ACTIVITY))
NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e308, -1e308, 1e300, -1e300, 5e-324, 0.0, -0.0, 2.0**62]),
)
LEAVES = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.sampled_from(["age", "score", "linear", "number", ""]),
    st.binary(max_size=3),
)


def places(value: object, path: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """Where every element of nested arrays is."""
    found = [path] if path else []
    if isinstance(value, list):
        for i, item in enumerate(value):
            found += places(item, (*path, i))
    return found


def replaced(value: object, path: tuple[int, ...], new: object) -> object:
    if not path:
        return new
    assert isinstance(value, list)
    return [replaced(item, path[1:], new) if i == path[0] else item for i, item in enumerate(value)]


@pytest.mark.parametrize("fields", [TABLE, SCORE], ids=["table", "score"])
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_changed_fields_are_read_whole_or_refused(fields, data) -> None:
    """One to three elements, at any depth, replaced by something else."""
    changed = fields
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(changed)))
        changed = replaced(changed, path, data.draw(st.one_of(LEAVES, st.lists(LEAVES, max_size=3))))
    whole_or_refused(changed)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(["linear", "truncated", "logistic"]),
    numbers=st.lists(NUMBERS.map(float), min_size=9, max_size=9),
)
@example(kind="linear", numbers=[1e308, 0.0, -1e308, 0.0, 1e308, 0.0, 1.0, -1e300, 1e300])
@example(kind="truncated", numbers=[1e308, 0.0, 1e308, 0.0, 1e308, -1e308, 1e308, -1e300, 1e300])
@example(kind="linear", numbers=[1.7e308, 0.0, 1.7e308, 0.0, 1.7e308, 0.0, 1.0, -1.0, 1.0])
@example(kind="truncated", numbers=[1.0, 0.0, 1.0, 0.0, 0.0, -1.7e308, 1.7e308, -1.0, 1.0])
@example(kind="linear", numbers=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5e-324, -1.0, 1.0])
@example(kind="logistic", numbers=[1.7e308, 0.0, 1.7e308, 0.0, 1.7e308, 0.0, 1.0, -1.0, 1.0])
@example(kind="logistic", numbers=[5e-324, 0.0, 5e-324, 0.0, 0.0, 0.0, 1.0, -5e-324, 5e-324])
def test_scores_of_any_numbers_are_read_whole_or_refused(kind, numbers) -> None:
    one, default, two, other, intercept, low, high, least, most = numbers
    assert isinstance(SCORE, list)
    fields = list(SCORE)
    fields[5] = [["a", "static", "number", [least, most]], ["b", "static", "number", [least, most]]]
    fields[8] = ["score", kind, [[one, default], [two, other]], intercept, [low, high]]
    whole_or_refused(fields)


def whole_or_refused(fields: object) -> None:
    data = packing.pack(fields)
    try:
        survey = Survey.from_canonical(data)
    except HubbubError:
        return
    assert survey.canonical == data
    assert survey.channel.epsilon <= survey.epsilon
    if isinstance(survey.form, Score):
        assert survey.form.regression.slack >= 0
        assert 0.0 <= survey.form.place([None] * len(survey.attributes)) <= 1.0
    assert 0 <= survey.input_of(*[None] * len(survey.attributes)) < survey.channel.inputs
