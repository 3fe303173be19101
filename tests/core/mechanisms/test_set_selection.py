"""Set selection: the law in rationals from its definition, what it certifies, and what its draws are."""

from __future__ import annotations

import hashlib
import math
import os
import time
from fractions import Fraction
from itertools import combinations

import msgpack
import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.errors import ParameterError, WireError
from hubbub.estimation import ItemsEstimator
from hubbub.mechanisms import SetSelection, item_variance, set_selection
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.mechanisms.set_selection import COIN
from hubbub.testing import seeded

CASES = [(4, 2, 2, 1.0), (6, 1, 3, 1.0), (6, 2, 3, 2.0), (3, 2, 2, 0.5)]
"""V, L, k, epsilon."""


def law(channel: SetSelection, members: frozenset[int]) -> dict[bytes, Fraction]:
    """The probability of every report, for a set of items: the definition, in rationals."""
    cells = range(channel.bins)
    dummies = range(channel.inputs, channel.inputs + channel.most - len(members))
    padded = members | set(dummies)
    reports = [frozenset(each) for each in combinations(cells, channel.size)]
    met = [bool(each & padded) for each in reports]
    coin = Fraction(channel.held, COIN)
    return {
        sum(1 << cell for cell in each).to_bytes(channel.width, "little"): (
            coin / sum(met) if hit else (1 - coin) / (len(met) - sum(met))
        )
        for each, hit in zip(reports, met, strict=True)
    }


def sets_of(channel: SetSelection) -> list[frozenset[int]]:
    """All sets of at most L items."""
    return [
        frozenset(each)
        for size in range(channel.most + 1)
        for each in combinations(range(channel.inputs), size)
    ]


def mask(members: frozenset[int]) -> int:
    return sum(1 << member for member in members)


def packed(channel: SetSelection, sets: list[frozenset[int]]) -> np.ndarray:
    width = (channel.inputs + 7) // 8
    data = b"".join(mask(each).to_bytes(width, "little") for each in sets)
    return np.frombuffer(data, np.uint8).reshape(len(sets), width)


