"""A batch of uploads: one record per partition, in random order, without the senders; and a budget of bytes.

Pure but for the random source it is given. What makes a record is the reports' own bytes, a verdict for each
and a minute; nothing of a connection or a request reaches this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.numeric import Source
from hubbub.wire import ID_BYTES, Malformed, Outcome, Report, ReportsRecord, Segment, Voucher
from hubbub_collector.admission import Key, Verdict

# In a record, at most: everything of a segment but its columns; a report's id; a symbol that is a number.
_SEGMENT_BYTES: Final = 80
_NUMBER: Final = np.dtype("<u4")
_NUMBER_BYTES: Final = _NUMBER.itemsize
# Of a voucher, everything but the issuer's name.
_VOUCHER_BYTES: Final = 10
# Bytes that one report may add to a batch if its symbol is a number.
LARGEST_ROW: Final = _SEGMENT_BYTES + ID_BYTES + _NUMBER_BYTES


def largest_row(form: np.dtype[np.void]) -> int:
    """Return the bytes that one report of a form may add to a batch, whatever its verdict."""
    return _SEGMENT_BYTES + ID_BYTES + max(_NUMBER_BYTES, form["symbol"].itemsize)


MOST_SEGMENTS: Final = 4096
"""The most segments of one record. The aggregator saves a record as a whole, and its store answers nobody
else meanwhile: some 65 us for every segment of another round."""


def partition_of(report_id: bytes, partitions: int) -> int:
    """Return the partition of a report: the last 8 bytes of its id, big-endian, modulo their number."""
    return int.from_bytes(report_id[8:16], "big") % partitions


@dataclass(slots=True)
class _Column:
    """The reports of one (digest, round) and issuer, and the ids of those refused, by outcome, side by side.

    Each partition gets a segment of it in its record.

    Attributes:
        target_partitions: The partitions that they go to.
        symbols: The symbols side by side in the order of the ids: sets as they are, numbers as four bytes.
        set_bytes: The width of each if they are sets, all of one as they are one survey's; 0 for numbers.
        taken: How many there are, refused ones included.
    """

    target_partitions: range
    ids: bytearray = field(default_factory=bytearray)
    symbols: bytearray = field(default_factory=bytearray)
    set_bytes: int = 0
    refused: dict[Outcome, bytearray] = field(default_factory=dict)
    taken: int = 0


class Batch:
    """The uploads of one linger.

    Everything about a report is stored in the partition of its id, refusals too; what has no id counts as
    unknown in partition 0. The record's minute is that of the newest upload, rounded down.

    Args:
        partitions: How many partitions the log has.
        target_partitions: Return the partitions that the reports of a (digest, round) go to, or, for None,
            those of no known survey; all partitions if absent.

    Attributes:
        attempts: How many reports it has taken, refused ones included.
        size: Bytes that its segments need at most, of all partitions together.
    """

    def __init__(
        self, partitions: int, target_partitions: Callable[[Key | None], range] | None = None
    ) -> None:
        self._target_partitions = target_partitions or (lambda _: range(partitions))
        # Reports of no known survey are under None, and unknown.
        self._columns: dict[tuple[Key | None, Voucher | None], _Column] = {}
        self._without_id = 0
        self._minute = 0
        self.attempts = 0
        self.size = 0

    def add(self, reports: Sequence[Report | Malformed], verdicts: Sequence[Verdict], now_s: float) -> None:
        """Take the reports of an upload, each with its verdict, judged at `now_s` seconds since 1970."""
        # Called for every upload while others wait: where a report lies is worked out later, for all at once.
        self._minute = max(self._minute, int(now_s // 60))
        self.attempts += len(reports)
        for report, (outcome, key, voucher) in zip(reports, verdicts, strict=True):
            column = self._column(key, voucher)
            if isinstance(report, Malformed):
                self._without_id += 1
                continue
            column.taken += 1
            if column.taken <= len(column.target_partitions):
                self.size += _SEGMENT_BYTES + (0 if voucher is None else _VOUCHER_BYTES + len(voucher.issuer))
            if outcome == "accepted":
                symbol = report.symbol
                column.ids += report.id
                if isinstance(symbol, bytes):
                    column.set_bytes = len(symbol)
                else:
                    symbol = symbol.to_bytes(_NUMBER_BYTES, "little")
                column.symbols += symbol
                self.size += ID_BYTES + len(symbol)
            else:
                column.refused.setdefault(outcome, bytearray()).extend(report.id)

    def add_rows(
        self, rows: NDArray[np.void], verdicts: Sequence[Verdict], which: NDArray[np.intp], now_s: float
    ) -> None:
        """Take the reports of many uploads, of which the newest came at `now_s`.

        Args:
            rows: The reports, shape (n,), of any form that has digest, id, round and symbol.
            verdicts: The different verdicts that there are.
            which: Which of them each report gets, shape (n,).
            now_s: Seconds since 1970.
        """
        self._minute = max(self._minute, int(now_s // 60))
        self.attempts += len(rows)
        for place, (outcome, key, _) in enumerate(verdicts):
            chosen = np.flatnonzero(which == place)
            if not len(chosen):
                continue
            column = self._column(key)
            unopened = max(0, len(column.target_partitions) - column.taken)
            self.size += _SEGMENT_BYTES * min(unopened, len(chosen))
            column.taken += len(chosen)
            ids = rows["id"][chosen].tobytes()
            if outcome == "accepted":
                symbols = rows["symbol"][chosen]
                column.set_bytes = symbols.shape[1] if symbols.ndim == 2 else 0
                content = (symbols if column.set_bytes else symbols.astype(_NUMBER)).tobytes()
                column.ids += ids
                column.symbols += content
                self.size += len(ids) + len(content)
            else:
                column.refused.setdefault(outcome, bytearray()).extend(ids)

    def _column(self, key: Key | None, voucher: Voucher | None = None) -> _Column:
        if key is None:
            voucher = None
        column = self._columns.get((key, voucher))
        if column is None:
            column = self._columns[key, voucher] = _Column(self._target_partitions(key))
        return column

    def outcomes(self) -> Counter[Outcome]:
        """Return the number of reports taken, by outcome."""
        found: Counter[Outcome] = Counter({"invalid": self._without_id})
        for column in self._columns.values():
            found["accepted"] += len(column.ids) // ID_BYTES
            for outcome, ids in column.refused.items():
                found[outcome] += len(ids) // ID_BYTES
        return found

    def records(self, source: Source) -> dict[int, ReportsRecord]:
        """Return partition -> its record.

        Reports come in an order drawn from `source`, segments by digest, round and issuer.

        An upload that is alone in its batch is not hidden among others by this: the shuffle is a courtesy on
        top of the noise in every symbol, and no guarantee rests on it.
        """
        unknown: Counter[int] = Counter()
        if (unknown_surveys := self._columns.get((None, None))) is not None:
            for ids in unknown_surveys.refused.values():
                unknown.update(
                    unknown_surveys.target_partitions[place]
                    for place in _places(ids, len(unknown_surveys.target_partitions)).tolist()
                )
            unknown[unknown_surveys.target_partitions[0]] += self._without_id
        segments: dict[int, list[Segment]] = {}
        for key, voucher in sorted(self._columns, key=_order):
            if key is None:
                continue
            for partition, segment in _segments(key, self._columns[key, voucher], source):
                segments.setdefault(partition, []).append(segment)
                segment.voucher = voucher
        return {
            partition: ReportsRecord(self._minute, tuple(segments.get(partition, ())), unknown[partition])
            for partition in sorted(segments.keys() | (+unknown).keys())
        }


def _order(name: tuple[Key | None, Voucher | None]) -> tuple[Key, str, int]:
    key, voucher = name
    issuer, quota = ("", None) if voucher is None else voucher
    return (b"", 0) if key is None else key, issuer, -1 if quota is None else quota


def parts_of(record: ReportsRecord) -> Iterator[ReportsRecord]:
    """Return records of at most MOST_SEGMENTS segments that add up to one, in its order: nearly always 1."""
    for begin in range(0, max(1, len(record.segments)), MOST_SEGMENTS):
        segments = record.segments[begin : begin + MOST_SEGMENTS]
        yield ReportsRecord(record.minute, segments, 0 if begin else record.unknown)


def _places(ids: bytearray, partitions: int) -> NDArray[np.intp]:
    """Return `partition_of` for each of the ids side by side, shape (n,)."""
    ends = np.frombuffer(ids, dtype=">u8").reshape(-1, 2)[:, 1]
    return (ends % np.uint64(partitions)).astype(np.intp)


def _segments(key: Key, column: _Column, source: Source) -> Iterator[tuple[int, Segment]]:
    """Return the column's segments, one for each partition that anything of it lies in."""
    n, partitions = len(column.ids) // ID_BYTES, len(column.target_partitions)
    order = random_order(n, source)
    places = _places(column.ids, partitions)
    # Within a partition the random order stays.
    order = order[np.argsort(places[order], kind="stable")]
    ids = np.frombuffer(column.ids, dtype=np.uint8).reshape(n, ID_BYTES)[order]
    symbols = _stacked(column, n)[order]
    kept = np.bincount(places, minlength=partitions)
    refused = {
        outcome: np.bincount(_places(ids, partitions), minlength=partitions)
        for outcome, ids in column.refused.items()
    }
    taken = sum(refused.values(), start=kept)
    ends = np.cumsum(kept)
    for place in np.flatnonzero(taken).tolist():
        part = slice(int(ends[place] - kept[place]), int(ends[place]))
        yield (
            column.target_partitions[place],
            Segment(
                digest=key[0],
                round=key[1],
                ids=ids[part].tobytes(),
                symbols=symbols[part],
                attempts=int(taken[place]),
                refused={outcome: int(n[place]) for outcome, n in refused.items() if n[place]},
            ),
        )


