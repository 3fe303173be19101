"""Bands that hold at every look: their design, their law beside exact ones, and what they do at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.errors import ParameterError
from hubbub.estimation import Looks, always_valid, always_valid_so_far, estimator_for, survey_noise
from hubbub.estimation.alerts.score_noise import ScoreNoise
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, pbgrr, subset_selection, unary

VECTOR = Looks(500, 512_000)


def noise_of(channel, family="values"):
    return getattr(survey_noise(channel, estimator_for(channel)), family)


def bands(estimate, noise, n, *, alpha=0.05, looks=VECTOR, of="devices"):
    low, high = always_valid(
        np.atleast_2d(estimate), noise, np.atleast_1d(n), alpha=alpha, looks=looks, of=of
    )
    return low, high


def test_the_band_of_a_stated_example_is_the_one_reckoned_beforehand():
    """GRR of 3 at epsilon 1, 993 hits of 4,000, alpha .05, looks from 500 to 512,000 reports."""
    channel = grr(3, epsilon=1.0)
    estimate = estimator_for(channel)(np.array([993, 1500, 1507]), 4000)
    assert estimate.values[0] == pytest.approx(0.0997, abs=5e-7)
    low, high = bands(estimate.values, noise_of(channel), 4000)
    assert (low[0, 0], high[0, 0]) == pytest.approx((0.040455, 0.159125), abs=5e-7)
    assert VECTOR.sizes() == pytest.approx([500, 2000, 8000, 32_000, 128_000, 512_000])


@pytest.mark.parametrize("of", ["devices", "crowd"])
def test_an_end_is_where_the_wealth_of_the_numbers_reaches_one_over_alpha(of):
    """The wealth is written out for GRR, whose reports are for a cell with p or q, and r of a crowd."""
    e, n, alpha, hits = math.exp(1.0), 4000, 0.05, 993
    p, q = e / (e + 2), 1 / (e + 2)
    numbers = np.array([0.131938, 0.065969, 0.032984, 0.016492, 0.008246, 0.004123])
    if of == "crowd":  # the design is for a ninth drawn from it, too
        variance = q * (1 - q) / (p - q) ** 2
        numbers = numbers * math.sqrt(variance / (variance + 0.1))
    estimate = (hits / n - q) / (p - q)

    def wealth(f):
        total = 0.0
        for l in [*numbers, *(-each for each in numbers)]:  # noqa: E741 - the symbol of the paper
            up, down = math.exp(l * (1 - q) / (p - q)), math.exp(-l * q / (p - q))
            if of == "devices":
                log = f * math.log(p * up + (1 - p) * down) + (1 - f) * math.log(q * up + (1 - q) * down)
            else:
                r = q + f * (p - q)
                log = math.log(1 - r + r * math.exp(l / (p - q))) - l * q / (p - q)
            total += math.exp(n * (l * estimate - log)) / 12
        return total

    noise = noise_of(grr(3, epsilon=1.0)).picked(slice(0, 1))
    (low,), (high,) = bands([estimate], noise, n, of=of)
    for end in (low[0], high[0]):
        assert wealth(end) == pytest.approx(1 / alpha, rel=1e-3)
    assert all(wealth(f) < 1 / alpha for f in np.linspace(low[0] + 1e-4, high[0] - 1e-4, 50))
    assert wealth(low[0] - 1e-3) > 1 / alpha and wealth(high[0] + 1e-3) > 1 / alpha


@pytest.mark.parametrize("channel", [grr(3, epsilon=3.0), pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0)])
def test_no_report_grows_the_wealth_in_expectation(channel):
    """Of every answer and cell, E exp(l b) from the channel's own rows is at most what the band takes off."""
    estimator = estimator_for(channel)
    noise, rows = survey_noise(channel, estimator).values, channel.probabilities()
    scores = estimator.inverse.matrix()
    for size in (0.01, 0.1, 0.7, 2.0):
        for number in (size, -size):
            own, rest = noise.logs(np.full((1, 3), number))
            grown = np.log(rows @ np.exp(number * scores.T))  # by answer and cell
            bound = np.where(np.eye(3, dtype=bool), own + number, rest)
            assert (grown <= bound + 1e-12).all()


@pytest.mark.statistical
@pytest.mark.parametrize(
    "channel",
    [
        pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0),
        unary(3, epsilon=2.0),
        subset_selection(3, epsilon=2.0),
        levels([2, 1], epsilon=3.0),
    ],
    ids=["pbgrr", "unary", "subset", "levels"],
)
@pytest.mark.parametrize("family", ["values", "categories"])
def test_every_mechanism_holds_at_every_look_when_members_come_first(channel, family):
    """60 rounds of 4,000 reports, 16 looks: the band of a cell misses in at most binomial(60, .05).

    Its quantile at 1e-7 is taken for each of up to three cells. Devices that hold the first value come first.
    """
    estimator, source, rounds = estimator_for(channel), seeded(9), 60
    noise = getattr(survey_noise(channel, estimator), family)
    people = np.repeat([0, 1, 2], [1600, 1200, 1200])
    category_of = np.asarray(estimator.category_of)
    missed = None
    for _ in range(rounds):
        reports = channel.perturb(people, source=source)
        sizes = np.arange(250, 4001, 250)
        found = [estimator(channel.tally(reports[:n]), n) for n in sizes]
        low, high = always_valid(
            np.stack([getattr(each, family) for each in found]),
            noise,
            sizes,
            alpha=0.05,
            looks=Looks(250, 4000),
            of="devices",
        )
        held = np.stack([np.bincount(people[:n], minlength=3) / n for n in sizes])
        if family == "categories":
            held = np.stack([held[:, category_of == c].sum(axis=1) for c in range(low.shape[1])], axis=1)
        off = ((held < low) | (held > high)).any(axis=0)
        missed = off.astype(int) if missed is None else missed + off
    assert missed.max() <= binom.isf(1e-7, rounds, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["flat", "walk", "weekly"])
