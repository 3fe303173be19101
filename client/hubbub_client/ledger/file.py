"""The ledger's file: made whole or not at all, and refused where it lost what it held.

Only a new installation has a budget to give out. So a file that exists is never taken for a new ledger, not
even an empty one: something that once truncated it must not renew the budget. A ledger is therefore made
under another name and gets its own when it is complete, in one step of the file system.

Beside it lies a mark with its identity, made before the ledger is first used. A mark without its ledger, or
with another one's, means that a ledger was deleted, or swapped for one whose budget is fresh: refused as
well. Where all of them were removed, nothing is left to notice (docs/threat-model.md).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import sqlite3
import stat
from pathlib import Path
from typing import Final, Protocol

from hubbub_client.errors import (
    LedgerCorruptError,
    LedgerError,
    LedgerForeignError,
    LedgerLockedError,
    LedgerMissingError,
)
from hubbub_client.ledger.schema import make
from hubbub_client.ledger.transcript import GENESIS

_COMPANIONS: Final = ("-wal", "-journal")
"""The files that SQLite keeps beside a database that was not closed: never there before the database is."""

MIN_KEY_BYTES: Final = 16
"""A device key shorter than this could be guessed."""


class Counter(Protocol):
    """A number that this device keeps, from 0 up, and that no backup, restore or reinstall takes back.

    A keychain item that is bound to the device, a monotonic counter of a security chip, or a file where
    backups do not reach. It is used by one ledger, from the thread that uses the ledger.
    """

    def read(self) -> int:
        """Return the number; 0 where nothing was ever counted."""

    def advance(self, to: int) -> None:
        """Make it at least `to`, durably, before it returns; raises if it cannot."""


def read_counter(counter: Counter) -> int:
    """Return the number of a host's counter.

    Raises:
        LedgerError: It cannot be read, or is no number: nothing is known then, so nothing is opened.
    """
    try:
        found = counter.read()
    except Exception as error:
        raise LedgerError(f"the device's counter cannot be read: {type(error).__name__}") from None
    if type(found) is not int or found < 0:
        raise LedgerError(f"the device's counter must be an integer of at least 0, got {found!r:.40}")
    return found


def advance_counter(counter: Counter, to: int) -> None:
    """Set a host's counter to at least `to`.

    Raises:
        LedgerError: The counter does not reach `to`: what was not counted must not be sent.
    """
    try:
        counter.advance(to)
    except Exception as error:
        raise LedgerError(f"the device's counter cannot be advanced: {type(error).__name__}") from None
    if read_counter(counter) < to:
        raise LedgerError(f"the device's counter must have advanced to {to}, got less")


_MARK_TEXT: Final = """
A privacy ledger was made beside this file. While this file stands, a ledger that vanished or was swapped is
noticed, and its budget counts as spent.
"""


def prepare(path: Path, *, budget: float | None) -> None:
    """Make the ledger if there is none, and refuse a file that has lost what it held.

    Args:
        path: The file.
        budget: What a new ledger states as its lifetime epsilon; None to open only what exists.

    Raises:
        LedgerMissingError: There is none, but its mark says that there was; or there is none, and none may be
            made.
        LedgerCorruptError: The file is empty, or it is gone and its write-ahead log is not.
        LedgerError: It cannot be made, or is no file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        for companion in _COMPANIONS:
            if path.with_name(path.name + companion).exists():
                raise LedgerCorruptError(
                    f"ledger {path} is gone, and its {companion[1:]} file is still there"
                ) from None
        if mark_path(path).exists():
            raise LedgerMissingError(
                f"ledger {path} is gone, {mark_path(path).name} says: its budget is not renewed"
            ) from None
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be read: {error.strerror}") from None
    else:
        if not stat.S_ISREG(found.st_mode):
            raise LedgerError(f"ledger {path} must be a file, and is none")
        if found.st_size == 0:
            raise LedgerCorruptError(
                f"ledger {path} is empty: what it held is lost, and its budget is not renewed"
            )
        _close_to_others(path)
        return
    if budget is None:
        raise LedgerMissingError(f"ledger {path} does not exist")
    try:
        _make(path, budget)
    except OSError as error:
        raise LedgerError(f"ledger {path} cannot be made: {error.strerror}") from None
    except sqlite3.Error as error:
        raise refusal(path, error) from None


