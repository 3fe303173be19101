"""One verdict per report, tallies that add up, and a state that no bad record can touch."""

from __future__ import annotations

import numpy as np
import pytest
from counting_logs import MINUTE, announcement, batch, counted, report_id, segment
from surveys import LABELS, VISITS

from hubbub.survey.survey import Survey
from hubbub.wire.record import NO_ROUND, SealRecord, Segment, encode_record
from hubbub_aggregator.counting.counting import apply, apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.errors import GapError

HEALTH = Survey.parse(LABELS)
DAY = 24 * 60


def reports(*symbols: int, start: int = 0) -> list[tuple[bytes, int]]:
    return [(report_id(start + i), symbol) for i, symbol in enumerate(symbols)]


def applied(*records: bytes, survey: Survey = HEALTH) -> PartitionState:
    state = PartitionState()
    for offset, record in enumerate([announcement(survey), *records]):
        state.commit(apply(state, offset, record))
    return state


def seal(number: int = 0, survey: Survey = HEALTH) -> bytes:
    return encode_record(SealRecord(survey.digest, number))


def test_accepted_reports_are_counted_by_symbol() -> None:
    state = applied(batch(segment(HEALTH, 0, reports(0, 1, 1, 4))))
    known = state.rounds[HEALTH.digest, 0]
    assert known.counts.tolist() == [1, 2, 0, 0, 1]
    assert known.verdicts == VerdictCounts(attempts=4, accepted=4)
    assert state.offset == 2


def test_duplicate_report_is_counted_once() -> None:
    once = batch(segment(HEALTH, 0, reports(1)))
    state = applied(once, once)
    assert state.rounds[HEALTH.digest, 0].verdicts == VerdictCounts(attempts=2, accepted=1, duplicate=1)
    assert state.rounds[HEALTH.digest, 0].counts.tolist() == [0, 1, 0, 0, 0]


def test_duplicate_within_one_batch_is_counted_once_by_its_first_symbol() -> None:
    state = applied(batch(segment(HEALTH, 0, [(report_id(1), 3), (report_id(1), 2)])))
    assert state.rounds[HEALTH.digest, 0].counts.tolist() == [0, 0, 0, 1, 0]


def test_same_id_in_another_round_or_survey_is_another_report() -> None:
    visits = Survey.parse(VISITS)
    one = reports(1)
    state = applied(
        announcement(visits),
        batch(segment(HEALTH, 0, one), segment(HEALTH, 1, one), segment(visits, 0, one), minute=MINUTE + DAY),
    )
    assert [known.verdicts.accepted for known in state.rounds.values()] == [1, 1, 1]


def test_symbol_at_or_above_the_channels_outputs_is_invalid() -> None:
    state = applied(batch(segment(HEALTH, 0, reports(4, 5, 70_000, 0))))
    known = state.rounds[HEALTH.digest, 0]
    assert known.verdicts == VerdictCounts(attempts=4, accepted=2, invalid=2)
    assert known.counts.tolist() == [1, 0, 0, 0, 1]


def test_id_of_an_invalid_report_is_not_remembered() -> None:
    state = applied(batch(segment(HEALTH, 0, [(report_id(1), 9), (report_id(1), 2)])))
    assert state.rounds[HEALTH.digest, 0].verdicts == VerdictCounts(attempts=2, accepted=1, invalid=1)


def test_round_outside_the_schedule_is_invalid_and_tallied_apart() -> None:
    state = applied(batch(segment(HEALTH, 3, reports(0, 1), late=2), minute=MINUTE + 9 * DAY))
    assert state.rounds.keys() == {(HEALTH.digest, NO_ROUND)}
    assert state.rounds[HEALTH.digest, NO_ROUND].verdicts == VerdictCounts(attempts=4, invalid=2, late=2)


