"""The ledger's tables, the triggers that keep its rules whatever the code above them does.

The budget is fixed, the account of what was closed never falls, the transcript only grows (except that
closing it puts one sum in its place), a high-water mark and the count of changes never fall, a report is not
rewritten, a cancelled survey is never answered or reserved for again, an older list never takes the place of
a newer one, a smaller log never that of a larger. One slot is answered once for one value.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from typing import Final

SCHEMA_VERSION: Final = 7
APPLICATION_ID: Final = 0x48756242
"""Marks the file as a Hubbub ledger, "HubB" in SQLite's header: no other database is taken for one."""

IDENTITY_BYTES: Final = 16

# Tables and columns keep the names they began with; docs/glossary.md has the words of today: reading is a
# kept value, generation a pin version, pinned a memoised value, floor the last closed round, ticks the
# counter, and what begins with closed_ the spent budget. Rows name a survey by its enrolment's number, not
# by its digest: a year of twenty daily surveys stays small.
_SCRIPT: Final = """
CREATE TABLE device (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    budget REAL NOT NULL,
    identity BLOB NOT NULL CHECK (length(identity) = 16),
    chain BLOB NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0,
    closed_loss INTEGER NOT NULL DEFAULT 0,
    closed_committed INTEGER NOT NULL DEFAULT 0,
    closed_chain BLOB,
    key_check BLOB,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    failures INTEGER NOT NULL DEFAULT 0,
    not_before_s REAL NOT NULL DEFAULT 0,
    single INTEGER NOT NULL DEFAULT 0,
    ticks INTEGER
) STRICT;
CREATE TABLE attribute (
    id TEXT PRIMARY KEY,
    spec BLOB NOT NULL,
    generation INTEGER NOT NULL DEFAULT 0,
    pinned BLOB
) STRICT;
CREATE TABLE reading (
    attribute TEXT PRIMARY KEY REFERENCES attribute (id),
    value BLOB NOT NULL,
    since_s REAL NOT NULL,
    until_s REAL NOT NULL
) STRICT;
CREATE TABLE consent (
    subject TEXT PRIMARY KEY,
    granted INTEGER NOT NULL CHECK (granted IN (0, 1))
) STRICT;
CREATE TABLE enrolment (
    seq INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    canonical BLOB NOT NULL,
    floor INTEGER NOT NULL,
    high_water INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'left', 'cancelled')),
    slot_seed BLOB CHECK (slot_seed IS NULL OR length(slot_seed) = 32),
    checked INTEGER NOT NULL DEFAULT 0 CHECK (checked IN (0, 1))
) STRICT;
CREATE TABLE transcript (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind INTEGER NOT NULL CHECK (kind IN (0, 1, 2, 3)),
    ticket INTEGER NOT NULL,
    enrolment INTEGER NOT NULL REFERENCES enrolment (seq),
    slot INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    symbol ANY,
    loss INTEGER,
    worst INTEGER,
    part_generations INTEGER,
    UNIQUE (ticket, kind),
    UNIQUE (enrolment, slot, generation, kind),
    CHECK ((kind IN (1, 3)) = (symbol IS NOT NULL)),
    CHECK ((kind = 3) = (part_generations IS NOT NULL)),
    CHECK ((loss IS NULL) = (worst IS NULL) AND (loss IS NULL OR loss BETWEEN 0 AND worst))
) STRICT;
CREATE UNIQUE INDEX one_answer ON transcript (enrolment, slot, generation) WHERE kind IN (1, 3);
CREATE TABLE answer (
    enrolment INTEGER NOT NULL REFERENCES enrolment (seq),
    round INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    outcome TEXT,
    PRIMARY KEY (enrolment, round)
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE REFERENCES answer (id),
    report BLOB NOT NULL
) STRICT;
CREATE TABLE survey_list (
    key BLOB PRIMARY KEY CHECK (length(key) = 32),
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    judged_s REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE answer_check (
    enrolment INTEGER NOT NULL REFERENCES enrolment (seq),
    round INTEGER NOT NULL,
    due_s REAL NOT NULL,
    leaf BLOB CHECK (length(leaf) = 16),
    found TEXT CHECK (found IN ('counted', 'over quota', 'missing', 'not known')),
    PRIMARY KEY (enrolment, round),
    CHECK ((leaf IS NULL) = (found IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE TABLE log_seen (
    key BLOB PRIMARY KEY CHECK (length(key) = 32),
    size INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE refusal (
    digest BLOB PRIMARY KEY,
    survey_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    epsilon REAL NOT NULL,
    reason TEXT NOT NULL,
    headroom REAL NOT NULL,
    at_s REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE cancelled (
    digest BLOB PRIMARY KEY CHECK (length(digest) = 16)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER budget_is_fixed BEFORE UPDATE OF budget, identity ON device
    BEGIN SELECT RAISE(ABORT, 'the budget is fixed'); END;
CREATE TRIGGER device_stays BEFORE DELETE ON device
    BEGIN SELECT RAISE(ABORT, 'the budget is fixed'); END;
CREATE TRIGGER key_is_fixed BEFORE UPDATE OF key_check ON device WHEN OLD.key_check IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'the device key is fixed'); END;
CREATE TRIGGER account_never_falls BEFORE UPDATE OF closed, closed_loss, closed_committed ON device
WHEN NEW.closed < OLD.closed OR NEW.closed_loss < OLD.closed_loss
OR NEW.closed_committed < OLD.closed_committed OR NEW.closed_committed < NEW.closed_loss
    BEGIN SELECT RAISE(ABORT, 'the account of what was closed never falls'); END;
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
CREATE TRIGGER survey_is_fixed BEFORE UPDATE OF digest, canonical, slot_seed ON enrolment
    BEGIN SELECT RAISE(ABORT, 'an enrolment stays'); END;
CREATE TRIGGER answer_stays BEFORE DELETE ON answer WHEN EXISTS (SELECT 1 FROM transcript)
    BEGIN SELECT RAISE(ABORT, 'an answer stays while its account does'); END;
CREATE TRIGGER answer_is_not_rewritten BEFORE UPDATE OF enrolment, round, generation, id ON answer
    BEGIN SELECT RAISE(ABORT, 'an answer stays'); END;
CREATE TRIGGER transcript_is_not_rewritten BEFORE UPDATE ON transcript
    BEGIN SELECT RAISE(ABORT, 'the transcript only grows'); END;
CREATE TRIGGER transcript_is_not_cut BEFORE DELETE ON transcript WHEN OLD.seq > (SELECT closed FROM device)
    BEGIN SELECT RAISE(ABORT, 'the transcript only grows'); END;
CREATE TRIGGER high_water_never_falls BEFORE UPDATE OF high_water, floor ON enrolment
WHEN NEW.high_water < OLD.high_water OR NEW.floor < OLD.floor
    BEGIN SELECT RAISE(ABORT, 'the high-water mark never falls'); END;
CREATE TRIGGER ticks_never_fall BEFORE UPDATE OF ticks ON device
WHEN OLD.ticks IS NOT NULL AND (NEW.ticks IS NULL OR NEW.ticks < OLD.ticks)
    BEGIN SELECT RAISE(ABORT, 'the count of changes never falls'); END;
CREATE TRIGGER list_stays BEFORE DELETE ON survey_list
    BEGIN SELECT RAISE(ABORT, 'a list that was seen stays seen'); END;
CREATE TRIGGER list_is_not_rolled_back BEFORE UPDATE ON survey_list
WHEN NEW.key IS NOT OLD.key OR NEW.sequence < OLD.sequence
OR (NEW.sequence = OLD.sequence AND (NEW.digest IS NOT OLD.digest OR NEW.judged_s < OLD.judged_s))
    BEGIN SELECT RAISE(ABORT, 'an older list never takes the place of a newer one'); END;
CREATE TRIGGER log_stays BEFORE DELETE ON log_seen
    BEGIN SELECT RAISE(ABORT, 'a log that was seen stays seen'); END;
CREATE TRIGGER log_never_shrinks BEFORE UPDATE ON log_seen WHEN NEW.key IS NOT OLD.key OR NEW.size < OLD.size
    BEGIN SELECT RAISE(ABORT, 'a smaller log never takes the place of a larger one'); END;
CREATE TRIGGER check_stays_done BEFORE UPDATE OF checked ON enrolment WHEN NEW.checked < OLD.checked
    BEGIN SELECT RAISE(ABORT, 'that an answer was checked is never forgotten'); END;
CREATE TRIGGER tombstone_stays BEFORE DELETE ON cancelled
    BEGIN SELECT RAISE(ABORT, 'a cancelled survey stays cancelled'); END;
CREATE TRIGGER tombstone_is_fixed BEFORE UPDATE ON cancelled
    BEGIN SELECT RAISE(ABORT, 'a cancelled survey stays cancelled'); END;
CREATE TRIGGER cancelled_is_not_reserved_for BEFORE INSERT ON transcript WHEN NEW.kind <> 2
AND EXISTS (SELECT 1 FROM cancelled c JOIN enrolment e USING (digest) WHERE e.seq = NEW.enrolment)
    BEGIN SELECT RAISE(ABORT, 'a cancelled survey stays cancelled'); END;
CREATE TRIGGER cancelled_is_not_answered BEFORE INSERT ON answer
WHEN EXISTS (SELECT 1 FROM cancelled c JOIN enrolment e USING (digest) WHERE e.seq = NEW.enrolment)
    BEGIN SELECT RAISE(ABORT, 'a cancelled survey stays cancelled'); END;
CREATE TRIGGER cancelled_is_not_left BEFORE UPDATE OF state ON enrolment
WHEN OLD.state = 'cancelled' AND NEW.state <> 'cancelled'
    BEGIN SELECT RAISE(ABORT, 'a cancelled survey stays cancelled'); END;
CREATE TRIGGER report_is_not_rewritten BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'a report is sent as it was written'); END;
"""


def make(db: sqlite3.Connection, *, budget: float, chain: bytes) -> None:
    """Make the tables of a new ledger, within the caller's transaction."""
    for statement in _statements(_SCRIPT):
        db.execute(statement)
    db.execute(
        "INSERT INTO device (one, budget, identity, chain) VALUES (1, ?, ?, ?)",
        (budget, os.urandom(IDENTITY_BYTES), chain),
    )
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _statements(script: str) -> Iterator[str]:
    """Return a script, one statement at a time.

    `executescript` would commit before it begins, and tear the transaction that all of them belong to.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
