"""The implementation in Rust: built by rustc, given cases, asked for their results."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent / "rust" / "main.rs"
NARROW = ("--target", "i686-unknown-linux-gnu", "-C", "target-feature=+crt-static")
"""Words for a program whose `usize` has 32 bits; a Linux of 64 bits runs it as it is, without a C library."""


def _compiler() -> str | None:
    """The compiler, if it starts: a manager of toolchains may stand in its place without one."""
    found = shutil.which("rustc")
    if found is None or subprocess.run([found, "--version"], capture_output=True, check=False).returncode:
        return None
    return found


RUSTC = _compiler()


@cache
def narrow_at_hand() -> bool:
    """True if the compiler has a 32-bit target's library and linker, and the system runs its programs."""
    if RUSTC is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "nothing"
        words = [RUSTC, *NARROW, "-o", str(program), "-"]
        built = subprocess.run(words, input=b"fn main() {}", capture_output=True, check=False)
        return not built.returncode and not subprocess.run([program], check=False).returncode


def build(folder: Path, *, fast: bool = False, narrow: bool = False, source: Path = SOURCE) -> Path:
    """The program, with checks of overflow; two seconds of one core, or twenty where it is to be fast."""
    assert RUSTC is not None
    program = folder / f"{source.parent.name}-{32 if narrow else 64}"
    level = "3" if fast else "0"
    words = ["--edition", "2021", "-C", f"opt-level={level}", "-C", "overflow-checks=on", "-D", "warnings"]
    target = NARROW if narrow else ()
    subprocess.run([RUSTC, *words, *target, "-o", str(program), str(source)], check=True)
    return program


def results(program: Path, lines: Sequence[str]) -> list[str]:
    """Its words for every case."""
    asked = "".join(f"{line}\n" for line in lines)
    done = subprocess.run([str(program)], input=asked, capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()
    assert len(found) == len(lines)
    return found
