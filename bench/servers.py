"""A real broker and a real Redis for a benchmark, on ports and in folders of their own, ended with it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis

BROKER = Path(__file__).parents[1] / "deploy" / "kafka" / "broker.py"
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def pin(core: int, pid: int = 0) -> None:
    """Keep a process, and what it starts from now on, on one core: the last one where there are too few."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {CORES[min(core, len(CORES) - 1)]})


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """Keep this process on one core, as `pin` does, until the end."""
    pin(core)
    try:
        yield
    finally:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, CORES)


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """Yield a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="hubbub-bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def broker(core: int = 1) -> Iterator[str]:
    """Yield the address of a broker of one node."""
    with folder() as data:
        command = [sys.executable, str(BROKER), "--data", str(data), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        pin(core, process.pid)  # before it starts what inherits this
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if line.startswith("ready: ")), None)
            if line is None:
                raise SystemExit("the broker did not start")
            yield line.removeprefix("ready: ").strip()
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def redis_server(core: int = 1) -> Iterator[str]:
    """Yield the URL of a Redis with an append-only file."""
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("redis-server must be installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with folder() as data:
        command = [binary, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(data)]
        command += ["--save", "", "--appendonly", "yes", "--maxmemory-policy", "noeviction"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        pin(core, process.pid)
        try:
            url = f"redis://127.0.0.1:{port}/0"
            with redis.Redis.from_url(url) as client:
                while True:
                    with contextlib.suppress(redis.ConnectionError):
                        client.ping()
                        break
                    time.sleep(0.05)
            yield url
        finally:
            process.terminate()
            process.wait()
