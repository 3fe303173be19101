"""A record that nobody can apply is named, passed over on an operator's word, and a replay agrees."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting import skipping
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.dead_letters import KeyedDeadLetters, in_order
from hubbub_aggregator.counting.partition import Change, PartitionState
from hubbub_aggregator.counting.skipping import skip_record, skips_of
from hubbub_aggregator.errors import UnappliableError
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.sqlite_dead_letters import SqliteDeadTopic
from hubbub_deploy import node
from hubbub_deploy.commands.arguments import place
from hubbub_deploy.commands.replay import log_count, log_replay
from hubbub_deploy.errors import DeployError
from hubbub_topic.sqlite import SqliteLog

HEALTH = Survey.parse(LABELS)
KEY = (HEALTH.digest, 0)
POISON_AT = 17
NOW_S = HEALTH.start_s + 3600


def records() -> list[bytes]:
    return [
        announcement(HEALTH),
        *(batch(segment(HEALTH, 0, [(report_id(10 * i + j), j % 5) for j in range(10)])) for i in range(29)),
    ]


POISON = records()[POISON_AT]


@pytest.fixture(autouse=True)
def bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes applying one record fail, as a bug would, in every process of these tests."""

    def apply(
        state: PartitionState, found: Iterable[tuple[int, bytes]], *, most_rounds: int | None = None
    ) -> Change:
        several = list(found)
        if any(record == POISON for _, record in several):
            raise ZeroDivisionError("the secret value 4711")
        return apply_many(state, several, most_rounds=most_rounds)

    monkeypatch.setattr(skipping, "apply_many", apply)


class Topic(dict[bytes, bytes]):
    """A dead-letter topic in memory."""

    def put(self, found: Iterable[tuple[bytes, bytes]]) -> None:
        self.update(found)


class Setting:
    def __init__(self) -> None:
        self.log, self.store, self.topic = MemoryLog(partitions=1), MemoryStore(), Topic()
        self.letters = KeyedDeadLetters(self.topic, log_identity=self.log.identity)
        self.log.append({0: records()})

    def known(self) -> dict[tuple[int, int], int]:
        return skips_of(self.topic.values(), self.log.identity)

    def take(self) -> None:
        """Counts all, in one group, as a process that was just started."""
        assignment = Assignment(
            self.store, end=self.log.end, clock=lambda: 0.0, dead_letters=self.letters, skips=self.known()
        )
        start = assignment.load([0])[0]
        assignment.process(0, self.log.read(0, start, 100))

    def skip_record(self, partition: int, offset: int) -> bool:
        stored = self.store.load(0).offset
        return skip_record(self.log, stored, self.letters, self.known(), (partition, offset), now_s=NOW_S)


def test_record_that_cannot_be_applied_is_named_and_all_before_it_are_saved() -> None:
    setting = Setting()
    for _ in range(2):
        with pytest.raises(
            UnappliableError, match=r"record at offset 17 .*ZeroDivisionError.* --skip 0:17 "
        ) as told:
            setting.take()
        assert "4711" not in str(told.value)
        assert setting.store.load(0).offset == POISON_AT


def test_record_that_is_skipped_is_a_dead_letter_and_a_lost_range() -> None:
    setting = Setting()
    with pytest.raises(UnappliableError):
        setting.take()
    assert setting.skip_record(0, POISON_AT)
    assert not setting.skip_record(0, POISON_AT)
    setting.take()
    state = setting.store.load(0)
    assert (state.offset, state.dead, state.rounds[KEY].verdicts.accepted) == (30, 1, 280)
    assert [(lost.first, lost.end, lost.skipped_s) for lost in state.lost] == [(17, 18, NOW_S)]
    (letter,) = in_order(setting.topic.values())
    assert (letter["partition"], letter["offset"], letter["reason"]) == (0, 17, "skipped")
    # Whoever counts all of it anew needs no word again, and comes to the same.
    setting.store = MemoryStore()
    setting.take()
    again = setting.store.load(0)
    assert (counted(again), again.lost, again.dead) == (counted(state), state.lost, state.dead)
    assert not setting.skip_record(0, POISON_AT)


