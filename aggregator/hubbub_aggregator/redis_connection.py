"""How to reach a Redis, or a Redis Cluster, and how its failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from hubbub_aggregator.errors import StoreError

# Redis answers in microseconds; past this it hangs, and the worker had better end than wait for ever.
TIMEOUT_S: Final = 10.0
CLUSTER_SCHEME: Final = "redis+cluster://"


def connected(url: str) -> Any:  # noqa: ANN401 - a client of one server, or of a cluster
    """A client that gives bytes back and does not retry.

    Args:
        url: redis://host:6379/0, or redis+cluster://host:6379 for a Redis Cluster.

    Raises:
        StoreError: If the address cannot be read, or a cluster not be reached.
    """
    # A save that is sent twice would meet its own offset and look like a second writer.
    never = Retry(NoBackoff(), 0)
    clustered = url.startswith(CLUSTER_SCHEME)
    options: dict[str, Any] = {
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": TIMEOUT_S,
        "retry": never,
    }
    try:
        if clustered:
            address = "redis://" + url.removeprefix(CLUSTER_SCHEME)
            client: Any = redis.RedisCluster.from_url(address, **options)
        else:
            client = redis.Redis.from_url(url, **options)
    except (redis.RedisError, RedisClusterException) as error:
        raise StoreError(f"Redis did not do what was asked: {error}") from error
    except ValueError as error:
        raise StoreError(f"Redis must be given as redis://host:port, got {url!r}: {error}") from error
    return client


def policies(client: Any) -> list[str]:  # noqa: ANN401 - a client of one server, or of a cluster
    """What each server does when its memory is full."""
    if isinstance(client, redis.RedisCluster):
        servers = client.info("memory", target_nodes=redis.RedisCluster.PRIMARIES)
        # One server answers for itself, several each under its name.
        found = [servers] if "used_memory" in servers else list(servers.values())
    else:
        found = [client.info("memory")]
    return [memory.get("maxmemory_policy", "noeviction") for memory in found]


@contextmanager
def as_store_error() -> Iterator[None]:
    """Raises what Redis raises as a StoreError."""
    try:
        yield
    except (redis.RedisError, RedisClusterException, OSError) as error:
        raise StoreError(f"Redis did not do what was asked: {error}") from error
