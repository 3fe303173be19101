"""What one of several processes counts: repeats, records held back, gaps, partitions that move on."""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from counting_logs import MemoryStore, announcement, batch, counted, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import AheadError, GapError, StoreConflictError, SupersededError
from hubbub_aggregator.runners.assignment import GAP_PATIENCE_S, Assignment, SeekTo, contiguous

HEALTH = Survey.parse(LABELS)
PATIENCE_S = 20.0
RECORDS = list(
    enumerate(
        [announcement(HEALTH), *(batch(segment(HEALTH, 0, [(report_id(i), i % 5)])) for i in range(30))]
    )
)


class Setting:
    def __init__(self) -> None:
        self.store, self.now_s, self.ends = MemoryStore(), 0.0, {0: 31, 1: 0}
        self.assignment = self.another()

    def another(self) -> Assignment:
        return Assignment(self.store, end=self.ends.__getitem__, clock=lambda: self.now_s)


@pytest.fixture
def setting() -> Setting:
    return Setting()


def expected() -> PartitionState:
    state = PartitionState()
    state.commit(apply_many(state, RECORDS))
    return state


def test_groups_are_saved_and_loaded_again(setting: Setting) -> None:
    assert setting.assignment.load([0, 1]) == {0: 0, 1: 0}
    assert setting.assignment.process(0, RECORDS[:10]) is None
    assert setting.store.load(0).offset == 10
    other = setting.another()
    assert other.load([0]) == {0: 0}  # those that were counted come again
    assert other.process(0, RECORDS[:15]) is None
    assert other.process(0, RECORDS[15:]) is None
    assert counted(setting.store.load(0)) == counted(expected())


def test_repeats_and_overlaps_change_nothing(setting: Setting) -> None:
    setting.assignment.load([0])
    for low, high in ((0, 5), (0, 5), (3, 9), (0, 9), (8, 31), (30, 31)):
        assert setting.assignment.process(0, RECORDS[low:high]) is None
    assert setting.assignment.process(0, [*RECORDS[:4], *RECORDS]) is None
    assert counted(setting.store.load(0)) == counted(expected())


def test_missing_record_is_asked_for_once_and_its_coming_heals(setting: Setting) -> None:
    setting.assignment.load([0])
    assert setting.assignment.process(0, [*RECORDS[:5], *RECORDS[7:9]]) == SeekTo(5)
    assert setting.assignment.process(0, RECORDS[9:12]) is None
    setting.now_s = GAP_PATIENCE_S
    assert setting.assignment.process(0, RECORDS[12:14]) is None
    assert setting.assignment.process(0, RECORDS[5:20]) is None
    setting.now_s = 5 * GAP_PATIENCE_S
    assert setting.assignment.process(0, RECORDS[25:]) == SeekTo(20)
    assert setting.assignment.process(0, RECORDS[20:]) is None
    assert counted(setting.store.load(0)) == counted(expected())


def test_record_that_never_comes_is_a_gap(setting: Setting) -> None:
    setting.assignment.load([0])
    assert setting.assignment.process(0, RECORDS[3:5]) == SeekTo(0)
    setting.now_s = GAP_PATIENCE_S + 0.1
    with pytest.raises(GapError, match=r"offset 0 must come next, got 3 .* --partition 0 --from 3`"):
        setting.assignment.process(0, RECORDS[5:6])
    assert setting.store.load(0).offset == 0


def test_record_that_never_comes_is_a_gap_even_if_nothing_else_comes(setting: Setting) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS[3:5])
    setting.now_s = GAP_PATIENCE_S
    setting.assignment.verify()
    setting.now_s += 0.1
    with pytest.raises(GapError, match="partition 0: offset 0 must come next"):
        setting.assignment.verify()


def test_log_that_is_cut_while_it_is_counted_is_noticed(setting: Setting) -> None:
    setting.assignment.load([0, 1])
    setting.assignment.process(0, RECORDS)
    setting.assignment.verify()
    setting.ends[0] = 3
    with pytest.raises(AheadError, match="at most the log's 3, got 31"):
        setting.assignment.verify()


def test_partition_that_was_let_go_is_left_to_others(setting: Setting) -> None:
    setting.assignment.load([0, 1])
    setting.assignment.revoke()
    assert setting.assignment.process(0, RECORDS) is None
    assert setting.store.load(0).offset == 0
    setting.assignment.load([1])
    assert setting.assignment.process(0, RECORDS) is None
    assert setting.store.load(0).offset == 0


def test_two_who_count_one_partition_are_a_conflict(setting: Setting) -> None:
    other = setting.another()
    setting.assignment.load([0])
    other.load([0])
    setting.assignment.process(0, RECORDS[:10])
    with pytest.raises(StoreConflictError):
        other.process(0, RECORDS[:11])
    assert setting.store.load(0).offset == 10


