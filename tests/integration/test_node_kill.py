"""A node killed again and again while a crowd uploads, and while it seals and releases."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import node_nursery
import numpy as np
import pytest
from surveys import ALL, START_S

from hubbub.survey import Survey
from hubbub.wire import Report, decode_response, encode_report, encode_upload
from hubbub_aggregator.archive import SqliteArchive
from hubbub_aggregator.sqlite_store import SqliteStore
from hubbub_aggregator.view import LiveView
from hubbub_aggregator.worker import Worker
from hubbub_client.fleet import Column, Fleet
from hubbub_client.uploader import Limits
from hubbub_collector.sqlite_log import SqliteLog
from hubbub_deploy.node import ARCHIVE_FILE, LOG_FILE, STORE_FILE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="a life must end with the process that forked it"),
]

SURVEYS = tuple(Survey.parse(text) for text in ALL.values())
HEALTH = SURVEYS[0]
DAY_S = 86_400
LATENESS_S = 3600
PARTITIONS = 4
VERDICTS = ("accepted", "duplicate", "early", "late", "invalid", "over_quota")
# Brisk, so that a killed node is asked again as soon as it is back.
LIMITS = Limits(gap_s=0.0, base_s=0.02, cap_s=0.1, retry_after_cap_s=0.1)


def in_round(number: int) -> float:
    """A moment in a round when the rounds before it are past their lateness and grace."""
    return START_S + number * DAY_S + 2.0 * LATENESS_S


class World:
    """The files of a node, its clock, and a nursery of its lives."""

    def __init__(self, folder: Path) -> None:
        self.data, self._clock = folder / "data", folder / "clock"
        self.turn(in_round(0))
        files = []
        for survey in SURVEYS:
            files.append(folder / survey.id)
            files[-1].write_bytes(survey.canonical)
        self.port = quiet_port()
        self.url = f"http://127.0.0.1:{self.port}"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._nursery = subprocess.Popen(
            [sys.executable, node_nursery.__file__, str(self._clock), str(self.port), *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def turn(self, now_s: float) -> None:
        """Sets the node's clock, running or not."""
        if not self._clock.exists():
            self._clock.write_bytes(bytes(8))
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<d", now_s))

    def live(self, data: Path | None = None, **order: Any) -> int:
        """One life from start to end; its exit code."""
        self._tell(json.dumps({"data": str(data or self.data), **order}))
        return int(self._hear())

    @contextlib.contextmanager
    def living(self) -> Iterator[None]:
        """A life that ends, asked politely, with the block."""
        self._tell(json.dumps({"data": str(self.data), "until": "told"}))
        assert self._hear() == "ready"
        yield
        self._tell("end")
        assert self._hear() == "0"

    def _tell(self, line: str) -> None:
        self._nursery.stdin.write(line + "\n")
        self._nursery.stdin.flush()

    def _hear(self) -> str:
        # A life takes seconds: a node that never gets there must fail the test, not hang it.
        heard, _, _ = select.select([self._nursery.stdout], [], [], 60.0)
        assert heard, "the node did not get there within a minute"
        line = self._nursery.stdout.readline()
        assert line, "the nursery has ended"
        return line.strip()

    def end(self) -> None:
        self._nursery.stdin.close()
        try:
            self._nursery.wait(10)
        finally:
            self._nursery.kill()
            self._nursery.wait()
            self._nursery.stdout.close()

    def get(self, path: str, timeout_s: float = 5.0) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=timeout_s) as reply:  # noqa: S310 - our own http
            return reply.read()


