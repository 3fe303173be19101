"""The change between two rounds covers the true change, memoised or fresh; a trend is what its model says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.errors import ParameterError
from hubbub.estimation import (
    Ends,
    correlation,
    difference,
    effective_sample_size,
    estimator_for,
    shared_devices,
    smoothed_trend,
)
from hubbub.mechanisms import grr
from hubbub.testing import seeded

RUNS = 250
CHANNEL = grr(12, epsilon=1.5)
ESTIMATOR = estimator_for(CHANNEL)
BEFORE = np.repeat(np.arange(12), [60, 40, 20, 10, 10, 10, 10, 10, 10, 10, 5, 5])
AFTER = np.repeat(np.arange(12), [30, 70, 20, 10, 10, 10, 10, 10, 10, 10, 5, 5])


def least_hits(level: float) -> int:
    """Hits that a right cell stays above but once in 10^7, of which this module has fewer than ten."""
    return int(binom.ppf(1e-8, RUNS, level))


def ends(counts: np.ndarray, n: int) -> Ends:
    estimate = ESTIMATOR(counts, n)
    spans = estimate.intervals()
    return Ends(estimate.values, spans.values_low, spans.values_high)


def hits(r: float, before, after) -> np.ndarray:
    """Hits per cell over RUNS pairs of rounds; the two functions return symbols of each round."""
    truth = np.bincount(AFTER, minlength=12) / len(AFTER) - np.bincount(BEFORE, minlength=12) / len(BEFORE)
    found = np.zeros(12, dtype=np.int64)
    for _ in range(RUNS):
        first = before()
        second = after(first)
        one, two = (ends(np.bincount(each, minlength=12), 200) for each in (first, second))
        change = difference(one, two, correlation=r)
        found += (change.low <= truth) & (truth <= change.high)
    return found


def test_change_of_fresh_rounds_is_covered() -> None:
    """n = 200 twice, 250 pairs: every cell's hits at least the 1e-8 quantile of binomial(250, .94)."""
    source = seeded(21)
    found = hits(
        0.0,
        lambda: CHANNEL.perturb(BEFORE, source=source),
        lambda _: CHANNEL.perturb(AFTER, source=source),
    )
    assert found.min() >= least_hits(0.94)
    assert found.mean() / RUNS < 0.999


def test_change_of_memoised_rounds_is_covered_and_a_wrong_correlation_is_not() -> None:
    """150 of 200 devices in both rounds send the same symbols; the others are 50 other devices.

    Control: a correlation of .995 in place of .75 is too narrow.
    """
    moved = np.flatnonzero(BEFORE != AFTER)
    stays = np.setdiff1d(np.arange(200), moved)[:150]
    assert len(moved) <= 50
    others = np.setdiff1d(np.arange(200), stays)
    found = {}
    for r in (correlation(200, 200, answers="memoised", shared=150), 0.995):
        source = seeded(22)

        def after(first: np.ndarray, source=source) -> np.ndarray:
            second = first.copy()
            second[others] = CHANNEL.perturb(AFTER[others], source=source)
            return second

        found[r] = hits(r, lambda source=source: CHANNEL.perturb(BEFORE, source=source), after)
    assert found[0.75].min() >= least_hits(0.94)
    assert found[0.995].min() < least_hits(0.94)


def test_the_same_devices_with_memoised_answers_have_not_changed() -> None:
    one = ends(np.bincount(CHANNEL.perturb(BEFORE, source=seeded(3)), minlength=12), 200)
    change = difference(one, one, correlation=1.0)
    assert (change.estimate == 0.0).all()
    assert not change.differs.any()
    fresh = difference(one, one)
    # Where an estimate below 0 was read as 0, one arm is nothing and cannot cancel the other.
    assert (change.high - change.low <= fresh.high - fresh.low).all()
    assert (change.high - change.low < 0.5 * (fresh.high - fresh.low)).sum() >= 4


def test_shared_devices_are_those_that_cannot_be_in_one_round_only() -> None:
    assert shared_devices(80, 70, asked=100) == 50
    assert shared_devices(30, 40, asked=100) == 0
    assert shared_devices(30, 40, asked=None) == 0
    with pytest.raises(ParameterError, match="asked must be at least the devices of a round, got 79"):
        shared_devices(80, 70, asked=79)
    with pytest.raises(ParameterError, match="shared must be within 0"):
        correlation(10, 10, answers="memoised", shared=11)


def test_effective_sample_size_of_a_noiseless_sample_is_its_size() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    errors = np.sqrt(shares * (1 - shares) / 250)
    assert effective_sample_size(shares, errors) == pytest.approx(250)
    with pytest.raises(ParameterError, match="errors must be above 0"):
        effective_sample_size(shares, np.zeros(3))


def test_trend_is_the_solution_of_the_least_squares_that_it_states() -> None:
    """Given the step, the levels minimise the errors' and the drifts' squares: solved here as a matrix."""
    draws = np.random.default_rng(4)
    estimates, errors = np.cumsum(draws.normal(size=30)) + draws.normal(size=30), np.linspace(0.5, 2.0, 30)
    trend = smoothed_trend(estimates, errors)
    assert trend.step > 0
    drifts = np.diff(np.eye(30), axis=0)
    information = np.diag(errors**-2.0) + drifts.T @ drifts / trend.step**2
    np.testing.assert_allclose(trend.level, np.linalg.solve(information, estimates / errors**2), rtol=1e-9)
    np.testing.assert_allclose(trend.error, np.sqrt(np.linalg.inv(information).diagonal()), rtol=1e-9)


def test_trend_of_noise_alone_is_nearly_the_mean() -> None:
    draws = np.random.default_rng(5)
    trend = smoothed_trend(draws.normal(size=60), np.ones(60))
    assert np.ptp(trend.level) < 0.7
    with pytest.raises(ParameterError, match="two rounds or more"):
        smoothed_trend([1.0], [1.0])
