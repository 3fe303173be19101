"""A table of people, one device per row: read from CSV or Parquet, and what is missing or wrong in it.

A column is kept as its distinct fields and, for every row, the number of one of them: a value is understood
once, however many devices hold it. The file is the analyst's own, read on their machine, so the summary may
quote fields that are no values of the domain; nothing of it leaves the terminal.
"""

from __future__ import annotations

import csv
import gzip
import io
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.survey import Attribute, IntegerDomain, LabelDomain, NumberDomain
from hubbub_deploy.errors import DeployError

MISSING: Final = frozenset({"", "?", "NA", "nan", "NaN", "null"})
"""Fields that stand for no value."""

_EXAMPLES: Final = 3
"""Distinct fields that the summary quotes of each column."""

_TOLD_ROWS: Final = 100_000
"""Rows between two words on how far the reading is."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: its distinct fields, and which of them every row holds.

    Attributes:
        fields: Distinct fields, as text.
        codes: Index of each row's field, shape (rows,), int32.
    """

    fields: tuple[str, ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class ReadValues:
    """A column read as an attribute: what a host would hold on every device.

    Attributes:
        held: Value of each row, None where it is missing, shape (rows,), object.
        missing: Rows whose field stands for no value.
        outside: Rows whose field is no value of the domain; they are answered as missing, too.
        examples: Distinct fields of those, the commonest first.
        clipped: Rows whose number was moved to the nearer end of the domain.
    """

    held: NDArray[np.object_]
    missing: int
    outside: int
    examples: tuple[str, ...]
    clipped: int = 0


def read_people(
    path: Path,
    names: Sequence[str],
    *,
    delimiter: str = ",",
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int], None] = lambda rows: None,
) -> dict[str, Coded]:
    """Return the named columns of a file with a header: CSV in UTF-8, .gz of it, or .parquet.

    In a CSV of one column an empty line is a row whose field is empty; in any other it is no row.

    Args:
        path: The file; "-" is stdin.
        names: Columns of its header.
        delimiter: What stands between fields of a CSV.
        say: Is told of empty lines.
        progress: Is told how many rows have been read, now and then.

    Raises:
        DeployError: If the file cannot be read, a column is missing or there twice, or a row has more or
            fewer fields than the header.
    """
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise DeployError(f"--delimiter must be one character, and no quote or line end, got {delimiter!r}")
    if path.suffix == ".parquet":
        return _parquet(path, names)
    try:
        with _text(path) as file:
            return _csv(file, path, names, delimiter=delimiter, say=say, progress=progress)
    except (OSError, EOFError) as error:
        raise DeployError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DeployError(f"{path}: must be a CSV file in UTF-8: {error}") from None


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
        value, clipped = value_of(attribute, text), False
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
        parts.append(f"{values.missing:,} of {rows:,} are missing")
    if values.outside:
        quoted = ", ".join(repr(text) for text in values.examples)
        parts.append(f"{values.outside:,} are outside the domain (such as {quoted}) and count as missing")
    if values.clipped:
        parts.append(f"{values.clipped:,} were moved to the nearer end of the domain")
    return f"column {name!r}: {', '.join(parts)}" if parts else ""


def value_of(attribute: Attribute, text: str) -> object:
    """Return the value that a host would hold for a field of a file; None where it is no value.

    A label is itself, were it "NA".
    """
    domain = attribute.domain
    if isinstance(domain, LabelDomain):
        return None if text in MISSING and text not in domain.index else text
    if text in MISSING:
        return None
    try:
        if isinstance(domain, IntegerDomain):
            number = float(text)
            return int(number) if number.is_integer() else None
        return float(text)
    except (ValueError, OverflowError):
        return None


def _in_domain(attribute: Attribute, value: object) -> bool:
    domain = attribute.domain
    if isinstance(domain, NumberDomain):
        return isinstance(value, float) and domain.low <= value <= domain.high
    return attribute.index_of(value) < attribute.size


