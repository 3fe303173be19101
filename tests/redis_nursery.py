"""A Redis server of a test's own: a free port, a folder of its own, ended with the test."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest
import redis

BINARY = shutil.which("redis-server")
needs_redis = pytest.mark.skipif(BINARY is None, reason="redis-server is not installed (apt: redis-server)")
_START_S = 10.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One server process; started again on the same port and folder as often as a test likes."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.port, self._options = folder, free_port(), options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert BINARY is not None
        command = [BINARY, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", "--appendonly", "no", *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = monotonic() + _START_S
        with redis.Redis.from_url(self.url) as client:
            while True:
                try:
                    assert client.ping()
                except (redis.ConnectionError, redis.exceptions.BusyLoadingError):
                    assert monotonic() < deadline
                    assert self._process.poll() is None
                    sleep(0.02)
                else:
                    return

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[RedisServer]:
    server = RedisServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.kill()
