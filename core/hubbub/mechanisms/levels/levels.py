"""Level sampling: a public coin picks a level of a tree of categories; the report is about that level alone.

Half the population may tell its category and half its value, each at the full epsilon by the best mechanism
for so many cells, instead of everybody telling both at once. The level is part of the symbol, so the
channel's row for an input joins the levels' rows, each times the level's share; its epsilon is the largest of
theirs, and D(x, x') the largest over the levels at which x and x' differ. The coin knows no value.

Level and symbol are one draw: a device that memoises an answer memoises both.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.finite import FiniteChannel, Symbols, narrowed_pair
from hubbub.channels.sets import WORD, Level, Support
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_int, spec_ints
from hubbub.errors import ParameterError
from hubbub.mechanisms.grr import NARROW_LOSS, TOTALS
from hubbub.mechanisms.levels.hierarchy import Hierarchy, LevelMixture, Sizes
from hubbub.mechanisms.levels.set_levels import SetLevels
from hubbub.mechanisms.subset import subset_selection
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below, log_above
from hubbub.numeric.randomness import Words


class Levels(LevelMixture, FiniteChannel):
    """A channel that sends a level and one of its cells, by randomised response over them.

    Symbols number the cells of all levels, coarsest level first. For input x the symbol of x's own cell at
    level j has weight t_j, every other of that level u_j.

    Attributes:
        t: Weight of the true cell, per level.
        u: Weight of every other cell, per level; t > u >= 1.
    """

    kind = "levels"
    description = "The device says at random either your answer or its category, true or any other."

    def __init__(self, hierarchy: Hierarchy, t: Sequence[int], u: Sequence[int]) -> None:
        """Set the channel from its integers, one per level in t and in u.

        Raises:
            ParameterError: If the integers do not make a channel that tells cells apart.
        """
        counts = hierarchy.bins
        if not len(t) == len(u) == len(counts):
            raise ParameterError(f"levels must have two weights each, got {len(t)} for {len(counts)} levels")
        for true, other in zip(t, u, strict=True):
            if not 1 <= other < true:
                raise ParameterError(f"levels' weights must satisfy t > u >= 1, got {true} and {other}")
        self.hierarchy, self.t, self.u = hierarchy, tuple(t), tuple(u)
        totals = [true + (cells - 1) * other for true, other, cells in zip(t, u, counts, strict=True)]
        super().__init__(hierarchy.inputs, sum(counts), sum(totals))
        self._totals, self._counts = totals, counts
        self._first_draws = [sum(totals[:k]) for k in range(len(totals))]
        self._first_symbols = [sum(counts[:k]) for k in range(len(counts))]

    @property
    def _odds(self) -> list[tuple[int, int]]:
        return list(zip(self.t, self.u, strict=True))

    def weight(self, x: int, y: int) -> int:  # noqa: D102 - inherited
        value, symbol = self._checked_input(x), self._checked_symbol(y)
        level = bisect_right(self._first_symbols, symbol) - 1
        own = self.hierarchy.labels[level][value] == symbol - self._first_symbols[level]
        return self.t[level] if own else self.u[level]

    def row(self, x: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        value = self._checked_input(x)
        weights = np.repeat(np.array(self.u, dtype=np.int64), self._counts)
        for first, labels, true in zip(self._first_symbols, self.hierarchy.labels, self.t, strict=True):
            weights[first + labels[value]] = true
        return weights

    def column(self, symbol: int) -> NDArray[np.int64]:  # noqa: D102 - inherited
        index = self._checked_symbol(symbol)
        level = bisect_right(self._first_symbols, index) - 1
        own = self.hierarchy.labels[level] == index - self._first_symbols[level]
        return np.where(own, np.int64(self.t[level]), np.int64(self.u[level]))

    def select(self, value: int, draw: int) -> int:
        """Return the draw's level, and within it what randomised response over its cells would."""
        level = bisect_right(self._first_draws, draw) - 1
        cell = (draw - self._first_draws[level]) // self.u[level]
        if cell >= self._counts[level]:
            cell = int(self.hierarchy.labels[level][value])
        return self._first_symbols[level] + cell

    def select_many(self, values: NDArray[np.integer[Any]], draws: Words, out: Symbols) -> None:  # noqa: D102
        word = draws.dtype.type
        for level, (start, total) in enumerate(zip(self._first_draws, self._totals, strict=True)):
            where = np.flatnonzero((draws >= word(start)) & (draws <= word(start + total - 1)))
            cells = (draws[where] - word(start)) // word(self.u[level])
            own = self.hierarchy.labels[level][values[where]]
            out[where] = np.where(cells < word(self._counts[level]), cells, own) + self._first_symbols[level]

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        parts = []
        for labels, true, other in zip(self.hierarchy.labels, self.t, self.u, strict=True):
            population = np.bincount(labels, weights=frequencies)
            parts.append((other * frequencies.sum() + (true - other) * population) / self.total)
        return np.concatenate(parts)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The levels that symbols are about, coarsest first."""
        return tuple(
            Level(
                labels,
                Fraction(total, self.total),
                Support(Fraction(true, total), Fraction(other, total), Fraction(0), Fraction(0), 1),
            )
            for labels, total, true, other in zip(
                self.hierarchy.labels, self._totals, self.t, self.u, strict=True
            )
        )

    def split(self, counts: NDArray[Any], n: float) -> list[tuple[float, NDArray[Any]]]:
        """Return per level how many reports are about it, and their counts."""
        del n
        parts = np.split(counts, self._first_symbols[1:])
        return [(float(part.sum()), part) for part in parts]

    def mixed(self, scale: int, dummy: int) -> Levels:  # noqa: D102 - inherited
        t, u = ([scale * weight + dummy for weight in each] for each in (self.t, self.u))
        common = gcd(*t, *u)
        return Levels(self.hierarchy, [each // common for each in t], [each // common for each in u])

    def narrowed(self, limit: int) -> Levels:  # noqa: D102 - inherited
        pairs = [narrowed_pair(t, u, self.total, limit) for t, u in zip(self.t, self.u, strict=True)]
        return Levels(self.hierarchy, *map(list, zip(*pairs, strict=True)))

    def to_spec(self) -> dict[str, SpecValue]:  # noqa: D102 - inherited
        return {
            "kind": self.kind,
            "inputs": self.inputs,
            "sizes": self.hierarchy.concatenated,
            "t": list(self.t),
            "u": list(self.u),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        check_spec_keys(spec, "inputs", "sizes", "t", "u")
        hierarchy = Hierarchy.joined(spec_int(spec, "inputs"), spec_ints(spec, "sizes"))
        return cls(hierarchy, spec_ints(spec, "t"), spec_ints(spec, "u"))


def levels(
    sizes: Sizes,
    *,
    epsilon: float,
    shares: Sequence[float] | None = None,
    oracles: Literal["best", "grr"] = "best",
) -> Levels | SetLevels:
    """Return level sampling over a tree of categories.

    Args:
        sizes: Values per category, inputs numbered category by category; or, for a category that consists of
            categories, a list in its place. [3, 4] has two levels, [[3, 4], [5]] three.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        shares: The share of reports about each level, coarsest first, the last one being the values; each
            above 0, together 1. None: equal shares.
        oracles: "best": subset selection over each level's cells, of the size with the least squared error,
            which with one cell is randomised response; "grr": randomised response at every level.

    Returns:
        A channel of numbers where every level has randomised response, else one of sets.

    Raises:
        ParameterError: If a parameter is out of range, or no integers can express them.

    >>> levels([10] * 9, epsilon=1.0).width
    13
    """
    hierarchy = Hierarchy.of(sizes)
    declared = checked_epsilon(epsilon)
    parts = _checked_shares(shares, len(hierarchy.bins))
    if oracles not in ("best", "grr"):
        raise ParameterError(f'oracles must be "best" or "grr", got {oracles!r}')
    if oracles == "best":
        chosen = [subset_selection(cells, epsilon=declared) for cells in hierarchy.bins]
        if any(oracle.size > 1 for oracle in chosen):
            bounds = [math.floor(sum(parts[: k + 1]) * WORD) for k in range(len(parts) - 1)]
            whole = np.diff([0, *bounds, WORD]).tolist()
            return SetLevels(hierarchy, whole, [o.size for o in chosen], [o.p_draws for o in chosen])
    return Levels(hierarchy, *level_weights(hierarchy.bins, parts, declared))


def _checked_shares(shares: Sequence[float] | None, depth: int) -> list[Fraction]:
    if shares is None:
        return [Fraction(1, depth)] * depth
    given = [float(share) for share in shares]
    if len(given) != depth or not all(0.0 < share < 1.0 for share in given) or abs(sum(given) - 1.0) > 1e-9:
        raise ParameterError(f"shares must be {depth} numbers above 0 that sum to one, got {given}")
    exact = [Fraction(share) for share in given]
    return [share / sum(exact) for share in exact]


def level_weights(
    counts: Sequence[int], shares: Sequence[Fraction], epsilon: float
) -> tuple[list[int], list[int]]:
    """Return weights t and u per level, ln(t/u) at most epsilon, totals in proportion to the shares.

    Args:
        counts: Cells per level.
        shares: Of reports per level, together 1.
        epsilon: Declared; 2^-36 of it is left.

    Raises:
        ParameterError: If no total below 2^63 can express them.
    """
    ceiling = exp_below(epsilon - HEADROOM)
    aim = math.log(ceiling)
    for limit in TOTALS:
        u = [math.floor(share * limit / (ceiling + n - 1)) for share, n in zip(shares, counts, strict=True)]
        t = [math.floor(ceiling * other) for other in u]
        if all(
            true > other >= 1 and log_above(true, other) >= aim * (1.0 - NARROW_LOSS)
            for true, other in zip(t, u, strict=True)
        ):
            return t, u
    raise ParameterError(
        f"no total below 2^63 can express e^{aim:.6g} and these shares on {max(counts)} inputs"
    )
