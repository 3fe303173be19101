"""Dead letters of one process in one SQLite file, keyed by position."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.stores.disk import has_no_room

_SCHEMA = "CREATE TABLE IF NOT EXISTS letter (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"


class SqliteDeadTopic:
    """A dead-letter topic in SQLite that keeps the last value of each key; one thread at a time.

    Args:
        path: The file; it is made where there is none.

    Raises:
        StoreError: If it is no such file.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the last: of a damaged schema
            raise StoreError(f"{path} must be a file of dead letters: {error}") from error
        try:
            # Looked at before anything is written: another application's file stays as it is.
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_schema")}
            if tables - {"letter"}:
                raise sqlite3.DatabaseError(f"it has the tables {', '.join(sorted(map(str, tables)))}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(_SCHEMA)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the last: of a damaged schema
            self._db.close()
            raise StoreError(f"{path} must be a file of dead letters: {error}") from error

    def put(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep (key, value) pairs, durable on return.

        Raises:
            StoreError: If the disk has no room, or failed; nothing was written.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO letter VALUES (?, ?)", records)
            self._db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            if has_no_room(error):
                raise StoreError(f"dead letters: {error}") from error
            raise

    def records(self) -> dict[bytes, bytes]:
        """Return every key and its last value."""
        return {bytes(key): bytes(value) for key, value in self._db.execute("SELECT key, value FROM letter")}

    def erase(self, keys: Iterable[bytes]) -> None:
        """Delete the letters of some keys for good, and write the file anew: no free page keeps one."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("DELETE FROM letter WHERE key = ?", ((key,) for key in keys))
        self._db.execute("COMMIT")
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._db.close()
