"""The contract of a store of counts, by its parts.

A store saves what changed in a partition - counts, tallies, new ids, offset - at once or not at all, and only
if the stored offset is the one the change started from. It owns the offset: a worker reads on from where
the store says. It belongs to one log, and loads nothing that contradicts itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from hubbub.survey import number_of_round
from hubbub.wire import NO_ROUND
from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey
from hubbub_aggregator.errors import CorruptStoreError
from hubbub_aggregator.release.provisional import PublicationGate


class GateStore(Protocol):
    """A store of the publication gates of open rounds, which checks whether it can be trusted."""

    def verify(self) -> None:
        """Check that the place of the counts will not lose them; called every few seconds.

        Raises:
            StoreError: If it may lose some of them.
        """
        ...

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        """Return the publication gates of all open rounds."""
        ...

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Keep the gates of some rounds before anybody sees what they let through; None forgets a round's."""
        ...


class Store(GateStore, Protocol):
    """A store of partitions' states, for a worker."""

    def load(self, partition: int) -> PartitionState:
        """Return the state that was saved last; an empty one for a partition that never was.

        Raises:
            CorruptStoreError: If ids loaded, accepted reports and counts differ in any round.
        """
        ...

    def save(self, partition: int, change: Change) -> None:
        """Make a change durable, all of it or nothing.

        Raises:
            StoreConflictError: If the stored offset is not `change.previous`: another writer was here.
        """
        ...


class SharedStore(GateStore, Protocol):
    """A store that others count into, for a publisher: offsets and counts, but no ids and no `save`."""

    def offset(self, partition: int) -> int:
        """Return the next offset that is stored."""
        ...

    def load_counts(self, partition: int) -> PartitionState:
        """Return the state without ids.

        Raises:
            CorruptStoreError: If accepted reports and counts differ in any round.
        """
        ...

    def forget(self, partition: int, key: RoundKey) -> None:
        """Free the counts of a sealed round whose release is archived; to repeat it is harmless."""
        ...

    def hold_lease(self) -> None:
        """Take or keep the lease on sealing, releasing and showing.

        Raises:
            LeaseLostError: If another one holds it.
        """
        ...


def check(partition: int, state: PartitionState) -> PartitionState:
    """Return the state, if it agrees with itself: what every `load` ends with.

    Raises:
        CorruptStoreError: If in any round counts, accepted reports and, while it is open, ids differ in
            number, or its attempts are not the sum of its verdicts.
    """
    for (digest, number), known in state.rounds.items():
        where = "outside its schedule" if number == NO_ROUND else f"round {number_of_round(number)}"
        name = f"partition {partition}, survey {digest.hex()}, {where}"
        if not (known.verdicts.holds and known.after_seal.holds):
            raise CorruptStoreError(f"{name}: attempts must be the sum of the verdicts, got {known.verdicts}")
        accepted = known.verdicts.accepted
        remembered = 0 if known.seen is None else len(known.seen)
        expected = 0 if known.sealed_at is not None else accepted
        if not state.counted((digest, number)) or remembered != expected:
            raise CorruptStoreError(
                f"{name}: accepted {accepted} must be the number counted, and {expected} ids remembered, "
                f"got {remembered} ids and counts of {known.counts.sum()} in all"
            )
    return state
