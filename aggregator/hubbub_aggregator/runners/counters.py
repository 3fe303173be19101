"""The two ways to know the counts of a log: apply its records, or read what other processes saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from hubbub_aggregator.counting.counting import check_counted, first_to_check
from hubbub_aggregator.counting.dead_letters import DeadLetters, NullDeadLetters
from hubbub_aggregator.counting.partition import PartitionState, RoundKey, RoundState
from hubbub_aggregator.counting.skipping import Skips, next_change
from hubbub_aggregator.counting.verdict_counts import VerdictCounts
from hubbub_aggregator.errors import AheadError
from hubbub_aggregator.stores.store import SharedStore, Store
from hubbub_aggregator.web.view import total_of
from hubbub_topic import Log

# Some 20,000 reports where gateways write 300 a batch: ids are then deduplicated at full speed, and a step
# still takes milliseconds.
DEFAULT_READ_RECORDS: Final = 64


@dataclass(frozen=True, slots=True)
class Advance:
    """The change of one partition since a counter was asked before.

    Attributes:
        records: How many records were applied; at least 1.
        rounds: The rounds that may have changed, as they are now.
        lost: True if records were given up as lost: seals may be among them.
    """

    records: int
    rounds: Mapping[RoundKey, RoundState]
    lost: bool


class CountSource(Protocol):
    """A source of counts: the state of every partition, saved before it is seen."""

    @property
    def states(self) -> Mapping[int, PartitionState]:
        """Partition -> its state, as of the last `advance`."""
        ...

    @property
    def total(self) -> VerdictCounts:
        """The accounting of everything, reports after a seal included."""
        ...

    def advance(self, partition: int) -> Advance | None:
        """Bring a partition forward; None where nothing is new.

        Raises:
            AggregatorError: On any invariant violation.
        """
        ...

    def free(self, key: RoundKey, partition: int) -> None:
        """Free the counts of a round that is archived, where that is needed; to repeat it is harmless."""
        ...

    def has_gone_back(self) -> bool:
        """Return whether the store held fewer records than were seen there before: it came back older."""
        ...


class LogCounter:
    """A counter that applies the log's records itself, and saves what they change.

    Args:
        log: What to count.
        store: Where counts are kept; it decides where to read on.
        read_records: The most records of a partition that are applied and saved together.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
        skips: The records that an operator said to pass over; see `skipping`.

    Raises:
        AheadError: If the store has applied records that the log does not hold.
        CorruptStoreError: If the store contradicts itself.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        *,
        read_records: int = DEFAULT_READ_RECORDS,
        dead_letters: DeadLetters | None = None,
        skips: Skips | None = None,
    ) -> None:
        self._log, self._store, self._read_records = log, store, read_records
        self._dead_letters, self._skips = dead_letters or NullDeadLetters(), skips or {}
        self.states = _load(log, store.load)
        for partition, state in self.states.items():
            first = first_to_check(state, log.begin(partition))
            if first < state.offset:
                check_counted(partition, state, log.read(partition, first, state.offset - first))
        self.total = total_of(self.states.values())

    @property
    def is_caught_up(self) -> bool:
        """True if every record that the log holds is applied."""
        return all(state.offset >= self._log.end(partition) for partition, state in self.states.items())

    def advance(self, partition: int) -> Advance | None:
        """Apply and save some records of a partition."""
        state = self.states[partition]
        records = self._log.read(partition, state.offset, self._read_records)
        if not records:
            return None
        change = next_change(partition, state, records, self._skips)
        if change.dead_letters:
            self._dead_letters.put(partition, change.dead_letters)
        self._store.save(partition, change)
        state.commit(change)
        self.total = sum((new.verdicts + new.after_seal for new in change.rounds.values()), self.total)
        changed = {key: state.rounds[key] for key in change.rounds}
        return Advance(change.offset - change.previous, changed, bool(change.lost))

    def free(self, key: RoundKey, partition: int) -> None:
        """Keep the counts: a SQLite store has room for archived rounds, and a replay compares them."""

    def has_gone_back(self) -> bool:
        """Return False: who counts learns of it by its next save."""
        return False


class SharedCounter:
    """A counter that reads what other processes have saved, and counts nothing itself.

    It sees the counts of each partition as of their last save. If the store comes back older, it waits: the
    same records give the same counts.

    Args:
        log: The log that is counted.
        store: What the workers write to.

    Raises:
        AheadError: If the store has applied records that the log does not hold.
        CorruptStoreError: If the store contradicts itself.
    """

    def __init__(self, log: Log, store: SharedStore) -> None:
        self._store = store
        self.states = _load(log, store.load_counts)
        self._has_gone_back = False

    @property
    def total(self) -> VerdictCounts:
        """The accounting of everything, reports after a seal included."""
        return total_of(self.states.values())

    def advance(self, partition: int) -> Advance | None:
        """Load a partition anew if its worker has saved more."""
        known = self.states[partition]
        offset = self._store.offset(partition)
        self._has_gone_back |= offset < known.offset
        if offset <= known.offset:
            return None
        state = self.states[partition] = self._store.load_counts(partition)
        return Advance(state.offset - known.offset, state.rounds, state.lost != known.lost)

    def free(self, key: RoundKey, partition: int) -> None:
        """Free what the store keeps of an archived round: memory follows what is open, not what has been."""
        known = self.states[partition].rounds.get(key)
        if known is not None and not known.is_archived:
            self._store.forget(partition, key)

    def has_gone_back(self) -> bool:
        """Return whether the store holds fewer records of a partition than were loaded, or did at a look."""
        return self._has_gone_back or any(
            self._store.offset(partition) < known.offset for partition, known in self.states.items()
        )


def _load(log: Log, load: Callable[[int], PartitionState]) -> dict[int, PartitionState]:
    """Return the state of each partition, placed in the log's map.

    Raises:
        AheadError: If the store has applied records that the log does not hold.
    """
    states = {}
    for partition in range(log.partitions):
        state = states[partition] = load(partition)
        state.place(log.partition_map, partition)
        end = log.end(partition)
        if state.offset > end:
            raise AheadError(
                f"partition {partition}: offset must be at most the log's {end}, got {state.offset}"
            )
    return states
