"""The change between two rounds covers the true change, memoised or fresh."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.errors import ParameterError
from hubbub.estimation import (
    Ends,
    correlation,
    device_variances,
    difference,
    effective_sample_size,
    estimator_for,
    mean_correlation,
    shared_devices,
)
from hubbub.mechanisms import grr
from hubbub.testing import seeded

RUNS = 250
ONE = Ends(np.array([0.5]), np.array([0.4]), np.array([0.6]), np.array([0.1]))
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
    return Ends(estimate.values, spans.values_low, spans.values_high, 1.96 * estimate.printed_errors[0])


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


@pytest.mark.parametrize(("epsilon", "before", "after"), [(3.0, 100, 10_000), (1.0, 300, 3_000)])
def test_change_of_a_value_that_nobody_had_is_covered(epsilon: float, before: int, after: int) -> None:
    """200 pairs, a fifth in the later round: hits at least the 1e-8 quantile of binomial(200, .95).

    The earlier interval is cut at 0, so its side is short: by squares of the cut sides the change was held in
    .84 and .88 of pairs. The control is that.
    """
    channel, rng = grr(12, epsilon=epsilon), np.random.default_rng(5)
    estimator = estimator_for(channel)
    rows = np.full((12, 12), 1.0) + np.eye(12) * np.expm1(epsilon)
    rows /= rows.sum(axis=1, keepdims=True)
    held = cut = 0
    for _ in range(200):
        rounds = []
        for n, share in ((before, 0.0), (after, 0.2)):
            devices = np.zeros(12, dtype=int)
            devices[:3] = n // 2, n - n // 2 - round(share * n), round(share * n)
            estimate = estimator(rng.multinomial(devices, rows).sum(axis=0), n)
            spans = estimate.intervals()
            reach = 1.96 * estimate.printed_errors[0]
            rounds.append(Ends(estimate.values, spans.values_low, spans.values_high, reach))
        plain = [replace(each, reach=np.zeros(12)) for each in rounds]
        for count, pair in ((0, rounds), (1, plain)):
            found = difference(*pair)
            hit = bool(found.low[2] <= 0.2 <= found.high[2])
            held, cut = held + hit * (count == 0), cut + hit * (count == 1)
    least = int(binom.ppf(1e-8, 200, 0.95))
    assert held >= least and held >= 0.94 * 200
    assert cut < int(binom.ppf(1e-3, 200, 0.95))


def test_least_correlation_of_means_is_no_more_than_that_of_the_worst_devices() -> None:
    """By hand: all in both rounds at 0, the means at -d/2 and d/2, and all noise in who has a value."""
    errors, noise, answered = 0.05, 0.1, 0.8
    for change in (0.1, 0.5):
        # Z = Y - m B with Y = 0 for all: the errors' covariance is m m' Var(B) / A^2.
        worst = -((change / 2) ** 2) * noise**2 / answered**2 / errors**2
        found = mean_correlation(
            change, errors=(errors, errors), answered=(answered, answered), noise=(noise, noise)
        )
        assert found == pytest.approx(worst)
    words = {"errors": (errors, errors), "noise": (noise, noise)}
    assert mean_correlation(9.0, answered=(0.8, 0.8), **words) == -1.0
    assert mean_correlation(0.1, answered=(0.8, 0.0), **words) == -1.0


UNLIKE = [
    # inputs, epsilon, devices, share that stays, the value that all joiners hold, devices that leave
    (12, 3.0, 20_000, 0.9, 11, "any"),
    (12, 4.0, 20_000, 0.9, 11, "any"),
    (12, 1.0, 2_000, 0.9, 0, "any"),
    (12, 3.0, 2_000, 0.5, 0, "commonest"),
    (12, 3.0, 500, 0.9, 5, "rarest"),
    (12, 6.0, 2_000, 0.95, 11, "any"),
    (4, 3.0, 5_000, 0.8, 3, "commonest"),
    (91, 4.0, 5_000, 0.9, 90, "any"),
    (12, 2.0, 20_000, 0.99, 11, "rarest"),
    (12, 8.0, 500, 0.7, 11, "any"),
]


def pairs_held(setting: tuple, pairs: int, *, like: bool) -> np.ndarray:
    """Return in how many pairs of rounds the change of each cell is covered.

    Args:
        setting: See UNLIKE.
        pairs: How many are drawn.
        like: True for the correlation s / n of joiners that are like stayers: the control.
    """
    inputs, epsilon, n, stay, joined, leave = setting
    weights = 1.0 / np.arange(1.0, inputs + 1)
    before = np.floor(n * weights / weights.sum()).astype(int)
    before[0] += n - before.sum()
    gone = n - round(stay * n)
    order = np.repeat(np.arange(inputs), before)
    order = {"any": np.random.default_rng(1).permutation(order), "commonest": order, "rarest": order[::-1]}[
        leave
    ]
    leavers = np.bincount(order[:gone], minlength=inputs)
    joiners = np.bincount([joined], minlength=inputs) * gone
    truth = (joiners - leavers) / n
    estimator, rng = estimator_for(grr(inputs, epsilon=epsilon)), np.random.default_rng(7)
    rows = np.full((inputs, inputs), 1.0) + np.eye(inputs) * np.expm1(epsilon)
    rows /= rows.sum(axis=1, keepdims=True)

    def drawn(devices: np.ndarray) -> np.ndarray:
        return rng.multinomial(devices, rows).sum(axis=0)

    held = np.zeros(inputs, dtype=np.int64)
    for _ in range(pairs):
        common = drawn(before - leavers)
        rounds = []
        for estimate in (estimator(common + drawn(others), n) for others in (leavers, joiners)):
            spans = estimate.intervals()
            reach = 1.96 * estimate.printed_errors[0]
            found = Ends(estimate.values, spans.values_low, spans.values_high, reach)
            rounds.append((found, estimate.printed_errors[0], n))
        both = rounds[0][0], rounds[1][0]
        variances = device_variances(rounds)
        assert variances is not None
        r = correlation(*both, devices=(n, n), shared=n - gone, variances=variances)
        change = difference(*both, correlation=(n - gone) / n if like else r)
        held += (change.low <= truth + 1e-12) & (truth - 1e-12 <= change.high)
    return held


@pytest.mark.parametrize("setting", UNLIKE)
def test_change_of_memoised_rounds_is_covered_whoever_joins(setting: tuple) -> None:
    """150 pairs: each cell's hits at least the 1e-8 quantile of binomial(150, .94), and .94 of all."""
    held = pairs_held(setting, 150, like=False)
    assert held.min() >= int(binom.ppf(1e-8, 150, 0.94))
    assert held.mean() / 150 >= 0.94


