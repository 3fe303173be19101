"""Tests beside busy processes: a run that is red, or runs nothing, is never called green."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "busy.py"


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("def test_it(): pass", 0, "1 passed"),
        ("x = 1", 1, "nothing ran"),
    ],
)
def test_a_run_is_green_only_if_tests_ran_and_passed(
    tmp_path: Path, text: str, status: int, says: str
) -> None:
    (tmp_path / "test_some.py").write_text(text + "\n")
    file = os.path.relpath(tmp_path / "test_some.py", BENCH.parents[1])
    words = [sys.executable, str(BENCH), "--times", "1", "--busy", "1", file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert done.stdout.count(says) == 1
    assert f"green {int(not status)} of 1 times beside 1 busy" in done.stdout
