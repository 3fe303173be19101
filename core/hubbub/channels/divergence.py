"""The max-divergence of a channel as integers: whole units of 2^-40 nats, rounded up, in blocks of inputs.

A channel's divergence is D(x, x') = max_y ln(w[x, y] / w[x', y]). Structured channels have few distinct
values of it: GRR has one, PB-GRR one within each category and one per pair of categories. So it is kept by
blocks, and a domain of 100,000 values costs one label each instead of 10^10 logarithms.

Everything here is an integer number of units. Integers add without rounding, give the same result on every
machine and in every order, and leave one place where a real number is rounded: the logarithm, whose direction
is stated and proved in `fixed_up` and `log_floor`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import cached_property, lru_cache
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.partition import Partition
from hubbub.errors import ParameterError

UNITS_PER_NAT: Final = 1 << 40
"""The resolution: fine enough that a million queries round to 10^-6 nats, coarse enough for sums in int64."""

UNIT: Final = 1.0 / UNITS_PER_NAT
"""One unit in nats, exactly representable."""

MAX_ENTRY: Final = 64 * UNITS_PER_NAT
"""No log-ratio of two weights below 2^63 reaches 64 nats (ln 2^63 = 43.7); larger entries are a bug."""

MAX_BLOCKS: Final = 1024
"""The most blocks kept apart, 8 MiB of pairs. Beyond it the largest value stands for all: sound, coarser."""

_MANY_BLOCKS: Final = 24
"""From here on a row of equal entries is worth noticing: pairs of blocks cost more than a few passes."""

_LOG_ERROR: Final = 2.0**-44
"""Generous bound on the error of float64 ln(w), w < 2^63: the result is below 44, where one ulp is 2^-47."""

_LONG_BITS: Final = 63
"""Bits of a long float's fraction that hold every weight: x86 has so many, some machines 52 only."""

_LONG_ERROR: Final = 2.0**-52
"""Bound on the error of ln(w) in a long float, whose ulp is 2^-58 there."""


def fixed_up(numerator: int, denominator: int) -> int:
    """Return the least whole number of units that is not below ln(numerator / denominator).

    The decimal logarithm is correctly rounded, so the truth lies within a known distance of it; precision is
    raised until both ends of that interval have the same ceiling. The loop ends, because the logarithm of a
    rational other than 1 is irrational, so it is never a whole number of units.

    Args:
        numerator: Any integer >= 1.
        denominator: Any integer >= 1.

    Returns:
        Units of 2^-40 nats; negative when the ratio is below one.

    Raises:
        ParameterError: One of the two is below 1.

    >>> fixed_up(1, 1), fixed_up(3, 1) * UNIT - 1.0986122886681098 < 2 * UNIT
    (0, True)
    """
    return _log_units(int(numerator), int(denominator), ROUND_CEILING)


