"""Going on past records that are gone: what is written down, and which releases say so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import LostError
from hubbub_aggregator.release.round_release import release
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.web.view import LiveView

HEALTH = Survey.parse(LABELS)
MORNING_S = HEALTH.start_s + 3600


def sealed(number: int) -> bytes:
    return encode_record(SealRecord(HEALTH.digest, number))


def some(number: int, start: int, n: int) -> bytes:
    minute = HEALTH.round_start_s(number) // 60 + 30
    pairs = [(report_id(start + i), i % 5) for i in range(n)]
    return batch(segment(HEALTH, number, pairs), minute=minute)


def counted(*records: bytes) -> PartitionState:
    state = PartitionState()
    state.commit(apply_many(state, enumerate(records)))
    return state


def lost_in(state: PartitionState, number: int) -> list[dict[str, int]]:
    made = release(HEALTH, number, {0: counted(announcement(HEALTH), sealed(number)), 1: state})
    assert made is not None
    assert made.verdicts.holds
    return made.document()["lost"]  # type: ignore[no-any-return]  # JSON


def test_release_of_an_open_round_says_what_is_lost_and_its_accounting_holds() -> None:
    state = counted(announcement(HEALTH), some(0, 0, 150))
    state.commit(skip_lost(state, 9, [HEALTH], now_s=MORNING_S))
    state.commit(apply_many(state, enumerate([some(0, 100, 100), sealed(0)], start=9)))
    made = release(HEALTH, 0, {1: state})
    assert made is not None
    assert made.document()["lost"] == [{"partition": 1, "from": 2, "until": 9}]
    assert (made.verdicts.attempts, made.verdicts.accepted, made.verdicts.duplicate) == (250, 200, 50)
    assert made.tally.cut == {1: 10}


def test_rounds_sealed_before_and_rounds_begun_after_have_lost_nothing() -> None:
    state = counted(announcement(HEALTH), some(0, 0, 150), sealed(0))
    state.commit(skip_lost(state, 20, [], now_s=HEALTH.round_start_s(1) + 60))
    state.commit(apply_many(state, enumerate([sealed(1), sealed(2)], start=20)))
    assert lost_in(state, 0) == []
    assert lost_in(state, 1) == [{"partition": 1, "from": 3, "until": 20}]
    assert lost_in(state, 2) == []


def test_survey_whose_record_is_lost_is_known_again() -> None:
    state = PartitionState()
    state.commit(skip_lost(state, 5, [HEALTH], now_s=MORNING_S))
    state.commit(apply_many(state, [(5, some(0, 0, 10))]))
    assert (state.unknown, state.rounds[HEALTH.digest, 0].verdicts.accepted) == (0, 10)


def test_nothing_is_given_up_that_was_counted() -> None:
    state = counted(announcement(HEALTH), some(0, 0, 5))
    for offset in (0, 2):
        with pytest.raises(ValueError, match=f"must be past 2, which comes next, got {offset}"):
            skip_lost(state, offset, [], now_s=MORNING_S)


def test_log_that_begins_after_what_was_counted_is_lost_until_it_is_adopted() -> None:
    log, store = MemoryLog(partitions=1), MemoryStore()
    log.append({0: [announcement(HEALTH), *(some(0, 10 * i, 10) for i in range(9))]})

    def assigned() -> Assignment:
        return Assignment(store, begin=log.begin, end=log.end, clock=lambda: 0.0)

    running = assigned()
    running.load([0])
    running.process(0, log.read(0, 0, 4))
    running.verify()
    log.begins[0] = 7
    for attempt in (running.verify, lambda: assigned().load([0])):
        with pytest.raises(LostError, match=r"offset 4 must come next, and the log begins at 7; .* --from 7"):
            attempt()
    store.save(0, skip_lost(store.load(0), 7, [], now_s=MORNING_S))
    again = assigned()
    assert again.load([0]) == {0: 7}
    again.process(0, log.read(0, 7, 10))
    assert store.load(0).rounds[HEALTH.digest, 0].verdicts.accepted == 60


def test_archived_release_stands_when_a_rebuilt_store_lacks_its_seal(tmp_path: Path) -> None:
    log, archive, view = MemoryLog(partitions=1), SqliteArchive(tmp_path / "archive.sqlite"), LiveView()
    log.append({0: [announcement(HEALTH), some(0, 0, 200)]})

    def worker(store: MemoryStore) -> Worker:
        return Worker(log, store, archive=archive, view=view, clock=lambda: 2.0 * HEALTH.round_end_s(0))

    first = worker(MemoryStore())
    first.seal([(HEALTH.digest, 0)])
    while first.step():
        pass
    released = archive.get((HEALTH.digest, 0))
    assert released is not None
    assert json.loads(released)["lost"] == []
    # The store is lost, and of the log only stragglers are left.
    log.append({0: [some(0, 500, 30)]})
    rebuilt = MemoryStore()
    rebuilt.save(0, skip_lost(PartitionState(), 3, [HEALTH], now_s=MORNING_S))
    second = worker(rebuilt)
    while second.step():
        pass
    second.step()
    worker(rebuilt)
    assert view.snapshot()["surveys"][0]["rounds"][0]["devices"] == 200
    assert archive.get((HEALTH.digest, 0)) == released
    archive.close()
