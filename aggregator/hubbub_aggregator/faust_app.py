"""Counting on Faust: the one module that touches its internals.

Faust brings group membership, rebalances and a fetcher in a thread of its own. It does not bring durability:
its acknowledgements and committed offsets are a courtesy to Kafka's tools. Where to read on is the store's
word, given to Faust in place of the committed offset at the moment when it seeks after a rebalance; a seek
from an earlier hook would be undone there. Any doubt ends the process.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import traceback
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Literal

import faust
from faust.transport.drivers.aiokafka import Consumer, Transport
from faust.types import TP

from hubbub_aggregator.assignment import Assignment
from hubbub_aggregator.dead_letters import DeadLetters
from hubbub_aggregator.errors import LayoutGrown
from hubbub_aggregator.log import Log
from hubbub_aggregator.store import Store

# Some 20,000 reports where gateways write 300 a batch, or whatever has come in a twentieth of a second.
DEFAULT_GROUP_RECORDS: Final = 64
_WITHIN_S: Final = 0.05
# Records that wait between the fetcher and the counting: with 32,768 reports each, some 200 MB at worst.
_BUFFER_RECORDS: Final = 256
_MAX_FETCH_BYTES: Final = 4 * 2**20  # of a partition; more than the largest record
# A broker that has just come back may not know its topics yet; members that join then are assigned nothing
# until the next look at what topics there are. By itself that is five minutes later.
_METADATA_MS: Final = 5_000
_VERIFY_S: Final = 5.0  # how long a log that was cut, or a record that is gone, may go unnoticed
# Kafka's own least session: a killed worker's partitions rest this long.
DEFAULT_SESSION_S: Final = 6.0


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
) -> faust.App:
    """A Faust app that counts the partitions it is assigned.

    Args:
        log: The topic as a log: its partitions and ends.
        store: Where counts are kept.
        bootstrap: Brokers, as host:port,host:port.
        group: Workers of one group share the partitions.
        instance: A name that a restarted worker has again: it then gets its partitions back without a
            rebalance. None for a new member every time.
        session_s: Seconds after which a silent worker's partitions go to others.
        group_records: The most records that are applied and saved together.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
    """
    assignment = Assignment(
        store,
        begin=log.begin,
        end=log.end,
        keep="open",
        window=log.layout.window,
        clock=time.monotonic,
        dead_letters=dead_letters,
    )
    layout = log.layout
    names = [span.topic for span in layout.spans]
    # A topic's partition and its number in the log.
    numbers = {
        TP(names[span], local): number
        for number in range(layout.partitions)
        for span, local in [layout.place(number)]
    }
    places = {number: place for place, number in numbers.items()}

    class StoreConsumer(Consumer):
        """Reads on from where the store says."""

        async def seek_to_committed(self) -> Mapping[TP, int]:
            try:
                assigned = sorted(numbers[tp] for tp in self.assignment() if tp in numbers)
                # Loading may take seconds; heartbeats come from the consumer's own thread meanwhile.
                loaded = await asyncio.to_thread(assignment.load, assigned)
                offsets = {places[partition]: offset for partition, offset in loaded.items()}
                await self.seek_wait(offsets)
            except Exception:
                _end()
            return offsets

    class StoreTransport(Transport):
        """Makes that consumer."""

        Consumer = StoreConsumer

    class App(faust.App):
        """Uses that transport; `assignment` is what it counts."""

        assignment: Assignment

        def _new_transport(self) -> StoreTransport:
            return StoreTransport(self.conf.broker_consumer, self)

    app = App(
        group,
        broker=";".join(f"kafka://{broker}" for broker in bootstrap.split(",")),
        store="memory://",
        consumer_group_instance_id=instance,
        broker_session_timeout=session_s,
        broker_heartbeat_interval=session_s / 3,
        broker_max_poll_records=group_records,
        consumer_max_fetch_size=_MAX_FETCH_BYTES,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=_BUFFER_RECORDS,
        consumer_metadata_max_age_ms=_METADATA_MS,
        # Faust would make topics of its own for tables and for a leader; there is none of either.
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
    )
    records = app.topic(*names, value_type=bytes, value_serializer="raw", key_serializer="raw")

    async def count(stream: Any) -> AsyncIterator[int]:  # noqa: ANN401 - Faust's streams have no useful type
        try:
            async for events in stream.take_events(group_records, within=_WITHIN_S):
                columns: dict[int, list[tuple[int, bytes]]] = {}
                for event in events:
                    message = event.message
                    number = numbers[message.tp]
                    columns.setdefault(number, []).append((message.offset, message.value or b""))
                for partition, column in columns.items():
                    seek = assignment.take(partition, column)
                    if seek is not None:
                        await app.consumer.seek_wait({places[partition]: seek.offset})
                yield len(events)
        except Exception:
            _end()

    async def let_go(*_: object, **__: object) -> None:
        # What still waits in buffers belongs to others as soon as this returns.
        assignment.let_go()

    async def verify() -> None:
        try:
            # Asks the broker, and counting goes on meanwhile.
            await asyncio.to_thread(assignment.verify)
            if log.partitions != layout.partitions:
                raise LayoutGrown(
                    f"the log has {log.partitions} partitions, this worker knew {layout.partitions}"
                )
        except Exception:
            _end()

    app.assignment = assignment
    app.agent(records, name="count")(count)
    app.timer(_VERIFY_S)(verify)
    app.on_partitions_revoked.connect(let_go)
    return app


def use_event_loop(name: Literal["asyncio", "uvloop"]) -> None:
    """Says what drives the apps that are made from now on.

    Raises:
        ImportError: If uvloop is not installed.
    """
    if name == "uvloop":
        # Not Faust's own switch: it wants to come before every import.
        import uvloop  # noqa: PLC0415 - not everywhere

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())


def run(app: faust.App) -> int:
    """Runs a worker until SIGINT or SIGTERM, which finish the group under way; its exit code."""
    try:
        faust.Worker(app, loglevel="WARNING", redirect_stdouts=False, quiet=True).execute_from_commandline()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    return 0


def _end() -> None:
    """Ends the process on a doubt.

    An agent that raises is restarted by Faust, and what it was given counts as done. Everything in memory can
    be had again from the store and the log, so nothing is tidied up.
    """
    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)
