"""A quota refuses the same reports in every setting: an embedded worker, a group's member, a recount.

Reports come again and again, in any order within a partition and between partitions; workers are killed
between any two writes and begin anew from their store; and the log alone, counted again, says the same.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView
from hubbub_collector.batching.batcher import partition_of
from hubbub_deploy.commands.replay import log_count
from hubbub_deploy.node import LOG_FILE
from hubbub_topic.sqlite import SqliteLog

# Few ids, so that many come again; more of them than any quota takes.
NUMBERS = st.lists(st.integers(0, 40), min_size=1, max_size=120)


class _Killed(BaseException):
    """Stands for SIGKILL."""


def survey_of(quota: int) -> Survey:
    text = LABELS.replace("version = 1", f"version = 1\nquota = {quota}")
    return Survey.parse(text.replace("minimum_cohort = 100", "minimum_cohort = 5"))


def columns_of(survey: Survey, numbers: list[int], size: int, partitions: int) -> dict[int, list[bytes]]:
    """The records of every partition: the survey, the reports in records of `size`, the seal."""
    places: dict[int, list[int]] = {partition: [] for partition in range(partitions)}
    for number in numbers:
        places[partition_of(report_id(number), partitions)].append(number)
    return {
        partition: [
            announcement(survey),
            *(
                batch(segment(survey, 0, [(report_id(n), n % 5) for n in mine[start : start + size]]))
                for start in range(0, len(mine), size)
            ),
            encode_record(SealRecord(survey.digest, 0)),
        ]
        for partition, mine in places.items()
    }


def truth(quota: int, numbers: list[int], partitions: int) -> dict[int, tuple[dict[int, int], VerdictCounts]]:
    """Counts and tallies of every partition, one report after another; shares dealt like cards."""
    shares = Counter(card % partitions for card in range(quota))
    found = {}
    for partition in range(partitions):
        seen: set[int] = set()
        tally = VerdictCounts()
        for number in numbers:
            if partition_of(report_id(number), partitions) != partition:
                continue
            if number in seen:
                tally += VerdictCounts(attempts=1, duplicate=1)
            elif len(seen) == shares[partition]:
                tally += VerdictCounts(attempts=1, over_quota=1)
            else:
                seen.add(number)
                tally += VerdictCounts(attempts=1, accepted=1)
        found[partition] = dict(Counter(number % 5 for number in seen)), tally
    return found


def embedded(log: MemoryLog, folder: Path, reads: int, kills: list[int]) -> dict[int, PartitionState]:
    """A node's worker on SQLite, killed before its n-th write, or after it where n is odd."""
    kills = list(kills)
    while True:
        store = SqliteStore(folder / "store", log_identity=log.identity, partitions=log.partitions)
        archive = SqliteArchive(folder / "archive")
        try:
            dying(store, kills.pop() if kills else None)
            worker = Worker(
                log, store, archive=archive, view=LiveView(), clock=lambda: 0.0, read_records=reads
            )
            while worker.step():
                pass
            return {partition: store.load(partition) for partition in range(log.partitions)}
        except _Killed:
            continue
        finally:
            store.close()
            archive.close()


def grouped(log: MemoryLog, reads: int, kills: list[int]) -> dict[int, PartitionState]:
    """A member of a group: groups come again, and after a kill another member loads what was saved."""
    store, kills = MemoryStore(), list(kills)
    for partition in range(log.partitions):
        while True:
            attempt: Any = _Borrowed(store)
            dying(attempt, kills.pop() if kills else None)
            member = Assignment(
                attempt, end=log.end, keep="open", partition_map=log.partition_map, clock=lambda: 0.0
            )
            try:
                offset = max(0, member.load([partition])[partition] - 2)
                while offset < log.end(partition):
                    member.process(partition, log.read(partition, offset, reads))
                    offset += reads
                break
            except _Killed:
                continue
    return {partition: store.load(partition) for partition in range(log.partitions)}


class _Borrowed:
    """A store whose writes may be made to die without harm to the next member's."""

    def __init__(self, store: MemoryStore) -> None:
        self.load, self.save = store.load, store.save


def dying(store: Any, at: int | None) -> None:
    """Has a store die at its write `at` // 2: before it where `at` is even, else after it; None: never."""
    if at is None:
        return
    save, writes = store.save, itertools.count()

    def saved(*arguments: object) -> None:
        write = next(writes)
        if write == at // 2 and at % 2 == 0:
            raise _Killed
        save(*arguments)
        if write == at // 2:
            raise _Killed

    store.save = saved


@given(
    quota=st.integers(1, 45),
    partitions=st.integers(1, 4),
    numbers=NUMBERS,
    sizes=st.tuples(st.integers(1, 9), st.integers(1, 7)),
    kills=st.lists(st.integers(0, 9), max_size=4),
)
@settings(deadline=None, max_examples=60)
def test_every_setting_refuses_the_same_reports(
    quota: int, partitions: int, numbers: list[int], sizes: tuple[int, int], kills: list[int]
) -> None:
    size, reads = sizes
    survey = survey_of(quota)
    columns = columns_of(survey, numbers, size, partitions)
    log = MemoryLog(partitions)
    log.append(columns)
    expected = truth(quota, numbers, partitions)
    assert sum(tally.accepted for _, tally in expected.values()) <= quota
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [embedded(log, folder, reads, kills), grouped(log, reads, kills)]
        with SqliteLog(folder / LOG_FILE, partitions=partitions) as kept:
            kept.append(columns)
        found.append(log_count.counted(name)[0])
    for states in found:
        for partition, (counts, tally) in expected.items():
            known = states[partition].rounds[survey.digest, 0]
            assert {y: n for y, n in enumerate(known.counts.tolist()) if n} == counts
            assert known.verdicts == tally
        assert {p: counted(state) for p, state in states.items()} == {
            p: counted(state) for p, state in found[0].items()
        }


@given(quota=st.integers(1, 45), partitions=st.integers(1, 4), numbers=NUMBERS, order=st.randoms())
@settings(deadline=None, max_examples=60)
def test_another_order_counts_as_many_though_others(
    quota: int, partitions: int, numbers: list[int], order: Any
) -> None:
    shuffled = list(numbers)
    order.shuffle(shuffled)
    tallies = []
    for column in (numbers, shuffled):
        log = MemoryLog(partitions)
        survey = survey_of(quota)
        log.append(columns_of(survey, column, 3, partitions))
        states = grouped(log, 2, [])
        tallies.append([state.rounds[survey.digest, 0].verdicts.accepted for state in states.values()])
    assert tallies[0] == tallies[1]
