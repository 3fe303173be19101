from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from set_contract import bits_of, subset_law, unary_law

from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator, TreeEstimator, estimator_for
from hubbub.estimation.trees.tree import Tree, added_up
from hubbub.mechanisms import grr, levels, subset_selection, unary
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import pbgrr

THREE = [[3, 1], [2, 5], [2, 2]]
GROUPS = np.array([0, 1, 1, 0, 2, 2])

CHANNELS = {
    "subset": lambda: subset_selection(15, epsilon=1.0),
    "unary": lambda: unary(15, epsilon=1.0),
    "symmetric": lambda: unary(15, epsilon=2.0, variant="symmetric"),
    "levels": lambda: levels([3, 1, 7, 4], epsilon=1.0, shares=[0.3, 0.7]),
    "levels by grr": lambda: levels([3, 1, 7, 4], epsilon=3.0, oracles="grr"),
    "three levels": lambda: levels(THREE, epsilon=1.0),
    "three levels by grr": lambda: levels(THREE, epsilon=2.0, shares=[0.2, 0.2, 0.6], oracles="grr"),
    "four levels by grr": lambda: levels([[[2, 1], [3, 1]], [2, [3, 3]]], epsilon=2.0, oracles="grr"),
}


@pytest.fixture(params=list(CHANNELS))
def channel(request):
    return CHANNELS[request.param]()


def crowd_of(channel, n=1, seed=5):
    shares = np.random.default_rng(seed).dirichlet(np.full(channel.inputs, 0.6))
    crowd = np.repeat(np.arange(channel.inputs), np.ceil(shares * n).astype(int))
    return crowd, np.bincount(crowd, minlength=channel.inputs) / crowd.size


def counts_of(channel, symbols):
    return channel.tally(symbols) if symbols.ndim == 2 else np.bincount(symbols, minlength=channel.outputs)


def test_coefficients_of_every_input_add_up_to_the_input(channel):
    tree = Tree(channel.levels)
    together = np.zeros((channel.inputs, channel.inputs))
    for level, h in zip(tree.levels, tree.coefficients(np.eye(channel.inputs)), strict=True):
        together += h[level.labels]
    np.testing.assert_allclose(together, np.eye(channel.inputs), atol=1e-12)


def test_estimates_are_what_the_coefficients_make_of_the_direct_ones(channel):
    tree = Tree(channel.levels)
    rng = np.random.default_rng(3)
    direct = [rng.normal(size=level.bins) for level in tree.levels]
    coefficients = tree.coefficients(np.eye(channel.inputs))
    expected = sum(h.T @ y for h, y in zip(coefficients, direct, strict=True))
    np.testing.assert_allclose(tree.join(direct)[-1], expected, atol=1e-12)


def test_values_of_a_category_sum_to_it(channel):
    crowd, _ = crowd_of(channel, 2000)
    estimate = estimator_for(channel)(
        counts_of(channel, channel.perturb(crowd, source=seeded(1))), crowd.size
    )
    sums = np.bincount(channel.levels[0].labels, weights=estimate.values)
    np.testing.assert_allclose(sums, estimate.categories, atol=1e-12)


def test_errors_are_those_of_the_covariance_and_of_single_functionals(channel):
    crowd, shares = crowd_of(channel, 5000)
    estimator = estimator_for(channel)
    counts = counts_of(channel, channel.perturb(crowd, source=seeded(1)))
    for estimate in (estimator.expected_estimate(shares, 700), estimator(counts, crowd.size)):
        covariance = estimate.covariance()
        np.testing.assert_allclose(np.sqrt(covariance.diagonal()), estimate.value_errors, rtol=1e-9)
        np.testing.assert_allclose(covariance, covariance.T, atol=1e-15)
        for category, error in enumerate(estimate.category_errors):
            members = estimator.category_of == category
            variance = covariance[np.ix_(members, members)].sum()
            assert math.sqrt(max(variance, 0.0)) == pytest.approx(error, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("channel", "law"),
    [
        (subset_selection(6, epsilon=0.8, size=3), subset_law),
        (subset_selection(6, epsilon=2.0, size=5), subset_law),
        (unary(6, epsilon=1.5), unary_law),
    ],
    ids=["subset", "large subset", "unary"],
)
def test_errors_are_the_exact_ones_of_the_law(channel, law):
    shares = [Fraction(s, 40) for s in (20, 0, 5, 1, 4, 10)]
    p, q = channel.levels[0].support.p, channel.levels[0].support.q
    values, groups = [Fraction(0)] * 6, [Fraction(0)] * 3
    for x, share in enumerate(shares):
        found = law(channel, x)
        for totals, of in ((values, range(6)), (groups, GROUPS)):
            for cell in range(len(totals)):
                members = [y for y, c in enumerate(of) if c == cell]
                first = second = Fraction(0)
                for symbol, probability in found.items():
                    bits = bits_of(channel, symbol)
                    report = sum((bits[y] - q) / (p - q) for y in members)
                    first += probability * report
                    second += probability * report**2
                assert first == (x in members)
                totals[cell] += share * (second - first**2)
    n = 500
    estimator = TreeEstimator(channel, category_of=GROUPS)
    estimate = estimator.expected_estimate(np.array([float(s) for s in shares]), n)
    np.testing.assert_allclose(estimate.value_errors**2 * n, [float(v) for v in values], rtol=1e-9)
    np.testing.assert_allclose(
        estimate.category_errors**2 * n, [float(v) for v in groups], rtol=1e-9, atol=1e-12
    )


