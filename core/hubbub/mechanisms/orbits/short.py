"""Channels of orbits by few bytes, and the integers of a channel from a mixture in floats.

Orbits whose sets lie in one category have symbols that name it: 2 + s/8 bytes where others take K/8. At
larger epsilons the best mixtures hold a few values of a single category. The channel is the same, with the
same integers; its symbol is a byte with the orbit's number, the number of the category (one byte, or two
where there are more than 256 categories), and a bit for each of its values, padded to the largest category
that any orbit holds values of. The missing input is in or out as the orbit says.

Integers are moved within what epsilon allows, so that it is never exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.sets import FEW, Sets
from hubbub.errors import ParameterError
from hubbub.mechanisms.orbits.channel import OrbitChannel
from hubbub.mechanisms.orbits.layout import Layout
from hubbub.mechanisms.orbits.sampling import Orbit, shift_of
from hubbub.mechanisms.orbits.settling import settled
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below
from hubbub.numeric.packed_subsets import packed_rows, planes_of
from hubbub.numeric.randomness import Source


class ShortOrbitChannel(OrbitChannel):
    """An orbit channel of sets of one category each, which its symbols name."""

    kind = "short_orbits"
    description = (
        "The device sends a category and random answers of it, your category and your answer more often."
    )

    def __init__(self, sizes: Sequence[int], orbits: Sequence[Orbit], unit: int = 1) -> None:
        """Build the channel from its integers; see `OrbitChannel`.

        Raises:
            ParameterError: If they break a rule of channels, or a set has values of several categories.
        """
        super().__init__(sizes, orbits, unit)
        if not _of_one_category(self):
            raise ParameterError("short orbits must hold values of one category each, got one of several")
        layout = self.layout
        # Of every orbit the class and the count of its one category.
        self._held = [next((g, k) for g, k in enumerate(orbit.held) if k) for orbit in self.orbits]
        self._own = (max(layout.class_sizes[g] for g, _ in self._held) + 7) // 8
        self._name = 1 if len(layout.sizes) <= 2**8 else 2
        self.width = 1 + self._name + self._own
        self._starts = np.cumsum(layout.sizes) - np.array(layout.sizes)

    def draw(self, value: int, source: Source) -> bytes:  # noqa: D102 - inherited
        t, members = self._sampler.one(value, source)
        first = (members & -members).bit_length() - 1  # in the one category: missing is the last input
        category = int(self.layout.labels[first])
        start, size = int(self._starts[category]), self.layout.sizes[category]
        own = members >> start & (1 << size) - 1
        return bytes((t,)) + category.to_bytes(self._name, "little") + own.to_bytes(self._own, "little")

    def draw_many(self, values: NDArray[np.integer[Any]], source: Source) -> Sets:  # noqa: D102 - inherited
        if len(values) <= FEW:
            return self._one_by_one(values, source)
        orbit, parts = self._batches.many(values, source)
        category = np.zeros(len(values), dtype=np.int64)
        own = np.zeros((planes_of(8 * self._own), len(values)), dtype=np.uint16)
        for g, part in enumerate(parts):
            numbers = np.flatnonzero(self.layout.class_of == g)
            for rank, planes in enumerate(part.swapaxes(0, 1)):
                held = planes.any(axis=0)
                category[held] = numbers[rank]
                own[: len(planes)] |= planes[: len(own)]  # one category has members: the others add nothing
        symbols = np.empty((len(values), self.width), dtype=np.uint8)
        symbols[:, 0] = orbit
        for byte in range(self._name):
            symbols[:, 1 + byte] = category >> 8 * byte & 0xFF
        symbols[:, 1 + self._name :] = packed_rows(own, self._own)
        return symbols

    def contains_sets(self, symbols: Sets) -> NDArray[np.bool_]:  # noqa: D102 - inherited
        orbit, category, own = self._parts(symbols)
        known = (orbit < len(self.orbits)) & (category < len(self.layout.sizes))
        named = np.where(known, category, 0)
        held = np.array(self._held)[np.where(known, orbit, 0)]
        spare = np.arange(own.shape[1]) >= np.array(self.layout.sizes)[named][:, None]
        known &= (self.layout.class_of[named] == held[:, 0]) & (own.sum(axis=1) == held[:, 1])
        return np.asarray(known & ~(own.astype(np.bool_) & spare).any(axis=1))

    def _parts(self, symbols: Sets) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
        """Return orbits and categories, shape (n,), and the bits of the category's values."""
        category = symbols[:, 1].astype(np.int64)
        if self._name == 2:
            category |= symbols[:, 2].astype(np.int64) << 8
        own = np.unpackbits(symbols[:, 1 + self._name :], axis=1, bitorder="little")
        return symbols[:, 0].astype(np.int64), category, own

    def _bits(self, symbols: Sets) -> NDArray[np.bool_]:
        """Return which inputs each valid symbol's set holds, shape (n, K)."""
        orbit, category, own = self._parts(symbols)
        found = np.zeros((len(symbols), self.inputs), dtype=np.bool_)
        rows, places = np.nonzero(own)
        found[rows, self._starts[category[rows]] + places] = True
        if self.missing:
            found[:, -1] = np.array([each.missing for each in self.orbits])[orbit]
        return found

    def _number_of(self, symbol: bytes) -> int:
        """Return the orbit of one symbol of the right width, -1 where it is none."""
        t, category = symbol[0], int.from_bytes(symbol[1 : 1 + self._name], "little")
        if t >= len(self.orbits) or category >= len(self.layout.sizes):
            return -1
        own = int.from_bytes(symbol[1 + self._name :], "little")
        if own >> self.layout.sizes[category]:
            return -1
        return t if (int(self.layout.class_of[category]), own.bit_count()) == self._held[t] else -1


