"""Cumulative shares, their band, ranges and quantiles of a number."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.estimation.cumulative import Cumulative, Functionals
from hubbub.mechanisms import grr, subset_selection, unary
from hubbub.mechanisms.tree import tree
from hubbub.testing import seeded
from hubbub_authoring.mechanisms.optimal import optimal_curve

POINTS = 33
GROUPS = np.repeat([0, 1], [POINTS, 1])
NUMBERS = np.append(np.linspace(-1.0, 1.0, POINTS), np.nan)


def estimator_of(channel, rounding="none"):
    return estimator_for(channel, category_of=GROUPS, points=NUMBERS, missing=POINTS, rounding=rounding)


def crowd_of(n, missing=0.2):
    shares = np.append((1 - missing) * np.diff(beta.cdf(np.linspace(0, 1, POINTS + 1), 5, 2)), missing)
    crowd = np.repeat(np.arange(POINTS + 1), np.round(shares * n).astype(int))
    return crowd, np.bincount(crowd, minlength=POINTS + 1) / crowd.size


def true_curve(shares):
    return np.cumsum(shares[:-1]) / shares[:-1].sum()


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 500), (1.0, 5000), (3.0, 300)])
def test_band_and_quantiles_cover_at_least_as_often_as_they_say(epsilon, n):
    """200 collections of skewed devices, a fifth without a value, level 0.95, seed 40.

    Were the coverage just 0.95, fewer than the 1e-7 quantile of the binomial would cover with probability
    below 1e-7, for each of six numbers: 1e-6 together. Control: a band of half the width, and with it its
    quantiles, cover less often than that quantile.
    """
    channel = tree(POINTS, epsilon=epsilon, tuned_for="quantiles")
    estimator, source = estimator_of(channel), seeded(40)
    crowd, shares = crowd_of(n)
    truth = true_curve(shares)
    quartiles = [NUMBERS[int(np.searchsorted(truth, tau - 1e-12))] for tau in (0.25, 0.5, 0.75)]
    rounds, covers, holds, half = 200, 0, 0, 0
    for _ in range(rounds):
        curve = estimator(channel.tally(channel.perturb(crowd, source=source)), crowd.size).cumulative(0.95)
        covers += bool(((curve.low <= truth + 1e-12) & (truth <= curve.high + 1e-12)).all())
        found = [curve.quantile(tau) for tau in (0.25, 0.5, 0.75)]
        holds += all(q.low <= true <= q.high for q, true in zip(found, quartiles, strict=True))
        z = norm.isf(0.05 / (2 * (POINTS - 1))) / 2
        half += bool((np.abs(curve.shares - truth) <= z * curve.errors + 1e-12).all())
    least = binom.ppf(1e-7, rounds, 0.95)
    assert covers >= least
    assert holds >= least
    assert half < least


@pytest.mark.statistical
def test_band_of_bits_holds_where_the_share_with_a_value_is_all_noise():
    """50 devices, all at the three least of 90 points: the share with a value has an error of 2.6.

    Level 0.95, seed 11. Were the coverage just 0.95, fewer than the 1e-6 quantile of the binomial would cover
    with probability below 1e-6. Control: the band of the ratio's linear part covers less often than that.
    """
    channel, n = unary(91, epsilon=1.0), 50
    points, inputs = np.append(np.linspace(-1.0, 1.0, 90), np.nan), np.arange(n) % 3
    groups = np.repeat([0, 1], [90, 1])
    estimator = estimator_for(channel, category_of=groups, points=points, missing=90)
    source, truth = seeded(11), np.cumsum(np.bincount(inputs, minlength=91)[:-1]) / n
    z = norm.isf(0.05 / (2 * 89))
    rounds = covers = linear = 0
    for _ in range(200):
        curve = estimator(channel.tally(channel.perturb(inputs, source=source)), n).cumulative(0.95)
        if curve is None:
            continue
        rounds += 1
        covers += bool(((curve.low <= truth + 1e-12) & (truth <= curve.high + 1e-12)).all())
        low = np.maximum.accumulate(np.clip(curve.shares - z * curve.errors, 0.0, 1.0))
        high = np.minimum.accumulate(np.clip(curve.shares + z * curve.errors, 0.0, 1.0)[::-1])[::-1]
        linear += bool(((low <= truth + 1e-12) & (truth <= high + 1e-12)).all())
    least = binom.ppf(1e-6, rounds, 0.95)
    assert rounds > 60 and covers >= least
    assert linear < least


def test_band_of_a_share_that_is_known_well_is_that_of_the_linear_part():
    """Fieller's set and the linear law agree to a hundredth: the share with a value is far above 0."""
    channel = unary(POINTS + 1, epsilon=3.0)
    crowd, _ = crowd_of(20000)
    estimate = estimator_of(channel)(channel.tally(channel.perturb(crowd, source=seeded(3))), crowd.size)
    curve = estimate.cumulative(0.95)
    z = norm.isf(0.05 / 2 / (POINTS - 1))
    low = np.maximum.accumulate(np.clip(curve.shares - z * curve.errors, 0.0, 1.0))
    np.testing.assert_allclose(curve.low, low, atol=0.01)
    assert (curve.low <= curve.high).all() and curve.high[-1] == 1.0


