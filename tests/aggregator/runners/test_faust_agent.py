"""The Faust agent: groups, repeats, holes, partitions that move on, doubts.

Faust's own harness drives it (`agent.test_context`): the stream is Faust's; groups of records and their
offsets are the test's. How records are gathered is tested on a fetcher whose answers are the test's, too;
fetching itself, seeking and rebalances on real brokers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest
from aiokafka.errors import (  # type: ignore[import-untyped]  # it ships no annotations
    CommitFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    RequestTimedOutError,
)
from aiokafka.util import commit_structure_validate  # type: ignore[import-untyped]  # as above
from counting_logs import MemoryLog, MemoryStore, announcement, batch, counted, report_id, segment
from faust.types import TP
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap, TopicPeriod
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.runners import faust_runner
from hubbub_aggregator.runners.faust_runner import create_app

HEALTH = Survey.parse(LABELS)
RECORDS = [announcement(HEALTH), *(batch(segment(HEALTH, 0, [(report_id(i), i % 5)])) for i in range(30))]
# Partition 1 is the first one of a second topic, for rounds to come.
LAYOUT = PartitionMap.of(1, topic="reports").grown(TopicPeriod(HEALTH.round_start_s(1), "reports.2", 1, ""))


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
        """Puts groups of records of these offsets one after another, and waits until all were taken.

        Raises:
            EndedError: If the process would have ended.
        """
        # The harness gives every message the name of one topic, and an offset that goes up by one.
        self.context.original_channel = self.app.topic(topic)
        for group in ([(offset, RECORDS[offset]) for offset in several] for several in offsets):
            self.context.sent_offset = group[-1][0]
            await self.context.put(group, wait=False)
            self._sent += len(group)
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
    log.partition_map = LAYOUT
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

    monkeypatch.setattr(faust_runner, "_end", end)

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
        assert list(worker.context.results.values()) == [10, 10, 16, 16, 3]

    run(scenario)


def test_topics_of_a_layout_are_partitions_of_one_log(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        await worker.feed(range(31), topic="reports.2")
        assert (worker.store.load(0).offset, worker.store.load(1).offset) == (0, 31)
        # Reports of the first round do not belong to the second topic.
        assert all(known.verdicts.accepted == 0 for known in worker.store.load(1).rounds.values())

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


PLACE = TP("reports", 0)


class Fetched(NamedTuple):
    """What the gathering reads of one of aiokafka's records."""

    offset: int
    value: bytes | None


def gathered(
    monkeypatch: pytest.MonkeyPatch, *answers: dict[TP, list[Fetched]], within_s: float = 60.0, most: int = 16
) -> tuple[dict[TP, list[list[tuple[int, bytes]]]], list[tuple[float, int]]]:
    """The groups made of a fetcher's answers, and the time and room that each one was given."""
    waiting, asked = list(answers), list[tuple[float, int]]()

    async def fetch(_: object, __: object, ___: object, timeout: float, most: int) -> dict[TP, list[Fetched]]:
        asked.append((timeout, most))
        return waiting.pop(0)

    monkeypatch.setattr(faust_runner.AIOKafkaConsumerThread, "_fetch_records", fetch)
    monkeypatch.setattr(faust_runner, "_WITHIN_S", within_s)
    # Nothing of the thread is asked but what it is about.
    thread = object.__new__(faust_runner.GroupThread)
    return asyncio.run(thread._fetch_records(None, {PLACE}, 1.0, most)), asked


def fetched(*offsets: int) -> list[Fetched]:
    return [Fetched(offset, b"%d" % offset) for offset in offsets]


def offsets(groups: list[list[tuple[int, bytes]]]) -> list[list[int]]:
    return [[offset for offset, _ in group] for group in groups]


def test_what_comes_within_a_moment_is_one_group_of_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    other = TP("reports", 1)
    groups, asked = gathered(
        monkeypatch, {PLACE: fetched(3)}, {other: fetched(7, 8)}, {PLACE: fetched(4, 5)}, {}
    )
    assert groups == {PLACE: [[(3, b"3"), (4, b"4"), (5, b"5")]], other: [[(7, b"7"), (8, b"8")]]}
    assert [most for _, most in asked] == [16, 15, 13, 11]
    assert asked[0][0] == 1.0
    assert all(0.0 < timeout <= 60.0 for timeout, _ in asked[1:])


