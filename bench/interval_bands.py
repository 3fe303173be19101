"""The coverage of the bands of cumulative curves and of their quartiles.

    python bench/interval_bands.py               some minutes
    python bench/interval_bands.py --runs 20     fewer rounds of every case

Every case fixes the devices' inputs, perturbs them again and again through the channel itself, and asks in
how many rounds the band of 95 % holds the whole true curve, and the intervals of the three quartiles all
three. The control is the same band at half its width. Releases state the curves of trees, and of `optimal`
where it was searched for curves; those of the other mechanisms are what `Estimate.cumulative` gives to a
program. Rounds without a curve, since nobody seems to have a value, are counted by themselves.

One-sided upper bounds of coverage have a false alarm probability of 1e-6 for all of them together; if
that of a released curve lies below .94, or the control's nowhere does, the exit status is 1. Rounds about
1,000 values are of half as many devices at least, as releases ask, and counted by themselves.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np
from interval_cases import POPULATIONS, Case, exists
from interval_coverage import LEAST, upper

from hubbub.testing import seeded

NAMES = ["tree", "tree, oracles grr", "levels", "subset", "unary"]
TREES = NAMES[:2]
SEARCHED = ["optimal, cdf", "optimal, quantiles"]
RELEASED = TREES + SEARCHED
DEVICES = [50, 200, 1000, 5000]
EPSILONS = [1.0, 4.0, 8.0]
LARGE = 1000
LARGE_RUNS = 20
"""Rounds of 1,000 values, of trees."""
LARGE_DEVICES = [500, 5000]
"""The fewest devices at which a release states a curve of so many inputs, and more."""
QUARTILES = (0.25, 0.5, 0.75)
SLACK = 1e-9


@dataclass
class Held:
    """The rounds of a case: all that had a curve, and those in which band, quartiles and control held."""

    none: int = 0
    rounds: int = 0
    band: int = 0
    quartiles: int = 0
    control: int = 0


def judge(case: Case, runs: int) -> Held:
    """Return how often band and quartiles of so many rounds hold."""
    estimator, inputs, source = case.estimator(), case.inputs(), seeded(11)
    channel = estimator.channel  # type: ignore[union-attr]  # all have one
    points, counts = case.points[:-1], np.bincount(inputs, minlength=case.values)[:-1]
    truth = np.cumsum(counts) / counts.sum()
    quartiles = [points[int(np.searchsorted(truth, tau - SLACK))] for tau in QUARTILES]
    half = NormalDist().inv_cdf(1.0 - 0.025 / max(len(points) - 1, 1)) / 2.0
    found = Held()
    for _ in range(runs):
        tally = channel.tally(channel.perturb(inputs, source=source))
        curve = estimator(tally, case.devices).cumulative(0.95)
        if curve is None:
            found.none += 1
            continue
        found.rounds += 1
        found.band += bool(((curve.low <= truth + SLACK) & (truth <= curve.high + SLACK)).all())
        told = zip(map(curve.quantile, QUARTILES), quartiles, strict=True)
        found.quartiles += all(each.low - SLACK <= true <= each.high + SLACK for each, true in told)
        found.control += bool((np.abs(curve.shares - truth) <= half * curve.errors + SLACK).all())
    return found


def cases() -> list[tuple[Case, bool]]:
    """Return the cases, and whether a case has 1,000 values."""
    small = product(NAMES, [5, 91], DEVICES, POPULATIONS, EPSILONS)
    searched = product(SEARCHED, [5, 34], DEVICES, POPULATIONS, EPSILONS)
    large = product(TREES, [LARGE], LARGE_DEVICES, POPULATIONS[:2], EPSILONS)
    every = [(Case(*words), False) for words in (*small, *searched)] + [
        (Case(*words), True) for words in large
    ]
    return [(case, size) for case, size in every if exists(case.mechanism, case.values, case.epsilon)]


def main() -> int:
    """Print the table of what held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100, help="rounds of a case (default: 100)")
    runs = parser.parse_args().runs
    rows: dict[tuple[str, int, float], list[Held]] = {}
    for case, large in cases():
        print(case, file=sys.stderr, flush=True)
        found = judge(case, min(runs, LARGE_RUNS) if large else runs)
        rows.setdefault((case.mechanism, case.values, case.epsilon), []).append(found)
    family, below, caught = 3 * sum(map(len, rows.values())), [], 0
    print("| mechanism | K | epsilon | rounds | no curve | band | least | quartiles | least | control |")
    print("|---" * 10 + "|")
    for (mechanism, values, epsilon), held in rows.items():
        some = [each for each in held if each.rounds]
        total = sum(each.rounds for each in some)
        shown = [f"{sum(each.band for each in some) / total:.3f}"]
        shown.append(f"{min(each.band / each.rounds for each in some):.2f}")
        shown.append(f"{sum(each.quartiles for each in some) / total:.3f}")
        shown.append(f"{min(each.quartiles / each.rounds for each in some):.2f}")
        shown.append(f"{sum(each.control for each in some) / total:.3f}")
        none = sum(each.none for each in held)
        print(f"| {mechanism} | {values:,} | {epsilon:g} | {total:,} | {none} | {' | '.join(shown)} |")
        for each in some:
            least = min(each.band, each.quartiles)
            if upper(least, each.rounds, family) < LEAST:
                below.append(mechanism if values < LARGE else "")
            caught += upper(each.control, each.rounds, family) < LEAST
    released, large = (sum(name in names for name in below) for names in (RELEASED, [""]))
    print(
        f"\n{sum(map(len, rows.values()))} cases; *least* is that of the worst of them. Below {LEAST}: "
        f"{released} of those whose curves are released, {len(below) - released - large} of the others, "
        f"{large} of {LARGE:,} values; of the control {caught}."
    )
    return 1 if released or not caught else 0


if __name__ == "__main__":
    sys.exit(main())
