"""Checks of answers by a small fleet: the run of the evidence, through kills, with a collector that drops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[2] / "bench"


def test_missing_answers_are_those_that_were_dropped_and_honest_runs_miss_none() -> None:
    """By a fixed seed: nothing here is left to chance but when processes are killed."""
    words = ["--fleet", "2000", "--kills", "2", "--large", "3000"]
    run = [sys.executable, str(BENCH / "counted.py"), *words]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| honest, a quota |" in done.stdout and "(!)" not in done.stdout
