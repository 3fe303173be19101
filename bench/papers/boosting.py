"""PB-GRR on the ages of a data set, error against boost_epsilon (privacy-boosting, Figure 7).

    .venv/bin/python bench/papers/boosting.py CSV [RUNS]

Ages 10 to 100 of the column `age`, in tens and in fives (the last category is the single age 100), epsilon 5.
The mean squared errors of the shares of categories and of values come twice: from the exact variance at the
data's own shares, and from RUNS (200) simulated collections, every report drawn by the channel, each
boost_epsilon from seeds of its own. It prints the optima; the plot is out/boosting.png.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hubbub.estimation import InverseEstimator
from hubbub.testing import seeded
from hubbub_authoring import mechanisms
from hubbub_authoring.mechanisms.boosted.search import least
from hubbub_lab.evaluation import read_people

EPSILON = 5.0
LOW, HIGH = 10, 100
WIDTHS = (10, 5)
BOOSTS = np.linspace(0.0, EPSILON, 21)
CURVE = np.linspace(0.0, EPSILON, 201)
CAPTION = "exact: lines; simulated: marks, two standard errors"


@dataclass(frozen=True)
class Errors:
    """The mean squared errors of frequencies; nan where values are hidden."""

    category: float
    value: float

    @property
    def both(self) -> float:
        """The mean of the two."""
        return (self.category + self.value) / 2.0


@dataclass(frozen=True)
class Simulated:
    """The means of squared errors over collections, and the standard errors of these means."""

    mean: Errors
    error: Errors


def sizes_of(width: int) -> list[int]:
    """Return categories of `width` ages, and the rest."""
    whole, rest = divmod(HIGH - LOW + 1, width)
    return [width] * whole + [rest] * (rest > 0)


def estimator_of(sizes: list[int], boost: float) -> InverseEstimator:
    """Return PB-GRR at epsilon 5, whose estimator knows its channel."""
    channel = mechanisms.pbgrr(sizes, epsilon=EPSILON, boost_epsilon=boost)
    return InverseEstimator(channel, category_of=np.repeat(np.arange(len(sizes)), sizes))


def exact(sizes: list[int], boost: float, ages: NDArray[np.int64]) -> Errors:
    """Return errors from the variance that the rows have at these ages."""
    shares = np.bincount(ages, minlength=sum(sizes)) / len(ages)
    found = estimator_of(sizes, boost).expected_estimate(shares, len(ages))
    value = float(np.mean(found.value_errors**2))
    return Errors(float(np.mean(found.category_errors**2)), value if math.isfinite(value) else math.nan)


def simulated(sizes: list[int], boost: float, ages: NDArray[np.int64], seeds: range) -> Simulated:
    """Return errors from reports."""
    estimator = estimator_of(sizes, boost)
    shares = np.bincount(ages, minlength=sum(sizes)) / len(ages)
    truth = np.bincount(estimator.category_of, weights=shares)
    found = []
    for seed in seeds:
        symbols = estimator.channel.perturb(ages, source=seeded(seed))
        estimate = estimator(np.bincount(symbols, minlength=estimator.channel.outputs), len(ages))
        found.append((np.mean((estimate.categories - truth) ** 2), np.mean((estimate.values - shares) ** 2)))
    means, spreads = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / math.sqrt(len(seeds))
    return Simulated(Errors(*means.tolist()), Errors(*spreads.tolist()))


def nominal_rows(sizes: list[int], boost: float) -> float:
    """Return the true epsilon of rows a : b : 1, each divided by its own sum, as in Proposition 7."""
    a, b, inputs = math.exp(EPSILON), math.exp(EPSILON - boost), sum(sizes)
    sums = {size: a + (size - 1) * b + inputs - size for size in sizes}
    # The column of y: largest in y's own row, least in the row whose sum is largest.
    return EPSILON + max(math.log(max(sums.values()) / own) for own in sums.values())


def report(sizes: list[int], ages: NDArray[np.int64], runs: int) -> list[Simulated]:
    """Print one grouping's table and optima, and return what was simulated."""
    print(f"\n{len(sizes)} categories: {len(sizes) - 1} of {sizes[0]} ages, one of {sizes[-1]}\n")
    print("| boost_epsilon | category, exact | simulated | value, exact | simulated |\n|---|---|---|---|---|")
    found, scores = [], []
    for number, boost in enumerate(BOOSTS.tolist()):
        expected = exact(sizes, boost, ages)
        drawn = simulated(sizes, boost, ages, range(number * runs, (number + 1) * runs))
        found.append(drawn)
        cells = [f"{boost:g}"]
        for name in ("category", "value"):
            true, mean, spread = (getattr(one, name) for one in (expected, drawn.mean, drawn.error))
            if math.isnan(true):
                cells += ["hidden", "hidden"]
                continue
            cells += [f"{true:.3e}", f"{mean:.3e} ± {spread:.0e}"]
            scores.append((mean - true) / spread)
        print("| " + " | ".join(cells) + " |")
    print(
        f"\n  simulated less exact, in standard errors: mean {np.mean(scores):+.2f}, "
        f"largest {np.abs(scores).max():.2f}, of {len(scores)}"
    )
    goals: dict[str, Callable[[Errors], float]] = {
        "category": lambda e: e.category,
        "value": lambda e: e.value,
        "both, weighed alike": lambda e: e.both,
        "both, as totals": lambda e: e.category * len(sizes) + e.value * sum(sizes),
    }
    for name, goal in goals.items():
        if name == "category":
            boost = 0.0
        else:
            boost = least(lambda boost, goal=goal: goal(exact(sizes, boost, ages)), 0.01, EPSILON)
        at = exact(sizes, boost, ages)
        value = f"value {at.value:.3e}" if boost else "values hidden"
        print(f"  least {name:20} at boost_epsilon {boost:.3f}: category {at.category:.3e}, {value}")
    unsafe = ", ".join(f"{nominal_rows(sizes, boost):.3f} at {boost:g}" for boost in (1.0, 2.0, 3.0))
    print(f"  rows normalised one by one would have epsilon, by boost_epsilon: {unsafe}")
    return found


