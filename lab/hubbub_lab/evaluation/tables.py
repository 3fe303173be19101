"""A table in a file that a user names, CSV or Parquet, read column by column in little memory.

A column is kept as its distinct fields and, for every row, the number of one of them: a value is understood
once, however many devices hold it. Nothing else of the file is kept, and no row is read whole that could be
larger than a bound: a few bytes may unpack to any number.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from hubbub_lab.errors import LabError
from hubbub_lab.texts import plain, sql_name

if TYPE_CHECKING:
    import duckdb

# A row of so many fields of one letter takes 200 MB; no row of people is as long.
MAX_ROW_CHARACTERS: Final = 2**21
# Longer than any label or number: what a field says beyond it makes it no value either way.
_MAX_FIELD_CHARACTERS: Final = 1_000
# The largest page that DuckDB writes is 100 MiB; it asks for a power of two.
_PARQUET_MEMORY: Final = "160MiB"
# Everything that is needed is in the package: nothing is looked for on the network, nor spilled to a disk.
_DUCKDB: Final[dict[str, Any]] = {
    "memory_limit": _PARQUET_MEMORY,
    "threads": 1,
    "temp_directory": "",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
_ROWS: Final = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
_BATCH: Final = 2_048
_TOLD_ROWS: Final = 100_000
"""Rows between two words on how far the reading is."""
_SHOWN: Final = 20
"""Columns of a header that a message names."""


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: its distinct fields, and which of them every row holds.

    Attributes:
        fields: Distinct fields, as text; what is longer than any value is cut, and ends in an ellipsis.
        codes: Index of each row's field, shape (rows,), int32.
        decimal: What stands before the fraction of a number in them.
    """

    fields: tuple[str, ...]
    codes: NDArray[np.int32]
    decimal: str = "."


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """The way in which a CSV is written.

    Attributes:
        delimiter: What stands between fields; a backslash and a t are a tab.
        encoding: Its text's; UTF-8 may begin with a mark of it.
        decimal: What stands before the fraction of a number: a point or a comma.

    Raises:
        LabError: If one of them is none.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.delimiter == r"\t":
            object.__setattr__(self, "delimiter", "\t")
        delimiter = self.delimiter
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise LabError(f"--delimiter must be one character, and no quote or line end, got {delimiter!r}")
        if self.decimal not in (".", ","):
            raise LabError(f"--decimal must be a point or a comma, got {self.decimal!r}")
        try:
            name = codecs.lookup(self.encoding).name
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise LabError(
                f"--encoding must be one of text, such as utf-8, cp1252 or utf-16, got {self.encoding!r}"
            ) from None
        if name == "utf-8":
            object.__setattr__(self, "encoding", "utf-8-sig")


PLAIN: Final = Spelling()


def read_people(
    path: Path,
    names: Sequence[str],
    *,
    spelling: Spelling = PLAIN,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[int], None] = lambda rows: None,
) -> dict[str, Coded]:
    """Return the named columns of a file with a header: CSV, .gz of it, or .parquet, or a folder of these.

    In a CSV of one column an empty line is a row whose field is empty; in any other it is no row.

    Args:
        path: The file, or a folder of Parquet files, read in the order of their names; "-" is stdin.
        names: Columns of its header.
        spelling: How a CSV is written.
        say: Is told of empty lines.
        progress: Is told how many rows have been read, now and then.

    Raises:
        LabError: If the file cannot be read, a column is missing or there twice, a row has more or fewer
            fields than the header or is too long, or a quote may have swallowed rows.
    """
    columns = _Columns(path, names, progress)
    try:
        if path.is_dir():
            for part in parquet_parts(path):
                _read_parquet(part, columns)
        elif path.suffix.lower() == ".parquet":
            _read_parquet(path, columns)
        else:
            with _text(path, spelling.encoding) as file, _long_fields():
                columns.decimal = spelling.decimal
                _read_csv(file, columns, delimiter=spelling.delimiter, say=say)
    except (OSError, EOFError, zlib.error) as error:
        raise LabError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeError as error:
        name, reason = spelling.encoding.removesuffix("-sig"), getattr(error, "reason", error)
        raise LabError(
            f"{path}: must be a CSV file in {name}, and is not from line {columns.rows + 2} or later on:"
            f" {reason} (what Windows writes in the west is often --encoding cp1252, or utf-16)"
        ) from None
    return columns.coded()


def parquet_parts(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder in the order of their names.

    Raises:
        LabError: If it holds none, or folders: their names may be columns, which are not read.
    """
    found = sorted(each for each in folder.iterdir() if not each.name.startswith((".", "_")))
    if any(each.is_dir() for each in found):
        raise LabError(f"{folder}: must hold the Parquet files themselves, got folders")
    parts = [each for each in found if each.suffix.lower() == ".parquet"]
    if not parts:
        raise LabError(f"{folder}: must hold Parquet files, got none")
    return parts


