"""Orbit channels: the law from the definition, the sampler, the integers, the estimator and the floor."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, product

import msgpack
import numpy as np
import pytest
from mechanism_contract import QUANTA_PER_NAT, certifies, chi_square_rejects, expanded

from hubbub.design.floor import Weights, orbit_floor
from hubbub.design.floor.mixture import best_mixture
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.estimator import OrbitEstimator
from hubbub.mechanisms.orbits.integers import compiled
from hubbub.testing import RecordedSource, seeded

BOTH = Weights(0.5, 0.5)


def built(size, many, epsilon, missing) -> OrbitChannel:
    mixture = best_mixture(size, many, epsilon=epsilon, weights=BOTH, missing=missing)
    return compiled(size, many, mixture, epsilon=epsilon, missing=missing)


SMALL = {
    "3 x 2": (2, 3, 1.0, False),
    "2 x 3, missing": (3, 2, 1.0, True),
    "3 x 3, missing": (3, 3, 2.0, True),
    "3 x 3, epsilon 3": (3, 3, 3.0, False),
    "2 x 2, missing, epsilon 4": (2, 2, 4.0, True),
    "one category": (5, 1, 1.0, True),
}
LARGE = {"90 in 9": (10, 9, 1.0, True), "1000 in 10": (100, 10, 4.0, True), "90 in 3": (30, 3, 3.0, True)}


def sets_of(channel, orbit) -> list[tuple[int, ...]]:
    """Every arrangement of the counts over categories, and every choice within each."""
    found = set()
    for counts in set(product(orbit.counts, repeat=channel.many)):
        if Counter(counts) != Counter(orbit.counts):
            continue
        parts = [
            combinations(range(c * channel.size, (c + 1) * channel.size), n) for c, n in enumerate(counts)
        ]
        for chosen in product(*parts):
            members = tuple(x for part in chosen for x in part)
            found.add(members + ((channel.values,) if orbit.missing else ()))
    return sorted(found)


def law_of(channel, x) -> dict[bytes, Fraction]:
    law: dict[bytes, Fraction] = {}
    for orbit in channel.orbits:
        every = sets_of(channel, orbit)
        inside = [members for members in every if x in members]
        for members in every:
            bits = np.zeros(channel.inputs, dtype=np.uint8)
            bits[list(members)] = 1
            if x == channel.values:
                weight = Fraction(orbit.absent, channel.total * len(every))
            elif x in members:
                weight = Fraction(orbit.inside, channel.total * len(inside))
            else:
                weight = Fraction(orbit.outside, channel.total * (len(every) - len(inside)))
            law[np.packbits(bits, bitorder="little").tobytes()] = weight
    return law


@pytest.fixture(params=SMALL.values(), ids=SMALL, scope="module")
def small(request):
    channel = built(*request.param)
    return channel, [law_of(channel, x) for x in range(channel.inputs)], request.param[2]


@pytest.fixture(params=LARGE.values(), ids=LARGE, scope="module")
def large(request):
    return built(*request.param), request.param


def test_rows_sum_to_one_and_epsilon_is_certified_from_the_law(small):
    channel, laws, declared = small
    assert all(sum(law.values()) == 1 for law in laws)
    ratio = max(max(law[s] for law in laws) / min(law[s] for law in laws) for s in laws[0])
    assert certifies(channel.epsilon, ratio)
    assert not certifies(channel.epsilon, ratio * Fraction(10**12 + 1, 10**12))
    assert Fraction(channel.epsilon) <= Fraction(declared) - Fraction(1, 2**36)
    assert channel.epsilon >= declared * (1 - 1e-6)


def test_large_channels_waste_next_to_nothing_of_epsilon(large):
    channel, (_, _, declared, _) = large
    assert declared * (1 - 1e-6) <= channel.epsilon <= declared - 2.0**-36


def test_column_and_log_likelihood_are_those_of_the_law(small):
    channel, laws, _ = small
    for symbol in laws[0]:
        truth = [law[symbol] for law in laws]
        column = channel.column(symbol).tolist()
        assert min(column) >= 1
        assert all(Fraction(w, column[0]) == t / truth[0] for w, t in zip(column, truth, strict=True))
        np.testing.assert_allclose(channel.log_likelihood(symbol), [math.log(t) for t in truth], rtol=1e-9)


def test_divergence_and_blocks_are_the_largest_log_ratio_of_two_laws(small):
    channel, laws, _ = small
    quanta, nats = expanded(channel), channel.divergence()
    for x, law in enumerate(laws):
        for other, against in enumerate(laws):
            ratio = max(law[symbol] / against[symbol] for symbol in law)
            truth = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
            assert nats[x, other] == pytest.approx(float(truth), abs=1e-12)
            assert -1e-9 <= float(Decimal(int(quanta[x, other])) - truth * QUANTA_PER_NAT) < 2


def test_only_sets_of_its_orbits_are_admitted(small):
    channel, laws, _ = small
    every = [n.to_bytes(channel.width, "little") for n in range(min(256**channel.width, 2**14))]
    known = channel.contains(np.frombuffer(b"".join(every), dtype=np.uint8).reshape(-1, channel.width))
    assert [s for s, sent in zip(every, known, strict=True) if sent] == [s for s in every if s in laws[0]]
    assert any(known)
    for wrong in (b"", every[0] + b"\0", 0, None):
        assert not channel.admits(wrong)
        with pytest.raises(ParameterError):
            channel.column(wrong)


@pytest.mark.statistical
def test_sampled_sets_follow_the_law(small):
    """n = 10^5 draws for two inputs, Pearson's chi-square at 1e-7 each: false alarm below 2e-7.

    Controls: the law of another input, and the law squared, are rejected.
    """
    channel, laws, _ = small
    index = {symbol: i for i, symbol in enumerate(laws[0])}
    for x in (0, channel.inputs - 1):
        drawn = channel.perturb(np.full(100_000, x), source=seeded(20))
        kinds, times = np.unique(drawn, axis=0, return_counts=True)
        counts = np.zeros(len(index))
        counts[[index[kind.tobytes()] for kind in kinds]] = times
        row = np.array([float(laws[x][symbol]) for symbol in index])
        other = np.array([float(laws[x - 1][symbol]) for symbol in index])
        assert not chi_square_rejects(counts, row)
        assert chi_square_rejects(counts, other)
        assert chi_square_rejects(counts, (row / row.max()) ** 2)


def test_array_and_scalar_calls_draw_the_same_sets_from_the_same_bytes(large):
    channel, _ = large
    values = np.random.default_rng(3).integers(channel.inputs, size=30)
    size = 4 * channel.words
    attempts = [seeded(4).token_bytes(size * 60)[i * size : (i + 1) * size] for i in range(60)]
    attempts[::2] = [b"\xff" * size] * 30  # beyond a limit: dropped whole
    source = RecordedSource(b"".join(attempts))
    one_by_one = [channel.perturb(int(x), source=source) for x in values]
    together = channel.perturb(values, source=RecordedSource(b"".join(attempts)))
    assert [row.tobytes() for row in together] == one_by_one
    assert channel.limits.min() > 2**32 - 2**17


def test_counts_are_per_orbit_and_agree_with_themselves_only(small):
    channel, _, _ = small
    drawn = channel.perturb(np.arange(500) % channel.inputs, source=seeded(5))
    counts = channel.tally(drawn)
    assert counts.shape == (channel.bins,)
    assert channel.agrees(counts, 500)
    assert not channel.agrees(counts, 499)
    bits = np.unpackbits(drawn, axis=1, count=channel.inputs, bitorder="little")
    assert counts.reshape(len(channel.orbits), -1)[:, 1:].sum(axis=0).tolist() == bits.sum(axis=0).tolist()
    moved = counts.copy()
    moved[np.flatnonzero(counts)[-1]] -= 1
    assert not channel.agrees(moved, 500)


def counters(channel, symbol) -> np.ndarray:
    return channel.tally(np.frombuffer(symbol, dtype=np.uint8)[None, :]).astype(float)


def test_expected_counts_are_the_mixture_of_laws(small):
    channel, laws, _ = small
    shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
    mixed = sum(
        share * float(weight) * counters(channel, symbol)
        for share, law in zip(shares, laws, strict=True)
        for symbol, weight in law.items()
    )
    np.testing.assert_allclose(channel.expected(shares), mixed, rtol=1e-9, atol=1e-12)


def test_estimates_of_expected_counts_are_the_truth(small, large):
    for channel in (small[0], large[0]):
        shares = np.random.default_rng(9).dirichlet(np.ones(channel.inputs))
        found = OrbitEstimator(channel)(1000.0 * channel.expected(shares), 1000)
        np.testing.assert_allclose(found.values, shares[: channel.values], atol=1e-7)
        np.testing.assert_allclose(
            found.categories, shares[: channel.values].reshape(channel.many, -1).sum(axis=1), atol=1e-7
        )
        assert found.missing == pytest.approx(shares[-1] if channel.missing else 0.0, abs=1e-7)


def test_error_of_the_estimator_is_the_floor(small):
    """The variance of the estimator at a uniform population, from the explicit law."""
    channel, laws, declared = small
    estimator = OrbitEstimator(channel)
    truth = np.zeros(channel.values + channel.many)
    truth[: channel.values], truth[channel.values :] = 1 / channel.values, 1 / channel.many
    weights = np.concatenate(
        [np.full(channel.values, 0.5 / channel.values), np.full(channel.many, 0.5 / channel.many)]
    )
    error = 0.0
    for symbol in laws[0]:
        found = estimator(counters(channel, symbol), 1)
        probability = sum(float(law[symbol]) for law in laws[: channel.values]) / channel.values
        error += probability * float(weights @ np.concatenate([found.values, found.categories]) ** 2)
    # Total variance, less that of sampling the population.
    error -= float(weights @ truth**2) + float(weights @ (truth * (1 - truth)))
    floor = orbit_floor(
        [channel.size] * channel.many, epsilon=declared, weights=BOTH, missing=channel.missing
    )
    assert floor.floor * (1 - 1e-9) <= error <= floor.floor * (1 + 1e-5)


def test_best_mixtures_have_at_most_four_orbits(large):
    channel, _ = large
    assert len(channel.orbits) <= 4


def test_description_survives_the_wire_and_is_refused_when_broken(small):
    channel, _, _ = small
    spec = channel.to_spec()
    assert OrbitChannel.from_spec(msgpack.unpackb(msgpack.packb(spec))) == channel
    for broken in [
        {**spec, "extra": 1},
        *({k: v for k, v in spec.items() if k != key} for key in spec),
        *(
            {**spec, key: value}
            for key in spec.keys() - {"kind"}
            for value in (None, 0.5, True, -1, 0, "x", [], [0.5], b"")
        ),
        {**spec, "inside": [w + 1 for w in spec["inside"]]},
    ]:
        with pytest.raises((WireError, ParameterError)):
            OrbitChannel.from_spec(broken)


def test_mixture_that_does_not_close_its_rows_is_refused():
    with pytest.raises(ParameterError, match="rows"):
        compiled(2, 2, [([1, 1], False, 0.5)], epsilon=1.0, missing=False)
