"""Forged reports with and without one-time tokens, and an issuer out of line found and left out.

    python bench/issuers.py
    python bench/issuers.py --rounds 4 --honest 20      fewer rounds, for a look

Liars send the report that adds most to one target. Open, they are 1 or 5 percent of all reports. With tokens
they hold one credential in a thousand, and ask for all its tokens for one round. Last, they are 5 percent and
hold tokens of one issuer of two, whose devices are every fifth: is it found, and what is left without it?
The exit status is 1 if honest rounds raise the alert more often than stated.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from poisoning_attacks import MECHANISMS, Target, forged, honest, people, target
from scipy.stats import beta

from hubbub.estimation import issuer_deviation

DEVICES = 10_000
WHERE = [9]
STOLEN = DEVICES // 1000
HONEST_RATE = 0.1
RATE = 1e-3 / 3  # an issuer's part of the usual rate of a round
FALSE_ALARM = 1e-6


def is_found(parts: list[tuple[np.ndarray, int]], rate: float) -> bool:
    """Return whether either of two issuers is out of line."""
    (one, n), (other, m) = parts
    found = [issuer_deviation(one, n, other, m), issuer_deviation(other, m, one, n)]
    return any(each is not None and each.p_value <= rate / 2 for each in found)


def points(aim: Target, counts: np.ndarray, n: int) -> float:
    """Return the target's estimate in points."""
    return 100.0 * float(aim.estimator(counts, n).values[WHERE[0]])


def attacked(aim: Target, rounds: int, chance: np.random.Generator) -> tuple[list[float], int]:
    """Return the mean points of every case, and how many rounds found the issuer."""
    held = people("zipf", DEVICES)
    mine = np.arange(DEVICES) % 5 == 0
    gained = np.zeros((rounds, 6))
    found = 0
    for number in range(rounds):
        own, others = (honest(aim, held[part], chance) for part in (mine, ~mine))
        base, n = own + others, DEVICES
        gained[number] -= points(aim, base, n)
        for case, lies in enumerate((n // 100, n // 20, STOLEN, 16 * STOLEN)):
            gained[number, case] += points(
                aim, base + forged(aim, "maximal gain", WHERE, lies, chance), n + lies
            )
        lies = n // 20
        leaky = own + forged(aim, "maximal gain", WHERE, lies, chance)
        found += is_found([(leaky, n // 5 + lies), (others, n - n // 5)], RATE)
        gained[number, 4] += points(aim, leaky + others, n + lies)
        gained[number, 5] += points(aim, others, n - n // 5)
    return gained.mean(axis=0).tolist(), found


def false_alarms(aim: Target, rounds: int, chance: np.random.Generator) -> int:
    """Return how many honest rounds raise the alert, at HONEST_RATE."""
    held = people("zipf", DEVICES)
    mine = np.arange(DEVICES) % 5 == 0
    raised = 0
    for _ in range(rounds):
        order = chance.permutation(held)
        own, others = (honest(aim, order[part], chance) for part in (mine, ~mine))
        raised += is_found([(own, DEVICES // 5), (others, DEVICES - DEVICES // 5)], HONEST_RATE)
    return raised


def main() -> int:
    """Print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10, help="attacked rounds per cell")
    parser.add_argument("--honest", type=int, default=100, help="honest rounds per cell")
    options = parser.parse_args()
    print(
        "Points that forged reports add to a target, beside the honest round alone: the best report, "
        f"{DEVICES:,} devices, Zipf, means of {options.rounds} rounds. The last two columns: rounds that "
        f"found the issuer, at {RATE:.2g}; and honest rounds of {options.honest} that raised its alert, at "
        f"{HONEST_RATE:g}.\n"
    )
    heads = ("1 %, open", "5 %, open", "tokens, 1 each", "tokens, 16 each", "5 %, one issuer", "without it")
    print("| mechanism | epsilon | " + " | ".join(heads) + " | found | false |")
    print("|---|---|" + "---|" * (len(heads) + 2))
    broken, cells = 0, 2 * len(MECHANISMS)
    for name in MECHANISMS:
        for epsilon in (1.0, 2.0):
            aim, chance = target(name, epsilon), np.random.default_rng(7)
            gained, found = attacked(aim, options.rounds, chance)
            raised = false_alarms(aim, options.honest, chance)
            low = beta.ppf(FALSE_ALARM / cells, max(raised, 1), options.honest - raised + 1)
            broken += int(raised > 0 and low > HONEST_RATE)
            row = " | ".join(f"{each:.1f}" for each in gained)
            print(f"| {name} | {epsilon:g} | {row} | {found} | {raised} |", flush=True)
    if broken:
        print(f"\nCells whose honest rounds raise it more often than stated: {broken}.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
