"""Local hashing: one channel over seed and cell, with a small public pool that is fair to every pair."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract
from surveys import LABELS

from hubbub import Survey, SurveyError
from hubbub import mechanisms as m
from hubbub.errors import ParameterError
from hubbub.estimation import InverseEstimator, estimator_for
from hubbub.filter import BayesianFilter
from hubbub.mechanisms.hashing.hash_pool import (
    _IRREDUCIBLE,
    MAX_SYMBOLS,
    MAX_WIDE_SYMBOLS,
    HashPool,
    field_orders,
)
from hubbub.testing import seeded


class TestLocalHashing(MechanismContract):
    cases: ClassVar = {
        "all points": Case(
            lambda: m.local_hashing(27, epsilon=1.0, buckets=3),
            1.0,
            "67549183b10a40065ef092158b0e5d00d2294ce4403da95b8fb4219f64dfcb66",
        ),
        "ages": Case(
            lambda: m.local_hashing(92, epsilon=1.0),
            1.0,
            "cf08ece3668e1b58ae6b37eca922aa72cf99b45bd7b8271905e27c420cb0e103",
        ),
        "field of eight": Case(
            lambda: m.local_hashing(24, epsilon=2.0, buckets=8),
            2.0,
            "c5c38fa6ae020432b241a2602e0e33729abc58f933942ed61dffff514e909422",
        ),
        "one bit": Case(
            lambda: m.local_hashing(20, epsilon=0.5, buckets=2),
            0.5,
            "4a4493c84d633905527874623275d0a805c4e6b22649c4ca7345199fdd53c239",
        ),
        "eight bytes a draw": Case(
            lambda: m.LocalHashing(12, 5, t=27 * 10**16, u=10**17),
            1.0,
            "06969d549307011c47dc8f5d650ab0e0f72d4d1e258871b2571bb5a63860bf5e",
        ),
    }


POOLS = [(10, 3), (9, 3), (30, 4), (64, 8), (20, 5), (7, 7), (5, 8), (40, 16), (27, 2), (50, 32)]


def cells(pool: HashPool) -> np.ndarray:
    return pool.bucket(np.arange(pool.seeds)[:, None], np.arange(pool.inputs))


@pytest.mark.parametrize(("inputs", "buckets"), POOLS)
def test_every_pair_shares_a_cell_under_equally_many_seeds(inputs, buckets):
    pool = HashPool(inputs, buckets)
    hashed = cells(pool)
    assert hashed.min() >= 0
    assert hashed.max() < buckets
    shared = {
        int((hashed[:, one] == hashed[:, other]).sum()) for one, other in combinations(range(inputs), 2)
    }
    assert shared == {pool.together}


@pytest.mark.parametrize(("inputs", "buckets", "most"), [(1000, 4, 0.41), (1000, 139, 0.1), (91, 11, 0.21)])
def test_inputs_that_follow_each_other_are_scattered_over_all_cells(inputs, buckets, most):
    """A third of all inputs in a row; with a stride of 1 a cell would hold .77, .42 and .37 of them."""
    pool = HashPool(inputs, buckets)
    held = pool.sums_by_bucket((np.arange(inputs) < inputs // 3).astype(float))
    assert held.max() <= most * (inputs // 3)


@pytest.mark.parametrize(("inputs", "buckets"), [(27, 3), (64, 4), (49, 7), (32, 2)])
def test_no_pool_is_smaller_where_all_points_are_inputs(inputs, buckets):
    """Each seed's cells are q indicators with one sum in common: K of them independent need this many."""
    pool = HashPool(inputs, buckets)
    indicators = (cells(pool)[:, None, :] == np.arange(buckets)[None, :, None]).reshape(-1, inputs)
    assert np.linalg.matrix_rank(indicators.astype(float)) == inputs == pool.seeds * (buckets - 1) + 1


@pytest.mark.parametrize(("inputs", "buckets"), POOLS)
def test_transforms_are_the_sums_that_they_stand_for(inputs, buckets):
    pool, rng = HashPool(inputs, buckets), np.random.default_rng(3)
    symbols = cells(pool) + np.arange(pool.seeds)[:, None] * buckets
    counts, numbers = rng.integers(1000, size=pool.symbols).astype(float), rng.random(inputs)
    np.testing.assert_allclose(pool.supports(counts), counts[symbols].sum(axis=0), rtol=1e-12)
    summed = np.bincount(symbols.ravel(), np.tile(numbers, pool.seeds), minlength=pool.symbols)
    np.testing.assert_allclose(pool.sums_by_bucket(numbers), summed, atol=1e-12)


