"""The ledger file: one writer, all or nothing, and no way to renew a budget."""

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub_client.errors import (
    BudgetFixedError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerTooNewError,
)
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.ledger.stored import StoredEnrolment
from hubbub_client.ledger.transcript import TranscriptEntry
from hubbub_client.upload.uploader import BackoffState, Pending

DIGEST, ID = b"d" * 16, b"i" * 16
RESERVE = [TranscriptEntry("reserve", 0, DIGEST, 0, 0), TranscriptEntry("reserve", 1, DIGEST, 1, 0)]
RECORD = TranscriptEntry("record", 0, DIGEST, 0, 0, 3, (5, 7))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def filled(path: Path) -> None:
    ledger = Ledger(path, budget=1.0)
    ledger.add_attribute("age", b"spec")
    ledger.add_enrolment(StoredEnrolment(DIGEST, b"canonical", -1, -1), RESERVE)
    ledger.add_answer(
        digest=DIGEST, round_number=0, report_id=ID, report=b"bytes", record=RECORD, pins=[("age", b"\x05")]
    )
    ledger.close()


def tamper(path: Path, *statements: str) -> None:
    """Writes to the file as another program would."""
    db = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_what_was_written_is_there_at_the_next_open(path: Path) -> None:
    filled(path)
    ledger = Ledger(path, budget=1.0)
    assert ledger.transcript() == [*RESERVE, RECORD]
    assert ledger.outbox(9) == [Pending(ID, b"bytes")]
    assert [(a.digest, a.round, a.id, a.outcome) for a in ledger.answers()] == [(DIGEST, 0, ID, None)]
    assert [e.high_water for e in ledger.enrolments()] == [0]
    assert [a.memoised for a in ledger.attributes()] == [b"\x05"]
    ledger.store_outcomes([(ID, "accepted")], BackoffState(0, 7.5))
    ledger.close()
    ledger = Ledger(path, budget=1.0)
    assert ledger.waiting() == 0
    assert [a.outcome for a in ledger.answers()] == ["accepted"]
    assert ledger.backoff() == BackoffState(0, 7.5)
    ledger.close()


def test_every_commit_is_forced_to_disk(path: Path) -> None:
    ledger = Ledger(path, budget=1.0)
    assert ledger._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    ledger.close()


