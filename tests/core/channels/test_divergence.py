import math
from fractions import Fraction

import numpy as np
import pytest
from exponentials import exp_bounds
from hypothesis import given
from hypothesis import strategies as st

from hubbub.channels import UNIT, UNITS_PER_NAT, BlockDivergence, divergence, fixed_up, log_floor
from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub_authoring import mechanisms as m

BIG = 2**63 - 1


def is_ceiling(quanta: int, ratio: Fraction) -> bool:
    """Whether (quanta - 1) < 2^40 ln(ratio) <= quanta, decided by exponentials."""
    return (
        exp_bounds(Fraction(quanta - 1, UNITS_PER_NAT))[1]
        < ratio
        <= exp_bounds(Fraction(quanta, UNITS_PER_NAT))[0]
    )


def brute_force_worst(matrix: np.ndarray, scores: np.ndarray) -> int:
    size = len(scores)
    return max(
        int(scores[x]) - int(scores[other]) + int(matrix[x, other])
        for x in range(size)
        for other in range(size)
    )


@st.composite
def divergences(draw: st.DrawFn, inputs: int | None = None) -> BlockDivergence:
    size = draw(st.integers(1, 9)) if inputs is None else inputs
    blocks = draw(st.integers(1, 5))
    labels = draw(st.lists(st.integers(0, blocks - 1), min_size=size, max_size=size))
    entries = st.integers(0, 50)
    across = draw(
        st.lists(st.lists(entries, min_size=blocks, max_size=blocks), min_size=blocks, max_size=blocks)
    )
    within = draw(st.lists(entries, min_size=blocks, max_size=blocks))
    return BlockDivergence(np.array(labels), np.array(across), np.array(within))


def full(labels: list[int], across: list[list[int]], within: list[int]) -> list[list[int]]:
    """The definition, pair by pair."""
    pairs = range(len(labels))
    return [
        [
            0 if x == y else within[labels[x]] if labels[x] == labels[y] else across[labels[x]][labels[y]]
            for y in pairs
        ]
        for x in pairs
    ]


def test_test_exponentials_enclose_the_truth():
    for q in (Fraction(0), Fraction(1, 3), Fraction(1), Fraction(-5, 2), Fraction(20)):
        low, high = exp_bounds(q)
        assert low <= high <= low * (1 + Fraction(1, 2**180))
        assert math.isclose(low, math.exp(q), rel_tol=1e-14)


@given(st.integers(1, BIG), st.integers(1, BIG))
def test_fixed_up_is_the_exact_ceiling_of_the_logarithm(numerator, denominator):
    quanta = fixed_up(numerator, denominator)
    if numerator == denominator:
        assert quanta == 0
    else:
        assert is_ceiling(quanta, Fraction(numerator, denominator))


def test_fixed_up_tells_neighbouring_large_integers_apart():
    assert fixed_up(BIG, BIG - 1) == 1
    assert fixed_up(BIG - 1, BIG) == 0
    assert fixed_up(10**400 + 1, 10**400) == 1


@pytest.mark.parametrize("pair", [(0, 1), (1, 0), (-3, 2)])
def test_fixed_up_refuses_what_is_not_a_ratio_of_weights(pair):
    with pytest.raises(ParameterError, match="must have both >= 1"):
        fixed_up(*pair)


@given(st.lists(st.integers(1, BIG), min_size=1, max_size=20))
def test_log_floor_is_the_exact_floor_of_the_logarithm(weights):
    floors = log_floor(np.array(weights, dtype=np.int64))
    for weight, quanta in zip(weights, floors.tolist(), strict=True):
        assert exp_bounds(Fraction(quanta, UNITS_PER_NAT))[0] <= weight
        assert weight < exp_bounds(Fraction(quanta + 1, UNITS_PER_NAT))[1]


def test_log_floor_is_exact_where_a_float_logarithm_cannot_tell():
    # Weights on either side of e^(n/2^40): their logarithms are within 2^-19 of the whole quantum n.
    weights, expected = [], []
    for n in range(43 * UNITS_PER_NAT, 43 * UNITS_PER_NAT + 50):
        below = math.floor(exp_bounds(Fraction(n, UNITS_PER_NAT))[0])
        weights += [below, below + 1]
        expected += [n - 1, n]
    np.testing.assert_array_equal(log_floor(np.array(weights)), expected)
    naive = np.floor(np.log(np.array(weights)) * UNITS_PER_NAT)
    assert (naive != expected).any()  # so the decimal decision is needed


class Counted(np.ndarray):
    """Weights that count the elements of every operation on them."""

    elements = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(each) for each in inputs]
        Counted.elements += max(each.size for each in plain)
        return getattr(ufunc, method)(*plain, **options)


