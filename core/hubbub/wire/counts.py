"""The public counts of a release: one encoding of the integers that its numbers are functions of.

A MessagePack array of seven,

    ["hubbub-counts", 1, digest, round, kind, n, data],

with the survey's digest, the round from 0, how to read the cells, the reports counted, and every cell as
LEB128: seven bits a byte, the lowest first, the top bit set in all but the last. There is one encoding of
every count, so equal counts have equal bytes and one SHA-256.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_WEIGHTS, CountsKind
from hubbub.errors import WireError
from hubbub.wire.packing import pack, unpack
from hubbub.wire.report import DIGEST_BYTES

MAX_CELLS: Final = MAX_WEIGHTS
"""The most cells of a round's counts: as many as a channel has symbols at most."""

_NAME: Final = "hubbub-counts"
_LAYOUT: Final = 1
_MOST: Final = 2**63 - 1
_SUBJECT: Final = "public counts"


@dataclass(frozen=True, slots=True, eq=False)
class PublicCounts:
    """The counts of one sealed round, for everybody.

    Attributes:
        digest: The survey's digest, 16 bytes.
        round: The round, from 0.
        kind: How the cells read.
        n: Reports counted.
        cells: The counts, shape (cells,), int64, each 0 to n.
    """

    digest: bytes
    round: int
    kind: CountsKind
    n: int
    cells: NDArray[np.int64]

    def statement(self) -> dict[str, object]:
        """Return what a release says of them: kind, number of cells and the SHA-256 of their bytes."""
        sha256 = hashlib.sha256(encode_counts(self)).hexdigest()
        return {"kind": self.kind, "cells": len(self.cells), "sha256": sha256}


def encode_counts(counts: PublicCounts) -> bytes:
    """Return the bytes of counts.

    Raises:
        WireError: If a cell is not within 0 to n.
    """
    cells = counts.cells.tolist()
    if not cells or min(cells) < 0 or max(cells) > counts.n:
        raise WireError(f"{_SUBJECT} must be cells within 0 to n = {counts.n}, got others or none")
    data = b"".join(map(_leb128, cells))
    return pack([_NAME, _LAYOUT, counts.digest, counts.round, counts.kind, counts.n, data])


def decode_counts(data: bytes) -> PublicCounts:
    """Return the counts of bytes, which may come from anybody.

    Raises:
        WireError: If they are not the one encoding of counts.
    """
    fields = unpack(data, _SUBJECT)
    if not isinstance(fields, list) or len(fields) != 7 or fields[:2] != [_NAME, _LAYOUT]:
        raise WireError(f"{_SUBJECT} must be an array of seven that begins with {_NAME!r} and {_LAYOUT}")
    digest, number, kind, n, packed = fields[2:]
    if type(digest) is not bytes or len(digest) != DIGEST_BYTES or type(packed) is not bytes:
        raise WireError(f"{_SUBJECT} must have a digest of {DIGEST_BYTES} bytes, and cells as bytes")
    if type(number) is not int or type(n) is not int or not (0 <= number <= _MOST and 1 <= n <= _MOST):
        raise WireError(f"{_SUBJECT} must have a round from 0 and at least one report")
    if kind not in get_args(CountsKind):
        raise WireError(f"{_SUBJECT} must be of one of the kinds {', '.join(get_args(CountsKind))}")
    counts = PublicCounts(digest, number, kind, n, _cells(packed, n))
    if encode_counts(counts) != data:
        raise WireError(f"{_SUBJECT} must be in their one encoding, got a longer one")
    return counts


def _leb128(cell: int) -> bytes:
    found = bytearray()
    while cell >= 0x80:
        found.append(cell & 0x7F | 0x80)
        cell >>= 7
    found.append(cell)
    return bytes(found)


def _cells(packed: bytes, n: int) -> NDArray[np.int64]:
    """Return the cells of their bytes, shape (cells,)."""
    raw = np.frombuffer(packed, dtype=np.uint8)
    last = np.flatnonzero(raw < 0x80)
    if not 1 <= len(last) <= MAX_CELLS or last[-1] != len(raw) - 1:
        raise WireError(f"{_SUBJECT} must have 1 to {MAX_CELLS} cells, the last one whole")
    starts = np.append(0, last[:-1] + 1)
    lengths = last - starts + 1
    if int(lengths.max()) > 9:
        raise WireError(f"{_SUBJECT} must have cells within 0 to n, got one above 2^63")
    places = np.arange(len(raw)) - np.repeat(starts, lengths)
    parts = (raw & 0x7F).astype(np.int64) << (7 * places)
    cells = np.add.reduceat(parts, starts)
    if int(cells.max()) > n:
        raise WireError(f"{_SUBJECT} must have cells within 0 to n = {n}, got a larger one")
    return cells
