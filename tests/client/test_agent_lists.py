"""Lists of surveys that a device takes, and cancellations: signed, in order, for good."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import agent_harness
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import (
    DAY_S,
    HEALTH_SURVEY,
    VISITS_SURVEY,
    Clock,
    Collector,
    changed,
    opener,
)
from surveys import LABELS, START_S, small

from hubbub import Survey
from hubbub.survey.signed_list import SurveyList, public_text
from hubbub.wire.report import encode_surveys
from hubbub_client import Agent, ClientError, LedgerForeignError, ListRefusedError
from hubbub_client.upload.transport import Response

KEY, NEXT, STRANGER = (Ed25519PrivateKey.from_private_bytes(bytes([i]) * 32) for i in (1, 2, 3))
PINNED = public_text(KEY)
ISSUED_S, EXPIRES_S = START_S, START_S + 10 * DAY_S


def listed(
    sequence: int,
    *surveys: Survey,
    cancelled: tuple[Survey, ...] = (),
    key: Ed25519PrivateKey = KEY,
    expires_s: int = EXPIRES_S,
) -> bytes:
    digests = tuple(survey.digest for survey in cancelled)
    canonicals = tuple(survey.canonical for survey in surveys)
    return SurveyList(sequence, ISSUED_S, expires_s, canonicals, digests).signed(key)


@pytest.fixture
def open_agent(tmp_path: Path, clock: Clock, collector: Collector):
    with opener(tmp_path, clock, collector) as make:
        yield lambda budget=10.0, **settings: make(budget, **{"survey_key": PINNED, **settings})


def refused(agent: Agent, data: bytes) -> str:
    with pytest.raises(ListRefusedError) as caught:
        agent.read_surveys(data)
    return caught.value.reason


# Which lists are taken.


def test_a_signed_list_is_fetched_and_its_surveys_can_be_joined(open_agent, collector: Collector) -> None:
    collector.surveys = Response(200, listed(1, HEALTH_SURVEY, VISITS_SURVEY))
    agent = open_agent()
    assert agent.fetch_surveys() == (HEALTH_SURVEY, VISITS_SURVEY)
    assert agent.status().survey_lists == "signed"
    assert agent.enrol(HEALTH_SURVEY).accepted


def test_lists_that_are_not_of_the_pinned_key_are_refused_with_a_reason(open_agent, clock: Clock) -> None:
    agent = open_agent()
    assert refused(agent, encode_surveys([HEALTH_SURVEY.canonical])) == "unsigned"
    assert refused(agent, listed(1, key=STRANGER)) == "wrong_signature"
    assert refused(agent, b"\x93nothing") == "unreadable"
    clock.now_s = None
    assert refused(agent, listed(1)) == "clock_not_trusted"
    clock.now_s = EXPIRES_S
    assert refused(agent, listed(1)) == "expired"


def test_without_a_pinned_key_every_list_is_read_and_nothing_of_it_cancels(open_agent) -> None:
    agent = open_agent(survey_key=None)
    assert agent.status().survey_lists == "unverified"
    assert agent.enrol(HEALTH_SURVEY).accepted
    committed = agent.status().committed
    for data in (
        encode_surveys([VISITS_SURVEY.canonical]),
        listed(5, VISITS_SURVEY, cancelled=(HEALTH_SURVEY,), key=STRANGER, expires_s=START_S + 1),
        listed(4, VISITS_SURVEY, key=STRANGER),
    ):
        assert agent.read_surveys(data) == (VISITS_SURVEY,)
    assert agent.status().committed == committed
    assert agent.status().enrolments[0].state == "active"
    assert refused(agent, b"") == "unreadable"


def test_an_older_list_is_refused_also_after_a_restart(open_agent) -> None:
    agent = open_agent()
    agent.read_surveys(listed(7, HEALTH_SURVEY))
    for _ in range(2):
        assert agent.read_surveys(listed(7, HEALTH_SURVEY)) == (HEALTH_SURVEY,)
        assert refused(agent, listed(6, HEALTH_SURVEY, VISITS_SURVEY)) == "rolled_back"
        assert refused(agent, listed(7, VISITS_SURVEY)) == "rolled_back"
        agent.forget()
        agent.close()
        agent = open_agent()
    assert agent.read_surveys(listed(8)) == ()


def test_a_clock_that_is_set_back_does_not_revive_a_list(open_agent, clock: Clock) -> None:
    agent = open_agent()
    agent.read_surveys(listed(1, HEALTH_SURVEY))
    clock.now_s = EXPIRES_S + 1
    assert refused(agent, listed(1, HEALTH_SURVEY)) == "expired"
    clock.now_s = START_S + 10
    agent.close()
    agent = open_agent()
    assert refused(agent, listed(1, HEALTH_SURVEY)) == "expired"
    # One that was seen for the first time when it had expired is no better.
    clock.now_s = EXPIRES_S + 1
    assert refused(agent, listed(2, HEALTH_SURVEY)) == "expired"
    clock.now_s = START_S + 10
    assert refused(agent, listed(2, HEALTH_SURVEY)) == "expired"
    # A clock that was ahead by mistake is healed by the next list.
    assert agent.read_surveys(listed(3, HEALTH_SURVEY)) == (HEALTH_SURVEY,)


def test_a_list_is_still_good_after_its_surveys_that_begin_later_were_joined(open_agent) -> None:
    """A round that counts as over at enrolment may be yet to come: none of these was ever answered."""
    later = Survey.parse(LABELS.replace("2026-01-01", "2026-04-01"))
    kept = small("kept", 'type = "label"\nlabels = ["a", "b"]', rounds=65, epsilon=0.5)
    changes = Survey.parse(kept + '\n[transition]\nlag = 60\nasks = "pairs"\n')
    agent = open_agent()
    agent.register(changes.attribute)
    listed_once = listed(1, later, changes)
    for _ in range(2):
        assert agent.read_surveys(listed_once) == (later, changes)
        assert agent.enrol(later).accepted and agent.enrol(changes).accepted


def test_a_round_that_was_answered_shows_that_a_list_has_expired(open_agent, clock: Clock) -> None:
    agent = open_agent()
    brief = listed(1, HEALTH_SURVEY, expires_s=START_S + DAY_S)
    agent.read_surveys(brief)
    assert agent.enrol(HEALTH_SURVEY).accepted
    clock.now_s = START_S + DAY_S + 5
    assert len(agent.answer()) == 1
    clock.now_s = START_S + 10
    assert refused(agent, brief) == "expired"


def test_keys_are_rotated_by_pinning_both_and_counting_on(open_agent) -> None:
    agent = open_agent(survey_key=[PINNED, public_text(NEXT)])
    agent.read_surveys(listed(1))
    agent.read_surveys(listed(2, key=NEXT))
    assert refused(agent, listed(1)) == "rolled_back"
    agent.read_surveys(listed(2, key=KEY))  # the same list, signed by both
    agent.read_surveys(listed(99, key=KEY))  # stolen: it shuts the device off from all lists below
    assert refused(agent, listed(3, key=NEXT)) == "rolled_back"
    agent.close()
    agent = open_agent(survey_key=public_text(NEXT))
    assert refused(agent, listed(100)) == "wrong_signature"
    assert agent.read_surveys(listed(3, HEALTH_SURVEY, key=NEXT)) == (HEALTH_SURVEY,)


@pytest.mark.parametrize("key", ["", "00", [], ["00" * 32, "?"]])
def test_what_is_no_key_cannot_be_pinned(open_agent, key) -> None:
    with pytest.raises(ClientError, match=r"survey.key"):
        open_agent(survey_key=key)


# Cancellation.


def test_a_cancellation_frees_unanswered_rounds_and_keeps_the_loss_of_the_others(
    open_agent, clock: Clock, collector: Collector
) -> None:
    agent = open_agent(4.0)
    agent.read_surveys(listed(1, HEALTH_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    agent.set("health", "good")
    agent.answer()
    agent.set("health", "fair")
    before = agent.status()
    assert before.committed == pytest.approx(3.0, abs=1e-6) and before.waiting == 1
    assert agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY,))) == ()
    status = agent.status()
    assert status.loss == pytest.approx(before.loss, abs=1e-9)
    assert status.committed == pytest.approx(before.loss, abs=1e-9)
    assert (status.waiting, status.enrolments[0].state) == (0, "cancelled")
    clock.now_s += DAY_S
    assert agent.answer() == ()
    assert agent.upload().settled == {} and collector.bodies == []
    other = changed(LABELS, version="2")
    assert agent.enrol(other).accepted  # two rounds of it: what came back is really free
    assert agent.status().committed <= 4.0


def test_the_memo_of_a_cancelled_survey_is_not_sent_again(
    open_agent, clock: Clock, collector: Collector
) -> None:
    agent = open_agent()
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    agent.upload()
    before = agent.status()
    agent.read_surveys(listed(1, cancelled=(VISITS_SURVEY,)))
    clock.now_s += DAY_S
    assert agent.answer() == ()
    agent.upload()
    assert len(collector.received) == 1
    after = agent.status()
    assert (after.loss, after.committed) == (before.loss, before.committed)
    assert len(agent.sent()) == 1


def test_a_cancelled_survey_can_never_be_joined_again(open_agent, tmp_path: Path) -> None:
    agent = open_agent()
    agent.read_surveys(listed(1, HEALTH_SURVEY, VISITS_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY, VISITS_SURVEY)))  # the second was never joined
    for _ in range(2):
        for survey in (HEALTH_SURVEY, VISITS_SURVEY):
            assert agent.enrol(survey).reason == "cancelled"
        agent.opt_out(HEALTH_SURVEY)
        agent.forget()
        # A list that was restored by mistake, and one that nobody verifies, offer it in vain.
        assert agent.read_surveys(listed(3, HEALTH_SURVEY, VISITS_SURVEY)) == ()
        agent.close()
        agent = open_agent(survey_key=None)
        assert agent.read_surveys(encode_surveys([HEALTH_SURVEY.canonical])) == ()
        assert [e.state for e in agent.status().enrolments] == ["cancelled"]
        agent.close()
        agent = open_agent()
    agent.close()
    db = sqlite3.connect(tmp_path / "ledger.db")
    for statement in (
        "DELETE FROM cancelled",
        "UPDATE cancelled SET digest = zeroblob(16)",
        "UPDATE enrolment SET state = 'active'",
        "INSERT INTO transcript (kind, ticket, enrolment, slot, generation) VALUES (0, 9, 1, 0, 0)",
        "INSERT INTO answer (enrolment, round, generation, id) VALUES (1, 0, 0, zeroblob(16))",
        "UPDATE survey_list SET sequence = 1",
        "DELETE FROM survey_list",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"stays|older list"):
            db.execute(statement)
    db.close()


def test_a_cancellation_seen_again_changes_nothing(open_agent) -> None:
    agent = open_agent()
    agent.read_surveys(listed(1, HEALTH_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    agent.answer()
    agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY,)))
    before = agent.status()
    for sequence in (2, 3):
        agent.read_surveys(listed(sequence, cancelled=(HEALTH_SURVEY,)))
        assert agent.status() == before
    agent.close()
    assert open_agent().status() == before


def test_what_was_given_up_before_stays_spent(open_agent) -> None:
    """A corrected value's old reservation and everything before a `forget` do not come back."""
    agent = open_agent(20.0)
    agent.read_surveys(listed(1, VISITS_SURVEY, HEALTH_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    agent.forget()
    spent = agent.status().committed
    assert spent == pytest.approx(3.0, abs=1e-6)
    agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY,)))
    assert agent.status().committed == spent

    second = Survey.parse(VISITS_TWICE)
    agent.set("visits", 3)
    agent.enrol(VISITS_SURVEY)
    agent.answer()
    agent.enrol(second)  # pending on the value 3
    agent.correct("visits", 4)  # forfeited there, pending on the value 4
    before = agent.status().committed
    agent.read_surveys(listed(3, cancelled=(HEALTH_SURVEY, second)))
    after = agent.status().committed
    assert before - after == pytest.approx(1.0, abs=1e-6)
    assert after > spent + 3.0


