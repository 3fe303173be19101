"""Alerts are false at most as often as they say, for every mechanism, and see forged reports."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom
from workloads import symbols_of

from hubbub.errors import ParameterError
from hubbub.estimation import (
    AlertRules,
    RoundShares,
    ScoreEstimator,
    estimator_for,
    impossible_alerts,
    jump_alerts,
    margin_alerts,
    survey_noise,
)
from hubbub.estimation.alerts.score_noise import change_deviation, deviation, largest_share, least_share
from hubbub.mechanisms import grr, levels, local_hashing, subset_selection, unary
from hubbub.mechanisms.tree.channel import tree
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import boosted, pbgrr
from hubbub_authoring.mechanisms.orbits import orbits

FAILURE = 1e-7  # the probability that a simulation here fails though the bound holds; under ten of them
GROUPS = np.array([0, 0, 0, 1, 1, 2])
MADE = {
    "grr": (lambda: grr(6, epsilon=1.0), GROUPS),
    "pbgrr": (lambda: pbgrr([3, 2, 1], epsilon=1.0, boost_epsilon=0.5), None),
    "pbgrr, other groups": (lambda: pbgrr([3, 2, 1], epsilon=1.0, boost_epsilon=0.5), GROUPS[::-1].copy()),
    "pbgrr, hidden values": (lambda: pbgrr([3, 2, 1], epsilon=1.0, boost_epsilon=0.0), None),
    "subset": (lambda: subset_selection(6, epsilon=0.5), GROUPS),
    "unary": (lambda: unary(6, epsilon=1.0), GROUPS),
    "hashing": (lambda: local_hashing(6, epsilon=2.0), GROUPS),
    "orbits": (lambda: orbits([3, 2], epsilon=1.0), None),
    "boosted": (lambda: boosted(5, epsilon=1.0, missing="input"), None),
}

LEVELS = {
    "levels": (lambda: levels([3, 2, 1], epsilon=1.0, shares=[0.5, 0.5], oracles="grr"), None),
    "levels of sets": (lambda: levels([3, 2, 1], epsilon=1.0, shares=[0.3, 0.7]), None),
    "tree": (lambda: tree(5, epsilon=1.0), None),
}


def made(name):
    build, groups = (MADE | LEVELS)[name]
    estimator = estimator_for(build(), category_of=groups)
    return estimator, survey_noise(estimator.channel, estimator)


def every_report(channel, x):
    """Every report's counts with its probability for input x, by the channel's definition alone."""
    rows = channel.probabilities()
    if rows is not None:
        return [(np.eye(channel.outputs, dtype=np.int64)[y], rows[x, y]) for y in range(channel.outputs)]
    if channel.kind == "orbits":
        symbols = symbols_of(channel)
        odds = [math.exp(channel.log_likelihood(symbol.tobytes())[x]) for symbol in symbols]
        return [(channel.tally(symbol[None, :]), each) for symbol, each in zip(symbols, odds, strict=True)]
    support = channel.levels[0].support
    p, q, inputs = float(support.p), float(support.q), channel.inputs
    found = []
    if support.size is None:
        for bits in product((0, 1), repeat=inputs):
            odds = [p if y == x else q for y in range(inputs)]
            found.append((bits, np.prod([o if bit else 1 - o for bit, o in zip(bits, odds, strict=True)])))
    else:
        sets = list(combinations(range(inputs), support.size))
        inside = sum(x in each for each in sets)
        for each in sets:
            odds = p / inside if x in each else (1 - p) / (len(sets) - inside)
            found.append((np.isin(np.arange(inputs), each), odds))
    return [(np.array(counts, dtype=np.int64), odds) for counts, odds in found]


@pytest.mark.parametrize("name", MADE)
def test_bound_on_noise_holds_for_every_report_of_every_input(name):
    """E exp(t (b - mean)) is summed over all reports, and nowhere above the bound; nor far below its best.

    The total is left to its own test.
    """
    estimator, noise = made(name)
    each = {}
    for x in range(estimator.channel.inputs):
        reports = every_report(estimator.channel, x)
        assert sum(odds for _, odds in reports) == pytest.approx(1.0)
        found = [(estimator(counts, 1), odds) for counts, odds in reports]
        each[x] = [(np.append(e.values, e.categories), odds) for e, odds in found]
    both = (noise.values, noise.categories)
    high = np.concatenate([part.high for part in both])
    groups = estimator.category_of
    inputs = len(groups)
    for t in (-3.0, -0.3, -0.01, 0.01, 0.3, 3.0):
        step = t / np.where(np.isnan(high), 1.0, high)
        steps = np.split(step, [len(noise.values.low)])
        found = [part.logs(each) for part, each in zip(both, steps, strict=True)]
        own, rest = (np.concatenate(part) for part in zip(*found, strict=True))
        for x, reports in each.items():
            member = np.append(np.arange(inputs) == x, np.arange(groups.max() + 1) == groups[x])
            with np.errstate(invalid="ignore"):
                exact = np.log(sum(odds * np.exp(step * (b - member)) for b, odds in reports))
            limit = np.where(member, own, rest)
            told = np.isfinite(limit)
            assert (exact[told] <= limit[told] + 1e-9).all()
            assert np.isnan(exact[~told]).all()


def test_noise_of_levels_is_that_of_reports_exchanged_in_a_round():
    """One report about a level is exchanged for another in a round whose levels have their exact shares.

    So the change of an estimate is that of one score. Within levels scores differ by no more than the bounds
    say, and vary over the channel's own symbols by no more, nor by less than half of it.
    """
    estimator, noise = made("levels")
    channel, n = estimator.channel, 1_000_000
    rows = channel.probabilities()
    parts = [channel.split(symbol, 1)[0][0] for symbol in np.eye(channel.outputs, dtype=np.int64)]
    shares = [float(level.share) for level in channel.levels]
    base = np.round(n * channel.expected(np.full(6, 1 / 6))).astype(np.int64)
    coarse = np.array(parts) == 1
    base[np.flatnonzero(coarse)[0]] += round(n * shares[0]) - base[coarse].sum()
    base[np.flatnonzero(~coarse)[0]] += n - base.sum()
    within, spread = np.zeros((6, 6)), np.zeros(6)
    for k, level in enumerate((coarse, ~coarse)):
        symbols = np.flatnonzero(level)
        scores = []
        for y in symbols:
            counts = base.copy()
            counts[symbols[0]] -= 1000
            counts[y] += 1000
            scores.append((estimator(counts, n).values - estimator(base, n).values) * n / 1000)
        odds = rows[:, symbols] / shares[k]
        mean, square = odds @ np.array(scores), odds @ np.array(scores) ** 2
        within += shares[k] * (square - mean**2)
        spread = np.maximum(spread, np.ptp(scores, axis=0))
    bound = noise.values
    assert (spread <= (bound.high - bound.low) * (1 + 1e-5)).all()  # shares are of whole reports
    for cell in range(6):
        others = np.delete(within[:, cell], cell).max()
        assert 0.5 * bound.own[cell] <= within[cell, cell] <= bound.own[cell] * (1 + 1e-5)
        assert 0.5 * bound.rest[cell] <= others <= bound.rest[cell] * (1 + 1e-5)
    small = impossible_alerts(noise, RoundShares(20, np.full(6, 9.0), np.full(3, 9.0)), rate=1e-3)
    assert small == []  # so few that a level may have had no report


@pytest.mark.parametrize("held", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("n", [50, 1000, 20000])
def test_thresholds_of_randomised_response_are_beside_the_exact_tail(n, held):
    """A cell's count is the sum of two binomials: its tails are convolved, and never above the rate.

    At the worst population the exact tail is within a factor of 100 of it, so that the bound is no idle one.
    """
    channel = grr(10, epsilon=1.0)
    noise = survey_noise(channel, estimator_for(channel)).values.picked(slice(0, 1))
    p, q = channel.weight(0, 0) / channel.total, channel.weight(1, 0) / channel.total
    rate, members = 1e-5, round(n * held)
    low, high = (float(f(noise, n, rate=rate)[0]) for f in (least_share, largest_share))
    others = binom.pmf(np.arange(n - members + 1), n - members, q)
    law = np.convolve(binom.pmf(np.arange(members + 1), members, p), others)
    estimates = (np.arange(len(law)) / n - q) / (p - q)
    below, above = law[estimates <= low].sum(), law[estimates >= high].sum()
    assert max(below, above) <= rate
    if held == 0.0 and n > 50:
        assert below >= rate / 100
    if held == 1.0 and n > 50:
        assert above >= rate / 100
    for sign in (-1, 1):
        s = float(deviation(noise, n, sign=sign, most=np.array([held]), rate=rate)[0])
        assert law[sign * (estimates - members / n) > s].sum() <= rate


def test_total_of_bits_is_bounded_beside_its_exact_law():
    """The number of ones of unary reports is the sum of two binomials whatever devices hold."""
    estimator = estimator_for(unary(8, epsilon=1.0))
    noise, support = survey_noise(estimator.channel, estimator).total, estimator.channel.levels[0].support
    p, q, n, rate = float(support.p), float(support.q), 400, 1e-4
    law = np.convolve(binom.pmf(np.arange(n + 1), n, p), binom.pmf(np.arange(7 * n + 1), 7 * n, q))
    total = (np.arange(len(law)) / n - 8 * q) / (p - q)
    for sign in (-1, 1):
        s = float(deviation(noise, n, sign=sign, most=np.ones(1), rate=rate)[0])
        tail = law[sign * (total - 1.0) > s].sum()
        assert rate / 100 <= tail <= rate


TRUTHS = {
    "even": np.full(6, 1 / 6),
    "skewed": np.array([0.6, 0.25, 0.1, 0.04, 0.01, 0.0]),
    "one value": np.eye(6)[0],
}


def rounds(estimator, truth, n, many, seed):
    """Shares of honest rounds, each device's report drawn by the channel itself."""
    channel = estimator.channel
    source = seeded(seed)
    people = np.repeat(np.arange(6), np.round(n * truth).astype(int))
    symbols = channel.perturb(np.tile(people, many), source=source)
    for part in np.split(symbols, many):
        estimate = estimator(channel.tally(part), len(people))
        yield RoundShares(len(people), estimate.values, estimate.categories)


