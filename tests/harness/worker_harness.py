"""Workers in processes of their own, under a supervisor that starts again what has ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

PROCESS: Final = Path(__file__).parent / "aggregator_process.py"

Kind = Literal["faust", "plain"]


class Workers:
    """Some workers of one topic; what they say is kept."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self._arguments = folder, arguments
        self.running: list[tuple[Kind, subprocess.Popen[bytes]]] = []
        self.ended: list[int] = []

    def start(self, kind: Kind) -> None:
        with (self.folder / "workers.txt").open("ab") as log:
            command = [sys.executable, str(PROCESS), kind, *self._arguments]
            self.running.append((kind, subprocess.Popen(command, stdout=log, stderr=log)))

    def kill(self, place: int) -> None:
        """Ends one as a crash would, and starts it again."""
        kind, worker = self.running.pop(place)
        worker.kill()
        worker.wait()
        self.start(kind)

    def supervise(self) -> None:
        for kind, worker in [pair for pair in self.running if pair[1].poll() is not None]:
            self.running.remove((kind, worker))
            self.ended.append(worker.returncode)
            self.start(kind)

    def said(self) -> str:
        path = self.folder / "workers.txt"
        return path.read_text()[-6000:] if path.exists() else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for _, worker in self.running:
            worker.kill()
            worker.wait()
        self.running.clear()
