"""Least squares from tables of two attributes at a time, beside least squares of the people themselves."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.estimation import RefusedStatisticError, paired_regression
from hubbub.mechanisms import BundleEstimator, PairedTables, Pooling, SampledParts
from hubbub.testing import seeded
from hubbub_authoring.design.parts import design_parts

READINGS, PAIRS = (4, 3, 4, 3), list(combinations(range(4), 2))
COLUMNS = [[[0.0, 1.0, 5.0]], [[0.0, 1.0]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [[0.0, 1.0]]]


def crowd(missing: float) -> np.ndarray:
    """Shares of every combination: three that hang together, and one of two readings that follows them."""
    found = np.zeros(READINGS)
    for a, b, c, y in product(range(3), range(2), range(3), range(2)):
        chance = 0.1 + 0.08 * a + 0.2 * b + 0.1 * c
        found[a, b, c, y] = (3 - a) * (1 + a * b) * (1 + (c == a)) * (chance if y else 1.0 - chance)
    found /= found.sum()
    for axis, size in enumerate(READINGS):
        lost = missing * found.sum(axis=axis, keepdims=True)
        found *= 1.0 - missing
        found += np.where(
            np.arange(size).reshape([-1 if j == axis else 1 for j in range(4)]) == size - 1, lost, 0
        )
    return found


def least_squares(shares: np.ndarray) -> np.ndarray:
    """Of everybody who has all attributes, by the people's own rows."""
    rows, weights = [], []
    for cell in product(range(3), range(2), range(3), range(2)):
        a, b, c, y = cell
        rows.append([1.0, (0.0, 1.0, 5.0)[a], float(b), float(c == 1), float(c == 2), float(y)])
        weights.append(np.sqrt(shares[cell]))
    scaled = np.array(rows) * np.array(weights)[:, None]
    return np.linalg.lstsq(scaled[:, :-1], scaled[:, -1], rcond=None)[0]


def tables(
    channel: SampledParts, counts: np.ndarray, n: int, axes: tuple[int, ...] = (0, 1, 2, 3)
) -> PairedTables:
    estimator = BundleEstimator(channel, tables=PAIRS)
    values = np.split(estimator(counts, n).values, np.cumsum(estimator.sizes)[:-1])
    shares = {pair: own.reshape([READINGS[j] for j in pair]) for pair, own in zip(PAIRS, values, strict=True)}
    return PairedTables(Pooling(channel, channel.split(counts)[0]), axes, shares)


class Exact(PairedTables):
    """Tables without any noise."""

    def __init__(self, pooling: Pooling, shares: np.ndarray) -> None:
        found = {pair: shares.sum(axis=tuple({0, 1, 2, 3} - set(pair))) for pair in PAIRS}
        super().__init__(pooling, (0, 1, 2, 3), found)


@pytest.fixture(scope="module")
def channel() -> SampledParts:
    return design_parts(READINGS, PAIRS, epsilon=3.0).channel


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_without_noise_it_is_least_squares_of_the_people(channel: SampledParts, missing: float) -> None:
    shares = crowd(missing)
    assert abs(shares.sum() - 1.0) < 1e-12
    exact = Exact(Pooling(channel, np.full(len(channel.parts), 10**6)), shares)
    found = [each.estimate for each in paired_regression(exact, COLUMNS)]
    assert found == pytest.approx(least_squares(shares), abs=1e-9)


def test_intervals_hold_and_are_as_wide_as_estimates_are_spread(channel: SampledParts) -> None:
    """200 rounds of 8,000 devices, a tenth missing, seed 4: each coefficient is held 175 to 200 times.

    At .95 that fails once in 10^5 for each of five; spreads are within a quarter, 5 errors of 200 rounds.
    """
    shares, n = crowd(0.1), 8000
    truth, rng, found = least_squares(shares), np.random.default_rng(4), []
    for seed in range(200):
        people = np.stack(np.unravel_index(rng.choice(shares.size, n, p=shares.ravel()), READINGS), axis=1)
        tosses = channel.tosses(n, source=seeded(2 * seed))
        counts = channel.tally(channel.answers(tosses, people, source=seeded(2 * seed + 1)))
        found.append(
            [
                (each.estimate, each.low, each.high)
                for each in paired_regression(tables(channel, counts, n), COLUMNS)
            ]
        )
    estimates, low, high = np.moveaxis(np.array(found), 2, 0)
    held = ((low <= truth) & (truth <= high)).sum(axis=0)
    assert held.min() >= 175
    stated = (high - low).mean(axis=0) / (2 * 1.959964)
    assert np.abs(stated / estimates.std(axis=0) - 1.0).max() < 0.25


def test_the_order_of_attributes_changes_nothing(channel: SampledParts) -> None:
    rng, n = np.random.default_rng(6), 20_000
    people = np.stack(
        np.unravel_index(rng.choice(crowd(0.1).size, n, p=crowd(0.1).ravel()), READINGS), axis=1
    )
    counts = channel.tally(channel.answers(channel.tosses(n, source=seeded(1)), people, source=seeded(2)))
    wanted: dict[object, object] = {}
    for order in permutations(range(3)):
        columns = [COLUMNS[axis] for axis in (*order, 3)]
        names = [0, *((axis, k) for axis in order for k in range(len(COLUMNS[axis])))]
        found = paired_regression(tables(channel, counts, n, (*order, 3)), columns)
        for name, each in zip(names, found, strict=True):
            known = wanted.setdefault(name, (each.estimate, each.low, each.high))
            assert (each.estimate, each.low, each.high) == pytest.approx(known, rel=1e-9)


def test_too_few_reports_are_refused_whatever_they_say() -> None:
    channel = design_parts(READINGS, PAIRS, epsilon=0.5).channel
    reports = np.full(len(channel.parts), 100)
    for shares in (crowd(0.0), crowd(0.1)):
        with pytest.raises(RefusedStatisticError, match="least eigenvalue of 4 errors"):
            paired_regression(Exact(Pooling(channel, reports), shares), COLUMNS)


def test_a_part_of_three_attributes_is_refused() -> None:
    channel = design_parts(READINGS, [(0, 1, 2), (0, 3), (1, 3), (2, 3)], epsilon=3.0).channel
    with pytest.raises(ParameterError, match="a part of three"):
        Exact(Pooling(channel, np.full(len(channel.parts), 10**6)), crowd(0.0))
