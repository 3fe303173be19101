"""A process that is told to end before it serves: it ends as it does later, with exit code 0."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LINES = [
    "node {} --data data",
    "collector none.toml {}",
    "aggregator {}",
    "dashboard {} --data archive",
    "issuer serve {} --credentials none --data grants.sqlite",
]


@pytest.mark.parametrize("line", LINES, ids=[line.split()[0] for line in LINES])
def test_sigterm_while_it_starts_ends_it_with_exit_code_0(line: str, tmp_path: Path) -> None:
    """Its first file is a pipe that nobody writes into: it waits there, whatever the machine does.

    A signal that comes in the instant before a read begins is looked at after it, so it is sent until it is.
    """
    os.mkfifo(tmp_path / "pipe")
    words = [sys.executable, "-m", "hubbub_deploy.cli", *line.format("pipe").split()]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        writer = -1
        while writer < 0:
            assert process.poll() is None
            try:
                writer = os.open(tmp_path / "pipe", os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads it yet
                time.sleep(0.01)
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
        os.close(writer)
        assert (process.returncode, process.communicate()[1]) == (0, "")