def test_errors_are_those_of_the_whole_covariance():
    """At equal shares both populations of the variance are one: it is the covariance's quadratic form."""
    for channel in (tree(POINTS, epsilon=1.0), subset_selection(POINTS + 1, epsilon=1.0)):
        shares = np.append(np.full(POINTS, 0.7 / POINTS), 0.3)
        estimate = estimator_of(channel).expected_estimate(shares, 4000)
        covariance, curve = estimate.covariance(), estimate.cumulative()
        np.testing.assert_allclose(curve.shares, np.arange(1, POINTS + 1) / POINTS, atol=1e-9)
        for v in (0, 7, POINTS - 2):
            below = (np.arange(POINTS + 1) <= v).astype(float)
            ratio = below - (v + 1) / POINTS * (np.arange(POINTS + 1) < POINTS)
            assert curve.errors[v] ** 2 == pytest.approx(ratio @ covariance @ ratio / 0.7**2, rel=1e-8)
        assert curve.errors[-1] == 0.0
        inside = (NUMBERS >= -0.5) & (NUMBERS <= 0.25)
        share, error = estimate.share_between(-0.5, 0.25)
        assert share == pytest.approx(shares[inside].sum())
        assert error**2 == pytest.approx(inside @ covariance @ inside.astype(float), rel=1e-8)


@pytest.mark.parametrize("oracles", ["grr", "best"])
def test_third_moments_of_functionals_are_those_of_every_report(oracles):
    """By hand: all reports about each level, and the third central moment of a mean of independent ones."""
    channel = tree(7, epsilon=1.5, branching=2, oracles=oracles)
    found = estimator_for(channel, points=np.append(np.arange(7.0), np.nan), missing=7).tree
    shares = np.arange(1.0, 9.0) / 36.0
    frequencies = [np.bincount(level.labels, weights=shares) for level in found.levels]
    sizes = [0.0 if level.share == 0 else 10.0 + k for k, level in enumerate(found.levels)]
    functional = np.array([1.0, 1.0, 0.3, 0.0, -0.2, -0.2, -0.2, 0.1])
    total = 0.0
    for k, h in enumerate(found.coefficients(functional)):
        level = found.levels[k]
        if level.share == 0:
            continue
        p, q, cells, size = float(level.support.p), float(level.support.q), len(h), level.support.size
        inside, outside = math.comb(cells - 1, size - 1), math.comb(cells - 1, size)
        scores, odds = [], []
        for true in range(cells):
            for bits in itertools.product((0, 1), repeat=cells):
                held = np.array(bits)
                if sum(bits) != size:
                    continue
                chance = p / inside if bits[true] else (1 - p) / outside
                scores.append(float(h @ (held - q)) / (p - q))
                odds.append(frequencies[k][true] * chance)
        assert sum(odds) == pytest.approx(1.0)
        mean = np.dot(scores, odds)
        total += np.dot((np.array(scores) - mean) ** 3, odds) / sizes[k] ** 2
    thirds = found.functional_thirds(functional[:, None], frequencies, sizes)
    assert thirds[0] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("oracles", ["grr", "best"])
