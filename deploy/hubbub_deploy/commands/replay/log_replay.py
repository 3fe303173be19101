"""A log counted again, offline: a node's folder or a Kafka topic, from its first record to its last.

Nothing is written but what the caller asks for: counts live in memory, and the log is only read. Every round
that all partitions have sealed is released, by the code and with the bytes of the first time; an archive of
that time is compared byte for byte, but for what its operator stated about the fleet, which no log holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from hubbub import ParameterError, Survey
from hubbub.wire import PartitionMap
from hubbub_aggregator import AggregatorError, ArchiveError, runners
from hubbub_aggregator.counting import Change, PartitionState, RoundKey, Skips, next_change, skips_of
from hubbub_aggregator.release import (
    METHOD,
    FleetStatement,
    Method,
    PublicationGate,
    canonical_bytes,
    method_of,
    release,
)
from hubbub_aggregator.runners import Assignment
from hubbub_aggregator.stores import SqliteArchive, SqliteDeadTopic
from hubbub_collector import CollectorError
from hubbub_deploy.errors import DeployError
from hubbub_deploy.evaluation.report import print_json
from hubbub_deploy.files import ARCHIVE_FILE
from hubbub_deploy.node import DEAD_FILE, LOG_FILE
from hubbub_topic import LogError, SqliteLog

SCHEME: Final = "kafka"
_READ_RECORDS: Final = 64
# Stands for a release whose checksum does not hold: no release is empty.
DAMAGED: Final = b""

States = dict[int, PartitionState]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReplaySettings:
    """The settings of a log's replay.

    Attributes:
        source: A node's folder, or kafka://host:port/topic (several brokers:
            kafka://host:port,host:port/topic).
        surveys: Only these surveys are released; none given, all that the log has announced.
        archive: Folder of an archive to compare with; None compares a node's folder with its own, if any.
        out: Folder for the releases, one file each; None writes none.
        output: Table for people, JSON for programs.
    """

    source: str
    surveys: tuple[Path, ...] = ()
    archive: Path | None = None
    out: Path | None = None
    output: str = "table"


def is_log(source: str) -> bool:
    """Return whether a source names a log and not a file of values."""
    return urlsplit(source).scheme == SCHEME or Path(source).is_dir()


def run(settings: LogReplaySettings) -> int:
    """Replay the log and print one line per sealed round; 1 if the archive holds anything else, else 0.

    Raises:
        SurveyError: If a survey cannot be compiled.
        DeployError: If the log or the archive cannot be read, or the log has no such survey.
    """
    began = time.perf_counter()
    states, partition_map = counted(settings.source)
    surveys = _chosen(states, settings)
    kept = _archived(settings, _keys(states, surveys))
    methods = {key: _method(data) for key, data in kept.items() if data not in (None, DAMAGED)}
    found = releases(states, surveys, partition_map, methods)
    seconds = time.perf_counter() - began
    archived = {key: data for key, data in kept.items() if key in found}
    talk = Console(stderr=True, highlight=False)
    records = sum(state.offset for state in states.values())
    talk.print(f"{records:,} records, {len(found)} sealed rounds in {seconds:.2f} s")
    if settings.out is not None:
        _write(found, surveys, settings.out, talk)
    if settings.output == "json":
        print_json([json.loads(data) for data in found.values()])
    else:
        Console(highlight=False).print(_table(found, surveys, archived))
    differing = [key for key, kept in archived.items() if kept is not None and not _same(kept, found[key])]
    for digest, number in differing:
        holds = "a damaged release" if archived[digest, number] == DAMAGED else "another release"
        talk.print(f"survey {surveys[digest].id!r}, round {number + 1}: the archive holds {holds}")
    return 1 if differing else 0


def counted(source: str) -> tuple[States, PartitionMap]:
    """Return every partition's state after the log's last record, and the partition map.

    Raises:
        DeployError: If the log cannot be read, or has lost its first records.
    """
    try:
        if urlsplit(source).scheme == SCHEME:
            return asyncio.run(_topic(*_address(source)))
        with SqliteLog(Path(source) / LOG_FILE, partitions=None) as log:
            skips = _skips(Path(source), log.identity)
            states = {partition: _counted(log, partition, skips) for partition in range(log.partitions)}
            return states, log.partition_map
    except (CollectorError, LogError, AggregatorError) as error:
        raise DeployError(f"{source}: {error}") from error


def _skips(folder: Path, log_identity: str) -> Skips:
    """Return the records that a node's operator said to pass over."""
    if not (folder / DEAD_FILE).exists():
        return {}
    with contextlib.closing(SqliteDeadTopic(folder / DEAD_FILE)) as dead:
        return skips_of(dead.records().values(), log_identity)


