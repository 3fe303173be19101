"""The base of all worlds: a seed, time, hosts that end and begin again, collectors, devices, an observer.

The code is the product's: the gateway as an ASGI application behind its own connections, its writer, agents
on their ledgers. A world gives them time, random bytes, and trouble: hosts that are killed and begin again,
appends that fail or are not known to have been stored, a network that loses, delays, repeats and cuts, clocks
that run ahead, threads that sleep, power that fails. What is a pure function of counts and is tested
elsewhere - intervals, alerts, what readers learn - is left out, unless `whole` is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import hashlib
import logging
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import network
from asgi_reader import Answer
from counting_logs import MemoryLog, MemoryStore
from disk import Disk, disk
from phones import Phone
from virtual_time import Host, Tape, VirtualLoop

from hubbub import Survey
from hubbub.tokens import PublicKey, Token, challenge_digest
from hubbub.wire import (
    Malformed,
    PartitionMap,
    Report,
    decode_response,
    decode_token_upload,
    decode_upload,
    encode_report,
    encode_token_upload,
    encode_upload,
    is_token_upload,
    pack,
)
from hubbub_aggregator.errors import AggregatorError, LeaseLostError
from hubbub_aggregator.runners import Worker
from hubbub_aggregator.stores import SqliteArchive
from hubbub_aggregator.web import LiveView
from hubbub_collector import GatewaySettings, Issuer, Permits, create_app
from hubbub_topic import LogError

_TERMS = """
id = "{id}"
version = 1
title = "A question"
epsilon = 2.0
minimum_cohort = {cohort}
planned_devices = 24

[schedule]
start = 2026-01-01T00:00:00Z
round = "{every}"
rounds = {rounds}
lateness = "10m"
skew = "1m"

[attribute]
id = "{id}"
kind = "{kind}"
type = "label"
labels = {labels}

[mechanism]
name = "{mechanism}"
"""
MEMORY = "/dev/shm"  # noqa: S108 - folders in it are made by mkdtemp
ISSUERS = tuple(Issuer(name, PublicKey((1 << 2_047) + 2 * place + 1)) for place, name in enumerate("pq"))
"""Issuers of tokens, in the worlds that ask for some; nobody looks at a signature here."""
GRACE_S = 30.0
KILLED_S = 1_200.0
"""The mean time until a host is killed, if nothing else ends it."""
_PARTS = 60
ENDS_S = 150.0
"""Who is told to end is killed after so long."""
STANDBY_S = 40.0
LAST_WORDS_S = 1_200.0
"""Virtual time after the last fault and the last round's lateness in which everything must be released."""

RoundKey = tuple[bytes, int]


class Crash(BaseException):
    """A process that ends between two statements; nothing of it may be caught by the product."""


