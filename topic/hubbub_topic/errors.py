"""Every error of the log, as one tree.

LogError             the log could not do what was asked; what was to be appended may be there all the same
├── LogLockedError   another owner has the log open
└── LogVersionError  the log was written by a newer release

SQLite rolls an append that failed back, Kafka may keep some of it (see `Log.append`). The other two are
states of a SQLite file. Errors of brokers are sorted in `kafka/errors.py`, and come out as LogError.
"""

from __future__ import annotations

from typing import ClassVar

from hubbub.errors import Advice, AdvisedError


class LogError(AdvisedError):
    """The log could not be opened, read or appended to."""

    advice: ClassVar[Advice] = "retry"


class LogLockedError(LogError):
    """The log has another owner; one process at a time may have it open."""


class LogVersionError(LogError):
    """The log has another schema than this release reads."""

    advice = "stop"
