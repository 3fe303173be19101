"""The law of a tree node's estimate: reports about several levels, from devices drawn by a public coin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.intervals.laws import CellLaw, MixedLaw
from hubbub.estimation.intervals.population import plausible_populations
from hubbub.estimation.trees.tree import Tree

Floats = NDArray[np.float64]

_EVERYONE: Final = 1e-9
"""A node that all devices but so few are in has no others."""

_NOTHING: Final = 1e-12
"""Steps below this are a level that the estimate does not use."""


@dataclass(frozen=True, eq=False)
class LevelLaw:
    """The scores of the reports about one level, for every node of the level that is estimated.

    Attributes:
        size: n_k, the reports about it.
        own: Means of the score, its square and its cube for a device in the node, shape (3, c).
        rest: The same for a device elsewhere, shape (populations, 3, c).
    """

    size: float
    own: Floats
    rest: Floats


@dataclass(frozen=True, eq=False)
class LevelsLaw:
    """A sum of means over several levels' reports.

    Attributes:
        n: All reports.
        parts: The levels that reports are about.
        step: Lattice step of the sum, shape (c,).
    """

    n: float
    parts: Sequence[LevelLaw]
    step: Floats

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variance and third central moment of n times the estimate, shape (c,) each.

        The variance is the larger of the populations' that the rest may be, the third moment its own.
        """
        found = [self._moments(shares, which) for which in range(len(self.parts[0].rest))]
        variance, third = found[0]
        for other, skew in found[1:]:
            larger = other > variance
            variance, third = np.where(larger, other, variance), np.where(larger, skew, third)
        return variance, third

    @property
    def odds(self) -> None:
        """None: the number of scores of a device is that of levels, or more."""
        return None

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the parts of every level's devices in the cell and elsewhere, shape (kinds, c) each.

        That devices are drawn without replacement takes something off the variance: off every kind alike.
        What it adds to the third moment is a kind of its own.
        """
        found = [self._kinds(shares, which) for which in range(len(self.parts[0].rest))]
        variances, thirds = found[0]
        for other, skew in found[1:]:
            larger = other.sum(axis=0) > variances.sum(axis=0)
            variances, thirds = np.where(larger, other, variances), np.where(larger, skew, thirds)
        return variances, thirds

    def tilt(self, shares: Floats) -> Floats:
        """Return f (1 - f) times how the variance grows with the share f of a node, shape (c,).

        The variance is of degree 2 in f, so its slope follows from its values at 0, f and 1.
        """
        none, whole = self._ends
        here = self.moments(shares)[0]
        return np.asarray(shares**2 * (whole - here) + (1.0 - shares) ** 2 * (here - none))

    @cached_property
    def _ends(self) -> tuple[Floats, Floats]:
        """The variances where nobody and where everybody is in the cell."""
        none, whole = np.zeros_like(self.step), np.ones_like(self.step)
        return self.moments(none)[0], self.moments(whole)[0]

    def _kinds(self, shares: Floats, which: int) -> tuple[Floats, Floats]:
        variances, thirds = [], []
        for part in self.parts:
            scale, rest = self.n / part.size, part.rest[which]
            first = shares * part.own[0] + (1.0 - shares) * rest[0]
            for held, (mean, square, cube) in ((shares, part.own), (1.0 - shares, rest)):
                variances.append(held * scale * self.n * (square - 2.0 * first * mean + first**2))
                skew = cube - 3.0 * first * square + 3.0 * first**2 * mean - first**3
                thirds.append(held * scale**2 * self.n * skew)
        thirds.append(-self._drawn_again(shares, which))
        both = np.stack([*variances, np.zeros_like(shares)])
        every = both.sum(axis=0)
        less = np.maximum(every - self.n * shares * (1.0 - shares), 0.0)
        return both * np.divide(less, every, out=np.zeros_like(every), where=every > 0), np.stack(thirds)

    def _moments(self, shares: Floats, which: int) -> tuple[Floats, Floats]:
        """Return both moments where the devices elsewhere are population `which`.

        With s the score of a report about level k, its means over all devices, those in the node a share f,

            variance = sum over k of n^2/n_k (E s^2 - (E s)^2)  -  n f (1 - f),
            third    = sum over k of n^3/n_k^2 (E s^3 - 3 E s E s^2 + 2 (E s)^3)  -  `_drawn_again`.
        """
        n, f = self.n, shares
        variance, third = -n * f * (1.0 - f), np.zeros_like(f)
        for part in self.parts:
            mean, square, cube = f * part.own + (1.0 - f) * part.rest[which]
            scale = n / part.size
            variance = variance + scale * n * (square - mean**2)
            third = third + scale**2 * n * (cube - 3.0 * mean * square + 2.0 * mean**3)
        return variance, third - self._drawn_again(shares, which)

    def _drawn_again(self, shares: Floats, which: int) -> Floats:
        """Return the part of the third moment that is only there if a device could be drawn for two levels.

        With A devices in the cell, A_k of them about level k, the sum's mean given who was asked what is
        sum d_k A_k and its variance sum e_k A_k, but for constants. The A are a simple random sample of n
        places with the numbers d and e: so the third moment has their central moments over the places, where
        one level by itself has the raw ones. The mean of d is 1, as the estimate is unbiased.
        """
        squares, spread = self._apart[which]
        mixed = shares * (1.0 - shares)
        # E d^3 less E (d - 1)^3, where E d = 1.
        return np.asarray(self.n * mixed * (3.0 * spread + (1.0 - 2.0 * shares) * (3.0 * squares - 2.0)))

    @cached_property
    def _apart(self) -> list[tuple[Floats, Floats]]:
        """The sums over levels of d^2 n_k / n and of e, of every population."""
        found = []
        for which in range(len(self.parts[0].rest)):
            squares, spread = np.zeros_like(self.step), np.zeros_like(self.step)
            for part in self.parts:
                scale, rest = self.n / part.size, part.rest[which]
                d = scale * (part.own[0] - rest[0])
                squares += d**2 / scale
                spread += scale * (part.own[1] - part.own[0] ** 2 - rest[1] + rest[0] ** 2)
            found.append((squares, spread))
        return found


def single_level_law(
    n: float,
    own: Floats,
    rest: Floats,
    step: Floats,
    *,
    odds: Floats | None = None,
) -> CellLaw:
    """Return the law where all reports are about one level: two kinds of devices, exact.

    The means of the two kinds differ by 1, as the estimate is unbiased. They are 1 and 0 but for a constant,
    where the level's weights know that shares add up to 1.

    Args:
        n: Reports.
        own: Means of the score, its square and cube for a device in the cell, shape (3, c).
        rest: The same elsewhere.
        step: Lattice step, shape (c,).
        odds: See `CellLaw`.
    """
    return MixedLaw(n, _central(own), _central(rest), step, odds=odds)


def _central(raw: Floats) -> Floats:
    """Return variance and third central moment from the first three raw moments."""
    mean, square, cube = raw
    return np.stack([np.maximum(square - mean**2, 0.0), cube - 3.0 * mean * square + 2.0 * mean**3])


def node_law(
    tree: Tree,
    level: int,
    estimates: Floats,
    sizes: Sequence[float],
    n: float,
) -> CellLaw:
    """Return the law of the estimates of one level's nodes.

    Args:
        tree: The estimator.
        level: The level whose nodes are estimated.
        estimates: Estimated shares of the finest level's cells, shape (K,).
        sizes: Reports about each level.
        n: All reports.
    """
    populations = plausible_populations(estimates)
    shares = [_grouped(tree, population) for population in populations]
    parts, steps = [], []
    for k, about in enumerate(tree.levels):
        if about.share <= 0:
            continue
        law = tree.set_moments(k)
        rest = []
        own = np.zeros(0)
        for grouped in shares:
            sums, weighted, inside = tree.score_sums(k, grouped[k])[level]
            mine = grouped[level]
            others = np.where(mine < 1.0 - _EVERYONE, 1.0 - mine, 1.0)
            outside = np.where(mine < 1.0 - _EVERYONE, (weighted - mine * inside) / others, 0.0)
            own = law.raw(inside, sums)
            rest.append(law.raw(outside, sums))
            if k >= level:
                steps.append(n / sizes[k] * np.abs(inside[0]) / law.gap)
        parts.append(LevelLaw(sizes[k], own, np.stack(rest)))
    step = np.min(np.where(np.stack(steps) > _NOTHING, np.stack(steps), np.inf), axis=0)
    step = np.where(np.isfinite(step), step, 0.0)
    if len(parts) == 1:
        return single_level_law(n, parts[0].own, parts[0].rest[0], step, odds=_odds(tree, level))
    return LevelsLaw(n, parts, step)


def _odds(tree: Tree, level: int) -> Floats | None:
    """Return how often a report about the only level supports a cell, by whether its device is in it.

    Where other levels are added up and the total is free, the estimate of a cell is its count and no more.
    """
    if tree.total == "known" or level != len(tree.levels) - 1:
        return None
    support, cells = tree.levels[-1].support, tree.levels[-1].bins
    return np.repeat([[float(support.p)], [float(support.q)]], cells, axis=1)


def _grouped(tree: Tree, population: Floats) -> list[Floats]:
    """Return a population's shares of every level's cells."""
    return [
        np.asarray(np.bincount(level.labels, population, minlength=level.bins), dtype=np.float64)
        for level in tree.levels
    ]
