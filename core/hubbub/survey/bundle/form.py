"""The form of a survey that asks for tables of many attributes, each device for one sampled part of them.

A device tosses a public coin once, answers the part that it picked at the full epsilon, and says which part
it was. What is released are the tables asked for and every attribute's own shares, pooled over all parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError
from hubbub.filter.query import MAX_CELLS, Likelihood
from hubbub.mechanisms.bundle.channel import (
    MAX_BUNDLED,
    MAX_ORDER,
    MAX_PARTS,
    SampledParts,
    components_of,
)
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import Attribute, IntegerDomain
from hubbub.survey.form import FormEntry
from hubbub.survey.rules import Rules, check_attributes
from hubbub.survey.table import ReadAttributes, readings_from_spec
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub.mechanisms.bundle import BundleEstimator

FORM: Final = "bundle"

_BETWEEN: Final = " / "

_TOGETHER: Final = (
    "Of some two questions a set tells how your answers go together, and nothing of either alone."
)


@dataclass(frozen=True, eq=False)
class Bundle(ReadAttributes):
    """Several attributes, how each is read, and the tables of them that are asked for.

    Attributes:
        tables: The attributes of each table, by their place among all, rising.
    """

    tables: tuple[tuple[int, ...], ...]

    samples_parts: ClassVar[bool] = True
    """True: a device answers one part of what is asked, by a coin that it tosses once."""

    cost: ClassVar[str] = (
        "The cost is set aside before the device draws which questions it answers, and is the same for all "
        "of them; what it says of the others is nothing."
    )
    """The sentence about the cost of an answer beside its loss."""

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: some of them, drawn at random."""
        most = max(len(table) for table in self.tables)
        return f"a random choice, of up to {max(most, 1)} at a time, among: {'; '.join(attributes)}"

    def description(self, channel: Channel) -> str:
        """Return how an answer is made, and that some tell how two attributes go together and no more."""
        together = any(part.classes > 1 for part in cast(SampledParts, channel).parts)
        return channel.description + (f" {_TOGETHER}" if together else "")

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If attributes, readings or tables are not such, or not those of the channel.
        """
        check_attributes(rules, self.attributes, 2, MAX_BUNDLED)
        self.check_readings(rules, "a bundle")
        if not 1 <= len(self.tables) <= MAX_PARTS or len(set(self.tables)) < len(self.tables):
            rules.refuse("bundle.tables", f"must be 1 to {MAX_PARTS} tables that differ", len(self.tables))
        for table in self.tables:
            if not 1 <= len(table) <= MAX_ORDER or list(table) != sorted(set(table)):
                rules.refuse("bundle.tables", f"must be of 1 to {MAX_ORDER} attributes, rising", list(table))
        if {member for table in self.tables for member in table} != set(range(len(self.attributes))):
            rules.refuse("bundle.tables", "must have every attribute in a table", len(self.tables))
        if not isinstance(channel, SampledParts) or channel.readings != self.shape:
            rules.refuse("mechanism.name", 'must be "bundle", of these readings', channel.kind)
        told = {component for part in channel.parts for component in part.tells}
        for table in self.tables:
            if not told.issuperset(components_of(table)):
                rules.refuse("bundle.tables", "must be told by parts each", [*table])

    @property
    def mapping(self) -> None:
        """None: the product of all readings is never built."""
        return

    @property
    def map_entries(self) -> int:
        """The entries of what reading it builds: readings of all values, and the cells of all tables."""
        cells = sum(math.prod(self.shape[member] for member in table) for table in self.tables)
        return cells + sum(len(encoding) for encoding in self.encodings)

    def likelihood(self, channel: Channel) -> Likelihood:
        """Return what the privacy filter reserves: the most that any part can tell."""
        return cast(SampledParts, channel).bound

    def held_inputs(self, channel: Channel) -> int:
        """Return how many inputs a device keeps something of each for: the cells of all parts."""
        return channel.bins

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the cells of all tables, one table after the other, the last attribute's fastest."""
        named = [
            [f"{attribute.id}: {label}" for label in labels]
            for attribute, labels in zip(self.attributes, self.labels, strict=True)
        ]
        return tuple(
            _BETWEEN.join(cell)
            for table in self.tables
            for cell in product(*(named[member] for member in table))
        )

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """No grouping of all cells, shape (0, cells): each table has margins of its own."""
        return np.empty((0, len(self.input_labels)), dtype=np.intp)

    def readings_of(self, indices: Sequence[int]) -> list[int]:
        """Return the encoded value of every attribute for its index in its domain, missing last."""
        return [int(encoding[index]) for encoding, index in zip(self.encodings, indices, strict=True)]

    def part_sizes(self, channel: Channel) -> list[int]:
        """Return how many combinations of stored values each part reads; 1 where they are too many to share.

        Args:
            channel: The bundle's.
        """
        sizes = [
            math.prod(len(self.encodings[member]) for member in part.members)
            for part in cast(SampledParts, channel).parts
        ]
        return [size if size <= MAX_CELLS else 1 for size in sizes]

    @cached_property
    def _mappings(self) -> dict[tuple[int, ...], NDArray[np.intp]]:
        return {}

    def part_mapping(self, members: Sequence[int]) -> NDArray[np.intp] | None:
        """Return the cell of a part for all values of its attributes, shape (size + 1, ...), missing last.

        It is over whole domains: two surveys that cut one attribute elsewhere read the same stored value.
        None where there are more than MAX_CELLS combinations; that depends on the survey alone.

        Args:
            members: The attributes of the part, by their place among all.
        """
        # One object for a part: whoever asks again, and keeps what he made of it, finds it by identity.
        if (known := self._mappings.get(key := tuple(members))) is not None:
            return known
        if math.prod(len(self.encodings[member]) for member in members) > MAX_CELLS:
            return None
        axes = np.ix_(*(self.encodings[member] for member in members))
        found = np.zeros([len(self.encodings[member]) for member in members], dtype=np.intp)
        for member, axis in zip(members, axes, strict=True):
            found = found * self.shape[member] + axis
        found.setflags(write=False)
        self._mappings[key] = found
        return found

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the number of the combination of readings; see `Survey.input_of`."""
        del source
        found = 0
        indices = [a.index_of(value) for a, value in zip(self.attributes, values, strict=True)]
        for reading, size in zip(self.readings_of(indices), self.shape, strict=True):
            found = found * size + reading
        return found

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Return the combinations of many devices, shape (n,), for simulation.

        Args:
            columns: The encoded values of each attribute, shape (n,), float: of integers the number itself,
                nan where missing and inf where absent, of labels the index.
            source: Not used: nothing is drawn.
        """
        del source
        found = np.zeros(len(columns[0]), dtype=np.intp)
        for attribute, encoding, size, column in zip(
            self.attributes, self.encodings, self.shape, columns, strict=True
        ):
            low = attribute.domain.low if isinstance(attribute.domain, IntegerDomain) else 0
            present = np.where(np.isinf(column), attribute.size - 1, column - low)
            index = np.where(np.isnan(column), attribute.size, present).astype(np.intp)
            found = found * size + encoding[index]
        return found

    def estimator(self, channel: Channel) -> BundleEstimator:
        """Return the unbiased estimator of all tables asked for and of every attribute's margin."""
        from hubbub.mechanisms.bundle.estimator import BundleEstimator  # noqa: PLC0415 - not on a device

        return BundleEstimator(cast(SampledParts, channel), tables=self.tables)

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `bundle_from_spec` reads them."""
        return [FORM, self.readings_spec(), [list(table) for table in self.tables]]


def bundle_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> Bundle:
    """Return the bundle that `Bundle.to_spec` described; `Bundle.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    del epsilon
    packing.array(fields, FORM, 3)
    tables = tuple(
        tuple(packing.integers(table, "bundle table", 0, MAX_BUNDLED - 1))
        for table in packing.array(fields[2], "bundle tables")
    )
    if not all(tables):
        raise ParameterError("a bundle's tables must have attributes, got one without")
    return Bundle(attributes, *readings_from_spec(attributes, fields[1]), tables)


ENTRY: Final = FormEntry(read=bundle_from_spec)
