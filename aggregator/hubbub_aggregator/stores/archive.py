"""The archive of sealed releases: put once, kept for ever; a different second version is refused."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from hubbub.survey import number_of_round
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.errors import ArchiveError, ArchiveFullError, DivergedError
from hubbub_aggregator.stores.disk import has_no_room

SCHEMA_VERSION: Final = 2
_SELECT: Final = "SELECT document, checksum FROM release WHERE digest = ? AND round = ?"
_SELECT_SHOWN: Final = "SELECT data, checksum FROM shown WHERE digest = ? AND round = ?"
# Added later, to archives that are there too.
_SHOWN: Final = (
    "CREATE TABLE IF NOT EXISTS shown (digest BLOB, round INTEGER, data BLOB NOT NULL, "
    "checksum BLOB NOT NULL, PRIMARY KEY (digest, round))"
)
_SELECT_COUNTS: Final = "SELECT data, checksum FROM counts WHERE digest = ? AND round = ?"
SURVEY_ROW: Final = -1
"""The round under which a survey's canonical bytes lie among the counts: who checks them needs it too."""

_COUNTS: Final = _SHOWN.replace("shown", "counts")
# The row that says that whatever was shown since the archive was made or first opened is in it.
_BEGUN: Final[RoundKey] = (b"", 0)


class Archive(Protocol):
    """The authority for sealed rounds."""

    def put(self, key: RoundKey, data: bytes) -> None:
        """Keep a release for good; putting the same bytes again changes nothing.

        Raises:
            DivergedError: If other bytes are kept for this round; they stay.
        """
        ...

    def get(self, key: RoundKey) -> bytes | None:
        """Return a round's release, or None."""
        ...

    def shown(self, key: RoundKey) -> bytes | None:
        """Return what is kept of what was shown of a round while it was open, or None."""
        ...

    def keep_shown(self, key: RoundKey, data: bytes) -> None:
        """Keep what was shown of a round, in the place of what was kept of it."""
        ...

    def counts(self, key: RoundKey) -> bytes | None:
        """Return the public counts of a round, or None."""
        ...

    def keep_counts(self, key: RoundKey, data: bytes) -> None:
        """Keep the public counts of a round beside its release, which states their hash."""
        ...

    def begin(self, lost: Mapping[RoundKey, bytes]) -> None:
        """Keep `lost` as what was shown of rounds, unless whatever was shown is kept here already."""
        ...

    def together(self) -> AbstractContextManager[None]:
        """Sync all that is put within this context at its end, at the cost of one."""
        ...