def test_log_floor_looks_at_a_weight_as_often_however_many_differ():
    """An eighth of all weights is decided in decimal: a pass over all for each of them would be quadratic."""
    looks = []
    for n in (1000, 8000):
        weights = (2**40 + 1009 * np.arange(n, dtype=np.int64)).view(Counted)
        Counted.elements = 0
        floors = log_floor(weights)
        looks.append(Counted.elements / n)
        assert floors[n // 2] == -fixed_up(1, int(weights[n // 2]))
    assert looks[1] <= 2 * looks[0]


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="no float here is longer than a double")
def test_log_floor_leaves_few_of_a_hostile_grids_weights_to_decimal(monkeypatch):
    """Float64 leaves an eighth open: at 10 us each, a grid of a million weights took a second and a half."""
    asked = []
    exact = divergence._log_units
    monkeypatch.setattr(divergence, "_log_units", lambda *ratio: asked.append(ratio) or exact(*ratio))
    weights = 2**40 + 1009 * np.arange(100_000, dtype=np.int64)
    log_floor(weights)
    assert len(asked) < weights.size // 1000


def test_log_floor_without_a_longer_float_is_the_same(monkeypatch):
    weights = np.random.default_rng(5).integers(1, 2**63 - 1, size=20_000)
    longer = log_floor(weights)
    monkeypatch.setattr(divergence, "_LONG_BITS", 1000)
    np.testing.assert_array_equal(log_floor(weights), longer)


def test_log_floor_keeps_shape_and_gives_zero_for_weight_one():
    assert log_floor(np.ones((2, 3), dtype=np.int64)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert log_floor(np.empty((0,), dtype=np.int64)).shape == (0,)


@given(st.data())
def test_blocks_mean_what_their_definition_says(data):
    size, blocks = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 99), min_size=blocks, max_size=blocks)
    labels = data.draw(st.lists(st.integers(0, blocks - 1), min_size=size, max_size=size))
    across, within = data.draw(st.lists(row, min_size=blocks, max_size=blocks)), data.draw(row)
    made = BlockDivergence(np.array(labels), np.array(across), np.array(within))
    expected = full(labels, across, within)
    assert made.matrix().tolist() == expected
    assert [[made.between(x, y) for y in range(size)] for x in range(size)] == expected
    assert made.largest == max(map(max, expected))
    assert made.blocks == len(set(labels))


@given(st.data())
def test_a_sum_is_exact_for_every_pair_and_can_be_taken_apart(data):
    one = data.draw(divergences())
    two, three = data.draw(divergences(one.inputs)), data.draw(divergences(one.inputs))
    total = one + two + three
    np.testing.assert_array_equal(total.matrix(), one.matrix() + two.matrix() + three.matrix())
    np.testing.assert_array_equal(total.without(two).matrix(), one.matrix() + three.matrix())
    np.testing.assert_array_equal((one + one).matrix(), 2 * one.matrix())


@given(st.data())
def test_worst_is_the_maximum_over_all_pairs(data):
    total = data.draw(divergences())
    total = total + data.draw(divergences(total.inputs))
    scores = np.array(data.draw(st.lists(st.integers(-60, 0), min_size=total.inputs, max_size=total.inputs)))
    assert total.worst(scores) == brute_force_worst(total.matrix(), scores)
    assert total.worst() == total.matrix().max()


@given(st.data())
def test_values_with_the_same_input_are_not_told_apart(data):
    inputs = data.draw(divergences())
    mapping = np.array(data.draw(st.lists(st.integers(0, inputs.inputs - 1), min_size=1, max_size=12)))
    expected = inputs.matrix()[np.ix_(mapping, mapping)]
    np.testing.assert_array_equal(inputs.pulled_back(mapping).matrix(), expected)


def test_too_many_blocks_are_replaced_by_something_larger(monkeypatch):
    monkeypatch.setattr(divergence, "MAX_BLOCKS", 3)
    shared = BlockDivergence.constant(4, 7).pulled_back(np.array([0, 0, 1, 1, 2, 2, 3, 3]))
    assert shared.blocks == 1
    assert shared.matrix().max() == shared.between(0, 1) == 7

    rng = np.random.default_rng(3)
    left = BlockDivergence(np.array([0, 0, 1, 1]), rng.integers(0, 9, (2, 2)), rng.integers(0, 9, 2))
    right = BlockDivergence(np.array([0, 1, 0, 1]), rng.integers(0, 9, (2, 2)), rng.integers(0, 9, 2))
    total, part = left.plus(right)
    assert total.blocks == 2
    assert (part.matrix() >= right.matrix()).all()
    np.testing.assert_array_equal(total.matrix(), left.matrix() + part.matrix())
    np.testing.assert_array_equal(total.without(part).matrix(), left.matrix())

    rows = np.array([[1, 9], [2, 8], [3, 7], [4, 6], [4, 6]])
    coarse = BlockDivergence.from_weights(rows)
    assert coarse.blocks == 1
    monkeypatch.undo()
    assert (coarse.matrix() >= BlockDivergence.from_weights(rows).matrix()).all()