def test_each_field_of_a_power_of_two_has_the_least_irreducible_polynomial():
    def remainder(one: int, other: int) -> int:
        while one.bit_length() >= other.bit_length():
            one ^= other << one.bit_length() - other.bit_length()
        return one

    for size, polynomial in _IRREDUCIBLE.items():
        half = 1 << (size.bit_length() - 1) // 2 + 1
        irreducible = (p for p in range(size, 2 * size) if all(remainder(p, d) for d in range(2, half)))
        assert next(irreducible) == polynomial


def test_field_orders_are_primes_and_powers_of_two():
    assert field_orders(33).tolist() == [2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 23, 29, 31, 32]


@pytest.mark.parametrize("buckets", [1, 6, 9, 15, 2**18])
def test_buckets_that_are_no_field_here_are_refused(buckets):
    with pytest.raises(ParameterError, match="prime, or a power of two"):
        HashPool(10, buckets)


@pytest.mark.parametrize(("buckets", "nearest"), [(6, 5), (1, 2), (1000, 101), (9, 8)])
def test_a_number_of_buckets_that_cannot_be_names_the_nearest_that_can(buckets, nearest):
    with pytest.raises(ParameterError, match=f"nearest is {nearest}$"):
        m.local_hashing(100, epsilon=1.0, buckets=buckets)


def test_only_pools_of_more_inputs_than_other_channels_take_have_more_cells():
    with pytest.raises(ParameterError, match=f"at most {MAX_WIDE_SYMBOLS} cells"):
        HashPool(2**20, 64)
    channel = m.local_hashing(2**20, epsilon=1.0)
    assert (channel.pool.buckets, channel.outputs) == (4, 1_398_100)
    with pytest.raises(ParameterError, match=f"2 to {2**20}, got {2**20 + 1}"):
        m.local_hashing(2**20 + 1, epsilon=1.0)
    with pytest.raises(ParameterError, match=f"2 to {2**17}"):
        m.grr(2**17 + 1, epsilon=1.0)


def test_a_million_candidates_have_the_error_of_the_formula():
    """Each of n = 2^18 devices holds one of 1,000 of 2^20 values.

    With p = t/(t + (q-1) u), r = u/(t + (q-1) u), o = r + c (p - r) the mean over inputs of n (f^ - f)^2 is
    o (1 - o)/(p - o)^2 = 3.6916 at q 4, epsilon 1, but for 2^-20 of it. Squared errors of inputs are pairwise
    almost uncorrelated (Radon transform of a multinomial): the mean of 2^20 has a relative deviation of
    sqrt(2/2^20) times the noise's own, below .004; 6 of them: .024, a false alarm below 1e-8. Control: the
    formula at q 8 (3.86) is refused.
    """
    channel = m.local_hashing(2**20, epsilon=1.0)
    values = np.arange(2**18) % 1000
    counts = channel.tally(channel.perturb(values, source=seeded(32)))
    estimate = InverseEstimator(channel, category_of=np.append(np.zeros(2**20 - 1, dtype=int), 1))
    found = estimate(counts, len(values)).values
    truth = np.bincount(values, minlength=2**20) / len(values)
    error = len(values) * float(np.mean((found - truth) ** 2))

    def formula(q: int) -> float:
        size = q
        while size < 2**20:
            size *= q
        p, r = np.e / (np.e + q - 1), 1 / (np.e + q - 1)
        o = r + (size // q - 1) / (size - 1) * (p - r)
        return o * (1 - o) / (p - o) ** 2

    assert round(formula(4), 4) == 3.6916
    assert abs(error / formula(4) - 1) < 0.024 < abs(error / formula(8) - 1)


def test_a_pool_stays_within_its_bound():
    with pytest.raises(ParameterError, match=f"at most {MAX_SYMBOLS} cells"):
        HashPool(2**17, 16)
    assert m.local_hashing(2**17, epsilon=9.0).outputs <= MAX_SYMBOLS


@pytest.mark.parametrize("inputs", [10, 92, 1000])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0])
def test_default_buckets_have_the_least_exact_error(inputs, epsilon):
    def error(channel: m.LocalHashing) -> float:
        shares = np.full(inputs, 1.0 / inputs)
        return float((InverseEstimator(channel).expected_estimate(shares, 1).value_errors ** 2).mean())

    best = error(m.local_hashing(inputs, epsilon=epsilon))
    for buckets in field_orders(2 * inputs)[:12].tolist():
        if buckets < inputs:
            assert best <= error(m.local_hashing(inputs, epsilon=epsilon, buckets=buckets)) * (1 + 1e-6)


