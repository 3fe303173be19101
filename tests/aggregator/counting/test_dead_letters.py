"""What cannot be counted leaves a letter: where it lies and why, not what it holds unless asked for."""

from __future__ import annotations

import base64
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgpack
import numpy as np
import pytest
from counting_logs import MINUTE, MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, decode_record, encode_record
from hubbub_aggregator.counting import counting
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.dead_letters import DeadLetter, KeyedDeadLetters, in_order
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_dead_letters import SqliteDeadTopic
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy import node
from hubbub_deploy.errors import DeployError

HEALTH = Survey.parse(LABELS)
SOUND = batch(segment(HEALTH, 0, [(report_id(i), i % 5) for i in range(30)]))
SECRET = b"the bytes of a stranger"


def half_broken() -> bytes:
    """A record of three segments, the second of which does not decode."""
    fields: Any = msgpack.unpackb(batch(*(segment(HEALTH, 0, [(report_id(n), 1)]) for n in (0, 50, 51))))
    fields[4][1][2] += SECRET
    packed: bytes = msgpack.packb(fields)
    return packed


def letters(*records: bytes) -> tuple[PartitionState, tuple[DeadLetter, ...]]:
    state = PartitionState()
    change = apply_many(state, enumerate(records))
    state.commit(change)
    return state, change.dead_letters


def test_every_kind_of_trouble_has_its_reason_and_position() -> None:
    records = [
        announcement(HEALTH),
        SECRET,
        msgpack.packb([1, 0, SECRET]),
        encode_record(SealRecord(HEALTH.digest, 99)),
        half_broken(),
        b"",
        SOUND,
    ]
    state, found = letters(*records)
    assert [(letter.offset, letter.reason, letter.segments) for letter in found] == [
        (1, "no record", 0),
        (2, "no survey", 0),
        (3, "seal of no round", 0),
        (4, "segments", 1),
        (5, "no record", 0),
    ]
    assert state.dead == 5
    assert [letter.record for letter in found] == [records[letter.offset] for letter in found]
    assert SECRET.decode() not in repr(found)


def test_seals_of_surveys_that_nobody_announced_are_bounded() -> None:
    """A writer without a key could write any number: each would stay, and be looked at with every step."""
    many = [encode_record(SealRecord(n.to_bytes(16, "big"), 0)) for n in range(20_000)]
    state, found = letters(*many)
    assert len(state.rounds) == counting.MOST_UNKNOWN_SEALS == 20_000 - len(found)
    assert {letter.reason for letter in found} == {"seal of no survey"}
    sealed = [announcement(HEALTH), encode_record(SealRecord(HEALTH.digest, 0)), *many[:1000]]
    change = apply_many(state, enumerate(sealed, len(many)))
    assert change.rounds[HEALTH.digest, 0].sealed_at == 20_001
    assert change.dead == 0  # those that are kept may come again


@pytest.mark.parametrize("group", [1, 3, 400])
def test_which_seals_are_kept_does_not_depend_on_how_records_come_together(
    group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "MOST_UNKNOWN_SEALS", 5)
    random = np.random.default_rng(9)
    surveys = [Survey.parse(LABELS.replace("version = 1", f"version = {n}")) for n in range(1, 9)]
    known, kept, dead, records = set[bytes](), set[tuple[bytes, int]](), [], []
    for offset in range(400):
        survey, number = surveys[random.integers(0, 8)], int(random.integers(0, 3))
        key = (survey.digest, number)
        if random.random() < 0.02:
            known.add(survey.digest)
            records.append(announcement(survey))
            continue
        records.append(encode_record(SealRecord(*key)))
        if survey.digest in known or key in kept or sum(each[0] not in known for each in kept) < 5:
            kept.add(key)
        else:
            dead.append(offset)
    state, found = PartitionState(), []
    for start in range(0, 400, group):
        change = apply_many(state, enumerate(records[start : start + group], start))
        state.commit(change)
        found += [letter.offset for letter in change.dead_letters]
    assert (state.rounds.keys(), found) == (kept, dead)
    assert len(known) > 3
    assert len(dead) > 50


