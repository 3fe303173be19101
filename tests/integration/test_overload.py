"""The bench of overload, small: four times a slowed capacity, and who comes after it is served at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

BENCH = Path(__file__).parents[2] / "bench" / "overload.py"


def run(*words: object) -> tuple[int, dict[str, object]]:
    command = [sys.executable, str(BENCH), *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_four_times_the_capacity_loses_nothing_and_is_over_five_seconds_after_its_end() -> None:
    """Four seconds leave twelve seconds of work; 60 MiB is four times what was measured."""
    status, found = run("--seconds", 4)
    assert status == 0, found
    assert found["offered_per_s"] > 1000  # type: ignore[operator]  # a number
    assert found["uploads"]["503"] > found["uploads"]["200"] > 0  # type: ignore[index]  # a count by status
    assert found["lost"] == found["stored_twice"] == 0
    assert found["counted"] == found["stored"]
    assert found["most_mib"] < found["before_mib"] + 60  # type: ignore[operator]  # numbers
    assert found["served_after_s"] <= 5  # type: ignore[operator]  # a number
