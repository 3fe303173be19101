"""The node's world: two collectors and a worker on one machine, with its log, store and archive.

Power may fail at any write: of the three files whatever was synced stays, and of the rest anything. Retention
takes what was counted and released.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from disk import UNSYNCED
from world import GRACE_S, Crash, RoundKey, TroubledLog, World, crashing

from hubbub.errors import WireError
from hubbub.transparency import LOG_KEY, Checkpoint, Note, NoteKey, entries_of
from hubbub.wire import ReportsRecord, decode_record
from hubbub_aggregator.counting import KeyedDeadLetters
from hubbub_aggregator.errors import ArchiveError
from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.runners import CountedBuilder, Retention, Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteDeadTopic, SqliteStore, TransparencyLog
from hubbub_aggregator.web import LiveView
from hubbub_deploy.transparency import LogKeeper, LogSettings
from hubbub_topic import Cut, LogError, SqliteLog

KEEPS = ((0.0, 0), (600.0, 0), (60.0, 0), (0.0, 4_000))
"""The seconds for which a node keeps its records, and the bytes above which it keeps no more."""

BUSY_S = (15.0, 0.5, 30.0)
ORIGIN = "node.example/log"
_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(32))
_LISTING = LogSettings(
    NoteKey(ORIGIN, LOG_KEY, _PRIVATE.public_key().public_bytes_raw()), _PRIVATE, witnesses={}, quorum=0
)
IDLE_S = (60.0, 2.0, 120.0)
"""The worker's pauses after a step that counted something, and after one that found nothing."""
POWER_ONE_IN = 45
"""Steps of the worker of which one ends with the power, and so do three times as many appends."""


