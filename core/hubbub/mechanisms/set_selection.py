"""Set selection: which of V items a device has, any number of them, by one random subset for the whole set.

A device's set x is filled up to L cells with dummies, which nobody asks about: so every x is one of the
L-subsets of V' = V + L cells, and the last item is "missing". A report is a k-subset T of the cells. With
C1 of the C(V', k) subsets meeting x, and C0 = C(V'-L, k) not, a coin of m/2^63 decides whether T meets x,
and T is uniform among those that do, or do not (PrivSet, Wang et al. 2018, with k tuned). So

    e^eps = m C0 / ((2^63 - m) C1)

between any two sets that differ, and with h = m/2^63 a cell is in T with probability

    p = h C(V'-1, k-1) / C1                                                      if it is in x,
    q = h (C(V'-1, k-1) - C(V'-1-L, k-1)) / C1 + (1 - h) C(V'-1-L, k-1) / C0     if it is not.

A draw never tries again until T meets x, which would tell by its time whether it does. It picks the number of
cells in common by exact integers, then as many of x and the rest of the others (Floyd), in k steps always.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.sets import WORD, Level, SetChannel, Sets, sizes_of
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.picks import Weighted, passed_ends
from hubbub.numeric.randomness import Source, batch_bytes
from hubbub.numeric.subsets import ReadAhead, subsets

COIN: Final = 2**63
"""The draws of the coin that decides whether a report meets the device's set."""

MAX_CELLS: Final = 2**13
"""The most items and dummies: their binomials have as many bits, and a report 1,024 bytes."""

MAX_MOST: Final = 2**8
"""The most items of one device that count: with more, asking about single items is far better."""

_WORSE: Final = 2.0
"""A size of so many times the least error found is past it: the error rises from there on."""


