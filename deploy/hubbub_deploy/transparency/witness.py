"""A witness: it remembers one size and one root of every log, and signs what only grew from there.

Source: c2sp.org/tlog-witness. It reads no entry and knows nothing of surveys.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hubbub.transparency import (
    EMPTY_ROOT,
    MAX_NOTE_BYTES,
    Checkpoint,
    Note,
    NoteKey,
    number_of,
    only_grew,
    path_of,
)
from hubbub_aggregator.web import PROBLEM_HANDLERS
from hubbub_collector import create_server
from hubbub_deploy.errors import DeployError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MAX_REQUEST_BYTES: Final = 2 * MAX_NOTE_BYTES
SIZE_TYPE: Final = "text/x.tlog.size"
_MOST_HASHES: Final = 63


class Judged(NamedTuple):
    """The answer to a request: HTTP's status, the text, and its type."""

    status: int
    text: str
    media_type: str = "text/plain"


class LogWitness:
    """A witness with one file; any number of threads and processes.

    Args:
        path: The file (SQLite); made if absent.
        key: Its public key.
        private: The secret half.
        logs: The keys of the logs that it watches.
        clock: Seconds since 1970.

    Raises:
        DeployError: If the file cannot be used.
    """

    def __init__(
        self,
        path: Path,
        key: NoteKey,
        private: Ed25519PrivateKey,
        logs: Iterable[NoteKey],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._key, self._private, self._clock = key, private, clock
        self._logs = {log.name: log for log in logs}
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=60.0)
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS tree (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, "
                "root BLOB NOT NULL)"
            )
        except sqlite3.Error as error:
            raise DeployError(f"{path} must be a witness's file: {error}") from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def add(self, body: bytes) -> Judged:
        """Judge a request to add a checkpoint, and return the answer: of a good one its cosignature."""
        try:
            checkpoint, text, old, path = self._asked(body)
            self._see(checkpoint, old, path)
        except _RefusedError as refused:
            return refused.judged
        except sqlite3.Error:
            return Judged(503, "the witness cannot write what it saw\n")
        return Judged(200, self._key.sign(text, self._private, int(self._clock())))

    def _asked(self, body: bytes) -> tuple[Checkpoint, str, int, list[bytes]]:
        """Return the checkpoint, its text, the size before it and the hashes from there."""
        head, _, data = body.partition(b"\n\n")
        first, *hashes = head.decode("ascii", "replace").split("\n")
        word, _, digits = first.partition(" ")
        old, path, note = number_of(digits), path_of(hashes), Note.parse(data)
        checkpoint = None if note is None else Checkpoint.parse(note.text)
        if word != "old" or old is None or path is None or len(hashes) > _MOST_HASHES:
            raise _RefusedError(400, "a request must be an old size, hashes, and a checkpoint\n")
        if note is None or checkpoint is None:
            raise _RefusedError(400, "a checkpoint must follow the hashes\n")
        log = self._logs.get(checkpoint.origin)
        if log is None:
            raise _RefusedError(404, "a log must be one that is watched here\n")
        if log.signed_at(note) is None:
            raise _RefusedError(403, "a checkpoint must be signed by its log\n")
        if old > checkpoint.size:
            raise _RefusedError(400, "the old size must not be above the new one\n")
        return checkpoint, note.text, old, path

    def _see(self, checkpoint: Checkpoint, old: int, path: list[bytes]) -> None:
        """Write down what is seen, in one transaction before it is signed."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                select = "SELECT size, root FROM tree WHERE origin = ?"
                row = self._db.execute(select, (checkpoint.origin,)).fetchone()
                size, root = (0, EMPTY_ROOT) if row is None else row
                if old != size or (size == checkpoint.size and root != checkpoint.root):
                    raise _RefusedError(409, f"{size}\n", SIZE_TYPE)
                if not only_grew(size, checkpoint.size, root, checkpoint.root, path):
                    raise _RefusedError(422, "the hashes must show that the log only grew\n")
                self._db.execute(
                    "INSERT OR REPLACE INTO tree VALUES (?, ?, ?)",
                    (checkpoint.origin, checkpoint.size, checkpoint.root),
                )
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        self._db.execute("ROLLBACK")


class _RefusedError(Exception):
    """A request that gets no cosignature."""

    def __init__(self, status: int, text: str, media_type: str = "text/plain") -> None:
        self.judged = Judged(status, text, media_type)


def witness_server(witness: LogWitness, *, host: str, port: int) -> uvicorn.Server:
    """Return the server of a witness, with the one path that logs ask."""

    async def add(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_REQUEST_BYTES:
                return Response("a request must be shorter\n", 413, media_type="text/plain")
        judged = await asyncio.to_thread(witness.add, body)
        return Response(judged.text, judged.status, media_type=judged.media_type)

    routes = [Route("/add-checkpoint", add, methods=["POST"])]
    app = Starlette(routes=routes, exception_handlers=PROBLEM_HANDLERS)
    app.router.redirect_slashes = False  # to wherever the Host says
    return create_server(app, host=host, port=port)
