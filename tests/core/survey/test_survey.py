"""A survey file becomes a channel, a map, canonical bytes and a digest that both sides agree on."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from fractions import Fraction
from pathlib import Path

import msgpack
import numpy as np
import pytest
import surveys

from hubbub import Survey, SurveyError, WireError
from hubbub.mechanisms.grr import GRR
from hubbub.testing import seeded


def parse(name: str, *changes: tuple[str, str]) -> Survey:
    text = surveys.ALL[name]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return Survey.parse(text, name)


BY_CATEGORY = """
[[category]]
name = "well"
values = ["good", "excellent"]
[[category]]
name = "ill"
values = ["poor", "fair"]
"""


def with_categories(reading: str = "value") -> Survey:
    return Survey.parse(f'{surveys.LABELS}reading = "{reading}"\n{BY_CATEGORY}')


@pytest.mark.parametrize("name", surveys.ALL)
def test_canonical_bytes_give_back_an_equal_survey(name):
    survey = parse(name)
    again = Survey.from_canonical(survey.canonical)
    assert again == survey
    assert hash(again) == hash(survey)
    assert again.digest == survey.digest == hashlib.sha256(survey.canonical).digest()[:16]
    assert np.array_equal(again.channel.weights(), survey.channel.weights())
    assert again.channel.total == survey.channel.total
    assert type(again.form) is type(survey.form)
    pairs = [(each.name, survey, again) for each in dataclasses.fields(Survey)]
    pairs += [(each.name, survey.form, again.form) for each in dataclasses.fields(survey.form)]
    for part, one, other in pairs:
        mine, theirs = getattr(one, part), getattr(other, part)
        if isinstance(mine, np.ndarray):
            np.testing.assert_array_equal(mine, theirs)
        elif part not in ("channel", "form"):
            assert mine == theirs, part


@pytest.mark.parametrize("name", surveys.ALL)
def test_certified_epsilon_is_at_most_the_declared_one_and_near(name):
    survey = parse(name)
    assert survey.epsilon - 1e-5 < survey.channel.epsilon <= survey.epsilon - 2.0**-36


@pytest.mark.parametrize(
    "change",
    [
        ("version = 1", "version = 2"),
        ("epsilon = 1.0", "epsilon = 1.5"),
        ('"excellent", "good"', '"good", "excellent"'),
        ("rounds = 3", "rounds = 4"),
        ('lateness = "1h"', 'lateness = "2h"'),
        ("minimum_cohort = 100", "minimum_cohort = 101"),
        ('kind = "evolving"', 'kind = "static"'),
        ('title = "', 'title = "My '),
        ("epsilon = 1.0", "epsilon = 1.0\nquota = 7"),
        ("rounds = 3", "rounds = 3\nrotation = 2"),
    ],
)
def test_every_parameter_changes_the_digest(change):
    assert parse("labels", change).digest != parse("labels").digest


def test_a_rotation_is_the_fourth_element_of_the_schedule_and_left_out_where_there_is_none():
    plain, rotating = parse("labels"), parse("labels", ("rounds = 3", "rounds = 3\nrotation = 100000"))
    fields = [msgpack.unpackb(survey.canonical) for survey in (plain, rotating)]
    assert fields[0][10] == [surveys.START_S, 86400, 3]
    assert fields[1][10] == [surveys.START_S, 86400, 3, 100_000]
    assert [plain.rotation, rotating.rotation] == [1, 100_000]
    assert Survey.from_canonical(rotating.canonical) == rotating


@pytest.mark.parametrize("value", ["1", "0", "-2", "100001", "2.0", "true", '"2"'])
def test_a_rotation_out_of_range_is_refused(value):
    with pytest.raises(SurveyError, match=r"rotation: must be an integer from 2 to 100000, got "):
        parse("labels", ("rounds = 3", f"rounds = 3\nrotation = {value}"))


def test_a_survey_that_is_answered_once_has_no_rotation():
    with pytest.raises(SurveyError, match=r"rotation: must be left out where every attribute is static"):
        parse("visits", ("rounds = 2", "rounds = 2\nrotation = 2"))


def test_the_devices_of_a_round_are_those_of_a_cycle_over_its_rounds():
    rotating = parse("labels", ("rounds = 3", "rounds = 3\nrotation = 12"))
    assert (parse("labels").planned_per_round, rotating.planned_per_round) == (5000, 416)


def test_equal_texts_differing_in_layout_only_have_one_digest():
    text = surveys.LABELS.replace("epsilon = 1.0", "epsilon = 1 # whole").replace('"1h"', '"60m"')
    assert Survey.parse(text).canonical == parse("labels").canonical


def test_missing_is_the_last_input_and_its_own_category():
    for survey in (*(parse(name) for name in surveys.ALL), with_categories(), with_categories("category")):
        assert survey.missing_input == survey.channel.inputs - 1
        assert survey.category_names[-1] == survey.input_labels[-1] == "missing"
        assert np.flatnonzero(survey.category_of == len(survey.category_names) - 1).tolist() == [
            survey.missing_input
        ]
        assert survey.input_of(None) == survey.input_of(object()) == survey.missing_input


def test_integers_keep_their_order_where_categories_follow_it():
    visits = parse("visits")
    assert visits.mapping is not None
    assert visits.mapping.tolist() == list(range(22))
    assert visits.input_labels[:3] == ("0", "1", "2")
    assert visits.points is not None
    assert visits.points[:21].tolist() == list(range(21))
    assert math.isnan(visits.points[21])
    assert np.bincount(visits.category_of).tolist() == [1, 2, 18, 1]
    assert visits.channel.outputs == 22


def test_scattered_categories_are_made_contiguous_by_the_map():
    text = surveys.VISITS.replace("values = [0]", "values = [20, 0]").replace("[3, 20]", "[3, 19]")
    survey = Survey.parse(text)
    assert survey.input_labels[:4] == ("0", "20", "1", "2")
    assert [survey.input_of(v) for v in (0, 20, 1, 19, 21)] == [0, 1, 2, 20, 21]
    assert survey.points is not None
    assert survey.points[:3].tolist() == [0, 20, 1]
    assert Survey.from_canonical(survey.canonical) == survey


def test_boost_of_zero_sends_the_category_only():
    survey = parse("visits", ("boost_epsilon = 2.0", "boost_epsilon = 0.0"))
    assert (survey.channel.inputs, survey.channel.outputs) == (22, 4)
    assert Survey.from_canonical(survey.canonical) == survey


def test_reading_by_value_groups_inputs_and_reading_by_category_merges_them():
    by_value, by_category = with_categories(), with_categories("category")
    assert by_value.input_labels == ("excellent", "good", "fair", "poor", "missing")
    assert by_value.category_of.tolist() == [0, 0, 1, 1, 2]
    assert by_category.input_labels == by_category.category_names == ("well", "ill", "missing")
    assert [by_category.input_of(v) for v in ("good", "excellent", "fair", "poor", "bad")] == [0, 0, 1, 1, 2]
    assert by_category.channel.inputs == 3
    assert by_category.points is None
    assert Survey.from_canonical(by_category.canonical) == by_category


def test_survey_without_categories_tells_answered_from_missing():
    assert parse("labels").category_names == ("answered", "missing")


def test_grid_of_a_number_survey_spans_its_domain():
    survey = parse("diseases")
    assert survey.grid_points == 31
    assert survey.points is not None
    assert survey.points[:-1].tolist() == pytest.approx(np.arange(0, 61, 2).tolist())
    assert survey.mapping is None
    assert (survey.input_labels[0], survey.input_labels[30]) == ("0", "60")


def test_number_is_rounded_to_a_neighbour_and_a_grid_point_to_itself():
    survey = parse("diseases")
    source = seeded(5)
    assert {survey.input_of(3.0, source=source) for _ in range(64)} == {1, 2}
    for value in (4, 4.0, Fraction(4), np.float32(4), np.int16(4)):
        assert survey.input_of(value) == 2
    assert (survey.input_of(0.0), survey.input_of(60)) == (0, 30)


@pytest.mark.parametrize(
    "value", [-0.001, 60.001, math.nan, math.inf, -math.inf, True, "3", None, 3j, 10**400]
)
def test_what_is_no_number_of_the_domain_is_missing(value):
    survey = parse("diseases")
    assert survey.input_of(value) == survey.missing_input


def test_rounds_follow_the_schedule_and_nothing_is_outside_it():
    survey, start = parse("labels"), surveys.START_S
    assert (survey.start_s, survey.round_s, survey.rounds) == (start, 86400, 3)
    assert (survey.lateness_s, survey.skew_s) == (3600, 300)
    for now, number in [
        (start - 0.001, None),
        (start, 0),
        (start + 86399.999, 0),
        (start + 86400, 1),
        (start + 3 * 86400 - 0.001, 2),
        (start + 3 * 86400, None),
        (math.nan, None),
        (math.inf, None),
    ]:
        assert survey.round_at(now) == number
    assert survey.round_start_s(1) == survey.round_end_s(0) == start + 86400


@pytest.mark.parametrize("name", surveys.ALL)
def test_estimator_belongs_to_the_survey(name):
    survey = parse(name)
    counts = survey.channel.row(0) * 10**6 // survey.channel.total
    estimate = survey.estimator()(counts, int(counts.sum()))
    assert estimate.categories[0] == pytest.approx(1, abs=0.01)
    assert len(estimate.values) == len(survey.input_labels)
    assert (estimate.mean is None) == (survey.points is None)


# What a hostile server might send.


def doctored(name: str, place: int, value: object) -> bytes:
    fields = msgpack.unpackb(parse(name).canonical)
    fields[place] = value
    return msgpack.packb(fields)


def test_canonical_survey_that_understates_its_epsilon_is_refused():
    with pytest.raises(SurveyError) as caught:
        Survey.from_canonical(doctored("visits", 6, 2.999))
    assert caught.value.key == "epsilon"
    assert "certified" in caught.value.rule
    assert Survey.from_canonical(doctored("visits", 6, 3.1)).epsilon == 3.1


def test_canonical_survey_whose_integers_were_sharpened_is_refused():
    spec = GRR(5, 10**6, 3 * 10**5).to_spec()
    with pytest.raises(SurveyError, match="certified"):
        Survey.from_canonical(doctored("labels", 7, spec))


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("labels", 0, "hubbub-surveys"),
        ("labels", 1, 2),
        ("labels", 2, "Not an id"),
        ("labels", 3, 0),
        ("labels", 3, True),
        ("labels", 4, ""),
        ("labels", 4, "a\u202eb"),
        ("labels", 5, ["health", "evolving", "label", ["a", "b"]]),
        ("labels", 5, ["health", "evolving", "integer", [0, 10**9]]),
        ("labels", 6, 1),
        ("labels", 6, math.nan),
        ("labels", 6, -1.0),
        ("labels", 6, 1e300),
        ("labels", 7, {"kind": "grr"}),
        ("labels", 7, {"kind": "grr", "inputs": 10**9, "t": 2, "u": 1}),
        ("labels", 7, {"kind": "grr", "inputs": 5, "t": 2**63, "u": 1}),
        ("labels", 7, {"kind": "grr", "inputs": 4, "t": 2, "u": 1}),
        ("labels", 7, {"kind": "grr", "inputs": 5, "t": 2, "u": 0}),
        ("labels", 7, {"kind": ["grr"]}),
        ("labels", 7, {b"kind": "grr", "inputs": 5, "t": 2, "u": 1}),
        ("labels", 7, {"kind": "pbgrr", "sizes": [2**62] * 4, "t": [2], "u": [1], "o": [1]}),
        ("labels", 7, {"kind": "category_grr", "sizes": [2**62] * 4, "t": 2, "o": 1}),
        ("labels", 7, {"kind": "dense", "inputs": 2**40, "outputs": 2**40, "total": 2, "weights": b""}),
        ("labels", 7, []),
        ("labels", 8, [0, 1, 2, 3]),
        ("labels", 8, [0, 1, 2, 3, 4]),
        ("labels", 8, [0, 0, 1, 2, 4]),
        ("labels", 8, [0, 1, 2, 4, 4]),
        ("labels", 8, [0, 1, 4, 3, 2]),
        ("labels", 8, [0, 1, 2, 3, 2**40]),
        ("labels", 8, [0, 1, 2, 3, True]),
        ("labels", 9, [["answered", 4]]),
        ("labels", 9, [["missing", 4], ["missing", 1]]),
        ("labels", 9, [["answered", 3], ["missing", 2]]),
        ("labels", 9, [["answered", 2**62], ["missing", 1]]),
        ("labels", 9, [["answered", 5], ["missing", 0]]),
        ("labels", 9, [["a", 2], ["a", 2], ["missing", 1]]),
        ("labels", 10, [surveys.START_S, 0, 1]),
        ("labels", 10, [surveys.START_S, 86400, 10**9]),
        ("labels", 10, [2**40, 86400, 1]),
        ("labels", 10, [surveys.START_S, 86400]),
        ("labels", 10, [surveys.START_S, 86400, 3, 1]),
        ("labels", 10, [surveys.START_S, 86400, 3, 0]),
        ("labels", 10, [surveys.START_S, 86400, 3, None]),
        ("labels", 10, [surveys.START_S, 86400, 3, True]),
        ("labels", 10, [surveys.START_S, 86400, 3, 100_001]),
        ("labels", 10, [surveys.START_S, 86400, 3, 2, 2]),
        ("visits", 10, [surveys.START_S, 86400, 2, 2]),
        ("labels", 11, -1),
        ("labels", 12, 2**60),
        ("labels", 13, 0),
        ("labels", 14, 0),
        ("labels", 15, 0),
        ("labels", 15, 1.5),
        ("visits", 9, [["none", 2], ["1 or 2", 1], ["more than 2", 18], ["missing", 1]]),
        ("diseases", 8, list(range(32))),
    ],
)
def test_canonical_survey_with_one_doctored_field_is_refused(name, place, value):
    with pytest.raises((SurveyError, WireError)):
        Survey.from_canonical(doctored(name, place, value))


def test_same_survey_in_another_encoding_is_refused():
    canonical = parse("labels").canonical
    fields = msgpack.unpackb(canonical)
    assert msgpack.packb(fields) == canonical
    fields[7] = dict(reversed(fields[7].items()))
    with pytest.raises(WireError, match="canonical"):
        Survey.from_canonical(msgpack.packb(fields))
    version = canonical.index(b"\x01\xb1self-rated-health")
    with pytest.raises(WireError, match="canonical"):
        Survey.from_canonical(canonical[:version] + b"\xcc\x01" + canonical[version + 1 :])


def test_arrays_of_a_survey_cannot_be_changed():
    visits = parse("visits")
    for array in (visits.mapping, visits.category_of, visits.points):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_compiled_file_is_the_survey_that_it_was_compiled_from(tmp_path):
    """Wherever it is compiled: what a solver finds may differ in its last digits from machine to machine."""
    text, compiled = tmp_path / "visits.toml", tmp_path / "visits.survey"
    text.write_text(surveys.LABELS)
    survey = Survey.load(text)
    compiled.write_bytes(survey.canonical)
    assert Survey.load(compiled) == survey
    compiled.write_bytes(survey.canonical[:-1])
    with pytest.raises(SurveyError, match=r"visits\.survey: .*must be a compiled survey"):
        Survey.load(compiled)
    goldens = [
        path.with_suffix(".bin") for path in (Path(__file__).parents[2] / "golden").glob("survey-*.toml")
    ]
    assert len(goldens) > 10
    for golden in goldens:
        assert Survey.load(golden).canonical == golden.read_bytes()
