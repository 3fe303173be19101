"""A year of one device: 20 surveys, a flaky network, a ledger on disk.

    python bench/device_year.py [DAYS]

Ten surveys ask evolving attributes every day or week, ten ask static ones; the network answers half the
time, the agent is started anew every week. The year runs on a ledger that does not wait for the disk
(synchronous=OFF), so that it takes seconds and shows what is ours; then answers are timed with their
fsyncs, on the ledger that is a year old.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Agent, Limits, Policy, TransportError
from hubbub_client.upload.transport import Response

START_S = 1767225600  # 2026-01-01T00:00:00Z
DAY_S = 86_400
AGREED = Policy(require_opt_in="no")

TEXT = """
id = "{id}"
version = 1
title = "Question {id}"
epsilon = {epsilon}
minimum_cohort = 100
planned_devices = 20000
[schedule]
start = 2026-01-01T00:00:00Z
round = "{round}"
rounds = {rounds}
lateness = "7d"
skew = "5m"
[attribute]
id = "a-{id}"
kind = "{kind}"
type = "integer"
low = 0
high = 90
[mechanism]
name = "grr"
"""


def surveys(days: int) -> list[Survey]:
    """Return seven daily and three weekly evolving surveys, seven daily and three weekly static ones."""
    found = []
    for number in range(20):
        weekly = number % 10 >= 7
        kind = "evolving" if number < 10 else "static"
        found.append(
            Survey.parse(
                TEXT.format(
                    id=f"q-{number}",
                    epsilon=0.01 if kind == "evolving" else 1.0,
                    round="7d" if weekly else "1d",
                    rounds=max(1, days // 7) if weekly else days,
                    kind=kind,
                )
            )
        )
    return found


class FlakyCollector:
    """A transport that answers half of the requests; of the others, half were received all the same."""

    def __init__(self) -> None:
        self.chance = random.Random(1)  # noqa: S311 - weather
        self.received: dict[bytes, bytes] = {}
        self.uploads = self.repeats = 0

    def get(self, path: str) -> Response:
        """Raise: surveys are handed in."""
        raise TransportError(path)

    def post(self, _path: str, body: bytes) -> Response:
        """Lose the request, the answer, or nothing; a retry must be the same bytes."""
        self.uploads += 1
        fate = self.chance.random()
        if fate < 0.25:
            raise TransportError("unreachable")
        reports = wire.decode_upload(body, max_reports=100)
        for report in reports:
            assert isinstance(report, wire.Report)
            data = wire.encode_report(report)
            self.repeats += report.id in self.received
            assert self.received.setdefault(report.id, data) == data, "a retry sent other bytes"
        if fate < 0.5:
            raise TransportError("the answer was lost")
        return Response(200, wire.encode_response(["accepted"] * len(reports)))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Year:
    """A device's folder and its clock."""

    def __init__(self, folder: Path, days: int) -> None:
        self.path, self.days = folder / "ledger.db", days
        self.surveys, self.collector, self.now_s = surveys(days), FlakyCollector(), float(START_S)

    def open(self, synchronous: str = "OFF") -> Agent:
        """Return the device's agent after a restart."""
        agent = Agent(
            self.path,
            "",
            budget=500.0,
            policy=AGREED,
            clock=lambda: self.now_s,
            http=self.collector,
            limits=Limits(gap_s=0.0, base_s=60.0, cap_s=3600.0),
        )
        agent._ledger._db.execute(f"PRAGMA synchronous = {synchronous}")
        return agent

    def begin(self) -> None:
        """Register twenty attributes and enrol in twenty surveys."""
        with self.open() as agent:
            for survey in self.surveys:
                attribute = survey.attribute
                agent.register(Attribute.integer(attribute.id, 0, 90, kind=attribute.kind))
                assert agent.enrol(survey).accepted


def main() -> int:
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 365
    with tempfile.TemporaryDirectory() as folder:
        year = Year(Path(folder), days)
        began = time.perf_counter()
        year.begin()
        print(f"enrol in 20 surveys: {time.perf_counter() - began:.2f} s", flush=True)
        opened: list[float] = []
        answered: list[float] = []
        busy: list[float] = []
        chance = random.Random(2)  # noqa: S311 - values
        began = time.perf_counter()
        for week in range(0, days, 7):
            start = time.perf_counter()
            with year.open() as agent:
                opened.append(time.perf_counter() - start)
                for day in range(week, min(week + 7, days)):
                    year.now_s = START_S + day * DAY_S + 3600.0
                    for survey in year.surveys[:10]:
                        agent.set(survey.attribute.id, chance.randrange(91))
                    start, worked = time.perf_counter(), time.process_time()
                    made = len(agent.answer())
                    answered += [(time.perf_counter() - start) / made] * made
                    busy += [(time.process_time() - worked) / made] * made
                    for hour in range(2, 24, 4):
                        year.now_s = START_S + day * DAY_S + 3600.0 * hour
                        agent.upload()
        took = time.perf_counter() - began
        with year.open() as agent:
            while agent.upload().waiting:
                year.now_s += 3600.0
            status = agent.status()
            start = time.perf_counter()
            account = agent.account()
            shown = time.perf_counter() - start
        size = sum(file.stat().st_size for file in year.path.parent.iterdir())
        print(f"{days} days in {took:.1f} s: {status.answers} answers, {year.collector.uploads} uploads")
        print(f"received {len(year.collector.received)}, {year.collector.repeats} of them more than once")
        print(f"files: {size / 1e6:.2f} MB (aim: under 2)")
        answered.sort()
        busy.sort()
        print(
            f"answer without waiting for the disk: median {1e3 * answered[len(answered) // 2]:.2f} ms, "
            f"99 % {1e3 * answered[int(0.99 * len(answered))]:.2f} ms (aim: under 5)"
        )
        print(
            f"the same in processor time: median {1e3 * busy[len(busy) // 2]:.2f} ms, "
            f"99 % {1e3 * busy[int(0.99 * len(busy))]:.2f} ms"
        )
        print(f"answer with its fsyncs: median {1e3 * synced(year):.2f} ms")
        print(f"open at the start {1e3 * opened[0]:.0f} ms, at the end {1e3 * opened[-1]:.0f} ms")
        print(f"the owner's account, every byte of it: {1e3 * shown:.0f} ms")
        assert sum(len(asked.sent) for asked in account.surveys) == status.answers
        print(f"loss {status.loss:.3f}, committed {status.committed:.3f} of {status.budget:g}")
    return 0


def synced(year: Year) -> float:
    """Return median seconds of one answer that waits for the disk, of a hundred on a year-old ledger."""
    text = TEXT.format(id="extra", epsilon=0.01, round="1d", rounds=2 * year.days + 100, kind="evolving")
    extra = Survey.parse(text)
    with year.open("FULL") as agent:
        agent.register(extra.attribute)
        assert agent.enrol(extra).accepted
        times = []
        for day in range(year.days, year.days + 100):
            year.now_s = extra.round_start_s(day)
            start = time.perf_counter()
            assert len(agent.answer()) == 1
            times.append(time.perf_counter() - start)
    return sorted(times)[50]


if __name__ == "__main__":
    sys.exit(main())
