"""The independent checkers of releases: asked for the results of cases, and for what they do not check."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import second_implementation
from web_device import FOLDER, NODE

Results: TypeAlias = list[tuple[str, list[str]]]
"""Per case the words of its result, and the parts that were held beside nothing."""

Checker: TypeAlias = Callable[[Sequence[str]], Results]


def in_javascript(lines: Sequence[str]) -> Results:
    """The results of the checker of client/web."""
    assert NODE is not None
    return asked([NODE, str(FOLDER / "test" / "release-cli.js")], lines)


def in_rust(program: Path, lines: Sequence[str]) -> Results:
    """The results of the checker in Rust, "refused" and why where it does not know a form."""
    return asked([program], lines)


def build(folder: Path, *, fast: bool = False) -> Path:
    """The checker in Rust."""
    source = second_implementation.SOURCE.parent / "checker" / "main.rs"
    return second_implementation.build(folder, fast=fast, source=source)


def parts_of(path: str) -> set[str]:
    """The name that checkers give to the part of a path, or to the whole that has this part."""
    plain = re.sub(r"\[\d+\]", "", path)
    ends = {plain.replace("low to high", end) for end in ("low", "high")}
    return {plain, plain.split(".")[0], *ends}


def asked(command: Sequence[str | Path], lines: Sequence[str]) -> Results:
    """The results of a program that reads cases and writes a line for each."""
    given = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(list(map(str, command)), input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pairs = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(pairs) == len(lines)
    return [(words, parts.split(", ") if parts else []) for words, parts in pairs]
