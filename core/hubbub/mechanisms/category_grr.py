"""Privacy-boosted randomised response at boost epsilon 0, where a report says the value's category alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub import estimation
from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence, fixed_up
from hubbub.channels.finite import Symbols, lowest_terms, narrowed_pair
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.channels.symbols import SparseColumn
from hubbub.errors import ParameterError
from hubbub.mechanisms.pbgrr import PBGRR, frozen
from hubbub.numeric.randomness import Words


class CategoryGRR(PBGRR):
    """A privacy-boosted randomised response at ε₀ = 0: a value's category is sent, by GRR over categories.

    Symbols are the m categories; values of one category share their row and cannot be told apart. The
    arrays t and u hold the weight of the true category, o that of any other.
    """

    kind = "category_grr"
    tells_inputs = False
    description = "The device says the category of your answer or, at random, any other category."

    def __init__(self, sizes: Sequence[int], t: int, o: int) -> None:
        """Set the channel from its sizes and two integers.

        Args:
            sizes: Values per category, two categories or more, each >= 1.
            t: Weight of the true category, t > o.
            o: Weight of every other category, o >= 1.

        Raises:
            ParameterError: If the integers do not make a channel that tells categories apart.
        """
        if len(sizes) < 2 or min(sizes) < 1:
            raise ParameterError(
                f"pbgrr must have two or more categories of one or more values, got {len(sizes)}"
            )
        if not 1 <= o < t:
            raise ParameterError(f"category weights must satisfy t > o >= 1, got t = {t}, o = {o}")
        self._set(sizes, outputs=len(sizes), total=t + (len(sizes) - 1) * o)
        self.t, self.o = (frozen(np.full(len(sizes), weight, dtype=np.int64)) for weight in (t, o))
        self.u = self.t
        self._true, self._other = t, o

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        near = self.category_of[self._checked_input(x)] == self._checked_symbol(y)
        return self._true if near else self._other

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        weights = self.o.copy()
        weights[self.category_of[self._checked_input(x)]] = self._true
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        category = self._checked_symbol(symbol)
        start, size = self.starts[category], self.sizes[category]
        weights = np.full(self.inputs, self._other, dtype=np.int64)
        weights[start : start + size] = self._true
        return weights

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        crowds = np.add.reduceat(frequencies, self.starts)
        return np.asarray(
            (self._other * frequencies.sum() + (self._true - self._other) * crowds) / self.total
        )

    def sparse_column(self, symbol: int) -> tuple[SparseColumn, int]:
        """Return `column` as its two weights."""
        return self._columns[self._checked_symbol(symbol)], -1

    def select(self, value: int, draw: int) -> int:
        """Return draw // o when that is a category, else the value's own."""
        symbol = draw // self._other
        return symbol if symbol < self.outputs else int(self.category_of[value])

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        symbols = draws // draws.dtype.type(self._other)
        np.copyto(out, symbols, casting="unsafe")
        np.copyto(out, self.category_of[values], where=symbols >= self.outputs, casting="unsafe")

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return min(len(self.sizes), MAX_BLOCKS)

    def blocks(self) -> BlockDivergence:
        """Return nothing within a category, ln(t/o) across."""
        if len(self.sizes) > MAX_BLOCKS:
            return BlockDivergence(
                np.zeros(self.inputs, dtype=np.intp),
                np.zeros((1, 1), dtype=np.int64),
                np.array([fixed_up(self._true, self._other)], dtype=np.int64),
            )
        across = np.full((len(self.sizes),) * 2, fixed_up(self._true, self._other), dtype=np.int64)
        return BlockDivergence(self.category_of, across, np.zeros(len(self.sizes), dtype=np.int64))

    def mixed(self, scale: int, dummy: int) -> CategoryGRR:  # noqa: D102 - inherited
        t, o = lowest_terms(scale * int(self.t[0]) + dummy, scale * int(self.o[0]) + dummy)
        return CategoryGRR(self.sizes.tolist(), t, o)

    def narrowed(self, limit: int) -> CategoryGRR:  # noqa: D102 - inherited
        t, o = narrowed_pair(int(self.t[0]), int(self.o[0]), self.total, limit)
        return CategoryGRR(self.sizes.tolist(), t, o)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {"kind": self.kind, "sizes": self.sizes.tolist(), "t": self._true, "o": self._other}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "sizes", "t", "o")
        return cls(spec_ints(spec, "sizes"), spec_int(spec, "t"), spec_int(spec, "o"))

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: estimation.Arithmetic = "float64"
    ) -> estimation.Inverse:
        """Return the left inverse of the channel; see `hubbub.estimation.inverses.inversion.invert`."""
        t, o, sizes = self.t, self.o, self.sizes
        return estimation.CollapsedInverse(
            t, o, sizes, self.total, category_of=category_of, arithmetic=arithmetic
        )
