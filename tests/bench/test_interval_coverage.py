"""Three mechanisms at a hundred devices: the thin part of `make evidence NAME=coverage`."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path

import pytest

from hubbub_authoring.mechanisms.registry import mechanisms

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "bench"))  # at the end: a module there is called coverage
spec = importlib.util.spec_from_file_location("interval_coverage", ROOT / "bench" / "interval_coverage.py")
assert spec is not None
assert spec.loader is not None
coverage = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = coverage
spec.loader.exec_module(coverage)

pytestmark = pytest.mark.statistical

RUNS = 80
TESTS = 5000
"""More than the tests of this module: `upper` keeps their false alarms together below 1e-6."""


@cache
def found(mechanism: str, population: str, devices: int = 100, values: int = 91, epsilon: float = 1.0):
    """Return the hits of RUNS rounds."""
    case = coverage.Case(mechanism, values, devices, population, epsilon)
    return coverage.judge(case, RUNS, seed=11).hits


def bound(hits: int, rounds: int = RUNS) -> float:
    return coverage.upper(hits, rounds, TESTS)


@pytest.mark.parametrize(
    ("mechanism", "population"),
    [("pbgrr", "zipf"), ("levels", "spike"), ("subset", "even"), ("orbits", "zipf"), ("tree", "even")],
)
def test_intervals_hold_at_a_hundred_devices(mechanism: str, population: str) -> None:
    """n = 100, R = 80: no cell, family, mean or change whose upper bound of coverage lies below .94."""
    every = found(mechanism, population)
    for kind in ("values", "categories"):
        hits = every[kind]
        assert min(bound(int(hits.cells.min())), bound(hits.together)) >= coverage.LEAST
        assert hits.cells.mean() / RUNS >= coverage.LEAST
        for word in ("change ", "memoised change "):
            change = every[word + kind]
            assert bound(int(change.cells.min()), change.rounds) >= coverage.LEAST
            assert change.cells.mean() / change.rounds >= coverage.LEAST
    assert bound(int(every["mean"].cells.min())) >= coverage.LEAST


def test_the_normal_intervals_are_found_to_cover_too_little() -> None:
    """Control: plug-in intervals hold .55 in the worst cell and no family."""
    hits = found("pbgrr", "zipf")["normal values"]
    assert max(bound(int(hits.cells.min())), bound(hits.together)) < coverage.LEAST
    assert hits.cells.mean() / RUNS < 0.75


@pytest.mark.parametrize(
    ("mechanism", "values", "epsilon"), [("duchi", 91, 1.0), ("levels", 5, 4.0), ("optimal", 91, 4.0)]
)
def test_what_covered_too_little_once_holds(mechanism: str, values: int, epsilon: float) -> None:
    """n = 50, R = 80: the mean by duchi held .75, categories of levels at large epsilon .75 at once."""
    every = found(mechanism, "zipf", 50, values, epsilon)
    assert bound(every["categories"].together) >= coverage.LEAST
    assert bound(int(every["mean"].cells.min())) >= coverage.LEAST
    assert min(every["categories"].together, int(every["mean"].cells.min())) / RUNS > 0.85


def test_a_tree_whose_reports_are_all_about_one_level_holds() -> None:
    """n = 100, R = 80: at epsilon 4 a level of four numbers has .999 of the reports; categories held .67."""
    every = found("tree", "zipf", 100, 5, 4.0)
    assert min(every["values"].together, every["categories"].together) / RUNS > 0.85
    assert bound(int(every["categories"].cells.min())) >= coverage.LEAST


def test_values_of_a_channel_with_rare_large_scores_hold_at_once() -> None:
    """n = 50, R = 80: `optimal` at epsilon 2 tells single points by a coin of .002; it held .033 at once."""
    every = found("optimal", "zipf", 50, 91, 2.0)
    assert bound(every["values"].together) >= coverage.LEAST
    assert every["values"].together / RUNS > 0.85
    assert bound(int(every["values"].cells.min())) >= coverage.LEAST


def test_every_registered_mechanism_has_a_case_and_the_laws_of_its_scores() -> None:
    names = [*coverage.LABELS, *coverage.NUMBERS]
    assert {name.split(",")[0] for name in names} == set(mechanisms())
    for name in names:
        case = coverage.Case(name, 9, 100, "even", 2.0)
        laws = case.estimator().expected_estimate(case.shares(), 100).laws
        assert laws is not None, name
        assert laws.mean is not None or name == "pbgrr, by category"
