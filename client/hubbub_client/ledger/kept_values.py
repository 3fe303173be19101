"""The rows of evolving values that are kept for rounds to be answered, of now and of earlier rounds.

A value of now stands in its row as it is packed, so that it is no array. With values of earlier rounds a row
has an array: the value of now or nil, and for each of them the digest, the round that answers, and the value.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from hubbub import wire
from hubbub.errors import WireError
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.stored import PastValue, StoredValue

SELECT: Final = "SELECT attribute, value, since_s, until_s FROM reading"


def decode_kept_values(rows: Iterable[Sequence[object]]) -> list[StoredValue]:
    """Return the values that rows of `SELECT` hold.

    Raises:
        LedgerCorruptError: If one cannot be read.
    """
    return [_decoded(StoredValue(*row)) for row in rows]  # type: ignore[arg-type]  # STRICT columns


def _decoded(stored: StoredValue) -> StoredValue:
    try:
        found = wire.unpack(stored.value or b"", "kept value")
        if not isinstance(found, list):
            return stored
        value, past = found
        if not (value is None or type(value) is bytes):
            raise ValueError
        return replace(stored, value=value, past=tuple(_past(*each) for each in past))
    except (WireError, TypeError, ValueError):
        raise LedgerCorruptError("a kept value in the ledger cannot be read") from None


def _past(digest: object, round_number: object, value: object) -> PastValue:
    if type(digest) is not bytes or type(round_number) is not int or type(value) is not bytes:
        raise ValueError
    return PastValue(digest, round_number, value)


def write_kept_value(db: sqlite3.Connection, kept: StoredValue) -> None:
    """Write what is kept of an attribute in place of what was; delete the row if nothing is."""
    if kept.value is None and not kept.past:
        db.execute("DELETE FROM reading WHERE attribute = ?", (kept.attribute,))
        return
    packed = wire.pack([kept.value, [list(each) for each in kept.past]]) if kept.past else kept.value
    db.execute(
        "INSERT OR REPLACE INTO reading (attribute, value, since_s, until_s) VALUES (?, ?, ?, ?)",
        (kept.attribute, packed, kept.since_s, kept.until_s),
    )
