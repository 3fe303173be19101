"""The unreleased product is told in few words, and each change since in a line of its own."""

from __future__ import annotations

import re
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
MOST_WORDS = 600
LONGEST = 200


def unreleased() -> str:
    """The section of what is not released: no other version is dated."""
    text = CHANGELOG.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["[Unreleased]"]
    return text.partition("## [Unreleased]\n")[2]


def test_what_the_product_is_and_does_takes_few_words() -> None:
    told = unreleased().partition("\n- ")[0]
    words = [word for word in told.split() if re.search(r"\w", word)]
    assert 300 < len(words) <= MOST_WORDS


def test_every_change_is_one_line() -> None:
    changes = unreleased().partition("\n- ")[1:]
    lines = "".join(changes).strip().splitlines()
    assert len(lines) > 5
    assert [line for line in lines if not line.startswith("- ") or len(line) > LONGEST] == []
    assert [line for line in lines if not line.endswith(".")] == []


def test_every_file_that_is_named_is_there() -> None:
    root = CHANGELOG.parent
    named = re.findall(r"`((?:docs|client|tests)/[\w./-]+)`", unreleased())
    assert named
    assert [name for name in named if not (root / name).exists()] == []
