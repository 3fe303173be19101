"""Orbit channels: the law from the definition, the sampler, the integers, the estimator and the floor."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import built, digest_of
from set_contract import SetCase, SetContract, packed, probe

from hubbub.design.floor import Weights, orbit_floor
from hubbub.design.floor.mixture import best_mixture
from hubbub.design.floor.orbit_entry import orbits
from hubbub.errors import ParameterError
from hubbub.mechanisms import with_dummy_reports
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.integers import compiled
from hubbub.mechanisms.orbits.sampling import Orbit
from hubbub.testing import seeded

BOTH = Weights(0.5, 0.5)


def mixed(sizes, epsilon, missing):
    def build() -> OrbitChannel:
        weights = BOTH if len(sizes) > 1 else Weights(1.0, 0.0)
        mixture = best_mixture(sizes, epsilon=epsilon, weights=weights, missing=missing)
        return compiled(sizes, mixture, epsilon=epsilon, missing=missing)

    return build


def orbit_law(channel, x) -> dict[bytes, Fraction]:
    """Of the definition: every arrangement of the counts over categories, every choice within each."""
    law: dict[bytes, Fraction] = {}
    layout = channel.layout
    for orbit in channel.orbits:
        arranged = [sorted(set(permuted(counts))) for counts in orbit.counts]
        every = []
        for parts in product(*arranged):
            choices = [
                combinations(members.tolist(), n)
                for part, rows in zip(parts, layout.members, strict=True)
                for n, members in zip(part, rows, strict=True)
            ]
            every += [[y for some in chosen for y in some] for chosen in product(*choices)]
        for members in every:
            symbol = packed(channel.inputs, members + ([channel.values] if orbit.missing else []))
            g = None if x == channel.values else layout.class_of[layout.labels[x]]
            weight = orbit.absent if g is None else (orbit.inside if x in members else orbit.outside)[g]
            law[symbol] = Fraction(weight, channel.total * len(every))
    return law


def permuted(counts):
    found = {()}
    for _ in counts:
        found = {(*start, n) for start in found for n in set(counts) if start.count(n) < Counter(counts)[n]}
    return found


BY_HAND = Orbit(((1,), (0,)), False, (3 << 59, 1 << 60), (1 << 59, 1 << 60), 0)
"""Sets that hold one of the two values of the first class and nothing of the other: rows of 2 and of 1."""


class TestOrbits(SetContract):
    cases: ClassVar = {
        "3 x 2": SetCase(mixed([2, 2, 2], 1.0, False), 1.0, "", orbit_law),
        "2 x 3, missing": SetCase(mixed([3, 3], 1.0, True), 1.0, "", orbit_law),
        "3 x 3, epsilon 3": SetCase(mixed([3, 3, 3], 3.0, True), 3.0, "", orbit_law),
        "one category": SetCase(mixed([5], 1.0, True), 1.0, "", orbit_law),
        "1, 2, 3": SetCase(mixed([1, 3, 2], 2.0, True), 2.0, "", orbit_law),
        "2, 2, 1, 1": SetCase(mixed([2, 1, 2, 1], 1.0, True), 1.0, "", orbit_law),
        "90 in 9": SetCase(mixed([10] * 9, 1.0, True), 1.0, ""),
        "91 in 9": SetCase(mixed([11] + [10] * 8, 3.0, True), 3.0, ""),
    }

    def test_description_is_the_golden_one(self):
        """Of integers written down: solvers of other machines may end elsewhere in the last digits."""
        channel = OrbitChannel((1, 2), [BY_HAND])
        assert channel.epsilon == pytest.approx(math.log(3.0))
        assert digest_of(channel) == "189ceadb9778eba5d334cae1418d0766262de68884873cb4c855ed6fc788ab67"

    def test_single_draws_are_what_their_words_make_of_them(self, small):
        """Orbit, in or out, and the own category's count have the law's shares, exactly, whatever follows.

        What follows is uniform: `tests/core/numeric/test_subsets.py`, `test_arrangement.py`, and by
        chi-square below.
        """
        channel, laws = probe(small)
        for x, law in enumerate(laws):
            due: dict[tuple[int, bool, int], Fraction] = Counter()
            gone = x == channel.values
            siblings = [] if gone else np.flatnonzero(channel.layout.labels == channel.layout.labels[x])
            for symbol, probability in law.items():
                held = inputs_of(channel, symbol)
                count = sum(held[y] for y in siblings)
                due[channel._read(symbol)[0], bool(held[x]) and not gone, count] += probability
            home = -1 if gone else channel.layout.class_of[channel.layout.labels[x]]
            row = channel._sampler._rows[home]
            ends = [0, *row.bounds]
            found = {
                tuple(outcome): Fraction(high - low, ends[-1])
                for outcome, low, high in zip(row.outcomes, ends, ends[1:], strict=False)
            }
            assert found == due

    def test_support_gives_the_exact_moments_of_the_law(self, small):
        """Of one and of two values, by `OrbitMoments`, at a population that is not uniform."""
        from hubbub.mechanisms.orbits.moments import OrbitMoments

        channel, laws = probe(small)
        shares = np.random.default_rng(3).dirichlet(np.ones(channel.inputs))
        for t, orbit in enumerate(channel.orbits):
            truth = np.zeros((channel.values, channel.values))
            for share, law in zip(shares, laws, strict=True):
                for symbol, probability in law.items():
                    if channel._read(symbol)[0] == t:
                        held = np.array(inputs_of(channel, symbol)[: channel.values])
                        truth += share * float(probability) * np.outer(held, held)
            moments = OrbitMoments.of(channel.layout, orbit, channel.total, shares)
            unit = channel.layout.split(np.eye(channel.values))
            found = channel.layout.joined(moments.product(unit))
            np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-13)
            np.testing.assert_allclose(channel.layout.joined(moments.hits()), np.diag(truth), rtol=1e-9)

    def test_expected_counts_are_the_crowd_s_mixture_of_laws(self, small):
        channel, laws = probe(small)
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        wanted = sum(
            share * float(weight) * counters(channel, symbol)
            for share, law in zip(shares, laws, strict=True)
            for symbol, weight in law.items()
        )
        np.testing.assert_allclose(channel.expected(shares), wanted, rtol=1e-9, atol=1e-12)

    def test_tally_counts_every_cell_of_every_set(self, channel):
        drawn = channel.perturb(np.arange(500) % channel.inputs, source=seeded(5))
        counts = channel.tally(drawn).reshape(len(channel.orbits), -1)
        bits = np.array([inputs_of(channel, row.tobytes()) for row in drawn])
        assert counts[:, 1:].sum(axis=0).tolist() == bits.sum(axis=0).tolist()
        assert counts[:, 0].sum() == 500
        assert channel.agrees(counts.reshape(-1), 500)
        assert not channel.agrees(counts.reshape(-1), 499)
        moved = counts.reshape(-1).copy()
        moved[np.flatnonzero(moved)[-1]] -= 1
        assert not channel.agrees(moved, 500)

    @pytest.mark.statistical
    def test_supports_of_many_reports_have_their_expected_means(self, channel):
        """n = 2 10^4; Hoeffding, 1e-6 over all cells, see `SetContract`. Control: one input alone."""
        n = 20_000
        shares = np.random.default_rng(1).dirichlet(np.full(channel.inputs, 0.3))
        crowd = np.repeat(np.arange(channel.inputs), np.round(shares * n).astype(int))
        shares = np.bincount(crowd, minlength=channel.inputs) / crowd.size
        bound = math.sqrt(math.log(2 * channel.bins / 1e-6) / (2 * crowd.size))
        drawn = channel.tally(channel.perturb(crowd, source=seeded(21))) / crowd.size
        assert np.abs(drawn - channel.expected(shares)).max() < bound
        alone = channel.perturb(np.full(crowd.size, int(shares.argmin())), source=seeded(22))
        assert np.abs(channel.tally(alone) / crowd.size - channel.expected(shares)).max() > bound


def inputs_of(channel, symbol) -> list[int]:
    array = np.frombuffer(symbol, dtype=np.uint8)
    return np.unpackbits(array, count=channel.inputs, bitorder="little").tolist()


def counters(channel, symbol) -> np.ndarray:
    return channel.tally(np.frombuffer(symbol, dtype=np.uint8)[None, :]).astype(float)


CASES = {name: case for name, case in TestOrbits.cases.items() if case.law is not None}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_errors_are_those_of_the_law_and_uniformly_the_floor(case):
    """Variances and covariances report by report from the explicit law, at a skewed and a uniform crowd."""
    channel, laws = probe(case)
    estimator = channel.own_estimator()
    n, many = channel.inputs, len(channel.layout.sizes)
    skewed = np.random.default_rng(4).dirichlet(np.ones(n))
    uniform = np.append(np.full(channel.values, 1 / channel.values), [0.0] * channel.missing)
    groups = np.zeros((many, n))
    groups[channel.layout.labels, np.arange(channel.values)] = 1.0
    for shares in (skewed, uniform):
        second = np.zeros((n, n))
        for share, law in zip(shares, laws, strict=True):
            for symbol, probability in law.items():
                found = estimator.shares(counters(channel, symbol), 1)
                score = np.append(found.values, [found.missing] * channel.missing)
                second += share * float(probability) * np.outer(score, score)
        truth = second - np.diag(shares)
        estimate = estimator.expected_estimate(shares, 1)
        np.testing.assert_allclose(estimate.covariance(), truth, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(estimate.value_errors**2, np.diag(truth), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(
            estimate.category_errors[:many] ** 2, np.diag(groups @ truth @ groups.T), rtol=1e-8, atol=1e-9
        )
    error = 0.5 * np.diag(truth)[: channel.values].mean() + 0.5 * np.diag(groups @ truth @ groups.T).mean()
    weights = BOTH
    if many == 1:
        error, weights = np.diag(truth)[: channel.values].mean(), Weights(1.0, 0.0)
    floor = orbit_floor(
        channel.layout.sizes, epsilon=case.epsilon, weights=weights, missing=channel.missing
    ).floor
    assert floor * (1 - 1e-9) <= error <= floor * (1 + 1e-6)


def test_mean_and_its_error_are_those_of_the_covariance():
    channel = orbits([2, 3, 1], epsilon=1.5)
    points = np.append(np.arange(6.0), np.nan)
    shares = np.random.default_rng(5).dirichlet(np.ones(7))
    estimate = channel.own_estimator(points=points, missing=6).expected_estimate(shares, 500)
    answered = 1.0 - shares[-1]
    mean = float(shares[:-1] @ points[:-1]) / answered
    influence = np.append(points[:-1] - mean, 0.0) / answered
    assert estimate.mean == pytest.approx(mean)
    assert estimate.mean_error == pytest.approx(
        math.sqrt(influence @ estimate.covariance() @ influence), rel=1e-9
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_reach_is_the_extreme_of_what_one_set_adds(case):
    channel, laws = probe(case)
    estimator = channel.own_estimator()
    scores, groups = [], []
    for symbol in laws[0]:
        found = estimator.shares(counters(channel, symbol), 1)
        scores.append(np.append(found.values, [found.missing] * channel.missing))
        groups.append(np.append(found.categories, [found.missing] * channel.missing))
    reach = estimator.reach()
    np.testing.assert_allclose(reach.values_low, np.min(scores, axis=0), atol=1e-12)
    np.testing.assert_allclose(reach.values_high, np.max(scores, axis=0), atol=1e-12)
    np.testing.assert_allclose(reach.categories_low, np.min(groups, axis=0), atol=1e-12)
    np.testing.assert_allclose(reach.categories_high, np.max(groups, axis=0), atol=1e-12)


def test_participation_coin_mixes_every_row_with_that_of_missing():
    """To the last integer but for the power of two that rows sum to: a share of 0.337, rationally."""
    whole = built(mixed([2, 1, 2, 1], 1.0, True))
    coin = with_dummy_reports(whole, participation=Fraction(337, 1000))
    assert coin.epsilon < whole.epsilon
    cover = orbit_law(whole, whole.values)
    for x in range(whole.inputs):
        law, plain = orbit_law(coin, x), orbit_law(whole, x)
        assert sum(law.values()) == 1
        for symbol, probability in law.items():
            due = Fraction(337, 1000) * plain[symbol] + Fraction(663, 1000) * cover[symbol]
            assert abs(probability / due - 1) < Fraction(1, 2**30)
    with pytest.raises(ParameterError, match="participation"):
        with_dummy_reports(coin, participation=Fraction(1, 2))
    with pytest.raises(ParameterError, match="participation"):
        with_dummy_reports(built(mixed([2, 2, 2], 1.0, False)), participation=Fraction(1, 2))


def test_equal_categories_need_four_orbits_at_most():
    for epsilon in (0.5, 2.0, 5.0):
        assert len(orbits([10] * 9, epsilon=epsilon).orbits) <= 4


def test_mixtures_that_do_not_close_their_rows_are_refused():
    with pytest.raises(ParameterError, match="rows"):
        compiled([2, 2], [([[1, 1]], False, 0.5)], epsilon=1.0, missing=False)
    with pytest.raises(ParameterError, match="category_weight"):
        orbits([2, 2], epsilon=1.0, category_weight=1.0)


def test_estimates_need_orbits_that_tell_all_apart():
    whole = compiled([2, 2], [([[2, 0]], False, 1.0)], epsilon=1.0, missing=False)
    with pytest.raises(ParameterError, match="tell all values apart"):
        whole.own_estimator()


def test_very_many_categories_have_one_divergence():
    """A block per category took 3.6 GB for 21,500 of them, in 100 kB; the farthest pair bounds all."""
    channel = mixed([2] * 1030, 1.0, missing=True)()
    blocks = channel.blocks()
    assert blocks.blocks == 1 <= channel.most_blocks
    quanta = channel.epsilon * 2**40
    assert quanta - 0.05 <= blocks.largest < quanta + 2.05


def test_the_work_of_many_classes_is_counted():
    """Every two classes are compared in every orbit, in fractions: minutes for 500 classes and 64 orbits."""
    few, many = (mixed(list(range(1, n)), 1.0, missing=True)() for n in (3, 5))
    assert many.block_work > few.block_work + 2**17
    assert few.block_work > few.inputs + few.most_blocks**2
