"""A tree of ranges: a public coin picks a level, and the report is a set of ranges of that level.

Numbers 0..K-1 in order are grouped into ranges, level by level more finely down to single numbers; the
missing input is a node of its own at every level. A device draws a level with its public share, and sends its
node of that level by subset selection over the level's nodes, which with one node is randomised response. The
channel's epsilon is the largest of the levels', as the coin knows no value; and sums over many numbers are
sums over few nodes (Hay et al. 2010; Cormode, Kulkarni, Srivastava 2019). Shares are in `shares.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.sets import WORD
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.errors import ParameterError
from hubbub.mechanisms.levels.hierarchy import MAX_LEVELS, Hierarchy
from hubbub.mechanisms.levels.levels import Levels, level_weights
from hubbub.mechanisms.levels.picked import PickedLevels
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.tree.shares import STEPS, Purpose, best_shares, cells_of
from hubbub.numeric.exact import checked_epsilon


def ranges(points: int, cells: Sequence[int]) -> Hierarchy:
    """Return the groupings of K points and the missing input: range i of m starts at i K div m.

    Args:
        points: K.
        cells: Ranges per level, coarsest first, each dividing the next, but perhaps the last, which is K.

    Raises:
        ParameterError: If they are no such levels.
    """
    if not cells or cells[-1] != points or not 2 <= points < MAX_INPUTS or len(cells) > MAX_LEVELS:
        raise ParameterError(
            f"a tree must have 2 to {MAX_LEVELS} levels and end at its points, 2 to {MAX_INPUTS - 1}, "
            f"got {len(cells)} levels for {points} points"
        )
    inner = cells[:-1]
    if any(not 1 <= many < points for many in inner) or any(b % a for a, b in pairwise(inner)):
        raise ParameterError("the ranges of a level must divide those of the next, got some that do not")
    lengths = [np.diff(np.arange(many + 1) * points // many).tolist() for many in cells[:-1]]
    return Hierarchy(points + 1, [[*level, 1] for level in lengths])


class TreeChannel(PickedLevels):
    """A channel from numbers in order, and missing, to a level and a set of its nodes.

    Attributes:
        points: K, the missing input not counted.
        cells: Ranges per level, coarsest first; the last is K. Each divides the next, but perhaps the last.
    """

    kind = "tree"
    shows_curve = True
    description = "The device sends a random set of ranges of numbers, yours more often among them."

    def __init__(
        self,
        points: int,
        cells: Sequence[int],
        shares: Sequence[int],
        sizes: Sequence[int],
        p_draws: Sequence[int],
    ) -> None:
        """Set the channel from its integers.

        Args:
            points: K.
            cells: Ranges per level; see `ranges`.
            shares: In how many of 2^32 draws each level is picked.
            sizes: How many nodes a set about each level holds.
            p_draws: In how many of 2^32 draws the true node is among them.

        Raises:
            ParameterError: If the integers do not make a channel that tells numbers apart.
        """
        super().__init__(ranges(points, cells), shares, sizes, p_draws)
        self.points, self.cells = points, tuple(cells)

    def with_dummy_reports(self, share: Fraction) -> TreeChannel:  # noqa: D102 - inherited
        mixed = [oracle.with_dummy_reports(share).p_draws for oracle in self.oracles]
        return TreeChannel(self.points, self.cells, self.shares, [o.size for o in self.oracles], mixed)

    def category_rule(self, category_of: NDArray[np.intp]) -> str:  # noqa: D102 - inherited
        return _whole_rule(category_of)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "cells": list(self.cells),
            "shares": list(self.shares),
            "subset": [oracle.size for oracle in self.oracles],
            "held": [oracle.p_draws for oracle in self.oracles],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        names = ("cells", "shares", "subset", "held")
        check_spec_keys(spec, "inputs", *names)
        return cls(spec_int(spec, "inputs") - 1, *(spec_ints(spec, name) for name in names))


class NodeTree(Levels):
    """A channel from numbers in order, and missing, to one node of a tree of ranges.

    Symbols number the nodes of all levels, coarsest first, missing last within each level; the node of a
    level is drawn by randomised response.

    Attributes:
        points: K, the missing input not counted.
        cells: Ranges per level; see `TreeChannel`.
    """

    kind = "tree_node"
    shows_curve = True
    description = "The device says a range of numbers, yours more often than any other."

    def __init__(self, points: int, cells: Sequence[int], t: Sequence[int], u: Sequence[int]) -> None:
        """Set the channel from its integers, one per level in t and in u; see `Levels`.

        Raises:
            ParameterError: If the integers do not make a channel that tells numbers apart.
        """
        super().__init__(ranges(points, cells), t, u)
        self.points, self.cells = points, tuple(cells)

    def mixed(self, scale: int, dummy: int) -> NodeTree:  # noqa: D102 - inherited
        plain = super().mixed(scale, dummy)
        return NodeTree(self.points, self.cells, plain.t, plain.u)

    def narrowed(self, limit: int) -> NodeTree:  # noqa: D102 - inherited
        plain = super().narrowed(limit)
        return NodeTree(self.points, self.cells, plain.t, plain.u)

    def category_rule(self, category_of: NDArray[np.intp]) -> str:  # noqa: D102 - inherited
        return _whole_rule(category_of)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        lists = {"cells": list(self.cells), "t": list(self.t), "u": list(self.u)}
        return {"kind": self.kind, "inputs": self.inputs, **lists}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "cells", "t", "u")
        return cls(spec_int(spec, "inputs") - 1, *(spec_ints(spec, name) for name in ("cells", "t", "u")))


def tree(
    points: int,
    *,
    epsilon: float,
    branching: int = 2,
    tuned_for: Purpose = "cdf",
    shares: Sequence[int] | None = None,
    oracles: Literal["best", "grr"] = "best",
) -> TreeChannel | NodeTree:
    """Return a tree of ranges over K numbers in order, and missing, which is the last input.

    Args:
        points: K, 3 or more.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        branching: Ranges that a range is split into; see `cells_of`.
        tuned_for: The error that shares make small, where they are not given.
        shares: Thousandths of devices that report about each level, coarsest first, each at least 1.
        oracles: "best": subset selection over each level's nodes, of the size with the least squared error;
            "grr": one node by randomised response, in a report of a few bytes.

    Raises:
        ParameterError: If a parameter is out of range, or no integers can express them.

    >>> tree(65, epsilon=1.0).cells
    (2, 4, 8, 16, 32, 65)
    """
    declared = checked_epsilon(epsilon)
    cells = cells_of(points, branching)
    if oracles not in ("best", "grr"):
        raise ParameterError(f'oracles must be "best" or "grr", got {oracles!r}')
    size = 1 if oracles == "grr" else None
    chosen = [subset_selection(many + 1, epsilon=declared, size=size) for many in cells]
    if shares is None:
        shares = best_shares(cells, [oracle.levels[0].support for oracle in chosen], tuned_for)
    elif len(shares) != len(cells) or min(shares) < 1 or sum(shares) != STEPS:
        raise ParameterError(
            f"shares must be {len(cells)} thousandths of at least 1 that sum to {STEPS}, got {list(shares)}"
        )
    if oracles == "grr":
        parts = [Fraction(share, STEPS) for share in shares]
        return NodeTree(points, cells, *level_weights([many + 1 for many in cells], parts, declared))
    ends = [sum(shares[: k + 1]) * WORD // STEPS for k in range(len(shares))]
    whole = np.diff([0, *ends]).tolist()
    return TreeChannel(points, cells, whole, [o.size for o in chosen], [o.p_draws for o in chosen])


def _whole_rule(category_of: NDArray[np.intp]) -> str:
    return "" if category_of[-2] == 0 else "must be absent for a tree, which has ranges of its own"
