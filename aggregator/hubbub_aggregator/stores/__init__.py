"""The stores of counts and releases: SQLite, Redis and the archive."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.stores.archive import Archive, SqliteArchive
    from hubbub_aggregator.stores.disk import has_no_room
    from hubbub_aggregator.stores.recounts import RecountFolder
    from hubbub_aggregator.stores.redis_connection import as_store_error, clocks, connected
    from hubbub_aggregator.stores.redis_namespace import delete_keys, namespace_keys
    from hubbub_aggregator.stores.redis_store import RedisStore
    from hubbub_aggregator.stores.sqlite_dead_letters import SqliteDeadTopic
    from hubbub_aggregator.stores.sqlite_store import SqliteStore
    from hubbub_aggregator.stores.store import GateStore, SharedStore, Store

__all__ = [
    "Archive",
    "GateStore",
    "RecountFolder",
    "RedisStore",
    "SharedStore",
    "SqliteArchive",
    "SqliteDeadTopic",
    "SqliteStore",
    "Store",
    "as_store_error",
    "clocks",
    "connected",
    "delete_keys",
    "has_no_room",
    "namespace_keys",
]

attach(
    __name__,
    {
        "hubbub_aggregator.stores.archive": (
            "Archive",
            "SqliteArchive",
        ),
        "hubbub_aggregator.stores.disk": ("has_no_room",),
        "hubbub_aggregator.stores.recounts": ("RecountFolder",),
        "hubbub_aggregator.stores.redis_connection": (
            "as_store_error",
            "clocks",
            "connected",
        ),
        "hubbub_aggregator.stores.redis_namespace": (
            "delete_keys",
            "namespace_keys",
        ),
        "hubbub_aggregator.stores.redis_store": ("RedisStore",),
        "hubbub_aggregator.stores.sqlite_dead_letters": ("SqliteDeadTopic",),
        "hubbub_aggregator.stores.sqlite_store": ("SqliteStore",),
        "hubbub_aggregator.stores.store": (
            "GateStore",
            "SharedStore",
            "Store",
        ),
    },
)
