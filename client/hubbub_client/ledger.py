"""The device's privacy ledger: one SQLite file that says what was spent, answered, and waits to be sent.

Every change is one transaction, on disk before the call returns (write-ahead log, synchronous=FULL, emptied
into the file at once): after a kill at any point the file holds all of it or nothing. One process at a time
has it open. Triggers keep the rules that must survive a bug elsewhere: the budget is fixed, the transcript
only grows, a high-water mark never falls, a pinned value stays.

This module moves data; what to reserve, answer or send is decided in `schedule`, `agent` and `uploader`.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from hubbub.accounting import MAX_BUDGET
from hubbub.wire import Outcome
from hubbub_client.errors import BudgetFixed, LedgerCorrupt, LedgerError, LedgerLocked, LedgerTooNew
from hubbub_client.ledger_file import prepare, refusal
from hubbub_client.ledger_schema import APPLICATION_ID, SCHEMA_VERSION
from hubbub_client.transcript import GENESIS, Kind, Row, link
from hubbub_client.uploader import Pace, Pending


@dataclass(frozen=True, slots=True)
class StoredAttribute:
    """An attribute as it stands in the ledger.

    Attributes:
        id: Its id.
        spec: Kind and domain, encoded.
        generation: How many values were pinned before this one.
        pinned: The pinned value, encoded; None while nothing is pinned.
    """

    id: str
    spec: bytes
    generation: int
    pinned: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredEnrolment:
    """A survey that the device takes part in.

    Attributes:
        digest: Its digest, 16 bytes.
        canonical: Its canonical bytes.
        high_water: The highest round answered, or gone by at enrolment.
    """

    digest: bytes
    canonical: bytes
    high_water: int


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer that was made.

    Attributes:
        digest: Survey.
        round: Round.
        id: Report id, 16 bytes.
        outcome: What the collector said; None while it waits in the outbox.
    """

    digest: bytes
    round: int
    id: bytes
    outcome: Outcome | None


