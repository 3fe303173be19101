"""The recorded log-likelihood of one component, with the extremes of every block kept up to date."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.divergence import MAX_BLOCKS
from hubbub.accounting.partition import Partition
from hubbub.accounting.query import Model, Symbol

_FEW: Final = 4
"""Up to so many blocks or cells are changed one by one, which is quicker than an array operation."""

TOP: Final = 1 << 60
"""Scores are to be shifted down before they reach it: only differences mean anything, and those are small."""


class Scores:
    """Sums of log-likelihoods in whole quanta, up to a shift that is common to all cells.

    A structured channel adds one number to a few whole blocks and another to one cell. So cells are kept
    block by block, each block with an offset and its two extremes; a step then costs the blocks it changes,
    whatever the number of cells and of past answers.

    Attributes:
        partition: The blocks.
        high: The largest score of each block, shape (B,), int64.
        low: The smallest, shape (B,), int64.
        top: The largest of all.
        bottom: The smallest of all.
    """

    def __init__(self, partition: Partition) -> None:
        """All zero.

        Args:
            partition: Blocks to begin with; they are refined as answers need it.
        """
        partition = partition.pieces
        self._within = np.zeros(partition.labels.size, dtype=np.int64)
        self._set(partition, np.zeros(partition.sizes.size, dtype=np.int64))
        self.high = np.zeros(partition.sizes.size, dtype=np.int64)
        self.low = np.zeros(partition.sizes.size, dtype=np.int64)
        self.top = self.bottom = 0

    def _set(self, partition: Partition, offsets: NDArray[np.int64]) -> None:
        self.partition = partition
        self._offsets = offsets
        self._coarse: tuple[Partition, NDArray[np.intp], NDArray[np.intp]] | None = None

    @classmethod
    def of(cls, partition: Partition, values: NDArray[np.int64]) -> Scores:
        """Scores that are already known, shape (K,), int64."""
        made = cls(partition)
        made._add_all(values)
        made.top, made.bottom = int(made.high.max()), int(made.low.min())
        return made

    def values(self) -> NDArray[np.int64]:
        """Every score, shape (K,), int64; a new array."""
        values = np.empty_like(self._within)
        values[self.partition.order] = self._within + np.repeat(self._offsets, self.partition.sizes)
        return values

    def add(self, model: Model, symbol: Symbol, *, times: int = 1) -> None:
        """Adds the log-likelihood of one answer, or takes it away again with times = -1.

        Raises:
            ParameterError: The symbol is not one of the channel's; nothing has changed.
        """
        steps = model.steps(symbol, self.partition)
        if steps is None and model.sparse:
            finer = self.partition.refined(model.divergence.partition)
            if finer is not self.partition and finer.sizes.size <= 2 * MAX_BLOCKS:
                steps = model.steps(symbol, finer)
                if steps is not None:
                    self._refine(finer)
        if steps is None:
            self._add_all(times * model.log_likelihood(symbol))
        else:
            self._add_blocks(steps.blocks, times * steps.lift)
            self._add_cells(steps.cells, times * steps.lift)
            self._add_cells(steps.values, times * steps.extra)
        self.top, self.bottom = int(np.maximum.reduce(self.high)), int(np.minimum.reduce(self.low))

    def _add_blocks(self, blocks: NDArray[np.intp], lift: int) -> None:
        if lift == 0 or blocks.size == 0:
            return
        for each in (self._offsets, self.high, self.low):
            if blocks.size == 1:
                each[blocks[0]] += lift
            else:
                each[blocks] += lift

    def _add_cells(self, cells: NDArray[np.intp], extra: int) -> None:
        partition = self.partition
        if extra == 0 or cells.size == 0:
            return
        if cells.size > _FEW:
            self._within[partition.rank[cells]] += extra
            for block in set(partition.labels[cells].tolist()):
                self._scan(block)
            return
        for cell in cells.tolist():
            block, place = int(partition.labels[cell]), partition.rank[cell]
            before = self._within[place]
            after = before + extra
            self._within[place] = after
            offset = self._offsets[block]
            grown, left = (self.high, self.low) if extra > 0 else (self.low, self.high)
            if left[block] == before + offset:  # it may have been the only one there
                self._scan(block)
            elif (after + offset > grown[block]) == (extra > 0):
                grown[block] = after + offset

    def _scan(self, block: int) -> None:
        partition = self.partition
        start = partition.starts[block]
        own = self._within[start : start + partition.sizes[block]]
        self.high[block] = own.max() + self._offsets[block]
        self.low[block] = own.min() + self._offsets[block]

    def _add_all(self, values: NDArray[np.int64]) -> None:
        partition = self.partition
        self._within += values[partition.order]
        self.high = np.maximum.reduceat(self._within, partition.starts) + self._offsets
        self.low = np.minimum.reduceat(self._within, partition.starts) + self._offsets

    def _refine(self, finer: Partition) -> None:
        values = self.values()
        self._within = values[finer.order]
        self._set(finer, np.zeros(finer.sizes.size, dtype=np.int64))
        self.high = np.maximum.reduceat(self._within, finer.starts)
        self.low = np.minimum.reduceat(self._within, finer.starts)

    def shift(self, amount: int) -> None:
        """Adds one number to every cell; scores that are compared must be shifted alike."""
        self._offsets += amount
        self.high += amount
        self.low += amount
        self.top += amount
        self.bottom += amount

    def extremes_on(self, partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The largest and the smallest score of every block of another partition, each of shape (B,)."""
        if partition is self.partition:
            return self.high, self.low
        if partition.sizes.size == 1:
            return self.high.max(keepdims=True), self.low.min(keepdims=True)
        if self._coarse is None or self._coarse[0] is not partition:
            owner = partition.labels[self.partition.members]
            if self.partition.refined(partition) is not self.partition:
                return partition.extremes(self.values())
            order = np.argsort(owner, kind="stable")
            starts = np.searchsorted(owner[order], np.arange(partition.sizes.size))
            self._coarse = partition, order, starts
        _, order, starts = self._coarse
        return np.maximum.reduceat(self.high[order], starts), np.minimum.reduceat(self.low[order], starts)
