"""The node's world: two collectors, a worker, a log, disks, clocks and devices, in a process, from a seed.

The code is the product's: the gateway as an ASGI application, its writer, the SQLite log, store and archive,
the worker. The world gives them time, random bytes, and trouble: hosts that are killed and begin again,
appends that fail or are not known to have been stored, saves that are cut off, answers that get lost, clocks
that run ahead, threads that sleep. What is a pure function of counts and is tested elsewhere - intervals,
alerts, what readers learn - is left out, unless `whole` is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from asgi_reader import Answer, scope
from counting_logs import MemoryStore
from virtual_time import Host, Tape, VirtualLoop

from hubbub import Survey
from hubbub.wire import PartitionMap, Report, decode_response, encode_report, encode_upload
from hubbub_aggregator.errors import AggregatorError
from hubbub_aggregator.release import SteadyClock
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import SqliteArchive, SqliteStore
from hubbub_aggregator.web import LiveView
from hubbub_collector import GatewaySettings, create_app
from hubbub_topic import LogError, SqliteLog

SURVEY = """
id = "health"
version = 1
title = "Health"
epsilon = 2.0
minimum_cohort = 3
planned_devices = 24

[schedule]
start = 2026-01-01T00:00:00Z
round = "1h"
rounds = {rounds}
lateness = "10m"
skew = "1m"

[attribute]
id = "health"
kind = "evolving"
type = "label"
labels = ["a", "b", "c"]

[mechanism]
name = "grr"
"""
MEMORY = "/dev/shm"  # noqa: S108 - folders in it are made by mkdtemp
GRACE_S = 30.0
PARTITIONS = 2
LAST_WORDS_S = 1_200.0
"""Virtual time after the last fault and the last round's lateness in which everything must be released."""


class Crash(BaseException):
    """A process that ends between two statements; nothing of it may be caught by the product."""


@dataclass
class Seen:
    """What an observer from outside has seen; the invariants are about it and the files."""

    acknowledged: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """Report id -> round's index and symbol, of reports that a device was told are accepted."""
    sent: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    versions: dict[int, set[bytes]] = field(default_factory=dict)
    """Round's number -> every version of its release's bytes that was ever in the archive."""
    steps: dict[int, list[int]] = field(default_factory=dict)
    """Round's number -> devices behind each estimate that was shown while it was open, in order."""
    ended: Counter[str] = field(default_factory=Counter)
    story: list[str] = field(default_factory=list)
    trace: Any = field(default_factory=hashlib.sha256)


class _Log:
    """The log, with appends that fail, or of which nobody knows."""

    def __init__(self, log: SqliteLog, world: NodeWorld, who: str) -> None:
        self._log, self._world, self._who = log, world, who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    @property
    def partition_map(self) -> PartitionMap:
        return self._log.partition_map

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        world = self._world
        if world.fault(40):
            world.say(f"{self._who}: an append fails")
            raise LogError("no room")
        found = self._log.append(batches)
        if world.fault(40):
            world.say(f"{self._who}: an append is stored, and nobody knows")
            raise LogError("not known to be stored")
        return found


def _crashing(world: NodeWorld, thing: Any, names: Sequence[str]) -> Any:
    """Make some methods of a store end the process before or after they did their work."""
    for name in names:
        method = getattr(thing, name)

        def cut(*given: Any, _method: Callable[..., Any] = method, _name: str = name, **more: Any) -> Any:
            if world.fault(60):
                world.say(f"worker: ends before {_name}")
                raise Crash
            found = _method(*given, **more)
            if world.fault(60):
                world.say(f"worker: ends after {_name}")
                raise Crash
            return found

        setattr(thing, name, cut)
    return thing


