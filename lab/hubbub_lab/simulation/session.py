"""Devices made from a table of people, against a running node or cluster: round by round, over HTTP.

Every device decides as an agent does (see `device_simulator`). What can go wrong on the way is told apart:
reports that are lost, uploads that arrive twice, and devices that lie. The truth stays here, so that what the
page shows can be set beside it.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub import Survey
from hubbub.numeric import SYSTEM
from hubbub.survey import number_of_round
from hubbub.testing import seeded
from hubbub.wire import ID_BYTES
from hubbub_client import TransportError
from hubbub_client.surveys import decode_listed_surveys, unverified
from hubbub_client.upload import HttpTransport
from hubbub_lab.errors import LabError
from hubbub_lab.evaluation import Evaluation, truth_of
from hubbub_lab.evaluation.evaluation import Truth
from hubbub_lab.simulation.device_simulator import Column, DeviceSimulator, SimulatedEnrolment, jobs_of
from hubbub_lab.simulation.tokens import TokenPool
from hubbub_lab.simulation.upload import FLEET_LIMITS, Job, UploadCounts, send

POLL_S: Final = 0.5
"""Seconds between two looks for a release."""

RELEASE_PATIENCE_S: Final = 60.0
"""Seconds that a release is waited for after the last moment for a report: a grace of 5, and slow disks."""

_GRACE_S: Final = 30.0
"""Seals wait at least so long on a cluster; a node is faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The way from devices to collector, and what happens on it.

    Attributes:
        rate: Uploads a second; None for as fast as they are taken.
        drift: Share of devices whose evolving values are those of another device in the next round.
        loss: Share of reports that never arrive.
        duplicates: Share of uploads that are sent twice.
        fakes: Reports of liars for every honest device; a liar claims the survey's first value.
    """

    rate: float | None = None
    drift: float = 0.0
    loss: float = 0.0
    duplicates: float = 0.0
    fakes: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SentRound:
    """One round of a survey, as it was sent.

    Attributes:
        survey: The survey.
        round: Which round, its index.
        honest: Devices whose report was taken.
        lost: Reports that were lost on the way.
        refused: Honest reports that the collector answered, and did not take: late ones, say.
        forged: Reports of liars, those alone that found a token where tokens are asked for.
        without_token: Honest reports that found none, and were not sent.
        truth: The true frequencies of the devices whose report was taken.
        devices: All devices of the table.
        everyone: The true frequencies of all of them, in the same round.
    """

    survey: Survey
    round: int
    honest: int
    lost: int
    forged: int
    truth: Truth
    devices: int
    everyone: Truth
    without_token: int = 0
    refused: int = 0

    @property
    def absent(self) -> int:
        """Devices of the table that are not among the honest ones, whatever the reason."""
        return self.devices - self.honest


class _NotYetError(LabError):
    """A server that does not listen yet, or says that it cannot answer yet."""


def fetch_surveys(
    url: str,
    *,
    patience_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Survey, ...]:
    """Return the surveys that a collector serves, signed or not.

    Args:
        url: The collector.
        patience_s: Seconds that a collector that is still starting is waited for.
        clock: Seconds, from any moment.
        wait: Waits so many seconds.
        say: Is told once that it waits.

    Raises:
        LabError: If it cannot be reached in time, or its answer is no list of surveys.
    """
    until_s, told = clock() + patience_s, False
    while True:
        try:
            return decode_listed_surveys(unverified(_get(url, "/v1/surveys")))
        except _NotYetError as error:
            if clock() >= until_s:
                raise
            if not told:
                say(f"{error}; trying again for {patience_s:g} s")
                told = True
        wait(POLL_S)


def _get(url: str, path: str, *, bearer: str | None = None) -> bytes:
    http = HttpTransport(url, bearer=bearer, plain_http="anywhere")  # the command looked
    try:
        response = http.get(path)
    except TransportError as error:
        raise _NotYetError(f"{url}: {error}") from None
    finally:
        http.close()
    if response.status in (502, 503, 504):
        raise _NotYetError(f"{url}{path} must be answered with 200, got {response.status}")
    if response.status == 401:
        raise LabError(
            f"{url}{path} is for readers with a read token: --read-token-file must hold it, "
            f"got {'none' if bearer is None else 'another one'}"
        )
    if response.status != 200:
        raise LabError(f"{url}{path} must be answered with 200, got {response.status}")
    return response.body


class Session:
    """A set of devices that answers the rounds of some surveys as they come.

    Args:
        url: The collector.
        surveys: Which surveys are answered.
        people: Values of every device by attribute id, each of shape (n,), object; None is missing.
        traffic: What happens on the way.
        budget: Lifetime epsilon of every device.
        seed: Makes what the devices draw repeatable; None draws from the operating system.
        clock: Seconds since 1970.
        wait: Waits so many seconds.
        tokens: The one-time tokens that the collector asks for; None for an open one.
    """

    def __init__(
        self,
        url: str,
        surveys: Sequence[Survey],
        people: Mapping[str, NDArray[np.object_]],
        *,
        traffic: Traffic,
        budget: float,
        seed: int | None,
        clock: Callable[[], float],
        wait: Callable[[float], None],
        tokens: TokenPool | None = None,
    ) -> None:
        self._tokens = tokens
        self.surveys, self._url, self._people, self._traffic = surveys, url, people, traffic
        self._clock, self._wait = clock, wait
        self.devices = len(next(iter(people.values())))
        self._source = SYSTEM if seed is None else seeded(seed)
        self._chance = np.random.default_rng(seed)
        self._pace = random.Random(seed)  # noqa: S311 - which upload is sent twice
        self._fleet = DeviceSimulator(self.devices, budget=budget, source=self._source)
        self._rows = np.arange(self.devices)
        self._answered: Counter[bytes] = Counter()
        for survey in surveys:
            for attribute in survey.attributes:
                self._fleet.register(attribute)
                self._fleet.set(attribute.id, people[attribute.id])

    def enrol(self) -> dict[bytes, SimulatedEnrolment]:
        """Return by digest which devices take part in each survey, and why the others do not."""
        return {survey.digest: self._fleet.enrol(survey, now_s=self._clock()) for survey in self.surveys}

    def rounds(
        self, most: int, *, progress: Callable[[int, int], None] | None = None
    ) -> Iterator[tuple[list[SentRound], UploadCounts]]:
        """Answer the rounds as they come, and yield what was sent each time.

        Args:
            most: Rounds of every survey to answer.
            progress: Told (uploads finished, uploads in all).
        """
        while True:
            columns = [
                column
                for column in self._fleet.answer(now_s=self._clock())
                if self._answered[column.survey.digest] < most
            ]
            self._fleet.drain()
            if columns:
                self._answered.update(column.survey.digest for column in columns)
                yield self._send(columns, progress)
            moments = [moment for survey in self.surveys if (moment := self._next(survey, most)) is not None]
            if not moments:
                return
            while (left := min(moments) - self._clock()) > 0:
                self._wait(left)
            self._drift()

    def _next(self, survey: Survey, most: int) -> int | None:
        """Return when the next round that is to be answered begins; None for none."""
        now_s = self._clock()
        if self._answered[survey.digest] >= most:
            return None
        if now_s < survey.start_s:
            return survey.start_s
        current = survey.round_at(now_s)
        if current is None or current + 1 >= survey.rounds:
            return None
        return survey.round_end_s(current)

    def _drift(self) -> None:
        moved = self._chance.random(self.devices) < self._traffic.drift
        if not moved.any():
            return
        self._rows[moved] = self._chance.integers(0, self.devices, int(moved.sum()))
        evolving = {
            each.id: each for survey in self.surveys for each in survey.attributes if each.kind == "evolving"
        }
        for name in evolving:
            self._fleet.set(name, self._people[name][self._rows])

    def _send(
        self, columns: Sequence[Column], progress: Callable[[int, int], None] | None
    ) -> tuple[list[SentRound], UploadCounts]:
        forged = round(self._traffic.fakes * self.devices)
        lost, kept = [], []
        for column in columns:
            arrives = self._chance.random(len(column.devices)) >= self._traffic.loss
            kept.append(column.among(column.devices[arrives]))
            lost.append(int((~arrives).sum()))
        liars = [self._forged(column, forged) for column in columns if forged]
        sendable = [len(column.devices) for column in kept]
        if self._tokens is not None:
            kept = self._tokens.admitted(kept)
            liars = self._tokens.forged(liars) if liars else []
        everything = [*kept, *liars]
        taken = [len(column.devices) for column in liars] or [0] * len(columns)
        senders = np.unique(np.concatenate([column.devices for column in everything]))
        self._chance.shuffle(senders)
        twice = self._chance.random(len(senders)) < self._traffic.duplicates
        order = np.repeat(senders, 1 + twice)
        counts = send(
            self._paced(jobs_of(everything, order, FLEET_LIMITS)),
            len(order),
            self._url,
            progress=progress,
        )
        given_up = np.array(counts.given_up, dtype=np.intp)
        everybody = np.arange(self.devices)
        sent = []
        for place, (column, gone) in enumerate(zip(kept, lost, strict=True)):
            held = np.array([data.tobytes() in counts.taken for data in column.ids], dtype=np.bool_)
            devices = column.devices[held]
            refused = len(np.setdiff1d(column.devices[~held], given_up))
            sent.append(
                SentRound(
                    column.survey,
                    column.round,
                    len(devices),
                    gone,
                    taken[place],
                    truth_of(column.survey, self._values(column.survey, devices)),
                    self.devices,
                    truth_of(column.survey, self._values(column.survey, everybody)),
                    sendable[place] - len(column.devices),
                    refused,
                )
            )
        return sent, counts

    def _values(self, survey: Survey, devices: NDArray[np.intp]) -> list[object]:
        """Return what the devices hold: of static attributes what they held first."""
        columns = [
            self._people[each.id][devices if each.kind == "static" else self._rows[devices]]
            for each in survey.attributes
        ]
        return list(columns[0]) if len(columns) == 1 else list(zip(*columns, strict=True))

    def _forged(self, column: Column, count: int) -> Column:
        """Return reports of liars, who claim the first value and send what an honest holder of it might."""
        survey = column.survey
        symbols = survey.channel.perturb(np.zeros(count, dtype=np.intp), source=self._source)
        identifiers = np.frombuffer(self._source.token_bytes(ID_BYTES * count), dtype=np.uint8)
        devices = np.arange(self.devices, self.devices + count)
        return Column(survey, column.round, devices, identifiers.reshape(-1, ID_BYTES), symbols)

    def _paced(self, jobs: Iterator[Job]) -> Iterator[Job]:
        """Return the jobs, each when its turn has come."""
        rate = self._traffic.rate
        began_s = self._clock()
        for number, job in enumerate(jobs):
            if rate is not None and (early_s := began_s + number / rate - self._clock()) > 0:
                self._wait(early_s)
            yield job


def released(
    url: str,
    sent: SentRound,
    *,
    token: str | None = None,
    clock: Callable[[], float],
    wait: Callable[[float], None],
) -> Evaluation:
    """Return a sealed round beside its truth, once the dashboard has it.

    Args:
        url: The node or the dashboard.
        sent: Which round.
        token: The read token, where the dashboard asks for one.
        clock: Seconds since 1970.
        wait: Waits so many seconds.

    Raises:
        LabError: If there is no release in time.
    """
    survey = sent.survey
    due_s = survey.round_end_s(sent.round) + survey.lateness_s
    path = f"/api/surveys/{survey.digest.hex()}/rounds/{number_of_round(sent.round)}"
    if (left := due_s - clock()) > 0:
        wait(left)
    while True:
        release = _release(url, path, token)
        if release is not None and release["sealed"]:
            return Evaluation(survey, release, sent.truth, everyone=sent.everyone if sent.absent else None)
        if clock() > due_s + _GRACE_S + RELEASE_PATIENCE_S:
            raise LabError(
                f"survey {survey.id!r}: round {number_of_round(sent.round)} must be sealed by now, got none"
            )
        wait(POLL_S)


def _release(url: str, path: str, token: str | None) -> dict[str, Any] | None:
    """Return what the dashboard says of a round; None where it is restarting, or has not heard of it yet."""
    try:
        found: dict[str, Any] = json.loads(_get(url, path, bearer=token))
    except _NotYetError:
        return None
    return found