def test_record_is_skipped_in_its_partition_alone_though_it_could_be_applied_by_now() -> None:
    """A later release may have mended the bug: a replay passes over the record all the same."""
    healthy = list(enumerate(records()[:POISON_AT]))
    ends = {}
    for partition, at_once in ((0, 100), (1, 5)):
        state, ends[partition] = PartitionState(), []
        while state.offset < len(healthy):
            group = healthy[state.offset : state.offset + at_once]
            change = skipping.next_change(partition, state, group, {(0, 5): NOW_S})
            state.commit(change)
            ends[partition].append((state.offset, [letter.reason for letter in change.dead_letters]))
        assert state.rounds[KEY].verdicts.accepted == 10 * (len(healthy) - 1 - (partition == 0))
    assert ends == {0: [(5, []), (6, ["skipped"]), (17, [])], 1: [(5, []), (10, []), (15, []), (17, [])]}


@pytest.mark.parametrize(
    ("partition", "offset", "said"),
    [(0, 3, "at least 17, which comes next, got 3"), (0, 30, "got none at 0:30"), (1, 17, "below 1, got 1")],
)
def test_record_that_was_counted_or_is_not_there_is_not_skipped(
    partition: int, offset: int, said: str
) -> None:
    setting = Setting()
    with pytest.raises(UnappliableError):
        setting.take()
    with pytest.raises(ValueError, match=said):
        setting.skip_record(partition, offset)
    assert not setting.topic


def test_letters_of_another_log_or_reason_skip_nothing() -> None:
    setting = Setting()
    setting.skip_record(0, POISON_AT)
    assert skips_of(setting.topic.values(), "another log") == {}
    other = Topic()
    KeyedDeadLetters(other, log_identity=setting.log.identity).put(
        0, apply_many(PartitionState(), [(0, b"")]).dead_letters
    )
    assert skips_of(other.values(), setting.log.identity) == {}


def test_node_skips_a_record_and_its_replay_releases_the_same_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    with contextlib.closing(SqliteLog(folder / node.LOG_FILE, partitions=1)) as log:
        log.append({0: [*records(), encode_record(SealRecord(*KEY))]})

    def started(*skips: tuple[int, int]) -> int:
        settings = node.NodeSettings(
            surveys=(HEALTH,), data_dir=folder, partitions=1, skip=skips, clock=lambda: float(NOW_S)
        )
        with node._parts(settings) as (_, worker, view):
            assert worker.is_caught_up
            released: int = view.snapshot()["surveys"][0]["rounds"][0]["devices"]
            return released

    with pytest.raises(DeployError, match="--skip 0:17"):
        started()
    with pytest.raises(DeployError, match="--skip 0:17"):
        log_count.counted(str(folder))
    assert started((0, 17)) == started((0, 17)) == started() == 280
    states, layout = log_count.counted(str(folder))
    with contextlib.closing(SqliteArchive(folder / node.ARCHIVE_FILE)) as archive:
        released = archive.get(KEY)
    assert released is not None
    assert b'"lost":[{"from":17,"partition":0,"until":18}]' in released
    assert log_replay.releases(states, {HEALTH.digest: HEALTH}, layout) == {KEY: released}
    with contextlib.closing(SqliteDeadTopic(folder / node.DEAD_FILE)) as dead:
        assert [letter["reason"] for letter in in_order(dead.records().values())] == ["skipped"]


def test_place_is_a_partition_and_an_offset() -> None:
    assert place("3:4711") == (3, 4711)
    for text in ("4711", "3:", ":4", "-1:4", "3:4:5", "a:1"):
        with pytest.raises(argparse.ArgumentTypeError, match="must be PARTITION:OFFSET, got"):
            place(text)


def test_records_of_many_rounds_are_saved_in_several_changes_that_add_up_to_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(skipping, "MAX_ROUNDS", 2, raising=False)
    touching = [0, 0, 1, 1, 2, 2, 0, 1]
    minute = HEALTH.round_start_s(2) // 60 + 30
    log = [announcement(HEALTH)]
    log += [
        batch(segment(HEALTH, number, [(report_id(i), i % 5)]), minute=minute)
        for i, number in enumerate(touching)
    ]
    whole, split, ends = PartitionState(), PartitionState(), []
    whole.commit(apply_many(whole, enumerate(log)))
    while split.offset < len(log):
        change = skipping.next_change(0, split, list(enumerate(log))[split.offset :], {})
        split.commit(change)
        ends.append((change.offset, len(change.rounds)))
    assert ends == [(4, 2), (6, 2), (8, 2), (9, 1)]
    assert counted(split) == counted(whole)
