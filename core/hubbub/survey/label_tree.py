"""The form of a survey that asks for a tree of labels, or for the cells of a heat map: every level at once.

Values are grouped into categories, these into larger ones, to eight levels and as unequally as life has it;
a branch that ends early stays one category at the levels below. A heat map has two integers of 2^k values
each. Its cells stand in Morton order, so that four neighbours are a category, four such neighbours a larger
one: a tree too. Whoever lacks a value is missing, by itself at every level; of a heat map, whoever lacks
either integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms import Hierarchy
from hubbub.survey.domain import MAX_SIZE, Attribute, IntegerDomain, NumberDomain
from hubbub.survey.form import BaseForm, FormEntry
from hubbub.survey.rules import MAX_NAME_CHARACTERS, MISSING, Rules, check_attributes
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "tree"
QUADTREE: Final = "quadtree"

MAX_TREE_LEVELS: Final = 8
"""Levels of categories: with more, a level has too small a part of the reports."""

_CHANNELS: Final = ("nested_levels", "levels")
_BETWEEN: Final = " / "


@dataclass(frozen=True, eq=False)
class LabelTree(BaseForm):
    """A tree of labels, or a heat map.

    Attributes:
        attributes: One of integers or labels; of a heat map two of integers, across and up.
        places: Input of every index of the domain and, last, of missing, shape (size + 1,): the values in
            the order of the tree. Of a heat map an axis for each attribute.
        sizes: Values in every category, level by level from the coarsest; missing left out.
        names: Their names; a category that is not split is named again at the next level. None: a heat map.
    """

    attributes: tuple[Attribute, ...]
    places: NDArray[np.intp]
    sizes: tuple[tuple[int, ...], ...]
    names: tuple[tuple[str, ...], ...] | None

    def __post_init__(self) -> None:
        self.places.setflags(write=False)

    @property
    def mapping(self) -> NDArray[np.intp]:
        """Input of every index of the domain and, last, of missing, an axis for each attribute."""
        return self.places

    @classmethod
    def quadtree(cls, rules: Rules, attributes: Sequence[Attribute]) -> LabelTree:
        """Return the heat map of two integers.

        Raises:
            SurveyError: If they are not two integers of 2^k values each, k from 2 to 8.
        """
        check_attributes(rules, attributes, 2, 2)
        for i, attribute in enumerate(attributes):
            if not isinstance(attribute.domain, IntegerDomain):
                rules.refuse(f"attribute[{i}].type", "must be integer in a heat map", attribute.to_spec()[2])
        across, up = (attribute.size for attribute in attributes)
        depth = across.bit_length() - 1
        if across != up or across != 1 << depth or not 2 <= depth <= MAX_TREE_LEVELS:
            rules.refuse("attribute", "must be two of as many values, 4, 8, 16, to 256", [across, up])
        cells = across * up
        mapping = np.full((across + 1, up + 1), cells, dtype=np.intp)
        mapping[:-1, :-1] = _spread(np.arange(across))[:, None] + 2 * _spread(np.arange(up))
        sizes = tuple((cells >> 2 * level,) * (1 << 2 * level) for level in range(1, depth))
        return cls(tuple(attributes), mapping, sizes, None)

    @property
    def inputs(self) -> int:
        """K, missing included."""
        return int(self.mapping.flat[-1]) + 1

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for."""
        return "; ".join(attributes) if len(attributes) == 1 else f"at once: {'; '.join(attributes)}"

    def hierarchy(self) -> Hierarchy:
        """Return the tree as a channel has it: missing is a cell of its own at every level.

        Raises:
            ParameterError: If a level's sizes do not add up, or it does not split the one before.
        """
        return Hierarchy(self.inputs, [[*level, 1] for level in self.sizes])

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If attribute, mapping, levels or names are not such, or not those of the channel.
        """
        if self.names is not None:
            self._check_mapping(rules)
            if not 1 <= len(self.sizes) <= MAX_TREE_LEVELS:
                rules.refuse("category", f"must have 1 to {MAX_TREE_LEVELS} levels", len(self.sizes))
        if channel.kind not in _CHANNELS:
            rules.refuse("mechanism.name", "must be levels for a tree of labels", channel.kind)
        try:
            own = self.hierarchy().concatenated
        except ParameterError as error:
            rules.refuse("category", f"must be levels of a tree ({error})", len(self.sizes))
        if channel.to_spec().get("sizes") != own or channel.inputs != self.inputs:
            rules.refuse("category", "must be the levels of its channel", channel.kind)
        if self.names is not None:
            self._check_names(rules, self.names)

    def _check_mapping(self, rules: Rules) -> None:
        check_attributes(rules, self.attributes, 1, 1)
        attribute = self.attributes[0]
        if isinstance(attribute.domain, NumberDomain):
            rules.refuse("attribute.type", "must be integer or label in a tree of labels", "number")
        places = np.arange(attribute.size + 1)
        if not np.array_equal(np.sort(self.mapping), places) or self.mapping[-1] != attribute.size:
            rules.refuse(
                "attribute", "must have an input for every value, missing the last", len(self.mapping)
            )

    def _check_names(self, rules: Rules, names: Sequence[Sequence[str]]) -> None:
        if [len(level) for level in names] != [len(level) for level in self.sizes]:
            rules.refuse("category", "must have a name for each", sum(map(len, names)))
        for level in names:
            for name in level:
                rules.text("category.name", name, MAX_NAME_CHARACTERS)
        for labels in self._labels:
            if len(set(labels)) != len(labels):
                double = next(label for label in labels if labels.count(label) > 1)
                rules.refuse("category", "must have names that differ within a category", double)
        for above, below in pairwise(self._ends):
            for at, name in below.items():
                if above.get(at, name) != name:
                    rules.refuse("category", "must keep its name where it is not split", name)

    @property
    def _ends(self) -> list[dict[tuple[int, int], str]]:
        """Every level's categories by their first and last value."""
        found = []
        for sizes, names in zip(self.sizes, self.names or (), strict=True):
            ends = np.cumsum(sizes).tolist()
            found.append(dict(zip(pairwise([0, *ends]), names, strict=True)))
        return found

    @cached_property
    def _labels(self) -> tuple[tuple[str, ...], ...]:
        """Every level's categories with what they are in, missing last."""
        if self.names is None:
            depth = self.attributes[0].size.bit_length() - 1
            return tuple((*self._cells(depth - level), MISSING) for level in range(1, len(self.sizes) + 1))
        found: list[tuple[str, ...]] = []
        for level, (sizes, names) in enumerate(zip(self.sizes, self.names, strict=True)):
            if level == 0:
                found.append((*names, MISSING))
                continue
            above = self._above(level)
            labels = (
                found[-1][place]
                if self.sizes[level - 1][place] == size
                else f"{found[-1][place]}{_BETWEEN}{name}"
                for place, size, name in zip(above, sizes, names, strict=True)
            )
            found.append((*labels, MISSING))
        return tuple(found)

    def _above(self, level: int) -> list[int]:
        """Return for every category of a level the one of the level before that it is in."""
        first = np.cumsum(self.sizes[level]) - self.sizes[level]
        found: list[int] = np.searchsorted(np.cumsum(self.sizes[level - 1]), first, side="right").tolist()
        return found

    def _cells(self, doublings: int) -> list[str]:
        """Return the names of a heat map's squares of 2^doublings cells a side, in Morton order."""
        side = 1 << doublings
        many = self.attributes[0].size // side
        words = []
        for attribute in self.attributes:
            low = int(attribute.label_of(0))
            starts = range(low, low + many * side, side)
            words.append(
                [f"{attribute.id} {at}" + (f" to {at + side - 1}" if side > 1 else "") for at in starts]
            )
        x, y = np.arange(many), np.arange(many)
        order = np.argsort((_spread(x)[:, None] + 2 * _spread(y)).ravel())
        return [f"{words[0][place // many]}, {words[1][place % many]}" for place in order.tolist()]

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, the last one "missing"."""
        if self.names is None:
            return (*self._cells(0), MISSING)
        order = np.argsort(self.mapping[:-1], kind="stable").tolist()
        return (*(self.attributes[0].label_of(index) for index in order), MISSING)

    @cached_property
    def category_names(self) -> tuple[str, ...]:
        """Every level's categories, each with those that it is in before it, missing last in every level."""
        return tuple(label for labels in self._labels for label in labels)

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """The category of every input, one row per level: shape (levels, K)."""
        rows, offset = [], 0
        for sizes in self.sizes:
            rows.append(np.repeat(np.arange(len(sizes) + 1), [*sizes, 1]) + offset)
            offset += len(sizes) + 1
        found: NDArray[np.intp] = np.stack(rows)
        found.setflags(write=False)
        return found

    @cached_property
    def cell_levels(self) -> tuple[tuple[int, str | None], ...]:
        """Level, from 1, and name of what it is in, of every category and then of every input."""
        found: list[tuple[int, str | None]] = []
        for level, labels in enumerate(self._labels):
            above = [None] * len(labels) if level == 0 else self._parents(level)
            found += [(level + 1, parent) for parent in above]
        last = [self.category_names[category] for category in self.category_of[-1].tolist()]
        return (*found, *((len(self.sizes) + 1, parent) for parent in last))

    def _parents(self, level: int) -> list[str]:
        above = self._labels[level - 1]
        return [*(above[place] for place in self._above(level)), MISSING]

    def estimator(self, channel: Channel) -> estimation.AnyEstimator:
        """Return the unbiased estimator of all levels."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.estimator_for(channel, category_of=self.category_of)

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `tree_from_spec` reads them."""
        if self.names is None:
            return [FORM, QUADTREE]
        plain = np.array_equal(self.mapping, np.arange(len(self.mapping)))
        levels = [
            [[name, size] for name, size in zip(*level, strict=True)]
            for level in zip(self.names, self.sizes, strict=True)
        ]
        return [FORM, None if plain else self.mapping.tolist(), levels]


