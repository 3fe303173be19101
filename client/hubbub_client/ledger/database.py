"""The ledger's database: one process opens and checks it, and changes it in whole transactions.

A change is on disk before its call returns (write-ahead log, synchronous=FULL, emptied into the file at
once): after a kill at any point the file holds all of it or nothing.
"""

from __future__ import annotations

import ctypes
import hmac
import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from hubbub.filter import MAX_BUDGET
from hubbub_client.errors import (
    BudgetFixedError,
    LedgerCorruptError,
    LedgerError,
    LedgerForeignError,
    LedgerLockedError,
    LedgerTooNewError,
)
from hubbub_client.ledger.file import (
    Counter,
    advance_counter,
    check_mark,
    key_check,
    prepare,
    read_counter,
    refusal,
)
from hubbub_client.ledger.schema import APPLICATION_ID, SCHEMA_VERSION


class Database:
    """One open ledger file.

    Args:
        path: The file; made, readable by its owner alone, if it does not exist.
        budget: The lifetime epsilon of everything that this installation will ever say about its owner. Fixed
            by the first open; None to open what exists as it was fixed.
        device_key: A secret of this device that no backup carries, at least 16 bytes. The first open with one
            binds the ledger to it for good.
        counter: A number of this device that nothing takes back. The first open with one binds the ledger to
            it for good.

    Raises:
        LedgerError: The budget is not one, the file cannot be made or read, or it has an older schema.
        LedgerLockedError: It is open elsewhere.
        LedgerCorruptError: It is not a ledger, or it is damaged, emptied, or gone from beside its log.
        LedgerMissingError: There was one here, its mark says, and it is gone.
        LedgerForeignError: It is bound to another device, is not the one that was made here, or is an older
            copy.
        LedgerTooNewError: A later version wrote it.
        BudgetFixedError: It was first opened with another budget.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        budget: float | None,
        device_key: bytes | None = None,
        counter: Counter | None = None,
    ) -> None:
        if budget is not None and not 0 < budget <= MAX_BUDGET:
            # before a file states for good what no filter accepts
            raise LedgerError(f"budget must be above 0 and at most {MAX_BUDGET:g}, got {budget!r}")
        self.path = Path(path)
        self._process = os.getpid()
        self._broken = False
        self._counter = counter
        self._ticks: int | None = None
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
            self._open(budget, device_key)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._db.close()
            raise refusal(self.path, error) from None
        except BaseException:
            self._db.close()
            raise

    def _open(self, budget: float | None, device_key: bytes | None) -> None:
        db = self._db
        # Exclusive from the first read on: the lock is the kernel's, so a killed process leaves none behind.
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("COMMIT")
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        mark = int(db.execute("PRAGMA application_id").fetchone()[0])
        if mark != APPLICATION_ID:
            raise LedgerCorruptError(f"ledger {self.path} must be a Hubbub ledger, found another database")
        if version > SCHEMA_VERSION:
            raise LedgerTooNewError(f"ledger {self.path} must have schema {SCHEMA_VERSION}, got {version}")
        if version < SCHEMA_VERSION:
            raise LedgerError(f"ledger {self.path} must have schema {SCHEMA_VERSION}, got {version}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # on Apple's systems a plain fsync stops at the drive's cache
        db.execute("PRAGMA checkpoint_fullfsync = ON")
        db.execute("PRAGMA secure_delete = ON")  # what is forgotten is overwritten
        db.execute("PRAGMA trusted_schema = OFF")
        verdict = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise LedgerCorruptError(f"ledger {self.path} is damaged: {verdict}")
        db.execute("PRAGMA foreign_keys = ON")
        row = db.execute("SELECT budget, identity, chain, key_check, ticks FROM device").fetchone()
        if row is None:
            raise LedgerCorruptError(f"ledger {self.path} is damaged: it states no budget")
        if budget is not None and row[0] != budget:
            raise BudgetFixedError(
                f"budget of {self.path} was fixed at {row[0]!r} by its first open, got {budget!r}"
            )
        self.budget = float(row[0])
        self._check_key(device_key, row[1], row[3])
        check_mark(self.path, row[1])
        self._chain = bytes(row[2])
        self._check_ticks(row[4])

    def _check_key(self, device_key: bytes | None, identity: bytes, known: bytes | None) -> None:
        """Bind the ledger to the device at the first open with a key, and recognise it ever after."""
        if device_key is None:
            if known is not None:
                raise LedgerForeignError(f"ledger {self.path} belongs to a device with a key, got none")
            return
        found = key_check(device_key, identity)
        if known is None:
            with self._transaction() as db:
                db.execute("UPDATE device SET key_check = ?", (found,))
        elif not hmac.compare_digest(found, known):
            raise LedgerForeignError(f"ledger {self.path} belongs to a device with another key")

    def _check_ticks(self, ticks: int | None) -> None:
        """Bind the ledger to the host's counter at the first open with one, and compare the two ever after.

        A change is counted in its own transaction, then by the host, and only then may anything be sent. So a
        ledger that is one ahead was killed between the two, and one that is behind was set back.
        """
        if self._counter is None:
            if ticks is not None:
                raise LedgerForeignError(f"ledger {self.path} belongs to a device with a counter, got none")
            return
        known = read_counter(self._counter)
        if ticks is None:
            if known != 0:
                raise LedgerForeignError(
                    f"ledger {self.path} must be this device's first, and its counter says there was another"
                )
            with self._transaction() as db:
                db.execute("UPDATE device SET ticks = 1")
        elif not known <= ticks <= known + 1:
            raise LedgerForeignError(
                f"ledger {self.path} must have counted {known} changes as its device has, got {ticks}: "
                + ("it is an older copy" if ticks < known else "the counter is another one")
            )
        else:
            self._ticks = known
            self._count()

    def _count(self) -> None:
        """Have the host's counter follow what was committed."""
        if self._counter is not None:
            ticks = self._db.execute("SELECT ticks FROM device").fetchone()[0]
            if ticks != self._ticks:
                advance_counter(self._counter, ticks)
                self._ticks = ticks

    def close(self) -> None:
        """Close the file and give up the lock; a second call does nothing."""
        if self._process == os.getpid():
            self._db.close()
        self._broken = True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Return one transaction; after an error of the database the ledger must be opened again.

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
            self._count()
        except BaseException as error:
            self._broken = True
            db.close()  # rolls back
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                raise refusal(self.path, error) from None
            raise

    def _check(self) -> None:
        if self._process != os.getpid():
            raise LedgerLockedError(
                f"ledger {self.path} belongs to the process that opened it, not to its fork"
            )
        if self._broken:
            raise LedgerError(f"ledger {self.path} is closed, or failed and must be opened again")

    def _read(self, query: str, arguments: Sequence[object] = ()) -> list[tuple[object, ...]]:
        self._check()
        try:
            return self._db.execute(query, tuple(arguments)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise refusal(self.path, error) from None


_OPEN: Final[weakref.WeakSet[Database]] = weakref.WeakSet()


def _abandon() -> None:
    """Keep a forked child from ever closing the connections it inherited.

    SQLite believes that the child holds the parent's lock: closing would delete the write-ahead log, and with
    it answers that the parent has already sent. So the child keeps one reference too many, for good.
    """
    for database in list(_OPEN):
        connection = getattr(database, "_db", None)
        if connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # absent where there is no fork
    os.register_at_fork(after_in_child=_abandon)
