"""The rows of a log in SQLite: their keys, their checksums, and the cut that takes the first of them away."""

from __future__ import annotations

import sqlite3
import zlib
from dataclasses import dataclass
from typing import Final

from hubbub_topic.errors import LogError

# A row's key is partition * 2^40 + offset: one integer primary key, in reading order. 2^40 records of a
# partition last a thousand years at 35 a second.
OFFSET_BITS: Final = 40
OFFSET_MASK: Final = 2**OFFSET_BITS - 1


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut through one partition.

    Attributes:
        before: Records below this offset go.
        kept: Bodies that take the last places below it: what whoever reads from the cut on must know.
    """

    before: int
    kept: tuple[bytes, ...] = ()


def positions(partition: int, offset: int) -> tuple[int, int]:
    """Return the first and the last key of a partition's records from an offset on."""
    base = partition << OFFSET_BITS
    return base + offset, base + OFFSET_MASK


def checksum(position: int, body: bytes) -> int:
    """Return the CRC-32 of a record's position and body."""
    return zlib.crc32(body, zlib.crc32(position.to_bytes(8, "big")))


def cut(con: sqlite3.Connection, partition: int, where: Cut) -> int:
    """Delete a partition's first records within a transaction, and return its first offset after it.

    Raises:
        LogError: If the cut is not within what the partition holds, or leaves no place for what is kept.
    """
    begin = where.before - len(where.kept)
    first, last = positions(partition, 0)
    (least, most) = con.execute(
        "SELECT min(position), max(position) FROM record WHERE position BETWEEN ? AND ?", (first, last)
    ).fetchone()
    if least is None or not least & OFFSET_MASK <= begin <= where.before <= (most & OFFSET_MASK) + 1:
        raise LogError(
            f"partition {partition}: a cut must lie within the records that are there, got {where.before}"
        )
    con.execute("DELETE FROM record WHERE position BETWEEN ? AND ?", (first, first + begin - 1))
    for place, body in enumerate(where.kept, first + begin):
        con.execute(
            "UPDATE record SET body = ?, checksum = ? WHERE position = ?",
            (body, checksum(place, body), place),
        )
    return begin
