"""Channels: generalised randomised response, the dense channel, and what both refuse."""

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.finite import DenseChannel
from hubbub.channels.spec import spec_int, spec_ints
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms import GRR, grr
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.numeric.exact import exp_below
from hubbub.testing import seeded


@pytest.mark.parametrize("entry", [0, -1, 2**63, True, 1.0, "1", None])
def test_an_integer_of_a_description_is_from_one_to_below_two_to_the_63(entry):
    for spec in ({"k": entry}, {"k": [1, entry]}):
        with pytest.raises(WireError, match=r"a channel's k must be"):
            (spec_ints if isinstance(spec["k"], list) else spec_int)(spec, "k")


def triangle(inputs, outputs, total):
    """A dense matrix without structure, its rows summing to the total."""
    x, y = np.mgrid[:inputs, :outputs]
    shape = 40 - 10 * np.abs(x * outputs - y * inputs) // (inputs * outputs) - (x * y) % 3
    weights = total // shape.sum(axis=1, keepdims=True) * shape
    weights[np.arange(inputs), np.arange(inputs) % outputs] += total - weights.sum(axis=1)
    return weights


class TestGRR(MechanismContract):
    cases: ClassVar = {
        "two inputs": Case(
            lambda: grr(2, epsilon=0.5),
            0.5,
            "b03e79216208717e95fb6a6385e0d2237612f32954c530745ec0ee050907d107",
        ),
        "ages": Case(
            lambda: grr(91, epsilon=1.0),
            1.0,
            "7c58b1e7fbe6df3d858d2b7fef6c543be1e7001f32b5eebd1fe44fde8e338202",
        ),
        "more than a byte": Case(
            lambda: grr(300, epsilon=4.0),
            4.0,
            "f0dbad38966bc3a6b141a3e549b1a3f0735cf247176ab77b16426a352ab2d948",
        ),
        "eight bytes a draw": Case(
            lambda: GRR(20, t=27 * 10**16, u=10**17),
            1.0,
            "218608dfc5f799789ce8ce21c70d6fb24c755695d69daa0591caee8f1c084496",
        ),
    }


class TestDense(MechanismContract):
    cases: ClassVar = {
        "narrow": Case(
            lambda: DenseChannel(triangle(7, 12, 4_000_000_000)),
            2.0,
            "603ddcf5ba50e44cda6049113c73116ccd90865c0ac873794671546d6701ed50",
        ),
        "rows beyond one sorted table": Case(
            lambda: DenseChannel(triangle(20, 9, 2**61)),
            2.0,
            "6d204bd686f53a6ee0ae80743a1057634b088bf540b5f5628027fb857c5d48df",
        ),
        "tall": Case(
            lambda: DenseChannel(triangle(40, 5, 10**6)),
            2.0,
            "a660ed2bb5a513bc01574833c381c019edf8822be839660e3073c401fd48e809",
        ),
    }


def test_contract_cases_of_grr_cover_both_draw_widths():
    totals = [case.build().total for case in TestGRR.cases.values()]
    assert min(totals) < 2**32 < max(totals)


@pytest.mark.parametrize(("inputs", "epsilon"), [(5, 1e-3), (500, 0.05), (MAX_INPUTS, 1.0), (2, 30.0)])
def test_total_is_widened_only_when_four_bytes_a_draw_cost_epsilon(inputs, epsilon):
    channel = grr(inputs, epsilon=epsilon)
    aim, u = exp_below(epsilon - 2.0**-36), (2**32 - 1) // (inputs - 1 + exp_below(epsilon - 2.0**-36))
    kept = math.log(Fraction(math.floor(aim * u), u)) if u else 0.0
    assert (channel.total > 2**32) == (kept < (epsilon - 2.0**-36) * (1 - 1e-6))


@pytest.mark.parametrize(
    ("inputs", "epsilon"), [(2, 0.1), (91, 1.0), (1000, 3.0), (5, 8.0), (MAX_INPUTS, 1.0)]
)
def test_grr_is_within_a_millionth_of_the_declared_epsilon(inputs, epsilon):
    certified = grr(inputs, epsilon=epsilon).epsilon
    assert epsilon * (1 - 1.1e-6) <= certified < epsilon


def test_grr_rejects_draws_almost_never():
    channel = grr(91, epsilon=1.0)
    assert 2**32 - channel.total < 200


def test_two_channels_of_half_the_budget_fit_the_budget():
    half = grr(10, epsilon=0.5)
    quanta = int(half.blocks().within[0])
    assert 2 * quanta <= 2**40


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 41.0, 1e-9, True, "1", None])
def test_grr_refuses_an_epsilon_that_is_no_privacy_parameter(epsilon):
    with pytest.raises(ParameterError, match="epsilon must be"):
        grr(10, epsilon=epsilon)


@pytest.mark.parametrize("inputs", [1, 0, -3, MAX_INPUTS + 1, 10**9, 2.0, True, "3"])
def test_grr_refuses_a_number_of_inputs_that_makes_no_channel(inputs):
    with pytest.raises(ParameterError, match="inputs must be"):
        grr(inputs, epsilon=1.0)


