"""A log that takes no more records once its file is as large as was allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hubbub.wire import PartitionMap
from hubbub_topic.errors import LogError
from hubbub_topic.sqlite import SqliteLog


class BoundedLog:
    """A `Log` that passes everything on to another, but for records beyond a size.

    Give it to who writes reports. Seals must go to the log itself: without them no round ends, and nothing
    could ever be deleted to make room.

    Args:
        log: The log.
        max_bytes: The bytes of the file that hold something, past which `append` fails.
    """

    def __init__(self, log: SqliteLog, max_bytes: int) -> None:
        self._log, self._max_bytes = log, max_bytes

    @property
    def identity(self) -> str:
        """The log's identity."""
        return self._log.identity

    @property
    def partitions(self) -> int:
        """The log's number of partitions."""
        return self._log.partitions

    @property
    def partition_map(self) -> PartitionMap:
        """The log's partition map."""
        return self._log.partition_map

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Store all records, as `Log.append` does.

        Raises:
            LogError: If the file is as large as was allowed, or as for `Log.append`.
        """
        if (size := self._log.size_bytes) >= self._max_bytes:
            raise LogError(f"the log must stay below log_max_bytes = {self._max_bytes}, got {size}")
        return self._log.append(batches)

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append `record` to every partition once per `key`, whatever the size."""
        return self._log.publish_survey(key, record)

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return records as the log does."""
        return self._log.read(partition, offset, limit)

    def begin(self, partition: int) -> int:
        """Return the log's first offset."""
        return self._log.begin(partition)

    def end(self, partition: int) -> int:
        """Return the log's next offset."""
        return self._log.end(partition)
