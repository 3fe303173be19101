"""What an owner can do: forget, correct, pause, leave. None of it renews a budget."""

import os
import sqlite3
from collections.abc import Callable

import agent_harness
import pytest
from devices import (
    DAY_S,
    HEALTH,
    HEALTH_SURVEY,
    VISITS_SURVEY,
    changed,
)
from surveys import LABELS, VISITS

from hubbub_client import Agent, AttributeRefusedError, LedgerCorruptError
from hubbub_client.agent.encoded_value import pack_encoded
from hubbub_client.surveys.schedule import MEMOISED


def answered(open_agent, budget: float = 10.0) -> Agent:
    """An agent with an answer to each survey: one round of three, and the pinned value."""
    agent = open_agent(budget)
    agent.set("visits", 3)
    agent.set("health", "good")
    assert agent.enrol(HEALTH_SURVEY).accepted and agent.enrol(VISITS_SURVEY).accepted
    assert len(agent.answer()) == 2
    return agent


def test_forget_keeps_what_was_spent_and_forfeits_what_was_reserved(open_agent) -> None:
    agent = answered(open_agent)
    before = agent.status()
    assert before.committed > before.loss
    agent.forget()
    for _ in range(2):
        after = agent.status()
        assert (after.loss, after.committed) == (before.loss, before.committed)
        assert (after.answers, after.waiting) == (0, 0)
        assert [e.state for e in after.enrolments] == ["left", "left"]
        assert agent.answer() == () and agent.sent() == ()
        agent.close()
        agent = open_agent()  # and the same after a restart


def test_forget_leaves_no_trace_of_a_value_or_an_answer_in_the_file(open_agent, tmp_path) -> None:
    agent = open_agent()
    agent.register(HEALTH)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.enrol(HEALTH_SURVEY)
    identifiers = [answer.id for answer in agent.answer()]
    reading = pack_encoded(3)
    db = (tmp_path / "ledger.db").read_bytes()
    assert all(identifier in db for identifier in identifiers)
    assert agent._ledger._read("SELECT pinned FROM attribute WHERE id = 'visits'") == [(reading,)]
    agent.forget()
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(identifier in left for identifier in identifiers)
    assert agent._ledger._read("SELECT DISTINCT pinned FROM attribute") == [(None,)]
    assert agent._ledger.transcript() == []


def test_a_survey_joined_again_after_forget_costs_anew(open_agent, clock) -> None:
    agent = answered(open_agent, budget=12.0)
    spent = agent.status().committed
    agent.forget()
    clock.now_s += DAY_S
    assert agent.enrol(HEALTH_SURVEY).accepted  # two rounds are left
    assert agent.enrol(VISITS_SURVEY).accepted
    assert agent.status().committed == pytest.approx(spent + 2.0 + 3.0, abs=1e-9)
    agent.set("visits", 19)  # another value than the forgotten one
    assert sorted(a.round for a in agent.answer()) == [1, 1]
    rows = [row for row in agent._ledger.transcript() if row.slot == MEMOISED]
    assert {row.pin_version for row in rows} == {1}


def test_forget_never_makes_room(open_agent) -> None:
    agent = open_agent(3.0)
    agent.enrol(HEALTH_SURVEY)
    for _ in range(3):
        agent.forget()
        small = changed(LABELS, version="2", rounds="1", epsilon="0.001")
        assert agent.enrol(small).reason == "over_budget"
        agent.close()
        agent = open_agent(3.0)


def test_a_round_answered_before_forget_is_not_answered_after_it(open_agent, collector) -> None:
    agent = answered(open_agent)
    agent.upload()
    agent.forget()
    agent.enrol(HEALTH_SURVEY)
    agent.enrol(VISITS_SURVEY)
    assert agent.answer() == ()  # the round is still open
    agent.upload()
    assert len(collector.received) == 2


def test_a_changed_sum_of_what_was_closed_is_noticed(open_agent, tmp_path) -> None:
    agent = answered(open_agent)
    agent.forget()
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    db.execute("DROP TRIGGER account_never_falls")
    db.execute("UPDATE device SET closed_loss = 0, closed_committed = 0")
    db.close()
    with pytest.raises(LedgerCorruptError, match="transcript"):
        open_agent()


