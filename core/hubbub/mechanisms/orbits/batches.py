"""Draws of many orbits together: the law of `OrbitSampler`, step by step, sixteen cells to a word."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import Arrangements, OrbitSampler
from hubbub.numeric.packed_subsets import PLANE, Planes, hold_value, planes_of, subset_planes
from hubbub.numeric.picks import Listed, Weighted
from hubbub.numeric.randomness import Source

_ALL: Final = 2**16 - 1

Numbers = NDArray[np.integer[Any]]


class Drawn(NamedTuple):
    """A batch of draws.

    Attributes:
        orbit: The orbit of every row, shape (n,).
        parts: Per class the sets of its categories, shape (planes of a category, categories, n), uint16.
    """

    orbit: Numbers
    parts: list[NDArray[np.uint16]]


class OrbitBatches:
    """A sampler of many sets of a channel of orbits at a time."""

    def __init__(self, sampler: OrbitSampler) -> None:
        self._sampler = sampler
        self._classes = [_ClassCounts(sampler, g) for g in range(sampler.layout.classes)]

    @property
    def _layout(self) -> Layout:
        return self._sampler.layout

    @cached_property
    def _laws(self) -> list[Weighted]:
        ends = [row.bounds for row in self._sampler.rows]
        return [Weighted([b - a for a, b in zip([0, *row], row, strict=False)]) for row in ends]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(row.outcomes) for row in self._sampler.rows)]

    @cached_property
    def _fields(self) -> tuple[Numbers, NDArray[np.bool_], NDArray[np.int32]]:
        """The orbit, in or out, and the own count of every outcome of every row, one after another."""
        every = [outcome for row in self._sampler.rows for outcome in row.outcomes]
        orbits, inside, counts = zip(*every, strict=True)
        return np.array(orbits, dtype=np.uint8), np.array(inside), np.array(counts, dtype=np.int32)

    def many(self, values: NDArray[np.integer[Any]], source: Source) -> Drawn:
        """Return the orbit of a set for every value, and the sets, category by category."""
        layout, n = self._layout, len(values)
        homes = self._homes(values)
        outcome = np.empty(n, dtype=np.int32)
        for law, start, own in zip(self._laws, self._starts, homes, strict=False):
            drawn = law.many(n if own is None else own.size, source)
            outcome[slice(None) if own is None else own] = drawn.astype(np.int32) + start
        orbits, inside, count = self._fields
        parts = []
        for g, counted in enumerate(self._classes):
            own = homes[g]
            held, of = (values, outcome) if own is None else (values[own], outcome[own])
            number = layout.labels.take(held)
            true = _True(
                np.arange(n) if own is None else own,
                layout.rank.take(number),
                inside.take(of),
                count.take(of),
                layout.place.take(held),
            )
            parts.append(self._sets(g, counted.many(outcome, true, source), true, source))
        return Drawn(orbits.take(outcome), parts)

    def _homes(self, values: NDArray[np.integer[Any]]) -> list[NDArray[np.intp] | None]:
        """Return the rows of every class, and of the missing input last; None for all rows."""
        layout = self._layout
        if len(self._sampler.rows) == 1:
            return [None]
        gone = values == layout.values
        if layout.classes == 1:
            if not gone.any():
                return [None, np.zeros(0, dtype=np.intp)]
            return [np.flatnonzero(~gone), np.flatnonzero(gone)]
        home = layout.class_of[layout.labels[np.where(gone, 0, values)]]
        home[gone] = layout.classes
        return [np.flatnonzero(home == name) for name in range(len(self._sampler.rows))]

    def _sets(self, g: int, counts: NDArray[np.int32], true: _True, source: Source) -> NDArray[np.uint16]:
        """Return the sets of a class's categories, given their counts, 0 of those of the true values."""
        size, (many, n) = self._layout.class_sizes[g], counts.shape
        flat = counts.reshape(-1)
        found = (subset_planes if size <= PLANE else _where_some)(size, flat, source)
        sets = np.zeros((planes_of(size), true.rows.size), dtype=np.uint16)
        labels = subset_planes(size - 1, true.own - true.inside, source)
        sets[: len(labels)] = labels
        hold_value(sets, size, true.place, true.inside)
        found[:, true.rank * n + true.rows] = sets
        return found.reshape(-1, many, n)

    def joined(self, drawn: Drawn) -> Planes:
        """Return the sets of a batch over all inputs, missing last where it is one."""
        layout = self._layout
        missing = len(self._sampler.rows) > layout.classes
        found = np.zeros((planes_of(layout.values + missing) + 1, drawn.orbit.size), dtype=np.uint16)
        for members, part in zip(layout.members, drawn.parts, strict=True):
            for category, start in enumerate(members[:, 0].tolist()):
                plane, shift = divmod(start, PLANE)
                for i, own in enumerate(part[:, category]):
                    found[plane + i] |= own << np.uint16(shift)
                    if shift:
                        found[plane + i + 1] |= own >> np.uint16(PLANE - shift)
        if missing:
            plane, shift = divmod(layout.values, PLANE)
            holds = np.array([orbit.missing << shift for orbit in self._sampler.orbits], dtype=np.uint16)
            found[plane] |= holds.take(drawn.orbit)
        return found[:-1]