def quiet_port() -> int:
    """A free port below those that outgoing connections get.

    A device that calls a dead node on one of those may be given the very port it calls, and then talks to
    itself while the node cannot come back.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.end()


class Crowd:
    """Small fleets, one after another, that answer and upload until there was enough; what they sent is kept.

    Args:
        world: Where to upload.
        now_s: The devices' clock.
        threads: Fleets at a time.
    """

    def __init__(self, world: World, now_s: float, threads: int = 3) -> None:
        self._world, self._now_s = world, now_s
        self._enough = threading.Event()
        self._lock = threading.Lock()
        self.columns: list[Column] = []
        self.retries = 0
        self.errors: list[BaseException] = []
        self._threads = [threading.Thread(target=self._guarded, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _guarded(self) -> None:
        try:
            while not self._enough.is_set():
                self._one_fleet(devices=30)
        except BaseException as error:
            self.errors.append(error)

    def _one_fleet(self, devices: int) -> None:
        chance = np.random.default_rng()
        values = {
            "health": chance.choice(["excellent", "good", "fair", "poor", None], devices),
            "visits": chance.integers(0, 25, devices),
            "diseases": chance.uniform(0.0, 60.0, devices),
        }
        fleet = Fleet(devices, budget=10.0)
        for survey in SURVEYS:
            fleet.register(survey.attribute)
            fleet.set(survey.attribute.id, values[survey.attribute.id])
            fleet.enrol(survey, now_s=self._now_s)
        columns = fleet.answer(now_s=self._now_s)
        sent = fleet.upload(self._world.url, concurrency=6, patience_s=60.0, limits=LIMITS)
        with self._lock:
            self.columns += columns
            self.retries += sent.retries
        assert sent.given_up == ()
        assert sent.outcomes == {"accepted": sum(len(column.devices) for column in columns)}

    def finish(self) -> list[Column]:
        """Waits until everything is acknowledged; the columns of all that was sent."""
        self._enough.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive(), "an upload was never answered"
        if self.errors:
            raise self.errors[0]
        return self.columns


class Meddler:
    """Sends what a node must refuse, and what it has already, all the time."""

    def __init__(self, world: World, crowd: Crowd, number: int) -> None:
        self._world, self._crowd, self._round = world, crowd, number
        self._stop = threading.Event()
        self.answers: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        chance = random.Random()  # noqa: S311 - which nuisance comes next
        while not self._stop.wait(0.01):
            fresh = secrets.token_bytes(16)
            bodies = [
                b"",
                b"\xc1" * 100,
                b"\x92\x01\x91" * 1000,
                secrets.token_bytes(300),
                bytes(2**20),
                encode_upload(
                    [
                        encode_report(Report(HEALTH.digest, self._round + 1, fresh, 0)),
                        encode_report(Report(HEALTH.digest, max(self._round - 1, 0), fresh, 2**20)),
                        encode_report(Report(HEALTH.digest, 99, fresh, 0)),
                        encode_report(Report(bytes(16), 0, fresh, 0)),
                        b"\xc0",
                    ]
                ),
            ]
            if self._round:
                bodies.append(
                    encode_upload([encode_report(Report(HEALTH.digest, self._round - 1, fresh, 0))])
                )
            if self._crowd.columns:
                column = chance.choice(self._crowd.columns)
                bodies += [encode_upload([column.report(0).data, column.report(-1).data])] * 3
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._send(chance.choice(bodies))

    def _send(self, body: bytes) -> None:
        request = urllib.request.Request(self._world.url + "/v1/reports", body)  # noqa: S310 - our own http
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 - our own http
                for outcome in decode_response(reply.read()):
                    self.answers[outcome] = self.answers.get(outcome, 0) + 1
        except urllib.error.HTTPError as error:
            self.answers[str(error.code)] = self.answers.get(str(error.code), 0) + 1
            error.close()

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


class Watcher:
    """Reads the live document all the time and holds every one against all that came before."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stop = threading.Event()
        self.seen = self.provisional = 0
        self.errors: list[BaseException] = []
        self._accepted = 0
        self._estimates: dict[tuple[str, int, int], Any] = {}
        self._sealed: dict[tuple[str, int], Any] = {}
        self._as_of: dict[tuple[str, int], int] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            try:
                document = json.loads(self._world.get("/api/live"))
            except (OSError, http.client.HTTPException):
                continue
            try:
                self._check(document)
            except BaseException as error:
                self.errors.append(error)
                return

    def _check(self, document: dict[str, Any]) -> None:
        self.seen += 1
        total = document["accounting"]
        assert total["attempts"] == sum(total[verdict] for verdict in VERDICTS)
        assert total["accepted"] >= self._accepted, "what was shown as accepted was forgotten"
        self._accepted = total["accepted"]
        for survey in document["surveys"]:
            shown = survey["shown"]
            if shown is None:
                continue
            tally = shown["accounting"]
            assert tally["attempts"] == sum(tally[verdict] for verdict in VERDICTS)
            key = (survey["digest"], shown["round"])
            if shown["sealed"]:
                assert self._sealed.setdefault(key, shown) == shown, "a sealed round changed"
                continue
            assert key not in self._sealed, "a sealed round opened again"
            before, as_of = self._as_of.get(key, 0), shown["as_of"]
            assert as_of == before or as_of >= before + survey["minimum_cohort"]
            self._as_of[key] = as_of
            self.provisional += as_of > 0
            # The same step after a restart is the same numbers: no second view of almost the same devices.
            estimates = [shown["cut"], shown["values"], shown["categories"]]
            assert self._estimates.setdefault((*key, as_of), estimates) == estimates

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.errors:
            raise self.errors[0]


