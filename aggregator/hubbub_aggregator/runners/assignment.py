"""The partitions that one process of several counts: loaded when assigned, saved group by group.

A source of records may repeat them, deliver some of before a rebalance, or skip some. Records below the next
offset are dropped; past it the source is told where to read on, and if that does not help, the process ends.
The last records before the offset are read once more when a partition is loaded: if they are not those that
were counted, the log was cut and has grown since.
The only I/O is that of the store and of the dead letters.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from hubbub.wire import PartitionMap
from hubbub_aggregator.counting.counting import check_counted, first_to_check, keep_freed_memory
from hubbub_aggregator.counting.dead_letters import DeadLetters, NullDeadLetters
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundState
from hubbub_aggregator.counting.progress import Progress
from hubbub_aggregator.counting.seals import SealRules
from hubbub_aggregator.counting.skipping import Skips, next_change
from hubbub_aggregator.errors import AggregatorError, AheadError, GapError, LostError, SupersededError
from hubbub_aggregator.stores.store import Store

# Records fetched before a rebalance are worked off in less; a lost record never comes.
GAP_PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class SeekTo:
    """The request that the source of records read a partition anew from here.

    Attributes:
        offset: The next offset to apply.
    """

    offset: int


class Assignment:
    """The partitions that this process counts; any thread may call it.

    Args:
        store: Where counts are kept; it decides where to read on.
        end: The log's end in a partition.
        begin: The first offset that the log still has; a log without it keeps everything.
        keep: Which rounds' counts stay in memory: "open" where the store has those of sealed ones.
        partition_map: Where each partition lies in the log, for its rounds and its share of quotas; None
            counts every round, and no survey with a quota.
        clock: Seconds that only grow, to wait for a record that is missing.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
        skips: The records that an operator said to pass over; see `skipping`.
        seal_rules: Which seals are the sealer's; None where all are.
    """

    def __init__(
        self,
        store: Store,
        *,
        end: Callable[[int], int],
        begin: Callable[[int], int] = lambda _: 0,
        keep: Literal["all", "open"] = "all",
        partition_map: PartitionMap | None = None,
        clock: Callable[[], float],
        dead_letters: DeadLetters | None = None,
        skips: Skips | None = None,
        seal_rules: SealRules | None = None,
    ) -> None:
        keep_freed_memory()
        self._seal_rules = seal_rules
        self._partition_map, self._keep = partition_map, keep
        self._dead_letters, self._skips = dead_letters or NullDeadLetters(), skips or {}
        self._store, self._begin, self._end, self._clock = store, begin, end, clock
        self._states: dict[int, PartitionState] = {}
        # Since when a partition's next record is missing, and the first that came in its place.
        self._missing: dict[int, tuple[float, int]] = {}
        # Records that were counted and are read again: the first one's offset, and those that came so far.
        self._again: dict[int, tuple[int, list[tuple[int, bytes]]]] = {}
        # Held while records are applied, never while partitions load: that may take seconds, and a rebalance
        # must not wait for it.
        self._lock = threading.Lock()
        self._records = 0
        # The log's end when it was last looked at, by partition.
        self._ends: dict[int, int] = {}
        # Grows with every revocation; a load of an older number is of partitions that may be others' by now.
        self._generation = 0

    def load(self, partitions: Iterable[int], generation: int | None = None) -> dict[int, int]:
        """Take over partitions in place of those assigned before; return the offset to read from in each.

        Args:
            partitions: The partitions to count.
            generation: The number that `revoke` gave when they were assigned; None revokes all others first.

        Raises:
            SupersededError: If `revoke` was called since: then nothing is taken over, whatever else went
                wrong.
            AheadError: If the store has applied records that the log does not hold.
            LostError: If the log does not hold what comes next any more.
            StoreError: If the store cannot be trusted.
        """
        current = self.revoke() if generation is None else generation
        loaded: dict[int, PartitionState] = {}
        again: dict[int, tuple[int, list[tuple[int, bytes]]]] = {}
        try:
            for partition in partitions:
                self._check_current(current)
                state = loaded[partition] = self._store.load(partition)
                state.seal_rules = self._seal_rules
                if self._partition_map is not None:
                    state.place(self._partition_map, partition)
                first = first_to_check(state, self._check_log(partition, state.offset))
                if first < state.offset:
                    again[partition] = first, []
        except Exception:
            # Another process may be at work on them by now: what was found wrong there is no doubt of ours.
            self._check_current(current)
            raise
        with self._lock:
            self._check_current(current)
            self._states, self._again = loaded, again
            return {partition: self._next(partition) for partition in loaded}

    def revoke(self) -> int:
        """Take no more records of any partition: others may count them from now on.

        Returns:
            The number of the generation that begins; `load` takes it.
        """
        with self._lock:
            self._states, self._again = {}, {}
            self._missing.clear()
            self._generation += 1
            return self._generation

    @property
    def generation(self) -> int:
        """The number that `revoke` gave last; 0 before the first."""
        return self._generation

    def progress(self) -> Progress:
        """Return how far the counting is, without waiting for a load or asking the log."""
        states, ends = self._states, dict(self._ends)
        offsets = {partition: state.offset for partition, state in states.items()}
        lags = {partition: max(0, ends.get(partition, at) - at) for partition, at in offsets.items()}
        return Progress(self._generation, offsets, lags, self._records)

    def _next(self, partition: int) -> int:
        """Return the offset that the next record must have."""
        if partition not in self._again:
            return self._states[partition].offset
        first, held = self._again[partition]
        return first + len(held)

    def _check_current(self, generation: int) -> None:
        if generation != self._generation:
            raise SupersededError(f"a load must be of generation {self._generation}, got {generation}")

    def process(self, partition: int, records: Sequence[tuple[int, bytes]]) -> SeekTo | None:
        """Apply records of a partition and save what they change.

        Records of a partition that is not assigned any more are left to whoever has it.

        Args:
            partition: The partition.
            records: (offset, bytes), ascending.

        Returns:
            Where to read on if a record is missing and was not asked for yet.

        Raises:
            AheadError: If the records before those to apply are not those that were counted.
            GapError: If a missing record has not come for GAP_PATIENCE_S.
            StoreConflictError: If another process counts this partition.
            UnappliableError: If a record cannot be applied; those before it are saved.
        """
        with self._lock:
            state = self._states.get(partition)
            return None if state is None else self._process(state, partition, records)

    def _process(
        self, state: PartitionState, partition: int, records: Sequence[tuple[int, bytes]]
    ) -> SeekTo | None:
        if records and records[0][0] < state.offset and partition not in self._again:
            # Some readers go back where a log ends before what they ask for; it may have grown again since.
            self._again[partition] = first_to_check(state, records[0][0]), []
        ready = contiguous(records, self._next(partition))
        if partition in self._again:
            ready = self._compared(state, partition, ready)
        while ready:
            change = next_change(partition, state, ready, self._skips)
            if change.dead_letters:
                self._dead_letters.put(partition, change.dead_letters)
            self._store.save(partition, change)
            state.commit(change)
            self._records += change.offset - change.previous
            if self._keep == "open":
                _slim(state, change)
            self._missing.pop(partition, None)
            ready = ready[change.offset - change.previous :]
        expected = self._next(partition)
        if not records or records[-1][0] < expected:
            return None
        if partition not in self._missing:
            came = next(offset for offset, _ in records if offset > expected)
            self._missing[partition] = (self._clock(), came)
            return SeekTo(expected)
        self._check_patience(partition)
        return None

    def _compared(
        self, state: PartitionState, partition: int, ready: list[tuple[int, bytes]]
    ) -> list[tuple[int, bytes]]:
        """Take those of some records that were counted before, and return the others."""
        held = self._again[partition][1]
        known = state.offset - self._next(partition)
        held += ready[:known]
        if len(ready) >= known:
            check_counted(partition, state, held)
            del self._again[partition]
        if ready:
            self._missing.pop(partition, None)
        return ready[known:]

    def _check_patience(self, partition: int) -> None:
        since, came = self._missing[partition]
        if self._clock() - since > GAP_PATIENCE_S:
            raise GapError(
                f"partition {partition}: offset {self._next(partition)} must come next, got {came} and "
                f"others for {GAP_PATIENCE_S:g} s; if it is gone, {_how_to_skip(partition, came)}"
            )

    def verify(self) -> None:
        """Check for losses that nothing else would show; to be called every few seconds.

        Raises:
            GapError: If a missing record has not come for GAP_PATIENCE_S.
            AheadError: If the log ends before what was applied: it was cut, or made again.
            LostError: If retention took what comes next.
            StoreError: If the store may lose counts.
        """
        self._store.verify()
        with self._lock:
            generation = self._generation
            offsets = {partition: state.offset for partition, state in self._states.items()}
            for partition in self._missing:
                self._check_patience(partition)
        try:
            for partition, offset in offsets.items():
                self._check_log(partition, offset)
        except AggregatorError:
            # The fate of a partition that was revoked meanwhile is for others to see.
            if generation == self._generation:
                raise

    def _check_log(self, partition: int, offset: int) -> int:
        """Check an offset against the log's ends, and return where it begins."""
        end = self._ends[partition] = self._end(partition)
        if offset > end:
            raise AheadError(
                f"partition {partition}: offset must be at most the log's {end}, got {offset}: the log was "
                "cut, and only another namespace counts what is left of it"
            )
        begin = self._begin(partition)
        if offset < begin:
            raise LostError(
                f"partition {partition}: offset {offset} must come next, and the log begins at {begin}; "
                f"{_how_to_skip(partition, begin)}"
            )
        return begin


def _how_to_skip(partition: int, offset: int) -> str:
    return f"`hubbub skip-lost SETTINGS --partition {partition} --from {offset}` gives up what is in between"


def _slim(state: PartitionState, change: Change) -> None:
    """Let go of all but the seal of rounds that a change has sealed."""
    for key, new in change.rounds.items():
        if new.sealed_at is not None:
            state.rounds[key] = RoundState(sealed_at=state.rounds[key].sealed_at)


def contiguous(records: Sequence[tuple[int, bytes]], offset: int) -> list[tuple[int, bytes]]:
    """Return the records that follow each other from `offset` on.

    Those before it, and repeats, are left out.
    """
    found = []
    for at, record in records:
        if at == offset:
            found.append((at, record))
            offset += 1
        elif at > offset:
            break
    return found
