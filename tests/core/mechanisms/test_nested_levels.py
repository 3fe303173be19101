"""Levels of a tree of labels: the contract of sets, one attempt a report, shares of the least error."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import ClassVar

import numpy as np
import pytest
from set_contract import SetCase, SetContract, picked_bits, picked_law

from hubbub.errors import ParameterError
from hubbub.estimation import estimator_for
from hubbub.mechanisms import Hierarchy, Levels, NestedLevels, nested_levels
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.tree.shares import nested_shares
from hubbub.testing import seeded
from hubbub_authoring.floor import spectral_tree

SMALL = Hierarchy.of([[2, 1], [1, 2], 1, 1])
DEEP = Hierarchy.of([[[3, 2], 4], [[1, [2, 2]], 3], 5, 1])
SQUARE = Hierarchy(65, [[16] * 4 + [1], [4] * 16 + [1]])


class TestNestedLevels(SetContract):
    cases: ClassVar = {
        "three levels": SetCase(
            lambda: nested_levels(SMALL, epsilon=1.0),
            1.0,
            "f4ce0a9432a05c7c825e6dfe78aff6840e6db6f2667bc22ed7aae1d93b726c39",
            picked_law,
        ),
        "five levels": SetCase(
            lambda: nested_levels(DEEP, epsilon=0.5),
            0.5,
            "dcb6873297eec3d954e34ae8b39c3e1b62954327740d6c264b5d430f9059761c",
        ),
        "given shares": SetCase(
            lambda: nested_levels(SQUARE, epsilon=2.0, shares=[100, 200, 700]),
            2.0,
            "fe8911a03d837269a39316d7b5f1eba390fc5617c3fcea9ad4d8513444f9fca9",
        ),
    }

    def test_single_draws_are_what_their_words_make_of_them(self, channel):
        """A word says the level, and a single draw of that level's subset selection follows: no more."""
        source, again = seeded(4), seeded(4)
        for x in np.random.default_rng(3).integers(channel.inputs, size=60).tolist():
            symbol = channel.perturb(x, source=source)
            word = int.from_bytes(again.token_bytes(4), "little")
            level = int(np.searchsorted(np.cumsum(channel.shares)[:-1], word, side="right"))
            oracle = channel.oracles[level]
            assert symbol[0] == level
            assert symbol[1 : 1 + oracle.width] == oracle.draw(int(channel.hierarchy.labels[level][x]), again)
        assert source.token_bytes(8) == again.token_bytes(8)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"hierarchy": Hierarchy.of([[2, 1], [1, 2]])}, "the last input must be a cell of its own"),
        ({"shares": [500, 500]}, "shares must be 3 thousandths"),
        ({"shares": [0, 500, 500]}, "shares must be 3 thousandths"),
        ({"tuned_for": 3}, "tuned_for must be a level from 0 to 2"),
        ({"oracles": "any"}, "oracles must be"),
    ],
)
def test_what_breaks_a_rule_is_refused(changes, rule) -> None:
    with pytest.raises(ParameterError, match=rule):
        nested_levels(**{"hierarchy": SMALL, "epsilon": 1.0} | changes)


def test_numbers_are_sent_where_sets_are_not_wanted() -> None:
    channel = nested_levels(SMALL, epsilon=1.0, oracles="grr")
    assert isinstance(channel, Levels) and channel.bins == sum(SMALL.bins)


def mean_errors(channel) -> list[float]:
    """The mean error of every level's cells, missing left out, of devices spread evenly over the values."""
    bins = channel.hierarchy.bins
    starts = np.cumsum([0, *bins[:-1]])
    rows = [labels + start for labels, start in zip(channel.hierarchy.labels[:-1], starts, strict=False)]
    estimator = estimator_for(channel, category_of=np.stack(rows))
    prior = np.append(np.full(channel.inputs - 1, 1.0 / (channel.inputs - 1)), 0.0)
    found = estimator.expected_estimate(prior, 10**6)
    parts = [*np.split(found.category_errors, starts[1:-1]), found.value_errors]
    return [float(np.mean(part[:-1] ** 2)) for part in parts]


def test_shares_make_the_mean_over_levels_least_and_of_one_level_where_it_is_asked() -> None:
    """Held beside every choice of shares in steps of a fortieth: none is better by more than a thousandth."""
    chosen = mean_errors(nested_levels(SQUARE, epsilon=1.0))
    steps = range(1, 39)
    others = [
        mean_errors(nested_levels(SQUARE, epsilon=1.0, shares=[25 * a, 25 * b, 25 * (40 - a - b)]))
        for a, b in product(steps, steps)
        if a + b < 40
    ]
    assert np.mean(chosen) <= min(np.mean(each) for each in others) * 1.001
    for level in range(3):
        best = mean_errors(nested_levels(SQUARE, epsilon=1.0, tuned_for=level))[level]
        assert best <= min(each[level] for each in others) * 1.001


