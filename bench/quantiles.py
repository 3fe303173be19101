"""Trees of ranges: their cost, the distance of their distribution, their quantiles' coverage, their speed.

    .venv/bin/python bench/quantiles.py            some five minutes
    .venv/bin/python bench/quantiles.py --runs 20  fewer collections per setting of the coverage table

Four tables, as Markdown:

- the designer's pick for "cdf" and "quantiles", and its exact cost over that of subset selection;
- the Wasserstein distance, in units of the number, between the true distribution, Beta(5, 2) on [-1, 1], and
  the one estimated from 100,000 reports on 65 points, mean of 20 collections and its standard error: of a
  tree's unbiased shares, the same made to rise, subset selection's unbiased shares, and the smoothed views of
  the pick for "shape" and of Square Wave. Trees and subset selection have an input for a missing value,
  the others have none, which is in their favour;
- how often the band of 0.95 holds the whole curve, and its quartiles all three true ones; as a control, the
  same band at half its width;
- processor time of a report on a device, in microseconds, and of an estimate, of every mechanism that has a
  channel of 100,000 inputs (orbits are not searched for so many): the least of nine.

The exit status is 1 if a pick costs more than TARGETS says, if the tree's unbiased shares are significantly
farther away than the best smoothed view, if a band or its quartiles hold significantly less often than
0.95, or if the control somewhere does not: by chance with a probability of 1e-6 at most.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, norm

from hubbub.channels.channel import Channel
from hubbub.estimation import estimator_for
from hubbub.estimation.em import maximise
from hubbub.mechanisms.tree import tree
from hubbub.testing import seeded
from hubbub_authoring import mechanisms
from hubbub_authoring.design import Objective, Workload, choose, expected_error

POINTS = 65
DEVICES = 100_000
COLLECTIONS = 20
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0)
LARGE = 100_000
GRID = np.linspace(-1.0, 1.0, POINTS)
CROWD = np.linspace(0, 1, POINTS) ** 4 * (1.0 - np.linspace(0, 1, POINTS))
CROWD /= CROWD.sum()
TARGETS = {(POINTS, 1.0): 0.37, (256, 1.0): 0.16}
"""The most that the pick for cumulative shares may cost, over subset selection."""
LEVEL, FALSE, TESTS = 0.95, 1e-6, 36
WRONG = " **(!)**"

Floats = NDArray[np.float64]


def workload(points: int, epsilon: float, quantity: str) -> Workload:
    """Return the workload of a number on [-1, 1], for one device; of a shape for all of them."""
    objective = {"cdf": Objective("cdf"), "quantiles": Objective("quantiles"), "shape": Objective("shape")}
    return Workload.uniform(
        kind="grid",
        epsilon=epsilon,
        category_of=np.append(np.zeros(points, dtype=np.intp), 1),
        devices=DEVICES if quantity == "shape" else 1,
        points=np.append(np.linspace(-1.0, 1.0, points), math.nan),
        objective=objective[quantity],
    )


def table(heads: list[str], rows: Iterable[list[str]]) -> bool:
    """Print one table, and return whether a cell of it is wrong."""
    wrong = False
    print("\n| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)
        wrong |= any(WRONG in cell for cell in row)
    return wrong


def costs() -> Iterator[list[str]]:
    """Yield the rows of the first table."""
    asked = [(POINTS, epsilon) for epsilon in EPSILONS] + [(256, 1.0)]
    for points, epsilon in asked:
        row = [str(points), f"{epsilon:g}"]
        for quantity in ("cdf", "quantiles"):
            question = workload(points, epsilon, quantity)
            picked = choose(question)
            flat = mechanisms.subset_selection(points + 1, epsilon=epsilon)
            ratio = picked.cost / expected_error(flat, question).cost(question)
            wrong = ratio > TARGETS.get((points, epsilon), math.inf)
            row += [f"{picked.label}: {picked.cost:.4g}", f"{ratio:.3f}" + (WRONG if wrong else "")]
        yield row


def crowd_of(shares: Floats, n: int, missing: float = 0.0) -> NDArray[np.intp]:
    """Return devices, one input each, as near to the shares as whole ones are; missing is the last."""
    whole = np.round(shares * n * (1.0 - missing)).astype(np.intp)
    none = np.full(round(missing * n), len(shares), dtype=np.intp)
    return np.concatenate([np.repeat(np.arange(len(shares)), whole), none])


def distance(found: Floats, truth: Floats) -> float:
    """Return the Wasserstein distance of two cumulative curves on the grid."""
    return float(np.abs(found - truth)[:-1].sum() * (GRID[1] - GRID[0]))


def distances(epsilon: float) -> list[str]:
    """Return one row of the second table."""
    crowd = crowd_of(CROWD, DEVICES)
    truth = np.cumsum(np.bincount(crowd, minlength=POINTS)) / len(crowd)
    groups = np.append(np.zeros(POINTS, dtype=np.intp), 1)
    numbers = np.append(GRID, math.nan)
    found: dict[str, list[float]] = {}
    sets = {
        "tree": tree(POINTS, epsilon=epsilon),
        "flat": mechanisms.subset_selection(POINTS + 1, epsilon=epsilon),
    }
    for name, channel in sets.items():
        estimator = estimator_for(channel, category_of=groups, points=numbers, missing=POINTS)
        for seed in range(COLLECTIONS):
            symbols = channel.perturb(crowd, source=seeded(seed))
            curve = estimator(channel.tally(symbols), len(crowd)).cumulative()
            assert curve is not None
            found.setdefault(name, []).append(distance(curve.shares, truth))
            found.setdefault(name + " rising", []).append(distance(curve.rising, truth))
    picked = choose(workload(POINTS, epsilon, "shape"))
    steps = float(picked.parameters.get("half_width", 0.0)) / float(GRID[1] - GRID[0])
    region = mechanisms.Absolute(float(round(steps)))
    smooth = {
        "shape": mechanisms.boosted(POINTS, epsilon=epsilon, kernel="uniform", region=region),
        "wave": mechanisms.square_wave(POINTS, epsilon=epsilon),
    }
    for name, finite in smooth.items():
        rows = finite.weights() / finite.total
        for seed in range(COLLECTIONS):
            counts = np.bincount(finite.perturb(crowd, source=seeded(seed)), minlength=finite.outputs)
            view = maximise(rows, counts, order=np.arange(POINTS))
            found.setdefault(name, []).append(distance(np.cumsum(view.values), truth))
    names = ("tree", "tree rising", "flat", "shape", "wave")
    means = {name: float(np.mean(found[name])) for name in names}
    errors = {name: float(np.std(found[name], ddof=1)) / math.sqrt(COLLECTIONS) for name in names}
    shown = {name: f"{means[name]:.4f} ± {errors[name]:.4f}" for name in names}
    best = min(("shape", "wave"), key=means.__getitem__)
    # One in a million, were the two equally far away.
    if means["tree"] - means[best] > 4.75 * math.hypot(errors["tree"], errors[best]):
        shown["tree"] += WRONG
    return [f"{epsilon:g}", *shown.values()]


def coverage(runs: int) -> Iterator[list[str]]:
    """Yield the rows of the third table."""
    spike = np.full(POINTS, 0.3 / (POINTS - 1))
    spike[20] = 0.7
    crowds = {
        "uniform": np.full(POINTS, 1 / POINTS),
        "Beta(5, 2)": np.diff(beta.cdf(np.linspace(0, 1, POINTS + 1), 5, 2)),
        "0.7 at one point": spike,
    }
    numbers = np.append(GRID, math.nan)
    groups = np.append(np.zeros(POINTS, dtype=np.intp), 1)
    z = norm.isf(0.05 / (2 * (POINTS - 1)))
    for epsilon in (1.0, 4.0):
        channel = tree(POINTS, epsilon=epsilon, tuned_for="quantiles")
        estimator = estimator_for(channel, category_of=groups, points=numbers, missing=POINTS)
        for name, shares in crowds.items():
            for n in (200, 500, 5000):
                crowd = crowd_of(shares, n, missing=0.1)
                counts = np.bincount(crowd, minlength=POINTS + 1)[:POINTS]
                truth = np.cumsum(counts) / counts.sum()
                quartiles = [GRID[int(np.searchsorted(truth, tau - 1e-12))] for tau in (0.25, 0.5, 0.75)]
                source, band, all_three, half, width = seeded(11), 0, 0, 0, 0.0
                for _ in range(runs):
                    tally = channel.tally(channel.perturb(crowd, source=source))
                    curve = estimator(tally, len(crowd)).cumulative()
                    if curve is None:
                        continue
                    band += bool(((curve.low <= truth + 1e-9) & (truth <= curve.high + 1e-9)).all())
                    half += bool((np.abs(curve.shares - truth) <= z / 2 * curve.errors + 1e-9).all())
                    told = [curve.quantile(tau) for tau in (0.25, 0.5, 0.75)]
                    all_three += all(q.low <= true <= q.high for q, true in zip(told, quartiles, strict=True))
                    width += (told[1].high - told[1].low) / (GRID[1] - GRID[0]) + 1
                rarely = [binom.cdf(count, runs, LEVEL) < FALSE / TESTS for count in (band, all_three, half)]
                shown = [
                    f"{count / runs:.3f}" + (WRONG if found else "")
                    for count, found in zip(
                        (band, all_three, half), (*rarely[:2], not rarely[2]), strict=True
                    )
                ]
                yield [f"{epsilon:g}", name, f"{n:,}", *shown, f"{width / runs:.0f} of {POINTS}"]


def least(run: Callable[[], object], times: int = 5) -> float:
    """Return the least seconds of some runs."""
    found = []
    for _ in range(times):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def speed() -> Iterator[list[str]]:
    """Yield the rows of the fourth table."""
    values = np.random.default_rng(1).integers(0, 1001, 20_000)
    reports: dict[str, Channel] = {
        "tree of 2": tree(1000, epsilon=1.0),
        "tree of 4": tree(1000, epsilon=1.0, branching=4),
        "subset selection": mechanisms.subset_selection(1001, epsilon=1.0),
    }
    for name, channel in reports.items():
        many = least(lambda c=channel: c.perturb(values)) / len(values)  # type: ignore[misc]  # bound now
        one = least(lambda c=channel: [c.perturb(int(x)) for x in values[:1000]]) / 1000  # type: ignore[misc]
        length = len(channel.widest_symbol) if isinstance(channel.widest_symbol, bytes) else 0
        yield [
            f"{name}, K = 1000: a report",
            f"{many * 1e6:.1f} us in batches, {one * 1e6:.1f} us alone",
            f"{length} bytes",
        ]
    groups, numbers = (
        np.append(np.zeros(LARGE - 1, dtype=np.intp), 1),
        np.append(np.arange(LARGE - 1.0), math.nan),
    )
    sizes = [100] * (LARGE // 100 - 1) + [99, 1]
    by_category = np.repeat(np.arange(len(sizes)), sizes)
    built: dict[str, tuple[Channel, NDArray[np.intp]]] = {
        **{f"tree of {b}": (tree(LARGE - 1, epsilon=1.0, branching=b), groups) for b in (2, 4, 16)},
        "randomised response": (mechanisms.grr(LARGE, epsilon=1.0), groups),
        "PB-GRR": (mechanisms.pbgrr(sizes, epsilon=1.0, boost_epsilon=0.5), by_category),
        "subset selection": (mechanisms.subset_selection(LARGE, epsilon=1.0), groups),
        "unary encoding": (mechanisms.unary(LARGE, epsilon=1.0), groups),
        "local hashing": (mechanisms.local_hashing(LARGE, epsilon=1.0), groups),
        "levels": (mechanisms.levels(sizes, epsilon=1.0), by_category),
    }
    for name, (channel, categories) in built.items():
        estimator = estimator_for(channel, category_of=categories, points=numbers, missing=LARGE - 1)
        counts = np.floor(3_000_000 * channel.expected(np.full(LARGE, 1.0 / LARGE))).astype(np.int64)
        split = getattr(channel, "split", None)  # reports about a level are counted beside its cells
        n = round(sum(size for size, _ in split(counts, 3_000_000))) if split else int(counts.sum())
        estimator(counts, n)
        yield [
            f"{name}, K = {LARGE:,}: an estimate",
            f"{least(lambda e=estimator, c=counts, n=n: e(c, n), 9) * 1e3:.1f} ms",  # type: ignore[misc]  # now
            "",
        ]


def main(arguments: list[str]) -> int:
    """Print the four tables."""
    runs = 400
    if arguments[:1] == ["--runs"] and len(arguments) == 2:
        runs = int(arguments[1])
    elif arguments:
        print(__doc__, file=sys.stderr)
        return 2
    heads = [
        "points",
        "epsilon",
        "pick for cdf: cost",
        "over subset",
        "pick for quantiles: cost",
        "over subset",
    ]
    wrong = table(heads, costs())
    wrong |= table(
        [
            "epsilon",
            "tree",
            "tree, rising",
            "subset selection",
            "pick for shape, smoothed",
            "Square Wave, smoothed",
        ],
        map(distances, EPSILONS),
    )
    heads = [
        "epsilon",
        "population",
        "n",
        "band holds",
        "three quartiles hold",
        "control",
        "median's interval",
    ]
    wrong |= table(heads, coverage(runs))
    wrong |= table(["what", "processor time", "symbol"], speed())
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
