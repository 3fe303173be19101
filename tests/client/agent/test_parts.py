"""The parts of an agent, each by itself on a real ledger: no network, no lock, and the time is handed in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from devices import AGREED, DAY_S, HEALTH, HEALTH_SURVEY, VISIT_COUNT, VISITS_SURVEY
from surveys import START_S

from hubbub.survey.signed_list import SurveyList
from hubbub_client import AttributeRefusedError, ListRefusedError
from hubbub_client.agent.answerer import Answerer
from hubbub_client.agent.device_state import DeviceState
from hubbub_client.agent.enrolments import Enrolments
from hubbub_client.agent.signed_lists import SignedLists
from hubbub_client.agent.values import Values
from hubbub_client.ledger.ledger import Ledger
from hubbub_client.surveys.schedule import MEMOISED

NOW_S = float(START_S + 10)
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)


class Parts:
    """The parts that share one state."""

    def __init__(self, ledger: Ledger) -> None:
        self.state = DeviceState(ledger)
        self.values = Values(self.state)
        self.enrolments = Enrolments(self.state, AGREED)
        self.answerer = Answerer(self.state, self.values)
        self.lists = SignedLists(self.state, self.values, (KEY.public_key().public_bytes_raw(),))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / "ledger.db", budget=10.0)
    yield made
    made.close()


@pytest.fixture
def parts(ledger: Ledger) -> Parts:
    made = Parts(ledger)
    made.values.register(HEALTH)
    made.values.register(VISIT_COUNT)
    return made


def test_the_state_is_what_another_reading_of_the_ledger_finds(parts: Parts, ledger: Ledger) -> None:
    parts.values.set("visits", 4, now_s=NOW_S)
    for survey in (HEALTH_SURVEY, VISITS_SURVEY):
        assert parts.enrolments.enrol(survey, now_s=NOW_S).accepted
    parts.values.set("health", "good", now_s=NOW_S)
    parts.answerer.answer(now_s=NOW_S)
    again = DeviceState(ledger)
    for name in ("attributes", "surveys", "answered", "kept", "refusals", "cancelled", "lists"):
        assert getattr(again, name) == getattr(parts.state, name), name
    assert again.filter_state.recorded == parts.state.filter_state.recorded
    assert again.filter_state.open == parts.state.filter_state.open
    assert again.filter_state.committed == pytest.approx(parts.state.filter_state.committed, abs=1e-9)
    # The high-water mark of an answer is the ledger's alone; `answered` has it in memory.
    assert again.enrolment_statuses() == parts.state.enrolment_statuses()
    assert again.last_answered_s() == parts.state.last_answered_s() == START_S


def test_nothing_wanted_is_granted_without_the_filter_and_too_much_not_at_all(parts: Parts) -> None:
    assert parts.state.reserve([]) == []
    before = parts.state.filter_state.committed
    assert parts.state.reserve([(HEALTH_SURVEY, slot, 0) for slot in range(11)]) is None  # 11 of 1, budget 10
    assert parts.state.filter_state.committed == before


def test_a_value_is_kept_while_a_round_waits_and_read_from_there(parts: Parts, ledger: Ledger) -> None:
    parts.values.set("health", "good", now_s=NOW_S)
    assert ledger.kept_values() == []  # no round waits for it
    parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S)
    parts.values.set("health", "good", now_s=None)
    assert ledger.kept_values() == []  # no clock says that one does
    parts.values.set("health", "good", now_s=NOW_S)
    assert [each.until_s for each in ledger.kept_values()] == [START_S + DAY_S]
    reopened = Parts(ledger)
    assert reopened.values.read(HEALTH_SURVEY, 0, NOW_S) == ([HEALTH.index_of("good")], [])
    assert reopened.values.read(HEALTH_SURVEY, 0, NOW_S + DAY_S) == ([HEALTH.size], [])
    (after,) = reopened.values.after(HEALTH_SURVEY, 0, NOW_S)
    assert (after.attribute, after.value, after.past) == ("health", None, ())
    reopened.values.drop_unwaited(NOW_S)
    assert len(ledger.kept_values()) == 1
    reopened.values.drop_unwaited(NOW_S + 9 * DAY_S)
    assert ledger.kept_values() == [] and reopened.state.kept == {}


def test_reading_a_static_value_says_what_to_memoise_and_changes_nothing(
    parts: Parts, ledger: Ledger
) -> None:
    parts.values.set("visits", 4, now_s=NOW_S)
    encoded, pins = parts.values.read(VISITS_SURVEY, 0, NOW_S)
    assert encoded == [4] and [name for name, _ in pins] == ["visits"]
    assert [each.memoised for each in ledger.attributes()] == [None, None]
    parts.enrolments.enrol(VISITS_SURVEY, now_s=NOW_S)
    parts.answerer.answer(now_s=NOW_S)
    assert parts.values.read(VISITS_SURVEY, 0, NOW_S) == ([4], [])
    with pytest.raises(AttributeRefusedError, match="pinned"):
        parts.values.set("visits", 5, now_s=NOW_S)
    assert parts.values.correct("visits", 5, now_s=None).reason == "clock_not_trusted"
    assert parts.values.correct("visits", 5, now_s=NOW_S).status == "corrected"
    assert parts.values.read(VISITS_SURVEY, 0, NOW_S) == ([5], [])
    assert parts.state.pin_version(VISITS_SURVEY) == 1


def test_an_enrolment_needs_a_clock_and_reserves_every_round(parts: Parts) -> None:
    assert parts.enrolments.enrol(HEALTH_SURVEY, now_s=None).reason == "clock_not_trusted"
    assert parts.state.open_rounds(NOW_S) == [] and parts.state.refusals == {}
    assert parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S).status == "enrolled"
    assert parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S).status == "already_enrolled"
    assert sorted(slot for _, slot in parts.state.filter_state.open) == [0, 1, 2]
    assert parts.state.open_rounds(NOW_S) == [(HEALTH_SURVEY, 0)]
    parts.enrolments.opt_out("health")
    assert parts.state.open_rounds(NOW_S) == []
    assert parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S).reason == "opted_out"
    assert [each.reason for each in parts.state.refusals.values()] == ["opted_out"]


def test_an_answer_is_drawn_once_and_sent_again_under_another_id(parts: Parts, ledger: Ledger) -> None:
    parts.enrolments.enrol(VISITS_SURVEY, now_s=NOW_S)
    assert parts.answerer.answer(now_s=None) == ()
    (first,) = parts.answerer.answer(now_s=NOW_S)
    assert parts.answerer.answer(now_s=NOW_S) == ()
    memo = parts.state.filter_state.recorded[VISITS_SURVEY.digest, MEMOISED]
    (second,) = parts.answerer.answer(now_s=NOW_S + DAY_S)
    assert first.id != second.id and ledger.waiting() == 2
    assert parts.state.filter_state.recorded[VISITS_SURVEY.digest, MEMOISED] == memo
    assert [row.symbol for row in ledger.transcript() if row.kind == "record"] == [memo]
    ledger.set_paused("paused")
    assert parts.answerer.answer(now_s=NOW_S) == ()


def test_a_list_cancels_on_disk_and_gives_back_what_was_not_drawn(parts: Parts, ledger: Ledger) -> None:
    parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S)
    reserved = parts.state.filter_state.committed
    ends = SurveyList(1, START_S, START_S + 9 * DAY_S, (VISITS_SURVEY.canonical,), (HEALTH_SURVEY.digest,))
    data = ends.signed(KEY)
    with pytest.raises(ListRefusedError) as caught:
        parts.lists.take(data, now_s=None)
    assert caught.value.reason == "clock_not_trusted" and ledger.cancelled() == frozenset()
    assert parts.lists.take(data, now_s=NOW_S) == (VISITS_SURVEY.canonical,)
    assert ledger.cancelled() == parts.state.cancelled == {HEALTH_SURVEY.digest}
    assert parts.state.open_rounds(NOW_S) == []
    assert reserved > 2.9 and parts.state.filter_state.committed == pytest.approx(0.0, abs=1e-9)
    assert parts.enrolments.enrol(HEALTH_SURVEY, now_s=NOW_S).reason == "cancelled"
