"""The designer's pick beside its floor: a thin part of `make evidence NAME=floor`, and a control."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from hubbub_authoring.design import Floors, choose

SPEC = importlib.util.spec_from_file_location("bench_floor", Path(__file__).parents[2] / "bench" / "floor.py")
assert SPEC is not None
assert SPEC.loader is not None
floor = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(floor)
allowed, gap, question = floor.allowed, floor.gap, floor.question


@pytest.mark.parametrize(("shape", "epsilon"), [("12/3", 0.5), ("90/9", 1.0), ("91/9", 3.0)])
@pytest.mark.parametrize("quantity", ["value", "category", "both"])
def test_pick_is_at_its_floor(shape, epsilon, quantity):
    name, _, above = gap(question(shape, epsilon, quantity))
    assert 0.0 <= above <= allowed(shape), name


def test_a_channel_that_claims_to_be_below_the_floor_fails():
    """The best channel of an epsilon 1 % larger, held against the floor of the declared one."""
    asked = question("90/9", 2.0, "both")
    liar = choose(replace(asked, epsilon=2.02))
    above = Floors(asked).above(liar.cost)
    assert not 0.0 <= above <= allowed("90/9")
    assert above < 0.0
