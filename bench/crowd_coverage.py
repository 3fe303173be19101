"""The coverage of the crowd's shares by the intervals of everybody who could have been asked.

    python bench/crowd_coverage.py                          5,000 rounds of every setting
    python bench/crowd_coverage.py --more 200 --only unary  fewer rounds of one mechanism

The crowd is without end; the devices of every round are drawn anew from it. Shares are as 1/rank, the last
value is missing. The table has the coverage of the least covered value and the mean of all, beside that of
the intervals of the devices counted. The exit status is 1 where a value is covered in less than .94 of rounds
beyond chance at 1e-6 for the table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from hubbub.survey import Survey
from hubbub.testing import seeded

LEAST = 0.94
FALSE_ALARM = 1e-6

LABEL = """\
id = "crowd"
version = 1
title = "Crowd"
epsilon = {epsilon}
minimum_cohort = 100
planned_devices = {devices}

[schedule]
start = 2026-01-01T00:00:00Z
round = "1d"
rounds = 3
lateness = "1h"
skew = "5m"
{attributes}
[mechanism]
name = "{mechanism}"
"""

ATTRIBUTE = """
[{head}]
id = "{name}"
kind = "evolving"
type = "label"
labels = [{labels}]
"""

MECHANISMS = ("grr", "subset", "unary", "local_hashing", "levels", "orbits")
GROUPED = ("levels", "orbits")
SIZES = ((3, 1.0), (3, 3.0), (5, 1.0), (5, 3.0), (11, 2.0), (11, 4.0))
TABLES = (([2, 2], 1.0), ([2, 2], 3.0), ([3, 2], 1.0), ([3, 2], 3.0), ([3, 3], 2.0), ([2, 4], 2.0))
DEVICES = 2000


class Setting(NamedTuple):
    """A survey, and how many devices answer."""

    kind: str
    name: str
    survey: Survey
    devices: int


def survey(mechanism: str, labels: list[int], epsilon: float, devices: int) -> Survey:
    """Return a survey of one attribute, or of a table of several."""
    many = len(labels) > 1
    attributes = "".join(
        ATTRIBUTE.format(
            head="[attribute]" if many else "attribute",
            name=f"a{i}",
            labels=", ".join(f'"{k}"' for k in range(count)),
        )
        for i, count in enumerate(labels)
    )
    if mechanism in GROUPED:
        later = ", ".join(f'"{k}"' for k in range(1, labels[0]))
        attributes += '\n[[category]]\nname = "first"\nvalues = ["0"]\n'
        attributes += f'\n[[category]]\nname = "others"\nvalues = [{later}]\n'
    words = {"epsilon": epsilon, "devices": devices, "attributes": attributes, "mechanism": mechanism}
    return Survey.parse(LABEL.format(**words))


def settings(only: str | None) -> Iterator[Setting]:
    """Yield the settings of rotating panels, and six of every mechanism and of tables."""
    for labels, epsilon in ((2, 1.0), (2, 3.0), (11, 2.0), (90, 4.0)):
        if only in (None, "panel"):
            made = survey("grr", [labels], epsilon, 1667)
            yield Setting("panel", f"grr, {labels} labels, epsilon {epsilon:g}", made, 1667)
    for mechanism in MECHANISMS:
        for labels, epsilon in SIZES:
            if only in (None, mechanism):
                made = survey(mechanism, [labels], epsilon, DEVICES)
                yield Setting(mechanism, f"{mechanism}, {labels} labels, epsilon {epsilon:g}", made, DEVICES)
    for tables, epsilon in TABLES:
        if only in (None, "table"):
            made = survey("auto", tables, epsilon, DEVICES)
            yield Setting("table", f"table of {tables} labels, epsilon {epsilon:g}", made, DEVICES)


def covered(setting: Setting, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounds in which the crowd's share of a value was covered, by the crowd's and the control.

    Args:
        setting: The survey.
        rounds: How many.

    Returns:
        Shape (K,) each.
    """
    channel, estimator, n = setting.survey.channel, setting.survey.estimator(), setting.devices
    shares = 1.0 / np.arange(1, channel.inputs + 1)
    shares /= shares.sum()
    chance, source = np.random.default_rng(1), seeded(2)
    symbols, hits = channel.probabilities() is not None, np.zeros((2, channel.inputs), dtype=np.int64)
    for _ in range(rounds):
        if symbols:  # reports of a crowd are drawn from its mixture of laws
            counts = chance.multinomial(n, channel.expected(shares))
        else:
            held = np.repeat(np.arange(channel.inputs), chance.multinomial(n, shares))
            counts = channel.tally(channel.perturb(held, source=source))
        estimate = estimator(counts, n)
        for i, found in enumerate((estimate.of_crowd().intervals(), estimate.intervals())):
            hits[i] += (found.values_low <= shares) & (shares <= found.values_high)
    return hits[0], hits[1]


def main() -> int:
    """Print the table, and return 1 if a cell is covered too seldom, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5000, help="of the settings of panels")
    parser.add_argument("--more", type=int, default=5000, help="of the others")
    parser.add_argument("--only", help="panel, table, or a mechanism")
    options = parser.parse_args()
    chosen = list(settings(options.only))
    cells, broken = sum(each.survey.channel.inputs for each in chosen), False
    print("| setting | devices | rounds | least cell | mean | of the devices counted: least | mean |")
    print("|---|---|---|---|---|---|---|")
    for kind, name, made, devices in chosen:
        rounds = options.rounds if kind == "panel" else options.more
        found = covered(Setting(kind, name, made, devices), rounds)
        broken = broken or found[0].min() < binom.ppf(FALSE_ALARM / cells, rounds, LEAST)
        parts = [f"{each:.4f}" for hits in found for each in (hits.min() / rounds, hits.mean() / rounds)]
        print(f"| {name} | {devices:,} | {rounds:,} | {' | '.join(parts)} |", flush=True)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
