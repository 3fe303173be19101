"""Floors beside a general convex solver and random channels, for every grouping of up to eight values.

    python bench/certificate.py                    K = 2 to 8; many minutes; a run up to six takes one
    python bench/certificate.py --inputs 6         K = 2 to 6; seconds

Every case is a question, with and without an input for a missing value: values, and of every grouping
categories and both; the mean, cumulative shares, those of quantiles; one and several random questions about a
random population. Its floor is held beside the least error by a programme over second-order cones
(tests/harness/general_solver.py), and beside random channels of any shape. The control asks for a little more
epsilon: the solver must then be below the floor.

It fails (exit status 1) where a floor is farther from the optimum than ALLOWED, where a channel is below a
floor, or where a control is not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "harness"))
from floor_cases import FloorCase, Kind, floor_cases
from general_solver import error_of, least_error, random_channel

EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0)
KINDS: dict[Kind, str] = {
    "labels": "values, categories, both, in every grouping",
    "numbers": "mean, cumulative shares, quantiles",
    "random": "random questions, random population",
}
ALLOWED = 1e-6
ROUNDED = 1e-4
"""Of random populations at epsilon 6: floors are rounded outward by 2^-38 of their terms, which grow with
e^epsilon and where a value is rare, and the error itself is small there."""
CHANNELS = 10
MORE = 1.001
WRONG = " **(!)**"


def allowed(kind: Kind, epsilon: float) -> float:
    """Return how far a floor may be from the optimum, as a share of it."""
    return ROUNDED if kind == "random" and epsilon > 4.0 else ALLOWED


def nearest_channel(case: FloorCase, rng: np.random.Generator) -> float:
    """Return the least error of random channels over the floor."""
    least, left = np.inf, CHANNELS
    while left:
        channel = random_channel(rng, len(case.prior), case.epsilon)
        if np.linalg.cond(channel @ channel.T) > 1e10:
            continue  # it does not tell all inputs apart: its error is infinite
        least = min(least, error_of(channel, case.questions, case.prior) / case.floor)
        left -= 1
    return least


def main(arguments: list[str]) -> int:
    """Print two tables; return 1 where a rule is broken."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--inputs", type=int, default=8, choices=range(2, 9), metavar="K", help="default: %(default)s"
    )
    options = parser.parse_args(arguments)
    wrong, rng = False, np.random.default_rng(1)
    cases = channels = controls = 0
    least, control = np.inf, 0.0
    print("Largest distance between floor and optimum, as a share of it, of so many cases:\n")
    print("| K | question | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---" * (2 + len(EPSILONS)) + "|")
    for inputs in range(2, options.inputs + 1):
        for kind, words in KINDS.items():
            row = []
            for epsilon in EPSILONS:
                told, farthest = 0, 0.0
                for missing in (False, True):
                    for number, case in enumerate(floor_cases(kind, inputs, epsilon, missing=missing)):
                        found = least_error(case.questions, case.prior, epsilon)
                        farthest, told = max(farthest, found.distance(case.floor)), told + 1
                        least, channels = min(least, nearest_channel(case, rng)), channels + CHANNELS
                        if number == 0:
                            liar = least_error(case.questions, case.prior, MORE * epsilon)
                            control, controls = max(control, max(liar) / case.floor), controls + 1
                bad = farthest > allowed(kind, epsilon)
                wrong, cases = wrong or bad, cases + told
                row.append(f"{farthest:.1e} of {told}" + (WRONG if bad else ""))
            print(f"| {inputs} | {words} | " + " | ".join(row) + " |", flush=True)
    wrong |= least < 1.0 or control >= 1.0
    print(
        f"\n{cases:,} cases. {channels:,} random channels: the nearest has {least:.6f} of its floor's error."
    )
    print(f"Control: of {controls} optima at {MORE} times the epsilon the dearest has {control:.6f} of it.")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
