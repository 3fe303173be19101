"""SqliteLog: the log contract, and what is its own: one owner, durability settings, schema checks."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from log_contract import LogContract, Opener

from hubbub_topic import sqlite
from hubbub_topic.errors import LogError, LogLockedError, LogVersionError
from hubbub_topic.sqlite import SqliteLog


class TestSqliteLogKeepsTheContract(LogContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda name, partitions: SqliteLog(tmp_path / f"{name}.sqlite", partitions)


def test_a_second_owner_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with SqliteLog(path), pytest.raises(LogLockedError, match="one owner"):
        SqliteLog(path)
    SqliteLog(path).close()


def test_a_link_to_the_log_does_not_get_around_its_owner(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "log.sqlite")
    with SqliteLog(tmp_path / "log.sqlite"), pytest.raises(LogLockedError):
        SqliteLog(tmp_path / "link")


_OWNER = """
import sys
from hubbub_topic.sqlite import SqliteLog
log = SqliteLog(sys.argv[1], 2)
i = 0
while True:
    log.append({0: [b"%d" % i, b"x" * 5000], 1: [b"%d" % i]})
    print(i, flush=True)
    i += 1
"""


@pytest.mark.integration
def test_kill_nine_loses_no_acknowledged_append_and_no_lock_stays_behind(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(path)], stdout=subprocess.PIPE, text=True
        ) as owner:
            assert owner.stdout is not None
            lines = [owner.stdout.readline() for _ in range(20)]
            with pytest.raises(LogLockedError):
                SqliteLog(path, 2)
            owner.kill()
            lines += owner.stdout.read().splitlines()
        assert owner.returncode == -signal.SIGKILL
        acknowledged = int(lines[-1])
        with SqliteLog(path, 2) as log:
            ends = log.end(0), log.end(1)
            assert ends[0] == 2 * ends[1]
            numbers = [int(body) for _, body in log.read(1, 0, 100_000)]
        runs = [numbers[i:] for i in range(len(numbers)) if numbers[i] == 0]
        assert runs[-1] == list(range(len(runs[-1])))
        # At most the one append that was under way when the signal came.
        assert runs[-1][-1] in (acknowledged, acknowledged + 1)


def test_every_commit_is_synced(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.sqlite") as log:
        assert log._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert log._writer.execute("PRAGMA synchronous").fetchone() == (2,)


def test_the_head_does_not_depend_on_the_records_that_are_left(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with SqliteLog(path, 1) as log:
        log.append({0: [b"a", b"b", b"c"]})
    with closing(sqlite3.connect(path)) as con, con:
        con.execute("DELETE FROM record WHERE position < 2")
    with SqliteLog(path, 1) as log:
        assert (log.begin(0), log.end(0)) == (2, 3)
        assert log.append({0: [b"d"]}) == {0: 3}
        assert log.read(0, 0, 10) == [(2, b"c"), (3, b"d")]
    with closing(sqlite3.connect(path)) as con, con:
        con.execute("DELETE FROM record")
    with SqliteLog(path, 1) as log:
        assert (log.begin(0), log.end(0)) == (4, 4)


def test_a_read_is_bounded_in_bytes_and_always_moves_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_READ_BYTES", 100)
    with SqliteLog(tmp_path / "log.sqlite", 1) as log:
        log.append({0: [b"x" * 60, b"y" * 60, b"z" * 600]})
        assert [offset for offset, _ in log.read(0, 0, 10)] == [0, 1]
        assert [offset for offset, _ in log.read(0, 2, 10)] == [2]


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    SqliteLog(tmp_path / "log.sqlite", 4).close()
    with pytest.raises(LogError, match=r"4 partitions.*got 8"):
        SqliteLog(tmp_path / "log.sqlite", 8)
    SqliteLog(tmp_path / "log.sqlite", 4).close()


@pytest.mark.parametrize("partitions", [0, -1, 1025, True])
def test_a_senseless_number_of_partitions_is_refused(tmp_path: Path, partitions: int) -> None:
    with pytest.raises(LogError, match="partitions"):
        SqliteLog(tmp_path / "log.sqlite", partitions)


@pytest.mark.parametrize("schema", [1, 3])
def test_another_schema_is_refused_in_one_sentence_and_left_alone(tmp_path: Path, schema: int) -> None:
    path = tmp_path / "log.sqlite"
    SqliteLog(path).close()
    with closing(sqlite3.connect(path)) as con, con:
        con.execute(f"PRAGMA user_version = {schema}")
    before = path.read_bytes()
    with pytest.raises(LogVersionError, match=rf"^log \S+ must have schema 2, got {schema}$"):
        SqliteLog(path)
    assert path.read_bytes() == before


def test_a_record_without_a_checksum_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with SqliteLog(path, 1) as log:
        log.append({0: [b"a", b"b"]})
    with closing(sqlite3.connect(path)) as con, con:
        con.execute("UPDATE record SET checksum = NULL WHERE position = 1")
        con.execute("UPDATE head SET checked = next")
    with SqliteLog(path, 1) as log:
        assert log.read(0, 0, 1) == [(0, b"a")]
        with pytest.raises(LogError, match=r"partition 0: record 1 must have its checksum"):
            log.read(0, 1, 1)


def test_what_is_not_a_log_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as con, con:
        con.execute("CREATE TABLE mine (x)")
    before = other.read_bytes()
    with pytest.raises(LogError, match="Hubbub log"):
        SqliteLog(other)
    assert other.read_bytes() == before
    text = tmp_path / "text"
    text.write_text("not a database at all, but long enough to be looked at as one" * 20)
    with pytest.raises(LogError, match="not a database"):
        SqliteLog(text)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="folder"):
        SqliteLog(tmp_path / "nowhere" / "log.sqlite")


def test_a_closed_log_refuses_every_call(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.sqlite")
    log.close()
    log.close()
    for call in (lambda: log.append({0: [b"a"]}), lambda: log.read(0, 0, 1), lambda: log.end(0)):
        with pytest.raises(LogError, match="closed"):
            call()


def test_a_full_disk_refuses_the_append_and_keeps_what_was_there(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.sqlite", 2) as log:
        log.append({0: [b"a"]})
        (pages,) = log._writer.execute("PRAGMA page_count").fetchone()
        log._writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(LogError, match="full"):
            log.append({0: [b"b"], 1: [b"x" * 100_000]})
        assert log.end(0) == 1
        assert log.append({0: [b"c"]}) == {0: 1}
        assert log.read(0, 0, 10) == [(0, b"a"), (1, b"c")]


def test_no_flipped_bit_changes_what_a_log_gives(tmp_path: Path) -> None:
    """Bits of the page of records and of every other page, one at a time: the same records, or an error."""
    path, flipped = tmp_path / "log.sqlite", tmp_path / "flipped.sqlite"
    bodies = [bytes([i]) * (40 + i) for i in range(30)]
    with SqliteLog(path, 2) as log:
        log.append({0: bodies[:20], 1: bodies[20:]})
        size, identity = log._writer.execute("PRAGMA page_size").fetchone()[0], log.identity
        page, page_of_name = (
            log._writer.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0]
            for name in ("record", "log")
        )
    data, found = path.read_bytes(), {"same": 0, "refused": 0}
    records = range((page - 1) * size * 8, page * size * 8, 29)
    others = range(0, len(data) * 8, 499)
    for bit in [*records, *others]:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        flipped.write_bytes(changed)
        try:
            with SqliteLog(flipped, None) as log:
                named = log.identity == identity
                read = [(p, *row) for p in range(log.partitions) for row in log.read(p, 0, 100)]
                ends = [log.end(p) for p in range(log.partitions)]
        except LogError:
            found["refused"] += 1
        else:
            assert [body for *_, body in read] == bodies, bit
            assert ends == [20, 10]
            # A store refuses a log of another name.
            assert named or bit // 8 // size == page_of_name - 1
            found["same"] += 1
        for suffix in ("-wal", "-shm"):
            Path(f"{flipped}{suffix}").unlink(missing_ok=True)
    assert min(found.values()) > 30
