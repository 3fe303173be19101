"""Views of the same reports beside the truth: how much squared error each takes off the raw estimates.

    python bench/views.py                        made populations, and two that packages ship
    python bench/views.py people.csv age         the same for a column of a table, too
    python bench/views.py --runs 5               fewer rounds of each

Every round perturbs all devices through subset selection, which is the best for values alone, and estimates;
each view is made from that estimate. A figure is the raw estimates' summed squared error over that of the
view, over all values and rounds: 2 is half the error, below 1 is harm. Made populations: ages, smooth on 91
values; Zipf of exponent 1.5 on 91 and on 1,000. Of RAND: outpatient visits, as statsmodels ships them
(`randhie`, mdvis). Of Unicode: the first word of every character's name, as Python's `unicodedata` ships it,
8 characters or more to a word, all others one. Simultaneous rank sets are made, too: their mean length, and
how often all hold the true ranks.
"""

from __future__ import annotations

import argparse
import csv
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.estimation import Estimate, estimator_for
from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.shrinkage import posterior_means
from hubbub.mechanisms import subset_selection
from hubbub.testing import seeded

Floats = NDArray[np.float64]
Z = 1.959963984540054
FEWEST = 8


def norm(estimates: Floats) -> Floats:
    """Return Norm-Sub of all as one group."""
    return norm_sub(estimates, np.zeros(len(estimates), dtype=np.intp), np.ones(1))


def renormalised(estimate: Estimate) -> Floats:
    """Return estimates cut at 0 and scaled to sum to 1."""
    cut = np.clip(estimate.values, 0.0, None)
    return cut / cut.sum()


def base_cut(estimate: Estimate) -> Floats:
    """Return estimates that are 0 unless significant at .05 for all at once, as Wang et al. 2020."""
    z = Z if len(estimate.values) == 1 else 1.6448536269514722 + np.log10(len(estimate.values))
    return np.where(estimate.values > z * np.median(estimate.printed_errors[0]), estimate.values, 0.0)


def shrunk(estimate: Estimate) -> Floats:
    """Return posterior means, before they are made to sum to 1."""
    return posterior_means(estimate.values, float(np.median(estimate.printed_errors[0])))


VIEWS: dict[str, Callable[[Estimate], Floats]] = {
    "clip at 0": lambda estimate: np.clip(estimate.values, 0.0, None),
    "Norm-Sub": lambda estimate: norm(estimate.values),
    "clip and renormalise": renormalised,
    "Base-Cut": base_cut,
    "empirical Bayes": shrunk,
    "empirical Bayes, then Norm-Sub": lambda estimate: norm(shrunk(estimate)),
}


def zipf(values: int) -> Floats:
    """Return shares that fall as the rank to the power of 1.5."""
    shares = np.arange(1.0, values + 1) ** -1.5
    return shares / shares.sum()


def ages() -> Floats:
    """Return a smooth population of 91 ages: two bumps and nobody below 17."""
    age = np.arange(91.0)
    shares = np.exp(-0.5 * ((age - 34) / 11) ** 2) + 0.35 * np.exp(-0.5 * ((age - 55) / 12) ** 2)
    shares[:17] = 0.0
    return shares / shares.sum()


def of_unicode() -> NDArray[np.int64]:
    """Return the characters of every first word of a name, the commonest first, rare ones together."""
    names = (unicodedata.name(chr(code), "") for code in range(sys.maxunicode + 1))
    words = Counter(name.split(" ")[0].split("-")[0] for name in names if name)
    common = sorted((count for count in words.values() if count >= FEWEST), reverse=True)
    return np.array([*common, sum(count for count in words.values() if count < FEWEST)])


def of_rand() -> NDArray[np.int64]:
    """Return the people of every number of visits from 0 to the most; nobody where statsmodels is absent."""
    try:
        from statsmodels.datasets import randhie  # noqa: PLC0415 - takes a second, and may be absent
    except ModuleNotFoundError:
        return np.zeros(0, dtype=np.int64)
    return np.bincount(randhie.load_pandas().data["mdvis"].astype(np.int64))


def of_column(path: Path, column: str) -> NDArray[np.int64]:
    """Return how often each value of a column occurs, numbers in order."""
    with path.open(newline="", encoding="utf-8") as file:
        found = Counter(row[column].strip() for row in csv.DictReader(file, skipinitialspace=True))
    try:
        order = sorted(found, key=float)
    except ValueError:
        order = sorted(found)
    return np.array([found[value] for value in order])


def devices_of(shares: Floats, n: int) -> NDArray[np.int64]:
    """Return whole devices per value, by largest remainder."""
    held = np.floor(shares * n).astype(np.int64)
    held[np.argsort(held - shares * n)[: n - int(held.sum())]] += 1
    return held


def gains(channel: Channel, held: NDArray[np.int64], runs: int) -> tuple[list[float], float, int]:
    """Return the gain of every view, the mean length of a rank set, and the rounds in which all sets hold."""
    inputs = np.repeat(np.arange(len(held)), held)
    truth, estimator, source = held / len(inputs), estimator_for(channel), seeded(7)
    larger = (held[None, :] > held[:, None]).sum(axis=1)
    smaller = (held[None, :] < held[:, None]).sum(axis=1)
    raw, lost, length, right = 0.0, np.zeros(len(VIEWS)), 0.0, 0
    for _ in range(runs):
        estimate = estimator(channel.tally(channel.perturb(inputs, source=source)), len(inputs))
        raw += float(((estimate.values - truth) ** 2).sum())
        lost += [float(((view(estimate) - truth) ** 2).sum()) for view in VIEWS.values()]
        best, worst = estimate.ranks()
        length += float((worst - best + 1).mean()) / runs
        right += bool((best <= 1 + larger).all() and (worst >= len(held) - smaller).all())
    return (raw / lost).tolist(), length, right


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", nargs="?", type=Path, help="a CSV of people")
    parser.add_argument("column", nargs="?", help="its column")
    parser.add_argument("--runs", type=int, default=20)
    words = parser.parse_args()
    asked: list[tuple[str, NDArray[np.int64], float]] = [
        ("ages, smooth", devices_of(ages(), 45_000), 1.0),
        *(("Zipf 1.5", devices_of(zipf(91), 45_000), epsilon) for epsilon in (0.5, 1.0, 2.0)),
        *(("Zipf 1.5", devices_of(zipf(1000), 100_000), epsilon) for epsilon in (0.5, 1.0, 2.0)),
        *(("RAND, visits", of_rand(), epsilon) for epsilon in (0.5, 1.0, 2.0)),
        *(("Unicode's names", of_unicode(), epsilon) for epsilon in (1.0, 2.0)),
    ]
    if words.table:
        held = of_column(words.table, words.column)
        asked += [(f"{words.table.name}, {words.column}", held, epsilon) for epsilon in (0.5, 1.0, 2.0)]
    heads = ["population", "K", "n", "epsilon", *VIEWS, "ranks in a set", "all hold"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for name, held, epsilon in asked:
        if not len(held):
            continue
        found, length, right = gains(subset_selection(len(held), epsilon=epsilon), held, words.runs)
        cells = [
            name,
            f"{len(held):,}",
            f"{int(held.sum()):,}",
            f"{epsilon:g}",
            *(f"{gain:.2f}" for gain in found),
        ]
        print("| " + " | ".join([*cells, f"{length:.0f}", f"{right} of {words.runs}"]) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
