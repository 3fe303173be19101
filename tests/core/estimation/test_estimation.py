"""The estimator inverts the very integers that are sampled, exactly, and says what it cannot know."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from former_intervals import normal_interval

from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator
from hubbub.estimation.consistency import norm_sub
from hubbub.estimation.inverses.inversion import DenseInverse, invert, own_categories
from hubbub.mechanisms import grr, local_hashing
from hubbub_authoring.mechanisms import boosted, pbgrr

STRUCTURED = {
    "grr": (grr(5, epsilon=1.0), None),
    "grr in groups": (grr(5, epsilon=1.0), [0, 1, 0, 2, 1]),
    "equal sizes": (pbgrr([2, 2, 2], epsilon=1.5, boost_epsilon=0.5), None),
    "unequal sizes": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), None),
    "boost = epsilon": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=2.0), None),
    "coarser groups": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), [1, 0, 0, 0, 1, 1]),
    "groups across": (pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0), [0, 1, 2, 1, 0, 2]),
    "large epsilon": (pbgrr([2, 4], epsilon=12.0, boost_epsilon=3.0), None),
    "small epsilon": (pbgrr([2, 4], epsilon=0.01, boost_epsilon=0.004), None),
    "hashed, all points": (local_hashing(9, epsilon=1.0, buckets=3), [0, 0, 1, 2, 2, 2, 1, 3, 2]),
    "hashed, some points": (local_hashing(6, epsilon=1.0, buckets=5), None),
    "hashed, field of four": (local_hashing(7, epsilon=2.0, buckets=4), [0, 1, 1, 2, 2, 2, 2]),
    "hashed, one seed": (local_hashing(6, epsilon=2.0, buckets=7), [0, 1, 1, 0, 1, 2]),
}
CHANNELS = list(STRUCTURED.values())


def exact_parts(channel, category_of):
    """B and the category rows G B, column by column, by the estimator's own code on Fractions."""
    groups = None if category_of is None else np.array(category_of)
    inverse = invert(channel, category_of=groups, arithmetic="fractions")
    columns = []
    for symbol in range(channel.outputs):
        counts = np.array([Fraction(int(j == symbol)) for j in range(channel.outputs)], dtype=object)
        columns.append(inverse.solve(counts))
    return inverse, columns


def probabilities(channel):
    """The rows as Fractions, from the integers that are sampled."""
    return [[Fraction(int(w), channel.total) for w in row] for row in channel.weights()]


@pytest.mark.parametrize(("channel", "groups"), CHANNELS, ids=list(STRUCTURED))
class TestExactly:
    def test_values_and_categories_are_unbiased(self, channel, groups):
        _, columns = exact_parts(channel, groups)
        group_of = own_categories(channel) if groups is None else np.array(groups)
        for x, row in enumerate(probabilities(channel)):
            values = sum(p * column.values for p, column in zip(row, columns, strict=True))
            categories = sum(p * column.categories for p, column in zip(row, columns, strict=True))
            assert values.tolist() == [int(y == x) for y in range(channel.inputs)]
            assert categories.tolist() == [int(c == group_of[x]) for c in range(max(group_of) + 1)]

    def test_variances_are_unbiased(self, channel, groups):
        """For one device with input x the expected variance estimate is the variance of its contribution."""
        _, columns = exact_parts(channel, groups)
        for row in probabilities(channel):
            for estimate, variance in (
                ("values", "value_variances"),
                ("categories", "category_variances"),
            ):
                parts = [getattr(column, estimate) for column in columns]
                mean = sum(p * part for p, part in zip(row, parts, strict=True))
                square = sum(p * part * part for p, part in zip(row, parts, strict=True))
                claimed = sum(p * getattr(c, variance) for p, c in zip(row, columns, strict=True))
                assert claimed.tolist() == (square - mean * mean).tolist()

    def test_pulled_back_functional_is_reproduced(self, channel, groups):
        inverse, _ = exact_parts(channel, groups)
        functional = np.array([Fraction(x * x - 3) for x in range(channel.inputs)], dtype=object)
        weights = inverse.pull_back(functional)
        for x, row in enumerate(probabilities(channel)):
            assert sum(p * g for p, g in zip(row, weights, strict=True)) == functional[x]

    def test_floats_agree_with_fractions(self, channel, groups):
        _, columns = exact_parts(channel, groups)
        inverse = invert(channel, category_of=None if groups is None else np.array(groups))
        table = np.array([column.values for column in columns], dtype=float).T
        np.testing.assert_allclose(inverse.matrix(), table, rtol=1e-9)
        counts = np.arange(10.0, 10.0 + channel.outputs)
        solution = inverse.solve(counts)
        for name in ("values", "value_variances", "categories", "category_variances"):
            exact = sum(
                Fraction(c) * getattr(column, name) for c, column in zip(counts, columns, strict=True)
            )
            np.testing.assert_allclose(getattr(solution, name), exact.astype(float), rtol=1e-8, atol=1e-8)