class SetSelection(SetChannel):
    """A channel from sets of items to k-subsets of the items and the dummies.

    An input is the sum of 2^i over the items i of a set: at least one, and at most L, since a device without
    any item has dummies alone and is 0. Arrays are packed sets, shape (n, ceil(V/8)), uint8.

    Attributes:
        inputs: V, with "missing", which is last.
        most: L.
        size: k.
        held: m.
    """

    kind = "set"
    description = (
        "The device sends a random set of items, more often one with some of yours in it than any other."
    )
    tells_inputs = False

    def __init__(self, inputs: int, most: int, size: int, held: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If the integers do not make a channel that tells sets apart.
        """
        if not 1 <= most <= MAX_MOST or not inputs + most <= MAX_CELLS:
            raise ParameterError(
                f"a set must have 1 to {MAX_MOST} items that count, and with all items at most {MAX_CELLS}, "
                f"got {most} and {inputs}"
            )
        if not 1 <= size <= inputs:
            raise ParameterError(f"a report about sets must have 1 to {inputs} cells, got {size}")
        super().__init__(inputs, inputs + most)
        self.most, self.size, self.held = most, size, held
        self._out = math.comb(inputs, size)
        self._in = math.comb(inputs + most, size) - self._out
        if not 1 <= held < COIN or held * self._out <= (COIN - held) * self._in:
            raise ParameterError(
                f"a report about sets must favour those that meet the device's and never be sure, got {held}"
            )
        weights = [most * math.comb(inputs, size - 1)]
        for hits in range(1, min(most, size)):
            # C(L, j+1) / C(L, j) and C(V, k-j-1) / C(V, k-j), exact together.
            weights.append(
                weights[-1] * (most - hits) * (size - hits) // ((hits + 1) * (inputs - size + hits + 1))
            )
        self._hits = Weighted(weights)
        total = self._hits.ends[-1]
        self._ends = [(end << 64) // total for end in self._hits.ends[:-1]]

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        return log_above(*self.odds)

    @property
    def odds(self) -> tuple[int, int]:
        """The ratio of a report's probabilities for a set that it meets and one that it does not, exactly."""
        return self.held * self._out, (COIN - self.held) * self._in

    @cached_property
    def p(self) -> Fraction:
        """The probability that a report has an item that the device has."""
        return Fraction(self.held, COIN) * Fraction(math.comb(self.bins - 1, self.size - 1), self._in)

    @cached_property
    def q(self) -> Fraction:
        """The probability that a report has an item that the device has not."""
        missed = math.comb(self.inputs - 1, self.size - 1)
        hit = Fraction(self.held, COIN)
        meeting = Fraction(math.comb(self.bins - 1, self.size - 1) - missed, self._in)
        return hit * meeting + (1 - hit) * Fraction(missed, self._out)

    def column(self, symbol: bytes | Sets) -> NDArray[np.int64]:
        """Return two weights, for the sets of one item each: the larger where the report meets the set."""
        cells = self._members(symbol)
        met = cells[: self.inputs] | cells[self.inputs : self.bins - 1].any()
        return np.where(met, np.int64(2**62), np.int64(2**62 * self.odds[1] // self.odds[0]))

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:
        """Return the log-probability of a report for the sets of one item each, shape (V,)."""
        met = self.column(symbol) == 2**62
        inside = math.log(Fraction(self.held, COIN)) - math.log(self._in)
        outside = math.log(Fraction(COIN - self.held, COIN)) - math.log(self._out)
        return np.where(met, inside, outside)

    def divergence(self) -> NDArray[np.float64]:
        """Return D of the sets of one item each, shape (V, V)."""
        self._refuse_above(self.inputs, "divergence")
        matrix = np.full((self.inputs, self.inputs), self.epsilon)
        np.fill_diagonal(matrix, 0.0)
        return matrix

    def category_rule(self, category_of: NDArray[np.intp]) -> str:
        """Return that no categories fit: an input is a set, and a filter would take it for an item."""
        del category_of
        return "must be none where the channel is of sets"

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return 1

    def blocks(self) -> BlockDivergence:
        """Return one block: some report meets the one and not the other of any two sets."""
        return BlockDivergence.constant(self.inputs, fixed_up(*self.odds))

    @property
    def levels(self) -> tuple[Level, ...]:
        """None: the items of a set do not partition devices."""
        return ()

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Return nothing: there are no levels."""
        del counts, n
        return []

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected support counts of one report, shape (V + L,).

        Args:
            frequencies: The share of the devices that has each item, shape (V,), 0 to 1, L in all at most.
        """
        p, q = float(self.p), float(self.q)
        dummies = np.full(self.most, max(self.most - float(frequencies.sum()), 0.0) / self.most)
        return q + (p - q) * np.concatenate([frequencies, dummies])

    def sends(self, members: int) -> bool:  # noqa: D102 - inherited
        return members.bit_count() == self.size

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        return int(counts.sum()) == self.size * n

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        valid: NDArray[np.bool_] = self._spare_is_zero(symbols) & (sizes_of(symbols) == self.size)
        return valid

    def draw(self, value: int, source: Source) -> bytes:
        """Return one report, packed, in as many steps whether it meets the set or not."""
        bits = ReadAhead(source, 16 + 4 * self.size)
        number = int.from_bytes(bits.token_bytes(8), "little")
        hits = bisect_right(self._ends, number)
        if hits and self._ends[hits - 1] == number:
            hits = passed_ends(self._hits.ends[:-1], self._hits.ends[-1], number, bits)
        hits = (1 + hits) * (int.from_bytes(bits.token_bytes(8), "little") >> 1 < self.held)
        padded = value | (1 << self.inputs + self.most - value.bit_count()) - (1 << self.inputs)
        own = [cell for cell in range(self.bins) if padded >> cell & 1]
        cells = own + [cell for cell in range(self.bins) if not padded >> cell & 1]
        chosen: set[int] = set()
        for step in range(self.size):
            # Of the first L places `hits`, of the V others the rest; one that is in brings the last.
            start, bound = (
                (0, self.most - hits + step + 1)
                if step < hits
                else (self.most, self.inputs - self.size + step + 1)
            )
            place = start + _below(bound, bits)
            chosen.add(start + bound - 1 if place in chosen else place)
        return sum(1 << cells[place] for place in chosen).to_bytes(self.width, "little")

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:
        """Return one report per set, packed, for packed sets of items, shape (n, ceil(V/8))."""
        padded = np.zeros((len(values), self.bins), dtype=np.bool_)
        padded[:, : self.inputs] = np.unpackbits(
            values.astype(np.uint8), axis=1, count=self.inputs, bitorder="little"
        )
        spare = self.most - padded.sum(axis=1)
        padded[:, self.inputs :] = np.arange(self.most) < spare[:, None]
        coins = np.frombuffer(batch_bytes(8 * len(values), source), dtype="<u8") >> np.uint64(1)
        hits = self._hits.many(len(values), source).astype(np.int64) + 1
        hits *= coins < np.uint64(self.held)
        found = np.empty((len(values), self.bins), dtype=np.uint8)
        for count in np.unique(hits).tolist():
            rows = np.flatnonzero(hits == count)
            inside, cells = padded[rows], np.empty((rows.size, self.bins), dtype=np.uint8)
            cells[inside] = subsets(self.most, count, rows.size, source).ravel()
            cells[~inside] = subsets(self.inputs, self.size - count, rows.size, source).ravel()
            found[rows] = cells
        return np.packbits(found, axis=1, bitorder="little")

    def _many(self, array: NDArray[np.integer[Any]], source: Source) -> Sets:
        parts = [
            self.draw_many(array[at : at + self.chunk], source) for at in range(0, len(array), self.chunk)
        ]
        return np.concatenate(parts) if parts else np.empty((0, self.width), dtype=np.uint8)

    def _checked_values(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int]
    ) -> NDArray[np.integer[Any]]:
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != (self.inputs + 7) // 8 or array.dtype != np.uint8:
            raise ParameterError(f"sets must be packed bytes of {self.inputs} items, got {array.dtype}")
        spare = 8 * array.shape[1] - self.inputs
        if len(array) and (sizes_of(array).max() > self.most or array[:, -1].max() >> (8 - spare)):
            raise self._out_of_range()
        return array

    def _checked_input(self, value: object) -> int:
        if type(value) is not int or not 0 <= value < 1 << self.inputs or value.bit_count() > self.most:
            raise self._out_of_range()
        return value

    def _out_of_range(self) -> ParameterError:
        # Never the set itself: it may be a person's, and messages end in logs.
        return ParameterError(
            f"a set must have at most {self.most} of {self.inputs} items, got another value"
        )

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "most": self.most,
            "size": self.size,
            "held": self.held,
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "most", "size", "held")
        return cls(*(spec_int(spec, key) for key in ("inputs", "most", "size", "held")))


def set_selection(inputs: int, *, most: int, epsilon: float, size: int | None = None) -> SetSelection:
    """Return set selection among V items.

    Args:
        inputs: V, "missing" counted.
        most: L, the most items of one device that count.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        size: k. None: the one with the least variance of an item that hardly anyone has.

    Raises:
        ParameterError: If a parameter is out of range, or no coin expresses the epsilon.

    >>> set_selection(200, most=8, epsilon=1.0).size
    6
    """
    ceiling = exp_below(checked_epsilon(epsilon) - HEADROOM)
    if not 1 <= most < inputs or inputs + most > MAX_CELLS:
        raise ParameterError(
            f"most must be 1 to {inputs - 1}, and with all items at most {MAX_CELLS}, got {most} and {inputs}"
        )
    size = _best_size(inputs + most, most, float(ceiling)) if size is None else size
    if not 1 <= size <= inputs:
        raise ParameterError(f"size must be 1 to {inputs}, got {size}")
    out = math.comb(inputs, size)
    met = math.comb(inputs + most, size) - out
    held = math.floor(COIN * ceiling * met / (out + ceiling * met))
    if held * out < (COIN - held) * met * (1 + (ceiling - 1) * Fraction(99, 100)):
        raise ParameterError(f"no coin of 63 bits can express epsilon {epsilon:g} for {size} items a report")
    return SetSelection(inputs, most, size, held)


def item_variance(cells: int, most: int, size: int, ratio: float) -> float:
    """Return n times the variance of the share of an item that nobody has.

    Args:
        cells: V', the items and the dummies.
        most: L.
        size: k.
        ratio: e^epsilon.
    """
    h = 1.0 - math.prod((cells - size - i) / (cells - i) for i in range(most))
    h1 = 1.0 - math.prod((cells - size - i) / (cells - 1 - i) for i in range(most))
    mean = cells * (1.0 + (ratio - 1.0) * h)
    p, q = ratio * size / mean, size * (1.0 + (ratio - 1.0) * h1) / mean
    return q * (1.0 - q) / (p - q) ** 2


def _best_size(cells: int, most: int, ratio: float) -> int:
    best, least = 1, math.inf
    for size in range(1, cells - most + 1):
        error = item_variance(cells, most, size, ratio)
        if error < least:
            best, least = size, error
        elif error > _WORSE * least:
            break
    return best


def _below(bound: int, bits: ReadAhead) -> int:
    """Return a uniform integer below a bound, from words of 32 bits."""
    limit = WORD - WORD % bound
    word = int.from_bytes(bits.token_bytes(4), "little")
    while word >= limit:
        word = int.from_bytes(bits.token_bytes(4), "little")
    return word % bound
