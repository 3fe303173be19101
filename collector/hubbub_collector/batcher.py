"""What the uploads of one linger become: one record per partition, in random order, without their senders.

Pure but for the random source it is given. What makes a record is the reports' own bytes, a verdict for each
and a minute; nothing of a connection or a request reaches this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channel import Symbol
from hubbub.randomness import Source
from hubbub.records import ReportsRecord, Segment
from hubbub.wire import ID_BYTES, Malformed, Report
from hubbub_collector.admission import Key, Verdict

# In a record, at most: everything of a segment but its columns; a report's id; a symbol that is a number.
_SEGMENT_BYTES: Final = 80
_NUMBER_BYTES: Final = 4


def partition_of(report_id: bytes, partitions: int) -> int:
    """Where a report belongs: the last 8 bytes of its id, big-endian, modulo the number of partitions."""
    return int.from_bytes(report_id[8:16], "big") % partitions


@dataclass(slots=True)
class _Column:
    """The reports of one (digest, round) in one partition, in order of arrival, and their refusals."""

    ids: list[bytes] = field(default_factory=list)
    symbols: list[Symbol] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


class Batch:
    """The uploads of one linger.

    Everything about a report is stored in the partition of its id, refusals too; what has no id counts as
    unknown in partition 0. The record's minute is that of the newest upload, rounded down.

    Args:
        partitions: How many partitions the log has.
        home: Which of them the reports of a (digest, round) go to, or those of none; all if absent.

    Attributes:
        attempts: How many reports it has taken, refused ones included.
        size: Bytes that its segments need at most, of all partitions together.
    """

    def __init__(self, partitions: int, home: Callable[[Key | None], range] | None = None) -> None:
        self._home, self._homes = home or (lambda _: range(partitions)), dict[Key | None, range]()
        self._columns: list[dict[Key, _Column]] = [{} for _ in range(partitions)]
        self._unknown = [0] * partitions
        self._minute = 0
        self.attempts = 0
        self.size = 0

    def add(self, reports: Sequence[Report | Malformed], verdicts: Sequence[Verdict], now_s: float) -> None:
        """Takes the reports of an upload, each with its verdict, judged at `now_s` seconds since 1970."""
        self._minute = max(self._minute, int(now_s // 60))
        self.attempts += len(reports)
        for report, verdict in zip(reports, verdicts, strict=True):
            if isinstance(report, Malformed):
                self._unknown[self._home_of(None)[0]] += 1
                continue
            home = self._home_of(verdict.key)
            partition = home[partition_of(report.id, len(home))]
            if verdict.key is None:
                self._unknown[partition] += 1
                continue
            column = self._columns[partition].get(verdict.key)
            if column is None:
                column = self._columns[partition][verdict.key] = _Column()
                self.size += _SEGMENT_BYTES
            if verdict.outcome == "accepted":
                column.ids.append(report.id)
                column.symbols.append(report.symbol)
                symbol = report.symbol
                self.size += ID_BYTES + (len(symbol) if isinstance(symbol, bytes) else _NUMBER_BYTES)
            else:
                column.refused[verdict.outcome] += 1

    def _home_of(self, key: Key | None) -> range:
        home = self._homes.get(key)
        if home is None:
            home = self._homes[key] = self._home(key)
        return home

    def records(self, source: Source) -> dict[int, ReportsRecord]:
        """Partition -> its record; reports in an order drawn from `source`, segments by digest and round.

        An upload that is alone in its batch is not hidden among others by this: the shuffle is a courtesy on
        top of the noise in every symbol, and no guarantee rests on it.
        """
        found = {}
        for partition, (columns, unknown) in enumerate(zip(self._columns, self._unknown, strict=True)):
            if columns or unknown:
                segments = tuple(_segment(key, columns[key], source) for key in sorted(columns))
                found[partition] = ReportsRecord(self._minute, segments, unknown)
        return found


def _segment(key: Key, column: _Column, source: Source) -> Segment:
    n = len(column.ids)
    order = random_order(n, source)
    ids = np.frombuffer(b"".join(column.ids), dtype=np.uint8).reshape(n, ID_BYTES)
    symbols = _stacked(column.symbols)
    return Segment(
        digest=key[0],
        round=key[1],
        ids=ids[order].tobytes(),
        symbols=symbols[order],
        attempts=n + column.refused.total(),
        refused=dict(column.refused),
    )


def _stacked(symbols: Sequence[Symbol]) -> NDArray[np.unsignedinteger]:
    """Numbers as a column, sets as rows of bytes; one survey's symbols are all of one type and width."""
    sets = [symbol for symbol in symbols if isinstance(symbol, bytes)]
    if sets:
        return np.frombuffer(b"".join(sets), dtype=np.uint8).reshape(len(symbols), -1)
    return np.array(symbols, dtype=np.uint32)


def random_order(n: int, source: Source) -> NDArray[np.intp]:
    """A uniformly random permutation of 0..n-1, shape (n,): the order of n distinct random 64-bit keys."""
    while True:
        keys = np.frombuffer(source.token_bytes(8 * n), dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        # Equal keys would keep the order of arrival; draw again, which below 10^5 reports never happens.
        if not (ranked[1:] == ranked[:-1]).any():
            return order


class ByteBudget:
    """How many bytes of uploads are held, against a bound that is tested before a body is read.

    Args:
        limit: Most bytes held at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def take(self, size: int) -> bool:
        """Holds `size` bytes if they fit under the bound; says whether they did."""
        if self.held + size > self.limit:
            return False
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Lets go of `size` bytes that were taken."""
        self.held -= size
