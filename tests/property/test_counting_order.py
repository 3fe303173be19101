"""However the same reports reach the counter, the counts and the released bytes are the same.

What varies is how reports are batched into records, how records are grouped, what is delivered again, where
the worker is killed and restored, and in which order reports of different ids lie.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, Voucher, encode_record
from hubbub_aggregator.counting.counting import apply, apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.release.round_release import canonical_bytes, release
from hubbub_aggregator.runners.publisher import Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_store import SqliteStore
from hubbub_aggregator.web.view import LiveView

SURVEYS = (
    Survey.parse(LABELS.replace("minimum_cohort = 100", "minimum_cohort = 5")),
    Survey.parse(VISITS.replace("minimum_cohort = 100", "minimum_cohort = 5")),
)
SEALS = [encode_record(SealRecord(survey.digest, 0)) for survey in SURVEYS]

# (survey, id, symbol): few ids, so that some come again; symbols of which some are invalid.
REPORTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, 6)), min_size=1, max_size=80
)


VOUCHERS = (None, Voucher("a"), Voucher("b"))


def expected(reports: list[tuple[int, int, int]]) -> list[tuple[dict[int, int], VerdictCounts]]:
    """Counts and accounting of each survey's round 0, said again in plain Python."""
    found = []
    for index, survey in enumerate(SURVEYS):
        seen: set[int] = set()
        counts: dict[int, int] = {}
        accounting = VerdictCounts()
        for _, number, symbol in (report for report in reports if report[0] == index):
            if symbol >= survey.channel.outputs:
                accounting += VerdictCounts(attempts=1, invalid=1)
            elif number in seen:
                accounting += VerdictCounts(attempts=1, duplicate=1)
            else:
                seen.add(number)
                counts[symbol] = counts.get(symbol, 0) + 1
                accounting += VerdictCounts(attempts=1, accepted=1)
        found.append((counts, accounting))
    return found


def split(items: list[Any], cuts: list[int]) -> list[list[Any]]:
    """The items in consecutive runs that end at the cuts."""
    ends = sorted({cut % (len(items) + 1) for cut in cuts} | {0, len(items)})
    return [items[a:b] for a, b in itertools.pairwise(ends)]


def records_of(reports: list[tuple[int, int, int]], cuts: list[int], *, early: int = 1) -> list[bytes]:
    """The reports as records, cut where told, their seals last; with `early` refusals per segment."""
    batches = []
    for part in split(reports, cuts):
        segments = []
        # Who vouches follows from the id, as with tokens.
        for (index, survey), (rest, voucher) in itertools.product(enumerate(SURVEYS), enumerate(VOUCHERS)):
            pairs = [
                (report_id(number), symbol)
                for found, number, symbol in part
                if found == index and number % len(VOUCHERS) == rest
            ]
            if pairs:
                segments.append(segment(survey, 0, pairs, voucher, early=early))
        batches.append(batch(*segments, unknown=1))
    return [*map(announcement, SURVEYS), *batches, *SEALS]


def check(state: PartitionState, reports: list[tuple[int, int, int]]) -> None:
    for survey, (counts, accounting) in zip(SURVEYS, expected(reports), strict=True):
        known = state.rounds[survey.digest, 0]
        assert {y: n for y, n in enumerate(known.counts.tolist()) if n} == counts
        at_gateway = known.verdicts.early
        assert known.verdicts == accounting + VerdictCounts(attempts=at_gateway, early=at_gateway)


@given(
    reports=REPORTS,
    batches=st.lists(st.integers(0, 80), max_size=8),
    groups=st.lists(st.integers(0, 80), max_size=8),
    again=st.lists(st.integers(0, 80), max_size=4),
    kills=st.sets(st.integers(0, 8)),
)
@settings(deadline=None, max_examples=150)
def test_groups_redelivery_and_restores_change_nothing(
    reports: list[tuple[int, int, int]],
    batches: list[int],
    groups: list[int],
    again: list[int],
    kills: set[int],
) -> None:
    log = list(enumerate(records_of(reports, batches)))
    one_by_one = PartitionState()
    for offset, record in log:
        one_by_one.commit(apply(one_by_one, offset, record))
    check(one_by_one, reports)

    store = MemoryStore()
    state = store.load(0)
    for i, part in enumerate(split(log, groups)):
        back = again[i] if i < len(again) else 0
        start = max(0, part[0][0] - back)
        change = apply_many(state, log[start : part[-1][0] + 1])
        if i in kills:  # after applying, before saving: the change is lost, the records come again
            state = store.load(0)
            change = apply_many(state, part)
        store.save(0, change)
        state.commit(change)
        if i + 1 in kills:  # after saving
            state = store.load(0)
    assert counted(state) == counted(one_by_one)
    assert (state.offset, state.unknown, state.dead) == (one_by_one.offset, one_by_one.unknown, 0)