class SqliteArchive:
    """An archive in one SQLite file; one thread at a time.

    Every release has a SHA-256 of its digest, round and bytes beside it, compared at each reading: a flipped
    bit or an edit by hand is an error, never a number on the page. An edit of the checksum as well is found
    by a replay of the log, which makes the same bytes again.

    Raises:
        ArchiveError: If the file is no archive of this schema version, or cannot be read.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise ArchiveError(f"{path} must be an archive of releases: {error}") from error
        try:
            version = self._version() or self._create()
            if version == SCHEMA_VERSION:
                # Another process that opens it now does the same; the file remembers.
                with suppress(sqlite3.OperationalError):
                    self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute(_SHOWN)
                self._db.execute(_COUNTS)
            self._db.execute("PRAGMA synchronous = FULL")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the last: of a damaged schema
            self._db.close()
            raise ArchiveError(f"{path} must be an archive of releases: {error}") from error
        if version != SCHEMA_VERSION:
            self._db.close()
            raise ArchiveError(f"{path} must be an archive of schema {SCHEMA_VERSION}, got {version}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _create(self) -> int:
        """Make the tables in an empty file, unless another process has just done it; return the version."""
        self._db.execute("BEGIN IMMEDIATE")
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not tables:
            self._db.execute(
                "CREATE TABLE release (digest BLOB, round INTEGER, document BLOB NOT NULL, "
                "checksum BLOB NOT NULL DEFAULT x'', PRIMARY KEY (digest, round))"
            )
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        version = self._version()
        self._db.execute("COMMIT")
        return version

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, key: RoundKey, data: bytes) -> None:
        """Keep a release for good; putting the same bytes again changes nothing.

        Raises:
            DivergedError: If other bytes are kept for this round; they stay.
            ArchiveFullError: If there is no room for it, or the disk failed.
            ArchiveError: If the file cannot be written, or what it holds is damaged.
        """
        with self._guarded():
            self._db.execute(
                "INSERT OR IGNORE INTO release VALUES (?, ?, ?, ?)", (*key, data, _checksum(key, data))
            )
        if self.get(key) != data:
            digest, number = key
            raise DivergedError(
                f"survey {digest.hex()}, round {number_of_round(number)}: another release is archived already"
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Sync all that is put within this context at its end, at the cost of one."""
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            # Each release is whole in itself: what was put before an error stays; of a disk without room,
            # SQLite may have rolled all of it back.
            if self._db.in_transaction:
                self._commit()

    def _commit(self) -> None:
        try:
            with self._guarded():
                self._db.execute("COMMIT")
        except ArchiveError:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            raise

    def get(self, key: RoundKey) -> bytes | None:
        """Return a round's release, or None.

        Raises:
            ArchiveError: If the file cannot be read, or the release is not the one that was put.
        """
        return self._found(_SELECT, key)

    def shown(self, key: RoundKey) -> bytes | None:
        """Return what is kept of what was shown of a round while it was open, or None.

        Raises:
            ArchiveError: If the file cannot be read, or these are not the bytes that were kept.
        """
        return self._found(_SELECT_SHOWN, key)

    def keep_shown(self, key: RoundKey, data: bytes) -> None:
        """Keep what was shown of a round, in the place of what was kept of it.

        Raises:
            ArchiveFullError: If there is no room for it, or the disk failed.
            ArchiveError: If the file cannot be written.
        """
        self._keep("shown", key, data)

    def counts(self, key: RoundKey) -> bytes | None:
        """Return the public counts of a round, or None.

        Raises:
            ArchiveError: If the file cannot be read, or these are not the bytes that were kept.
        """
        return self._found(_SELECT_COUNTS, key)

    def keep_counts(self, key: RoundKey, data: bytes) -> None:
        """Keep the public counts of a round beside its release, which states their hash.

        Raises:
            ArchiveFull: If there is no room for it, or the disk failed.
            ArchiveError: If the file cannot be written.
        """
        self._keep("counts", key, data)

    def _keep(self, table: str, key: RoundKey, data: bytes) -> None:
        put = f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?)"  # noqa: S608 - a constant of this module
        with self._guarded():
            self._db.execute(put, (*key, data, _checksum(key, data)))

    def begin(self, lost: Mapping[RoundKey, bytes]) -> None:
        """Keep `lost` as what was shown of rounds, unless whatever was shown is kept here already.

        Raises:
            ArchiveFullError: If there is no room for it, or the disk failed.
            ArchiveError: If the file cannot be read or written.
        """
        if self.shown(_BEGUN) is None:
            with self.together():
                for key, data in lost.items():
                    self.keep_shown(key, data)
                self.keep_shown(_BEGUN, b"")

    def _found(self, select: str, key: RoundKey) -> bytes | None:
        with self._guarded():
            row = self._db.execute(select, key).fetchone()
        if row is None:
            return None
        data, checksum = row
        if type(data) is not bytes or checksum != _checksum(key, data):
            digest, number = key
            raise ArchiveError(
                f"archive {self._path}: survey {digest.hex()}, round {number_of_round(number)} must be the "
                "bytes that were put, got others: the file is damaged or was edited"
            )
        return data

    def rounds(self) -> list[RoundKey]:
        """Return the (digest, round) pairs that have a release, in order.

        Raises:
            ArchiveError: If the file cannot be read.
        """
        with self._guarded():
            rows = self._db.execute("SELECT digest, round FROM release ORDER BY digest, round").fetchall()
        return [(bytes(digest), number) for digest, number in rows]

    def check(self) -> None:
        """Look at every row, since no question for its round finds a release whose key is damaged.

        Raises:
            ArchiveError: If the file cannot be read, or a row is not the one that was put.
        """
        with self._guarded():
            (found,) = self._db.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise ArchiveError(f"archive {self._path} is damaged: {found}")
            for table, column in (("release", "document"), ("shown", "data"), ("counts", "data")):
                rows = f"SELECT digest, round, {column}, checksum FROM {table}"  # noqa: S608 - constants
                for digest, number, data, checksum in self._db.execute(rows):
                    kinds = [type(each) for each in (digest, number, data)]
                    if kinds != [bytes, int, bytes] or checksum != _checksum((digest, number), data):
                        raise ArchiveError(
                            f"archive {self._path}: a row of {table} is not the one that was put"
                        )

    def erase(self, digest: bytes) -> None:
        """Delete every release of a survey for good, and write the file anew: no free page keeps one.

        Raises:
            ArchiveError: If the file cannot be written.
        """
        with self._guarded():
            self._db.execute("DELETE FROM release WHERE digest = ?", (digest,))
            self._db.execute("DELETE FROM shown WHERE digest = ?", (digest,))
            self._db.execute("DELETE FROM counts WHERE digest = ?", (digest,))
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the last: of a damaged schema
            kind = ArchiveFullError if has_no_room(error) else ArchiveError
            raise kind(f"archive {self._path}: {error}") from error


def _checksum(key: RoundKey, data: bytes) -> bytes:
    digest, number = key
    return hashlib.sha256(digest + number.to_bytes(8, "big", signed=True) + data).digest()
