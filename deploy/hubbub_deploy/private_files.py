"""Files that only their owner may read: reports, counts and releases before anybody publishes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Make the files and folders created within readable and writable by their owner alone.

    It holds for the whole process: enter it before threads are started. Files that exist keep their mode;
    SQLite gives a database's mode to the files that it makes beside it later.
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
