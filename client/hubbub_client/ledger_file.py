"""The ledger's file: made whole or not at all, and refused where it lost what it held.

Only a new installation has a budget to give out. So a file that exists is never taken for a new ledger, not
even an empty one: something that once truncated it must not renew the budget. A ledger is therefore made
under another name and gets its own when it is complete, in one step of the file system.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Final

from hubbub_client.errors import LedgerCorrupt, LedgerError, LedgerLocked
from hubbub_client.ledger_schema import APPLICATION_ID, SCHEMA_VERSION, statements
from hubbub_client.transcript import GENESIS

_COMPANIONS: Final = ("-wal", "-journal")
"""What SQLite keeps beside a database that was not closed: never there before the database is."""


def prepare(path: Path, *, budget: float) -> None:
    """Makes the ledger if there is none, and refuses one that cannot be what it was.

    Args:
        path: The file.
        budget: What a new ledger states as its lifetime epsilon.

    Raises:
        LedgerCorrupt: The file is empty, or it is gone and its write-ahead log is not.
        LedgerError: It cannot be made.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        for companion in _COMPANIONS:
            if path.with_name(path.name + companion).exists():
                raise LedgerCorrupt(
                    f"ledger {path} is gone, and its {companion[1:]} file is still there"
                ) from None
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be read: {error.strerror}") from None
    else:
        if size == 0:
            raise LedgerCorrupt(
                f"ledger {path} is empty: what it held is lost, and its budget is not renewed"
            )
        return
    try:
        _make(path, budget)
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be made: {error.strerror}") from None
    except sqlite3.Error as error:
        raise refusal(path, error) from None


def _make(path: Path, budget: float) -> None:
    # mkstemp lets the owner alone read it; the prefix tells whose it is, should a kill leave it behind.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(descriptor)
    try:
        db = sqlite3.connect(name, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = OFF")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = ON")
            db.execute("BEGIN")
            for statement in statements():
                db.execute(statement)
            db.execute("INSERT INTO device (one, budget, chain) VALUES (1, ?, ?)", (budget, GENESIS))
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            db.execute("COMMIT")
        finally:
            db.close()
        _name(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)
    if os.name == "posix":
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _name(made: Path, path: Path) -> None:
    """Gives the file its own name, unless another process was first: then that one's ledger stands."""
    try:
        os.link(made, path)
    except FileExistsError:
        return
    except OSError:  # no hard links on this file system
        if not path.exists():
            made.rename(path)


def refusal(path: Path, error: sqlite3.Error) -> LedgerError:
    """What an error of the database means for a ledger, without a bound value in it."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return LedgerLocked(f"ledger {path} is open elsewhere: one process at a time")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return LedgerCorrupt(f"ledger {path} is damaged, or is not a ledger")
    # SQLite's own message may quote a bound value's column, never the value; its code says enough.
    return LedgerError(f"ledger {path} failed: {getattr(error, 'sqlite_errorname', type(error).__name__)}")
