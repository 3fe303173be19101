"""A bundle of a file's columns, counted again and again: errors beside what was planned, margins, forgers.

    make evidence NAME=bundle ARGS="people.csv"                 every pair of its columns
    make evidence NAME=bundle ARGS="people.csv --columns a,b"   of some
    make evidence NAME=bundle ARGS="people.csv --replays 5"     fewer counts

Every line of the CSV file is a device. Numbers with more than twenty values are cut at their ninths; other
columns have a reading for each of their values; each has "missing" beside. In each of 20 replays all coins
and all noise are new. Coverage is of 95 % intervals of the devices counted, of cells with more than 30
reports about their table from who is in them. Forgers send 1 % of the reports, all of the rarest part.
Families are the 45 tests of ten attributes of 2 to 4 readings that are independent, of 20,000 devices.
"""

from __future__ import annotations

import argparse
import csv
import math
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation import TableShares, holm, independence
from hubbub.mechanisms import (
    PART_ALARM,
    BundleEstimator,
    PooledNoise,
    Pooling,
    SampledParts,
    part_chances,
)
from hubbub.testing import seeded
from hubbub_authoring.design.parts import design_parts

EPSILONS, FEW, MOST_VALUES, HONEST, FAMILIES = (1.0, 2.0, 4.0), 30, 20, 10_000, 200
Floats = NDArray[np.float64]


def readings_of(column: list[str]) -> NDArray[np.intp]:
    """Return the reading of every device, from 0."""
    try:
        numbers = np.array(column, dtype=np.float64)
    except ValueError:
        numbers = np.empty(0)
    if len(np.unique(numbers)) > MOST_VALUES:
        cuts = np.unique(np.quantile(numbers, np.arange(1, 9) / 9.0))
        column = np.searchsorted(cuts, numbers, side="left").astype(str).tolist()
    return np.unique(column, return_inverse=True)[1].astype(np.intp)


def table_of(people: NDArray[np.intp], members: tuple[int, ...], channel: SampledParts) -> Floats:
    """Return the true shares of a table."""
    shape = [channel.readings[member] for member in members]
    cells = np.ravel_multi_index(tuple(people[:, list(members)].T), shape)
    return np.bincount(cells, minlength=math.prod(shape)) / len(people)


def replays(people: NDArray[np.intp], epsilon: float, many: int) -> list[str]:
    """Return a line of the table: what was found at an epsilon."""
    readings = [int(column.max()) + 2 for column in people.T]
    pairs = list(combinations(range(len(readings)), 2))
    n, channel = len(people), design_parts(readings, pairs, epsilon=epsilon).channel
    estimator = BundleEstimator(channel, tables=pairs)
    truth = np.concatenate([table_of(people, pair, channel) for pair in pairs])
    of_table = np.repeat(np.arange(len(pairs)), estimator.sizes)
    pooled, alone, stated, apart, held, judged = 0.0, 0.0, 0.0, 0.0, 0, 0
    own = {part.members: number for number, part in enumerate(channel.parts)}
    for seed in range(many):
        tosses = channel.tosses(n, source=seeded(2 * seed))
        counts = channel.tally(channel.answers(tosses, people, source=seeded(2 * seed + 1)))
        found, (reports, cells) = estimator(counts, n), channel.split(counts.astype(np.float64))
        pooled += float(((found.values - truth) ** 2).sum())
        stated += float((found.value_errors**2).sum())
        margins = np.split(found.categories, np.cumsum(readings)[:-1])
        for number, pair in enumerate(pairs):
            values = found.values[of_table == number].reshape([readings[member] for member in pair])
            for axis, member in enumerate(pair):
                apart = max(apart, float(np.abs(values.sum(axis=1 - axis) - margins[member]).max()))
            if (part := own.get(pair)) is not None:
                support = channel.oracles[part].levels[0].support
                p, q = float(support.p), float(support.q)
                shares = (cells[part] / reports[part] - q) / (p - q)
                alone += float(((shares - truth[of_table == number]) ** 2).sum())
        spans = found.intervals()
        about = np.array([reports[own[pair]] if pair in own else np.nan for pair in pairs])[of_table]
        common = about * truth > FEW
        held += int(((spans.values_low <= truth) & (truth <= spans.values_high))[common].sum())
        judged += int(common.sum())
    planned = float((estimator.uniform_estimate(n).value_errors ** 2).sum()) * many
    every = len(own.keys() & set(pairs)) == len(pairs)
    return [
        f"{epsilon:g}",
        str(len(channel.parts)),
        f"{pooled / planned:.3f}",
        f"{pooled / stated:.3f}",
        f"{pooled / alone:.3f}" if every else "-",
        f"{apart:.1e}",
        f"{held / judged:.3f} of {judged:,}" if judged else "-",
        f"{math.sqrt(pooled / many / len(truth)):.4f}",
    ]


def alarms(channel: SampledParts, n: int, forged: int, rounds: int) -> float:
    """Return in how many rounds a part is called out; where reports are forged, theirs."""
    rng, shares = np.random.default_rng(5), np.array([part.share for part in channel.parts]) / 2**32
    rarest, called = int(shares.argmin()), 0
    spread = np.sqrt(n * shares * (1.0 - shares))
    for _ in range(rounds):
        reports = rng.multinomial(n - forged, shares)
        reports[rarest] += forged
        if (reports < n * shares + 3.0 * spread).all():  # no tail is near an alarm
            continue
        called += bool(
            (part_chances(channel, reports)[[rarest] if forged else slice(None)] <= PART_ALARM).any()
        )
    return called