def test_a_year_of_days_is_watched(kind):
    """300 years of 365 rounds of 1,667 reports by GRR of 3: 30 misses at most, the control 100 and more.

    The true rate is at most .05, of which binomial(300, .05) passes 30 with a probability of 2e-4; the seed
    is fixed. The control is 1.96 errors of the running mean, of crowd and noise.
    """
    chance, years, days, n = np.random.default_rng(8), 300, 365, 1667
    channel = grr(3, epsilon=1.0)
    noise = noise_of(channel).picked(np.zeros(years, dtype=np.intp))
    low_score, high_score = float(noise.low[0]), float(noise.high[0])
    p, q = (1 - low_score) / (high_score - low_score), -low_score / (high_score - low_score)
    day = np.arange(days)[:, None]
    shares = 0.1 + np.zeros((days, years))
    if kind == "walk":
        shares = np.clip(shares + np.cumsum(chance.normal(0, 0.01, (days, years)), axis=0), 0.0, 1.0)
    elif kind == "weekly":
        shares = shares + 0.05 * (day % 7 == 6)
    hits = chance.binomial(n, q + shares * (p - q))
    estimates = low_score + (high_score - low_score) * hits / n
    sizes = np.full(days, n)
    running, low, high = always_valid_so_far(
        estimates, noise, sizes, alpha=0.05, looks=Looks(100, 1024 * 100), newest=days
    )
    truth = np.cumsum(shares, axis=0) / (day + 1)
    assert np.abs(running - np.cumsum(estimates, axis=0) / (day + 1)).max() < 1e-12
    assert ((truth < low) | (truth > high)).any(axis=0).sum() <= 30
    r = q + truth * (p - q)
    half = 1.96 * np.sqrt(r * (1 - r) / (n * (day + 1))) / (p - q)
    assert (np.abs(running - truth) > half).any(axis=0).sum() >= 100
    kept = always_valid_so_far(
        estimates[:, :2],
        noise.picked(slice(0, 2)),
        sizes,
        alpha=0.05,
        looks=Looks(100, 102_400),
        newest=3,
    )
    assert [len(each) for each in kept] == [3, 3, 3]
    assert kept[1] == pytest.approx(low[-3:, :2])


def test_bands_are_within_what_is_possible_and_no_estimate_is_outside_or_unknown_to_them():
    """Estimates beyond 0 and 1 are read as these, hidden ones have no band, and one report tells nothing."""
    noise = noise_of(grr(3, epsilon=1.0))
    low, high = bands([-0.3, math.nan, 1.4], noise, 500)
    assert low[0, 0] == 0.0 < high[0, 0] < 1.0
    assert math.isnan(low[0, 1]) and math.isnan(high[0, 1])
    assert high[0, 2] == 1.0 > low[0, 2] > 0.0
    at_zero = bands([0.0, 0.0, 1.0], noise, 500)
    assert (high[0, 0], low[0, 2]) == (at_zero[1][0, 0], at_zero[0][0, 2])
    low, high = bands([0.5, 0.5, 0.5], noise, 1)
    assert (low == 0.0).all() and (high == 1.0).all()
    for alpha in (0.0, 1.0, -0.5):
        with pytest.raises(ParameterError, match="alpha must be strictly between 0 and 1"):
            bands([0.5, 0.5, 0.5], noise, 500, alpha=alpha)
    with pytest.raises(ParameterError, match="first look must be at one report or more, got 0"):
        Looks(0, 5)


@pytest.mark.parametrize("epsilon", [0.01, 12.0, 40.0])
def test_extreme_budgets_have_bands(epsilon):
    """At epsilon 40 reports are answers: nothing is left to doubt but who was drawn from the crowd."""
    noise = noise_of(grr(3, epsilon=epsilon))
    for of in ("devices", "crowd"):
        low, high = bands([0.5, 0.3, 0.0], noise, 100_000, of=of)
        assert np.isfinite(low).all() and (low <= [0.5, 0.3, 0.0]).all() and (high >= [0.5, 0.3, 0.0]).all()
        assert (high > low).all()
        if epsilon > 20:
            assert (high - low).max() < (0.03 if of == "crowd" else 1e-3)


def test_a_mean_of_a_score_stands_between_its_ends():
    """A device at a place x says yes with a mixture of both ends' odds: the crowd's form bounds them."""
    noise = ScoreNoise.within(np.array([-0.5]), np.array([1.5]))
    own, rest = noise.logs(np.array([[0.3]]))
    places = np.linspace(0.0, 1.0, 11)
    each = np.log((1 - places) * np.exp(rest[0]) + places * np.exp(own[0] + 0.3))
    of_mean = np.log(0.5 * np.exp(rest[0, 0]) + 0.5 * np.exp(own[0, 0] + 0.3))
    assert each.mean() <= of_mean
