"""Intervals of scores of two values, by exact sums over all counts that a round can give."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np
import pytest
from former_intervals import one_gamma_interval
from scipy.stats import binom

from hubbub.estimation import estimator_for
from hubbub.estimation.intervals import MixedLaw, score_interval
from hubbub.estimation.intervals.skew_score import log_tail
from hubbub.mechanisms import grr

Interval = Callable[..., tuple[np.ndarray, np.ndarray]]

LEVEL = 0.95
ROUNDED = 1.0 + 1e-9
"""A sum of probabilities is off by less."""


def law_of_count(held: int, other: int, p: float, q: float) -> np.ndarray:
    """Return the probabilities of 0 to held + other reports for a cell."""
    return np.convolve(binom.pmf(np.arange(held + 1), held, p), binom.pmf(np.arange(other + 1), other, q))


@pytest.mark.parametrize("n", [1, 50, 1000])
def test_tails_are_those_of_all_pairs_of_counts(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(40):
        p, q = np.sort(1.0 / (1.0 + np.exp(rng.uniform(-12, 12, 2))))[::-1]
        held = int(rng.choice([0, 1, n // 20, n // 2, n]))
        exact = law_of_count(held, n - held, p, q)[::-1].cumsum()[::-1]
        counts = np.arange(n + 1.0)
        every = np.ones(n + 1)
        found = np.exp(log_tail(counts, held * every, (n - held) * every, np.array([[p], [q]]) * every))
        rare = (exact > 1e-12) & (exact < 0.05)  # below, the sums by which it is judged are rounded
        np.testing.assert_allclose(found[rare], exact[rare], rtol=1e-5)
        # None that is asked for: an interval of 90 % has tails of .05.
        likely = (exact >= 0.05) & (counts - 0.5 > held * p + (n - held) * q)
        np.testing.assert_allclose(found[likely], exact[likely], rtol=5e-3)


@cache
def spans(n: int, inputs: int, epsilon: float, interval: Interval) -> tuple[np.ndarray, np.ndarray]:
    """Return the simultaneous interval of a cell of randomised response for each of its counts."""
    q = 1.0 / (np.exp(epsilon) + inputs - 1)
    gap = q * np.expm1(epsilon)
    every = np.ones(n + 1)
    law = MixedLaw.of_two_values(n, every * (1 - q) / gap, every * -q / gap)
    z = -NormalDist().inv_cdf((1.0 - LEVEL) / (2 * inputs))
    return interval((np.arange(n + 1) / n - q) / gap, law, n=n, z=z)


def missed(n: int, inputs: int, epsilon: float, held: int, interval: Interval = score_interval) -> float:
    """Return how often the simultaneous interval of a cell misses it: exact, over all of its counts."""
    q = 1.0 / (np.exp(epsilon) + inputs - 1)
    low, high = spans(n, inputs, epsilon, interval)
    truth = held / n
    out = (truth < low - 1e-12) | (truth > high + 1e-12)
    return float(law_of_count(held, n - held, np.exp(epsilon) * q, q)[out].sum())


@pytest.mark.parametrize("inputs", [3, 12, 91, 1000])
@pytest.mark.parametrize("n", [50, 200, 500])
def test_no_cell_misses_more_than_its_part_at_any_epsilon(n: int, inputs: int) -> None:
    """Of cells of no device, few, a tenth, nearly all and all."""
    part = (1.0 - LEVEL) / inputs
    for epsilon in (1.0, 4.0, 8.0, 12.0, 40.0):
        for held in (0, 1, 2, 3, 5, 10, n // 10, int(0.97 * n), n):
            assert missed(n, inputs, epsilon, held) <= part * ROUNDED, (epsilon, held)


def test_one_gamma_law_of_both_kinds_misses_much_more() -> None:
    """Control: own devices that lie and others that land here cancel as skewness."""
    part = (1.0 - LEVEL) / 91
    assert missed(200, 91, 8.0, 1, one_gamma_interval) > 20 * part
    assert missed(200, 91, 8.0, 5, one_gamma_interval) > 3 * part


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_randomised_response_has_the_interval_of_its_tails(epsilon: float) -> None:
    """Against whole numbers of devices tried one by one: those kept are inside, the next one is not."""
    n, counts = 60, np.array([8, 10, 12, 13, 17])
    estimator = estimator_for(grr(5, epsilon=epsilon))
    q = 1.0 / (np.exp(epsilon) + 4)
    p = np.exp(epsilon) * q
    chance = [law_of_count(held, n - held, p, q) for held in range(n + 1)]
    for level in (0.95, 0.99):
        found = estimator(counts, n).intervals(level)
        for count, low, high in zip(counts, found.values_low, found.values_high, strict=True):
            limit = (1.0 - level) / 2.0
            tails = [(each[count:].sum(), each[: count + 1].sum()) for each in chance]
            kept = [held for held in range(n + 1) if min(tails[held]) >= limit]
            assert kept[0] - 1 < n * low <= kept[0]
            assert kept[-1] <= n * high < kept[-1] + 1
