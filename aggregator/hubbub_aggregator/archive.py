"""Where sealed releases stay: put once, read for ever; a second, different version is refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from hubbub_aggregator.errors import ArchiveError, Diverged
from hubbub_aggregator.partition import RoundKey

SCHEMA_VERSION: Final = 1


class Archive(Protocol):
    """The authority for sealed rounds."""

    def put(self, key: RoundKey, data: bytes) -> None:
        """Keeps a release for good; putting the same bytes again changes nothing.

        Raises:
            Diverged: If other bytes are kept for this round; they stay.
        """
        ...

    def get(self, key: RoundKey) -> bytes | None:
        """A round's release, or None."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """What is put within reaches the disk at the end, at the price of one release."""
        ...


class SqliteArchive:
    """An archive in one SQLite file; one thread at a time.

    Raises:
        ArchiveError: If the file is no archive of this schema version.
    """

    def __init__(self, path: str | Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            version = self._version() or self._create()
            if version == SCHEMA_VERSION:
                # Whoever is opening it at this moment does the same; the file remembers.
                with suppress(sqlite3.OperationalError):
                    self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            self._db.close()
            raise ArchiveError(f"{path} must be an archive of releases: {error}") from error
        if version != SCHEMA_VERSION:
            self._db.close()
            raise ArchiveError(f"{path} must be an archive of schema {SCHEMA_VERSION}, got {version}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> int:
        """Makes the tables in an empty file, unless another process has just done it; the schema version."""
        self._db.execute("BEGIN IMMEDIATE")
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            self._db.execute(
                "CREATE TABLE release ("
                "digest BLOB, round INTEGER, document BLOB NOT NULL, PRIMARY KEY (digest, round))"
            )
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        version = self._version()
        self._db.execute("COMMIT")
        return version

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def put(self, key: RoundKey, data: bytes) -> None:
        """Keeps a release for good; putting the same bytes again changes nothing.

        Raises:
            Diverged: If other bytes are kept for this round; they stay.
        """
        self._db.execute("INSERT OR IGNORE INTO release VALUES (?, ?, ?)", (*key, data))
        if self.get(key) != data:
            digest, number = key
            raise Diverged(f"survey {digest.hex()}, round {number}: another release is archived already")

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is put within reaches the disk at the end, at the price of one release."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            # Each release is whole in itself: what was put before an error stays.
            self._db.execute("COMMIT")

    def get(self, key: RoundKey) -> bytes | None:
        """A round's release, or None."""
        row = self._db.execute("SELECT document FROM release WHERE digest = ? AND round = ?", key).fetchone()
        return None if row is None else bytes(row[0])

    def rounds(self) -> list[RoundKey]:
        """The (digest, round) pairs that have a release, in order."""
        rows = self._db.execute("SELECT digest, round FROM release ORDER BY digest, round")
        return [(bytes(digest), number) for digest, number in rows]
