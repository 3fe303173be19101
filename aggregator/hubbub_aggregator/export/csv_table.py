"""Tidy rows as CSV (RFC 4180): a header, a line per row, an empty cell for what is not there."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from hubbub_aggregator.export.tidy import COLUMNS

_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
# After white space, too, which spreadsheets may drop. The minus sign of mathematics folds to nothing else.
_FORMULA: Final = re.compile(r"\s*[=+\-@\u2212]|[\t\r]")
_PIECE_CHARACTERS: Final = 64 * 2**10


def csv_pieces(
    rows: Iterable[Mapping[str, Any]],
    *,
    columns: Sequence[str] | None = None,
) -> Iterator[bytes]:
    """Yield a CSV in pieces of some 64 KiB, so that all rounds of a survey need not be in memory at once.

    Numbers are unrounded: each is the shortest decimal that reads back as the same float. A text that a
    spreadsheet would take for a formula gets a leading apostrophe.

    Args:
        rows: What `tidy_rows` gives.
        columns: The columns to write; all if absent.
    """
    if columns is None:
        columns = [column.name for column in COLUMNS]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[column]) for column in columns])
        if out.tell() >= _PIECE_CHARACTERS:
            yield _taken(out)
    yield _taken(out)


def _taken(out: io.StringIO) -> bytes:
    text = out.getvalue()
    out.seek(0)
    out.truncate()
    return text.encode("utf-8")


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    # A full-width or small sign is read as the one that it folds to.
    if isinstance(value, str) and _FORMULA.match(unicodedata.normalize("NFKC", value)):
        return value if _NUMBER.fullmatch(value) else "'" + value
    return value
