"""The list of the reports that a release counts: built after the seal, and waited for by nobody.

A thread of its own reads the records of each round that the log of what was published has a release of, up to
the release's cut, and has counting judge them again. What it finds depends on the records alone: a replay
finds the same. It keeps nothing that a kill could tear: a round without its entry is begun again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from hubbub.errors import HubbubError
from hubbub.survey import Survey, index_of_round
from hubbub.transparency import CROWD, CountedTiles, leaves_of
from hubbub.wire import ReportsRecord, SurveyRecord, decode_record
from hubbub_aggregator.counting.counting import judged
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.errors import AggregatorError, DivergedError
from hubbub_aggregator.release.disclosure import cohort_of
from hubbub_aggregator.release.round_release import Document
from hubbub_aggregator.stores.archive import Archive
from hubbub_aggregator.stores.transparency import TransparencyLog
from hubbub_topic import Log

LOOK_S: Final = 1.0
"""Seconds between two looks for new releases: the log of what was published is asked for its size."""

_RECORDS: Final = 64
_LOG: Final = logging.getLogger("hubbub.log")


class RecordsGoneError(AggregatorError):
    """The error that a round's reports cannot be listed: records of it are not in the log any more."""


class RoundReports:
    """The reports of rounds as their log has them, each round in one pass over the records that may hold it.

    Args:
        log: Return the log that is counted, while it is read.
    """

    def __init__(self, log: Callable[[], AbstractContextManager[Log]]) -> None:
        self._log = log
        # The end of what was looked through of each partition, its surveys, and where rounds begin.
        self._passed: dict[int, int] = {}
        self._announced: dict[tuple[int, bytes], Survey] = {}
        self._begun: dict[tuple[int, RoundKey], int] = {}

    def counted(self, document: Document, stop: threading.Event | None = None) -> CountedTiles | None:
        """Return the entry and the tiles of a release; None if it was told to stop.

        Raises:
            RecordsGoneError: If records of the round are gone, or are not those that were counted.
            LogError: If the log cannot be read.
        """
        digest, number = bytes.fromhex(document["survey"]["digest"]), document["round"]
        key = digest, index_of_round(number)
        accepted: list[bytes] = []
        over: list[bytes] = []
        survey = None
        with self._log() as log:
            for partition, end in document["cut"].items():
                lost = [
                    range(each["from"], each["until"])
                    for each in document["lost"]
                    if each["partition"] == int(partition)
                ]
                state = PartitionState()
                state.place(log.partition_map, int(partition))
                for records in self._records(log, int(partition), key, end, lost):
                    if stop is not None and stop.is_set():
                        return None
                    if (survey := self._announced.get((int(partition), digest))) is not None:
                        state.surveys[digest] = survey
                    ids, symbols, counts, is_over = judged(state, key, records)
                    values = symbols.tolist() if symbols.ndim == 1 else [row.tobytes() for row in symbols]
                    leaves = leaves_of(digest, key[1], ids, values)
                    accepted += [leaf for leaf, yes in zip(leaves, counts.tolist(), strict=True) if yes]
                    over += [leaf for leaf, yes in zip(leaves, is_over.tolist(), strict=True) if yes]
        if len(accepted) != document["accounting"]["accepted"]:
            raise RecordsGoneError(
                f"survey {digest.hex()}, round {number}: its log must have the reports that were counted, "
                f"{document['accounting']['accepted']:,} of them, got {len(accepted):,}"
            )
        cohort = 0 if survey is None else cohort_of(survey)
        return CountedTiles.of(digest, number, accepted, over, max(CROWD, cohort))

    def _records(
        self, log: Log, partition: int, key: RoundKey, end: int, lost: list[range]
    ) -> Iterator[list[ReportsRecord]]:
        """Yield groups of records that may hold reports of a round: none before what announced its survey."""
        passed = self._passed.setdefault(partition, log.begin(partition))
        offset = min(self._begun.pop((partition, key), passed), end)
        while offset < end:
            found = log.read(partition, offset, min(_RECORDS, end - offset))
            if not found or found[0][0] != offset:
                raise RecordsGoneError(f"partition {partition}: the record at {offset} is not in the log")
            group: list[ReportsRecord] = []
            for at, body in found:
                record = None if any(at in each for each in lost) else _decoded(body)
                rounds = _rounds(record) if isinstance(record, ReportsRecord) else set()
                if at >= self._passed[partition]:
                    self._passed[partition] = at + 1
                    if isinstance(record, Survey):
                        self._announced.setdefault((partition, record.digest), record)
                    for each in rounds:
                        if (partition, each[0]) in self._announced:
                            self._begun.setdefault((partition, each), at)
                if (
                    isinstance(record, ReportsRecord)
                    and key in rounds
                    and (partition, key[0]) in self._announced
                ):
                    group.append(record)
            if group:
                yield group
            offset = found[-1][0] + 1


