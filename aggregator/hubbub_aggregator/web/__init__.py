"""The JSON API and the page that show counts and releases."""

from typing import TYPE_CHECKING

from hubbub.lazy import attach

if TYPE_CHECKING:
    from hubbub_aggregator.web.api import create_app
    from hubbub_aggregator.web.metrics import ViewCollector
    from hubbub_aggregator.web.responses import PROBLEM_HANDLERS
    from hubbub_aggregator.web.stream_caps import StreamCaps
    from hubbub_aggregator.web.view import LiveView, compose, total_of
    from hubbub_aggregator.web.worker_http import worker_page

__all__ = [
    "PROBLEM_HANDLERS",
    "LiveView",
    "StreamCaps",
    "ViewCollector",
    "compose",
    "create_app",
    "total_of",
    "worker_page",
]

attach(
    __name__,
    {
        "hubbub_aggregator.web.api": ("create_app",),
        "hubbub_aggregator.web.metrics": ("ViewCollector",),
        "hubbub_aggregator.web.responses": ("PROBLEM_HANDLERS",),
        "hubbub_aggregator.web.stream_caps": ("StreamCaps",),
        "hubbub_aggregator.web.view": (
            "LiveView",
            "compose",
            "total_of",
        ),
        "hubbub_aggregator.web.worker_http": ("worker_page",),
    },
)
