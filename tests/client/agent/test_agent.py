"""The agent: one answer is one transaction, noise is drawn once, and a value goes nowhere."""

import logging
import math
import os
import sqlite3
import threading
import traceback
from pathlib import Path

import pytest
from devices import (
    AGREED,
    DAY_S,
    FAST,
    HEALTH,
    HEALTH_SURVEY,
    SETUP,
    VISIT_COUNT,
    VISITS_SURVEY,
    Collector,
    changed,
)
from surveys import LABELS, START_S, VISITS

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey
from hubbub.wire import report as wire
from hubbub_client import (
    Agent,
    AttributeRefusedError,
    BudgetFixedError,
    ClientError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    Limits,
    Policy,
    TransportError,
)
from hubbub_client.agent import background as background_module
from hubbub_client.surveys.schedule import MEMOISED
from hubbub_client.upload.transport import HttpTransport, Response


def test_an_answer_is_in_the_ledger_before_anything_is_sent(open_agent, collector, tmp_path) -> None:
    agent = open_agent()
    agent.set("health", "good")
    assert agent.enrol(HEALTH_SURVEY).status == "enrolled"
    (answer,) = agent.answer()
    assert collector.bodies == []
    seen: list[tuple[int, bytes]] = []

    def on_disk(reports: list[wire.Report]) -> Response:
        # The file and its log as they lie on disk are what a kill would leave.
        copy = tmp_path / "copy.db"
        for suffix in ("", "-wal"):
            copy.with_name(copy.name + suffix).write_bytes((tmp_path / f"ledger.db{suffix}").read_bytes())
        db = sqlite3.connect(copy)
        seen.extend(
            db.execute(
                "SELECT symbol, id FROM transcript JOIN answer USING (enrolment) WHERE kind = 1"
            ).fetchall()
        )
        db.close()
        return Response(200, wire.encode_response(["accepted"] * len(reports)))

    collector.reply = on_disk
    outcome = agent.upload()
    (report,) = collector.received
    assert seen == [(report.symbol, report.id)]
    assert (report.digest, report.round, report.id) == (HEALTH_SURVEY.digest, 0, answer.id)
    assert outcome.settled == {answer.id: "accepted"}
    assert (outcome.waiting, outcome.wait_s, outcome.failure) == (0, None, None)


def test_a_retry_sends_identical_bytes_also_after_a_restart(open_agent, collector, clock) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    answered = collector.reply
    collector.reply = lambda _: None
    first = agent.upload()
    assert (first.waiting, first.wait_s, first.failure) == (1, 1.0, "unreachable")
    assert agent.upload().wait_s == 1.0 and len(collector.bodies) == 1  # the back-off holds
    agent.close()
    agent = open_agent()
    assert agent.upload().wait_s == 1.0 and len(collector.bodies) == 1  # and survives a restart
    clock.now_s += 1
    collector.reply = lambda _: Response(503, b"", "120")
    assert agent.upload().wait_s == 122.0
    clock.now_s += 122
    collector.reply = answered
    assert len(agent.upload().settled) == 1
    assert len(collector.bodies) == 3 and len(set(collector.bodies)) == 1


@pytest.mark.parametrize("outcome", sorted(set(wire.OUTCOMES) - {"early"}))
def test_every_typed_outcome_takes_the_report_out_of_the_outbox(open_agent, collector, outcome) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    (answer,) = agent.answer()
    collector.reply = lambda _: Response(200, wire.encode_response([outcome]))
    assert agent.upload().settled == {answer.id: outcome}
    assert agent.status().waiting == 0
    assert agent.upload().settled == {} and len(collector.bodies) == 1


def test_an_evolving_value_gets_fresh_noise_and_its_own_cost_every_round(
    open_agent, collector, clock
) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    losses = [agent.status().loss]
    for r in range(3):
        clock.now_s = HEALTH_SURVEY.round_start_s(r)
        assert [a.round for a in agent.answer()] == [r]
        losses.append(agent.status().loss)
    assert agent.answer() == ()
    assert losses == sorted(losses) and 2.99 < losses[-1] <= 3.0
    agent.upload()
    assert len({report.id for report in collector.received}) == 3
    rows = [row for row in agent._ledger.transcript() if row.kind == "record"]
    assert [row.slot for row in rows] == [0, 1, 2]
    assert [row.symbol for row in rows] == [report.symbol for report in collector.received]


