"""The gains of the known attacks on every mechanism of labels, and the poisoning margin of a round.

    python bench/poisoning.py

A gain is what one forged report adds to the summed share of the targets, in reports: at a gain of 10 one
percent of forged reports shows ten points too much. It is measured from counts of forged reports drawn from
the channel's own rows, and stands beside the bound that `survey design` prints.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from poisoning_attacks import ATTACKS, MECHANISMS, gain_of, honest, people, target

from hubbub.estimation import estimator_for, margin_alerts
from hubbub_authoring.design.leverage import ends

TARGETS = {"1 target": [9], "3 targets": [9, 19, 28]}
DEVICES = 10_000


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=100_000, help="forged reports per cell")
    reports = parser.parse_args().reports
    names = [f"{attack}, {some}" for attack in ATTACKS for some in TARGETS]
    print(f"Gain of one forged report of {reports:,}, even shares; margin at {DEVICES:,} devices, Zipf.\n")
    print("| mechanism | epsilon | " + " | ".join(names) + " | bound, 1 | bound, 3 | margin |")
    print("|---|---|" + "---|" * (len(names) + 3))
    broken = 0
    for name in MECHANISMS:
        for epsilon in (1.0, 2.0):
            aim, chance = target(name, epsilon), np.random.default_rng(3)
            found = [
                gain_of(aim, attack, targets, reports, chance)
                for attack in ATTACKS
                for targets in TARGETS.values()
            ]
            inputs = aim.channel.inputs
            units = [np.bincount(targets, minlength=inputs).astype(float) for targets in TARGETS.values()]
            even = np.full(inputs, 1.0 / inputs)
            bounds = [ends(estimator_for(aim.channel), unit, even)[1] for unit in units]
            counts = honest(aim, people("zipf", DEVICES), chance)
            margins = aim.estimator(counts, DEVICES).poison_margin().values
            share, _ = margin_alerts(aim.shares(counts, DEVICES), margins, below=0.0)
            row = [f"{each:.2f}" for each in (*found, *bounds)]
            print(f"| {name} | {epsilon:g} | {' | '.join(row)} | {100 * share:.2f} % |", flush=True)
            # Honest reports' noise adds less than .2 here.
            broken += any(each > bounds[i % 2] * 1.05 + 0.2 for i, each in enumerate(found))
    if broken:
        print(f"\nRows where an attack gained more than the bound: {broken}.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