def test_a_correction_is_another_generation_and_the_earlier_loss_stays(open_agent, clock, collector) -> None:
    agent = answered(open_agent)
    spent = agent.status()
    memo = agent._state.filter_state.recorded[VISITS_SURVEY.digest, MEMOISED]
    done = agent.correct("visits", 12)
    assert (done.status, done.reason) == ("corrected", None)
    after = agent.status()
    assert after.loss == spent.loss
    assert after.committed == pytest.approx(spent.committed + 3.0, abs=1e-9)
    agent.close()
    agent = open_agent()
    assert (agent.status().loss, agent.status().committed) == (after.loss, after.committed)
    clock.now_s += DAY_S
    agent.answer()
    rows = [row for row in agent._ledger.transcript() if row.slot == MEMOISED and row.kind == "record"]
    assert (rows[0].pin_version, rows[0].symbol) == (0, memo)
    assert [row.pin_version for row in rows] == [0, 1]
    assert agent.status().loss > spent.loss + 1.0  # a coordinate of its own: losses add
    agent.upload()
    sent = [r.symbol for r in collector.received if r.digest == VISITS_SURVEY.digest]
    assert sent == [row.symbol for row in rows]


def test_a_correction_that_does_not_fit_changes_nothing(open_agent, clock) -> None:
    agent = answered(open_agent, budget=6.5)
    before = agent.status()
    assert agent.correct("visits", 12).reason == "over_budget"
    assert agent.status() == before
    with pytest.raises(AttributeRefusedError, match="pinned"):
        agent.set("visits", 12)
    clock.now_s += DAY_S
    assert len(agent.answer()) == 2


def test_a_correction_to_the_same_value_or_before_any_answer_costs_nothing(open_agent) -> None:
    agent = open_agent()
    agent.enrol(VISITS_SURVEY)
    committed = agent.status().committed
    assert agent.correct("visits", 3).status == "corrected"
    agent.answer()
    assert agent.correct("visits", 3).status == "unchanged"
    assert agent.status().committed <= committed
    with pytest.raises(AttributeRefusedError, match="evolving"):
        agent.correct("health", "good")


def test_a_reservation_on_a_corrected_value_is_forfeited(open_agent) -> None:
    agent = open_agent(14.0)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    later = changed(VISITS, version="2", start="2026-01-03T00:00:00Z")
    assert agent.enrol(later).accepted
    before = agent.status().committed
    assert agent.correct("visits", 12).status == "corrected"
    # Both surveys are reserved anew on one new coordinate; the old one keeps its worst case for good.
    assert before < agent.status().committed <= before + 6.0 + 1e-9
    assert agent._state.filter_state.filter.pending


def test_what_was_reserved_for_a_corrected_value_is_never_answered(open_agent, clock) -> None:
    """The second survey is over when the value is corrected; then the clock is set back into it."""
    agent = open_agent(14.0)
    agent.set("visits", 3)
    assert agent.enrol(changed(VISITS, rounds="30")).accepted
    agent.answer()
    clock.now_s += DAY_S
    unanswered = changed(VISITS, version="2")
    assert agent.enrol(unanswered).accepted
    clock.now_s += 5 * DAY_S
    assert agent.correct("visits", 12).status == "corrected"
    clock.now_s -= 5 * DAY_S
    assert unanswered.digest not in [answer.digest for answer in agent.answer()]
    agent.close()
    agent = open_agent(14.0)
    assert unanswered.digest not in [answer.digest for answer in agent.answer()]


def test_paused_answers_and_sends_nothing_also_after_a_restart(open_agent, collector, clock) -> None:
    agent = answered(open_agent)
    agent.pause()
    assert agent.upload().failure == "paused"
    clock.now_s += DAY_S
    agent.close()
    agent = open_agent()
    assert agent.status().paused
    assert agent.answer() == ()
    assert (agent.upload().waiting, collector.bodies) == (2, [])
    agent.resume()
    assert sorted(a.round for a in agent.answer()) == [1, 1]
    assert len(agent.upload().settled) == 4