def test_largest_grr_never_builds_its_matrix():
    channel = grr(MAX_INPUTS, epsilon=2.0)
    symbols = channel.perturb(np.arange(MAX_INPUTS), source=seeded(1))
    assert symbols.dtype == np.uint32
    assert channel.blocks().within.size == 1
    with pytest.raises(ParameterError, match="weights"):
        channel.weights()
    with pytest.raises(ParameterError, match="divergence"):
        channel.divergence()


def test_every_draw_of_a_small_dense_channel_selects_by_the_row():
    weights = np.array([[1, 5, 4], [3, 3, 4]])
    channel = DenseChannel(weights)
    for x in (0, 1):
        assert [channel.select(x, r) for r in range(10)] == np.repeat([0, 1, 2], weights[x]).tolist()


def test_dense_channel_keeps_its_own_read_only_copy():
    weights = np.array([[1, 5, 4], [3, 3, 4]])
    channel = DenseChannel(weights)
    weights[0, 0] = 9
    assert channel.weights()[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        channel.weights()[0, 0] = 2


def test_a_dense_channel_of_many_rows_is_held_in_one_block():
    """Pairs of 1,025 rows would be a million maxima on the device that was sent them."""
    weights = np.array([[x + 1, 5000 - x] for x in range(1025)])
    channel = DenseChannel(weights)
    assert channel.blocks().blocks == 1
    assert 0 <= channel.blocks().largest - channel.epsilon * 2**40 <= 3
    assert DenseChannel(weights[1:]).blocks().blocks == 1024


def test_equal_rows_of_a_dense_channel_share_a_block():
    blocks = DenseChannel(np.array([[1, 5, 4], [3, 3, 4], [1, 5, 4]])).blocks()
    assert blocks.labels[0] == blocks.labels[2] != blocks.labels[1]


@pytest.mark.parametrize(
    "weights",
    [
        [[1, 2], [1, 1]],
        [[0, 2], [1, 1]],
        [[-1, 3], [1, 1]],
        [[1.0, 2.0], [2.0, 1.0]],
        [1, 2],
        [[1, 1]],
        [[2], [2]],
        [[]],
        [[2**62, 2**62], [2**62, 2**62]],
        [[2**63, 2**63], [2**63, 2**63]],
    ],
)
def test_dense_channel_refuses_what_is_no_channel(weights):
    with pytest.raises(ParameterError):
        DenseChannel(np.array(weights))


def test_dense_total_that_wraps_round_in_64_bits_is_refused():
    row = [2**62] * 4 + [1]  # sums to 1 modulo 2^64
    with pytest.raises(ParameterError, match="2\\^63"):
        DenseChannel(np.array([row, row]))


@pytest.mark.parametrize("spec", [{}, {"kind": None}, {"kind": []}, [], None, {"kind": "grr"}])
def test_thing_that_is_no_description_is_refused(spec):
    with pytest.raises(WireError):
        channel_from_spec(spec)


def test_description_whose_weights_contradict_its_total_is_refused():
    spec = DenseChannel(np.array([[1, 5, 4], [3, 3, 4]])).to_spec()
    with pytest.raises(WireError, match="total"):
        channel_from_spec({**spec, "total": 11})


def test_description_of_a_grr_that_favours_the_lie_is_refused():
    with pytest.raises(ParameterError, match="t > u"):
        channel_from_spec({"kind": "grr", "inputs": 3, "t": 2, "u": 5})


def test_epsilon_of_a_description_is_computed_never_believed():
    channel = channel_from_spec({"kind": "grr", "inputs": 3, "t": 20, "u": 1})
    assert channel.epsilon >= math.log(20)
    assert Fraction(20) > exp_below(2.99)


@pytest.mark.parametrize(
    "values",
    [1.0, "1", None, True, np.float64(1), [1.0], [None], [True], ["1"], [[1]], [[1], [1, 2]], [2**70]],
)
def test_value_that_is_no_integer_is_refused(values):
    with pytest.raises(ParameterError):
        grr(10, epsilon=1.0).perturb(values)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i4"])
def test_any_integer_type_of_values_draws_the_same(dtype):
    channel, values = grr(10, epsilon=1.0), np.arange(1000) % 10
    expected = channel.perturb(values, source=seeded(2))
    assert np.array_equal(channel.perturb(values.astype(dtype), source=seeded(2)), expected)


def test_integer_of_numpy_gives_an_int():
    assert type(grr(10, epsilon=1.0).perturb(np.int16(3))) is int


def test_no_values_give_no_symbols():
    assert grr(10, epsilon=1.0).perturb([]).shape == (0,)


def test_strided_values_longer_than_a_chunk_draw_as_contiguous_ones_do():
    channel, values = grr(10, epsilon=1.0), np.arange(200_000) % 10
    expected = channel.perturb(values[::2].copy(), source=seeded(2))
    assert np.array_equal(channel.perturb(values[::2], source=seeded(2)), expected)


def test_bad_value_in_the_last_chunk_is_refused():
    values = np.zeros(100_000, dtype=np.int64)
    values[-1] = 10
    with pytest.raises(ParameterError):
        grr(10, epsilon=1.0).perturb(values)


def test_channels_are_equal_when_their_integers_are():
    assert grr(10, epsilon=1.0) == grr(10, epsilon=1.0)
    assert grr(10, epsilon=1.0) != grr(10, epsilon=1.1)
    assert grr(10, epsilon=1.0) != DenseChannel(grr(10, epsilon=1.0).weights())
