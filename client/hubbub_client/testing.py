"""Helpers for the tests of host apps: a clock, a collector in memory, and a rehearsal of a survey.

    def test_visits_are_answered(tmp_path, survey):
        clock = FakeClock(survey.start_s)
        collector = FakeCollector(survey, clock=clock)
        with Agent(tmp_path / "l.db", "http://test", budget=4.0, http=collector, clock=clock) as agent:
            my_app.prepare(agent)
            agent.answer()
            agent.upload()
        assert len(collector.reports) == 1

Nothing here reaches a network, and nothing is counted anywhere. Answers are drawn as on a device, so a test
asserts that they came, never what they say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from hubbub import wire
from hubbub.errors import ParameterError, WireError
from hubbub.survey import Survey
from hubbub_client import owner_page
from hubbub_client.agent.agent import SURVEYS_PATH, Agent
from hubbub_client.agent.policy import Policy
from hubbub_client.agent.sender import REPORTS_PATH
from hubbub_client.errors import TransportError
from hubbub_client.owner_page.account import Account
from hubbub_client.owner_page.html import STYLE_LINK, document
from hubbub_client.surveys.schedule import Enrolment
from hubbub_client.upload.outcomes import SentReport
from hubbub_client.upload.transport import Response
from hubbub_client.upload.uploader import Limits

UNREACHABLE: Final = "unreachable"
"""The failure of a collector that does not answer at all; the others are HTTP statuses."""

_AT_ONCE: Final = Limits(gap_s=0.0)
_MOST_ROUNDS: Final = 100
_MOST_REPORTS: Final = 4096  # as a gateway's default


class FakeClock:
    """A clock that moves when it is told to.

    Attributes:
        now_s: Epoch seconds; None while the device does not trust its clock.
    """

    def __init__(self, now_s: float | None) -> None:
        self.now_s = now_s

    def __call__(self) -> float | None:
        """Return the time, epoch seconds."""
        return self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ParameterError: The clock is not trusted, so that there is no time to pass from.
        """
        if self.now_s is None:
            raise ParameterError("a clock that advances must have a time, got None")
        self.now_s += seconds