def test_opting_out_withdraws_what_waits_and_returns_nothing(open_agent, collector, clock) -> None:
    agent = answered(open_agent)
    before = agent.status()
    agent.opt_out(HEALTH_SURVEY)
    after = agent.status()
    assert (after.loss, after.committed, after.waiting) == (before.loss, before.committed, 1)
    assert [e.state for e in after.enrolments] == ["left", "active"]
    clock.now_s += DAY_S
    assert [a.survey_id for a in agent.answer()] == [VISITS_SURVEY.id]
    agent.upload()
    assert {report.digest for report in collector.received} == {VISITS_SURVEY.digest}
    assert agent.enrol(HEALTH_SURVEY).reason == "opted_out"
    agent.close()
    agent = open_agent()
    assert agent.enrol(HEALTH_SURVEY).reason == "opted_out"


def test_joining_again_answers_from_what_is_still_reserved(open_agent, clock) -> None:
    agent = answered(open_agent)
    agent.opt_out(HEALTH_SURVEY)
    before = agent.status().committed
    agent.opt_in(HEALTH_SURVEY)
    assert agent.enrol(HEALTH_SURVEY).status == "enrolled"
    assert agent.status().committed == before
    assert agent.answer() == ()  # this round was answered, and withdrawn
    clock.now_s += DAY_S
    assert len(agent.answer()) == 2
    agent.close()
    assert open_agent().status().committed <= before


def test_opting_out_of_an_attribute_leaves_every_survey_on_it(open_agent) -> None:
    agent = answered(open_agent)
    agent.opt_out("visits")
    assert [e.state for e in agent.status().enrolments] == ["active", "left"]
    agent.opt_in(VISITS_SURVEY)
    assert agent.enrol(VISITS_SURVEY).reason == "opted_out"  # a no is not overridden
    agent.opt_in("visits")
    assert agent.enrol(VISITS_SURVEY).accepted


def test_sent_shows_the_very_bytes_and_only_once_they_are_settled(open_agent, collector, clock) -> None:
    agent = answered(open_agent)
    assert agent.sent() == ()
    answer_later = collector.reply
    collector.reply = lambda _: None
    agent.upload()
    assert agent.sent() == ()  # tried is not settled
    collector.reply = answer_later
    clock.now_s += DAY_S
    agent.answer()
    agent.upload()
    sent = agent.sent()
    body = collector.bodies[-1]
    assert len(sent) == 4 and all(report.data in body for report in sent)
    assert {report.outcome for report in sent} == {"accepted"}
    memoised = [report.loss for report in sent if report.digest == VISITS_SURVEY.digest]
    assert memoised[0] > 0 == memoised[1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE device SET closed_committed = 0",
        "UPDATE device SET closed_loss = closed_loss - 1",
        "UPDATE device SET closed = 0",
        "UPDATE device SET identity = randomblob(16)",
        "UPDATE attribute SET generation = 0",
        "UPDATE enrolment SET floor = -1",
    ],
)
def test_the_file_itself_refuses_to_take_a_loss_back(open_agent, tmp_path, statement) -> None:
    agent = answered(open_agent)
    agent.forget()
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    with pytest.raises(sqlite3.IntegrityError):
        db.execute(statement)
    db.close()


def picture(agent: Agent) -> tuple[object, ...]:
    """Everything that an owner's word may change."""
    return (agent.status(), agent._ledger.attributes(), agent._ledger.transcript(), agent._ledger.consents())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "word",
    [
        lambda agent: agent.forget(),
        lambda agent: agent.correct("visits", 12),
        lambda agent: agent.opt_out(HEALTH_SURVEY),
        lambda agent: agent.pause(),
    ],
    ids=["forget", "correct", "opt_out", "pause"],
)
def test_an_owners_word_killed_anywhere_is_kept_wholly_or_not_at_all(
    open_agent, tmp_path, word: Callable[[Agent], object]
) -> None:
    """A child says the word and dies before its n-th statement, n = 1, 2, ... until it lives to say it."""
    agent = answered(open_agent)
    before = picture(agent)
    agent.close()
    start = (tmp_path / "ledger.db").read_bytes()
    word(agent := open_agent())
    after = picture(agent)
    agent.close()
    seen, number, alive = set(), 0, False
    while not alive:
        number += 1
        (tmp_path / "ledger.db").write_bytes(start)
        (tmp_path / "ledger.db-wal").unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            agent_harness.die_before_statement(number)
            word(open_agent())
            os._exit(0)
        alive = os.waitpid(child, 0)[1] == 0
        agent = open_agent()
        found = picture(agent)
        agent.close()
        assert found in (before, after)
        seen.add(found == after)
        assert number < 200
    assert seen == {False, True}
