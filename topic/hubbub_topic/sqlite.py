"""A log in one SQLite file, with one owner: nothing to install, durable to the last acknowledged record."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from hubbub.wire import PartitionMap
from hubbub_topic.errors import LogError, LogLockedError, LogVersionError
from hubbub_topic.rows import OFFSET_BITS, OFFSET_MASK, Cut, checksum, cut, positions

SCHEMA_VERSION: Final = 2
# "HBLG" in the file header: another application's database is refused, not written to.
APPLICATION_ID: Final = 0x48424C47
# More partitions than this belong on a real broker; each costs a row update per linger.
MAX_PARTITIONS: Final = 1024
# One read returns at most this much (and at least one record), so that a reader's memory is bounded.
MAX_READ_BYTES: Final = 8 * 2**20
_MAX_LIMIT: Final = 2**31

# head: the next offset of a partition (nothing reads `checked`); announced: the keys of published surveys.
_SCHEMA: Final = """
CREATE TABLE log (identity TEXT NOT NULL, partitions INTEGER NOT NULL) STRICT;
CREATE TABLE head (
    partition INTEGER PRIMARY KEY, next INTEGER NOT NULL, checked INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE record (position INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER) STRICT;
CREATE TABLE announced (key BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;
"""
# Added by the first cut, to logs of any age: the first offset kept, and the names of what went before it.
_TRIMMED: Final = (
    "CREATE TABLE IF NOT EXISTS kept (partition INTEGER PRIMARY KEY, begin INTEGER NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS trimmed (name BLOB PRIMARY KEY) STRICT, WITHOUT ROWID",
)
_SELECT: Final = (
    "SELECT position, body, checksum FROM record WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?"
)


class SqliteLog:
    """A Log in a SQLite file: write-ahead logging, every commit fsynced.

    Every record has a CRC-32 of its position and body, compared at each reading: a disk that gave other bytes
    back would change counts in silence.

    One process at a time owns the file. Ownership is an flock on a neighbour, `<path>.lock`, which the kernel
    gives back however the owner ends, `kill -9` included. (The neighbour, because closing any descriptor of
    the database itself would drop SQLite's own locks.) Any thread may call any method: appends follow each
    other, reads go through a connection of their own and do not wait for them.

    Args:
        path: The database file; made, with its identity, if absent. Its folder must exist.
        partitions: How many partitions a new log gets; an existing one must have exactly that many. None
            opens an existing one, however many it has.

    Raises:
        LogLockedError: If another owner, in this process or another, has the log open.
        LogVersionError: If an older or a newer release wrote it.
        LogError: If the file is something else, has another number of partitions, or cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], partitions: int | None = 4) -> None:
        self._path = Path(path).resolve()
        if partitions is None:
            if not self._path.exists():
                raise LogError(f"log {self._path} must exist, got none")
        elif type(partitions) is not int or not 1 <= partitions <= MAX_PARTITIONS:
            raise LogError(f"partitions must be an integer in [1, {MAX_PARTITIONS}], got {partitions!r}")
        self._write_lock, self._read_lock = threading.Lock(), threading.Lock()
        with contextlib.ExitStack() as undo:
            self._ownership = _own(self._path)
            undo.callback(os.close, self._ownership)
            with _as_log_error(self._path):
                self._writer = _connect(self._path)
                undo.callback(self._writer.close)
                self._identity, self._partitions = self._prepare(partitions)
                self._reader = _connect(self._path)
                undo.callback(self._reader.close)
                self._reader.execute("PRAGMA query_only = ON")
            undo.pop_all()
        self._closed = False

    def _prepare(self, partitions: int | None) -> tuple[str, int]:
        """Make or check the schema, and return the log's identity and number of partitions."""
        con = self._writer
        (application,) = con.execute("PRAGMA application_id").fetchone()
        (version,) = con.execute("PRAGMA user_version").fetchone()
        (tables,) = con.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        fresh = (application, version, tables) == (0, 0, 0)
        if fresh and partitions is None:
            raise LogError(f"log {self._path} must be a Hubbub log, got an empty file")
        if not fresh and application != APPLICATION_ID:
            raise LogError(f"log {self._path} must be a Hubbub log, got another application's database")
        if not fresh and version != SCHEMA_VERSION:
            raise LogVersionError(f"log {self._path} must have schema {SCHEMA_VERSION}, got {version}")
        (mode,) = con.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise LogError(
                f"log {self._path} must lie on a file system that carries a write-ahead log, got mode {mode}"
            )
        con.execute("PRAGMA synchronous = FULL")
        # If fsync does not reach the platter (macOS), ask for the flush that does; elsewhere no effect.
        con.execute("PRAGMA fullfsync = ON")
        con.execute("PRAGMA checkpoint_fullfsync = ON")
        # A record that retention deletes must not be found in the file's free pages.
        con.execute("PRAGMA secure_delete = ON")
        if fresh and partitions is not None:
            with self._transaction():
                for statement in _SCHEMA.split(";")[:-1]:
                    con.execute(statement)
                con.execute("INSERT INTO log VALUES (?, ?)", (str(uuid.uuid4()), partitions))
                con.executemany("INSERT INTO head VALUES (?, 0, 0)", ((p,) for p in range(partitions)))
                con.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                con.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        identity, stored = self._checked_schema()
        if partitions not in (None, stored):
            raise LogError(f"log {self._path} has {stored} partitions, which never changes; got {partitions}")
        return identity, stored

    def _checked_schema(self) -> tuple[str, int]:
        """Return the identity and the number of partitions, once heads and records agree with both.

        Raises:
            LogError: If they contradict each other: the file is damaged.
        """
        rows = self._writer.execute("SELECT identity, partitions FROM log").fetchall()
        heads = self._writer.execute("SELECT partition, next FROM head ORDER BY partition").fetchall()
        if len(rows) != 1 or [head[0] for head in heads] != list(range(rows[0][1])):
            raise LogError(f"log {self._path} must have a head for each of its partitions: it is damaged")
        for partition, following in heads:
            (last,) = self._writer.execute(
                "SELECT max(position) FROM record WHERE position BETWEEN ? AND ?", positions(partition, 0)
            ).fetchone()
            if last is not None and last & OFFSET_MASK != following - 1:
                raise LogError(
                    f"log {self._path}, partition {partition}: the next offset must follow the last record, "
                    f"{last and last & OFFSET_MASK}, got {following}: the file is damaged"
                )
        return str(rows[0][0]), int(rows[0][1])

    @property
    def identity(self) -> str:
        """The random name that this log was given when it was made."""
        return self._identity

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return self._partitions

    @property
    def partition_map(self) -> PartitionMap:
        """All partitions for every round: this log does not grow."""
        return PartitionMap.of(self._partitions, identity=self._identity)

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Store all records in one transaction, fsynced before it returns; see Log.append."""
        for partition in batches:
            self._check_partition(partition)
        with self._writing():
            return self._append(batches)

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append `record` to every partition once per `key`, in one transaction; see Log.publish_survey."""
        with self._writing() as con:
            if con.execute("INSERT OR IGNORE INTO announced VALUES (?)", (key,)).rowcount == 0:
                return False
            self._append(dict.fromkeys(range(self._partitions), (record,)))
            return True

    def erase(self, records: Iterable[tuple[int, int, bytes]], *, key: bytes) -> None:
        """Put other bodies in the place of some records, for the deletion of a survey.

        All bodies are replaced in one transaction. The file is written anew after it: no free page, and no
        page of the write-ahead log, keeps what was there.

        Args:
            records: Partition, offset and new body of records that are there.
            key: The key under which the survey was announced; it may be published again.

        Raises:
            LogError: If a record is not there, or the file cannot be written.
        """
        with self._writing() as con:
            con.execute("DELETE FROM announced WHERE key = ?", (key,))
            for partition, offset, body in records:
                position = (partition << OFFSET_BITS) + offset
                row = (body, checksum(position, body), position)
                if (
                    con.execute("UPDATE record SET body = ?, checksum = ? WHERE position = ?", row).rowcount
                    != 1
                ):
                    raise LogError(f"log {self._path}, partition {partition}: record {offset} must be there")
        with self._write_lock, self._read_lock, _as_log_error(self._path):
            self._check_open()
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def trim(self, cuts: Mapping[int, Cut], names: Iterable[bytes]) -> None:
        """Delete the first records of some partitions for good, in one transaction.

        Offsets stay. The file does not shrink: its free pages, which are overwritten with zeros, are used
        for later records.

        Args:
            cuts: Partition -> where to cut, and what to keep.
            names: What the records that go were about; `trimmed` gives them back.

        Raises:
            LogError: If a cut is not within what the partition holds, or the file cannot be written.
        """
        for partition in cuts:
            self._check_partition(partition)
        with self._writing() as con:
            for statement in _TRIMMED:
                con.execute(statement)
            for partition, where in cuts.items():
                begin = cut(con, partition, where)
                con.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (partition, begin))
            con.executemany("INSERT OR IGNORE INTO trimmed VALUES (?)", ((name,) for name in names))

    def trimmed(self) -> tuple[dict[int, int], frozenset[bytes]]:
        """Return the first offset that each cut partition kept, and the names of what went."""
        with self._reading() as con:
            tables = {name for (name,) in con.execute("SELECT name FROM sqlite_schema")}
            if "trimmed" not in tables:
                return {}, frozenset()
            begins = dict(con.execute("SELECT partition, begin FROM kept").fetchall())
            return begins, frozenset(name for (name,) in con.execute("SELECT name FROM trimmed"))

    @property
    def size_bytes(self) -> int:
        """The bytes of the file that hold something; free pages are left out."""
        with self._reading() as con:
            (pages,) = con.execute("PRAGMA page_count").fetchone()
            (free,) = con.execute("PRAGMA freelist_count").fetchone()
            (size,) = con.execute("PRAGMA page_size").fetchone()
        return int((pages - free) * size)

    def _append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        con, first = self._writer, {}
        for partition, records in batches.items():
            if not records:
                continue
            if not all(isinstance(record, bytes) for record in records):
                raise LogError(f"log {self._path}, partition {partition}: records must be bytes")
            (head,) = con.execute("SELECT next FROM head WHERE partition = ?", (partition,)).fetchone()
            base = (partition << OFFSET_BITS) + head
            con.executemany(
                "INSERT INTO record VALUES (?, ?, ?)",
                ((base + i, record, checksum(base + i, record)) for i, record in enumerate(records)),
            )
            con.execute("UPDATE head SET next = ? WHERE partition = ?", (head + len(records), partition))
            first[partition] = head
        return first

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to `limit` records, and no more than about MAX_READ_BYTES, from `offset` on.

        See Log.read.
        """
        self._check_partition(partition)
        if not 0 <= offset <= OFFSET_MASK:
            raise LogError(f"offset must be in [0, {OFFSET_MASK}], got {offset}")
        if not 0 < limit < _MAX_LIMIT:
            raise LogError(f"limit must be in [1, {_MAX_LIMIT}), got {limit}")
        found: list[tuple[int, bytes]] = []
        size = 0
        with self._reading() as con, contextlib.closing(con.cursor()) as cursor:
            (following,) = cursor.execute(
                "SELECT next FROM head WHERE partition = ?", (partition,)
            ).fetchone()
            if offset >= following:  # as for most looks at a log
                return found
            cursor.execute(_SELECT, (*positions(partition, offset), limit))
            for position, body, stored in cursor:
                at = position & OFFSET_MASK
                if found and at != found[-1][0] + 1:
                    break
                if type(body) is not bytes or stored != checksum(position, body):
                    raise self._damaged(partition, at, "must have its checksum, got another")
                found.append((at, body))
                size += len(body)
                if len(found) == limit or size >= MAX_READ_BYTES:
                    return found
        missing = found[-1][0] + 1 if found else offset
        if missing < following and self.begin(partition) < following:
            raise self._damaged(partition, missing, "must be there, got none")
        return found

    def _damaged(self, partition: int, offset: int, rule: str) -> LogError:
        return LogError(
            f"log {self._path}, partition {partition}: record {offset} {rule}; the file is damaged"
        )

    def begin(self, partition: int) -> int:
        """Return the offset of the first record; the end where there is none."""
        self._check_partition(partition)
        with self._reading() as con:
            (position,) = con.execute(
                "SELECT min(position) FROM record WHERE position BETWEEN ? AND ?", positions(partition, 0)
            ).fetchone()
        return self.end(partition) if position is None else int(position & OFFSET_MASK)

    def end(self, partition: int) -> int:
        """Return the stored next offset: it does not depend on which records are still there."""
        self._check_partition(partition)
        with self._reading() as con:
            (head,) = con.execute("SELECT next FROM head WHERE partition = ?", (partition,)).fetchone()
        return int(head)

    def close(self) -> None:
        """Close the file and give up ownership; closing twice is harmless."""
        with self._write_lock, self._read_lock:
            if self._closed:
                return
            self._closed = True
            self._reader.close()
            self._writer.close()
            os.close(self._ownership)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self._partitions:
            raise LogError(f"partition must be in [0, {self._partitions}), got {partition}")

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._write_lock, _as_log_error(self._path):
            self._check_open()
            with self._transaction():
                yield self._writer

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._read_lock, _as_log_error(self._path):
            self._check_open()
            yield self._reader

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"log {self._path} must be open, got a closed one")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        con = self._writer
        con.execute("BEGIN IMMEDIATE")
        try:
            yield
            con.execute("COMMIT")
        except BaseException:
            # Some I/O errors roll back by themselves.
            if con.in_transaction:
                con.execute("ROLLBACK")
            raise


def _own(path: Path) -> int:
    """Return a file descriptor whose lock makes this process the owner of the log at `path`."""
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LogError(f"log {path} must lie in a folder that can be written to: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise LogLockedError(
            f"log {path} must have one owner, but another process or thread has it open"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _connect(path: Path) -> sqlite3.Connection:
    # Transactions are written out by hand; each connection is used under a lock of its own.
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


@contextlib.contextmanager
def _as_log_error(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last: damaged text
        raise LogError(f"log {path}: {error}") from error