def test_nothing_that_comes_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gathered(monkeypatch, {}) == ({}, [(1.0, 16)])


def test_group_ends_with_the_most_records_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, asked = gathered(monkeypatch, {PLACE: fetched(*range(10))}, {PLACE: fetched(*range(10, 16))}, {})
    assert (offsets(groups[PLACE]), len(asked)) == ([list(range(16))], 2)
    large = [Fetched(0, bytes(faust_runner.GROUP_BYTES))]
    groups, asked = gathered(monkeypatch, {PLACE: large}, {PLACE: fetched(1)}, {})
    assert (offsets(groups[PLACE]), len(asked)) == ([[0]], 1)


def test_after_its_moment_a_group_takes_what_is_there_and_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups, asked = gathered(monkeypatch, {PLACE: fetched(0)}, {PLACE: fetched(1)}, {}, within_s=0.0)
    assert (offsets(groups[PLACE]), [timeout for timeout, _ in asked]) == ([[0, 1]], [1.0, 0.0, 0.0])


def test_records_asked_for_again_begin_a_group_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, _ = gathered(monkeypatch, {PLACE: fetched(5, 9)}, {PLACE: fetched(6, 7)}, {PLACE: fetched(8)}, {})
    assert offsets(groups[PLACE]) == [[5, 9], [6, 7, 8]]


def test_record_without_a_value_is_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, _ = gathered(monkeypatch, {PLACE: [Fetched(0, None)]}, {})
    assert groups == {PLACE: [[(0, b"")]]}


