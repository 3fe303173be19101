"""A node that a test starts, kills and starts again on the same files, with a clock that the test turns."""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import node_harness
from redis_harness import free_port
from surveys import ALL, START_S

from hubbub.survey.survey import Survey

SURVEYS = tuple(Survey.parse(text) for text in ALL.values())
HEALTH = SURVEYS[0]
DAY_S = 86_400
LATENESS_S = 3600
PARTITIONS = 4
VERDICTS = ("accepted", "duplicate", "early", "late", "invalid", "over_quota")


def in_round(number: int) -> float:
    """A moment in a round when the rounds before it are past their lateness and grace."""
    return START_S + number * DAY_S + 2.0 * LATENESS_S


class World:
    """The files of a node, its clock, and a nursery of its lives."""

    def __init__(self, folder: Path, surveys: Sequence[Survey] = SURVEYS) -> None:
        self.data, self._clock = folder / "data", folder / "clock"
        self.turn(in_round(0))
        files = []
        for survey in surveys:
            files.append(folder / survey.id)
            files[-1].write_bytes(survey.canonical)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._nursery = subprocess.Popen(
            [sys.executable, node_harness.__file__, str(self._clock), str(self.port), *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def turn(self, now_s: float) -> None:
        """Sets the node's clock, running or not."""
        if not self._clock.exists():
            self._clock.write_bytes(bytes(8))
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<d", now_s))

    def live(self, data: Path | None = None, **order: Any) -> int:
        """One life from start to end; its exit code."""
        self._tell(json.dumps({"data": str(data or self.data), **order}))
        return int(self._hear())

    @contextlib.contextmanager
    def living(self, **order: str) -> Iterator[None]:
        """A life that ends with the block, asked politely, or as `order` says."""
        self._tell(json.dumps({"data": str(self.data), "until": "told", **order}))
        assert self._hear() == "ready"
        yield
        self._tell("end")
        assert self._hear() == ("-9" if order.get("end") == "killed" else "0")

    def _tell(self, line: str) -> None:
        self._nursery.stdin.write(line + "\n")
        self._nursery.stdin.flush()

    def _hear(self) -> str:
        # A life takes seconds: a node that never gets there must fail the test, not hang it.
        heard, _, _ = select.select([self._nursery.stdout], [], [], 60.0)
        assert heard, "the node did not get there within a minute"
        line = self._nursery.stdout.readline()
        assert line, "the nursery has ended"
        return line.strip()

    def end(self) -> None:
        self._nursery.stdin.close()
        try:
            self._nursery.wait(120)
        finally:
            self._nursery.kill()
            self._nursery.wait()
            self._nursery.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def document(self) -> dict[str, Any]:
        """Everything that the page shows."""
        found: dict[str, Any] = json.loads(self.get("/api/live"))
        return found

    def sealed_rounds(self) -> int:
        """How many rounds are shown as sealed."""
        return sum(entry["sealed"] for survey in self.document()["surveys"] for entry in survey["rounds"])

    def get(self, path: str, timeout_s: float = 5.0) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=timeout_s) as reply:  # noqa: S310 - our own http
            return reply.read()


def wait_until(done: Callable[[], bool], timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)
