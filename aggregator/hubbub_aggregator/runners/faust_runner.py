"""Counting on Faust: the one module that touches its internals.

Faust brings group membership, rebalances and a fetcher in a thread of its own. It does not bring durability:
its acknowledgements and committed offsets are a courtesy to Kafka's tools. The store decides where to read
on: Faust is given its offset in place of the committed one at the moment when it seeks after a rebalance; a
seek from an earlier hook would be undone there. Any invariant violation ends the process.

An event costs Faust a few hundred microseconds whatever it holds. So its fetcher gathers, and one event is a
group: records of one partition that are applied and saved together, under the offset of the last.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import faust
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # it ships no annotations
from aiokafka.errors import (  # type: ignore[import-untyped]  # as above  # type: ignore[import-untyped]  # as above
    CommitFailedError,
    IllegalStateError,
    KafkaError,
)
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from hubbub_aggregator.counting.dead_letters import DeadLetters
from hubbub_aggregator.counting.seals import SealRules
from hubbub_aggregator.counting.skipping import Skips
from hubbub_aggregator.errors import PartitionMapGrownError, SupersededError, is_foreseen, last_words
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.stores.store import Store
from hubbub_topic import Log
from hubbub_topic.kafka import security_of

# Fetched at a time: so many records or bytes of all partitions together, or whatever has come in a
# twentieth of a second after the first. Twice as many fit no cache: each report costs as much, or more.
DEFAULT_GROUP_RECORDS: Final = 128
GROUP_BYTES: Final = 4 * 2**20
_WITHIN_S: Final = 0.05

Group: TypeAlias = list[tuple[int, bytes]]
"""Records of one partition, (offset, bytes), ascending; never empty."""

# Groups that wait between the fetcher and the counting.
_BUFFER_GROUPS: Final = 4
_MAX_FETCH_BYTES: Final = 4 * 2**20  # of a partition; more than the largest record
# A broker that has just come back may not know its topics yet; members that join then are assigned nothing
# until the next look at what topics there are. By itself that is five minutes later.
_METADATA_MS: Final = 5_000
_VERIFY_S: Final = 5.0  # how long a log that was cut, or a record that is gone, may go unnoticed
# An orderly end takes a second or two; the partitions of a worker that ends otherwise rest for one session.
STOP_S: Final = 10.0
# Kafka's own least session: a killed worker's partitions rest this long.
DEFAULT_SESSION_S: Final = 6.0


class CountingApp(faust.App):
    """A Faust app that counts.

    Attributes:
        assignment: The partitions that it counts.
    """

    assignment: Assignment


def _credentials(bootstrap: str) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """Return what the brokers ask for as Faust has it, None for nothing."""
    asked = security_of(bootstrap)
    if asked.user is not None:
        return faust.SASLCredentials(
            username=asked.user,
            password=asked.password,
            ssl_context=asked.context,
            mechanism=asked.mechanism,
        )
    return None if asked.ca is None else faust.SSLCredentials(asked.context)


def create_app(
    log: Log,
    store: Store,
    *,
    bootstrap: str,
    group: str = "hubbub-aggregator",
    instance: str | None = None,
    session_s: float = DEFAULT_SESSION_S,
    group_records: int = DEFAULT_GROUP_RECORDS,
    dead_letters: DeadLetters | None = None,
    skips: Skips | None = None,
    seal_rules: SealRules | None = None,
) -> CountingApp:
    """Return a Faust app that counts the partitions it is assigned.

    Args:
        log: The topic as a log: its partitions and ends.
        store: Where counts are kept.
        bootstrap: Brokers, as host:port,host:port.
        group: Workers of one group share the partitions.
        instance: A name that a restarted worker has again: it then gets its partitions back without a
            rebalance. None for a new member every time.
        session_s: Seconds after which a silent worker's partitions go to others.
        group_records: The most records that are fetched, and those of a partition saved, together.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
        skips: The records that an operator said to pass over.
        seal_rules: Which seals are the sealer's; None where all are.
    """
    assignment = Assignment(
        store,
        begin=log.begin,
        end=log.end,
        keep="open",
        partition_map=log.partition_map,
        clock=time.monotonic,
        dead_letters=dead_letters,
        skips=skips,
        seal_rules=seal_rules,
    )
    partition_map = log.partition_map
    names = [period.topic for period in partition_map.periods]
    # A topic's partition and its number in the log.
    numbers = {
        TP(names[period], local): number
        for number in range(partition_map.partitions)
        for period, local in [partition_map.place(number)]
    }
    places = {number: place for place, number in numbers.items()}
    seeking = asyncio.Lock()

    class StoreConsumer(GroupConsumer):
        """A consumer that reads on from the offset that the store gives."""

        async def seek_to_committed(self) -> Mapping[TP, int]:
            # The recovery after a rebalance and the fetcher both seek. Were one to overtake the other
            # as a rebalance does, the recovery would wait for an assignment that never comes.
            async with seeking:
                return await self._seek_to_stored()

        async def _seek_to_stored(self) -> Mapping[TP, int]:
            generation = assignment.revoke()
            try:
                assigned = sorted(numbers[tp] for tp in self.assignment() if tp in numbers)
                # Loading may take seconds; heartbeats come from the consumer's own thread meanwhile.
                loaded = await asyncio.to_thread(assignment.load, assigned, generation)
                offsets = {places[partition]: offset for partition, offset in loaded.items()}
                await self.seek_wait(offsets)
            except IllegalStateError:  # Faust waits for the next assignment then
                raise
            except Exception as error:
                # In a rebalance a seek may fail, or last too long, in other ways, too.
                if isinstance(error, SupersededError) or assignment.generation != generation:
                    raise IllegalStateError(f"a rebalance came before the seek was done: {error}") from error
                _end()
            return offsets

    class StoreTransport(Transport):
        """A transport that makes that consumer."""

        Consumer = StoreConsumer

    class App(CountingApp):
        """An app that uses that transport."""

        def _new_transport(self) -> StoreTransport:
            return StoreTransport(self.conf.broker_consumer, self)

        def _create_directories(self) -> None:
            """Make none: Faust's are for tables, and the working directory may belong to somebody else."""

    app = App(
        group,
        broker=";".join(f"kafka://{broker}" for broker in bootstrap.split(",")),
        broker_credentials=_credentials(bootstrap),
        store="memory://",
        consumer_group_instance_id=instance,
        broker_session_timeout=session_s,
        broker_heartbeat_interval=session_s / 3,
        broker_max_poll_records=group_records,
        consumer_max_fetch_size=_MAX_FETCH_BYTES,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=_BUFFER_GROUPS,
        consumer_metadata_max_age_ms=_METADATA_MS,
        # Faust would make topics of its own for tables and for a leader; there is none of either.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
    )
    groups = app.topic(*names, schema=GroupSchema())

    async def count(stream: Any) -> AsyncIterator[int]:  # noqa: ANN401 - Faust's streams have no useful type
        try:
            async for event in stream.events():
                place, group = event.message.tp, event.value
                # A partition that somebody added to a topic: no report belongs there.
                if place not in numbers:
                    continue
                seek = assignment.process(numbers[place], group)
                if seek is not None:
                    generation = assignment.generation
                    try:
                        await app.consumer.seek_wait({place: seek.offset})
                    except Exception as error:
                        # The next owner of the partition reads on from where the store says.
                        if not isinstance(error, IllegalStateError) and assignment.generation == generation:
                            raise
                yield len(group)
        except Exception:
            _end()

    async def revoked(*_: object, **__: object) -> None:
        # Records still in buffers belong to others as soon as this returns.
        assignment.revoke()

    async def verify() -> None:
        try:
            # Asks the broker, and counting goes on meanwhile.
            await asyncio.to_thread(assignment.verify)
            if log.partitions != partition_map.partitions:
                raise PartitionMapGrownError(
                    f"the log has {log.partitions} partitions, this worker knew {partition_map.partitions}"
                )
        except Exception:
            _end()

    app.assignment = assignment
    app.agent(groups, name="count")(count)
    app.timer(_VERIFY_S)(verify)
    app.on_partitions_revoked.connect(revoked)
    return app