class _True(NamedTuple):
    """The true values of a class: rows, categories' numbers, in or out, own counts and places."""

    rows: NDArray[np.intp]
    rank: NDArray[np.intp]
    inside: NDArray[np.bool_]
    own: NDArray[np.int32]
    place: NDArray[np.intp]


class _ClassCounts:
    """The counts of a class's categories, given the outcome of a row.

    Where the true value is of the class, the other categories have all counts of the orbit but its own.
    """

    def __init__(self, sampler: OrbitSampler, g: int) -> None:
        self._sampler, self._g = sampler, g

    @cached_property
    def _arrangements(self) -> list[tuple[Arrangements, bool]]:
        """Of every outcome of every row, one after another; an own count is left out, and its place is 0."""
        found = []
        for name, row in enumerate(self._sampler.rows):
            for outcome in row.outcomes:
                own = outcome.own_count if name == self._g else -1
                found.append((self._sampler.arranged(outcome.orbit, self._g, own), own >= 0))
        return found

    @cached_property
    def _listed(self) -> tuple[Listed, NDArray[np.int32]] | None:
        """The law of arrangements, and all as columns, shape (categories, all), if all are listed."""
        if not all(each.few for each, _ in self._arrangements):
            return None
        tables = [np.pad(each.table, ((0, 0), (int(own), 0))) for each, own in self._arrangements]
        columns = np.ascontiguousarray(np.concatenate(tables).T)
        return Listed([len(table) for table in tables]), columns

    def many(self, outcome: NDArray[np.int32], true: _True, source: Source) -> NDArray[np.int32]:
        """Return the counts of the categories of every row, 0 of those of the true values, shape (m, n)."""
        n, many = outcome.size, self._sampler.layout.many[self._g]
        counts = np.empty((many, n), dtype=np.int32)
        if self._listed is not None:
            law, columns = self._listed
            entries = law.many(outcome, source)
            for row, column in zip(counts, columns, strict=True):
                np.take(column, entries, out=row, mode="clip")
        else:
            for number, (arranged, own) in enumerate(self._arrangements):
                at = np.flatnonzero(outcome == number)
                if at.size:
                    counts[int(own) :, at] = arranged.many(at.size, source).T
        # The first place is nobody's where the category is in the class: the two change places.
        flat, at = counts.reshape(-1), true.rank * n
        at += true.rows
        counts[0, true.rows] = flat.take(at)
        flat[at] = 0
        return counts


def _where_some(size: int, counts: NDArray[np.int32], source: Source) -> Planes:
    """Return subsets of a size as `subset_planes`, drawn only where there is more than one."""
    open_ = np.flatnonzero((counts > 0) & (counts < size))
    if 2 * open_.size > counts.size:
        return subset_planes(size, counts, source)
    found = np.zeros((planes_of(size), counts.size), dtype=np.uint16)
    whole = np.flatnonzero(counts == size)
    for plane, row in enumerate(found):
        row[whole] = _ALL >> max(0, PLANE * (plane + 1) - size)
    found[:, open_] = subset_planes(size, counts[open_], source)
    return found
