"""The series of releases: what is stored is what this repository says, and so do the independent checkers."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
import release_cases
import release_checkers
from release_cases import CASES, DIGEST_FILE, SAMPLE, SAMPLE_FILE, ReleaseCase
from second_implementation import RUSTC
from web_device import NODE

from hubbub.survey import LabelTree

needs_rustc = pytest.mark.skipif(RUSTC is None, reason="rustc is not at hand")
needs_node = pytest.mark.skipif(NODE is None, reason="node 20 or newer is not at hand")
SOME = 60


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


@needs_rustc
def test_the_checker_in_rust_says_the_same_or_names_the_part(
    stored: list[tuple[str, str]], made: list[ReleaseCase], tmp_path: Path
) -> None:
    """It knows no tree of labels, and of the categories of local hashing the estimates alone."""
    program = release_checkers.build(tmp_path)
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
