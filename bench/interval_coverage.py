"""The coverage of a release's intervals, by mechanism, population and number of devices.

    python bench/interval_coverage.py [--runs 200] [--only pb-grr] [--devices 50,100] [--values 5,91]

Every case fixes the devices' inputs, perturbs them again and again through the channel itself, and asks how
often the intervals hold the truth of these devices: the mean over cells and the worst cell, all cells at
once, the mean of the numbers. Beside them stand the normal intervals of releases of method 1, which are the
control, and the mean width over that of an oracle who knows every cell's variance, cut to 0 and 1 likewise.

The worst cell's one-sided upper bound (Clopper and Pearson) has a false alarm probability of 1e-6 for the
whole family of cells and cases; a case that lies below .94 with it is marked, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from hubbub.channels.channel import Channel
from hubbub.estimation import Estimate, Intervals, estimator_for
from hubbub.mechanisms import boosted, grr, levels, local_hashing, pbgrr, subset_selection, unary
from hubbub.testing import seeded

Floats = NDArray[np.float64]

FALSE_ALARM = 1e-6
LEAST = 0.94
Z = 1.959963984540054
WORK = 20_000_000
"""Devices times values times runs of a case, beyond which it has fewer runs."""
LEAST_RUNS = 50


@dataclass(frozen=True)
class Case:
    """A mechanism about a population."""

    mechanism: str
    values: int
    devices: int
    population: str
    epsilon: float

    @property
    def sizes(self) -> list[int]:
        """Categories of about sqrt(K) values, and missing."""
        each = max(2, round((self.values - 1) ** 0.5))
        rest = self.values - 1
        found = [each] * (rest // each) + ([rest % each] if rest % each else [])
        return [*found, 1]

    def channel(self) -> Channel:
        """Return the channel of K inputs, the last of them missing."""
        makers: dict[str, Callable[[], Channel]] = {
            "grr": lambda: grr(self.values, epsilon=self.epsilon),
            "pb-grr": lambda: pbgrr(self.sizes, epsilon=self.epsilon, boost_epsilon=self.epsilon / 2),
            "subset": lambda: subset_selection(self.values, epsilon=self.epsilon),
            "unary": lambda: unary(self.values, epsilon=self.epsilon),
            "hashing": lambda: local_hashing(self.values, epsilon=self.epsilon),
            "levels": lambda: levels(self.sizes, epsilon=self.epsilon),
            "levels-3": lambda: levels([self.sizes[:-1], [1]], epsilon=self.epsilon),
            "boosted": lambda: boosted(self.values - 1, epsilon=self.epsilon, missing="input"),
        }
        return makers[self.mechanism]()

    def shares(self) -> Floats:
        """Return the population, a tenth of it missing."""
        rank = np.arange(1.0, self.values)
        some = {
            "even": np.ones(self.values - 1),
            "zipf": rank**-1.5,
            "spike": np.where(rank == 3, 7.0, 3.0 / (self.values - 2)),
        }[self.population]
        return np.append(0.9 * some / some.sum(), 0.1)

    def inputs(self) -> NDArray[np.int64]:
        """Return the devices' inputs, shares rounded to whole devices by largest remainder."""
        want = self.shares() * self.devices
        held = np.floor(want).astype(np.int64)
        short = self.devices - int(held.sum())
        held[np.argsort(-(want - held), kind="stable")[:short]] += 1
        return np.repeat(np.arange(self.values), held)


@dataclass
class Held:
    """The hits of one kind of interval over the runs.

    Attributes:
        kind: "values" or "categories".
        truth: The true shares, shape (c,).
        true_mean: The true mean.
    """

    kind: str
    truth: Floats
    true_mean: float

    def __post_init__(self) -> None:
        self.cells = np.zeros(len(self.truth), dtype=np.int64)
        self.together, self.mean, self.width = 0, 0, 0.0

    def count(self, one: Intervals, family: Intervals) -> None:
        """Count the hits of one round."""
        hits = []
        for spans in (one, family):
            low, high = getattr(spans, f"{self.kind}_low"), getattr(spans, f"{self.kind}_high")
            hits.append((low <= self.truth + 1e-9) & (self.truth - 1e-9 <= high))
            if spans is one:
                self.width += float(np.nanmean(high - low))
        self.cells += hits[0]
        self.together += bool(hits[1].all())
        if one.mean_low is not None and one.mean_high is not None:
            self.mean += one.mean_low <= self.true_mean <= one.mean_high