def use_event_loop(name: Literal["asyncio", "uvloop"]) -> None:
    """Set the event loop of the apps that are made from now on.

    Raises:
        ImportError: If uvloop is not installed.
    """
    if name == "uvloop":
        # Not Faust's own switch: it wants to come before every import.
        import uvloop  # noqa: PLC0415 - not everywhere

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


class _WorkerThatEnds(faust.Worker):
    """A worker that ends within STOP_S of a signal: nothing that is counted waits for an orderly end."""

    def _schedule_shutdown(self, signal: Any) -> None:  # noqa: ANN401 - an enumeration of the signal module
        last = threading.Timer(STOP_S, _end_anyway)
        last.daemon = True
        last.start()
        super()._schedule_shutdown(signal)


def _end_anyway() -> None:
    """End a process whose shutdown stands still, as it may where a rebalance was under way."""
    sys.stderr.write(
        f"the worker did not stop within {STOP_S:g} s and ends now; the store has all it counted\n"
    )
    sys.stderr.flush()
    os._exit(0)


def run(app: faust.App) -> int:
    """Run a worker until SIGINT or SIGTERM, which finish the group under way, and return its exit code."""
    try:
        # A host's own handlers get Faust's logs, too.
        own = not logging.getLogger().handlers
        worker = _WorkerThatEnds(
            app, loglevel="WARNING", redirect_stdouts=False, quiet=True, override_logging=own
        )
        worker.spinner = None  # its control characters would stand in the log, `quiet` or not
        worker.execute_from_commandline()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    return 0


