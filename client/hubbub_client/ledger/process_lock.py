"""The lock of an agent: for the threads of the process that opened it, and for no fork of that process."""

from __future__ import annotations

import os
import threading
from types import TracebackType

from hubbub_client.errors import LedgerLockedError


class ProcessLock:
    """A lock that one thread may take several times, and that a forked child is refused.

    A fork copies a lock as it is, and none of the threads that could release it: a child that waited for it
    would wait for ever.
    """

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()

    @property
    def inherited(self) -> bool:
        """True in a fork of the process that made the lock."""
        return os.getpid() != self._process

    def check(self) -> None:
        """Raise LedgerLockedError in a fork."""
        if self.inherited:
            raise LedgerLockedError("an agent belongs to the process that opened it, not to its fork")

    def __enter__(self) -> None:
        self.check()
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
