"""The end of a round: a seal in every partition that its reports lie in.

A round is due once no report for it can still be on its way into the log: at its end, plus the lateness that
the survey allows, plus a grace for batches that a gateway accepted in time and has yet to write. A round that
nobody answered has nothing to seal, so a schedule that began years ago costs nothing; should a straggler's
report come after all, it makes the round due at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from hubbub.survey import Survey
from hubbub.wire import SealRecord, encode_record
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.counting.seals import SignSeal
from hubbub_topic import Log

# At least a gateway's `delivery_s` plus the largest difference of the servers' clocks.
DEFAULT_GRACE_S: Final = 30.0
# Some 10 ms of a SQLite log's time in four partitions.
_APPEND_SEALS: Final = 500


def due(
    rounds: Iterable[RoundKey], surveys: Mapping[bytes, Survey], now_s: float, grace_s: float
) -> list[RoundKey]:
    """Return the rounds to seal now, in order of digest and number.

    Args:
        rounds: (digest, round) of every round that was answered and is not released.
        surveys: Every announced survey by digest.
        now_s: The sealer's clock, seconds since 1970.
        grace_s: How long after a round's lateness to wait, seconds.
    """

    def is_due(digest: bytes, number: int) -> bool:
        survey = surveys.get(digest)
        return survey is not None and now_s >= survey.round_end_s(number) + survey.lateness_s + grace_s

    return sorted(key for key in rounds if is_due(*key))


class Sealer:
    """A writer of seals to a log.

    A seal written twice is a no-op to every reader, so a crash needs no care.

    Args:
        log: Where the seals go.
        target_partitions: The partitions of a round; all if absent.
        sign: Signs seals; without it they are not signed.
    """

    def __init__(
        self,
        log: Log,
        target_partitions: Callable[[RoundKey], Iterable[int]] | None = None,
        *,
        sign: SignSeal | None = None,
    ) -> None:
        self._log, self._sign = log, sign
        self._target_partitions = target_partitions or (lambda _: range(log.partitions))
        self._written: set[RoundKey] = set()

    def forget(self) -> None:
        """Forget which seals were written, so that they are written again: some may be lost."""
        self._written.clear()

    def seal(self, pairs: Iterable[RoundKey]) -> int:
        """Append a seal for each (digest, round) to its partitions, and return how many were new here.

        Thousands go in several appends, so that uploads need not wait for all of them.
        """
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._written]
        for start in range(0, len(new), _APPEND_SEALS):
            group = new[start : start + _APPEND_SEALS]
            seals: dict[int, list[bytes]] = {}
            for key in group:
                signature = b"" if self._sign is None else self._sign(*key)
                seal = encode_record(SealRecord(*key, signature))
                for partition in self._target_partitions(key):
                    seals.setdefault(partition, []).append(seal)
            self._log.append(seals)
            self._written.update(group)
        return len(new)