@dataclass
class Seen:
    """An observer from outside; the invariants are about what it saw and about the files."""

    acknowledged: dict[bytes, RoundKey] = field(default_factory=dict)
    """Report id -> its round, of reports that a device was told are accepted."""
    sent: dict[bytes, RoundKey] = field(default_factory=dict)
    """Report id -> its round, of the reports of light devices."""
    versions: dict[RoundKey, set[bytes]] = field(default_factory=dict)
    """Every version of a release's bytes that was ever in the archive."""
    steps: dict[RoundKey, list[int]] = field(default_factory=dict)
    """Devices behind each estimate that was shown while its round was open, in order."""
    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Faults found while the world lived."""
    story: list[str] = field(default_factory=list)
    trace: Any = field(default_factory=hashlib.sha256)


class TroubledLog:
    """A log with appends that fail, or of which nobody knows."""

    def __init__(self, world: World, who: str) -> None:
        self._world, self._who = world, who

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.log, name)

    @property
    def partition_map(self) -> PartitionMap:
        return self._world.log.partition_map

    def append(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        world = self._world
        if world.fault(40):
            world.say(f"{self._who}: an append fails")
            raise LogError("no room")
        found = world.appended(batches)
        if world.fault(40):
            world.say(f"{self._who}: an append is stored, and nobody knows")
            raise LogError("not known to be stored")
        return found


class World:
    """One run of life.

    Args:
        tape: The decisions.
        folder: Where its files are; empty.
        disk: What is written there.
        rounds: Of the survey that evolves.
        devices: Light ones: they send the same bytes until they are answered.
        phones: Real agents.
        every: The length of a round.
        pace: How much more rarely in a round those look who only look now and then.
    """

    log: Any
    partitions: int
    bearable = frozenset({"StoreConflictError"})
    """Errors by which a process may end and be begun again."""
    asked = frozenset({"I1", "I5", "I9"})
    """Of the invariants that a lost record breaks, those that are asked for."""

    def __init__(
        self,
        tape: Tape,
        folder: Path,
        disk: Disk,
        *,
        rounds: int = 2,
        devices: int = 12,
        phones: int = 2,
        every: str = "1h",
        pace: float = 1.0,
    ) -> None:
        self.tape, self.folder, self.disk, self.devices = tape, folder, disk, devices
        terms = {"every": every, "rounds": rounds}
        asked = {"id": "health", "kind": "evolving", "labels": '["a", "b", "c"]', "cohort": 3}
        asked["mechanism"] = ("grr", "grr", "unary")[tape.pick(3)]
        self.survey = Survey.parse(_TERMS.format(**asked, **terms))
        # Its answer is drawn once, and sent in every round.
        asked = {"id": "home", "kind": "static", "labels": '["x", "y"]', "cohort": 1, "mechanism": "grr"}
        self.home = Survey.parse(_TERMS.format(**asked, **terms))
        # Collectors that ask for tokens take nothing from phones, which have none here.
        self.permits = Permits(issuers=ISSUERS) if tape.pick(4) == 1 else Permits()
        self.surveys = (self.survey, self.home)
        self.seen = Seen()
        self.loop = VirtualLoop(tape)
        # `_keep` looks at how hosts end, but for the moment at which the world does.
        self.loop.set_exception_handler(lambda *_: None)
        self.archive_path = folder / "node-archive.db"
        self.end_s = float(self.survey.round_end_s(rounds - 1) + self.survey.lateness_s + GRACE_S)
        # Who only looks now and then looks as often in a round, however long it is.
        self.pace = pace * self.survey.round_s / 3_600.0
        self.quiet = False
        self.expected: set[str] = set()
        """Errors of which somebody must have ended, after what befell this world."""
        self.doors: dict[str, network.Door] = {}
        self.phones = [Phone(self, place) for place in range(phones)]
        self._ahead: dict[str, float] = {}
        self._hosts: dict[str, Host] = {}
        self._later: dict[asyncio.Task[Any], None] = {}

    def lives(self) -> dict[str, Callable[[str], Coroutine[Any, Any, None]]]:
        """Return what each host does, by its name."""
        return {"a": self._collector, "b": self._collector}

    # Time, and what is said of it.

    def now_s(self) -> float:
        """Return true time, seconds since 1970; the world begins two minutes before the first round."""
        return self.survey.start_s - 120.0 + self.loop.time()

    def fault(self, one_in: int) -> bool:
        """Return whether something goes wrong; nothing does once it is quiet."""
        return not self.quiet and self.tape.happens(one_in)

    def say(self, line: str) -> None:
        """Write a line of the story, which the trace is of."""
        line = f"{self.loop.time():10.3f} {line}".replace(f"{self.folder}/", "")
        self.seen.story.append(line)
        self.seen.trace.update(line.encode() + b"\n")

    def later(self, coro: Coroutine[Any, Any, None]) -> None:
        """Have something happen by itself, whatever becomes of the host that says so."""
        task = contextvars.Context().run(self.loop.create_task, coro)
        self._later[task] = None
        task.add_done_callback(lambda done: self._later.pop(done, None))

    def called(self, key: RoundKey) -> str:
        """Return what people call a round."""
        survey = next(survey for survey in self.surveys if survey.digest == key[0])
        return f"round {key[1] + 1}" if survey is self.survey else f"{survey.id}'s round {key[1] + 1}"

    # Hosts.

    async def _keep(self, name: str, life: Callable[[str], Any]) -> None:
        """Begin a host again whenever it has ended."""
        while True:
            await self._before(name)
            self._hosts[name] = host = Host(name)
            task = self.loop.start(host, life(name))
            while not task.done():
                # One decision a life; 0 is another one later.
                part = 0 if self.quiet else self.tape.pick(_PARTS)
                wait_s = -KILLED_S * math.log1p(-part / _PARTS) if part else KILLED_S
                await asyncio.wait([task], timeout=self.pace * wait_s)
                if part and not task.done() and not self.quiet:
                    if self.tape.pick(4) == 1:
                        self.say(f"{name}: is told to end")
                        host.told.set()
                        await asyncio.wait([task], timeout=self.pace * ENDS_S)
                    if not task.done():
                        self.say(f"{name}: is killed")
                        self._kill(host)
                        await asyncio.wait([task])
            pause_s = 1.0 + 10.0 * self.tape.pick(4)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.seen.ended[type(error).__name__] += 1
                if isinstance(error, LeaseLostError):  # who stands by tries again and again
                    pause_s += STANDBY_S
                else:
                    self.say(f"{name}: ended by {type(error).__name__}: {error}")
                if not isinstance(error, AggregatorError):
                    raise error
            self._kill(host)
            await asyncio.sleep(pause_s)

    async def _before(self, name: str) -> None:
        """Wait until a host may begin."""

    def _kill(self, host: Host) -> None:
        self.doors.pop(host.name, None)
        host.kill()

    async def _collector(self, name: str) -> None:
        settings = GatewaySettings(delivery_s=10.0)
        app = create_app(
            self.troubled(name),
            self.surveys,
            settings=settings,
            clock=lambda: self.now_s() + self._ahead.get(name, 0.0),
            boot_clock=self.loop.time,
            permits=self.permits,
        )
        host = self._hosts[name]
        with contextlib.suppress(LogError):
            async with app.state.gateway.running():
                self.doors[name] = network.Door(app, settings, host, self.loop)
                self.say(f"{name}: takes uploads")
                await host.told.wait()
                self.doors.pop(name, None)

    def troubled(self, name: str) -> Any:
        """Return the log as a host has it."""
        return TroubledLog(self, name)

    def appended(self, batches: Mapping[int, Sequence[bytes]]) -> dict[int, int]:
        """Append to the log itself."""
        found: dict[int, int] = self.log.append(batches)
        return found

    # Who looks.

    def look(self, view: LiveView, archive: SqliteArchive, known: set[RoundKey]) -> None:
        """Note what a view shows; of releases what its archive has of those that are not known yet."""
        new: list[RoundKey] = []
        for survey in view.snapshot()["surveys"]:
            for document in survey["rounds"]:
                key = bytes.fromhex(survey["digest"]), document["round"] - 1
                if document["sealed"]:
                    if key not in known:
                        new.append(key)
                elif document["as_of"]:
                    steps = self.seen.steps.setdefault(key, [])
                    if not steps or steps[-1] != document["as_of"]:
                        steps.append(document["as_of"])
                        self.say(f"{self.called(key)} shows {document['as_of']} devices")
        known.update(new)
        for key in new:
            self.note(key, archive.get(key))

    def note(self, key: RoundKey, data: bytes | None) -> None:
        """Note a version of a release."""
        known = self.seen.versions.setdefault(key, set())
        if data is not None and data not in known:
            known.add(data)
            self.say(f"{self.called(key)} is released, {hashlib.sha256(data).hexdigest()[:16]}")

    def heard(self, who: str, body: bytes, answer: Answer) -> str | None:
        """Note what a device heard of an upload; return what became of its first report."""
        if answer.status != 200:
            return None
        outcomes = decode_response(answer.body)
        for report, outcome in zip(reports_of(body), outcomes, strict=True):
            if outcome == "accepted" and isinstance(report, Report):
                self.seen.acknowledged[report.id] = report.digest, report.round
        self.say(f"{who}: {' '.join(outcomes)}")
        return str(outcomes[0])

    # Light devices.

    async def _device(self, place: int) -> None:
        for index in range(self.survey.rounds):
            begin = self.survey.round_start_s(index) - self.now_s()
            # Most answer in the hour, some in the last moments in which an answer is taken.
            since_s = self.survey.round_s / 15.0 * self.tape.pick(15)
            if self.tape.happens(4):
                since_s = self.survey.round_s + self.survey.lateness_s - 15.0 * self.tape.pick(8)
            await asyncio.sleep(max(begin, 0.0) + since_s)
            drawn, name = self.tape.bytes_of(1)[0], self.tape.bytes_of(16)
            body = self._upload(index, drawn, name, self.tape.happens(6))
            for attempt in range(12):
                answer = await network.sent(self, body)
                if answer is not None and self.heard(f"device {place}", body, answer) is not None:
                    break
                await asyncio.sleep(2.0 ** min(attempt, 7) * (1 + self.tape.pick(3)))

    def _upload(self, index: int, drawn: int, name: bytes, among_others: bool) -> bytes:
        """Return an upload of one report, or of one and what a stranger may send beside it."""
        digest, channel = self.survey.digest, self.survey.channel
        symbol = bytes([drawn % 2**channel.bins]) if channel.width else drawn % channel.bins
        token = b""
        if self.permits.issuers:
            issuer = self.permits.issuers[drawn % 2]
            challenge = challenge_digest(issuer.name, digest, index)
            made = Token(name + name, challenge, issuer.key.id, bytes(256))
            name, token = made.report_id, made.encoded
        self.seen.sent[name] = digest, index
        reports = [encode_report(Report(digest, index, name, symbol))]
        if among_others:
            reports += [encode_report(Report(name, index, name, 0)), pack([1, name])]
            reports += [encode_report(Report(digest, index, name, 77))]
        if self.permits.issuers:
            return encode_token_upload([(report, token) for report in reports])
        return encode_upload(reports)

    # Trouble with clocks.

    async def _clocks(self) -> None:
        while not self.quiet:
            await asyncio.sleep(300.0 * self.pace)
            for name in self._ahead:
                if self.fault(30):
                    self._ahead[name] = (0.0, 5.0, -20.0, 4_000.0)[self.tape.pick(4)]
                    if name in self.doors:  # a collector's is within the skew that surveys allow
                        self._ahead[name] = max(-20.0, min(self._ahead[name], 20.0))
                    self.say(f"{name}: its clock is {self._ahead[name]:g} s ahead")

    # The run.

    def run(self) -> Seen:
        """Live, and return what was seen."""
        asyncio.set_event_loop(self.loop)
        try:
            with mock.patch("os.urandom", self.tape.bytes_of):
                self.loop.run_until_complete(self._live())
        finally:
            asyncio.set_event_loop(None)
            self.loop.close()
        return self.seen

    async def _live(self) -> None:
        kept = [self.loop.create_task(self._keep(name, life)) for name, life in self.lives().items()]
        others = [
            self.loop.create_task(self._clocks()),
            *(self.loop.create_task(self._device(place)) for place in range(self.devices)),
            *(self.loop.create_task(phone.live()) for phone in self.phones),
            *map(self.loop.create_task, self.more()),
        ]
        await self._while(kept + others, self.end_s - self.now_s())
        self.quiet, self._ahead = True, dict.fromkeys(self._ahead, 0.0)
        self.say("from here on nothing goes wrong")
        self.calmed()
        await self._while(kept + others, LAST_WORDS_S * self.pace)
        for host in self._hosts.values():
            host.kill()
        ended = [*kept, *others, *self._later]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    def more(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return what else goes on."""
        return ()

    def calmed(self) -> None:
        """Do what an operator does who comes and looks."""

    async def _while(self, tasks: Sequence[asyncio.Task[Any]], seconds: float) -> None:
        """Wait, and raise what any task raises meanwhile."""
        until = self.loop.time() + seconds
        while self.loop.time() < until:
            lasting = [task for task in tasks if not task.done()]
            await asyncio.wait(lasting, timeout=until - self.loop.time(), return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()

    # What the invariants read.

    def records(self) -> dict[int, list[tuple[int, bytes]]]:
        """Return every record that there ever was in the log, by partition."""
        raise NotImplementedError

    def replayed(self) -> dict[RoundKey, bytes]:
        """Return the releases that a new worker makes of the same records."""
        log = MemoryLog(self.log.partitions, self.log.identity)
        log.partition_map = self.log.partition_map
        log.append({number: [data for _, data in found] for number, found in self.records().items()})
        with contextlib.closing(SqliteArchive(":memory:")) as archive:
            worker = Worker(
                log, MemoryStore(), archive=archive, view=LiveView(), grace_s=GRACE_S, clock=self.now_s
            )
            while worker.step():
                pass
            return self._all(archive.get)

    def released(self) -> dict[RoundKey, bytes]:
        """Return the releases of the archive."""
        with contextlib.closing(SqliteArchive(self.archive_path)) as archive:
            archive.check()
            return self._all(archive.get)

    def counts(self, key: RoundKey) -> bytes | None:
        """Return the public counts of a released round."""
        with contextlib.closing(SqliteArchive(self.archive_path)) as archive:
            return archive.counts(key)

    def _archived(self, key: RoundKey) -> bytes | None:
        with contextlib.closing(SqliteArchive(self.archive_path)) as archive:
            return archive.get(key)

    def _all(self, get: Callable[[RoundKey], bytes | None]) -> dict[RoundKey, bytes]:
        found = ((key, get(key)) for key in self.rounds())
        return {key: data for key, data in found if data is not None}

    def rounds(self) -> list[RoundKey]:
        """Return every round of every survey."""
        return [(survey.digest, index) for survey in self.surveys for index in range(survey.rounds)]

    def others(self, released: Mapping[RoundKey, bytes]) -> list[str]:
        """Return what does not hold of the parts that only this kind of world has."""
        return []

    def close(self) -> None:
        """Close what is open."""


def reports_of(body: bytes) -> list[Report | Malformed]:
    """Return the reports of an upload, with tokens or without."""
    if is_token_upload(body):
        return [report for report, _ in decode_token_upload(body, max_reports=99)]
    return decode_upload(body, max_reports=99)


def crashing(world: World, who: str, thing: Any, names: Sequence[str]) -> None:
    """Make some methods of a store end the process before or after they did their work."""
    for name in names:
        method = getattr(thing, name)

        def cut(*given: Any, _method: Callable[..., Any] = method, _name: str = name, **more: Any) -> Any:
            if world.fault(60):
                world.say(f"{who}: ends before {_name}")
                raise Crash
            found = _method(*given, **more)
            if world.fault(60):
                world.say(f"{who}: ends after {_name}")
                raise Crash
            return found

        setattr(thing, name, cut)


W = TypeVar("W", bound=World)


@contextlib.contextmanager
def world(
    kind: type[W], seed: int, *, tape: Sequence[int] | None = None, whole: bool = False, **size: Any
) -> Iterator[W]:
    """Give a world that has not begun yet, on files in memory that are gone afterwards.

    Args:
        kind: Which.
        seed: Decides everything.
        tape: Decisions in place of those that the seed draws.
        whole: Releases with intervals and alerts, too.
        **size: As for `World`.
    """
    folder = Path(
        tempfile.mkdtemp(prefix="hubbub-world-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
    )
    try:
        with disk(folder) as recorded, contextlib.ExitStack() as patches:
            # The story says it all. A process that is killed says nothing; here uvicorn tells of each task.
            patches.callback(logging.disable, logging.root.manager.disable)
            logging.disable(logging.ERROR)
            if not whole:
                for what in _PURE:
                    patches.enter_context(what())
            made = kind(Tape(seed, tape), folder, recorded, **size)
            try:
                yield made
            finally:
                made.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pure(target: str, replacement: Any) -> Callable[[], Any]:
    return lambda: mock.patch(target, replacement)


def _once(name: str) -> Any:
    """Have a method of surveys reckon once a world what every process that begins would."""
    known = functools.cache(getattr(Survey, name))
    return mock.patch.object(Survey, name, lambda *given: known(*given))  # noqa: PLW0108 - binds


_PURE: tuple[Callable[[], Any], ...] = (
    _pure("hubbub_aggregator.release.round_release.estimates", lambda *_, **__: {}),
    _pure("hubbub_aggregator.release.round_release.curve", lambda *_, **__: {}),
    _pure("hubbub_aggregator.release.after_shuffling.ShufflingStatements.of", lambda *_: None),
    _pure("hubbub_aggregator.runners.publication.ReleaseJudge.noise_of", lambda *_: None),
    _pure("hubbub_aggregator.runners.publication.with_bands", lambda document, *_: document),
    _pure("hubbub_aggregator.runners.publication.SurveyAlerts.update", lambda *_: None),
    _pure("hubbub_aggregator.runners.publication.SoFar.update", lambda *_: None),
    _pure("hubbub.tokens.Token.is_signed_by", lambda *_: True),
    lambda: _once("from_canonical"),
    lambda: _once("estimator"),
)
