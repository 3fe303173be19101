"""The categories of an orbit channel, grouped by size: what a permutation of values may exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS
from hubbub.errors import ParameterError

Scalar = TypeVar("Scalar", bound=np.generic)


class Layout:
    """The values of categories, numbered category by category, and the classes of categories of one size.

    Attributes:
        sizes: Values per category, in the order of the inputs.
        values: K, missing left out.
        class_sizes: s per class, falling.
        many: m per class.
        held: s m per class: its values.
        class_of: Class of every category, shape (categories,).
        rank: Number of every category among those of its class.
        members: Per class the inputs of its categories, shape (m, s).
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """Set the classes: categories of one size each.

        Raises:
            ParameterError: If a size is below 1, or values are fewer than two or too many.
        """
        if not sizes or min(sizes) < 1 or not 2 <= sum(sizes) <= MAX_INPUTS:
            raise ParameterError(f"categories must have 2 to {MAX_INPUTS} values, each one at least")
        self.sizes = tuple(int(size) for size in sizes)
        self.values = sum(self.sizes)
        self.class_sizes = tuple(sorted(set(self.sizes), reverse=True))
        number = {size: g for g, size in enumerate(self.class_sizes)}
        self.class_of = np.array([number[size] for size in self.sizes])
        starts = np.cumsum(self.sizes, dtype=np.intp) - np.array(self.sizes, dtype=np.intp)
        self.rank = np.zeros(len(self.sizes), dtype=np.intp)
        self.members: list[NDArray[np.intp]] = []
        for g, size in enumerate(self.class_sizes):
            own = np.flatnonzero(self.class_of == g)
            self.rank[own] = np.arange(len(own))
            self.members.append(starts[own][:, None] + np.arange(size))
        self.many = tuple(len(members) for members in self.members)
        self.held = tuple(members.size for members in self.members)
        self.labels = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.place = np.arange(self.values) - starts[self.labels]

    @property
    def classes(self) -> int:
        """The number of classes."""
        return len(self.class_sizes)

    def split(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        """Return per class the entries of its values, shape (m, s, ...), from an array of shape (K, ...)."""
        return [array[members] for members in self.members]

    def joined(self, parts: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return shape (K, ...) from parts per class of shape (m, s, ...)."""
        out = np.empty((self.values, *parts[0].shape[2:]), dtype=parts[0].dtype)
        for members, part in zip(self.members, parts, strict=True):
            out[members] = part
        return out

    def by_category(self, parts: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return shape (categories, ...) from parts per class of shape (m, ...)."""
        out = np.empty((len(self.sizes), *parts[0].shape[1:]), dtype=parts[0].dtype)
        for g, part in enumerate(parts):
            out[self.class_of == g] = part
        return out
