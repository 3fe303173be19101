"""Privacy-boosted randomised response: categories of any size, its two ends, and what it refuses."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract, exact_ratio

from hubbub.channels.channel import MAX_INPUTS
from hubbub.errors import ParameterError
from hubbub.mechanisms import PBGRR, CategoryGRR, grr
from hubbub.mechanisms.registry import channel_from_spec
from hubbub.testing import seeded
from hubbub_authoring.mechanisms import pbgrr

TENS = [10] * 9 + [1]
FIVES = [5] * 18 + [1]


class TestPBGRR(MechanismContract):
    cases: ClassVar = {
        "equal sizes": Case(
            lambda: pbgrr([10] * 9, epsilon=1.0, boost_epsilon=0.5),
            1.0,
            "56341e8ea5b5c09093dfbdbd1b67047302a7627e9bcdc1643326c18d8b445a65",
        ),
        "ages in tens": Case(
            lambda: pbgrr(TENS, epsilon=5.0, boost_epsilon=2.0),
            5.0,
            "772d22aecc78960cdd4d546301f883b954b7484333c14b689ff0d1fd0d236f84",
        ),
        "every size different": Case(
            lambda: pbgrr(range(1, 25), epsilon=2.0, boost_epsilon=1.0),
            2.0,
            "de1b000567d65eb18a743655939809800f46448a4ab5f1e029c9c55a57c4b9cd",
        ),
        "sizes interleaved": Case(
            lambda: pbgrr([1, 7, 1, 1, 7, 2], epsilon=1.0, boost_epsilon=0.3),
            1.0,
            "5d48cb18f30faf8c48c122a8fa806f1727b54936a9ed2356e758cdece2fb6062",
        ),
        "all of one value": Case(
            lambda: pbgrr([1] * 5, epsilon=1.0, boost_epsilon=0.3),
            1.0,
            "7607422db6171a4e9e35c7974e222730c29e85cffd253a2f301e1fe4e37975d0",
        ),
        "all of epsilon": Case(
            lambda: pbgrr([3, 4], epsilon=1.0, boost_epsilon=1.0),
            1.0,
            "ea07117ce6bf7800113bcc719bd6f0e787af1820b8e0c8becc30560cb3e70414",
        ),
        "eight bytes a draw": Case(
            lambda: PBGRR([1, 3], [15 * 10**17, 9 * 10**17], [3 * 10**17, 6 * 10**17], [3 * 10**17] * 2),
            1.7,
            "2403cc3242e55827a6748e594270d090b145ac38498527d321d180aea5c6a6d3",
        ),
    }


class TestCategoryGRR(MechanismContract):
    cases: ClassVar = {
        "ages in tens": Case(
            lambda: pbgrr(TENS, epsilon=1.5, boost_epsilon=0.0),
            1.5,
            "b84db4931f4338a82cd69f0af0aef839043e83f4150d6d7c48b55a5e0de40180",
        ),
        "two halves": Case(
            lambda: pbgrr([20, 1], epsilon=0.5, boost_epsilon=0.0),
            0.5,
            "ffe4226bd8fc603628a609d185608d97ff9fc537bd128649f48e756d5e3c6e40",
        ),
    }


def printed_formula_ratio(sizes, near, far):
    """The largest column ratio when rows are normalised one by one, a = far and b = near."""
    inputs = sum(sizes)
    category = np.repeat(np.arange(len(sizes)), sizes)
    norms = [far + (sizes[c] - 1) * near + inputs - sizes[c] for c in category]
    worst = Fraction(0)
    for y in range(inputs):
        column = [
            (far if x == y else near if category[x] == category[y] else Fraction(1)) / norms[x]
            for x in range(inputs)
        ]
        worst = max(worst, max(column) / min(column))
    return worst


@pytest.mark.parametrize(("sizes", "printed"), [(TENS, 5.543), (FIVES, 5.278)])
def test_unequal_ages_keep_the_epsilon_that_the_printed_formula_breaks(sizes, printed):
    channel = pbgrr(sizes, epsilon=5.0, boost_epsilon=2.0)
    e5, e3 = (Fraction(Decimal(k).exp()) for k in (5, 3))
    assert exact_ratio(channel.weights()) < e5
    # Control: privacy-boosting Prop. 7 with rows normalised one by one is over its own epsilon.
    ratio = printed_formula_ratio(sizes, e3, e5)
    assert ratio > e5
    assert math.log(ratio) == pytest.approx(printed, abs=5e-4)


def test_equal_sizes_give_the_printed_probabilities():
    sizes, epsilon, boost = [7] * 5, 2.0, 0.8
    channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost)
    a, b = math.exp(epsilon), math.exp(epsilon - boost)
    norm = a + 6 * b + 28
    expected = np.array([a, b, 1.0]) / norm
    got = np.array([channel.weight(0, 0), channel.weight(0, 1), channel.weight(0, 34)]) / channel.total
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_unequal_sizes_follow_the_column_scaled_formula():
    sizes, epsilon, boost = np.array([1, 4, 9]), 2.0, 0.8
    channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost)
    a, b = math.exp(epsilon), math.exp(epsilon - boost)
    spans = a - 1 + (sizes - 1) * (b - 1)
    scales = 1 / ((1 + (sizes / spans).sum()) * spans)
    np.testing.assert_allclose(channel.o / channel.total, scales, rtol=1e-6)
    np.testing.assert_allclose(channel.t / channel.total, a * scales, rtol=1e-6)
    np.testing.assert_allclose((channel.u / channel.total)[1:], b * scales[1:], rtol=1e-6)


@pytest.mark.parametrize(
    "channel",
    [
        PBGRR([2, 1, 3], t=[9, 11, 7], u=[3, 1, 3], o=[1, 1, 1]),
        PBGRR([2, 1, 3], t=[9, 9, 5], u=[3, 1, 3], o=[2, 1, 1]),
    ],
    ids=["one weight far away", "two weights far away"],
)
def test_every_draw_of_a_small_channel_selects_by_the_row(channel):
    for x in range(6):
        chosen = [channel.select(x, r) for r in range(channel.total)]
        assert np.bincount(chosen, minlength=6).tolist() == channel.row(x).tolist()
        out = np.zeros(channel.total, dtype=np.uint8)
        channel.select_many(np.full(channel.total, x), np.arange(channel.total, dtype=np.uint32), out)
        assert out.tolist() == chosen


@pytest.mark.parametrize(("epsilon", "boost"), [(1.0, 0.5), (5.0, 2.0), (0.3, 0.01), (8.0, 7.999)])
def test_values_of_one_category_differ_by_at_most_the_boost_epsilon(epsilon, boost):
    channel = pbgrr(TENS, epsilon=epsilon, boost_epsilon=boost)
    ceiling = Fraction(Decimal(boost).exp())
    for t, u, size in zip(channel.t.tolist(), channel.u.tolist(), channel.sizes.tolist(), strict=True):
        assert size == 1 or 1 < Fraction(t, u) <= ceiling


def test_boost_epsilon_of_all_epsilon_is_grr():
    channel = pbgrr([3, 4, 1], epsilon=1.0, boost_epsilon=1.0)
    assert np.array_equal(channel.weights(), grr(8, epsilon=1.0).weights())
    assert channel.category_of.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]


def test_boost_epsilon_zero_sends_categories_by_grr_alone():
    channel = pbgrr([3, 4, 1], epsilon=1.0, boost_epsilon=0.0)
    assert isinstance(channel, CategoryGRR)
    assert (channel.inputs, channel.outputs) == (8, 3)
    assert np.array_equal(channel.weights(), grr(3, epsilon=1.0).weights()[channel.category_of])
    assert channel.blocks().within.max() == 0


def test_boost_epsilon_above_epsilon_is_refused():
    with pytest.raises(ParameterError, match=r"boost_epsilon must be at most epsilon = 1.0, got 1.5"):
        pbgrr([2, 3], epsilon=1.0, boost_epsilon=1.5)


@pytest.mark.parametrize("boost", [-0.1, math.nan, math.inf, 1e-9, True, "0"])
def test_boost_epsilon_that_is_no_privacy_parameter_is_refused(boost):
    with pytest.raises(ParameterError, match="boost_epsilon must be"):
        pbgrr([2, 3], epsilon=1.0, boost_epsilon=boost)


@pytest.mark.parametrize("sizes", [[], [5], [2, 0], [2, -1], [2, 1.5], [True, 2], [MAX_INPUTS, 1], ["1", 2]])
@pytest.mark.parametrize("boost", [0.0, 0.5, 1.0])
def test_sizes_that_make_no_categories_are_refused(sizes, boost):
    with pytest.raises(ParameterError):
        pbgrr(sizes, epsilon=1.0, boost_epsilon=boost)


def test_parameters_beyond_63_bits_are_refused_with_the_reason():
    with pytest.raises(ParameterError, match=r"no total below 2\^63"):
        pbgrr([1, 1, 5], epsilon=38.0, boost_epsilon=1e-5)


def test_numpy_sizes_are_as_good_as_a_list():
    kept = pbgrr(np.array(TENS), epsilon=1.0, boost_epsilon=0.5)
    assert kept == pbgrr(TENS, epsilon=1.0, boost_epsilon=0.5)


@pytest.mark.parametrize("boost", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("sizes", [[256] * 512, [1] * 2**16 + [2] * 2**15, [2**16, 2**16 - 1, 1]])
def test_largest_channels_work_without_their_matrix(sizes, boost):
    channel = pbgrr(sizes, epsilon=2.0, boost_epsilon=boost)
    values = np.arange(channel.inputs)
    symbols = channel.perturb(values, source=seeded(1))
    assert int(symbols.max()) < channel.outputs
    assert channel.column(2).shape == channel.category_of.shape == (channel.inputs,)
    assert int(channel.row(5).sum()) == channel.total
    blocks = channel.blocks()
    assert blocks.across.max() >= (channel.epsilon - 1e-9) * 2**40
    assert channel.epsilon < 2.0
    if channel.outputs > 2**12:
        with pytest.raises(ParameterError, match="weights"):
            channel.weights()


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("t", [5, 8]),
        ("u", [11, 4]),
        ("u", [4, 1]),
        ("o", [0, 1]),
        ("o", [1]),
        ("sizes", [3, 1]),
        ("sizes", [0, 2]),
        ("sizes", [2]),
    ],
)
def test_description_that_breaks_a_rule_of_weights_is_refused(change, value):
    spec = PBGRR([2, 1], t=[9, 11], u=[3, 1], o=[1, 1]).to_spec()
    assert channel_from_spec(spec).total == 13
    with pytest.raises(ValueError, match="must"):
        channel_from_spec({**spec, change: value})


def test_integers_of_a_channel_cannot_be_changed_after_they_were_certified():
    for boost in (0.0, 0.5):
        channel = pbgrr([2, 3], epsilon=1.0, boost_epsilon=boost)
        for array in (channel.t, channel.u, channel.o, channel.sizes, channel.starts, channel.category_of):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 7
