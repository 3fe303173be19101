"""Empirical Bayes and rank sets: against slow computations of their definitions, and by how far they help."""

from __future__ import annotations

import numpy as np
import pytest

from hubbub.errors import ParameterError
from hubbub.estimation import empirical_bayes, estimator_for, rank_sets
from hubbub.estimation.shrinkage import posterior_means
from hubbub.mechanisms import subset_selection
from hubbub.testing import seeded


def slow_posterior_means(x: np.ndarray, sigma: float) -> np.ndarray:
    """Return the same by the recipe's plain grid of 2,000 points, run until it stands."""
    grid = np.linspace(0.0, max(x.max(), sigma), 2000)
    squares = 0.5 * ((x[:, None] - grid) / sigma) ** 2
    likelihood = np.exp(-(squares - squares.min(axis=1, keepdims=True)))
    law = np.full(len(grid), 1 / len(grid))
    for _ in range(500):
        law = law * np.mean(likelihood / (likelihood @ law)[:, None], axis=0)
    return (likelihood @ (law * grid)) / (likelihood @ law)


def test_posterior_means_are_those_of_a_fine_grid() -> None:
    """Five hundred shares, most of them near nothing: within a twentieth of an error in the mean."""
    rng = np.random.default_rng(4)
    shares = np.arange(1, 501.0) ** -1.5
    shares /= shares.sum()
    x = shares + 0.004 * rng.normal(size=500)
    found, slow = posterior_means(x, 0.004), slow_posterior_means(x, 0.004)
    assert np.abs(found - slow).mean() < 0.004 / 20
    assert found[0] == pytest.approx(x[0], abs=0.004)


def test_view_sums_to_its_categories_and_hides_what_is_hidden() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1, 2, 3], [30, 4, 5, 1])
    x = rng.normal(0.02, 0.02, 40)
    x[groups == 2] = np.nan
    totals = np.array([0.6, 0.15, 0.2, 0.05])
    view = empirical_bayes(x, np.full(40, 0.02), groups, totals)
    assert np.isnan(view[groups == 2]).all()
    assert (view[groups != 2] >= 0.0).all()
    for group in (0, 1, 3):
        assert view[groups == group].sum() == pytest.approx(totals[group])
    with pytest.raises(ParameterError, match="errors must be above 0"):
        empirical_bayes(x, np.zeros(40), groups, totals)


def test_view_has_a_fraction_of_the_squared_error_where_most_shares_are_nothing() -> None:
    """1,000 values of Zipf 1.5, 100,000 reports, epsilon 1: the gain is about 19.

    Ten rounds; the ratio of the sums has a relative spread of some 3 %, so that below 10 is beyond fifteen of
    its standard deviations: far under 1e-6. Control: to cut at 0 gains less than 3.
    """
    shares = np.arange(1, 1001.0) ** -1.5
    shares /= shares.sum()
    channel = subset_selection(1000, epsilon=1.0)
    estimator = estimator_for(channel)
    errors = estimator.expected_estimate(shares, 100_000).value_errors
    rng = np.random.default_rng(9)
    lost = np.zeros(3)
    one = np.zeros(1000, dtype=np.intp)
    for _ in range(10):
        x = shares + errors * rng.normal(size=1000)
        view = empirical_bayes(x, errors, one, [1.0])
        cut = np.clip(x, 0.0, None)
        lost += [((each - shares) ** 2).sum() for each in (x, view, cut)]
    assert lost[0] / lost[1] > 10
    assert lost[0] / lost[2] < 3


def test_very_many_values_take_a_moment() -> None:
    rng = np.random.default_rng(2)
    x = 1e-5 + 1e-3 * rng.normal(size=100_000)
    view = empirical_bayes(x, np.full(100_000, 1e-3), np.zeros(100_000, dtype=np.intp), [1.0])
    assert view.sum() == pytest.approx(1.0)


def test_rank_sets_are_those_of_every_pair() -> None:
    rng = np.random.default_rng(3)
    middle = rng.uniform(size=60).round(1)
    low, high = middle - rng.uniform(0, 0.2, 60).round(2), middle + rng.uniform(0, 0.2, 60).round(2)
    low[7] = high[7] = np.nan
    best, worst = rank_sets(low, high)
    for i in range(60):
        assert best[i] == 1 + sum(low[j] > high[i] for j in range(60))
        assert worst[i] == 60 - sum(high[j] < low[i] for j in range(60))


def test_rank_sets_of_an_estimate_hold_the_true_ranks() -> None:
    """Fifty rounds of 2,000 devices, ten values: every set holds where the simultaneous intervals do.

    These miss in at most .05 of the rounds, so that more than 14 of 50 has a probability below 1e-7.
    """
    channel = subset_selection(10, epsilon=2.0)
    estimator = estimator_for(channel)
    held = np.array([600, 400, 300, 200, 150, 120, 100, 70, 40, 20])
    inputs = np.repeat(np.arange(10), held)
    missed, told = 0, 0
    for seed in range(50):
        estimate = estimator(channel.tally(channel.perturb(inputs, source=seeded(seed))), 2000)
        best, worst = estimate.ranks()
        missed += not ((best <= np.arange(1, 11)) & (np.arange(1, 11) <= worst)).all()
        told += int((best > 1).sum() + (worst < 10).sum())
    assert missed <= 14
    assert told > 50 * 6


def test_views_of_an_estimate_are_of_its_own_numbers() -> None:
    channel = subset_selection(30, epsilon=1.0)
    estimate = estimator_for(channel, category_of=np.repeat([0, 1], [20, 10]))(
        channel.tally(channel.perturb(np.arange(900) % 7, source=seeded(5))), 900
    )
    view = estimate.empirical_bayes()
    consistent = estimate.consistent()
    wanted = empirical_bayes(
        estimate.values, estimate.printed_errors[0], np.repeat([0, 1], [20, 10]), consistent.categories
    )
    np.testing.assert_array_equal(view.values, wanted)
    np.testing.assert_array_equal(view.categories, consistent.categories)