@pytest.mark.parametrize(("name", "truth"), list(zip([*MADE, *LEVELS], [*TRUTHS] * 4, strict=True)))
def test_false_alarms_stay_below_the_stated_rate(name, truth):
    """60 pairs of rounds of 240 devices at a rate of .1 for either kind: at most binomial(60, .1) alarms.

    More than the binomial's quantile at 1e-7/24 would be seen with a probability below 1e-7 over all cases.
    """
    estimator, noise = made(name)
    rate, pairs = 0.1, 60
    shares = list(rounds(estimator, TRUTHS[truth], 240, 2 * pairs, 5))
    most = binom.isf(FAILURE / (2 * len(MADE | LEVELS)), pairs, rate)
    assert sum(bool(impossible_alerts(noise, each, rate=rate)) for each in shares[:pairs]) <= most
    both = zip(shares[:pairs], shares[pairs:], strict=True)
    assert sum(bool(jump_alerts(noise, one, other, rate=rate)) for one, other in both) <= most


def test_bounds_of_a_tenth_of_the_noise_are_caught_by_the_same_count():
    """The control of the test above: with thresholds too near, alarms are far more than binomial."""
    estimator, noise = made("grr")
    shares = [
        RoundShares(24000, each.values, each.categories)
        for each in rounds(estimator, TRUTHS["one value"], 240, 200, 5)
    ]
    most = binom.isf(FAILURE / (2 * len(MADE) * len(TRUTHS)), 200, 0.1)
    assert sum(bool(impossible_alerts(noise, each, rate=0.1)) for each in shares) > most


