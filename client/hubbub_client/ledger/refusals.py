"""The rows of surveys that asked and were refused; the newest alone are kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from typing import Final

from hubbub_client.ledger.stored import StoredRefusal

MAX_REFUSALS: Final = 64
"""Refusals kept, the newest: a collector that serves thousands of surveys must not fill the disk."""

SELECT: Final = (
    "SELECT digest, survey_id, version, title, epsilon, reason, headroom, at_s FROM refusal "
    "ORDER BY at_s DESC, digest"
)

_UNTOLD: Final = -1.0
"""In the column of a refusal's headroom: not told, because it could have told an answer."""


def decode_refusals(rows: Iterable[Sequence[object]]) -> list[StoredRefusal]:
    """Return the refusals that rows of `SELECT` hold."""
    kept = [StoredRefusal(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns
    return [replace(one, headroom=None) if one.headroom == _UNTOLD else one for one in kept]


def write_refusal(db: sqlite3.Connection, refusal: StoredRefusal) -> None:
    """Write a refusal in place of what was said of its survey before, and drop the oldest."""
    told = replace(refusal, headroom=_UNTOLD) if refusal.headroom is None else refusal
    db.execute("INSERT OR REPLACE INTO refusal VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(told))
    db.execute(
        "DELETE FROM refusal WHERE digest NOT IN "
        "(SELECT digest FROM refusal ORDER BY at_s DESC, digest LIMIT ?)",
        (MAX_REFUSALS,),
    )
