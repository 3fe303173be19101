"""The retention of a node's own log: counted records of released rounds go, by age or by size.

A record goes only together with all before it in its partition, and only if the store has counted it and
every round that it is about is in the archive, or has nothing to release. So whatever is open can be counted
anew from what stays, and a kill between any two steps finds the log before a cut or after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from hubbub.errors import HubbubError
from hubbub.survey import Survey
from hubbub.wire import NO_ROUND, ReportsRecord, SealRecord, SurveyRecord, decode_record
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.errors import ClockDoubtError
from hubbub_aggregator.stores.archive import Archive
from hubbub_topic import Cut, Log

# A minute of records is little work for one step, and a log of that much more harms nobody.
INTERVAL_S: Final = 60.0
_BEHIND_S: Final = 1.0
# Records of a partition that one step looks at: some megabytes.
_MOST_RECORDS: Final = 2_000
# Beside its body a row has a key, a checksum and its share of a page.
_ROW_BYTES: Final = 32
# A round without an accepted report is never released; a day after its end none can come.
_EMPTY_S: Final = 86_400.0
_ROUND_BYTES: Final = 8


class TrimmableLog(Log, Protocol):
    """A log whose first records can be deleted."""

    def trim(self, cuts: Mapping[int, Cut], names: frozenset[bytes]) -> None:
        """Delete the first records of some partitions."""

    @property
    def size_bytes(self) -> int:
        """The bytes that the log takes."""


@dataclass(slots=True)
class _Plan:
    """The records of one partition that may go: everything below `before`."""

    before: int
    freed: int = 0
    others: int = 0
    surveys: dict[bytes, None] = field(default_factory=dict)
    rounds: set[RoundKey] = field(default_factory=set)


def name_of(key: RoundKey) -> bytes:
    """Return the name by which a log remembers a round whose records it does not have any more."""
    return key[0] + key[1].to_bytes(_ROUND_BYTES, "big")


def rounds_of(names: frozenset[bytes]) -> frozenset[RoundKey]:
    """Return the rounds of names that `name_of` gave."""
    return frozenset((name[:-_ROUND_BYTES], int.from_bytes(name[-_ROUND_BYTES:], "big")) for name in names)


class Retention:
    """The bounds of a log, and the work of keeping it within them.

    Args:
        log: The log.
        archive: Where releases are: a round that is in it is done.
        keep_s: Seconds that records are kept; 0 for ever.
        keep_bytes: Bytes of the log above which the oldest records go; 0 for any number.
        clock: Seconds since 1970; while it raises ClockDoubtError nothing goes. One that is ahead all the
            same deletes earlier, but never what is open.
        is_waiting: Whether the records of a released round are needed all the same.
    """

    def __init__(
        self,
        log: TrimmableLog,
        archive: Archive,
        *,
        keep_s: float,
        keep_bytes: int,
        clock: Callable[[], float],
        is_waiting: Callable[[RoundKey], bool] = lambda key: False,
    ) -> None:
        self._is_waiting = is_waiting
        self._log, self._archive, self._clock = log, archive, clock
        self._keep_s, self._keep_bytes = keep_s, keep_bytes
        self._next_s = -math.inf
        self._done: set[RoundKey] = set()

    def step(self, states: Mapping[int, PartitionState]) -> None:
        """Delete what may go, at most once a minute.

        Args:
            states: Every partition as the store has it.

        Raises:
            LogError: If the log cannot be written.
            ArchiveError: If a release cannot be read.
        """
        try:
            now_s = self._clock()
        except ClockDoubtError:
            return
        # A clock that was set back must not stop it for long.
        if self._next_s - INTERVAL_S <= now_s < self._next_s:
            return
        # A busy log grows faster than one step a minute would take from it.
        is_behind = self.trim(states, now_s) >= _MOST_RECORDS // 2
        self._next_s = now_s + (_BEHIND_S if is_behind else INTERVAL_S)

    def trim(self, states: Mapping[int, PartitionState], now_s: float) -> int:
        """Delete what may go at a time, and return how many records went; see `step`."""
        eldest_s = now_s - self._keep_s if self._keep_s else -math.inf
        excess = max(0, self._log.size_bytes - self._keep_bytes) if self._keep_bytes else 0
        cuts: dict[int, Cut] = {}
        names: set[bytes] = set()
        went = 0
        for partition in states:
            plan = self._planned(partition, states, now_s, eldest_s, excess / len(states))
            if plan.others:
                cuts[partition] = Cut(plan.before, tuple(plan.surveys))
                names.update(map(name_of, plan.rounds))
                went += plan.others
        if cuts:
            self._log.trim(cuts, frozenset(names))
        return went

    def _planned(
        self,
        partition: int,
        states: Mapping[int, PartitionState],
        now_s: float,
        eldest_s: float,
        excess: float,
    ) -> _Plan:
        plan = _Plan(self._log.begin(partition))
        for offset, body in self._records(partition, plan.before, states[partition].offset):
            try:
                record = decode_record(body, broken=[])
            except HubbubError:  # a dead letter
                record = None
            if isinstance(record, ReportsRecord):
                if 60 * record.minute >= eldest_s and plan.freed >= excess:
                    break
                rounds = {(segment.digest, segment.round) for segment in record.segments}
            elif isinstance(record, SealRecord):
                rounds = {(record.digest, record.round)}
            else:
                rounds = set()
            if not all(self._is_done(key, states, now_s) for key in rounds):
                break
            plan.rounds |= {key for key in rounds if key[1] != NO_ROUND}
            if isinstance(record, SurveyRecord):
                plan.surveys[body] = None
            else:
                plan.others += 1
            plan.freed += len(body) + _ROW_BYTES
            plan.before = offset + 1
        return plan

    def _records(self, partition: int, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the first records of a partition, none that is not counted."""
        end = min(end, begin + _MOST_RECORDS)
        while begin < end and (found := self._log.read(partition, begin, end - begin)):
            yield from found
            begin = found[-1][0] + 1

    def _is_done(self, key: RoundKey, states: Mapping[int, PartitionState], now_s: float) -> bool:
        """Return whether nothing can be released of a round any more that is not released."""
        if key[1] == NO_ROUND or key in self._done:
            return True
        if self._archive.get(key) is None:
            survey = _survey(key[0], states)
            if survey is not None and key[1] < survey.rounds:
                known = [state.rounds[key] for state in states.values() if key in state.rounds]
                if any(each.verdicts.accepted or each.sealed_at is not None for each in known):
                    return False
                if now_s < survey.round_end_s(key[1]) + survey.lateness_s + _EMPTY_S:
                    return False
            return True
        if self._is_waiting(key):
            return False
        self._done.add(key)
        return True


def _survey(digest: bytes, states: Mapping[int, PartitionState]) -> Survey | None:
    return next((state.surveys[digest] for state in states.values() if digest in state.surveys), None)
