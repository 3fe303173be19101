"""A store in a real file beside a model of it: saved, loaded, killed, failed half-way, set back to a copy.

A save is there whole or not at all, and whatever the store says of its offset, its counts are those of the
records before it: so a worker may read on from there, also from a copy of last week.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from counting_logs import announcement, batch, report_id, segment
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey
from hubbub_aggregator.errors import StoreConflictError
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate
from hubbub_aggregator.stores.sqlite_store import SqliteStore

PARTITIONS = 2
SURVEYS = (Survey.parse(LABELS), Survey.parse(VISITS))
SEEN: Counter[str] = Counter()
"""Deeds of the runs of this process, for the long one to say."""


class Record(NamedTuple):
    """A record of one survey's round 0: some people's reports, its seal, or bytes that are none."""

    kind: str
    survey: int
    people: tuple[int, ...]

    @property
    def data(self) -> bytes:
        survey = SURVEYS[self.survey]
        if self.kind == "seal":
            return encode_record(SealRecord(survey.digest, 0))
        if self.kind == "noise":
            return b"no record"
        return batch(segment(survey, 0, [(report_id(person), person % 5) for person in self.people]))


RECORDS = st.lists(
    st.builds(
        Record,
        st.sampled_from(["reports"] * 12 + ["seal", "noise"]),
        st.integers(0, 1),
        st.lists(st.integers(0, 40), max_size=8).map(tuple),
    ),
    min_size=1,
    max_size=4,
)
Said = tuple[dict[int, tuple[Counter[int], tuple[int, int, int], int | None, int, int]], int, int]


def said_again(log: Sequence[Record]) -> Said:
    """Counts, verdicts, seal, ids and what came after the seal, by survey; dead records; the offset."""
    rounds: dict[int, tuple[Counter[int], tuple[int, int, int], int | None, int, int]] = {}
    for index in range(2):
        people, counts = set[int](), Counter[int]()
        duplicate, late, sealed_at = 0, 0, None
        for place, record in enumerate(log):
            if record.survey != index or record.kind == "noise":
                continue
            if record.kind == "seal":
                sealed_at = len(SURVEYS) + place if sealed_at is None else sealed_at
            elif sealed_at is not None:
                late += len(record.people)
            else:
                for person in record.people:
                    duplicate += person in people
                    counts[person % 5] += person not in people
                    people.add(person)
        if people or sealed_at is not None or late:
            ids = 0 if sealed_at is not None else len(people)
            rounds[index] = +counts, (len(people), duplicate, late), sealed_at, ids, late
    return rounds, sum(record.kind == "noise" for record in log), len(SURVEYS) + len(log)


def found_in(state: PartitionState) -> Said:
    rounds = {}
    for index, survey in enumerate(SURVEYS):
        known = state.rounds.get((survey.digest, 0))
        if known is None or (
            known.verdicts.attempts == known.after_seal.attempts == 0 and known.sealed_at is None
        ):
            continue
        verdicts, after = known.verdicts, known.after_seal
        rounds[index] = (
            Counter({i: n for i, n in enumerate(known.counts.tolist()) if n}),
            (verdicts.accepted, verdicts.duplicate, after.late),
            known.sealed_at,
            0 if known.seen is None else len(known.seen),
            after.attempts,
        )
    return rounds, state.dead, state.offset


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="hubbub-machine-"))
        (self.folder / "store").mkdir()
        self.store = self.opened()
        self.logs: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        self.states = [self.store.load(partition) for partition in range(PARTITIONS)]
        self.gates: dict[RoundKey, PublicationGate] = {}
        self.last: tuple[int, Change] | None = None
        self.backup: tuple[list[int], dict[RoundKey, PublicationGate]] | None = None

    def opened(self) -> SqliteStore:
        return SqliteStore(self.folder / "store" / "counts.sqlite", log_identity="log", partitions=PARTITIONS)

    @initialize()
    def surveys_are_announced(self) -> None:
        for partition, state in enumerate(self.states):
            change = apply_many(state, enumerate(map(announcement, SURVEYS)))
            self.store.save(partition, change)
            state.commit(change)

    def change(self, partition: int, records: list[Record]) -> Change:
        begin = self.states[partition].offset
        return apply_many(self.states[partition], enumerate((record.data for record in records), start=begin))

    def saved(self, partition: int, records: list[Record], change: Change) -> None:
        self.states[partition].commit(change)
        self.logs[partition] += records
        self.last = partition, change

    PLACES = st.integers(0, PARTITIONS - 1)

    @rule(partition=PLACES, records=RECORDS)
    def save(self, partition: int, records: list[Record]) -> None:
        change = self.change(partition, records)
        self.store.save(partition, change)
        self.saved(partition, records, change)
        SEEN["saves"] += 1

    @precondition(lambda self: self.last is not None)
    @rule(elsewhere=st.booleans())
    def save_again(self, elsewhere: bool) -> None:
        assert self.last is not None
        partition, change = self.last
        partition = (partition + elsewhere) % PARTITIONS
        if self.states[partition].offset != change.previous:
            with pytest.raises(StoreConflictError):
                self.store.save(partition, change)
            SEEN["conflicts"] += 1

    @rule(partition=PLACES, records=RECORDS, at=st.integers(0, 3))
    def save_fails_half_way(self, partition: int, records: list[Record], at: int) -> None:
        change, left, write = self.change(partition, records), [at], self.store._save_round

        def failing(*arguments: object) -> None:
            if left[0] == 0:
                raise sqlite3.OperationalError("disk I/O error")
            left[0] -= 1
            write(*arguments)  # type: ignore[arg-type]  # as it was called

        self.store._save_round = failing  # type: ignore[method-assign]
        try:
            self.store.save(partition, change)
        except sqlite3.OperationalError:
            SEEN["failed half-way"] += 1
        else:
            self.saved(partition, records, change)
        finally:
            self.store._save_round = write  # type: ignore[method-assign]

    @rule(partition=PLACES, records=RECORDS, statement=st.integers(1, 16))
    def killed_in_a_save(self, partition: int, records: list[Record], statement: int) -> None:
        change, left = self.change(partition, records), [statement]

        def count(_: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                shutil.copytree(self.folder / "store", self.folder / "copy")

        self.store._db.set_trace_callback(count)
        self.store.save(partition, change)
        if left[0] > 0:
            shutil.copytree(self.folder / "store", self.folder / "copy")
        self.replace_by("copy")
        if self.store.load(partition).offset == change.offset:
            self.saved(partition, records, change)
            SEEN["killed after the save"] += 1
        else:
            self.states = [self.store.load(each) for each in range(PARTITIONS)]
            SEEN["killed before it was whole"] += 1

    def replace_by(self, name: str) -> None:
        self.store.close()
        shutil.rmtree(self.folder / "store")
        (self.folder / name).rename(self.folder / "store")
        self.store = self.opened()

    @rule(survey=st.integers(0, 1), n=st.integers(0, 9), stage=st.sampled_from(["first", "next", "none"]))
    def gate_moves(self, survey: int, n: int, stage: str) -> None:
        key = (SURVEYS[survey].digest, 0)
        tally = AcceptedCounts({0: n, 1: 2 * n}, np.array([n, 0, 1], dtype=np.int64), n + 1)
        known = self.gates.get(key)
        gate = (
            None
            if stage == "none"
            else PublicationGate(None if stage == "first" or known is None else known.pending, tally)
        )
        self.store.save_gates({key: gate})
        self.gates.pop(key, None)
        if gate is not None:
            self.gates[key] = gate

    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = self.opened()
        self.states = [self.store.load(partition) for partition in range(PARTITIONS)]

    @rule()
    def copy_is_kept(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder / "kept", ignore_errors=True)
        shutil.copytree(self.folder / "store", self.folder / "kept")
        self.store = self.opened()
        self.backup = list(map(len, self.logs)), dict(self.gates)

    @precondition(lambda self: self.backup is not None)
    @rule()
    def copy_comes_back(self) -> None:
        """As after a restore: what was counted since is read from the log again, and comes to the same."""
        assert self.backup is not None
        lengths, self.gates = self.backup
        self.backup = None
        self.replace_by("kept")
        self.states = [self.store.load(partition) for partition in range(PARTITIONS)]
        for partition, length in enumerate(lengths):
            assert found_in(self.states[partition]) == said_again(self.logs[partition][:length])
            if records := self.logs[partition][length:]:
                self.logs[partition] = self.logs[partition][:length]
                change = self.change(partition, records)
                self.store.save(partition, change)
                self.saved(partition, records, change)
                SEEN["set back and counted on"] += 1

    @invariant()
    def what_is_loaded_is_what_was_saved(self) -> None:
        for partition, log in enumerate(self.logs):
            expected = said_again(log)
            if self.states[partition].offset:
                assert found_in(self.store.load(partition)) == expected
                assert found_in(self.states[partition]) == expected
        assert self.store.load_gates() == self.gates

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(max_examples=6, stateful_step_count=18)
