"""The estimator of support counts, and of reports that are each about one level of a tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import Level
from hubbub.errors import ParameterError
from hubbub.estimation.cumulative import Functionals, Ratio, populations
from hubbub.estimation.estimate import MAX_COVARIANCE, Estimate, Estimator, Floats
from hubbub.estimation.intervals.fieller import LEAST, RatioMean
from hubbub.estimation.intervals.laws import JoinedLaw, ReorderedLaw, ScoreLaws
from hubbub.estimation.intervals.tree_law import node_law
from hubbub.estimation.poison import Reach
from hubbub.estimation.questions import (
    InputNumbers,
    Rounding,
    checked_categories,
    checked_counts,
    expected_counts,
)
from hubbub.estimation.trees.tree import Tree, added_up


@runtime_checkable
class Layered(Protocol):
    """The part of a channel that this estimator reads."""

    @property
    def inputs(self) -> int:
        """K."""

    @property
    def bins(self) -> int:
        """The length of a round's counts."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that reports are about, coarsest first."""

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Return the reports and the support counts of each level."""

    def expected(self, frequencies: Floats) -> Floats:
        """Return the counts expected of one report, shape (bins,)."""


class TreeEstimator(Estimator):
    """The unbiased estimator of a survey whose channel sends sets, or samples levels.

    Built once per survey, then called per round in O(K) per level. Where there are several levels, estimates
    are unbiased given how many reports each level got, and need a report about each: without one, all
    are nan with infinite errors. Where they are fitted to the known total (categories are coarser than all of
    several levels), only the finest needs one: others are then left out.

    Args:
        channel: The channel whose reports were counted.
        category_of: Category 0..m-1 of every input, shape (K,), each used at least once. None: the
            channel's coarsest level; of a tree of ranges its last input, missing, and all others. Otherwise
            one of the channel's levels, or a grouping of the coarsest. Of a tree of labels one row per level
            above the values, shape (levels - 1, K), each numbered from where the row before it ended: all of
            them are then stated, and fitted to the known total.
        points: The number that each input stands for, shape (K,), finite except nan at `missing`; None for
            a survey without numbers.
        missing: The input that means "no value", left out of the mean; None when there is none.
        rounding: "stochastic" when devices round their number to the two nearest points at random, see
            `InverseEstimator`.

    Raises:
        ParameterError: Shapes or ranges do not fit the channel.
    """

    def __init__(
        self,
        channel: Layered,
        *,
        category_of: NDArray[np.integer[Any]] | None = None,
        points: Floats | None = None,
        missing: int | None = None,
        rounding: Rounding = "none",
    ) -> None:
        self.channel = channel
        levels = channel.levels
        if category_of is None:
            category_of = _own_categories(channel)
        if np.ndim(category_of) == 2:
            self.category_of = np.asarray(category_of)
            rows = [row - row.min() for row in self.category_of]
            if not _are_levels(rows, levels):
                raise ParameterError("category_of must have every level above the values, got other rows")
            levels = (added_up(np.zeros_like(rows[0])), *levels)
            self._above, self._stated, known = 1, range(1, len(levels) - 1), True
        else:
            self.category_of = checked_categories(category_of, channel.inputs)
            same = [np.array_equal(level.labels, self.category_of) for level in levels]
            self._above = 0
            known = len(levels) > 1 and not any(same)
            if not any(same):
                if not _is_coarser(self.category_of, levels[0].labels):
                    raise ParameterError(
                        "category_of must be one of the channel's levels, or coarser, got another grouping"
                    )
                groups = added_up(self.category_of)
                whole = [added_up(np.zeros_like(self.category_of))] if known and groups.bins > 1 else []
                levels = (*whole, groups, *levels)
                self._above = 1 + len(whole)
            place = self._above - 1 if self._above else same.index(True)
            self._stated = range(place, place + 1)
        self.tree = Tree(levels, total="known" if known else "free")
        self._inputs = levels[-1].labels
        self._points, self._rounding = points, rounding
        self._numbers = InputNumbers.of(channel.inputs, points=points, missing=missing, rounding=rounding)

    def __call__(self, counts: NDArray[np.integer[Any]], n: int) -> Estimate:
        """Estimate frequencies from one round's counts.

        Args:
            counts: The channel's counts: support counts, shape (cells,), each 0..n; or reports per symbol.
            n: Number of reports, >= 1.

        Raises:
            ParameterError: The shape, the type or a count is wrong.
        """
        return self._estimate(checked_counts(counts, self.channel.bins, n), n)

    def expected_estimate(self, frequencies: Floats, n: int) -> Estimate:
        """Return what to expect of n devices before any has reported: their shares, and exact errors.

        With several levels the errors are those of rounds in which each level gets its expected number of
        reports. (That of the mean is exact for the linear part of its ratio.)

        Args:
            frequencies: The share of the devices that holds each input, shape (K,), >= 0, summing to one.
            n: Number of devices, >= 1.

        Raises:
            ParameterError: Shares or n break their rule.
        """
        return self._estimate(expected_counts(self.channel, frequencies, n), n)

    def _estimate(self, counts: NDArray[Any], n: int) -> Estimate:
        parts = self.channel.split(counts, n)
        above = [(0.0, np.zeros(level.bins)) for level in self.tree.levels[: self._above]]
        parts = above + parts
        sizes = [size for size, _ in parts]
        levels = self.tree.levels
        unheard = tuple(
            k
            for k, (level, size) in enumerate(zip(levels, sizes, strict=True))
            if level.share > 0 and size == 0
        )
        if unheard and (self.tree.total == "free" or len(levels) - 1 in unheard):
            return self._nothing(n)
        tree = self._tree_without(unheard)
        direct = tree.direct(sizes, [held for _, held in parts])
        shares = tree.join(direct)
        # An estimated variance can fall below zero where hardly anyone has been asked.
        last = len(levels) - 1
        stated = {*self._stated, last}
        spreads = tree.variances(shares, sizes, n, wanted=stated)
        errors = {k: np.sqrt(np.maximum(spreads[k], 0.0)) for k in stated}

        def variance(part: Floats) -> float:
            return tree.variance(part, shares, sizes, n)

        values, numbers = shares[-1][self._inputs], self._numbers
        mean, mean_error = (None, None) if numbers is None else numbers.ratio(values, n, variance)
        return Estimate(
            n=n,
            values=values,
            value_errors=errors[last][self._inputs],
            categories=_joined([shares[k] for k in self._stated]),
            category_errors=_joined([errors[k] for k in self._stated]),
            mean=mean,
            mean_error=mean_error,
            _category_of=self.category_of,
            _covariance=partial(tree.covariance, shares, sizes, n),
            _functionals=self._functionals(tree, shares, sizes, n),
            _reach=partial(self._reach, tree, shares, direct, sizes, n),
            _laws=partial(self._laws, tree, shares, sizes, n),
        )

    def _laws(self, tree: Tree, shares: Sequence[Floats], sizes: Sequence[float], n: int) -> ScoreLaws:
        """Return the laws of the scores; with categories added up they are nodes without reports."""
        values, last = shares[-1][self._inputs], len(tree.levels) - 1
        finest = node_law(tree, last, values, sizes, n)
        laws = [finest if k == last else node_law(tree, k, values, sizes, n) for k in self._stated]
        categories = laws[0] if len(laws) == 1 else JoinedLaw(laws)
        mean = self._mean_law(tree, shares, sizes, n)
        return ScoreLaws(ReorderedLaw(finest, self._inputs), categories, mean)

    def _mean_law(
        self, tree: Tree, shares: Sequence[Floats], sizes: Sequence[float], n: int
    ) -> RatioMean | None:
        numbers = self._numbers
        if numbers is None:
            return None
        values = shares[-1][self._inputs]

        def variance(functional: Floats, at: Sequence[Floats] = shares) -> float:
            return n * n * tree.variance(functional, at, sizes, n)

        def at_least(found: float, functional: Floats) -> float:
            # The devices' own spread adds the mean square of the scores to the variance.
            most = max(found, LEAST * (found + n * float((functional**2 * values).sum())))
            if most > 0.0:
                return most
            # With few devices and very many values, both may be estimated below nothing.
            return variance(functional, [np.bincount(each.labels) / len(values) for each in tree.levels])

        total, answered = (float(n * (part * values).sum()) for part in (numbers.unit, numbers.answered))
        everyone = bool((numbers.answered == 1.0).all())
        own, other = variance(numbers.unit), variance(numbers.answered)
        both = (variance(numbers.unit + numbers.answered) - own - other) / 2.0
        return RatioMean(
            total,
            answered,
            at_least(own, numbers.unit) + numbers.rounding_variance * max(answered, 0.0),
            0.0 if everyone else both,
            0.0 if everyone else at_least(other, numbers.answered),
            numbers.centre,
            numbers.scale,
            n,
            float(n * (numbers.unit**2 * values).sum()),
        )

    def _tree_without(self, unheard: tuple[int, ...]) -> Tree:
        """Return the tree in which levels that nobody reported about are only added up."""
        if not unheard:
            return self.tree
        levels = [
            added_up(level.labels) if k in unheard else level for k, level in enumerate(self.tree.levels)
        ]
        return Tree(levels, total=self.tree.total)

    def _functionals(
        self, tree: Tree, shares: Sequence[Floats], sizes: Sequence[float], n: int
    ) -> Functionals | None:
        if self._points is None:
            return None
        values = shares[-1][self._inputs]
        made_for_curves = getattr(self.channel, "shows_curve", False)
        ratio: Ratio = "delta" if made_for_curves else "fieller"
        variances = partial(self._variances, tree, values, sizes, n)
        kinds = partial(self._noise_kinds, tree, values, sizes, n)
        return Functionals(values, self._points, self._rounding, variances, kinds, n, ratio)

    def _populations(self, tree: Tree, values: Floats) -> list[list[Floats]]:
        """Return the shares per level where they are all alike, and those of the estimate."""
        return [
            [np.bincount(each.labels, weights=shares).astype(np.float64) for each in tree.levels]
            for shares in populations(values, self._points)
        ]

    def _variances(
        self, tree: Tree, values: Floats, sizes: Sequence[float], n: int, functionals: Floats
    ) -> Floats:
        found = self._populations(tree, values)
        return np.stack([tree.functional_variances(functionals, f, sizes, n) for f in found])

    def _noise_kinds(
        self, tree: Tree, values: Floats, sizes: Sequence[float], n: int, functionals: Floats
    ) -> Floats:
        """Return the noise by its direction, and what is left: who was asked about which level."""
        each = self._populations(tree, values)
        noise = tree.functional_noise(functionals, [np.stack(f) for f in zip(*each, strict=True)], sizes)
        variances = [tree.functional_variances(functionals, f, sizes, n) for f in each]
        thirds = [tree.functional_thirds(functionals, f, sizes) for f in each]
        left = np.stack([variances, thirds], axis=1) - noise.sum(axis=2)
        left[:, 0] = np.maximum(left[:, 0], 0.0)
        return np.concatenate([noise, left[:, :, None]], axis=2)

    def _reach(
        self,
        tree: Tree,
        frequencies: Sequence[Floats],
        direct: Sequence[Floats],
        sizes: Sequence[float],
        n: int,
    ) -> Reach:
        """Return the extremes of what one report can add.

        A little beyond them where there are several levels.
        """
        inputs = self.channel.inputs
        together = np.concatenate(
            [np.eye(tree.levels[k].bins)[tree.levels[k].labels] for k in self._stated], axis=1
        )
        lows, highs = tree.extremes(together, direct, sizes, n)
        values = frequencies[-1][self._inputs]
        categories = _joined([frequencies[k] for k in self._stated])
        if sum(level.share > 0 for level in tree.levels) == 1:
            # Every value is its own cell: one row stands for all.
            support = tree.levels[-1].support
            gap = float(support.p - support.q)
            low = np.full(inputs, -float(support.q) / gap)
            high = np.full(inputs, float(1 - support.q) / gap)
        elif inputs <= MAX_COVARIANCE:
            low, high = tree.extremes(np.eye(inputs), direct, sizes, n)
            low, high = low + values, high + values
        else:
            raise ParameterError(
                f"the reach of reports about levels needs K <= {MAX_COVARIANCE}, got {inputs}"
            )
        return Reach(low, high, lows + categories, highs + categories)

    def _nothing(self, n: int) -> Estimate:
        values, groups = self.channel.inputs, sum(self.tree.levels[k].bins for k in self._stated)
        none = self._numbers is None
        return Estimate(
            n=n,
            values=np.full(values, np.nan),
            value_errors=np.full(values, np.inf),
            categories=np.full(groups, np.nan),
            category_errors=np.full(groups, np.inf),
            mean=None if none else math.nan,
            mean_error=None if none else math.inf,
            _category_of=self.category_of,
            _covariance=partial(np.full, (values, values), np.nan),
        )


def _own_categories(channel: Layered) -> NDArray[np.intp]:
    """Return the categories that a channel is estimated with where nobody gives any."""
    if getattr(channel, "shows_curve", False):
        return np.append(np.zeros(channel.inputs - 1, dtype=np.intp), 1)
    return channel.levels[0].labels


def _joined(parts: Sequence[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _are_levels(rows: Sequence[NDArray[Any]], levels: Sequence[Level]) -> bool:
    """Return whether groupings are all of several levels but the finest, each input a cell of that."""
    return len(rows) == len(levels) - 1 > 0 and all(
        np.array_equal(row, level.labels) for row, level in zip(rows, levels, strict=False)
    )


def _is_coarser(groups: NDArray[np.intp], labels: NDArray[np.intp]) -> bool:
    """Return whether every cell of a level is within one group."""
    of_cell = np.zeros(int(labels.max()) + 1, dtype=np.intp)
    of_cell[labels] = groups
    return np.array_equal(of_cell[labels], groups)
