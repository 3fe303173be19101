"""Counting a log from its first record to its last, in memory: a node's folder or a Kafka topic."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from hubbub.wire import PartitionMap
from hubbub_aggregator import AggregatorError, runners
from hubbub_aggregator.counting import (
    Change,
    PartitionState,
    RoundKey,
    SealRules,
    Skips,
    next_change,
    skips_of,
)
from hubbub_aggregator.release import PublicationGate
from hubbub_aggregator.runners import Assignment
from hubbub_aggregator.stores import SqliteDeadTopic
from hubbub_collector import CollectorError
from hubbub_deploy.errors import DeployError
from hubbub_deploy.node import DEAD_FILE, LOG_FILE
from hubbub_topic import LogError, SqliteLog

if TYPE_CHECKING:
    from hubbub_topic.kafka import Brokers

SCHEME: Final = "kafka"
_READ_RECORDS: Final = 64

_LOOK_S: Final = 1.0
"""Seconds between two looks at how far a topic's counting is."""

States = dict[int, PartitionState]


def is_log(source: str) -> bool:
    """Return whether a source names a log and not values: a file of them, or a folder of Parquet files."""
    if is_topic(source) or not Path(source).is_dir():
        return is_topic(source)
    return Path(source, LOG_FILE).exists() or not any(
        each.suffix.lower() == ".parquet" for each in Path(source).iterdir()
    )


def is_topic(source: str) -> bool:
    """Return whether a source names a topic."""
    return source.lower().startswith(f"{SCHEME}:")


def counted(
    source: str,
    progress: Callable[[int, int], None] = lambda done, records: None,
    *,
    without: Iterable[str] = (),
    brokers: Brokers | None = None,
    seal_rules: SealRules | None = None,
) -> tuple[States, PartitionMap]:
    """Return every partition's state after the log's last record, and the partition map.

    Args:
        source: A node's folder, or kafka://host:port/topic.
        progress: Is told how many records of how many are counted, now and then.
        without: Issuers whose reports are passed over.
        brokers: How the topic's brokers are reached; None for the address in `source` alone.
        seal_rules: Which seals of a topic are the sealer's; None where all are.

    Raises:
        DeployError: If the log cannot be read, or has lost its first records.
    """
    try:
        if is_topic(source):
            address, topic = _address(source)
            store = _Memory(frozenset(without))
            return asyncio.run(_topic(brokers or address, topic, store, seal_rules, progress))
        with SqliteLog(Path(source) / LOG_FILE, partitions=None) as log:
            skips = _skips(Path(source), log.identity)
            memory, before = _Memory(frozenset(without)), 0
            begins, _ = log.trimmed()
            records = sum(map(log.end, range(log.partitions)))
            for partition in range(log.partitions):
                tell = lambda offset, before=before: progress(before + offset, records)  # noqa: E731 - bound now
                state = memory.load(partition)
                state.offset = begins.get(partition, 0)
                _count(log, partition, state, skips, tell)
                before += state.offset
            return memory.states, log.partition_map
    except (CollectorError, LogError, AggregatorError) as error:
        raise DeployError(f"{source}: {error}") from error


def gone_rounds(source: str) -> frozenset[RoundKey]:
    """Return the rounds of which a node's log let records go."""
    if is_topic(source):
        return frozenset()
    with SqliteLog(Path(source) / LOG_FILE, partitions=None) as log:
        return runners.rounds_of(log.trimmed()[1])


def _skips(folder: Path, log_identity: str) -> Skips:
    """Return the records that a node's operator said to pass over."""
    if not (folder / DEAD_FILE).exists():
        return {}
    with contextlib.closing(SqliteDeadTopic(folder / DEAD_FILE)) as dead:
        return skips_of(dead.records().values(), log_identity)


def _count(
    log: SqliteLog, partition: int, state: PartitionState, skips: Skips, tell: Callable[[int], None]
) -> None:
    state.place(log.partition_map, partition)
    while records := log.read(partition, state.offset, _READ_RECORDS):
        state.commit(next_change(partition, state, records, skips))
        tell(state.offset)


def _address(source: str) -> tuple[str, str]:
    """Return the brokers and the topic of kafka://host:port/topic."""
    parts = urlsplit(source)
    topic = parts.path.removeprefix("/")
    if not parts.netloc or "@" in source or not topic or "/" in topic or parts.query or parts.fragment:
        got = "one with a user" if "@" in source else repr(source)  # a password may follow
        raise DeployError(f"a topic must be given as kafka://host:port/topic, got {got}")
    return parts.netloc, topic


async def _topic(
    bootstrap: str,
    topic: str,
    store: _Memory,
    seal_rules: SealRules | None,
    progress: Callable[[int, int], None],
) -> tuple[States, PartitionMap]:
    from hubbub_topic.kafka import GrowingLog, KafkaDeadTopic  # noqa: PLC0415 - a node has no broker

    # Retention and the like do not matter to who only reads; what is gone is a LostError.
    log = await asyncio.to_thread(GrowingLog, bootstrap, topic, note="read", check="identity")
    with log, KafkaDeadTopic(bootstrap, topic) as dead:
        skips = skips_of((await asyncio.to_thread(dead.records)).values(), log.identity)
        stop, partition_map = asyncio.Event(), log.partition_map
        assignment = Assignment(
            store,
            begin=log.begin,
            end=log.end,
            partition_map=partition_map,
            clock=time.monotonic,
            skips=skips,
            seal_rules=seal_rules,
        )
        stop.set()
        looks = asyncio.create_task(_look(assignment, progress))
        try:
            await runners.count(assignment, bootstrap=bootstrap, partition_map=partition_map, stop=stop)
        finally:
            looks.cancel()
    return store.states, partition_map


async def _look(assignment: Assignment, progress: Callable[[int, int], None]) -> None:
    """Tell how far the counting of a topic is, until cancelled."""
    while True:
        await asyncio.sleep(_LOOK_S)
        found = assignment.progress()
        done = sum(found.offsets.values())
        progress(done, done + sum(found.lags.values()))


class _Memory:
    """A Store that keeps nothing but the states it has given away: whoever counts commits to them."""

    def __init__(self, without: frozenset[str]) -> None:
        self.states: States = {}
        self._without = without

    def load(self, partition: int) -> PartitionState:
        return self.states.setdefault(partition, PartitionState(without=self._without))

    def save(self, partition: int, change: Change) -> None:
        """Do nothing."""

    def verify(self) -> None:
        """Do nothing."""

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        return {}

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Do nothing."""
