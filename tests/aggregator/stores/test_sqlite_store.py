"""The SQLite store: the contract of every store, its tie to one log, files that contradict themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from counting_logs import MemoryStore, announcement, counted
from store_contract import HEALTH, HISTORY, VISITED, Opener, StoreContract, some

from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.errors import CorruptStoreError, ForeignStoreError
from hubbub_aggregator.stores.sqlite_store import SqliteStore


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def reopen(self) -> Opener:
        store = MemoryStore()
        return lambda: store


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Opener]:
        opened: list[SqliteStore] = []

        def reopen() -> SqliteStore:
            opened.append(SqliteStore(tmp_path / "store.sqlite", log_identity="log", partitions=2))
            return opened[-1]

        yield reopen
        for store in opened:
            store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds the contract's history in partition 0."""
    path = tmp_path / "store.sqlite"
    fill(path, HISTORY)
    return path


def fill(path: Path, history: list[list[bytes]]) -> None:
    store, state = SqliteStore(path, log_identity="log", partitions=2), PartitionState()
    for records in history:
        change = apply_many(state, enumerate(records, start=state.offset))
        store.save(0, change)
        state.commit(change)
    store.close()


def load(path: Path) -> PartitionState:
    store = SqliteStore(path, log_identity="log", partitions=2)
    try:
        return store.load(0)
    finally:
        store.close()


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute(statement).rowcount > 0
    db.close()


@pytest.mark.parametrize(("log", "partitions"), [("another", 2), ("log", 3)])
def test_store_of_another_log_or_layout_is_refused(path: Path, log: str, partitions: int) -> None:
    with pytest.raises(ForeignStoreError, match="must be the store of"):
        SqliteStore(path, log_identity=log, partitions=partitions)


def test_store_of_another_schema_version_is_refused(path: Path) -> None:
    execute(path, "UPDATE meta SET value = 2 WHERE key = 'schema'")
    with pytest.raises(ForeignStoreError):
        load(path)


def test_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_bytes(b"not a database, but long enough to be taken for one " * 20)
    with closing(sqlite3.connect(other)) as db, db:
        db.execute("CREATE TABLE cats (name)")
    db.close()
    for path in (text, other):
        with pytest.raises(ForeignStoreError):
            SqliteStore(path, log_identity="log", partitions=2)
    with closing(sqlite3.connect(other)) as db, db:
        assert db.execute("SELECT name FROM sqlite_schema").fetchall() == [("cats",)]
    db.close()


def test_partition_that_the_log_does_not_have_is_refused(path: Path) -> None:
    store = SqliteStore(path, log_identity="log", partitions=2)
    with pytest.raises(ForeignStoreError, match="partition"):
        store.load(2)
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM ids",
        "UPDATE ids SET keys = substr(keys, 9)",
        "UPDATE ids SET keys = substr(keys, 1, length(keys) - 3)",
        "INSERT INTO ids SELECT partition, digest, round, block + 100, keys FROM ids",
        "UPDATE tally SET accepted = accepted + 1, attempts = attempts + 1 WHERE after_seal = 0",
        "UPDATE tally SET duplicate = duplicate + 1",
        "UPDATE tally SET late = late + 1 WHERE after_seal = 1",
        "DELETE FROM tally",
        "DELETE FROM count",
        "UPDATE count SET counts = substr(counts, 9) || substr(counts, 1, 7)",
        "DELETE FROM round",
        "UPDATE round SET sealed_at = NULL",
        "UPDATE survey SET canonical = substr(canonical, 2)",
    ],
)
def test_store_that_contradicts_itself_is_refused(path: Path, damage: str) -> None:
    assert load(path).offset > 0
    execute(path, damage)
    with pytest.raises(CorruptStoreError):
        load(path)


def test_ids_are_deleted_when_their_round_seals(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    seal = encode_record(SealRecord(HEALTH.digest, 0))
    fill(path, [[announcement(HEALTH), some(HEALTH, 0, 50)], [some(HEALTH, 50, 50), seal]])
    with closing(sqlite3.connect(path)) as db, db:
        assert db.execute("SELECT count(*) FROM ids").fetchone() == (0,)
    db.close()
    assert load(path).rounds[HEALTH.digest, 0].verdicts.accepted == 100


def test_one_save_writes_the_new_ids_only(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    fill(path, [[announcement(HEALTH)], *([some(HEALTH, 1000 * k, 1000)] for k in range(20))])
    with closing(sqlite3.connect(path)) as db, db:
        sizes = [size for (size,) in db.execute("SELECT length(keys) FROM ids")]
    db.close()
    assert sizes == [8000] * 20


def test_failed_save_leaves_everything_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = load(path)
    store = SqliteStore(path, log_identity="log", partitions=2)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "_add_counts", full)
    change = apply_many(state, [(state.offset, some(VISITED, 900, 9))])
    with pytest.raises(sqlite3.OperationalError):
        store.save(0, change)
    store.close()
    loaded = load(path)
    assert (loaded.offset, counted(loaded)) == (state.offset, counted(state))


def test_counts_of_a_wide_channel_are_kept_by_chunks(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "wide.sqlite", log_identity="log", partitions=1)
    first, second = np.zeros(5000, dtype=np.int64), np.zeros(5000, dtype=np.int64)
    first[[3, 4999]], second[[3, 2048]] = (1, 2), (5, 7)
    for counts in (first, second):
        store._add_counts("count", (0, b"d" * 16, 0), counts)
    chunks = dict(store._db.execute("SELECT chunk, counts FROM count"))
    assert sorted(chunks) == [0, 2, 4]
    assert np.frombuffer(chunks[0], "<i8")[3] == 6
    assert np.frombuffer(chunks[4], "<i8")[4999 - 4096] == 2
    store.close()
