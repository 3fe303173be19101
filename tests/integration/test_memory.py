"""A worker is as large after many rounds as after a few: what a sealed round remembered is given back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1] / "harness"
ROUNDS, REPORTS, SETTLED = 16, 50_000, 4
# Kept ids would take at least 8 bytes each in the rounds after the settled ones: 4.8 MB.
BOUND = 8 * REPORTS * (ROUNDS - SETTLED) // 2

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc says what is resident"),
]


def growth(folder: Path, *leak: str) -> int:
    """Bytes by which the process grew from the SETTLED-th sealed round to the last."""
    command = [
        sys.executable,
        str(TESTS / "memory_process.py"),
        str(folder),
        str(ROUNDS),
        str(REPORTS),
        *leak,
    ]
    path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    run = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False
    )
    assert run.returncode == 0, run.stderr
    sizes = [int(line) for line in run.stdout.split()]
    assert len(sizes) == ROUNDS
    return min(sizes[-3:]) - min(sizes[SETTLED - 1 : SETTLED + 2])


def test_worker_does_not_grow_with_the_rounds_it_has_sealed(tmp_path: Path) -> None:
    assert growth(tmp_path) < BOUND


def test_ids_that_were_kept_would_be_noticed(tmp_path: Path) -> None:
    assert growth(tmp_path, "leak") > BOUND
