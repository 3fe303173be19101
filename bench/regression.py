"""Regressions about nine numbers until one is refused: Pan, sections 6.3 and 6.4. Prints; asserts nothing.

    python bench/regression.py               50 runs of each kind, a table
    python bench/regression.py --runs 10 --plot regression.png

The record is 0 in all nine numbers of [-1, 1], the budget 1, every query costs 0.1. Linear coefficients and
intercept are uniform on [-1, 1], divided by the sum of their sizes; logistic ones uniform on [-10, 10]. The
filter is exact and ungrouped. Adding epsilons accepts 10. Loss is the proved bound, in nats.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting import BayesianFilter, Box, Regression
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


def run(kind: Kind, seed: int) -> tuple[list[float], list[float]]:
    """Loss after every accepted answer, and seconds of every query: to decide, and to record its answer."""
    rng, source = np.random.default_rng(seed), seeded(seed)
    accountant, losses, decisions = BayesianFilter(BUDGET), [], []
    while True:
        query = random_query(kind, rng)
        start = time.perf_counter()
        ticket = accountant.reserve("numbers", query)
        seconds = time.perf_counter() - start
        if ticket is None:
            return losses, [*decisions, seconds]
        symbol = query.perturb(RECORD, source=source)
        start = time.perf_counter()
        accountant.record(ticket, symbol)
        decisions.append(seconds + time.perf_counter() - start)
        losses.append(accountant.loss)


def accepted_within(losses: list[float], budgets: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many answers it took until the loss first passed each budget, as Pan's figures 1b and 1d count."""
    highest = np.maximum.accumulate([*losses, np.inf])
    return np.searchsorted(highest, budgets, side="right").astype(float)


def plot(path: Path, results: dict[Kind, list[list[float]]]) -> None:
    import matplotlib  # noqa: PLC0415 - only when asked for

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(len(results), 2, figsize=(10, 4 * len(results)), squeeze=False)
    budgets = np.linspace(EPSILON, BUDGET, 19)
    for (kind, runs), (left, right) in zip(results.items(), axes, strict=True):
        for losses in runs[:10]:
            left.plot(range(1, len(losses) + 1), losses, linewidth=1)
        counts = np.array([accepted_within(losses, budgets) for losses in runs])
        low, middle, high = np.quantile(counts, [0.1, 0.5, 0.9], axis=0)
        right.fill_between(budgets, low, high, alpha=0.3, label="10th to 90th percentile")
        right.plot(budgets, middle, label="median")
        right.plot(budgets, budgets / EPSILON, "--", color="black", label="adding epsilons")
        most = max(len(losses) for losses in runs[:10])
        left.plot([0, min(most, BUDGET / EPSILON)], [0, min(most * EPSILON, BUDGET)], "--", color="black")
        left.set(title=f"{kind}: ten runs", xlabel="accepted queries", ylabel="realised loss, nats")
        right.set(title=f"{kind}: {len(runs)} runs", xlabel="budget, nats", ylabel="accepted queries")
        right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description="Regressions about nine numbers until one is refused.")
    parser.add_argument("--runs", type=int, default=50, help="of each kind (default 50)")
    parser.add_argument("--kind", choices=["linear", "logistic"], help="only this one")
    parser.add_argument("--plot", type=Path, help="write figures like Pan's figure 1 to this file")
    arguments = parser.parse_args()
    kinds: tuple[Kind, ...] = (arguments.kind,) if arguments.kind else ("linear", "logistic")
    results: dict[Kind, list[list[float]]] = {}
    print(f"{'':9} accepted: 10th  median   90th   a query: median      99th      worst  target")
    for kind in kinds:
        runs, decisions = [], []
        for seed in range(arguments.runs):
            losses, seconds = run(kind, seed)
            runs.append(losses)
            decisions += seconds
            print(f"  {kind} run {seed + 1}: {len(losses)}", file=sys.stderr)
        results[kind] = runs
        low, middle, high = np.quantile([len(losses) for losses in runs], [0.1, 0.5, 0.9])
        half, most, worst = (1e3 * np.quantile(decisions, share) for share in (0.5, 0.99, 1.0))
        print(
            f"{kind:9} {low:14.0f} {middle:7.0f} {high:6.0f} {half:15.2f} ms {most:6.1f} ms {worst:7.1f} ms"
            f" {1e3 * TARGETS[kind]:6.0f} ms"
        )
    if arguments.plot:
        plot(arguments.plot, results)
        print(f"plots: {arguments.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
