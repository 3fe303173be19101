"""The independent checkers of releases: asked for the results of cases, and for what they do not check."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from web_device import FOLDER, NODE

Results: TypeAlias = list[tuple[str, list[str]]]
"""Per case the words of its result, and the parts that were held beside nothing."""

Checker: TypeAlias = Callable[[Sequence[str]], Results]


def in_javascript(lines: Sequence[str]) -> Results:
    """The results of the checker of client/web."""
    assert NODE is not None
    return asked([NODE, str(FOLDER / "test" / "release-cli.js")], lines)


def asked(command: Sequence[str | Path], lines: Sequence[str]) -> Results:
    """The results of a program that reads cases and writes a line for each."""
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(list(map(str, command)), input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(pairs) == len(lines)
    return [(words, parts.split(", ") if parts else []) for words, parts in pairs]
