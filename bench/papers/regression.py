"""Regressions about nine numbers until one is refused: Pan, sections 6.3 and 6.4.

    python bench/papers/regression.py               50 runs of each kind, seeds 0 to 49: a table

The record is 0 in all nine numbers of [-1, 1], the budget 1, every query costs 0.1. Linear coefficients and
intercept are uniform on [-1, 1], divided by the sum of their sizes; logistic ones uniform on [-10, 10]. The
filter is exact and ungrouped. Adding epsilons accepts 10. Loss is the proved bound, in nats. A query's time
is the processor's, for its decision and its record, so that what else runs on the machine does not count;
beside it the worst by the clock on the wall.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hubbub.filter import BayesianFilter, Box, Regression
from hubbub.testing import seeded

NUMBERS, BUDGET, EPSILON = 9, 1.0, 0.1
BOX = Box((-1.0,) * NUMBERS, (1.0,) * NUMBERS)
RECORD = (0.0,) * NUMBERS
TARGETS = {"linear": 5e-3, "logistic": 1.0}
Kind = Literal["linear", "logistic"]


def random_query(kind: Kind, rng: np.random.Generator) -> Regression:
    if kind == "linear":
        theta = rng.uniform(-1.0, 1.0, NUMBERS + 1)
        theta /= np.abs(theta).sum()
        low, high = -1.0, 1.0
    else:
        theta, low, high = rng.uniform(-10.0, 10.0, NUMBERS + 1), 0.0, 1.0
    return Regression(kind, BOX, tuple(theta[1:].tolist()), float(theta[0]), EPSILON, low, high)


@dataclass
class Run:
    """One record's life: loss after every accepted answer; seconds of every query, refused ones too."""

    losses: list[float]
    processor: list[float]
    wall: list[float]


def run(kind: Kind, seed: int) -> Run:
    rng, source = np.random.default_rng(seed), seeded(seed)
    accountant, found = BayesianFilter(BUDGET), Run([], [], [])
    while True:
        query = random_query(kind, rng)
        clocks = time.thread_time(), time.perf_counter()
        ticket = accountant.reserve("numbers", query)
        found.processor.append(time.thread_time() - clocks[0])
        found.wall.append(time.perf_counter() - clocks[1])
        if ticket is None:
            return found
        symbol = query.perturb(RECORD, source=source)
        clocks = time.thread_time(), time.perf_counter()
        accountant.record(ticket, symbol)
        found.processor[-1] += time.thread_time() - clocks[0]
        found.wall[-1] += time.perf_counter() - clocks[1]
        found.losses.append(accountant.loss)


def main() -> int:
    parser = argparse.ArgumentParser(description="Regressions about nine numbers until one is refused.")
    parser.add_argument("--runs", type=int, default=50, help="of each kind, seeds 0, 1, ... (default 50)")
    parser.add_argument("--kind", choices=["linear", "logistic"], help="only this one")
    arguments = parser.parse_args()
    kinds: tuple[Kind, ...] = (arguments.kind,) if arguments.kind else ("linear", "logistic")
    print(" " * 9, "accepted: least  10th  median   90th  most   a query: median    99th   worst", end="")
    print("  wall's worst  target")
    for kind in kinds:
        run(kind, arguments.runs)  # libraries warm up once
        runs = []
        for seed in range(arguments.runs):
            runs.append(run(kind, seed))
            print(f"  {kind} run {seed + 1}: {len(runs[-1].losses)}", file=sys.stderr)
        counts = np.quantile([len(each.losses) for each in runs], [0.0, 0.1, 0.5, 0.9, 1.0])
        half, most, worst = 1e3 * np.quantile(np.concatenate([r.processor for r in runs]), [0.5, 0.99, 1.0])
        wall = 1e3 * max(max(each.wall) for each in runs)
        print(
            f"{kind:9} {counts[0]:15.0f} {counts[1]:5.0f} {counts[2]:7.0f} {counts[3]:6.0f} {counts[4]:5.0f}"
            f" {half:14.2f} ms {most:6.2f} {worst:7.2f} {wall:13.1f} {1e3 * TARGETS[kind]:6.0f} ms"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
