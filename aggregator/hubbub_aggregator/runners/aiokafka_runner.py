"""Counting without a framework: one aiokafka consumer for all partitions, on the same assignment as Faust's.

It serves one worker that needs no group, the replay of a topic, and measurements of what a framework costs.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped]  # it ships no annotations
from aiokafka.errors import OffsetOutOfRangeError  # type: ignore[import-untyped]  # as above

from hubbub.wire import PartitionMap
from hubbub_aggregator.errors import GapError
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_topic.kafka import aiokafka_options

# As with Faust: fewer cost more for each report, and more than that gains nothing.
DEFAULT_GROUP_RECORDS: Final = 128
_WAIT_MS: Final = 100  # how long a fetch may wait for news before `stop` is looked at again
_MAX_FETCH_BYTES: Final = 4 * 2**20  # of a partition; more than the largest record
_VERIFY_S: Final = 5.0  # how long a log that was cut, or a record that is gone, may go unnoticed


async def count(
    assignment: Assignment,
    *,
    bootstrap: str,
    partition_map: PartitionMap,
    stop: asyncio.Event,
    group_records: int = DEFAULT_GROUP_RECORDS,
) -> None:
    """Count every partition until `stop` is set, and then what the log still holds.

    Args:
        assignment: The partitions, which it counts and saves.
        bootstrap: Brokers, as host:port,host:port.
        partition_map: The log's topics and which partitions lie in them.
        stop: Ends it; set from the outset, it counts what is there.
        group_records: The most records of a partition that are applied and saved together.

    Raises:
        AggregatorError: On any invariant violation; what was saved is right, and a new process goes on from
            there.
    """
    places = {}
    for number in range(partition_map.partitions):
        period, local = partition_map.place(number)
        places[number] = TopicPartition(partition_map.periods[period].topic, local)
    numbers = {place: number for number, place in places.items()}
    consumer = AIOKafkaConsumer(
        **aiokafka_options(bootstrap),
        enable_auto_commit=False,
        auto_offset_reset="none",  # a record that is gone is a GapError, never a leap
        max_partition_fetch_bytes=_MAX_FETCH_BYTES,
        max_poll_records=group_records,
    )
    await consumer.start()
    try:
        consumer.assign(list(places.values()))
        following = assignment.load(places)
        for partition, offset in following.items():
            consumer.seek(places[partition], offset)
        clock = asyncio.get_running_loop().time
        verified = clock()
        ends = None
        while ends is None or any(following[numbers[place]] < end for place, end in ends.items()):
            try:
                found = await consumer.getmany(timeout_ms=_WAIT_MS)
            except OffsetOutOfRangeError as error:
                await asyncio.to_thread(assignment.verify)  # says what is lost
                raise GapError(f"the next record must be there to be read, got {error}") from error
            for place, messages in found.items():
                records = [(message.offset, message.value or b"") for message in messages]
                number = numbers[place]
                seek = assignment.process(number, records)
                following[number] = records[-1][0] + 1 if seek is None else seek.offset
                if seek is not None:
                    consumer.seek(place, seek.offset)
            if stop.is_set() and ends is None:
                ends = await consumer.end_offsets(list(places.values()))
            if clock() - verified > _VERIFY_S:
                # Asks the broker; nothing else runs here that would have to wait.
                await asyncio.to_thread(assignment.verify)
                verified = clock()
    finally:
        await consumer.stop()
