from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from mechanism_contract import Case, MechanismContract

from hubbub.errors import ParameterError
from hubbub.mechanisms import Levels, SetLevels, grr, levels
from hubbub.mechanisms.levels.hierarchy import Hierarchy

TENS = [10] * 9 + [1]


class TestLevels(MechanismContract):
    cases: ClassVar = {
        "ages in tens": Case(
            lambda: levels(TENS, epsilon=4.6, shares=[0.25, 0.75], oracles="grr"),
            4.6,
            "cb65793d5ddc2c9071f04498ee839a220f59356d7f2645f0a81c9f7d25c42252",
        ),
        "three levels": Case(
            lambda: levels([[3, 1], [2, [2, 4]]], epsilon=1.0, oracles="grr"),
            1.0,
            "d7fb1c4552d2f7cfde91de855eeface108c5bb0c1ff7cc4b17b741b5d23a590c",
        ),
        "unlike epsilons": Case(
            lambda: Levels(Hierarchy.of([[3, 1], [2, 4]]), [90, 70, 50], [30, 30, 30]),
            1.0986122887,
            "c995d734640102feff96ee8d2425f8ed11c7e8fd83f8d6e6b13cda5278074665",
        ),
        "eight bytes a draw": Case(
            lambda: Levels(Hierarchy.of([3, 2]), [3 * 10**17, 5 * 10**17], [10**17, 2 * 10**17]),
            1.0986122887,
            "5b443f98f5f8e9f64b0a47e4e2f5c9e9aee0978692159fc3ca1b5004f8df6bdb",
        ),
    }


def test_levels_of_few_cells_use_randomised_response_and_send_numbers():
    assert isinstance(levels([2, 1], epsilon=2.0), Levels)
    assert isinstance(levels([20, 10], epsilon=2.0), SetLevels)
    assert isinstance(levels([20, 10], epsilon=2.0, oracles="grr"), Levels)


def test_levels_get_their_share_of_reports():
    for channel in (
        levels(TENS, epsilon=1.0, shares=[0.2, 0.8]),
        levels(TENS, epsilon=1.0, shares=[0.2, 0.8], oracles="grr"),
    ):
        assert [float(level.share) for level in channel.levels] == pytest.approx([0.2, 0.8], abs=1e-6)
        assert sum(level.share for level in channel.levels) == 1


def test_each_level_is_its_oracle():
    channel = levels(TENS, epsilon=1.0, oracles="grr")
    for level, cells in zip(channel.levels, (10, 91), strict=True):
        alone = grr(cells, epsilon=1.0)
        assert float(level.support.p) == pytest.approx(alone.t / alone.total, rel=1e-6)
        assert float(level.support.q) == pytest.approx(alone.u / alone.total, rel=1e-6)


def test_values_of_one_category_are_only_told_apart_by_value_reports():
    channel = Levels(Hierarchy.of([3, 2]), [9, 4], [3, 2])
    quanta = channel.blocks()
    assert quanta.between(0, 1) < quanta.between(0, 3)
    assert channel.divergence()[0, 1] == pytest.approx(np.log(2))
    assert channel.divergence()[0, 3] == pytest.approx(np.log(3))


def test_nested_sizes_become_levels():
    nesting = Hierarchy.of([[3, 1], 2, [2, [2, 4]]])
    assert [sizes.tolist() for sizes in nesting.sizes] == [[4, 2, 8], [3, 1, 2, 2, 6], [3, 1, 2, 2, 2, 4]]
    assert nesting.bins == [3, 5, 6, 14]
    assert nesting.labels[1].tolist() == [0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 4, 4, 4, 4]
    again = Hierarchy.joined(nesting.inputs, nesting.concatenated)
    assert [sizes.tolist() for sizes in again.sizes] == [sizes.tolist() for sizes in nesting.sizes]


@pytest.mark.parametrize(
    "sizes",
    [[], [5], [1, 1, 1], [3, 0], [3, -1], [3, 1.5], [True, 3], "33", None, [[3], []], [[3, 4]], [2**17, 1]],
)
def test_sizes_that_make_no_levels_are_refused(sizes):
    with pytest.raises(ParameterError):
        levels(sizes, epsilon=1.0)


@pytest.mark.parametrize(
    "shares",
    [[], [1.0], [0.5, 0.4], [0.5, 0.5, 0.0], [1.5, -0.5], [0.0, 1.0], [np.nan, 1.0], [0.2, 0.3, 0.5]],
)
def test_shares_that_are_no_coin_are_refused(shares):
    with pytest.raises(ParameterError, match="shares must be"):
        levels([3, 4], epsilon=1.0, shares=shares)


def test_oracle_that_nobody_knows_is_refused():
    with pytest.raises(ParameterError, match="oracles must be"):
        levels([3, 4], epsilon=1.0, oracles="olh")


@pytest.mark.parametrize(
    ("sizes", "t", "u"),
    [
        ([[3, 2]], [3], [1]),
        ([[3, 2]], [3, 3, 3], [1, 1, 1]),
        ([[3, 2]], [3, 3], [1, 3]),
        ([[3, 2]], [3, 3], [0, 1]),
        ([[3, 3]], [3, 3], [1, 1]),
        ([], [3], [1]),
        ([[5]], [3, 3], [1, 1]),
        ([[3, 2], [2, 3]], [3, 3, 3], [1, 1, 1]),
        ([[3, 2], [3, 2]], [3, 3, 3], [1, 1, 1]),
        ([[1, 1, 1, 1, 1]], [3, 3], [1, 1]),
        ([[2**62, 2**62, 2**62, 2**62, 5]], [3, 3], [1, 1]),
    ],
)
def test_integers_that_are_no_levels_are_refused(sizes, t, u):
    with pytest.raises(ParameterError):
        Levels(Hierarchy(5, sizes), t, u)


def test_more_levels_than_anyone_needs_are_refused():
    halves = [[2**j] + [1] * (2**17 - 2**j) for j in range(16, 0, -1)]
    assert len(Hierarchy(2**17, halves[-3:]).bins) == 4
    with pytest.raises(ParameterError, match="levels must be two to 16, got 17"):
        Hierarchy(2**17, halves)