def test_a_kept_value_goes_with_the_last_round_that_waited_for_it(open_agent, tmp_path: Path) -> None:
    agent = open_agent()
    agent.read_surveys(listed(1, HEALTH_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    agent.set("health", "poor")
    agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY,)))
    agent.close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        assert db.execute("SELECT count(*) FROM reading").fetchone() == (0,)


def test_a_refused_list_cancels_nothing(open_agent, clock: Clock) -> None:
    agent = open_agent()
    agent.read_surveys(listed(5, HEALTH_SURVEY))
    agent.enrol(HEALTH_SURVEY)
    before = agent.status()
    assert refused(agent, listed(4, cancelled=(HEALTH_SURVEY,))) == "rolled_back"
    assert refused(agent, listed(6, cancelled=(HEALTH_SURVEY,), key=STRANGER)) == "wrong_signature"
    clock.now_s = EXPIRES_S
    assert refused(agent, listed(6, cancelled=(HEALTH_SURVEY,))) == "expired"
    assert agent.status() == before


VISITS_TWICE = small(
    "visits-again", 'type = "integer"\nlow = 0\nhigh = 20', attribute="visits", kind="static", rounds=2
)


def test_a_copy_from_before_a_tombstone_counts_as_set_back(open_agent, tmp_path: Path) -> None:
    class Counter:
        value = 0

        def read(self) -> int:
            return self.value

        def advance(self, to: int) -> None:
            self.value = to

    counter = Counter()
    agent = open_agent(counter=counter)
    agent.read_surveys(listed(1, HEALTH_SURVEY))
    agent.close()
    before = (tmp_path / "ledger.db").read_bytes()
    agent = open_agent(counter=counter)
    agent.read_surveys(listed(2, cancelled=(HEALTH_SURVEY,)))
    agent.close()
    open_agent(counter=counter).close()
    (tmp_path / "ledger.db").write_bytes(before)
    with pytest.raises(LedgerForeignError, match="older copy"):
        open_agent(counter=counter)