def test_category_channel_is_unbiased_and_hides_values():
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=0.0)
    _, columns = exact_parts(channel, None)
    for x, row in enumerate(probabilities(channel)):
        categories = sum(p * column.categories for p, column in zip(row, columns, strict=True))
        alone = sum(p * column.values[0] for p, column in zip(row, columns, strict=True))
        assert categories.tolist() == [int(c == channel.category_of[x]) for c in range(3)]
        assert alone == int(x == 0)
    estimate = InverseEstimator(channel, points=np.arange(6.0))(np.array([30, 50, 20]), 100)
    assert np.isnan(estimate.values[1:]).all()
    assert np.isinf(estimate.value_errors[1:]).all()
    assert estimate.values[0] == estimate.categories[0]
    assert np.isfinite(estimate.category_errors).all()
    assert np.isnan(estimate.mean)
    assert estimate.mean_error == np.inf
    view = estimate.consistent()
    assert np.isnan(view.values[1:]).all()
    assert view.categories.sum() == pytest.approx(1.0)


def test_category_channel_knows_a_mean_that_depends_on_the_category_alone():
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=0.0)
    estimate = InverseEstimator(channel, points=np.array([0.0, 1, 1, 1, 5, 5]))(np.array([30, 50, 20]), 100)
    assert estimate.mean == pytest.approx(estimate.categories @ [0.0, 1.0, 5.0])


def test_category_channel_reports_unions_and_hides_groups_that_split_a_category():
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=0.0)
    counts = np.array([30, 50, 20])
    own = InverseEstimator(channel)(counts, 100)
    union = InverseEstimator(channel, category_of=np.array([0, 1, 1, 1, 0, 0]))(counts, 100)
    np.testing.assert_allclose(union.categories, [own.categories[0] + own.categories[2], own.categories[1]])
    split = InverseEstimator(channel, category_of=np.array([0, 1, 1, 2, 0, 0]))(counts, 100)
    assert split.categories[0] == pytest.approx(union.categories[0])
    assert np.isnan(split.categories[1:]).all()
    assert np.isinf(split.category_errors[1:]).all()


def left_inverse(channel):
    """(P W P^T)^-1 P W with W = diag(1/pi), pi the mean row, by elimination on Fractions."""
    rows = probabilities(channel)
    inputs, outputs = channel.inputs, channel.outputs
    pi = [sum(row[y] for row in rows) / inputs for y in range(outputs)]
    weighted = [[row[y] / pi[y] for y in range(outputs)] for row in rows]
    system = [
        [sum(a * b for a, b in zip(rows[i], weighted[j], strict=True)) for j in range(inputs)] + weighted[i]
        for i in range(inputs)
    ]
    for i in range(inputs):
        pivot = next(k for k in range(i, inputs) if system[k][i] != 0)
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [entry / system[i][i] for entry in system[i]]
        for k in range(inputs):
            if k != i:
                factor = system[k][i]
                system[k] = [a - factor * b for a, b in zip(system[k], system[i], strict=True)]
    return [row[inputs:] for row in system]


@pytest.mark.parametrize("missing", ["none", "input"])
@pytest.mark.parametrize("kernel", ["laplace", "uniform"])
def test_dense_inverse_is_the_exact_weighted_left_inverse(kernel, missing):
    channel = boosted(5, epsilon=1.0, kernel=kernel, missing=missing)
    exact = left_inverse(channel)
    for x, row in enumerate(probabilities(channel)):
        products = [sum(p * b for p, b in zip(row, weights, strict=True)) for weights in exact]
        assert products == [int(y == x) for y in range(channel.inputs)]
    assert all(sum(column) == 1 for column in zip(*exact, strict=True))
    inverse = DenseInverse(channel.weights(), channel.total)
    np.testing.assert_allclose(inverse.matrix(), np.array(exact, dtype=float), rtol=0, atol=1e-9)
    assert channel.outputs > channel.inputs


def test_wrong_integers_are_not_inverted():
    """The negative control of the exact tests: one unit moved within a row is noticed."""
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0)
    _, columns = exact_parts(channel, None)
    row = probabilities(channel)[2]
    row[2] -= Fraction(1, channel.total)
    row[3] += Fraction(1, channel.total)
    values = sum(p * column.values for p, column in zip(row, columns, strict=True))
    assert values.tolist() != [0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0, 2, 2]])
