"""A quota is judged where reports are counted: after duplicate, before accepted, in shares."""

from __future__ import annotations

import pytest
from counting_logs import MINUTE, announcement, batch, counted, report_id, segment
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.partition_map import PartitionMap, TopicPeriod
from hubbub.wire.record import SealRecord, encode_record
from hubbub_aggregator.counting.counting import apply, apply_many
from hubbub_aggregator.counting.partition import PartitionState, share_of
from hubbub_aggregator.counting.verdict_counts import VerdictCounts

DAY = 24 * 60


def survey_of(quota: int) -> Survey:
    return Survey.parse(LABELS.replace("version = 1", f"version = 1\nquota = {quota}"))


FOUR = survey_of(4)


def placed(layout: PartitionMap, partition: int = 0) -> PartitionState:
    state = PartitionState()
    state.place(layout, partition)
    return state


def applied(*records: bytes, survey: Survey = FOUR) -> PartitionState:
    """The state after the records one by one; grouped they must come to the same."""
    alone, grouped = placed(PartitionMap.of(1)), placed(PartitionMap.of(1))
    log = list(enumerate([announcement(survey), *records]))
    for offset, record in log:
        alone.commit(apply(alone, offset, record))
    grouped.commit(apply_many(grouped, log))
    assert counted(alone) == counted(grouped)
    return alone


def sent(
    *numbers: int, survey: Survey = FOUR, symbol: int = 1, minute: int = MINUTE, **refused: int
) -> bytes:
    pairs = [(report_id(number), symbol) for number in numbers]
    return batch(segment(survey, 0, pairs, **refused), minute=minute)


def tally(state: PartitionState, survey: Survey = FOUR) -> VerdictCounts:
    return state.rounds[survey.digest, 0].verdicts


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 64])
def test_shares_of_a_quota_are_dealt_like_cards(partitions: int) -> None:
    for quota in (*range(1, 20), 1000, 1001, 10**9):
        shares = [share_of(quota, (number, partitions)) for number in range(partitions)]
        assert sum(shares) == quota
        if quota < 2000:
            dealt = [0] * partitions
            for card in range(quota):
                dealt[card % partitions] += 1
            assert shares == dealt


def test_a_round_takes_its_quota_and_no_more() -> None:
    assert tally(applied(sent(0, 1, 2), sent(3, 4, 5))) == VerdictCounts(attempts=6, accepted=4, over_quota=2)


def test_copies_of_one_report_do_not_use_the_quota_up() -> None:
    state = applied(*[sent(1)] * 50, sent(2, 3, 4, 5))
    assert tally(state) == VerdictCounts(attempts=54, accepted=4, duplicate=49, over_quota=1)


def test_a_copy_of_what_was_over_the_quota_is_over_it_again_and_no_duplicate() -> None:
    # 4 and 5 were never accepted, so that nobody remembers them; 0 was.
    state = applied(sent(0, 1, 2, 3, 4, 5, 4, 0, 5), sent(4, 0))
    assert tally(state) == VerdictCounts(attempts=11, accepted=4, duplicate=2, over_quota=5)
    known = state.rounds[FOUR.digest, 0]
    assert known.counts.tolist() == [0, 4, 0, 0, 0]
    assert known.seen is not None
    assert len(known.seen) == 4


def test_invalid_early_and_late_come_before_the_quota() -> None:
    early = MINUTE - 60
    seal = encode_record(SealRecord(FOUR.digest, 0))
    state = applied(
        sent(0, 1, 2, 3), sent(4, symbol=9), sent(5, minute=early), sent(6), seal, sent(7), sent(8, symbol=9)
    )
    known = state.rounds[FOUR.digest, 0]
    assert known.verdicts == VerdictCounts(attempts=7, accepted=4, invalid=1, early=1, over_quota=1)
    assert known.after_seal == VerdictCounts(attempts=2, late=1, invalid=1)


def test_what_an_old_gateway_refused_for_its_quota_counts_as_it_did() -> None:
    state = applied(sent(0, 1, over_quota=7), sent(over_quota=2))
    assert tally(state) == VerdictCounts(attempts=11, accepted=2, over_quota=9)


def test_every_round_and_every_survey_has_a_quota_of_its_own() -> None:
    other = Survey.parse(LABELS.replace("self-rated", "self-seen"))
    pairs = [(report_id(number), 1) for number in range(9)]
    segments = [segment(FOUR, 0, pairs), segment(FOUR, 1, pairs), segment(other, 0, pairs)]
    state = applied(announcement(other), batch(*segments, minute=MINUTE + DAY))
    assert {key: known.verdicts.accepted for key, known in state.rounds.items()} == {
        (FOUR.digest, 0): 4,
        (FOUR.digest, 1): 4,
        (other.digest, 0): 9,
    }


def test_partitions_of_a_grown_log_share_the_quota_within_their_topic() -> None:
    layout = PartitionMap.of(2, topic="a").grown(TopicPeriod(FOUR.round_start_s(1), "b", 3, "other"))
    accepted = {}
    pairs = [(report_id(i), 1) for i in range(9)]
    for partition in range(5):
        number = 0 if partition < 2 else 1
        state, record = placed(layout, partition), batch(segment(FOUR, number, pairs), minute=MINUTE + DAY)
        state.commit(apply_many(state, enumerate([announcement(FOUR), record])))
        accepted[partition] = state.rounds[FOUR.digest, number].verdicts.accepted
    assert accepted == {0: 2, 1: 2, 2: 2, 3: 1, 4: 1}


def test_a_quota_cannot_be_judged_in_a_partition_that_is_nowhere() -> None:
    # One of four partitions that took the whole quota would look right for ever.
    with pytest.raises(ValueError, match="must be placed"):
        apply_many(PartitionState(), enumerate([announcement(FOUR), sent(0)]))


def test_a_partition_that_took_more_before_quotas_were_judged_here_takes_none() -> None:
    state = placed(PartitionMap.of(1))
    state.commit(apply_many(state, enumerate([announcement(FOUR), sent(0, 1, 2)])))
    state.place(PartitionMap.of(4), 1)
    state.commit(apply_many(state, [(2, sent(0, 7))]))
    assert tally(state) == VerdictCounts(attempts=5, accepted=3, duplicate=1, over_quota=1)
