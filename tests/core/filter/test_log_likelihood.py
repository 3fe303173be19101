import copy

import numpy as np
import pytest

from hubbub.channels import BlockDivergence
from hubbub.channels.finite import DenseChannel
from hubbub.channels.partition import CHUNK, Partition
from hubbub.filter import Query
from hubbub.filter.log_likelihood import LogLikelihoodSum
from hubbub.filter.query import Model
from hubbub_authoring import mechanisms as m


def dense(model: Model, symbol: int) -> np.ndarray:
    return model.log_likelihood(symbol)


def check(scores: LogLikelihoodSum, expected: np.ndarray) -> None:
    values = scores.values()
    np.testing.assert_array_equal(values - values.max(), expected - expected.max())
    high, low = scores.partition.extremes(values)
    np.testing.assert_array_equal(scores.high, high)
    np.testing.assert_array_equal(scores.low, low)
    assert (scores.top, scores.bottom) == (values.max(), values.min())


@pytest.mark.parametrize("size", [40, 3 * CHUNK + 7])
def test_what_is_kept_block_by_block_is_the_sum_over_every_value(size):
    rng = np.random.default_rng(size)
    shuffled, halves = rng.permutation(size), np.arange(size) // 2
    models = [
        Model.of(Query("x", channel, mapping))
        for channel, mapping in [
            (m.grr(size, epsilon=0.4), None),
            (m.pbgrr([size // 4] * 3 + [size - 3 * (size // 4)], epsilon=0.6, boost_epsilon=0.2), None),
            (m.pbgrr([1, 2, size - 3], epsilon=0.6, boost_epsilon=0.3), shuffled),
            (m.pbgrr([5] * (size // 5) + [size % 5 + 1], epsilon=0.5, boost_epsilon=0.0), halves),
            (DenseChannel(np.array([[3, 2, 1], [1, 2, 3]])), np.arange(size) % 2),
        ]
    ]
    assert [model.sparse for model in models] == [True] * 4 + [False]
    scores, total = LogLikelihoodSum(models[1].divergence.partition), np.zeros(size, dtype=np.int64)
    matrices = [model.divergence.matrix() for model in models]
    for _ in range(120):
        asked = rng.integers(len(models))
        pairs = scores.values()[:, None] - scores.values() + matrices[asked]
        assert scores.worst_with(models[asked].divergence, scores) == pairs.max()
        model = models[rng.integers(len(models))]
        symbol = int(rng.integers(model.channel.outputs))
        scores.add(model, symbol)
        total += dense(model, symbol)
        check(scores, total)
        if rng.random() < 0.2:
            scores.add(model, symbol, times=-1)
            total -= dense(model, symbol)
            check(scores, total)
    for model in models:
        partition = model.divergence.partition
        values = scores.values()
        for found, expected in zip(scores.extremes_on(partition), partition.extremes(values), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sizes", [[4] * 6, [1, 7, 2, 9, 5], [3] * 30])
def test_answers_taken_back_in_any_order_leave_the_worst_pair_exact(sizes):
    model = Model.of(Query("x", m.pbgrr(sizes, epsilon=0.6, boost_epsilon=0.2)))
    scores, rng = LogLikelihoodSum(model.divergence.partition), np.random.default_rng(len(sizes))
    said: list[int] = []
    matrix = model.divergence.matrix()
    for _ in range(400):
        if said and rng.random() < 0.45:
            scores.add(model, said.pop(rng.integers(len(said))), times=-1)
        else:
            said.append(int(rng.integers(sum(sizes))))
            scores.add(model, said[-1])
        scores.shift(int(rng.integers(-99, 99)))
        values = scores.values()
        check(scores, values)
        assert scores.partition is model.divergence.partition
        assert scores.worst_with(model.divergence, scores) == (values[:, None] - values + matrix).max()


def test_a_copy_goes_its_own_way():
    model = Model.of(Query("x", m.pbgrr([3, 4], epsilon=0.6, boost_epsilon=0.2)))
    scores = LogLikelihoodSum(model.divergence.partition)
    scores.add(model, 5)
    other, before = copy.deepcopy(scores), scores.values()
    other.add(model, 1)
    other.add(model, 6)
    check(other, before + dense(model, 1) + dense(model, 6))
    check(scores, before)


def test_a_shift_changes_no_difference():
    model = Model.of(Query("x", m.pbgrr([3, 4], epsilon=0.6, boost_epsilon=0.2)))
    scores = LogLikelihoodSum(model.divergence.partition)
    for symbol in (0, 3, 3, 6):
        scores.add(model, symbol)
    before = scores.values()
    scores.shift(-12_345)
    np.testing.assert_array_equal(scores.values(), before - 12_345)
    check(scores, before)


def test_pieces_of_a_partition_are_small_and_lie_in_one_block():
    labels = np.random.default_rng(1).integers(0, 3, 5 * CHUNK)
    whole = Partition(labels)
    pieces = whole.pieces
    assert pieces.sizes.max() <= CHUNK
    assert all(np.unique(labels[pieces.labels == piece]).size == 1 for piece in range(pieces.sizes.size))
    assert Partition(np.zeros(CHUNK, dtype=np.intp)).pieces.sizes.tolist() == [CHUNK]
    np.testing.assert_array_equal(pieces.order[pieces.rank], np.arange(labels.size))


def test_rows_of_one_number_are_as_exact_as_all_pairs():
    rng = np.random.default_rng(6)
    by_row = 0
    for _ in range(300):
        blocks = int(rng.integers(24, 40))
        rows = rng.integers(0, 9, blocks)
        within = np.minimum(rng.integers(0, 12, blocks), rows) if rng.random() < 0.8 else rows + 3
        labels = np.concatenate([np.arange(blocks), rng.integers(0, blocks, int(rng.integers(0, 30)))])
        divergence = BlockDivergence(labels, np.repeat(rows[:, None], blocks, axis=1), within)
        by_row += divergence._by_row is not None
        scores = rng.integers(-6, 1, labels.size)
        if rng.random() < 0.5:  # one block holds both extremes
            scores[labels == 3] = np.where(np.arange((labels == 3).sum()) % 2, 9, -20)
        matrix = divergence.matrix()
        assert divergence.worst(scores) == (scores[:, None] - scores + matrix).max()
        other = scores - rng.integers(0, 5, labels.size)
        assert divergence.worst_between(scores, other) == (scores[:, None] - other + matrix).max()
    assert 100 < by_row < 300
