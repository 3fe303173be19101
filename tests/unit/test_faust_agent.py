"""The Faust agent: groups, repeats, holes, partitions that move on, doubts.

Faust's own harness drives it (`agent.test_context`): the stream is Faust's, and so is the taking of groups;
records and their offsets are the test's. Fetching, seeking and rebalances are tested on real brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from faust.types import TP
from surveys import LABELS

from hubbub.layout import Layout, Span
from hubbub.survey import Survey
from hubbub_aggregator import faust_app
from hubbub_aggregator.counting import apply_many
from hubbub_aggregator.faust_app import create_app
from hubbub_aggregator.partition import PartitionState

HEALTH = Survey.parse(LABELS)
RECORDS = [announcement(HEALTH), *(batch(segment(HEALTH, 0, [(report_id(i), i % 5)])) for i in range(30))]
# Partition 1 is the first one of a second topic, for rounds to come.
LAYOUT = Layout.of(1, topic="reports").grown(Span(HEALTH.round_start_s(1), "reports.2", 1, ""))


# Far more than a group takes; a test that hangs should say where.
PATIENCE_S = 30.0


class EndedError(Exception):
    """The process would have ended."""


class Worker:
    """An app with two partitions loaded, whose agent takes what a test puts."""

    def __init__(self, log: MemoryLog, store: MemoryStore) -> None:
        self.store = store
        self.app: Any = create_app(log, store, bootstrap="nowhere:1", group_records=16)
        self.sought: list[dict[TP, int]] = []
        self.app.consumer.seek_wait = self._seek_wait
        self.app.assignment.load([0, 1])
        (agent,) = self.app.agents.values()
        self.context = agent.test_context()
        self._sent = 0

    async def _seek_wait(self, offsets: dict[TP, int]) -> None:
        self.sought.append(dict(offsets))

    async def feed(self, *offsets: Iterable[int], topic: str = "reports") -> None:
        """Puts records of these offsets one after another, and waits until all were taken.

        Raises:
            EndedError: If the process would have ended.
        """
        # The harness gives every message the name of one topic, and an offset that goes up by one.
        self.context.original_channel = self.app.topic(topic)
        for offset in (offset for several in offsets for offset in several):
            self.context.sent_offset = offset
            await self.context.put(RECORDS[offset], wait=False)
            self._sent += 1
        async with self.context.new_value_processed:
            await asyncio.wait_for(self.context.new_value_processed.wait_for(self._is_over), PATIENCE_S)
        if self.context.crash_reason is not None:
            raise self.context.crash_reason

    def _is_over(self) -> bool:
        return self.context.crash_reason is not None or self.taken == self._sent

    @property
    def taken(self) -> int:
        return sum(self.context.results.values())


@asynccontextmanager
async def working() -> AsyncIterator[Worker]:
    log, store = MemoryLog(), MemoryStore()
    log.layout = LAYOUT
    log.append(dict.fromkeys((0, 1), RECORDS))
    worker = Worker(log, store)
    try:
        async with worker.context:
            yield worker
    finally:
        # The thread that fetches has made its event loop, and never starts.
        worker.app.consumer._thread.thread_loop.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Worker], Awaitable[None]]], None]:
    """Runs a scenario on a worker, in an event loop of its own."""

    def end() -> None:
        raise EndedError

    monkeypatch.setattr(faust_app, "_end", end)

    async def scene(scenario: Callable[[Worker], Awaitable[None]]) -> None:
        async with working() as worker:
            await scenario(worker)

    return lambda scenario: asyncio.run(scene(scenario))


def expected(n: int) -> PartitionState:
    state = PartitionState()
    state.commit(apply_many(state, enumerate(RECORDS[:n])))
    return state


Run = Callable[[Callable[[Worker], Awaitable[None]]], None]


def test_groups_are_counted_and_saved_and_repeats_dropped(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(10), range(10, 20), range(4, 20))
        await worker.feed(range(12, 28), range(28, 31))
        assert counted(worker.store.load(0)) == counted(expected(31))
        assert worker.store.load(1).offset == 0
        assert worker.sought == []
        assert max(worker.context.results.values()) == 16

    run(scenario)


def test_topics_of_a_layout_are_partitions_of_one_log(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(31), topic="reports.2")
        assert (worker.store.load(0).offset, worker.store.load(1).offset) == (0, 31)
        # Reports of the first round do not belong to the second topic.
        assert all(known.accounting.accepted == 0 for known in worker.store.load(1).rounds.values())

    run(scenario)


def test_group_of_several_partitions_is_counted_in_each(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        for offset in range(8):
            await worker.feed([offset])
            await worker.feed([offset], topic="reports.2")
        assert (worker.store.load(0).offset, worker.store.load(1).offset) == (8, 8)
        assert counted(worker.store.load(0)) == counted(expected(8))

    run(scenario)


def test_hole_is_asked_for_once_at_its_topic_and_its_coming_heals(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(5), range(9, 20))
        await worker.feed(range(20, 23))
        assert worker.sought == [{TP("reports", 0): 5}]
        await worker.feed(range(5, 18), range(18, 31))
        assert worker.sought == [{TP("reports", 0): 5}]
        assert counted(worker.store.load(0)) == counted(expected(31))

    run(scenario)


def test_partition_that_was_revoked_is_left_to_others(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(10))
        await worker.app.on_partitions_revoked.send(set())
        await worker.feed(range(10, 20))
        assert worker.store.load(0).offset == 10

    run(scenario)


def test_doubt_ends_the_process_and_saves_nothing(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(10))
        # Somebody else counts this partition, too.
        worker.store.save(0, apply_many(worker.store.load(0), [(10, RECORDS[10])]))
        with pytest.raises(EndedError):
            await worker.feed(range(10, 20), range(20, 31))
        assert worker.store.load(0).offset == 11

    run(scenario)
