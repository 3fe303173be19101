"""The processes of a cluster, each by a name and a settings file of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import TracebackType
from typing import Self

from hubbub_deploy import cli

HUBBUB = [sys.executable, "-m", "hubbub_deploy.cli"]


class SecuredCluster:
    """Processes by their users, ended with it.

    Args:
        folder: Where settings and what processes say lie.
        common: Lines of every settings file.
        users: Each user's own lines.
    """

    def __init__(self, folder: Path, common: str, users: Mapping[str, str]) -> None:
        self.folder = folder
        for user, lines in users.items():
            (folder / f"{user}.toml").write_text(f"{common}kafka_user = '{user}'\n{lines}")
        self._processes: list[subprocess.Popen[str]] = []

    def settings(self, user: str) -> Path:
        return self.folder / f"{user}.toml"

    def run(self, user: str, command: str, *arguments: str) -> tuple[int, str, str]:
        """A command that ends by itself: its exit status, and what it said on both ways."""
        with redirect_stdout(StringIO()) as said, redirect_stderr(StringIO()) as talked:
            code = cli.main([command, str(self.settings(user)), *arguments])
        return code, said.getvalue(), talked.getvalue()

    def start(self, user: str, command: str, *arguments: str) -> subprocess.Popen[str]:
        with (self.folder / f"{user}.log").open("a") as log:
            process = subprocess.Popen(
                [*HUBBUB, command, str(self.settings(user)), *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._processes.append(process)
        return process

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def url(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.match("Hubbub (collector|aggregator|dashboard): http://", line), self.log()
        return line.split(": ", 1)[1].strip()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()
