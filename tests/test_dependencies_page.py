"""docs/dependencies.md names what pyproject.toml and the fuzzer's lock name, and nothing else, each whole."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists()
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def named(pyproject: str, locks: str = "") -> set[str]:
    """Return the packages that a pyproject.toml and locks of single packages ask for."""
    found = tomllib.loads(pyproject)
    groups = [found["build-system"]["requires"], found["project"]["dependencies"]]
    groups += found["project"]["optional-dependencies"].values()
    names = {match[0].lower() for group in groups for each in group if (match := _NAME.match(each))}
    names |= {line.partition("==")[0] for line in locks.splitlines() if "==" in line and line[0].isalnum()}
    return names - {found["project"]["name"]}


def rows(page: str) -> dict[str, list[str]]:
    """Return the other cells of each row that begins with a package in backticks."""
    found: dict[str, list[str]] = {}
    for line in page.splitlines():
        if match := re.match(r"\| `([^`]+)` \|", line):
            assert match[1] not in found, f"{match[1]} stands there twice"
            found[match[1]] = [cell.strip() for cell in line.strip("|").split("|")[1:]]
    return found


def test_the_page_names_every_dependency_and_no_other() -> None:
    wanted = named((ROOT / "pyproject.toml").read_text(), (ROOT / "requirements-fuzz.lock").read_text())
    there = rows((ROOT / "docs" / "dependencies.md").read_text())
    assert sorted(wanted - there.keys()) == []
    assert sorted(there.keys() - wanted) == []
    assert len(wanted) > 40
    assert [name for name, cells in there.items() if len(cells) < 2 or not all(cells)] == []


def test_a_dependency_that_the_page_lacks_would_be_noticed() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    more = text.replace('    "urllib3>=2.2",', '    "urllib3>=2.2",\n    "left-pad>=1",')
    assert named(more) - named(text) == {"left-pad"}
    assert "left-pad" not in rows((ROOT / "docs" / "dependencies.md").read_text())
    assert rows("| `one` | why | MIT |\n| two | why |") == {"one": ["why", "MIT"]}
