"""The simultaneous coverage of releases where intervals are hardest: large epsilon, rare cells, few devices.

    python bench/interval_extremes.py                       the whole table
    python bench/interval_extremes.py --only 'grr;levels' --values 12,91 --runs 200

Rounds are drawn through the channel, and their intervals are those of `Estimate.simultaneous`. Where a
score takes two values, the miss of every cell is an exact sum over all counts, too: *exact* is the largest
over its part of .05. Populations: Zipf's law (many cells of one to ten devices), a spike of 97 in 100,
even, and 60 in 100 missing. A case is low if its upper bound of coverage (Clopper and Pearson; all cases
together have a false alarm probability of 1e-6) is below .94, or its exact miss above 1.2: then the exit
status is 1. The table has a row per mechanism and number of values, over all cases; low ones stand below it.
Cases of as many values and devices have one seed, so a row's rounds are not independent.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from interval_cases import LABELS, NUMBERS, _estimator, exists
from scipy.stats import beta, binom

from hubbub.estimation import Estimate
from hubbub.estimation.choice import AnyEstimator
from hubbub.estimation.intervals.laws import CellLaw
from hubbub.estimation.intervals.skew_score import two_binomials_interval
from hubbub.testing import SeededSource, seeded

POPULATIONS = ("zipf", "spike", "even", "missing")
KINDS = ("values", "categories")
LEVEL, LEAST, MOST_MISS, FALSE_ALARM = 0.95, 0.94, 1.2, 1e-6
SLACK = 1e-9


def held(population: str, values: int, devices: int) -> np.ndarray:
    """Return the devices that hold each input, the last of them missing, shape (K,)."""
    rank = np.arange(1.0, values)
    some = {
        "zipf": rank**-1.5,
        "spike": np.where(rank == min(3, values - 1), 0.97, 0.03 / max(values - 2, 1)),
        "even": np.ones(values - 1),
        "missing": 1.0 / rank,
    }[population]
    missing = 0.6 if population == "missing" else 0.1
    want = np.append((1.0 - missing) * some / some.sum(), missing) * devices
    found = np.floor(want).astype(np.int64)
    found[np.argsort(-(want - found), kind="stable")[: devices - int(found.sum())]] += 1
    return found


def truths(estimator: AnyEstimator, devices: np.ndarray) -> dict[str, np.ndarray]:
    """Return how many devices are in every value and category."""
    return {
        "values": devices,
        "categories": np.bincount(estimator.category_of, devices).astype(np.int64),
    }


def exact_miss(law: CellLaw, inside: np.ndarray, n: int) -> float | None:
    """Return the largest miss of a family's cells of two values, over its part; None where there are none."""
    if law.odds is None or not (told := ((law.odds > 0) & (law.odds < 1)).all(axis=0)).any():
        return None
    z = -NormalDist().inv_cdf((1.0 - LEVEL) / (2 * len(inside)))
    counts, worst = np.arange(n + 1), 0.0
    kinds = np.unique(np.vstack([law.odds, inside])[:, told], axis=1).T
    for p, q in {(p, q) for p, q, _ in kinds}:
        odds = np.array([[p], [q]]) * np.ones(n + 1)
        low, high = two_binomials_interval((counts / n - q) / (p - q), odds, n=n, z=z)
        for there in {int(m) for a, b, m in kinds if (a, b) == (p, q)}:
            one, other = (
                binom.pmf(np.arange(m + 1), m, chance) for m, chance in ((there, p), (n - there, q))
            )
            out = (there / n < low - SLACK) | (there / n > high + SLACK)
            worst = max(worst, float(np.convolve(one, other)[out].sum()))
    return worst * len(inside) / (1.0 - LEVEL)


def holds(estimate: Estimate, truth: dict[str, np.ndarray]) -> dict[str, bool]:
    """Return which families are covered whole."""
    spans, found = estimate.simultaneous(LEVEL), {}
    for kind in KINDS:
        low, high = getattr(spans, f"{kind}_low"), getattr(spans, f"{kind}_high")
        share = truth[kind] / estimate.n
        found[kind] = bool(((low <= share + SLACK) & (share <= high + SLACK) | np.isnan(low)).all())
    return found


