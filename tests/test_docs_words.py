"""Pages stay short: none is above 3,000 words, most are under 1,500, and all have 45,000 at most."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[1] / "docs"
MOST: Final = 3_000
USUAL: Final = 1_500
ALL: Final = 45_000
"""The most words that people write and keep true, README and decisions too; generated pages are extra."""


def words_of(text: str) -> int:
    """Return how many words a text has; the bars of a table and other signs alone are none."""
    return sum(1 for word in text.split() if re.search(r"\w", word))


def words() -> dict[str, int]:
    """The words of every page that a person wrote, by its name."""
    return {path.name: words_of(path.read_text(encoding="utf-8")) for path in sorted(DOCS.glob("*.md"))}


def test_no_page_is_longer_than_a_reader_stays() -> None:
    assert {name: count for name, count in words().items() if count > MOST} == {}


def test_most_pages_are_short() -> None:
    counts = list(words().values())
    assert sum(count <= USUAL for count in counts) > len(counts) / 2


def test_all_pages_together_can_be_read() -> None:
    """In three hours, at 250 words a minute."""
    written = [DOCS.parent / "README.md", *DOCS.glob("*.md"), *(DOCS / "decisions").glob("*.md")]
    assert sum(words_of(path.read_text(encoding="utf-8")) for path in written) <= ALL


def test_a_table_has_the_words_of_its_cells() -> None:
    assert words_of("| key | what it is |\n|---|---|\n| `a` | 3 - no more |") == 8


def test_every_page_is_in_the_index() -> None:
    listed = (DOCS / "index.md").read_text(encoding="utf-8").split()
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} <= set(listed)


def broken_tables(text: str) -> list[str]:
    """Return the first line of every table without a line of dashes below: it is shown as bars in prose."""
    found = []
    for block in re.split(r"\n\s*\n", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if lines and (len(lines) < 2 or not re.fullmatch(r"[|: -]+", lines[1])):
            found.append(lines[0])
    return found


def test_no_table_is_broken_off() -> None:
    written = [DOCS.parent / "README.md", *DOCS.glob("*.md"), *(DOCS / "decisions").glob("*.md")]
    assert {path.name: broken_tables(path.read_text(encoding="utf-8")) for path in written} == {
        path.name: [] for path in written
    }
    assert broken_tables("| a |\n|---|\n| 1 |\n\n| 2 |\n\ntext\n") == ["| 2 |"]