class NodeWorld(World):
    """A node's life; see `World`."""

    partitions = 2
    # Without room processes end, and begin again.
    bearable = frozenset({"StoreConflictError", "StoreError", "ArchiveFullError"})

    def __init__(self, *given: Any, **size: Any) -> None:
        super().__init__(*given, **size)
        self.log = SqliteLog(self.folder / "node-log.db", partitions=self.partitions)
        self._ahead = {"a": 0.0, "b": 0.0, "worker": 0.0}
        self._keep_s, self._keep_bytes = KEEPS[self.tape.pick(len(KEEPS))]
        self._is_listed = self.tape.pick(3) == 1
        # By position: records that nobody can read.
        self._strange: dict[tuple[int, int], bytes] = {}
        # What was published of the log of releases, in order.
        self._notes: list[Checkpoint] = []
        self._gone: dict[int, list[tuple[int, bytes]]] = {number: [] for number in range(self.partitions)}
        self._done: set[RoundKey] = set()
        # While power is off: after how many steps it failed.
        self._failed: int | None = None

    def lives(self) -> dict[str, Callable[[str], Coroutine[Any, Any, None]]]:
        """Return what each host does."""
        return super().lives() | {"worker": self._worker}

    def more(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what else goes on."""
        return self._strangers(), self._fills()

    async def _strangers(self) -> None:
        """Write what nobody can read into the log, as a newer collector would."""
        while True:
            await asyncio.sleep(300.0 * self.pace)
            if self._failed is None and self.fault(12):
                partition, data = self.tape.pick(self.partitions), b"\xc1" + self.tape.bytes_of(4)
                with contextlib.suppress(LogError):
                    (offset,) = self.log.append({partition: [data]}).values()
                    self._strange[partition, offset] = data
                    self.say(f"partition {partition}: record {offset} is a stranger's")

    async def _fills(self) -> None:
        """Leave the disk without room for a while."""
        while True:
            await asyncio.sleep(300.0 * self.pace)
            if self.fault(25):
                self.say("the disk is full")
                self.disk.full = "node"
                await asyncio.sleep(60.0 * (1 + self.tape.pick(9)))
                self.disk.full = None
                self.say("the disk has room again")

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
            dead = SqliteDeadTopic(self.folder / "node-dead.db")
            files.callback(dead.close)
            view, log, known = LiveView(), _Log(self, "worker"), set[RoundKey]()
            clock = SteadyClock(lambda: self.now_s() + self._ahead[name], self.loop.time)
            entries = listed = keeper = None
            if self._is_listed:
                entries = TransparencyLog(self.folder / "node-entries.db")
                files.callback(entries.close)
                crashing(self, name, entries, ("append", "append_counted", "publish"))
                listed = CountedBuilder(
                    entries, lambda: contextlib.nullcontext(archive), lambda: contextlib.nullcontext(log)
                )
                keeper = LogKeeper(entries, _LISTING, clock=self.now_s)
            retention = Retention(
                log,
                archive,
                keep_s=self._keep_s,
                keep_bytes=self._keep_bytes,
                clock=clock,
                is_waiting=(lambda key: False) if listed is None else listed.is_waiting,
            )
            try:
                worker = Worker(
                    log,
                    store,
                    archive=archive,
                    view=view,
                    grace_s=GRACE_S,
                    clock=clock,
                    read_records=1 + self.tape.pick(8),
                    dead_letters=KeyedDeadLetters(dead, log_identity=log.identity, payload="whole"),
                    retention=retention if self._keep_s or self._keep_bytes else None,
                    entries=entries,
                )
                while not self._hosts[name].told.is_set():
                    first, found = self.disk.mark, 0
                    with contextlib.suppress(LogError):
                        found = worker.step()
                        if entries is not None and listed is not None and keeper is not None:
                            listed.look()
                            keeper.look()
                    if self._failed is not None:
                        return
                    if self.fault(POWER_ONE_IN):
                        self._fail(first)
                        return
                    # Power that fails may do so before this step's end: only now is it sure what anybody saw.
                    if entries is not None:
                        self._note_published(entries)
                    self.look(view, archive, known)
                    await asyncio.sleep(self.pace * (BUSY_S if found else IDLE_S)[self.tape.pick(3)])
                with contextlib.suppress(LogError):
                    worker.run(_Told())
            except Crash:
                return

    def _note_published(self, entries: TransparencyLog) -> None:
        """Note a checkpoint of the log of releases that anybody may have seen."""
        note = Note.parse((entries.published() or "").encode())
        found = None if note is None else Checkpoint.parse(note.text)
        if found is not None and (not self._notes or self._notes[-1] != found):
            self._notes.append(found)
            self.say(f"a log of {found.size} entries is published")

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
                record = None
                with contextlib.suppress(WireError):
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

    def others(self, released: Mapping[RoundKey, bytes]) -> list[str]:
        """Return what does not hold of dead letters, and of the log of what was published."""
        with contextlib.closing(SqliteDeadTopic(self.folder / "node-dead.db")) as dead:
            letters = [json.loads(value) for value in dead.records().values()]
        kept = {(each["partition"], each["offset"]): each["record"] for each in letters}
        found = [
            f"I11 partition {partition}: record {offset} is no record, and its letter is not kept"
            for (partition, offset), data in self._strange.items()
            if kept.pop((partition, offset), None) != base64.b64encode(data).decode()
        ]
        found += [f"I11 partition {partition}: a letter of {offset}, a record" for partition, offset in kept]
        if self._is_listed:
            try:
                with contextlib.closing(TransparencyLog(self.folder / "node-entries.db")) as entries:
                    found += self._listed(entries, released)
            except ArchiveError as error:
                found.append(f"I12 the log of releases cannot be read: {error}")
        return found

    def _listed(self, log: TransparencyLog, released: Mapping[RoundKey, bytes]) -> list[str]:
        entries, found = log.since(0), []
        leaves = [hashlib.sha256(b"\0" + entry.data).digest() for entry in entries]
        if Checkpoint.parse(log.checkpoint(ORIGIN).text) not in self._notes:
            found.append("I12 the log of releases is not published to its end")
        for note in self._notes:
            if note.size > len(leaves) or note.root != _root(leaves[: note.size]):
                found.append(f"I12 of the log of releases {note.size} entries were published, and are others")
        if not all(log.proof(entry) for entry in entries):
            found.append("I12 an entry of the log of releases has no proof")
        # As strangers read it: hashes and entries in tiles, and the reports that count.
        if log.tile(0, 0, len(leaves)) != b"".join(leaves):
            found.append("I12 hashes of the log of releases are not those of its entries")
        if entries_of(log.entries(0, len(leaves)) or b"") != [entry.data for entry in entries]:
            found.append("I12 strangers read other entries than there are")
        for digest, number in released:
            if not (log.counted(digest, number + 1) and log.counted_tile(digest, number + 1, 0)):
                found.append(f"I12 nobody can read which reports of round {number + 1} count")
        said = [entry.fields for entry in entries if entry.kind == "release"]
        expected = [
            (digest, number + 1, hashlib.sha256(data).digest()) for (digest, number), data in released.items()
        ]
        if sorted(said) != sorted(expected):
            found.append(f"I12 the log of releases has {len(said)}, {len(expected)} were released, or others")
        listed = [entry.fields[:3] for entry in entries if entry.kind == "counted"]
        devices = [(*key, json.loads(data)["devices"]) for key, data in released.items()]
        if sorted(listed) != sorted((digest, number + 1, n) for digest, number, n in devices):
            found.append(f"I12 {len(listed)} rounds have their reports listed, of {len(devices)}")
        return found

    def close(self) -> None:
        """Close the log."""
        self.log.close()


def _root(leaves: list[bytes]) -> bytes:
    """Return the root of a tree of RFC 6962."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + _root(leaves[:left]) + _root(leaves[left:])).digest()


class _Told(threading.Event):
    """An end that comes as soon as nothing is left to do."""

    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class _Log(TroubledLog):
    """The worker's log."""

    def trim(self, cuts: Mapping[int, Cut], names: Iterable[bytes]) -> None:
        world: Any = self._world
        world.trim(cuts, names)
