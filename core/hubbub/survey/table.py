"""The form of a survey that asks for several attributes at once: a cross table of what each of them reads as.

Each attribute is read by itself, by value or by category, and may be missing by itself. The channel's inputs
are all combinations of those readings, the last attribute's changing fastest; the last input is "everything
is missing". So a device that lacks one attribute still counts in the margin of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import WireError
from hubbub.filter.query import MAX_CELLS
from hubbub.survey.domain import MAX_SIZE, Attribute, NumberDomain
from hubbub.survey.form import BaseForm, FormEntry
from hubbub.survey.rules import MAX_NAME_CHARACTERS, MISSING, Rules, check_attributes, check_names
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "table"

MAX_ATTRIBUTES: Final = 10
"""With two values and missing each, eleven would already have more combinations than a channel has inputs."""

_BETWEEN: Final = " / "


@dataclass(frozen=True, eq=False)
class ReadAttributes(BaseForm):
    """Several attributes, and how each is read: what tables and bundles of tables have in common.

    Attributes:
        attributes: Two or more, with discrete domains.
        encodings: For each attribute the encoded value of every index of its domain and, last, of missing:
            shape (size + 1,), onto 0..r where r is missing alone.
        names: For each attribute the names of its encoded values without missing, or None where every value
            is encoded as itself, in their order.
    """

    attributes: tuple[Attribute, ...]
    encodings: tuple[NDArray[np.intp], ...]
    names: tuple[tuple[str, ...] | None, ...]

    tells_absent: ClassVar[bool] = True
    """True: absent is a value as others are."""

    def __post_init__(self) -> None:
        for encoding in self.encodings:
            encoding.setflags(write=False)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of encoded values of each attribute, missing included."""
        return tuple(int(encoding[-1]) + 1 for encoding in self.encodings)

    def check_readings(self, rules: Rules, where: str) -> None:
        """Refuse readings or names that are not such.

        Raises:
            SurveyError: If they are not.
        """
        for i, (attribute, encoding, names) in enumerate(
            zip(self.attributes, self.encodings, self.names, strict=True)
        ):
            check_reading(rules, f"attribute[{i}]", attribute, encoding, names, where=where)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The names of every attribute's encoded values, missing last."""
        return tuple(
            (
                *(names or (attribute.label_of(index) for index in range(attribute.size))),
                MISSING,
            )
            for attribute, names in zip(self.attributes, self.names, strict=True)
        )

    @cached_property
    def category_names(self) -> tuple[str, ...]:
        """Every attribute's readings: the margins of the table."""
        return tuple(
            f"{attribute.id}: {label}"
            for attribute, labels in zip(self.attributes, self.labels, strict=True)
            for label in labels
        )

    def readings_spec(self) -> list[object]:
        """Return the readings as plain values; `readings_from_spec` reads them."""
        return [
            [
                None if np.array_equal(encoding, np.arange(len(encoding))) else encoding.tolist(),
                None if names is None else list(names),
            ]
            for encoding, names in zip(self.encodings, self.names, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class CrossTable(ReadAttributes):
    """Several attributes, and how each is read, all of them at once."""

    @property
    def inputs(self) -> int:
        """K, the number of combinations."""
        return math.prod(self.shape)

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: all of them in one answer."""
        return f"at once: {'; '.join(attributes)}"

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If attributes, readings or names are not such, or not those of the channel.
        """
        check_attributes(rules, self.attributes, 2, MAX_ATTRIBUTES)
        self.check_readings(rules, "a table")
        check_size(rules, self.attributes, self.shape)
        if channel.inputs != self.inputs:
            rules.refuse(
                "attribute", f"must have {channel.inputs} combinations of encoded values", self.inputs
            )
        if not channel.tells_inputs:
            rules.refuse("mechanism.name", "must be one that tells single inputs, in a table", channel.kind)

    @cached_property
    def mapping(self) -> NDArray[np.intp]:
        """Input of every combination of indices, shape (size_1 + 1, ..., size_k + 1)."""
        axes = np.ix_(*self.encodings)
        found = np.zeros([len(encoding) for encoding in self.encodings], dtype=np.intp)
        for place, axis in enumerate(axes):
            found += math.prod(self.shape[place + 1 :]) * axis
        found.setflags(write=False)
        return found

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs."""
        return tuple(_BETWEEN.join(labels) for labels in product(*self.labels))

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """The category of every input, one row per margin: shape (k, K)."""
        offsets = np.cumsum((0, *self.shape[:-1]))
        encodings = np.unravel_index(np.arange(self.inputs), self.shape)
        rows: NDArray[np.intp] = np.stack(encodings) + offsets[:, None]
        rows.setflags(write=False)
        return rows

    def estimator(self, channel: Channel) -> estimation.MarginsEstimator:
        """Return the unbiased estimator of all combinations and of every attribute's margin."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.MarginsEstimator(channel, margins=self.category_of)

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `table_from_spec` reads them."""
        return [FORM, self.readings_spec()]


def check_reading(
    rules: Rules,
    key: str,
    attribute: Attribute,
    encoding: NDArray[np.intp],
    names: tuple[str, ...] | None,
    *,
    where: str = "a table",
) -> None:
    """Refuse what cannot be how an attribute is read, by value or by category.

    Args:
        rules: How to refuse.
        key: Where the attribute stands in a file.
        attribute: The attribute.
        encoding: The encoded value of every index of its domain and, last, of missing.
        names: Names of the encoded values without missing, or None where every value is encoded as itself.
        where: What it is asked in.

    Raises:
        SurveyError: If it is.
    """
    if isinstance(attribute.domain, NumberDomain):
        rules.refuse(f"{key}.type", f"must be integer or label in {where}", "number")
    size, missing = attribute.size, int(encoding[-1])
    if encoding.shape != (size + 1,) or encoding.min() < 0 or encoding.max() != missing:
        rules.refuse(key, f"must have {size + 1} encoded values, the last one missing", len(encoding))
    values = np.bincount(encoding, minlength=missing + 1)
    if values[missing] != 1 or not values.all():
        rules.refuse(
            key, "must have a value for every encoded value, and only missing for the last", attribute.id
        )
    if missing < 2:
        rules.refuse(key, "must have at least two encoded values beside missing", missing)
    if names is None:
        if not np.array_equal(encoding, np.arange(size + 1)):
            rules.refuse(key, "must have names where values share an encoded value", attribute.id)
    elif len(names) != missing:
        rules.refuse(f"{key}.category", f"must be {missing} names", list(names))
    else:
        check_names(rules, f"{key}.category", (*names, MISSING))


def check_size(rules: Rules, attributes: Sequence[Attribute], shape: Sequence[int]) -> None:
    """Refuse a table that is too large, before anything of its size is built.

    Raises:
        SurveyError: If it is.
    """
    inputs = math.prod(shape)
    if inputs > MAX_INPUTS:
        rules.refuse("attribute", f"must have at most {MAX_INPUTS} combinations of encoded values", inputs)
    cells = math.prod(attribute.size + 1 for attribute in attributes)
    if cells > MAX_CELLS:
        rules.refuse("attribute", f"must have at most {MAX_CELLS} combinations of values", cells)


def table_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> CrossTable:
    """Return the table that `CrossTable.to_spec` described; `CrossTable.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    del epsilon
    packing.array(fields, "table", 2)
    return CrossTable(attributes, *readings_from_spec(attributes, fields[1]))


def readings_from_spec(
    attributes: tuple[Attribute, ...], value: object
) -> tuple[tuple[NDArray[np.intp], ...], tuple[tuple[str, ...] | None, ...]]:
    """Return the encodings and names that `ReadAttributes.readings_spec` described.

    Raises:
        WireError: If they have another shape or other types.
    """
    encodings, names = [], []
    for attribute, item in zip_all(attributes, packing.array(value, "table")):
        encoding, own = packing.array(item, "table reading", 2)
        found, named = reading_from_spec(attribute, encoding, own)
        encodings.append(found)
        names.append(named)
    return tuple(encodings), tuple(names)


def reading_from_spec(
    attribute: Attribute, encoding: object, names: object
) -> tuple[NDArray[np.intp], tuple[str, ...] | None]:
    """Return how an attribute is read, as a form's fields describe it; `check_reading` judges it.

    Args:
        attribute: The attribute.
        encoding: Its encoded values, None for each as itself.
        names: Their names, None for those of the values.

    Raises:
        WireError: If they have other types.
    """
    if encoding is None:
        size = 0 if isinstance(attribute.domain, NumberDomain) else attribute.size
        found = np.arange(size + 1)
    else:
        given = packing.integers(encoding, "table reading", 0, MAX_SIZE)
        if not given:
            raise WireError("a table's encoded values must be at least one, got none")
        found = np.array(given, dtype=np.intp)
    if names is None:
        return found, None
    return found, tuple(
        packing.text(name, "category name", MAX_NAME_CHARACTERS)
        for name in packing.array(names, "category names")
    )


def zip_all(attributes: Sequence[Attribute], items: list[object]) -> list[tuple[Attribute, object]]:
    """Pair each attribute with what a form says of it.

    Raises:
        WireError: If it does not say one thing of each.
    """
    if len(items) != len(attributes):
        raise WireError(f"a form must describe its {len(attributes)} attributes, got {len(items)}")
    return list(zip(attributes, items, strict=True))


ENTRY: Final = FormEntry(read=table_from_spec)
