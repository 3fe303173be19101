"""Mistakes that the worlds must find: mends of known races taken back, and artificial ones.

Each is a patch of the product while a world runs. Two of the specification's need a second worker, which the
node's world has not: no comparison in `save`, and steps saved by whoever holds no lease. One changes nothing
that this world can see: a worker that forgets what it showed waits for a whole step behind it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest import mock

from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.stores import SqliteStore
from hubbub_collector.batching.writer import Writer
from hubbub_topic import LogError

Mutant = Callable[[], AbstractContextManager[Any]]


async def _before_append(writer: Writer, pending: Any) -> tuple[str, None]:
    pending.judge(writer._admission)
    writer._loop.create_task(_later(writer, pending))
    return "stored", None


async def _later(writer: Writer, pending: Any) -> None:
    await writer._loop.run_in_executor(writer._thread, writer._write, pending.batch)


_STORE = Writer._store
_LOAD = SqliteStore.load


async def _failed_is_stored(writer: Writer, pending: Any) -> Any:
    try:
        pending.judge(writer._admission)
        await writer._loop.run_in_executor(writer._thread, writer._write, pending.batch)
    except LogError:
        pass
    return "stored", None


def _early(rounds: Any, surveys: Mapping[bytes, Any], now_s: float, grace_s: float) -> list[Any]:
    return sorted(key for key in rounds if key[0] in surveys and now_s >= surveys[key[0]].round_end_s(key[1]))


def _forgetful(store: SqliteStore, partition: int) -> Any:
    state = _LOAD(store, partition)
    for known in state.rounds.values():
        if known.sealed_at is None:
            known.seen = None
    return state


def _ignore(*_: Any, **__: Any) -> None:
    return None


MUTANTS: Final[dict[str, Mutant]] = {
    # The mend 49ac75e: a batch that took long may lie behind a seal.
    "a late batch is answered as accepted": lambda: mock.patch.object(Writer, "_overdue", _ignore),
    # The mend 49ac75e: a clock that runs ahead seals rounds that are open.
    "the worker believes its clock": lambda: mock.patch.object(
        SteadyClock, "__call__", lambda clock: clock._clock()
    ),
    "accepted is said before the append": lambda: mock.patch.object(Writer, "_store", _before_append),
    "an append that failed is answered as stored": lambda: mock.patch.object(
        Writer, "_store", _failed_is_stored
    ),
    "a seal waits for no lateness": lambda: mock.patch("hubbub_aggregator.runners.publication.due", _early),
    "ids are forgotten at a start": lambda: mock.patch.object(SqliteStore, "load", _forgetful),
    "an open round is shown at every report": lambda: mock.patch(
        "hubbub_aggregator.runners.publication.step_of", lambda _: 1
    ),
}
"""Name -> the patch."""
