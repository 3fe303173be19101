"""The Redis store on a real server: the contract of every store, its slots, its cost, what it refuses."""

from __future__ import annotations

import contextlib
import gc
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import extreme_records
import numpy as np
import pytest
import redis
from counting_logs import announcement, batch, counted, report_id, segment
from redis_harness import RedisServer, needs_redis, running, running_cluster
from store_contract import HEALTH, HISTORY, VISITED, Opener, StoreContract, some
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, SurveyRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.errors import (
    CorruptStoreError,
    ForeignStoreError,
    LeaseLostError,
    StoreConflictError,
    StoreError,
)
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate
from hubbub_aggregator.release.round_release import gather
from hubbub_aggregator.stores.redis_store import RedisStore
from hubbub_aggregator.web.view import total_of

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


def test_redis_says_what_time_it_is(reopen: Opener) -> None:
    before = time.time()
    (said,) = reopen().clocks()
    # The same machine's clock; Redis rounds it down to its own last look, within its tick of 1 ms.
    assert before - 0.5 <= said <= time.time() + 0.5


def test_all_keys_of_a_partition_lie_in_one_slot(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), HISTORY)
    keys: Any = db.keys("*")
    assert len(keys) > 6
    assert {key[: key.index(b"}") + 1] for key in keys} == {b"{test:0}"}


def test_one_save_adds_a_block_of_the_new_ids_only(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), [[announcement(HEALTH)], *([some(HEALTH, 1000 * k, 1000)] for k in range(20))])
    blocks: Any = db.lrange(f"{{test:0}}:ids:{HEALTH.digest.hex()}:0", 0, -1)
    assert [len(block) for block in blocks] == [8000] * 20


def test_ids_of_a_large_group_lie_in_blocks_that_a_load_can_hold(db: redis.Redis, reopen: Opener) -> None:
    state = fill(reopen(), [[announcement(HEALTH)], [some(HEALTH, 0, 45_000)]])
    blocks: Any = db.lrange(f"{{test:0}}:ids:{HEALTH.digest.hex()}:0", 0, -1)
    assert [len(block) for block in blocks] == [160_000, 160_000, 40_000]
    assert counted(reopen().load(0)) == counted(state)


def test_ids_are_deleted_when_their_round_seals(db: redis.Redis, reopen: Opener) -> None:
    seal = encode_record(SealRecord(HEALTH.digest, 0))
    fill(reopen(), [[announcement(HEALTH), some(HEALTH, 0, 50)], [some(HEALTH, 50, 50), seal]])
    assert db.keys("*:ids:*") == []
    assert reopen().load(0).rounds[HEALTH.digest, 0].verdicts.accepted == 100


def test_counts_can_be_had_without_ids(reopen: Opener) -> None:
    store = reopen()
    state = fill(store, HISTORY)
    found = store.load_counts(0)  # type: ignore[attr-defined]  # a RedisStore
    assert found.offset == state.offset
    assert all(known.seen is None for known in found.rounds.values())
    expected = {key: row[:4] for key, row in counted(state).items()}
    assert {key: row[:4] for key, row in counted(found).items()} == expected


def test_load_asks_as_often_for_many_rounds_as_for_one(db: redis.Redis, reopen: Opener) -> None:
    store = reopen()
    seals = [encode_record(SealRecord(HEALTH.digest, number)) for number in range(HEALTH.rounds)]
    assert len(seals) > 1
    state = fill(store, [[announcement(HEALTH), seals[0]]])

    def questions() -> int:
        before: Any = db.info("stats")
        store.load_counts(0)  # type: ignore[attr-defined]  # a RedisStore
        after: Any = db.info("stats")
        found: int = after["total_commands_processed"] - before["total_commands_processed"]
        return found

    of_one = questions()
    store.save(0, apply_many(state, enumerate(seals[1:], start=state.offset)))
    assert questions() == of_one


@pytest.mark.parametrize(("log", "partitions"), [("another", 2), ("log", 3)])
def test_store_of_another_log_or_layout_is_refused(
    reopen: Callable[..., RedisStore], log: str, partitions: int
) -> None:
    fill(reopen(), HISTORY)
    with pytest.raises(ForeignStoreError, match="must be the store of"):
        reopen(log, partitions)
    assert reopen("another", namespace="elsewhere").load(0).offset == 0


