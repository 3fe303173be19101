"""A well-formed record ends no aggregator: tallies are bounded, extremes of every field are counted."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgpack
import pytest
from counting_logs import MINUTE, MemoryLog, announcement, batch, report_id, segment
from extreme_records import BOUND, HEALTH, UNARY, VISITED, extreme
from surveys import START_S

from hubbub.errors import HubbubError
from hubbub.wire.record import NO_ROUND, ReportsRecord, SealRecord, decode_record, encode_record
from hubbub.wire.report import MAX_ROUND
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_deploy.commands.replay.log_replay import releases


def raw(minute: int, unknown: int, *segments: list[object]) -> bytes:
    """The bytes of a Reports record whatever its fields."""
    packed: bytes = msgpack.packb([1, 1, minute, unknown, list(segments)])
    return packed


def refusals(*tallies: int, number: int = NO_ROUND) -> list[object]:
    return [HEALTH.digest, number, b"", 1, b"", sum(tallies), list(tallies)]


def test_tallies_of_a_record_are_at_most_2_to_the_31_together() -> None:
    at_most = raw(MINUTE, 5, refusals(BOUND - 8, 1, 1, 0), refusals(1, 0, 0, 0, number=0))
    assert isinstance(decode_record(at_most), ReportsRecord)
    beyond = raw(MINUTE, 6, refusals(BOUND - 8, 1, 1, 0), refusals(1, 0, 0, 0, number=0))
    for broken in (None, []):
        with pytest.raises(HubbubError, match="tallies must be at most 2147483648 together, got 2147483649"):
            decode_record(beyond, broken=broken)
    record = decode_record(at_most)
    assert isinstance(record, ReportsRecord)
    with pytest.raises(HubbubError, match="tallies must be at most"):
        encode_record(ReportsRecord(MINUTE, record.segments, 6))


def test_a_record_has_at_most_16384_segments() -> None:
    """One of 50,000 kept a store, which answers nobody else meanwhile, busy for 3.3 s."""
    at_most = raw(MINUTE, 0, *[refusals(1, 0, 0, 0, number=i) for i in range(16384)])
    record = decode_record(at_most)
    assert isinstance(record, ReportsRecord)
    assert encode_record(record) == at_most
    more = refusals(1, 0, 0, 0, number=16384)
    for broken in (None, []):
        with pytest.raises(HubbubError, match="record must have at most 16384 segments, got 16385"):
            decode_record(raw(MINUTE, 0, *[more] * 16385), broken=broken)
    with pytest.raises(HubbubError, match="record must have at most 16384 segments"):
        encode_record(ReportsRecord(MINUTE, (*record.segments, record.segments[0])))
    state = PartitionState()
    state.commit(apply_many(state, enumerate([announcement(HEALTH), raw(MINUTE, 0, *[more] * 16385)])))
    assert (state.offset, state.rounds) == (2, {})


class Node:
    """A worker on SQLite, which starts anew on the same store as often as a test likes."""

    def __init__(self, folder: Path) -> None:
        self.log = MemoryLog(partitions=1)
        self.archive, self.view = SqliteArchive(folder / "archive.sqlite"), LiveView()
        self.store = SqliteStore(folder / "store.sqlite", log_identity=self.log.identity, partitions=1)

    def count(self) -> None:
        """Counts to the end, and once more from what was stored: a poison ends a worker for ever."""
        for _ in range(2):
            worker = Worker(
                self.log,
                self.store,
                archive=self.archive,
                view=self.view,
                clock=lambda: START_S + 40 * 86400.0,
            )
            while worker.step() or not worker.is_caught_up:
                pass
            worker.step()

    def close(self) -> None:
        self.store.close()
        self.archive.close()


def test_record_whose_tallies_pass_every_integer_is_a_dead_letter(tmp_path: Path) -> None:
    node = Node(tmp_path)
    huge = raw(MINUTE, 0, *[refusals(2**53 - 1, 0, 0, 0, number=0)] * 1025)
    sound = batch(segment(HEALTH, 0, [(report_id(i), i % 5) for i in range(200)], late=2))
    node.log.append({0: [announcement(HEALTH), huge, sound, huge]})
    node.count()
    shown = node.view.snapshot()
    node.close()
    assert shown["dead"] == 2
    assert shown["accounting"]["attempts"] == 202
    assert min(shown["accounting"].values()) >= 0


@pytest.mark.parametrize("seed", range(12))
def test_extremes_of_every_field_end_nothing_and_account_for_every_attempt(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the records of a test
    node = Node(tmp_path)
    surveys = [announcement(survey) for survey in (HEALTH, VISITED, UNARY)]
    records = [extreme(dice) for _ in range(150)]
    node.log.append({0: [*surveys[:2], *records[:50], surveys[2], *records[50:]]})
    node.count()
    shown = json.loads(json.dumps(node.view.snapshot(), allow_nan=False))
    node.close()
    attempts = 0
    for record in map(decode_record, records):
        if isinstance(record, ReportsRecord):
            attempts += record.unknown + sum(segment.attempts for segment in record.segments)
    assert shown["accounting"]["attempts"] + shown["unknown"] == attempts
    assert min(shown["accounting"].values()) >= 0
    assert all(type(number) is int for number in shown["accounting"].values())
    for survey in shown["surveys"]:
        for each in survey["rounds"]:
            assert sum(each["accounting"].values()) == 2 * each["accounting"]["attempts"]


@pytest.mark.parametrize("number", [HEALTH.rounds, MAX_ROUND])
def test_seal_before_its_survey_of_a_round_that_there_is_not_releases_nothing(
    tmp_path: Path, number: int
) -> None:
    node = Node(tmp_path)
    records = [
        encode_record(SealRecord(HEALTH.digest, number)),
        announcement(HEALTH),
        batch(segment(HEALTH, 0, [(report_id(i), i % 5) for i in range(200)])),
        encode_record(SealRecord(HEALTH.digest, 0)),
    ]
    node.log.append({0: records})
    node.count()
    released = node.archive.get((HEALTH.digest, 0))
    (shown,) = node.view.snapshot()["surveys"]
    node.close()
    assert [each["round"] for each in shown["rounds"]] == [1]
    state = PartitionState()
    state.commit(apply_many(state, enumerate(records)))
    replayed = releases({0: state}, {HEALTH.digest: HEALTH}, node.log.partition_map)
    assert replayed == {(HEALTH.digest, 0): released}
