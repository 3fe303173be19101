"""The kept table of how many surveys a budget holds is what the command prints."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

from hubbub import mechanisms
from hubbub.filter import BayesianFilter

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("lifetime_bench", ROOT / "bench" / "papers" / "lifetime.py")
bench = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = bench  # dataclasses look their module up
SPEC.loader.exec_module(bench)


def test_every_row_that_is_kept_is_what_the_command_prints():
    kept = json.loads((ROOT / "evidence" / "lifetime.json").read_text(encoding="utf-8"))[-1]["output"]
    start = kept.index(bench.HEAD.splitlines()[0])
    rows = list(bench.rows(bench.DEVICES))
    assert kept[start + 2 : start + 2 + len(rows)] == rows


def test_one_answer_for_each_of_ten_attributes_gains_nothing():
    """GRR always realises its epsilon, and losses of different attributes add: no filter can do better."""
    questions, budget = bench.SERIES["ten attributes, GRR at 1"]
    assert bench.total(questions) == budget == 10.0
    for make in bench.ACCOUNTS.values():
        device = bench.Device(make(budget), bench.record_of(questions, 3, alike=False), 3)
        assert bench.held_again(questions, device) == 10


def test_the_budget_that_is_needed_is_the_least_that_holds_all_ten():
    questions, _ = bench.SERIES["a demographic programme"]
    record = bench.record_of(questions, 8, alike=False)
    least = bench.needed(questions, bench.Device(BayesianFilter(100.0), record, 8))
    assert bench.held_of_ten(questions, bench.Device(BayesianFilter(least), record, 8)) == 10
    assert bench.held_of_ten(questions, bench.Device(BayesianFilter(least - 1e-6), record, 8)) < 10


def test_adding_counts_every_round():
    questions = [bench.Question("a", mechanisms.grr(2, epsilon=e)) for e in (0.5, 2.0, 0.5)]
    assert bench.added(questions, 1.5) == (1, 2)
    assert bench.added(questions, 1.4, rounds=3) == (0, 0)
    assert np.isclose(bench.total(questions), 3.0)
