"""The distance of the bound of several logistic answers from the largest loss that a search finds.

    python bench/papers/looseness.py             30 records of nine numbers, seeds 0 to 29
    python bench/papers/looseness.py --runs 5

Questions are those of `regression.py`, answers of the record 0. After every answer from the second on, the
filter's loss stands beside the largest log-ratio found: all corners of the box and a thousand points of it,
the best of either kind climbed along every number in turn, in steps that halve. What is found is a lower
bound of the truth, so the looseness printed is an upper bound of the true one.
"""

from __future__ import annotations

import argparse
import itertools
import sys

import numpy as np
from numpy.typing import NDArray
from regression import BUDGET, EPSILON, NUMBERS, RECORD, random_query

from hubbub.filter import BayesianFilter
from hubbub.testing import seeded

POINTS, CLIMBED = 1_000, 16
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=NUMBERS)))


def log_likelihood(
    points: NDArray[np.float64], thetas: NDArray[np.float64], ones: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return all answers' log-likelihood at each point, shape (points,), by docs/filter-arithmetic.md."""
    scores = 1.0 / (1.0 + np.exp(-(points @ thetas[:, 1:].T + thetas[:, 0])))
    low = 1.0 / (np.exp(EPSILON) + 1.0)
    chance = low + scores * (1.0 - 2.0 * low)
    return np.asarray(np.log(np.where(ones, chance, 1.0 - chance)).sum(axis=1))


def largest(
    thetas: NDArray[np.float64], ones: NDArray[np.bool_], sign: float, rng: np.random.Generator
) -> float:
    """Return the most that sign times the log-likelihood was seen to reach in the box."""
    starts = np.concatenate([CORNERS, rng.uniform(-1.0, 1.0, (POINTS, NUMBERS))])
    values = sign * log_likelihood(starts, thetas, ones)
    best = np.argsort(-values)[:CLIMBED]
    points, values, step = starts[best], values[best], 0.5
    moves = np.concatenate([np.eye(NUMBERS), -np.eye(NUMBERS)])
    while step > 1e-6:
        tried = np.clip(points[:, None, :] + step * moves, -1.0, 1.0)
        found = sign * log_likelihood(tried.reshape(-1, NUMBERS), thetas, ones).reshape(len(points), -1)
        place = found.argmax(axis=1)
        better = found.max(axis=1) > values
        if better.any():
            rows = np.flatnonzero(better)
            points[rows], values[rows] = tried[rows, place[rows]], found[rows, place[rows]]
        else:
            step /= 2.0
    return float(values.max())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    above: list[float] = []
    understated = 0
    for seed in range(options.runs):
        rng, source = np.random.default_rng(seed), seeded(seed)
        account, thetas, ones = BayesianFilter(BUDGET), [], []
        while True:
            query = random_query("logistic", rng)
            ticket = account.reserve("numbers", query)
            if ticket is None:
                break
            symbol = query.perturb(RECORD, source=source)
            account.record(ticket, symbol)
            thetas.append([query.intercept, *query.coefficients])
            ones.append(symbol == 1)
            if len(ones) < 2:
                continue
            asked = (np.array(thetas), np.array(ones))
            found = largest(*asked, 1.0, rng) + largest(*asked, -1.0, rng)
            understated += account.loss < found - 1e-9
            above.append(account.loss / found - 1.0)
    shares = np.array(above)
    print(f"accounts     {len(shares)} of {options.runs} records, 2 answers and more")
    print(f"understated  {understated}")
    print(
        f"above what was found  median {np.median(shares):.2%}, p90 {np.quantile(shares, 0.9):.2%}, ", end=""
    )
    print(f"p99 {np.quantile(shares, 0.99):.2%}, largest {shares.max():.2%}")
    print(
        f"by less than 0.01 %   {np.mean(shares < 1e-4):.0%}; by more than 10 %: {np.mean(shares > 0.1):.0%}"
    )
    return int(understated > 0)


if __name__ == "__main__":
    sys.exit(main())
