"""Interaction parts: a random latin set of two attributes' cells tells how these go together, and no more.

The readings of each attribute are put into g classes of one size, uniformly at random, and

    S = {(u, v): class_u + class_v mod g < d}.

With probability P a set that holds the true cell is drawn, else one that does not, evenly each. Every row and
every column of a set has the share t = d/g, so nothing is told of either attribute alone. A set's probability
is P/t or (1 - P)/(1 - t) times that among all sets: the ratio is that of subset selection of t R of R cells.

The expected share of reports that hold a cell is t + (P - t) (R/D) f_A, with f_A the cell's interaction in
the crowd (`interaction_of`) and D = (r_1 - 1)(r_2 - 1) its free numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import WORD, AttemptChannel, Attempts, Level, Sets, Support
from hubbub.channels.spec import SpecValue
from hubbub.errors import ParameterError
from hubbub.mechanisms.subset import SubsetSelection
from hubbub.numeric.randomness import Source


class LatinSelection(SubsetSelection):
    """A channel from the cells of two attributes to latin sets of them.

    An attempt has one word for the coin, then those that shuffle each attribute's readings (Fisher and Yates,
    the last place first), whose classes are their places modulo g, then one for what the classes of the true
    cell sum to, to which the first attribute's are shifted. A kept attempt says nothing of coin or cell.

    Attributes:
        shape: Readings of the two attributes.
        classes: g, dividing both.
        band: d, 1 to g - 1.
    """

    kind = "interaction"

    def __init__(self, shape: Sequence[int], classes: int, size: int, p_draws: int) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If they do not make latin sets, or a channel that tells inputs apart.
        """
        cells = math.prod(shape)
        if len(shape) != 2 or classes < 2 or any(r % classes for r in shape) or size * classes % cells:
            raise ParameterError(
                f"an interaction must be of two attributes with readings in {classes} >= 2 whole classes, "
                f"and of sets of such, got {size} of the cells of {shape}"
            )
        super().__init__(cells, size, p_draws)
        self.shape, self.classes, self.band = tuple(shape), classes, size * classes // cells
        self._picks = [many for r in shape for many in range(r, 1, -1)]
        # One limit for the band and what it leaves: which words are kept does not depend on the coin.
        bounds = [*self._picks, self.band * (classes - self.band)]
        AttemptChannel.__init__(self, cells, cells, [WORD, *(WORD - WORD % many for many in bounds)])

    @property
    def freedom(self) -> int:
        """The free numbers of an interaction, (r_1 - 1)(r_2 - 1)."""
        return math.prod(r - 1 for r in self.shape)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """One level, with the support of which the errors of an interaction follow as those of shares do.

        So q is t, p - q what a unit of interaction adds, and p no probability. With f_A for f, covariances of
        the cells, less those of rows and columns, follow from it as from any support.
        """
        t, cells = Fraction(self.band, self.classes), self.inputs
        gap = (Fraction(self.p_draws, WORD) - t) * cells / self.freedom
        # The third moment of an interaction: none where an attribute has two readings.
        third = math.prod(Fraction(r - 2, r) for r in self.shape)
        skew = gap * (1 - 2 * t) / third if third else Fraction(0)
        both = t * t + t * (1 - t) * (1 - Fraction(cells, self.freedom))
        own = both + t * gap + (gap * (1 - 2 * t) - skew) / 2
        support = Support(p=t + gap, q=t, p_pair=own, q_pair=both, size=self.size)
        return (Level(np.arange(cells), Fraction(1), support),)

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        told = super().expected(interaction_of(frequencies.reshape(self.shape)).ravel())
        return np.asarray(told + self.band / self.classes * frequencies.sum())

    def log_likelihood(self, symbol: bytes | Sets) -> NDArray[np.float64]:  # noqa: D102 - inherited
        held, g = self._members(symbol), self.classes
        every = sum(math.lgamma(r + 1) - g * math.lgamma(r // g + 1) for r in self.shape)
        # So many pairs of classes make one set: any order of one class in or out, else its turns and flips.
        every -= math.log(math.factorial(g) if self.band in (1, g - 1) else 2 * g)
        share, p = self.band / g, self.p_draws / WORD
        return np.where(held, math.log(p / share), math.log((1.0 - p) / (1.0 - share))) - every

    def sends(self, members: int) -> bool:
        """Return whether every row and every column of a set has its share.

        A forged set may do so and be no latin one: it moves a cell as much as one that is.
        """
        held = np.frombuffer(members.to_bytes(self.width, "little"), dtype=np.uint8)
        return bool(self.contains_sets(held[None, :])[0])

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        valid = super().contains_sets(symbols)
        for start in range(0, len(symbols), step := self.chunk):
            some = slice(start, start + step)
            bits = np.unpackbits(symbols[some], axis=1, count=self.inputs, bitorder="little")
            valid[some] &= self._balanced(bits, 1)
        return valid

    def could_count(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        return bool(self._balanced(counts[None, :], n)[0])

    def _balanced(self, counts: NDArray[Any], n: int) -> NDArray[np.bool_]:
        """Return whether rows and columns have what n sets give each of them, shape (tables,), bool."""
        tables = counts.reshape(-1, *self.shape)
        rows, columns = (tables.sum(axis=axis, dtype=np.int64) for axis in (2, 1))
        fits = (rows * self.shape[0] == n * self.size).all(axis=1)
        return np.asarray(fits & (columns * self.shape[1] == n * self.size).all(axis=1))

    def fill(self, values: NDArray[np.integer[Any]], attempts: Attempts, out: NDArray[np.bool_]) -> None:  # noqa: D102
        rows, g = np.arange(len(values)), self.classes
        inside, own, last = attempts[:, 0] < self.p_draws, attempts[:, 1:-1], attempts[:, -1]
        placed, at = [], 0
        for readings in self.shape:
            classes = np.tile(np.arange(readings, dtype=np.int32) % g, (len(values), 1))
            for many in range(readings, 1, -1):
                pick = own[:, at] % np.uint32(many)
                classes[rows, pick], classes[:, many - 1] = classes[:, many - 1].copy(), classes[rows, pick]
                at += 1
            placed.append(classes)
        sums = (placed[0][:, :, None] + placed[1][:, None, :]).reshape(len(values), -1)
        due = np.where(inside, last % np.uint32(self.band), self.band + last % np.uint32(g - self.band))
        shift = due.astype(np.int32) - sums[rows, values]
        out[:] = (sums + shift[:, None]) % g < self.band

    def draw(self, value: int, source: Source) -> bytes:  # noqa: D102 - inherited
        return AttemptChannel.draw(self, value, source)

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:  # noqa: D102 - inherited
        return AttemptChannel.draw_many(self, values, source)

    @property
    def chunk(self) -> int:  # noqa: D102 - inherited
        return super(SubsetSelection, self).chunk

    def with_dummy_reports(self, share: Fraction) -> SubsetSelection:
        """Refuse: the parts of a bundle are answered always.

        Raises:
            ParameterError: Always.
        """
        raise ParameterError(f"an interaction must be answered always, got a share of {share}")

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {**super().to_spec(), "classes": self.classes, "shape": list(self.shape)}

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:
        """Refuse: an interaction stands in the description of a bundle's parts alone.

        Raises:
            ParameterError: Always.
        """
        raise ParameterError(f"an interaction must be a part of a bundle, got {len(spec)} keys of its own")


def interaction_of(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a table less what its margins say: every sum along an axis is zero."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