def tallies(channel: Channel, inputs: NDArray[np.int64], runs: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Yield the counts of `runs` rounds of the same devices."""
    source = seeded(seed)
    for _ in range(runs):
        symbols = channel.perturb(inputs, source=source)
        yield channel.tally(symbols)


def judge(case: Case, runs: int, seed: int) -> tuple[dict[str, Held], float]:
    """Return hits and widths of values, categories and mean, by score and by the normal law; the oracle's."""
    channel, inputs = case.channel(), case.inputs()
    several = case.mechanism != "boosted"
    category_of = np.repeat(np.arange(len(case.sizes)), case.sizes) if several else None
    points = np.append(np.linspace(-1.0, 1.0, case.values - 1), np.nan)
    estimator = estimator_for(channel, category_of=category_of, points=points, missing=case.values - 1)
    n = len(inputs)
    truth = np.bincount(inputs, minlength=case.values) / n
    groups = np.bincount(estimator.category_of[inputs], minlength=int(estimator.category_of.max()) + 1) / n
    mean = float(points[inputs[inputs < case.values - 1]].mean())
    oracle = estimator.expected_estimate(truth, n)
    found = {
        f"{word}{kind}": Held(kind, shares, mean)
        for word in ("", "normal ")
        for kind, shares in (("values", truth), ("categories", groups))
    }
    widths = 0.0
    for counts in tallies(channel, inputs, runs, seed):
        estimate: Estimate = estimator(counts, n)
        for word, one, all_at_once in (
            ("", estimate.intervals(), estimate.simultaneous()),
            ("normal ", estimate.normal_intervals(), _normal_family(estimate)),
        ):
            for kind in ("values", "categories"):
                found[f"{word}{kind}"].count(one, all_at_once)
        half = Z * oracle.value_errors
        low, high = (np.clip(estimate.values + side * half, 0.0, 1.0) for side in (-1, 1))
        widths += float(np.nanmean(high - low))
    return found, widths / runs


def _normal_family(estimate: Estimate) -> Intervals:
    values = estimate.normal_intervals(1.0 - 0.05 / len(estimate.values))
    categories = estimate.normal_intervals(1.0 - 0.05 / len(estimate.categories))
    return Intervals(
        0.95,
        values.values_low,
        values.values_high,
        categories.categories_low,
        categories.categories_high,
        values.mean_low,
        values.mean_high,
    )


def upper(hits: int, runs: int, family: int) -> float:
    """Return the one-sided upper bound of a coverage, at FALSE_ALARM over a family of tests."""
    return 1.0 if hits == runs else float(beta.isf(FALSE_ALARM / family, hits + 1, runs - hits))


def cases(only: str, devices: list[int], values: list[int], epsilons: list[float]) -> list[Case]:
    """Return the cases; those whose mechanism has no such size are left out."""
    names = ["grr", "pb-grr", "subset", "unary", "hashing", "levels", "levels-3", "boosted"]
    return [
        Case(name, k, n, population, epsilon)
        for name in (only.split(",") if only else names)
        for k in values
        for epsilon in epsilons
        for n in devices
        for population in ("even", "zipf", "spike")
        if not (name.startswith("levels") and k < 6) and not (name == "boosted" and k > 200)
    ]


def main() -> int:
    """Print a row per case; return 1 if a cell covers too little."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="")
    parser.add_argument("--devices", default="50,100,500,5000")
    parser.add_argument("--values", default="5,91,1000")
    parser.add_argument("--epsilons", default="1")
    words = parser.parse_args()
    listed = cases(
        words.only,
        [int(n) for n in words.devices.split(",")],
        [int(k) for k in words.values.split(",")],
        [float(e) for e in words.epsilons.split(",")],
    )
    family = sum(case.values + len(case.sizes) + 3 for case in listed)
    below = 0
    shown = "mechanism,K,eps,n,population,cell,worst,all,category,worst,all,mean,width"
    print("| " + " | ".join(shown.split(",")) + " |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for seed, case in enumerate(listed):
        runs = max(LEAST_RUNS, min(words.runs, WORK // (case.devices * case.values)))
        row, bad = _row(case, *judge(case, runs, seed), runs, family)
        below += bad
        print(row, flush=True)
    print(
        f"\n{below} of {len(listed)} cases have a cell, a family or a mean below {LEAST} "
        f"(upper bound, {FALSE_ALARM:g} for all {family} tests; at most {words.runs} runs each)."
    )
    return 1 if below else 0


def _row(case: Case, found: dict[str, Held], oracle: float, runs: int, family: int) -> tuple[str, bool]:
    parts, bad = [], False
    for kind in ("values", "categories"):
        held, normal = found[kind], found[f"normal {kind}"]
        worst = int(held.cells.min())
        for hits in (worst, held.together, held.mean):
            bad |= upper(hits, runs, family) < LEAST
        for hits, old in (
            (held.cells.mean(), normal.cells.mean()),
            (worst, normal.cells.min()),
            (held.together, normal.together),
        ):
            parts.append(f"{hits / runs:.3f} ({old / runs:.3f})")
    values, normal = found["values"], found["normal values"]
    parts.append(f"{values.mean / runs:.3f} ({normal.mean / runs:.3f})")
    parts.append(f"{values.width / runs / oracle:.2f}")
    head = f"| {case.mechanism} | {case.values} | {case.epsilon:g} | {case.devices} | {case.population} | "
    return head + " | ".join(parts) + (" | below |" if bad else " |"), bad


if __name__ == "__main__":
    sys.exit(main())