def shortest(channel: OrbitChannel) -> OrbitChannel:
    """Return the same channel with short symbols, if it has them and they are shorter; else itself."""
    if not _of_one_category(channel):
        return channel
    short = ShortOrbitChannel(channel.layout.sizes, channel.orbits, channel.unit)
    return short if short.width < channel.width else channel


def _of_one_category(channel: OrbitChannel) -> bool:
    return all(sum(n > 0 for part in orbit.counts for n in part) == 1 for orbit in channel.orbits)


Mixture = Sequence[tuple[Sequence[Sequence[int]], bool, float]]
"""Per orbit its counts per class and category, whether it holds missing, and its share of the reports."""


def compiled(sizes: Sequence[int], mixture: Mixture, *, epsilon: float, missing: bool) -> OrbitChannel:
    """Return the integer channel of a mixture of orbits.

    Each orbit has a box from t to e^epsilon t, t its weight relative to the total; weights start at its ends.
    What a row lacks or has too much by rounding is moved within the boxes, so that epsilon cannot be
    exceeded.

    Args:
        sizes: Values per category, without missing.
        mixture: The orbits.
        epsilon: The declared epsilon; the certified one is at least 2^-36 below it.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If the shares do not make rows that sum to one, within what rounding explains.
    """
    layout = Layout(sizes)
    # Weights of 50 bits and more come so near to the ceiling that its logarithm rounds to the bound itself.
    ceiling = exp_below(checked_epsilon(epsilon) - 1.01 * HEADROOM)
    total = 1 << shift_of(layout.values)
    a1 = float(ceiling) - 1.0
    boxes = []
    for counts, _, share in mixture:
        held = sum(sum(part) for part in counts)
        low = max(math.floor(Fraction(share / (1.0 + a1 * held / layout.values)) * total), 1)
        boxes.append((low, math.floor(ceiling * low)))
    rows = []
    for g, values in enumerate(layout.held):
        entries = []
        for (counts, _, _), (low, high) in zip(mixture, boxes, strict=True):
            k = sum(counts[g])
            entries += [(k, (low, high), high), (values - k, (low, high), low)]
        rows.append(settled(entries, values * total))
    gone = [0] * len(mixture)
    if missing:
        wanted = [
            (1, box, box[1] if holds else box[0]) for (_, holds, _), box in zip(mixture, boxes, strict=True)
        ]
        gone = settled(wanted, total)
    orbits = []
    for t, (counts, holds, _) in enumerate(mixture):
        shape = tuple(tuple(sorted((int(n) for n in part), reverse=True)) for part in counts)
        inside, outside = (tuple(row[2 * t + way] for row in rows) for way in (0, 1))
        orbits.append(Orbit(shape, bool(holds), inside, outside, gone[t]))
    channel = OrbitChannel(sizes, orbits)
    if channel.epsilon > epsilon:
        raise ParameterError(f"no integers can express these orbits at epsilon {epsilon:g}")
    return channel
