"""The keys of one namespace in Redis: found, and deleted for good."""

from __future__ import annotations

import re
from typing import Any

from hubbub_aggregator.stores.redis_connection import as_store_error


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
