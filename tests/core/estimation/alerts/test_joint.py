"""The joint test of a change: its false alarms, its power beside single jumps, and where it is silent."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, gamma

from hubbub.errors import ParameterError
from hubbub.estimation import RoundShares, estimator_for, joint_alerts, jump_alerts, survey_noise
from hubbub.estimation.alerts.joint import gamma_point
from hubbub.mechanisms import grr, levels, subset_selection, unary
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import pbgrr

INPUTS = 12
MADE = {
    "grr": grr(INPUTS, epsilon=2.0),
    "pbgrr": pbgrr([3, 3, 3, 3], epsilon=2.0, boost_epsilon=1.0),
    "subset": subset_selection(INPUTS, epsilon=1.0),
    "unary": unary(INPUTS, epsilon=1.0),
    "levels": levels([3, 3, 3, 3], epsilon=2.0),
}
EVEN = np.full(INPUTS, 1 / INPUTS)
STEEP = np.array([0.6, 0.3, 0.1] + [0.0] * (INPUTS - 3))


def rounds(channel, truth, n, many, source):
    """Estimates of honest rounds, each device's report drawn by the channel itself."""
    estimator = estimator_for(channel)
    people = np.repeat(np.arange(INPUTS), np.round(n * truth).astype(int))
    for part in np.split(channel.perturb(np.tile(people, many), source=source), many):
        estimate = estimator(channel.tally(part), len(people))
        yield RoundShares(len(people), estimate.values, estimate.categories)


def raised(channel, pairs, **words):
    estimator = estimator_for(channel)
    return sum(bool(joint_alerts(channel, estimator, one, other, **words)) for one, other in pairs)


@pytest.mark.statistical
@pytest.mark.parametrize("name", MADE)
def test_false_alarms_are_as_stated(name):
    """100 pairs of rounds of 240 devices at a rate of .05, seed 5: at most the binomial's 1e-7 quantile.

    The rate is about right, and no bound: were it just .05, more would be seen with a probability of 1e-7 in
    each of five cases. Control: of rounds said to have twice the devices, more than that raise an alert.
    """
    channel, pairs = MADE[name], 100
    some = list(rounds(channel, STEEP, 240, 2 * pairs, seeded(5)))
    both = list(zip(some[:pairs], some[pairs:], strict=True))
    most = binom.isf(1e-7, pairs, 0.05)
    assert raised(channel, both, rate=0.05) <= most
    closer = [tuple(RoundShares(480, each.values, each.categories) for each in pair) for pair in both]
    assert raised(channel, closer, rate=0.05) > most


def test_many_small_changes_are_seen_that_no_single_jump_shows():
    """Every second value loses a quarter to the next one: seen in nearly all of 20 rounds, by jumps in few.

    The change of a cell is 2.1 of its errors about the crowd, and the squared distance 58 more than its mean.
    """
    channel, n = MADE["grr"], 11_520
    estimator = estimator_for(channel)
    noise = survey_noise(channel, estimator)
    moved = EVEN * np.tile([0.75, 1.25], INPUTS // 2)
    before, after = (list(rounds(channel, truth, n, 20, seeded(6))) for truth in (EVEN, moved))
    pairs = list(zip(before, after, strict=True))
    assert raised(channel, pairs, rate=2.5e-4) >= 17
    assert sum(bool(jump_alerts(noise, *pair, rate=2.5e-4)) for pair in pairs) <= 8


def test_memoised_answers_narrow_the_test_and_keep_its_rate():
    """180 of 240 devices send one report to both rounds, 80 pairs at .05: the binomial's 1e-7 quantile."""
    channel, source, alarms, known = MADE["unary"], seeded(8), 0, 0
    estimator = estimator_for(channel)
    people = np.repeat(np.arange(INPUTS), 20)
    for _ in range(80):
        one = channel.perturb(people, source=source)
        other = np.concatenate([one[:180], channel.perturb(people[180:], source=source)])
        pair = []
        for symbols in (one, other):
            estimate = estimator(channel.tally(symbols), 240)
            pair.append(RoundShares(240, estimate.values, estimate.categories))
        alarms += bool(joint_alerts(channel, estimator, *pair, shared=180, rate=0.05))
        known += bool(joint_alerts(channel, estimator, *pair, shared=0, rate=0.05))
    assert alarms <= binom.isf(1e-7, 80, 0.05)
    assert known == 0  # with none reckoned shared, three quarters of the noise are not there


def test_where_the_law_does_not_hold_nothing_is_said():
    channel = MADE["grr"]
    estimator = estimator_for(channel)
    far = RoundShares(40, np.eye(INPUTS)[0], np.empty(0)), RoundShares(40, np.eye(INPUTS)[1], np.empty(0))
    assert joint_alerts(channel, estimator, *far, rate=0.05) == []  # an output is expected 40 * .054 times
    many = [RoundShares(400, each.values, each.categories) for each in far]
    (found,) = joint_alerts(channel, estimator, *many, rate=0.05)
    assert (found.kind, found.family, found.cell, found.rate) == ("joint", "values", 0, 0.05)
    assert found.statistic > found.threshold > INPUTS - 1
    assert joint_alerts(channel, estimator, *many, shared=400, rate=0.05) == []  # the same reports
    hidden = RoundShares(400, np.full(INPUTS, np.nan), np.empty(0))
    assert joint_alerts(channel, estimator, hidden, many[1], rate=0.05) == []
    with pytest.raises(
        ParameterError, match="shared must be within 0 to the devices of either round, got 401"
    ):
        joint_alerts(channel, estimator, *many, shared=401, rate=0.05)


@pytest.mark.parametrize("rate", [0.5, 0.05, 2.5e-4, 1e-9])
@pytest.mark.parametrize(("mean", "variance"), [(1.0, 2.0), (11.0, 22.0), (29.0, 80.0), (255.0, 600.0)])
def test_gamma_points_are_those_of_another_library(rate, mean, variance):
    shape, scale = mean**2 / variance, variance / mean
    assert gamma_point(rate, mean=mean, variance=variance) == pytest.approx(
        gamma.isf(rate, shape, scale=scale), rel=1e-9
    )
