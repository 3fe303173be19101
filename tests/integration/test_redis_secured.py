"""Redis by TLS with a password, one server and a cluster: counts come back, and strangers get none."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from counting_logs import announcement, batch, counted, report_id, segment
from redis_harness import Door, needs_redis, needs_tls, running, running_cluster
from secure_broker import PASSWORD, Authority
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import Voucher
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.errors import StoreError
from hubbub_aggregator.stores.redis_store import RedisStore

HEALTH = Survey.parse(LABELS)


pytestmark = [
    pytest.mark.integration,
    needs_redis,
    needs_tls,
]


@pytest.fixture(params=["one", "cluster"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    authority = Authority(tmp_path, "authority")
    mine = authority.sign("redis")
    door = Door(authority.file, mine.certificate, mine.key, PASSWORD)
    if request.param == "one":
        with running(tmp_path, door=door) as server:
            yield server.url
    else:
        with running_cluster(tmp_path, door=door) as servers:
            yield servers[0].url.replace("rediss://", "rediss+cluster://").replace("/0?", "/?")


def connections() -> set[ssl.SSLSocket]:
    """Return the connections of this process that are open."""
    # By its type: a weak reference to one that is gone would fail here.
    sockets = [each for each in gc.get_objects() if issubclass(type(each), ssl.SSLSocket)]
    return {each for each in sockets if each.fileno() != -1}


def test_counts_lie_behind_tls_and_a_password(url: str) -> None:
    before = connections()
    pairs = [(report_id(i), i % 4) for i in range(30)]
    change = apply_many(
        PartitionState(), enumerate([announcement(HEALTH), batch(segment(HEALTH, 0, pairs, Voucher("a")))])
    )
    expected = PartitionState()
    store = RedisStore.connect(url, log_identity="log", partitions=3)
    for partition in range(3):
        store.save(partition, change)
    expected.commit(change)
    store.close()
    again = RedisStore.connect(url, log_identity="log", partitions=3)
    assert [counted(again.load(partition)) for partition in range(3)] == [counted(expected)] * 3
    again.close()
    assert connections() <= before
    strangers = {
        "no password": url.replace(f":{PASSWORD}@", ""),
        "another password": url.replace(PASSWORD, "not-the-password"),
        "no TLS": url.replace("rediss", "redis").partition("?")[0],
        "no authority": url.partition("?")[0],
    }
    for name, stranger in strangers.items():
        with pytest.raises(StoreError) as caught:
            RedisStore.connect(stranger, log_identity="log", partitions=3)
        assert not any(word in str(caught.value) for word in (PASSWORD, "not-the-password")), name
