"""A still crowd, of which other devices answer in every round, raises no more alarms than stated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.estimation import RoundShares, estimator_for, joint_alerts, jump_alerts, survey_noise
from hubbub.estimation.alerts.score_noise import change_deviation, crowd_deviation
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, pbgrr, subset_selection, unary

RATE = 0.01
PAIRS = 400
FAILURE = 1e-7
SHARES = np.array([0.5, 0.3, 0.2])
MADE = {
    "grr": grr(3, epsilon=3.0),
    "grr, 5": grr(3, epsilon=5.0),
    "subset": subset_selection(3, epsilon=3.0),
    "unary": unary(3, epsilon=3.0),
    "pbgrr": pbgrr([2, 1], epsilon=3.0, boost_epsilon=2.0),
    "levels": levels([2, 1], epsilon=3.0),
}


def rounds(channel, crowd, answering, many, *, same=False):
    """Yield estimates of rounds in which a random part of a crowd answers, or the same devices every time."""
    estimator, chance, source = estimator_for(channel), np.random.default_rng(1), seeded(2)
    everybody = np.repeat(np.arange(3), np.round(crowd * SHARES).astype(int))
    people = np.stack([chance.permutation(everybody)[:answering] for _ in range(many)])
    if same:
        people = np.tile(people[:1], (many, 1))
    reports = channel.perturb(people.reshape(-1), source=source)
    for part in np.split(reports, many):
        estimate = estimator(channel.tally(part), answering)
        yield RoundShares(answering, estimate.values, estimate.categories)


def alarms(channel, pairs):
    """Return pairs with a jump, and pairs with a joint change, at the rate."""
    estimator = estimator_for(channel)
    noise = survey_noise(channel, estimator)
    jumps = sum(bool(jump_alerts(noise, *pair, rate=RATE)) for pair in pairs)
    return jumps, sum(bool(joint_alerts(channel, estimator, *pair, rate=RATE)) for pair in pairs)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "answering"), list(zip(MADE, [0.1, 0.5, 0.9, 0.5, 0.1, 0.9], strict=True)))
def test_other_devices_of_a_still_crowd_are_no_change(name, answering):
    """400 pairs of 400 devices at a rate of .01, for jumps and for joint changes: at most binomial(400, .01).

    More than its quantile at 1e-7 would be seen with that probability in each of 12 counts, were the rate
    just the stated one. With the law of the devices counted, joint changes were 40 to 310 where a tenth or a
    half answers.
    """
    channel, n = MADE[name], 400
    some = list(rounds(channel, round(n / answering), n, 2 * PAIRS))
    found = alarms(channel, list(zip(some[:PAIRS], some[PAIRS:], strict=True)))
    assert max(found) <= binom.isf(FAILURE, PAIRS, RATE)


@pytest.mark.statistical
def test_one_person_in_twenty_who_moves_is_found():
    """Of 40,000 devices a twentieth leaves the largest share: both tests see it in every pair of 10."""
    channel = MADE["grr"]
    before = list(rounds(channel, 80_000, 40_000, 10))
    off = np.array([-0.05, 0.05, 0.0])
    moved = [RoundShares(each.n, each.values + off, each.categories) for each in before]
    assert alarms(channel, list(zip(before[:5], moved[5:], strict=True))) == (5, 5)


@pytest.mark.statistical
def test_the_same_devices_twice_raise_fewer():
    """The control: 400 pairs in which nobody new answers have alarms, as the law is wider than they need."""
    channel = MADE["grr, 5"]
    some = list(rounds(channel, 800, 400, 2 * PAIRS, same=True))
    assert max(alarms(channel, list(zip(some[:PAIRS], some[PAIRS:], strict=True)))) <= PAIRS * RATE


def test_bounds_are_those_of_the_binomial_reports_of_a_crowd():
    """A report of a GRR crowd of share f is for the cell with r = q + f(p - q), whoever sends it.

    So the exact tail of Bin(n, r) beyond the bound is at most the stated rate for every f up to the most. Nor
    is the bound wide: of the normal law's own quantile, 0.99 to 1.45 times.
    """
    channel, n, rate = MADE["grr, 5"], 2000, 1e-3
    estimator = estimator_for(channel)
    noise = survey_noise(channel, estimator).values
    p, q = channel.probabilities()[0, 0], channel.probabilities()[0, 1]
    for most in (0.02, 0.3, 0.9):
        up = crowd_deviation(noise, n, sign=1, most=np.full(3, most), rate=rate)[0]
        down = crowd_deviation(noise, n, sign=-1, most=np.full(3, most), rate=rate)[0]
        for f in most * np.linspace(0.0, 1.0, 21):
            r = q + f * (p - q)
            above = np.ceil(n * (q + (f + up) * (p - q)) - 1e-9)
            below = np.floor(n * (q + (f - down) * (p - q)) + 1e-9)
            assert binom.sf(above - 1, n, r) <= rate
            assert binom.cdf(below, n, r) <= rate
        worst = np.linspace(0.0, most, 2001)
        r = q + worst * (p - q)
        normal = 3.0902 * np.sqrt((r * (1 - r)).max() / n) / (p - q)
        assert 0.99 * normal <= up <= 1.45 * normal
        both = change_deviation(noise, n, n, shared=0, most=np.full(3, most), rate=rate)[0]
        assert 0.99 * 2**0.5 * normal <= both <= 1.45 * 2**0.5 * normal
