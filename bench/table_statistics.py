"""Statistics of cross tables over simulated rounds: coverage, the size of tests, Cramer's V.

    python bench/table_statistics.py                 1,000 rounds of every case
    python bench/table_statistics.py --rounds 100    fewer, for a look

Devices are drawn from a crowd, answer a table by randomised response, and are estimated as in a release. The
truth is the crowd's own. A table counts families of 45 tests, a table each, that reject anything; the last is
of least squares from a bundle's tables of two attributes. A refusal is of all rounds or of none: no estimate
has a say in it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation import (
    RatioSpan,
    RefusedStatisticError,
    TableNoise,
    TableShares,
    association,
    conditional_shares,
    group_difference,
    group_means,
    holm,
    independence,
    linear_regression,
    odds_ratio,
    paired_regression,
    reweighted_shares,
)
from hubbub.mechanisms import GRR, BundleEstimator, PairedTables, Pooling, grr
from hubbub.testing import seeded
from hubbub_authoring.design.parts import design_parts

Floats = NDArray[np.float64]

MISSING = 0.05
"""Of each attribute."""

TIED = 0.06
"""The share that a dependent table has more in two cells of its diagonal, and less beside them."""

READINGS = (4, 3, 4, 3)
"""Of the attributes of a regression, each with missing; the last one is explained."""

REGRESSORS = [[[0.0, 1.0, 5.0]], [[0.0, 1.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.0, 1.0]]]

KINDS = ("shares", "smallest group", "means", "differences", "odds", "reweighted", "slope", "V", "V shown")
"""V shown is of the rounds alone in which every margin was far enough from 0 for an estimate of V."""


def crowd(groups: int, readings: int, tied: float) -> Floats:
    """Return the shares of a table of two attributes, missing last; groups fall in size."""
    rows, columns = (np.arange(size, 0.0, -1.0) for size in (groups, readings))
    inside = np.outer(rows / rows.sum(), columns / columns.sum())
    inside[:2, :2] += tied * np.array([[1.0, -1.0], [-1.0, 1.0]])
    both = np.pad(inside * (1.0 - MISSING) ** 2, ((0, 1), (0, 1)))
    both[-1, :-1] = MISSING * (1.0 - MISSING) * columns / columns.sum()
    both[:-1, -1] = MISSING * (1.0 - MISSING) * rows / rows.sum()
    both[-1, -1] = MISSING**2
    return both


def rounds(
    channel: GRR, shares: Floats, devices: int, many: int, rng: np.random.Generator
) -> Iterator[TableShares]:
    """Yield the estimates of rounds of devices drawn from a crowd."""
    noise, rows = TableNoise.of(channel), channel.probabilities()
    inverse = np.linalg.inv(rows)
    # Devices are alike, so that their answers are drawn from the mixture of the crowd's rows.
    answers = rng.multinomial(devices, shares.ravel() @ rows, size=many)
    for counts in answers:
        yield TableShares((counts / devices @ inverse).reshape(shares.shape), 1, devices, noise)


def truths(shares: Floats) -> dict[str, Floats]:
    """Return what the statistics are estimates of, from the crowd."""
    inside = shares[:-1, :-1] / shares[:-1, :-1].sum()
    rows, columns = inside.sum(axis=1), inside.sum(axis=0)
    within = inside / rows[:, None]
    x, y = (np.arange(size, dtype=float) for size in inside.shape)
    spread = ((x - x @ rows) ** 2) @ rows
    slope = ((x - x @ rows)[:, None] * (y - y @ columns) * inside).sum() / spread
    phi = ((inside - np.outer(rows, columns)) ** 2 / np.outer(rows, columns)).sum()
    v = math.sqrt(phi / (min(inside.shape) - 1.0))
    odds = inside[0, 0] * inside[1:, 1:].sum() / (inside[0, 1:].sum() * inside[1:, 0].sum())
    return {
        "shares": within[0],
        "smallest group": within[-1],
        "means": within @ y,
        "differences": (within[0] - within[1])[:1],
        "odds": np.array([odds]),
        "reweighted": within.mean(axis=0),
        "slope": np.array([slope]),
        "V": np.array([v]),
        "V shown": np.array([v]),
    }


def spans_of(table: TableShares) -> dict[str, list[RatioSpan]]:
    """Return the intervals of one round, by kind; what is refused is not there."""
    groups, readings = (size - 1 for size in table.shares.shape)
    x, y = (list(map(float, range(size))) for size in (groups, readings))
    within = conditional_shares(table)
    found = {
        "shares": within[0],
        "smallest group": within[-1],
        "means": group_means(table, y),
        "differences": [group_difference(table, 0, 1, 0)],
        "odds": [odds_ratio(table, 0, 0)],
    }
    with contextlib.suppress(RefusedStatisticError):
        found["reweighted"] = reweighted_shares(table, [1.0 / groups] * groups)
    with contextlib.suppress(RefusedStatisticError):
        slope = linear_regression(table, [[x], [y]])[1]
        found["slope"] = [RatioSpan(slope.estimate, slope.low, slope.high, whole=False)]
    with contextlib.suppress(RefusedStatisticError):
        known = association(table)
        found["V"] = [RatioSpan(known.estimate, known.low, known.high, known.whole)]
        if not known.whole:
            found["V shown"] = found["V"]
        found["plug-in"] = [RatioSpan(known.plug_in, 0.0, 1.0, whole=True)]
    return found


def covered(
    shares: Floats, epsilon: float, devices: int, many: int, seed: int
) -> tuple[list[str], float, Floats]:
    """Return the coverage of every kind in words, the share of rejections at .05, and V squared both ways."""
    rng, truth = np.random.default_rng(seed), truths(shares)
    hits: dict[str, list[Floats]] = defaultdict(list)
    squares, rejected = [], 0
    for table in rounds(grr(shares.size, epsilon=epsilon), shares, devices, many, rng):
        found = spans_of(table)
        for kind in KINDS:
            if kind in found:
                hits[kind].append(
                    np.array(
                        [s.low <= t <= s.high for s, t in zip(found[kind], truth[kind], strict=True)],
                        dtype=float,
                    )
                )
        if "V" in found and not found["V"][0].whole:
            squares.append([found["V"][0].estimate ** 2, found["plug-in"][0].estimate ** 2])
        rejected += independence(table).p_value <= 0.05
    said = []
    for kind in KINDS:
        if not hits[kind]:
            said.append("refused")
            continue
        share = np.mean(hits[kind], axis=0)
        said.append(f"{share.min():.3f}" + (f" to {share.max():.3f}" if len(share) > 1 else ""))
    return said, rejected / many, np.mean(squares, axis=0) if squares else np.full(2, np.nan)


def family(epsilon: float, devices: int, many: int, tests: int = 45) -> float:
    """Return the share of families of tests of independent attributes that reject any, after Holm."""
    rng, p_values = np.random.default_rng(45), []
    sizes = [(2 + k % 3, 2 + (k // 3) % 3) for k in range(tests)]
    for groups, readings in sizes:
        shares = crowd(groups, readings, 0.0)
        tables = rounds(grr(shares.size, epsilon=epsilon), shares, devices, many, rng)
        p_values.append([independence(table).p_value for table in tables])
    return float(np.mean([min(holm(each)) <= 0.05 for each in np.array(p_values).T]))


def followers() -> Floats:
    """Return the shares of four attributes: three that hang together, and one that follows them."""
    a, b, c, y = np.indices([size - 1 for size in READINGS])
    chance = 0.1 + 0.08 * a + 0.2 * b + 0.1 * c
    found = np.asarray((3 - a) * (1 + a * b) * (1 + (c == a)) * np.where(y == 1, chance, 1.0 - chance))
    return found / found.sum()


def regressed(epsilon: float, devices: int, many: int) -> str:
    """Return the coverage of the coefficients of least squares from tables of two, or that it is refused."""
    shares, pairs = followers(), list(combinations(range(4), 2))
    channel = design_parts(READINGS, pairs, epsilon=epsilon).channel
    estimator, rng = BundleEstimator(channel, tables=pairs), np.random.default_rng(3)
    cells = np.indices(shares.shape).reshape(4, -1)
    design = np.array(
        [each for own, axis in zip(REGRESSORS, cells, strict=True) for each in np.array(own)[:, axis]]
    )
    x = np.vstack([np.ones(shares.size), design[:-1]])
    truth = np.linalg.solve((x * shares.ravel()) @ x.T, (x * shares.ravel()) @ design[-1])
    held, refused = [], 0
    for seed in range(many):
        people = cells[:, rng.choice(shares.size, devices, p=shares.ravel())].T
        missing = rng.random(people.shape) < MISSING
        people = np.where(missing, np.array(READINGS) - 1, people)
        tosses = channel.tosses(devices, source=seeded(2 * seed))
        counts = channel.tally(channel.answers(tosses, people, source=seeded(2 * seed + 1)))
        values = np.split(estimator(counts, devices).values, np.cumsum(estimator.sizes)[:-1])
        own = {
            pair: each.reshape([READINGS[j] for j in pair]) for pair, each in zip(pairs, values, strict=True)
        }
        tables = PairedTables(Pooling(channel, channel.split(counts)[0]), range(4), own)
        try:
            found = paired_regression(tables, REGRESSORS)
        except RefusedStatisticError:
            refused += 1
            continue
        held.append([each.low <= t <= each.high for each, t in zip(found, truth, strict=True)])
    if not held:
        return "refused"
    share = np.mean(held, axis=0)
    return f"{share.min():.3f} to {share.max():.3f}" + (f", {refused:,} refused" if refused else "")


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1000)
    many = options.parse_args().rounds
    print(f"Coverage of 95 % intervals over {many:,} rounds, least to most of the cells of a kind.\n")
    print("| table | devices | epsilon | " + " | ".join(KINDS) + " | rejects at .05 |")
    print("|" + "---|" * (len(KINDS) + 4))
    strengths = []
    seed = 0
    for groups, readings in ((2, 2), (3, 2), (3, 3)):
        for tied in (0.0, TIED):
            shares = crowd(groups, readings, tied)
            for devices in (5000, 20000):
                for epsilon in (1.0, 2.0):
                    seed += 1
                    said, size, squares = covered(shares, epsilon, devices, many, seed)
                    name = f"{groups} x {readings}, {'dependent' if tied else 'independent'}"
                    print(f"| {name} | {devices:,} | {epsilon:g} | " + " | ".join(said) + f" | {size:.3f} |")
                    strengths.append((name, devices, epsilon, truths(shares)["V"][0] ** 2, *squares))
    print(
        "\nV squared: the crowd's, the mean of estimates, and the mean of what the noisy shares would have.\n"
    )
    print("| table | devices | epsilon | truth | estimate | plug-in |\n|---|---|---|---|---|---|")
    for name, devices, epsilon, *three in strengths:
        print(f"| {name} | {devices:,} | {epsilon:g} | " + " | ".join(f"{each:.4f}" for each in three) + " |")
    print("\nFamilies of 45 tests of independent attributes that reject any at .05, after Holm:\n")
    print("| devices a table | epsilon | share |\n|---|---|---|")
    for devices in (5000, 20000):
        for epsilon in (1.0, 2.0):
            print(f"| {devices:,} | {epsilon:g} | {family(epsilon, devices, many):.3f} |")
    print(
        "\nLeast squares from the six tables of a bundle of four attributes, coverage of its coefficients:\n"
    )
    print("| devices | epsilon | coverage |\n|---|---|---|")
    for devices in (5000, 20000):
        for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0):
            print(f"| {devices:,} | {epsilon:g} | {regressed(epsilon, devices, many)} |", flush=True)


if __name__ == "__main__":
    main()
