"""The cluster's world: workers of a group, a topic, a Redis, two collectors, and two publishers with a lease.

The counting is the product's `Assignment` on its `RedisStore`, whose scripts run on a Redis in memory; the
publishers are its `Publisher`. What the world replaces is what gives records and partitions to a worker: the
group that assigns and revokes, and the fetcher, which repeats records, skips some, and holds others across a
rebalance. A worker may sleep past its session and go on with what it held. A disaster befalls some worlds.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final
from unittest import mock

import redis
from invariants import counted
from memory_redis import MemoryRedis
from world import GRACE_S, Crash, RoundKey, World, crashing

from hubbub.wire import PartitionMap, SealRecord, encode_record
from hubbub.wire.partition_map import TopicPeriod
from hubbub_aggregator.counting import KeyedDeadLetters
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import AggregatorError, PartitionMapGrownError, SupersededError
from hubbub_aggregator.release import AgreedClock, SteadyClock
from hubbub_aggregator.runners import Assignment, Publisher
from hubbub_aggregator.stores import RedisStore, SqliteArchive
from hubbub_aggregator.web import LiveView
from hubbub_topic import LogError

SESSION_S: Final = 20.0
VERIFY_S: Final = 5.0
LEAST_CUT: Final = 8
"""Records that were counted of a partition that is cut: fewer may have come again before it is noticed."""
SLEEPS_S: Final = (0.0, 10.0, 25.0, 60.0)
DISASTERS: Final = ("none", "grown", "older", "empty", "evicted", "lost", "cut")
"""Disasters, one of which befalls a world; the first is the ordinary course."""
BORNE: Final = {
    "none": {"StoreConflictError", "LeaseLostError", "StoreError"},
    "grown": {"PartitionMapGrownError"},
    "evicted": {"CorruptStoreError"},
    "lost": {"LostError", "GapError"},
    "cut": {"AheadError"},
}
"""By disaster, the errors by which processes may end; those of "none" always.

Who reads while records are lost sees a gap where they were; who begins sees where the log begins."""


class Topic:
    """A topic: partitions of records, which may be torn, repeated, deleted, cut and added."""

    def __init__(self, world: ClusterWorld, partitions: int) -> None:
        self._world = world
        self.identity = "a-topic"
        self.partition_map = PartitionMap.of(partitions, topic="reports", identity=self.identity)
        self.held: list[list[bytes]] = [[] for _ in range(partitions)]
        self.begins = [0] * partitions
        self._announced: dict[bytes, bytes] = {}

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.held)

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Append in every partition, or in some of them, or twice."""
        world, first = self._world, {}
        torn = world.tape.pick(len(batches)) if len(batches) > 1 and world.fault(40) else len(batches)
        times = 2 if world.fault(40) else 1
        for place, (partition, records) in enumerate(sorted(batches.items())):
            if place >= torn:
                world.say(f"an append is torn, {torn} of {len(batches)} partitions have it")
                raise LogError("not known to be stored")
            if records:
                first[partition] = self.end(partition)
                self.held[partition] += [*records] * times
        return first

    def publish_survey(self, key: bytes, record: bytes) -> bool:
        """Append to every partition, once."""
        if key in self._announced:
            return False
        self._announced[key] = record
        for held in self.held:
            held.append(record)
        return True

    def read(self, partition: int, offset: int, limit: int) -> list[tuple[int, bytes]]:
        """Return records that are there."""
        held = self.held[partition]
        return [(at, held[at]) for at in range(max(offset, self.begins[partition]), len(held))][:limit]

    def begin(self, partition: int) -> int:
        """Return the first offset that is there."""
        return self.begins[partition]

    def end(self, partition: int) -> int:
        """Return the next offset."""
        return len(self.held[partition])

    def grow(self, from_s: int, partitions: int) -> None:
        """Add a topic for rounds from a moment on."""
        for _ in range(partitions):
            self.held.append([*self._announced.values()])
            self.begins.append(0)
        self.partition_map = self.partition_map.grown(TopicPeriod(from_s, "more", partitions, "more"))


