"""A dashboard or node that outlives brokers, Redis and full disks, and another dashboard's lease.

After every failure a new publisher begins from store, log and archive, as a restarted process would.
Transient errors are borne for a limited time; an invariant violation in the numbers themselves ends the
process at once.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeAlias

from hubbub_aggregator import (
    ArchiveFullError,
    LeaseLostError,
    PartitionMapGrownError,
    StoreConflictError,
    StoreError,
    last_words,
)
from hubbub_aggregator.release import timestamp
from hubbub_aggregator.stores import has_no_room
from hubbub_aggregator.web import LiveView
from hubbub_deploy.errors import DeployError
from hubbub_topic import LogError

# A Redis that loads its file, or brokers that elect leaders, take minutes at worst. A supervisor that starts
# the process again after that shows an operator that something lasts.
PATIENCE_S: Final = 300.0
_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 5.0


class Runner(Protocol):
    """A publisher, or a node's worker."""

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set."""


Attempt: TypeAlias = Callable[[], AbstractContextManager[Runner]]


def run_supervised(
    attempt: Attempt,
    view: LiveView,
    stop: threading.Event,
    *,
    bears: Callable[[Exception], bool] | None = None,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.time,
) -> None:
    """Publish until `stop` is set; the view says since when it stands still, and why.

    Args:
        attempt: Connect, and return a new publisher; it may fail any number of times.
        view: What readers look at.
        stop: Ends it.
        bears: Return whether an error may pass by itself; `passes` if absent.
        patience_s: How long it may go on without one success.
        clock: Seconds since 1970.

    Raises:
        AggregatorError: On an invariant violation that waiting does not heal.
        ArchiveFullError: If there was no room for so long, or
        StoreError: If Redis stayed away for longer than that, or
        LogError: the brokers did.
    """
    waits, since_s, away_s, said = _waits(), None, None, ""
    while not stop.is_set():
        try:
            with attempt() as publisher:
                waits, since_s, away_s, said = _waits(), None, None, ""
                publisher.run(stop)
        except (ArchiveFullError, DeployError, LogError, StoreError, PartitionMapGrownError) as error:
            if not (bears or passes)(error):
                raise
            now_s = clock()
            since_s = now_s if since_s is None else since_s
            # Another dashboard may be at work for years.
            is_second = isinstance(_cause(error), LeaseLostError)
            away_s = None if is_second else now_s if away_s is None else away_s
            if away_s is not None and now_s - away_s > patience_s:
                raise
            if str(error) != said:  # who stands by says so once, not for years
                said = str(error)
                # The file of stderr may lie on the disk that is full.
                with contextlib.suppress(OSError):
                    print(f"hubbub: {_words(error)}; trying again", file=sys.stderr, flush=True)
            view.stand_still(since=timestamp(int(since_s)), why=_why(error))
            stop.wait(next(waits))


def passes(error: Exception) -> bool:
    """Return whether an error is transient: it may pass by itself."""
    cause = _cause(error)
    # Every kind of StoreError but these two is an invariant violation in the numbers.
    return type(cause) in (
        ArchiveFullError,
        StoreError,
        StoreConflictError,
        LeaseLostError,
        PartitionMapGrownError,
    ) or isinstance(cause, LogError)


def is_full(error: Exception) -> bool:
    """Return whether an error is of a disk without room."""
    cause = _cause(error)
    return isinstance(cause, ArchiveFullError) or (
        cause.__cause__ is not None and has_no_room(cause.__cause__)
    )


def _cause(error: Exception) -> BaseException:
    return error.__cause__ if isinstance(error, DeployError) and error.__cause__ is not None else error


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, DeployError) else last_words(error)


def _why(error: Exception) -> str:
    """Return a word for anybody who looks at the page: no addresses."""
    cause = _cause(error)
    if isinstance(cause, LeaseLostError):
        return "another dashboard is at work"
    if isinstance(cause, PartitionMapGrownError):
        return "the log has grown"
    if isinstance(cause, ArchiveFullError):
        return "there is no room for releases"
    if cause.__cause__ is not None and has_no_room(cause.__cause__):
        return "there is no room for counts"
    return "the log is out of reach" if isinstance(cause, LogError) else "the counts are out of reach"


def _waits() -> Iterator[float]:
    wait = _FIRST_WAIT_S
    while True:
        yield wait
        wait = min(2 * wait, _LONGEST_WAIT_S)
