"""The reading of many partitions by one librdkafka consumer: its owner says which, and from where."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping, Set
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from hubbub_topic.errors import LogError
from hubbub_topic.kafka.consumer import TRANSIENT_READS, consumer, offset_of
from hubbub_topic.kafka.errors import POLL_S

Place: TypeAlias = tuple[str, int]
"""A topic and a partition of it."""

# Errors after which reading is tried again from the same offset; who counts asks the log what is wrong.
_TO_REPEAT: Final = TRANSIENT_READS | {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
# Before the first record shows how large they are.
_FIRST_COUNT: Final = 8


class GroupReader:
    """A consumer that is in no group and reads the partitions of one that is.

    `seek` may be called by any thread while another one reads; what comes from before it is dropped.

    Args:
        bootstrap: Brokers, as host:port,host:port.
    """

    def __init__(self, bootstrap: str) -> None:
        # As aiokafka does, a record's checksum is compared, which this library leaves out unless told to.
        # A group or two may wait: it is as quick as with four times as many, in a quarter of the memory.
        self._consumer = consumer(bootstrap, {"check.crcs": True, "queued.max.messages.kbytes": 4_096})
        self._lock = threading.Lock()
        self._next: dict[Place, int] = {}
        self._assigned: frozenset[Place] = frozenset()
        self._is_moved = False
        self._size = 0.0

    def seek(self, offsets: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on."""
        with self._lock:
            self._next.update(offsets)
            self._is_moved = True

    def read(
        self, places: Set[Place], *, count: int, max_bytes: int, wait_s: float, within_s: float
    ) -> dict[Place, list[tuple[int, bytes]]]:
        """Return records of some partitions, (offset, bytes), as they lie there.

        Args:
            places: The partitions; those that were never sought are left out.
            count: The most records of all of them together.
            max_bytes: So many bytes, and as many more as the last records have, end the reading.
            wait_s: Seconds that the first one may take.
            within_s: Seconds after it, in which others may come.

        Raises:
            LogError: On an error that does not pass.
        """
        with self._lock:
            wanted = {place: at for place, at in self._next.items() if place in places}
            is_moved, self._is_moved = self._is_moved, False
        if is_moved or self._assigned != wanted.keys():
            self._consumer.assign([TopicPartition(*place, at) for place, at in wanted.items()])
            self._assigned = frozenset(wanted)
        found: dict[Place, list[tuple[int, bytes]]] = {}
        likely, left_s, deadline, is_repeated = 1, wait_s, 0.0, False
        while count > 0 and max_bytes > 0 and left_s > 0 and not self._is_moved:
            chunk = self._consumer.consume(min(count, likely), left_s)
            if not chunk:
                break
            for message in chunk:
                if (error := message.error()) is not None:
                    if error.code() not in _TO_REPEAT:
                        raise LogError(f"records cannot be read: {KafkaException(error)}")
                    is_repeated = True
                    continue
                value, place = message.value() or b"", (message.topic() or "", message.partition() or 0)
                found.setdefault(place, []).append((offset_of(message), value))
                count, max_bytes = count - 1, max_bytes - len(value)
                self._size += (len(value) - self._size) / _FIRST_COUNT
            deadline = deadline or time.monotonic() + within_s
            left_s = deadline - time.monotonic()
            likely = math.ceil(max(1, max_bytes) / self._size) if self._size else _FIRST_COUNT
        if is_repeated:
            time.sleep(POLL_S)
        with self._lock:
            self._is_moved |= is_repeated
            # Somebody may have asked meanwhile to read from elsewhere.
            mine = {place: records for place, records in found.items() if self._next[place] == wanted[place]}
            self._next.update({place: records[-1][0] + 1 for place, records in mine.items()})
        return mine

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
