"""When a round ends for good: a seal in every partition of the log.

A round is due once no report for it can still be on its way into the log: at its end, plus the lateness that
the survey allows, plus a grace for batches that a gateway accepted in time and has yet to write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from hubbub.records import SealRecord, encode_record
from hubbub.survey import Survey
from hubbub_aggregator.counting import RoundKey
from hubbub_aggregator.log import Log

# At least a gateway's delivery timeout plus the largest difference of the servers' clocks.
DEFAULT_GRACE_S: Final = 30.0


def due(
    surveys: Iterable[Survey], now_s: float, grace_s: float, sealed: Collection[RoundKey]
) -> list[RoundKey]:
    """The (digest, round) pairs to seal now, rounds nobody answered included, in the surveys' order.

    Args:
        surveys: Every announced survey.
        now_s: The sealer's clock, seconds since 1970.
        grace_s: How long after a round's lateness to wait, seconds.
        sealed: What is sealed already.
    """
    pairs = []
    for survey in surveys:
        for number in range(survey.rounds):
            if now_s < survey.round_end_s(number) + survey.lateness_s + grace_s:
                break
            if (survey.digest, number) not in sealed:
                pairs.append((survey.digest, number))
    return pairs


class Sealer:
    """Writes seals to a log. A seal written twice is a no-op to every reader, so a crash needs no care."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._written: set[RoundKey] = set()

    def seal(self, pairs: Iterable[RoundKey]) -> int:
        """Appends a seal for each (digest, round) to every partition, all or none; how many were new here."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._written]
        if new:
            seals = [encode_record(SealRecord(digest, number)) for digest, number in new]
            self._log.append({partition: list(seals) for partition in range(self._log.partitions)})
            self._written.update(new)
        return len(new)