def _stacked(column: _Column, n: int) -> NDArray[np.unsignedinteger]:
    """Return n symbols: numbers as a column, sets as rows of bytes."""
    if column.set_bytes:
        return np.frombuffer(column.symbols, dtype=np.uint8).reshape(n, column.set_bytes)
    return np.frombuffer(column.symbols, dtype=_NUMBER)


def random_order(n: int, source: Source) -> NDArray[np.intp]:
    """Return a uniformly random permutation of 0..n-1, shape (n,): the order of n distinct random keys."""
    while True:
        keys = np.frombuffer(source.token_bytes(8 * n), dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        ranked = keys[order]
        # Equal keys would keep the order of arrival; draw again, which below 10^5 reports never happens.
        if not (ranked[1:] == ranked[:-1]).any():
            return order


class ByteBudget:
    """A budget of held upload bytes, tested before a body is read.

    Args:
        limit: Most bytes held at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    def has_room(self, size: int) -> bool:
        """Return whether `size` more bytes fit under the bound."""
        return self.held + size <= self.limit

    def take(self, size: int) -> bool:
        """Hold `size` bytes if they fit under the bound, and return whether they did."""
        if not self.has_room(size):
            return False
        self.held += size
        return True

    def give(self, size: int) -> None:
        """Let go of `size` bytes that were taken."""
        self.held -= size