@pytest.mark.statistical
def test_estimates_are_unbiased_and_as_exact_as_they_say(channel):
    """600 rounds of some 3,000 devices, seed 30; bias by z-scores, errors by chi-square, over all cells.

    The mean of 600 estimates is normal about the truth with 1/sqrt(600) of the standard error: with at most
    40 cells a |z| above 6.5 has probability below 4e-9. The mean over rounds and cells of squared z-scores is
    least certain where all cells are one and the same; then it is chi-square of 600 degrees over 600, which
    leaves 0.7..1.32 with probability below 5e-7. Control: errors off by 30 % are caught.
    """
    crowd, shares = crowd_of(channel, 3000)
    estimator = estimator_for(channel)
    foreseen = estimator.expected_estimate(shares, crowd.size)
    source = seeded(30)
    scores = []
    for _ in range(600):
        counts = counts_of(channel, channel.perturb(crowd, source=source))
        estimate = estimator(counts, crowd.size)
        scores.append((estimate.values - shares) / foreseen.value_errors)
    z = np.array(scores)
    assert np.abs(z.mean(axis=0)).max() * math.sqrt(600) < 6.5
    squares = (z**2).mean()
    assert 0.7 < squares < 1.32
    assert squares * 1.69 > 1.32
    assert squares / 1.69 < 0.7


def test_levels_by_grr_agree_with_least_squares_on_the_whole_matrix():
    channel = levels([3, 1, 7, 4], epsilon=1.0, oracles="grr")
    _, shares = crowd_of(channel)
    uniform = np.full(15, 1 / 15)
    mine, theirs = (
        build(channel, category_of=channel.levels[0].labels).expected_estimate(uniform, 1000)
        for build in (TreeEstimator, InverseEstimator)
    )
    # The tree's weights take cells for independent: hardly worse than the best linear estimate.
    for ours, best in (
        (mine.value_errors, theirs.value_errors),
        (mine.category_errors, theirs.category_errors),
    ):
        assert (best <= ours * (1 + 1e-9)).all()
        assert (ours <= best * 1.015).all()
    # Where shares are far from uniform, knowing how many reports each level got helps.
    mine, theirs = (
        build(channel).expected_estimate(shares, 1000) for build in (TreeEstimator, InverseEstimator)
    )
    assert (mine.value_errors <= theirs.value_errors * 1.01).all()


def test_a_channel_of_one_level_takes_any_categories():
    channel = subset_selection(6, epsilon=1.0)
    crowd, shares = crowd_of(channel, 4000)
    estimate = TreeEstimator(channel, category_of=GROUPS).expected_estimate(shares, crowd.size)
    np.testing.assert_allclose(estimate.categories, np.bincount(GROUPS, weights=shares), atol=1e-12)


def test_the_share_of_everybody_is_known_exactly_by_sets_of_one_size():
    estimate = TreeEstimator(subset_selection(6, epsilon=1.0), category_of=np.zeros(6, dtype=int))
    assert estimate.expected_estimate(np.full(6, 1 / 6), 10).category_errors[0] < 1e-7


def test_categories_that_are_no_level_of_a_channel_with_levels_are_refused():
    with pytest.raises(ParameterError, match="category_of must be one of the channel's levels"):
        TreeEstimator(levels([3, 3], epsilon=1.0), category_of=GROUPS)
    middle = TreeEstimator(
        levels(THREE, epsilon=1.0), category_of=levels(THREE, epsilon=1.0).levels[1].labels
    )
    assert len(middle.expected_estimate(np.full(15, 1 / 15), 9).categories) == 6


def test_tree_of_levels_that_do_not_nest_is_refused():
    one = subset_selection(6, epsilon=1.0).levels[0]
    with pytest.raises(ParameterError, match="a level must be a grouping"):
        Tree([added_up(np.array([0, 0, 0, 1, 1, 1])), added_up(np.array([0, 0, 1, 1, 2, 2])), one])
    with pytest.raises(ParameterError, match="the finest level"):
        Tree([one, added_up(np.arange(6))])


