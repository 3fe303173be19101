"""What every Store must keep; a test class of a store inherits it and gives `reopen`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from counting_logs import announcement, batch, counted, report_id, segment
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import StoreConflictError
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate
from hubbub_aggregator.stores.store import Store

HEALTH, VISITED = Survey.parse(LABELS), Survey.parse(VISITS)
# A name -> the store of that name; the same name is the same store.
Opener = Callable[[], Store]


def some(
    survey: Survey, start: int, n: int, number: int = 0, voucher: Voucher | None = None, **refused: int
) -> bytes:
    pairs = [(report_id(start + i), (start + i) % 5) for i in range(n)]
    return batch(segment(survey, number, pairs, voucher, **refused))


HISTORY = [
    [announcement(HEALTH), some(HEALTH, 0, 40, late=3), b"dead"],
    [some(HEALTH, 20, 40)],
    [announcement(VISITED), some(VISITED, 0, 30), some(VISITED, 500, 3, number=7)],
    [some(HEALTH, 200, 10), encode_record(SealRecord(HEALTH.digest, 0)), some(HEALTH, 300, 5)],
    [some(HEALTH, 300, 5), some(VISITED, 10, 40)],
    [some(VISITED, 10, 5, voucher=Voucher("b"))],
    [some(VISITED, 600, 20, voucher=Voucher("a")), some(VISITED, 610, 40, voucher=Voucher("a"))],
    [some(VISITED, 700, 9, voucher=Voucher("b")), some(VISITED, 800, 7)],
]


class StoreContract:
    """Inherit as `class TestXStore(StoreContract)` and define the fixture `reopen`."""

    @pytest.fixture
    def reopen(self) -> Opener:
        raise NotImplementedError

    def test_a_new_store_loads_an_empty_state(self, reopen: Opener) -> None:
        state = reopen().load(0)
        assert (state.offset, state.rounds, state.surveys) == (0, {}, {})

    def test_what_is_loaded_equals_what_was_counted_at_every_point(self, reopen: Opener) -> None:
        state, offset = PartitionState(), 0
        for records in HISTORY:
            change = apply_many(state, enumerate(records, start=offset))
            reopen().save(1, change)
            state.commit(change)
            offset += len(records)
            loaded = reopen().load(1)
            assert counted(loaded) == counted(state)
            assert (loaded.offset, loaded.unknown, loaded.dead) == (offset, state.unknown, state.dead)
            assert loaded.surveys.keys() == state.surveys.keys()
        assert {name: tally.numbers for name, tally in state.rounds[VISITED.digest, 0].issuers.items()} == {
            "b": (9, 5, 0),
            "a": (50, 10, 0),
        }
        assert state.dead == 1
        assert reopen().load(0).offset == 0

    def test_loaded_state_still_knows_every_id(self, reopen: Opener) -> None:
        state = PartitionState()
        change = apply_many(state, enumerate([announcement(HEALTH), some(HEALTH, 0, 100)]))
        reopen().save(0, change)
        loaded = reopen().load(0)
        loaded.commit(apply_many(loaded, [(2, some(HEALTH, 50, 100))]))
        tally = loaded.rounds[HEALTH.digest, 0].verdicts
        assert (tally.accepted, tally.duplicate) == (150, 50)

    def test_a_loaded_state_goes_on_with_the_quota_where_it_was(self, reopen: Opener) -> None:
        few = Survey.parse(LABELS.replace("version = 1", "version = 1\nquota = 50"))
        known = (few.digest, 0)
        for records in ([announcement(few), some(few, 0, 20)], [some(few, 10, 30)], [some(few, 0, 60)]):
            state = reopen().load(1)
            state.place(PartitionMap.of(2), 1)
            reopen().save(1, apply_many(state, enumerate(records, start=state.offset)))
        tally = reopen().load(1).rounds[known].verdicts
        # Partition 1 of 2 takes 25: 0 to 24; copies of those are duplicates, the rest is over it, again too.
        assert (tally.accepted, tally.duplicate, tally.over_quota) == (25, 10 + 25, 15 + 35)

    def test_a_loaded_state_goes_on_with_an_issuers_quota_where_it_was(self, reopen: Opener) -> None:
        mine = Voucher("a", 50)
        for records in ([announcement(HEALTH), some(HEALTH, 0, 20, voucher=mine)],) + (
            [some(HEALTH, 10, 30, voucher=mine), some(HEALTH, 100, 3, voucher=Voucher("b", 10))],
        ) * 2:
            state = reopen().load(1)
            state.place(PartitionMap.of(2), 1)
            reopen().save(1, apply_many(state, enumerate(records, start=state.offset)))
        issuers = reopen().load(1).rounds[HEALTH.digest, 0].issuers
        assert issuers["a"].numbers == (25, 10 + 15, 15 + 15)
        assert issuers["b"].numbers == (3, 3, 0)

    def test_change_from_another_offset_is_a_conflict_and_saves_nothing(self, reopen: Opener) -> None:
        state = PartitionState()
        change = apply_many(state, enumerate([announcement(HEALTH), some(HEALTH, 0, 10)]))
        store = reopen()
        store.save(0, change)
        with pytest.raises(StoreConflictError):
            store.save(0, change)
        state.commit(change)
        ahead = apply_many(state, [(2, some(HEALTH, 50, 10))])
        state.commit(ahead)
        further = apply_many(state, [(3, some(HEALTH, 90, 10))])
        with pytest.raises(StoreConflictError):
            store.save(0, further)
        loaded = reopen().load(0)
        assert loaded.offset == 2
        assert loaded.rounds[HEALTH.digest, 0].verdicts.accepted == 10

    def test_what_was_given_up_comes_back(self, reopen: Opener) -> None:
        state = PartitionState()
        change = apply_many(state, enumerate([announcement(HEALTH), some(HEALTH, 0, 10)]))
        for _ in range(3):
            reopen().save(1, change)
            state.commit(change)
            last, change = change, skip_lost(state, state.offset + 5, [HEALTH, VISITED], now_s=1_800_000_000)
        with pytest.raises(StoreConflictError):
            reopen().save(1, last)
        loaded = reopen().load(1)
        assert loaded.lost == state.lost
        assert [(lost.first, lost.end) for lost in loaded.lost] == [(2, 7), (7, 12)]
        assert loaded.offset == 12
        assert loaded.surveys.keys() == {HEALTH.digest, VISITED.digest}
        assert counted(loaded) == counted(state)
        assert reopen().load(0).lost == ()

    def test_steps_come_back_and_are_forgotten_on_request(self, reopen: Opener) -> None:
        one = AcceptedCounts({0: 5, 1: 7}, np.array([3, 0, 4], dtype=np.int64), 7)
        two = AcceptedCounts({0: 9, 1: 9}, np.array([30, 0, 4], dtype=np.int64), 34)
        kept, first = (HEALTH.digest, 0), (HEALTH.digest, 1)
        reopen().save_gates({kept: PublicationGate(None, one), first: PublicationGate(one, two)})
        assert reopen().load_gates() == {kept: PublicationGate(None, one), first: PublicationGate(one, two)}
        reopen().save_gates({kept: PublicationGate(one, two), first: None})
        assert reopen().load_gates() == {kept: PublicationGate(one, two)}
