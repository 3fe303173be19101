"""Simulated devices of a bundle: each at its part, at one cost, and their tables come out."""

from __future__ import annotations

import numpy as np
import pytest
from bundles import attributes, bundle
from surveys import START_S

from hubbub.testing import seeded
from hubbub_lab.evaluation import truth_of
from hubbub_lab.simulation import DeviceSimulator

SIZES = {"age": 5, "sex": 2, "job": 2}
TOGETHER = 'parts = "interactions"\n'


@pytest.mark.parametrize(("kind", "more"), [("static", ""), ("evolving", ""), ("static", TOGETHER)])
def test_a_fleet_answers_parts_and_its_tables_are_estimated(kind: str, more: str) -> None:
    """6,000 devices, epsilon 2 (of interactions 1), seed 1: no cell is six of its errors off."""
    epsilon = 1.0 if more else 2.0
    survey = bundle(SIZES, epsilon=epsilon, kind=kind, more=more)
    assert any(part.classes > 1 for part in survey.channel.parts) == bool(more)
    fleet = DeviceSimulator(6_000, budget=4.5, source=seeded(1))
    random = np.random.default_rng(8)  # another stream than that of the coins
    held = {name: random.integers(0, size, 6_000).astype(object) for name, size in SIZES.items()}
    held["sex"][:300] = None
    for attribute in attributes(SIZES, kind):
        fleet.register(attribute)
        fleet.set(attribute.id, held[attribute.id])
    assert fleet.enrol(survey, now_s=START_S + 10.0).accepted.all()
    times = 1 if kind == "static" else survey.rounds
    assert fleet.committed == pytest.approx(epsilon * times, abs=1e-6)
    (column,) = fleet.answer(now_s=START_S + 10.0)
    assert fleet.loss == pytest.approx(epsilon, abs=1e-6)
    found = survey.estimate(column.symbols)
    truth = truth_of(survey, list(zip(*held.values(), strict=True)))
    assert truth.values[-1] >= 0 and truth.values.sum() == pytest.approx(3.0)
    assert np.abs((found.values - truth.values) / found.value_errors).max() < 6.0
    assert np.abs((found.categories - truth.categories) / found.category_errors).max() < 6.0