def test_a_static_answer_is_drawn_once_and_sent_again_at_no_cost(open_agent, collector, clock) -> None:
    survey = changed(VISITS, rounds="9")
    agent = open_agent()
    agent.set("visits", 3)
    agent.enrol(survey)
    agent.answer()
    before = agent.status()
    for r in range(1, 9):
        clock.now_s = survey.round_start_s(r)
        if r == 4:  # the memo is the ledger's, not the process's
            agent.close()
            agent = open_agent()
        assert [a.round for a in agent.answer()] == [r]
    after = agent.status()
    assert (after.loss, after.committed) == (before.loss, before.committed)
    agent.upload()
    assert [report.round for report in collector.received] == list(range(9))
    assert len({report.symbol for report in collector.received}) == 1
    assert len({report.id for report in collector.received}) == 9
    assert [row.slot for row in agent._ledger.transcript() if row.kind == "record"] == [MEMOISED]


def test_two_surveys_on_one_pinned_value_cost_less_than_their_sum(open_agent, clock) -> None:
    second = changed(VISITS, version="2")
    agent = open_agent(budget=6.0)
    agent.enrol(VISITS_SURVEY)
    agent.enrol(second)
    agent.answer()
    status = agent.status()
    columns = [
        survey.channel.log_likelihood(agent._state.filter_state.recorded[survey.digest, MEMOISED])[
            survey.mapping
        ]
        for survey in (VISITS_SURVEY, second)
    ]
    total = columns[0] + columns[1]
    assert status.loss == pytest.approx(total.max() - total.min(), abs=1e-9)
    assert status.committed == status.loss


def test_a_static_value_is_pinned_by_its_first_answer(open_agent) -> None:
    agent = open_agent()
    agent.set("visits", 3)
    agent.set("visits", 4)  # nothing was said yet
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    agent.set("visits", 4)
    with pytest.raises(AttributeRefusedError, match="pinned"):
        agent.set("visits", 5)
    agent.close()
    agent = open_agent()
    with pytest.raises(AttributeRefusedError, match="pinned"):
        agent.set("visits", 5)
    agent.set("visits", 4)


