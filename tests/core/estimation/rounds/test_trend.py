"""A trend is what its model says and adds up; a band holds for what was stated of the world."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from hubbub.errors import ParameterError
from hubbub.estimation import smoothed_trend, step_band
from hubbub.estimation.rounds.trend import critical_value

SHARES = np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
ROUNDS = 52


def test_a_trend_is_the_solution_of_the_least_squares_that_it_states() -> None:
    """Given the step, the levels minimise the errors' and the drifts' squares: solved here as a matrix."""
    draws = np.random.default_rng(4)
    walk = np.cumsum(draws.normal(size=(30, 2)), axis=0) * [1.0, 0.3]
    estimates, errors = walk + draws.normal(size=(30, 2)), np.linspace([0.5, 2.0], [2.0, 0.5], 30)
    trend = smoothed_trend(estimates, errors)
    drifts = np.diff(np.eye(30), axis=0)
    for i in range(2):
        assert trend.step[i] > 0
        weights = errors[:, i] ** -2.0
        information = np.diag(weights) + drifts.T @ drifts / trend.step[i] ** 2
        level = np.linalg.solve(information, estimates[:, i] * weights)
        np.testing.assert_allclose(trend.level[:, i], level, rtol=1e-9)
        error = np.sqrt(np.linalg.inv(information).diagonal())
        np.testing.assert_allclose(trend.error[:, i], error, rtol=1e-9)


def test_a_trend_with_a_season_is_the_solution_of_the_least_squares_of_both() -> None:
    """Levels and a place's own part, which add up to 0 over a season, are solved here as one matrix."""
    draws, rounds = np.random.default_rng(9), 40
    places = np.delete(np.arange(rounds + 2), [5, 17]) % 7  # two rounds were not released
    pattern = np.array([0.0, 0.5, -1.0, 2.0, 0.0, -2.0, 0.5])[places][:, None]
    walk = np.cumsum(draws.normal(size=(rounds, 2)), axis=0) * [0.5, 0.1]
    estimates = walk + pattern + draws.normal(size=(rounds, 2))
    errors = np.linspace([0.5, 2.0], [2.0, 0.5], rounds)
    trend = smoothed_trend(estimates, errors, places=places)
    drifts = np.diff(np.eye(rounds), axis=0)
    parts = np.eye(7)[places][:, :6] - np.eye(7)[places][:, 6:]
    for i in range(2):
        weights = np.diag(errors[:, i] ** -2.0)
        both = np.hstack([np.eye(rounds), parts])
        information = both.T @ weights @ both
        if trend.step[i] > 0:
            information[:rounds, :rounds] += drifts.T @ drifts / trend.step[i] ** 2
            found = both @ np.linalg.solve(information, both.T @ weights @ estimates[:, i])
            np.testing.assert_allclose(trend.level[:, i], found, rtol=1e-8, atol=1e-9)
            error = np.sqrt((both @ np.linalg.inv(information) @ both.T).diagonal())
            np.testing.assert_allclose(trend.error[:, i], error, rtol=1e-8)
    assert trend.step[0] > 0
    for bad in (places[:-1], np.arange(rounds) % 30, np.zeros(rounds)):
        with pytest.raises(ParameterError, match="a season must"):
            smoothed_trend(estimates, errors, places=bad)


@pytest.mark.statistical
def test_a_season_that_is_stated_is_followed_and_costs_where_there_is_none() -> None:
    """40 runs: on a weekly pattern the squared error is less with the season, on a flat line it is more."""
    gains = {}
    for kind in ("weekly", "flat"):
        draws, squares = np.random.default_rng(6), np.zeros(3)
        truth = SHARES + 2.0 * (shapes(kind) - SHARES)
        for _ in range(40):
            noise = draws.normal(0.0, 0.02, (ROUNDS, 6))
            estimates = truth + noise - noise.mean(axis=1, keepdims=True)
            errors = np.full((ROUNDS, 6), 0.02 * math.sqrt(5 / 6))
            plain = smoothed_trend(estimates, errors, total=1.0)
            stated = smoothed_trend(estimates, errors, total=1.0, places=np.arange(ROUNDS) % 7)
            assert np.abs(stated.level.sum(axis=1) - 1.0).max() <= 1e-12
            for i, found in enumerate((estimates, plain.level, stated.level)):
                squares[i] += np.square(found - truth).mean()
        gains[kind] = squares[0] / squares[1:]
    assert gains["weekly"][1] > gains["weekly"][0]
    assert gains["flat"][1] < gains["flat"][0]
    # Seven numbers of 52 rounds: what is known best has 52/7 times less variance, in either crowd.
    for kind in gains:
        assert gains[kind][1] == pytest.approx(ROUNDS / 7, rel=0.15)


