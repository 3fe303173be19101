"""Uniform arrangements of numbers over places: who gets which of an orbit's counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from math import factorial, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric.randomness import Source, below
from hubbub.numeric.subsets import short_many, subset_masks, subsets

MAX_LISTED: Final = 512
"""Arrangements that are listed at most; one integer picks one of them."""

_LISTED_PLACES: Final = 64
"""Places of a listed arrangement at most."""

Numbers = NDArray[np.integer[Any]]


class Arrangements:
    """The orders of a row of numbers, equal ones being alike, all equally likely.

    Where they are few they are listed. Else a uniform subset of the places is kept for all but the commonest
    number, and what is kept there is shuffled (Fisher and Yates).

    Attributes:
        numbers: Those of the row, rising.
        few: Whether they are listed.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = tuple(sorted(numbers))
        times = Counter(self.numbers)
        self._common = max(times, key=times.__getitem__, default=0)
        self._rest = [n for n in self.numbers if n != self._common]
        few = len(self.numbers) <= _LISTED_PLACES
        self.few = few and (
            factorial(len(self.numbers)) // prod(map(factorial, times.values())) <= MAX_LISTED
        )

    @cached_property
    def listed(self) -> list[tuple[int, ...]]:
        """All of them, each once."""
        found: list[tuple[int, ...]] = [()]
        times = Counter(self.numbers)
        for _ in self.numbers:
            found = [(*row, n) for row in found for n in times if row.count(n) < times[n]]
        return found

    @cached_property
    def table(self) -> Numbers:
        """All of them as rows, int32."""
        return np.array(self.listed, dtype=np.int32).reshape(len(self.listed), len(self.numbers))

    def one(self, source: Source) -> list[int]:
        """Return one of them."""
        if self.few:
            return list(self.listed[below(len(self.listed), source)])
        if not self._rest:
            return list(self.numbers)
        rest = self._rest.copy()
        if rest[0] != rest[-1]:
            for last in range(len(rest) - 1, 0, -1):
                other = below(last + 1, source)
                rest[other], rest[last] = rest[last], rest[other]
        found = [self._common] * len(self.numbers)
        (places,) = subset_masks(len(found), [len(rest)], source)
        for n in rest:
            found[(places & -places).bit_length() - 1] = n
            places &= places - 1
        return found

    def many(self, rows: int, source: Source) -> Numbers:
        """Return independent ones, shape (rows, places), int32."""
        if self.few:
            return self.table.take(short_many(len(self.table), rows, source), axis=0)
        if not self._rest:
            return np.full((rows, len(self.numbers)), self._common, dtype=np.int32)
        rest = np.tile(np.array(self._rest, dtype=np.int32), (rows, 1))
        if self._rest[0] != self._rest[-1]:
            every = np.arange(rows)
            for last in range(len(self._rest) - 1, 0, -1):
                other = short_many(last + 1, rows, source)
                moved = rest[every, other]
                rest[every, other] = rest[:, last]
                rest[:, last] = moved
        found = np.full((rows, len(self.numbers)), self._common, dtype=np.int32)
        places = np.flatnonzero(subsets(len(self.numbers), len(self._rest), rows, source))
        found.reshape(-1)[places] = rest.reshape(-1)
        return found