def test_mean_is_that_of_the_estimated_shares_without_the_missing(channel):
    points = np.append(np.arange(channel.inputs - 1) * 3.0 + 1000.0, np.nan)
    crowd, shares = crowd_of(channel, 3000)
    last = channel.inputs - 1
    estimator = estimator_for(channel, points=points, missing=last)
    counts = counts_of(channel, channel.perturb(crowd, source=seeded(4)))
    estimate = estimator(counts, crowd.size)
    kept = estimate.values[:last]
    assert estimate.mean == pytest.approx((kept * points[:last]).sum() / kept.sum(), rel=1e-9)
    foreseen = estimator.expected_estimate(shares, crowd.size)
    influence = np.append((points[:last] - foreseen.mean) / (1 - shares[last]), 0.0)
    variance = influence @ foreseen.covariance() @ influence
    assert foreseen.mean_error == pytest.approx(math.sqrt(variance), rel=1e-6)
    rounded = estimator_for(channel, points=points, missing=last, rounding="stochastic")
    extra = rounded.expected_estimate(shares, crowd.size).mean_error ** 2 - foreseen.mean_error**2
    assert extra == pytest.approx(9 / 4 / ((1 - shares[last]) * crowd.size), rel=1e-6)


def test_a_level_without_reports_leaves_everything_unknown():
    channel = levels([3, 1, 7, 4], epsilon=3.0, oracles="grr")
    estimate = estimator_for(channel, points=np.arange(15.0))(np.eye(19, dtype=int)[0], 1)
    assert np.isnan(estimate.values).all()
    assert np.isnan(estimate.categories).all()
    assert np.isinf(estimate.value_errors).all()
    assert np.isinf(estimate.category_errors).all()
    assert math.isnan(estimate.mean)
    assert math.isinf(estimate.mean_error)
    assert np.isnan(estimate.consistent().values).all()


@pytest.mark.parametrize(
    ("counts", "n"),
    [
        (np.zeros(5, dtype=int), 1),
        (np.zeros((6, 1), dtype=int), 1),
        (np.zeros(6), 1),
        (np.zeros(6, dtype=int), 0),
        (np.full(6, 2), 1),
        (np.array([0, 0, 0, 0, 0, -1]), 1),
    ],
)
def test_counts_that_are_none_of_n_sets_are_refused(counts, n):
    with pytest.raises(ParameterError, match="must"):
        TreeEstimator(subset_selection(6, epsilon=1.0))(counts, n)


def test_every_channel_finds_its_estimator():
    assert isinstance(estimator_for(grr(4, epsilon=1.0)), InverseEstimator)
    assert isinstance(estimator_for(pbgrr([2, 3], epsilon=1.0, boost_epsilon=0.5)), InverseEstimator)
    assert isinstance(estimator_for(unary(4, epsilon=1.0)), TreeEstimator)
    assert isinstance(estimator_for(levels([2, 1], epsilon=2.0)), TreeEstimator)


def test_estimates_of_many_inputs_cost_little():
    sizes = [100] * 1000
    channel = levels(sizes, epsilon=2.0, oracles="grr")
    estimator = estimator_for(channel)
    counts = np.ones(channel.outputs, dtype=np.int64)
    estimate = estimator(counts, channel.outputs)
    assert estimate.values.shape == (100_000,)
    assert np.isfinite(estimate.value_errors).all()


def test_fewer_forged_reports_than_the_poison_margin_stay_within_the_interval(channel):
    crowd, _ = crowd_of(channel, 4000)
    symbols = channel.perturb(crowd, source=seeded(6))
    estimator = estimator_for(channel)
    honest = estimator(counts_of(channel, symbols), crowd.size)
    margin = honest.poison_margin(0.95)
    half = 1.959963984540054 * honest.printed_errors[0]
    assert np.isfinite(margin.values).all()
    assert np.isfinite(margin.categories).all()
    pool = np.unique(channel.perturb(np.arange(3000) % channel.inputs, source=seeded(7)), axis=0)[:300]
    for x in (0, channel.inputs - 1):
        k = int(margin.values[x]) - 1
        moves = []
        for forged in pool:
            sent = np.concatenate([symbols, np.repeat(forged[None], k, axis=0)])
            moves.append(abs(estimator(counts_of(channel, sent), len(sent)).values[x] - honest.values[x]))
        assert max(moves) < half[x]
        assert max(moves) > 0.3 * half[x]  # Control: it is a bound that some report comes near


def test_poison_margin_of_one_level_is_exact_for_the_worst_set():
    channel = subset_selection(8, epsilon=1.0, size=3)
    crowd, _ = crowd_of(channel, 4000)
    symbols = channel.perturb(crowd, source=seeded(6))
    estimator = estimator_for(channel)
    honest = estimator(channel.tally(symbols), crowd.size)
    margin, half = honest.poison_margin(0.95), 1.959963984540054 * honest.printed_errors[0]
    with_first = np.array([[0b00000111]], dtype=np.uint8)
    for k, out in ((int(margin.values[0]) - 1, False), (int(margin.values[0]), True)):
        sent = np.concatenate([symbols, np.repeat(with_first, k, axis=0)])
        moved = estimator(channel.tally(sent), len(sent)).values[0] - honest.values[0]
        assert (moved >= half[0]) == out
