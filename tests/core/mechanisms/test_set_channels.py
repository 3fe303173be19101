from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import pytest
from set_contract import SetCase, SetContract, levels_law, subset_law, unary_law

from hubbub.errors import ParameterError
from hubbub.filter import BayesianFilter
from hubbub.mechanisms import SetLevels, SubsetSelection, Unary, grr, levels, subset_selection, unary
from hubbub.mechanisms.levels.hierarchy import Hierarchy
from hubbub.testing import RecordedSource, seeded


def unlike_levels():
    """Levels of 3, 2.4 and 1.5 to one."""
    nesting = Hierarchy.of([[2, 1], [2, 2]])
    held = [3 * 2**30, 12 * 2**32 // 22, 2**31]
    return SetLevels(nesting, [2**30, 2**30, 2**31], [1, 2, 3], held)


class TestSubsetSelection(SetContract):
    cases: ClassVar = {
        "small": SetCase(
            lambda: subset_selection(7, epsilon=1.0, size=3),
            1.0,
            "6d2da7b72ac0fdf27133120acb18b22af3651539431ac6307a2f70564fca6d0a",
            subset_law,
        ),
        "two inputs": SetCase(
            lambda: subset_selection(2, epsilon=0.5),
            0.5,
            "e2380bcce7e1fc09ee2307e229186c51148df5796ad95f133c53eeca6da9578d",
            subset_law,
        ),
        "all but one": SetCase(
            lambda: subset_selection(5, epsilon=2.0, size=4),
            2.0,
            "e0f04be1e60421165adc63c5a82c22505d3d96718f09152af4138319d932f383",
            subset_law,
        ),
        "whole bytes": SetCase(
            lambda: subset_selection(8, epsilon=1.0, size=2),
            1.0,
            "4fef652c8bf7d230047434a6bffa0717dc8ae08c0e2e46e7ec7791a14e30a167",
            subset_law,
        ),
        "ages": SetCase(
            lambda: subset_selection(91, epsilon=1.0),
            1.0,
            "21752322119cfa378c150ab31825c842176d48aa73df07c2789099f101b1b2b1",
        ),
    }


class TestUnary(SetContract):
    cases: ClassVar = {
        "optimised": SetCase(
            lambda: unary(5, epsilon=1.0),
            1.0,
            "6faa7bbb2123d2a4dc813bdff21793ea920c05d684ce1d520d086d5f5bf88c90",
            unary_law,
        ),
        "symmetric": SetCase(
            lambda: unary(6, epsilon=2.0, variant="symmetric"),
            2.0,
            "3632cbcc3b4b5c3f9242f3070aff79c33a8174e9b21d16ac5a5e685a765f9543",
            unary_law,
        ),
        "two inputs": SetCase(
            lambda: unary(2, epsilon=0.5),
            0.5,
            "59eaba2ac494e069a0ff9765d0acfd809464e0e36ff9de5e06c38b3340c24c54",
            unary_law,
        ),
        "ages": SetCase(
            lambda: unary(91, epsilon=4.0),
            4.0,
            "d9335f96463b0ea5fa4e56d29c8aa479eb522b8fe5d395c2487a9732d6149911",
        ),
    }


class TestSetLevels(SetContract):
    cases: ClassVar = {
        "two levels": SetCase(
            lambda: levels([3, 2], epsilon=0.2, shares=[0.3, 0.7]),
            0.2,
            "76773084566ff751ed0b33e841cf30d27b85c1e6d6f99d2dc4fa4fceb013f530",
            levels_law,
        ),
        "three levels": SetCase(
            lambda: levels([[2, 1], [2, 2]], epsilon=0.5),
            0.5,
            "5359f0dcabfbf5db7f7663f8d1754594a306354849fd1ad0fb574b20cf7778f2",
            levels_law,
        ),
        "unlike epsilons": SetCase(
            unlike_levels,
            1.0986122887,
            "282b235c3fdd89a0b85875503e9cf694036e64dba72069718944956114cc1b18",
            levels_law,
        ),
        "ages": SetCase(
            lambda: levels([10] * 9 + [1], epsilon=1.0),
            1.0,
            "e538d7dae244aa3649221b2c570049f4adaee8a3813776a290212f4c8c76450a",
        ),
    }


def test_unary_bits_are_set_by_exactly_so_many_values_of_their_coin():
    channel = unary(3, epsilon=1.0)
    coins = np.array(
        [channel.q_draws - 1, channel.q_draws, channel.p_draws - 1, channel.p_draws], dtype=np.uint32
    )
    out = np.zeros((4, 3), dtype=np.bool_)
    channel.fill(np.ones(4, dtype=np.intp), np.repeat(coins[:, None], 3, axis=1), out)
    assert out[:, 0].tolist() == out[:, 2].tolist() == [True, False, False, False]
    assert out[:, 1].tolist() == [True, True, True, False]


def test_a_level_is_picked_by_exactly_its_share_of_words():
    channel = unlike_levels()
    picks = np.array([2**30 - 1, 2**30, 2**31 - 1, 2**31, 2**32 - 1], dtype=np.uint32)
    attempts = np.zeros((5, channel.words), dtype=np.uint32)
    attempts[:, 0] = picks
    out = np.zeros((5, channel.bins), dtype=np.bool_)
    channel.fill(np.zeros(5, dtype=np.intp), attempts, out)
    assert out[:, :3].argmax(axis=1).tolist() == [0, 1, 1, 2, 2]
    assert (out[:, :3].sum(axis=1) == 1).all()


@pytest.mark.parametrize("channel", [subset_selection(7, epsilon=1.0, size=3), unlike_levels()], ids=repr)
def test_a_word_at_its_limit_drops_the_attempt_and_the_one_below_does_not(channel):
    limits = channel.limits.tolist()
    place = next(i for i, limit in enumerate(limits) if limit < 2**32)
    kept = [0] * channel.words
    kept[place] = limits[place] - 1
    dropped = list(kept)
    dropped[place] = limits[place]
    both = b"".join(word.to_bytes(4, "little") for word in dropped + kept)
    alone = b"".join(word.to_bytes(4, "little") for word in kept)
    for values in (0, [0]):
        first = channel.perturb(values, source=RecordedSource(both))
        assert np.array_equal(first, channel.perturb(values, source=RecordedSource(alone)))


@pytest.mark.parametrize(("inputs", "epsilon"), [(100, 1.0), (91, 2.0), (1000, 0.5), (12, 3.0)])
def test_subset_size_is_the_one_of_least_variance(inputs, epsilon):
    def variance(size):
        support = subset_selection(inputs, epsilon=epsilon, size=size).levels[0].support
        p, q = float(support.p), float(support.q)
        return (p * (1 - p) + (inputs - 1) * q * (1 - q)) / (p - q) ** 2

    chosen = subset_selection(inputs, epsilon=epsilon).size
    assert chosen == min(range(1, inputs // 2 + 2), key=variance)
    assert abs(chosen - inputs / (math.exp(epsilon) + 1)) < 2


def test_subsets_of_one_are_randomised_response():
    sets, numbers = subset_selection(9, epsilon=1.5, size=1), grr(9, epsilon=1.5)
    support = sets.levels[0].support
    assert float(support.p) == pytest.approx(numbers.t / numbers.total, rel=1e-6)
    assert float(support.q) == pytest.approx(numbers.u / numbers.total, rel=1e-6)
    assert support.q_pair == 0


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 12.0])
def test_unary_bits_are_the_papers(epsilon):
    optimised = unary(10, epsilon=epsilon).levels[0].support
    assert optimised.p == 0.5
    assert float(optimised.q) == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-3)
    symmetric = unary(10, epsilon=epsilon, variant="symmetric").levels[0].support
    assert symmetric.p + symmetric.q == 1
    half = math.exp(epsilon / 2)
    assert float(symmetric.p) == pytest.approx(half / (half + 1), rel=1e-6)


