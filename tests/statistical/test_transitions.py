"""The errors of transitions, by fleets through the product's own keeping, channels and estimators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from surveys import START_S, small

from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_lab.simulation import DeviceSimulator

DEVICES = 2500
DAY_S = 86_400
LIVES = 20
ROUNDS = 101


def subsets(inputs: int, epsilon: float, f: float) -> float:
    """n times the variance of a cell of share f by subsets, the best size of them."""
    a, found = math.exp(epsilon), []
    for size in range(1, inputs // 2):
        p = size * a / (size * a + inputs - size)
        q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
        found.append((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
    return min(found)


@pytest.mark.parametrize(("asks", "both"), [("pairs", 0.5), ("changed", 1.0)])
def test_pairs_of_five_values_have_the_variance_that_was_derived(asks: str, both: float) -> None:
    """2,000 rounds of 2,500 devices, epsilon 1: n Var of cells within 5 %, no cell off by 6 standard errors.

    Each pair of two values is held by a twenty-fifth of the devices that have both, half of them or all. By
    the flat question a cell of share .02 has 3.45; with categories 4.58, and 2.96 of a category. The 25 cells
    of a round count as 24: their mean square has a standard error of sqrt(2/48,000), 0.65 %, and 5 % are 7 of
    them. The two categories may move as one, 3.2 % by 2,000 rounds, so that 16 % are 5; what is stated of
    them is exact. Of 25 cells one is 6 standard errors off with a chance of 5e-8.
    """
    text = small("way", 'type = "integer"\nlow = 0\nhigh = 4', rounds=ROUNDS).replace('"grr"', '"auto"')
    survey = Survey.parse(f'{text}\n[transition]\nlag = 1\nasks = "{asks}"\n')
    (attribute,), estimator = survey.attributes, survey.estimator()
    present = np.arange(DEVICES) < both * DEVICES
    values = [np.where(present, each, 9) for each in divmod(np.arange(DEVICES) % 25, 5)]
    cells = [survey.input_of(a, b) for a in range(5) for b in range(5)]
    f, errors, grouped = both / 25, [], []
    for life in range(LIVES):
        fleet = DeviceSimulator(DEVICES, budget=float(ROUNDS), source=seeded(life))
        fleet.register(attribute)
        assert fleet.enrol(survey, now_s=START_S).accepted.all()
        for number in range(ROUNDS):
            # What was now is then: the pairs are turned round from round to round.
            fleet.set(attribute.id, values[number % 2])
            made = fleet.answer(now_s=START_S + number * DAY_S)
            fleet.drain()
            assert len(made) == (number > 0)
            for column in made:
                estimate = estimator(survey.channel.tally(column.symbols), DEVICES)
                errors.append(estimate.values[cells] - f)
                grouped.append(estimate.categories[:2] - np.array([0.2, 0.8]))
    assert len(errors) == 2000
    found = DEVICES * float(np.mean(np.square(errors)))
    if asks == "pairs":
        assert subsets(36, 1.0, 0.02) == pytest.approx(3.45, abs=0.005)
        assert found == pytest.approx(3.45, rel=0.05)
    else:
        assert found == pytest.approx(4.58, rel=0.05)
        stated = estimator.expected_estimate(np.append(np.full(25, 0.04), 0.0), DEVICES).category_errors[:2]
        assert DEVICES * float(np.mean(stated**2)) == pytest.approx(2.96, rel=0.005)
        assert DEVICES * float(np.mean(np.square(grouped))) == pytest.approx(2.96, rel=0.16)
    off = np.mean(errors, axis=0) / np.sqrt(found / DEVICES / len(errors))
    assert np.abs(off).max() < 6.0