def test_structured_and_dense_estimates_agree(groups):
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0)
    counts = np.array([310, 420, 100, 900, 260, 10])
    category_of = None if groups is None else np.array(groups)
    points = np.array([0.0, 1, 2, 3, 4, np.nan])
    fast = InverseEstimator(channel, category_of=category_of, points=points, missing=5)(counts, 2000)
    plain = DenseChannel(channel.weights())
    own = channel.category_of if groups is None else category_of
    slow = InverseEstimator(plain, category_of=own, points=points, missing=5)(counts, 2000)
    for name in ("values", "value_errors", "categories", "category_errors", "mean", "mean_error"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(fast.covariance(), slow.covariance(), rtol=1e-9, atol=1e-12)


def test_covariance_carries_every_error():
    channel = pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=1.0)
    points = np.array([0.0, 1, 2, 3, 4, 5])
    estimate = InverseEstimator(channel, points=points)(np.array([310, 420, 100, 900, 260, 10]), 2000)
    covariance = estimate.covariance()
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), estimate.value_errors)
    inside = np.equal.outer(np.arange(3), channel.category_of).astype(float)
    spread = (inside @ covariance @ inside.T).diagonal()
    np.testing.assert_allclose(np.sqrt(spread), estimate.category_errors)
    assert covariance.sum() == pytest.approx(0.0, abs=1e-12)
    assert np.sqrt(points @ covariance @ points) == pytest.approx(estimate.mean_error)


def test_mean_leaves_missing_out():
    channel = grr(4, epsilon=20.0)
    points = np.array([10.0, 20.0, 30.0, np.nan])
    few = InverseEstimator(channel, points=points, missing=3)(np.array([100, 100, 200, 0]), 400)
    many = InverseEstimator(channel, points=points, missing=3)(np.array([100, 100, 200, 5000]), 5400)
    assert few.mean == pytest.approx(22.5, abs=1e-4)
    assert many.mean == pytest.approx(22.5, abs=1e-4)


def test_mean_is_unknown_when_nobody_seems_to_have_a_value():
    channel = grr(3, epsilon=1.0)
    estimate = InverseEstimator(channel, points=np.array([0.0, 1.0, np.nan]), missing=2)(
        np.array([0, 0, 9]), 9
    )
    assert np.isnan(estimate.mean)
    assert estimate.mean_error == np.inf


def test_rounding_adds_a_quarter_of_the_squared_step_per_device():
    channel = grr(3, epsilon=1.0)
    counts = np.array([400, 500, 600])
    points = np.array([0.0, 2.0, 4.0])
    without = InverseEstimator(channel, points=points)(counts, 1500)
    with_it = InverseEstimator(channel, points=points, rounding="stochastic")(counts, 1500)
    assert with_it.mean == without.mean
    assert with_it.mean_error**2 - without.mean_error**2 == pytest.approx(2.0**2 / 4 / 1500)


def test_mean_keeps_its_digits_far_from_zero():
    channel = grr(3, epsilon=1.0)
    counts = np.array([400, 500, 600])
    near = InverseEstimator(channel, points=np.array([0.0, 1.0, 2.0]))(counts, 1500)
    far = InverseEstimator(channel, points=1e9 + np.array([0.0, 1.0, 2.0]))(counts, 1500)
    assert far.mean - 1e9 == pytest.approx(near.mean, abs=1e-6)
    assert far.mean_error == pytest.approx(near.mean_error, rel=1e-6)


def test_survey_without_numbers_has_no_mean():
    estimate = InverseEstimator(grr(3, epsilon=1.0))(np.array([4, 5, 6]), 15)
    assert estimate.mean is None
    assert estimate.mean_error is None
    assert estimate.intervals().mean_low is None


def test_intervals_are_wider_for_more_certainty_and_for_all_cells_at_once():
    estimate = InverseEstimator(grr(10, epsilon=1.0), points=np.arange(10.0))(np.full(10, 100), 1000)
    cell, family, sure = estimate.intervals(0.95), estimate.simultaneous(0.95), estimate.intervals(0.99)
    width = cell.values_high - cell.values_low
    # By the normal law, where nothing is known of the scores.
    normal, (low, high) = replace(estimate, _laws=None).intervals(0.95), normal_interval(estimate, 0.95)
    np.testing.assert_allclose([normal.values_low, normal.values_high], [low, high])
    assert (family.values_high - family.values_low > width).all()
    assert (sure.values_high - sure.values_low > width).all()
    # Bonferroni over ten cells is the 99.5 % interval of one.
    np.testing.assert_allclose(family.values_low, estimate.intervals(0.995).values_low)
    assert family.mean_low == cell.mean_low


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 2.0, float("nan")])
def test_level_outside_0_and_1_is_refused(level):
    estimate = InverseEstimator(grr(3, epsilon=1.0))(np.array([4, 5, 6]), 15)
    with pytest.raises(ParameterError, match="level must lie strictly between 0 and 1"):
        estimate.intervals(level)