def truth(columns: list[Column]) -> dict[tuple[bytes, int], np.ndarray]:
    """Reports sent per (digest, round) and symbol."""
    found: dict[tuple[bytes, int], np.ndarray] = {}
    for column in columns:
        counts = np.bincount(column.symbols, minlength=column.survey.channel.outputs)
        key = (column.survey.digest, column.round)
        found[key] = found.get(key, 0) + counts
    return found


def check(data: Path, columns: list[Column], sealed: int) -> dict[str, int]:
    """Holds a stopped node's files against what was sent; gives the accounting over all rounds.

    Args:
        data: The node's folder.
        columns: Everything that was acknowledged.
        sealed: How many rounds must be released.

    Raises:
        AssertionError: If any of the promises is broken.
    """
    expected, total = truth(columns), dict.fromkeys(("attempts", *VERDICTS), 0)
    with SqliteLog(data / LOG_FILE, partitions=PARTITIONS) as log, contextlib.ExitStack() as files:
        archive = files.enter_context(contextlib.closing(SqliteArchive(data / ARCHIVE_FILE)))
        kept = SqliteStore(data / STORE_FILE, log_identity=log.identity, partitions=PARTITIONS)
        files.enter_context(contextlib.closing(kept))
        states = [kept.load(partition) for partition in range(PARTITIONS)]
        assert [state.offset for state in states] == [log.end(p) for p in range(PARTITIONS)]
        assert sum(state.dead for state in states) == 0
        counted: dict[tuple[bytes, int], np.ndarray] = {}
        for state in states:
            for key, known in state.rounds.items():
                for name, value in (known.accounting + known.afterwards).as_dict().items():
                    total[name] += value
                if len(known.counts):
                    counted[key] = counted.get(key, 0) + known.counts
        assert total["accepted"] == sum(len(column.devices) for column in columns), "accepted is not answers"
        assert counted.keys() == expected.keys()
        for key, counts in expected.items():
            assert counted[key].tolist() == counts.tolist(), "a symbol was lost, repeated or changed"

        assert len(archive.rounds()) == sealed
        for read_records in (1, 1000):
            again = recount(log, data.parent / f"again-{secrets.token_hex(4)}", read_records)
            files.enter_context(contextlib.closing(again))
            assert again.rounds() == archive.rounds()
            for key in archive.rounds():
                assert again.get(key) == archive.get(key), "a release depends on how it was counted"
        for key in archive.rounds():
            release = json.loads(archive.get(key))
            assert release["accounting"]["attempts"] == sum(release["accounting"][v] for v in VERDICTS)
            assert release["devices"] == release["accounting"]["accepted"]
            assert release["devices"] == (expected[key].sum() if key in expected else 0)
            assert release["cut"].keys() == {str(p) for p in range(PARTITIONS)}
    return total


def recount(log: SqliteLog, folder: Path, read_records: int) -> SqliteArchive:
    """The archive of a fresh store and worker on the same log, which seal nothing themselves."""
    folder.mkdir()
    archive = SqliteArchive(folder / ARCHIVE_FILE)
    store = SqliteStore(folder / STORE_FILE, log_identity=log.identity, partitions=log.partitions)
    worker = Worker(
        log, store, archive=archive, view=LiveView(), clock=lambda: 0.0, read_records=read_records
    )
    while worker.step():
        pass
    store.close()
    return archive


