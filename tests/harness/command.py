"""The `hubbub` command on the code under test: here, or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hubbub_deploy import cli

COMMAND = [sys.executable, "-m", "hubbub_deploy.cli"]


def environment() -> dict[str, str]:
    """This process's environment, its import path included; output as wide as tests can rely on."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, "COLUMNS": "200"}


def hubbub(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end in this process: imports would take most of the time of another."""
    line = list(map(str, arguments))
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            code: object = cli.main(line)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(line, code, said.getvalue(), told.getvalue())


def hubbub_apart(*arguments: object, timeout_s: float = 300.0) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=environment(),
    )


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on; killed, if need be, at the end of the block."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def node(
    data: Path, *surveys: Path, options: tuple[object, ...] = ()
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`hubbub node` on any free port, and that port, once it takes uploads."""
    with running("node", *surveys, "--data", data, "--port", 0, *options) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Hubbub node: http://"), process.communicate()
        yield process, int(line.rsplit(":", 1)[1])


def one_line(text: str) -> bool:
    """Whether it is exactly one line: no traceback, nothing before or after it."""
    return text.endswith("\n") and text.count("\n") == 1 and "Traceback" not in text