@pytest.mark.parametrize("name", ["grr", "unary"])
def test_memoised_answers_narrow_a_jump_and_keep_its_rate(name):
    """180 of 240 devices send one report to both rounds; alarms stay binomial(80, .1) at most (1e-7)."""
    estimator, noise = made(name)
    channel, source, alarms, most = estimator.channel, seeded(8), 0, binom.isf(FAILURE, 80, 0.1)
    people = np.repeat(np.arange(6), 40)
    for _ in range(80):
        one, other = (channel.perturb(people, source=source) for _ in range(2))
        other[np.arange(240) % 4 != 0] = one[np.arange(240) % 4 != 0]
        found = [estimator(channel.tally(symbols), 240) for symbols in (one, other)]
        pair = [RoundShares(240, each.values, each.categories) for each in found]
        alarms += bool(jump_alerts(noise, *pair, shared=180, rate=0.1))
    assert alarms <= most
    wide, narrow = (
        change_deviation(noise.values, 240, 240, shared=shared, most=np.full(6, 0.2), rate=1e-3)
        for shared in (0, 180)
    )
    np.testing.assert_array_less(narrow, 0.65 * wide)


def forged(estimator, truth, n, share, symbol):
    """Shares of a round of which a part are copies of one symbol, found to be the best for value 5."""
    channel = estimator.channel
    people = np.repeat(np.arange(6), np.round(n * (1 - share) * truth).astype(int))
    lies = round(n * share)
    counts = channel.tally(channel.perturb(people, source=seeded(lies))) + lies * symbol
    counted = len(people) + lies
    estimate = estimator(counts, counted)
    return RoundShares(counted, estimate.values, estimate.categories)


