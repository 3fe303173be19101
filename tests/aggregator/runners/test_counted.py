"""Lists of counted reports: each report is judged by itself here, and every replay gives the same list."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counting_logs import MINUTE, MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.transparency import CountedTiles, Entry, found_in, tile_of
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.runners.counted import CountedBuilder, RecordsGoneError, RoundReports
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.transparency import TransparencyLog
from hubbub_aggregator.web.view import LiveView

HEALTH = Survey.parse(LABELS)


def leaf(survey: Survey, number: int, identifier: bytes, symbol: int) -> bytes:
    """A leaf by the words of its definition; symbols of these tests are below 128."""
    told = b"hubbub counted\0" + survey.digest + number.to_bytes(4, "big") + identifier + bytes([symbol])
    return hashlib.sha256(told).digest()[:16]


class Folder:
    """A log that is counted, an archive and a log of what was published."""

    def __init__(self, path: Path) -> None:
        self.path, self.log = path, MemoryLog()
        self.entries = TransparencyLog(path / "transparency.sqlite")
        self.now_s = 0.0

    def count(self, survey: Survey) -> None:
        with contextlib.closing(SqliteArchive(self.path / "archive.sqlite")) as archive:
            worker = Worker(
                self.log,
                MemoryStore(),
                archive=archive,
                view=LiveView(),
                clock=lambda: survey.round_end_s(0) + survey.lateness_s + 60.0,
                entries=self.entries,
                read_records=3,
            )
            for _ in range(200):
                worker.step()
            assert archive.rounds()

    def rounds(self, log: MemoryLog | None = None) -> CountedBuilder:
        return CountedBuilder(
            self.entries,
            lambda: contextlib.closing(SqliteArchive(self.path / "archive.sqlite")),
            lambda: contextlib.nullcontext(log or self.log),
        )

    def document(self, survey: Survey) -> dict[str, object]:
        with contextlib.closing(SqliteArchive(self.path / "archive.sqlite")) as archive:
            return json.loads(archive.get((survey.digest, 0)) or b"")

    def entry(self) -> Entry | None:
        return next((each for each in self.entries.since(0) if each.kind == "counted"), None)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path)
    yield folder
    folder.entries.close()


def fill(
    log: MemoryLog, survey: Survey, rng: np.random.Generator, n: int, *, quota: int | None = None
) -> tuple:
    """Write a hostile round, and return which leaves count and which are over a quota, judged one by one."""
    log.append({p: [batch(segment(survey, 0, [(report_id(-1 - p & 0xFFFF), 1)]))] for p in log.records})
    log.everywhere(announcement(survey))
    accepted, over, seen = set(), set(), set()
    taken = [0, 0]
    share = None if quota is None else [quota // 2 + quota % 2, quota // 2]
    for _ in range(n):
        partition, group = int(rng.integers(2)), []
        is_early = rng.random() < 0.05
        for _ in range(int(rng.integers(1, 6))):
            identifier = report_id(2 * int(rng.integers(n)) + partition)  # an id has one partition
            symbol = int(rng.integers(5)) if rng.random() > 0.05 else 99
            group.append((identifier, symbol))
            if is_early or symbol == 99 or (partition, identifier) in seen:
                continue
            if share is not None and taken[partition] >= share[partition]:
                over.add(leaf(survey, 0, identifier, symbol))
                continue
            taken[partition] += 1
            seen.add((partition, identifier))
            accepted.add(leaf(survey, 0, identifier, symbol))
        other = segment(survey, 1, [(report_id(int(rng.integers(99))), 1)])
        minute = survey.start_s // 60 - 10**4 if is_early else MINUTE
        log.append({partition: [batch(segment(survey, 0, group), other, minute=minute)]})
    log.everywhere(encode_record(SealRecord(survey.digest, 0)))
    late = [(report_id(10**6 + i), 1) for i in range(9)]
    log.everywhere(batch(segment(survey, 0, late)))
    return accepted, over - accepted


def read(folder: Folder, entry: Entry) -> tuple[set[bytes], set[bytes]]:
    """All leaves of an entry's tiles, as a stranger reads them, each found where a device looks for it."""
    from hubbub.wire import unpack

    digest, number, _, bits = entry.fields[:4]
    found: tuple[set[bytes], set[bytes]] = (set(), set())
    for place in range(1 << bits):
        tile = folder.entries.counted_tile(digest, number, place)
        assert tile is not None
        fields = unpack(tile, "tile")
        for leaves, known in ((fields[1], found[0]), (fields[3], found[1])):
            split = [leaves[at : at + 16] for at in range(0, len(leaves), 16)]
            assert split == sorted(split)
            known.update(split)
            assert all(tile_of(each, bits) == place and found_in(each, entry, tile) for each in split)
    assert folder.entries.counted_tile(digest, number, 1 << bits) is None
    return found


