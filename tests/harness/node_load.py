"""Who a node under test meets: a crowd that uploads, a meddler among it, and a watcher of what is shown."""

from __future__ import annotations

import contextlib
import http.client
import random
import secrets
import threading
import urllib.error
import urllib.request
from typing import Any

import numpy as np
from node_fixture import HEALTH, SURVEYS, VERDICTS, World

from hubbub.wire.report import Report, decode_response, encode_report, encode_upload
from hubbub_client.upload.uploader import Limits
from hubbub_lab.simulation.device_simulator import Column, DeviceSimulator

# Brisk, so that a killed node is asked again as soon as it is back.
LIMITS = Limits(gap_s=0.0, base_s=0.02, cap_s=0.1, retry_after_cap_s=0.1)


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
        fleet = DeviceSimulator(devices, budget=10.0)
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
                document = self._world.document()
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
