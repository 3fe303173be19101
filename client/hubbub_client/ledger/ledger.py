"""The device's privacy ledger: one SQLite file that says what was spent, answered, and waits to be sent.

Every change is one transaction, on disk before the call returns. Triggers keep the rules that must survive a
bug elsewhere: the budget is fixed, the transcript only grows, what was closed stays spent, a high-water mark
never falls, a memoised value stays for its pin version.

This module moves data; what to reserve, answer or send is decided in `schedule` and `uploader`, and
by `Enrolments`, `Values` and `Answerer`, each in a file of its own in `agent`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final, Literal, cast

from hubbub.wire import Outcome
from hubbub_client.errors import LedgerCorruptError
from hubbub_client.ledger.database import Database
from hubbub_client.ledger.stored import (
    SELECT_KEPT,
    SELECT_REFUSALS,
    SpentBudget,
    StoredAnswer,
    StoredAttribute,
    StoredCheck,
    StoredEnrolment,
    StoredRefusal,
    StoredValue,
    decode_kept_values,
    decode_refusals,
    write_kept_value,
    write_refusal,
)
from hubbub_client.ledger.transcript import GENESIS, Kind, TranscriptEntry, closing_checksum, entry_checksum
from hubbub_client.surveys.stored_list import StoredList
from hubbub_client.upload.outcomes import CheckResult
from hubbub_client.upload.uploader import BackoffState, Pending

_KINDS: Final[tuple[Kind, ...]] = ("reserve", "record", "cancel", "resolve")


class Ledger(Database):
    """One open ledger file: everything that a device must not forget; see `Database` for its arguments."""

    def attributes(self) -> list[StoredAttribute]:
        """Return every attribute that was ever registered."""
        rows = self._read("SELECT id, spec, generation, pinned FROM attribute ORDER BY id")
        return [StoredAttribute(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def kept_values(self) -> list[StoredValue]:
        """Return every evolving value that was set for a round still to be answered."""
        return decode_kept_values(self._read(SELECT_KEPT))

    def consents(self) -> dict[str, bool]:
        """Return the owner's answers to surveys and attributes, by subject; see `subject_of` in `policy`."""
        return {cast(str, s): bool(g) for s, g in self._read("SELECT subject, granted FROM consent")}

    def enrolments(self) -> list[StoredEnrolment]:
        """Return every survey that the device takes or took part in, in the order of enrolment."""
        rows = self._read(
            "SELECT digest, canonical, floor, high_water, state, slot_seed FROM enrolment ORDER BY seq"
        )
        return [StoredEnrolment(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def refusals(self) -> list[StoredRefusal]:
        """Return surveys that asked and were refused, the newest first."""
        return decode_refusals(self._read(SELECT_REFUSALS))

    def keep_refusal(self, refusal: StoredRefusal) -> None:
        """Store why a survey was refused, in place of an earlier reason."""
        with self._transaction() as db:
            write_refusal(db, refusal)

    def lists(self) -> list[StoredList]:
        """Return the newest list of surveys seen of every key that was ever pinned."""
        rows = self._read("SELECT key, sequence, digest, judged_s FROM survey_list")
        return [StoredList(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def cancelled(self) -> frozenset[bytes]:
        """Return digests of the surveys that are cancelled for good."""
        return frozenset(cast(bytes, digest) for (digest,) in self._read("SELECT digest FROM cancelled"))

    def paused(self) -> bool:
        """Return whether the owner paused the agent."""
        return bool(self._read("SELECT paused FROM device")[0][0])

    def closed(self) -> SpentBudget:
        """Return what everything before the last `forget` cost."""
        row = self._read("SELECT closed_loss, closed_committed FROM device")[0]
        return SpentBudget(cast(int, row[0]), cast(int, row[1]))

    def transcript(self) -> list[TranscriptEntry]:
        """Return the filter's steps since the last `forget`, oldest first.

        Raises:
            LedgerCorruptError: If a row, or the account of what was closed, was changed or is missing.
        """
        found: list[TranscriptEntry] = []
        chain = GENESIS
        before = self._read("SELECT closed_chain FROM device")[0][0]
        if before is not None:
            closed = self.closed()
            chain = closing_checksum(cast(bytes, before), closed.loss, closed.committed)
        for row in self._read(
            "SELECT kind, ticket, digest, slot, generation, symbol, loss, worst, part_generations "
            "FROM transcript t "
            "JOIN enrolment e ON e.seq = t.enrolment ORDER BY t.seq"
        ):
            kind, bound = _KINDS[cast(int, row[0])], None if row[6] is None else row[6:8]
            found.append(TranscriptEntry(kind, *row[1:6], bound, row[8]))  # type: ignore[arg-type, call-arg]  # STRICT
            chain = entry_checksum(chain, found[-1])
        if chain != self._chain:
            raise LedgerCorruptError(f"ledger {self.path} is damaged: its transcript is not what was written")
        return found

    def answers(self) -> list[StoredAnswer]:
        """Return every answer since the last `forget`, by survey and round."""
        rows = self._read(
            "SELECT digest, round, generation, id, outcome FROM answer "
            "JOIN enrolment ON seq = enrolment ORDER BY seq, round"
        )
        return [StoredAnswer(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def has_unseen(self) -> bool:
        """Return whether an answer was given that its owner has not seen: it waits, or was withdrawn."""
        rows = self._read(
            "SELECT EXISTS (SELECT 1 FROM answer WHERE outcome IS NULL OR outcome = 'withdrawn')"
        )
        return bool(rows[0][0])

    def waiting(self) -> int:
        """Return the number of reports that wait in the outbox."""
        return cast(int, self._read("SELECT count(*) FROM outbox")[0][0])

    def outbox(self, limit: int) -> list[Pending]:
        """Return the oldest reports that wait, at most `limit`."""
        rows = self._read("SELECT id, report FROM outbox ORDER BY seq LIMIT ?", (limit,))
        return [Pending(*row) for row in rows]  # type: ignore[arg-type]  # STRICT columns

    def backoff(self) -> BackoffState:
        """Return the state of the back-off."""
        failures, not_before_s, single = self._read("SELECT failures, not_before_s, single FROM device")[0]
        return BackoffState(cast(int, failures), cast(float, not_before_s), bool(single))

    def add_attribute(self, attribute_id: str, spec: bytes) -> None:
        """Register an attribute."""
        with self._transaction() as db:
            db.execute("INSERT INTO attribute (id, spec) VALUES (?, ?)", (attribute_id, spec))

    def keep_value(self, kept: StoredValue) -> None:
        """Keep an evolving value, of now and of earlier rounds, in place of what was kept of it."""
        with self._transaction() as db:
            write_kept_value(db, kept)

    def set_paused(self, state: Literal["paused", "running"]) -> None:
        """Pause the agent, or let it run."""
        with self._transaction() as db:
            db.execute("UPDATE device SET paused = ?", (int(state == "paused"),))

    def add_enrolment(self, enrolment: StoredEnrolment, reservations: Iterable[TranscriptEntry]) -> None:
        """Write an enrolment with its whole reserved schedule; one that was left before begins again.

        Its seed is written once: one that begins again keeps its own.
        """
        with self._transaction() as db:
            db.execute(
                "INSERT INTO enrolment (digest, canonical, floor, high_water, slot_seed) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
                "state = 'active', floor = excluded.floor, high_water = max(high_water, excluded.high_water)",
                (
                    *(enrolment.digest, enrolment.canonical, enrolment.last_closed, enrolment.high_water),
                    enrolment.slot_seed,
                ),
            )
            db.execute("DELETE FROM refusal WHERE digest = ?", (enrolment.digest,))
            chain = self._append(db, reservations)
        self._chain = chain

    def set_consents(self, consents: Mapping[str, bool], *, leave: Iterable[bytes] = ()) -> None:
        """Keep the owner's answers, and end surveys with them; reports that wait for those are withdrawn.

        Args:
            consents: Subject to yes or no.
            leave: Digests of surveys to leave. What is reserved for them stays reserved.
        """
        with self._transaction() as db:
            for subject, granted in consents.items():
                db.execute("INSERT OR REPLACE INTO consent VALUES (?, ?)", (subject, int(granted)))
            for digest in leave:
                (number,) = db.execute("SELECT seq FROM enrolment WHERE digest = ?", (digest,)).fetchone()
                db.execute(
                    "UPDATE enrolment SET state = 'left' WHERE seq = ? AND state = 'active'", (number,)
                )
                _withdraw(db, number)

    def take_list(
        self, seen: StoredList, *, cancelled: Iterable[bytes] = (), given_back: Iterable[TranscriptEntry] = ()
    ) -> None:
        """Store that a list was seen, end the surveys that it cancels, and cancel their reservations.

        Args:
            seen: The list.
            cancelled: Digests, of surveys that this device knows or does not.
            given_back: The "cancel" rows of their reservations.
        """
        cancelled = tuple(cancelled)
        with self._transaction() as db:
            known = db.execute("SELECT sequence FROM survey_list WHERE key = ?", (seen.key,)).fetchone()
            db.execute(
                "INSERT INTO survey_list VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "sequence = excluded.sequence, digest = excluded.digest, judged_s = excluded.judged_s",
                (seen.key, seen.sequence, seen.digest, seen.judged_s),
            )
            chain = self._append(db, given_back)
            if chain == self._chain and (cancelled or known is None or known[0] < seen.sequence):
                # A copy from before this list, or from before its tombstones, counts as set back.
                db.execute("UPDATE device SET ticks = ticks + 1")
            for digest in cancelled:
                db.execute("INSERT OR IGNORE INTO cancelled VALUES (?)", (digest,))
                for (number,) in db.execute(
                    "SELECT seq FROM enrolment WHERE digest = ?", (digest,)
                ).fetchall():
                    db.execute("UPDATE enrolment SET state = 'cancelled' WHERE seq = ?", (number,))
                    _withdraw(db, number)
        self._chain = chain

    def add_answer(
        self,
        *,
        digest: bytes,
        round_number: int,
        report_id: bytes,
        report: bytes,
        record: TranscriptEntry | None,
        pins: Iterable[tuple[str, bytes]],
        pin_version: int = 0,
        kept: Iterable[StoredValue] = (),
        check: StoredCheck | None = None,
    ) -> None:
        """Write one answer or nothing: memoised values, transcript entry, high-water mark, outbox.

        Args:
            digest: Survey.
            round_number: Round.
            report_id: 16 random bytes.
            report: The finished report, sent as it is at every attempt.
            record: The transcript row that consumes the reservation; None when a memoised symbol is sent
                again.
            pins: Attribute id and encoded value of each that this answer reads first, and so memoises.
            pin_version: Pin version of what it answers for.
            kept: What is kept from now on of evolving values that it read, as for `keep_value`.
            check: A check of it that is to be taken later.
        """
        with self._transaction() as db:
            for attribute_id, value in pins:
                pinned = db.execute(
                    "UPDATE attribute SET pinned = ? WHERE id = ? AND pinned IS NULL", (value, attribute_id)
                )
                if pinned.rowcount != 1:
                    raise LedgerCorruptError(
                        "an answer must read the pinned value, and another one is pinned"
                    )
            chain = self._append(db, () if record is None else (record,))
            db.execute(
                "INSERT INTO answer (enrolment, round, generation, id) "
                "SELECT seq, ?, ?, ? FROM enrolment WHERE digest = ?",
                (round_number, pin_version, report_id, digest),
            )
            db.execute(
                "UPDATE enrolment SET high_water = max(high_water, ?) WHERE digest = ?",
                (round_number, digest),
            )
            db.execute("INSERT INTO outbox (id, report) VALUES (?, ?)", (report_id, report))
            for each in kept:
                write_kept_value(db, each)
            if check is not None:
                db.execute(
                    "INSERT INTO answer_check (enrolment, round, due_s, leaf) "
                    "SELECT seq, ?, ?, ? FROM enrolment WHERE digest = ?",
                    (check.round, check.due_s, check.leaf, digest),
                )
                db.execute("UPDATE enrolment SET checked = 1 WHERE digest = ?", (digest,))
        self._chain = chain

    def was_checked(self, digest: bytes) -> bool:
        """Return whether a check of an answer to a survey was ever made, or is to be."""
        return bool(self._read("SELECT checked FROM enrolment WHERE digest = ?", (digest,))[0][0])

    def next_check(self, now_s: float) -> StoredCheck | None:
        """Return the check that has been due for longest, None where none is."""
        rows = self._read(
            "SELECT digest, c.round, due_s, leaf, outcome IS 'accepted' FROM answer_check c "
            "JOIN enrolment ON seq = c.enrolment LEFT JOIN answer USING (enrolment, round) "
            "WHERE leaf IS NOT NULL AND due_s <= ? ORDER BY due_s LIMIT 1",
            (now_s,),
        )
        return StoredCheck(*rows[0]) if rows else None  # type: ignore[arg-type]  # STRICT columns

    def put_off(self, check: StoredCheck, due_s: float) -> None:
        """Make a check later."""
        with self._transaction() as db:
            db.execute("UPDATE answer_check SET due_s = ? WHERE leaf = ?", (due_s, check.leaf))

    def keep_found(self, check: StoredCheck, found: CheckResult) -> None:
        """Keep what a check found, and erase what was looked for."""
        with self._transaction() as db:
            db.execute("UPDATE answer_check SET leaf = NULL, found = ? WHERE leaf = ?", (found, check.leaf))

    def found(self) -> list[tuple[bytes, int, CheckResult]]:
        """Return survey, round and result of every check that was made, since the last `forget`."""
        rows = self._read(
            "SELECT digest, round, found FROM answer_check JOIN enrolment ON seq = enrolment "
            "WHERE found IS NOT NULL ORDER BY seq, round"
        )
        return cast(list[tuple[bytes, int, CheckResult]], rows)

    def log_size(self, key: bytes) -> int:
        """Return the most entries that a log was seen to have, by its public key."""
        rows = self._read("SELECT size FROM log_seen WHERE key = ?", (key,))
        return cast(int, rows[0][0]) if rows else 0

    def see_log(self, key: bytes, size: int) -> None:
        """Keep that a log has so many entries."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO log_seen VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET size = excluded.size",
                (key, size),
            )

    def memoise_anew(
        self, attribute_id: str, pin_version: int, memoised: bytes, reservations: Iterable[TranscriptEntry]
    ) -> None:
        """Store a corrected value under a new pin version, with the reservations for its answers."""
        with self._transaction() as db:
            db.execute(
                "UPDATE attribute SET generation = ?, pinned = ? WHERE id = ?",
                (pin_version, memoised, attribute_id),
            )
            chain = self._append(db, reservations)
        self._chain = chain

    def forget(self, closed: SpentBudget) -> None:
        """Erase values, answers and the outbox; what they cost stays as one sum.

        Every survey ends, its rounds so far are never answered again, and every yes of the owner is taken
        back; a no stays.

        Args:
            closed: What everything so far cost, at least what was closed before.
        """
        chain = closing_checksum(self._chain, closed.loss, closed.committed)
        with self._transaction() as db:
            db.execute(
                "UPDATE device SET closed = (SELECT coalesce(max(seq), 0) FROM transcript) "
                "WHERE EXISTS (SELECT 1 FROM transcript)"
            )
            db.execute(
                "UPDATE device SET closed_committed = ?, closed_loss = ?, closed_chain = chain, chain = ?, "
                "ticks = ticks + 1",
                (closed.committed, closed.loss, chain),
            )
            db.execute("DELETE FROM outbox")
            db.execute("DELETE FROM transcript")
            db.execute("DELETE FROM answer")
            db.execute("DELETE FROM answer_check")
            db.execute("DELETE FROM reading")
            db.execute("DELETE FROM refusal")
            db.execute("DELETE FROM consent WHERE granted = 1")
            db.execute("UPDATE attribute SET generation = generation + 1, pinned = NULL")
            db.execute("UPDATE enrolment SET floor = high_water")
            db.execute("UPDATE enrolment SET state = 'left' WHERE state = 'active'")
        self._chain = chain

    def _append(self, db: sqlite3.Connection, rows: Iterable[TranscriptEntry]) -> bytes:
        chain = self._chain
        for row in rows:
            chain = entry_checksum(chain, row)
            db.execute(
                "INSERT INTO transcript "
                "(kind, ticket, enrolment, slot, generation, symbol, loss, worst, part_generations) "
                "SELECT ?, ?, seq, ?, ?, ?, ?, ?, ? FROM enrolment WHERE digest = ?",
                (
                    *(_KINDS.index(row.kind), row.ticket, row.slot, row.pin_version, row.symbol),
                    *(row.bound or (None, None)),
                    row.part_versions,
                    row.digest,
                ),
            )
        if chain != self._chain:
            db.execute("UPDATE device SET chain = ?, ticks = ticks + 1", (chain,))
        return chain

    def store_outcomes(self, outcomes: Iterable[tuple[bytes, Outcome]], backoff: BackoffState) -> None:
        """Take answered reports out of the outbox and keep their outcomes.

        An "early" one goes to the end of it instead: the device's clock was ahead, and its round will come.
        """
        with self._transaction() as db:
            for report_id, outcome in outcomes:
                if outcome == "early":
                    row = db.execute("SELECT report FROM outbox WHERE id = ?", (report_id,)).fetchone()
                    if row is not None:  # else it was withdrawn meanwhile
                        db.execute("DELETE FROM outbox WHERE id = ?", (report_id,))
                        db.execute("INSERT INTO outbox (id, report) VALUES (?, ?)", (report_id, row[0]))
                    continue
                db.execute("DELETE FROM outbox WHERE id = ?", (report_id,))
                db.execute("UPDATE answer SET outcome = ? WHERE id = ?", (outcome, report_id))
            self._set_backoff(db, backoff)

    def slow(self, backoff: BackoffState) -> None:
        """Keep a back-off, so that a restart does not forget it."""
        with self._transaction() as db:
            self._set_backoff(db, backoff)

    def _set_backoff(self, db: sqlite3.Connection, backoff: BackoffState) -> None:
        db.execute(
            "UPDATE device SET failures = ?, not_before_s = ?, single = ?",
            (backoff.failures, backoff.not_before_s, int(backoff.single)),
        )


def _withdraw(db: sqlite3.Connection, enrolment: int) -> None:
    """Take what waits to be sent for one enrolment out of the outbox."""
    db.execute("DELETE FROM outbox WHERE id IN (SELECT id FROM answer WHERE enrolment = ?)", (enrolment,))
    db.execute("DELETE FROM answer_check WHERE enrolment = ? AND leaf IS NOT NULL", (enrolment,))
    db.execute(
        "UPDATE answer SET outcome = 'withdrawn' WHERE enrolment = ? AND outcome IS NULL", (enrolment,)
    )