class NodeWorld:
    """One run of a node's life.

    Args:
        tape: The decisions.
        folder: Where its files are; empty.
        rounds: Of the survey, an hour each.
        devices: Light ones: they send the same bytes until they are answered.
    """

    def __init__(self, tape: Tape, folder: Path, *, rounds: int = 2, devices: int = 12) -> None:
        self.tape, self.folder, self.devices = tape, folder, devices
        self.survey = Survey.parse(SURVEY.format(rounds=rounds))
        self.seen = Seen()
        self.loop = VirtualLoop(tape)
        self.log = SqliteLog(folder / "log.db", partitions=PARTITIONS)
        self.archive_path = folder / "archive.db"
        self.end_s = float(self.survey.round_end_s(rounds - 1) + self.survey.lateness_s + GRACE_S)
        self.quiet = False
        self._ahead = {"a": 0.0, "b": 0.0, "worker": 0.0}
        self._apps: dict[str, Any] = {}
        self._hosts: dict[str, Host] = {}

    # Time, and what is said of it.

    def now_s(self) -> float:
        """Return true time, seconds since 1970; the world begins two minutes before the first round."""
        return self.survey.start_s - 120.0 + self.loop.time()

    def fault(self, one_in: int) -> bool:
        """Return whether something goes wrong; nothing does once it is quiet."""
        return not self.quiet and self.tape.happens(one_in)

    def say(self, line: str) -> None:
        """Write a line of the story, which the trace is of."""
        line = f"{self.loop.time():10.3f} {line}"
        self.seen.story.append(line)
        self.seen.trace.update(line.encode() + b"\n")

    # Collectors.

    async def _collector(self, name: str) -> None:
        app = create_app(
            _Log(self.log, self, name),
            [self.survey],
            settings=GatewaySettings(delivery_s=10.0),
            clock=lambda: self.now_s() + self._ahead[name],
            boot_clock=self.loop.time,
        )
        gateway = app.state.gateway
        with contextlib.suppress(LogError):
            async with gateway.running():
                self._apps[name] = app
                self.say(f"{name}: takes uploads")
                await asyncio.Event().wait()

    async def _keep(self, name: str, life: Callable[[str], Any]) -> None:
        """Begin a host again whenever it has ended."""
        while True:
            self._hosts[name] = host = Host(name)
            task = self.loop.start(host, life(name))
            while not task.done():
                await asyncio.sleep(20.0)
                if self.fault(60):
                    self.say(f"{name}: is killed")
                    self._apps.pop(name, None)
                    host.kill()
            self._apps.pop(name, None)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.seen.ended[type(error).__name__] += 1
                self.say(f"{name}: ended by {type(error).__name__}: {error}")
                if not isinstance(error, AggregatorError):
                    raise error
            host.kill()
            await asyncio.sleep(1.0 + 10.0 * self.tape.pick(4))

    # The worker, and who looks.

    async def _worker(self, name: str) -> None:
        # A process cannot know how far its clock was ahead before its first look: whoever starts it, looks.
        self._ahead[name] = 0.0
        with contextlib.ExitStack() as files:
            store = SqliteStore(
                self.folder / "store.db", log_identity=self.log.identity, partitions=PARTITIONS
            )
            files.callback(store.close)
            archive = SqliteArchive(self.archive_path)
            files.callback(archive.close)
            _crashing(self, store, ("save", "save_gates"))
            _crashing(self, archive, ("put", "keep_shown", "keep_counts"))
            view = LiveView()
            try:
                worker = Worker(
                    _Log(self.log, self, "worker"),
                    store,
                    archive=archive,
                    view=view,
                    grace_s=GRACE_S,
                    clock=SteadyClock(lambda: self.now_s() + self._ahead[name], self.loop.time),
                    read_records=1 + self.tape.pick(8),
                )
                while True:
                    with contextlib.suppress(LogError):
                        worker.step()
                    self._look(view)
                    await asyncio.sleep(0.5 + 15.0 * self.tape.pick(3))
            except Crash:
                return

    def _look(self, view: LiveView) -> None:
        for survey in view.snapshot()["surveys"]:
            for document in survey["rounds"]:
                number = document["round"]
                if document["sealed"]:
                    found = self._archived(number)
                    known = self.seen.versions.setdefault(number, set())
                    if found is not None and found not in known:
                        known.add(found)
                        self.say(f"round {number} is released, {hashlib.sha256(found).hexdigest()[:16]}")
                elif document["as_of"]:
                    steps = self.seen.steps.setdefault(number, [])
                    if not steps or steps[-1] != document["as_of"]:
                        steps.append(document["as_of"])
                        self.say(f"round {number} shows {document['as_of']} devices")

    def _archived(self, number: int) -> bytes | None:
        with contextlib.closing(SqliteArchive(self.archive_path)) as archive:
            return archive.get((self.survey.digest, number - 1))

    # Devices.

    async def _device(self, place: int) -> None:
        for index in range(self.survey.rounds):
            begin = self.survey.round_start_s(index) - self.now_s()
            # Most answer in the hour, some in the last moments in which an answer is taken.
            since_s = 240.0 * self.tape.pick(15)
            if self.tape.happens(4):
                since_s = self.survey.round_s + self.survey.lateness_s - 15.0 * self.tape.pick(8)
            await asyncio.sleep(max(begin, 0.0) + since_s)
            symbol, name = self.tape.bytes_of(1)[0] % 4, self.tape.bytes_of(16)
            self.seen.sent[name] = index, symbol
            body = encode_upload([encode_report(Report(self.survey.digest, index, name, symbol))])
            for attempt in range(12):
                outcome = await self._sent(body)
                if outcome is not None:
                    if outcome == "accepted":
                        self.seen.acknowledged[name] = index, symbol
                    self.say(f"device {place}: round {index + 1} {outcome} after {attempt + 1}")
                    break
                await asyncio.sleep(2.0 ** min(attempt, 7) * (1 + self.tape.pick(3)))

    async def _sent(self, body: bytes) -> str | None:
        """Return what the device hears; None where it hears nothing, or is told to come again."""
        name = ("a", "b")[self.tape.pick(2)]
        host, app = self._hosts.get(name), self._apps.get(name)
        if host is None or app is None or not host.alive:
            return None
        await asyncio.sleep(0.05 * self.tape.pick(3))
        task = self.loop.start(host, _post(app, body))
        done, _ = await asyncio.wait([task], timeout=(30.0, 200.0)[self.tape.pick(2)])
        if not done or task.cancelled() or self.fault(25):
            return None
        answer = task.result()
        return decode_response(answer.body)[0] if answer.status == 200 else None

    # Trouble with clocks.

    async def _clocks(self) -> None:
        while not self.quiet:
            await asyncio.sleep(300.0)
            for name in self._ahead:
                if self.fault(30):
                    self._ahead[name] = (0.0, 5.0, -20.0, 4_000.0)[self.tape.pick(4)]
                    if name != "worker":  # a collector's is within the skew that surveys allow
                        self._ahead[name] = max(-20.0, min(self._ahead[name], 20.0))
                    self.say(f"{name}: its clock is {self._ahead[name]:g} s ahead")

    def run(self) -> Seen:
        """Live, and return what was seen."""

        async def life() -> None:
            tasks = [
                self.loop.create_task(self._keep("a", self._collector)),
                self.loop.create_task(self._keep("b", self._collector)),
                self.loop.create_task(self._keep("worker", self._worker)),
                self.loop.create_task(self._clocks()),
                *(self.loop.create_task(self._device(place)) for place in range(self.devices)),
            ]
            ending = self.loop.create_task(asyncio.sleep(self.end_s - self.now_s()))
            await asyncio.wait([ending, *tasks[:3]], return_when=asyncio.FIRST_COMPLETED)
            self.quiet, self._ahead = True, dict.fromkeys(self._ahead, 0.0)
            self.say("from here on nothing goes wrong")
            # A worker whose clock was ahead waits for somebody to look, and to start it again.
            self._hosts["worker"].kill()
            last = self.loop.create_task(asyncio.sleep(LAST_WORDS_S))
            await asyncio.wait([last, *tasks[:3]], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks[:3]:
                if task.done():
                    task.result()
            for host in self._hosts.values():
                host.kill()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.set_event_loop(self.loop)
        try:
            with mock.patch("os.urandom", self.tape.bytes_of):
                self.loop.run_until_complete(life())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()
        return self.seen

    def replayed(self) -> dict[int, bytes]:
        """Return the releases that a new worker makes of the same log, by round's number."""
        with contextlib.closing(SqliteArchive(":memory:")) as archive:
            worker = Worker(
                self.log, MemoryStore(), archive=archive, view=LiveView(), grace_s=GRACE_S, clock=self.now_s
            )
            while worker.step():
                pass
            found = ((number, archive.get((self.survey.digest, number - 1))) for number in self._numbers())
            return {number: data for number, data in found if data is not None}

    def released(self) -> dict[int, bytes]:
        """Return the releases of the node's archive, by round's number."""
        found = ((number, self._archived(number)) for number in self._numbers())
        return {number: data for number, data in found if data is not None}

    def counts(self, number: int) -> bytes | None:
        """Return the public counts of a released round."""
        with contextlib.closing(SqliteArchive(self.archive_path)) as archive:
            return archive.counts((self.survey.digest, number - 1))

    def _numbers(self) -> range:
        return range(1, self.survey.rounds + 1)


async def _post(app: Any, body: bytes) -> Answer:
    answer = Answer()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
        else:
            answer.body += message.get("body", b"")

    await app(scope("/v1/reports", "POST", {"content-length": str(len(body))}), receive, send)
    return answer


@contextlib.contextmanager
def world(
    seed: int, *, tape: Sequence[int] | None = None, whole: bool = False, **size: int
) -> Iterator[NodeWorld]:
    """Give a world that has not begun yet, on files in memory that are gone afterwards.

    Args:
        seed: Decides everything.
        tape: Decisions in place of those that the seed draws.
        whole: Releases with intervals and alerts, too.
        **size: `rounds` and `devices`.
    """
    folder = Path(
        tempfile.mkdtemp(prefix="hubbub-world-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
    )
    try:
        with contextlib.ExitStack() as patches:
            if not whole:
                for what in _PURE:
                    patches.enter_context(what())
            made = NodeWorld(Tape(seed, tape), folder, **size)
            try:
                yield made
            finally:
                made.log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pure(target: str, replacement: Any) -> Callable[[], Any]:
    return lambda: mock.patch(target, replacement)


_PURE: tuple[Callable[[], Any], ...] = (
    _pure("hubbub_aggregator.release.round_release.estimates", lambda *_, **__: {}),
    _pure("hubbub_aggregator.release.round_release.curve", lambda *_, **__: {}),
    _pure("hubbub_aggregator.release.after_shuffling.ShufflingStatements.of", lambda *_: None),
    _pure("hubbub_aggregator.runners.publication.with_bands", lambda document, *_: document),
    _pure("hubbub_aggregator.runners.publication.SurveyAlerts.update", lambda *_: None),
    _pure("hubbub_aggregator.runners.publication.SoFar.update", lambda *_: None),
)
