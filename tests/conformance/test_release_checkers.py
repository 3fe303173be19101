"""The series of releases: what is stored is what this repository says, and so do the independent checkers."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import release_cases
import release_checkers
from lies import LIES, released, told
from random_channels import Chance
from release_cases import CASES, DIGEST_FILE, SAMPLE, SAMPLE_FILE, ReleaseCase
from second_implementation import RUSTC
from web_device import NODE

from hubbub import Survey
from hubbub.survey import DictionaryDomain, LabelTree, dictionary_of
from hubbub.survey.domain import IntegerDomain, LabelDomain, NumberDomain, SetDomain

needs_node = pytest.mark.skipif(NODE is None, reason="node 20 or newer is not at hand")
SOME = 60
FORMS = ("sets", "survey-transition", "key-value", "dictionary", "bundle", "interactions")
TEXTS = ("mail", "maps", "music", "caf\u00e9", "news", "chess", "go")
"""The dictionary of the golden survey."""


@pytest.fixture(scope="module")
def stored() -> list[tuple[str, str]]:
    lines = SAMPLE_FILE.read_text(encoding="ascii").splitlines()
    return [(line.rpartition("\t")[0], line.rpartition("\t")[2]) for line in lines]


@pytest.fixture(scope="module")
def made() -> list[ReleaseCase]:
    return list(release_cases.cases(SOME))


def test_the_series_is_stated(stored: list[tuple[str, str]], made: list[ReleaseCase]) -> None:
    name, count, digest = DIGEST_FILE.read_text(encoding="ascii").split()
    assert (name, int(count), len(digest)) == (release_cases.NAME, CASES, 64)
    assert len(stored) == SAMPLE
    # The last digits of a release may be another processor's: its survey and counts are not.
    assert [line.split("\t")[1:3] for line, _ in stored] == [
        each.line.split("\t")[1:3] for each in made[:SAMPLE]
    ]
    assert [words for _, words in stored] == [each.result for each in made[:SAMPLE]]


def test_it_has_lies_and_honest_releases_of_every_kind(made: list[ReleaseCase]) -> None:
    kinds = Counter(each.survey.channel.kind for each in made)
    assert len(kinds) >= 14
    honest = [each for each in made if not each.lie]
    assert all(each.result == "same" for each in honest) and len(honest) == SOME // 2
    assert len({each.lie for each in made}) > 15


@needs_node
def test_the_checker_in_javascript_says_the_same(
    stored: list[tuple[str, str]], made: list[ReleaseCase]
) -> None:
    found = release_checkers.in_javascript([line for line, _ in stored])
    assert [words for words, _ in found] == [words for _, words in stored]
    found = release_checkers.in_javascript([each.line for each in made])
    assert [words for words, _ in found] == [each.result for each in made]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if RUSTC is None:
        pytest.skip("rustc is not at hand")
    return release_checkers.build(tmp_path_factory.mktemp("checker"))


def test_the_checker_in_rust_says_the_same_or_names_the_part(
    stored: list[tuple[str, str]], made: list[ReleaseCase], program: Path
) -> None:
    """It knows no tree of labels, and of the categories of local hashing the estimates alone."""
    found = release_checkers.in_rust(program, [line for line, _ in stored] + [each.line for each in made])
    due = [words for _, words in stored] + [each.result for each in made]
    surveys = [None for _ in stored] + [each.survey for each in made]
    others = 0
    for (words, unchecked), wanted, survey in zip(found, due, surveys, strict=True):
        if words != wanted:
            others += 1
            hidden = release_checkers.parts_of(wanted.removeprefix("differs ")) & set(unchecked)
            is_tree = survey is not None and isinstance(survey.form, LabelTree)
            assert (words == "same" and hidden) or (is_tree and words.startswith("refused ")), (words, wanted)
    assert others < len(due) // 8


def beside_the_series(name: str) -> list[ReleaseCase]:
    """An honest release of a golden survey of a form that the series has not, and every lie about it."""
    survey = Survey.from_canonical((release_cases.SURVEYS / f"{name}.bin").read_bytes())
    for attribute in survey.attributes:
        if isinstance(attribute.domain, DictionaryDomain):
            attribute.domain.take(DictionaryDomain.of(dictionary_of(TEXTS)[0]))
    chance, n = random.Random(name), max(100, survey.minimum_cohort)  # noqa: S311 - test cases
    form = survey.form
    reads = getattr(form, "reads", survey.attributes)
    inputs = [survey.input_of(*(held(each.domain, chance) for each in reads)) for _ in range(n)]
    symbols = [survey.channel.perturb(each, source=Chance(f"{name} {at}")) for at, each in enumerate(inputs)]
    if isinstance(symbols[0], bytes):
        counts = survey.channel.tally(np.stack([np.frombuffer(each, np.uint8) for each in symbols]))
    else:
        counts = survey.channel.tally(np.array(symbols))
    honest = released(survey, counts, n, asked=2 * n)
    made = [("", honest), *((lie, told(lie, honest, chance)) for lie in LIES)]
    return [ReleaseCase(survey, lie, *each) for lie, each in made if each is not None]


def held(domain: object, chance: random.Random) -> object:
    """A value of a domain."""
    if isinstance(domain, SetDomain):
        return chance.sample(domain.items.labels, chance.randrange(1, 4))
    if isinstance(domain, LabelDomain):
        return chance.choice(domain.labels)
    if isinstance(domain, DictionaryDomain):
        return chance.choice(TEXTS)
    assert isinstance(domain, IntegerDomain | NumberDomain)
    return (
        "absent"
        if domain.absent and chance.random() < 0.5
        else chance.randint(int(domain.low), int(domain.high))
    )


@needs_node
@pytest.mark.parametrize("name", FORMS)
def test_forms_beside_the_series_are_checked_in_javascript_and_rust(name: str, program: Path) -> None:
    """Of a bundle, estimated together, the parts alone; of a hashed category in Rust its estimate alone."""
    made = beside_the_series(name)
    lines = [each.line for each in made]
    due = [each.result for each in made]
    bundle = made[0].survey.form.samples_parts
    assert len(made) > 25 and sum(words != "same" for words in due) > (14 if bundle else 25)
    for found in (release_checkers.in_javascript(lines), release_checkers.in_rust(program, lines)):
        for (words, unchecked), wanted in zip(found, due, strict=True):
            hidden = release_checkers.parts_of(wanted.removeprefix("differs ")) & set(unchecked)
            assert words == wanted or (name == "dictionary" and words == "same" and hidden), (words, wanted)
        assert ("values.estimate" in found[0][1]) == bundle


@needs_node
def test_every_part_of_a_release_is_checked_or_named_as_not_checked(made: list[ReleaseCase]) -> None:
    """Each number of an honest release is moved by itself: it is named, or in a part that is not checked."""
    changed, lines = [], []
    for each in [each for each in made if not each.lie][::4]:
        for path, document in moved(each.document):
            changed.append(path)
            lines.append(ReleaseCase(each.survey, "moved", document, each.counts).line)
    found = release_checkers.in_javascript(lines)
    missed = [
        path
        for path, (words, unchecked) in zip(changed, found, strict=True)
        if words == "same" and not {path, path.split(".")[0]} & set(unchecked)
    ]
    assert missed == []
    assert len(changed) > 300


def moved(document: dict[str, object]) -> list[tuple[str, dict[str, object]]]:
    """Copies of a release in which one number, of the first of every list, is another; with its place."""
    text = json.dumps(document)
    found = []

    def look(part: object, path: str, keys: tuple[str | int, ...]) -> None:
        if isinstance(part, dict):
            for key, each in part.items():
                look(each, f"{path}.{key}".lstrip("."), (*keys, key))
        elif isinstance(part, list) and part:
            look(part[0], path, (*keys, 0))
        elif isinstance(part, int | float) and not isinstance(part, bool):
            copied = json.loads(text)
            place = copied
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = part + 100
            found.append((re.sub(r"\[\d+\]", "", path), copied))

    look(document, "", ())
    return found
