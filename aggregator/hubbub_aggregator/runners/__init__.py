"""The processes that count: embedded, with Faust, with aiokafka, and the publisher."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.runners.aiokafka_runner import count
    from hubbub_aggregator.runners.assignment import Assignment
    from hubbub_aggregator.runners.embedded import Worker
    from hubbub_aggregator.runners.faust_runner import (
        DEFAULT_SESSION_S,
        Reader,
        create_app,
        run,
        use_event_loop,
    )
    from hubbub_aggregator.runners.publisher import Publisher
    from hubbub_aggregator.runners.retention import Retention, rounds_of

__all__ = [
    "DEFAULT_SESSION_S",
    "Assignment",
    "Publisher",
    "Reader",
    "Retention",
    "Worker",
    "count",
    "create_app",
    "rounds_of",
    "run",
    "use_event_loop",
]

attach(
    __name__,
    {
        "hubbub_aggregator.runners.aiokafka_runner": ("count",),
        "hubbub_aggregator.runners.assignment": ("Assignment",),
        "hubbub_aggregator.runners.embedded": ("Worker",),
        "hubbub_aggregator.runners.faust_runner": (
            "DEFAULT_SESSION_S",
            "Reader",
            "create_app",
            "run",
            "use_event_loop",
        ),
        "hubbub_aggregator.runners.publisher": ("Publisher",),
        "hubbub_aggregator.runners.retention": ("Retention", "rounds_of"),
    },
)
