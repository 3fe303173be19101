"""Mistakes that the worlds must find: mends of known races taken back, and artificial ones.

Each is a patch of the product while a world of its kind runs. `make simulate ARGS="--mutant NAME"` finds the
first seed of one; evidence/mistakes.json has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Literal
from unittest import mock

from memory_redis import MemoryRedis

from hubbub_aggregator.counting import KeyedDeadLetters
from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.release.sealing import Sealer
from hubbub_aggregator.runners import Assignment, CountedBuilder, Retention
from hubbub_aggregator.runners.counters import Advance, SharedCounter
from hubbub_aggregator.runners.publication import Publication
from hubbub_aggregator.stores import SqliteArchive, SqliteStore, TransparencyLog, redis_scripts
from hubbub_aggregator.stores.archive import SCHEMA_VERSION
from hubbub_client.ledger.ledger import Ledger
from hubbub_collector.batching.writer import Writer
from hubbub_topic import LogError, SqliteLog

Mutant = Callable[[], AbstractContextManager[Any]]
Kind = Literal["node", "cluster"]
Disaster = Literal["grown", "older", "empty", "evicted", "lost", "cut"]


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


def _without(script: str, *lines: str) -> Mutant:
    """Leave lines out of a script of Redis."""
    text = getattr(redis_scripts, script)
    for line in lines:
        assert line in text, line
        text = text.replace(line, "")
    return lambda: mock.patch.object(redis_scripts, script, text)


def _only_ends(assignment: Any, partition: int, _: int) -> Any:
    assignment._ends[partition] = assignment._end(partition)
    return assignment._begin(partition)


def _whatever_is_there(counter: Any, partition: int) -> Any:
    known, offset = counter.states[partition], counter._store.offset(partition)
    if offset == known.offset:
        return None
    state = counter.states[partition] = counter._store.load_counts(partition)
    return Advance(state.offset - known.offset, state.rounds, state.lost != known.lost)


def _made_unasked(archive: Any) -> int:
    archive._db.execute(
        "CREATE TABLE release (digest BLOB, round INTEGER, document BLOB NOT NULL, "
        "checksum BLOB NOT NULL DEFAULT x'', PRIMARY KEY (digest, round))"
    )
    archive._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return SCHEMA_VERSION


def _split_read(client: Any, script: str) -> Any:
    """Read a partition key by key, and let others write meanwhile."""
    if script != redis_scripts.READ:
        return _REGISTER(client, script)

    def read(keys: list[str]) -> list[Any]:
        hashes = [client._sent("HGETALL", key) for key in keys[:4]]
        found = [client.lrange(keys[4], 0, -1), client._sent("GET", keys[5])]
        return [*hashes, *found, [client._sent("GET", key) for key in keys[6:]]]

    return read


_REGISTER = MemoryRedis.register_script


def _always(*_: Any) -> bool:
    return True


def _unsynced(owner: type[Any], name: str, connection: str) -> AbstractContextManager[Any]:
    """Have a file's owner wait for no disk from the moment at which it is open."""
    method = getattr(owner, name)

    def opened(thing: Any, *given: Any) -> Any:
        found = method(thing, *given)
        getattr(thing, connection).execute("PRAGMA synchronous = OFF")
        return found

    return mock.patch.object(owner, name, opened)


@contextmanager
def _nothing_kept() -> Iterator[None]:
    with (
        mock.patch.object(Publication, "_save_gates", _ignore),
        mock.patch.object(SqliteArchive, "keep_shown", _ignore),
    ):
        yield


