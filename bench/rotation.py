"""The variance of a round of a rotating panel, beside a budget that is split over all rounds.

    python bench/rotation.py                 400 lives of a panel, by three numbers of values
    python bench/rotation.py --lives 20      fewer, for a look

Simulated devices answer one of twelve rounds at their whole lifetime's epsilon of 1. Of every round the
squared distance of its estimates from the crowd's shares is taken, of all cells of the stated share, times
the devices of the panel. Beside it is (T/k) [V(E/k) + s (1 - k/T)] with T 12, k 1, and V(E/T) of all devices
in all rounds, from the closed forms of randomised response and of subset selection. The exit status is 1
where a variance is more than 5 % from its formula, or a device answered not once or paid not 1.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from hubbub.survey import Survey
from hubbub.testing import seeded
from hubbub_lab.simulation import DeviceSimulator

TURNS, BUDGET, PANEL = 12, 1.0, 4800
SETTINGS = ((3, "grr", 0.5), (91, "subset", 0.05), (1000, "subset", 0.01))
"""Inputs, mechanism, and the share of the cells that are looked at."""
WITHIN = 0.05
START_S = 1767225600
DAY_S = 86_400

TEXT = """\
id = "panel"
version = 1
title = "Panel"
epsilon = 1.0
minimum_cohort = 50
planned_devices = {panel}

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 12
rotation = 12
lateness = "1h"
skew = "5m"

[attribute]
id = "which"
kind = "evolving"
type = "label"
labels = [{labels}]

[mechanism]
name = "{mechanism}"
"""


def noise(inputs: int, mechanism: str, epsilon: float, f: float) -> float:
    """Return V, n times the variance of the noise of a cell, by the closed form."""
    e = math.exp(epsilon)
    found = []
    for d in range(1, inputs) if mechanism == "subset" else (1,):
        p = d * e / (d * e + inputs - d)  # that the set has the own value
        q = (p * (d - 1) + (1.0 - p) * d) / (inputs - 1)  # and another one
        found.append((f * p * (1.0 - p) + (1.0 - f) * q * (1.0 - q)) / (p - q) ** 2)
    return min(found)


def simulated(inputs: int, mechanism: str, f: float, lives: int) -> tuple[float, int]:
    """Return the variance of a cell times the devices of the panel, and how many cell-rounds it is of.

    Raises:
        AssertionError: If a device does not answer once, or pays another epsilon than the lifetime's.
    """
    labels = [f'"{value}"' for value in range(inputs - 1)]
    survey = Survey.parse(TEXT.format(panel=PANEL, labels=", ".join(labels), mechanism=mechanism))
    cells = round(1.0 / f)
    rest = PANEL - cells * int(f * PANEL)
    assert rest == 0
    held = np.repeat([str(value) if value < inputs - 1 else None for value in range(cells)], PANEL // cells)
    squares = []
    for life in range(lives):
        fleet = DeviceSimulator(PANEL, budget=BUDGET + 1e-6, source=seeded(life))
        fleet.register(survey.attribute)
        fleet.set("which", held)
        assert fleet.enrol(survey, now_s=START_S).accepted.all()
        answered = np.zeros(PANEL, dtype=int)
        for number in range(TURNS):
            (column,) = fleet.answer(now_s=START_S + number * DAY_S)
            answered[column.devices] += 1
            estimate = survey.estimate(column.symbols)
            squares.append(np.square(estimate.values[:cells] - f))
        assert (answered == 1).all() and np.allclose(fleet.committed, BUDGET, atol=1e-5)
    return PANEL * float(np.mean(squares)), int(np.size(squares))


def main() -> int:
    """Print the table, and return 1 if a variance is not that of its formula."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=400)
    lives, broken = parser.parse_args().lives, False
    print("| inputs | mechanism | share | cell-rounds | variance x devices | formula | split | times less |")
    print("|---|---|---|---|---|---|---|---|")
    for inputs, mechanism, f in SETTINGS:
        found, many = simulated(inputs, mechanism, f, lives)
        panel = TURNS * (noise(inputs, mechanism, BUDGET, f) + f * (1.0 - f) * (1.0 - 1.0 / TURNS))
        split = noise(inputs, mechanism, BUDGET / TURNS, f)
        broken = broken or abs(found / panel - 1.0) > WITHIN
        cells = [f"{found:.2f}", f"{panel:.2f}", f"{split:.1f}", f"{split / found:.1f}"]
        print(f"| {inputs:,} | {mechanism} | {f:g} | {many:,} | {' | '.join(cells)} |", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
