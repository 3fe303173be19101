"""A worker's small door: ready once it has an assignment, its numbers in metrics, and nothing else."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from hubbub_aggregator.counting import Progress
from hubbub_aggregator.web import worker_page


@dataclass
class Door:
    port: int
    now: Progress = field(default_factory=lambda: Progress(0, {}, {}, 0))

    def ask(self, path: str, method: str = "GET") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def door() -> Iterator[Door]:
    listener = socket.create_server(("127.0.0.1", 0))
    found = Door(listener.getsockname()[1])
    with worker_page(listener, lambda: found.now):
        yield found


def test_a_worker_is_healthy_at_once_and_ready_once_partitions_were_assigned(door: Door) -> None:
    assert door.ask("/healthz") == (200, b'{"status":"ok"}')
    assert door.ask("/readyz")[0] == 503
    door.now = Progress(1, {}, {}, 0)
    assert door.ask("/readyz") == (200, b'{"status":"ok"}')


def test_metrics_are_the_progress_of_this_moment(door: Door) -> None:
    door.now = Progress(3, {0: 70, 12: 5}, {0: 2, 12: 0}, 75)
    status, body = door.ask("/metrics")
    lines = body.decode().splitlines()
    assert status == 200
    for line in (
        "hubbub_worker_assignments_total 3.0",
        "hubbub_worker_partitions 2.0",
        "hubbub_worker_records_total 75.0",
        'hubbub_worker_offset{partition="12"} 5.0',
        'hubbub_worker_lag{partition="0"} 2.0',
    ):
        assert line in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)


@pytest.mark.parametrize("path", ["/", "/metrics/", "/../etc/passwd", "/api/v1/surveys"])
def test_other_paths_are_problems(door: Door, path: str) -> None:
    status, body = door.ask(path)
    assert (status, json.loads(body)["rule"]) == (404, "must be /healthz, /readyz or /metrics")
    assert door.ask("/metrics", "HEAD") == (200, b"")


def test_the_port_is_free_again_afterwards() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with worker_page(listener, lambda: Progress(0, {}, {}, 0)):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
