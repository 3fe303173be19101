"""The poison margin is the least number of forged reports that moves an estimate out of its interval."""

from __future__ import annotations

import math
import time
from statistics import NormalDist

import numpy as np
import pytest

from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator
from hubbub.estimation.inverses.inversion import invert
from hubbub.mechanisms import grr
from hubbub_authoring.mechanisms import boosted, pbgrr

CHANNELS = {
    "grr": (grr(5, epsilon=1.0), None),
    "grr in groups": (grr(5, epsilon=1.0), [0, 1, 0, 2, 1]),
    "unequal sizes": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), None),
    "coarser groups": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), [1, 0, 0, 0, 1, 1]),
    "groups across": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), [0, 1, 2, 1, 0, 2]),
    "one group": (pbgrr([2, 2], epsilon=2.0, boost_epsilon=1.0), [0, 0, 0, 0]),
    "category alone": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=0.0), None),
    "dense, more symbols": (boosted(4, epsilon=2.0, missing="input"), [0, 0, 1, 1, 2]),
    "dense, square": (DenseChannel(grr(4, epsilon=1.5).weights()), None),
    "dense, equal rows": (DenseChannel(np.array([[4, 2, 2], [2, 4, 2], [2, 4, 2]])), [0, 1, 1]),
}


def made(name):
    channel, groups = CHANNELS[name]
    return InverseEstimator(channel, category_of=None if groups is None else np.array(groups))


def crowd(estimator, n, seed):
    channel = estimator.channel
    values = np.random.default_rng(seed).integers(0, channel.inputs, n)
    return np.bincount(channel.perturb(values), minlength=channel.outputs)


@pytest.mark.parametrize("name", CHANNELS)
def test_reach_is_the_extremes_of_the_rows(name):
    channel, groups = CHANNELS[name]
    inverse = invert(channel, category_of=None if groups is None else np.array(groups))
    each = [inverse.solve(row) for row in np.eye(channel.outputs)]
    values, categories = (np.array([getattr(s, part) for s in each]) for part in ("values", "categories"))
    reach = inverse.reach()
    for table, low, high in (
        (values, reach.values_low, reach.values_high),
        (categories, reach.categories_low, reach.categories_high),
    ):
        np.testing.assert_allclose(low, table.min(axis=0), atol=1e-9)
        np.testing.assert_allclose(high, table.max(axis=0), atol=1e-9)


@pytest.mark.parametrize("name", CHANNELS)
def test_margin_is_the_least_number_of_forged_reports(name):
    """Forged reports are really added, of every symbol, and the estimate made anew."""
    estimator = made(name)
    n = 400
    counts = crowd(estimator, n, 5)
    honest, margin = estimator(counts, n), estimator(counts, n).poison_margin(0.9)
    assert margin.level == 0.9
    z = NormalDist().inv_cdf(0.95)

    def moves(k):
        changed = [estimator(counts + k * symbol, n + k) for symbol in np.eye(len(counts), dtype=np.int64)]
        return (
            np.abs(np.array([c.values for c in changed]) - honest.values).max(axis=0),
            np.abs(np.array([c.categories for c in changed]) - honest.categories).max(axis=0),
        )

    for part, half in (
        (0, z * honest.printed_errors[0]),
        (1, z * honest.printed_errors[1]),
    ):
        found = (margin.values, margin.categories)[part]
        for cell, k in enumerate(found.tolist()):
            if math.isnan(k):
                assert math.isnan((honest.values, honest.categories)[part][cell])
                continue
            if math.isinf(k):
                assert moves(10**9)[part][cell] < half[cell] + 1e-12
                continue
            assert k == int(k) >= 1
            assert moves(int(k))[part][cell] >= half[cell] * (1 - 1e-9)
            if k > 1:
                assert moves(int(k) - 1)[part][cell] < half[cell] * (1 + 1e-9)
    assert np.isfinite(margin.categories).any() or name == "one group"


def test_an_interval_wider_than_any_report_can_reach_has_no_margin():
    channel = grr(3, epsilon=0.01)
    estimate = InverseEstimator(channel)(np.array([1, 0, 0]), 1)
    assert np.isinf(estimate.poison_margin(1 - 1e-15).values).any()


def test_hidden_values_have_no_margin_and_their_category_has_one():
    estimator = made("category alone")
    margin = estimator(crowd(estimator, 300, 2), 300).poison_margin()
    assert np.isnan(margin.values).tolist() == [False] + [True] * 5
    assert np.isfinite(margin.categories).all()


def test_a_category_of_everyone_has_no_error_and_cannot_be_moved():
    estimator = made("one group")
    estimate = estimator(np.array([91, 112, 90, 107]), 400)
    assert estimate.category_errors.tolist() == [0.0]
    assert math.isinf(estimate.poison_margin().categories[0])


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_outside_its_range_is_refused(level):
    estimator = made("grr")
    with pytest.raises(ParameterError, match="level"):
        estimator(crowd(estimator, 10, 1), 10).poison_margin(level)


def test_a_hundred_thousand_values_take_no_matrix():
    channel = pbgrr([1000] * 100, epsilon=4.0, boost_epsilon=2.0)
    estimate = InverseEstimator(channel)(np.full(100_000, 10), 1_000_000)
    began = time.perf_counter()
    margin = estimate.poison_margin()
    assert time.perf_counter() - began < 1.0
    assert margin.values.shape == (100_000,)
    assert margin.categories.shape == (100,)
    # A category is steadier than a value: it takes more to move it.
    assert np.median(margin.categories) > np.median(margin.values)