class _Columns:
    """The columns that were asked for, as they are read row by row."""

    def __init__(self, path: Path, names: Sequence[str], progress: Callable[[int], None]) -> None:
        self.path, self.names, self._progress = path, names, progress
        self._seen: list[dict[str, int]] = [{} for _ in names]
        self._codes = [array("i") for _ in names]
        self.rows, self.decimal = 0, "."

    def places(self, header: Sequence[str]) -> list[int]:
        """Return where the columns stand in a header.

        Raises:
            LabError: If one is missing, or there twice.
        """
        for name in self.names:
            if (times := header.count(name)) > 1:
                raise LabError(f"{self.path}: column {name!r} must be there once, got {times} of it")
            if not times:
                found = ", ".join(map(cut, header[:_SHOWN])) + (", ..." if len(header) > _SHOWN else "")
                hint = " (--column ATTRIBUTE=COLUMN takes another)" if header else ""
                for sign in (";", "\t", "|"):
                    if len(header) == 1 and sign in header[0]:
                        hint = f" (is --delimiter {sign!r} missing?)"
                raise LabError(f"{self.path}: columns must include {name!r}, got {found or 'none'}{hint}")
        return [header.index(name) for name in self.names]

    def add(self, fields: Sequence[str]) -> None:
        """Take the fields of one row, in the order of the names."""
        for text, seen, codes in zip(fields, self._seen, self._codes):  # noqa: B905 - a third of the time
            code = seen.get(text)
            if code is None:
                field = text.strip()
                if len(field) > _MAX_FIELD_CHARACTERS:
                    field = field[:_MAX_FIELD_CHARACTERS] + "..."
                code = seen.setdefault(field, len(seen))
            codes.append(code)
        self.rows += 1
        if self.rows % _TOLD_ROWS == 0:
            self._progress(self.rows)

    def coded(self) -> dict[str, Coded]:
        """Return what was read of each column."""
        found = {}
        for name, seen, codes in zip(self.names, self._seen, self._codes, strict=True):
            places = np.frombuffer(codes, dtype=np.int32) if codes else np.empty(0, np.int32)
            found[name] = Coded(tuple(seen), places, self.decimal)
        return found


def cut(text: str) -> str:
    """Return a text of a file as a message quotes it: no more than 40 characters."""
    return plain(text if len(text) <= 40 else text[:37] + "...")


@contextmanager
def _text(path: Path, encoding: str) -> Iterator[io.TextIOBase]:
    import sys  # noqa: PLC0415 - stdin is looked up when it is read: tests replace it

    if str(path) == "-":
        yield io.TextIOWrapper(sys.stdin.buffer, encoding=encoding, newline="")
    elif path.suffix.lower() == ".gz":
        with gzip.open(path, "rt", encoding=encoding, newline="") as file:
            yield file
    else:
        with path.open(newline="", encoding=encoding) as file:
            yield file