def _end() -> None:
    """End the process on the error that is being handled, and say which in the last line.

    An agent that raises is restarted by Faust, and what it was given counts as done. Everything in memory can
    be had again from the store and the log, so nothing is tidied up.
    """
    error = sys.exc_info()[1]
    assert error is not None  # noqa: S101 - called where one is handled
    if not is_foreseen(error):
        traceback.print_exc()
    sys.stderr.write(f"hubbub: the aggregator stopped: {last_words(error)}; the store has all it saved\n")
    sys.stderr.flush()
    os._exit(1)


class GroupSchema(faust.Schema[None, Group]):
    """A schema that leaves a message's value as it is: a group."""

    def loads_value(self, app: Any, message: Any, **_: Any) -> Group:  # noqa: ANN401 - Faust's own types vary
        """Return the group."""
        group: Group = message.value
        return group


class GroupThread(AIOKafkaConsumerThread):
    """A consumer thread that fetches groups where Faust fetches records."""

    async def _fetch_records(
        self,
        consumer: Any,  # noqa: ANN401 - aiokafka ships no annotations
        active_partitions: set[TP],
        timeout: float | None = None,
        max_records: int | None = None,
    ) -> dict[TP, list[Group]]:
        groups: dict[TP, list[Group]] = {}
        records, size, due = max_records or 1, GROUP_BYTES, None
        while records > 0 and size > 0:
            # Nothing comes where time has run out, and where a rebalance has begun.
            fetched = await super()._fetch_records(consumer, active_partitions, timeout, records)
            if not fetched:
                break
            for place, found in fetched.items():
                group = [(record.offset, record.value or b"") for record in found]
                records -= len(group)
                size -= sum(len(value) for _, value in group)
                known = groups.setdefault(place, [])
                # Somebody may have asked meanwhile to read something again.
                if known and known[-1][-1] < group[0]:
                    known[-1] += group
                else:
                    known.append(group)
            now = time.monotonic()
            due = due or now + _WITHIN_S
            timeout = max(0.0, due - now)
        return groups

    async def _seek_wait(
        self,
        consumer: Any,  # noqa: ANN401 - aiokafka ships no annotations
        partitions: Mapping[TP, int],
    ) -> None:
        # Between two assignments aiokafka would fail an assertion.
        if gone := partitions.keys() - self.assignment():
            raise IllegalStateError(f"partitions must be assigned to be sought, {sorted(gone)} are not")
        await super()._seek_wait(consumer, partitions)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Store those of these offsets that are still assigned, and return whether it was done.

        Faust would end the process where a rebalance took all of them, or the broker refuses. Nothing reads
        these offsets but Kafka's tools: the store says where to read on.
        """
        held = self.assignment()
        mine = {place: offset for place, offset in offsets.items() if place in held}
        if not mine:
            return False
        self.tp_last_committed_at.update(dict.fromkeys(mine, time.monotonic()))
        try:
            await self._ensure_consumer().commit({TopicPartition(*tp): (at, "") for tp, at in mine.items()})
        except (CommitFailedError, IllegalStateError):  # a rebalance has begun
            return False
        except KafkaError as error:
            self.log.warning("Offsets were not committed, for Kafka's tools to see: %s", error)
            return False
        return True


class _NothingRead(dict[TP, int | None]):
    """An empty stand-in for Faust's notes of what it read last, by which it would drop what is read again."""

    def __getitem__(self, tp: TP) -> int | None:
        return None


class GroupConsumer(Consumer):
    """A consumer that hands each group on as one record, under the offset of its last record.

    Repeats and holes are the assignment's to see.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - handed on as it is
        super().__init__(*args, **kwargs)
        self._read_offset = _NothingRead()

    def _new_consumer_thread(self) -> GroupThread:
        return GroupThread(self, loop=self.loop, beacon=self.beacon)

    def _to_message(self, tp: TP, record: Group) -> ConsumerMessage:
        """Return a group as one message, at the offset of its last record.

        To Faust a group is a single record: the offset that it commits is the end of what is done with.
        """
        last_offset, _ = record[-1]
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            last_offset,
            timestamp=0.0,
            timestamp_type=0,
            headers={},
            key=None,
            value=record,  # type: ignore[arg-type]  # the schema knows it
            checksum=None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )

    def _new_offset(self, tp: TP) -> int | None:
        # Groups are done with in their order: nothing before the last one's end is open.
        acked, self._acked[tp] = self._acked[tp], []
        self._acked_index[tp].clear()
        return max(acked) + 1 if acked else None

    def on_buffer_full(self, tp: TP) -> None:
        """Do nothing: all partitions share one queue, and the fetcher waits for room in it.

        Faust would let the partition rest instead, and sleep for a second when all of them do.
        """
