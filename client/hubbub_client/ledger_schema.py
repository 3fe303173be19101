"""The ledger's tables, and the triggers that keep its rules whatever the code above them does.

The budget is fixed, the transcript only grows, a high-water mark never falls, a pinned value stays for its
generation, a report is not rewritten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x48756242
"""Marks the file as a Hubbub ledger, "HubB" in SQLite's header: no other database is taken for one."""

_SCRIPT: Final = """
CREATE TABLE device (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    budget REAL NOT NULL,
    chain BLOB NOT NULL,
    failures INTEGER NOT NULL DEFAULT 0,
    not_before_s REAL NOT NULL DEFAULT 0,
    single INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE attribute (
    id TEXT PRIMARY KEY,
    spec BLOB NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    pinned BLOB
) STRICT;
CREATE TABLE enrolment (
    seq INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    canonical BLOB NOT NULL,
    high_water INTEGER NOT NULL
) STRICT;
CREATE TABLE transcript (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('reserve', 'record')),
    ticket INTEGER NOT NULL,
    digest BLOB NOT NULL REFERENCES enrolment (digest),
    slot INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    symbol INTEGER,
    UNIQUE (kind, ticket),
    UNIQUE (kind, digest, slot),
    CHECK ((kind = 'record') = (symbol IS NOT NULL))
) STRICT;
CREATE TABLE answer (
    digest BLOB NOT NULL REFERENCES enrolment (digest),
    round INTEGER NOT NULL,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    outcome TEXT,
    PRIMARY KEY (digest, round)
) STRICT;
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE REFERENCES answer (id),
    report BLOB NOT NULL
) STRICT;
CREATE TRIGGER budget_is_fixed BEFORE UPDATE OF budget ON device
    BEGIN SELECT RAISE(ABORT, 'the budget is fixed'); END;
CREATE TRIGGER device_stays BEFORE DELETE ON device
    BEGIN SELECT RAISE(ABORT, 'the budget is fixed'); END;
CREATE TRIGGER attribute_stays BEFORE DELETE ON attribute
    BEGIN SELECT RAISE(ABORT, 'what was registered stays'); END;
CREATE TRIGGER domain_is_fixed BEFORE UPDATE OF id, spec ON attribute
    BEGIN SELECT RAISE(ABORT, 'what was registered stays'); END;
CREATE TRIGGER pin_holds BEFORE UPDATE OF pinned, generation ON attribute
    WHEN NEW.generation < OLD.generation
    OR (NEW.generation = OLD.generation AND OLD.pinned IS NOT NULL AND NEW.pinned IS NOT OLD.pinned)
    BEGIN SELECT RAISE(ABORT, 'a pinned value stays for its generation'); END;
CREATE TRIGGER enrolment_stays BEFORE DELETE ON enrolment
    BEGIN SELECT RAISE(ABORT, 'an enrolment stays'); END;
CREATE TRIGGER survey_is_fixed BEFORE UPDATE OF digest, canonical ON enrolment
    BEGIN SELECT RAISE(ABORT, 'an enrolment stays'); END;
CREATE TRIGGER answer_stays BEFORE DELETE ON answer
    BEGIN SELECT RAISE(ABORT, 'an answer stays'); END;
CREATE TRIGGER answer_is_not_rewritten BEFORE UPDATE OF digest, round, id ON answer
    BEGIN SELECT RAISE(ABORT, 'an answer stays'); END;
CREATE TRIGGER transcript_is_not_rewritten BEFORE UPDATE ON transcript
    BEGIN SELECT RAISE(ABORT, 'the transcript only grows'); END;
CREATE TRIGGER transcript_is_not_cut BEFORE DELETE ON transcript
    BEGIN SELECT RAISE(ABORT, 'the transcript only grows'); END;
CREATE TRIGGER high_water_never_falls BEFORE UPDATE OF high_water ON enrolment WHEN NEW.high_water <
OLD.high_water
    BEGIN SELECT RAISE(ABORT, 'the high-water mark never falls'); END;
CREATE TRIGGER report_is_not_rewritten BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'a report is sent as it was written'); END;
"""


def statements() -> Iterator[str]:
    """What makes a ledger, one statement at a time.

    `executescript` would commit before it begins, and tear the transaction that all of them belong to.
    """
    statement = ""
    for line in _SCRIPT.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