def test_plus_within_the_limit_adds_the_summand_itself():
    left, right = BlockDivergence.constant(3, 5), BlockDivergence.constant(3, 6)
    total, part = left.plus(right)
    assert part is right
    assert total.matrix().max() == 11


@given(st.data())
def test_dense_divergence_is_at_most_two_quanta_above_the_truth(data):
    outputs = data.draw(st.integers(2, 4))
    row = st.lists(st.integers(1, 10**6), min_size=outputs, max_size=outputs)
    weights = [[*row, 10**7 - sum(row)] for row in data.draw(st.lists(row, min_size=2, max_size=4))]
    quanta = BlockDivergence.from_weights(np.array(weights)).matrix()
    for x, row in enumerate(weights):
        for y, other in enumerate(weights):
            worst = max(Fraction(a, b) for a, b in zip(row, other, strict=True))
            if row == other:
                assert quanta[x, y] == 0
                continue
            assert worst <= exp_bounds(Fraction(int(quanta[x, y]), UNITS_PER_NAT))[0]
            assert worst > exp_bounds(Fraction(int(quanta[x, y]) - 2, UNITS_PER_NAT))[1]


CHANNELS = {
    "grr": lambda: m.grr(5, epsilon=1.0),
    "pbgrr": lambda: m.pbgrr([1, 3, 2], epsilon=2.0, boost_epsilon=0.7),
    "pbgrr without boost": lambda: m.pbgrr([2, 3], epsilon=1.0, boost_epsilon=0.0),
    "boosted": lambda: m.boosted(9, epsilon=1.0, boost=0.5, region=m.Absolute(1), margin=2),
    "boosted with missing": lambda: m.boosted(
        9, epsilon=2.0, boost=0.5, region=m.Absolute(1), missing="input"
    ),
    "dense": lambda: DenseChannel(np.array([[1, 5, 4], [3, 3, 4], [1, 5, 4]])),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_no_symbol_tells_a_pair_apart_by_more_than_its_divergence(name):
    # The integer inequality on which it rests that recording never raises what is committed.
    channel = CHANNELS[name]()
    quanta = channel.blocks().matrix()
    for symbol in range(channel.outputs):
        logs = log_floor(channel.column(symbol))
        assert (logs[:, None] - logs <= quanta).all()


@pytest.mark.parametrize("name", CHANNELS)
def test_divergence_is_at_most_two_quanta_above_the_certified_epsilon(name):
    channel = CHANNELS[name]()
    assert channel.blocks().largest * UNIT <= channel.epsilon + 2 * UNIT


def test_blocks_without_inputs_are_dropped():
    made = BlockDivergence(np.array([2, 2, 0]), np.arange(9).reshape(3, 3), np.array([1, 2, 3]))
    assert made.blocks == 2
    assert made.matrix().tolist() == [[0, 3, 6], [3, 0, 6], [2, 2, 0]]


def test_arrays_are_copies_and_cannot_be_changed():
    labels = np.array([0, 1])
    made = BlockDivergence(labels, np.array([[0, 4], [4, 0]]), np.array([0, 0]))
    labels[0] = 1
    assert made.between(0, 1) == 4
    for array in (made.labels, made.across, made.within):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("labels", "across", "within", "rule"),
    [
        ([], [[0]], [0], "one row of inputs"),
        ([0, 2], [[0]], [0], "labels must be in 0..0"),
        ([-1], [[0]], [0], "labels must be in 0..0"),
        ([0], [[0, 0]], [0], "must be"),
        ([0, 1], [[0, -1], [0, 0]], [0, 0], "entries must be"),
        ([0, 0], [[0]], [2**50], "entries must be"),
    ],
)
def test_malformed_blocks_are_refused(labels, across, within, rule):
    with pytest.raises(ParameterError, match=rule):
        BlockDivergence(
            np.array(labels, dtype=np.intp),
            np.array(across, dtype=np.int64),
            np.array(within, dtype=np.int64),
        )


def test_divergences_of_different_domains_do_not_add():
    with pytest.raises(ParameterError, match="same inputs"):
        BlockDivergence.constant(2, 1) + BlockDivergence.constant(3, 1)


@pytest.mark.parametrize("mapping", [[], [[0]], [0.5], [3], [-1]])
def test_a_mapping_outside_the_inputs_is_refused(mapping):
    with pytest.raises(ParameterError, match="a mapping must"):
        BlockDivergence.constant(3, 1).pulled_back(np.array(mapping))
