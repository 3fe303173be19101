"""The implementation in Rust: built by rustc, given cases, asked for their results."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).parent / "rust" / "main.rs"


def _compiler() -> str | None:
    """The compiler, if it starts: a manager of toolchains may stand in its place without one."""
    found = shutil.which("rustc")
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        return None
    return found


RUSTC = _compiler()


def build(folder: Path, *, fast: bool = False) -> Path:
    """The program, with checks of overflow; two seconds of one core, or twenty where it is to be fast."""
    assert RUSTC is not None
    program = folder / "second-implementation"
    level = "3" if fast else "0"
    words = ["--edition", "2021", "-C", f"opt-level={level}", "-C", "overflow-checks=on", "-D", "warnings"]
    subprocess.run([RUSTC, *words, "-o", str(program), str(SOURCE)], check=True)
    return program


def results(program: Path, lines: Sequence[str]) -> list[str]:
    """Its words for every case."""
    asked = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()
    assert len(found) == len(lines)
    return found
