"""A log of several Kafka topics, one after another, by which a cluster gets more partitions.

The partitions that a topic's reports are placed in never change. Their number is noted in the metadata
topic beside it when it is made, or at the first start; what somebody adds later (`kafka-topics --alter`)
stays empty. To grow is to make another topic and to note that rounds which start at or after some moment
lie there. That moment is far enough ahead that every process has read the note before the first report of
such a round can come: each one looks every few seconds, and what cannot look cannot write.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, Literal, Self

from hubbub.errors import HubbubError
from hubbub.wire import PartitionMap, TopicPeriod
from hubbub_topic.errors import LogError
from hubbub_topic.kafka.log import DEFAULT_IDENTITY_S, KafkaLog
from hubbub_topic.kafka.producer import DELIVERY_TIMEOUT_S

_NOTE: Final = b"layout"
# A process may have looked just before the note, may linger over a batch, and its clock may run behind: ten
# seconds each, and half a minute to spare.
MIN_LEAD_S: Final = DEFAULT_IDENTITY_S + DELIVERY_TIMEOUT_S + 40.0


class GrowingLog:
    """A Log over all topics of a partition map; it takes up a new one by itself.

    Args:
        bootstrap: Brokers, as host:port,host:port.
        topic: The first topic, whose metadata topic names the others.
        layout_s: Seconds between two looks whether there is another topic.
        note: "write" notes the partitions of a topic that has no note of them yet; "read" is for commands
            that change nothing.
        options: Those of KafkaLog.

    Raises:
        LogError: If a topic is not there, is not the one that was noted, or has settings that lose records.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        layout_s: float = DEFAULT_IDENTITY_S,
        note: Literal["write", "read"] = "write",
        **options: Any,  # noqa: ANN401 - as KafkaLog's
    ) -> None:
        self._bootstrap, self._options, self._layout_s = bootstrap, options, layout_s
        first = KafkaLog(bootstrap, topic, **options)
        self._logs = [first]
        self._announced: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        try:
            noted = self._noted()
            if noted is not None and noted.periods[0].identity == first.identity:
                first.keep_to(noted.periods[0].partitions)
            elif noted is None and note == "write":
                first.note(_NOTE, _encoded(first.partition_map))
            self._partition_map = first.partition_map
            self._look()
        except BaseException:
            self.close()
            raise

    @property
    def identity(self) -> str:
        """The first topic's id: it stays when the log grows."""
        return self._logs[0].identity

    @property
    def partition_map(self) -> PartitionMap:
        """The topics as they are known now."""
        return self._partition_map

    @property
    def partitions(self) -> int:
        """The number of partitions in all topics; it may grow."""
        return self._partition_map.partitions

    def _look(self) -> None:
        """Take up topics that were added.

        Raises:
            LogError: If nobody can say, or what was known is not the beginning of what is noted.
        """
        partition_map = self._noted()
        self._looked = time.monotonic()
        if partition_map is None:
            return
        if not partition_map.continues(self._partition_map):
            raise LogError(
                f"the layout must continue {self._partition_map.periods}, got {partition_map.periods}"
            )
        for period in partition_map.periods[len(self._logs) :]:
            log = self._opened(period)
            # Surveys that this process announced while the other one wrote the note.
            for key, record in self._announced.items():
                log.publish_survey(key, record)
            self._logs.append(log)
        self._partition_map = partition_map

    def _noted(self) -> PartitionMap | None:
        """Return the partition map that the metadata topic holds, or None.

        Raises:
            LogError: If nobody can say, or the note is none.
        """
        noted = self._logs[0].notes().get(_NOTE)
        if noted is None:
            return None
        try:
            return PartitionMap(tuple(TopicPeriod(**period) for period in json.loads(noted)))
        except (HubbubError, ValueError, TypeError) as error:
            raise LogError(f"the note of a layout must be one: {error}") from error

    def _opened(self, period: TopicPeriod) -> KafkaLog:
        """Return the log of a period's topic, with the partitions that the map states.

        Raises:
            LogError: If it is another topic, or has fewer.
        """
        log = KafkaLog(self._bootstrap, period.topic, **self._options)
        try:
            if log.identity != period.identity:
                raise LogError(f"topic {period.topic} must be {period.identity}, got {log.identity}")
            log.keep_to(period.partitions)
        except LogError:
            log.close()
            raise
        return log

    def _look_again(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked >= self._layout_s:
                self._look()

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Produce all records, and wait until all copies in sync have them; see Log.append."""
        self._look_again()
        parts: dict[int, dict[int, Sequence[bytes]]] = {}
        for partition, records in batches.items():
            number, local = self._place(partition)
            parts.setdefault(number, {})[local] = records
        stored = {}
        for number, part in parts.items():
            first = self._partition_map.partitions_at(self._partition_map.periods[number].from_s).start
            for local, offset in self._logs[number].append(part).items():
                stored[first + local] = offset
        return stored

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append `record` to every partition of every topic that does not have it; see Log.publish_survey."""
        self._look_again()
        with self._lock:
            self._announced[key] = record
            return sum(log.publish_survey(key, record) for log in self._logs) > 0

    def published_surveys(self) -> list[bytes]:
        """Return every survey record that was published, whatever retention has deleted."""
        return self._logs[0].published_surveys()

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to `limit` records from `offset` on; see Log.read."""
        number, local = self._place(partition)
        return self._logs[number].read(local, offset, limit)

    def begin(self, partition: int) -> int:
        """Return the first offset that retention has left; the end where it has left none."""
        number, local = self._place(partition)
        return self._logs[number].begin(local)

    def end(self, partition: int) -> int:
        """Return the offset after the last record that all copies in sync have."""
        self._look_again()
        number, local = self._place(partition)
        return self._logs[number].end(local)

    def _place(self, partition: int) -> tuple[int, int]:
        try:
            return self._partition_map.place(partition)
        except HubbubError as error:
            raise LogError(str(error)) from error

    def grow(self, log: KafkaLog, *, from_s: int) -> PartitionMap:
        """Note that rounds which start at or after `from_s` lie in `log`, and publish every survey there.

        The caller makes sure that `from_s` is far enough ahead; see `least_start`.

        Raises:
            LogError: If the note cannot be written, or `from_s` is not after the start of the last topic
                period.
        """
        period = TopicPeriod(from_s, log.partition_map.periods[0].topic, log.partitions, log.identity)
        with self._lock:
            self._look()
            try:
                partition_map = self._partition_map.grown(period)
            except HubbubError as error:
                raise LogError(str(error)) from error
            for key, record in self._logs[0].surveys_by_key().items():
                log.publish_survey(key, record)
            self._logs[0].note(_NOTE, _encoded(partition_map))
            self._look()
        return self._partition_map

    def close(self) -> None:
        """Wait for appends under way, and close every connection; closing twice is harmless."""
        for log in self._logs:
            log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _encoded(partition_map: PartitionMap) -> bytes:
    return json.dumps([asdict(period) for period in partition_map.periods]).encode()


def least_start(now_s: Callable[[], float], skew_s: float) -> int:
    """Return the earliest moment, seconds since 1970, from which a new topic may be in force.

    Args:
        now_s: The time.
        skew_s: The most that any survey lets a device's clock be ahead.
    """
    return int(now_s() + skew_s + MIN_LEAD_S) + 1
