"""What the aggregator asks of a log; whoever keeps the log need not know the aggregator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hubbub.layout import Layout


class Log(Protocol):
    """A partitioned log of records, offsets without holes, from 0 in every partition."""

    @property
    def identity(self) -> str:
        """What tells this log from every other one; it never changes."""
        ...

    @property
    def partitions(self) -> int:
        """How many partitions it has; it may grow, and a number then still means the same partition."""
        ...

    @property
    def layout(self) -> Layout:
        """Which partitions the reports of a round lie in."""
        ...

    def append(self, records: Mapping[int, list[bytes]], /) -> object:
        """Adds records to partitions, all or none, durable on return."""
        ...

    def read(self, partition: int, offset: int, limit: int, /) -> Sequence[tuple[int, bytes]]:
        """At most `limit` records from `offset` on, as (offset, bytes)."""
        ...

    def begin(self, partition: int, /) -> int:
        """The first offset that is still there; the end where none is."""
        ...

    def end(self, partition: int, /) -> int:
        """The offset that the next record will have."""
        ...
