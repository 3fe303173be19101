"""Orbits drawn together: the parts that no small channel of the contract reaches."""

from __future__ import annotations

from collections import Counter
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from hubbub.mechanisms.orbits import batches, sampling
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.short import compiled
from hubbub.mechanisms.subset import subset_selection
from hubbub.numeric.packed_subsets import packed_rows
from hubbub.testing import seeded
from hubbub_authoring.mechanisms.orbits import orbits

ALARM = 1e-7


def two_patterns(sizes=(3, 3, 3, 2)) -> OrbitChannel:
    """Sets of one, two and three of the categories of three values and none of two, and of three and one."""
    mixture = [([[3, 2, 1], [0]], False, 0.45), ([[3, 0, 0], [1]], True, 0.55)]
    return compiled(list(sizes), mixture, epsilon=2.0, missing=True)


def law_of(channel: OrbitChannel, x: int) -> dict[bytes, float]:
    """Every set that the channel admits, by `column` and the number of its orbit's sets."""
    found = {}
    for members in range(2**channel.inputs):
        symbol = members.to_bytes(channel.width, "little")
        if channel.admits(symbol):
            found[symbol] = float(np.exp(channel.log_likelihood(symbol)[x]))
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("most", [512, 0])
def test_orders_listed_or_not_give_sets_of_the_law(most, monkeypatch):
    """n = 200 an admitted set, for four inputs of two classes and missing, chi-square at 1e-7; seed 9.

    Control: the law of another input is rejected.
    """
    monkeypatch.setattr(sampling, "MAX_LISTED", most)
    channel = two_patterns()
    inputs = (0, 8, 10, channel.inputs - 1)
    laws = {x: law_of(channel, x) for x in (*inputs, 4)}
    n = 200 * len(laws[0])
    drawn = channel.perturb(np.repeat(inputs, n), source=seeded(9)).reshape(len(inputs), n, channel.width)

    def misses(found: Counter[bytes], law: dict[bytes, float]) -> bool:
        due = np.array([n * law[symbol] for symbol in law])
        times = np.array([found[symbol] for symbol in law])
        assert due.min() > 5
        return ((times - due) ** 2 / due).sum() > chi2.isf(ALARM, len(law) - 1)

    for x, rows in zip(inputs, drawn, strict=True):
        found = Counter(row.tobytes() for row in rows)
        assert sum(laws[x].values()) == pytest.approx(1.0, abs=1e-9)
        assert set(found) <= set(laws[x])
        assert not misses(found, laws[x])
        assert misses(found, laws[4])
    listed = [counted._listed is not None for counted in channel._batches._classes]
    assert listed == ([True, True] if most else [False, False])


@pytest.mark.statistical
@pytest.mark.parametrize("empty", [0, 1, 9])
def test_sets_drawn_only_where_there_is_a_choice_are_even(empty):
    """n = 150 for each of 171 pairs of 19 cells, beside empty and whole sets, at 1e-7; seed 10."""
    n = 150 * comb(19, 2)
    counts = np.concatenate([np.full(n, 2), *([np.zeros(n), np.full(n, 19)] * empty)]).astype(np.int32)
    counts = np.random.default_rng(3).permutation(counts)
    planes = batches._where_some(19, counts, seeded(10))
    rows = np.unpackbits(packed_rows(planes, 4), axis=1, bitorder="little")
    assert rows.sum(axis=1).tolist() == counts.tolist()
    assert not rows[:, 19:].any()
    times = np.unique(rows[counts == 2], axis=0, return_counts=True)[1]
    assert times.size == 171
    assert ((times - 150) ** 2 / 150).sum() < chi2.isf(ALARM, 170)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_large_categories_have_symbols_of_the_channel(epsilon):
    """Categories of 100 values: sets of several planes, at any bit of the first, in both kinds of symbols."""
    channel = orbits([100, 100, 100, 37], epsilon=epsilon)
    values = np.arange(3000) % channel.inputs
    assert channel.contains(channel.perturb(values)).all()


@pytest.mark.parametrize("values", [[3], [0, 5, 5, 6, 1, 2], list(range(16))])
@pytest.mark.parametrize(
    "channel",
    [subset_selection(40, epsilon=1.0), two_patterns((5, 5, 5, 3)), orbits([9] * 9, epsilon=4.0)],
    ids=repr,
)
def test_a_few_values_are_drawn_one_by_one(channel, values):
    one, many = seeded(4), seeded(4)
    singles = [channel.perturb(value, source=one) for value in values]
    assert [row.tobytes() for row in channel.perturb(values, source=many)] == singles