def test_the_correlation_of_joiners_like_stayers_is_too_large_where_they_are_not() -> None:
    """Control: nine in ten stay, and all who join hold the rarest value. Its change held in .81 of pairs."""
    assert pairs_held(UNLIKE[0], 150, like=True).min() < int(binom.ppf(1e-2, 150, 0.94))


def test_variances_of_devices_are_those_of_the_channel() -> None:
    """Against the rows; and nothing is told of cells of several laws, nor of two."""
    estimate = ESTIMATOR(np.bincount(BEFORE, minlength=12), 200)
    spans = estimate.intervals()
    found = Ends(estimate.values, spans.values_low, spans.values_high, estimate.printed_errors[0])
    p, q = CHANNEL.t / CHANNEL.total, CHANNEL.u / CHANNEL.total
    expected = [chance * (1 - chance) / (p - q) ** 2 for chance in (p, q)]
    assert device_variances([(found, estimate.printed_errors[0], 200)]) == pytest.approx(expected)
    errors = estimate.printed_errors[0] * np.append(1.001, np.ones(11))
    assert device_variances([(found, errors, 200)]) is None
    two = Ends(found.estimate[:2], found.low[:2], found.high[:2], found.reach[:2])
    assert device_variances([(two, estimate.printed_errors[0][:2], 200)]) is None
    assert (correlation(found, found, devices=(200, 200), shared=150, variances=None) == 0.0).all()
    assert (correlation(found, found, devices=(200, 200), shared=200, variances=None) == 1.0).all()


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
        correlation(ONE, ONE, devices=(10, 10), shared=11, variances=None)


def test_effective_sample_size_is_what_a_plain_sample_of_that_size_would_scatter_by() -> None:
    """Against draws: samples of 250 scatter as the errors say, by what the panel's shares add up to.

    Of estimates with noise the squares are too large by that of the errors, which makes 1 of the size.
    """
    shares, draws = np.array([0.5, 0.3, 0.2]), np.random.default_rng(8)
    sampled = draws.multinomial(250, shares, size=40_000) / 250
    assert effective_sample_size(shares, sampled.std(axis=0)) == pytest.approx(251, rel=0.02)
    margins = np.tile(shares, 2)
    spread = np.hstack([sampled, draws.multinomial(250, shares, size=40_000) / 250]).std(axis=0)
    assert effective_sample_size(margins, spread, total=2.0) == pytest.approx(251, rel=0.02)
    curve = sampled.cumsum(axis=1)[:, :2]
    size = effective_sample_size(shares.cumsum()[:2], curve.std(axis=0), total=1.3)
    assert size == pytest.approx(251, rel=0.02)


def test_effective_sample_size_leaves_hidden_cells_out_and_needs_two() -> None:
    shares, errors = np.array([0.5, 0.5, np.nan]), np.array([0.01, 0.01, np.inf])
    assert effective_sample_size(shares, errors) == effective_sample_size(shares[:2], errors[:2])
    assert effective_sample_size(shares[1:], errors[1:]) is None
    assert effective_sample_size(shares, np.zeros(3)) is None
    # Where all have one value, chance leaves nothing to be uncertain by: none is said, and not 0.
    assert effective_sample_size([1.5, -0.5], [0.01, 0.01]) is None
