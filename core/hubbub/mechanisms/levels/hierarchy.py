"""Inputs grouped into categories, these perhaps into larger ones: a tree, numbered from the top."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import LOGARITHM, MAX_INPUTS, Channel
from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence, fixed_up
from hubbub.channels.sets import Level
from hubbub.errors import ParameterError
from hubbub.numeric.exact import log_above

MAX_LEVELS: Final = 16
"""More would share the reports too thinly; and a description must not ask for much memory."""

Sizes: TypeAlias = "Sequence[int | Sizes]"
"""Categories: each is its number of values, or the categories that it consists of."""


class Hierarchy:
    """A hierarchy of groupings of the inputs 0..K-1, every cell contiguous; the last has one cell per input.

    Attributes:
        inputs: K.
        sizes: Per level but the last how many inputs each cell has, shape (cells,), int64.
        labels: Per level the cell of every input, shape (K,), intp; read-only.
    """

    def __init__(self, inputs: int, sizes: Sequence[Sequence[int]]) -> None:
        """Set the groupings.

        Raises:
            ParameterError: If a level's sizes do not add up to K, or a level does not split the one before.
        """
        if not 2 <= inputs <= MAX_INPUTS:
            raise ParameterError(f"levels must have 2 to {MAX_INPUTS} inputs, got {inputs}")
        if not 1 <= len(sizes) < MAX_LEVELS:
            raise ParameterError(f"levels must be two to {MAX_LEVELS}, got {len(sizes) + 1}")
        for level in sizes:
            # By Python's integers: sums of int64 might wrap round.
            if min(level, default=0) < 1 or sum(level) != inputs:
                raise ParameterError(
                    f"the sizes of a level must be at least 1 and sum to {inputs}, got {sum(level)}"
                )
        self.inputs = inputs
        self.sizes = tuple(np.array(level, dtype=np.int64) for level in sizes)
        ends: set[int] = set()
        for split in self.sizes:
            finer = set(np.cumsum(split).tolist())
            if not ends < finer or len(finer) < 2:
                raise ParameterError(
                    "each level must split categories of the one before, got one that does not"
                )
            ends = finer
        if len(ends) == inputs:
            raise ParameterError("categories must have more than one value somewhere, got none that has")
        self.labels = tuple(
            np.repeat(np.arange(level.size, dtype=np.intp), level)
            for level in (*self.sizes, np.ones(inputs, dtype=np.int64))
        )
        for array in (*self.sizes, *self.labels):
            array.setflags(write=False)

    @classmethod
    def of(cls, sizes: Sizes) -> Hierarchy:
        """Return the hierarchy of categories of categories; where a branch ends early its value repeats.

        Raises:
            ParameterError: If it is no such tree, or has one level only.
        """
        levels: list[list[int]] = []
        nodes: list[int | Sizes] = list(_listed(sizes))
        while True:
            levels.append([_count(node) for node in nodes])
            if all(type(node) is int or isinstance(node, int | np.integer) for node in nodes):
                break
            below: list[int | Sizes] = []
            for node in nodes:
                below += [node] if isinstance(node, int | np.integer) else _listed(node)
            nodes = below
        return cls(sum(levels[0]), levels)

    @classmethod
    def joined(cls, inputs: int, sizes: Sequence[int]) -> Hierarchy:
        """Return the hierarchy whose levels' sizes stand one after another, each level summing to K.

        Raises:
            ParameterError: If they do not.
        """
        levels: list[list[int]] = [[]]
        held = 0
        for size in sizes:
            levels[-1].append(size)
            held += size
            if held >= inputs:
                levels.append([])
                held = held - inputs
        if levels.pop():
            raise ParameterError(f"the sizes of every level must sum to {inputs}, got {held} at the end")
        return cls(inputs, levels)

    @property
    def concatenated(self) -> list[int]:
        """The sizes of all levels one after another, as `joined` reads them."""
        return [int(size) for level in self.sizes for size in level]

    @property
    def bins(self) -> list[int]:
        """The number of cells of each level, the last one included."""
        return [*(level.size for level in self.sizes), self.inputs]

    def farthest(self, odds: Sequence[tuple[int, int]]) -> list[Fraction]:
        """Return, per level, the largest ratio for two inputs that differ at it and all below.

        Args:
            odds: Per level the largest ratio of a symbol about it.
        """
        ratios = [Fraction(*pair) for pair in odds]
        return [max(ratios[k:]) for k in range(len(ratios))]

    @property
    def most_blocks(self) -> int:
        """An upper bound of the number of blocks of `blocks`."""
        return min(self.sizes[-1].size, MAX_BLOCKS)

    @property
    def block_work(self) -> int:
        """The work that `blocks` takes at most; see `Channel.block_work`."""
        levels = len(self.sizes) + 1
        return 8 * self.inputs + levels * self.most_blocks**2 + LOGARITHM * levels

    def blocks(self, odds: Sequence[tuple[int, int]]) -> BlockDivergence:
        """Return the max-divergence in units: the largest over the levels at which two inputs differ."""
        units = [fixed_up(ratio.numerator, ratio.denominator) for ratio in self.farthest(odds)]
        count = self.sizes[-1].size
        if count > MAX_BLOCKS or len(set(units)) == 1:
            return BlockDivergence.constant(self.inputs, units[0])
        first = np.cumsum(self.sizes[-1]) - self.sizes[-1]
        common = np.zeros((count, count), dtype=np.intp)
        for labels in self.labels[:-1]:
            common += labels[first][:, None] == labels[first][None, :]
        across = np.array([*units, 0], dtype=np.int64)[np.minimum(common, len(units) - 1)]
        return BlockDivergence(self.labels[-2], across, np.full(count, units[-1], dtype=np.int64))

    def divergence(self, odds: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
        """Return the max-divergence in nats, shape (K, K)."""
        logs = np.array([*(np.log(float(ratio)) for ratio in self.farthest(odds)), 0.0])
        common = np.zeros((self.inputs, self.inputs), dtype=np.intp)
        for labels in self.labels:
            common += labels[:, None] == labels[None, :]
        matrix: NDArray[np.float64] = logs[common]
        return matrix


class LevelMixture(Channel):
    """A channel whose public coin picks a level of a hierarchy, and whose report is about that level alone.

    The coin knows no value. So two inputs are as far apart as the best told of the levels at which they
    differ makes them.

    Attributes:
        hierarchy: The groupings.
    """

    hierarchy: Hierarchy
    tells_inputs = False

    @property
    @abstractmethod
    def levels(self) -> tuple[Level, ...]:
        """The levels that symbols are about, coarsest first."""

    @property
    @abstractmethod
    def _odds(self) -> list[tuple[int, int]]:
        """The largest ratio of a symbol about each level, as two integers."""

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        worst = self.hierarchy.farthest(self._odds)[0]
        return log_above(worst.numerator, worst.denominator)

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return self.hierarchy.most_blocks

    @property
    def block_work(self) -> int:  # noqa: D102 - inherited
        return self.hierarchy.block_work

    def blocks(self) -> BlockDivergence:  # noqa: D102 - inherited
        return self.hierarchy.blocks(self._odds)

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        return self.hierarchy.divergence(self._odds)

    def category_rule(self, category_of: NDArray[np.intp]) -> str:
        """Return the rule that categories break which are none of the channel's levels, else ""."""
        known = any(np.array_equal(level.labels, category_of) for level in self.levels)
        return "" if known else "must be a level of its levels channel"


def _listed(sizes: object) -> list[int | Sizes]:
    if isinstance(sizes, np.ndarray):
        sizes = sizes.tolist()
    if not isinstance(sizes, Sequence) or isinstance(sizes, str | bytes) or not sizes:
        raise ParameterError(f"sizes must be a list of categories, got {type(sizes).__name__}")
    return list(sizes)


def _count(node: object) -> int:
    """Return the number of inputs of a category."""
    if type(node) is int and node > 0:  # nearly all are, and there may be thousands
        return node
    if isinstance(node, int | np.integer) and not isinstance(node, bool):
        if node < 1:
            raise ParameterError(f"a category's size must be at least 1, got {node}")
        return int(node)
    return sum(_count(below) for below in _listed(node))
