"""The one process that seals, releases and shows what others count: a worker that reads their store."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from hubbub_aggregator.counting.partition import Change, PartitionState, RoundKey
from hubbub_aggregator.errors import PartitionMapGrown, StoreError
from hubbub_aggregator.release.provisional import PublicationGate
from hubbub_aggregator.runners.embedded import Worker
from hubbub_aggregator.web.view import total_of
from hubbub_topic import Log

# How often the store is asked: a page that is a quarter of a second behind looks live.
_POLL_S: Final = 0.25
# How many steps, a second's worth, pass before the store is verified and each partition's end asked for.
_QUIET_STEPS: Final = 4


class CountsStore(Protocol):
    """A store that gives offsets and counts away without ids."""

    def offset(self, partition: int) -> int:
        """Return the next offset that is stored."""
        ...

    def load_counts(self, partition: int) -> PartitionState:
        """Return the state without ids."""
        ...

    def forget(self, partition: int, key: RoundKey) -> None:
        """Let go of the counts of a sealed round whose release is archived; again is harmless."""
        ...

    def hold_lease(self) -> None:
        """Take or keep the lease on sealing, releasing and showing.

        Raises:
            LeaseLost: If another one holds it.
        """
        ...

    def verify(self) -> None:
        """Check that what keeps the counts will go on keeping them.

        Raises:
            StoreError: If it may lose some of them.
        """
        ...

    def load_gates(self) -> dict[RoundKey, PublicationGate]:
        """Return the provisional steps of all open rounds."""
        ...

    def save_gates(self, changed: Mapping[RoundKey, PublicationGate | None]) -> None:
        """Keep the steps of some rounds before anybody sees them."""
        ...


class _Counts:
    """A Store whose counts come from elsewhere: nothing but steps is written to it."""

    def __init__(self, store: CountsStore) -> None:
        self.load, self.offset, self.forget = store.load_counts, store.offset, store.forget
        self.load_gates, self.save_gates = store.load_gates, store.save_gates
        self.hold_lease, self.verify = store.hold_lease, store.verify

    def save(self, partition: int, change: Change) -> None:
        raise StoreError(f"partition {partition} must be counted by its worker, not by who watches")


class Publisher(Worker):
    """A worker that seals due rounds, releases those that every partition has sealed, and shows the rest.

    One at a time is at work per log: who holds the lease. It keeps the steps of what was shown, and the
    archive. One that lost the lease without noticing does no harm: seals may be repeated, the archive refuses
    a second version, and steps are saved by the holder only. What counts meanwhile is seen at its last save.
    A store that comes back older is waited for: the same records give the same counts.

    Args:
        log: The log that is counted; seals are appended to it.
        store: What the workers write to.
        options: Those of Worker.

    Raises:
        LeaseLost: If another watcher is at work.
        Ahead: If the store has applied records that the log does not hold.
        CorruptStore: If the store contradicts itself.
    """

    def __init__(self, log: Log, store: CountsStore, **options: Any) -> None:  # noqa: ANN401 - as Worker's
        self._counts, self._quiet = _Counts(store), 0
        self._counts.hold_lease()
        super().__init__(log, self._counts, **options)

    def step(self) -> int:
        """Look at what the workers have saved, seal and release what is due, show the rest.

        Returns:
            How many records were applied since the last step.
        """
        if self._log.partitions != len(self._states):
            raise PartitionMapGrown(
                f"the log has {self._log.partitions} partitions, {len(self._states)} are watched"
            )
        self._quiet = (self._quiet + 1) % _QUIET_STEPS
        if not self._quiet:
            self._counts.verify()
        applied = sum(self._advance(partition) for partition in self._states)
        self._seal_due()
        if applied or self._lags_otherwise():
            self._release()
            self._show()
        return applied

    def _lags_otherwise(self) -> bool:
        """Return whether the log has other ends than those shown; where nobody counts, nothing else tells."""
        return not self._quiet and any(self._log.end(number) != end for number, end in self._ends.items())

    def run(self, stop: threading.Event) -> None:
        """Step until `stop` is set.

        Raises:
            LeaseLost: If another watcher is at work.
        """
        while not stop.wait(_POLL_S):
            self._counts.hold_lease()
            self.step()

    def _free_archived(self, keys: Iterable[RoundKey]) -> None:
        """Free what the store keeps of archived rounds: memory follows what is open, not what has been."""
        for key in keys:
            for partition in self._target_partitions(key):
                known = self._states[partition].rounds.get(key)
                if known is not None and not known.is_archived:
                    self._counts.forget(partition, key)

    def _advance(self, partition: int) -> int:
        known = self._states[partition]
        if self._counts.offset(partition) <= known.offset:
            return 0
        state = self._states[partition] = self._counts.load(partition)
        self._mark_changed(state.rounds)
        if state.lost != known.lost:
            self._sealer.forget()
        self._total = total_of(self._states.values())
        return state.offset - known.offset
