"""The fast variances of a tree's nodes against those by pairs of levels, and against the covariance."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hubbub.channels.sets import Level, Support
from hubbub.estimation.trees.set_moments import SetMoments
from hubbub.estimation.trees.tree import Tree, added_up
from hubbub.mechanisms.tree import tree


def known(channel):
    groups = np.repeat([0, 1], [channel.points, 1])
    return Tree([added_up(np.zeros_like(groups)), added_up(groups), *channel.levels], total="known")


def by_pairs(fitted, frequencies, sizes, n):
    """The sums of every pair of levels, by the code that other trees use."""
    found = [-(f - f * f) / n for f in frequencies]
    for k, level in enumerate(fitted.levels):
        if level.share > 0:
            for j, sums in enumerate(fitted._sums(k, frequencies[k])):
                found[j] += (fitted.moments[k].square(sums) - sums[2] ** 2) / sizes[k]
    return found


@pytest.mark.parametrize(("points", "branching"), [(7, 2), (65, 2), (100, 3), (64, 8)])
def test_variances_of_nodes_are_those_by_pairs_of_levels_and_of_the_covariance(points, branching):
    rng = np.random.default_rng(points)
    fitted = known(tree(points, epsilon=1.0, branching=branching))
    crowd = rng.dirichlet(np.full(points + 1, 0.4))
    frequencies = [np.bincount(level.labels, weights=crowd) for level in fitted.levels]
    sizes = [0.0 if level.share == 0 else float(rng.integers(50, 900)) for level in fitted.levels]
    n = sum(sizes)
    fast = fitted.variances(frequencies, sizes, n)
    for ours, theirs in zip(fast, by_pairs(fitted, frequencies, sizes, n), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-14)
    covariance = fitted.covariance(frequencies, sizes, n)
    for level, found in zip(fitted.levels, fast, strict=True):
        of = (level.labels[:, None] == np.arange(level.bins)).astype(float)
        np.testing.assert_allclose(found, np.diag(of.T @ covariance @ of), rtol=1e-8, atol=1e-14)


def test_variances_hold_where_a_level_in_between_is_only_added_up():
    channel = tree(30, epsilon=1.0, branching=3)
    levels = list(known(channel).levels)
    levels[3] = added_up(levels[3].labels)
    fitted = Tree(levels, total="known")
    crowd = np.random.default_rng(1).dirichlet(np.ones(31))
    frequencies = [np.bincount(level.labels, weights=crowd) for level in fitted.levels]
    sizes = [0.0 if level.share == 0 else 400.0 for level in fitted.levels]
    for ours, theirs in zip(
        fitted.variances(frequencies, sizes, 800.0), by_pairs(fitted, frequencies, sizes, 800.0), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-14)


def test_inputs_that_are_not_in_order_of_their_cells_are_found():
    labels = np.array([2, 0, 1, 0, 2, 1])
    support = Support(Fraction(1, 2), Fraction(1, 6), Fraction(1, 12), Fraction(1, 24), 2)
    levels = [
        added_up(np.zeros(6, dtype=np.intp)),
        Level(labels, Fraction(1, 3), support),
        Level(np.array([5, 0, 2, 1, 4, 3]), Fraction(2, 3), support),
    ]
    fitted = Tree(levels, total="known")
    crowd = np.random.default_rng(4).dirichlet(np.ones(6))
    frequencies = [np.bincount(level.labels, weights=crowd) for level in levels]
    fast = fitted.variances(frequencies, [0.0, 100.0, 200.0], 300.0)
    slow = by_pairs(fitted, frequencies, [0.0, 100.0, 200.0], 300.0)
    for ours, theirs in zip(fast, slow, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("points", "branching"), [(7, 2), (64, 2), (65, 3), (64, 4), (64, 8), (100, 99)])
def test_sums_over_children_and_what_comes_down_are_those_by_parent(points, branching):
    """Both are the same to the last bit, with two children at every node and with others."""
    fitted = known(tree(points, epsilon=1.0, branching=branching))
    rng = np.random.default_rng(points)
    for k, parents in enumerate(fitted.parents, start=1):
        for shape in ((len(parents),), (len(parents), 3)):
            numbers = rng.normal(size=shape)
            slow = np.zeros((fitted.levels[k - 1].bins, *shape[1:]))
            np.add.at(slow, parents, numbers)
            np.testing.assert_allclose(fitted.up(k, numbers), slow, rtol=1e-13, atol=1e-13)
            assert fitted.down(k, slow).tolist() == slow[parents].tolist()
            starts = np.searchsorted(parents, np.arange(len(slow)))
            assert fitted.up(k, numbers).tolist() == np.add.reduceat(numbers, starts, axis=0).tolist()


def test_wanted_levels_have_the_variances_that_they_have_among_all():
    fitted = known(tree(65, epsilon=1.0))
    crowd = np.random.default_rng(5).dirichlet(np.ones(66))
    frequencies = [np.bincount(level.labels, weights=crowd) for level in fitted.levels]
    sizes = [0.0 if level.share == 0 else 300.0 for level in fitted.levels]
    every = fitted.variances(frequencies, sizes, 1800.0)
    for k in range(len(every)):
        some = fitted.variances(frequencies, sizes, 1800.0, wanted={k, len(every) - 1})
        assert some[k].tolist() == every[k].tolist()
        assert some[-1].tolist() == every[-1].tolist()


def test_small_noise_and_the_sign_of_its_skewness_are_no_rounding():
    """Scores that are nearly alike, by randomised response of three cells that nearly hides the cell.

    By hand, in rationals: a report is a cell, of weight 1 000 001 for the true one and 1 000 000 for another.
    """
    p, q = Fraction(1_000_001, 3_000_001), Fraction(1_000_000, 3_000_001)
    h = np.array([[1.0 + 3e-6], [1.0 - 4e-6], [1.0 + 1e-6]])
    found = SetMoments(Support(p, q, Fraction(0), Fraction(0), 1), 3).noise(h)
    for true in range(3):
        scores = [sum(Fraction(each) * ((x == y) - q) for x, each in enumerate(h[:, 0])) for y in range(3)]
        law = [p if y == true else q for y in range(3)]
        mean = sum(odds * score for odds, score in zip(law, scores, strict=True))
        for power, moment in zip((2, 3), found, strict=True):
            due = sum(odds * (score - mean) ** power for odds, score in zip(law, scores, strict=True))
            assert moment[true, 0] == pytest.approx(float(due / (p - q) ** power), rel=1e-3)
