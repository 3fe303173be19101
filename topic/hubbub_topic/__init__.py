"""The log between collector and aggregator: one port, kept in SQLite or in Kafka."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_topic.bounded import BoundedLog
    from hubbub_topic.errors import LogError, LogLocked, LogVersionError
    from hubbub_topic.log import Log
    from hubbub_topic.rows import Cut
    from hubbub_topic.sqlite import SqliteLog

__all__ = [
    "BoundedLog",
    "Cut",
    "Log",
    "LogError",
    "LogLocked",
    "LogVersionError",
    "SqliteLog",
]

attach(
    __name__,
    {
        "hubbub_topic.errors": (
            "LogError",
            "LogLocked",
            "LogVersionError",
        ),
        "hubbub_topic.bounded": ("BoundedLog",),
        "hubbub_topic.log": ("Log",),
        "hubbub_topic.rows": ("Cut",),
        "hubbub_topic.sqlite": ("SqliteLog",),
    },
)
