"""Surveys of trees of labels and heat maps: from the file to estimates of every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hubbub import Survey
from hubbub.errors import HubbubError, SurveyError
from hubbub.testing import seeded

GOLDEN = Path(__file__).parents[2] / "golden"
REGION = (GOLDEN / "survey-region.toml").read_text()
HEAT_MAP = (GOLDEN / "survey-heat-map.toml").read_text()
CITIES = {
    "Madrid": ("Europe", "Europe / Spain", "Europe / Spain"),
    "Seville": ("Europe", "Europe / Spain", "Europe / Spain"),
    "Lyon": ("Europe", "Europe / France", "Europe / France"),
    "Paris": ("Europe", "Europe / France", "Europe / France"),
    "Nice": ("Europe", "Europe / France", "Europe / France"),
    "Kyoto": ("Asia", "Asia / Japan", "Asia / Japan"),
    "Osaka": ("Asia", "Asia / Japan", "Asia / Japan"),
    "Goa": ("Asia", "Asia / India", "Asia / India / South"),
    "Pune": ("Asia", "Asia / India", "Asia / India / North"),
    "Delhi": ("Asia", "Asia / India", "Asia / India / North"),
    "Lima": ("America", "America", "America"),
}


def test_a_value_is_in_the_categories_of_its_file_at_every_level() -> None:
    survey = Survey.parse(REGION)
    names = survey.category_names
    for city, within in CITIES.items():
        x = survey.input_of(city)
        assert survey.input_labels[x] == city
        assert tuple(names[row[x]] for row in survey.category_of) == within
    assert survey.input_of(None) == survey.input_of("Atlantis") == survey.missing_input == 11
    assert [names[row[-1]] for row in survey.category_of] == ["missing"] * 3
    places = survey.form.cell_levels
    assert places is not None and places[: len(names)][4] == (2, "Europe")
    assert places[-1] == (4, "missing") and places[len(names) + survey.input_of("Goa")] == (
        4,
        "Asia / India / South",
    )


@pytest.mark.parametrize("text", [REGION, HEAT_MAP])
def test_canonical_bytes_are_read_as_what_they_were_made_of(text: str) -> None:
    survey = Survey.parse(text)
    again = Survey.from_canonical(survey.canonical)
    assert again == survey and again.category_names == survey.category_names
    assert again.input_labels == survey.input_labels and again.form.cell_levels == survey.form.cell_levels


def test_bytes_with_a_change_anywhere_are_refused_or_another_survey() -> None:
    data = Survey.parse(REGION).canonical
    for place in range(len(data)):
        for flip in (1, 128):
            changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
            try:
                assert Survey.from_canonical(changed).canonical == changed
            except HubbubError:
                continue


def test_every_level_is_estimated_adds_up_and_is_near_the_truth() -> None:
    """Ten thousand devices: no cell is more than five of its errors off, and sums are exact."""
    survey = Survey.parse(REGION)
    people = np.random.default_rng(5).choice(12, size=10_000, p=np.arange(1, 13) / 78)
    found = survey.estimate(survey.channel.perturb(people, source=seeded(6)))
    shares = np.bincount(people, minlength=12) / 10_000
    assert (np.abs(found.values - shares) < 5 * found.value_errors).all()
    truth = np.zeros(len(survey.category_names))
    for row in survey.category_of:
        np.add.at(truth, row, shares)
        for category in np.unique(row):
            assert found.values[row == category].sum() == pytest.approx(found.categories[category])
    assert (np.abs(found.categories - truth) < 5 * found.category_errors).all()
    seen = found.consistent()
    assert seen.values.min() >= 0.0 and seen.categories.min() >= 0.0
    for row in survey.category_of:
        sums = np.bincount(row - row.min(), seen.values)
        assert sums == pytest.approx(seen.categories[row.min() : row.max() + 1])
    assert (found.simultaneous().categories_low <= found.intervals().categories_low).all()
    # A branch that ends early has one estimate, whatever the level.
    lima = [row[survey.input_of("Lima")] for row in survey.category_of]
    assert found.categories[lima] == pytest.approx(found.values[survey.input_of("Lima")])


def test_cells_of_a_heat_map_are_in_morton_order() -> None:
    survey = Survey.parse(HEAT_MAP)
    for east in range(8):
        for north in range(8):
            bits = "".join(f"{north >> bit & 1}{east >> bit & 1}" for bit in (2, 1, 0))
            x = survey.input_of(east, 10 + north)
            assert x == int(bits, 2)
            assert survey.input_labels[x] == f"east {east}, north {10 + north}"
            for level, row in enumerate(survey.category_of, start=1):
                side = 8 >> level
                low, up = east // side * side, 10 + north // side * side
                name = f"east {low} to {low + side - 1}, north {up} to {up + side - 1}"
                assert survey.category_names[row[x]] == name
    assert survey.input_of(None, 12) == survey.input_of(3, None) == survey.input_of(3, 9) == 64


SPAIN = 'name = "Spain"\nvalues = ["Madrid", "Seville"]'


@pytest.mark.parametrize(
    ("text", "key", "rule"),
    [
        (REGION.replace('name = "levels"', 'name = "grr"'), "mechanism.name", "must be levels where"),
        (REGION.replace('name = "levels"', 'name = "auto"'), "mechanism.name", "must be levels where"),
        (REGION + "category_share = 0.5\n", "mechanism.category_share", "must be absent where categories"),
        (REGION + "tuned_for = 5\n", "mechanism.tuned_for", 'must be "levels" or a level from 1 to 4'),
        (REGION + "tuned_for = 0\n", "mechanism.tuned_for", 'must be "levels" or a level from 1 to 4'),
        (REGION + "tuned_for = true\n", "mechanism.tuned_for", 'must be "levels" or a level from 1 to 4'),
        (REGION + "tuned_for = 1\nshares = [1]\n", "mechanism.tuned_for", "must be absent where shares"),
        (REGION + "shares = 4\n", "mechanism.shares", "must be a list of thousandths"),
        (REGION + "shares = [500, 500]\n", "mechanism", "must compile"),
        (REGION + 'cells = "quadtree"\n', "attribute", "must be two [[attribute]] tables"),
        (REGION + 'cells = "hexagons"\n', "mechanism.cells", "must be one of quadtree"),
        (REGION.replace('"Goa"]\n', '"Pune"]\n'), "category", "must not overlap"),
        (REGION.replace(SPAIN, 'name = "Spain"\nvalues = ["Madrid"]'), "category", "must cover the whole"),
        (REGION.replace('"France"', '"Spain"'), "category[0].category[1].name", "must be its own"),
        (REGION.replace('"South"', '"missing"'), "category[1].category[1].category[0].name", "must be its"),
        (REGION.replace(SPAIN, 'name = "Spain"'), "category[0].category[0]", "must have either values"),
        (REGION.replace("[[category.category.category]]\n" + 'name = "South"\nvalues = ["Goa"]\n', ""),
         "category[1].category[1].category", "must be two or more"),
        (HEAT_MAP.replace("high = 17", "high = 16"), "attribute", "must be two of as many values"),
        (HEAT_MAP.replace("high = 7", "high = 8").replace("17", "18"), "attribute", "as many values, 4, 8"),
        (HEAT_MAP.replace('type = "integer"\nlow = 0\nhigh = 7', 'type = "label"\nlabels = ["a", "b"]'),
         "attribute[0].type", "must be integer in a heat map"),
        (HEAT_MAP.replace('cells = "quadtree"\n', ""), "mechanism.name", "must be one of auto, grr"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_refused_by_its_key(text: str, key: str, rule: str) -> None:
    with pytest.raises(SurveyError) as caught:
        Survey.parse(text, "<test>")
    assert caught.value.key.startswith(key) and rule in str(caught.value)


def test_keys_of_trees_are_refused_without_one() -> None:
    flat = REGION[: REGION.index("[[category]]")] + (
        '[[category]]\nname = "A"\nvalues = ["Lima", "Madrid", "Seville", "Lyon", "Paris"]\n[[category]]\n'
        'name = "B"\nvalues = ["Nice", "Kyoto", "Osaka", "Pune", "Goa", "Delhi"]\n'
        '[mechanism]\nname = "levels"\n'
    )
    assert Survey.parse(flat).form.alone
    for key in ("tuned_for = 1", "shares = [500, 500]"):
        with pytest.raises(SurveyError, match="must be absent unless categories are nested"):
            Survey.parse(flat + key)


def test_categories_are_nested_to_eight_levels() -> None:
    labels = [f"l{i}" for i in range(10)]
    head = REGION[: REGION.index("labels =")]

    def nested(depth: int) -> str:
        lines = [f"labels = {labels}".replace("'", '"')]
        for level in range(1, depth + 1):
            table = ".".join(["category"] * level)
            lines += [f"[[{table}]]", f'name = "n{level}"']
            if level == depth:
                rest = ", ".join(f'"{each}"' for each in labels[depth - 1 :])
                lines += [f"values = [{rest}]"]
        # The other category of every level follows its sister, innermost first.
        for level in range(depth, 0, -1):
            table = ".".join(["category"] * level)
            if level > 1:
                lines += [f"[[{table}]]", f'name = "o{level}"', f'values = ["{labels[level - 2]}"]']
        return head + "\n".join(lines) + '\n[mechanism]\nname = "levels"\n'

    assert len(Survey.parse(nested(8)).category_of) == 8
    with pytest.raises(SurveyError, match="must be nested to at most 8 levels"):
        Survey.parse(nested(9))
