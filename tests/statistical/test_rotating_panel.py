"""The gain of a rotation, by fleets through the product's own slots, channels and estimators."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from surveys import START_S, small

from hubbub.estimation import Estimate
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub_lab.simulation import DeviceSimulator

TURNS = 12
DAY_S = 86_400


def asked(inputs: int, epsilon: float, *, rounds: int, rotation: int = 1) -> Survey:
    labels = ", ".join(f'"v{i}"' for i in range(inputs - 1))
    text = small(
        "health", f'type = "label"\nlabels = [{labels}]', epsilon=epsilon, rounds=rounds, rotation=rotation
    )
    return Survey.parse(text if inputs == 3 else text.replace('name = "grr"', 'name = "subset"'))


def closed(inputs: int, epsilon: float, f: float) -> float:
    """n times the variance of a cell of share f, devices held fixed: GRR for three inputs, else subsets."""
    a = math.exp(epsilon)
    near = math.floor(inputs / (a + 1))
    found = []
    for size in [1] if inputs == 3 else [near, near + 1]:
        p = size * a / (size * a + inputs - size)
        q = (p * (size - 1) + (1 - p) * size) / (inputs - 1)
        found.append((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
    return min(found)


def rounds_of(survey: Survey, devices: int, cells: int, seed: int) -> Iterator[Estimate]:
    """The estimate of each round; the first cells are held by equally many devices, which are all on."""
    answers = -(-survey.rounds // survey.rotation)
    fleet = DeviceSimulator(devices, budget=survey.epsilon * answers, source=seeded(seed))
    (attribute,) = survey.attributes
    fleet.register(attribute)
    fleet.set(attribute.id, [f"v{i % cells}" for i in range(devices)])
    assert fleet.enrol(survey, now_s=START_S).accepted.all()
    estimator = survey.estimator()
    for number in range(survey.rounds):
        (column,) = fleet.answer(now_s=START_S + number * DAY_S)
        fleet.drain()
        yield estimator(survey.channel.tally(column.symbols), len(column.devices))


@pytest.mark.parametrize(
    ("inputs", "f", "rounds", "split", "ratio"),
    [
        (3, 0.5, 19_200, 282.1, 13.2),
        (91, 0.05, 1200, 563.1, 12.8),
        (1000, 0.01, 240, 574.5, 13.0),
    ],
)
def test_a_panel_has_so_much_less_variance_than_a_budget_cut_in_twelve(
    inputs: int, f: float, rounds: int, split: float, ratio: float
) -> None:
    """19,200 to 24,000 cell-rounds an arm, budget 1: variance times N beside the closed forms, within 5 %.

    A mean of m squares of normal errors has a standard error of sqrt(2/m), 1.02 % and less: 5 % are 4.9 of
    them, two-sided 1e-6. A round of 200 in 2,400 is 0.5 % worse than 1/n of its mean, on the safe side.
    """
    cells, s = round(1 / f), f * (1 - f)
    assert closed(inputs, 1.0 / TURNS, f) == pytest.approx(split, rel=1e-3)
    panel = TURNS * (closed(inputs, 1.0, f) + s * (1 - 1 / TURNS))
    assert split / panel == pytest.approx(ratio, abs=0.05)
    parts = -(-rounds // 9600)
    found = []
    for epsilon, rotation, devices in ((1.0, TURNS, 2400), (1.0 / TURNS, 1, 200)):
        survey = asked(inputs, epsilon, rounds=rounds // parts, rotation=rotation)
        estimates = (each for seed in range(parts) for each in rounds_of(survey, devices, cells, seed))
        errors = [each.values[:cells] - f for each in estimates]
        found.append(devices * float(np.mean(np.square(errors))))
    assert found == pytest.approx([panel, split], rel=0.05)
    assert split / found[0] == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize("rounds", [120, 6000])
def test_intervals_of_the_crowd_hold_in_turns_where_those_of_the_devices_counted_do_not(rounds: int) -> None:
    """K 3, epsilon 3, devices that are all on, as many asked as there are: coverage within 4.9 errors of .95.

    With 1 - n/asked the term of who is counted is f (1 - f) (1 - 1/w) in the mean; without a number asked it
    is the whole f (1 - f), wider. Of 6,000 rounds .94 and .96 are 3.6 standard errors from .95.
    """
    survey, devices = asked(3, 3.0, rounds=rounds, rotation=TURNS), 2400
    covered = np.zeros(3)
    for estimate in rounds_of(survey, devices, 2, 7):
        laws = (estimate, estimate.of_crowd(asked=devices), estimate.of_crowd())
        for place, law in enumerate(laws):
            ends = law.intervals()
            covered[place] += ends.values_low[0] <= 0.5 <= ends.values_high[0]
    counted, known, endless = covered / rounds
    assert counted == pytest.approx(0.69, abs=4.9 * math.sqrt(0.69 * 0.31 / rounds))
    assert known == pytest.approx(0.95, abs=4.9 * math.sqrt(0.95 * 0.05 / rounds))
    assert rounds < 6000 or 0.94 <= known <= 0.96
    assert known <= endless
