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
from poisoning_attacks import MECHANISMS, Target, forged, honest, people, target
from scipy.stats import beta

from hubbub.estimation import impossible_alerts, jump_alerts

RATES = (0.1, 0.01, 0.001)
TRUTHS = ("even", "zipf", "one value")
EPSILON = 1.0
FALSE_ALARM = 1e-6
HALF = 0.5


def found_in(aim: Target, before: np.ndarray | None, counts: np.ndarray, n: int, rate: float) -> list[bool]:
    """Return whether a round raises an impossible estimate, and a jump, each at half the round's rate."""
    shares = aim.shares(counts, n)
    found = [bool(impossible_alerts(aim.noise, shares, rate=HALF * rate))]
    if before is not None:
        earlier = aim.shares(before, n)
        found.append(bool(jump_alerts(aim.noise, earlier, shares, rate=HALF * rate)))
    return found


def false_alarms(rounds: int, devices: list[int]) -> int:
    """Print the first table, and return how many of its cells break their rate."""
    cells = len(MECHANISMS) * len(TRUTHS) * len(devices) * len(RATES)
    print(f"False alarms: pairs of honest rounds with an alert, of {rounds}, at epsilon {EPSILON:g}.\n")
    print("| mechanism | truth | devices | " + " | ".join(f"rate {rate:g}" for rate in RATES) + " |")
    print("|---|---|---|" + "---|" * len(RATES))
    broken = 0
    for name in MECHANISMS:
        aim, chance = target(name, EPSILON), np.random.default_rng(1)
        for truth in TRUTHS:
            for n in devices:
                held, raised = people(truth, n), np.zeros(len(RATES), dtype=int)
                for _ in range(rounds):
                    pair = [honest(aim, held, chance) for _ in range(2)]
                    for i, rate in enumerate(RATES):
                        raised[i] += any(found_in(aim, pair[0], pair[1], n, rate))
                low = beta.ppf(FALSE_ALARM / cells, np.maximum(raised, 1), rounds - raised + 1)
                broken += int(((raised > 0) & (low > RATES)).sum())
                print(f"| {name} | {truth} | {n:,} | " + " | ".join(map(str, raised)) + " |", flush=True)
    print(f"\nCells whose rate is above the stated one, at {FALSE_ALARM:g} for the table: {broken}.\n")
    return broken


def power(rounds: int, devices: list[int]) -> None:
    """Print the second table."""
    print(f"Power: attacked rounds with an alert (impossible / jump), of {rounds}; rate 1e-3, Zipf.\n")
    head = [f"{100 * share:g} %, {count}" for share in (0.01, 0.05) for count in ("1 target", "3 targets")]
    print("| mechanism | epsilon | devices | " + " | ".join(head) + " | 5 %, input |")
    print("|---|---|---|" + "---|" * (len(head) + 1))
    cases = [(share, "maximal gain", targets) for share in (0.01, 0.05) for targets in ([9], [9, 19, 28])]
    cases.append((0.05, "input", [9]))
    for name in MECHANISMS:
        for epsilon in (1.0, 2.0):
            aim, chance = target(name, epsilon), np.random.default_rng(2)
            for n in devices:
                raised = np.zeros((len(cases), 2), dtype=int)
                for _ in range(rounds):
                    before = honest(aim, people("zipf", n), chance)
                    for i, (share, attack, targets) in enumerate(cases):
                        lies = round(share * n)
                        counts = honest(aim, people("zipf", n - lies), chance)
                        counts = counts + forged(aim, attack, targets, lies, chance)
                        raised[i] += found_in(aim, before, counts, n, 1e-3)
                row = " | ".join(f"{one} / {two}" for one, two in raised.tolist())
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