def test_store_ahead_of_the_log_is_refused(setting: Setting) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS)
    setting.ends[0] = 30
    with pytest.raises(AheadError, match="at most the log's 30, got 31"):
        setting.another().load([0])


OTHERS = [
    (offset, batch(segment(HEALTH, 0, [(report_id(100 + offset), offset % 5)]))) for offset in range(40)
]


def test_log_that_was_cut_and_has_grown_past_what_was_counted_is_refused_at_every_start(
    setting: Setting,
) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS)
    setting.ends[0] = 40
    for kept in (0, 20, 30):
        for _ in range(2):
            again = setting.another()
            assert again.load([0]) == {0: 0}
            cut = [*RECORDS[:kept], *OTHERS[kept:]]
            assert again.process(0, cut[:9]) is None
            with pytest.raises(AheadError, match=f"31 records before offset 31 .* got {31 - kept} with"):
                again.process(0, cut[9:])
        assert setting.store.load(0).offset == 31


@pytest.mark.parametrize("back_to", [0, 12])
def test_log_that_was_cut_and_has_grown_is_refused_when_its_reader_goes_back(
    setting: Setting, back_to: int
) -> None:
    """As Faust does where a log ends before what it asks for; by the next look it may have grown again."""
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS)
    setting.ends[0] = 40
    setting.assignment.verify()
    assert setting.assignment.process(0, RECORDS[back_to:]) is None  # repeats are no doubt
    cut = [*RECORDS[:20], *OTHERS[20:]]
    assert setting.assignment.process(0, cut[back_to:25]) is None
    with pytest.raises(AheadError, match=f"{31 - back_to} records before offset 31 .* got 11 with"):
        setting.assignment.process(0, cut[25:])
    assert setting.store.load(0).offset == 31


def test_records_that_bring_nothing_new_are_as_good_as_those_that_were_counted(setting: Setting) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS)
    again = setting.another()
    again.load([0])
    repeated = [(offset, RECORDS[1 + offset % 30][1]) for offset in range(31)]
    assert again.process(0, repeated) is None
    again.process(0, [(31, OTHERS[31][1])])
    assert setting.store.load(0).offset == 32


def test_what_was_unknown_or_did_not_decode_when_it_was_counted_is_no_loss(setting: Setting) -> None:
    setting.ends[0] = 33
    early = [(0, OTHERS[0][1]), *((offset + 1, data) for offset, data in RECORDS)]
    setting.assignment.load([0])
    setting.assignment.process(0, [*early[:31], (31, b"\x00")])
    assert (setting.store.load(0).unknown, setting.store.load(0).dead) == (1, 1)
    again = setting.another()
    again.load([0])
    # As if a later release could read it.
    assert again.process(0, [*early[:31], (31, OTHERS[31][1]), (32, OTHERS[32][1])]) is None
    assert setting.store.load(0).offset == 33


def test_what_fails_to_decode_still_excuses_no_other_record(setting: Setting) -> None:
    setting.ends[0] = 33
    counted = [*RECORDS[:10], (10, b"\x00"), (11, b"\x01"), *RECORDS[12:]]
    setting.assignment.load([0])
    setting.assignment.process(0, counted)
    assert setting.store.load(0).dead == 2
    again = setting.another()
    again.load([0])
    assert again.process(0, counted) is None  # none of which was cut
    again = setting.another()
    again.load([0])
    with pytest.raises(AheadError, match="got 2 with reports that are not"):
        again.process(0, [*counted[:29], *OTHERS[29:33]])
    # As if an earlier release could not read the last record.
    again = setting.another()
    again.load([0])
    assert again.process(0, [*counted[:30], (30, b"\x02"), *OTHERS[31:33]]) is None


def test_what_was_given_up_is_not_read_again(setting: Setting) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS[:5])
    state = setting.store.load(0)
    setting.store.save(0, skip_lost(state, 9, (), now_s=0))
    again = setting.another()
    assert again.load([0]) == {0: 9}
    again.process(0, RECORDS[9:])
    assert setting.another().load([0]) == {0: 9}


def test_contiguous_takes_what_follows_and_stops_at_a_hole() -> None:
    pairs = [(offset, b"%d" % offset) for offset in (3, 4, 4, 5, 3, 6, 9, 7)]
    assert [offset for offset, _ in contiguous(pairs, 4)] == [4, 5, 6]
    assert contiguous(pairs, 2) == []
    assert contiguous([], 0) == []


