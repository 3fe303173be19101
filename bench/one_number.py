"""Exact errors of every mechanism for a number on [-1, 1]: its mean, and its cumulative shares.

    .venv/bin/python bench/one_number.py

On 33 points and with an input for a missing value, per device: the variance of the best linear unbiased mean,
then n times the mean squared error of the cumulative shares, both for values that are equally common; divide
by the number of devices. Below each epsilon, best first, what the designer compares; "hidden" where a
mechanism does not show the curve. Last, the published worst cases of one report, without a missing value.
Nothing is simulated.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from hubbub.design import Candidate, Objective, Quantity, Question, compare

POINTS = 33
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0)


def compared(epsilon: float, quantity: Quantity) -> list[Candidate]:
    """Every mechanism for the mean or for the curve, best first."""
    category_of = np.zeros(POINTS + 1, dtype=np.intp)
    category_of[-1] = 1
    question = Question.uniform(
        kind="grid",
        epsilon=epsilon,
        category_of=category_of,
        devices=1,
        points=np.append(np.linspace(-1.0, 1.0, POINTS), np.nan),
        objective=Objective(quantity),
    )
    return compare(question)


def published(epsilon: float) -> tuple[float, float, float, float]:
    """Worst variance of one report: Laplace, Duchi, Piecewise, Hybrid (Wang et al. 2019)."""
    root, whole = math.exp(epsilon / 2), math.exp(epsilon)
    laplace, duchi = 8 / epsilon**2, ((whole + 1) / (whole - 1)) ** 2
    piecewise = 4 * root / (3 * (root - 1) ** 2)
    mixed = (root + 3) / (3 * root * (root - 1)) + (whole + 1) ** 2 / (root * (whole - 1) ** 2)
    return laplace, duchi, piecewise, mixed if epsilon > 0.61 else duchi


def main() -> int:
    for quantity, title in (("mean", "variance of the mean"), ("cdf", "squared error of cumulative shares")):
        print(f"epsilon  {title}")
        for epsilon in EPSILONS:
            for place, found in enumerate(compared(epsilon, quantity)):
                cost = f"{found.cost:12.5f}" if math.isfinite(found.cost) else "      hidden"
                print(f"{epsilon:7}  {cost} {'*' if place == 0 else ' '} {found.label}")
        print()
    print("epsilon  published worst cases: Laplace, Duchi, Piecewise, Hybrid")
    for epsilon in EPSILONS:
        print(f"{epsilon:7}  " + "  ".join(f"{variance:9.4f}" for variance in published(epsilon)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