def test_noise_of_functionals_is_that_of_every_report(oracles):
    """By hand: all reports of every device, those of its own noise skewed upwards and downwards apart."""
    channel = tree(7, epsilon=1.5, branching=2, oracles=oracles)
    found = estimator_for(channel, points=np.append(np.arange(7.0), np.nan), missing=7).tree
    shares = np.arange(1.0, 9.0) / 36.0
    frequencies = [np.bincount(level.labels, weights=shares) for level in found.levels]
    sizes = [0.0 if level.share == 0 else 10.0 + k for k, level in enumerate(found.levels)]
    functional = np.array([1.0, 1.0, 0.3, 0.0, -0.2, -0.2, -0.2, 0.1])
    wanted = np.zeros((2, 2))
    for k, h in enumerate(found.coefficients(functional)):
        level = found.levels[k]
        if level.share == 0:
            continue
        p, q, cells, size = float(level.support.p), float(level.support.q), len(h), level.support.size
        inside, outside = math.comb(cells - 1, size - 1), math.comb(cells - 1, size)
        for true in range(cells):
            held = [np.isin(np.arange(cells), some) for some in itertools.combinations(range(cells), size)]
            odds = [p / inside if bits[true] else (1 - p) / outside for bits in held]
            scores = np.array([float(h @ (bits - q)) / (p - q) for bits in held])
            assert np.dot(scores, odds) == pytest.approx(h[true])
            second, third = (np.dot((scores - h[true]) ** power, odds) for power in (2, 3))
            side = 0 if third > 0.0 else 1
            wanted[0, side] += frequencies[k][true] * second / sizes[k]
            wanted[1, side] += frequencies[k][true] * third / sizes[k] ** 2
    noise = found.functional_noise(functional[:, None], [f[None] for f in frequencies], sizes)
    assert noise[0, :, :, 0] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["tree", "tree, grr", "subset", "optimal"])
