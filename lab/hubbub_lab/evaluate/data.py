"""The data sets of an evaluation: columns of a file or an invented law, and populations drawn from one."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.survey import (
    ABSENT_VALUE,
    MAX_SIZE,
    Attribute,
    DictionaryDomain,
    IntegerDomain,
    LabelDomain,
    SetDomain,
)
from hubbub_authoring.files import DraftAttribute, DraftCategory
from hubbub_lab.errors import LabError
from hubbub_lab.evaluation.people import MISSING, quality, values_of
from hubbub_lab.evaluation.tables import Coded, Spelling, cut, read_people
from hubbub_lab.texts import number_of, whole_of

LAWS: Final = ("zipf", "uniform")
"""Invented laws: the r-th value has a share that falls as a power of r, or all have the same."""

_CODE: Final = re.compile(r"[+-]?0[0-9]+")
"""A whole number that begins with 0: to the column's owner 01 and 1 may be two things."""

_MOST_WHOLE: Final = 4_096
"""Whole numbers that span more values than this are asked on a grid, as other numbers are."""

_MOST_COMBINATIONS: Final = 100_000
"""Combinations of a table that a law is spread over."""

_STEPS: Final = 101
"""Numbers that a law is spread over, where the attribute is a number."""


@dataclass(frozen=True, slots=True)
class DataSpec:
    """A data set as the command line names it.

    Attributes:
        text: As given, files by their name alone.
        law: "zipf" or "uniform"; None for a file.
        size: Values of the law; None for as many as the survey has.
        exponent: Of the law "zipf".
        path: The file; None for a law.
        column: A column of it; None for those of the survey's attributes.
    """

    text: str
    law: str | None = None
    size: int | None = None
    exponent: float = 1.0
    path: Path | None = None
    column: str | None = None

    @classmethod
    def parse(cls, text: str) -> DataSpec:
        """Return the data set of PATH[:COLUMN], uniform[:K] or zipf[:K[:EXPONENT]].

        Raises:
            ValueError: If K or the exponent break their rule.
        """
        law, *rest = text.split(":")
        if law not in LAWS:
            found, column = _split(text)
            if not found.name:
                raise ValueError(f"must be FILE:COLUMN, zipf:K or uniform:K, got {text!r}")
            shown = found.name if column is None else f"{found.name}:{column}"
            return cls(shown, path=found, column=column or None)
        if len(rest) > (2 if law == "zipf" else 1):
            raise ValueError(f"must be zipf:K:EXPONENT or uniform:K, got {text!r}")
        size = None
        if rest and rest[0]:
            size = whole_of(rest[0]) or 0
            if not 2 <= size <= MAX_SIZE:
                raise ValueError(f"K of {law} must be an integer from 2 to {MAX_SIZE}, got {rest[0]!r}")
        exponent = 1.0
        if len(rest) == 2:
            given = number_of(rest[1])
            if given is None or not 0.0 <= given <= 10.0:
                raise ValueError(f"the exponent of zipf must be from 0 to 10, got {rest[1]!r}")
            exponent = given
        return cls(text, law, size, exponent)


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """The values that devices may hold, and how common each of them is.

    Attributes:
        name: As people read it.
        values: Distinct values in the order of the domain, None last; a tuple each for several attributes.
        weights: Rows with each value, or its share, shape (d,), > 0.
        present: How many of the values, the first ones, are not wholly missing.
        rows: Rows of the file; None for a law.
    """

    name: str
    values: tuple[object, ...]
    weights: NDArray[np.float64]
    present: int
    rows: int | None = None

    def draw(self, devices: int, chance: np.random.Generator) -> NDArray[np.int64]:
        """Return how many of the devices hold each value, shape (d,).

        As many devices as the file has rows are its rows; any other number is drawn from them.
        """
        if devices == self.rows:
            return self.weights.astype(np.int64)
        return np.asarray(chance.multinomial(devices, self.weights / self.weights.sum()), dtype=np.int64)


def _split(text: str) -> tuple[Path, str | None]:
    """Return path and column of PATH[:COLUMN]: the longest path that is there, for both may have colons."""
    for end in (len(text), *(place for place in range(len(text) - 1, 0, -1) if text[place] == ":")):
        if Path(text[:end]).exists() or text[:end] == "-":
            return Path(text[:end]), text[end + 1 :] if end < len(text) else None
    path, colon, column = text.rpartition(":")
    return (Path(path), column) if colon else (Path(text), None)


def data_set(
    spec: DataSpec, attributes: Sequence[Attribute], *, spelling: Spelling, say: Callable[[str], None]
) -> DataSet:
    """Return a data set for the attributes of a survey.

    Raises:
        LabError: If the file cannot be read, or the data set does not fit the attributes.
    """
    if spec.law is not None:
        return _law(spec, attributes)
    assert spec.path is not None  # noqa: S101 - `parse` gives a law or a file
    if spec.column is not None and len(attributes) > 1:
        names = ", ".join(attribute.id for attribute in attributes)
        raise LabError(f"--data must be a file without a column for attributes {names}, got {spec.text}")
    columns = [spec.column or attribute.id for attribute in attributes]
    table = read_people(spec.path, columns, spelling=spelling, say=say)
    held = []
    for attribute, column in zip(attributes, columns, strict=True):
        read = values_of(attribute, table[column])
        if said := quality(column, read):
            say(f"{spec.text}: {said}")
        held.append(read.held.tolist())
    rows: list[tuple[object, ...]] = list(zip(*held, strict=True))
    if not rows:
        raise LabError(f"--data {spec.text} must hold at least one row, got none")
    places: dict[tuple[object, ...], int] = {}
    counts = np.bincount([places.setdefault(row, len(places)) for row in rows])
    order = sorted(places, key=lambda row: tuple(map(_place, attributes, row)))
    nothing = tuple(_place(attribute, None) for attribute in attributes)
    return DataSet(
        spec.text,
        tuple(_alone(row) for row in order),
        np.array([counts[places[row]] for row in order], dtype=np.float64),
        sum(tuple(map(_place, attributes, row)) != nothing for row in order),
        len(rows),
    )


