"""Connections to a Redis or a Redis Cluster, and the errors they raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisClusterException
from redis.retry import Retry

from hubbub_aggregator.errors import StoreError


def namespace_keys(client: Any, namespace: str) -> list[bytes]:  # noqa: ANN401 - one server, or a cluster
    """Return every key of a namespace: counts, ids, gates and the lease.

    Args:
        client: A connection that gives bytes back; see `connected`.
        namespace: A name without braces.

    Raises:
        StoreError: If Redis cannot be reached.
    """
    # A longer namespace that begins with this one and a colon has keys of its own.
    pattern = re.compile(rb"\{%s:(\d+|steps)\}:.*" % re.escape(namespace.encode()), re.DOTALL)
    glob = re.sub(r"([*?\[\]\\^])", r"\\\1", namespace)
    with as_store_error():
        found = client.scan_iter(match=f"{{{glob}:*", count=1000)
        return sorted({bytes(key) for key in found if pattern.fullmatch(bytes(key))})


def delete_keys(client: Any, keys: list[bytes]) -> None:  # noqa: ANN401 - one server, or a cluster
    """Delete keys, one after another: those of a cluster lie on several nodes.

    Raises:
        StoreError: If Redis cannot be reached; what is deleted by then stays so.
    """
    with as_store_error():
        for key in keys:
            client.unlink(key)


# Redis answers in microseconds; past this it hangs, and the worker had better end than wait for ever.
TIMEOUT_S: Final = 10.0
# A Redis Cluster's, and what its client takes in their place; the second by TLS.
CLUSTER_SCHEMES: Final = {"redis+cluster://": "redis://", "rediss+cluster://": "rediss://"}
# A password may hold any sign, "@" and "/" included: all before the last "@" goes.
_USER: Final = re.compile(r"//.*@")
_QUERY_SECRET: Final = re.compile(r"(password|username)=[^&]*", re.IGNORECASE)


def connected(url: str) -> Any:  # noqa: ANN401 - a client of one server, or of a cluster
    """Return a client that gives bytes back and does not retry.

    Args:
        url: redis://host:6379/0, or redis+cluster://host:6379 for a Redis Cluster; rediss for TLS, with the
            file of the authorities as ?ssl_ca_certs=FILE where they are not the system's.

    Raises:
        StoreError: If the address cannot be read, or a cluster not be reached.
    """
    # A save that is sent twice would meet its own offset and look like a second writer.
    never = Retry(NoBackoff(), 0)
    scheme = next((each for each in CLUSTER_SCHEMES if url.startswith(each)), None)
    options: dict[str, Any] = {
        "socket_timeout": TIMEOUT_S,
        "socket_connect_timeout": TIMEOUT_S,
        "retry": never,
    }
    try:
        if scheme is not None:
            address = CLUSTER_SCHEMES[scheme] + url.removeprefix(scheme)
            client: Any = redis.RedisCluster.from_url(address, **options)
        else:
            client = redis.Redis.from_url(url, **options)
    except (redis.RedisError, RedisClusterException) as error:
        raise StoreError(f"Redis did not do what was asked: {error}") from error
    except ValueError:
        # Neither the address nor Python's words about it are repeated as they are: both may hold a password.
        raise StoreError(f"Redis must be given as redis://host:port, got {redacted(url)!r}") from None
    return client


def disconnect(client: Any) -> None:  # noqa: ANN401 - as above
    """Close a client and all its connections, which a cluster's own `close` leaves open."""
    if isinstance(client, redis.RedisCluster):
        client.disconnect_connection_pools()  # type: ignore[no-untyped-call]
    client.close()


def redacted(url: str) -> str:
    """Return an address without the user and the password that may stand in it.

    >>> redacted("redis://me:se/cr@t@host:6379/0?password=other&db=1")
    'redis://***@host:6379/0?password=***&db=1'
    """
    return _QUERY_SECRET.sub(r"\1=***", _USER.sub("//***@", url))


def policies(client: Any) -> list[str]:  # noqa: ANN401 - a client of one server, or of a cluster
    """Return each server's policy for a full memory."""
    if isinstance(client, redis.RedisCluster):
        servers = client.info("memory", target_nodes=redis.RedisCluster.PRIMARIES)
        # One server answers for itself, several each under its name.
        found = [servers] if "used_memory" in servers else list(servers.values())
    else:
        found = [client.info("memory")]
    return [memory.get("maxmemory_policy", "noeviction") for memory in found]


def clocks(client: Any) -> list[float]:  # noqa: ANN401 - a client of one server, or of a cluster
    """Return what each server says that the time is, seconds since 1970."""
    if isinstance(client, redis.RedisCluster):
        cluster: Any = client
        servers = cluster.execute_command("TIME", target_nodes=redis.RedisCluster.PRIMARIES)
        # One server answers for itself, several each under its name.
        found = list(servers.values()) if isinstance(servers, dict) else [servers]
    else:
        found = [client.time()]
    return [int(seconds) + int(microseconds) / 1e6 for seconds, microseconds in found]


@contextmanager
def as_store_error() -> Iterator[None]:
    """Raise what Redis raises as a StoreError."""
    try:
        yield
    except (redis.RedisError, RedisClusterException, OSError) as error:
        raise StoreError(f"Redis did not do what was asked: {error}") from error
