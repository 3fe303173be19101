"""Privacy-boosted randomised response: near misses within the value's category are likelier than far ones.

For input x of category c, of s_c values, with a = e^ε and b = e^(ε - ε₀), privacy-boosting's PB-GRR for
categories of any size is

    M(y|x) = v_c(y) · {a if y = x; b if y is of the same category; 1 otherwise},
    B_c = a - 1 + (s_c - 1)(b - 1),      v_c = 1 / ((1 + Σ_c s_c/B_c) · B_c).

Rows sum to one and the largest ratio of every column is e^ε. For equal sizes this is privacy-boosting,
Prop. 7; for unequal ones that proposition normalises rows instead of columns, and its true epsilon exceeds ε.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import chain
from math import gcd
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub import estimation
from hubbub.channels.channel import LOGARITHM
from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence, fixed_up
from hubbub.channels.finite import FiniteChannel, Symbols
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_ints
from hubbub.channels.symbols import SparseColumn
from hubbub.errors import ParameterError
from hubbub.mechanisms.category_weights import narrowed_blocks
from hubbub.numeric.exact import log_above
from hubbub.numeric.randomness import Words

Entry = TypeVar("Entry", bound=np.generic)


_CATEGORY: Final = 2**11
"""The comparisons of two weights that a category takes beside its logarithms."""


class PBGRR(FiniteChannel):
    """A channel over values in categories; inputs are ordered by category, each category contiguous.

    Category c has s_c values. The row of a value x of c has t_c at x, u_c at the other values of c, and
    o_c' at every value of another category c'.

    Attributes:
        sizes: s_c, shape (m,), int64, >= 1.
        category_of: The category of every input, shape (K,), intp.
        starts: The first input of every category, shape (m,), int64.
        t: Weight of the true value, per category, shape (m,), int64.
        u: Weight of the other values of the true one's category, shape (m,), int64; o where s_c = 1.
        o: Weight of a value seen from another category, shape (m,), int64; t > u >= o >= 1.
    """

    kind = "pbgrr"
    description = "The device says your answer or, at random, another: one of the same category more often."

    def __init__(self, sizes: Sequence[int], t: Sequence[int], u: Sequence[int], o: Sequence[int]) -> None:
        """Set the channel from its integers, one per category in each of the four.

        Raises:
            ParameterError: If the integers do not make a channel that tells values apart.
        """
        if not 2 <= len(sizes) == len(t) == len(u) == len(o):
            raise ParameterError(
                f"pbgrr must have two or more categories with one weight each, got {len(sizes)} sizes"
            )
        base = sum(size * other for size, other in zip(sizes, o, strict=True))
        totals = set()
        for size, true, same, other in zip(sizes, t, u, o, strict=True):
            if size < 1:
                raise ParameterError(f"a category must have at least one value, got {size}")
            if not 1 <= other <= same < true or (size == 1 and same != other):
                raise ParameterError(
                    f"pbgrr weights must satisfy t > u >= o >= 1, and u = o for a single value, "
                    f"got {true}, {same}, {other}"
                )
            totals.add(base - size * other + (size - 1) * same + true)
        if len(totals) != 1:
            raise ParameterError(f"rows of weights must have one total, got {len(totals)} different ones")
        self._set(sizes, outputs=sum(sizes), total=totals.pop())
        self.t, self.u, self.o = (frozen(np.array(weights, dtype=np.int64)) for weights in (t, u, o))
        self._prepare(base)

    def _set(self, sizes: Sequence[int], *, outputs: int, total: int) -> None:
        super().__init__(sum(sizes), outputs, total)
        self.sizes = frozen(np.array(sizes, dtype=np.int64))
        self.starts = frozen(np.cumsum(self.sizes) - self.sizes)
        self.category_of = frozen(np.repeat(np.arange(len(sizes), dtype=np.intp), self.sizes))

    def _prepare(self, base: int) -> None:
        word = self._uniform.dtype
        self._base = base
        extra = self.u - self.o
        self._scalars = list(
            zip(self.starts.tolist(), (base + self.sizes * extra).tolist(), extra.tolist(), strict=True)
        )
        self._starts_of_category = self.starts.astype(word)
        self._end_of_category = (base + self.sizes * extra).astype(word)
        self._extra = np.maximum(extra, 1).astype(word)  # where it is 0 the quotient is never used
        # Neighbouring categories of one o are one run of symbols that divide evenly.
        first = np.flatnonzero(np.diff(self.o, prepend=0))
        self._run_starts = self.starts[first]
        self._run_weights = self.o[first]
        ends = np.cumsum(self.sizes * self.o)
        self._run_edges = ends[np.append(first[1:], len(self.o)) - 1]
        self._run_bases = np.append(0, self._run_edges[:-1])
        self._run_lists = tuple(
            runs.tolist() for runs in (self._run_edges, self._run_bases, self._run_weights, self._run_starts)
        )
        self._run_words = tuple(
            runs.astype(word)
            for runs in (self._run_edges, self._run_bases, self._run_weights, self._run_starts)
        )

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        worst = max(Fraction(t, o) for t, o in set(zip(self.t.tolist(), self.o.tolist(), strict=True)))
        return log_above(worst.numerator, worst.denominator)

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        value, symbol = self._checked_input(x), self._checked_symbol(y)
        category = self.category_of[symbol]
        if value == symbol:
            return int(self.t[category])
        near = self.category_of[value] == category
        return int(self.u[category] if near else self.o[category])

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        value = self._checked_input(x)
        category = self.category_of[value]
        start, size = self.starts[category], self.sizes[category]
        weights = np.repeat(self.o, self.sizes)
        weights[start : start + size] = self.u[category]
        weights[value] = self.t[category]
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        value = self._checked_symbol(symbol)
        category = self.category_of[value]
        start, size = self.starts[category], self.sizes[category]
        weights = np.full(self.inputs, self.o[category], dtype=np.int64)
        weights[start : start + size] = self.u[category]
        weights[value] = self.t[category]
        return weights

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        crowds = np.add.reduceat(frequencies, self.starts)
        each = np.repeat(self.o * frequencies.sum() + (self.u - self.o) * crowds, self.sizes)
        return np.asarray((each + np.repeat(self.t - self.u, self.sizes) * frequencies) / self.total)

    def sparse_column(self, symbol: int) -> tuple[SparseColumn, int]:
        """Return `column` as its three weights."""
        value = self._checked_symbol(symbol)
        return self._columns[self.category_of.item(value)], value

    @cached_property
    def _columns(self) -> list[SparseColumn]:
        ends = self.starts + self.sizes
        columns = (self.o, self.starts, ends, self.u, self.t)
        return [SparseColumn(*each) for each in zip(*(column.tolist() for column in columns), strict=True)]

    def select(self, value: int, draw: int) -> int:
        """Deal the draws out in order: o to every symbol, u - o to each of x's category, t - u to x."""
        if draw < self._base:
            edges, bases, weights, starts = self._run_lists
            run = bisect_right(edges, draw)
            symbol: int = starts[run] + (draw - bases[run]) // weights[run]
            return symbol
        start, end, extra = self._scalars[self.category_of[value]]
        return start + (draw - self._base) // extra if draw < end else value

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        edges, bases, weights, starts = self._run_words
        if edges.size == 1:
            symbols = draws // weights[0]
            rest = np.flatnonzero(symbols >= self.outputs)
        else:
            run = np.searchsorted(edges, draws, side="right")
            rest = np.flatnonzero(run == edges.size)
            run[rest] = 0
            symbols = starts[run] + (draws - bases[run]) // weights[run]
        np.copyto(out, symbols, casting="unsafe")
        held, left = values[rest], draws[rest]
        category = self.category_of[held]
        near = (left - left.dtype.type(self._base)) // self._extra[category]
        near += self._starts_of_category[category]
        out[rest] = np.where(left < self._end_of_category[category], near, held.astype(near.dtype))

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        category = self.category_of
        same = category[:, None] == category[None, :]
        matrix = np.where(
            same, np.log(self.t / self.u)[category][:, None], np.log(self.t / self.o)[category][:, None]
        )
        np.fill_diagonal(matrix, 0.0)
        return matrix

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return min(len(self.sizes), MAX_BLOCKS)

    @property
    def block_work(self) -> int:  # noqa: D102 - inherited
        differing = set(zip(self.t.tolist(), self.u.tolist(), self.o.tolist(), strict=True))
        own = _CATEGORY * len(self.sizes) + 2 * LOGARITHM * len(differing)
        return 8 * self.inputs + self.most_blocks**2 + own

    def blocks(self) -> BlockDivergence:
        """Return ln(t_c/u_c) within category c and ln(t_c/o_c) from c to any other, in units rounded up.

        Categories of one value that share their weights make one block. Where more than MAX_BLOCKS remain,
        all inputs are taken to be as far apart as the farthest two, which is sound.
        """
        t, u, o = self.t.tolist(), self.u.tolist(), self.o.tolist()
        keys = [
            (-1, true, other) if size == 1 else (category, true, other)
            for category, (size, true, other) in enumerate(zip(self.sizes.tolist(), t, o, strict=True))
        ]
        number = {key: block for block, key in enumerate(dict.fromkeys(keys))}
        away = {key: fixed_up(key[1], key[2]) for key in number}
        if len(number) > MAX_BLOCKS:
            return BlockDivergence(
                np.zeros(self.inputs, dtype=np.intp),
                np.zeros((1, 1), dtype=np.int64),
                np.array([max(away.values())], dtype=np.int64),
            )
        within = [away[key] if key[0] < 0 else fixed_up(key[1], u[key[0]]) for key in number]
        across = np.repeat(np.array([[away[key]] for key in number], dtype=np.int64), len(number), axis=1)
        labels = np.array([number[key] for key in keys], dtype=np.intp)[self.category_of]
        return BlockDivergence(labels, across, np.array(within, dtype=np.int64))

    def mixed(self, scale: int, dummy: int) -> PBGRR:  # noqa: D102 - inherited
        columns = [[scale * weight + dummy for weight in each.tolist()] for each in (self.t, self.u, self.o)]
        common = gcd(*chain(*columns))
        return PBGRR(self.sizes.tolist(), *([weight // common for weight in each] for each in columns))

    def narrowed(self, limit: int) -> PBGRR:  # noqa: D102 - inherited
        rows = (self.sizes, self.t, self.u, self.o)
        return PBGRR(self.sizes.tolist(), *narrowed_blocks(*(each.tolist() for each in rows), limit=limit))

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "sizes": self.sizes.tolist(),
            "t": self.t.tolist(),
            "u": self.u.tolist(),
            "o": self.o.tolist(),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "sizes", "t", "u", "o")
        return cls(*(spec_ints(spec, key) for key in ("sizes", "t", "u", "o")))

    def category_rule(self, category_of: NDArray[np.intp]) -> str:  # noqa: D102 - inherited
        same = np.array_equal(self.category_of, category_of)
        return "" if same else "must be the categories of its pbgrr channel"

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: estimation.Arithmetic = "float64"
    ) -> estimation.Inverse:
        """Return the left inverse of the channel; see `hubbub.estimation.inverses.inversion.invert`."""
        t, u, o, sizes = self.t, self.u, self.o, self.sizes
        return estimation.BlockInverse(
            t, u, o, sizes, self.total, category_of=category_of, arithmetic=arithmetic
        )


def frozen(array: NDArray[Entry]) -> NDArray[Entry]:
    """Return the array, read-only."""
    array.setflags(write=False)  # what was certified stays what is sampled
    return array
