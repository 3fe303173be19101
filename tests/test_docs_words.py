"""Pages stay short: no page of docs is above 3,000 words, and most are under 1,500."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1] / "docs"
MOST: Final = 3_000
USUAL: Final = 1_500


def words() -> dict[str, int]:
    """The words of every page that a person wrote, by its name."""
    return {path.name: len(path.read_text(encoding="utf-8").split()) for path in sorted(DOCS.glob("*.md"))}


def test_no_page_is_longer_than_a_reader_stays() -> None:
    assert {name: count for name, count in words().items() if count > MOST} == {}


def test_most_pages_are_short() -> None:
    counts = list(words().values())
    assert sum(count <= USUAL for count in counts) > len(counts) / 2


def test_every_page_is_in_the_index() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8").split()
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= set(listed)
