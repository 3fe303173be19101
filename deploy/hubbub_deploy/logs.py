"""Structured logs: one JSON object per line on stderr, for whoever collects lines."""

from __future__ import annotations

import io
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

LEAST_LEVEL: Final = logging.WARNING
"""The least level that is logged, the same as in text."""


def as_json_lines(
    stream: TextIO | None = None, *, clock: Callable[[], float] = time.time
) -> Callable[[], None]:
    """Write whatever goes to stderr or to a log as JSON lines from now on, and return what undoes it.

    Each line has time (UTC), level, logger and message, and an error's traceback where there is one. What is
    written to stderr without a log, such as a traceback at the end, becomes a line of level ERROR and logger
    stderr for each of its lines.

    Args:
        stream: Where lines go; stderr as it is now.
        clock: Seconds since 1970, for what comes without a time of its own.
    """
    target, before = stream or sys.stderr, sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(_JsonFormatter())
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = [handler]
    root.setLevel(LEAST_LEVEL)
    sys.stderr = _LinesAsJson(target, clock)

    def undo() -> None:
        sys.stderr.flush()
        sys.stderr = before
        root.handlers[:] = handlers
        root.setLevel(level)

    return undo


def _line(at_s: float, level: str, logger: str, message: str, **more: str) -> str:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_s)) + f".{int(at_s * 1000) % 1000:03d}Z"
    found = {"time": moment, "level": level, "logger": logger, "message": message, **more}
    return json.dumps(found, ensure_ascii=False)


class _JsonFormatter(logging.Formatter):
    """A formatter that gives a record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        more = {"error": self.formatException(record.exc_info)} if record.exc_info else {}
        return _line(record.created, record.levelname, record.name, record.getMessage(), **more)


class _LinesAsJson(io.TextIOBase):
    """A text stream that hands each whole line on as a JSON object."""

    def __init__(self, target: TextIO, clock: Callable[[], float]) -> None:
        self._target, self._clock, self._begun = target, clock, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._emit(line)
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def fileno(self) -> int:
        return self._target.fileno()

    def _emit(self, line: str) -> None:
        if line.strip():
            self._target.write(_line(self._clock(), "ERROR", "stderr", line) + "\n")
            self._target.flush()