def test_namespace_that_was_taken_over_meanwhile_is_not_written_to(
    db: redis.Redis, reopen: Callable[..., RedisStore]
) -> None:
    mine, other = reopen(), reopen("another")
    fill(other, HISTORY)
    with pytest.raises(ForeignStoreError):
        fill(mine, HISTORY)
    with pytest.raises(ForeignStoreError):
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
    with pytest.raises(CorruptStoreError, match="half-way"):
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
    with pytest.raises(StoreConflictError):
        store.save(0, apply_many(state, enumerate(HISTORY[2], start=state.offset)))
    assert reopen().load(0).offset == len(HISTORY[0])


def test_what_an_evicted_head_left_behind_is_noticed(db: redis.Redis, reopen: Opener) -> None:
    fill(reopen(), HISTORY)
    db.delete("{test:0}:head")
    with pytest.raises(CorruptStoreError, match="no head"):
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
    with pytest.raises(CorruptStoreError):
        reopen().load(0)


@pytest.mark.parametrize("meanwhile", ["first counts", "another round", "let go"])
@pytest.mark.parametrize("load", ["load", "load_counts"])
def test_partition_that_changes_while_it_is_loaded_is_not_corrupt(
    reopen: Opener, monkeypatch: pytest.MonkeyPatch, meanwhile: str, load: str
) -> None:
    """What another process does between two reads must neither alarm nor mix what was with what is."""
    key = (HEALTH.digest, 0)
    history = [announcement(HEALTH), some(HEALTH, 0, 0, late=2)]
    if meanwhile == "let go":
        history = [announcement(HEALTH), some(HEALTH, 0, 9), encode_record(SealRecord(*key))]
    writer, reader = reopen(), reopen()
    state = fill(writer, [history])
    ask, left = reader._redis.hkeys, [1]  # type: ignore[attr-defined]  # a RedisStore

    def overtaken(name: Any) -> Any:
        found = ask(name)
        if left:
            left.pop()
            if meanwhile == "let go":
                writer.forget(0, key)  # type: ignore[attr-defined]  # a RedisStore
            else:
                number = int(meanwhile == "another round")
                writer.save(0, apply_many(state, [(state.offset, some(HEALTH, 0, 9, number=number))]))
        return found

    monkeypatch.setattr(reader._redis, "hkeys", overtaken)  # type: ignore[attr-defined]  # a RedisStore
    loaded = getattr(reader, load)(0)
    assert not left
    assert loaded.rounds[key].is_archived == (meanwhile == "let go")
    assert total_of([loaded]).attempts == (9 if meanwhile == "let go" else 11)
    assert loaded.offset == writer.offset(0)  # type: ignore[attr-defined]  # a RedisStore


def test_partition_that_is_written_all_the_time_can_be_read(reopen: Opener) -> None:
    writer, reader = reopen(), reopen()
    state = fill(writer, [[announcement(HEALTH), some(HEALTH, 0, 9)]])
    done = threading.Event()

    def write() -> None:
        for number in range(300):
            change = apply_many(state, [(state.offset, some(HEALTH, 10 + number, 1))])
            writer.save(0, change)
            state.commit(change)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    while not done.is_set():
        known = reader.load_counts(0)  # type: ignore[attr-defined]  # a RedisStore
        assert total_of([known]).accepted == 9 + known.offset - 2
        seen += 1
    thread.join()
    assert seen > 0


def test_partition_that_the_log_does_not_have_is_refused(reopen: Opener) -> None:
    with pytest.raises(ForeignStoreError, match="partition"):
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


SEAL = encode_record(SealRecord(HEALTH.digest, 0))


def test_archived_round_leaves_its_seal_and_its_tallies_and_nothing_else(
    db: redis.Redis, reopen: Opener
) -> None:
    store = reopen()
    state = fill(store, [[announcement(HEALTH), some(HEALTH, 0, 50, late=2)], [SEAL, some(HEALTH, 90, 3)]])
    total = total_of([state])
    for _ in range(2):
        store.forget(0, (HEALTH.digest, 0))  # type: ignore[attr-defined]  # a RedisStore
        store.forget(0, (HEALTH.digest, 1))  # type: ignore[attr-defined]  # which is not sealed
        loaded = reopen().load(0)
        known = loaded.rounds[HEALTH.digest, 0]
        assert (known.is_archived, known.sealed_at, len(known.counts)) == (True, 2, 0)
        assert total_of([loaded]) == total
        assert not db.keys("*:round:*")
        assert not db.keys("*:ids:*")
        assert gather((HEALTH.digest, 0), {0: loaded}) is None
    # What comes late is late, whoever counts it: with all in memory, or from what is loaded.
    late = apply_many(loaded, [(loaded.offset, some(HEALTH, 40, 7))])
    store.save(0, late)
    state.commit(apply_many(state, [(state.offset, some(HEALTH, 40, 7))]))
    assert total_of([reopen().load(0)]) == total_of([state])
    assert total_of([state]).late == total.late + 7


