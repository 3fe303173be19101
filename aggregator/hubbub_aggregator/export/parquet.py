"""Tidy rows as Parquet, written by DuckDB (the extra `export`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hubbub_aggregator.export.json_lines import json_lines
from hubbub_aggregator.export.tidy import COLUMNS

# Everything that is needed is in the package: nothing is looked for on the network.
_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def can_write_parquet() -> bool:
    """Return whether DuckDB is installed here."""
    return find_spec("duckdb") is not None


def write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write rows into a Parquet file with typed columns, and return how many there were.

    Args:
        rows: What `tidy_rows` gives.
        path: The file; one that is there is replaced, as a whole.

    Raises:
        ModuleNotFoundError: If duckdb is not installed.
        OSError: If the file cannot be written.
    """
    import duckdb  # noqa: PLC0415 - the extra `export`, needed here alone

    count = 0
    with tempfile.TemporaryDirectory(prefix=".export-", dir=path.parent) as folder:
        made = Path(folder) / "rows.parquet"
        # The folder's name is the user's, and a pattern to DuckDB: it is given descriptors.
        with tempfile.TemporaryFile(dir=folder) as table, made.open("wb") as file:
            for piece in json_lines(rows):
                table.write(piece)
                count += piece.count(b"\n")
            table.flush()
            types = ", ".join(f"{_quoted(column.name)}: {_quoted(column.sql)}" for column in COLUMNS)
            read = f"'/dev/fd/{table.fileno()}', format = 'newline_delimited', columns = {{{types}}}"
            target = f"'/dev/fd/{file.fileno()}' (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)"
            with duckdb.connect(config=_SETTINGS) as database:
                database.execute(f"COPY (FROM read_json({read})) TO {target}")
        made.replace(path)
    return count


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
