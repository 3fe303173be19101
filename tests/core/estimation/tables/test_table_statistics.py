"""Statistics of cross tables: laws beside scipy, noise beside covariances, intervals that hold, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub.errors import ParameterError
from hubbub.estimation import (
    RefusedStatisticError,
    TableNoise,
    TableShares,
    association,
    conditional_shares,
    estimator_for,
    group_difference,
    group_means,
    holm,
    independence,
    linear_regression,
    odds_ratio,
    reweighted_shares,
)
from hubbub.estimation.tables.independence import noncentral_below
from hubbub.estimation.tables.shares import fieller
from hubbub.mechanisms import grr, local_hashing, subset_selection, unary, with_dummy_reports
from hubbub.numeric.gamma import gamma_tail

INSIDE = np.array([[0.20, 0.10, 0.05], [0.10, 0.15, 0.10], [0.05, 0.10, 0.15]])
CROWD = np.pad(0.9 * INSIDE, ((0, 1), (0, 1)))
CROWD[3, :3] = CROWD[:3, 3] = 0.016
CROWD[3, 3] = 0.004
CHANNELS = {
    "grr": grr(16, epsilon=1.0),
    "subset": subset_selection(16, epsilon=1.0),
    "unary": unary(16, epsilon=1.0),
    "coin": with_dummy_reports(grr(16, epsilon=1.0), participation=Fraction(1, 2)),
}


def exact(devices: int = 10**9, shares: np.ndarray = CROWD, epsilon: float = 2.0) -> TableShares:
    """Shares without noise, of so many devices that their errors are next to nothing."""
    return TableShares(shares, 1, devices, TableNoise.of(grr(shares.size, epsilon=epsilon)))


def drawn(crowd: np.ndarray, devices: int, rounds: int, seed: int, epsilon: float = 2.0) -> list[TableShares]:
    channel, rng = grr(crowd.size, epsilon=epsilon), np.random.default_rng(seed)
    rows = channel.probabilities()
    counts = rng.multinomial(devices, crowd.ravel() @ rows, size=rounds)
    estimates = counts / devices @ np.linalg.inv(rows)
    return [TableShares(each.reshape(crowd.shape), 1, devices, TableNoise.of(channel)) for each in estimates]


@pytest.mark.parametrize("x", [0.01, 1.0, 9.3, 200.0])
@pytest.mark.parametrize("degrees", [1.0, 2.7, 150.0])
def test_chi_square_laws_are_those_of_scipy(x, degrees):
    assert gamma_tail(degrees / 2.0, x / 2.0) == pytest.approx(
        stats.chi2.sf(x, degrees), rel=1e-11, abs=1e-300
    )
    for shift in (0.0, 0.3, 5.5, 300.0, 1e4):
        known = stats.ncx2.cdf(x, degrees, shift) if shift else stats.chi2.cdf(x, degrees)
        assert noncentral_below(x, degrees, shift) == pytest.approx(known, rel=1e-8, abs=1e-14)
    assert gamma_tail(degrees / 2.0, -0.5) == 1.0 and noncentral_below(0.0, degrees, 1.0) == 0.0


@pytest.mark.parametrize("name", CHANNELS)
def test_four_numbers_are_the_whole_covariance(name):
    channel, shares = CHANNELS[name], np.random.default_rng(3).dirichlet(np.ones(16))
    whole = estimator_for(channel, category_of=np.arange(16)).expected_estimate(shares, 1).covariance()
    whole += np.diag(shares) - np.outer(shares, shares)
    found = TableNoise.of(channel).covariance(shares, cells=1, devices=1)
    np.testing.assert_allclose(found, whole, atol=1e-12)
    groups = np.kron(np.eye(4), np.ones(4))
    summed = TableNoise.of(channel).covariance(groups @ shares, cells=4, devices=50)
    np.testing.assert_allclose(summed, groups @ whole @ groups.T / 50, atol=1e-12)


def test_local_hashing_treats_cells_nearly_alike():
    channel, shares = local_hashing(24, epsilon=1.0), np.full(24, 1 / 24)
    whole = estimator_for(channel, category_of=np.arange(24)).expected_estimate(shares, 1).covariance()
    whole += np.diag(shares) - np.outer(shares, shares)
    found = TableNoise.of(channel).covariance(shares, cells=1, devices=1)
    assert np.trace(found) == pytest.approx(np.trace(whole), rel=0.02)


def test_margins_of_three_attributes_are_sums_in_the_order_asked():
    shares = np.random.default_rng(1).dirichlet(np.ones(24)).reshape(2, 3, 4)
    table = exact(shares=shares).of([2, 0])
    np.testing.assert_allclose(table.shares, shares.sum(axis=1).T)
    assert table.cells == 3
    with pytest.raises(ParameterError, match="attributes must be different"):
        exact(shares=shares).of([1, 1])


def test_without_noise_every_statistic_is_the_crowd_s_own():
    table = exact()
    within = INSIDE / INSIDE.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        [[s.estimate for s in row] for row in conditional_shares(table)], within, atol=1e-12
    )
    means = [each.estimate for each in group_means(table, [10.0, 20.0, 40.0])]
    np.testing.assert_allclose(means, within @ [10.0, 20.0, 40.0], atol=1e-9)
    assert group_difference(table, 0, 2, 1).estimate == pytest.approx(within[0, 1] - within[2, 1])
    odds = INSIDE[0, 0] * INSIDE[1:, 1:].sum() / (INSIDE[0, 1:].sum() * INSIDE[1:, 0].sum())
    assert odds_ratio(table, 0, 0).estimate == pytest.approx(odds, rel=1e-6)
    census = [0.2, 0.3, 0.5]
    np.testing.assert_allclose(
        [s.estimate for s in reweighted_shares(table, census)], census @ within, atol=1e-12
    )
    p = INSIDE / INSIDE.sum()
    phi = ((p - np.outer(p.sum(1), p.sum(0))) ** 2 / np.outer(p.sum(1), p.sum(0))).sum()
    assert association(table).estimate == pytest.approx(math.sqrt(phi / 2), rel=1e-4)
    assert independence(table).p_value < 1e-12
    assert independence(exact(shares=np.outer([0.5, 0.3, 0.2], [0.5, 0.4, 0.1]))).p_value > 0.9


def test_regression_without_noise_is_least_squares_over_people():
    """People in proportion to the crowd, those without an attribute left out, and numpy's own solution."""
    shares = np.random.default_rng(8).dirichlet(np.ones(36)).reshape(3, 3, 4)
    table = exact(shares=shares, devices=10**12)
    found = linear_regression(table, [[[1.0, 5.0]], [[0.0, 1.0]], [[2.0, 3.0, 7.0]]])
    at = np.array([(a, b, c) for a in range(2) for b in range(2) for c in range(3)])
    weights = np.sqrt(shares[:2, :2, :3].ravel())
    x = np.column_stack([np.ones(12), np.array([1.0, 5.0])[at[:, 0]], at[:, 1]])
    y = np.array([2.0, 3.0, 7.0])[at[:, 2]]
    known = np.linalg.lstsq(x * weights[:, None], y * weights, rcond=None)[0]
    np.testing.assert_allclose([each.estimate for each in found], known, rtol=1e-6)
    two = [[[1.0, 5.0]], [[0.0, 1.0]]]
    with pytest.raises(ParameterError, match=r"of 3 attributes, 2 or more, the last one, got \[1, 1\]"):
        linear_regression(table, two)
    with pytest.raises(ParameterError, match="margins must be of 2 attributes, got 1"):
        linear_regression(table, [*two, [[2.0, 3.0, 7.0]]], margins=[None])


