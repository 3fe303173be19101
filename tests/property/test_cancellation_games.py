"""Whatever is cancelled by looking at answers, a device stays within its budget and says no more."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import DAY_S, Clock, Collector, changed, opener
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import LABELS, START_S, VISITS

from hubbub.survey.signed_list import SurveyList, public_text

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
SURVEYS = [
    changed(VISITS, epsilon="1.5", boost_epsilon="0.5", rounds="6"),
    changed(VISITS, version="2", epsilon="1.0", boost_epsilon="0.5", rounds="6"),
    changed(LABELS, epsilon="0.5", rounds="6"),
    changed(LABELS, version="2", epsilon="0.75", rounds="4"),
]
BUDGET = 5.0

moves = st.one_of(
    st.tuples(st.just("enrol"), st.integers(0, 3)),
    st.tuples(st.just("answer"), st.just(0)),
    st.tuples(st.just("next day"), st.just(0)),
    # The one with the survey's number, if the sum of all symbols so far is even: a choice by public facts.
    st.tuples(st.just("cancel"), st.integers(0, 3)),
    st.tuples(st.just("correct"), st.integers(0, 20)),
    st.tuples(st.just("forget"), st.just(0)),
    st.tuples(st.just("restart"), st.just(0)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(moves, max_size=18))
def test_a_device_keeps_its_budget_whatever_is_cancelled(game: list[tuple[str, int]]) -> None:
    clock, collector = Clock(START_S + 10), Collector()
    cancelled: set[int] = set()
    sequence = 0
    with tempfile.TemporaryDirectory() as folder, opener(Path(folder), clock, collector) as make:
        agent = make(BUDGET, survey_key=public_text(KEY))
        agent.set("visits", 3)
        for move, number in game:
            before = agent.status()
            allowed = {"enrol", "correct"}  # what may commit more
            if move == "enrol":
                outcome = agent.enrol(SURVEYS[number])
                assert (outcome.reason == "cancelled") == (number in cancelled)
            elif move == "answer":
                sent = len(collector.received)
                agent.answer()
                agent.upload()
                fresh = collector.received[sent:]
                assert not {r.digest for r in fresh} & {SURVEYS[i].digest for i in cancelled}
            elif move == "next day":
                clock.now_s += DAY_S
            elif move == "cancel":
                if sum(report.symbol for report in collector.received) % 2 == 0:
                    cancelled.add(number)
                sequence += 1
                digests = tuple(SURVEYS[i].digest for i in sorted(cancelled))
                listed = SurveyList(sequence, START_S, START_S + 99 * DAY_S, (), digests)
                agent.read_surveys(listed.signed(KEY))
            elif move == "correct":
                agent.correct("visits", number)
            elif move == "forget":
                agent.forget()
            else:
                agent.close()
                agent = make(None, survey_key=public_text(KEY))
            after = agent.status()
            assert after.committed <= BUDGET
            if move not in allowed:
                assert after.committed <= before.committed + 1e-12
            if move not in {"answer", "cancel"}:
                assert after.committed >= before.committed - 1e-12
            if move in {"restart", "next day", "forget"}:
                assert (after.loss, after.committed) == (before.loss, before.committed)
            # But for the one quantum that each query keeps, a cancellation changes nothing of what was said.
            if move == "cancel":
                assert abs(after.loss - before.loss) < 1e-9
            assert after.loss <= after.committed
            states = {e.digest: e.state for e in after.enrolments}
            for i in cancelled:
                assert states.get(SURVEYS[i].digest, "cancelled") == "cancelled"
