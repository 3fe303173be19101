"""The series of trees: what is stored is what this repository says, and so do two other implementations."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import second_implementation
import tree_cases
import web_device
from conformance_pack import read_cases
from reference import REFUSED
from second_implementation import RUSTC


@pytest.fixture(scope="module")
def made() -> list[str]:
    return tree_cases.lines()


@pytest.fixture(scope="module")
def cases(made: list[str]) -> tuple[list[str], list[str]]:
    parts = [line.rstrip("\n").rsplit("\t", 1) for line in made]
    return [case for case, _ in parts], [words for _, words in parts]


def test_the_series_is_what_is_stored_of_it(made: list[str]) -> None:
    stored = tree_cases.SAMPLE_FILE.read_text(encoding="ascii")
    assert "".join(made[: tree_cases.SAMPLE]) == stored
    assert tree_cases.stated(made) == tree_cases.DIGEST_FILE.read_text(encoding="ascii")
    assert len(read_cases(tree_cases.SAMPLE_FILE)) == tree_cases.SAMPLE


def test_it_has_enough_of_every_kind(cases: tuple[list[str], list[str]]) -> None:
    said = Counter(words.split()[0] for words in cases[1])
    assert min(said[word] for word in ("certified", "answer", "weights", "filter")) >= 25
    assert said[REFUSED] >= 50
    surveys = " ".join(cases[0])
    assert all(word.encode().hex() in surveys for word in ("quadtree", "nested_levels"))


@pytest.mark.skipif(web_device.NODE is None, reason="node 20 or newer is not at hand")
def test_the_browsers_device_says_the_same(cases: tuple[list[str], list[str]]) -> None:
    assert web_device.in_node(cases[0]) == cases[1]


@pytest.mark.skipif(RUSTC is None, reason="rustc is not at hand")
def test_the_second_implementation_says_the_same(cases: tuple[list[str], list[str]], tmp_path: Path) -> None:
    program = second_implementation.build(tmp_path)
    assert second_implementation.results(program, cases[0]) == cases[1]
