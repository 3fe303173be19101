"""Tidy rows as JSON lines: an object per row, typed, with null for what is not there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

_PIECE_BYTES: Final = 64 * 2**10


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield a JSON object per row and line, in pieces of some 64 KiB.

    Args:
        rows: What `tidy_rows` gives.
    """
    piece = bytearray()
    for row in rows:
        text = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        piece += text.encode() + b"\n"
        if len(piece) >= _PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)
