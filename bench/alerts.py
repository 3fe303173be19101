"""The rate of false alerts, and the share of attacked rounds that raise one, for every mechanism of labels.

    python bench/alerts.py                      both tables
    python bench/alerts.py --rounds 30          fewer rounds, for a look

The first table counts honest rounds that raise an alert at three stated rates, with Clopper and Pearson's
lower bound of the true rate at 1e-6 for the whole table: one above the stated rate is a fault, and the exit
status is 1. The second has the share of attacked rounds that raise an alert, after an honest round of as many
devices, at the usual rate of 1e-3 a round.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from poisoning_attacks import MECHANISMS, VALUES, Target, forged, honest, people, target
from scipy.stats import beta

from hubbub.estimation import impossible_alerts, joint_alerts, jump_alerts

RATES = (0.1, 0.01, 0.001)
TRUTHS = ("even", "zipf", "one value")
EPSILON = 1.0
FALSE_ALARM = 1e-6
HALF = 0.5
QUARTER = 0.25


def found_in(aim: Target, before: np.ndarray | None, counts: np.ndarray, n: int, rate: float) -> list[bool]:
    """Return whether a round raises an impossible estimate, a jump, and a joint change, each at its rate."""
    shares = aim.shares(counts, n)
    found = [bool(impossible_alerts(aim.noise, shares, rate=HALF * rate))]
    if before is not None:
        earlier = aim.shares(before, n)
        found.append(bool(jump_alerts(aim.noise, earlier, shares, rate=QUARTER * rate)))
        joint = joint_alerts(aim.channel, aim.estimator, earlier, shares, rate=QUARTER * rate)
        found.append(bool(joint))
    return found


def false_alarms(rounds: int, devices: list[int]) -> int:
    """Print the first table, and return how many of its cells break their rate."""
    cells = 2 * len(MECHANISMS) * len(TRUTHS) * len(devices) * len(RATES)
    print(f"False alarms: pairs of honest rounds with an alert, of {rounds}, at epsilon {EPSILON:g};")
    print("in brackets the joint test alone, whose part of the rate is a quarter.\n")
    print("| mechanism | truth | devices | " + " | ".join(f"rate {rate:g}" for rate in RATES) + " |")
    print("|---|---|---|" + "---|" * len(RATES))
    broken = 0
    for name in MECHANISMS:
        aim, chance = target(name, EPSILON), np.random.default_rng(1)
        for truth in TRUTHS:
            for n in devices:
                held, raised = people(truth, n), np.zeros((2, len(RATES)), dtype=int)
                for _ in range(rounds):
                    pair = [honest(aim, held, chance) for _ in range(2)]
                    for i, rate in enumerate(RATES):
                        found = found_in(aim, pair[0], pair[1], n, rate)
                        raised[:, i] += any(found), found[2]
                stated = np.outer([1.0, QUARTER], RATES)
                low = beta.ppf(FALSE_ALARM / cells, np.maximum(raised, 1), rounds - raised + 1)
                broken += int(((raised > 0) & (low > stated)).sum())
                shown = " | ".join(f"{one} ({joint})" for one, joint in raised.T.tolist())
                print(f"| {name} | {truth} | {n:,} | {shown} |", flush=True)
    print(f"\nCells whose rate is above the stated one, at {FALSE_ALARM:g} for the table: {broken}.\n")
    return broken


def split(attack: str, targets: list[int], lies: int) -> list[tuple[list[int], int]]:
    """Return the targets of groups of liars, and how many are in each: one group, or one for every target."""
    if attack != "apart":
        return [(targets, lies)]
    parts = np.bincount(np.arange(lies) % len(targets), minlength=len(targets)).tolist()
    return [([each], liars) for each, liars in zip(targets, parts, strict=True) if liars]


def power(rounds: int, devices: list[int]) -> None:
    """Print the second table."""
    print(f"Power: attacked rounds with an alert (impossible / jump / joint), of {rounds}; rate 1e-3, Zipf.")
    print("*15 apart*: every second value is a target, and every liar aims at one of them alone.\n")
    few = ("1 target", "3 targets", "15 apart")
    head = [f"{100 * share:g} %, {count}" for share in (0.01, 0.05) for count in few]
    print("| mechanism | epsilon | devices | " + " | ".join(head) + " | 5 %, input | 20 %, input, 15 |")
    print("|---|---|---|" + "---|" * (len(head) + 2))
    many = list(range(0, VALUES, 2))
    cases = [
        (share, attack, targets)
        for share in (0.01, 0.05)
        for attack, targets in (("maximal gain", [9]), ("maximal gain", [9, 19, 28]), ("apart", many))
    ]
    cases += [(0.05, "input", [9]), (0.2, "input", many)]
    for name in MECHANISMS:
        for epsilon in (1.0, 2.0):
            aim, chance = target(name, epsilon), np.random.default_rng(2)
            for n in devices:
                raised = np.zeros((len(cases), 3), dtype=int)
                for _ in range(rounds):
                    before = honest(aim, people("zipf", n), chance)
                    for i, (share, attack, targets) in enumerate(cases):
                        lies = round(share * n)
                        counts = honest(aim, people("zipf", n - lies), chance)
                        for aims, liars in split(attack, targets, lies):
                            sent = "maximal gain" if attack == "apart" else attack
                            counts = counts + forged(aim, sent, aims, liars, chance)
                        raised[i] += found_in(aim, before, counts, n, 1e-3)
                row = " | ".join(" / ".join(map(str, each)) for each in raised.tolist())
                print(f"| {name} | {epsilon:g} | {n:,} | {row} |", flush=True)


def main() -> int:
    """Print both tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=1000, help="honest pairs of rounds per cell")
    parser.add_argument("--attacked", type=int, default=20, help="attacked rounds per cell")
    parser.add_argument("--devices", default="100,1000", help="of the first table")
    parser.add_argument("--attacked-devices", default="1000,10000,100000", help="of the second")
    options = parser.parse_args()
    broken = false_alarms(options.rounds, [int(n) for n in options.devices.split(",")])
    power(options.attacked, [int(n) for n in options.attacked_devices.split(",")])
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