def families(epsilon: float, rounds: int) -> float:
    """Return the share of rounds in which any of 45 tests of independent attributes rejects, after Holm."""
    rng, readings, n = np.random.default_rng(9), [3 + k % 3 for k in range(10)], 20_000
    pairs = list(combinations(range(10), 2))
    channel = design_parts(readings, pairs, epsilon=epsilon).channel
    estimator, rejected = BundleEstimator(channel, tables=pairs), 0
    crowds = [np.append(0.95 * np.arange(r - 1, 0, -1.0) / math.comb(r, 2), 0.05) for r in readings]
    for seed in range(rounds):
        people = np.stack([rng.choice(len(crowd), n, p=crowd) for crowd in crowds], axis=1)
        counts = channel.tally(
            channel.answers(channel.tosses(n, source=seeded(2 * seed)), people, source=seeded(2 * seed + 1))
        )
        values = np.split(estimator(counts, n).values, np.cumsum(estimator.sizes)[:-1])
        pooling, p_values = Pooling(channel, channel.split(counts)[0]), []
        for pair, own in zip(pairs, values, strict=True):
            shape = [readings[member] for member in pair]
            table = TableShares(own.reshape(shape), 1, n, PooledNoise(pooling, pair))
            p_values.append(independence(table).p_value)
        rejected += min(holm(p_values)) <= 0.05
    return rejected / rounds


def told(cells: int, epsilon: float) -> float:
    """Return what a report by subset selection of the best size tells of any component of a table."""
    a = math.exp(epsilon)
    near = cells / (a + 1.0)
    sizes = {min(max(size, 1), cells - 1) for size in (math.floor(near), math.ceil(near))}
    return max((a - 1) ** 2 * d * (cells - d) / ((cells - 1) * (cells + (a - 1) * d) ** 2) for d in sizes)


def ways(many: int, readings: int, epsilon: float) -> list[tuple[str, float]]:
    """Return the variance of all pairs by ways of asking, over that of a bundle; devices spread evenly."""
    pairs = list(combinations(range(many), 2))
    own = 2.0 * (readings - 1) / readings**2 + ((readings - 1) / readings) ** 2
    bundle = design_parts([readings] * many, pairs, epsilon=epsilon).total
    cells = readings * readings
    alone = len(pairs) * own * (len(pairs) / told(cells, epsilon) - 1.0)
    split = len(pairs) * own * (1.0 / told(cells, epsilon / len(pairs)) - 1.0)
    joint = len(pairs) * own * (1.0 / told(readings**many, epsilon) - 1.0)
    found = {"each table by its own part": alone, "epsilon split over all": split, "one table of all": joint}
    return [(name, each / bundle) for name, each in found.items()]


def sampled_with_fakes(many: int, readings: int, epsilon: float) -> float:
    """Return the epsilon of a whole record where one attribute is answered and the others are made up.

    The one answered is drawn, and answered by randomised response with ln(many (e^epsilon - 1) + 1); the
    others are uniform, and nobody is told which. Every report is enumerated for two records that differ
    everywhere; by symmetry no others are told apart better.
    """
    larger = many * (math.exp(epsilon) - 1.0) + 1.0
    p, q, fake = larger / (larger + readings - 1), 1.0 / (larger + readings - 1), 1.0 / readings
    reports = np.indices([readings] * many).reshape(many, -1)

    def chances(record: int) -> Floats:
        held = np.where(reports == record, p, q)
        found: Floats = held.mean(axis=0) * fake ** (many - 1)
        return found

    return float(np.log(chances(0) / chances(1)).max())


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path, help="a CSV file with a line of names")
    parser.add_argument("--columns", help="some of its columns, with commas between")
    parser.add_argument("--replays", type=int, default=20)
    asked = parser.parse_args()
    with asked.file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    names = asked.columns.split(",") if asked.columns else list(rows[0])
    people = np.stack([readings_of([row[name] for row in rows]) for name in names], axis=1)
    sizes = ", ".join(str(int(column.max()) + 1) for column in people.T)
    print(f"{len(people):,} devices; readings: {sizes}; {asked.replays} replays\n")
    print("| epsilon | parts | error over plan | over stated | pooled over each alone | margins differ by "
          "| coverage of cells | root mean square error |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for epsilon in EPSILONS:
        print(f"| {' | '.join(replays(people, epsilon, asked.replays))} |", flush=True)
    readings = [int(column.max()) + 2 for column in people.T]
    pairs = list(combinations(range(len(readings)), 2))
    channel, n = design_parts(readings, pairs, epsilon=1.0).channel, len(people)
    print(f"\n| rounds of {n:,} | forged into one part | that raise an alarm |\n|---|---|---|")
    for forged, rounds in ((0, HONEST), (n // 100, HONEST // 10)):
        print(f"| {rounds:,} | {forged:,} | {alarms(channel, n, forged, rounds):,} |")
    print(f"\n| epsilon | families of 45 tests, of {FAMILIES}, that reject any |\n|---|---|")
    for epsilon in EPSILONS[:2]:
        print(f"| {epsilon:g} | {families(epsilon, FAMILIES):.4f} |")
    print(
        "\n| all pairs of ten attributes of four readings, epsilon 1 | variance over a bundle's |\n|---|---|"
    )
    for name, ratio in ways(10, 4, 1.0):
        print(f"| {name} | {ratio:,.2f} |")
    print("\n| one attribute answered, others made up, sold as 1 | epsilon of a record |\n|---|---|")
    for many in (2, 3, 10):
        print(f"| {many} attributes | {sampled_with_fakes(many, 3, 1.0):.4f} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
