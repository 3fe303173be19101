"""Groups of records in place of Faust's single ones: its consumer, and the thread that fetches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import faust
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # it ships no annotations
from aiokafka.errors import (  # type: ignore[import-untyped]  # as above
    CommitFailedError,
    IllegalStateError,
    KafkaError,
)
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer
from faust.types import TP
from faust.types.tuples import ConsumerMessage

# Fetched at a time: so many records or bytes of all partitions together, or whatever has come in a
# twentieth of a second after the first. Twice as many fit no cache: each report costs as much, or more.
DEFAULT_GROUP_RECORDS: Final = 128
GROUP_BYTES: Final = 4 * 2**20
_WITHIN_S: Final = 0.05

Group: TypeAlias = list[tuple[int, bytes]]
"""Records of one partition, (offset, bytes), ascending; never empty."""


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