class Group:
    """A group: members that beat get partitions, and those that are silent for a session lose theirs."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self._beats: dict[str, float] = {}
        self._members: dict[str, Assignment] = {}
        self.assigned: dict[str, tuple[int, ...]] = {}
        self.told: dict[str, int] = {}
        """The last number that a member was revoked by."""
        self.number = 0

    def beat(self, name: str, assignment: Assignment) -> None:
        """Be there."""
        self._beats[name], self._members[name] = self._world.loop.time(), assignment

    def leave(self, name: str) -> None:
        """Say that one ends in order."""
        self._beats.pop(name, None)

    async def coordinate(self) -> None:
        """Assign anew whenever somebody comes or is silent, and now and then without a reason."""
        world = self._world
        while True:
            await asyncio.sleep(5.0)
            now = world.loop.time()
            for name in [name for name, at in self._beats.items() if now - at > SESSION_S]:
                del self._beats[name]
            if self._beats.keys() == self.assigned.keys() and not world.fault(60):
                continue
            self.number += 1
            members = sorted(self._beats)
            turn = world.tape.pick(len(members)) if len(members) > 1 else 0
            members = members[turn:] + members[:turn]
            self.assigned = {
                name: tuple(range(place, world.log.partitions, len(members)))
                for place, name in enumerate(members)
            }
            # Who sleeps does not hear of it.
            for name in members:
                if now - self._beats[name] < 12.0:
                    self._members[name].revoke()
                    self.told[name] = self.number
            world.say(f"group: {', '.join(f'{name} {[*of]}' for name, of in self.assigned.items())}")


class ClusterWorld(World):
    """A cluster's life; see `World`."""

    partitions = 2

    def __init__(self, *given: Any, workers: int = 2, disaster: str | None = None, **size: Any) -> None:
        super().__init__(*given, **size)
        self.log = Topic(self, self.partitions)
        self.redis = MemoryRedis(self.now_s, self._trouble)
        self.group = Group(self)
        drawn = DISASTERS[self.tape.pick(len(DISASTERS))]
        self.disaster = drawn if disaster is None else disaster
        self.bearable = BORNE["none"] | BORNE.get(self.disaster, set())
        if self.disaster == "cut":
            self.asked = frozenset()
        elif self.disaster == "lost":
            self.asked = frozenset({"I8", "I9"})
        self._workers = [f"worker-{place}" for place in range(workers)]
        self._ahead = dict.fromkeys(("a", "b", "dash-1", "dash-2"), 0.0)
        # After a cut: the partition, its records before, and the first offset counted of what came since.
        self._cut_off: tuple[int, list[bytes], int | None] | None = None
        # By worker: a group of records at once, for the moment between two commands of somebody else.
        self._counts: dict[str, Callable[[], None]] = {}
        self._given_up = 0, range(0)
        self._letters: dict[bytes, bytes] = {}
        self._strange: dict[tuple[int, int], bytes] = {}
        self._in_trouble = False

    def lives(self) -> dict[str, Callable[[str], Coroutine[Any, Any, None]]]:
        """Return what each host does."""
        publishers = dict.fromkeys(("dash-1", "dash-2"), self._publisher)
        return super().lives() | dict.fromkeys(self._workers, self._worker) | publishers

    def more(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the group's coordination, the disaster, and what strangers write."""
        return self.group.coordinate(), self._befall(), self._strangers()

    def _trouble(self, when: str) -> None:
        if self._counts and self.fault(30):
            # Between two commands of one process another saves.
            names, self._counts = [*self._counts], (counts := self._counts) and {}
            counts[names[self.tape.pick(len(names))]]()
            self._counts = counts
        if self._in_trouble and self.fault(250):
            self.say(f"Redis: no answer, {'nothing was' if when == 'before' else 'all was'} done")
            raise redis.ConnectionError("no answer")

    def _store(self, name: str = "", number: Callable[[], int] = lambda: 0) -> RedisStore:
        log: Any = self.log
        self._in_trouble = True
        store = RedisStore(
            self.redis,  # type: ignore[arg-type]  # as good as one
            log_identity=log.identity,
            partitions=log.partitions,
            partition_map=log.partition_map,
        )
        save = store.save

        def chained(partition: int, change: Any) -> None:
            if number() < self.group.told.get(name, 0):
                self.seen.wrong.append(f"I10 {name}: saved partition {partition} after it was revoked")
            before = self._counted(partition)
            save(partition, change)
            if change.previous != before:
                self.seen.wrong.append(
                    f"I10 partition {partition}: saved from {change.previous} on, Redis was at {before}"
                )

        store.save = chained  # type: ignore[method-assign]
        return store

    def _counted(self, partition: int) -> int:
        """Return how much of a partition Redis says is counted."""
        head: Any = self.redis.data.get(b"{hubbub:%d}:head" % partition, {})
        return int(head.get(b"offset", b"0"))

    def put(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep dead letters, of each position the last."""
        self._letters.update(records)

    async def _strangers(self) -> None:
        """Write what nobody can read, as a newer collector would."""
        while True:
            await asyncio.sleep(300.0)
            if self.fault(12):
                partition, data = self.tape.pick(self.log.partitions), b"\xc1" + self.tape.bytes_of(4)
                self._strange[partition, self.log.end(partition)] = data
                self.log.held[partition].append(data)

    def others(self, _: Any) -> list[str]:
        """Return what does not hold of dead letters, where no record of the topic went."""
        if self.disaster in ("lost", "cut"):
            return []
        letters = {
            (each["partition"], each["offset"]): each["record"]
            for each in map(json.loads, self._letters.values())
        }
        strange = {place: base64.b64encode(data).decode() for place, data in self._strange.items()}
        return (
            [] if letters == strange else [f"I11 {len(letters)} letters, of {len(strange)} strange records"]
        )

    # Workers.

    async def _worker(self, name: str) -> None:
        log, group, held = self.log, self.group, dict[int, list[tuple[int, bytes]]]()
        number, verified = -1, self.loop.time()
        group.told.pop(name, None)
        partition_map, store = log.partition_map, self._store(name, lambda: number)
        crashing(self, name, store, ("save",))
        assignment = Assignment(
            store,
            begin=log.begin,
            end=log.end,
            keep="open",
            partition_map=partition_map,
            clock=self.loop.time,
            dead_letters=KeyedDeadLetters(self, log_identity=log.identity, payload="whole"),
        )
        following: dict[int, int] = {}
        problems: list[BaseException] = []

        def count(partition: int, records: list[tuple[int, bytes]]) -> None:
            self._counts.pop(name, None)
            before = self._counted(partition)
            if (seek := assignment.process(partition, records)) is not None:
                # It may have been cut, and hold nothing there by now.
                following[partition] = seek.offset
                if not (records := self.log.read(partition, seek.offset, 6)):
                    return
                assignment.process(partition, records)
            self._look_past_a_cut(partition, [each for each in records if each[0] >= before])
            following[partition] = records[-1][0] + 1
            self._counts[name] = meanwhile

        def meanwhile() -> None:
            try:
                for partition in [*following]:
                    if records := log.read(partition, following[partition], 6):
                        count(partition, records)
            except (AggregatorError, Crash) as problem:
                problems.append(problem)

        try:
            while not self._hosts[name].told.is_set():
                assignment.progress()
                if problems:
                    raise problems[0]
                group.beat(name, assignment)
                if number != group.number and name in group.assigned:
                    self._counts.pop(name, None)
                    asked, generation = group.number, assignment.revoke()
                    mine = [each for each in group.assigned[name] if each < partition_map.partitions]
                    found = await self._loaded(name, assignment, mine, generation)
                    if found is None:
                        continue
                    number, following = asked, found
                for partition in [*following]:
                    records = held.pop(partition, None) or self._fetched(partition, following[partition])
                    if records and self.fault(40):
                        # Asleep, with records in hand, maybe beyond its session.
                        held[partition] = records
                        await asyncio.sleep(SLEEPS_S[self.tape.pick(len(SLEEPS_S))])
                        break
                    if records:
                        count(partition, records)
                if self.loop.time() - verified > VERIFY_S:
                    await self._beaten(name, assignment, self.loop.run_in_executor(None, assignment.verify))
                    if log.partitions != partition_map.partitions:
                        raise PartitionMapGrownError("the log has grown")
                    verified = self.loop.time()
                await asyncio.sleep((7.0, 3.0, 11.0)[self.tape.pick(3)])
            assignment.revoke()
            group.leave(name)
        except Crash:
            return
        finally:
            self._counts.pop(name, None)

    async def _beaten(self, name: str, assignment: Assignment, awaited: Any) -> Any:
        """Wait for a thread; heartbeats go on meanwhile."""
        while not awaited.done():
            self.group.beat(name, assignment)
            await asyncio.wait([awaited], timeout=10.0)
        return awaited.result()

    async def _loaded(
        self, name: str, assignment: Assignment, mine: list[int], generation: int
    ) -> dict[int, int] | None:
        """Load in a thread; None where a rebalance overtook it."""
        loading = self.loop.run_in_executor(None, assignment.load, mine, generation)
        try:
            found: dict[int, int] = await self._beaten(name, assignment, loading)
        except AggregatorError as error:
            if isinstance(error, SupersededError) or assignment.generation != generation:
                return None
            raise
        return found

    def _fetched(self, partition: int, offset: int) -> list[tuple[int, bytes]]:
        """Return the next records; some that came before, or not the very next, now and then."""
        if offset > self.log.end(partition):  # as Faust does
            offset = self.log.begin(partition)
        elif self.fault(60):
            offset = max(offset - 3, 0)
        # What is read again after a start is soon read, once it is quiet.
        found = self.log.read(partition, offset, 64 if self.quiet else 1 + self.tape.pick(6))
        return list(found[1:] if len(found) > 1 and self.fault(60) else found)

    # Publishers.

    def _archive(self) -> SqliteArchive:
        """Open the archive; another process may make it between a look and what follows."""
        looked = SqliteArchive._version

        def overtaken(archive: SqliteArchive) -> int:
            found = looked(archive)
            if not found and self.fault(2):
                with mock.patch.object(SqliteArchive, "_version", looked):
                    SqliteArchive(self.archive_path).close()
            return found

        with mock.patch.object(SqliteArchive, "_version", overtaken):
            return SqliteArchive(self.archive_path)

    async def _publisher(self, name: str) -> None:
        self._ahead[name] = 0.0
        steady = SteadyClock(lambda: self.now_s() + self._ahead[name], self.loop.time)
        view, known = LiveView(), set[RoundKey]()
        with contextlib.closing(self._archive()) as archive:
            store = self._store()
            crashing(self, name, store, ("save_gates", "forget"))
            crashing(self, name, archive, ("put", "keep_shown", "keep_counts"))
            log = self.troubled(name)
            try:
                publisher = Publisher(
                    log,
                    store,
                    archive=archive,
                    view=view,
                    grace_s=GRACE_S,
                    clock=AgreedClock(steady, store.clocks),
                )
                self.say(f"{name}: publishes")
                while not self._hosts[name].told.is_set():
                    store.hold_lease()
                    if self.fault(100):
                        # Asleep between the lease and what it is for.
                        await asyncio.sleep(SLEEPS_S[self.tape.pick(len(SLEEPS_S))])
                    with contextlib.suppress(LogError):
                        publisher.step()
                    self.look(view, archive, known)
                    # In quiet it keeps its lease.
                    await asyncio.sleep(4.0 if self.quiet else (9.0, 4.0, 14.0)[self.tape.pick(3)])
                store.close()
            except Crash:
                return

    def calmed(self) -> None:
        """Start the publishers again: a clock that was ahead waits for somebody to look."""
        for name in ("dash-1", "dash-2"):
            if name in self._hosts:
                self._kill(self._hosts[name])

    # Disasters.

    async def _befall(self) -> None:
        dumps: list[Any] = []
        until = 300.0 * (2 + self.tape.pick(18))
        while self.loop.time() < until:
            await asyncio.sleep(300.0)
            dumps.append(self.redis.dump())
        if self.quiet or self.disaster == "none":
            return
        self.say(f"disaster: {self.disaster}")
        await getattr(self, f"_{self.disaster}")(dumps)

    async def _grown(self, _: Any) -> None:
        start_s = self.survey.round_start_s(self.survey.rounds - 1)
        if start_s > self.now_s() + 180.0:
            self.log.grow(start_s, 1)

    async def _older(self, dumps: list[Any]) -> None:
        self.redis.restart(dumps[self.tape.pick(len(dumps))])

    async def _empty(self, _: Any) -> None:
        self.redis.restart()

    async def _evicted(self, _: Any) -> None:
        keys = sorted(key for key in self.redis.data if not key.endswith(b":lease"))
        if not keys:
            return
        key = keys[self.tape.pick(len(keys))]
        self.say(f"{key!r} leaves Redis")
        self.redis._gone(key)
        # Its doubt ends whoever meets it; the operator then has all of it counted again.
        while "CorruptStoreError" not in self.seen.ended:
            await asyncio.sleep(60.0)
        await asyncio.sleep(60.0)
        self.say("operator: deletes what is in Redis")
        self.redis.restart()

    async def _lost(self, _: Any) -> None:
        """Retention takes what a partition has not counted: whoever counts is stopped meanwhile."""
        partition = self.tape.pick(self.log.partitions)
        if self.tape.pick(2):
            # The last seal, just after it was written.
            while not self._has_last_seal(partition):
                await asyncio.sleep(1.0)
        counted = self._counted(partition)
        end = self.log.end(partition)
        if counted == end:
            for name in self._workers:
                self._kill(self._hosts[name])
            self.log.append({partition: [b"\x00"]})
            end = self.log.end(partition)
        self.log.begins[partition] = end
        self.say(f"partition {partition}: records {counted} to {end} are gone")
        while "LostError" not in self.seen.ended:
            await asyncio.sleep(30.0)
        self.say("operator: gives them up")
        while True:
            with contextlib.suppress(AggregatorError):
                store = self._store()
                state = store.load(partition)
                if state.offset < end:
                    self._given_up = partition, range(state.offset, end)
                    store.save(partition, skip_lost(state, end, self.surveys, now_s=int(self.now_s())))
                return
            await asyncio.sleep(5.0)

    def _has_last_seal(self, partition: int) -> bool:
        """Return whether a partition holds the last round's seal, not counted yet."""
        seal = encode_record(SealRecord(self.survey.digest, self.survey.rounds - 1))
        return seal in self.log.held[partition][self._counted(partition) :]

    async def _cut(self, _: Any) -> None:
        partition = max(range(self.log.partitions), key=self._counted)
        end, held = self._counted(partition), self.log.held[partition]
        if end < LEAST_CUT:
            return
        cut = 1 + self.tape.pick(end)
        self._cut_off = partition, [*held], None
        del held[end - cut :]
        self.say(f"partition {partition}: of {end} records that were counted {cut} are cut off")
        if cut >= LEAST_CUT:
            self.expected = {"AheadError"}
        else:
            # So few may have come again before a worker looks that is at work; one that starts compares them.
            for name in self._workers:
                self._kill(self._hosts[name])

    def _look_past_a_cut(self, partition: int, records: list[tuple[int, bytes]]) -> None:
        """Note where counting goes on in a partition that was cut and has grown, and what it passed over."""
        if self._cut_off is None or self._cut_off[0] != partition or self._cut_off[2] is not None:
            return
        _, history, _ = self._cut_off
        for offset, data in records:
            if offset < self._counted(partition) and (offset >= len(history) or data is not history[offset]):
                self._cut_off = partition, history, offset
                known = counted({0: list(enumerate(history[:offset]))})
                both = counted({0: list(enumerate([*history[:offset], *self.log.held[partition][:offset]]))})
                if passed := sum(len(ids) - len(known.get(key, ())) for key, ids in both.items()):
                    self.seen.wrong.append(f"I8 partition {partition}: {passed} reports were passed over")
                return

    def records(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return every record that was not given up, in a partition that was cut as they were counted."""
        gone_of, gone = self._given_up
        found = {number: list(enumerate(held)) for number, held in enumerate(self.log.held)}
        found[gone_of] = [each for each in found[gone_of] if each[0] not in gone]
        if self._cut_off is not None:
            partition, history, since = self._cut_off
            since = len(history) if since is None else since
            found[partition] = [*list(enumerate(history))[:since], *found[partition][since:]]
        return found
