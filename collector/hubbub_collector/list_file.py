"""A signed list of surveys as a file: served as it is, and read anew when it is replaced.

The key that signs it lies elsewhere, and so does the public one: a gateway cannot tell a good signature from
a bad one and need not, because every device does.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from hubbub.errors import ListError
from hubbub.survey import MAX_LIST_BYTES, digest_of, read_unverified
from hubbub_collector.errors import ListFileError


class ListFile:
    """One file, and the last good contents of it; `cancelled` are the digests that those cancel.

    Args:
        path: The file.
        served: Digests of the surveys that the gateway takes reports of.

    Raises:
        ListFileError: It cannot be read, is no signed list, or names a survey that is not served.
    """

    def __init__(self, path: Path, served: Collection[bytes]) -> None:
        self._path, self._served = path, frozenset(served)
        self.cancelled: tuple[bytes, ...] = ()
        self._mark = self._stamp()
        self._data = self._read()

    @property
    def current(self) -> bytes:
        """The list to serve; an invalid replacement is reported on stderr once, and ignored."""
        try:
            mark = self._stamp()
            if mark != self._mark:
                self._mark = mark
                self._data = self._read()
        except ListFileError as error:
            with suppress(OSError):  # what stderr goes to may be full
                print(f"hubbub: {error}; the list before it is still served", file=sys.stderr, flush=True)
        return self._data

    def _stamp(self) -> tuple[int, int, int] | None:
        """Return a value that changes with the file, None while there is none."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_LIST_BYTES + 1)
            if len(data) > MAX_LIST_BYTES:  # no device would take it
                raise OSError(errno.EFBIG, f"more than {MAX_LIST_BYTES:,} bytes")
            listed, _ = read_unverified(data)
        except OSError as error:
            raise ListFileError(f"{self._path} must be readable ({error.strerror})") from None
        except ListError as error:
            raise ListFileError(f"{self._path} must be a signed list of surveys ({error})") from None
        if listed is None:
            raise ListFileError(f"{self._path} must be a signed list of surveys, got a plain one")
        for digest in map(digest_of, listed.surveys):
            if digest not in self._served:  # devices would spend budget on reports that nobody takes
                raise ListFileError(f"{self._path} must name served surveys only, got {digest.hex()}")
        self.cancelled = listed.cancelled
        return data
