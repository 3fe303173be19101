"""A store in one SQLite file, at a cost that follows what is new.

Ids are appended as blocks of 8-byte keys and deleted when their round seals; counts lie in chunks of 1,024
bins, of which only those that grew are written.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import numpy as np

from hubbub.errors import HubbubError
from hubbub.survey import Survey
from hubbub_aggregator.counting.dedup import IdTable, KeySet
from hubbub_aggregator.counting.issuers import IssuerTally
from hubbub_aggregator.counting.lost_offsets import LostRange
from hubbub_aggregator.counting.partition import (
    Change,
    Counts,
    PartitionState,
    RoundChange,
    RoundKey,
    RoundState,
)
from hubbub_aggregator.counting.verdict_counts import NOTHING, VerdictCounts
from hubbub_aggregator.errors import CorruptStoreError, ForeignStoreError, StoreConflictError, StoreError
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate
from hubbub_aggregator.stores.disk import has_no_room
from hubbub_aggregator.stores.store import check

SCHEMA_VERSION: Final = 1
# 8 KB a chunk, two pages: a survey of 100,000 symbols then writes what a group of reports touched.
_CHUNK: Final = 1024
_COUNT: Final = np.dtype("<i8")
_KEY: Final = np.dtype("<u8")
_BUSY_TIMEOUT_S: Final = 5.0  # a reader's checkpoint may hold the file for a moment

# Stored names stay: tally holds verdict counts, step publication gates, outputs the number of bins.
_TALLIES: Final = "attempts, accepted, duplicate, early, late, invalid, over_quota"
_SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE partition (
    partition INTEGER PRIMARY KEY, offset INTEGER NOT NULL, unknown INTEGER NOT NULL, dead INTEGER NOT NULL
);
CREATE TABLE survey (
    partition INTEGER, digest BLOB, canonical BLOB NOT NULL, PRIMARY KEY (partition, digest)
);
CREATE TABLE round (
    partition INTEGER, digest BLOB, round INTEGER, outputs INTEGER NOT NULL, sealed_at INTEGER,
    PRIMARY KEY (partition, digest, round)
);
CREATE TABLE tally (
    partition INTEGER, digest BLOB, round INTEGER, after_seal INTEGER,
    attempts INTEGER NOT NULL, accepted INTEGER NOT NULL, duplicate INTEGER NOT NULL, early INTEGER NOT NULL,
    late INTEGER NOT NULL, invalid INTEGER NOT NULL, over_quota INTEGER NOT NULL,
    PRIMARY KEY (partition, digest, round, after_seal)
);
CREATE TABLE count (
    partition INTEGER, digest BLOB, round INTEGER, chunk INTEGER, counts BLOB NOT NULL,
    PRIMARY KEY (partition, digest, round, chunk)
);
CREATE TABLE ids (
    partition INTEGER, digest BLOB, round INTEGER, block INTEGER, keys BLOB NOT NULL,
    PRIMARY KEY (partition, digest, round, block)
);
CREATE TABLE step (
    digest BLOB, round INTEGER, stage TEXT, n INTEGER NOT NULL, cut TEXT NOT NULL, counts BLOB NOT NULL,
    PRIMARY KEY (digest, round, stage)
);
"""
# Added later, to stores that are there too.
_LOST: Final = """
CREATE TABLE IF NOT EXISTS lost (
    partition INTEGER, first INTEGER NOT NULL, end INTEGER NOT NULL, adopted_s INTEGER NOT NULL,
    PRIMARY KEY (partition, first)
)
"""
_ISSUERS: Final = """
CREATE TABLE IF NOT EXISTS issuer (
    partition INTEGER, digest BLOB, round INTEGER, name TEXT, place INTEGER NOT NULL,
    accepted INTEGER NOT NULL, duplicate INTEGER NOT NULL, over_quota INTEGER NOT NULL,
    PRIMARY KEY (partition, digest, round, name)
)
"""
_ISSUER_COUNTS: Final = """
CREATE TABLE IF NOT EXISTS issuer_count (
    partition INTEGER, digest BLOB, round INTEGER, name TEXT, chunk INTEGER, counts BLOB NOT NULL,
    PRIMARY KEY (partition, digest, round, name, chunk)
)
"""


