"""What a device may be asked, whose word counts, whose clock: no round is answered twice, none is lost."""

import dataclasses
import random
from pathlib import Path

import pytest
from devices import AGREED, DAY_S, HEALTH_SURVEY, VISITS_SURVEY, Clock, Collector, changed
from surveys import LABELS, START_S

from hubbub.survey.domain import Attribute
from hubbub.wire import report as wire
from hubbub_client import Agent, Policy
from hubbub_client.owner_page import descriptions
from hubbub_client.upload.transport import Response


def test_nothing_is_answered_without_a_yes_by_default(open_agent) -> None:
    agent = open_agent(policy=Policy())
    assert agent.enrol(HEALTH_SURVEY).reason == "not_opted_in"
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).accepted
    agent.opt_in("visits")
    assert agent.enrol(VISITS_SURVEY).accepted


def test_a_yes_to_one_version_is_none_to_another(open_agent) -> None:
    agent = open_agent(policy=Policy())
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(changed(LABELS, version="2")).reason == "not_opted_in"


def test_a_yes_is_kept_across_restarts(open_agent) -> None:
    agent = open_agent(policy=Policy())
    agent.opt_in("health")
    agent.close()
    assert open_agent(policy=Policy()).enrol(HEALTH_SURVEY).accepted


def test_a_policy_names_what_may_be_asked(open_agent) -> None:
    agent = open_agent(policy=Policy(attributes=frozenset({"visits"}), require_opt_in="no"))
    assert agent.enrol(HEALTH_SURVEY).reason == "not_allowed"
    assert agent.enrol(VISITS_SURVEY).accepted
    agent.close()
    agent = open_agent(policy=Policy(max_epsilon=0.9, require_opt_in="no"))
    assert agent.enrol(HEALTH_SURVEY).reason == "over_policy"


def test_a_policy_is_a_frozen_value() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        AGREED.max_epsilon = 9.0  # type: ignore[misc]  # that is the test


def test_a_clock_not_trusted_answers_and_sends_nothing_and_loses_nothing(
    open_agent, clock, collector
) -> None:
    agent = open_agent()
    assert agent.enrol(HEALTH_SURVEY).accepted
    agent.answer()
    now_s, clock.now_s = clock.now_s, None
    agent.set("health", "good")
    assert agent.answer() == ()
    assert agent.enrol(VISITS_SURVEY).reason == "clock_not_trusted"
    assert (agent.upload().failure, agent.upload().waiting) == ("clock not trusted", 1)
    assert collector.bodies == []
    clock.now_s = now_s + DAY_S
    assert [a.round for a in agent.answer()] == [1]
    assert len(agent.upload().settled) == 2


def early_until(clock: Clock, collector: Collector, truth_s: list[float]) -> None:
    """Makes the collector judge rounds by the true time, as the gateway does."""

    def reply(reports: list[wire.Report]) -> Response:
        by_digest = {survey.digest: survey for survey in (HEALTH_SURVEY, VISITS_SURVEY)}
        outcomes: list[wire.Outcome] = []
        for report in reports:
            survey = by_digest[report.digest]
            late_s = survey.round_end_s(report.round) + survey.lateness_s
            if truth_s[0] < survey.round_start_s(report.round) - survey.skew_s:
                outcomes.append("early")
            else:
                outcomes.append("late" if truth_s[0] > late_s else "accepted")
        return Response(200, wire.encode_response(outcomes))

    collector.reply = reply


def test_a_clock_that_runs_ahead_and_comes_back_loses_no_round(open_agent, clock, collector) -> None:
    """Two days ahead for an hour: the round answered too early is counted later, the others in their time."""
    truth_s = [float(START_S + 10)]
    early_until(clock, collector, truth_s)
    agent = open_agent()
    assert agent.enrol(HEALTH_SURVEY).accepted
    agent.set("health", "good")
    clock.now_s = truth_s[0] + 2 * DAY_S
    assert [a.round for a in agent.answer()] == [2]
    outcome = agent.upload()
    assert (outcome.settled, outcome.waiting, outcome.failure) == ({}, 1, "early")
    accepted: list[int] = []
    for hour in range(1, 72):
        clock.now_s = truth_s[0] = START_S + 3600.0 * hour
        agent.answer()
        agent.upload()
        if hour % 24 == 5:
            agent.close()
            agent = open_agent()
    sent = agent.sent()
    accepted = [report.round for report in sent if report.outcome == "accepted"]
    assert sorted(accepted) == [0, 1, 2]
    assert len({r.id for r in collector.received}) == 3
    assert 2.99 < agent.status().loss <= 3.0