def test_worker_with_a_store_keeps_of_sealed_rounds_the_seal(setting: Setting) -> None:
    setting.ends[0] = 33
    records = [*RECORDS, (31, encode_record(SealRecord(HEALTH.digest, 0))), (32, RECORDS[3][1])]
    for keep, kept in (("open", 0), ("all", 30)):
        setting.store = MemoryStore()
        assignment = Assignment(
            setting.store,
            end=setting.ends.__getitem__,
            clock=lambda: 0.0,
            keep=keep,  # type: ignore[arg-type]  # both of its words
        )
        assignment.load([0])
        assignment.process(0, records[:32])
        assignment.process(0, records[32:])
        assert assignment._states[0].rounds[HEALTH.digest, 0].counts.sum() == kept
        stored = setting.store.load(0).rounds[HEALTH.digest, 0]
        assert (stored.verdicts.accepted, stored.after_seal.late, stored.sealed_at) == (30, 1, 31)


MAPPED = """
import ctypes, sys
import numpy as np
from counting_logs import MemoryStore
from hubbub_aggregator.runners.assignment import Assignment

class Mallinfo(ctypes.Structure):
    _fields_ = [(str(i), ctypes.c_size_t) for i in range(10)]

def mapped():
    # The fifth number: bytes in blocks that go back to the system as soon as they are freed.
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Mallinfo
    return getattr(library.mallinfo2(), "4")

if sys.argv[1:]:
    Assignment(MemoryStore(), end=lambda _: 0, clock=lambda: 0.0)
before = mapped()
block = np.empty(12 * 2**20, dtype=np.uint8)
print(mapped() - before)
"""


def _has_mallinfo2() -> bool:
    name, version = platform.libc_ver()
    return name == "glibc" and tuple(map(int, version.split("."))) >= (2, 33)


@pytest.mark.skipif(not _has_mallinfo2(), reason="glibc 2.33 is what can be asked")
def test_memory_that_a_group_frees_is_kept_for_the_next_one() -> None:
    def mapped(*words: str) -> int:
        run = subprocess.run(
            [sys.executable, "-c", MAPPED, *words],
            cwd=Path(__file__).parents[2] / "harness",
            capture_output=True,
            text=True,
            check=True,
        )
        return int(run.stdout)

    assert mapped() >= 12 * 2**20
    assert mapped("after an assignment was made") == 0


class SlowStore(MemoryStore):
    """A store whose loads of one partition wait until the test lets them go on."""

    def __init__(self, partition: int) -> None:
        super().__init__()
        self.partition, self.entered, self.go_on = partition, threading.Event(), threading.Event()
        self.fails: Exception | None = None

    def load(self, partition: int) -> PartitionState:
        if partition == self.partition and not self.go_on.is_set():
            self.entered.set()
            assert self.go_on.wait(PATIENCE_S)
            if self.fails is not None:
                raise self.fails
        return super().load(partition)


@pytest.mark.parametrize("fails", [None, StoreConflictError("another writer moves it")])
def test_load_that_a_newer_one_overtakes_takes_nothing_over(
    setting: Setting, fails: Exception | None
) -> None:
    setting.store = store = SlowStore(1)
    store.fails = fails
    assignment, ended = setting.another(), list[Exception]()
    older = assignment.revoke()

    def load() -> None:
        try:
            assignment.load([0, 1], older)
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    assert store.entered.wait(PATIENCE_S)
    # A rebalance leaves this worker partition 0 alone; it must not wait for the load that is of no use now.
    newer = threading.Thread(target=lambda: assignment.load([0], assignment.revoke()), daemon=True)
    newer.start()
    newer.join(PATIENCE_S)
    assert not newer.is_alive()
    store.go_on.set()
    thread.join(PATIENCE_S)
    assert [type(error) for error in ended] == [SupersededError]
    assert assignment.process(1, [(0, RECORDS[0][1])]) is None
    assert assignment.process(0, RECORDS[:10]) is None
    assert (store.load(0).offset, store.load(1).offset) == (10, 0)


def test_load_that_begins_after_its_partitions_were_revoked_reads_nothing(setting: Setting) -> None:
    older = setting.assignment.revoke()
    setting.assignment.revoke()
    with pytest.raises(SupersededError, match="generation 2, got 1"):
        setting.assignment.load([0], older)
    assert setting.assignment.process(0, RECORDS) is None
    assert setting.store.load(0).offset == 0


def test_log_that_is_cut_after_a_partition_was_let_go_of_is_left_to_others(setting: Setting) -> None:
    setting.assignment.load([0])
    setting.assignment.process(0, RECORDS)

    def end(partition: int) -> int:
        setting.assignment.revoke()
        return 3

    setting.assignment._end = end
    setting.assignment.verify()
    assert setting.assignment.process(0, RECORDS) is None
