"""Agents in memory for tests: a clock that is set, a collector that answers as it is told to, two surveys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from surveys import LABELS, VISITS

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import Agent, Limits, Policy, TransportError
from hubbub_client.upload.transport import Response

DAY_S = 86_400
FAST = Limits(gap_s=0.0)
AGREED = Policy(require_opt_in="no")
SETUP = {"policy": AGREED}
FAST_SETUP = {"policy": AGREED, "limits": FAST}
HEALTH = Attribute.labels("health", ["excellent", "good", "fair", "poor"], kind="evolving")
VISIT_COUNT = Attribute.integer("visits", 0, 20, kind="static")


def changed(text: str, **replacements: str) -> Survey:
    """A survey with other terms: keyword names are the left sides of lines to replace."""
    lines = []
    for line in text.splitlines():
        key = line.split(" = ")[0]
        lines.append(f"{key} = {replacements[key]}" if key in replacements else line)
    return Survey.parse("\n".join(lines))


HEALTH_SURVEY = Survey.parse(LABELS)  # evolving, 3 rounds of a day, epsilon 1
VISITS_SURVEY = Survey.parse(VISITS)  # static, 2 rounds of a day, epsilon 3


class Clock:
    def __init__(self, now_s: float | None) -> None:
        self.now_s: float | None = now_s

    def __call__(self) -> float | None:
        return self.now_s


class Collector:
    """A collector in memory: keeps every body, answers as it is told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.reply: Callable[[list[wire.Report]], Response | None] = lambda reports: Response(
            200, wire.encode_response(["accepted"] * len(reports))
        )
        self.surveys: Response | None = None

    def post(self, path: str, body: bytes) -> Response:
        assert path == "/v1/reports"
        self.bodies.append(body)
        response = self.reply(self.reports(body))
        if response is None:
            raise TransportError("collector cannot be reached: Test")
        return response

    def get(self, path: str) -> Response:
        assert path == "/v1/surveys"
        if self.surveys is None:
            raise TransportError("collector cannot be reached: Test")
        return self.surveys

    def close(self) -> None:
        pass

    @staticmethod
    def reports(body: bytes) -> list[wire.Report]:
        found = wire.decode_upload(body, max_reports=100)
        assert all(isinstance(report, wire.Report) for report in found)
        return found  # type: ignore[return-value]

    @property
    def received(self) -> list[wire.Report]:
        return [report for body in self.bodies for report in self.reports(body)]


@contextmanager
def opener(folder: Path, clock: Clock, collector: Collector) -> Iterator[Callable[..., Agent]]:
    """Makes agents on one ledger in a folder, with the attributes of both surveys; closes all of them."""
    opened: list[Agent] = []

    def make(budget: float | None = 10.0, **settings: object) -> Agent:
        agent = Agent(
            folder / "ledger.db",
            "http://collector.invalid",
            **{
                "budget": budget,
                "clock": clock,
                "http": collector,
                "limits": FAST,
                "jitter": lambda: 0.5,
                "policy": AGREED,
                **settings,
            },
        )
        opened.append(agent)
        agent.register(HEALTH)
        agent.register(VISIT_COUNT)
        return agent

    try:
        yield make
    finally:
        for agent in opened:
            agent.close()
