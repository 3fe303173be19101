"""Windows of rounds: slow changes are found, still crowds are not, and a pooled window is a larger round."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from hubbub.estimation import (
    RoundShares,
    estimator_for,
    joint_alerts,
    jump_alerts,
    survey_noise,
    window_joints,
    window_jumps,
)
from hubbub.estimation.alerts.windows import comparisons, pooled
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import grr, levels, unary

SHARES = np.array([0.5, 0.3, 0.2])
STILL = 52


def rounds_of(channel, shares, n, chance):
    """Return rounds of a crowd of given shares, a row each."""
    estimator, found, source = estimator_for(channel), [], seeded(5)
    for row in shares:
        held = np.repeat(np.arange(len(row)), chance.multinomial(n, row))
        estimate = estimator(channel.tally(channel.perturb(held, source=source)), n)
        found.append(RoundShares(n, estimate.values, estimate.categories))
    return found


def changed(channel, rounds, since, rate):
    """Return whether the last round has an alert of a change; jumps and joint changes share the rate."""
    estimator = estimator_for(channel)
    noise = survey_noise(channel, estimator)
    return bool(
        window_jumps(noise, rounds, since=since, rate=rate / 2.0)
        or window_joints(channel, estimator, rounds, since=since, rate=rate / 2.0)
    )


def test_windows_double_up_to_half_of_the_reference_and_share_the_rate():
    """Every window is of the last rounds, beside all others since the reference began."""
    some = [RoundShares(10 + i, np.array([float(i)]), np.array([1.0])) for i in range(20)]
    for count in range(1, 21):
        for since in range(count + 1):
            found = comparisons(some[:count], since=since)
            known = count - since
            lengths = [length for length in (1, 2, 4, 8) if 2 * length <= known]
            whole = [window for each in found for window in each.windows if each.part > 0.5]
            assert [(window.after.rounds, window.before.rounds) for window in whole] == [
                (length, known - length) for length in lengths
            ]
            assert [window.before.n + window.after.n for window in whole] == [
                sum(each.n for each in some[since:count])
            ] * len(lengths)
            pairs = [each for each in found if each.part < 0.5]
            assert len(pairs) == (count > 1 and known != 2)
            assert [pair.windows[0] for pair in pairs] == [(some[count - 2], some[count - 1])] * len(pairs)
            assert sum(each.part for each in found) <= 1.0


@pytest.mark.parametrize("channel", [grr(3, epsilon=1.0), unary(3, epsilon=2.0)], ids=["grr", "unary"])
def test_a_pooled_window_is_the_estimate_of_all_its_reports(channel):
    """The estimator itself, given the summed counts, says the same to 1e-12."""
    estimator, counts, sizes = estimator_for(channel), [], (200, 340, 90)
    for i, n in enumerate(sizes):
        counts.append(channel.tally(channel.perturb(np.arange(n) % 3, source=seeded(i))))
    rounds = [
        RoundShares(n, found.values, found.categories)
        for n, found in ((n, estimator(each, n)) for n, each in zip(sizes, counts, strict=True))
    ]
    together, one = pooled(rounds), estimator(sum(counts), sum(sizes))
    assert (together.n, together.rounds, together.fewest) == (630, 3, 90)
    assert np.abs(together.values - one.values).max() < 1e-12
    assert np.abs(together.categories - one.categories).max() < 1e-12
    assert pooled(rounds[:1]) is rounds[0]
    scores = [RoundShares(n, np.empty(0), np.empty(0), place) for n, place in ((10, 0.2), (30, 0.6))]
    assert pooled(scores).place == pytest.approx(0.5)


@pytest.mark.statistical
@pytest.mark.parametrize(("jump", "drift", "within"), [(2.0, 0.0, 13), (0.0, 0.1, 26)], ids=["jump", "drift"])
def test_a_slow_change_is_found_where_neighbours_do_not_see_it(jump, drift, within):
    """10 runs of GRR of 3, epsilon 1, 2,000 reports, at a rate of 5e-4 for changes: found in 9 and more.

    By evidence/scan.json it is found in all but few of 200. Were it found in .95 of runs, 8 or fewer of 10
    would have a probability of .09; the seed is fixed. Neighbours find 2 at most, of a chance of .04 each.
    """
    channel, n = grr(3, epsilon=1.0), 2000
    estimator = estimator_for(channel)
    noise = survey_noise(channel, estimator)
    error = estimator.expected_estimate(SHARES, n).of_crowd().printed_errors[0][0]
    moved = error * np.concatenate([np.zeros(STILL), jump + drift * np.arange(1, within + 1)])
    chance, found, beside = np.random.default_rng(3), 0, 0
    for _ in range(10):
        rounds = rounds_of(channel, SHARES + np.outer(moved, [-1.0, 1.0, 0.0]), n, chance)
        later = range(STILL + 1, len(rounds) + 1)
        found += any(changed(channel, rounds[:t], 0, 5e-4) for t in later)
        beside += any(
            jump_alerts(noise, *rounds[t - 2 : t], rate=2.5e-4)
            or joint_alerts(channel, estimator, *rounds[t - 2 : t], rate=2.5e-4)
            for t in later
        )
    assert found >= 9 and beside <= 2


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["grr", "levels"])
def test_a_still_crowd_raises_no_more_than_stated_however_often_the_reference_begins(name):
    """10 runs of 40 rounds at a rate of .2 a round: at most binomial(390, .2)'s quantile at 1e-7.

    A rate so high makes the reference begin anew every few rounds.
    """
    channel = {"grr": grr(3, epsilon=3.0), "levels": levels([2, 1], epsilon=3.0)}[name]
    chance, raised, begun = np.random.default_rng(4), 0, 0
    for _ in range(10):
        rounds, since = rounds_of(channel, np.tile(SHARES, (40, 1)), 400, chance), 0
        for t in range(2, 41):
            if changed(channel, rounds[:t], since, 0.2):
                raised, since, begun = raised + 1, t, begun + 1
    assert 10 < begun <= raised <= binom.isf(1e-7, 390, 0.2)


def test_pooled_levels_keep_the_slack_of_their_smallest_round():
    """Reports per level are random in every round: what that adds to one round does not go out in a mean."""
    channel = levels([2, 1], epsilon=3.0)
    noise = survey_noise(channel, estimator_for(channel))
    rounds = rounds_of(channel, np.tile(SHARES, (12, 1)), 4000, np.random.default_rng(6))
    slack = noise.values.slack
    assert window_jumps(noise, rounds, since=0, rate=0.01) == []
    off = np.array([-0.2, 0.2, 0.0])
    moved = [replace(each, values=each.values + (i > 7) * off) for i, each in enumerate(rounds)]
    found = window_jumps(noise, moved, since=0, rate=0.01)
    assert {alert.cell for alert in found} == {0, 1} and {alert.window for alert in found} <= {2, 4}
    least = slack.at(4000, rate=0.01)[:2].min()
    assert all(abs(alert.threshold) > 2.0 * least for alert in found)
