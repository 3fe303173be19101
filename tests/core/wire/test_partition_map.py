"""Growth: a round's reports stay together, a partition's number means the same for ever."""

from __future__ import annotations

import pytest
from counting_logs import announcement, batch, report_id, segment
from surveys import LABELS

from hubbub.errors import ParameterError
from hubbub.survey.survey import Survey
from hubbub.testing import seeded
from hubbub.wire.partition_map import PartitionMap, TopicPeriod
from hubbub.wire.record import NO_ROUND
from hubbub.wire.report import Report
from hubbub_aggregator.counting.counting import apply_many
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_collector.admission import Verdict
from hubbub_collector.batching.batcher import Batch, partition_of

HEALTH = Survey.parse(LABELS)
SECOND_S = HEALTH.round_start_s(1)
GROWN = (
    PartitionMap.of(2, topic="a")
    .grown(TopicPeriod(SECOND_S, "b", 4, ""))
    .grown(TopicPeriod(SECOND_S + 10**6, "c", 3, ""))
)


def test_rounds_lie_where_the_span_at_their_start_says() -> None:
    assert GROWN.partitions == 9
    assert GROWN.partitions_at(0) == range(2)
    assert GROWN.partitions_at(SECOND_S - 1) == range(2)
    assert GROWN.partitions_at(SECOND_S) == range(2, 6)
    assert GROWN.partitions_at(1e12) == range(6, 9)


def test_places_and_windows_of_all_partitions() -> None:
    assert [GROWN.place(p) for p in range(9)] == [
        (0, 0),
        (0, 1),
        *((1, p) for p in range(4)),
        (2, 0),
        (2, 1),
        (2, 2),
    ]
    assert [GROWN.window(p) for p in (1, 2, 8)] == [
        (0, SECOND_S),
        (SECOND_S, SECOND_S + 10**6),
        (SECOND_S + 10**6, float("inf")),
    ]
    for partition in (-1, 9):
        with pytest.raises(ParameterError, match="partition"):
            GROWN.place(partition)


def test_layout_only_grows_at_its_end() -> None:
    assert GROWN.continues(PartitionMap.of(2, topic="a"))
    assert not GROWN.continues(PartitionMap.of(3, topic="a"))
    assert not PartitionMap.of(2, topic="a").continues(GROWN)
    for span in (
        TopicPeriod(SECOND_S, "d", 1, ""),
        TopicPeriod(SECOND_S + 10**6, "d", 1, ""),
        TopicPeriod(10**12, "d", 0, ""),
    ):
        with pytest.raises(ParameterError):
            GROWN.grown(span)
    with pytest.raises(ParameterError, match="begin at 0"):
        PartitionMap((TopicPeriod(5, "a", 1, ""),))


def test_batch_puts_both_copies_of_a_report_where_its_round_lives() -> None:
    def home(key: tuple[bytes, int] | None) -> range:
        return GROWN.partitions_at(HEALTH.round_start_s(key[1]) if key and key[1] != NO_ROUND else 1e12)

    reports = [Report(HEALTH.digest, number, report_id(i), i % 5) for i in range(60) for number in (0, 1)]
    for taken in (reports, reports[::-1]):
        made = Batch(GROWN.partitions, home)
        made.add(taken, [Verdict("accepted", (one.digest, one.round)) for one in taken], 60.0)
        found = {
            (number, part.round, part.ids[i : i + 16])
            for number, record in made.records(seeded(1)).items()
            for part in record.segments
            for i in range(0, len(part.ids), 16)
        }
        expected = {
            (2 + partition_of(one.id, 4) if one.round else partition_of(one.id, 2), one.round, one.id)
            for one in reports
        }
        assert found == expected


def test_report_of_a_round_that_lies_elsewhere_is_invalid_here_and_in_no_release() -> None:
    state = PartitionState(window=GROWN.window(0))
    stray = batch(segment(HEALTH, 1, [(report_id(1), 1)], late=2), minute=SECOND_S // 60)
    sound = batch(segment(HEALTH, 0, [(report_id(1), 1)]))
    state.commit(apply_many(state, enumerate([announcement(HEALTH), stray, sound])))
    assert state.rounds[HEALTH.digest, NO_ROUND].verdicts == VerdictCounts(attempts=3, invalid=1, late=2)
    assert state.rounds[HEALTH.digest, 0].verdicts.accepted == 1
    assert (HEALTH.digest, 1) not in state.rounds