def test_where_all_points_are_inputs_it_is_as_exact_as_subsets_of_its_cells_size():
    hashed, subsets = (
        m.local_hashing(64, epsilon=1.0, buckets=4),
        m.subset_selection(64, epsilon=1.0, size=16),
    )
    shares = np.full(64, 1 / 64)
    mine, other = (estimator_for(channel).expected_estimate(shares, 1) for channel in (hashed, subsets))
    np.testing.assert_allclose(mine.value_errors, other.value_errors, rtol=1e-6)


@pytest.mark.statistical
def test_estimates_of_a_crowd_lie_within_their_errors():
    """n = 200,000 devices of 40 values in 3 categories, seed 5: 43 normal statistics, each beyond 6 standard
    errors with probability 2e-9, so a correct estimator fails with probability below 1e-7. Control: under a
    ratio t/u of e in place of e^2 the same counts are off by more."""
    crowd = np.random.default_rng(5).choice(40, p=np.arange(1, 41) / 820, size=200_000)
    groups = np.repeat([0, 1, 2], [1, 19, 20])
    channel, wrong = (m.local_hashing(40, epsilon=e, buckets=7) for e in (2.0, 1.0))
    counts = np.bincount(channel.perturb(crowd, source=seeded(5)), minlength=channel.outputs)
    truth = np.bincount(crowd, minlength=40) / crowd.size

    def worst(channel: m.LocalHashing) -> float:
        found = InverseEstimator(channel, category_of=groups)(counts, crowd.size)
        values = np.abs(found.values - truth) / found.value_errors
        categories = np.abs(found.categories - np.bincount(groups, truth)) / found.category_errors
        return float(max(values.max(), categories.max()))

    assert worst(channel) < 6.0 < worst(wrong)


def test_the_filter_charges_what_was_seen():
    channel, budget = m.local_hashing(92, epsilon=1.0), BayesianFilter(1.5)
    first = budget.reserve("age", channel)
    assert first is not None
    budget.record(first, channel.perturb(3, source=seeded(1)))
    assert budget.loss == pytest.approx(channel.epsilon, abs=1e-9)
    assert budget.reserve("age", channel) is None


def survey(keys: str) -> Survey:
    return Survey.parse(LABELS.replace('name = "grr"', f'name = "local_hashing"\n{keys}'))


def test_a_survey_names_its_pool():
    plain, chosen = survey(""), survey("buckets = 3")
    assert isinstance(plain.channel, m.LocalHashing)
    assert chosen.channel.pool.buckets == 3
    assert Survey.from_canonical(chosen.canonical) == chosen
    assert chosen.digest != plain.digest


def test_a_survey_whose_buckets_cannot_be_says_what_can():
    with pytest.raises(SurveyError, match="nearest is"):
        survey("buckets = 6")
    with pytest.raises(SurveyError, match=r"mechanism\.buckets"):
        survey('buckets = "3"')


@pytest.mark.parametrize(("inputs", "buckets"), [(1000, 2), (1000, 7), (3000, 4), (5000, 97), (300, 512)])
def test_members_of_cells_are_the_same_by_hashes_and_by_transforms(inputs, buckets):
    pool = HashPool(inputs, buckets)
    for count in (1, 2, 11):
        chosen = np.random.default_rng(count).choice(inputs, count, replace=False)
        marked = np.zeros(inputs)
        marked[chosen] = 1.0
        np.testing.assert_array_equal(pool.members(chosen), np.rint(pool.sums_by_bucket(marked)))


def test_supports_of_counts_are_whole_numbers_where_buckets_are_bits():
    """Characters of groups of bits are 1 or -1, so that nothing is rounded, even beside 2^40 reports."""
    pool = HashPool(1000, 4)
    counts = np.random.default_rng(2).integers(0, 2**40, pool.symbols)
    seeds, inputs = np.arange(pool.seeds), np.arange(1000)[:, None]
    found = counts[seeds * 4 + pool.bucket(seeds, inputs)].sum(axis=1)
    np.testing.assert_array_equal(pool.supports(counts), found)
