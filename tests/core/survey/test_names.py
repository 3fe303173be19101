"""Names that people read: spelt as their languages spell them, seen as they are, and each its own."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest
from surveys import DISEASES, LABELS

from hubbub import Survey
from hubbub.errors import ParameterError, SurveyError
from hubbub.survey import Attribute, LabelDomain, Rules
from hubbub_client import Agent, LedgerError

GOLDEN = Path(__file__).parents[2] / "golden"
FIRST = '"excellent"'
SPELT = [
    "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645",  # Persian: a joiner that joins not
    "\u0dc1\u0dca\u200d\u0dbb\u0dd3 \u0dbd\u0d82\u0d9a\u0dcf",  # Sinhala: a joiner that joins
    "Tr\u00e8s satisfait\u00a0!",
    "Tr\u00e8s satisfait\u202f!",
    "\u306f\u3044\u3000\u3044\u3044\u3048",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u2764\ufe0f",
    "ti\u1ebfng Vi\u1ec7t",
]
UNSEEN = [
    " car", "car ", "\u00a0car", "car\u3000", "car\u200d", "\u200ccar", "a\u202eb", "a\u2066b\u2069",
    "a\u200fb", "a\u200bb", "a\nb", "a\tb", "a\u2028b", "\ud800", "\ufeffa", "a\u00adb", " ", "\u200d",
]  # fmt: skip


def labels(first: str) -> str:
    assert FIRST in LABELS
    return LABELS.replace(FIRST, json.dumps(first, ensure_ascii=False))


@pytest.mark.parametrize("text", SPELT)
def test_a_text_is_taken_as_its_language_spells_it(text: str) -> None:
    survey = Survey.parse(labels(text))
    read = Survey.from_canonical(survey.canonical)
    assert read.input_labels[0] == unicodedata.normalize("NFC", text) == text
    category = LABELS.replace("[mechanism]", "[mechanism]") + (
        f'\n[[category]]\nname = {json.dumps(text, ensure_ascii=False)}\nvalues = ["excellent", "good"]\n'
        '[[category]]\nname = "bad"\nvalues = ["fair", "poor"]\n'
    )
    assert Survey.parse(category).category_names[0] == text


@pytest.mark.parametrize("text", UNSEEN)
def test_what_is_not_seen_is_refused_at_every_door(text: str) -> None:
    quoted = json.dumps(text, ensure_ascii=text == "\ud800")
    for found in (
        LABELS.replace(FIRST, quoted),
        LABELS.replace('title = "', f"title = {quoted} #", 1),
        LABELS + f'\n[[category]]\nname = {quoted}\nvalues = ["excellent"]\n',
    ):
        assert found != LABELS
        with pytest.raises(SurveyError):
            Survey.parse(found)


def test_one_label_in_two_spellings_is_one(tmp_path: Path) -> None:
    """Systems differ in how they write an e with an accent: as one sign, or as two."""
    one, two = "caf\u00e9", "cafe\u0301"
    survey = Survey.parse(labels(two))
    assert survey.canonical == Survey.parse(labels(one)).canonical
    assert survey.input_labels[0] == one
    attribute = survey.attributes[0]
    assert [attribute.index_of(text) for text in (one, two, "cafe")] == [0, 0, attribute.size]
    with pytest.raises(SurveyError, match="must differ"):
        Survey.parse(LABELS.replace(FIRST, f'"{one}", "{two}"'))
    hosts = [
        Attribute.labels("health", [text, "good", "fair", "poor"], kind="evolving") for text in (one, two)
    ]
    assert hosts[0] == hosts[1] and hash(hosts[0]) == hash(hosts[1])
    assert hosts[0] != Attribute.labels("health", ["cafe", "good", "fair", "poor"], kind="evolving")
    values = survey.attributes[0].domain
    assert values == LabelDomain((two, *values.labels[1:])) and values != values.labels


def test_compiled_bytes_of_another_spelling_are_read_as_they_are() -> None:
    two = "cafe\u0301"
    old = Survey.parse(labels("cafeX")).canonical.replace(b"\xa5cafeX", b"\xa6" + two.encode())
    read = Survey.from_canonical(old)
    assert read.canonical == old and read.input_labels[0] == two
    assert [read.attributes[0].index_of(text) for text in (two, "caf\u00e9")] == [0, 0]
    both = LabelDomain(("caf\u00e9", two))
    assert [both.index_of(label) for label in both.labels] == [0, 1]
    spaced = Survey.parse(labels("Xcar")).canonical.replace(b"\xa4Xcar", b"\xa4 car")
    assert Survey.from_canonical(spaced).input_labels[0] == " car"
    reserved = Survey.parse(labels("Missing")).canonical.replace(b"\xa7Missing", b"\xa7missing")
    assert Survey.from_canonical(reserved).input_labels[0] == "missing"


def test_a_reserved_word_names_no_label() -> None:
    with pytest.raises(SurveyError, match=r'attribute.labels\[0\]: must not be "missing"'):
        Survey.parse(labels("missing"))
    assert Survey.parse(labels("Missing")).input_labels[0] == "Missing"


def test_no_two_cells_of_a_table_have_one_name() -> None:
    text = (GOLDEN / "survey-table.toml").read_text(encoding="utf-8")
    between = Survey.parse(text).input_labels[0]
    head, tail = text.index("[[attribute]]"), text.index("[mechanism]")
    tables = "".join(
        f'[[attribute]]\nid = "{name}"\nkind = "evolving"\ntype = "label"\nlabels = {json.dumps(given)}\n\n'
        for name, given in (("one", ["a", "aJb"]), ("two", ["bJc", "c"]))
    )
    joint = between.removeprefix(Survey.parse(text).form.labels[0][0]).removesuffix(
        Survey.parse(text).form.labels[1][0]
    )
    assert Survey.parse(text[:head] + tables + text[tail:])
    with pytest.raises(SurveyError, match="must give every input a name of its own"):
        Survey.parse(text[:head] + tables.replace("J", joint) + text[tail:])


def test_a_category_and_a_value_that_are_inputs_have_two_names() -> None:
    """A category that is answered as one input, beside a category of one value that has its name."""
    text = LABELS.replace('name = "grr"', 'name = "grr"\nreading = "category"') + (
        '\n[[category]]\nname = "NAME"\nvalues = ["excellent", "good", "fair"]\n'
        '[[category]]\nname = "rest"\nvalues = ["poor"]\n'
    )
    assert Survey.parse(text).input_labels == ("NAME", "poor", "missing")
    with pytest.raises(SurveyError, match="must give every input a name of its own, got 'poor'"):
        Survey.parse(text.replace("NAME", "poor"))


@pytest.mark.parametrize(("low", "high"), [(0.0, 58.6), (1e9, 1e9 + 1), (-1e6, -999_000.0), (0.0, 1e-300)])
def test_no_two_points_of_a_grid_have_one_name(low: float, high: float) -> None:
    head = DISEASES[: DISEASES.index("[mechanism]")]
    text = re.sub("(?m)^low = .*", f"low = {low!r}", re.sub("(?m)^high = .*", f"high = {high!r}", head))
    names = Survey.parse(f'{text}[mechanism]\nname = "grr"\npoints = 33\n').input_labels
    assert len(set(names)) == 34 and [float(name) for name in names[:-1]] == sorted(map(float, names[:-1]))


def test_letters_of_one_text_are_no_labels() -> None:
    with pytest.raises(ParameterError, match="labels must be a sequence of texts, got one text 'abc'"):
        Attribute.labels("x", "abc", kind="evolving")


def test_an_agent_that_was_closed_takes_no_value(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "ledger", "http://127.0.0.1:9", budget=4.0)
    agent.register(Attribute.integer("visits", 0, 9, kind="evolving"))
    agent.set("visits", 3)
    agent.close()
    with pytest.raises(LedgerError):
        agent.set("visits", 4)


def test_the_rule_of_a_text_is_one() -> None:
    rules = Rules("here")
    for text in SPELT:
        assert rules.typed("x", text, 200) == text
    with pytest.raises(SurveyError):
        rules.typed("x", "\u0958" * 200, 200)  # in form C it is two signs