def kill_at_random(world: World, chance: random.Random, kills: int) -> None:
    """Lives that end at times of their own; one in five is killed while it starts, one right after an act."""
    for life in range(kills):
        if life % 5 == 0:
            order = {"after": "fork", "delay_s": chance.uniform(0.0, 0.15)}
        elif life % 5 == 1:
            # Stored, but nobody was told; or counted, but the view was not.
            order = {"at": chance.choice(["appended", "saved"]), "times": chance.randrange(1, 15)}
        else:
            order = {"after": "ready", "delay_s": chance.uniform(0.0, 0.4)}
        assert world.live(**order) == -9


def test_a_node_killed_at_fifty_random_points_counts_every_answer_once(world: World) -> None:
    """54 lives over three days: every day's rounds seal while the next day's answers come in and kills go on.

    The times come from a fixed seed, what they hit does not: the promises must hold wherever it is.
    """
    chance = random.Random(7)  # noqa: S311 - kill times
    watcher = Watcher(world)
    columns: list[Column] = []
    retries, refusals = 0, 0
    for number in range(3):
        world.turn(in_round(number))
        crowd = Crowd(world, in_round(number))
        meddler = Meddler(world, crowd, number)
        kill_at_random(world, chance, 18)
        with world.living():
            columns += crowd.finish()
            meddler.finish()
        retries += crowd.retries
        refusals += sum(meddler.answers.values())
    world.turn(in_round(3))
    with world.living():
        wait_until(lambda: sealed_rounds(world) == 6)
    watcher.finish()
    total = check(world.data, columns, sealed=6)
    # The run was what it is meant to be: cut answers, copies, refusals, and steps that somebody saw.
    assert {(column.survey.id, column.round) for column in columns} == {
        (survey.id, number) for survey in SURVEYS for number in range(survey.rounds)
    }
    assert len(columns) >= 50
    assert retries >= 54
    assert refusals >= 50
    assert min(total["duplicate"], total["early"], total["late"], total["invalid"]) > 0
    assert watcher.seen >= 50
    assert watcher.provisional > 0


def sealed_rounds(world: World) -> int:
    document = json.loads(world.get("/api/live"))
    return sum(entry["sealed"] for survey in document["surveys"] for entry in survey["rounds"])


def wait_until(done: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def test_a_node_killed_at_any_point_of_sealing_and_releasing_releases_the_same(
    world: World, tmp_path: Path
) -> None:
    """From one set of files with every round due, a kill before statement n, n = 1, 6, 11 ... to the last.

    Then it starts once more and must reach the very bytes that a life without a kill reaches.
    """
    crowd = Crowd(world, in_round(0))
    with world.living():
        wait_until(lambda: len(crowd.columns) >= 12)
        columns = crowd.finish()
    rounds = len({(column.survey.digest, column.round) for column in columns})
    world.turn(in_round(3))
    whole = tmp_path / "whole"
    shutil.copytree(world.data, whole)
    assert world.live(data=whole, until="archived", rounds=rounds) == 0
    check(whole, columns, sealed=rounds)
    with contextlib.closing(SqliteArchive(whole / ARCHIVE_FILE)) as archive:
        expected = {key: archive.get(key) for key in archive.rounds()}

    statement, killed = 1, 0
    while True:
        data = tmp_path / f"before-{statement}"
        shutil.copytree(world.data, data)
        code = world.live(data=data, statement=statement, until="archived", rounds=rounds)
        if code == 0:
            break
        assert code == -9
        killed += 1
        assert world.live(data=data, until="archived", rounds=rounds) == 0
        with contextlib.closing(SqliteArchive(data / ARCHIVE_FILE)) as archive:
            assert {key: archive.get(key) for key in archive.rounds()} == expected
        shutil.rmtree(data)
        statement += 5
    assert killed >= 30


def test_a_node_that_answers_before_it_writes_is_caught(world: World) -> None:
    """Negative control: the same kills and the same check find the mistake."""
    chance = random.Random(7)  # noqa: S311 - kill times
    crowd = Crowd(world, in_round(0))
    for _ in range(6):
        delay_s = chance.uniform(0.1, 0.2)
        assert world.live(after="ready", delay_s=delay_s, broken="early answer") == -9
    with world.living():
        columns = crowd.finish()
    with pytest.raises(AssertionError, match="accepted is not answers"):
        check(world.data, columns, sealed=0)
