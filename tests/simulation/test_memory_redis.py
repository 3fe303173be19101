"""The Redis in memory against the contract of every store, and against a real server key by key."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import redis
from memory_redis import MemoryRedis
from redis_harness import needs_redis, running
from store_contract import HEALTH, HISTORY, VISITED, Opener, StoreContract, some

from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.skip_offsets import skip_lost
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.release.provisional import AcceptedCounts, PublicationGate
from hubbub_aggregator.stores.redis_store import RedisStore


def opened(client: Any) -> RedisStore:
    return RedisStore(client, log_identity="a-log", partitions=2, namespace="test")


class TestMemoryRedis(StoreContract):
    @pytest.fixture
    def reopen(self) -> Opener:
        server = MemoryRedis(lambda: 0.0)
        return lambda: opened(server)


def tried(work: Callable[[], object]) -> str:
    """The outcome in words."""
    try:
        return repr(work())
    except StoreError as error:
        return f"{type(error).__name__}: {error}"


def life(client: Any, seed: int, said: list[str], lose: Callable[[bytes], object]) -> None:
    """Does what workers and publishers do, with conflicts, a lost key and a lease of another between."""
    chance = random.Random(seed)  # noqa: S311 - chooses what comes next
    stores, state = [opened(client), opened(client)], PartitionState()
    gates = {
        (HEALTH.digest, 1): PublicationGate(None, AcceptedCounts({0: 3}, np.zeros(5, dtype=np.int64), 0))
    }
    more = [some(HEALTH, 1_000 + 50 * i, 40, number=1, late=1) for i in range(3)]
    ends = [encode_record(SealRecord(survey.digest, i)) for survey in (HEALTH, VISITED) for i in (0, 1)]
    for records in [*HISTORY, *([each] for each in more), ends]:
        change = apply_many(state, enumerate(records, start=state.offset))
        said.append(tried(lambda change=change: stores[0].save(0, change)))
        state.commit(change)
        if chance.random() < 0.3:
            said.append(tried(lambda change=change: stores[1].save(0, change)))
        store = chance.choice(stores)
        said.append(tried(store.hold_lease))
        said.append(tried(lambda store=store: store.save_gates(gates)))
        said.append(tried(lambda store=store: sorted(store.load_gates())))
        if chance.random() < 0.3:
            said.append(tried(store.release_lease))
        said.append(tried(lambda: stores[0].load(0).offset))
    said.append(tried(lambda: stores[0].save(0, skip_lost(state, state.offset + 3, [], now_s=7))))
    said.append(tried(lambda: stores[1].forget(0, (HEALTH.digest, 0))))
    said.append(tried(lambda: stores[1].forget(0, (HEALTH.digest, 0))))
    names = sorted(each for each in client.scan_iter(match="{test:*") if not each.endswith(b":lease"))
    lose(chance.choice(names))
    said.append(tried(lambda: stores[0].load(0).offset))
    said.append(tried(lambda: stores[0].load_counts(0).offset))
    said.append(tried(lambda: stores[0].save_gates(dict.fromkeys(gates))))


@pytest.mark.integration
@needs_redis
def test_every_key_is_what_a_real_server_has(tmp_path: Path) -> None:
    with running(tmp_path) as server, redis.Redis.from_url(server.url) as real:
        for seed in range(12):
            real.flushall()
            memory = MemoryRedis(lambda: 0.0)
            said: tuple[list[str], list[str]] = ([], [])
            life(memory, seed, said[0], memory._gone)
            life(real, seed, said[1], real.delete)
            assert said[0] == said[1]
            assert any("StoreConflictError" in each for each in said[0])
            assert memory.data.keys() == set(cast(list[bytes], real.keys("*")))
            for key, value in memory.data.items():
                if key.endswith(b":lease"):
                    continue  # a token of its own
                if isinstance(value, dict):
                    assert real.hgetall(key) == value, key
                elif isinstance(value, list):
                    assert real.lrange(key.decode(), 0, -1) == value, key
                else:
                    assert real.get(key) == value, key