def cut(chance: np.random.Generator, total: int, parts: int) -> list[int]:
    """Whole sizes of at least 1 that sum to a total, and differ by three times at most or so."""
    ends = np.cumsum(chance.uniform(1.0, 3.0, parts))
    inner = np.rint(ends[:-1] / ends[-1] * (total - parts)).astype(int) + np.arange(1, parts)
    return np.diff([0, *inner, total]).tolist()


@pytest.mark.parametrize("cells", [(16, 302, 933), (12, 81, 810)])
def test_unequal_trees_are_within_six_hundredths_of_their_floor(cells: tuple[int, int, int]) -> None:
    chance = np.random.default_rng(cells)
    below, above = cut(chance, cells[2], cells[1]), cut(chance, cells[1], cells[0])
    ends = np.cumsum([0, *above])
    tree = Hierarchy.of([*(below[a:b] for a, b in pairwise(ends)), 1])
    for epsilon in (0.5, 1.0, 2.0):
        floor = spectral_tree([level[:-1].tolist() for level in tree.sizes], epsilon=epsilon)
        assert 1.0 < 10**6 * sum(mean_errors(nested_levels(tree, epsilon=epsilon))) / floor < 1.06


def test_a_heat_map_is_at_its_floor_but_for_what_missing_costs() -> None:
    """64 x 64 at epsilon 1: .1 % above the floor where nobody can be missing, 2.6 % with that cell beside.

    A set of one of five cells tells .849 of the most that a set can tell of four, and one of four .998: the
    coarsest level pays for missing, the others hardly.
    """
    sizes = [[4096 // many] * many for many in (4, 16, 64, 256, 1024)]
    bare, floor = Hierarchy(4096, sizes), spectral_tree(sizes, epsilon=1.0)
    oracles = [subset_selection(cells, epsilon=1.0) for cells in bare.bins]
    shares = nested_shares(bare.bins, [oracle.levels[0].support for oracle in oracles], None)
    words = np.diff([0, *(np.cumsum(shares) * 2**32 // 1000)]).tolist()
    channel = NestedLevels(bare, words, [o.size for o in oracles], [o.p_draws for o in oracles])
    starts = np.cumsum([0, *bare.bins[:-1]])
    rows = np.stack([own + start for own, start in zip(bare.labels[:-1], starts, strict=False)])
    found = estimator_for(channel, category_of=rows).expected_estimate(np.full(4096, 1 / 4096), 10**6)
    parts = [*np.split(found.category_errors, starts[1:-1]), found.value_errors]
    assert 1.0 < 10**6 * sum(float(np.mean(part**2)) for part in parts) / floor < 1.01
    beside = nested_levels(Hierarchy(4097, [[*level, 1] for level in sizes]), epsilon=1.0)
    assert 1.02 < 10**6 * sum(mean_errors(beside)) / floor < 1.03


def test_estimates_are_unbiased_and_their_errors_exact() -> None:
    """By every report of three devices, one about each level, in all six orders: of the law's definition."""
    channel = nested_levels(SMALL, epsilon=1.0)
    rows = np.stack([SMALL.labels[0], SMALL.labels[1] + SMALL.bins[0]])
    tree = estimator_for(channel, category_of=rows).tree
    people, sizes = (1, 4, 7), [0.0, 1.0, 1.0, 1.0]
    truth = [np.bincount(level.labels[list(people)], minlength=level.bins) / 3 for level in tree.levels]
    ends = [0, *np.cumsum(SMALL.bins)]
    first, second = np.zeros(1 + ends[-1]), np.zeros(1 + ends[-1])
    means = []
    for asked in permutations(range(3)):
        sent = []
        for x, level in zip(people, asked, strict=True):
            law = picked_law(channel, x)
            whole = sum((w for symbol, w in law.items() if symbol[0] == level), Fraction(0))
            sent.append([(s, float(w / whole)) for s, w in law.items() if s[0] == level])
        before = first
        for reports in product(*sent):
            weight = float(np.prod([w for _, w in reports])) / 6
            counts = np.sum([picked_bits(channel, symbol) for symbol, _ in reports], axis=0)[3:]
            direct = tree.direct(sizes, [np.zeros(1), *(counts[a:b] for a, b in pairwise(ends))])
            every = np.concatenate(tree.join(direct))
            first, second = first + weight * every, second + weight * every**2
        means.append(6 * (first - before))
    assert first == pytest.approx(np.concatenate(truth), abs=1e-12)
    # Of n devices the part that is due to who was asked what has the factor n/(n - 1), which is left out.
    who = np.var(means, axis=0)
    stated = np.concatenate(tree.variances(truth, sizes, 3))
    assert second - first**2 - who / 3 == pytest.approx(stated, abs=1e-9)