class FakeCollector:
    """A collector in memory, which an agent takes as its `http`: it serves surveys and judges reports.

    It refuses what a collector refuses: a survey that it does not serve, a round that the survey does not
    have, a symbol that its mechanism never gives, and a round that is not open by its clock. A copy of a
    report is accepted again and kept once.

    Args:
        surveys: The surveys that it serves.
        clock: Its clock, usually the agent's.

    Attributes:
        surveys: The surveys that it serves; a test may change the list.
        reports: The accepted reports, by report id, in the order of arrival.
        uploads: The body of every upload that arrived, failed ones included.
    """

    def __init__(self, *surveys: Survey, clock: FakeClock) -> None:
        self.surveys = list(surveys)
        self.reports: dict[bytes, wire.Report] = {}
        self.uploads: list[bytes] = []
        self._clock = clock
        self._failures: deque[tuple[int | str, str | None, bool]] = deque()

    def fail(
        self,
        status: int | Literal["unreachable"] = UNREACHABLE,
        *,
        times: int = 1,
        retry_after: str | None = None,
        lost: Literal["request", "answer"] = "request",
    ) -> None:
        """Let the next requests fail.

        Args:
            status: An HTTP status, or "unreachable".
            times: How many requests.
            retry_after: The Retry-After header of the answer, None for none.
            lost: What the failure took: the request, so that nothing was counted; or the answer alone, after
                the reports were taken.
        """
        self._failures.extend([(status, retry_after, lost == "answer")] * times)

    def get(self, path: str) -> Response:
        """Return the list of surveys, unsigned.

        Raises:
            TransportError: It was told to be unreachable.
        """
        if path != SURVEYS_PATH:
            return Response(404, b"")
        body = wire.encode_surveys([survey.canonical for survey in self.surveys])
        return self._through_failures(lambda: Response(200, body))

    def post(self, path: str, body: bytes) -> Response:
        """Return one outcome per report of an upload.

        Raises:
            TransportError: It was told to be unreachable.
        """
        if path != REPORTS_PATH:
            return Response(404, b"")
        self.uploads.append(body)
        return self._through_failures(lambda: self._taken(body))

    def close(self) -> None:
        """Do nothing: there are no connections."""

    def _through_failures(self, answer: Callable[[], Response]) -> Response:
        if not self._failures:
            return answer()
        status, retry_after, is_taken = self._failures.popleft()
        if is_taken:
            answer()
        if isinstance(status, str):
            raise TransportError("the collector was told to be unreachable")
        return Response(status, b"", retry_after)

    def _taken(self, body: bytes) -> Response:
        try:
            found = wire.decode_upload(body, max_reports=_MOST_REPORTS)
        except WireError:
            return Response(400, b"")
        return Response(200, wire.encode_response([self._outcome(each) for each in found]))

    def _outcome(self, report: wire.Report | wire.Malformed) -> wire.Outcome:
        if isinstance(report, wire.Malformed):
            return "invalid"
        survey = next((each for each in self.surveys if each.digest == report.digest), None)
        if survey is None:
            return "unknown"
        if report.round >= survey.rounds or not survey.channel.admits(report.symbol):
            return "invalid"
        now_s = self._clock()
        if now_s is not None and survey.round_start_s(report.round) > now_s + survey.skew_s:
            return "early"
        if now_s is not None and survey.round_end_s(report.round) < now_s - survey.lateness_s:
            return "late"
        self.reports.setdefault(report.id, report)
        return "accepted"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The course of a survey on one device, with values of a developer's choice.

    Attributes:
        survey: The survey.
        enrolment: Whether the device takes part, or why not.
        sent: The reports that the collector got, in the order of the rounds.
        account: The owner's account at the end.
        page: The owner's page at the end, one HTML document without any other file.
    """

    survey: Survey
    enrolment: Enrolment
    sent: tuple[SentReport, ...]
    account: Account
    page: str


def rehearse(
    survey: Survey,
    values: Mapping[str, object] | None = None,
    *,
    budget: float = 4.0,
    policy: Policy | None = None,
    rounds: int | None = None,
) -> Rehearsal:
    """Return what a device is asked, answers and sends in a survey, on a clock that runs through its rounds.

    The device is strict, has a ledger of its own in a temporary folder and a budget of its own, and sends to
    a `FakeCollector`: nothing of it is counted, and the ledger of no real device is touched.

    Args:
        survey: The survey.
        values: Attribute id to value, of a developer's choice; an attribute that is left out is missing.
        budget: Lifetime epsilon of the device.
        policy: The host's limits; by default the owner says yes to the survey.
        rounds: How many rounds to run through, from the first; None for all, at most 100. Of a rotating
            survey that many cycles, in each of which the device answers once.

    Raises:
        AttributeRefusedError: A value is of no attribute of the survey, or outside its domain.
        ParameterError: `rounds` is below 1.
        LedgerError: The budget is no budget.
    """
    if rounds is not None and rounds < 1:
        raise ParameterError(f"rounds must be at least 1, got {rounds}")
    clock = FakeClock(float(survey.start_s))
    collector = FakeCollector(survey, clock=clock)
    with (
        TemporaryDirectory(prefix="hubbub-rehearsal-") as folder,
        Agent(
            Path(folder) / "ledger.db",
            "http://rehearsal.invalid",
            budget=budget,
            policy=policy,
            limits=_AT_ONCE,
            clock=clock,
            http=collector,
            strict=True,
        ) as agent,
    ):
        for attribute in survey.attributes:
            agent.register(attribute)
        for attribute_id, value in (values or {}).items():
            agent.set(attribute_id, value)
        agent.opt_in(survey)
        enrolment = agent.enrol(survey)
        for number in range(min(survey.rounds, (rounds or _MOST_ROUNDS) * survey.rotation)):
            clock.now_s = float(survey.round_start_s(number))
            agent.answer()
            agent.upload()
        account = agent.account()
        return Rehearsal(survey, enrolment, agent.sent(), account, _whole_page(account))


def _whole_page(account: Account) -> str:
    """Return the owner's page with its style inside."""
    style = files(owner_page).joinpath("page.css").read_text(encoding="utf-8")
    return document(account).decode().replace(STYLE_LINK, f"<style>{style}</style>")