def _counted(log: SqliteLog, partition: int, skips: Skips) -> PartitionState:
    state = PartitionState()
    state.place(log.partition_map, partition)
    while records := log.read(partition, state.offset, _READ_RECORDS):
        state.commit(next_change(partition, state, records, skips))
    return state


def _address(source: str) -> tuple[str, str]:
    """Return the brokers and the topic of kafka://host:port/topic."""
    parts = urlsplit(source)
    topic = parts.path.removeprefix("/")
    if not parts.netloc or not topic or "/" in topic or parts.query or parts.fragment:
        raise DeployError(f"a topic must be given as kafka://host:port/topic, got {source!r}")
    return parts.netloc, topic


async def _topic(bootstrap: str, topic: str) -> tuple[States, PartitionMap]:
    from hubbub_topic.kafka import GrowingLog, KafkaDeadTopic  # noqa: PLC0415 - a node has no broker

    # Retention and the like do not matter to who only reads; what is gone is Lost.
    log = await asyncio.to_thread(GrowingLog, bootstrap, topic, note="read", check="identity")
    with log, KafkaDeadTopic(bootstrap, topic) as dead:
        skips = skips_of((await asyncio.to_thread(dead.records)).values(), log.identity)
        store, stop, partition_map = _Memory(), asyncio.Event(), log.partition_map
        assignment = Assignment(
            store,
            begin=log.begin,
            end=log.end,
            partition_map=partition_map,
            clock=time.monotonic,
            skips=skips,
        )
        stop.set()
        await runners.count(assignment, bootstrap=bootstrap, partition_map=partition_map, stop=stop)
    return store.states, partition_map


