"""The recounts that an operator published: rounds counted again without an issuer, a file each.

They lie in a folder beside the archive and never in it: a recount has a name of its own, says in its bytes
whom it leaves out, and takes nobody's place. A file appears whole, and is never replaced by other bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hubbub.survey import number_of_round
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.errors import ArchiveError, DivergedError
from hubbub_aggregator.release.round_release import Document, canonical_bytes, require_method

RECOUNTS_FOLDER: Final = "recounts"
"""The folder of recounts in that of a node or a dashboard."""

# Of a file's name: most file systems take 255 bytes, and the rest of it has 72 and a round's digits.
_MOST_LETTERS: Final = 100

_LOG = logging.getLogger("hubbub.aggregator")

_Stamp = tuple[int, int, int]


class RecountFolder:
    """The recounts beside one archive; one thread at a time.

    Args:
        folder: The folder of the node or of the dashboard; what is asked for is the one in it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECOUNTS_FOLDER
        # Every file that was read, by name: as it was then, and the recount in it; None if it is none.
        self._read: dict[str, tuple[_Stamp, Document | None]] = {}

    def put(self, document: Mapping[str, Any]) -> Path:
        """Keep a recount for good, and return its file; the same bytes again change nothing.

        Raises:
            DivergedError: If there is another recount of the round without these issuers; it stays.
            ArchiveError: If it cannot be written.
        """
        path, data = self.path / _name_of(document), canonical_bytes(dict(document))
        draft = path.with_suffix(f".{os.getpid()}.part")
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            try:
                with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                with contextlib.suppress(FileExistsError):
                    os.link(draft, path)  # a rename would replace what is there
            finally:
                draft.unlink(missing_ok=True)
            kept = path.read_bytes()
        except OSError as error:
            raise ArchiveError(f"{self.path}: a recount cannot be written: {error.strerror}") from error
        if kept != data:
            raise DivergedError(f"{path} must be this recount, got other bytes; they stay")
        return path

    def by_survey(self) -> dict[str, list[Document]]:
        """Return every recount by its survey's digest in hexadecimal, in the order of rounds and issuers.

        A file that is no recount is left out, and the log says so once.
        """
        found: dict[str, list[Document]] = {}
        for name, stamp in self._stamps():
            if self._read.get(name, (None, None))[0] != stamp:
                self._read[name] = stamp, self._recount(name)
            document = self._read[name][1]
            if document is not None:
                found.setdefault(document["survey"]["digest"], []).append(document)
        for documents in found.values():
            documents.sort(key=lambda each: (each["round"], each["recount"]["without_issuers"]))
        return found

    def of_round(self, key: RoundKey) -> list[Document]:
        """Return the recounts of one round."""
        return [
            each
            for each in self.by_survey().get(key[0].hex(), [])
            if each["round"] == number_of_round(key[1])
        ]

    def count(self, digest: bytes) -> int:
        """Return how many files there are of one survey."""
        return len(list(self._files(digest)))

    def erase(self, digest: bytes) -> None:
        """Delete every recount of a survey.

        Raises:
            ArchiveError: If a file cannot be deleted.
        """
        for path in list(self._files(digest)):
            try:
                path.unlink()
            except OSError as error:
                raise ArchiveError(f"{path} cannot be deleted: {error.strerror}") from error

    def files(self) -> list[Path]:
        """Return every file of recounts, of all surveys."""
        return sorted(self._files(b""))

    def _files(self, digest: bytes) -> Iterator[Path]:
        yield from self.path.glob(f"{digest.hex()}*.json")

    def _stamps(self) -> Iterator[tuple[str, _Stamp]]:
        with contextlib.suppress(OSError):  # no folder: there are none
            for path in self.files():
                about = path.stat()
                yield path.name, (about.st_ino, about.st_mtime_ns, about.st_size)

    def _recount(self, name: str) -> Document | None:
        try:
            data = (self.path / name).read_bytes()
            document: Document = json.loads(data)
            if document["sealed"] and _name_of(document) == name and canonical_bytes(document) == data:
                require_method(document)
                return document
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
        _LOG.warning("%s must be a recount as `hubbub replay --publish` writes it; it is not shown", name)
        return None


def _name_of(document: Mapping[str, Any]) -> str:
    """Return the name of a recount's file: survey, round, and the issuers left out.

    The names of issuers are for people; the hash behind them keeps two that read alike apart.
    """
    digest, number = bytes.fromhex(document["survey"]["digest"]), int(document["round"])
    issuers = document["recount"]["without_issuers"]
    words = re.sub(r"[^A-Za-z0-9._-]", "-", "+".join(issuers))[:_MOST_LETTERS]
    tag = hashlib.sha256(json.dumps(issuers).encode()).hexdigest()[:16]
    return f"{digest.hex()}-round-{number}-without-{words}-{tag}.json"