def test_band_holds_at_large_epsilon_where_noise_is_a_rare_lie_in_either_direction(name):
    """Level 0.95, epsilon 8, alike devices, 400 rounds, seed 11.

    Were the coverage just 0.95, fewer than the 1e-6 quantile of the binomial would cover with probability
    below 1e-6. Control: the band of the normal law covers fewer than .94.
    """
    points, devices, channel = {
        "tree": (4, 200, lambda: tree(4, epsilon=8.0)),
        "tree, grr": (11, 200, lambda: tree(11, epsilon=8.0, branching=4, oracles="grr")),
        "subset": (11, 200, lambda: subset_selection(12, epsilon=8.0)),
        "optimal": (33, 50, lambda: optimal_curve(33, epsilon=8.0)),
    }[name]
    channel, source = channel(), seeded(11)
    numbers = np.append(np.arange(float(points)), np.nan)
    estimator = estimator_for(
        channel, category_of=np.repeat([0, 1], [points, 1]), points=numbers, missing=points
    )
    inputs = np.append(np.arange(devices - devices // 10) % points, np.full(devices // 10, points))
    counts = np.bincount(inputs, minlength=points + 1)[:-1]
    truth, z = np.cumsum(counts) / counts.sum(), norm.isf(0.05 / 2 / (points - 1))
    rounds, covers, normal = 400, 0, 0
    for _ in range(rounds):
        curve = estimator(channel.tally(channel.perturb(inputs, source=source)), devices).cumulative(0.95)
        covers += bool(((curve.low <= truth + 1e-12) & (truth <= curve.high + 1e-12)).all())
        normal += bool((np.abs(curve.shares - truth) <= z * curve.errors + 1e-12).all())
    assert covers >= binom.ppf(1e-6, rounds, 0.95) and covers >= 0.94 * rounds
    assert normal < 0.94 * rounds


def test_band_is_cut_and_rises_and_holds_the_level_over_all_points():
    channel = tree(POINTS, epsilon=1.0)
    crowd, _ = crowd_of(400)
    estimate = estimator_of(channel)(channel.tally(channel.perturb(crowd, source=seeded(3))), crowd.size)
    functionals = estimate._functionals

    def normal(h):  # one kind, without skewness: of the normal law
        whole = functionals.variances(h)
        return np.stack(
            [np.stack([np.zeros_like(whole)] * 2 + [whole], axis=1), np.zeros((2, 3, h.shape[1]))], 1
        )

    curve = replace(estimate, _functionals=replace(functionals, kinds=normal)).cumulative(0.9)
    z = norm.isf(0.1 / 2 / (POINTS - 1))
    raw_low, raw_high = curve.shares - z * curve.errors, curve.shares + z * curve.errors
    for v in range(POINTS):
        assert curve.low[v] == pytest.approx(max(np.clip(raw_low[: v + 1], 0, 1)))
        assert curve.high[v] == pytest.approx(min(np.clip(raw_high[v:], 0, 1)))
    assert (np.diff(curve.rising) >= 0).all()


def test_quantile_interval_is_every_point_that_the_band_does_not_exclude():
    rng = np.random.default_rng(2)
    for _ in range(200):
        size = int(rng.integers(3, 9))
        low, high = np.sort(rng.integers(0, 5, size) / 4), np.sort(rng.integers(0, 5, size) / 4)
        low, high = np.minimum(low, high), np.maximum(low, high)
        low[-1] = high[-1] = 1.0
        points = np.arange(float(size))
        curve = Cumulative(0.95, points, (low + high) / 2, points, low, high, "none")
        for share in (0.1, 0.25, 0.5, 0.9):
            allowed = [v for v in range(size) if high[v] >= share and (v == 0 or low[v - 1] <= share)]
            found = curve.quantile(share)
            assert (found.low, found.high) == (min(allowed), max(allowed))
            assert found.estimate in points


def test_quantile_of_rounded_numbers_is_a_step_wider_and_so_holds_the_number_itself():
    """Whatever the rounding, and however the devices lie between points: the curve itself as its band."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        numbers = rng.choice([rng.random(41) * 8, np.round(rng.random(41) * 8)])
        rounded = np.floor(numbers) + (rng.random(41) < numbers - np.floor(numbers))
        curve = np.array([(rounded <= v).mean() for v in range(9)])
        band = Cumulative(0.95, np.arange(9.0), curve, curve, curve, curve, "stochastic")
        for share in (0.25, 0.5, 0.75):
            truth = np.sort(numbers)[int(np.ceil(share * 41)) - 1]
            found = band.quantile(share)
            assert found.low <= truth <= found.high
            assert found.high - found.low <= 3.0


def test_median_between_two_points_is_found_between_them():
    """Devices that are evenly spread, rounded: the expected curve's median is the middle of the range."""
    shares = np.full(POINTS, 1.0)
    shares[[0, -1]] = 0.5
    estimator = estimator_of(tree(POINTS, epsilon=1.0), "stochastic")
    curve = estimator.expected_estimate(np.append(shares / shares.sum(), 0.0), 10**6).cumulative()
    for share in (0.1, 0.25, 0.5, 0.8):
        assert curve.quantile(share).estimate == pytest.approx(-1 + 2 * share, abs=1e-6)


def test_what_has_no_curve_is_refused_or_none():
    channel = tree(POINTS, epsilon=1.0)
    unasked = [lambda h: h[:1], lambda h: np.zeros((1, 2, 2, h.shape[1]))]
    nobody = Functionals(np.array([-0.2, 0.1, 1.1]), np.array([0.0, 1.0, np.nan]), "none", *unasked, n=9)
    assert nobody.cumulative(0.95) is None
    estimate = estimator_of(channel).expected_estimate(np.full(POINTS + 1, 1 / (POINTS + 1)), 1000)
    for level in (0.0, 1.0, 1.5):
        with pytest.raises(ParameterError, match="level must"):
            estimate.cumulative(level)
    for share in (0.0, 1.0):
        with pytest.raises(ParameterError, match="share of a quantile"):
            estimate.cumulative().quantile(share)
    with pytest.raises(ParameterError, match="a range must hold a point"):
        estimate.share_between(2.0, 3.0)
    labels = estimator_for(grr(5, epsilon=1.0)).expected_estimate(np.full(5, 0.2), 100)
    with pytest.raises(ParameterError, match="numbers, asked by sets, levels or a curve"):
        labels.cumulative()


@pytest.mark.parametrize(("asked", "drawn"), [(None, 1.0), (2000, 0.75)])
def test_the_crowds_curve_has_the_draw_of_who_is_counted_beside_the_noise(asked, drawn):
    """Of even shares each point's error has drawn G (1 - G) / (n A) more: of n A who have a value."""
    n, shares = 500, np.append(np.full(POINTS, 0.8 / POINTS), 0.2)
    own = estimator_of(tree(POINTS, epsilon=3.0)).expected_estimate(shares, n)
    curve, crowd = own.cumulative(), own.of_crowd(asked=asked).cumulative()
    g = true_curve(shares)
    np.testing.assert_allclose(crowd.errors**2 - curve.errors**2, drawn * g * (1 - g) / (n * 0.8), atol=1e-12)
    assert ((crowd.low <= curve.low) & (curve.high <= crowd.high)).all()
    least, most = crowd.quantile(0.5), curve.quantile(0.5)
    assert least.low <= most.low <= most.high <= least.high