def best_report(estimator, target):
    channel = estimator.channel
    reports = [channel.tally(channel.perturb(np.array([target]), source=seeded(seed))) for seed in range(100)]
    # A round of others, since estimates by levels need reports about each.
    others = channel.tally(channel.perturb(np.repeat(np.arange(6), 1000), source=seeded(1)))
    return max(reports, key=lambda counts: estimator(others + 100 * counts, 6100).values[target])


@pytest.mark.parametrize("name", ["grr", "pbgrr", "subset", "unary", "hashing", "boosted", *LEVELS])
def test_forged_reports_raise_a_jump(name):
    """One in twenty reports is forged for the last value, among 40,000: every mechanism shows the jump."""
    estimator, noise = made(name)
    truth = TRUTHS["even"]
    before = forged(estimator, truth, 40_000, 0.0, 0)
    after = forged(estimator, truth, 40_000, 0.05, best_report(estimator, 5))
    assert jump_alerts(noise, before, before, rate=1e-3) == []
    found = jump_alerts(noise, before, after, rate=1e-3)
    assert {(alert.kind, alert.rate) for alert in found} == {("jump", 1e-3)}
    assert any(alert.family == "values" and alert.cell == 5 and alert.statistic > 0 for alert in found)


def test_more_than_everyone_is_impossible():
    """A forged twentieth shows more than everyone at epsilon .5; an honest round does not."""
    estimator = estimator_for(grr(30, epsilon=0.5))
    noise, n = survey_noise(estimator.channel, estimator), 20_000
    counts = estimator.channel.tally(estimator.channel.perturb(np.arange(n) % 30, source=seeded(4)))
    honest = estimator(counts, n)
    assert impossible_alerts(noise, RoundShares(n, honest.values, honest.categories), rate=1e-3) == []
    counts[29] += 1000
    shown = estimator(counts, n + 1000)
    assert shown.values[29] > 1.0
    found = impossible_alerts(noise, RoundShares(n + 1000, shown.values, shown.categories), rate=1e-3)
    assert ("values", 29) in {(alert.family, alert.cell) for alert in found}
    assert all(alert.statistic > alert.threshold > 1.0 for alert in found if alert.cell == 29)


def test_reports_of_all_bits_break_the_total():
    estimator = estimator_for(unary(20, epsilon=1.0))
    noise, n = survey_noise(estimator.channel, estimator), 5000
    counts = estimator.channel.tally(estimator.channel.perturb(np.arange(n) % 20, source=seeded(4)))
    shown = estimator(counts + 50, n + 50)
    found = impossible_alerts(noise, RoundShares(n + 50, shown.values, shown.categories), rate=1e-3)
    assert [alert.family for alert in found] == ["total"]


def test_mean_of_a_score_beyond_its_ends_is_impossible():
    estimator = ScoreEstimator(grr(2, epsilon=1.0), low=0.0, high=10.0)
    noise = survey_noise(estimator.channel, estimator)
    for ones, alarms in ((100, 0), (700, 0), (900, 1)):
        estimate = estimator(np.array([1000 - ones, ones]), 1000)
        shares = RoundShares(1000, estimate.values, estimate.categories, estimate.mean / 10.0)
        found = [each for each in impossible_alerts(noise, shares, rate=1e-3) if each.statistic > 0.5]
        assert len(found) == alarms


def test_margin_is_of_the_largest_value():
    shares = RoundShares(1000, np.array([0.2, 0.7, np.nan]), np.array([1.0]))
    share, found = margin_alerts(shares, np.array([1.0, 25.0, np.nan]), below=0.03)
    assert share == pytest.approx(25 / 1025)
    assert [(alert.kind, alert.cell, alert.rate) for alert in found] == [("margin", 1, 0.0)]
    assert margin_alerts(shares, np.array([1.0, 25.0, np.nan]), below=0.02)[1] == []
    assert margin_alerts(shares, np.array([1.0, np.inf, np.nan]), below=0.9) == (None, [])


@pytest.mark.parametrize(
    "rules",
    [{"rate": 0.0}, {"rate": 1.0}, {"rate": float("nan")}, {"margin_share": -0.1}, {"margin_share": 1.0}],
)
def test_rules_out_of_range_are_refused(rules):
    with pytest.raises(ParameterError, match="must"):
        AlertRules(**rules)


def test_more_shared_devices_than_reports_are_refused():
    _, noise = made("grr")
    shares = RoundShares(10, np.zeros(6), np.zeros(3))
    with pytest.raises(ParameterError, match="shared"):
        jump_alerts(noise, shares, shares, shared=11, rate=0.1)
