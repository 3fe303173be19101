"""Three mechanisms at a hundred devices: the thin part of `make evidence NAME=coverage`."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("interval_coverage", ROOT / "bench" / "interval_coverage.py")
assert spec is not None
assert spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = coverage
spec.loader.exec_module(coverage)

pytestmark = pytest.mark.statistical

RUNS = 80
TESTS = 1000
"""More than the tests of this module: `upper` keeps their false alarms together below 1e-6."""


@cache
def held_by(mechanism: str, population: str):
    """Return the hits of RUNS rounds."""
    return coverage.judge(coverage.Case(mechanism, 91, 100, population, 1.0), RUNS, seed=11)[0]


def bound(hits: int) -> float:
    return coverage.upper(hits, RUNS, TESTS)


@pytest.mark.parametrize(
    ("mechanism", "population"), [("pb-grr", "zipf"), ("levels", "spike"), ("subset", "even")]
)
def test_intervals_hold_at_a_hundred_devices(mechanism: str, population: str) -> None:
    """n = 100, R = 80: no cell, family or mean whose one-sided upper bound of coverage lies below .94."""
    for kind in ("values", "categories"):
        held = held_by(mechanism, population)[kind]
        assert min(map(bound, (int(held.cells.min()), held.together, held.mean))) >= coverage.LEAST
        assert held.cells.mean() / RUNS >= coverage.LEAST


def test_the_normal_intervals_are_found_to_cover_too_little() -> None:
    """Control: the plug-in intervals of releases of method 1 hold .55 in the worst cell and no family."""
    held = held_by("pb-grr", "zipf")["normal values"]
    assert max(bound(int(held.cells.min())), bound(held.together)) < coverage.LEAST
    assert held.cells.mean() / RUNS < 0.75
