"""Pooled tables beside full least squares of the explicit joint channel, its moments and its simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom
from set_contract import latin_sets

from hubbub.errors import ParameterError
from hubbub.mechanisms import (
    PART_ALARM,
    BundleEstimator,
    PairedTables,
    PooledNoise,
    Pooling,
    SampledPart,
    SampledParts,
    part_chances,
    subset_selection,
)
from hubbub.testing import seeded

WORD = 2**32
PAIRS = [(0, 1), (0, 2), (1, 2)]


def channel_of(readings, tables, shares, *, epsilon=1.0, classes=None) -> SampledParts:
    made, left = [], WORD
    for number, (members, share) in enumerate(zip(tables, shares, strict=True)):
        cells, g = math.prod(readings[j] for j in members), 1 if classes is None else classes[number]
        oracle = subset_selection(cells, epsilon=epsilon, size=None if g == 1 else cells // g)
        own = left if number == len(tables) - 1 else round(share * WORD)
        left -= own
        made.append(SampledPart(tuple(members), own, oracle.size, oracle.p_draws, g))
    return SampledParts(readings, made)


MIXED_TABLES = [(0,), (1, 2), (0, 1), (0, 2), (1, 2)]


def interacting(readings=(2, 4, 2), shares=(0.2, 0.3, 0.2, 0.2, 0.1)) -> SampledParts:
    """No part is the table of 0 and 1, nor of 0 and 2; the interaction of 1 and 2 is told twice."""
    return channel_of(readings, MIXED_TABLES, shares, classes=[1, 1, 2, 2, 2])


def margin(table, members, readings):
    others = tuple(i for i in range(len(readings)) if i not in members)
    return table.reshape(readings).sum(axis=others).ravel()


def symbols_of(channel):
    """Every symbol of a small channel, as the part and the cells that it holds."""
    for number in range(len(channel.parts)):
        for cells in sets_of(channel, number):
            yield number, cells


def sets_of(channel, number):
    """Every set of a part."""
    oracle, classes = channel.oracles[number], channel.parts[number].classes
    if classes == 1:
        return list(itertools.combinations(range(oracle.inputs), oracle.size))
    return latin_sets(channel.shapes[number], classes, oracle.size * classes // oracle.inputs)


def packed(channel, number, cells):
    bits = np.zeros(channel.oracles[number].inputs, dtype=np.uint8)
    bits[list(cells)] = 1
    return (bytes([number]) + np.packbits(bits, bitorder="little").tobytes()).ljust(channel.width, b"\0")


def joint(channel):
    """The whole channel as a matrix, shape (inputs, symbols)."""
    symbols = [packed(channel, *each) for each in symbols_of(channel)]
    return np.exp(np.stack([channel.log_likelihood(symbol) for symbol in symbols], axis=1))


@pytest.mark.parametrize("parts", ["pairs", "interactions"])
def test_pooled_tables_are_the_least_squares_of_the_joint_channel_at_a_uniform_crowd(parts):
    """The left inverse of least variance at a uniform crowd, by a pseudo-inverse of all symbols."""
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45)) if parts == "pairs" else interacting()
    readings = channel.readings
    law = joint(channel)
    weight = law.mean(axis=0)
    fisher = (law / weight) @ law.T
    inverse = np.linalg.pinv(fisher) @ (law / weight)  # of shares, up to what the symbols cannot tell
    estimator = BundleEstimator(channel, tables=PAIRS)
    n = 10**6
    expected = estimator.uniform_estimate(n)
    found = []
    start = 0
    for table in PAIRS:
        cells = [margin(each, table, readings) for each in inverse.T]
        size = len(cells[0])
        scores = np.array(cells).T
        second = scores**2 @ weight - (scores @ weight) ** 2
        due = second.sum() - (1.0 - 1.0 / size)
        errors = expected.value_errors[start : start + size]
        start += size
        assert n * float((errors**2).sum()) == pytest.approx(due, rel=1e-6)
        found.append(n * float((errors**2).sum()) + 1 - 1 / size)
    if parts == "interactions":
        return
    # ATTRIBUTES 2 states these traces for the coins of 32 bits left out.
    stated = [33.65305928, 22.95307801, 25.92955246]
    lost = [1 - 1 / 6, 1 - 1 / 4, 1 - 1 / 6]
    either = [sum(found), sum(found) - sum(lost)]
    assert min(abs(sum(stated) - each) for each in either) < 1e-3 * sum(stated)


@pytest.mark.parametrize("orders", ["pairs", "mixed", "interactions", "latin squares"])
def test_estimates_of_expected_counts_are_the_truth_and_errors_those_of_the_law(orders):
    """At a crowd of no symmetry: unbiased to rounding, and each variance is that of the explicit scores."""
    tables = PAIRS if orders == "pairs" else [(0,), (0, 1, 2), (1, 2)]
    if orders == "interactions":
        channel, asked = interacting(), [*PAIRS, (1,)]
    elif orders == "latin squares":
        asked, tables = [(0, 1), (1, 2), (1,)], [(0,), (1, 2), (0, 1)]
        channel = channel_of((4, 4, 3), tables, (0.3, 0.3, 0.4), classes=[1, 1, 4])
    else:
        channel, asked = channel_of((2, 3, 2), tables, (0.3, 0.25, 0.45)), [*PAIRS, (1,)]
    readings = channel.readings
    shares = np.random.default_rng(3).dirichlet(np.ones(math.prod(readings)))
    estimator = BundleEstimator(channel, tables=asked)
    n = 10_000
    found = estimator.expected_estimate(shares, n)
    truth = np.concatenate([margin(shares, table, readings) for table in asked])
    np.testing.assert_allclose(found.values, truth, atol=1e-13)
    law = joint(channel)
    chances = shares @ law
    # The score of each symbol: what an estimate from that report alone adds, linear in counts at fixed n_T.
    pooling = Pooling(channel, [n * part.share / WORD for part in channel.parts])
    variances = []
    for table in asked:
        matrices = pooling.scores(table)
        total = np.zeros(math.prod(readings[j] for j in table))
        for number, matrix in matrices.items():
            support = channel.oracles[number].levels[0].support
            p, q = float(support.p), float(support.q)
            own, scores = [], []
            for (part, cells), chance in zip(symbols_of(channel), chances, strict=True):
                if part == number:
                    bits = np.zeros(channel.oracles[number].inputs)
                    bits[list(cells)] = 1.0
                    own.append(chance)
                    scores.append(matrix @ ((bits - q) / (p - q)))
            law_of_part = np.array(own) / sum(own)
            drawn = np.array(scores)
            second = law_of_part @ drawn**2 - (law_of_part @ drawn) ** 2
            total += second / pooling.reports[number]
        f = margin(shares, table, readings)
        variances.append(total - (f - f**2) / n)
    np.testing.assert_allclose(found.value_errors**2, np.concatenate(variances), rtol=1e-9)


@pytest.mark.parametrize("classes", [[1] * 6, [1, 1, 1, 1, 1, 1, 2]])
def test_tables_agree_in_every_margin_and_sum_to_one(classes):
    readings = (3, 4, 2, 5)
    pairs = list(itertools.combinations(range(4), 2))
    tables, shares = [*pairs, (1, 2)], [0.1, 0.2, 0.15, 0.2, 0.1, 0.1, 0.1]
    channel = channel_of(readings, tables[: len(classes)], shares[: len(classes)], classes=classes)
    drawn = channel.perturb(np.random.default_rng(1).integers(120, size=4_000), source=seeded(2))
    found = BundleEstimator(channel, tables=pairs)(channel.tally(drawn), 4_000)
    starts = np.cumsum([0, *(readings[i] * readings[j] for i, j in pairs)])
    ends = np.cumsum([0, *readings])
    for (i, j), start in zip(pairs, starts, strict=False):
        table = found.values[start : start + readings[i] * readings[j]].reshape(readings[i], readings[j])
        assert table.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), found.categories[ends[i] : ends[i + 1]], atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=0), found.categories[ends[j] : ends[j + 1]], atol=1e-12)
    view = found.consistent()
    assert view.values.min() >= 0.0 and view.values.sum() == pytest.approx(6.0)


def test_what_no_report_told_is_nan_and_the_rest_is_not():
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45))
    parts = np.zeros(500, dtype=np.intp)
    readings = np.random.default_rng(1).integers(2, size=(500, 3))
    found = BundleEstimator(channel, tables=PAIRS)(
        channel.tally(channel.answers(parts, readings, source=seeded(1))), 500
    )
    assert np.isfinite(found.values[:6]).all() and np.isnan(found.values[6:]).all()
    assert np.isfinite(found.categories[:5]).all() and np.isnan(found.categories[5:]).all()
    assert np.isnan(found.consistent().values[6:]).all()


def test_counts_of_other_reports_are_refused():
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45))
    estimator = BundleEstimator(channel, tables=PAIRS)
    counts = channel.tally(channel.perturb(np.zeros(10, dtype=np.intp)))
    for wrong, n in ((counts, 11), (counts[:-1], 10), (counts.astype(float), 10), (-counts, 10)):
        with pytest.raises(ParameterError):
            estimator(wrong, n)


@pytest.mark.statistical
def test_errors_cover_the_truth():
    """400 rounds of 3,000 devices, epsilon 1, seed 5: the share of cells within 1.96 errors is .93 to .97.

    Over 400 rounds and 16 cells of three tables the mean coverage has a standard error below .011 even if
    the cells of a round were one: .95 is 1.8 of it from the ends; seeds are fixed. Control: errors of half
    the size cover less than .75.
    """
    readings = (2, 3, 2)
    channel = channel_of(readings, PAIRS, (0.3, 0.25, 0.45))
    shares = np.random.default_rng(3).dirichlet(np.ones(12))
    crowd = np.repeat(np.arange(12), np.diff(np.round(np.cumsum([0, *shares]) * 3_000)).astype(int))
    exact = np.bincount(crowd, minlength=12) / len(crowd)
    truth = np.concatenate([margin(exact, table, readings) for table in PAIRS])
    estimator = BundleEstimator(channel, tables=PAIRS)
    source = seeded(5)
    z = []
    for _ in range(400):
        found = estimator(channel.tally(channel.perturb(crowd, source=source)), len(crowd))
        z.append((found.values - truth) / found.value_errors)
    assert 0.93 < float((np.abs(z) < 1.96).mean()) < 0.97
    assert float((np.abs(z) < 0.98).mean()) < 0.75


@pytest.mark.parametrize("parts", ["pairs", "interactions"])
def test_the_reach_of_a_report_is_the_most_that_any_symbol_adds(parts):
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45)) if parts == "pairs" else interacting()
    readings = channel.readings
    drawn = channel.perturb(np.random.default_rng(1).integers(12, size=2_000), source=seeded(2))
    counts = channel.tally(drawn)
    found = BundleEstimator(channel, tables=PAIRS)(counts, 2_000)
    pooling = Pooling(channel, channel.split(counts)[0])
    start, reach = 0, found.reach()
    for table in PAIRS:
        matrices = pooling.scores(table)
        size = math.prod(readings[j] for j in table)
        every = [np.full(size, 1.0 / size)]
        for number, cells in symbols_of(channel):
            if number in matrices:
                support = channel.oracles[number].levels[0].support
                bits = np.zeros(channel.oracles[number].inputs)
                bits[list(cells)] = 1.0
                score = matrices[number] @ ((bits - float(support.q)) / float(support.p - support.q))
                every.append(1.0 / size + score * 2_000 / pooling.reports[number])
        np.testing.assert_allclose(reach.values_high[start : start + size], np.max(every, axis=0), rtol=1e-9)
        np.testing.assert_allclose(reach.values_low[start : start + size], np.min(every, axis=0), rtol=1e-9)
        start += size


def test_forged_reports_about_one_part_are_called_out_and_honest_rounds_are_not():
    """n 45,222 in 45 equal parts: 1 % forged into one is 14 errors; 2,000 honest rounds call at most two.

    Three or more have a probability of 1.1e-4, as 45 parts alarm in one of 10^6 each; `make evidence
    NAME=bundle` has 10,000.
    """
    pairs = list(itertools.combinations(range(10), 2))
    channel = channel_of((3,) * 10, pairs, [1 / 45] * 45)
    shares = np.array([part.share for part in channel.parts]) / WORD
    random = np.random.default_rng(7)
    honest = random.multinomial(45_222, shares, size=2_000)
    called = np.array([(part_chances(channel, reports) <= PART_ALARM).any() for reports in honest])
    assert int(called.sum()) <= 2
    forged = honest[0].copy()
    forged[7] += 452
    chances = part_chances(channel, forged)
    assert np.flatnonzero(chances <= PART_ALARM).tolist() == [7]
    assert chances[7] < 1e-30


def test_chances_of_large_rounds_are_those_of_scipy():
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45))
    shares = np.array([part.share for part in channel.parts]) / WORD
    for n in (1_000, 45_222, 3_000_000):
        for off in (-8.0, -1.0, 0.0, 2.0, 6.0, 14.0):
            first = round(n * shares[0] + off * math.sqrt(n * shares[0] * (1 - shares[0])))
            reports = np.array([first, round(0.3 * n), n - first - round(0.3 * n)])
            due = binom.sf(reports - 1, n, shares)
            np.testing.assert_allclose(part_chances(channel, reports), due, rtol=1e-6, atol=1e-250)


def test_chances_are_tails_of_the_binomial():
    channel = channel_of((2, 3, 2), PAIRS, (0.3, 0.25, 0.45))
    reports = np.array([9, 0, 3])
    found = part_chances(channel, reports)
    for part, many, chance in zip(channel.parts, reports.tolist(), found, strict=True):
        p = part.share / WORD
        due = sum(math.comb(12, k) * p**k * (1 - p) ** (12 - k) for k in range(many, 13))
        assert chance == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize("parts", ["tables", "interactions", "latin squares"])
def test_the_noise_of_a_pooled_table_is_that_of_every_set_of_every_part_enumerated(parts):
    """Independent devices of a joint crowd, their sets enumerated one by one and scored over whole parts."""
    tables, reports = [(0, 1), (1, 2), (0, 1, 2), (2,)], [300, 500, 700, 200]
    channel = channel_of((2, 3, 2), tables, (0.2, 0.3, 0.4, 0.1))
    if parts == "interactions":
        tables, reports, channel = MIXED_TABLES, [300, 500, 700, 200, 100], interacting()
    elif parts == "latin squares":  # of three readings and more an interaction is skew
        tables = [(0,), (2,), (0, 1), (1, 2)]
        channel = channel_of((4, 4, 2), tables, (0.2, 0.1, 0.4, 0.3), classes=[1, 1, 4, 1])
    readings = channel.readings
    crowd = np.random.default_rng(2).dirichlet(np.ones(math.prod(readings)))
    pooling = Pooling(channel, reports)
    for table in [(0, 1), (1, 0), (0, 2), (1,), (2, 0, 1)]:
        rising = tuple(sorted(table))
        due = np.zeros((math.prod(readings[j] for j in table),) * 2)
        for part, matrix in pooling.scores(rising).items():
            oracle, own = channel.oracles[part], margin(crowd, tables[part], readings)
            support = oracle.levels[0].support
            p, q = float(support.p), float(support.q)
            sets = sets_of(channel, part)
            held = np.array([[cell in each for cell in range(oracle.inputs)] for each in sets], dtype=float)
            among = sum(0 in each for each in sets)
            inside = oracle.p_draws / WORD / among
            outside = (1.0 - oracle.p_draws / WORD) / (len(sets) - among)
            chances = np.where(held @ np.eye(oracle.inputs) > 0, inside, outside) @ own
            scores = (held - q) / (p - q) @ matrix.T
            mean = chances @ scores
            due += ((scores.T * chances) @ scores - np.outer(mean, mean)) / reports[part]
        axes = [rising.index(j) for j in table]
        shape = [readings[j] for j in rising]
        turned = np.arange(len(due)).reshape(shape).transpose(axes).ravel()
        shares = margin(crowd, rising, readings)[turned]
        found = PooledNoise(pooling, table).covariance(shares, cells=1, devices=1700)
        np.testing.assert_allclose(found, due[np.ix_(turned, turned)], rtol=1e-9, atol=1e-15)
        if len(table) == 2:
            swapped = (
                PooledNoise(pooling, table)
                .along((1, 0))
                .covariance(shares.reshape([readings[j] for j in table]).T.ravel(), cells=1, devices=1700)
            )
            assert np.linalg.eigvalsh(swapped) == pytest.approx(np.linalg.eigvalsh(found), abs=1e-15)


def test_noise_of_all_pairs_together_is_that_of_each_table_by_itself():
    """Of one pair asked, by parts that share both attributes, one of them, or neither; and of two at once."""
    channel = interacting()
    crowd = np.random.default_rng(8).dirichlet(np.ones(16))
    pooling = Pooling(channel, [300, 500, 700, 200, 100])
    shares = {
        pair: margin(crowd, pair, channel.readings).reshape([channel.readings[j] for j in pair])
        for pair in PAIRS
    }
    paired = PairedTables(pooling, (0, 1, 2), shares)
    for pair, own in shares.items():
        cells = np.eye(own.size).reshape(own.size, *own.shape)
        due = PooledNoise(pooling, pair).covariance(own.ravel(), cells=1, devices=1800)
        np.testing.assert_allclose(paired.covariance({pair: cells}, None), due, rtol=1e-9, atol=1e-15)
    # The sum of all cells of one reading of 1, by either of its tables: each is the margin of 1.
    rows = [np.zeros((1, 2, 4)), np.zeros((1, 4, 2))]
    rows[0][0, :, 2] = rows[1][0, 2, :] = 1.0
    both = paired.covariance({(0, 1): rows[0], (1, 2): -rows[1]}, None)
    assert both[0, 0] == pytest.approx(0.0, abs=1e-15)
    alone = paired.covariance({(0, 1): rows[0]}, None)[0, 0]
    due = PooledNoise(pooling, (1,)).covariance(margin(crowd, (1,), channel.readings), cells=1, devices=1800)
    assert alone == pytest.approx(due[2, 2], rel=1e-9)


def test_the_noise_of_a_table_is_its_stated_error_and_the_choice_of_devices():
    readings, n = (2, 3, 2), 4000
    channel = channel_of(readings, PAIRS, (0.3, 0.25, 0.45))
    crowd = np.random.default_rng(4).dirichlet(np.ones(12))
    found = BundleEstimator(channel, tables=PAIRS).expected_estimate(crowd, n)
    pooling = Pooling(channel, n * np.array([part.share for part in channel.parts]) / WORD)
    start = 0
    for table in PAIRS:
        f = margin(crowd, table, readings)
        own = slice(start, start := start + len(f))
        noise = PooledNoise(pooling, table).covariance(f, cells=1, devices=n)
        due = found.value_errors[own] ** 2 + (f - f * f) / n
        np.testing.assert_allclose(np.diag(noise), due, rtol=1e-3)  # reports are whole numbers there
        np.testing.assert_allclose(noise.sum(axis=0), 0.0, atol=1e-12)  # a table always sums to one