def test_an_early_report_is_the_same_bytes_when_it_is_sent_again(open_agent, clock, collector) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    answered = collector.reply
    collector.reply = lambda reports: Response(200, wire.encode_response(["early"] * len(reports)))
    assert agent.upload().waiting == 1
    assert agent.upload().wait_s is not None  # it backs off
    clock.now_s += 3600
    collector.reply = answered
    agent.upload()
    assert len(collector.bodies) == 2 and len(set(collector.bodies)) == 1


def test_an_early_report_does_not_keep_others_waiting(open_agent, clock, collector) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    collector.reply = lambda reports: Response(
        200,
        wire.encode_response(["early" if r.digest == HEALTH_SURVEY.digest else "accepted" for r in reports]),
    )
    outcome = agent.upload()
    assert list(outcome.settled.values()) == ["accepted"] and outcome.waiting == 1


@pytest.mark.parametrize("seed", range(8))
def test_random_jumps_never_spend_twice(open_agent, clock, collector, seed) -> None:
    """60 jumps anywhere around the schedule, restarts between: each round once, from what is reserved."""

    chance = random.Random(seed)  # noqa: S311 - times
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.enrol(VISITS_SURVEY)
    committed = agent.status().committed
    made: list[tuple[str, int]] = []
    for _ in range(60):
        clock.now_s = START_S + chance.uniform(-2, 5) * DAY_S
        made += [(a.survey_id, a.round) for a in agent.answer()]
        if chance.random() < 0.1:
            agent.close()
            agent = open_agent()
        status = agent.status()
        assert status.loss <= status.committed <= committed
    assert len(made) == len(set(made)) == 5  # every round came by, so every round was answered


class Watched(Agent):
    """Keeps the encoded values that were perturbed."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.read, perturb = [], self._answerer._perturb
        self._answerer._perturb = lambda survey, encoded: (
            self.read.extend(encoded) or perturb(survey, encoded)
        )


def watched(tmp_path: Path, clock: Clock, collector: Collector) -> Watched:
    agent = Watched(
        tmp_path / "w.db", "http://c.invalid", budget=9.0, clock=clock, http=collector, policy=AGREED
    )
    agent.register(HEALTH_SURVEY.attribute)
    assert agent.enrol(HEALTH_SURVEY).accepted
    return agent


def test_a_value_set_for_an_open_round_survives_a_restart_until_it_is_answered(
    tmp_path, clock, collector
) -> None:
    with watched(tmp_path, clock, collector) as agent:
        agent.set("health", "good")
    with watched(tmp_path, clock, collector) as agent:
        assert len(agent.answer()) == 1
        assert agent.read == [1]
        assert agent._ledger.kept_values() == []  # its round is answered: no longer on disk
        clock.now_s += DAY_S
    with watched(tmp_path, clock, collector) as agent:
        agent.answer()
        assert agent.read == [HEALTH_SURVEY.attribute.size]  # another round: missing until set again


def test_a_value_kept_for_a_round_is_not_used_for_another(tmp_path, clock, collector) -> None:
    with watched(tmp_path, clock, collector) as agent:
        agent.set("health", "good")
    clock.now_s += DAY_S
    with watched(tmp_path, clock, collector) as agent:
        agent.answer()
        assert agent.read == [HEALTH_SURVEY.attribute.size]


def test_a_value_that_no_round_waits_for_is_not_written_down(open_agent) -> None:
    agent = open_agent()
    agent.register(Attribute.labels("mood", ["high", "low"], kind="evolving"))
    agent.set("mood", "low")
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    agent.set("health", "good")
    assert agent._ledger.kept_values() == []


def test_a_retry_that_comes_late_is_not_told_as_an_answer_that_was_not_counted(
    open_agent, clock, collector
) -> None:
    """The collector kept the report and its answer was lost; the copy after the round hears `late`.

    A gateway remembers no ids, so `late` is about the copy, and does not say that nothing was counted.
    """
    truth_s = [float(START_S + 10)]
    early_until(clock, collector, truth_s)
    judged, kept = collector.reply, []

    def lost(reports: list[wire.Report]) -> None:
        kept.extend(reports)

    collector.reply = lost
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    assert agent.upload().failure == "unreachable"
    collector.reply = judged
    clock.now_s = truth_s[0] = float(
        HEALTH_SURVEY.round_end_s(HEALTH_SURVEY.rounds) + HEALTH_SURVEY.lateness_s + 10
    )
    assert list(agent.upload().settled.values()) == ["late"]
    (sent,) = agent.sent()
    assert [report.id for report in kept] == [sent.id]  # it was stored in time, and is counted
    for outcome in ("late", "over_quota", "unknown", "invalid"):
        assert descriptions.fate(outcome).endswith("unless a copy that was sent before was counted")
    assert descriptions.fate("accepted") == "accepted"
    assert agent.status().loss > 0.99  # and it was paid for either way
