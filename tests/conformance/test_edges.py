"""Three implementations agree about every kind of channel at the ends of its numbers: edge_cases.py."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import edge_cases
import msgpack
import pytest
import second_implementation
from case_changes import Case
from reference import REFUSED, result
from second_implementation import RUSTC
from web_device import NODE, in_node


@pytest.fixture(scope="module")
def made() -> tuple[list[Case], list[str]]:
    cases = edge_cases.cases()
    return cases, [result(*case) for case in cases]


def test_every_kind_of_channel_is_answered_there(made: tuple[list[Case], list[str]]) -> None:
    answered = Counter(
        msgpack.unpackb(case.parts[0])[7]["kind"]
        for case, words in zip(*made, strict=True)
        if words.startswith("answer")
    )
    tables = {"grr", "pbgrr", "category_grr", "dense", "curve", "weighted", "levels", "tree_node"}
    sets = {"subset", "unary", "set_levels", "nested_levels", "tree", "set", "parts", "local_hashing"}
    assert set(answered) == tables | sets
    assert min(answered.values()) >= 9
    assert made[1].count(REFUSED) < len(made[1]) // 8


@pytest.mark.skipif(NODE is None, reason="node 20 or newer is not at hand")
def test_the_browsers_device_says_the_same(made: tuple[list[Case], list[str]]) -> None:
    cases, words = made
    assert in_node([case.line for case in cases]) == words


@pytest.mark.skipif(RUSTC is None, reason="rustc is not at hand")
def test_the_second_implementation_says_the_same(made: tuple[list[Case], list[str]], tmp_path: Path) -> None:
    cases, words = made
    program = second_implementation.build(tmp_path)
    assert second_implementation.results(program, [case.line for case in cases]) == words