@pytest.mark.parametrize("quota", [None, 61])
@pytest.mark.parametrize("seed", range(8))
def test_leaves_are_those_of_the_reports_that_count(folder: Folder, quota: int | None, seed: int) -> None:
    survey = HEALTH if quota is None else replace(HEALTH, quota=quota)
    due = fill(folder.log, survey, np.random.default_rng(seed), 120, quota=quota)
    folder.count(survey)
    folder.rounds().look()
    entry = folder.entry()
    assert entry is not None
    assert read(folder, entry) == due
    assert entry.fields[2] == len(due[0]) == folder.document(survey)["accounting"]["accepted"]
    assert quota is None or len(due[1]) > 5


@pytest.mark.parametrize("seed", range(3))
def test_two_replays_have_one_root(folder: Folder, seed: int) -> None:
    """The reports of a round in other batches and another order of partitions are the same leaves."""
    due = fill(folder.log, HEALTH, np.random.default_rng(seed), 60)
    folder.count(HEALTH)
    document = folder.document(HEALTH)
    made = RoundReports(lambda: contextlib.nullcontext(folder.log)).counted(document)
    again = RoundReports(lambda: contextlib.nullcontext(folder.log)).counted(document)
    assert made == again and made is not None
    shuffled = [list(each) for each in due]
    np.random.default_rng(seed).shuffle(shuffled[0])
    assert CountedTiles.of(HEALTH.digest, 1, *shuffled, 256) == made


def test_vouched_reports_over_an_issuers_quota_are_told(folder: Folder) -> None:
    folder.log.everywhere(announcement(HEALTH))
    reports = [(report_id(i), i % 5) for i in range(200)]
    voucher = Voucher("clinic", 100)
    folder.log.append({0: [batch(segment(HEALTH, 0, reports, voucher)), batch(segment(HEALTH, 0, reports))]})
    folder.log.everywhere(encode_record(SealRecord(HEALTH.digest, 0)))
    folder.count(HEALTH)
    folder.rounds().look()
    entry = folder.entry()
    assert entry is not None
    # Half of the quota is this partition's; nobody vouched for the copies, which count.
    assert read(folder, entry) == ({leaf(HEALTH, 0, *each) for each in reports}, set())
    document = folder.document(HEALTH)
    assert document["accounting"]["over_quota"] == 150


def test_a_round_whose_records_are_gone_has_no_entry_and_says_why(
    folder: Folder, caplog: pytest.LogCaptureFixture
) -> None:
    fill(folder.log, HEALTH, np.random.default_rng(1), 60)
    folder.count(HEALTH)
    rounds = folder.rounds()
    assert rounds.is_waiting((HEALTH.digest, 0))
    lost = folder.log.records[0][3:20]
    folder.log.records[0][3:20] = [batch()] * 17
    rounds.look()
    assert folder.entry() is None and "must have the reports that were counted" in caplog.text
    assert not rounds.is_waiting((HEALTH.digest, 0))  # a log is not kept for ever for it
    folder.log.records[0][3:20] = lost
    document = folder.document(HEALTH)
    folder.log.records[0] = folder.log.records[0][:9]
    with pytest.raises(RecordsGoneError, match="record at 9 is not in the log"):
        RoundReports(lambda: contextlib.nullcontext(folder.log)).counted(document)


def test_later_rounds_are_read_from_where_they_begin_and_not_before_their_survey(folder: Folder) -> None:
    reads: list[int] = []

    class Log(MemoryLog):
        def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
            reads.append(offset)
            return super().read(partition, offset, limit)

    log = folder.log = Log(1)
    due = {}
    log.append({0: [batch(segment(HEALTH, 1, [(report_id(5), 1)])), announcement(HEALTH)]})
    for number in range(3):
        minute = HEALTH.round_start_s(number) // 60 + 1
        reports = [(report_id(1000 * number + i), i % 5) for i in range(120)]
        due[number] = {leaf(HEALTH, number, *each) for each in reports}
        log.append({0: [batch(segment(HEALTH, number, [each]), minute=minute) for each in reports]})
        log.append({0: [encode_record(SealRecord(HEALTH.digest, number))]})
    folder.count(HEALTH)
    reads.clear()
    rounds = folder.rounds()
    rounds.look()
    assert len(reads) <= 2 * (len(log.records[0]) // 64 + 3)
    entries = [each for each in folder.entries.since(0) if each.kind == "counted"]
    assert [read(folder, each)[0] for each in entries] == [due[number] for number in range(3)]
