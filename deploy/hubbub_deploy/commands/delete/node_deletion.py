"""The deletion of one survey's data from the files of a stopped node.

Records keep their places: a record loses what it holds of the survey, and one that holds nothing else becomes
an empty batch. So offsets stay, the other surveys' counts and releases stay, and a log that is counted again
gives them again. The log comes first and the store last, which knows the survey's name until then: a deletion
that was cut off is finished by the next. Every file is written anew at the end, so that nothing is left in
free pages.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from hubbub import Survey
from hubbub.errors import HubbubError, WireError
from hubbub.transparency import Entry
from hubbub.wire import ReportsRecord, SealRecord, SurveyRecord, decode_record, encode_record
from hubbub_aggregator import AggregatorError
from hubbub_aggregator.stores import RecountFolder, SqliteArchive, SqliteDeadTopic, SqliteStore, enter
from hubbub_deploy.errors import DeployError
from hubbub_deploy.files import ARCHIVE_FILE, private_files
from hubbub_deploy.node import DEAD_FILE, LOG_FILE, STORE_FILE
from hubbub_topic import LogError, LogLockedError, SqliteLog

_RECORDS: Final = 1000
_EMPTY: Final = encode_record(ReportsRecord(0, ()))


@dataclass(frozen=True, slots=True)
class SurveyTraces:
    """The places in a node's files that hold something of one survey.

    Attributes:
        survey: Its id, version and digest, in words.
        reports: Records with its reports or refusals, or unreadable ones that name it.
        announcements: Records that announce it.
        seals: Records that seal its rounds.
        rounds: Rounds that the store has counts of.
        releases: Releases in the archive.
        letters: Dead letters about such records.
        recounts: Recounts that were published beside the releases.
    """

    survey: str
    reports: int
    announcements: int
    seals: int
    rounds: int
    releases: int
    letters: int
    recounts: int


class NodeFiles:
    """The files of a stopped node, open for a deletion.

    Args:
        folder: The node's folder.

    Raises:
        DeployError: If it is none, or the node runs.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / LOG_FILE).is_file():
            raise DeployError(f"{folder} must be the folder of a node, got one without a log")
        self._open = contextlib.ExitStack()
        try:
            with self._errors(folder), private_files():
                log = self._log = SqliteLog(folder / LOG_FILE, partitions=None)
                self._open.callback(log.close)
                self._store = SqliteStore(
                    folder / STORE_FILE, log_identity=log.identity, partitions=log.partitions
                )
                self._open.callback(self._store.close)
                self._archive = SqliteArchive(folder / ARCHIVE_FILE)
                self._open.callback(self._archive.close)
                self._dead = SqliteDeadTopic(folder / DEAD_FILE)
                self._open.callback(self._dead.close)
        except BaseException:
            self._open.close()
            raise
        self._folder = folder
        self._recounts = RecountFolder(folder)

    def __enter__(self) -> NodeFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @staticmethod
    @contextlib.contextmanager
    def _errors(folder: Path) -> Iterator[None]:
        try:
            yield
        except LogLockedError as error:
            raise DeployError(f"{folder}: stop the node first; it has the files open") from error
        except (AggregatorError, LogError) as error:
            raise DeployError(f"{folder}: {error}") from error

    def digest_of(self, name: str) -> bytes:
        """Return the digest of the survey of a name: its digest, or the id of one version alone.

        Raises:
            DeployError: If there is no such survey, or several.
        """
        known = self._surveys()
        found = [digest for digest, (id_, _) in known.items() if name.lower() == digest.hex() or name == id_]
        if not found:
            names = ", ".join(sorted({id_ for id_, _ in known.values()}))
            raise DeployError(f"survey must be one of {names or 'the files, which hold none'}, got {name}")
        if len(found) > 1:
            versions = ", ".join(f"version {known[each][1]} is {each.hex()}" for each in found)
            raise DeployError(f"survey must be the digest of one version of {name}: {versions}")
        return found[0]

    def _surveys(self) -> dict[bytes, tuple[str, int]]:
        """Return the id and version of every survey that a file knows, by digest."""
        known: dict[bytes, tuple[str, int]] = {}
        with self._errors(self._folder):
            for canonical in self._store.surveys():
                survey = Survey.from_canonical(canonical)
                known[survey.digest] = survey.id, survey.version
            for key in self._archive.rounds():
                found = json.loads(self._archive.get(key) or b"{}").get("survey")
                if found:
                    known[key[0]] = found["id"], found["version"]
            for _, _, body in self._records():
                if (survey_ := _announced(body)) is not None:
                    known[survey_.digest] = survey_.id, survey_.version
        return known

    def _records(self) -> Iterator[tuple[int, int, bytes]]:
        for partition in range(self._log.partitions):
            offset = self._log.begin(partition)
            while records := self._log.read(partition, offset, _RECORDS):
                for at, body in records:
                    yield partition, at, body
                offset = records[-1][0] + 1

    def traces(self, digest: bytes) -> SurveyTraces:
        """Return what the files hold of a survey.

        Raises:
            DeployError: If a file cannot be read.
        """
        id_, version = self._surveys()[digest]
        with self._errors(self._folder):
            kinds = {"reports": 0, "announcements": 0, "seals": 0}
            letters = self._dead.records()
            about = 0
            for partition, offset, body in self._records():
                if (kind := _kind(body, digest)) is not None:
                    kinds[kind] += 1
                    about += self._letter(partition, offset) in letters
            return SurveyTraces(
                f"{id_}, version {version}, digest {digest.hex()}",
                **kinds,
                rounds=self._store.rounds_of(digest),
                releases=sum(key[0] == digest for key in self._archive.rounds()),
                letters=about,
                recounts=self._recounts.count(digest),
            )

    def _letter(self, partition: int, offset: int) -> bytes:
        return f"{self._log.identity}/{partition}/{offset}".encode()

    def delete(self, digest: bytes) -> None:
        """Delete everything of a survey, for good.

        Raises:
            DeployError: If a file cannot be written; say it again once it can.
        """
        with self._errors(self._folder):
            places = [
                (partition, offset, _without(body, digest))
                for partition, offset, body in self._records()
                if _kind(body, digest) is not None
            ]
            self._dead.erase([self._letter(partition, offset) for partition, offset, _ in places])
            self._log.erase(places, key=digest)
            self._archive.erase(digest)
            self._recounts.erase(digest)
            self._store.erase(digest)
            enter(self._folder, [Entry("erased", (digest,))])


def _announced(body: bytes) -> Survey | None:
    try:
        record = decode_record(body)
        return Survey.from_canonical(record.canonical) if isinstance(record, SurveyRecord) else None
    except HubbubError:
        return None


def _kind(body: bytes, digest: bytes) -> str | None:
    """Return what a record is to a survey, or None if it holds nothing of it."""
    if digest not in body:
        survey = _announced(body)
        return "announcements" if survey is not None and survey.digest == digest else None
    try:
        return "seals" if isinstance(decode_record(body), SealRecord) else "reports"
    except WireError:
        return "reports"


def _without(body: bytes, digest: bytes) -> bytes:
    """Return a record without what it holds of a survey; broken segments, which may be its own, go too."""
    try:
        record = decode_record(body, broken=[])
    except WireError:
        return _EMPTY
    if not isinstance(record, ReportsRecord):
        return _EMPTY
    return encode_record(
        replace(record, segments=tuple(each for each in record.segments if each.digest != digest))
    )