def log_floor(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return floor(2^40 ln w) of every weight, exactly.

    A float64 logarithm decides wherever its error cannot matter; the weights whose logarithm is within 2^-44
    nats of a whole unit, an eighth, by a longer float, and what is too close for that one in decimal. The
    result is therefore a function of the integers alone, and a ledger that is replayed on another machine
    rebuilds the same state.

    Args:
        weights: Any shape, int64, >= 1.

    Returns:
        Same shape, int64, units.
    """
    scaled = np.log(weights)
    scaled *= UNITS_PER_NAT
    result = np.floor(scaled)
    margin = _LOG_ERROR * UNITS_PER_NAT
    scaled -= result
    scaled -= 0.5
    np.abs(scaled, out=scaled)
    floors = result.astype(np.int64)
    if scaled.size and scaled.max() >= 0.5 - margin:
        doubtful = scaled >= 0.5 - margin
        # a structured column repeats a few weights, a hostile one none
        differing, which = np.unique(weights[doubtful], return_inverse=True)
        floors[doubtful] = _decided(differing)[which]
    return floors


def _decided(weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `log_floor` of weights that float64 leaves open, a hundredth of them by decimal at most.

    A longer float, where the machine has one, decides nearly all: a hostile grid has a million of them.
    """
    if np.finfo(np.longdouble).nmant < _LONG_BITS:
        return np.array([_log_units(weight, 1, ROUND_FLOOR) for weight in weights.tolist()], dtype=np.int64)
    scaled = np.log(weights.astype(np.longdouble)) * UNITS_PER_NAT
    floors = np.floor(scaled)
    apart = np.abs(scaled - floors - 0.5) < 0.5 - _LONG_ERROR * UNITS_PER_NAT
    decided: NDArray[np.int64] = floors.astype(np.int64)
    for place in np.flatnonzero(~apart).tolist():
        decided[place] = _log_units(int(weights[place]), 1, ROUND_FLOOR)
    return decided


@lru_cache(maxsize=1 << 12)
def log_floor_of(weight: int) -> int:
    """Return floor(2^40 ln w) of one weight, exactly; see `log_floor`."""
    return _log_units(int(weight), 1, ROUND_FLOOR)


@lru_cache(maxsize=1 << 14)
def _log_units(numerator: int, denominator: int, rounding: str) -> int:
    if numerator < 1 or denominator < 1:
        raise ParameterError(f"a ratio of weights must have both >= 1, got {numerator}/{denominator}")
    if numerator == denominator:
        return 0
    digits = 28
    while True:
        context = Context(prec=digits)
        top, bottom = Decimal(numerator).ln(context), Decimal(denominator).ln(context)
        value = context.multiply(context.subtract(top, bottom), Decimal(UNITS_PER_NAT))
        # Two logarithms, one difference, one product, each within half an ulp of its own size.
        size = max(abs(top), abs(bottom), Decimal(1)) * UNITS_PER_NAT
        error = context.multiply(size, Decimal(10) ** (3 - digits))
        low = (value - error).to_integral_value(rounding)
        if low == (value + error).to_integral_value(rounding):
            return int(low)
        digits *= 2


def _largest_of_two(high: NDArray[np.int64], low: NDArray[np.int64]) -> int:
    """Return the largest high[i] - low[j] with i != j, of two or more."""
    top, bottom = int(high.argmax()), int(low.argmin())
    if top != bottom:
        return int(high[top] - low[bottom])
    second = np.delete(high, top).max() - low[bottom]
    return int(max(second, high[top] - np.delete(low, bottom).min()))


@dataclass(frozen=True, eq=False)
class BlockDivergence:
    """The divergence D(x, x') for all pairs of inputs, by blocks, in units rounded up.

    D(x, x') is 0 if x == x', `within[b]` for two different inputs of block b, and `across[b, b']` for inputs
    of blocks b and b'. It is not symmetric in general. The arrays given are copied and set read-only.

    Attributes:
        labels: Block of each input, shape (K,), intp, 0..B-1.
        across: From block to block, shape (B, B), int64, 0..MAX_ENTRY. Its diagonal is ignored on input;
            afterwards it holds `within`, so that across[labels[x], labels[x']] is D for every x != x'.
        within: Inside each block, shape (B,), int64; set to 0 for blocks of one input.

    Blocks without inputs are dropped, and the others renumbered.

    Raises:
        ParameterError: Shapes, labels or entries break these rules.
    """

    labels: NDArray[np.intp]
    across: NDArray[np.int64]
    within: NDArray[np.int64]
    partition: Partition = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = np.array(self.labels, dtype=np.intp)
        across = np.array(self.across, dtype=np.int64)
        within = np.array(self.within, dtype=np.int64)
        blocks = within.size
        if labels.ndim != 1 or labels.size == 0:
            raise ParameterError(f"divergence labels must be one row of inputs, got shape {labels.shape}")
        if within.shape != (blocks,) or across.shape != (blocks, blocks):
            raise ParameterError(
                f"divergence blocks must be (B, B) and (B,), got {across.shape} and {within.shape}"
            )
        if labels.min() < 0 or labels.max() >= blocks:
            raise ParameterError(f"divergence labels must be in 0..{blocks - 1}, got {labels.max()}")
        sizes = np.bincount(labels, minlength=blocks)
        within[sizes < 2] = 0
        np.fill_diagonal(across, within)
        if not sizes.all():
            kept = np.flatnonzero(sizes)
            labels, across = (np.cumsum(sizes > 0) - 1)[labels], across[np.ix_(kept, kept)]
        if across.min() < 0 or across.max() > MAX_ENTRY:
            raise ParameterError(
                f"divergence entries must be in 0..{MAX_ENTRY} fixed-point units, got {across.max()}"
            )
        self._hold(Partition(labels, sizes[sizes > 0]), across)

    def _hold(self, partition: Partition, across: NDArray[np.int64]) -> None:
        within = across.diagonal().copy()
        across.setflags(write=False)
        within.setflags(write=False)
        held = {"labels": partition.labels, "across": across, "within": within, "partition": partition}
        for name, value in held.items():
            object.__setattr__(self, name, value)

    @classmethod
    def _trusted(cls, partition: Partition, across: NDArray[np.int64]) -> BlockDivergence:
        """Make a divergence from arrays of this module: not checked, not copied.

        Diagonals of lone inputs 0.
        """
        made = object.__new__(cls)
        made._hold(partition, across)
        return made

    @classmethod
    def constant(cls, inputs: int, units: int) -> BlockDivergence:
        """Return one value for every pair of different inputs: GRR, or the upper bound of any channel.

        Args:
            inputs: K, >= 1.
            units: D(x, x') for x != x', in units, rounded up.
        """
        zero = np.zeros((1, 1), dtype=np.int64)
        return cls(np.zeros(inputs, dtype=np.intp), zero, np.array([units], dtype=np.int64))

    @classmethod
    def from_weights(cls, weights: NDArray[np.int64]) -> BlockDivergence:
        """Return the divergence of an integer channel: one block per distinct row, at most MAX_BLOCKS.

        With lambda = floor(2^40 ln w) of both weights, the true log-ratio in units is below their difference
        plus one, so max_y (lambda[x, y] - lambda[x', y]) + 1 is an upper bound, at most two units above it.

        Args:
            weights: Shape (K, M), int64, >= 1, every row with the same total.
        """
        matrix = np.ascontiguousarray(weights, dtype=np.int64)
        numbers: dict[bytes, int] = {}  # sorting rows would look at every symbol as a field of its own
        labels = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in matrix], dtype=np.intp)
        logs = log_floor(matrix[np.unique(labels, return_index=True)[1]])
        if len(logs) > MAX_BLOCKS:
            spread = logs.max(axis=0) - logs.min(axis=0)
            return cls.constant(labels.size, int(spread.max()) + 1)
        across = np.ones((len(logs), len(logs)), dtype=np.int64)
        spare = np.empty_like(logs)
        for row in range(len(logs) - 1):  # one subtraction tells a pair apart in both directions
            apart = np.subtract(logs[row + 1 :], logs[row], out=spare[row + 1 :])
            across[row + 1 :, row] += apart.max(axis=1)
            across[row, row + 1 :] -= apart.min(axis=1)
        return cls(labels, across, np.zeros(len(logs), dtype=np.int64))

    @property
    def inputs(self) -> int:
        """K, how many inputs the labels cover."""
        return self.labels.size

    @property
    def blocks(self) -> int:
        """B, how many blocks there are."""
        return self.within.size

    @cached_property
    def largest(self) -> int:
        """The largest D(x, x'), in units."""
        return int(self.across.max())

    def between(self, x: int, other: int) -> int:
        """Return D(x, other) in units."""
        return 0 if x == other else int(self.across[self.labels[x], self.labels[other]])

    def matrix(self) -> NDArray[np.int64]:
        """Return D for all pairs, shape (K, K), int64, in units; for small K only."""
        full: NDArray[np.int64] = self.across[np.ix_(self.labels, self.labels)]
        np.fill_diagonal(full, 0)
        return full

    def worst(self, scores: NDArray[np.int64] | None = None) -> int:
        """Return the largest scores[x] - scores[x'] + D(x, x') over all pairs, exactly; never below 0.

        Inside a block D is one number, so only the block's extreme scores matter. Should one input hold both,
        the pair x = x' is read with `within` instead of 0: then all scores of the block are equal, and if it
        has two inputs, they are a true pair with that value; if it has one, `within` is 0.

        Args:
            scores: Shape (K,), int64, units. None: all equal.

        Returns:
            Units.
        """
        if scores is None:
            return self.largest
        if self.blocks == 1:
            return int(scores.max()) - int(scores.min()) + self.largest
        highest, lowest = self.partition.extremes(scores)
        return self.worst_of(highest, lowest, int(highest.argmax()), int(lowest.argmin()))

    def worst_of(self, highest: NDArray[np.int64], lowest: NDArray[np.int64], best: int, least: int) -> int:
        """Return `worst` from the extremes of every block.

        Args:
            highest: The largest score of each block, shape (B,).
            lowest: The smallest, shape (B,).
            best: A block that has the largest score of all.
            least: A block that has the smallest.

        Returns:
            Units.
        """
        if self.across.item(best, least) == self.largest:  # no pair has more of any of the three
            return highest.item(best) - lowest.item(least) + self.largest
        if self._by_row is None:
            return int(np.maximum.reduce(self.across + (highest[:, None] - lowest), axis=None))
        # To any other block a row has one number: of all pairs of blocks the best row and the least score win
        # unless they are one block. Inside a block `within` is no larger, so such a pair beats those too.
        rows = highest + self._by_row
        best, least = int(rows.argmax()), int(lowest.argmin())
        if best != least:
            return int(rows[best] - lowest[least])
        inside = int((highest + self.within - lowest).max())
        other = int(np.delete(rows, best).max() - lowest[least])
        return max(inside, other, int(rows[best] - np.delete(lowest, least).min()))

    @cached_property
    def _by_row(self) -> NDArray[np.int64] | None:
        """The largest entry of each row in all other columns, shape (B,), >= within, or None."""
        if self.blocks < _MANY_BLOCKS:
            return None
        first = self.across[:, 0].copy()
        first[0] = self.across[0, 1]
        same = self.across == first[:, None]
        np.fill_diagonal(same, val=True)
        return first if same.all() and (self.within <= first).all() else None

    def worst_between(self, upper: NDArray[np.int64], lower: NDArray[np.int64]) -> int:
        """Return the largest upper[x] - lower[x'] + D(x, x') over all pairs, x = x' included, exactly.

        With two different scores a single input has a difference of its own, and D(x, x) = 0 is not `within`.

        Args:
            upper: Shape (K,), int64, units.
            lower: Shape (K,), int64, nowhere above `upper`.
        """
        part = self.partition
        high, low = upper[part.order], lower[part.order]
        across = self.across + (
            np.maximum.reduceat(high, part.starts)[:, None] - np.minimum.reduceat(low, part.starts)
        )
        for block in np.flatnonzero(self.within).tolist():
            own = slice(part.starts[block], part.starts[block] + part.sizes[block])
            across[block, block] = self.within[block] + _largest_of_two(high[own], low[own])
        return max(int(across.max()), int((upper - lower).max()))

    def __add__(self, other: BlockDivergence) -> BlockDivergence:
        """Return the sum for every pair, exactly, on the common refinement of both partitions."""
        return self._sum(other, self._common(other))

    def plus(self, other: BlockDivergence) -> tuple[BlockDivergence, BlockDivergence]:
        """Return the sum, and the summand as it was added: coarser if the sum had over MAX_BLOCKS blocks.

        Args:
            other: Of the same inputs.

        Returns:
            The sum of this and the second; the second, `other` or above it in every pair.
        """
        common = self._common(other)
        if common.sizes.size > max(MAX_BLOCKS, self.blocks):
            other = other.coarsened()
            common = self.partition
        return self._sum(other, common), other

    def without(self, part: BlockDivergence) -> BlockDivergence:
        """Return what remains of a sum without one of its parts, exactly, on the partition of the sum.

        Args:
            part: A divergence that was added into this one: every block of the sum lies in one block of it.
        """
        return BlockDivergence._trusted(self.partition, self.across - part._on(self.partition))

    def _common(self, other: BlockDivergence) -> Partition:
        if self.inputs != other.inputs:
            raise ParameterError(
                f"two divergences must cover the same inputs to add, got {self.inputs} and {other.inputs}"
            )
        return self.partition.refined(other.partition)

    def _sum(self, other: BlockDivergence, common: Partition) -> BlockDivergence:
        return BlockDivergence._trusted(common, self._on(common) + other._on(common))

    def _on(self, finer: Partition) -> NDArray[np.int64]:
        """Return `across` over the blocks of a partition each of whose blocks lies in one of this one's."""
        if finer is self.partition:
            return self.across
        own = self.labels[finer.members]
        across: NDArray[np.int64] = self.across[own[:, None], own]
        np.fill_diagonal(across, across.diagonal() * (finer.sizes > 1))
        return across

    def coarsened(self) -> BlockDivergence:
        """Return one block with the largest value: never below the truth, and as small as GRR's."""
        return BlockDivergence.constant(self.inputs, self.largest)

    def pulled_back(self, mapping: NDArray[np.integer]) -> BlockDivergence:
        """Return the divergence over a domain whose values are mapped to these inputs.

        D(d, d') = D(g(d), g(d')), which is 0 for two values with the same input. Where several values share
        an input of a block with `within` > 0, each such input becomes a block of its own. Should that take
        more than MAX_BLOCKS, the block stays whole and such pairs count `within`, which is above the truth.

        Args:
            mapping: g, the input of every domain value, shape (D,), integers in 0..K-1.

        Returns:
            The divergence with D inputs.

        Raises:
            ParameterError: The mapping is not one row of inputs of this channel.
        """
        mapping = np.asarray(mapping)
        if mapping.ndim != 1 or mapping.size == 0 or not np.issubdtype(mapping.dtype, np.integer):
            raise ParameterError(
                f"a mapping must be one row of integers, got {mapping.dtype} of shape {mapping.shape}"
            )
        if mapping.min() < 0 or mapping.max() >= self.inputs:
            raise ParameterError(f"a mapping must give inputs in 0..{self.inputs - 1}, got another one")
        mapping = mapping.astype(np.intp)
        values = np.bincount(mapping, minlength=self.inputs)
        alone = np.flatnonzero((values > 1) & (self.within[self.labels] > 0))
        if alone.size == 0 or self.blocks + alone.size > MAX_BLOCKS:
            return BlockDivergence(self.labels[mapping], self.across, self.within)
        owner = np.concatenate([np.arange(self.blocks), self.labels[alone]])
        labels = self.labels.copy()
        labels[alone] = self.blocks + np.arange(alone.size)
        within = np.concatenate([self.within, np.zeros(alone.size, dtype=np.int64)])
        return BlockDivergence(labels[mapping], self.across[np.ix_(owner, owner)], within)


Detail = Literal["pairs", "largest"]
"""The detail in which a query's divergence is kept: every pair of values, or the largest for all."""
