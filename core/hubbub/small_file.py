"""Small files that a user names, read in bounded memory."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Final

MAX_SMALL_BYTES: Final = 2**20
"""Bytes of a file of settings, a key, a word or some values: a thousand times what they have."""


def read_small(path: Path, *, limit: int = MAX_SMALL_BYTES) -> bytes:
    """Return the bytes of a file that holds few; - is stdin.

    Args:
        path: The file; it may be a device or a pipe that never ends.
        limit: The most that it may hold.

    Raises:
        OSError: If it cannot be read, or holds more.
    """
    if str(path) == "-":
        data = sys.stdin.buffer.read(limit + 1) if sys.stdin else b""
    else:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"more than {limit:,} bytes")
    return data


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file of text cannot be read; nothing of what it holds."""
    if isinstance(error, UnicodeDecodeError):
        return "it holds bytes that are no text"
    return error.strerror or "the system does not say why"
