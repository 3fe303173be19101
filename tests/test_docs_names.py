"""The paths and names of docs/tour.md and docs/glossary.md are in the tree, where a reader looks for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists()
)
PACKAGES: Final = [
    ROOT / name
    for name in (
        "core",
        "client",
        "topic",
        "collector",
        "aggregator",
        "deploy",
        "results",
        "authoring",
        "lab",
    )
]
SOURCE: Final = "\n".join(
    path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in package.rglob("*")
    if path.suffix in {".py", ".js", ".html"}
)
WORDS: Final = set(re.findall(r"\w+", SOURCE))
PATHS: Final = {path.relative_to(ROOT).as_posix() for package in PACKAGES for path in package.rglob("*")} | {
    package.name for package in PACKAGES
}


def quoted(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", (ROOT / "docs" / page).read_text(encoding="utf-8"))


def missing(name: str) -> bool:
    """Return whether a file, a folder or a dotted name of code is nowhere in the packages."""
    if "/" in name or name.endswith(".py"):
        return not any(path == name.rstrip("/") or path.endswith("/" + name.rstrip("/")) for path in PATHS)
    return not WORDS.issuperset(name.split("."))


def lives_in() -> list[str]:
    """Return the code names of the glossary: the column "Lives in" of each of its tables."""
    names, column = [], None
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "Lives in" in cells:
            column = cells.index("Lives in")
        elif not line.startswith("|"):
            column = None
        elif column is not None and not cells[column].startswith("---"):
            names += re.findall(r"`([^`]+)`", cells[column])
    return names


@pytest.mark.parametrize("name", sorted({name for name in quoted("tour.md") if name.endswith((".py", "/"))}))
def test_a_path_of_the_tour_is_one_file_or_folder(name: str) -> None:
    assert not missing(name)


def test_the_tour_names_code_that_is_there() -> None:
    names = {name for name in quoted("tour.md") if re.fullmatch(r"[A-Za-z_][\w.]*", name)}
    names = {name for name in names if not name.endswith((".py", ".toml"))}
    assert len(names) > 8, names
    assert [name for name in sorted(names) if missing(name)] == []


def test_the_glossary_names_code_that_is_there() -> None:
    names = lives_in()
    assert len(names) > 60, names
    assert [name for name in sorted(set(names)) if missing(name)] == []


def test_a_name_that_is_nowhere_is_missing() -> None:
    assert missing("survey/nowhere.py") and missing("Agent.never_there") and not missing("Agent.enrol")