@pytest.mark.parametrize("epsilon", [24.0, 30.0, 40.0])
def test_epsilons_that_coins_of_32_bits_cannot_express_are_refused(epsilon):
    with pytest.raises(ParameterError, match="bits can express epsilon"):
        unary(10, epsilon=epsilon)
    with pytest.raises(ParameterError, match="bits can express epsilon"):
        subset_selection(2, epsilon=epsilon)


@pytest.mark.parametrize("size", [0, 10, -1, 2.0, True, "3"])
def test_subset_of_no_possible_size_is_refused(size):
    with pytest.raises(ParameterError, match="size must be"):
        subset_selection(10, epsilon=1.0, size=size)


def test_unary_variant_that_nobody_knows_is_refused():
    with pytest.raises(ParameterError, match="variant must be"):
        unary(10, epsilon=1.0, variant="best")


@pytest.mark.parametrize("bad", [1, 2**17 + 1, 3.0, True, "4"])
def test_inputs_that_no_channel_can_have_are_refused(bad):
    for build in (subset_selection, unary):
        with pytest.raises(ParameterError, match="inputs must be"):
            build(bad, epsilon=1.0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: SubsetSelection(2**62, 2**61, 2**32 - 1),
        lambda: SubsetSelection(1, 1, 2**31),
        lambda: Unary(2**62, 2**30, 7),
        lambda: Unary(1, 2**30, 7),
        lambda: SubsetSelection(5, 5, 2**31),
        lambda: SubsetSelection(5, 0, 2**31),
        lambda: SubsetSelection(5, 2, 2**32),
        lambda: SubsetSelection(5, 2, 2**32 * 2 // 5),  # as likely in as any other
        lambda: Unary(5, 7, 7),
        lambda: Unary(5, 2**31, 7),
        lambda: Unary(5, 7, 0),
        lambda: SetLevels(Hierarchy(5, [[3, 2]]), [2**31, 2**31 - 1], [1, 2], [2**32 - 99] * 2),
        lambda: SetLevels(Hierarchy(5, [[3, 2]]), [2**32, 0], [1, 2], [2**32 - 99] * 2),
        lambda: SetLevels(Hierarchy(5, [[3, 2]]), [2**32], [1], [2**32 - 99]),
    ],
)
def test_integers_that_are_no_such_channel_are_refused(build):
    with pytest.raises(ParameterError):
        build()