def test_intervals_hold_the_crowd_s_truth_and_tests_their_size():
    """400 rounds of 20,000 devices: counts of misses beside Bin(400, .05), 1e-6 in all at most 41 of them.

    The control: intervals for a quarter of the noise, as from four times the devices, miss far more often.
    """
    within, census = INSIDE / INSIDE.sum(axis=1, keepdims=True), np.array([0.3, 0.3, 0.4])
    p = INSIDE / INSIDE.sum()
    phi = ((p - np.outer(p.sum(1), p.sum(0))) ** 2 / np.outer(p.sum(1), p.sum(0))).sum()
    x = np.arange(3.0)
    spread = ((x - x @ p.sum(1)) ** 2) @ p.sum(1)
    slope = ((x - x @ p.sum(1))[:, None] * (x - x @ p.sum(0)) * p).sum() / spread
    misses, blind = np.zeros(6), 0
    rounds = drawn(CROWD, 20000, 400, 5)
    for table in rounds:
        share, gap = conditional_shares(table)[2][2], group_difference(table, 0, 1, 0)
        mean, sized = group_means(table, list(x))[1], reweighted_shares(table, list(census))[0]
        line, strength = linear_regression(table, [[list(x)], [list(x)]])[1], association(table)
        for k, (span, truth) in enumerate(
            (
                (share, within[2, 2]),
                (gap, within[0, 0] - within[1, 0]),
                (mean, within[1] @ x),
                (sized, census @ within[:, 0]),
                (line, slope),
                (strength, math.sqrt(phi / 2)),
            )
        ):
            misses[k] += not span.low <= truth <= span.high
        bold = TableShares(table.shares, 1, 4 * table.devices, table.noise)
        blind += not conditional_shares(bold)[2][2].low <= within[2, 2] <= conditional_shares(bold)[2][2].high
    most = stats.binom.isf(1e-6 / 6, 400, 0.05)
    assert (misses <= most).all(), misses
    assert blind > most
    apart = np.pad(np.outer([0.5, 0.3, 0.2], [0.6, 0.4]), ((0, 1), (0, 1)))
    rejected = sum(independence(each).p_value <= 0.05 for each in drawn(apart, 20000, 400, 6))
    assert rejected <= most


