"""The values of people in the columns of a table, and what is missing or wrong in them.

The file is the analyst's own, read on their machine, so the summary may quote fields that are no values of
the domain; nothing of it leaves the terminal.

The demo's people are of the RAND Health Insurance Experiment, as the statsmodels package carries it: 20,190
person-years (the public extract names no persons, so each person-year gets a device of its own): visits to a
doctor in the year, an index of chronic diseases, self-rated health. Source: Newhouse et al., RAND Health
Insurance Experiment; file `randhie.csv` of statsmodels.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.survey import (
    ABSENT_VALUE,
    Attribute,
    DictionaryDomain,
    IntegerDomain,
    LabelDomain,
    NumberDomain,
    SetDomain,
)
from hubbub_lab.errors import LabError
from hubbub_lab.evaluation.tables import Coded, cut
from hubbub_lab.texts import number_of

MISSING: Final = frozenset({"", "?", "NA", "nan", "NaN", "null", "missing"})
"""Fields that stand for no value."""

_EXAMPLES: Final = 3
"""Distinct fields that the summary quotes of each column."""


@dataclass(frozen=True, slots=True, eq=False)
class ReadValues:
    """A column read as an attribute: what a host would hold on every device.

    Attributes:
        held: Value of each row, None where it is missing, shape (rows,), object.
        missing: Rows whose field stands for no value.
        words: Those fields, but for the empty one.
        outside: Rows whose field is no value of the domain; they are answered as missing, too.
        examples: Distinct fields of those, the commonest first.
        clipped: Rows whose number was moved to the nearer end of the domain.
    """

    held: NDArray[np.object_]
    missing: int
    words: tuple[str, ...]
    outside: int
    examples: tuple[str, ...]
    clipped: int = 0


def values_of(attribute: Attribute, column: Coded, *, clip: bool = False) -> ReadValues:
    """Return a column as an attribute's values.

    Args:
        attribute: What the fields are values of.
        column: The column.
        clip: Move numbers outside the domain to its nearer end, in place of reading them as missing.
    """
    found: list[object] = []
    wrong: list[int] = []
    moved: list[int] = []
    none: list[int] = []
    for place, text in enumerate(column.fields):
        value, clipped = value_of(attribute, text, column.decimal), False
        if clip:
            value, clipped = _clipped(attribute, value)
        if not _in_domain(attribute, value):
            (none if text in MISSING else wrong).append(place)
        if clipped:
            moved.append(place)
        found.append(value)
    rows = np.bincount(column.codes, minlength=len(found))
    distinct = np.empty(len(found), dtype=np.object_)
    distinct[:] = found
    commonest = sorted(wrong, key=lambda place: -int(rows[place]))[:_EXAMPLES]
    return ReadValues(
        distinct[column.codes],
        int(rows[none].sum()),
        tuple(sorted(column.fields[place] for place in none if column.fields[place])),
        int(rows[wrong].sum()),
        tuple(column.fields[place] for place in commonest),
        int(rows[moved].sum()),
    )


def quality(name: str, values: ReadValues) -> str:
    """Return what is missing or wrong in a column, in a sentence; "" where nothing is.

    Args:
        name: The column's.
        values: What was read of it.
    """
    rows, parts = len(values.held), []
    if values.missing:
        words = f" ({', '.join(values.words)})" if values.words else ""
        parts.append(f"{values.missing:,} of {rows:,} are missing{words}")
    if values.outside:
        of = "" if values.missing else f" of {rows:,}"
        quoted = ", ".join(f"'{cut(text)}'" for text in values.examples)
        parts.append(f"{values.outside:,}{of} are outside the domain (such as {quoted}) and count as missing")
    if values.clipped:
        parts.append(f"{values.clipped:,} were moved to the nearer end of the domain")
    return f"column {name!r}: {', '.join(parts)}" if parts else ""


def value_of(attribute: Attribute, text: str, decimal: str = ".") -> object:
    """Return the value that a host would hold for a field of a file; None where it is no value.

    A label is itself, were it "NA", and so is a text of a dictionary.
    """
    domain = attribute.domain
    if isinstance(domain, LabelDomain | DictionaryDomain):
        place = domain.index_of(text)
        if place is None:
            return None if text in MISSING else text
        return domain.labels[place] if isinstance(domain, LabelDomain) else text
    if attribute.tells_absent and text == ABSENT_VALUE:
        return text
    if text in MISSING:
        return None
    number = number_of(text, decimal)
    if number is None or isinstance(domain, NumberDomain):
        return number
    return int(number) if number.is_integer() else None


def _in_domain(attribute: Attribute, value: object) -> bool:
    domain = attribute.domain
    if isinstance(domain, NumberDomain):
        if domain.absent and value == ABSENT_VALUE:
            return True
        return isinstance(value, float) and domain.low <= value <= domain.high
    return attribute.index_of(value) < attribute.size


def _clipped(attribute: Attribute, value: object) -> tuple[object, bool]:
    domain = attribute.domain
    if not isinstance(domain, IntegerDomain | NumberDomain) or not isinstance(value, int | float):
        return value, False
    nearest = min(max(value, domain.low), domain.high)
    return type(value)(nearest), nearest != value


def columns_of(attributes: Sequence[Attribute], named: Mapping[str, str]) -> dict[str, str]:
    """Return the column of every attribute: its own id, or what the user named.

    Args:
        attributes: Attributes that surveys ask for.
        named: Attribute id -> column, as the user said.

    Raises:
        LabError: If the user named an attribute that no survey asks for, or one is of sets.
    """
    if others := [each.id for each in attributes if isinstance(each.domain, SetDomain)]:
        raise LabError(
            f"attributes must have one value a device to be simulated, got sets: {', '.join(others)}"
        )
    columns = {attribute.id: named.get(attribute.id, attribute.id) for attribute in attributes}
    if strange := sorted(named.keys() - columns.keys()):
        raise LabError(f"--column must name one of {', '.join(sorted(columns))}, got {', '.join(strange)}")
    return columns


PEOPLE = 20_190
_FILE = Path("datasets", "randhie", "src", "randhie.csv")


def load() -> dict[str, list[object]]:
    """Return the three attributes, one entry per person-year, keyed by attribute id.

    "visits": int, 0..77. "health": "excellent", "good", "fair" or "poor". "diseases": float, 0..58.6.

    Raises:
        LabError: statsmodels, or the file in it, is not installed.
    """
    spec = find_spec("statsmodels")
    folders = list(spec.submodule_search_locations or []) if spec else []
    path = Path(folders[0]) / _FILE if folders else None
    if path is None or not path.is_file():
        raise LabError("the demo's data needs the package statsmodels: pip install 'hubbub[demo]'")
    columns: dict[str, list[object]] = {"visits": [], "health": [], "diseases": []}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            columns["visits"].append(int(row["mdvis"]))
            columns["diseases"].append(float(row["disea"]))
            columns["health"].append(_health(row))
    return columns


def _health(row: dict[str, str]) -> str:
    """Return the file holds one indicator per level and omits "excellent"."""
    for name, column in (("good", "hlthg"), ("fair", "hlthf"), ("poor", "hlthp")):
        if row[column] == "1":
            return name
    return "excellent"
