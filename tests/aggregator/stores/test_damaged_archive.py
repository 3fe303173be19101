"""An archive with a changed byte: its release is the one that was put, or refused by name."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hubbub_aggregator.errors import ArchiveError
from hubbub_aggregator.stores import SqliteArchive

KEY = (b"0123456789abcdef", 0)
DOCUMENT = b'{"devices": 4711}'


def test_a_changed_byte_of_the_schema_is_refused_by_name_or_does_no_harm(tmp_path: Path) -> None:
    """SQLite's own message then holds bytes that are no text."""
    with contextlib.closing(SqliteArchive(tmp_path / "whole.sqlite")) as archive:
        archive.put(KEY, DOCUMENT)
    with contextlib.closing(sqlite3.connect(tmp_path / "whole.sqlite")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = (tmp_path / "whole.sqlite").read_bytes()
    begin = whole.index(b"CREATE TABLE release")
    end = whole.index(b"PRIMARY KEY (digest, round)", begin) + 20
    refused = 0
    for place in range(begin - 20, end):
        damaged = tmp_path / f"{place}.sqlite"
        damaged.write_bytes(whole[:place] + b"\xb1" + whole[place + 1 :])
        try:
            with contextlib.closing(SqliteArchive(damaged)) as archive:
                found = archive.get(KEY)
        except ArchiveError:
            refused += 1
        else:
            assert found == DOCUMENT
    assert refused > 20