def test_memory_follows_open_rounds_and_not_those_that_were(db: redis.Redis, reopen: Opener) -> None:
    survey = Survey.parse(
        LABELS.replace('round = "1d"', 'round = "60s"')
        .replace("rounds = 3", "rounds = 1000")
        .replace("epsilon = 1.0", "epsilon = 0.01")
    )
    store, state = reopen(), PartitionState()
    record = encode_record(SurveyRecord(survey.canonical))
    used = []
    for number in range(1000):
        minute = survey.round_start_s(number) // 60
        pairs = [(report_id(50 * number + i), i % 5) for i in range(50)]
        seal = encode_record(SealRecord(survey.digest, number))
        records = [record, batch(segment(survey, number, pairs), minute=minute), seal]
        change = apply_many(state, enumerate(records, start=state.offset))
        store.save(0, change)
        state.commit(change)
        store.forget(0, (survey.digest, number))  # type: ignore[attr-defined]  # a RedisStore
        if number in (499, 999):
            keys: Any = db.keys("*")
            used.append(sum(db.memory_usage(key, samples=0) or 0 for key in keys))  # type: ignore[misc]  # sync
    assert len(db.keys("*")) == 5  # type: ignore[arg-type]  # always sync
    # Two fields of hashes per round; with its counts and ids a round of this size takes some 700 bytes.
    assert (used[1] - used[0]) / 500 < 300
    loaded = reopen().load(0)
    assert len(loaded.rounds) == 1000
    assert total_of([loaded]).accepted == 50_000


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RedisServer]]:
    with running_cluster(tmp_path_factory.mktemp("cluster")) as servers:
        yield servers


# The library's client of a cluster leaves a socket of its first look at it to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
class TestRedisStoreOnACluster(StoreContract):
    """Three servers that share the slots: what is saved together lies together, on whichever of them."""

    @pytest.fixture
    def reopen(self, servers: list[RedisServer]) -> Iterator[Opener]:
        url = f"redis+cluster://127.0.0.1:{servers[0].port}"
        for server in servers:
            with redis.Redis.from_url(server.url) as client:
                client.flushall()
        opened: list[RedisStore] = []

        def reopen() -> RedisStore:
            opened.append(RedisStore.connect(url, log_identity="log", partitions=8, namespace="test"))
            return opened[-1]

        yield reopen
        for store in opened:
            store.close()
        opened.clear()
        gc.collect()

    def test_partitions_lie_on_several_servers_and_archived_rounds_go(
        self, reopen: Opener, servers: list[RedisServer]
    ) -> None:
        store = reopen()
        history = [announcement(HEALTH), some(HEALTH, 0, 40), SEAL]
        for partition in range(8):
            store.save(partition, apply_many(PartitionState(), enumerate(history)))
            store.forget(partition, (HEALTH.digest, 0))  # type: ignore[attr-defined]  # a RedisStore
            assert reopen().load(partition).past.accepted == 40
        used = []
        for server in servers:
            with redis.Redis.from_url(server.url) as client:
                used.append(client.dbsize())
        assert sum(used) == 8 * 5  # head, surveys, rounds, seals, past
        assert sum(count > 0 for count in used) > 1

    def test_every_server_says_what_time_it_is(self, reopen: Opener, servers: list[RedisServer]) -> None:
        before = time.time()
        said = reopen().clocks()  # type: ignore[attr-defined]  # a RedisStore
        assert len(said) == len(servers)
        assert all(before - 0.5 <= found <= time.time() + 0.5 for found in said)

    def test_script_that_touches_two_slots_fails_here(self, servers: list[RedisServer]) -> None:
        """The control: what the store does would fail if keys of a partition lay apart."""
        said = []
        for other in ("{test:0}:rounds", "{test:1}:rounds"):
            for server in servers:
                with redis.Redis.from_url(server.url) as client, contextlib.suppress(redis.RedisError):
                    try:
                        client.eval("return redis.call('GET', KEYS[1])", 2, "{test:0}:none", other)
                        said.append("OK")
                    except redis.ResponseError as error:
                        said.append(str(error))
        # One server has the slot, the others say who; of two slots every server says that it will not do.
        assert said[:3].count("OK") == 1
        assert all("same slot" in word for word in said[3:])

    def test_server_that_may_evict_is_refused(self, reopen: Opener, servers: list[RedisServer]) -> None:
        with redis.Redis.from_url(servers[2].url) as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
            try:
                with pytest.raises(StoreError, match="must be noeviction, got allkeys-lru"):
                    reopen()
            finally:
                client.config_set("maxmemory-policy", "noeviction")