def test_only_the_owner_may_read_it(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_budget_is_fixed_by_the_first_open(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    for other in (0.5, 1.0000001, 2.0):
        with pytest.raises(BudgetFixedError, match=r"fixed at 1\.0"):
            Ledger(path, budget=other)
    Ledger(path, budget=1.0).close()


@pytest.mark.parametrize("budget", [0.0, -1.0, float("nan"), float("inf"), 4096.1])
def test_a_budget_that_is_no_budget_is_refused(path: Path, budget: float) -> None:
    with pytest.raises(LedgerError, match="budget must be above 0 and at most 4096"):
        Ledger(path, budget=budget)
    assert not path.exists()


def test_a_second_open_in_this_process_is_locked_out(path: Path) -> None:
    ledger = Ledger(path, budget=1.0)
    with pytest.raises(LedgerLockedError):
        Ledger(path, budget=1.0)
    ledger.add_attribute("age", b"spec")
    ledger.close()
    Ledger(path, budget=1.0).close()


def test_a_second_process_is_locked_out_until_the_first_is_gone(path: Path) -> None:
    code = (
        "import sys\nfrom hubbub_client.errors import LedgerLockedError\n"
        "from hubbub_client.ledger.ledger import Ledger\n"
        "try: Ledger(sys.argv[1], budget=1.0)\nexcept LedgerLockedError: print('locked')\nelse: print('open')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def other() -> str:
        return subprocess.run(
            [sys.executable, "-c", code, path], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    ledger = Ledger(path, budget=1.0)
    assert other() == "locked"
    ledger.close()
    assert other() == "open"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_neither_uses_nor_destroys_the_ledger(path: Path, tmp_path: Path) -> None:
    ledger = Ledger(path, budget=1.0)
    ledger.add_attribute("age", b"spec")
    code = tmp_path / "forked.py"
    code.write_text(
        "import os, sys\nfrom hubbub_client.errors import LedgerLockedError\n"
        "from hubbub_client.ledger.ledger import Ledger\n"
        "ledger = Ledger(sys.argv[1], budget=1.0)\nledger.add_attribute('age', b'spec')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: ledger.add_attribute('height', b'spec')\n"
        "    except LedgerLockedError: ledger.close(); sys.exit(0)\n"  # a normal exit, all torn down
        "    sys.exit(3)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "ledger.add_attribute('weight', b'spec')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    other = tmp_path / "other.db"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, code, other], env=environment, check=False, capture_output=True)
    assert done.returncode == -9, done.stderr
    ledger.close()
    reopened = Ledger(other, budget=1.0)
    assert [a.id for a in reopened.attributes()] == ["age", "weight"]
    reopened.close()


@pytest.mark.parametrize("content", [b"not a database at all" * 400, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerCorruptError):
        Ledger(path, budget=1.0)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused(path: Path) -> None:
    tamper(path, "CREATE TABLE device (budget REAL)", "INSERT INTO device VALUES (1.0)")
    with pytest.raises(LedgerCorruptError, match="another database"):
        Ledger(path, budget=1.0)


def test_a_damaged_page_is_refused(path: Path) -> None:
    filled(path)
    data = bytearray(path.read_bytes())
    data[4096 : 4096 * 6] = b"\xa5" * (4096 * 5)
    path.write_bytes(data)
    with pytest.raises(LedgerCorruptError):
        Ledger(path, budget=1.0)


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5, 6])
def test_an_older_schema_is_refused_in_one_sentence_and_left_as_it_is(path: Path, version: int) -> None:
    """Without asking the tables for anything: of an old ledger none needs to be there."""
    filled(path)
    tamper(path, f"PRAGMA user_version = {version}", "DROP TABLE survey_list")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    for budget in (1.0, None):
        with pytest.raises(LedgerError) as refused:
            Ledger(path, budget=budget)
        assert str(refused.value) == f"ledger {path} must have schema 7, got {version}"
        assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_newer_schema_is_refused(path: Path) -> None:
    filled(path)
    tamper(path, "PRAGMA user_version = 8")
    with pytest.raises(LedgerTooNewError, match="got 8"):
        Ledger(path, budget=1.0)


@pytest.mark.parametrize(
    "damage",
    [
        (
            "DROP TRIGGER transcript_is_not_rewritten",
            "UPDATE transcript SET symbol = 4 WHERE kind = 1",
        ),
        (
            "DROP TRIGGER transcript_is_not_rewritten",
            "UPDATE transcript SET loss = 4 WHERE kind = 1",
        ),
        (
            "DROP TRIGGER transcript_is_not_rewritten",
            "UPDATE transcript SET loss = NULL, worst = NULL WHERE kind = 1",
        ),
        ("DROP TRIGGER transcript_is_not_cut", "DELETE FROM transcript WHERE kind = 1"),
        ("DROP TRIGGER transcript_is_not_cut", "DELETE FROM transcript"),
    ],
)
def test_a_changed_or_missing_transcript_row_is_noticed(path: Path, damage: tuple[str, ...]) -> None:
    filled(path)
    tamper(path, *damage)
    ledger = Ledger(path, budget=1.0)
    with pytest.raises(LedgerCorruptError, match="transcript"):
        ledger.transcript()
    ledger.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE device SET budget = 9.0",
        "DELETE FROM device",
        "UPDATE transcript SET symbol = 4 WHERE kind = 1",
        "DELETE FROM transcript",
        "UPDATE enrolment SET high_water = -1",
        "UPDATE outbox SET report = x'00'",
        "UPDATE attribute SET pinned = x'06'",
        "UPDATE attribute SET pinned = NULL",
        "UPDATE attribute SET generation = -1",
        "UPDATE attribute SET spec = x'00'",
        "DELETE FROM attribute",
        "UPDATE enrolment SET canonical = x'00'",
        "UPDATE answer SET round = 1",
        "UPDATE log_seen SET size = 8",
        "DELETE FROM log_seen",
        "INSERT INTO transcript (kind, ticket, enrolment, slot, generation, symbol) "
        "SELECT kind, 77, enrolment, slot, generation, symbol FROM transcript WHERE kind = 1",
        "INSERT INTO transcript (kind, ticket, enrolment, slot, generation, symbol, part_generations) "
        "SELECT 3, 77, enrolment, slot, generation, symbol, 0 FROM transcript WHERE kind = 1",
        "INSERT INTO answer SELECT enrolment, round, generation, randomblob(16), outcome FROM answer",
    ],
)
def test_the_file_itself_refuses_what_would_renew_a_budget(path: Path, statement: str) -> None:
    filled(path)
    with contextlib.closing(Ledger(path, budget=1.0)) as ledger:
        ledger.see_log(b"k" * 32, 9)
    db = sqlite3.connect(path, isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    db.close()


def test_the_file_lets_a_value_be_pinned_anew_only_as_a_new_generation(path: Path) -> None:
    filled(path)
    tamper(path, "UPDATE attribute SET pinned = NULL, generation = 1", "UPDATE attribute SET pinned = x'07'")
    ledger = Ledger(path, budget=1.0)
    assert [(a.pin_version, a.memoised) for a in ledger.attributes()] == [(1, b"\x07")]
    ledger.close()


def test_an_answer_that_would_pin_over_a_pinned_value_is_not_written(path: Path) -> None:
    filled(path)
    ledger = Ledger(path, budget=1.0)
    with pytest.raises(LedgerCorruptError, match="another one is pinned"):
        ledger.add_answer(
            digest=DIGEST,
            round_number=1,
            report_id=b"j" * 16,
            report=b"",
            record=None,
            pins=[("age", b"\x06")],
        )
    ledger = Ledger(path, budget=1.0)
    assert [a.round for a in ledger.answers()] == [0]
    ledger.close()


@pytest.mark.parametrize("cut", ["file", "log too"])
def test_a_ledger_truncated_to_nothing_does_not_open_with_a_new_budget(path: Path, cut: str) -> None:
    filled(path)
    path.write_bytes(b"")
    if cut == "log too":
        path.with_name("ledger.db-wal").write_bytes(b"")
    with pytest.raises(LedgerCorruptError, match="is empty"):
        Ledger(path, budget=1.0)
    assert path.read_bytes() == b""


def test_a_ledger_that_is_gone_beside_its_log_does_not_open_with_a_new_budget(path: Path) -> None:
    path.with_name("ledger.db-wal").write_bytes(b"frames of the ledger that was here")
    with pytest.raises(LedgerCorruptError, match="is gone"):
        Ledger(path, budget=1.0)
    assert not path.exists()


def test_a_database_without_tables_is_no_new_ledger(path: Path) -> None:
    tamper(path, "PRAGMA journal_mode = WAL")
    assert path.stat().st_size
    with pytest.raises(LedgerCorruptError, match="must be a Hubbub ledger"):
        Ledger(path, budget=1.0)


def test_what_was_written_is_in_the_main_file_alone(path: Path, tmp_path: Path) -> None:
    """A copy without the write-ahead log, taken while the ledger is open, holds every answer."""
    ledger = Ledger(path, budget=1.0)
    ledger.add_enrolment(StoredEnrolment(DIGEST, b"canonical", -1, -1), RESERVE)
    ledger.add_answer(digest=DIGEST, round_number=0, report_id=ID, report=b"bytes", record=RECORD, pins=[])
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    ledger.close()
    copied = Ledger(copy, budget=1.0)
    assert copied.transcript() == [*RESERVE, RECORD]
    assert copied.waiting() == 1
    copied.close()


def test_making_a_ledger_leaves_nothing_beside_it(path: Path) -> None:
    Ledger(path, budget=1.0).close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db.mark"]


@pytest.mark.parametrize("hard_links", ["yes", "no"])
def test_of_two_that_make_a_ledger_at_once_the_first_stands(
    path: Path, monkeypatch: pytest.MonkeyPatch, hard_links: str
) -> None:
    link = os.link

    def late(made: str, name: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        Ledger(path, budget=2.0).close()  # another process, just before this one would give its file its name
        if hard_links == "no":
            raise PermissionError(1, "no links here")
        link(made, name)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(BudgetFixedError, match=r"fixed at 2\.0"):
        Ledger(path, budget=1.0)


def test_a_ledger_is_made_where_there_are_no_hard_links(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    filled(path)
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.db.mark"]


def test_an_answer_that_fails_leaves_nothing_behind_and_closes_the_ledger(path: Path) -> None:
    filled(path)
    ledger = Ledger(path, budget=1.0)
    again = {"digest": DIGEST, "report": b"other", "record": None, "pins": []}
    with pytest.raises(LedgerError):  # the same report id twice
        ledger.add_answer(round_number=1, report_id=ID, **again)
    with pytest.raises(LedgerError, match="opened again"):
        ledger.answers()
    ledger = Ledger(path, budget=1.0)
    assert [a.round for a in ledger.answers()] == [0]
    assert [e.high_water for e in ledger.enrolments()] == [0]
    assert ledger.outbox(9) == [Pending(ID, b"bytes")]
    ledger.close()


def test_a_ledger_in_a_missing_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be made"):
        Ledger(tmp_path / "missing" / "ledger.db", budget=1.0)