def test_message_lies_at_its_last_record_and_commits_what_comes_after(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        consumer = worker.app.consumer
        messages = [consumer._to_message(PLACE, [(at, b"") for at in found]) for found in ((3, 4), (5, 6, 7))]
        assert [(message.offset, message.tp) for message in messages] == [(4, PLACE), (7, PLACE)]
        worker.app.topics._acking_topics.add(PLACE.topic)
        for message in messages:
            assert consumer.ack(message)
        assert consumer._filter_committable_offsets([PLACE]) == {PLACE: 8}
        assert consumer._filter_committable_offsets([PLACE]) == {}

    run(scenario)


REBALANCED = IllegalStateError("No current assignment for partition")


def test_hole_of_a_partition_that_a_rebalance_took_ends_nothing(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        async def seek_wait(_: object) -> None:
            raise REBALANCED

        worker.app.consumer.seek_wait = seek_wait
        await worker.feed(range(5), range(9, 20))
        await worker.feed(range(5, 18), range(18, 31))
        assert counted(worker.store.load(0)) == counted(expected(31))

    run(scenario)


@pytest.mark.parametrize("error", [REBALANCED, TimeoutError(), AssertionError(), KafkaTimeoutError()])
def test_rebalance_that_overtakes_the_seek_is_left_to_faust(run: Run, error: Exception) -> None:
    async def scenario(worker: Worker) -> None:
        consumer = worker.app.consumer
        consumer.assignment = lambda: {PLACE, TP("reports.2", 0)}

        async def overtaken(_: object) -> None:
            await worker.app.on_partitions_revoked.send(set())
            raise error

        consumer.seek_wait = overtaken
        with pytest.raises(IllegalStateError):
            await consumer.seek_to_committed()
        # The next assignment is loaded as ever, and counted.
        consumer.seek_wait = worker._seek_wait
        consumer.assignment = lambda: {PLACE}
        assert await consumer.seek_to_committed() == {PLACE: 0}
        await worker.feed(range(10))
        await worker.feed(range(10), topic="reports.2")
        assert (worker.store.load(0).offset, worker.store.load(1).offset) == (10, 0)

    run(scenario)


def test_rebalance_that_overtakes_the_load_is_left_to_faust(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        consumer, load = worker.app.consumer, worker.store.load
        consumer.assignment = lambda: {PLACE}
        loop = asyncio.get_running_loop()

        def overtaken(partition: int) -> PartitionState:
            asyncio.run_coroutine_threadsafe(worker.app.on_partitions_revoked.send(set()), loop).result(
                PATIENCE_S
            )
            found: PartitionState = load(partition)
            return found

        worker.store.load = overtaken
        with pytest.raises(IllegalStateError, match="rebalance"):
            await consumer.seek_to_committed()
        assert worker.sought == []

    run(scenario)


def test_two_seeks_of_one_assignment_do_not_overtake_each_other(run: Run) -> None:
    """Faust's fetcher seeks by itself where a rebalance stopped the flow, beside the seek of the recovery."""

    async def scenario(worker: Worker) -> None:
        consumer, load = worker.app.consumer, worker.store.load
        consumer.assignment = lambda: {PLACE}
        loading, go_on = threading.Event(), threading.Event()

        def slow(partition: int) -> PartitionState:
            loading.set()
            assert go_on.wait(PATIENCE_S)
            found: PartitionState = load(partition)
            return found

        worker.store.load = slow
        seeks = [asyncio.create_task(consumer.seek_to_committed()) for _ in range(2)]
        assert await asyncio.to_thread(loading.wait, PATIENCE_S)
        go_on.set()
        assert await asyncio.gather(*seeks) == [{PLACE: 0}, {PLACE: 0}]
        await worker.feed(range(4))
        assert worker.store.load(0).offset == 4

    run(scenario)


def test_seek_that_fails_without_a_rebalance_ends_the_process(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        consumer = worker.app.consumer
        consumer.assignment = lambda: {PLACE}

        async def broken(_: object) -> None:
            raise KafkaTimeoutError

        consumer.seek_wait = broken
        with pytest.raises(EndedError):
            await consumer.seek_to_committed()

    run(scenario)


class Consumer:
    """aiokafka's consumer as its own subscription makes it, without a broker."""

    def __init__(self, *places: TP) -> None:
        self.places, self.committed = set(places), list[dict[Any, Any]]()
        self.refuses: Exception | None = None

    def assignment(self) -> set[TP]:
        return self.places

    async def commit(self, offsets: dict[Any, Any]) -> None:
        commit_structure_validate(offsets)  # aiokafka's own: no offsets are a ValueError
        if self.refuses is not None:
            raise self.refuses
        self.committed.append(offsets)


def test_commit_that_a_rebalance_overtakes_ends_nothing(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        thread, other = worker.app.consumer._thread, TP("reports.2", 0)
        thread._consumer = consumer = Consumer(PLACE)
        assert await thread._commit({PLACE: 3, other: 4})
        assert [offset for offset, _ in consumer.committed[0].values()] == [3]
        assert not await thread._commit({other: 4})
        for refusal in (IllegalStateError("not assigned"), CommitFailedError(), RequestTimedOutError()):
            consumer.refuses = refusal
            assert not await thread._commit({PLACE: 5})
        assert len(consumer.committed) == 1
        assert not thread._crashed.is_set()
        thread._consumer = None

    run(scenario)


def test_seek_between_two_assignments_is_a_rebalance_and_no_broken_assertion(run: Run) -> None:
    async def scenario(worker: Worker) -> None:
        thread = worker.app.consumer._thread
        thread._consumer = consumer = Consumer()
        with pytest.raises(IllegalStateError, match="must be assigned"):
            await thread._seek_wait(consumer, {PLACE: 3})
        thread._consumer = None

    run(scenario)


def test_worker_whose_shutdown_stands_still_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, codes = threading.Event(), list[int]()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr(faust_runner.os, "_exit", end)
    monkeypatch.setattr(faust_runner, "STOP_S", 0.01)
    monkeypatch.setattr(faust_runner.faust.Worker, "_schedule_shutdown", lambda *_: None)
    faust_runner._WorkerThatEnds._schedule_shutdown(object.__new__(faust_runner._WorkerThatEnds), None)
    assert ended.wait(PATIENCE_S)
    assert codes == [0]
    assert "did not stop within" in capsys.readouterr().err
