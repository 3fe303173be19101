"""Parts of a bundle: a public coin picks one table of a few attributes; the report is about that table alone.

The input is one reading per attribute, and the product of all of them is never built: ten attributes may have
10^8 combinations. A part is a table of one to four attributes, answered by subset selection over its cells at
the full epsilon, or how two of them go together (`LatinSelection`). The coin knows no value, so the loss of a
report is that of its part.

A symbol is the number of the part, two bytes where there are more than 256 of them and else one, then the
part's set of cells, then zeros up to the longest: every report of a survey has one length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.channels.divergence import BlockDivergence
from hubbub.channels.sets import MAX_BINS, WORD, Sets
from hubbub.channels.spec import SpecValue, check_spec_keys, spec_ints
from hubbub.errors import ParameterError
from hubbub.mechanisms.bundle.latin import LatinSelection
from hubbub.mechanisms.subset import SubsetSelection
from hubbub.numeric.randomness import SYSTEM, Source, below_many

MAX_ORDER: Final = 4
"""The most attributes of one part."""

MAX_BUNDLED: Final = 32
MAX_COMBINATIONS: Final = 2**62
"""The most combinations of readings: each has a number, though none of them is built."""

MAX_PARTS: Final = 2**12
"""More than every table of three of 32 attributes would be checked and kept by each device."""

_ONE_BYTE: Final = 256

Members = tuple[int, ...]


def components_of(table: Members) -> tuple[Members, ...]:
    """Return every component of a table but the constant one: its non-empty sets of attributes."""
    return tuple(chain.from_iterable(combinations(table, order) for order in range(1, len(table) + 1)))


@dataclass(frozen=True)
class SampledPart:
    """A table of some attributes, and how it is answered.

    Attributes:
        members: The attributes, rising, by their place among all.
        share: In how many of 2^32 tosses the coin picks it, at least 1.
        size: Cells of a report's set.
        p_draws: In how many of 2^32 draws the true cell is among them.
        classes: 1; of an interaction part, whose sets tell how two attributes go together and no more, how
            many classes the readings of each are put into.
    """

    members: Members
    share: int
    size: int
    p_draws: int
    classes: int = 1

    @property
    def tells(self) -> tuple[Members, ...]:
        """The components that a report tells: of an interaction its own alone."""
        return components_of(self.members) if self.classes == 1 else (self.members,)


class PartBound:
    """The law of an answer whose part is not known, or not told apart, as the privacy filter reads it.

    It has two inputs that stand for all records: under one the answer is as probable as under any, under the
    other as improbable as under any. So its loss is that of the answer at its worst, whatever the record is.
    It is sound for every record, whatever else is known of it.

    Attributes:
        inputs: Two.
    """

    inputs = 2

    def __init__(self, channel: SampledParts) -> None:
        """Keep the channel whose answers are bounded."""
        self._channel = channel

    def column(self, symbol: bytes) -> NDArray[np.int64]:
        """Return the largest and the least weight of a symbol, shape (2,).

        Raises:
            ParameterError: If the channel cannot send it.
        """
        return np.array(self._channel.oracles[self._channel.part_of(symbol)].odds, dtype=np.int64)

    def blocks(self) -> BlockDivergence:
        """Return one block: the largest divergence of any part, in units, from the integers."""
        return BlockDivergence.constant(2, max(oracle.blocks().largest for oracle in self._channel.oracles))


class SampledParts(Channel):
    """A channel from one reading per attribute to a part and a set of its cells.

    Where inputs are numbered, the last attribute's readings change fastest. Methods that build an array of
    all inputs are for small products, and refuse others.

    Attributes:
        inputs: The product of all readings: no array of that length is made.
        readings: Readings of each attribute, missing included.
        parts: The tables, each asked for once.
        oracles: How each of them is answered.
        width: Bytes of a symbol.
    """

    kind = "parts"
    description = (
        "The device draws, whatever you answer, which few of the questions it is asked. It sends a random "
        "set of answers to those, yours more often among them than any other."
    )
    tells_inputs = False

    def __init__(self, readings: Sequence[int], parts: Sequence[SampledPart]) -> None:
        """Set the channel from its integers.

        Raises:
            ParameterError: If they do not make a channel that tells every attribute's readings apart.
        """
        # Not by Channel.__init__: what is bounded here is the cells of the parts, not the product.
        if not 2 <= len(readings) <= MAX_BUNDLED or not all(2 <= each <= MAX_INPUTS for each in readings):
            raise ParameterError(
                f"parts must be of 2 to {MAX_BUNDLED} attributes of 2 readings or more, got {len(readings)}"
            )
        if not 1 <= len(parts) <= MAX_PARTS:
            raise ParameterError(f"parts must be 1 to {MAX_PARTS}, got {len(parts)}")
        for part in parts:
            rising = all(a < b for a, b in zip(part.members, part.members[1:], strict=False))
            if not 1 <= len(part.members) <= MAX_ORDER or not rising or part.members[-1] >= len(readings):
                raise ParameterError(
                    f"a part must be of 1 to {MAX_ORDER} rising attributes, got {part.members}"
                )
        if len({(part.members, part.classes == 1) for part in parts}) < len(parts):
            raise ParameterError("parts must be of attributes that differ, got the same twice")
        if {member for part in parts for member in part.members} != set(range(len(readings))):
            raise ParameterError("every attribute must be in a part, got one in none")
        if min(part.share for part in parts) < 1 or sum(part.share for part in parts) != WORD:
            raise ParameterError("the shares of parts must be at least 1 and sum to 2^32")
        self.readings, self.parts = tuple(readings), tuple(parts)
        self.shapes = tuple(tuple(readings[member] for member in part.members) for part in parts)
        # Bounded before anything of their size is built: a list of surveys comes from outside.
        self.inputs = math.prod(readings)
        if self.inputs > MAX_COMBINATIONS:
            raise ParameterError(f"parts must have at most 2^62 combinations of readings, got {self.inputs}")
        if (bins := len(parts) + sum(map(math.prod, self.shapes))) > MAX_BINS:
            raise ParameterError(f"parts must have at most {MAX_BINS} cells together, got {bins}")
        self.oracles = tuple(
            SubsetSelection(math.prod(shape), part.size, part.p_draws)
            if part.classes == 1
            else LatinSelection(shape, part.classes, part.size, part.p_draws)
            for shape, part in zip(self.shapes, parts, strict=True)
        )
        self._number_bytes = 1 if len(parts) <= _ONE_BYTE else 2
        self.width = self._number_bytes + max(oracle.width for oracle in self.oracles)
        sizes = [len(parts), *(oracle.inputs for oracle in self.oracles)]
        self._ends = np.cumsum(sizes)
        self._coin = np.cumsum([part.share for part in parts[:-1]], dtype=np.int64)

    def __repr__(self) -> str:
        return (
            f"<SampledParts of {len(self.readings)} attributes, {len(self.parts)} tables, "
            f"epsilon {self.epsilon:.9g}>"
        )

    @cached_property
    def epsilon(self) -> float:
        """The certified epsilon: the largest of any part's, as the coin knows no value."""
        return max(oracle.epsilon for oracle in self.oracles)

    def category_rule(self, category_of: NDArray[np.intp]) -> str:
        """Return that no categories fit: the part is picked by a coin that a bundle alone keeps."""
        del category_of
        return "must be none where the channel is of parts"

    @property
    def most_blocks(self) -> int:
        """One: that of the largest divergence."""
        return 1

    @property
    def block_work(self) -> int:
        """The work of the divergences of all parts."""
        return sum(oracle.block_work for oracle in self.oracles)

    @cached_property
    def bound(self) -> PartBound:
        """The law that the privacy filter reserves, whichever part the coin will pick; one object."""
        return PartBound(self)

    # The device: a toss, then an answer about the part that it picked.

    def part_at(self, toss: int) -> int:
        """Return the part that a toss in 0..2^32 - 1 picks."""
        return int(np.searchsorted(self._coin, toss, side="right"))

    def cell_of(self, part: int, readings: Sequence[int]) -> int:
        """Return the cell of a part's table for one reading per attribute."""
        return self.cell_in(part, [readings[member] for member in self.parts[part].members])

    def cell_in(self, part: int, own: Sequence[int]) -> int:
        """Return the cell of a part's table for one reading per attribute of the part.

        Raises:
            ParameterError: If a reading is not its attribute's; the message does not repeat it.
        """
        cell = 0
        for reading, size in zip(own, self.shapes[part], strict=True):
            if not 0 <= reading < size:
                raise ParameterError("a reading must be within its attribute's, got one outside")
            cell = cell * size + reading
        return cell

    def answer(self, part: int, cell: int, *, source: Source = SYSTEM) -> bytes:
        """Return a fresh symbol about one part: of its table the cell, perturbed at the full epsilon.

        Args:
            part: As `part_at` picked it: by a coin that knows no value, and is never tossed again.
            cell: As `cell_of` gives it.
            source: Where the bytes come from; leave it alone outside simulations and tests.

        Raises:
            ParameterError: If there is no such cell; the message does not repeat it.
        """
        drawn = self.oracles[part].perturb(cell, source=source)
        symbol = part.to_bytes(self._number_bytes, "little") + drawn
        return symbol.ljust(self.width, b"\0")

    def answers(
        self, parts: NDArray[np.intp], readings: NDArray[np.integer[Any]], *, source: Source = SYSTEM
    ) -> Sets:
        """Return a fresh symbol per device, shape (n, width), for simulation.

        Args:
            parts: Each device's part, shape (n,).
            readings: A reading per device and attribute, shape (n, attributes).
            source: Where the bytes come from.
        """
        symbols = np.zeros((len(parts), self.width), dtype=np.uint8)
        for place in range(self._number_bytes):
            symbols[:, place] = parts >> (8 * place) & 255
        for part, oracle in enumerate(self.oracles):
            rows = np.flatnonzero(parts == part)
            if rows.size:
                columns = readings[rows][:, list(self.parts[part].members)]
                cells = np.ravel_multi_index(tuple(columns.T.astype(np.intp)), self.shapes[part])
                symbols[rows, self._set_of(oracle)] = oracle.perturb(cells, source=source)
        return symbols

    def tosses(self, size: int, *, source: Source = SYSTEM) -> NDArray[np.intp]:
        """Return the part of each of so many devices, shape (size,), as their coins pick it."""
        return np.searchsorted(self._coin, below_many(WORD, size, source).astype(np.int64), side="right")

    @overload
    def perturb(self, values: int, *, source: Source = SYSTEM) -> bytes: ...
    @overload
    def perturb(
        self, values: NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> Sets: ...
    def perturb(  # noqa: D102 - inherited
        self, values: int | NDArray[np.integer[Any]] | Sequence[int], *, source: Source = SYSTEM
    ) -> bytes | Sets:
        array = self._checked_values(values)
        readings = self._unravelled(array.reshape(-1))
        drawn = self.answers(self.tosses(len(readings), source=source), readings, source=source)
        return drawn if array.ndim else drawn.tobytes()

    def _unravelled(self, values: NDArray[np.integer[Any]]) -> NDArray[np.intp]:
        """Return the readings that inputs stand for, shape (n, attributes)."""
        found = np.empty((values.size, len(self.readings)), dtype=np.intp)
        rest = values.astype(np.int64)
        for place in range(len(self.readings) - 1, -1, -1):
            found[:, place] = rest % self.readings[place]
            rest = rest // self.readings[place]
        return found

    # The server: counts are the reports of every part, then the cells of every part's table.

    def _set_of(self, oracle: SubsetSelection) -> slice:
        return slice(self._number_bytes, self._number_bytes + oracle.width)

    def _numbers(self, symbols: Sets) -> NDArray[np.intp]:
        numbers = symbols[:, 0].astype(np.intp)
        return numbers if self._number_bytes == 1 else numbers + 256 * symbols[:, 1].astype(np.intp)

    def part_of(self, symbol: bytes) -> int:
        """Return the part that a symbol is about.

        Raises:
            ParameterError: If the channel cannot send it.
        """
        if not self.admits(symbol):
            raise ParameterError(f"a symbol must be {self.width} bytes that the channel can send, got others")
        return int.from_bytes(symbol[: self._number_bytes], "little")

    def set_of(self, symbol: bytes) -> bytes:
        """Return the set of cells of the part that a symbol is about."""
        return symbol[self._set_of(self.oracles[self.part_of(symbol)])]

    @property
    def widest_symbol(self) -> bytes:  # noqa: D102 - inherited
        return bytes(self.width)

    @property
    def bins(self) -> int:
        """Parts, and the cells of all their tables."""
        return int(self._ends[-1])

    def admits(self, symbol: object) -> bool:  # noqa: D102 - inherited
        if not isinstance(symbol, bytes) or len(symbol) != self.width:
            return False
        number = int.from_bytes(symbol[: self._number_bytes], "little")
        if number >= len(self.parts):
            return False
        own = self._set_of(self.oracles[number])
        return self.oracles[number].admits(symbol[own]) and not any(symbol[own.stop :])

    def contains(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.bool_]:  # noqa: D102
        valid = np.zeros(len(symbols), dtype=np.bool_)
        if symbols.ndim != 2 or symbols.shape[1] != self.width or symbols.dtype != np.uint8:
            return valid
        packed = symbols.view(np.uint8)
        numbers = self._numbers(packed)
        for part, oracle in enumerate(self.oracles):
            rows = packed[at := numbers == part]
            if len(rows):
                own = self._set_of(oracle)
                valid[at] = oracle.contains(rows[:, own]) & ~rows[:, own.stop :].any(axis=1)
        return valid

    def tally(self, symbols: NDArray[np.unsignedinteger[Any]]) -> NDArray[np.int64]:
        """Return the reports of every part, then how many of them hold each cell of its table."""
        packed = symbols.view(np.uint8)
        numbers = self._numbers(packed)
        counts = [np.bincount(numbers, minlength=len(self.parts))]
        counts += [
            oracle.tally(packed[numbers == part][:, self._set_of(oracle)])
            for part, oracle in enumerate(self.oracles)
        ]
        return np.concatenate(counts)

    def split(self, counts: NDArray[Any]) -> tuple[NDArray[Any], list[NDArray[Any]]]:
        """Return how many reports are about each part, and the counts of each part's cells."""
        reports, *cells = np.split(counts, self._ends[:-1])
        return reports, cells

    def agrees(self, counts: NDArray[np.int64], n: int) -> bool:  # noqa: D102 - inherited
        if counts.size == 0:
            return n == 0
        if counts.shape != (self.bins,) or int(counts.min()) < 0:
            return False
        reports, cells = self.split(counts)
        return int(reports.sum()) == n and all(
            oracle.agrees(own, about)
            for oracle, own, about in zip(self.oracles, cells, reports.tolist(), strict=True)
        )

    def expected(self, frequencies: NDArray[np.float64]) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(1, "expected")
        table = np.asarray(frequencies).reshape(self.readings)
        shares = np.array([part.share for part in self.parts]) / WORD
        found = [shares * table.sum()]
        for part, share, oracle in zip(self.parts, shares, self.oracles, strict=True):
            others = tuple(i for i in range(len(self.readings)) if i not in part.members)
            found.append(share * oracle.expected(table.sum(axis=others).ravel()))
        return np.concatenate(found)

    # All inputs at once, for a product that is small.

    def _cells(self, part: int) -> NDArray[np.intp]:
        """Return the cell of a part for every input, shape (K,)."""
        self._refuse_above(1, "a row of all inputs")
        readings = np.unravel_index(np.arange(self.inputs), self.readings)
        own = tuple(readings[member] for member in self.parts[part].members)
        return np.ravel_multi_index(own, self.shapes[part])

    def column(self, symbol: bytes) -> NDArray[np.int64]:  # noqa: D102 - inherited
        part = self.part_of(symbol)
        return self.oracles[part].column(self.set_of(symbol))[self._cells(part)]

    def log_likelihood(self, symbol: bytes) -> NDArray[np.float64]:  # noqa: D102 - inherited
        part = self.part_of(symbol)
        own = self.oracles[part].log_likelihood(self.set_of(symbol))[self._cells(part)]
        return math.log(self.parts[part].share / WORD) + own

    def loss(self, symbol: bytes) -> float:
        """Return what one symbol tells at most, nats: that of its part, without all inputs."""
        inside, outside = self.oracles[self.part_of(symbol)].odds
        return math.log(inside / outside)

    def blocks(self) -> BlockDivergence:
        """Return one block, at the largest divergence of any part, for a product that is small.

        Raises:
            ParameterError: If it is not: the privacy filter reads `bound`.
        """
        self._refuse_above(1, "blocks")
        return BlockDivergence.constant(self.inputs, self.bound.blocks().largest)

    def divergence(self) -> NDArray[np.float64]:  # noqa: D102 - inherited
        self._refuse_above(self.inputs, "divergence")
        found = np.zeros((self.inputs, self.inputs))
        for part, oracle in enumerate(self.oracles):
            cells = self._cells(part)
            np.maximum(found, np.log(oracle.odds[0] / oracle.odds[1]) * (cells[:, None] != cells), out=found)
        return found

    def to_spec(self) -> dict[str, SpecValue]:
        """Return the integers of every part; attributes count from 1 there."""
        classes = [part.classes for part in self.parts]
        return {
            "kind": self.kind,
            "readings": list(self.readings),
            "orders": [len(part.members) for part in self.parts],
            "members": [member + 1 for part in self.parts for member in part.members],
            "shares": [part.share for part in self.parts],
            "subset": [part.size for part in self.parts],
            "held": [part.p_draws for part in self.parts],
            **({"classes": classes} if max(classes) > 1 else {}),
        }

    @classmethod
    def from_spec(cls, spec: Mapping[str, object]) -> Self:  # noqa: D102 - inherited
        names = ("readings", "orders", "members", "shares", "subset", "held")
        check_spec_keys(spec, *names, *(["classes"] if "classes" in spec else []))
        readings, orders, members, shares, subset, held = (spec_ints(spec, name) for name in names)
        classes = spec_ints(spec, "classes") if "classes" in spec else [1] * len(orders)
        own = (shares, subset, held, classes)
        if any(len(each) != len(orders) for each in own) or sum(orders) != len(members):
            raise ParameterError(f"each of {len(orders)} parts must have its attributes and its integers")
        if "classes" in spec and max(classes) == 1:
            raise ParameterError("classes must be left out where no part is an interaction")
        ends = np.cumsum(orders).tolist()
        named = [
            tuple(m - 1 for m in members[end - order : end]) for order, end in zip(orders, ends, strict=True)
        ]
        return cls(readings, [SampledPart(*each) for each in zip(named, *own, strict=True)])
