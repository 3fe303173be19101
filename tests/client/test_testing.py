"""The helpers for host apps behave as a real collector does, and a rehearsal as a device."""

from __future__ import annotations

from pathlib import Path

import pytest
from surveys import small

from hubbub import wire
from hubbub.errors import ParameterError
from hubbub.survey import Survey
from hubbub_client import Agent, AttributeRefusedError, Limits, Policy
from hubbub_client.testing import FakeClock, FakeCollector, rehearse

TEXT = small(
    "screen-time",
    'type = "label"\nlabels = ["none", "some", "many"]',
    title="Hours at a screen",
    epsilon=0.5,
    attribute="hours",
    rounds=4,
)


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    file = tmp_path / "screen.toml"
    file.write_text(TEXT)
    return Survey.load(file)


def answered(tmp_path: Path, survey: Survey, collector: FakeCollector, clock: FakeClock) -> Agent:
    path, limits = tmp_path / "ledger.db", Limits(gap_s=0.0)
    agent = Agent(path, "http://test", budget=4.0, limits=limits, clock=clock, http=collector, strict=True)
    agent.register(survey.attributes[0])
    agent.opt_in("hours")
    assert [agent.enrol(each).status for each in agent.fetch_surveys()] == ["enrolled"]
    agent.set("hours", "many")
    assert len(agent.answer()) == 1
    return agent


def test_a_report_comes_through_failures_and_is_kept_once(tmp_path: Path, survey: Survey) -> None:
    clock = FakeClock(survey.start_s)
    collector = FakeCollector(survey, clock=clock)
    with answered(tmp_path, survey, collector, clock) as agent:
        collector.fail()
        collector.fail(503, retry_after="7")
        collector.fail(lost="answer")
        failures = []
        for _ in range(4):
            outcome = agent.upload()
            failures.append(outcome.failure)
            clock.advance(outcome.wait_s or 0.0)
        assert failures == ["unreachable", "status 503", "unreachable", None]
        assert len(collector.uploads) == 4
        assert len(set(collector.uploads)) == 1
        assert [report.round for report in collector.reports.values()] == [0]
        assert [report.outcome for report in agent.sent()] == ["accepted"]
        assert agent.upload().waiting == 0


def outcomes(collector: FakeCollector, *reports: wire.Report) -> list[str]:
    body = wire.encode_upload([wire.encode_report(report) for report in reports])
    return list(wire.decode_response(collector.post("/v1/reports", body).body))


def test_it_judges_by_survey_symbol_round_and_clock(survey: Survey) -> None:
    clock = FakeClock(survey.round_start_s(1))
    collector = FakeCollector(survey, clock=clock)
    fresh = iter(range(1, 256))

    def report(round_number: int, symbol: int = 0, digest: bytes = survey.digest) -> wire.Report:
        return wire.Report(digest, round_number, bytes(15) + bytes([next(fresh)]), symbol)

    assert outcomes(
        collector,
        report(1),
        report(2),
        report(0),
        report(4),
        report(1, symbol=survey.channel.widest_symbol + 1),
        report(1, digest=bytes(16)),
    ) == ["accepted", "early", "accepted", "invalid", "invalid", "unknown"]
    clock.advance(survey.lateness_s + 1)
    assert outcomes(collector, report(0)) == ["late"]
    assert collector.post("/v1/reports", b"?").status == 400
    assert collector.get("/other").status == 404
    assert collector.post("/other", b"").status == 404


def test_a_clock_without_a_time_does_not_advance() -> None:
    with pytest.raises(ParameterError, match="must have a time, got None"):
        FakeClock(None).advance(1.0)


def test_a_rehearsal_shows_what_a_device_sends_and_its_owner_sees(survey: Survey) -> None:
    shown = rehearse(survey, {"hours": "some"}, rounds=3)
    assert shown.enrolment.status == "enrolled"
    assert [report.round for report in shown.sent] == [0, 1, 2]
    assert {report.outcome for report in shown.sent} == {"accepted"}
    assert all(survey.channel.admits(report.symbol) for report in shown.sent)
    assert shown.account.budget == 4.0
    assert shown.account.loss == pytest.approx(3 * survey.channel.epsilon)
    assert "Hours at a screen" in shown.page
    assert 'href="page.css"' not in shown.page
    assert "<style>" in shown.page


def test_a_rehearsal_says_why_a_survey_is_refused(survey: Survey) -> None:
    assert rehearse(survey, budget=1.0).enrolment.reason == "over_budget"
    refused = rehearse(survey, policy=Policy(max_epsilon=0.25))
    assert (refused.enrolment.reason, refused.sent) == ("over_policy", ())


def test_a_rehearsal_is_strict(survey: Survey) -> None:
    with pytest.raises(AttributeRefusedError, match="3 labels"):
        rehearse(survey, {"hours": "lots"})
    with pytest.raises(AttributeRefusedError, match="'minutes' must be registered first"):
        rehearse(survey, {"minutes": 3})
    with pytest.raises(ParameterError, match="rounds must be at least 1, got 0"):
        rehearse(survey, rounds=0)


def test_a_rehearsal_in_turns_goes_through_cycles() -> None:
    turns = Survey.parse(small("mood", 'type = "label"\nlabels = ["a", "b"]', rounds=30, rotation=5))
    shown = rehearse(turns, {"mood": "a"}, budget=6.0, rounds=3)
    assert [report.round // 5 for report in shown.sent] == [0, 1, 2]
    assert "one of every 5 days, drawn on this device" in shown.page


def test_the_owner_sees_what_any_seven_days_tell() -> None:
    """Ten days of epsilon 0.5, three of them answered: seven days count, realised or at their worst."""
    text = TEXT.replace("rounds = 4", "rounds = 10")
    survey = Survey.parse(text)
    shown = rehearse(survey, {"hours": "some"}, budget=6.0, rounds=3)
    assert shown.account.window == pytest.approx(7 * survey.channel.epsilon)
    assert 'id="window"' in shown.page and "In any 7 days" in shown.page
    weekly = Survey.parse(text.replace('round = "1d"', 'round = "7d"'))
    assert rehearse(weekly, budget=6.0, rounds=2).account.window == pytest.approx(weekly.channel.epsilon)
    fixed = Survey.parse(text.replace('kind = "evolving"', 'kind = "static"'))
    shown = rehearse(fixed, {"hours": "some"}, rounds=3)
    assert shown.account.window == 0.0 and 'id="window"' not in shown.page
