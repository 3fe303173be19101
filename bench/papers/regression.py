"""Regressions about nine numbers until one is refused: Pan, sections 6.3 and 6.4.

    python bench/papers/regression.py               50 runs of each kind, seeds 0 to 49: a table
    python bench/papers/regression.py --plot out/regression.png


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
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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


def accepted_within(losses: list[float], budgets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the answers until the loss first passed each budget, as Pan's figures 1b and 1d count."""
    highest = np.maximum.accumulate([*losses, np.inf])
    return np.searchsorted(highest, budgets, side="right").astype(float)


def plot(path: Path, results: dict[Kind, list[Run]]) -> None:
    import matplotlib  # noqa: PLC0415 - only when asked for

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(len(results), 4, figsize=(18, 4 * len(results)), squeeze=False)
    budgets = np.linspace(EPSILON, BUDGET, 19)
    for (kind, runs), (lives, within, spread, times) in zip(results.items(), axes, strict=True):
        for each in runs[:10]:
            lives.plot(range(1, len(each.losses) + 1), each.losses, linewidth=1)
        most = max(len(each.losses) for each in runs[:10])
        lives.plot([0, min(most, BUDGET / EPSILON)], [0, min(most * EPSILON, BUDGET)], "--", color="black")
        lives.set(title=f"{kind}: ten runs", xlabel="accepted queries", ylabel="realised loss, nats")

        counts = np.array([accepted_within(each.losses, budgets) for each in runs])
        low, middle, high = np.quantile(counts, [0.1, 0.5, 0.9], axis=0)
        within.fill_between(budgets, low, high, alpha=0.3, label="10th to 90th percentile")
        within.plot(budgets, middle, label="median")
        within.plot(budgets, budgets / EPSILON, "--", color="black", label="adding epsilons")
        within.set(title=f"{kind}: {len(runs)} runs", xlabel="budget, nats", ylabel="accepted queries")
        within.legend()

        final = [len(each.losses) for each in runs]
        spread.hist(final, bins=min(20, max(final) - min(final) + 1))
        spread.axvline(float(np.median(final)), color="black", linestyle="--")
        spread.set(title=f"{kind}: median {np.median(final):g}", xlabel="accepted queries", ylabel="runs")

        seconds = np.sort(np.concatenate([each.processor for each in runs]))
        times.plot(1e3 * seconds, np.linspace(0.0, 1.0, seconds.size))
        times.axvline(1e3 * TARGETS[kind], color="black", linestyle="--", label="target")
        times.set(
            title=f"{kind}: a query's time",
            xscale="log",
            xlim=(0.1, 2e3),
            xlabel="ms",
            ylabel="share of queries",
        )
        times.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=60)


def main() -> int:
    parser = argparse.ArgumentParser(description="Regressions about nine numbers until one is refused.")
    parser.add_argument("--runs", type=int, default=50, help="of each kind, seeds 0, 1, ... (default 50)")
    parser.add_argument("--kind", choices=["linear", "logistic"], help="only this one")
    parser.add_argument("--plot", type=Path, help="write figures like Pan's figure 1 to this file")
    arguments = parser.parse_args()
    kinds: tuple[Kind, ...] = (arguments.kind,) if arguments.kind else ("linear", "logistic")
    results: dict[Kind, list[Run]] = {}
    print(" " * 9, "accepted: least  10th  median   90th  most   a query: median    99th   worst", end="")
    print("  wall's worst  target")
    for kind in kinds:
        run(kind, arguments.runs)  # libraries warm up once
        runs = []
        for seed in range(arguments.runs):
            runs.append(run(kind, seed))
            print(f"  {kind} run {seed + 1}: {len(runs[-1].losses)}", file=sys.stderr)
        results[kind] = runs
        counts = np.quantile([len(each.losses) for each in runs], [0.0, 0.1, 0.5, 0.9, 1.0])
        half, most, worst = 1e3 * np.quantile(np.concatenate([r.processor for r in runs]), [0.5, 0.99, 1.0])
        wall = 1e3 * max(max(each.wall) for each in runs)
        print(
            f"{kind:9} {counts[0]:15.0f} {counts[1]:5.0f} {counts[2]:7.0f} {counts[3]:6.0f} {counts[4]:5.0f}"
            f" {half:14.2f} ms {most:6.2f} {worst:7.2f} {wall:13.1f} {1e3 * TARGETS[kind]:6.0f} ms"
        )
    if arguments.plot:
        plot(arguments.plot, results)
        print(f"plots: {arguments.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
