"""The recorded log-likelihood of one component, with the extremes of every block kept up to date."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence
from hubbub.channels.partition import Partition
from hubbub.channels.symbols import Symbol
from hubbub.filter.query import FEW, Model, Places

TOP: Final = 1 << 60
"""A bound that sums are shifted down from before they reach it: only their differences matter, which are
small."""


class LogLikelihoodSum:
    """A sum of log-likelihoods in whole units, up to a shift that is common to all cells.

    A structured channel adds one number to a few whole blocks and another to one cell. So cells are kept
    block by block, each block with an offset and its two extremes; a step then costs the blocks it changes,
    whatever the number of cells and of past answers.

    Attributes:
        partition: The blocks.
        high: The largest cell of each block, shape (B,), int64.
        low: The smallest cell of each block, shape (B,), int64.
        top: The largest of all.
        bottom: The smallest of all.
    """

    def __init__(self, partition: Partition) -> None:
        """Start with zero in every cell.

        Args:
            partition: Blocks to begin with; they are refined as answers need it.
        """
        self._set(partition.pieces)

    def _set(self, partition: Partition) -> None:
        """Set every cell of these blocks to zero."""
        self.partition = partition
        self._within = np.zeros(partition.labels.size, dtype=np.int64)
        self._offsets = np.zeros(partition.sizes.size, dtype=np.int64)
        self.high, self.low = self._offsets.copy(), self._offsets.copy()
        self._coarse: tuple[Partition, NDArray[np.intp], NDArray[np.intp]] | None = None
        self._view()
        self._look()

    def _view(self) -> None:
        """Make the views through which one number is read or written twice as fast."""
        self._cell, self._offset = self._within.data, self._offsets.data
        self._high, self._low = self.high.data, self.low.data

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if not isinstance(value, memoryview)}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._view()

    @classmethod
    def of(cls, partition: Partition, values: NDArray[np.int64]) -> LogLikelihoodSum:
        """Return a sum that is already known, from its cells, shape (K,), int64."""
        made = cls(partition)
        made._add_all(values)
        return made

    def values(self) -> NDArray[np.int64]:
        """Return the sum of every cell, shape (K,), int64; a new array."""
        values = np.empty_like(self._within)
        values[self.partition.order] = self._within + np.repeat(self._offsets, self.partition.sizes)
        return values

    def add(self, model: Model, symbol: Symbol, *, times: int = 1) -> None:
        """Add the log-likelihood of one answer, or take it away again with times = -1.

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
            return
        (blocks, cells, lift, extra), own = steps
        kept = self._add_blocks(blocks, times * lift)
        if len(cells):
            kept &= self._add_cells(cells, times * lift)
        kept &= self._add_cells(own, times * extra)
        if not kept:
            self._look()

    def _look(self) -> None:
        """Find `top` and `bottom`, and a block of each."""
        self._best, self._least = int(self.high.argmax()), int(self.low.argmin())
        self.top, self.bottom = self._high[self._best], self._low[self._least]

    def _move(self, block: int, high: int, low: int) -> bool:
        """Set the extremes of one block; False if `top` or `bottom` fell away and have to be looked for."""
        found = True
        if high >= self.top:
            self.top, self._best = high, block
        elif self._high[block] == self.top:
            found = False
        if low <= self.bottom:
            self.bottom, self._least = low, block
        elif self._low[block] == self.bottom:
            found = False
        self._high[block], self._low[block] = high, low
        return found

    def _add_blocks(self, blocks: Places, lift: int) -> bool:
        if lift == 0:
            return True
        if len(blocks) > FEW:
            for each in (self._offsets, self.high, self.low):
                each[blocks] += lift
            return False
        kept = True
        for block in blocks:
            self._offset[block] += lift
            kept &= self._move(block, self._high[block] + lift, self._low[block] + lift)
        return kept

    def _add_cells(self, cells: Places, extra: int) -> bool:
        if extra == 0:
            return True
        partition = self.partition
        if len(cells) > FEW:
            self._within[partition.rank[cells]] += extra
            for block in set(partition.labels[cells].tolist()):
                own = self._own(block)
                self.high[block] = own.max() + self._offsets[block]
                self.low[block] = own.min() + self._offsets[block]
            return False
        kept = True
        for cell in cells:
            block, place = partition.labels.item(cell), partition.rank.item(cell)
            offset, before = self._offset[block], self._cell[place]
            after = self._cell[place] = before + extra
            high, low = self._high[block], self._low[block]
            if extra > 0:
                if low == before + offset:  # it may have been the only one there
                    low = int(np.minimum.reduce(self._own(block))) + offset
                high = max(high, after + offset)
            else:
                if high == before + offset:
                    high = int(np.maximum.reduce(self._own(block))) + offset
                low = min(low, after + offset)
            kept &= self._move(block, high, low)
        return kept

    def _own(self, block: int) -> NDArray[np.int64]:
        start = self.partition.starts[block]
        return self._within[start : start + self.partition.sizes[block]]

    def _add_all(self, values: NDArray[np.int64]) -> None:
        partition = self.partition
        self._within += values[partition.order]
        np.add(np.maximum.reduceat(self._within, partition.starts), self._offsets, out=self.high)
        np.add(np.minimum.reduceat(self._within, partition.starts), self._offsets, out=self.low)
        self._look()

    def _refine(self, finer: Partition) -> None:
        values = self.values()
        self._set(finer)
        self._add_all(values)

    def shift(self, amount: int) -> None:
        """Add one number to every cell; sums that are compared must be shifted alike."""
        self._offsets += amount
        self.high += amount
        self.low += amount
        self.top += amount
        self.bottom += amount

    def worst_with(self, total: BlockDivergence, lower: LogLikelihoodSum) -> int:
        """Return the largest of this(x) - lower(x') + total(x, x') over all pairs of cells, units.

        Args:
            total: Over the same cells.
            lower: A sum that is nowhere above this one; this one itself where nothing is closed.
        """
        if lower is not self:
            return total.worst_between(self.values(), lower.values())
        if total.partition is not self.partition:
            if total.blocks == 1:
                return self.top - self.bottom + total.largest
            highest, lowest = self.extremes_on(total.partition)
            return total.worst_of(highest, lowest, int(highest.argmax()), int(lowest.argmin()))
        if total.across.item(self._best, self._least) == total.largest:  # no pair has more of any of these
            return self.top - self.bottom + total.largest
        return total.worst_of(self.high, self.low, self._best, self._least)

    def extremes_on(self, partition: Partition) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the largest and the smallest cell of every block of a partition, each of shape (B,)."""
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
