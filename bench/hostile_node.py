"""A node in a process of its own, with its resident memory, for what strangers do to it."""

from __future__ import annotations

import secrets
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from harness import integers, labels, survey_text

from hubbub.survey.survey import Survey
from hubbub.wire.report import Report, encode_report, encode_upload

MIB = 2**20
LABELS = 16_000  # of 120 bytes: a list of surveys of 2 MB


def survey(*, large: bool) -> Survey:
    """Return a survey whose round began a minute ago; a large one fills a list of 2 MB."""
    domain = labels([f"{number:0>120}" for number in range(LABELS)]) if large else integers(10, 99)
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
    return Survey.parse(survey_text("hostile", domain, epsilon=2.0, attribute="age", start=start))


class Node:
    """A node in a process of its own, and its resident memory."""

    def __init__(self, asked: Survey, folder: Path, words: Sequence[str]) -> None:
        (folder / "survey").write_bytes(asked.canonical)
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self.most = self.before = self.resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def resident(self) -> int:
        """Return resident bytes now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)

    def _look(self) -> None:
        while not self._stop.wait(0.01):
            self.most = max(self.most, self.resident())

    def end(self) -> str:
        """Return the node's stderr."""
        self._stop.set()
        self._thread.join()
        self.process.kill()
        return self.process.communicate()[1]


def upload(asked: Survey, reports: int = 8) -> bytes:
    """Return the body of an upload of reports with new ids."""
    return encode_upload(
        [encode_report(Report(asked.digest, 0, secrets.token_bytes(16), 1)) for _ in range(reports)]
    )
