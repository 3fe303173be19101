"""Channels with finitely many symbols 0..M-1: rows of integers with one common total.

For inputs x = 0..K-1 and outputs y = 0..M-1 there are integers w[x, y] >= 1 whose rows all sum to T; the
probability of sending y for x is w[x, y]/T, exactly; epsilon is the largest of ln(max_x w / min_x w) over y.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_WEIGHTS, Channel
from hubbub.channels.divergence import BlockDivergence
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.errors import ParameterError, WireError
from hubbub.numeric.exact import log_above
from hubbub.numeric.randomness import MAX_TOTAL, SYSTEM, Source, UniformInteger, Words

Symbols = NDArray[np.unsignedinteger[Any]]
"""Symbols, in the smallest of uint8, uint16, uint32 that holds M - 1."""

_CHUNK: Final = 1 << 15
"""Reports drawn at a time: the words and their quotients stay within a core's cache."""

_ROW: Final = 64
"""The comparisons of two weights that beginning with a pair of rows takes as long as."""

_WEIGHT: Final = 256
"""The comparisons of two weights that the logarithm of one and its place among equal rows take as long as."""


class FiniteChannel(Channel):
    """A randomised map from inputs 0..K-1 to symbols 0..M-1, given by integers.

    Attributes:
        inputs: K.
        outputs: M.
        total: T, the common sum of every row, below 2^63.
    """

    def __init__(self, inputs: int, outputs: int, total: int) -> None:
        super().__init__(inputs)
        if not 2 <= outputs <= MAX_WEIGHTS:
            raise ParameterError(f"a channel must have 2 to {MAX_WEIGHTS} outputs, got {outputs}")
        self.outputs, self.total = outputs, total
        self._uniform = UniformInteger(total)
        self._symbol_dtype = np.min_scalar_type(outputs - 1)

    # Each kind of channel defines these.

    @abstractmethod
    def weight(self, x: int, y: int) -> int:
        """Return w[x, y]: how many of the T equally likely draws send symbol y for input x."""

    @abstractmethod
    def row(self, x: int) -> NDArray[np.int64]:
        """Return the weights of every symbol for input x, shape (M,), int64, summing to T."""

    @abstractmethod
    def select(self, value: int, draw: int) -> int:
        """Return the symbol that the draw 0 <= draw < T means for an input; the whole law of the channel.

        Of the T draws exactly w[value, y] give y. Both arguments are trusted to be in range.
        """

    @abstractmethod
    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:
        """Write `select(values[i], draws[i])` to out[i] for every i; all of shape (n,)."""

    # The rest follows for all of them.

    def with_dummy_reports(self, share: Fraction) -> FiniteChannel:  # noqa: D102 - inherited
        limit = (MAX_TOTAL - 1) // (share.denominator * self.outputs)
        # A channel that fits stays as it is, and so does the digest of its survey.
        channel = self if self.total <= limit else self.narrowed(limit)
        dummy = (share.denominator - share.numerator) * channel.total
        return channel.mixed(share.numerator * channel.outputs, dummy)

    def mixed(self, scale: int, dummy: int) -> FiniteChannel:
        """Return the channel of the weights scale w + dummy, divided by what they have in common.

        A channel with structure keeps it; this one is a table of rows.
        """
        weights = self.weights() * scale + dummy
        return DenseChannel(weights // int(np.gcd.reduce(weights, axis=None)))

    def narrowed(self, limit: int) -> FiniteChannel:
        """Return a channel of a total of at most `limit`, with certified epsilons at most those of this one.

        Weights of the other values are scaled and rounded down, and the true value's follow from them by the
        channel's own largest ratio, rounded down: no ratio grows, and it falls by about 1/weight.

        Raises:
            ParameterError: If no such total can express it, or the channel is a table of rows.
        """
        raise ParameterError(
            f"participation must leave a total below 2^63; the channel's {self.total} is too large"
        )

    @property
    def widest_symbol(self) -> int:  # noqa: D102 - inherited
        return self.outputs - 1

    def probabilities(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return np.asarray(self.weights() / self.total)

    def symbol_numbers(self, points: NDArray[np.float64]) -> NDArray[np.float64] | None:  # noqa: D102
        return points if self.outputs == self.inputs == len(points) else None

    def weights(self) -> NDArray[np.int64]:
        """Return the whole matrix w, shape (K, M), int64, >= 1, every row summing to T.

        Raises:
            ParameterError: If it would have more than MAX_WEIGHTS entries.
        """
        self._refuse_above(self.outputs, "weights")
        return np.stack([self.row(x) for x in range(self.inputs)])

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected frequency of every symbol among a population's reports, shape (M,).

        Args:
            frequencies: The share of the population that holds each input, shape (K,), >= 0, summing to one.
        """
        mixed = np.zeros(self.outputs)
        for x in np.flatnonzero(frequencies).tolist():
            mixed += float(frequencies[x]) / self.total * self.row(x)
        return mixed

    @property
    def bins(self) -> int:
        """The length of a round's counts: M."""
        return self.outputs

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        return type(symbol) is int and 0 <= symbol < self.outputs

    def contains(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_]:  # noqa: D102
        return symbols < self.outputs if symbols.ndim == 1 else np.zeros(len(symbols), dtype=np.bool_)

    def valid_mask(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_] | None:  # noqa: D102
        # One pass over the column, and none that builds another, for almost every column there is.
        whole = symbols.ndim == 1 and (not len(symbols) or int(symbols.max()) < self.outputs)
        return None if whole else self.contains(symbols)

    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:  # noqa: D102 - inherited
        return np.bincount(symbols, minlength=self.outputs)

    def agrees(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        return counts.size in (0, self.outputs) and int(counts.sum()) == n

    def log_likelihood(self, symbol: int) -> NDArray[np.float64]:
        """Return ln(w[x, symbol]/T) for every input x, shape (K,), float64.

        Raises:
            ParameterError: If the symbol is not one of the channel's.
        """
        likelihood: NDArray[np.float64] = np.log(self.column(symbol) / self.total)
        return likelihood

    @overload
    def perturb(self, values: int, *, source: Source = SYSTEM) -> int: ...
    @overload
    def perturb(
        self, values: NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> Symbols: ...
    def perturb(
        self, values: int | NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> int | Symbols:
        """Return one freshly drawn symbol per value; see `Channel.perturb`.

        Returns:
            An int for an int; else shape (n,), the smallest unsigned type that holds M - 1.
        """
        if type(values) is int:
            if 0 <= values < self.inputs:
                return self.select(values, self._uniform.one(source))
            raise self._out_of_range()
        array = self._checked_values(values)
        if array.ndim == 0:
            return self.perturb(int(array), source=source)
        symbols: Symbols = np.empty(array.size, dtype=self._symbol_dtype)
        for start in range(0, array.size, _CHUNK):
            chunk = array[start : start + _CHUNK]
            draws = self._uniform.many(chunk.size, source)
            self.select_many(chunk, draws, symbols[start : start + _CHUNK])
        return symbols

    def __hash__(self) -> int:
        return hash((self.kind, self.inputs, self.outputs, self.total))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.inputs} inputs, {self.outputs} outputs, "
            f"epsilon {self.epsilon:.9g}, total {self.total}>"
        )

    def _checked_symbol(self, symbol: int) -> int:
        index = operator.index(symbol)
        if not 0 <= index < self.outputs:
            raise ParameterError(f"a symbol must be within 0 to {self.outputs - 1}, got {index}")
        return index


def lowest_terms(*weights: int) -> list[int]:
    """Return weights divided by what they have in common."""
    common = gcd(*weights)
    return [weight // common for weight in weights]


def narrowed_pair(true: int, other: int, total: int, limit: int) -> tuple[int, int]:
    """Return two weights of a total of at most `limit`, with a ratio of at most theirs.

    Raises:
        ParameterError: If they are too far apart for it.
    """
    smaller = other * limit // total
    if smaller < 1:
        raise ParameterError("participation must leave a total below 2^63, got weights too far apart for it")
    return true * smaller // other, smaller


class DenseChannel(FiniteChannel):
    """A channel without structure: a draw is looked up among the partial sums of a row."""

    kind = "dense"
    description = "The device says your answer with random noise, from a published table of probabilities."

    def __init__(self, weights: NDArray[np.integer[Any]]) -> None:
        """Keep a copy of the weights.

        Args:
            weights: Shape (K, M), integers >= 1, all rows of the same total below 2^63.

        Raises:
            ParameterError: If they break one of those rules, or have more than MAX_WEIGHTS entries.
        """
        given = np.asarray(weights)
        if given.ndim != 2 or given.dtype.kind not in "iu":
            raise ParameterError(f"weights must be a matrix of integers, got {given.dtype} {given.shape}")
        if not 0 < given.size <= MAX_WEIGHTS:
            raise ParameterError(f"weights must have 1 to {MAX_WEIGHTS} entries, got {given.size}")
        if given.min() < 1 or given.max() >= MAX_TOTAL:
            raise ParameterError("weights must be within 1 to 2^63 - 1, got one outside")
        matrix = np.array(given, dtype=np.int64, order="C")
        inputs, outputs = matrix.shape
        exact = int(matrix.max()) * outputs < MAX_TOTAL  # else a sum of int64 might wrap round
        sums = matrix.sum(axis=1) if exact else matrix.astype(object).sum(axis=1)
        totals = {int(total) for total in np.unique(sums)}
        if len(totals) != 1:
            raise ParameterError(f"rows of weights must have one total, got {len(totals)} different ones")
        super().__init__(inputs, outputs, totals.pop())
        matrix.setflags(write=False)
        self._weights = matrix
        self._rows: dict[int, list[int]] = {}

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        highest, lowest = self._weights.max(axis=0).tolist(), self._weights.min(axis=0).tolist()
        worst = max(Fraction(high, low) for high, low in zip(highest, lowest, strict=True))
        return log_above(worst.numerator, worst.denominator)

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        return int(self._weights[self._checked_input(x), self._checked_symbol(y)])

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        weights: NDArray[np.int64] = self._weights[self._checked_input(x)]
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        column: NDArray[np.int64] = self._weights[:, self._checked_symbol(symbol)]
        return column

    def weights(self) -> NDArray[np.int64]:  # noqa: D102 - inherited
        return self._weights

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return np.asarray(frequencies @ (self._weights / self.total))

    def select(self, value: int, draw: int) -> int:  # noqa: D102 - inherited
        edges = self._rows.get(value)
        if edges is None:
            edges = self._rows[value] = np.cumsum(self._weights[value]).tolist()
        return bisect_right(edges, draw)

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        if self.inputs * self.total < 2**64:
            # One sorted table for all rows: row x occupies the integers from x T to (x + 1) T.
            offsets = values.astype(np.uint64)
            keys = offsets * np.uint64(self.total) + draws
            positions = np.searchsorted(self._edges, keys, side="right")
            out[...] = positions - offsets.astype(np.intp) * self.outputs
            return
        order = np.argsort(values, kind="stable")
        ordered = values[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        for where in np.split(order, starts[1:]):
            edges = np.cumsum(self._weights[values[where[0]]]).astype(draws.dtype)
            out[where] = np.searchsorted(edges, draws[where], side="right")

    @cached_property
    def _edges(self) -> NDArray[np.uint64]:
        sums = np.cumsum(self._weights, axis=1).astype(np.uint64)
        shifts = np.arange(self.inputs, dtype=np.uint64) * np.uint64(self.total)
        edges: NDArray[np.uint64] = (sums + shifts[:, None]).ravel()
        return edges

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        logs = np.log(self._weights)
        return np.stack([(logs[x] - logs).max(axis=1) for x in range(self.inputs)])

    @property
    def block_work(self) -> int:
        """The work of comparing every two rows, and of the logarithms of all weights."""
        rows = self.most_blocks
        return rows * rows * (self.outputs + _ROW) + _WEIGHT * self.inputs * self.outputs

    def blocks(self) -> BlockDivergence:
        """Return one block per distinct row, or one in all where there are many, in units rounded up.

        From the integers only, hence the same on every machine; see `BlockDivergence.from_weights`.
        """
        return self._blocks

    @cached_property
    def _blocks(self) -> BlockDivergence:
        return BlockDivergence.from_weights(self._weights)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        width = "<u4" if self.total <= 2**32 else "<u8"
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "total": self.total,
            "weights": self._weights.astype(width).tobytes(),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "outputs", "total", "weights")
        inputs, outputs, total = (spec_int(spec, key) for key in ("inputs", "outputs", "total"))
        packed = spec["weights"]
        width = 4 if total <= 2**32 else 8
        if not isinstance(packed, bytes) or len(packed) != inputs * outputs * width:
            raise WireError(f"weights of a dense channel must be {inputs} x {outputs} words of {width} bytes")
        channel = cls(np.frombuffer(packed, dtype=f"<u{width}").reshape(inputs, outputs))
        if channel.total != total:
            raise WireError(f"rows of weights must sum to the total {total}, got {channel.total}")
        return channel