def _spread(numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return numbers below 2^8 with a zero bit above each of theirs."""
    found = np.zeros_like(numbers)
    for bit in range(MAX_TREE_LEVELS):
        found |= (numbers >> bit & 1) << 2 * bit
    return found


def tree_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> LabelTree:
    """Return the tree that `LabelTree.to_spec` described; `LabelTree.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
        SurveyError: If it is the heat map of attributes that have none.
    """
    del epsilon
    if len(fields) == 2 and fields[1] == QUADTREE:
        return LabelTree.quadtree(Rules("<canonical>"), attributes)
    packing.array(fields, "tree", 3)
    levels = [packing.array(level, "tree level") for level in packing.array(fields[2], "tree levels")]
    if not levels or len(attributes) != 1 or isinstance(attributes[0].domain, NumberDomain):
        raise WireError(f"a tree must have levels and one attribute, no number, got {len(levels)} levels")
    size = attributes[0].size
    pairs = [[packing.array(pair, "category", 2) for pair in level] for level in levels]
    names = tuple(
        tuple(packing.text(pair[0], "category name", MAX_NAME_CHARACTERS) for pair in level)
        for level in pairs
    )
    sizes = tuple(
        tuple(packing.integer(pair[1], "category size", 1, MAX_INPUTS) for pair in level) for level in pairs
    )
    mapping = (
        list(range(size + 1)) if fields[1] is None else packing.integers(fields[1], "mapping", 0, MAX_SIZE)
    )
    if len(mapping) != size + 1 or any(sum(level) != size for level in sizes):
        raise WireError(f"a tree must have the {size} values of its attribute at every level, got others")
    return LabelTree(attributes, np.array(mapping, dtype=np.intp), sizes, names)


ENTRY: Final = FormEntry(read=tree_from_spec)