def test_one_broken_segment_does_not_condemn_its_batch() -> None:
    state, _ = letters(announcement(HEALTH), half_broken(), SOUND)
    tally = state.rounds[HEALTH.digest, 0].verdicts
    assert (tally.accepted, tally.duplicate) == (
        31,
        1,
    )  # report 0 is in both records, 50 in none that decodes


def test_decoder_that_is_not_asked_to_go_on_refuses_the_whole_record() -> None:
    broken: list[int] = []
    decode_record(half_broken(), broken=broken)
    assert broken == [1]
    with pytest.raises(ValueError, match="segment must hold"):
        decode_record(half_broken())


class KeptInMemory:
    """A topic in a dictionary that may refuse."""

    def __init__(self) -> None:
        self.kept: dict[bytes, bytes] = {}
        self.refuses = False

    def put(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        if self.refuses:
            raise OSError("no room")
        self.kept.update(records)


@pytest.mark.parametrize("payload", ["none", "whole"])
def test_bytes_come_along_only_where_the_operator_said_so(payload: Literal["none", "whole"]) -> None:
    topic = KeptInMemory()
    KeyedDeadLetters(topic, log_identity="a log", payload=payload).put(
        3, [DeadLetter(17, "no record", record=SECRET)]
    )
    assert topic.kept.keys() == {b"a log/3/17"}
    (letter,) = in_order(topic.kept.values())
    record = letter.pop("record", None)
    assert letter == {"log": "a log", "partition": 3, "offset": 17, "reason": "no record", "segments": 0}
    assert record == (base64.b64encode(SECRET).decode() if payload == "whole" else None)


def test_letters_are_kept_before_their_records_count_as_read() -> None:
    topic, store = KeptInMemory(), MemoryStore()

    def assigned() -> Assignment:
        assignment = Assignment(
            store,
            end=lambda _: 3,
            clock=lambda: 0.0,
            dead_letters=KeyedDeadLetters(topic, log_identity="log"),
        )
        assignment.load([0])
        return assignment

    records = list(enumerate([announcement(HEALTH), SECRET, SOUND]))
    topic.refuses = True
    with pytest.raises(OSError, match="no room"):
        assigned().process(0, records)
    assert store.load(0).offset == 0
    topic.refuses = False
    assigned().process(0, records)
    assert store.load(0).offset == 3
    # Read again by a worker whose save did not happen: the same letter, not a second one.
    store._states.clear()
    store._keys.clear()
    assigned().process(0, records)
    assert topic.kept.keys() == {b"log/0/1"}


def test_node_keeps_letters_in_a_file(tmp_path: Path) -> None:
    log, archive = MemoryLog(), SqliteArchive(":memory:")
    log.append({0: [announcement(HEALTH), SECRET], 1: [half_broken()]})
    topic = SqliteDeadTopic(tmp_path / "dead.sqlite")
    for _ in range(2):  # the second time as if the store had been lost
        worker = Worker(
            log,
            MemoryStore(),
            archive=archive,
            view=LiveView(),
            clock=lambda: 60.0 * MINUTE,
            dead_letters=KeyedDeadLetters(topic, log_identity=log.identity),
        )
        while worker.step():
            pass
    archive.close()
    topic.close()
    topic = SqliteDeadTopic(tmp_path / "dead.sqlite")
    found = [
        (letter["partition"], letter["offset"], letter["reason"])
        for letter in in_order(topic.records().values())
    ]
    topic.close()
    assert found == [(0, 1, "no record"), (1, 0, "segments")]
    assert SECRET not in (tmp_path / "dead.sqlite").read_bytes()


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dead.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="file of dead letters"):
        SqliteDeadTopic(tmp_path / "dead.sqlite")


def test_another_applications_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "dead.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE cats (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"must be a file of dead letters: it has the tables cats"):
        SqliteDeadTopic(path)
    assert path.read_bytes() == before
    empty = tmp_path / "empty" / "dead.sqlite"
    empty.parent.mkdir()
    empty.touch()
    with pytest.raises(DeployError, match="must be a node's file of dead letters"):
        node.dead_letters(empty.parent)
    assert empty.read_bytes() == b""
