"""The form of a bundle: what it reads, what a file may say of it, and its bytes, which stay."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from pathlib import Path

import msgpack
import numpy as np
import pytest
from bundles import bundle, bundle_text

from hubbub.errors import HubbubError, SurveyError, WireError
from hubbub.filter import MAX_CELLS
from hubbub.survey.forms import form_from_spec
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_lab.evaluation.evaluation import truth_of

GOLDEN = Path(__file__).parents[2] / "golden"
SIZES = {"age": 4, "sex": 2, "job": 3}


def golden() -> Survey:
    return Survey.from_canonical((GOLDEN / "bundle.bin").read_bytes())


def test_stored_bytes_read_as_what_their_file_says():
    survey, again = golden(), Survey.load(GOLDEN / "bundle.toml")
    assert survey.digest.hex() == "64ea857406fba701c23fba83c02c733a"
    assert survey.form.to_spec() == again.form.to_spec()
    assert [part.members for part in survey.channel.parts] == [(0, 1), (2,), (1, 2)]
    assert sum(part.share for part in survey.channel.parts) == 2**32
    for one, other in zip(survey.channel.parts, again.channel.parts, strict=True):
        assert (one.members, one.size) == (other.members, other.size)
        assert abs(one.share - other.share) < 2**14  # shares are where a search ended
        assert one.p_draws == other.p_draws


def test_labels_readings_and_cells_are_those_of_the_tables():
    survey = golden()
    assert survey.input_labels[:4] == (
        "age: under 30 / sex: f",
        "age: under 30 / sex: m",
        "age: under 30 / sex: missing",
        "age: 30 to 59 / sex: f",
    )
    assert len(survey.input_labels) == 4 * 3 + 4 + 3 * 4
    assert survey.category_names[:4] == (
        "age: under 30",
        "age: 30 to 59",
        "age: 60 or older",
        "age: missing",
    )
    for values in itertools.product((29, 30, 99, None), ("f", "m", None), ("rent", "other", None)):
        truth = truth_of(survey, [values])
        cells, margins = (np.flatnonzero(each).tolist() for each in (truth.values, truth.categories))
        for cell, table in zip(cells, survey.form.tables, strict=True):
            named = [survey.category_names[margins[member]] for member in table]
            assert survey.input_labels[cell] == " / ".join(named)
        readings = np.unravel_index(survey.input_of(*values), survey.form.shape)
        starts = np.cumsum((0, *survey.form.shape[:-1]))
        assert [int(start + r) for start, r in zip(starts, readings, strict=True)] == margins


def test_inputs_of_many_are_those_of_each():
    survey = golden()
    columns = [np.array([29.0, 99.0, np.nan]), np.array([0.0, 2.0, 1.0]), np.array([1.0, 0.0, 3.0])]
    found = survey.form.inputs_of(columns, seeded(1))
    due = [(29, "f", "rent"), (99, None, "own"), (None, "m", None)]
    assert found.tolist() == [survey.input_of(*values) for values in due]


def test_a_part_s_map_is_over_whole_domains():
    """Two cuts of one attribute have maps of one shape that differ: never one of readings."""
    low = bundle(SIZES, cuts={"age": [(0, 0), (1, 3)]})
    high = bundle(SIZES, cuts={"age": [(0, 2), (3, 3)]})
    maps = [survey.form.part_mapping((0, 1)) for survey in (low, high)]
    assert maps[0].shape == maps[1].shape == (5, 3)
    assert maps[0].tolist() == [[0, 1, 2], [3, 4, 5], [3, 4, 5], [3, 4, 5], [6, 7, 8]]
    assert maps[1].tolist() == [[0, 1, 2], [0, 1, 2], [0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_values_of_too_many_combinations_share_no_map():
    cuts = {name: [(0, 299), (300, 599)] for name in ("a", "b")}
    survey = bundle({"a": 600, "b": 600}, cuts=cuts)
    assert MAX_CELLS < 601 * 601
    assert survey.form.part_mapping((0, 1)) is None
    assert survey.form.part_mapping((0,)).shape == (601,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('tables = "pairs"', 'tables = "triples"'), "bundle.tables"),
        (('tables = "pairs"', 'tables = [["age", "sex"]]'), "every attribute"),
        (('tables = "pairs"', 'tables = [["age", "age"]]'), "different"),
        (('tables = "pairs"', 'tables = [["age", "nobody"]]'), "must be of the attributes"),
        (('tables = "pairs"', 'tables = [["age", "sex"], ["sex", "age"], ["job"]]'), "differ"),
        (('tables = "pairs"', 'tables = "pairs"\nweight = [1.0]'), "bundle.weight"),
        (('tables = "pairs"', 'tables = "pairs"\norder = 5'), "bundle.order"),
        (('tables = "pairs"', 'tables = "pairs"\nerror = 0.0'), "bundle.error"),
        (('tables = "pairs"', 'tables = "pairs"\nparts = "pairs"'), "bundle.parts"),
        (('tables = "pairs"', 'tables = "pairs"\nshare = 1'), "known key"),
        (("[bundle]\n", "[bundles]\n"), "known key"),
        (('name = "bundle"\n', 'name = "grr"\n'), "only then"),
        (('name = "bundle"\n', 'name = "bundle"\nparticipation = 0.5\n'), "participation"),
        (('type = "integer"\nlow = 0\nhigh = 3', 'type = "number"\nlow = 0.0\nhigh = 3.0'), "in a bundle"),
    ],
)
def test_files_that_break_a_rule_are_refused(change: tuple[str, str], said: str):
    text = bundle_text(SIZES)
    assert change[0] in text
    with pytest.raises(SurveyError, match=said):
        Survey.parse(text.replace(*change))


def test_forms_that_do_not_fit_are_refused():
    survey = golden()
    spec = msgpack.unpackb(msgpack.packb(survey.form.to_spec()))
    assert form_from_spec(survey.attributes, spec, 1.0).to_spec() == survey.form.to_spec()
    for wrong in (
        spec[:2],
        [*spec, 1],
        [spec[0], spec[1], [[]]],
        [spec[0], spec[1], [["a"]]],
        [spec[0], 1, spec[2]],
    ):
        with pytest.raises((WireError, HubbubError)):
            form_from_spec(survey.attributes, wrong, 1.0)
    canonical = survey.canonical
    assert canonical.count(msgpack.packb([[0, 1], [2], [1, 2]])) == 1
    for tables in ([[0, 1], [2], [0, 2]], [[0, 1], [1], [1, 2]][:2], [[1, 0], [2], [1, 2]]):
        with pytest.raises(SurveyError):
            Survey.from_canonical(
                canonical.replace(msgpack.packb([[0, 1], [2], [1, 2]]), msgpack.packb(tables))
            )


def test_a_table_may_be_told_by_its_attributes_and_their_interaction():
    survey = Survey.from_canonical((GOLDEN / "interactions.bin").read_bytes())
    assert survey == Survey.load(GOLDEN / "interactions.toml")
    fields = msgpack.unpackb(survey.canonical)
    assert fields[7]["classes"] == [1, 1, 1, 4, 4, 4]

    def read(parts: list[list[int]], classes: list[int]) -> Survey:
        many = len(parts)
        named = {"orders": [len(own) for own in parts], "members": [j + 1 for own in parts for j in own]}
        cells, half = {1: 1, 2: 4}, 2**32 // many
        named |= {"subset": [cells[len(own)] for own in parts], "held": [2041685230] * many}
        named |= {"shares": [2**32 - half * (many - 1), *[half] * (many - 1)], "classes": classes}
        changed = [*fields[:7], dict(sorted((fields[7] | named).items())), *fields[8:]]
        return Survey.from_canonical(msgpack.packb(changed))

    alone, pairs = [[0], [1], [2]], [[0, 1], [0, 2], [1, 2]]
    assert read([*alone, *pairs], [1, 1, 1, 4, 4, 4]).channel.parts[5].tells == ((1, 2),)
    for parts, classes in (
        ([*alone[:2], *pairs], [1, 1, 4, 4, 4]),
        ([*alone, *pairs[:2]], [1, 1, 1, 4, 4]),
        ([*alone, *pairs], [1, 1, 1, 3, 4, 4]),
        ([*alone, *pairs], [1, 1, 1, 2, 4, 4]),
        ([*alone, *pairs], [1, 1, 4, 4, 4, 4]),
        ([*alone, *pairs], [1, 1, 1, 1, 1, 1]),
    ):
        with pytest.raises(HubbubError):
            read(parts, classes)


def test_a_survey_of_10_8_combinations_is_compiled_and_read():
    """In less than 100 MB: no array of them is made."""
    sizes = {f"a{i}": size for i, size in enumerate((9, 7, 16, 7, 14, 5, 2, 5, 2, 2))}
    tracemalloc.start()
    try:
        survey = bundle(sizes)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert survey.channel.inputs == math.prod(size + 1 for size in sizes.values()) > 10**8
    assert Survey.from_canonical(survey.canonical) == survey
    assert len(survey.canonical) < 2_000