def test_the_noisy_shares_own_v_is_wrong_and_never_nothing():
    """Of independent attributes: the plug-in says .08 and more, the estimate half of it or 0."""
    apart = np.pad(np.outer([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]), ((0, 1), (0, 1)))
    found = [association(each) for each in drawn(apart, 20000, 200, 7, epsilon=1.0)]
    known = [each for each in found if not each.whole]
    plug_in, estimate = (
        np.median([getattr(each, name) for each in known]) for name in ("plug_in", "estimate")
    )
    assert plug_in > 0.08
    assert estimate < 0.6 * plug_in


def test_fieller_gives_what_solves_its_inequality():
    """Point by point on a grid: inside, unbounded, and two rays whose hull within the range is shown."""
    grid = np.linspace(0.0, 5.0, 50001)
    for a, b, v_aa, v_ab, v_bb in (
        (0.1, 0.4, 1e-3, 2e-4, 2e-3),
        (0.1, 0.05, 1e-2, 2e-4, 2e-3),
        (0.2, 0.02, 1e-3, 0.0, 1e-3),
        (-0.01, 0.3, 1e-3, 1e-4, 1e-3),
    ):
        inside = (a - grid * b) ** 2 <= 4.0 * (v_aa - 2 * grid * v_ab + grid**2 * v_bb)
        found = fieller(a, b, v_aa, v_ab, v_bb, z=2.0, ends=(0.0, 5.0))
        assert (found.low, found.high) == pytest.approx((grid[inside].min(), grid[inside].max()), abs=2e-4)
        assert found.whole == (b * b <= 4.0 * v_bb)


def test_holm_s_p_values_are_those_of_the_stepwise_procedure():
    given = [0.01, 0.04, 0.03, 0.005, 0.9]
    found = holm(given)
    assert found == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])
    assert holm([]) == []


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(("devices", "epsilon"), [(60, 0.3), (700, 1.0), (5000, 3.0)])
def test_no_estimates_decide_whether_a_statistic_is_given(groups: int, epsilon: float, devices: int) -> None:
    """Noise of any size on any crowd, one that nobody is in among them: all are given, or all are refused."""
    rng, shape = np.random.default_rng(5), (groups + 1, 3)
    noise = TableNoise.of(grr(groups * 3 + 3, epsilon=epsilon))
    ways = {
        "V": association,
        "reweighted": lambda table: reweighted_shares(table, [1.0 / groups] * groups),
        "regression": lambda table: linear_regression(table, [[list(range(groups))], [[0, 1]]]),
        "independence": independence,
        "conditional": conditional_shares,
        "means": lambda table: group_means(table, [0.0, 1.0]),
        "difference": lambda table: group_difference(table, 0, 1, 0),
        "odds": lambda table: odds_ratio(table, 0, 0),
    }
    outcomes: dict[str, set[bool]] = {name: set() for name in ways}
    for spread in np.tile([0.05, 1.0, 50.0], 8):
        shares = rng.dirichlet(np.full(math.prod(shape), spread)).reshape(shape)
        noisy = shares + rng.choice([0.0, 0.03, 0.3]) * rng.normal(size=shape)
        for each in (noisy, np.eye(1, shares.size, shares.size - 1).reshape(shape)):
            for name, way in ways.items():
                try:
                    way(TableShares(each / each.sum(), 1, devices, noise))
                    outcomes[name].add(True)
                except RefusedStatisticError:
                    outcomes[name].add(False)
    assert all(len(found) == 1 for found in outcomes.values())
    by_plan = {outcomes[name].pop() for name in ("V", "reweighted", "regression")}
    assert devices == 700 or by_plan == {devices == 5000}
    assert all(found == {True} for found in outcomes.values() if found)


def test_a_census_must_be_shares_of_the_groups():
    for census in ([0.5, 0.5], [0.5, 0.4, 0.2], [1.2, -0.1, -0.1]):
        with pytest.raises(ParameterError, match="a census must have 3 shares"):
            reweighted_shares(exact(), census)
    with pytest.raises(RefusedStatisticError, match="must have a share that 2,000 devices know to 30%"):
        reweighted_shares(exact(devices=2000), [0.989, 0.01, 0.001])
