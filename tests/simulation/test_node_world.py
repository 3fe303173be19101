"""Worlds of a node: nothing breaks in hundreds of them, and each mistake put into the product is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import MUTANTS
from shrink import off_the_ordinary, shrunk
from simulate import run

HERE = Path(__file__).parent
SEEDS = 300
PARTS = 6
TRACES = "from simulate import run\nfor seed in range(8): print(run(seed)[1].trace.hexdigest())"
PLACES = os.pathsep.join([str(HERE), str(HERE.parent / "harness")])
FOUND_WITHIN = 150
"""Seeds in which each mistake must be found; evidence has the first of each."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_breaks_in_any_world(part: int) -> None:
    found = {seed: broken for seed in range(part, SEEDS, PARTS) if (broken := run(seed)[0])}
    assert found == {}, "make simulate SEED=... tells the story"


@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mistake_is_found(mutant: str) -> None:
    assert any(run(seed, mutant=mutant)[0] for seed in range(FOUND_WITHIN))


def test_a_seed_makes_the_same_world_under_any_order_of_hashes() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", TRACES],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": PLACES},
        ).stdout
        for seed in ("0", "0", "1", "2")
    }
    assert len(said) == 1
    assert len(set(said.pop().split())) == 8


def test_a_tape_is_cut_to_what_matters() -> None:
    tape = [3, 0, 7, 1, 9, 2, 0, 5]
    assert shrunk(tape, lambda tried: len(tried) > 4 and tried[2] == 7 and tried[4] == 9) == [0, 0, 7, 0, 9]
    assert off_the_ordinary([0, 0, 7, 0, 9]) == 2


def test_a_world_of_ordinary_decisions_counts_everybody() -> None:
    """The control of the invariants: with no trouble all that is sent is acknowledged and released."""
    broken, seen, _ = run(1, tape=[])
    assert broken == []
    assert len(seen.sent) == 24
    assert seen.sent.keys() < seen.acknowledged.keys()
    assert len(seen.acknowledged) == 24 + 2 * 4
    assert [len(each) for each in seen.versions.values()] == [1] * 4
