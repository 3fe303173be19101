"""The Redis store on a real server: the contract of every store, its slots, its cost, what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from counting_logs import announcement, counted
from redis_nursery import RedisServer, needs_redis, running
from store_contract import HEALTH, HISTORY, VISITED, Opener, StoreContract, some

from hubbub.records import SealRecord, encode_record
from hubbub_aggregator.counting import PartitionState, apply_many
from hubbub_aggregator.errors import CorruptStore, ForeignStore, StoreConflict, StoreError
from hubbub_aggregator.redis_store import RedisStore

pytestmark = [pytest.mark.integration, needs_redis]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def db(server: RedisServer) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        yield client


@pytest.fixture
def reopen(server: RedisServer, db: redis.Redis) -> Iterator[Callable[..., RedisStore]]:
    opened: list[RedisStore] = []

    def reopen(log: str = "log", partitions: int = 2, namespace: str = "test") -> RedisStore:
        opened.append(
            RedisStore.connect(server.url, log_identity=log, partitions=partitions, namespace=namespace)
        )
        return opened[-1]

    yield reopen
    for store in opened:
        store.close()


class TestRedisStore(StoreContract):
    @pytest.fixture
    def reopen(self, reopen: Opener) -> Opener:
        return reopen


def fill(store: RedisStore, history: list[list[bytes]]) -> PartitionState:
    state = PartitionState()
    for records in history:
        change = apply_many(state, enumerate(records, start=state.offset))
        store.save(0, change)
        state.commit(change)
    return state


def test_all_keys_of_a_partition_lie_in_one_slot(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), HISTORY)
    keys: Any = db.keys("*")
    assert len(keys) > 6
    assert {key[: key.index(b"}") + 1] for key in keys} == {b"{test:0}"}


def test_one_save_adds_a_block_of_the_new_ids_only(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), [[announcement(HEALTH)], *([some(HEALTH, 1000 * k, 1000)] for k in range(20))])
    blocks: Any = db.lrange(f"{{test:0}}:ids:{HEALTH.digest.hex()}:0", 0, -1)
    assert [len(block) for block in blocks] == [8000] * 20


def test_ids_are_deleted_when_their_round_seals(db: redis.Redis, reopen: Opener) -> None:
    seal = encode_record(SealRecord(HEALTH.digest, 0))
    fill(reopen(), [[announcement(HEALTH), some(HEALTH, 0, 50)], [some(HEALTH, 50, 50), seal]])
    assert db.keys("*:ids:*") == []
    assert reopen().load(0).rounds[HEALTH.digest, 0].accounting.accepted == 100


def test_counts_can_be_had_without_ids(reopen: Opener) -> None:
    store = reopen()
    state = fill(store, HISTORY)
    found = store.load_counts(0)  # type: ignore[attr-defined]  # a RedisStore
    assert found.offset == state.offset
    assert all(known.seen is None for known in found.rounds.values())
    expected = {key: row[:4] for key, row in counted(state).items()}
    assert {key: row[:4] for key, row in counted(found).items()} == expected


@pytest.mark.parametrize(("log", "partitions"), [("another", 2), ("log", 3)])
def test_store_of_another_log_or_layout_is_refused(
    reopen: Callable[..., RedisStore], log: str, partitions: int
) -> None:
    fill(reopen(), HISTORY)
    with pytest.raises(ForeignStore, match="must be the store of"):
        reopen(log, partitions)
    assert reopen("another", namespace="elsewhere").load(0).offset == 0


def test_namespace_that_was_taken_over_meanwhile_is_not_written_to(
    db: redis.Redis, reopen: Callable[..., RedisStore]
) -> None:
    mine, other = reopen(), reopen("another")
    fill(other, HISTORY)
    with pytest.raises(ForeignStore):
        fill(mine, HISTORY)
    with pytest.raises(ForeignStore):
        mine.load(0)


def test_redis_that_may_evict_is_refused(db: redis.Redis, reopen: Opener) -> None:
    db.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreError, match="maxmemory-policy must be noeviction, got allkeys-lru"):
            reopen()
    finally:
        db.config_set("maxmemory-policy", "noeviction")


def test_redis_without_room_refuses_a_save_and_keeps_what_it_has(db: redis.Redis, reopen: Opener) -> None:
    store = reopen()
    state = fill(store, HISTORY)
    change = apply_many(state, [(state.offset, some(VISITED, 900, 9))])
    db.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreError, match="OOM"):
            store.save(0, change)
    finally:
        db.config_set("maxmemory", "0")
    loaded = reopen().load(0)
    assert (loaded.offset, counted(loaded)) == (state.offset, counted(state))
    store.save(0, change)


def test_save_that_failed_half_way_is_never_loaded(db: redis.Redis, reopen: Opener) -> None:
    store = reopen()
    state = fill(store, HISTORY)
    change = apply_many(state, [(state.offset, some(VISITED, 900, 9))])
    ids = f"{{test:0}}:ids:{VISITED.digest.hex()}:0"
    db.delete(ids)
    db.set(ids, "no list")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        store.save(0, change)
    with pytest.raises(CorruptStore, match="half-way"):
        reopen().load(0)
    with pytest.raises(StoreError, match="WRONGTYPE"):
        store.save(0, change)


def test_older_redis_is_a_conflict_and_then_a_place_to_resume(server: RedisServer, reopen: Opener) -> None:
    store, state = reopen(), PartitionState()
    with redis.Redis.from_url(server.url) as db:
        change = apply_many(state, enumerate(HISTORY[0]))
        store.save(0, change)
        state.commit(change)
        older: dict[bytes, Any] = {key: db.dump(key) for key in db.keys("*")}
        change = apply_many(state, enumerate(HISTORY[1], start=state.offset))
        store.save(0, change)
        state.commit(change)
        db.flushall()
        for key, value in older.items():
            db.restore(key, 0, value)
    with pytest.raises(StoreConflict):
        store.save(0, apply_many(state, enumerate(HISTORY[2], start=state.offset)))
    assert reopen().load(0).offset == len(HISTORY[0])


def test_what_an_evicted_head_left_behind_is_noticed(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), HISTORY)
    db.delete("{test:0}:head")
    with pytest.raises(CorruptStore, match="no head"):
        reopen().load(0)


def test_what_lost_indexes_left_behind_is_not_added_to(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), HISTORY)
    db.delete("{test:0}:head", "{test:0}:rounds", "{test:0}:seals", "{test:0}:surveys")
    state = fill(reopen(), HISTORY)
    assert counted(reopen().load(0)) == counted(state)


def ids_of(db: redis.Redis) -> str:
    return f"{{test:0}}:ids:{VISITED.digest.hex()}:0"


def numbers_of(db: redis.Redis, survey: Any = VISITED) -> str:
    return f"{{test:0}}:round:{survey.digest.hex()}:0"


@pytest.mark.parametrize(
    "damage",
    [
        lambda db: db.delete(ids_of(db)),
        lambda db: db.lpop(ids_of(db)),
        lambda db: db.rpush(ids_of(db), db.lindex(ids_of(db), 0)),
        lambda db: db.lset(ids_of(db), 0, db.lindex(ids_of(db), 0)[:-3]),
        lambda db: db.delete(numbers_of(db)),
        lambda db: db.delete(numbers_of(db, HEALTH)),
        lambda db: db.append(numbers_of(db), b"\0" * 8_000),
        lambda db: db.execute_command("BITFIELD", numbers_of(db), "INCRBY", "i64", "#2", 1),
        lambda db: db.execute_command("BITFIELD", numbers_of(db), "INCRBY", "i64", "#9", 1),
        lambda db: db.execute_command("BITFIELD", numbers_of(db), "INCRBY", "i64", "#14", 1),
        lambda db: db.delete("{test:0}:rounds"),
        lambda db: db.delete("{test:0}:seals"),
        lambda db: db.hset("{test:0}:surveys", HEALTH.digest, VISITED.canonical),
        lambda db: db.hset("{test:0}:surveys", HEALTH.digest, HEALTH.canonical[1:]),
        lambda db: db.hset("{test:0}:head", "offset", "soon"),
    ],
)
def test_store_that_contradicts_itself_is_refused(
    db: redis.Redis, reopen: Opener, damage: Callable[[redis.Redis], object]
) -> None:
    fill(reopen(), HISTORY)
    assert reopen().load(0).offset > 0
    damage(db)
    with pytest.raises(CorruptStore):
        reopen().load(0)


def test_partition_that_the_log_does_not_have_is_refused(reopen: Opener) -> None:
    with pytest.raises(ForeignStore, match="partition"):
        reopen().load(2)


def test_redis_that_is_not_there_is_a_store_error(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        store = RedisStore.connect(server.url, log_identity="log", partitions=1)
    with pytest.raises(StoreError, match="Redis"):
        store.load(0)
    with pytest.raises(StoreError, match="Redis"):
        RedisStore.connect(server.url, log_identity="log", partitions=1)
    with pytest.raises(StoreError, match="redis://"):
        RedisStore.connect("nonsense", log_identity="log", partitions=1)


def test_steps_that_are_none_are_refused(db: redis.Redis, reopen: Opener) -> None:
    db.hset("{test:steps}:log", HEALTH.digest + bytes(8), b"\x91\x01")
    with pytest.raises(CorruptStore, match="steps"):
        reopen().load_steps()
