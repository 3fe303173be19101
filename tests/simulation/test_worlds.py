"""Worlds: nothing breaks in hundreds of them, and each mistake put into the product is found."""

from __future__ import annotations

from typing import Any

import pytest
from mutants import MUTANTS, UNSEEN
from shrink import off_the_ordinary, shrunk
from simulate import run, shortest, traces

SEEDS = {"node": 60, "cluster": 16}
PARTS = 4
FOUND_WITHIN = 60
"""Seeds in which each mistake must be found, but for those of UNSEEN; evidence has the first of each."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", SEEDS)
def test_nothing_breaks_in_any_world(kind: str, part: int) -> None:
    seeds = range(part, SEEDS[kind], PARTS)
    found = {seed: broken for seed in seeds if (broken := run(seed, kind=kind)[0])}
    assert found == {}, f'make simulate SEED=... ARGS="--world {kind}" tells the story'


@pytest.mark.parametrize("mutant", sorted(MUTANTS.keys() - UNSEEN))
def test_every_mistake_is_found(mutant: str) -> None:
    assert any(run(seed, mutant=mutant)[0] for seed in range(FOUND_WITHIN))


def test_a_seed_makes_the_same_world_under_any_order_of_hashes() -> None:
    said = traces(dict.fromkeys(SEEDS, 2))
    assert len(said) == 1
    assert len(set(said.pop().split())) == 4


def test_a_tape_is_cut_to_what_matters() -> None:
    tape = [3, 0, 7, 1, 9, 2, 0, 5]
    assert shrunk(tape, lambda tried: len(tried) > 4 and tried[2] == 7 and tried[4] == 9) == [0, 0, 7, 0, 9]
    assert off_the_ordinary([0, 0, 7, 0, 9]) == 2


def test_a_cluster_of_ordinary_decisions_counts_everybody() -> None:
    broken, seen, _ = run(1, tape=[], kind="cluster")
    assert broken == []
    assert seen.sent.keys() < seen.acknowledged.keys()
    assert [len(each) for each in seen.versions.values()] == [1] * 4
    assert seen.ended.keys() == {"LeaseLostError"}  # of the publisher that stands by


def test_a_world_that_fails_is_shortened_to_a_few_decisions() -> None:
    small: dict[str, Any] = {"mutant": "an open round is shown at every report", "devices": 6, "phones": 0}
    seed = next(seed for seed in range(FOUND_WITHIN) if run(seed, rounds=1, **small)[0])
    _, _, tape = run(seed, rounds=1, **small)
    found = shortest(seed, rounds=1, **small)
    assert off_the_ordinary(tape) > 500
    assert off_the_ordinary(found) <= 20
    assert any(each.startswith("I6") for each in run(seed, tape=found, rounds=1, **small)[0])


def test_a_world_of_ordinary_decisions_counts_everybody() -> None:
    """The control of the invariants: with no trouble all that is sent is acknowledged and released."""
    broken, seen, _ = run(1, tape=[])
    assert broken == []
    assert len(seen.sent) == 24
    assert seen.sent.keys() < seen.acknowledged.keys()
    assert len(seen.acknowledged) == 24 + 2 * 4
    assert [len(each) for each in seen.versions.values()] == [1] * 4
