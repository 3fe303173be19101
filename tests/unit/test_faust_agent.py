"""The Faust agent: groups, repeats, holes, partitions that move on, doubts.

Its function is run on events that the test makes: Faust's own harness (`agent.test_context`) does not drive a
stream that is taken in groups. The stream, the consumer and rebalances are tested on real brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from faust.types import TP, Message
from surveys import LABELS

from hubbub.layout import Layout, Span
from hubbub.survey import Survey
from hubbub_aggregator import faust_app
from hubbub_aggregator.counting import PartitionState, apply_many
from hubbub_aggregator.faust_app import create_app

HEALTH = Survey.parse(LABELS)
RECORDS = [announcement(HEALTH), *(batch(segment(HEALTH, 0, [(report_id(i), i % 5)])) for i in range(30))]
# Partition 1 is the first one of a second topic, for rounds to come.
LAYOUT = Layout.of(1, topic="reports").grown(Span(HEALTH.round_start_s(1), "reports.2", 1, ""))


class Event:
    """A record as Faust hands it over."""

    def __init__(self, tp: TP, offset: int) -> None:
        self.message = Message(
            tp.topic, tp.partition, offset, 0.0, 0, None, b"", RECORDS[offset], None, 0, 0, tp
        )


class Stream:
    """Gives the groups that a test has made, as Faust's stream gives what has come."""

    def __init__(self, groups: list[list[Event]]) -> None:
        self._groups = groups

    async def take_events(self, most: int, within: float) -> AsyncIterator[list[Event]]:
        for group in self._groups:
            assert 0 < len(group) <= most
            yield group


class Consumer:
    """Notes where it is told to read on."""

    def __init__(self) -> None:
        self.sought: list[dict[TP, int]] = []

    async def seek_wait(self, offsets: dict[TP, int]) -> None:
        self.sought.append(dict(offsets))


class Ended(BaseException):
    """The process would have ended."""


class Worker:
    """An app with two partitions loaded, whose agent is fed by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.store = MemoryLog(), MemoryStore()
        self.log.layout = LAYOUT
        self.log.append(dict.fromkeys((0, 1), RECORDS))
        monkeypatch.setattr(faust_app, "_end", self._end)
        self.app: Any = create_app(self.log, self.store, bootstrap="nowhere:1", group_records=16)
        self.app.consumer = self.consumer = Consumer()
        self.app.assignment.load([0, 1])

    def _end(self) -> None:
        raise Ended

    def feed(self, *groups: range, topic: str = "reports") -> None:
        events = [[Event(TP(topic, 0), offset) for offset in group] for group in groups]
        (agent,) = self.app.agents.values()

        async def run() -> None:
            async for _ in agent.fun(Stream(events)):
                pass

        asyncio.run(run())


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    return Worker(monkeypatch)


def expected(n: int) -> PartitionState:
    state = PartitionState()
    state.commit(apply_many(state, enumerate(RECORDS[:n])))
    return state


def test_groups_are_counted_and_saved_and_repeats_dropped(worker: Worker) -> None:
    worker.feed(range(10), range(10, 20), range(4, 20), range(12, 28), range(28, 31))
    assert counted(worker.store.load(0)) == counted(expected(31))
    assert worker.store.load(1).offset == 0
    assert worker.consumer.sought == []


def test_topics_of_a_layout_are_partitions_of_one_log(worker: Worker) -> None:
    worker.feed(range(16), range(16, 31), topic="reports.2")
    assert (worker.store.load(0).offset, worker.store.load(1).offset) == (0, 31)
    # Reports of the first round do not belong to the second topic.
    assert all(known.accounting.accepted == 0 for known in worker.store.load(1).rounds.values())


def test_hole_is_asked_for_once_at_its_topic_and_its_coming_heals(worker: Worker) -> None:
    worker.feed(range(5), range(9, 20), range(20, 23), range(5, 18), range(18, 31))
    assert worker.consumer.sought == [{TP("reports", 0): 5}]
    assert counted(worker.store.load(0)) == counted(expected(31))


def test_partition_that_was_revoked_is_left_to_others(worker: Worker) -> None:
    worker.feed(range(10))
    asyncio.run(worker.app.on_partitions_revoked.send(set()))
    worker.feed(range(10, 20))
    assert worker.store.load(0).offset == 10


def test_doubt_ends_the_process_and_saves_nothing(worker: Worker) -> None:
    worker.feed(range(10))
    # Somebody else counts this partition, too.
    worker.store.save(0, apply_many(worker.store.load(0), [(10, RECORDS[10])]))
    with pytest.raises(Ended):
        worker.feed(range(10, 20), range(20, 31))
    assert worker.store.load(0).offset == 11
