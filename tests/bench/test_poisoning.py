"""The tables of alerts and of gains: thin runs of both, with a row for every mechanism and no fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
MECHANISMS = ("grr", "pbgrr", "subset", "unary", "local_hashing", "levels", "boosted")


def rows(script: str, *words: str) -> list[list[str]]:
    """The cells of every row that a script prints; it must end well."""
    command = [sys.executable, str(BENCH / script), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    return [line for line in lines if line[0] in MECHANISMS]


def test_alerts_are_seldom_false_and_see_one_liar_in_twenty() -> None:
    """Two honest pairs a cell, and 100,000 devices of whom a twentieth lies at epsilon 1; all is seeded.

    Every mechanism shows the jump of three forged targets, by far more than its threshold.
    """
    found = rows("alerts.py", "--rounds", "2", "--devices", "100", "--attacked", "1",
                 "--attacked-devices", "100000")  # fmt: skip
    honest, attacked = found[: 3 * len(MECHANISMS)], found[3 * len(MECHANISMS) :]
    assert {line[0] for line in honest} == set(MECHANISMS) == {line[0] for line in attacked}
    assert all(line[6].endswith("/ 1") for line in attacked if line[1] == "1")


def test_no_attack_gains_more_than_the_bound() -> None:
    """The best report gains the bound itself (levels: nearly), and a lying honest device one report."""
    for line in rows("poisoning.py", "--reports", "20000"):
        numbers = [float(cell) for cell in line[2:12]]
        lies, best, bounds = numbers[4], numbers[6:8], numbers[8:10]
        assert lies == pytest.approx(1.0, abs=0.4)
        assert best == pytest.approx(bounds, rel=0.06, abs=0.02)
