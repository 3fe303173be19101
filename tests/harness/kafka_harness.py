"""A real broker for tests: started by deploy/kafka/broker.py, one for the whole run, ended with it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Final, Literal

import pytest

SCRIPT: Final = Path(__file__).parents[2] / "deploy" / "kafka" / "broker.py"
_MISSING = [name for name in ("java", "mvn") if shutil.which(name) is None]
_START_S = 180.0


class Broker:
    """deploy/kafka/broker.py in a process of its own."""

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        self.folder, self.nodes, self.bootstrap = folder, nodes, ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it, or starts it again on the same files and ports."""
        command = [sys.executable, str(SCRIPT), "--data", str(self.folder), "--port", "0"]
        command += ["--nodes", str(self.nodes)]
        with (self.folder / "script.txt").open("a") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("ready: "):
                self.bootstrap = line.removeprefix("ready: ").strip()
                return
        self._process.wait()
        raise RuntimeError((self.folder / "script.txt").read_text())

    def kill_node(self, number: int = 1) -> None:
        """Ends a node as a crash would; with the last one the script ends too."""
        os.kill(int((self.folder / f"node-{number}" / "pid").read_text()), signal.SIGKILL)
        if self.nodes == 1 and self._process is not None:
            self._process.wait()

    def is_alive(self) -> bool:
        """Return whether its script runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@functools.cache
def _broker(name: Literal["shared", "mortal"]) -> Broker:
    folder = Path(tempfile.mkdtemp(prefix=f"hubbub-kafka-{name}-"))
    broker = Broker(folder)

    def end() -> None:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    broker.start()
    return broker


def shared_broker() -> Broker:
    """The run's broker: topics keep tests apart."""
    return _broker("shared")


def mortal_broker() -> Broker:
    """One which tests may kill and must start again: the shared one, unless that is somebody else's.

    It comes back on the same files and ports, and the tests of a process run one after another.
    """
    return _broker("mortal" if os.environ.get("HUBBUB_TEST_KAFKA") else "shared")


def bootstrap_or_skip() -> str:
    """Where the shared broker listens; skips the test where there can be none.

    A broker that runs already may be named in HUBBUB_TEST_KAFKA: that saves the seconds that a start takes.
    """
    if running := os.environ.get("HUBBUB_TEST_KAFKA"):
        return running
    if _MISSING:
        pytest.skip(f"a real broker needs {' and '.join(_MISSING)}; the contract of logs ran on a mock only")
    try:
        broker = shared_broker()
        if not broker.is_alive():  # a test that was to start it again has failed: the others need not
            broker.stop()
            broker.start()
        return broker.bootstrap
    except RuntimeError as error:
        if "Maven could not fetch" in str(error):
            pytest.skip("Maven could not fetch Kafka's jars; the contract of logs ran on a mock only")
        raise


def new_topic_name() -> str:
    return f"reports-{uuid.uuid4().hex[:12]}"
