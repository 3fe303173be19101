"""The errors of a disk that has no room, or does not answer: what may pass by itself."""

from __future__ import annotations

import sqlite3
from typing import Final

_NO_ROOM: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})


def has_no_room(error: BaseException) -> bool:
    """Return whether SQLite says that a disk is full or failed: another attempt may write."""
    # The low byte is the primary code.
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM
