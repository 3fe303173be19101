"""Level sampling whose levels are answered by sets of cells, with the level in the first bits of a symbol."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import WORD, AttemptChannel, Attempts, Level, Sets
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.errors import ParameterError
from hubbub.mechanisms.levels.hierarchy import Hierarchy, LevelMixture
from hubbub.mechanisms.subset import SubsetSelection


class SetLevels(LevelMixture, AttemptChannel):
    """A channel that sends a level and a subset of its cells.

    The first cells of a set say which level it is about, one cell per level; the cells of all levels follow,
    coarsest level first. An attempt has one word for the level, whose bounds are the running sums of
    `shares`, and then an attempt of every level's subset selection, of which the level's is used.

    Attributes:
        shares: In how many of 2^32 draws each level is picked.
        oracles: Subset selection over each level's cells; of one cell it is randomised response.
    """

    kind = "set_levels"
    description = "The device sends a random set of answers or of categories, yours more often among them."

    def __init__(
        self, hierarchy: Hierarchy, shares: Sequence[int], sizes: Sequence[int], p_draws: Sequence[int]
    ) -> None:
        """Set the channel from its integers, one per level in each of the three.

        Args:
            hierarchy: The groupings.
            shares: See above; they sum to 2^32.
            sizes: How many cells a set about each level holds.
            p_draws: In how many of 2^32 draws the true cell is among them.

        Raises:
            ParameterError: If the integers do not make a channel that tells cells apart.
        """
        depth = len(hierarchy.bins)
        if not len(shares) == len(sizes) == len(p_draws) == depth:
            raise ParameterError(f"each of {depth} levels must have three integers, got {len(shares)}")
        if min(shares) < 1 or sum(shares) != WORD:
            raise ParameterError(
                f"the shares of levels must be at least 1 and sum to 2^32, got {sum(shares)}"
            )
        self.hierarchy, self.shares = hierarchy, tuple(shares)
        self.oracles = tuple(
            SubsetSelection(*numbers) for numbers in zip(hierarchy.bins, sizes, p_draws, strict=True)
        )
        limits = np.concatenate([[WORD], *(oracle.limits for oracle in self.oracles)])
        super().__init__(hierarchy.inputs, depth + sum(hierarchy.bins), limits)
        self._cells = _stretches(depth, hierarchy.bins)
        self._words = _stretches(1, [oracle.words for oracle in self.oracles])

    @property
    def _odds(self) -> list[tuple[int, int]]:
        return [oracle.odds for oracle in self.oracles]

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:  # noqa: D102 - inherited
        level, members = self._about(symbol)
        inside, outside = self.oracles[level].odds
        return np.where(members[self.hierarchy.labels[level]], np.int64(inside), np.int64(outside))

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        level, members = self._about(symbol)
        own = self.oracles[level].log_likelihood(np.packbits(members, bitorder="little"))
        return math.log(self.shares[level] / WORD) + own[self.hierarchy.labels[level]]

    def _about(self, symbol: bytes | Sets) -> tuple[int, NDArray[np.bool_]]:
        """Return a symbol's level, and which of its cells it holds."""
        members = self._members(symbol)
        level = int(np.argmax(members[: len(self.shares)]))
        return level, members[self._cells[level]]

    @cached_property
    def levels(self) -> tuple[Level, ...]:  # noqa: D102 - inherited
        return tuple(
            Level(labels, Fraction(share, WORD), oracle.levels[0].support)
            for labels, share, oracle in zip(self.hierarchy.labels, self.shares, self.oracles, strict=True)
        )

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:  # noqa: D102
        del n
        return [(float(counts[level]), counts[cells]) for level, cells in enumerate(self._cells)]

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        picked = np.array(self.shares) / WORD * frequencies.sum()
        return np.concatenate([picked, super().expected(frequencies)])

    def sends(self, members: int) -> bool:
        """Return whether one level is named, and only cells of it are held, as many as its sets hold."""
        depth = len(self.shares)
        named, held = members & ((1 << depth) - 1), members >> depth << depth
        if named.bit_count() != 1:
            return False
        level = named.bit_length() - 1
        cells = self._cells[level]
        own = held & ((1 << int(cells.stop)) - (1 << int(cells.start)))
        return own == held and own.bit_count() == self.oracles[level].size

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:
        """Return the same for packed sets, shape (n,), bool."""
        valid = self._spare_is_zero(symbols)
        members = np.unpackbits(symbols, axis=1, count=self.bins, bitorder="little")
        depth = len(self.shares)
        valid &= members[:, :depth].sum(axis=1) == 1
        level = np.argmax(members[:, :depth], axis=1)
        held = np.stack([members[:, cells].sum(axis=1, dtype=np.int64) for cells in self._cells], axis=1)
        due = np.diag([oracle.size for oracle in self.oracles])[level]
        valid &= (held == due).all(axis=1)
        return valid

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        named = counts[: len(self.shares)].tolist()
        held = [int(counts[cells].sum()) for cells in self._cells]
        due = [level * oracle.size for level, oracle in zip(named, self.oracles, strict=True)]
        return sum(named) == n and held == due

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:  # noqa: D102
        bounds = np.cumsum(self.shares[:-1]).astype(np.uint32)
        picked = np.searchsorted(bounds, attempts[:, 0], side="right")
        out[np.arange(len(values)), picked] = True
        for level, oracle in enumerate(self.oracles):
            where = np.flatnonzero(picked == level)
            members = np.zeros((where.size, oracle.inputs), dtype=np.bool_)
            own = self.hierarchy.labels[level][values[where]]
            oracle.fill(own, attempts[where, self._words[level]], members)
            out[where, self._cells[level]] = members

    def with_dummy_reports(self, share: Fraction) -> SetLevels:  # noqa: D102 - inherited
        sizes = [oracle.size for oracle in self.oracles]
        p_draws = [oracle.with_dummy_reports(share).p_draws for oracle in self.oracles]
        return SetLevels(self.hierarchy, self.shares, sizes, p_draws)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "sizes": self.hierarchy.concatenated,
            "shares": list(self.shares),
            "subset": [oracle.size for oracle in self.oracles],
            "held": [oracle.p_draws for oracle in self.oracles],
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "sizes", "shares", "subset", "held")
        hierarchy = Hierarchy.joined(spec_int(spec, "inputs"), spec_ints(spec, "sizes"))
        return cls(hierarchy, *(spec_ints(spec, key) for key in ("shares", "subset", "held")))


def _stretches(start: int, sizes: Sequence[int]) -> list[slice]:
    """Return stretches of these sizes one after another, the first of which begins at start."""
    return [slice(start + sum(sizes[:k]), start + sum(sizes[: k + 1])) for k in range(len(sizes))]