def _clipped(attribute: Attribute, value: object) -> tuple[object, bool]:
    domain = attribute.domain
    if not isinstance(domain, IntegerDomain | NumberDomain) or not isinstance(value, int | float):
        return value, False
    if value != value:  # noqa: PLR0124 - nan is no number to move
        return value, False
    nearest = min(max(value, domain.low), domain.high)
    return type(value)(nearest), nearest != value


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOBase]:
    import sys  # noqa: PLC0415 - stdin is looked up when it is read: tests replace it

    if str(path) == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
    elif path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    else:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield file


def _csv(
    file: io.TextIOBase,
    path: Path,
    names: Sequence[str],
    *,
    delimiter: str,
    say: Callable[[str], None],
    progress: Callable[[int], None],
) -> dict[str, Coded]:
    reader = csv.reader(file, delimiter=delimiter)
    header = [name.strip() for name in next(reader, [])]
    _check_header(path, header, names)
    places = [header.index(name) for name in names]
    known: list[dict[str, int]] = [{} for _ in names]
    codes = [array("i") for _ in names]
    rows = empty = 0
    for row in reader:
        if not row:
            empty += 1
            if len(header) > 1:
                continue
            row = [""]  # noqa: PLW2901 - what the line says
        if len(row) != len(header):
            raise DeployError(
                f"{path}: line {reader.line_num} must have {len(header)} fields, got {len(row)}"
                f" (fields are separated by {delimiter!r})"
            )
        for place, seen, column in zip(places, known, codes, strict=True):
            column.append(seen.setdefault(row[place].strip(), len(seen)))
        rows += 1
        if rows % _TOLD_ROWS == 0:
            progress(rows)
    if empty:
        taken = "a device each, its value missing" if len(header) == 1 else "not counted as devices"
        say(f"{path}: empty lines are {taken}: {empty:,}")
    return {
        name: Coded(tuple(seen), np.frombuffer(column, dtype=np.int32) if column else np.empty(0, np.int32))
        for name, seen, column in zip(names, known, codes, strict=True)
    }


def _check_header(path: Path, header: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in header:
            hint = " (--column ATTRIBUTE=COLUMN takes another)" if header else ""
            raise DeployError(
                f"{path}: columns must include {name!r}, got {', '.join(header) or 'none'}{hint}"
            )
    for name in header:
        if header.count(name) > 1 and name in names:
            raise DeployError(f"{path}: column {name!r} must be there once, got {header.count(name)} of it")


def _parquet(path: Path, names: Sequence[str]) -> dict[str, Coded]:
    import duckdb  # noqa: PLC0415 - an extra of its own

    columns: dict[str, Coded] = {}
    try:
        with duckdb.connect() as database:
            header = [
                row[0]
                for row in database.execute(
                    "SELECT column_name FROM (DESCRIBE SELECT * FROM read_parquet(?))", [str(path)]
                ).fetchall()
            ]
            _check_header(path, header, names)
            for name in names:
                quoted = '"' + name.replace('"', '""') + '"'
                cells = database.execute(
                    f"SELECT coalesce(CAST({quoted} AS VARCHAR), '') FROM read_parquet(?)",  # noqa: S608 - quoted
                    [str(path)],
                ).fetchnumpy()
                columns[name] = _coded(next(iter(cells.values())))
    except duckdb.Error as error:
        said = str(error).splitlines()[0]
        raise DeployError(f"{path}: must be a Parquet file that can be read: {said}") from None
    return columns


def _coded(cells: NDArray[Any]) -> Coded:
    seen: dict[str, int] = {}
    codes = np.fromiter(
        (seen.setdefault(str(cell).strip(), len(seen)) for cell in cells), dtype=np.int32, count=len(cells)
    )
    return Coded(tuple(seen), codes)


def columns_of(attributes: Sequence[Attribute], named: Mapping[str, str]) -> dict[str, str]:
    """Return the column of every attribute: its own id, or what the user named.

    Args:
        attributes: Attributes that surveys ask for.
        named: Attribute id -> column, as the user said.

    Raises:
        DeployError: If the user named an attribute that no survey asks for.
    """
    columns = {attribute.id: named.get(attribute.id, attribute.id) for attribute in attributes}
    if strange := sorted(named.keys() - columns.keys()):
        raise DeployError(f"--column must name one of {', '.join(sorted(columns))}, got {', '.join(strange)}")
    return columns