def _make(path: Path, budget: float) -> None:
    import tempfile  # noqa: PLC0415 - a ledger is made once, and it loads three compressors

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
            make(db, budget=budget, chain=GENESIS)
            db.execute("COMMIT")
        finally:
            db.close()
        _name(Path(name), path)
    finally:
        Path(name).unlink(missing_ok=True)
    _sync(path.parent)


def _close_to_others(path: Path) -> None:
    """Let the owner alone read a file; the files that SQLite makes beside a ledger take its mode."""
    if os.name != "posix":
        return
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError:
        return  # another user's file, or a file system without modes: its owner's affair


def _sync(folder: Path) -> None:
    """Make a folder's entries durable."""
    if os.name == "posix":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _name(made: Path, path: Path) -> None:
    """Return the file its own name, unless another process was first: then that one's ledger stands."""
    try:
        os.link(made, path)
    except FileExistsError:
        return
    except OSError:  # no hard links on this file system
        if not path.exists():
            made.rename(path)


def mark_path(path: Path) -> Path:
    """Return the path of a ledger's mark."""
    return path.with_name(path.name + ".mark")


def check_mark(path: Path, identity: bytes) -> None:
    """Compare an open ledger with the mark beside it, and make the mark where there is none.

    Args:
        path: The ledger.
        identity: Its own, drawn when it was made.

    Raises:
        LedgerForeignError: The mark is another ledger's.
        LedgerError: The mark cannot be read or made.
    """
    mark = mark_path(path)
    expected = f"hubbub ledger {identity.hex()}"
    try:
        with mark.open(encoding="utf-8", errors="replace") as file:
            found = file.readline(2 * len(expected)).rstrip("\n")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise LedgerError(f"mark {mark} cannot be read: {error.strerror}") from None
    else:
        if found != expected:
            raise LedgerForeignError(f"ledger {path} is not the one that was made here, {mark.name} says")
        _close_to_others(mark)
        return
    draft = mark.with_name(mark.name + ".new")
    try:
        draft.unlink(missing_ok=True)  # what a kill left may be open to others
        with open(draft, "x", encoding="utf-8", opener=_owners_own) as file:
            file.write(expected + "\n" + _MARK_TEXT)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(mark)
        _sync(mark.parent)
    except OSError as error:
        raise LedgerError(f"mark {mark} cannot be made: {error.strerror}") from None


def _owners_own(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def key_check(device_key: bytes, identity: bytes) -> bytes:
    """Return a check value of a device key: it recognises the key and does not reveal it.

    Raises:
        LedgerError: The key is too short.
    """
    if len(device_key) < MIN_KEY_BYTES:
        raise LedgerError(f"a device key must have at least {MIN_KEY_BYTES} bytes, got {len(device_key)}")
    return hmac.new(device_key, b"hubbub ledger" + identity, hashlib.sha256).digest()


def refusal(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> LedgerError:
    """Return the ledger error for an error of the database, without any value that was to be stored."""
    if isinstance(error, UnicodeDecodeError):  # a name or a text that is no longer one
        return LedgerCorruptError(f"ledger {path} is damaged, or is not a ledger")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary code
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return LedgerLockedError(f"ledger {path} is open elsewhere: one process at a time")
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return LedgerCorruptError(f"ledger {path} is damaged, or is not a ledger")
    # SQLite's own message may quote a bound value's column, never the value; its code says enough.
    return LedgerError(f"ledger {path} failed: {getattr(error, 'sqlite_errorname', type(error).__name__)}")