@given(
    reports=REPORTS,
    batches=st.lists(st.integers(0, 80), max_size=6),
    order=st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=100)
def test_order_of_different_ids_and_batches_does_not_change_the_released_bytes(
    reports: list[tuple[int, int, int]], batches: list[int], order: Any
) -> None:
    # Equal ids carry equal bytes, as a retry does: it does not matter which of them comes first.
    reports = [(index, number, number % 7) for index, number, _ in reports]
    shuffled = list(reports)
    order.shuffle(shuffled)
    released = []
    for column, cuts in ((reports, []), (shuffled, batches)):
        # The cut differs with the number of records: the batches are padded to one count.
        records = records_of(column, cuts, early=0)
        records = [*records[:-2], *[batch()] * (12 - len(records)), *records[-2:]]
        state = PartitionState()
        state.commit(apply_many(state, enumerate(records)))
        made = [release(survey, 0, {0: state}) for survey in SURVEYS]
        released.append([canonical_bytes(found.document()) for found in made if found is not None])
    assert len(released[0]) == 2
    assert released[0] == released[1]


class _Killed(BaseException):
    """Stands for SIGKILL."""


@given(
    reports=REPORTS,
    batches=st.lists(st.integers(0, 80), max_size=6),
    read_records=st.integers(1, 5),
    kills=st.lists(
        st.tuples(st.sampled_from(["save", "saved", "put", "kept"]), st.integers(0, 5)), max_size=3
    ),
)
@settings(deadline=None, max_examples=25)
def test_killed_and_restarted_worker_archives_the_same_bytes(
    reports: list[tuple[int, int, int]],
    batches: list[int],
    read_records: int,
    kills: list[tuple[str, int]],
) -> None:
    log = MemoryLog(partitions=2)
    for partition in range(2):
        log.append({partition: records_of([r for r in reports if r[1] % 2 == partition], batches)})

    def run(folder: str, reads: int, kills: list[tuple[str, int]]) -> tuple[list[bytes], Any]:
        pending = list(kills)
        while True:
            store = SqliteStore(Path(folder) / "store", log_identity=log.identity, partitions=2)
            archive = SqliteArchive(Path(folder) / "archive")
            view = LiveView()
            where, count = pending.pop(0) if pending else ("", 0)
            arm(store, archive, where, count)
            try:
                worker = Worker(log, store, archive=archive, view=view, clock=lambda: 0.0, read_records=reads)
                while worker.step():
                    pass
                data = [archive.get((survey.digest, 0)) or b"" for survey in SURVEYS]
                return data, view.snapshot()
            except _Killed:
                continue
            finally:
                store.close()
                archive.close()

    with tempfile.TemporaryDirectory() as calm, tempfile.TemporaryDirectory() as wild:
        assert run(wild, read_records, kills) == run(calm, 64, [])


def arm(store: SqliteStore, archive: SqliteArchive, where: str, count: int) -> None:
    """Makes the store or the archive die at its `count`-th write, just before or just after it."""
    left = [count]

    def dying(write: Callable[..., None], *, after: bool) -> Callable[..., None]:
        def wrapped(*arguments: object) -> None:
            left[0] -= 1
            if left[0] < 0 and not after:
                raise _Killed
            write(*arguments)
            if left[0] < 0:
                raise _Killed

        return wrapped

    if where in ("save", "saved"):
        store.save = dying(store.save, after=where == "saved")  # type: ignore[method-assign]
    if where in ("put", "kept"):
        archive.put = dying(archive.put, after=where == "kept")  # type: ignore[method-assign]


def test_a_lost_report_would_be_noticed() -> None:
    # The negative control of this module: one report less must change the counts that it compares.
    reports = [(0, i, i % 5) for i in range(20)]
    state = PartitionState()
    state.commit(apply_many(state, enumerate(records_of(reports[:-1], []))))
    with pytest.raises((AssertionError, KeyError)):
        check(state, reports)