@pytest.mark.parametrize(("minute", "early"), [(-7, True), (-6, False)])
def test_report_is_early_until_its_minute_may_lie_within_skew_of_the_round(minute: int, early: bool) -> None:
    # Skew is five minutes; a batch of minute m was received before m + 1.
    state = applied(batch(segment(HEALTH, 0, reports(0)), minute=HEALTH.start_s // 60 + minute))
    expected = VerdictCounts(attempts=1, early=1) if early else VerdictCounts(attempts=1, accepted=1)
    assert state.rounds[HEALTH.digest, 0].verdicts == expected


def test_each_batch_of_a_group_is_early_by_its_own_minute() -> None:
    minutes = [HEALTH.start_s // 60 + minute for minute in (-7, -6, -8, 0, -7)]
    batches = [
        batch(segment(HEALTH, 0, reports(0, start=i)), minute=minute) for i, minute in enumerate(minutes)
    ]
    state = PartitionState()
    state.commit(apply_many(state, enumerate([announcement(HEALTH), *batches])))
    assert state.rounds[HEALTH.digest, 0].verdicts == VerdictCounts(attempts=5, accepted=2, early=3)


def test_invalid_comes_before_early_and_early_before_late() -> None:
    before = HEALTH.start_s // 60 - 60
    state = applied(seal(), batch(segment(HEALTH, 0, reports(9, 0)), minute=before))
    assert state.rounds[HEALTH.digest, 0].after_seal == VerdictCounts(attempts=2, invalid=1, early=1)


def test_late_comes_before_duplicate() -> None:
    once = batch(segment(HEALTH, 0, reports(0)))
    known = applied(once, seal(), once).rounds[HEALTH.digest, 0]
    assert known.verdicts == VerdictCounts(attempts=1, accepted=1)
    assert known.after_seal == VerdictCounts(attempts=1, late=1)


def test_seal_freezes_counts_and_releases_ids_and_its_repeat_changes_nothing() -> None:
    more = batch(segment(HEALTH, 0, reports(3, start=50)))
    state = applied(batch(segment(HEALTH, 0, reports(0, 1))), seal(), more, seal())
    known = state.rounds[HEALTH.digest, 0]
    assert known.sealed_at == 2
    assert known.seen is None
    assert known.counts.sum() == 2


def test_seal_within_a_group_counts_what_came_before_it_only() -> None:
    state = PartitionState()
    records = [
        announcement(HEALTH),
        batch(segment(HEALTH, 0, reports(0, 1))),
        seal(),
        batch(segment(HEALTH, 0, reports(2, start=9))),
    ]
    change = apply_many(state, enumerate(records))
    state.commit(change)
    known = state.rounds[HEALTH.digest, 0]
    assert known.counts.tolist() == [1, 1, 0, 0, 0]
    assert known.after_seal == VerdictCounts(attempts=1, late=1)
    assert len(change.rounds[HEALTH.digest, 0].keys) == 0


def test_seal_that_precedes_the_survey_still_makes_its_round_late() -> None:
    state = PartitionState()
    records = [seal(), announcement(HEALTH), batch(segment(HEALTH, 0, reports(0)))]
    state.commit(apply_many(state, enumerate(records)))
    assert state.rounds[HEALTH.digest, 0].after_seal == VerdictCounts(attempts=1, late=1)


def test_seal_of_a_round_outside_the_schedule_is_dead() -> None:
    assert applied(seal(3)).dead == 1


def test_refusals_of_the_gateway_are_added() -> None:
    state = applied(batch(segment(HEALTH, 0, reports(0), invalid=1, early=2, late=3, over_quota=4)))
    assert state.rounds[HEALTH.digest, 0].verdicts == VerdictCounts(11, 1, 0, 2, 3, 1, 4)


def test_reports_of_an_unannounced_digest_are_unknown() -> None:
    visits = Survey.parse(VISITS)
    state = applied(batch(segment(visits, 0, reports(0, 1), late=1), unknown=4))
    assert state.unknown == 7
    assert not state.rounds


def test_survey_announced_in_the_same_group_is_known_to_what_follows() -> None:
    state = PartitionState()
    state.commit(apply_many(state, enumerate([announcement(HEALTH), batch(segment(HEALTH, 0, reports(0)))])))
    assert state.unknown == 0
    assert state.rounds[HEALTH.digest, 0].verdicts.accepted == 1


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xc1",
        b"\x93\x01\x00\xc4\x03abc",
        b"\x90",
        announcement(HEALTH)[:-1],
        announcement(HEALTH) + b"\x00",
    ],
)
def test_undecodable_record_is_counted_as_dead_and_skipped(record: bytes) -> None:
    state = applied(record, batch(segment(HEALTH, 0, reports(0))))
    assert state.dead == 1
    assert state.rounds[HEALTH.digest, 0].verdicts.accepted == 1


def test_redelivered_offsets_are_dropped() -> None:
    record = batch(segment(HEALTH, 0, reports(0)))
    state = applied(record)
    change = apply_many(state, [(0, announcement(HEALTH)), (1, record)])
    assert change.offset == change.previous == 2
    assert not change.rounds
    state.commit(change)
    assert state.rounds[HEALTH.digest, 0].verdicts.attempts == 1


def test_hole_in_the_offsets_is_a_gap_and_changes_nothing() -> None:
    state = applied()
    before = counted(state)
    with pytest.raises(GapError, match="must be 1, got 2"):
        apply(state, 2, batch(segment(HEALTH, 0, reports(0))))
    with pytest.raises(GapError):
        apply_many(state, [(1, batch(segment(HEALTH, 0, reports(0)))), (3, b"")])
    assert (counted(state), state.offset) == (before, 1)


def test_apply_leaves_the_state_as_it_is() -> None:
    state = applied(batch(segment(HEALTH, 0, reports(0, 1))))
    before = counted(state)
    change = apply(state, 2, batch(segment(HEALTH, 0, reports(2, 3, start=9))))
    again = apply(state, 2, batch(segment(HEALTH, 0, reports(2, 3, start=9))))
    assert counted(state) == before
    assert change.rounds[HEALTH.digest, 0].counts.tolist() == again.rounds[HEALTH.digest, 0].counts.tolist()


def test_change_is_committed_once() -> None:
    state = applied()
    change = apply(state, 1, batch(segment(HEALTH, 0, reports(0))))
    state.commit(change)
    with pytest.raises(ValueError, match="must start at offset 2"):
        state.commit(change)
    assert state.rounds[HEALTH.digest, 0].verdicts.attempts == 1


def test_bug_while_counting_leaves_the_state_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    state = applied(batch(segment(HEALTH, 0, reports(0))))
    before = counted(state)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("hubbub_aggregator.counting.counting.count_symbols", broken)
    with pytest.raises(RuntimeError):
        apply_many(state, [(2, batch(segment(HEALTH, 0, reports(1, start=7)))), (3, seal())])
    assert (counted(state), state.offset) == (before, 2)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_every_symbol_width_counts_alike(dtype: type[np.unsignedinteger]) -> None:
    ids = b"".join(report_id(i) for i in range(3))
    column = Segment(HEALTH.digest, 0, ids, np.array([0, 4, 4], dtype=dtype), 3, {})
    assert applied(batch(column)).rounds[HEALTH.digest, 0].counts.tolist() == [1, 0, 0, 0, 2]


@pytest.mark.parametrize("field", VerdictCounts._fields)
def test_accounting_that_is_off_by_one_does_not_hold(field: str) -> None:
    good = VerdictCounts(21, 1, 2, 3, 4, 5, 6)
    assert good.holds
    assert not good._replace(**{field: getattr(good, field) + 1}).holds


def test_negative_tally_does_not_hold() -> None:
    assert not VerdictCounts(attempts=0, accepted=1, duplicate=-1).holds
