"""Who watches: seals, releases and shows what another process has saved, and counts nothing itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey, RoundState
from hubbub_aggregator.errors import ArchiveError, LeaseLostError
from hubbub_aggregator.release.provisional import PublicationGate
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.publisher import Publisher, Worker
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.web.view import LiveView

HEALTH = Survey.parse(LABELS)
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + 30.0


class WatchedStore:
    """The memory store, with offsets and counts without ids."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.is_taken = False
        self.forgotten: list[tuple[int, RoundKey]] = []

    def offset(self, partition: int) -> int:
        return self._store.load(partition).offset

    def load_counts(self, partition: int) -> PartitionState:
        state = self._store.load(partition)
        for known in state.rounds.values():
            known.seen = None
        return state

    def hold_lease(self) -> None:
        if self.is_taken:
            raise LeaseLostError("taken")

    def forget(self, partition: int, key: RoundKey) -> None:
        self.forgotten.append((partition, key))

    def verify(self) -> None:
        """Has nothing to do."""

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        return self._store.load_gates()

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        self._store.save_gates(changed)


class Setting:
    def __init__(self, folder: Path) -> None:
        self.log, self.store, self.view = MemoryLog(), MemoryStore(), LiveView()
        self.archive = SqliteArchive(folder / "archive.sqlite")
        self.now_s = float(HEALTH.start_s)
        self.log.everywhere(announcement(HEALTH))

    def watcher(self, kind: type[WatchedStore] = WatchedStore) -> Publisher:
        return Publisher(
            self.log,
            kind(self.store),
            archive=self.archive,
            view=self.view,
            clock=lambda: self.now_s,
        )

    def count(self, *partitions: int) -> None:
        """What the workers would do by now."""
        assignment = Assignment(self.store, end=self.log.end, clock=lambda: 0.0)
        for partition, offset in assignment.load(partitions).items():
            assignment.process(partition, self.log.read(partition, offset, 10_000))

    def write(self, start: int, n: int) -> None:
        for i in range(start, start + n):
            self.log.append({i % 2: [batch(segment(HEALTH, 0, [(report_id(i), i % 5)]))]})


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    setting = Setting(tmp_path)
    yield setting
    setting.archive.close()


def test_what_was_saved_is_shown_and_what_was_not_is_lag(setting: Setting) -> None:
    watcher = setting.watcher()
    setting.write(0, 30)
    setting.count(0)
    assert watcher.step() == 16
    snapshot = setting.view.snapshot()
    assert snapshot["accounting"]["accepted"] == 15
    assert [p["lag"] for p in snapshot["partitions"]] == [0, 16]
    setting.count(1)
    assert watcher.step() == 16
    assert setting.view.snapshot()["accounting"]["accepted"] == 30
    assert watcher.step() == 0


def test_lag_grows_where_nobody_counts(setting: Setting) -> None:
    watcher = setting.watcher()
    for written in (30, 60):
        setting.write(written, 30)
        for _ in range(4):
            assert watcher.step() == 0
        assert sum(p["lag"] for p in setting.view.snapshot()["partitions"]) == written + 2
    published = setting.view.version()
    for _ in range(8):
        watcher.step()
    assert setting.view.version() == published


def test_due_round_is_sealed_and_released_once_every_worker_has_come_to_its_seal(setting: Setting) -> None:
    setting.write(0, 300)
    setting.count(0, 1)
    watcher = setting.watcher()
    setting.now_s = DUE_S
    watcher.step()
    assert [setting.log.end(p) for p in range(2)] == [152, 152]
    setting.count(0)
    watcher.step()
    assert setting.archive.get((HEALTH.digest, 0)) is None
    setting.count(1)
    watcher.step()
    released = setting.archive.get((HEALTH.digest, 0))
    assert released is not None
    watcher.step()
    assert setting.log.end(0) == 152
    # One process that does all of it releases the same bytes from the same log.
    assert setting.watcher().step() == 0
    archive = SqliteArchive(":memory:")
    Worker(setting.log, MemoryStore(), archive=archive, view=LiveView(), clock=lambda: DUE_S).step()
    worker = Worker(
        setting.log, MemoryStore(), archive=archive, view=LiveView(), clock=lambda: DUE_S, read_records=9
    )
    while worker.step():
        pass
    assert archive.get((HEALTH.digest, 0)) == released
    archive.close()


def test_store_that_comes_back_older_is_waited_for(setting: Setting) -> None:
    setting.write(0, 30)
    setting.count(0, 1)
    watcher = setting.watcher()
    shown = setting.view.snapshot()
    setting.store._states.clear()
    setting.store._keys.clear()
    assert watcher.step() == 0
    assert setting.view.snapshot() == shown
    setting.write(30, 2)
    setting.count(0, 1)
    assert watcher.step() == 2
    assert setting.view.snapshot()["accounting"]["accepted"] == 32


class ReadOnlyStore(WatchedStore):
    """A store that a worker could write to, and that says so if anybody does."""

    def load(self, partition: int) -> PartitionState:
        raise AssertionError("ids must be loaded by workers only")

    def save(self, partition: int, change: Change) -> None:
        raise AssertionError("counts must be saved by workers only")


def test_who_publishes_never_counts(setting: Setting) -> None:
    assert not issubclass(Publisher, Worker)
    watcher = setting.watcher(ReadOnlyStore)
    setting.write(0, 30)
    assert watcher.step() == 0
    setting.count(0, 1)
    setting.now_s = DUE_S
    assert watcher.step() == 32
    setting.count(0, 1)
    assert watcher.step() == 2
    released = setting.archive.get((HEALTH.digest, 0))
    assert released is not None
    assert json.loads(released)["accounting"]["accepted"] == 30


def test_worker_and_publisher_show_and_release_the_same(setting: Setting) -> None:
    """One part publishes for both: from the same log they come to the same page and the same bytes."""
    setting.write(0, 300)
    setting.count(0, 1)
    setting.now_s = DUE_S
    publisher = setting.watcher()
    publisher.step()
    setting.count(0, 1)
    publisher.step()
    archive, view = SqliteArchive(":memory:"), LiveView()
    worker = Worker(setting.log, MemoryStore(), archive=archive, view=view, clock=lambda: 0.0)
    while worker.step():
        pass
    key = (HEALTH.digest, 0)
    assert archive.get(key) == setting.archive.get(key) is not None
    assert view.snapshot() == setting.view.snapshot()
    archive.close()


def test_archived_rounds_are_let_go_of_once_their_release_is_kept(setting: Setting) -> None:
    setting.write(0, 300)
    setting.count(0, 1)
    watched = WatchedStore(setting.store)

    def watcher() -> Publisher:
        return Publisher(
            setting.log, watched, archive=setting.archive, view=setting.view, clock=lambda: DUE_S
        )

    first = watcher()
    first.step()
    setting.count(0)
    first.step()
    assert watched.forgotten == []
    setting.count(1)
    first.step()
    assert watched.forgotten == [(0, (HEALTH.digest, 0)), (1, (HEALTH.digest, 0))]
    # One that ended between archive and store does it at the next start.
    watched.forgotten.clear()
    watcher()
    assert len(watched.forgotten) == 2


def test_archive_without_a_release_whose_counts_are_gone_is_refused(setting: Setting) -> None:
    setting.write(0, 300)
    setting.log.everywhere(encode_record(SealRecord(HEALTH.digest, 0)))
    setting.count(0, 1)
    setting.store._states[1].rounds[HEALTH.digest, 0] = RoundState(sealed_at=151, is_archived=True)
    with pytest.raises(ArchiveError, match="round 1, partition 1: its counts were let go of"):
        setting.watcher()
