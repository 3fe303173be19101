"""The log's port, for who writes and who reads: gapless offsets, durable on return.

`SqliteLog` and the logs in `kafka/` fill it. To all of them a record is bytes; what the bytes say is in
docs/wire.md ("The log"), and `hubbub.wire` reads and writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hubbub.wire import PartitionMap


class Log(Protocol):
    """A partitioned, append-only sequence of records.

    Offsets of a partition begin at 0 and have no gaps. Several threads may call it at once. Whatever fails
    raises LogError.
    """

    @property
    def identity(self) -> str:
        """A random name, fixed when the log was made: state built from one log does not continue another."""

    @property
    def partitions(self) -> int:
        """The number of partitions; it may grow, and a number then still means the same partition."""

    @property
    def partition_map(self) -> PartitionMap:
        """The partition map: which partitions the reports of a round belong to."""

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Store the records of every partition named, all or nothing; on return they survive a power cut.

        Args:
            batches: Partition -> its new records, in order.

        Returns:
            Partition -> offset of the first of its new records; partitions without records are absent.

        Raises:
            LogError: If the records are not known to be stored. They may be found in the log after all (a
                crash between writing and knowing), so the sender repeats itself and the reader drops repeats.
        """

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append `record` to every partition, unless that was done for `key` before, in whatever process.

        From then on the survey is announced: whoever reads a partition meets it before any report of it. A
        log without transactions may repeat the record after a crash; readers take a repeat as no change.

        Returns:
            True if the record was appended now, False if it was there.

        Raises:
            LogError: As for `append`.
        """

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return up to `limit` records from `offset` on, each with its offset, in order.

        Fewer than `limit` may come where they are large; none come only at the end.

        Raises:
            LogError: If there is no such partition, `offset` is negative or `limit` is not positive.
        """

    def begin(self, partition: int) -> int:
        """Return the first offset that is still there; the end where none is.

        Raises:
            LogError: If there is no such partition.
        """

    def end(self, partition: int) -> int:
        """Return the offset that the partition's next record will have.

        Raises:
            LogError: If there is no such partition.
        """
