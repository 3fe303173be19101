"""When rounds are due, and what a sealer writes."""

from __future__ import annotations

import pytest
from counting_logs import MemoryLog
from surveys import LABELS

from hubbub.survey.survey import Survey
from hubbub.wire.record import SealRecord, decode_record
from hubbub_aggregator.release.sealing import Sealer, due

HEALTH = Survey.parse(LABELS)
GRACE_S = 10.0
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + GRACE_S


ANSWERED = [(HEALTH.digest, number) for number in range(3)]
SURVEYS = {HEALTH.digest: HEALTH}


@pytest.mark.parametrize(
    ("now_s", "rounds"),
    [(0.0, 0), (DUE_S - 0.001, 0), (DUE_S, 1), (DUE_S + HEALTH.round_s, 2), (DUE_S * 2, 3)],
)
def test_round_is_due_at_its_end_plus_lateness_plus_grace(now_s: float, rounds: int) -> None:
    assert due(reversed(ANSWERED), SURVEYS, now_s, GRACE_S) == ANSWERED[:rounds]


def test_round_of_an_unknown_survey_is_never_due() -> None:
    assert due([(bytes(16), 0)], SURVEYS, DUE_S * 2, GRACE_S) == []


def test_sealer_writes_each_seal_once_into_every_partition() -> None:
    log = MemoryLog(partitions=3)
    sealer = Sealer(log)
    pairs = [(HEALTH.digest, 0), (HEALTH.digest, 1)]
    assert sealer.seal(pairs) == 2
    assert sealer.seal([*pairs, (HEALTH.digest, 2), (HEALTH.digest, 2)]) == 1
    expected = [SealRecord(HEALTH.digest, number) for number in range(3)]
    assert [[decode_record(r) for r in log.records[p]] for p in range(3)] == [expected] * 3


def test_thousands_of_seals_do_not_hold_the_log_in_one_append() -> None:
    class CountingLog(MemoryLog):
        appends: list[int] = []  # noqa: RUF012 - one log, one test

        def append(self, records: dict[int, list[bytes]]) -> None:
            self.appends.append(len(records[0]))
            super().append(records)

    log = CountingLog()
    pairs = [(HEALTH.digest, number) for number in range(1200)]
    assert Sealer(log).seal(pairs) == 1200
    assert max(log.appends) <= 500
    assert [decode_record(record) for record in log.records[1]] == [SealRecord(*pair) for pair in pairs]


def test_seal_that_could_not_be_written_is_tried_again() -> None:
    class FullLog(MemoryLog):
        full = True

        def append(self, records: object) -> None:
            if self.full:
                raise OSError("no space left")
            super().append(records)

    log = FullLog()
    sealer = Sealer(log)
    with pytest.raises(OSError, match="no space"):
        sealer.seal([(HEALTH.digest, 0)])
    log.full = False
    assert sealer.seal([(HEALTH.digest, 0)]) == 1