MUTANTS: Final[dict[str, tuple[Kind | Disaster, Mutant]]] = {
    # Mends of known races, taken back.
    # 49ac75e: a batch that took long may lie behind a seal.
    "a late batch is answered as accepted": ("node", lambda: mock.patch.object(Writer, "_overdue", _ignore)),
    # 49ac75e: a clock that runs ahead seals rounds that are open.
    "the worker believes its clock": (
        "node",
        lambda: mock.patch.object(SteadyClock, "__call__", lambda clock: clock._clock()),
    ),
    # fd8303a: a load that a rebalance overtook takes over what is others' by then.
    "a load is never too late": (
        "cluster",
        lambda: mock.patch.object(Assignment, "_check_current", _ignore),
    ),
    # d1897ca: a topic that was cut, or made again.
    "nobody looks whether the log was cut": (
        "lost",
        lambda: mock.patch.object(Assignment, "_check_log", _only_ends),
    ),
    # A log that was cut, and has grown past what was counted by the time at which a worker starts.
    "nobody compares what comes before the offset": (
        "cut",
        lambda: mock.patch("hubbub_aggregator.runners.assignment.check_counted", _ignore),
    ),
    # 2cc318f: another process saves while a partition is read.
    "a partition is read in pieces": (
        "cluster",
        lambda: mock.patch.object(MemoryRedis, "register_script", _split_read),
    ),
    # 067b1c9: Redis came back older, and steps are saved on top of what it has.
    "steps are saved on older ones": (
        "older",
        _without(
            "SAVE_GATES",
            "if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= there then return {kept and -3 or -2, there} end",
        ),
    ),
    # 71a7077: two dashboards make one archive.
    "an archive is made without a look": (
        "cluster",
        lambda: mock.patch.object(SqliteArchive, "_create", _made_unasked),
    ),
    # aed6bf6: a publisher that slept past its lease saves steps.
    "steps are saved without the lease": (
        "cluster",
        _without("SAVE_GATES", "if holder and holder ~= ARGV[1] then return {-1, 0} end"),
    ),
    # 7c94d2d: a Redis that came back empty is no loss.
    "nobody asks whether Redis came back older": (
        "empty",
        lambda: mock.patch.object(SharedCounter, "has_gone_back", lambda _: False),
    ),
    # Seals may lie among what was given up.
    "seals that were given up are not written again": (
        "lost",
        lambda: mock.patch.object(Sealer, "forget", _ignore),
    ),
    # A publisher waits until an older Redis has been counted up again.
    "an older store's counts are taken": (
        "older",
        lambda: mock.patch.object(SharedCounter, "advance", _whatever_is_there),
    ),
    # A save says of each round whether it is new or known.
    "a round that is gone is begun again": (
        "evicted",
        _without("SAVE", "if missing then return {'changed', numbers .. ' ' .. missing} end"),
    ),
    # A round's reports lie in the topic in force at its start, however late they come.
    "reports go to every partition that there is": (
        "grown",
        lambda: mock.patch(
            "hubbub_collector.gateway.Gateway._target_partitions",
            lambda gateway, _: range(gateway._log.partitions),
        ),
    ),
    # Artificial ones.
    "accepted is said before the append": (
        "node",
        lambda: mock.patch.object(Writer, "_store", _before_append),
    ),
    "an append that failed is answered as stored": (
        "node",
        lambda: mock.patch.object(Writer, "_store", _failed_is_stored),
    ),
    "a seal waits for no lateness": (
        "node",
        lambda: mock.patch("hubbub_aggregator.runners.publication.due", _early),
    ),
    "ids are forgotten at a start": ("node", lambda: mock.patch.object(SqliteStore, "load", _forgetful)),
    "an open round is shown at every report": (
        "node",
        lambda: mock.patch("hubbub_aggregator.runners.publication.step_of", lambda _: 1),
    ),
    "what was shown is not kept": ("node", _nothing_kept),
    "the log waits for no disk": ("node", lambda: _unsynced(SqliteLog, "_prepare", "_writer")),
    "a ledger waits for no disk": ("node", lambda: _unsynced(Ledger, "_open", "_db")),
    "the log of releases waits for no disk": ("node", lambda: _unsynced(TransparencyLog, "__init__", "_db")),
    "retention waits for no list of reports": (
        "node",
        lambda: mock.patch.object(CountedBuilder, "is_waiting", lambda *_: False),
    ),
    "a letter of what cannot be read is not kept": (
        "node",
        lambda: mock.patch.object(KeyedDeadLetters, "put", _ignore),
    ),
    "retention asks for no release": ("node", lambda: mock.patch.object(Retention, "_is_done", _always)),
    "a save compares no offset": (
        "cluster",
        _without("SAVE", "if (head[2] or '0') ~= ARGV[2] then return {'conflict', head[2] or '0'} end"),
    ),
    "a seal is forgotten with its record": (
        "cluster",
        lambda: mock.patch(
            "hubbub_aggregator.counting.counting._RoundDraft.is_sealed",
            property(lambda draft: draft.sealed_at is not None),
        ),
    ),
}
"""Name -> the kind of world that finds it, or what befalls a cluster where it does; and the patch."""

UNSEEN: Final = {
    "steps are saved on older ones": "the archive keeps every step, and only a cut past all of them is shown",
    "steps are saved without the lease": "as above: two dashboards have one archive",
    "what was shown is not kept": "who knows of no step waits for a whole one behind what is there",
    "an older store's counts are taken": "no older cut is shown, and what is sealed has its counts again",
    "a round that is gone is begun again": "totals are compared at a load, which comes before a release",
}
"""Those that none of the first 60 worlds has shown, and what else holds what they break."""