def test_one_at_a_time_holds_the_lease_and_saves_steps(db: redis.Redis, reopen: Opener) -> None:
    one, other = reopen(), reopen()
    steps = {
        (HEALTH.digest, 0): PublicationGate(
            None, AcceptedCounts({0: 5}, np.array([3, 0, 4], dtype=np.int64), 7)
        )
    }
    one.hold_lease()  # type: ignore[attr-defined]  # a RedisStore
    one.hold_lease()  # type: ignore[attr-defined]  # a RedisStore
    one.save_gates(steps)
    for attempt in (other.hold_lease, lambda: other.save_gates(dict.fromkeys(steps))):  # type: ignore[attr-defined]
        with pytest.raises(LeaseLostError):
            attempt()
    assert other.load_gates() == steps
    assert 0 < db.pttl("{test:steps}:log:lease") <= 10_000  # type: ignore[operator]  # always sync
    # The lease ran out, another one took it: what the first one still wants to save is refused.
    db.delete("{test:steps}:log:lease")
    other.hold_lease()  # type: ignore[attr-defined]  # a RedisStore
    with pytest.raises(LeaseLostError):
        one.save_gates(dict.fromkeys(steps))
    other.close()  # type: ignore[attr-defined]  # a RedisStore
    one.hold_lease()  # type: ignore[attr-defined]  # a RedisStore
    one.save_gates(dict.fromkeys(steps))
    assert one.load_gates() == {}


def gates_of(rounds: int) -> dict[tuple[bytes, int], PublicationGate]:
    counts = AcceptedCounts({0: 5}, np.array([3, 0, 4], dtype=np.int64), 7)
    return {(HEALTH.digest, number): PublicationGate(None, counts) for number in range(rounds)}


def test_steps_of_an_older_redis_are_read_anew_and_lost_ones_are_told_apart(
    db: redis.Redis, reopen: Opener
) -> None:
    """A server that came back with a dump has older steps, and their number: that is no loss."""
    steps = "{test:steps}:log"
    one = reopen()
    one.save_gates(gates_of(1))
    older = db.dump(steps), db.dump(f"{steps}:kept")
    one.save_gates(gates_of(3))
    for key, was in zip((steps, f"{steps}:kept"), older, strict=True):
        db.restore(key, 0, was, replace=True)
    with pytest.raises(StoreConflictError, match="steps must be 3, got 1: Redis came"):
        one.save_gates(dict.fromkeys(gates_of(2)))
    assert reopen().load_gates() == gates_of(1)
    assert db.hlen(steps) == 1  # nothing was written
    # Some are gone, or their number is, or all.
    known = reopen()
    known.save_gates(gates_of(3))
    db.hdel(steps, HEALTH.digest + bytes(8))
    with pytest.raises(CorruptStoreError, match="as many steps"):
        known.save_gates(gates_of(3))
    with pytest.raises(CorruptStoreError, match="as many steps"):
        reopen().load_gates()
    db.delete(f"{steps}:kept")
    with pytest.raises(CorruptStoreError, match="as many steps"):
        known.save_gates(gates_of(3))
    assert db.hlen(steps) == 2
    db.delete(steps)
    with pytest.raises(CorruptStoreError, match="as many steps"):
        known.save_gates(gates_of(3))
    assert not db.exists(steps)


def test_steps_that_are_none_are_refused(db: redis.Redis, reopen: Opener) -> None:
    db.hset("{test:steps}:log", HEALTH.digest + bytes(8), b"\x91\x01")
    with pytest.raises(CorruptStoreError, match="steps"):
        reopen().load_gates()


@pytest.mark.parametrize("seed", range(4))
def test_extremes_of_every_field_are_saved_and_loaded_as_they_were_counted(reopen: Opener, seed: int) -> None:
    """What Redis adds up wraps beyond 64 bits, and its scripts know no integers beyond 2^53."""
    dice = random.Random(seed)  # noqa: S311 - the records of a test
    surveys = [announcement(survey) for survey in (extreme_records.HEALTH, extreme_records.VISITED)]
    state = fill(
        reopen(), [surveys, *([extreme_records.extreme(dice) for _ in range(10)] for _ in range(12))]
    )
    loaded = reopen().load(0)
    assert counted(loaded) == counted(state)
    assert (loaded.unknown, loaded.dead, total_of([loaded])) == (state.unknown, state.dead, total_of([state]))
    store = reopen()
    for key, known in state.rounds.items():
        if known.sealed_at is not None:
            store.forget(0, key)  # type: ignore[attr-defined]  # a RedisStore
    assert total_of([reopen().load(0)]) == total_of([state])