@pytest.mark.parametrize(("inputs", "most", "size", "epsilon"), CASES)
def test_law_epsilon_and_shares_are_exact_in_rationals(inputs, most, size, epsilon):
    channel = set_selection(inputs, most=most, epsilon=epsilon, size=size)
    laws = {each: law(channel, each) for each in sets_of(channel)}
    reports = next(iter(laws.values())).keys()
    assert all(sum(each.values()) == 1 for each in laws.values())
    ratio = max(
        max(each[report] for each in laws.values()) / min(each[report] for each in laws.values())
        for report in reports
    )
    assert ratio == Fraction(*channel.odds)
    assert math.log(ratio) <= channel.epsilon <= epsilon < channel.epsilon + 1e-9
    for members, found in laws.items():
        for item in range(inputs):
            share = sum(chance for report, chance in found.items() if report[item // 8] >> item % 8 & 1)
            assert share == (channel.p if item in members else channel.q)


def test_the_known_values_of_the_literature_come_out():
    first = set_selection(4, most=2, epsilon=1.0, size=2)
    assert (round(float(first.p), 6), round(float(first.q), 6)) == (0.446139, 0.276931)
    other = set_selection(6, most=2, epsilon=2.0, size=3)
    assert (round(float(other.p), 6), round(float(other.q), 6)) == (0.542542, 0.319153)
    one = set_selection(6, most=1, epsilon=1.0, size=1)
    assert (round(float(one.p), 6), round(float(one.q), 6)) == (
        round(math.e / (math.e + 6), 6),
        round(1 / (math.e + 6), 6),
    )


@pytest.mark.long  # ten rounds of 650
def test_200_items_and_8_of_a_device_have_the_error_of_the_formula():
    """30.38 of an item that nobody has; and simulated: n = 200,000 devices with 0 to 8 of 200 items.

    n x the mean square error of 200 items is a mean of some 200 independent squares, of relative deviation
    sqrt(2/200) = .1; ten rounds make it .032 and the mean of items and rounds' formula is exact, so .16 is
    5 deviations: a false alarm below 1e-6. In the long form 650 rounds of a .02.
    """
    rounds = 650 if "HUBBUB_TEST_LONG" in os.environ else 10
    channel = set_selection(200, most=8, epsilon=1.0)
    p, q = float(channel.p), float(channel.q)
    assert channel.size == 6
    assert q * (1 - q) / (p - q) ** 2 == pytest.approx(30.38, abs=0.005)
    assert item_variance(208, 8, 6, math.e) == pytest.approx(30.3825, abs=5e-5)
    rng = np.random.default_rng(3)
    held = rng.random((20_000, 200)).argsort(axis=1) < rng.integers(0, 9, 20_000)[:, None]
    sets = np.packbits(held, axis=1, bitorder="little")
    estimator, truth = ItemsEstimator(channel), held.mean(axis=0)
    errors = []
    for seed in range(rounds):
        counts = channel.tally(channel.perturb(sets, source=seeded(seed)))
        errors.append(np.mean((estimator(counts, len(sets)).values - truth) ** 2))
    expected = np.mean(truth * p * (1 - p) + (1 - truth) * q * (1 - q)) / (p - q) ** 2
    assert len(sets) * np.mean(errors) == pytest.approx(expected, rel=5.0 * math.sqrt(2.0 / 200 / rounds))


@pytest.mark.parametrize(("inputs", "most", "size", "epsilon"), CASES)
@pytest.mark.parametrize("many", ["one", "array"])
def test_draws_follow_the_law(inputs, most, size, epsilon, many):
    """Chi-square over all reports for three sets, 40,000 draws each; a false alarm below 1e-7 for each.

    Control: the law of another set is refused.
    """
    channel = set_selection(inputs, most=most, epsilon=epsilon, size=size)
    sets = [frozenset(), frozenset({0}), frozenset(range(most))]
    draws = 40_000
    for place, members in enumerate(sets):
        source = seeded(10 + place)
        if many == "array":
            drawn = channel.perturb(packed(channel, [members] * draws), source=source)
            found = [bytes(each) for each in drawn]
        else:
            found = [channel.perturb(mask(members), source=source) for _ in range(draws)]
        assert all(map(channel.admits, set(found)))
        for other in sets:
            expected = law(channel, other)
            counted = dict.fromkeys(expected, 0)
            for report in found:
                counted[report] += 1
            statistic = sum(
                (counted[each] - draws * float(chance)) ** 2 / (draws * float(chance))
                for each, chance in expected.items()
            )
            limit = chi2.isf(1e-7, len(expected) - 1)
            assert (statistic < limit) == (other == members)


class Coin:
    """A source whose second word of eight bytes, the coin, is set; all else is seeded."""

    def __init__(self, coin: int) -> None:
        self._source, self._coin = seeded(5), coin.to_bytes(8, "little")

    def token_bytes(self, n: int, /) -> bytes:
        data = self._source.token_bytes(n)
        return data[:8] + self._coin + data[16:] if n > 16 else data


def test_a_draw_takes_as_long_whether_it_meets_the_set_or_not():
    """Medians of 2,000 alternating draws differ by less than a tenth, as trying again would not.

    A sampler that tries again until a report meets the set takes 1/h = 4.8 tries here.
    """
    channel = set_selection(200, most=8, epsilon=1.0)
    took: dict[int, list[int]] = {0: [], 2**64 - 1: []}
    sources = {coin: Coin(coin) for coin in took}
    for _ in range(2_000):
        for coin, source in sources.items():
            begun = time.perf_counter_ns()
            channel.draw(7, source)
            took[coin].append(time.perf_counter_ns() - begun)
    hit, miss = (float(np.median(each)) for each in took.values())
    assert abs(hit / miss - 1) < 0.1


def test_hits_and_misses_meet_the_set_or_not():
    channel = set_selection(200, most=8, epsilon=1.0)
    padded = 7 | ((1 << 205) - (1 << 200))
    for coin, met in ((0, True), (2**64 - 1, False)):
        source = Coin(coin)
        for _ in range(300):
            assert bool(int.from_bytes(channel.draw(7, source), "little") & padded) == met


def test_the_widest_channel_is_made_in_no_time():
    """Canonical bytes may come from a hostile server."""
    widest = set_selection(2**13 - 256, most=256, epsilon=1.0, size=40)
    begun = time.perf_counter()
    assert channel_from_spec(widest.to_spec()) == widest
    assert time.perf_counter() - begun < 1.0


def test_descriptions_travel_and_stay():
    channel = set_selection(199, most=8, epsilon=1.0)
    data = msgpack.packb(dict(sorted(channel.to_spec().items())))
    assert channel_from_spec(msgpack.unpackb(data)) == channel
    assert hashlib.sha256(data).hexdigest() == (
        "ccd5fbf89a3b05a08b9e838b426a9d3640217f77382dca1fb8643c4c0e039ec1"
    )


def test_what_is_no_such_channel_is_refused():
    good = set_selection(6, most=2, epsilon=1.0)
    for key, value in (
        ("most", 0),
        ("most", 257),
        ("size", 0),
        ("size", 7),
        ("held", 0),
        ("held", COIN),
        ("held", 1),
        ("inputs", 8191),
    ):
        with pytest.raises((ParameterError, WireError)):
            channel_from_spec({**good.to_spec(), key: value})
    with pytest.raises(WireError):
        channel_from_spec({**good.to_spec(), "more": 1})
    for parameters in ({"most": 6}, {"most": 0}, {"most": 2, "size": 7}, {"most": 2, "size": 0}):
        with pytest.raises(ParameterError):
            set_selection(6, epsilon=1.0, **parameters)
    with pytest.raises(ParameterError, match="no coin of 63 bits"):
        set_selection(2**12, most=256, epsilon=1.0, size=2000)


@pytest.mark.parametrize("value", [7, 1 << 6, -1, 1.0, "1"])
def test_a_value_that_is_no_set_is_refused_and_not_repeated(value):
    channel = set_selection(6, most=2, epsilon=1.0)
    with pytest.raises(ParameterError, match=r"got another value|packed bytes"):
        channel.perturb(value)


def test_other_arrays_and_reports_are_refused():
    channel = set_selection(6, most=2, epsilon=1.0, size=2)
    for rows in ([[7]], [[64]], [1], [[1, 0]]):
        with pytest.raises(ParameterError):
            channel.perturb(np.array(rows, np.uint8))
    assert channel.perturb(np.empty((0, 1), np.uint8)).shape == (0, 1)
    assert not any(map(channel.admits, (b"\x01", b"\x07", b"\x03\x00", 3)))
    assert channel.admits(b"\x03")
    assert list(channel.contains(np.array([[3], [1], [7]], np.uint8))) == [True, False, False]