def test_consistent_view_is_a_distribution_whose_values_sum_to_categories():
    channel = pbgrr([1, 3, 2], epsilon=0.5, boost_epsilon=0.2)
    estimate = InverseEstimator(channel)(np.array([310, 420, 100, 900, 260, 10]), 2000)
    assert (estimate.values < 0).any()
    view = estimate.consistent()
    assert (view.values >= 0).all()
    assert view.values.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.bincount(channel.category_of, view.values), view.categories, atol=1e-12)


def test_consistent_view_keeps_what_is_already_consistent():
    channel = grr(4, epsilon=20.0)
    estimate = InverseEstimator(channel)(np.array([100, 300, 500, 100]), 1000)
    np.testing.assert_allclose(estimate.consistent().values, estimate.values, atol=1e-6)


def test_norm_sub_is_the_nearest_distribution():
    """Against the defining conditions: one shift for all positive entries, none of the others above it."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        estimates, groups = rng.normal(0.2, 0.5, 30), rng.permutation(np.arange(30) % 4)
        totals = rng.choice([0.0, 0.5, 2.0], 4)
        view = norm_sub(estimates, groups, totals)
        for group, total in enumerate(totals):
            raw, kept = estimates[groups == group], view[groups == group]
            assert kept.sum() == pytest.approx(total, abs=1e-12)
            assert (kept >= 0).all()
            shifts = (raw - kept)[kept > 0]
            if total > 0:
                assert np.ptp(shifts) == pytest.approx(0.0, abs=1e-12)
                assert (raw[kept == 0] <= shifts.mean() + 1e-12).all()


def test_dense_channel_that_hides_values_says_so():
    """Inputs 1 and 2 share a row: their sum is known, they are not."""
    weights = np.array([[6, 2, 2], [2, 4, 4], [2, 4, 4]])
    estimator = InverseEstimator(
        DenseChannel(weights), category_of=np.array([0, 1, 1]), points=np.array([0.0, 1, 3])
    )
    estimate = estimator(np.array([400, 300, 300]), 1000)
    assert np.isfinite(estimate.values[0])
    assert np.isnan(estimate.values[1:]).all()
    assert np.isfinite(estimate.categories).all()
    assert np.isnan(estimate.mean)
    assert estimator.inverse.condition == np.inf


@pytest.mark.parametrize(
    ("counts", "n", "message"),
    [
        (np.array([1, 2]), 3, r"counts must have shape \(3,\), got \(2,\)"),
        (np.array([1.0, 2.0, 3.0]), 6, "counts must be integers, got float64"),
        (np.array([-1, 2, 3]), 4, "counts must not be negative, got -1"),
        (np.array([1, 2, 3]), 7, "n must be the sum of counts and at least 1, got 7 for 6"),
        (np.array([0, 0, 0]), 0, "n must be the sum of counts and at least 1, got 0"),
    ],
)
def test_wrong_counts_are_refused(counts, n, message):
    with pytest.raises(ParameterError, match=message):
        InverseEstimator(grr(3, epsilon=1.0))(counts, n)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"category_of": np.array([0, 1])}, "category_of must be 3 integers"),
        ({"category_of": np.array([0, 2, 2])}, "every category from 0 up"),
        ({"category_of": np.array([0.0, 1.0, 1.0])}, "category_of must be 3 integers"),
        ({"missing": 3}, r"missing must be an input in 0\.\.2, got 3"),
        ({"points": np.array([0.0, 1.0])}, r"points must have shape \(3,\)"),
        ({"points": np.array([0.0, 1.0, np.nan])}, "points must be finite except at the missing input"),
        ({"rounding": "yes"}, 'rounding must be "none" or "stochastic"'),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        InverseEstimator(grr(3, epsilon=1.0), **arguments)


def test_covariance_of_too_many_values_is_refused():
    estimate = InverseEstimator(grr(4097, epsilon=1.0))(np.ones(4097, dtype=np.int64), 4097)
    with pytest.raises(ParameterError, match="K <= 4096, got 4097"):
        estimate.covariance()