class Watched(Agent):
    """Keeps the encoded values that were perturbed."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.readings, perturb = [], self._answerer._perturb
        self._answerer._perturb = lambda survey, encoded: (
            self.readings.extend(encoded) or perturb(survey, encoded)
        )


def test_a_missing_value_is_answered_as_missing_and_pinned_as_such(tmp_path, clock, collector) -> None:
    with Watched(
        tmp_path / "l.db", "http://c.invalid", budget=9.0, clock=clock, http=collector, **SETUP
    ) as agent:
        agent.register(HEALTH)
        agent.register(VISIT_COUNT)
        agent.enrol(HEALTH_SURVEY)
        agent.enrol(VISITS_SURVEY)
        assert len(agent.answer()) == 2
        assert agent.readings == [HEALTH.size, VISIT_COUNT.size]
        with pytest.raises(AttributeRefusedError, match="pinned"):
            agent.set("visits", 3)
        agent.set("health", "no such label")
        clock.now_s += DAY_S
        agent.answer()
        assert agent.readings[2:] == [HEALTH.size]


def test_an_evolving_value_is_never_written_down(open_agent, tmp_path) -> None:
    labels = [f"label-{i}-0e4f8a" for i in range(4)]
    agent = open_agent()
    agent.register(Attribute.labels("mood", labels, kind="evolving"))
    before = agent._ledger.attributes()
    agent.set("mood", labels[2])
    assert agent._ledger.attributes() == before
    agent.close()
    agent = open_agent()
    assert agent._values._unpinned == {}


def test_enrolment_reserves_the_whole_schedule_or_refuses(open_agent) -> None:
    agent = open_agent(budget=2.5)
    refused = agent.enrol(HEALTH_SURVEY)  # three rounds of 1.0
    assert (refused.status, refused.reason, refused.accepted) == ("refused", "over_budget", False)
    assert agent.status().committed == 0.0
    assert agent.answer() == ()
    shorter = changed(LABELS, rounds="2")
    assert agent.enrol(shorter).accepted
    assert agent.status().committed == pytest.approx(2.0, abs=1e-9)


def test_schedules_that_fill_the_budget_exactly_fit(open_agent) -> None:
    agent = open_agent(budget=3.0)
    assert agent.enrol(HEALTH_SURVEY).accepted
    assert agent.enrol(changed(LABELS, version="2", epsilon="0.001")).reason == "over_budget"


@pytest.mark.parametrize(
    ("survey", "settings", "reason"),
    [
        (Survey.parse(VISITS.replace('id = "visits"', 'id = "age"')), {}, "unknown_attribute"),
        (Survey.parse(VISITS.replace("20\n", "19\n").replace("20]", "19]")), {}, "domain_mismatch"),
        (changed(VISITS, kind='"evolving"'), {}, "domain_mismatch"),
        (changed(VISITS), {"policy": Policy(2.9, require_opt_in="no")}, "over_policy"),
        (changed(VISITS), {"budget": 2.9, "policy": Policy(5.0, require_opt_in="no")}, "over_budget"),
        (changed(VISITS, start="2025-12-30T00:00:00Z"), {}, "expired"),
    ],
)
def test_enrolment_is_refused_with_its_reason(open_agent, survey, settings, reason) -> None:
    agent = open_agent(**settings)
    enrolment = agent.enrol(survey)
    assert (enrolment.status, enrolment.reason) == ("refused", reason)
    assert agent.status().enrolments == ()


def test_a_policy_that_is_no_number_is_refused() -> None:
    with pytest.raises(ClientError, match="max_epsilon must be above 0, got nan"):
        Policy(float("nan"))


def test_enrolling_again_reserves_nothing_again(open_agent) -> None:
    agent = open_agent(budget=3.0)
    assert agent.enrol(HEALTH_SURVEY).status == "enrolled"
    committed = agent.status().committed
    assert agent.enrol(HEALTH_SURVEY).status == "already_enrolled"
    agent.close()
    agent = open_agent(budget=3.0)
    again = agent.enrol(Survey.from_canonical(HEALTH_SURVEY.canonical))
    assert (again.status, again.reason, again.accepted) == ("already_enrolled", None, True)
    assert agent.status().committed == committed


def test_a_round_that_went_by_is_forfeited_and_stays_reserved(open_agent, collector, clock) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    clock.now_s = HEALTH_SURVEY.round_start_s(1)
    assert [a.round for a in agent.answer()] == [1]
    clock.now_s = HEALTH_SURVEY.round_end_s(2)
    assert agent.answer() == ()
    status = agent.status()
    assert 0.9 < status.loss <= 1.0
    assert 2.9 < status.committed <= 3.0
    assert [e.high_water for e in status.enrolments] == [1]


def test_a_clock_that_jumps_answers_no_round_twice_and_loses_none(open_agent, clock) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    agent.enrol(VISITS_SURVEY)
    made = []
    for day in (1, 0, 1, -5, 0, 1, 2, 0, 1, 2, 900, 0):
        clock.now_s = START_S + day * DAY_S
        made += [(answer.survey_id, answer.round) for answer in agent.answer()]
        if day == 0:
            agent.close()
            agent = open_agent()
    assert sorted(made) == [
        *(("outpatient-visits", number) for number in range(2)),
        *(("self-rated-health", number) for number in range(3)),
    ]
    assert 2.99 < agent.status().loss - _visits_loss(agent) <= 3.0


def _visits_loss(agent: Agent) -> float:
    column = VISITS_SURVEY.channel.log_likelihood(
        agent._state.filter_state.recorded[VISITS_SURVEY.digest, MEMOISED]
    )
    return column.max() - column.min()


def test_a_survey_that_has_begun_reserves_only_what_is_left(open_agent, clock) -> None:
    clock.now_s = HEALTH_SURVEY.round_start_s(2)
    agent = open_agent(budget=1.0)
    assert agent.enrol(HEALTH_SURVEY).accepted
    clock.now_s = HEALTH_SURVEY.round_start_s(0)
    assert agent.answer() == ()
    clock.now_s = HEALTH_SURVEY.round_start_s(2)
    assert [a.round for a in agent.answer()] == [2]


def test_nothing_is_answered_before_the_start(open_agent, clock) -> None:
    clock.now_s = START_S - 100
    agent = open_agent()
    assert agent.enrol(HEALTH_SURVEY).accepted
    assert agent.answer() == ()
    clock.now_s = START_S
    assert [a.round for a in agent.answer()] == [0]


def test_a_restart_rebuilds_the_filter_to_the_last_quantum(open_agent, clock) -> None:
    agent = open_agent()
    for survey in (HEALTH_SURVEY, VISITS_SURVEY, changed(VISITS, version="2")):
        agent.enrol(survey)
    for _ in range(2):
        agent.answer()
        before = agent.status()
        agent.close()
        agent = open_agent()
        assert agent.status() == before
        assert (
            agent._state.filter_state.open.keys()
            == {(row.digest, row.slot) for row in agent._ledger.transcript() if row.kind == "reserve"}
            - agent._state.filter_state.recorded.keys()
        )
        clock.now_s += DAY_S


def test_the_lifetime_budget_cannot_be_changed(open_agent) -> None:
    open_agent(budget=2.0).close()
    for budget in (1.0, 3.0):
        with pytest.raises(BudgetFixedError):
            open_agent(budget=budget)


def test_a_second_agent_on_the_same_ledger_is_locked_out(open_agent) -> None:
    agent = open_agent()
    with pytest.raises(LedgerLockedError):
        open_agent()
    agent.enrol(HEALTH_SURVEY)
    assert len(agent.answer()) == 1


def test_an_attribute_cannot_be_registered_anew(open_agent) -> None:
    agent = open_agent()
    agent.register(VISIT_COUNT)
    for other in (
        Attribute.integer("visits", 0, 21, kind="static"),
        Attribute.integer("visits", 0, 20, kind="evolving"),
    ):
        with pytest.raises(AttributeRefusedError, match="first registered"):
            agent.register(other)
    with pytest.raises(AttributeRefusedError, match="registered first"):
        agent.set("height", 170)


@pytest.mark.parametrize(
    "damage",
    [
        ("DROP TRIGGER survey_is_fixed", "UPDATE enrolment SET canonical = x'00'"),
        ("DROP TRIGGER pin_holds", "UPDATE attribute SET pinned = x'cd0fff'"),
    ],
)
def test_a_ledger_whose_parts_do_not_fit_is_refused(open_agent, tmp_path, damage) -> None:
    agent = open_agent()
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    for statement in damage:
        db.execute(statement)
    db.close()
    with pytest.raises(LedgerCorruptError):
        agent = open_agent()
        agent.enrol(changed(VISITS, version="2"))
        agent.answer()
    agent.close()
    Agent(tmp_path / "other.db", "https://c.invalid", budget=1.0).close()  # the lock was given up too


def test_after_a_failed_write_nothing_is_answered_until_reopened(open_agent, clock, monkeypatch) -> None:
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    loss = agent.status().loss
    urandom = os.urandom
    monkeypatch.setattr(
        os, "urandom", lambda n: b"i" * 15 if n == 16 else urandom(n)
    )  # an id that is refused
    with pytest.raises(Exception, match="report id"):
        agent.answer()
    assert agent.status().loss == loss  # refused before the ledger: still usable
    monkeypatch.undo()
    agent._ledger._db.execute("DROP TABLE outbox")
    with pytest.raises(LedgerError):
        agent.answer()
    with pytest.raises(LedgerError, match="opened again"):
        agent.answer()


def test_surveys_are_fetched_and_unreadable_ones_left_out(open_agent, collector) -> None:
    agent = open_agent()
    with pytest.raises(TransportError):
        agent.fetch_surveys()
    collector.surveys = Response(
        200, wire.encode_surveys([HEALTH_SURVEY.canonical, b"?", VISITS_SURVEY.canonical])
    )
    assert agent.fetch_surveys() == (HEALTH_SURVEY, VISITS_SURVEY)
    for bad in (Response(200, b"<html>"), Response(500, b""), Response(302, b"")):
        collector.surveys = bad
        with pytest.raises(TransportError):
            agent.fetch_surveys()


def test_uploads_keep_to_their_cap_and_leave_nothing_behind(open_agent, collector, clock) -> None:
    survey = changed(LABELS, rounds="20", epsilon="0.1")
    agent = open_agent(limits=Limits(max_reports=8, gap_s=0.0))
    agent.enrol(survey)
    for r in range(20):
        clock.now_s = survey.round_start_s(r)
        agent.answer()
    assert len(agent.upload().settled) == 20
    assert [len(Collector.reports(body)) for body in collector.bodies] == [8, 8, 4]


def test_uploads_keep_their_distance(open_agent, collector, clock) -> None:
    survey = changed(LABELS, rounds="3", epsilon="0.1")
    agent = open_agent(limits=Limits(max_reports=2, gap_s=5.0))
    agent.enrol(survey)
    for r in range(3):
        clock.now_s = survey.round_start_s(r)
        agent.answer()
    first = agent.upload()
    assert (len(first.settled), first.waiting, first.wait_s) == (2, 1, 5.0)
    clock.now_s += 5
    assert agent.upload().waiting == 0


def test_reports_that_go_apart_go_one_by_one_at_drawn_times(open_agent, collector, clock) -> None:
    survey = changed(LABELS, rounds="4", epsilon="0.1")
    agent = open_agent(limits=Limits(max_reports=1, gap_s=60.0, spread_s=3600.0))
    agent.enrol(survey)
    for r in range(4):
        clock.now_s = survey.round_start_s(r)
        agent.answer()
    waits = []
    while (outcome := agent.upload()).waiting:
        assert len(outcome.settled) == 1
        assert not agent.upload().settled
        waits.append(outcome.wait_s)
        clock.now_s += outcome.wait_s
    assert [len(Collector.reports(body)) for body in collector.bodies] == [1] * 4
    assert waits == [60.0 + 0.5 * 3600.0] * 3  # the harness draws 0.5


VALUE = 77_654_321.125


def test_a_value_is_in_no_error_no_log_and_no_representation(tmp_path, clock, collector, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    weight = Attribute.number("weight", 0.0, 1e9, kind="static")
    survey = Survey.parse(
        VISITS.split("[attribute]")[0]
        + '[attribute]\nid = "weight"\nkind = "static"\ntype = "number"\nlow = 0.0\nhigh = 1e9\n'
        + '[mechanism]\nname = "boosted"\nkernel = "uniform"\nregion = "absolute"\n'
        + "half_width = 2e8\npoints = 11\n"
    )
    told: list[str] = []
    agent = Agent(
        tmp_path / "l.db",
        "http://c.invalid",
        budget=9.0,
        clock=clock,
        http=collector,
        policy=AGREED,
        limits=FAST,
    )
    agent.register(weight)
    agent.set("weight", VALUE)
    agent.enrol(survey)
    agent._ledger._db.execute("DROP TABLE outbox")
    for attempt in (agent.answer, agent.answer):
        try:
            attempt()
        except LedgerError:
            told.append(traceback.format_exc())
    agent.close()
    agent = Agent(
        tmp_path / "m.db",
        "http://c.invalid",
        budget=9.0,
        clock=clock,
        http=collector,
        policy=AGREED,
        limits=FAST,
    )
    agent.register(weight)
    agent.set("weight", VALUE)
    agent.enrol(survey)
    agent.answer()
    for wrong in (1.0, None, "x" * 10):
        try:
            agent.set("weight", wrong)
        except AttributeRefusedError:
            told.append(traceback.format_exc())
    agent.upload()
    told += [repr(agent), str(agent), repr(agent.status()), repr(agent._state.filter_state), caplog.text]
    agent.close()
    assert len(told) == 10
    assert not any(str(VALUE)[:8] in text or "77654321" in text for text in told)


def test_the_background_never_raises_into_the_host(tmp_path, collector) -> None:
    calls = threading.Event()

    def broken_clock() -> float:
        if threading.current_thread() is not threading.main_thread():
            calls.set()
            raise RuntimeError("clock")
        return START_S

    agent = Agent(
        tmp_path / "l.db", "http://c.invalid", budget=9.0, clock=broken_clock, http=collector, **SETUP
    )
    agent.register(HEALTH)
    agent.enrol(HEALTH_SURVEY)
    agent.run_background(poll_s=3600.0)
    assert calls.wait(10)
    agent._background.thread.join(0.2)  # it waits for its next turn, alive
    assert agent._background.thread.is_alive()
    status = agent.status()
    assert (status.background_errors, status.last_error) == (1, "RuntimeError")
    agent.close()


def test_the_background_answers_and_uploads(tmp_path, clock, collector) -> None:
    sent = threading.Event()
    answered = collector.reply

    def reply(reports: list[wire.Report]) -> Response | None:
        sent.set()
        return answered(reports)

    collector.reply = reply
    with Agent(
        tmp_path / "l.db", "http://c.invalid", budget=9.0, clock=clock, http=collector, **SETUP
    ) as agent:
        agent.register(HEALTH)
        agent.enrol(HEALTH_SURVEY)
        agent.run_background(poll_s=3600.0)
        assert sent.wait(10)
    assert len(collector.received) == 1


def test_closing_does_not_wait_for_a_collector_that_never_answers(
    tmp_path, clock, collector, monkeypatch
) -> None:
    """What was on its way is still in the outbox, and the next agent sends the same bytes."""
    monkeypatch.setattr(background_module, "_PATIENCE_S", 0.05)
    asked, released = threading.Event(), threading.Event()
    accept = collector.reply

    def drawn_out(reports: list[wire.Report]) -> Response | None:
        asked.set()
        assert released.wait(30)
        return accept(reports)

    collector.reply = drawn_out
    agent = Agent(tmp_path / "l.db", "http://c.invalid", budget=9.0, clock=clock, http=collector, **SETUP)
    agent.register(HEALTH)
    agent.enrol(HEALTH_SURVEY)
    agent.run_background(poll_s=3600.0)
    assert asked.wait(10)
    background = agent._background.thread
    agent.close()
    assert background.is_alive()
    with Agent(
        tmp_path / "l.db", "http://c.invalid", budget=9.0, clock=clock, http=collector, **SETUP
    ) as again:
        released.set()
        background.join(10)
        assert not background.is_alive()
        assert again.status().waiting == 1  # the closed agent settled nothing
        collector.reply = accept
        assert set(again.upload().settled.values()) == {"accepted"}
    assert len(set(collector.bodies)) == 1 < len(collector.bodies)


@pytest.mark.parametrize(
    "url", ["", "collector:8080", "ftp://c", "http://", "file:///etc/passwd", "http://[", "http://c:x"]
)
def test_a_collector_address_must_be_http(url: str) -> None:
    with pytest.raises(TransportError, match="must be http"):
        HttpTransport(url)


@pytest.mark.parametrize("rest", ["@collect.example.org", ":word@c.example", "?survey=1", "#x"])
def test_a_collector_address_ends_after_its_path(rest: str) -> None:
    with pytest.raises(TransportError, match=r"must end after host, port and path, got one with '.'$"):
        HttpTransport(f"https://127.0.0.1{rest}", plain_http="anywhere")


@pytest.mark.parametrize(
    "url",
    [
        "http://collect.example.org",
        "http://10.0.0.7:8780",
        "http://[fe80::1]:8780",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org",
        "HTTP://collect.example.org",
    ],
)
def test_plain_http_to_another_machine_must_be_asked_for(url: str, tmp_path: Path) -> None:
    rule = (
        r"collector URL must be https://, or http:// to this machine; elsewhere plain http must be asked for"
    )
    with pytest.raises(TransportError, match=rule):
        Agent(tmp_path / "l.db", url, budget=9.0, upload_password=16 * "p")
    assert list(tmp_path.iterdir()) == []
    Agent(tmp_path / "l.db", url, budget=9.0, plain_http="anywhere").close()


@pytest.mark.parametrize(
    "url",
    [
        "https://c.example",
        "http://127.0.0.1:1",
        "http://127.8.9.1",
        "http://[::1]:1",
        "http://localhost:8780",
    ],
)
def test_tls_goes_anywhere_and_plain_http_to_this_machine(url: str) -> None:
    HttpTransport(url).close()


def test_an_agent_takes_no_source_of_randomness() -> None:
    import inspect

    assert not {"source", "seed", "random"} & set(inspect.signature(Agent.__init__).parameters)
    assert not {"source", "seed"} & set(inspect.signature(Agent.answer).parameters)


def test_report_ids_come_from_the_operating_system(open_agent, monkeypatch) -> None:
    drawn: list[bytes] = []
    real = os.urandom

    def urandom(n: int) -> bytes:
        drawn.append(real(n))
        return drawn[-1]

    monkeypatch.setattr("hubbub_client.agent.agent.os.urandom", urandom)
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    (answer,) = agent.answer()
    assert answer.id in drawn and len(answer.id) == 16


@pytest.mark.parametrize("now_s", [math.nan, math.inf, -math.inf, 2**63, -1e300])
def test_a_clock_that_says_no_time_is_not_trusted(open_agent, clock, collector, now_s) -> None:
    """Such a number would not fit the ledger, and a write that fails closes it."""
    agent = open_agent()
    agent.enrol(HEALTH_SURVEY)
    clock.now_s = now_s
    assert agent.enrol(VISITS_SURVEY).reason == "clock_not_trusted"
    assert agent.answer() == ()
    agent.upload()
    clock.now_s = START_S + 10
    assert len(agent.answer()) == 1
    clock.now_s = now_s
    agent.upload()
    assert collector.bodies == []
    clock.now_s = START_S + 10
    agent.upload()
    assert len(collector.received) == 1