@contextmanager
def _long_fields() -> Iterator[None]:
    """Take fields as long as a row: the column of one may be none that is asked for."""
    before = csv.field_size_limit(MAX_ROW_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class _Lines:
    """The lines of a CSV; refuses what no row holds before it is read whole.

    A field in quotes may go on over lines, where a text does. A quote that nobody meant goes on the same way,
    up to the next one, and takes whole rows along: a later line of a row with as many delimiters as a row
    has is refused, because it could be one.

    Args:
        file: The text.
        path: Its name, for messages.
        delimiter: What stands between fields.

    Attributes:
        row: The line on which the row began that is being read, from 1.
        is_new: Whether the next line begins a row; whoever took a row says so.
        delimiters: How many a row has; no row goes on over lines before that is known.
    """

    def __init__(self, file: io.TextIOBase, path: Path, delimiter: str) -> None:
        self._file, self._path, self._delimiter = file, path, delimiter
        self._line = self._characters = 0
        self.row, self.delimiters, self.is_new = 1, 0, True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if begins := self.is_new:
            self.row, self._characters, self.is_new = self._line + 1, 0, False
        line = self._file.readline(MAX_ROW_CHARACTERS + 1 - self._characters)
        if not line:
            raise StopIteration
        self._line += 1
        if not begins and line.count(self._delimiter) >= self.delimiters:
            self.refuse(
                f"must close its quote before line {self._line}, which may be a row of its own"
                ' (a quote that is part of a field is written "" within quotes)'
            )
        self._characters += len(line)
        if self._characters > MAX_ROW_CHARACTERS:
            self.refuse(f"must have at most {MAX_ROW_CHARACTERS:,} characters, got more")
        return line

    def refuse(self, rule: str) -> NoReturn:
        """Refuse the row that is being read."""
        raise LabError(f"{self._path}: line {self.row} {rule}")


def _read_csv(file: io.TextIOBase, columns: _Columns, *, delimiter: str, say: Callable[[str], None]) -> None:
    lines = _Lines(file, columns.path, delimiter)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    empty = 0
    try:
        header = [name.strip() for name in next(rows, [])]
        places = columns.places(header)
        lines.delimiters = len(header) - 1
        lines.is_new = True
        for row in rows:
            if not row:
                empty += 1
                if len(header) == 1:
                    columns.add([""])
            elif len(row) == len(header):
                columns.add([row[place] for place in places])
            else:
                separated = f" (fields are separated by {delimiter!r})"
                lines.refuse(f"must have {len(header)} fields, got {len(row)}{separated}")
            lines.is_new = True
    except csv.Error as error:
        lines.refuse(f"must be a row of CSV: {error}")
    if empty:
        taken = "a device each, its value missing" if len(header) == 1 else "not counted as devices"
        say(f"{columns.path}: empty lines are {taken}: {empty:,}")


def _read_parquet(path: Path, columns: _Columns) -> None:
    import duckdb  # noqa: PLC0415 - an extra of its own

    with path.open("rb") as file, duckdb.connect(config=_DUCKDB) as database:
        # A path would be read as a pattern, a folder of the user's own, or a partition; a descriptor is none.
        source = f"/dev/fd/{file.fileno()}"
        try:
            _read_columns(database, source, columns)
        except duckdb.OutOfMemoryException:
            raise LabError(
                f"{path}: must be a Parquet file of smaller pages: they are read in {_PARQUET_MEMORY}"
            ) from None
        except duckdb.Error as error:
            said = str(error).splitlines()[0].replace(source, str(path))
            raise LabError(f"{path}: must be a Parquet file that can be read: {said}") from None


def _read_columns(database: duckdb.DuckDBPyConnection, source: str, columns: _Columns) -> None:
    """Read the columns in batches; a field is cut where it is read, and a page that is too large refused."""
    described = database.execute(f"DESCRIBE {_ROWS}", [source]).fetchall()
    places = columns.places([name for name, *_ in described])
    if not places:
        return
    for place in places:
        name, kind = described[place][:2]
        if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION")):
            raise LabError(f"{columns.path}: column {name!r} must hold one value a row, got {cut(kind)}")
    fields = ", ".join(
        f"coalesce(left(CAST({sql_name(described[place][0])} AS VARCHAR), {_MAX_FIELD_CHARACTERS + 1}), '')"
        for place in places
    )
    found = database.execute(f"SELECT {fields} FROM ({_ROWS})", [source])  # noqa: S608 - quoted
    for row in chain.from_iterable(iter(lambda: found.fetchmany(_BATCH), [])):
        columns.add(row)