def draw(drawn: dict[int, list[Simulated]], ages: NDArray[np.int64], path: Path) -> None:
    """Write the plot."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 5), layout="constrained")
    figure.suptitle(f"PB-GRR on {len(ages):,} ages, epsilon {EPSILON:g} ({CAPTION})")
    for place, (width, found) in enumerate(drawn.items(), start=1):
        sizes = sizes_of(width)
        axes = figure.add_subplot(1, len(drawn), place)
        lines = [exact(sizes, boost, ages) for boost in CURVE.tolist()]
        for name, colour in (("category", "tab:blue"), ("value", "tab:orange")):
            axes.plot(CURVE, [getattr(line, name) for line in lines], color=colour, label=name)
            axes.errorbar(
                BOOSTS,
                [getattr(one.mean, name) for one in found],
                yerr=[2.0 * getattr(one.error, name) for one in found],
                fmt="o",
                markersize=3,
                color=colour,
            )
        axes.plot(CURVE, [line.both for line in lines], color="tab:grey", ls=":", label="mean of both")
        axes.set(
            yscale="log",
            xlabel="boost_epsilon",
            ylabel="mean squared error of a share",
            title=f"{len(sizes)} categories, of {width} ages",
        )
        axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    print(f"\n{path}")


def main(arguments: list[str]) -> int:
    """Read, print, draw."""
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    runs = int(arguments[1]) if len(arguments) == 2 else 200
    column = read_people(Path(arguments[0]), ["age"])["age"]
    numbers = np.array([int(text) for text in column.fields])[column.codes]
    ages = numbers[(numbers >= LOW) & (numbers <= HIGH)] - LOW
    print(f"{len(ages):,} ages {LOW} to {HIGH} of {len(numbers):,}, epsilon {EPSILON:g}, {runs} runs")
    drawn = {width: report(sizes_of(width), ages, runs) for width in WIDTHS}
    draw(drawn, ages, Path("out/boosting.png"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