def judge(estimator: AnyEstimator, devices: np.ndarray, runs: int, source: SeededSource) -> dict[str, float]:
    """Return rounds, hits per family, and the largest exact miss (nan: none) of one population.

    Rounds without estimates, since nobody reported about a level, say nothing.
    """
    n, truth = int(devices.sum()), truths(estimator, devices)
    inputs, channel = np.repeat(np.arange(len(devices)), devices), estimator.channel  # type: ignore[union-attr]
    found = {"rounds": 0.0, "values": 0.0, "categories": 0.0, "exact": np.nan}
    for run in range(runs):
        estimate = estimator(channel.tally(channel.perturb(inputs, source=source)), n)
        if estimate.laws is None:
            continue
        if run == 0:
            misses = [exact_miss(getattr(estimate.laws, kind), truth[kind], n) for kind in KINDS]
            found["exact"] = max((miss for miss in misses if miss is not None), default=np.nan)
        found["rounds"] += 1
        for kind, hit in holds(estimate, truth).items():
            found[kind] += hit
    return found


class Row(NamedTuple):
    """A case: what it is, its rounds, those whose values and whose categories held, and the exact miss."""

    mechanism: str
    values: int
    case: str
    rounds: float
    held: tuple[float, float]
    exact: float
    low: bool


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a table of what was found: a row for all cases of a mechanism and so many values."""
    yield "| mechanism | K | cases | rounds | values | categories | largest exact miss | low |"
    yield "|---|---|---|---|---|---|---|---|"
    for key in dict.fromkeys((row.mechanism, row.values) for row in rows):
        some = [row for row in rows if (row.mechanism, row.values) == key]
        total = sum(row.rounds for row in some)
        shares = [f"{sum(row.held[i] for row in some) / max(total, 1.0):.3f}" for i in range(len(KINDS))]
        told = [row.exact for row in some if not np.isnan(row.exact)]
        exact, low = f"{max(told):.2f}" if told else "", sum(row.low for row in some)
        yield f"| {key[0]} | {key[1]} | {len(some)} | {total:.0f} | {' | '.join(shares)} | {exact} | {low} |"
    yield f"\n{len(rows):,} cases, of which {sum(row.low for row in rows)} are low."
    for row in rows:
        if row.low:
            yield f"- {row.mechanism}, {row.values} values, {row.case}: {row.held}, exact {row.exact:.2f}"


def upper(hits: float, rounds: float, tests: int) -> float:
    """Return an upper bound on a coverage."""
    return 1.0 if hits >= rounds else float(beta.ppf(1.0 - FALSE_ALARM / tests, hits + 1, rounds - hits))


def numbers(text: str) -> list[float]:
    """Return comma-separated numbers."""
    return [float(word) for word in text.split(",")]


def main() -> int:
    """Print a row per case; return 1 if one is below what is asked."""
    parser = argparse.ArgumentParser(description="The coverage of all cells at once at large epsilon.")
    parser.add_argument("--only", default=";".join([*LABELS, *NUMBERS]))
    parser.add_argument("--values", type=numbers, default=[3, 12, 91, 1000])
    parser.add_argument("--epsilons", type=numbers, default=[1, 2, 4, 6, 8, 10, 12])
    parser.add_argument("--devices", type=numbers, default=[50, 200, 2000])
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    cases = [
        (name, int(k), e, int(n), population)
        for name in asked.only.split(";")
        for k in asked.values
        for e in asked.epsilons
        if exists(name, int(k), e)
        for n in asked.devices
        for population in POPULATIONS
    ]
    rows = []
    for name, k, e, n, population in cases:
        estimator = _estimator(name, k, e)
        found = judge(estimator, held(population, k, n), asked.runs, seeded(k * n))
        rounds, hits = found["rounds"], (found["values"], found["categories"])
        bound = upper(min(hits), rounds, 2 * len(cases)) if rounds else 1.0
        low = bound < LEAST or found["exact"] > MOST_MISS
        case = f"epsilon {e:g}, {n} devices, {population}"
        print(name, k, case, *hits, found["exact"], "low" if low else "", file=sys.stderr, flush=True)
        rows.append(Row(name, k, case, rounds, hits, found["exact"], low))
    print("\n".join(summary(rows)))
    return int(any(row.low for row in rows))


if __name__ == "__main__":
    sys.exit(main())