def _decoded(body: bytes) -> Survey | ReportsRecord | None:
    """Return what a record announces or carries; None of seals, and of what counting passes over."""
    try:
        record = decode_record(body, broken=[])
        if isinstance(record, SurveyRecord):
            return Survey.from_canonical(record.canonical)
    except HubbubError:
        return None
    return record if isinstance(record, ReportsRecord) else None


def _rounds(record: ReportsRecord) -> set[RoundKey]:
    return {(each.digest, each.round) for each in record.segments}


class CountedBuilder:
    """The builder of what the log of one folder says of counted reports; one thread at a time looks.

    Args:
        entries: The log of what was published.
        archive: Return the archive of its releases, while it is read.
        log: Return the log that is counted, while it is read.
    """

    def __init__(
        self,
        entries: TransparencyLog,
        archive: Callable[[], AbstractContextManager[Archive]],
        log: Callable[[], AbstractContextManager[Log]],
    ) -> None:
        self._entries, self._archive, self._reports = entries, archive, RoundReports(log)
        self._read, self._due, self._done = 0, dict[RoundKey, None](), set[RoundKey]()
        self._said = ""

    def is_waiting(self, key: RoundKey) -> bool:
        """Return whether the records of a round are still needed, once it is released."""
        return key not in self._done

    def run(self, stop: threading.Event) -> None:
        """Look until `stop` is set; what cannot be read now is read later."""
        while not stop.wait(LOOK_S):
            try:
                self.look(stop)
            except Exception as error:  # whatever it is, counting and releases go on
                if self._said != repr(error):
                    self._said = repr(error)
                    _LOG.warning("which reports count is not logged yet: %r", error)

    def look(self, stop: threading.Event | None = None) -> None:
        """Append what is missing of every release that is in the log of what was published.

        Raises:
            AggregatorError: If the archive or that log cannot be used.
            LogError: If the log that is counted cannot be read.
        """
        for entry in self._entries.since(self._read):
            self._read += 1
            if entry.kind in ("release", "counted"):
                digest, number = entry.fields[:2]
                assert isinstance(digest, bytes) and isinstance(number, int)  # noqa: S101 - of these kinds
                key = digest, index_of_round(number)
                if entry.kind == "counted":
                    self._end(key)
                elif key not in self._done:
                    self._due[key] = None
        for key in tuple(self._due):
            with self._archive() as archive:
                release = archive.get(key)
            try:
                # One that is not in the archive any more was erased, and its reports with it.
                counted = None if release is None else self._reports.counted(json.loads(release), stop)
                if stop is not None and stop.is_set():
                    return
                if counted is not None:
                    self._entries.append_counted(counted)
            except (RecordsGoneError, DivergedError) as error:
                _LOG.warning("which reports count is not in the log: %s", error)
            self._end(key)

    def _end(self, key: RoundKey) -> None:
        self._due.pop(key, None)
        self._done.add(key)