class SqliteStore:
    """A store of one log's counts in one file; one thread at a time.

    Args:
        path: The file; it is made where there is none.
        log_identity: The log that the counts are of.
        partitions: How many partitions that log has.
        id_table: Makes the sets of ids of the states that are loaded.

    Raises:
        ForeignStoreError: If the file was made for another log, another number of partitions, another schema
            version, or is no store at all.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        log_identity: str,
        partitions: int,
        id_table: Callable[[], KeySet] = IdTable,
    ) -> None:
        self._path, self._partitions, self._id_table = str(path), partitions, id_table
        self._db = sqlite3.connect(
            self._path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            self._open({"schema": SCHEMA_VERSION, "log": log_identity, "partitions": partitions})
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the last: of a damaged schema
            self._db.close()
            raise ForeignStoreError(f"{self._path} must be a store of counts: {error}") from error
        except BaseException:
            self._db.close()
            raise

    def _open(self, identity: Mapping[str, object]) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        # An answer that was shown or released must not be forgotten by a power cut.
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_schema")}
            if not tables:
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.executemany("INSERT INTO meta VALUES (?, ?)", identity.items())
            found = dict(self._db.execute("SELECT key, value FROM meta")) if "meta" in tables else None
        if tables and found != identity:
            raise ForeignStoreError(f"{self._path} must be the store of {identity}, got {found}")
        for added in (_LOST, _ISSUERS, _ISSUER_COUNTS):
            self._db.execute(added)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all or nothing.

        Raises:
            StoreError: If the disk has no room, or failed; nothing was written.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")  # on a full disk SQLite may have done so by itself
            if has_no_room(error):
                raise StoreError(f"store {self._path}: {error}") from error
            raise

    def load(self, partition: int) -> PartitionState:
        """Return the state that was saved last, its id tables built anew.

        Raises:
            CorruptStoreError: If ids loaded, accepted reports and counts differ in any round, or rows
                contradict.
        """
        self._check_partition(partition)
        state = PartitionState(id_set=self._id_table)
        try:
            with self._transaction():
                heads = self._rows("SELECT offset, unknown, dead FROM partition", partition)
                for offset, unknown, dead in heads:
                    state.offset, state.unknown, state.dead = offset, unknown, dead
                for digest, canonical in self._rows("SELECT digest, canonical FROM survey", partition):
                    state.surveys[digest] = Survey.from_canonical(canonical)
                ranges = self._rows("SELECT first, end, adopted_s FROM lost", partition)
                state.lost = tuple(LostRange(*row) for row in ranges)
                self._load_rounds(partition, state)
        except (HubbubError, KeyError, ValueError, TypeError, sqlite3.DatabaseError) as error:
            raise CorruptStoreError(f"{self._path}, partition {partition}: {error!r}") from error
        return check(partition, state)

    def _rows(self, select: str, partition: int) -> sqlite3.Cursor:
        return self._db.execute(f"{select} WHERE partition = ?", (partition,))

    def _load_rounds(self, partition: int, state: PartitionState) -> None:
        for digest, number, outputs, sealed_at in self._rows(
            "SELECT digest, round, outputs, sealed_at FROM round", partition
        ):
            counts = np.zeros(outputs, dtype=np.int64)
            state.rounds[digest, number] = RoundState(counts=counts, sealed_at=sealed_at)
        tallies = f"SELECT digest, round, after_seal, {_TALLIES} FROM tally"  # noqa: S608 - a constant
        for digest, number, after_seal, *tally in self._rows(tallies, partition):
            known = state.rounds[digest, number]
            if after_seal:
                known.after_seal = VerdictCounts(*tally)
            else:
                known.verdicts = VerdictCounts(*tally)
        chunks = "SELECT digest, round, chunk, counts FROM count"
        for digest, number, chunk, blob in self._rows(chunks, partition):
            part = np.frombuffer(blob, dtype=_COUNT)
            state.rounds[digest, number].counts[chunk * _CHUNK : chunk * _CHUNK + len(part)] = part
        issuers = "SELECT digest, round, name, accepted, duplicate, over_quota FROM issuer"
        for digest, number, name, *numbers in self._db.execute(
            f"{issuers} WHERE partition = ? ORDER BY place", (partition,)
        ):
            known = state.rounds[digest, number]
            known.issuers[name] = IssuerTally(np.zeros(len(known.counts), dtype=np.int64), *numbers)
        chunks = "SELECT digest, round, name, chunk, counts FROM issuer_count"
        for digest, number, name, chunk, blob in self._rows(chunks, partition):
            part = np.frombuffer(blob, dtype=_COUNT)
            counts = state.rounds[digest, number].issuers[name].counts
            counts[chunk * _CHUNK : chunk * _CHUNK + len(part)] = part
        for key, known in state.rounds.items():
            blocks = self._db.execute(
                "SELECT keys FROM ids WHERE partition = ? AND digest = ? AND round = ?", (partition, *key)
            ).fetchall()
            if blocks:
                keys = np.frombuffer(b"".join(block for (block,) in blocks), dtype=_KEY).astype(np.uint64)
                known.seen = table = self._id_table()
                fresh = table.fresh_keys(keys)
                if fresh.mask is not None or not keys.all():
                    raise ValueError("ids of one round must all differ")
                table.add(fresh)

    def save(self, partition: int, change: Change) -> None:
        """Make a change durable, all of it or nothing.

        Raises:
            StoreConflictError: If the stored offset is not `change.previous`: another writer was here.
        """
        self._check_partition(partition)
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO partition VALUES (?, 0, 0, 0)", (partition,))
            moved = self._db.execute(
                "UPDATE partition SET offset = ?, unknown = unknown + ?, dead = dead + ? "
                "WHERE partition = ? AND offset = ?",
                (change.offset, change.unknown, change.dead, partition, change.previous),
            ).rowcount
            if moved != 1:
                stored = self._rows("SELECT offset FROM partition", partition).fetchone()[0]
                raise StoreConflictError(
                    f"partition {partition}: offset must be {change.previous}, got {stored}"
                )
            for digest, survey in change.surveys.items():
                self._db.execute("INSERT INTO survey VALUES (?, ?, ?)", (partition, digest, survey.canonical))
            for lost in change.lost:
                row = (partition, lost.first, lost.end, lost.skipped_s)
                self._db.execute("INSERT INTO lost VALUES (?, ?, ?, ?)", row)
            for (digest, number), new in change.rounds.items():
                self._save_round((partition, digest, number), new, change.offset)

    def _save_round(self, key: tuple[int, bytes, int], new: RoundChange, offset: int) -> None:
        self._db.execute(
            "INSERT INTO round VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "outputs = max(outputs, excluded.outputs), sealed_at = coalesce(sealed_at, excluded.sealed_at)",
            (*key, len(new.counts), new.sealed_at),
        )
        for after_seal, tally in enumerate((new.verdicts, new.after_seal)):
            if tally != NOTHING:
                self._db.execute(
                    "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                    "attempts = attempts + excluded.attempts, accepted = accepted + excluded.accepted, "
                    "duplicate = duplicate + excluded.duplicate, early = early + excluded.early, "
                    "late = late + excluded.late, invalid = invalid + excluded.invalid, "
                    "over_quota = over_quota + excluded.over_quota",
                    (*key, after_seal, *tally),
                )
        self._add_counts("count", key, new.counts)
        for name, vouched in new.issuers.items():
            place = new.issuer_names.index(name)
            self._db.execute(
                "INSERT INTO issuer VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "accepted = accepted + excluded.accepted, duplicate = duplicate + excluded.duplicate, "
                "over_quota = over_quota + excluded.over_quota",
                (*key, name, place, *vouched.numbers),
            )
            self._add_counts("issuer_count", (*key, name), vouched.counts)
        if len(new.keys):
            block = new.keys.astype(_KEY, copy=False).tobytes()
            self._db.execute("INSERT INTO ids VALUES (?, ?, ?, ?, ?)", (*key, offset, block))
        if new.sealed_at is not None:
            self._db.execute("DELETE FROM ids WHERE partition = ? AND digest = ? AND round = ?", key)

    def _add_counts(self, table: str, key: tuple[object, ...], new: Counts) -> None:
        """Add counts to the chunks of theirs that they touch."""
        named = " AND name = ?" if table == "issuer_count" else ""
        select = f"SELECT counts FROM {table} WHERE partition = ? AND digest = ? AND round = ?{named}"  # noqa: S608
        insert = f"INSERT OR REPLACE INTO {table} VALUES ({'?, ' * len(key)}?, ?)"  # noqa: S608 - constants
        for chunk in np.unique(np.flatnonzero(new) // _CHUNK).tolist():
            part = new[chunk * _CHUNK : (chunk + 1) * _CHUNK]
            stored = self._db.execute(f"{select} AND chunk = ?", (*key, chunk)).fetchone()
            total = part if stored is None else part + np.frombuffer(stored[0], dtype=_COUNT)
            self._db.execute(insert, (*key, chunk, total.astype(_COUNT).tobytes()))

    def verify(self) -> None:
        """Do nothing: a file loses no rows."""

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        """Return the publication gates of all open rounds."""
        tallies: dict[RoundKey, dict[str, AcceptedCounts]] = {}
        for digest, number, stage, n, cut, blob in self._db.execute(
            "SELECT digest, round, stage, n, cut, counts FROM step"
        ):
            offsets = {int(partition): offset for partition, offset in json.loads(cut).items()}
            counts = np.frombuffer(blob, dtype=_COUNT).astype(np.int64)
            tallies.setdefault((digest, number), {})[stage] = AcceptedCounts(offsets, counts, n)
        return {
            key: PublicationGate(stages.get("shown"), stages["candidate"]) for key, stages in tallies.items()
        }

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Keep the gates of some rounds before anybody sees what they let through; None forgets a round's."""
        if not changed:
            return
        with self._transaction():
            for key, steps in changed.items():
                self._db.execute("DELETE FROM step WHERE digest = ? AND round = ?", key)
                stages = {"shown": steps.published, "candidate": steps.pending} if steps is not None else {}
                for stage, tally in stages.items():
                    if tally is not None:
                        counts = tally.counts.astype(_COUNT).tobytes()
                        cut = json.dumps(dict(tally.cut))
                        self._db.execute(
                            "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?)", (*key, stage, tally.n, cut, counts)
                        )

    def surveys(self) -> list[bytes]:
        """Return the canonical bytes of every survey that is known here."""
        return [canonical for (canonical,) in self._db.execute("SELECT DISTINCT canonical FROM survey")]

    def rounds_of(self, digest: bytes) -> int:
        """Return how many rounds of a survey have counts here."""
        select = "SELECT count(DISTINCT round) FROM round WHERE digest = ?"
        return int(self._db.execute(select, (digest,)).fetchone()[0])

    def erase(self, digest: bytes) -> None:
        """Delete everything of a survey for good, and write the file anew: no free page keeps any of it."""
        with self._transaction():
            for table in ("survey", "round", "tally", "count", "issuer", "issuer_count", "ids", "step"):
                self._db.execute(f"DELETE FROM {table} WHERE digest = ?", (digest,))  # noqa: S608 - constants
        self._db.execute("VACUUM")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _check_partition(self, partition: int) -> None:
        if not 0 <= partition < self._partitions:
            raise ForeignStoreError(f"partition must be in [0, {self._partitions}), got {partition}")