class _Memory:
    """A Store that keeps nothing but the states it has given away: whoever counts commits to them."""

    def __init__(self) -> None:
        self.states: States = {}

    def load(self, partition: int) -> PartitionState:
        return self.states.setdefault(partition, PartitionState())

    def save(self, partition: int, change: Change) -> None:
        """Do nothing."""

    def verify(self) -> None:
        """Do nothing."""

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        return {}

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Do nothing."""


def _method(data: bytes | None) -> Method:
    """Return the method of an archived release; of one that a later version made, the latest known."""
    assert data is not None  # noqa: S101 - the caller left out what is absent
    try:
        return method_of(json.loads(data))
    except ParameterError:
        return METHOD


def _keys(states: States, surveys: Mapping[bytes, Survey]) -> list[RoundKey]:
    """Return the rounds that anything is known of, in order."""
    # A seal that precedes its survey may be of a round that there is not.
    return sorted(
        {
            key
            for state in states.values()
            for key in state.rounds
            if key[0] in surveys and key[1] < surveys[key[0]].rounds
        }
    )


def releases(
    states: States,
    surveys: Mapping[bytes, Survey],
    partition_map: PartitionMap,
    methods: Mapping[RoundKey, Method] | None = None,
) -> dict[RoundKey, bytes]:
    """Return the canonical bytes of the release of every round that all its partitions have sealed, in order.

    Args:
        states: Every partition of the log.
        surveys: The surveys to release, by digest.
        partition_map: Which partitions a round's reports lie in.
        methods: The method of rounds that were released already; the others are of the present one.
    """
    keys = _keys(states, surveys)
    estimators = {digest: survey.estimator() for digest, survey in surveys.items()}
    found: dict[RoundKey, bytes] = {}
    most = dict.fromkeys(surveys, 0)
    for digest, number in keys:
        survey = surveys[digest]
        home = partition_map.partitions_at(survey.round_start_s(number))
        finished = release(survey, number, {partition: states[partition] for partition in home})
        if finished is not None:
            counted = finished.tally.n
            most[digest] = max(most[digest], counted)
            enrolment = FleetStatement().of(survey.id, counted=counted, enrolled=most[digest])
            document = replace(finished, enrolment=enrolment).document(
                estimators[digest], method=(methods or {}).get((digest, number), METHOD)
            )
            found[digest, number] = canonical_bytes(document)
    return found


def _same(one: bytes, other: bytes) -> bool:
    """Return whether two releases have the same bytes, but for what is stated about the fleet."""
    if DAMAGED in (one, other):
        return False
    first, second = json.loads(one), json.loads(other)
    return canonical_bytes(first | {"enrolment": None}) == canonical_bytes(second | {"enrolment": None})


def _chosen(states: States, settings: LogReplaySettings) -> dict[bytes, Survey]:
    known = {digest: survey for state in states.values() for digest, survey in state.surveys.items()}
    if not settings.surveys:
        return known
    chosen = {}
    for path in settings.surveys:
        survey = Survey.load(path)
        if survey.digest not in known:
            raise DeployError(f"{path}: {settings.source} must hold this survey, got none of its digest")
        chosen[survey.digest] = survey
    return chosen


def _archived(settings: LogReplaySettings, keys: Iterable[RoundKey]) -> dict[RoundKey, bytes | None]:
    """Return what an archive has of rounds, None where it has nothing; empty without an archive."""
    folder = settings.archive
    if folder is None and (Path(settings.source) / ARCHIVE_FILE).exists():
        folder = Path(settings.source)
    if folder is None:
        return {}
    if not (folder / ARCHIVE_FILE).exists():
        raise DeployError(f"{folder}: {ARCHIVE_FILE} must be there to be compared with, got none")
    try:
        with contextlib.closing(SqliteArchive(folder / ARCHIVE_FILE)) as archive:
            return {key: _kept(archive, key) for key in keys}
    except AggregatorError as error:
        raise DeployError(str(error)) from error


def _kept(archive: SqliteArchive, key: RoundKey) -> bytes | None:
    """Return what an archive holds of a round, or DAMAGED."""
    try:
        return archive.get(key)
    except ArchiveError:
        return DAMAGED


def _table(
    found: Mapping[RoundKey, bytes],
    surveys: Mapping[bytes, Survey],
    archived: Mapping[RoundKey, bytes | None],
) -> Table:
    table = Table("survey", "round", "devices", "attempts", "archive")
    for (digest, number), data in found.items():
        document, survey = json.loads(data), surveys[digest]
        if (digest, number) not in archived:
            said = ""
        elif (kept := archived[digest, number]) is None:
            said = "absent"
        elif kept == DAMAGED:
            said = "[bold red]damaged[/bold red]"
        else:
            said = "the same bytes" if _same(kept, data) else "[bold red]differs[/bold red]"
        devices, attempts = document["devices"], document["accounting"]["attempts"]
        table.add_row(
            f"{survey.id} v{survey.version}", str(number + 1), f"{devices:,}", f"{attempts:,}", said
        )
    return table


def _write(
    found: Mapping[RoundKey, bytes], surveys: Mapping[bytes, Survey], folder: Path, talk: Console
) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in _named(found, surveys):
            (folder / name).write_bytes(data)
    except OSError as error:
        raise DeployError(f"{folder}: cannot be written: {error.strerror}") from None
    talk.print(f"wrote {len(found)} releases into {folder}")


def _named(found: Mapping[RoundKey, bytes], surveys: Mapping[bytes, Survey]) -> Iterator[tuple[str, bytes]]:
    for (digest, number), data in found.items():
        survey = surveys[digest]
        yield f"{survey.id}-v{survey.version}-round-{number}.json", data