@pytest.mark.parametrize("statement", [*range(1, 48), 60, 80])
def test_a_kill_leaves_a_cancellation_whole_or_not_at_all(
    tmp_path: Path, clock: Clock, collector: Collector, statement: int
) -> None:
    """The process dies before its n-th SQL statement, opening included: some fifty."""
    path = tmp_path / "ledger.db"
    with opener(tmp_path, clock, collector) as make:
        agent = make(survey_key=PINNED)
        agent.read_surveys(listed(1, HEALTH_SURVEY))
        agent.enrol(HEALTH_SURVEY)
        agent.answer()
        before = agent.status()
    cancellation = listed(2, cancelled=(HEALTH_SURVEY,))
    child = os.fork()
    if child == 0:
        agent_harness.die_before_statement(statement)
        with opener(tmp_path, clock, collector) as make:
            make(survey_key=PINNED).read_surveys(cancellation)
        os._exit(0)
    died = os.waitpid(child, 0)[1] == 9
    assert died or statement > 40
    db = sqlite3.connect(path)
    tombstones = db.execute("SELECT count(*) FROM cancelled").fetchone()[0]
    (sequence,) = db.execute("SELECT sequence FROM survey_list").fetchone()
    db.close()
    with opener(tmp_path, clock, collector) as make:
        agent = make(survey_key=PINNED)
        found = agent.status()
        assert sequence == 1 + tombstones
        assert found.enrolments[0].state == ("cancelled" if tombstones else "active")
        assert found.waiting == before.waiting - tombstones
        assert (found.committed < before.committed - 1.9) == bool(tombstones)
        agent.read_surveys(cancellation)
        assert agent.status().committed == pytest.approx(before.loss, abs=1e-9)
        assert agent.status().enrolments[0].state == "cancelled"
