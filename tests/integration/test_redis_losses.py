"""A key that leaves Redis is noticed, or does no harm: every kind of key, lost in every way, at every moment.

The oracle is the same story without a loss: a worker counts, a watcher shows and releases. With one it must
end with the same releases, totals and view, or a process must have ended with a doubt before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, NamedTuple, cast

import pytest
import redis
from counting_logs import MemoryLog, announcement, batch, report_id, segment
from redis_harness import RedisServer, needs_redis, running
from store_contract import HEALTH, VISITED

from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import AggregatorError, CorruptStoreError, StoreConflictError, StoreError
from hubbub_aggregator.runners.assignment import Assignment
from hubbub_aggregator.runners.publisher import Publisher
from hubbub_aggregator.stores.archive import SqliteArchive
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.web.view import LiveView

pytestmark = [pytest.mark.integration, needs_redis]

Moment = Literal["while all run", "before a load", "before a release", "before another release"]
MOMENTS: Final[tuple[Moment, ...]] = (
    "while all run",
    "before a load",
    "before a release",
    "before another release",
)
Loss = Callable[[redis.Redis, bytes], object]

HEAD: Final = b"{test:0}:"
STEPS: Final = b"{test:steps}:memory-log"
KINDS: Final = {
    "head",
    "surveys",
    "rounds",
    "seals",
    "past",
    "lost",
    "round",
    "ids",
    "steps",
    "steps:lease",
    "steps:kept",
}


def kind_of(key: bytes) -> str:
    if key.startswith(STEPS):
        return "steps" + key.removeprefix(STEPS).decode()
    assert key.startswith(HEAD)
    return key.removeprefix(HEAD).split(b":")[0].decode()


def some(number: int, start: int, n: int, **refused: int) -> bytes:
    minute = HEALTH.round_start_s(number) // 60 + 30
    pairs = [(report_id(start + i), (start + i) % 5) for i in range(n)]
    return batch(segment(HEALTH, number, pairs, **refused), minute=minute)


def sealed(number: int) -> bytes:
    return encode_record(SealRecord(HEALTH.digest, number))


class Outcome(NamedTuple):
    """What a story ended with."""

    releases: dict[int, Any]
    view: dict[str, Any]
    archived: dict[str, int]


class Story:
    """One partition: a round that is archived, one that is released, an open one, refusals, a lost range."""

    def __init__(self, server: RedisServer) -> None:
        self.server, self.opened = server, list[RedisStore]()
        self.log, self.archive, self.view = MemoryLog(partitions=1), SqliteArchive(":memory:"), LiveView()
        self.log.append({0: [announcement(HEALTH), announcement(VISITED), b"dead"]})
        self.worker, self.watcher = self.start_worker(), self.start_watcher()

    def store(self) -> RedisStore:
        self.opened.append(
            RedisStore.connect(
                self.server.url, log_identity=self.log.identity, partitions=1, namespace="test"
            )
        )
        return self.opened[-1]

    def start_worker(self) -> Assignment:
        store = self.store()
        worker = Assignment(store, end=self.log.end, keep="open", clock=lambda: 0.0)
        first = worker.load([0])[0]
        worker.process(0, self.log.read(0, first, store.offset(0) - first))
        return worker

    def start_watcher(self) -> Publisher:
        for store in self.opened:
            store.release_lease()
        return Publisher(self.log, self.store(), archive=self.archive, view=self.view, clock=lambda: 0.0)

    def count(self, *records: bytes) -> None:
        start = self.log.end(0)
        self.log.append({0: list(records)})
        self.worker.process(0, self.log.read(0, start, len(records)))

    def begin(self) -> None:
        self.worker.process(0, self.log.read(0, 0, 3))
        self.count(some(0, 0, 150, late=2), sealed(0))
        self.watcher.step()
        assert self.archive.get((HEALTH.digest, 0)) is not None
        self.give_up()
        self.count(some(1, 1000, 130), some(2, 2000, 150))
        self.watcher.step()
        self.count(some(2, 2150, 150), batch(segment(VISITED, 0, [], late=3)))
        self.watcher.step()

    def give_up(self) -> None:
        self.log.append({0: [b"gone"]})
        store, end = self.store(), self.log.end(0)
        store.save(0, skip_lost(store.load(0), end, [], now_s=HEALTH.start_s))
        self.worker.load([0])

    def go_on(self) -> None:
        self.count(some(1, 1100, 60, early=1), some(2, 2290, 60), some(0, 0, 7), sealed(1))

    def play(self, db: redis.Redis, moment: Moment, lose: Callable[[], object]) -> Outcome:
        self.begin()
        if moment in ("while all run", "before a load"):
            lose()
            if moment == "before a load":
                self.worker, self.watcher = self.start_worker(), self.start_watcher()
            self.go_on()
        else:
            self.go_on()
            lose()
            if moment == "before another release":
                self.watcher = self.start_watcher()
        for _ in range(4):
            self.watcher.step()
        self.worker.verify()
        # Who comes next finds it as it was, too, or says that it is not.
        self.worker, self.watcher = self.start_worker(), self.start_watcher()
        found = {number: self.archive.get((HEALTH.digest, number)) for number in range(3)}
        releases = {number: json.loads(data) for number, data in found.items() if data is not None}
        state = self.store().load_counts(0)
        archived: dict[RoundKey, int] = {
            key: known.sealed_at or -1 for key, known in state.rounds.items() if known.is_archived
        }
        return Outcome(
            releases,
            self.view.snapshot(),
            {f"{digest.hex()} {n}": at for (digest, n), at in archived.items()},
        )

    def close(self) -> None:
        for store in self.opened:
            store.close()
        self.archive.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def db(server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield client


def played(server: RedisServer, db: redis.Redis, moment: Moment, lose: Callable[[], object]) -> Outcome:
    db.flushall()
    story = Story(server)
    try:
        return story.play(db, moment, lose)
    finally:
        story.close()


def keys_at(server: RedisServer, db: redis.Redis, moment: Moment) -> dict[bytes, bytes]:
    """Every key that there is at a moment, and its type."""
    found: dict[bytes, bytes] = {}

    def look() -> None:
        for key in cast(list[bytes], db.keys("*")):
            found[key] = cast(bytes, db.type(key))

    played(server, db, moment, look)
    return found


def delete(db: redis.Redis, key: bytes) -> None:
    assert db.delete(key)


def lose_the_first(db: redis.Redis, key: bytes) -> None:
    kind = db.type(key)
    if kind == b"hash":
        field = sorted(cast(list[bytes], db.hkeys(key)))[0]
        if kind_of(key) == "head":
            field = b"accepted"
        assert db.hdel(key, cast(Any, field))
    elif kind == b"list":
        assert db.lpop(key)
    else:
        db.set(key, b"")


def lose_the_last(db: redis.Redis, key: bytes) -> None:
    kind = db.type(key)
    if kind == b"hash":
        field = sorted(cast(list[bytes], db.hkeys(key)))[-1]
        if kind_of(key) == "head":
            field = b"offset"
        assert db.hdel(key, cast(Any, field))
    elif kind == b"list":
        assert db.rpop(key)
    else:
        data = cast(bytes, db.get(key))
        # Whole integers, so that what is left can be read.
        db.set(key, data[: len(data) // 16 * 8])


@pytest.mark.parametrize("lose", [delete, lose_the_first, lose_the_last])
@pytest.mark.parametrize("moment", MOMENTS)
def test_loss_of_any_key_is_noticed_or_does_no_harm(
    server: RedisServer, db: redis.Redis, moment: Moment, lose: Loss
) -> None:
    truth = played(server, db, moment, lambda: None)
    assert sorted(truth.releases) == [0, 1]
    assert len(truth.archived) == 2
    keys = keys_at(server, db, moment)
    kinds = {kind_of(key) for key in keys}
    # Integers and ids are of rounds; ids go when their round is sealed, one round is open at any moment.
    assert kinds == KINDS
    harmful, noticed = [], set()
    for key in sorted(keys):
        try:
            found = played(server, db, moment, lambda key=key: lose(db, key))  # type: ignore[misc]  # bound
        except AggregatorError:
            noticed.add(kind_of(key))
        else:
            if found != truth:
                harmful.append((key, found, truth))
    assert not harmful, harmful[0]
    # What holds counts, seals or surveys is never lost without a word, but where it is not needed any more.
    if lose is delete:
        assert noticed >= {"head", "surveys", "rounds", "seals", "past", "lost", "round", "ids"}, noticed


def test_keys_that_redis_evicts_after_its_policy_changed_give_no_false_release(
    server: RedisServer, db: redis.Redis
) -> None:
    truth = played(server, db, "while all run", lambda: None)
    evicted = 0

    def evict() -> None:
        nonlocal evicted
        before = cast(int, db.dbsize())
        db.config_set("maxmemory-policy", "allkeys-random")
        # Used memory moves by itself; asking for less until something went takes a few rounds.
        used = cast(dict[str, int], db.info("memory"))["used_memory"]
        while cast(int, db.dbsize()) == before:
            used -= 256
            db.config_set("maxmemory", used)
            db.ping()
        db.config_set("maxmemory", 0)
        db.config_set("maxmemory-policy", "noeviction")
        evicted += before - cast(int, db.dbsize())

    for _ in range(20):
        try:
            found = played(server, db, "while all run", evict)
        except AggregatorError:
            continue
        finally:
            db.config_set("maxmemory", 0)
            db.config_set("maxmemory-policy", "noeviction")
        assert found == truth
    assert evicted >= 20


def test_steps_that_go_together_with_their_number_end_who_wrote_them(
    server: RedisServer, db: redis.Redis
) -> None:
    with pytest.raises(CorruptStoreError, match="what open rounds showed"):
        played(server, db, "while all run", lambda: db.delete(STEPS, STEPS + b":kept"))


@pytest.mark.parametrize(("is_all", "expected"), [(True, StoreConflictError), (False, CorruptStoreError)])
def test_redis_that_empties_before_steps_are_saved_is_told_from_one_that_lost_them(
    server: RedisServer,
    db: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    is_all: bool,
    expected: type[StoreError],
) -> None:
    """Between a look at the counts and the saving of steps a release is archived: here Redis empties then."""
    story = Story(server)
    put = story.archive.put

    def put_late(key: RoundKey, data: bytes) -> None:
        put(key, data)
        if is_all:
            db.flushall()
        else:
            db.delete(STEPS, STEPS + b":kept")

    try:
        story.begin()
        story.go_on()
        monkeypatch.setattr(story.archive, "put", put_late)
        with pytest.raises(expected) as raised:
            story.watcher.step()
        assert type(raised.value) is expected  # one passes by itself, the other ends the process
        assert ("came back older" in str(raised.value)) is is_all
    finally:
        story.close()


def test_redis_that_empties_and_is_counted_anew_is_told_from_one_that_lost_steps(
    server: RedisServer, db: redis.Redis
) -> None:
    """The watcher waits for the counts that it has seen; steps are saved when there are more of them."""
    story = Story(server)
    try:
        story.begin()
        db.flushall()
        story.watcher.step()
        story.worker = story.start_worker()
        story.worker.process(0, story.log.read(0, 0, story.log.end(0)))
        story.go_on()
        with pytest.raises(StoreConflictError, match="came back older"):
            for _ in range(4):
                story.watcher.step()
    finally:
        story.close()


def test_policy_that_changes_while_all_run_ends_them_before_anything_is_evicted(
    server: RedisServer, db: redis.Redis
) -> None:
    story = Story(server)
    story.begin()
    db.config_set("maxmemory-policy", "volatile-lru")
    try:
        with pytest.raises(StoreError, match="maxmemory-policy must be noeviction, got volatile-lru"):
            story.worker.verify()
        with pytest.raises(StoreError, match="maxmemory-policy must be noeviction, got volatile-lru"):
            for _ in range(4):
                story.watcher.step()
    finally:
        db.config_set("maxmemory-policy", "noeviction")
        story.close()


def test_round_whose_integers_go_while_a_worker_runs_ends_it_before_it_writes(
    server: RedisServer, db: redis.Redis
) -> None:
    story = Story(server)
    try:
        story.begin()
        db.delete(HEAD + b"round:" + HEALTH.digest.hex().encode() + b":1")
        before = db.hgetall(HEAD + b"head")
        with pytest.raises(CorruptStoreError, match="is gone"):
            story.go_on()
        assert db.hgetall(HEAD + b"head") == before
    finally:
        story.close()


TOTALS: Final = ("totals", "accepted", "attempts", "rounds", "seals", "surveys", "lost")


@pytest.mark.parametrize("older", ["before the first load", "between two loads"])
def test_store_of_an_older_release_gets_its_totals_once_when_it_is_loaded(
    server: RedisServer, db: redis.Redis, older: str
) -> None:
    story = Story(server)
    try:
        story.begin()
        expected = {name: db.hget(HEAD.decode() + "head", name) for name in TOTALS}
        assert all(value is not None for value in expected.values())
        if older == "before the first load":
            db.hdel(HEAD.decode() + "head", *TOTALS)
        else:
            # It wrote on from where these totals are, which it did not know.
            db.hset(HEAD.decode() + "head", mapping={"totals": "3", "accepted": "1", "rounds": "9"})
        # Nobody but the worker writes, and until it does there is nothing to compare with.
        story.store().load_counts(0)
        story.store().load(0)
        assert {name: db.hget(HEAD.decode() + "head", name) for name in TOTALS} == expected
        db.delete(HEAD + b"rounds")
        with pytest.raises(CorruptStoreError):
            story.store().load_counts(0)
    finally:
        story.close()
