"""The node's world: two collectors and a worker on one machine, with its log, store and archive.

Power may fail at any write: of the three files whatever was synced stays, and of the rest anything. Retention
takes what was counted and released.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from disk import UNSYNCED
from world import GRACE_S, Crash, RoundKey, TroubledLog, World, crashing

from hubbub.wire import ReportsRecord, decode_record
from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.runners import Retention, Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView
from hubbub_topic import Cut, LogError, SqliteLog

KEEPS_S = (0.0, 600.0, 60.0)
"""The seconds for which a node keeps its records."""

BUSY_S = (15.0, 0.5, 30.0)
IDLE_S = (60.0, 2.0, 120.0)
"""The worker's pauses after a step that counted something, and after one that found nothing."""
POWER_ONE_IN = 45
"""Steps of the worker of which one ends with the power, and so do three times as many appends."""


class NodeWorld(World):
    """A node's life; see `World`."""

    partitions = 2

    def __init__(self, *given: Any, **size: Any) -> None:
        super().__init__(*given, **size)
        self.log = SqliteLog(self.folder / "node-log.db", partitions=self.partitions)
        self._ahead = {"a": 0.0, "b": 0.0, "worker": 0.0}
        self._keep_s = KEEPS_S[self.tape.pick(3)]
        self._gone: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(self.partitions)}
        self._done: set[RoundKey] = set()
        # While power is off: after how many steps it failed.
        self._failed: int | None = None

    def lives(self) -> dict[str, Callable[[str], Coroutine[Any, Any, None]]]:
        """Return what each host does."""
        return super().lives() | {"worker": self._worker}

    # Power.

    def _fail(self, first: int) -> None:
        """End everything on the machine, after some step of those since the first."""
        if self._failed is None:
            self._failed = self.disk.mark - self.tape.pick(self.disk.mark - first + 1)
            for host in self._hosts.values():
                self._kill(host)
            self.later(self._restore())

    async def _restore(self) -> None:
        # Files are closed as their tasks end.
        await asyncio.sleep(0.5)
        self.log.close()
        unsynced = UNSYNCED[self.tape.pick(3)]
        self.say(f"power fails, what was not synced is {unsynced}")
        assert self._failed is not None
        self.disk.cut("node", self._failed, unsynced, self.tape.bytes_of(8))
        self.log = SqliteLog(self.folder / "node-log.db", partitions=self.partitions)
        self._failed = None

    async def _before(self, name: str) -> None:
        while self._failed is not None:
            await asyncio.sleep(1.0)

    def appended(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Append to the log; power may fail meanwhile, and then nobody hears."""
        first = self.disk.mark
        found = super().appended(batches)
        if self.fault(150):
            self._fail(first)
            raise LogError("no power")
        return found

    # The worker.

    async def _worker(self, name: str) -> None:
        # A process cannot know how far its clock was ahead before its first look: whoever starts it, looks.
        self._ahead[name] = 0.0
        with contextlib.ExitStack() as files:
            store = SqliteStore(
                self.folder / "node-store.db", log_identity=self.log.identity, partitions=self.partitions
            )
            files.callback(store.close)
            archive = SqliteArchive(self.archive_path)
            files.callback(archive.close)
            crashing(self, name, store, ("save", "save_gates"))
            crashing(self, name, archive, ("put", "keep_shown", "keep_counts"))
            view, log, known = LiveView(), _Log(self, "worker"), set[RoundKey]()
            clock = SteadyClock(lambda: self.now_s() + self._ahead[name], self.loop.time)
            try:
                worker = Worker(
                    log,
                    store,
                    archive=archive,
                    view=view,
                    grace_s=GRACE_S,
                    clock=clock,
                    read_records=1 + self.tape.pick(8),
                    retention=Retention(log, archive, keep_s=self._keep_s, keep_bytes=0, clock=clock)
                    if self._keep_s
                    else None,
                )
                while True:
                    first, found = self.disk.mark, 0
                    with contextlib.suppress(LogError):
                        found = worker.step()
                    if self._failed is not None:
                        return
                    if self.fault(POWER_ONE_IN):
                        self._fail(first)
                        return
                    self.look(view, archive, known)
                    await asyncio.sleep(self.pace * (BUSY_S if found else IDLE_S)[self.tape.pick(3)])
            except Crash:
                return

    def calmed(self) -> None:
        """Start the worker again: one whose clock was ahead waits for somebody to look."""
        self._kill(self._hosts["worker"])

    def trim(self, cuts: Mapping[int, Cut], names: Iterable[bytes]) -> None:
        """Delete the first records of the log, and remember them here."""
        for number, cut in cuts.items():
            known = self._gone[number]
            begin = self.log.begin(number)
            for offset, data in self.log.read(number, begin, max(cut.before - begin, 1)):
                if offset >= cut.before:
                    break
                # What is kept across a cut lies where another record was, which is known here.
                if offset == len(known):
                    known.append((offset, data))
                record = decode_record(data, broken=[])
                if isinstance(record, ReportsRecord):
                    for segment in record.segments:
                        key = segment.digest, segment.round
                        if key in self._done or not len(segment.symbols):
                            continue
                        self._done.add(key)
                        if self._archived(key) is None:
                            self.seen.wrong.append(f"I8 partition {number}: record {offset} went unreleased")
        self.log.trim(cuts, names)

    def records(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return every record that there ever was, by partition."""
        return {
            number: known + self.log.read(number, len(known), 10**6) for number, known in self._gone.items()
        }

    def close(self) -> None:
        """Close the log."""
        self.log.close()


class _Log(TroubledLog):
    """The worker's log."""

    def trim(self, cuts: Mapping[int, Cut], names: Iterable[bytes]) -> None:
        world: Any = self._world
        world.trim(cuts, names)
