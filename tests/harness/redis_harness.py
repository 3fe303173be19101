"""A Redis server of a test's own: a free port, a folder of its own, ended with the test."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest
import redis

# `make evidence NAME=brokers` names the program of another version, or of Valkey.
BINARY = os.environ.get("HUBBUB_TEST_REDIS_SERVER") or shutil.which("redis-server")
needs_redis = pytest.mark.skipif(BINARY is None, reason="redis-server is not installed (apt: redis-server)")
_START_S = 60.0


def _has_tls() -> bool:
    """Return True if the server was built with TLS; Redis and Valkey say otherwise that they were not.

    It is given no certificate, so it ends in any case.
    """
    if BINARY is None:
        return False
    found = subprocess.run(
        [BINARY, "--tls-port", "1", "--port", "0"], capture_output=True, check=False, timeout=60
    )
    return not any(word in found.stdout + found.stderr for word in (b"Bad directive", b"finding TLS support"))


needs_tls = pytest.mark.skipif(not _has_tls(), reason="the Redis server was built without TLS")


def free_port() -> int:
    """A free port below those that outgoing connections get.

    A server that starts again needs its port back, and somebody else may have one of theirs by then; a
    device that calls a dead node on one may be given the very port it calls, and talks to itself.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@dataclass(frozen=True)
class Door:
    """A server's demands on its clients: TLS by its certificate, and a password."""

    ca: Path
    certificate: Path
    key: Path
    password: str

    def options(self, port: int) -> tuple[str, ...]:
        return (
            *("--port", "0", "--tls-port", str(port), "--requirepass", self.password),
            *("--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key)),
            *("--tls-ca-cert-file", str(self.ca), "--tls-auth-clients", "no", "--tls-cluster", "yes"),
        )


class RedisServer:
    """One server process; started again on the same port and folder as often as a test likes.

    With `door`, it takes only those who know the password, by TLS.
    """

    def __init__(self, folder: Path, *options: str, door: Door | None = None) -> None:
        self.folder, self.port, self._options = folder, free_port(), options
        self.url = f"redis://127.0.0.1:{self.port}/0"
        if door is not None:
            self._options = (*door.options(self.port), *options)
            self.url = f"rediss://:{door.password}@127.0.0.1:{self.port}/0?ssl_ca_certs={door.ca}"
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
def running_cluster(folder: Path, nodes: int = 3, *, door: Door | None = None) -> Iterator[list[RedisServer]]:
    """Redis servers that share the slots of a Redis Cluster."""
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(nodes):
            (folder / str(number)).mkdir()
            options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
            servers.append(stack.enter_context(running(folder / str(number), *options, door=door)))
        clients = [stack.enter_context(redis.Redis.from_url(server.url)) for server in servers]
        bounds = [16384 * number // nodes for number in range(nodes + 1)]
        for client, low, high in zip(clients, bounds, bounds[1:], strict=False):
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", low, high - 1)
        for number, client in enumerate(clients):
            # Cluster nodes that never met would each give out what they think is newest.
            client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in servers[1:]:
            bus = int(server._options[-1])
            clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", server.port, bus)
        deadline = monotonic() + _START_S
        for client in clients:
            while True:
                info = client.execute_command("CLUSTER", "INFO")
                if b"cluster_state:ok" in info and b"cluster_known_nodes:%d" % nodes in info:
                    break
                assert monotonic() < deadline, info
                sleep(0.05)
        yield servers


@contextlib.contextmanager
def running(folder: Path, *options: str, door: Door | None = None) -> Iterator[RedisServer]:
    server = RedisServer(folder, *options, door=door)
    server.start()
    try:
        yield server
    finally:
        server.kill()