def shapes(kind: str) -> np.ndarray:
    """Return the true shares of six cells over the rounds, summing to one."""
    t, off = np.arange(ROUNDS)[:, None], np.array([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    moved = {
        "flat": 0.0 * t,
        "slow drift": 0.1 * t / ROUNDS,
        "jump": 0.1 * (t >= ROUNDS // 2),
        "weekly": 0.03 * (t % 7 == 6),
        "walk": 0.0 * t,  # each run draws its own
    }[kind]
    return SHARES + moved * off


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "gain"), [("flat", 38.9), ("slow drift", 20.9), ("walk", 8.2), ("jump", 8.4), ("weekly", 7.7)]
)
def test_a_trend_that_adds_up_is_nearer_to_the_truth_than_one_that_does_not(kind: str, gain: float) -> None:
    """40 runs of noise that sums to nothing: the sum is 1 to 1e-12, and squared errors are no larger.

    By itself every cell has its own gain, and sums are off by more than .001 somewhere. The whole has so many
    times less squared error than raw rounds as in 1,200 runs; of 40 the standard error is 9, 6, 4, 3 and 2 %,
    so that 30 % are three of them or more. Seeded. In the walk all cells move by a fifth of a raw error.
    """
    draws = np.random.default_rng(6)
    squares, off = np.zeros(3), 0.0
    for _ in range(40):
        truth = shapes(kind)
        if kind == "walk":
            walk = np.cumsum(draws.normal(0.0, 0.004, (ROUNDS, 6)), axis=0)
            truth += walk - walk.mean(axis=1, keepdims=True)
        noise = draws.normal(0.0, 0.02, (ROUNDS, 6))
        estimates = truth + noise - noise.mean(axis=1, keepdims=True)
        errors = np.full((ROUNDS, 6), 0.02 * math.sqrt(5 / 6))
        apart, whole = smoothed_trend(estimates, errors), smoothed_trend(estimates, errors, total=1.0)
        assert np.abs(whole.level.sum(axis=1) - 1.0).max() <= 1e-12
        off = max(off, np.abs(apart.level.sum(axis=1) - 1.0).max())
        for i, found in enumerate((estimates, apart.level, whole.level)):
            squares[i] += np.square(found - truth).mean()
    assert off > 1e-3
    assert squares[2] <= squares[1]
    assert squares[0] / squares[2] == pytest.approx(gain, rel=0.3)


def test_noise_alone_is_nearly_the_mean_and_bad_tables_are_refused() -> None:
    draws = np.random.default_rng(5)
    trend = smoothed_trend(draws.normal(size=(60, 1)), np.ones((60, 1)))
    assert np.ptp(trend.level) < 0.7
    with pytest.raises(ParameterError, match="two rounds or more"):
        smoothed_trend([[1.0]], [[1.0]])
    with pytest.raises(ParameterError, match="errors above 0"):
        smoothed_trend([[1.0], [1.0]], [[1.0], [0.0]])
    for delta in (-0.1, math.nan):
        with pytest.raises(ParameterError, match="delta must be at least 0"):
            step_band([[1.0], [1.0]], [[1.0], [1.0]], delta=delta)


def test_critical_values_are_the_quantiles_of_a_shifted_normal_law() -> None:
    """The three reckoned beforehand, the two-sided point without bias, and another library's law."""
    assert critical_value(0.5) == pytest.approx(2.181477, abs=5e-7)
    assert critical_value(1.0) == pytest.approx(2.646146, abs=5e-7)
    assert critical_value(2.0) == pytest.approx(3.644854, abs=5e-7)
    assert critical_value(0.0) == pytest.approx(norm.ppf(0.975), abs=1e-9)
    for bias in (0.1, 1.7, 5.0, 30.0):
        c = critical_value(bias)
        assert norm.cdf(c - bias) - norm.cdf(-c - bias) == pytest.approx(0.95, abs=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.0, 0.042, 0.083, 0.167, 0.417, 0.833, 1.67])
@pytest.mark.parametrize("kind", ["straight", "zigzag", "jump at the end"])
def test_a_band_covers_whatever_stays_within_the_stated_step(kind: str, delta: float) -> None:
    """200 runs of 52 rounds: every round is covered in at least binomial(200, .95)'s quantile at 1e-8.

    Errors are 1, delta in these. The worst shapes go as far as is stated in every round.
    """
    t, runs = np.arange(ROUNDS), 200
    truth = {
        "straight": delta * t,
        "zigzag": delta * np.abs((t % 20) - 10.0),
        "jump at the end": delta * np.maximum(t - 40, 0),
    }[kind][:, None]
    draws = np.random.default_rng(7)
    found = step_band(truth + draws.normal(size=(ROUNDS, runs)), np.ones((ROUNDS, runs)), delta=delta)
    covered = (np.abs(found.estimate - truth) <= found.half).sum(axis=1)
    assert covered.min() >= binom.ppf(1e-8, runs, 0.95)
    assert found.half.max() <= norm.ppf(0.975) + 1e-9
    widths = {0.0: 0.138, 0.042: 0.29, 0.083: 0.361, 0.167: 0.451, 0.417: 0.598, 0.833: 0.73, 1.67: 0.934}
    assert found.half[26].mean() / norm.ppf(0.975) == pytest.approx(widths[delta], rel=0.15)


def test_a_band_looks_at_designs_alone() -> None:
    """Other estimates of the same errors have the same lengths; a noisy round leans on its neighbours."""
    draws = np.random.default_rng(8)
    errors = np.ones((ROUNDS, 1))
    errors[20] = 10.0
    one, other = (step_band(draws.normal(size=(ROUNDS, 1)), errors, delta=0.2) for _ in range(2))
    assert np.array_equal(one.half, other.half)
    assert one.half[20, 0] < 4.0 and one.half[0, 0] > one.half[26, 0]