def drafted(
    spec: DataSpec, categories: int | None, *, spelling: Spelling, say: Callable[[str], None]
) -> DraftAttribute:
    """Return the attribute that a data set without a survey is asked by.

    Whole numbers and labels are values each; other numbers lie on a grid.

    Args:
        spec: The data set.
        categories: Groups of neighbouring values to ask for; None for none.
        spelling: How a CSV is written.
        say: Is told what the column was taken for.

    Raises:
        LabError: If there is no column, or fewer than two values.
    """
    if spec.law is not None:
        if spec.size is None:
            raise LabError(f"--data {spec.law} must say how many values without a survey, got {spec.text}")
        return _grouped(DraftAttribute(id="value", type="integer", low=0, high=spec.size - 1), categories)
    if spec.column is None or spec.path is None:
        raise LabError(f"--data must be FILE:COLUMN without a survey, got {spec.text}")
    column = read_people(spec.path, [spec.column], spelling=spelling)[spec.column]
    attribute, why = _inferred(spec, column)
    say(f"{spec.text}: taken for {why}; a survey file would say it")
    return _grouped(attribute, categories)


def _inferred(spec: DataSpec, column: Coded) -> tuple[DraftAttribute, str]:
    """Return what a column is taken for, and the same in words."""
    fields = [text for text in column.fields if text not in MISSING]
    if len(fields) < 2:
        raise LabError(f"--data {spec.text} must hold two different values or more, got {len(fields)}")
    numbers = [number for text in fields if (number := number_of(text, column.decimal)) is not None]
    odd = next(
        (text for text in fields if number_of(text, column.decimal) is None or _CODE.fullmatch(text)), None
    )
    if odd is not None:
        why = f"{len(fields):,} labels"
        if numbers:
            rule = "begins with 0, as codes do" if _CODE.fullmatch(odd) else "is no number"
            why += f", since '{cut(odd)}' {rule}"
        return DraftAttribute(id="value", type="label", labels=tuple(sorted(fields))), why
    low, high = min(numbers), max(numbers)
    if not low < high:
        raise LabError(f"--data {spec.text} must hold two numbers or more, got {low:g} alone")
    if all(number.is_integer() for number in numbers) and high - low < _MOST_WHOLE:
        whole = DraftAttribute(id="value", type="integer", low=int(low), high=int(high))
        return whole, f"the whole numbers from {whole.low} to {whole.high}"
    return DraftAttribute(id="value", type="number", low=low, high=high), f"numbers from {low:g} to {high:g}"


def _grouped(attribute: DraftAttribute, categories: int | None) -> DraftAttribute:
    """Return the attribute with as many groups of neighbouring values, as equal as they can be."""
    if categories is None:
        return attribute
    values: Sequence[int | str] = attribute.labels
    if attribute.type == "integer":
        values = range(int(attribute.low), int(attribute.high) + 1)
    if not 2 <= categories <= len(values):
        raise LabError(f"--categories must be from 2 to the {len(values)} values, got {categories}")
    ends = [round(place * len(values) / categories) for place in range(categories + 1)]
    groups = tuple(
        DraftCategory(f"group {place + 1}", tuple(values[start:end]))
        for place, (start, end) in enumerate(itertools.pairwise(ends))
    )
    return DraftAttribute(
        id=attribute.id,
        type=attribute.type,
        labels=attribute.labels,
        low=attribute.low,
        high=attribute.high,
        categories=groups,
    )


def _law(spec: DataSpec, attributes: Sequence[Attribute]) -> DataSet:
    lists = [_values(attribute) for attribute in attributes]
    size = math.prod(map(len, lists))
    if spec.size not in (None, size):
        raise LabError(f"--data {spec.text} must have the {size} values of the survey, got {spec.size}")
    if len(lists) > 1 and size > _MOST_COMBINATIONS:
        raise LabError(f"--data {spec.law} must be over at most {_MOST_COMBINATIONS} values, got {size}")
    ranks = np.arange(1, size + 1, dtype=np.float64)
    weights = ranks**-spec.exponent if spec.law == "zipf" else np.ones(size)
    return DataSet(spec.text, tuple(_alone(row) for row in itertools.product(*lists)), weights, size)


def _values(attribute: Attribute) -> Sequence[object]:
    domain = attribute.domain
    if isinstance(domain, LabelDomain):
        return domain.labels
    if isinstance(domain, SetDomain | DictionaryDomain):
        raise LabError(f"attribute {attribute.id} must have a file of --data: no law knows its sets or texts")
    none = [ABSENT_VALUE] if domain.absent else []
    if isinstance(domain, IntegerDomain):
        return [*range(domain.low, domain.high + 1), *none]
    return [*np.linspace(domain.low, domain.high, _STEPS).tolist(), *none]


def _place(attribute: Attribute, value: object) -> float:
    """Return where a value stands in the order of its domain; behind all of them what is missing."""
    if isinstance(attribute.domain, LabelDomain | IntegerDomain | DictionaryDomain):
        return attribute.index_of(value)
    return value if isinstance(value, float) else math.inf


def _alone(row: tuple[object, ...]) -> object:
    return row if len(row) > 1 else row[0]
