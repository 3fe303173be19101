"""The log of what was published, in one SQLite file: entries, hashes over them, and the newest checkpoint.

Any process of the folder may append; only who has the log's key publishes a checkpoint. An entry has a key,
and is there once: whoever was killed appends again, and nothing is there twice.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from hubbub.transparency import (
    HASH_BYTES,
    TILE,
    Checkpoint,
    CountedTiles,
    Entry,
    Note,
    bundle,
    consistency_path,
    grown,
    inclusion_path,
    leaf_hash,
    nodes_of,
    proof_text,
    root_of,
)
from hubbub.wire import pack
from hubbub_aggregator.errors import ArchiveError, ArchiveFullError, DivergedError
from hubbub_aggregator.stores.disk import has_no_room

TRANSPARENCY_FILE: Final = "transparency.sqlite"
"""The file of the log in the folder of a node or a dashboard."""

_FORMAT: Final = 1
_WAIT_S: Final = 60.0
"""Seconds that a process waits for another that appends."""

# Added later, to logs that are there too; its tiles lie under the roots of entries.
_COUNTED: Final = (
    "CREATE TABLE IF NOT EXISTS counted (digest BLOB, round INTEGER, number INTEGER, data BLOB NOT NULL, "
    "PRIMARY KEY (digest, round, number))"
)
_TABLES: Final = (
    "CREATE TABLE entry (place INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, data BLOB NOT NULL)",
    "CREATE TABLE node (level INTEGER, place INTEGER, hash BLOB NOT NULL, PRIMARY KEY (level, place)) "
    "WITHOUT ROWID",
    "CREATE TABLE published (one INTEGER PRIMARY KEY CHECK (one = 1), note TEXT NOT NULL)",
    f"PRAGMA user_version = {_FORMAT}",
)


class TransparencyLog:
    """An append-only log in one SQLite file, for any number of threads and processes.

    Args:
        path: The file; made if absent.

    Raises:
        ArchiveError: If the file is no log of this format, or its hashes are not those of its entries.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=_WAIT_S)
        except (OSError, sqlite3.Error) as error:
            raise ArchiveError(f"{path} must be a log of what was published: {error}") from error
        try:
            with self._guarded():
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA secure_delete = ON")  # tiles of a survey that is erased
                with self._writing():
                    (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
                    for statement in (_COUNTED,) if tables else (*_TABLES, _COUNTED):
                        self._db.execute(statement)
                (found,) = self._db.execute("PRAGMA user_version").fetchone()
                if found != _FORMAT:
                    raise ArchiveError(f"{path} must be a log of format {_FORMAT}, got {found}")
                self._check()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    @property
    def size(self) -> int:
        """The number of entries."""
        with self._guarded():
            return int(self._db.execute("SELECT count(*) FROM entry").fetchone()[0])

    def append(self, entries: Iterable[Entry]) -> int:
        """Append those entries whose keys are not there, all or none of them, and return how many they are.

        Raises:
            DivergedError: If there is another entry of a key; it stays.
            ArchiveFullError: If there is no room, or the disk failed.
            ArchiveError: If the file cannot be written.
        """
        with self._guarded(), self._writing():
            return self._append(entries)

    def _append(self, entries: Iterable[Entry]) -> int:
        before = size = self.size
        for entry in entries:
            row = self._db.execute("SELECT data FROM entry WHERE key = ?", (entry.key,)).fetchone()
            if row is not None and row[0] != entry.data:
                raise DivergedError(
                    f"{self._path}: another {entry.kind} of that name is in the log; it stays"
                )
            if row is None:
                self._db.execute("INSERT INTO entry VALUES (?, ?, ?)", (size, entry.key, entry.data))
                new = grown(self.node, size, leaf_hash(entry.data))
                self._db.executemany("INSERT INTO node VALUES (?, ?, ?)", new)
                size += 1
            if entry.kind == "erased":
                self._db.execute("DELETE FROM counted WHERE digest = ?", entry.fields)
        return size - before

    def append_counted(self, counted: CountedTiles) -> None:
        """Append the entry of a round's counted reports and keep its tiles, all or none of it.

        Raises:
            DivergedError: If there is another entry of the round; it stays, and so do its tiles.
        """
        digest, number = counted.entry.fields[:2]
        with self._guarded(), self._writing():
            if self._append([counted.entry]):
                rows = ((digest, number, place, tile) for place, tile in enumerate(counted.tiles))
                self._db.executemany("INSERT INTO counted VALUES (?, ?, ?, ?)", rows)

    def counted_tile(self, digest: bytes, number: int, place: int) -> bytes | None:
        """Return a tile of a round's counted reports, None without one; rounds count from 1."""
        with self._guarded():
            row = self._db.execute(
                "SELECT data FROM counted WHERE digest = ? AND round = ? AND number = ?",
                (digest, number, place),
            ).fetchone()
        return None if row is None else bytes(row[0])

    def counted(self, digest: bytes, number: int) -> bytes | None:
        """Return the array of a round's entry of counted reports and its proof, None while it has none."""
        key = Entry("counted", (digest, number, 0, 0, bytes(HASH_BYTES), bytes(HASH_BYTES))).key
        with self._guarded():
            row = self._db.execute("SELECT data FROM entry WHERE key = ?", (key,)).fetchone()
            proof = None if row is None else self.proof(Entry.decode(row[0]))
        return None if proof is None else pack([row[0], proof.encode()])

    def since(self, place: int) -> list[Entry]:
        """Return the entries from a place on."""
        with self._guarded():
            rows = self._db.execute("SELECT data FROM entry WHERE place >= ? ORDER BY place", (place,))
            return [Entry.decode(data) for (data,) in rows.fetchall()]

    def node(self, level: int, place: int) -> bytes:
        """Return the hash of a complete subtree; see `hubbub.transparency`."""
        with self._guarded():
            row = self._db.execute("SELECT hash FROM node WHERE level = ? AND place = ?", (level, place))
            found = row.fetchone()
        if found is None:
            raise ArchiveError(
                f"{self._path}: the log must have a hash at level {level}, {place}; it is damaged"
            )
        return bytes(found[0])

    def checkpoint(self, origin: str) -> Checkpoint:
        """Return the state of the log as it is now."""
        with self._guarded():
            size = self.size
            return Checkpoint(origin, size, root_of(self.node, size))

    def growth(self, old: int, new: int) -> list[bytes]:
        """Return the hashes that show how the log grew from one size to another."""
        return consistency_path(self.node, old, new)

    def publish(self, note: str) -> None:
        """Keep a signed checkpoint as the one that readers get."""
        with self._guarded(), self._writing():
            self._db.execute("INSERT OR REPLACE INTO published VALUES (1, ?)", (note,))

    def published(self) -> str | None:
        """Return the note that readers get, None before the first."""
        with self._guarded():
            row = self._db.execute("SELECT note FROM published").fetchone()
        return None if row is None else str(row[0])

    def proof(self, entry: Entry) -> str | None:
        """Return the proof that an entry is in the published checkpoint, None while it is not."""
        with self._guarded():
            row = self._db.execute("SELECT place, data FROM entry WHERE key = ?", (entry.key,)).fetchone()
            note = self.published()
            size = _size_of(note)
            if note is None or row is None or row[1] != entry.data or row[0] >= size:
                return None
            return proof_text(row[0], inclusion_path(self.node, row[0], size), note)

    def tile(self, level: int, number: int, width: int) -> bytes | None:
        """Return a tile's hashes, None of one that is not complete."""
        with self._guarded():
            found = self._db.execute(
                "SELECT hash FROM node WHERE level = ? AND place >= ? ORDER BY place LIMIT ?",
                (8 * level, TILE * number, width),
            ).fetchall()
        return b"".join(each[0] for each in found) if len(found) == width else None

    def entries(self, number: int, width: int) -> bytes | None:
        """Return a bundle of entries, None of one that is not complete."""
        with self._guarded():
            found = self._db.execute(
                "SELECT data FROM entry WHERE place >= ? ORDER BY place LIMIT ?", (TILE * number, width)
            ).fetchall()
        return bundle([each[0] for each in found]) if len(found) == width else None

    def _check(self) -> None:
        """Refuse a file whose hashes are not those of its entries, or not those that were published."""
        rows = self._db.execute("SELECT place, data FROM entry ORDER BY place").fetchall()
        for size, (place, _) in enumerate(rows):
            if place != size:
                raise ArchiveError(f"{self._path}: an entry is missing before {place}; the file is damaged")
        nodes = nodes_of(leaf_hash(data) for _, data in rows)
        kept = {
            (level, at): found for level, at, found in self._db.execute("SELECT level, place, hash FROM node")
        }
        note = self.published()
        parsed = None if note is None else Note.parse(note.encode())
        said = None if parsed is None else Checkpoint.parse(parsed.text)
        if kept != nodes or (note is None) != (said is None):
            raise ArchiveError(f"{self._path}: hashes must be those of the entries; the file is damaged")
        if said is not None and (
            said.size > len(rows) or root_of(lambda *where: nodes[where], said.size) != said.root
        ):
            raise ArchiveError(
                f"{self._path}: entries must be those that were published; restore the newest copy of the "
                "folder, and sign nothing again"
            )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except (sqlite3.Error, UnicodeDecodeError) as error:
                kind = ArchiveFullError if has_no_room(error) else ArchiveError
                raise kind(f"log {self._path}: {error}") from error


def enter(folder: Path, entries: Iterable[Entry]) -> None:
    """Append to the log of a folder, if it has one; whoever has its key publishes it.

    Raises:
        ArchiveError: See `TransparencyLog`.
    """
    if (path := folder / TRANSPARENCY_FILE).is_file():
        with closing(TransparencyLog(path)) as log:
            log.append(entries)


def enter_erased(folder: Path) -> None:
    """Append to the log of a folder, if it has one, that every survey of it was erased; their tiles go.

    Raises:
        ArchiveError: See `TransparencyLog`.
    """
    if (path := folder / TRANSPARENCY_FILE).is_file():
        with closing(TransparencyLog(path)) as log:
            known = {each.fields[0] for each in log.since(0) if each.kind in ("survey", "release")}
            log.append(Entry("erased", (digest,)) for digest in sorted(map(bytes, known)))


def _size_of(note: str | None) -> int:
    """Return the size that a published note states; 0 without one."""
    parsed = None if note is None else Note.parse(note.encode())
    found = None if parsed is None else Checkpoint.parse(parsed.text)
    return 0 if found is None else found.size
