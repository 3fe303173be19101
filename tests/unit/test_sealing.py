"""When rounds are due, and what a sealer writes."""

from __future__ import annotations

import pytest
from counting_logs import MemoryLog
from surveys import LABELS

from hubbub.records import SealRecord, decode_record
from hubbub.survey import Survey
from hubbub_aggregator.sealing import Sealer, due

HEALTH = Survey.parse(LABELS)
GRACE_S = 10.0
DUE_S = HEALTH.round_end_s(0) + HEALTH.lateness_s + GRACE_S


@pytest.mark.parametrize(
    ("now_s", "rounds"),
    [(0.0, []), (DUE_S - 0.001, []), (DUE_S, [0]), (DUE_S + HEALTH.round_s, [0, 1]), (DUE_S * 2, [0, 1, 2])],
)
def test_round_is_due_at_its_end_plus_lateness_plus_grace(now_s: float, rounds: list[int]) -> None:
    assert due([HEALTH], now_s, GRACE_S, set()) == [(HEALTH.digest, number) for number in rounds]


def test_sealed_rounds_are_not_due_again() -> None:
    assert due([HEALTH], DUE_S * 2, GRACE_S, {(HEALTH.digest, 1)}) == [(HEALTH.digest, 0), (HEALTH.digest, 2)]


def test_sealer_writes_each_seal_once_into_every_partition() -> None:
    log = MemoryLog(partitions=3)
    sealer = Sealer(log)
    pairs = [(HEALTH.digest, 0), (HEALTH.digest, 1)]
    assert sealer.seal(pairs) == 2
    assert sealer.seal([*pairs, (HEALTH.digest, 2), (HEALTH.digest, 2)]) == 1
    expected = [SealRecord(HEALTH.digest, number) for number in range(3)]
    assert [[decode_record(r) for r in log.records[p]] for p in range(3)] == [expected] * 3


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