class Ledger:
    """One open ledger file.

    Args:
        path: The file; made, readable by its owner alone, if it does not exist.
        budget: The lifetime epsilon of everything that this installation will ever say about its owner. Fixed
            by the first open.

    Raises:
        LedgerError: The budget is not one, or the file cannot be made or read.
        LedgerLocked: It is open elsewhere.
        LedgerCorrupt: It is not a ledger, or it is damaged, emptied, or gone from beside its log.
        LedgerTooNew: A later version wrote it.
        BudgetFixed: It was first opened with another budget.
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: float) -> None:
        if not 0 < budget <= MAX_BUDGET:  # before a file states for good what no filter accepts
            raise LedgerError(f"budget must be above 0 and at most {MAX_BUDGET:g}, got {budget!r}")
        self.path = Path(path)
        self._process = os.getpid()
        self._broken = False
        _OPEN.add(self)
        prepare(self.path, budget=budget)
        try:
            # Opened, never made: should the file vanish now, an empty one must not take its place.
            self._db = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=0,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise refusal(self.path, error) from None
        try:
            self._open(budget)
        except sqlite3.Error as error:
            self._db.close()
            raise refusal(self.path, error) from None
        except BaseException:
            self._db.close()
            raise

    def _open(self, budget: float) -> None:
        db = self._db
        # Exclusive from the first read on: the lock is the kernel's, so a killed process leaves none behind.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("COMMIT")
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        mark = int(db.execute("PRAGMA application_id").fetchone()[0])
        if mark != APPLICATION_ID:
            raise LedgerCorrupt(f"ledger {self.path} must be a Hubbub ledger, found another database")
        if version > SCHEMA_VERSION:
            raise LedgerTooNew(
                f"ledger {self.path} must have schema {SCHEMA_VERSION} or older, got {version}"
            )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # on Apple's systems a plain fsync stops at the drive's cache
        db.execute("PRAGMA checkpoint_fullfsync = ON")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise LedgerCorrupt(f"ledger {self.path} is damaged: {verdict}")
        row = db.execute("SELECT budget, chain FROM device").fetchone()
        if row is None:
            raise LedgerCorrupt(f"ledger {self.path} is damaged: it states no budget")
        if row[0] != budget:
            raise BudgetFixed(
                f"budget of {self.path} was fixed at {row[0]!r} by its first open, got {budget!r}"
            )
        self._chain = bytes(row[1])

    def close(self) -> None:
        """Closes the file and gives up the lock; a second call does nothing."""
        if self._process == os.getpid():
            self._db.close()
        self._broken = True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction; after an error of the database the ledger must be opened again.

        A failed commit may or may not be on disk. Reopening reads what is, instead of guessing.
        """
        self._check()
        db = self._db
        try:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
            # Into the main file at once: who copies that alone, or sweeps the log away after a crash, must
            # not be left with a ledger that forgot what was sent.
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except BaseException as error:
            self._broken = True
            db.close()  # rolls back
            if isinstance(error, sqlite3.Error):
                raise refusal(self.path, error) from None
            raise

    def _check(self) -> None:
        if self._process != os.getpid():
            raise LedgerLocked(f"ledger {self.path} belongs to the process that opened it, not to its fork")
        if self._broken:
            raise LedgerError(f"ledger {self.path} is closed, or failed and must be opened again")

    def _read(self, query: str, arguments: Sequence[object] = ()) -> list[tuple[object, ...]]:
        self._check()
        try:
            return self._db.execute(query, tuple(arguments)).fetchall()
        except sqlite3.Error as error:
            raise refusal(self.path, error) from None

    def attributes(self) -> list[StoredAttribute]:
        """Every attribute that was ever registered."""
        rows = self._read("SELECT id, spec, generation, pinned FROM attribute ORDER BY id")
        return [StoredAttribute(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def enrolments(self) -> list[StoredEnrolment]:
        """Every survey that the device takes part in, in the order of enrolment."""
        rows = self._read("SELECT digest, canonical, high_water FROM enrolment ORDER BY seq")
        return [StoredEnrolment(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def transcript(self) -> list[Row]:
        """The filter's steps, oldest first.

        Raises:
            LedgerCorrupt: If a row was changed or is missing.
        """
        found: list[Row] = []
        chain = GENESIS
        for row in self._read(
            "SELECT kind, ticket, digest, slot, generation, symbol FROM transcript ORDER BY seq"
        ):
            found.append(Row(cast(Kind, row[0]), *row[1:]))  # type: ignore[arg-type]  # STRICT columns
            chain = link(chain, found[-1])
        if chain != self._chain:
            raise LedgerCorrupt(f"ledger {self.path} is damaged: its transcript is not what was written")
        return found

    def answers(self) -> list[StoredAnswer]:
        """Every answer ever made, by survey and round."""
        rows = self._read("SELECT digest, round, id, outcome FROM answer ORDER BY digest, round")
        return [StoredAnswer(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def waiting(self) -> int:
        """How many reports wait in the outbox."""
        return cast(int, self._read("SELECT count(*) FROM outbox")[0][0])

    def outbox(self, limit: int) -> list[Pending]:
        """The oldest reports that wait, at most `limit`."""
        rows = self._read("SELECT id, report FROM outbox ORDER BY seq LIMIT ?", (limit,))
        return [Pending(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def pace(self) -> Pace:
        """Where the back-off stands."""
        failures, not_before_s, single = self._read("SELECT failures, not_before_s, single FROM device")[0]
        return Pace(cast(int, failures), cast(float, not_before_s), bool(single))

    def add_attribute(self, attribute_id: str, spec: bytes) -> None:
        """Registers an attribute."""
        with self._transaction() as db:
            db.execute("INSERT INTO attribute (id, spec) VALUES (?, ?)", (attribute_id, spec))

    def add_enrolment(self, enrolment: StoredEnrolment, reservations: Iterable[Row]) -> None:
        """Writes an enrolment with its whole reserved schedule."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO enrolment (digest, canonical, high_water) VALUES (?, ?, ?)",
                (enrolment.digest, enrolment.canonical, enrolment.high_water),
            )
            chain = self._append(db, reservations)
        self._chain = chain

    def add_answer(
        self,
        *,
        digest: bytes,
        round_number: int,
        report_id: bytes,
        report: bytes,
        record: Row | None,
        pin: tuple[str, bytes] | None,
    ) -> None:
        """Writes one answer or nothing: pin, consumed reservation and memo, high-water mark, outbox.

        Args:
            digest: Survey.
            round_number: Round.
            report_id: 16 random bytes.
            report: The finished report, sent as it is at every attempt.
            record: The transcript row that consumes the reservation; None when a memoised symbol is sent
                again.
            pin: Attribute id and encoded value to pin, if this is its first use.
        """
        with self._transaction() as db:
            if pin is not None:
                pinned = db.execute(
                    "UPDATE attribute SET pinned = ? WHERE id = ? AND pinned IS NULL", (pin[1], pin[0])
                )
                if pinned.rowcount != 1:
                    raise LedgerCorrupt("an answer must read the pinned value, and another one is pinned")
            chain = self._append(db, () if record is None else (record,))
            db.execute(
                "INSERT INTO answer (digest, round, id) VALUES (?, ?, ?)", (digest, round_number, report_id)
            )
            db.execute("UPDATE enrolment SET high_water = ? WHERE digest = ?", (round_number, digest))
            db.execute("INSERT INTO outbox (id, report) VALUES (?, ?)", (report_id, report))
        self._chain = chain

    def _append(self, db: sqlite3.Connection, rows: Iterable[Row]) -> bytes:
        chain = self._chain
        for row in rows:
            chain = link(chain, row)
            db.execute(
                "INSERT INTO transcript (kind, ticket, digest, slot, generation, symbol) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (row.kind, row.ticket, row.digest, row.slot, row.generation, row.symbol),
            )
        if chain != self._chain:
            db.execute("UPDATE device SET chain = ?", (chain,))
        return chain

    def settle(self, outcomes: Iterable[tuple[bytes, Outcome]], pace: Pace) -> None:
        """Takes answered reports out of the outbox and keeps their outcomes."""
        with self._transaction() as db:
            for report_id, outcome in outcomes:
                db.execute("DELETE FROM outbox WHERE id = ?", (report_id,))
                db.execute("UPDATE answer SET outcome = ? WHERE id = ?", (outcome, report_id))
            self._set_pace(db, pace)

    def slow(self, pace: Pace) -> None:
        """Keeps a back-off, so that a restart does not forget it."""
        with self._transaction() as db:
            self._set_pace(db, pace)

    def _set_pace(self, db: sqlite3.Connection, pace: Pace) -> None:
        db.execute(
            "UPDATE device SET failures = ?, not_before_s = ?, single = ?",
            (pace.failures, pace.not_before_s, int(pace.single)),
        )


_OPEN: Final[weakref.WeakSet[Ledger]] = weakref.WeakSet()


def _abandon() -> None:
    """Keeps a forked child from ever closing the connections it inherited.

    SQLite believes that the child holds the parent's lock: closing would delete the write-ahead log, and with
    it answers that the parent has already sent. So the child keeps one reference too many, for good.
    """
    for ledger in list(_OPEN):
        connection = getattr(ledger, "_db", None)
        if connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # absent where there is no fork
    os.register_at_fork(after_in_child=_abandon)
