"""The small HTTP server of a worker: its health, its readiness and its metrics, and nothing else.

A worker has no page. Its event loop is Faust's, so this runs in a thread of its own, reads what the counting
left in memory, and asks neither broker nor store: a scrape costs them nothing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hubbub_aggregator.counting import Progress
from hubbub_aggregator.web.documents import to_json
from hubbub_aggregator.web.responses import JSON, PROBLEM, problem

_PATIENCE_S: Final = 5.0
"""Seconds that a reader may be silent: then its connection ends, so that it holds no thread."""

_Answer = tuple[int, bytes, str]
"""Status, body and media type."""


@contextmanager
def worker_page(listener: socket.socket, progress: Callable[[], Progress]) -> Iterator[None]:
    """Answer /healthz, /readyz and /metrics on a listening socket while the block runs.

    Args:
        listener: The socket; it is closed at the end.
        progress: Returns how far the worker is.
    """
    registry = CollectorRegistry()
    registry.register(_ProgressCollector(progress))
    ProcessCollector(registry=registry)

    def found(path: str) -> _Answer | None:
        if path == "/healthz":
            return 200, to_json({"status": "ok"}), JSON
        if path == "/readyz":
            joined = progress().generation > 0
            status = "ok" if joined else "no partition was assigned yet"
            return (200 if joined else 503), to_json({"status": status}), JSON
        if path == "/metrics":
            return 200, generate_latest(registry), CONTENT_TYPE_PLAIN_0_0_4
        return None

    handler = partial(_WorkerHandler, found)
    server = ThreadingHTTPServer(listener.getsockname()[:2], handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    thread = threading.Thread(target=server.serve_forever, name="hubbub-worker-page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _WorkerHandler(BaseHTTPRequestHandler):
    """A handler of GET and HEAD that logs nothing and names no software."""

    timeout = _PATIENCE_S

    def __init__(
        self,
        found: Callable[[str], _Answer | None],
        request: socket.socket,
        *rest: Any,  # noqa: ANN401 - the base's
    ) -> None:
        """Answer one connection.

        Args:
            found: Returns the answer of a path, None where there is nothing.
            request: The connection.
            rest: The sender's address and the server.
        """
        self._found = found
        super().__init__(request, *rest)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        answer = self._found(path)
        if answer is None:
            refused = problem(404, "path", "must be /healthz, /readyz or /metrics", path)
            answer = 404, bytes(refused.body), PROBLEM
        status, body, media_type = answer
        self.send_response_only(status)
        for name, value in (
            ("content-type", media_type),
            ("content-length", str(len(body))),
            ("cache-control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Answer as GET, without the body."""
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing: senders leave no trace."""


class _ProgressCollector(Collector):
    """A collector of prometheus-client that reads a worker's progress when it is asked."""

    def __init__(self, progress: Callable[[], Progress]) -> None:
        self._progress = progress

    def collect(self) -> Iterator[Metric]:
        """Yield every family with its numbers as of now."""
        now = self._progress()
        text = "Assignments of partitions that this worker began."
        yield CounterMetricFamily("hubbub_worker_assignments", text, value=now.generation)
        text = "Partitions that this worker counts."
        yield GaugeMetricFamily("hubbub_worker_partitions", text, value=len(now.offsets))
        text = "Log records that this worker counted."
        yield CounterMetricFamily("hubbub_worker_records", text, value=now.records)
        for name, text, numbers in (
            ("offset", "The next offset that this worker counts, by partition.", now.offsets),
            ("lag", "Log records that wait for this worker, as of its last look.", now.lags),
        ):
            family = GaugeMetricFamily(f"hubbub_worker_{name}", text, labels=["partition"])
            for partition, number in sorted(numbers.items()):
                family.add_metric([str(partition)], number)
            yield family
