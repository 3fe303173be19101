"""Orbit channels: the law from the definition, the sampler, the integers, the estimator and the floor."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import ClassVar

import independent_reading
import numpy as np
import pytest
from mechanism_contract import built, digest_of
from set_contract import SetCase, SetContract, packed, probe

from hubbub.errors import ParameterError
from hubbub.mechanisms import with_dummy_reports
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.sampling import Orbit
from hubbub.mechanisms.orbits.short import ShortOrbitChannel, compiled, shortest
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.testing import seeded
from hubbub_authoring.floor import Weights, orbit_floor
from hubbub_authoring.mechanisms.orbits import best_mixture, orbits

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
            symbol = symbol_of(channel, orbit, members)
            g = None if x == channel.values else layout.class_of[layout.labels[x]]
            weight = orbit.absent if g is None else (orbit.inside if x in members else orbit.outside)[g]
            law[symbol] = Fraction(weight, channel.total * len(every))
    return law


def symbol_of(channel, orbit, members) -> bytes:
    """By docs/wire*.md: a bit for every input, or the orbit, the category and a bit for each value of it."""
    if channel.kind == "orbits":
        return packed(channel.inputs, members + ([channel.values] if orbit.missing else []))
    ends = np.cumsum(channel.layout.sizes)
    category = int(np.searchsorted(ends, members[0], side="right"))
    start = int(ends[category]) - channel.layout.sizes[category]
    largest = max(
        size
        for each in channel.orbits
        for part, size in zip(each.counts, channel.layout.class_sizes, strict=True)
        if any(part)
    )
    own = packed(8 * -(-largest // 8), [member - start for member in members])
    many = 1 if len(ends) <= 256 else 2
    return bytes([channel.orbits.index(orbit)]) + category.to_bytes(many, "little") + own


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
            row = channel._sampler.rows[home]
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
    if channel.kind == "short_orbits":
        name = 1 if len(channel.layout.sizes) <= 256 else 2
        category = int.from_bytes(symbol[1 : 1 + name], "little")
        start, own = sum(channel.layout.sizes[:category]), int.from_bytes(symbol[1 + name :], "little")
        found = [own >> y - start & 1 if y >= start else 0 for y in range(channel.values)]
        return found + [int(channel.orbits[symbol[0]].missing)] * channel.missing
    array = np.frombuffer(symbol, dtype=np.uint8)
    return np.unpackbits(array, count=channel.inputs, bitorder="little").tolist()


def of_one_category(categories, size, counts, epsilon):
    """Two orbits of one category each: of so many values without the missing input, and with it."""

    def build() -> OrbitChannel:
        a, (one, other) = (
            math.exp(epsilon),
            (1 + (math.exp(epsilon) - 1) * k / categories / size for k in counts),
        )
        shares = np.linalg.solve([[one, other], [1.0, a]], [1.0, 1.0]) * [one, other]
        rest = [0] * (categories - 1)
        mixture = [([[counts[0], *rest]], False, shares[0]), ([[counts[1], *rest]], True, shares[1])]
        return shortest(compiled([size] * categories, mixture, epsilon=epsilon, missing=True))

    return build


class TestShortOrbits(TestOrbits):
    cases: ClassVar = {
        "3 x 8": SetCase(of_one_category(3, 8, [2, 1], 3.0), 3.0, "", orbit_law),
        "4 x 7": SetCase(of_one_category(4, 7, [3, 2], 2.0), 2.0, "", orbit_law),
        "300 x 9": SetCase(of_one_category(300, 9, [3, 3], 4.0), 4.0, "", None),
    }

    def test_symbols_are_short(self, channel):
        size, many = channel.layout.class_sizes[0], len(channel.layout.sizes)
        assert channel.kind == "short_orbits"
        assert channel.width == (2 if many <= 256 else 3) + -(-size // 8)
        assert channel.width < -(-channel.inputs // 8)

    def test_draws_are_those_of_the_channel_of_long_symbols(self, channel):
        """The law is the same, and so are the sets, from the same bytes."""
        long = OrbitChannel(channel.layout.sizes, channel.orbits, channel.unit)
        assert long.epsilon == channel.epsilon
        values = np.arange(200) % channel.inputs
        short = channel.perturb(values, source=seeded(8))
        whole = long.perturb(values, source=seeded(8))
        assert channel.tally(short).tolist() == long.tally(whole).tolist()
        for x, one, other in zip(values.tolist(), short, whole, strict=True):
            assert inputs_of(channel, one.tobytes()) == inputs_of(long, other.tobytes())
            assert channel.column(one).tolist() == long.column(other).tolist()
            read = independent_reading.column(channel.to_spec(), one.tobytes())
            np.testing.assert_allclose(np.log(read), channel.log_likelihood(one), rtol=1e-9)
            drawn = channel.perturb(x, source=seeded(x))
            assert inputs_of(channel, drawn) == inputs_of(long, long.perturb(x, source=seeded(x)))

    def test_only_symbols_of_the_law_are_admitted(self, small):
        """Every byte of a symbol changed to every other: what is left is in the law or refused."""
        channel, laws = probe(small)
        symbol = next(iter(laws[0]))
        for place in range(channel.width):
            for byte in range(256):
                other = symbol[:place] + bytes([byte]) + symbol[place + 1 :]
                assert channel.admits(other) == (other in laws[0])
                column = np.frombuffer(other, dtype=np.uint8)[None, :]
                assert channel.contains(column).tolist() == [other in laws[0]]

    def test_description_is_the_golden_one(self):
        """Of integers written down, as above; the first has one category and stays of the other kind."""
        channel = OrbitChannel((1, 2), [BY_HAND])
        assert shortest(channel) is channel
        spec = {**channel.to_spec(), "kind": "short_orbits"}
        assert channel_from_spec(spec).perturb(0)[:2] == bytes([0, 1])


def test_mixtures_of_large_epsilons_are_short_and_others_are_not():
    assert orbits([100] * 10, epsilon=4.0).width == 15
    assert orbits([10] * 9, epsilon=1.0).kind == "orbits"
    assert with_dummy_reports(orbits([10] * 9, epsilon=5.0), participation=Fraction(1, 2)).width == 4
    with pytest.raises(ParameterError, match="one category each"):
        ShortOrbitChannel(
            (2, 2), compiled([2, 2], [([[1, 1]], False, 1.0)], epsilon=1.0, missing=False).orbits
        )


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
