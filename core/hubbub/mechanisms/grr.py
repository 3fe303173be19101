"""Generalised randomised response: the truth with one weight, any other value with another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from hubbub import estimation
from hubbub.channels.channel import MAX_INPUTS
from hubbub.channels.divergence import BlockDivergence, fixed_up
from hubbub.channels.finite import FiniteChannel, Symbols, lowest_terms, narrowed_pair
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int
from hubbub.channels.symbols import SparseColumn
from hubbub.errors import ParameterError
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.randomness import MAX_TOTAL, Words

TOTALS: Final = (2**32 - 1, MAX_TOTAL - 1)
"""The largest totals for draws of four and of eight random bytes."""

NARROW_LOSS: Final = 1e-6
"""Four bytes are enough when they cost less than this share of epsilon."""


class GRR(FiniteChannel):
    """A channel that keeps the value in t of T draws and sends each other symbol in u of them.

    Attributes:
        t: Weight of the true value, t > u.
        u: Weight of every other value, u >= 1; t + (K - 1) u = T.
    """

    kind = "grr"
    description = "The device says your answer or, at random, any other."

    def __init__(self, inputs: int, t: int, u: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If the integers do not make a channel that tells inputs apart.
        """
        if not 1 <= u < t:
            raise ParameterError(f"grr weights must satisfy t > u >= 1, got t = {t}, u = {u}")
        super().__init__(inputs, inputs, t + (inputs - 1) * u)
        self.t, self.u = t, u
        self._divisor = self._uniform.dtype.type(u)

    @cached_property
    def epsilon(self) -> float:  # noqa: D102 - inherited
        return log_above(self.t, self.u)

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        return self.t if self._checked_input(x) == self._checked_symbol(y) else self.u

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        weights = np.full(self.outputs, self.u, dtype=np.int64)
        weights[self._checked_input(x)] = self.t
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        weights = np.full(self.inputs, self.u, dtype=np.int64)
        weights[self._checked_symbol(symbol)] = self.t
        return weights

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        return np.asarray((self.u * frequencies.sum() + (self.t - self.u) * frequencies) / self.total)

    def sparse_column(self, symbol: int) -> tuple[SparseColumn, int]:
        """Return `column` as its two weights."""
        return self._column, self._checked_symbol(symbol)

    @cached_property
    def _column(self) -> SparseColumn:
        return SparseColumn(rest=self.u, start=0, stop=0, near=self.u, true=self.t)

    def select(self, value: int, draw: int) -> int:
        """Return draw // u when that is a symbol, else the value.

        The first K u draws are dealt evenly to all symbols, the t - u that remain go to the value.
        """
        symbol = draw // self.u
        return symbol if symbol < self.inputs else value

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        symbols = draws // self._divisor
        np.copyto(out, symbols, casting="unsafe")
        np.copyto(out, values, where=symbols >= self.inputs, casting="unsafe")

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        matrix = np.full((self.inputs, self.inputs), math.log(self.t / self.u))
        np.fill_diagonal(matrix, 0.0)
        return matrix

    @property
    def most_blocks(self) -> int:  # noqa: D102 - inherited
        return 1

    def blocks(self) -> BlockDivergence:
        """Return one block: any two inputs are ln(t/u) apart."""
        return BlockDivergence(
            np.zeros(self.inputs, dtype=np.intp),
            np.zeros((1, 1), dtype=np.int64),
            np.array([fixed_up(self.t, self.u)], dtype=np.int64),
        )

    def mixed(self, scale: int, dummy: int) -> GRR:  # noqa: D102 - inherited
        t, u = lowest_terms(scale * self.t + dummy, scale * self.u + dummy)
        return GRR(self.inputs, t, u)

    def narrowed(self, limit: int) -> GRR:  # noqa: D102 - inherited
        t, u = narrowed_pair(self.t, self.u, self.total, limit)
        return GRR(self.inputs, t, u)

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {"kind": self.kind, "inputs": self.inputs, "t": self.t, "u": self.u}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "t", "u")
        return cls(spec_int(spec, "inputs"), spec_int(spec, "t"), spec_int(spec, "u"))

    def inverse(
        self, *, category_of: NDArray[Any] | None = None, arithmetic: estimation.Arithmetic = "float64"
    ) -> estimation.Inverse:
        """Return the left inverse of the channel; see `hubbub.estimation.inverses.inversion.invert`."""
        # One block in which "same category" and "other" weigh the same: any grouping may be laid over it.
        t, u, size = (np.array([number], dtype=np.int64) for number in (self.t, self.u, self.inputs))
        groups = np.arange(self.inputs) if category_of is None else category_of
        return estimation.BlockInverse(t, u, u, size, self.total, category_of=groups, arithmetic=arithmetic)


def grr(inputs: int, *, epsilon: float) -> GRR:
    """Return generalised randomised response on K inputs (k-ary randomised response, Kairouz et al. 2016).

    Row x has t at x and u elsewhere, with t/u at most e^epsilon and as near to it as the integers allow.

    Args:
        inputs: K, 2 to MAX_INPUTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.

    Raises:
        ParameterError: If K or epsilon is out of range, or no total below 2^63 can express them.

    >>> grr(4, epsilon=1.0).epsilon
    0.9999999996333733
    """
    checked_inputs(inputs)
    ceiling = exp_below(checked_epsilon(epsilon) - HEADROOM)
    t, u = symmetric_weights(inputs, ceiling)
    return GRR(inputs, t, u)


def checked_inputs(inputs: int, *, most: int = MAX_INPUTS) -> int:
    """Return a number of inputs unchanged, if a channel can have it.

    Raises:
        ParameterError: If it is not an integer in 2 to `most`.
    """
    if isinstance(inputs, bool) or not isinstance(inputs, int | np.integer) or not 2 <= inputs <= most:
        raise ParameterError(f"inputs must be an integer within 2 to {most}, got {inputs!r}")
    return int(inputs)


def symmetric_weights(inputs: int, ceiling: Fraction) -> tuple[int, int]:
    """Return the weights (t, u) of a value and of every other, with t/u at most the ceiling.

    u is the largest integer for which t + (K - 1) u stays below 2^32, so that draws cost four bytes and are
    rejected once in millions; if the floor in t = floor(ceiling u) then costs more than NARROW_LOSS of the
    epsilon, below 2^63.

    Args:
        inputs: K >= 2.
        ceiling: The largest ratio allowed, > 1.

    Raises:
        ParameterError: If even a total below 2^63 leaves t = u.
    """
    aim = math.log(ceiling)
    for limit in TOTALS:
        u = math.floor(limit / (ceiling + inputs - 1))
        t = math.floor(ceiling * u)
        if u >= 1 and t > u and log_above(t, u) >= aim * (1.0 - NARROW_LOSS):
            return t, u
    raise ParameterError(f"no total below 2^63 can express e^{aim:.6g} on {inputs} inputs")