@pytest.mark.parametrize("inputs", [2**17, 99_991])
def test_largest_channels_work_without_a_matrix(inputs):
    for channel in (unary(inputs, epsilon=2.0), subset_selection(inputs, epsilon=9.0)):
        symbol = channel.perturb(inputs - 1, source=seeded(1))
        assert len(symbol) == math.ceil(inputs / 8)
        assert channel.contains(np.frombuffer(symbol, dtype=np.uint8)[None, :]).all()
        assert channel.column(symbol).shape == (inputs,)
        assert channel.blocks().blocks == 1
        with pytest.raises(ParameterError, match="divergence"):
            channel.divergence()


@pytest.mark.parametrize(
    "build", [subset_selection, unary, lambda k, epsilon: levels([5] * 4, epsilon=epsilon)]
)
def test_filter_reads_sets_as_it_reads_numbers(build):
    channel = build(20, epsilon=0.5)
    account = BayesianFilter(budget=1.0)
    first, second = account.reserve("age", channel), account.reserve("age", channel)
    assert account.reserve("age", channel) is None
    symbols = [channel.perturb(3, source=seeded(s)) for s in (1, 2)]
    account.record(first, symbols[0])
    account.record(second, symbols[1])
    truth = sum(channel.log_likelihood(symbol) for symbol in symbols)
    assert account.loss == pytest.approx(truth.max() - truth.min(), abs=1e-10)
    assert account.loss >= truth.max() - truth.min() - 1e-12
