"""The processes that publish: a worker that counts its own log, and one that reads what others have counted.

Everything in memory can be had again from store, archive and log, so that either may be killed between any
two instructions: what was applied but not saved is read and applied again, and what was sealed but not
released is released at the next start. Any invariant violation raises and ends the process; its host starts
another.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, Unpack

from hubbub_aggregator.counting.dead_letters import DeadLetters
from hubbub_aggregator.counting.partition import PartitionState, RoundKey
from hubbub_aggregator.counting.skipping import Skips
from hubbub_aggregator.errors import PartitionMapGrownError
from hubbub_aggregator.runners.counters import DEFAULT_READ_RECORDS, LogCounter, SharedCounter
from hubbub_aggregator.runners.publication import Publication, Publishing
from hubbub_aggregator.runners.retention import Retention
from hubbub_aggregator.stores.store import SharedStore, Store
from hubbub_topic import Log

_IDLE_S: Final = 0.05  # how long `run` rests when the log has nothing new


class Worker:
    """A worker that counts every partition of one log, and publishes what it counts.

    Args:
        log: What to count.
        store: Where counts are kept; it decides where to read on.
        read_records: The most records of a partition that one step applies and saves together.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
        skips: The records that an operator said to pass over; see `skipping`.
        retention: The bounds of the log; None where it keeps everything.
        **publishing: See `Publishing`.

    Raises:
        AheadError: If the store has applied records that the log does not hold.
        CorruptStoreError: If the store contradicts itself.
        DivergedError: If the archive holds a release of other facts for a round that is counted anew.
    """

    def __init__(
        self,
        log: Log,
        store: Store,
        *,
        read_records: int = DEFAULT_READ_RECORDS,
        dead_letters: DeadLetters | None = None,
        skips: Skips | None = None,
        retention: Retention | None = None,
        **publishing: Unpack[Publishing],
    ) -> None:
        self._retention = retention
        self._counter = LogCounter(
            log, store, read_records=read_records, dead_letters=dead_letters, skips=skips
        )
        self._publication = Publication(log, self._counter, gates=store, **publishing)

    @property
    def is_caught_up(self) -> bool:
        """True if every record that the log holds is applied."""
        return self._counter.is_caught_up

    def step(self) -> int:
        """Apply and save some records of every partition, seal and release what is due, show the rest.

        Returns:
            How many records were applied.

        Raises:
            AggregatorError: On any invariant violation; the worker must not be used any more.
        """
        applied = self._publication.advance()
        if applied:
            self._publication.release_and_show()
        elif self.is_caught_up:
            # A worker that lags does not know yet what is sealed; it would only write seals twice.
            self._publication.seal_due()
            if self._retention is not None:
                self._retention.step(self._counter.states)
        return applied

    def run(self, stop: threading.Event) -> None:
        """Step until `stop` is set, resting while there is nothing new."""
        while not stop.is_set():
            if not self.step():
                stop.wait(_IDLE_S)

    def seal(self, keys: list[RoundKey]) -> None:
        """Seal rounds before their time, for a host that knows that nothing more will come."""
        self._publication.seal(keys)


# Seconds between two looks at the store: a page a quarter of a second behind looks live.
_POLL_S: Final = 0.25
# Steps, a second's worth, before the store is verified and each partition's end asked for.
_QUIET_STEPS: Final = 4


class Publisher:
    """A process that seals due rounds, releases those that every partition has sealed, and shows the rest.

    One at a time works on a log: the holder of the lease. It keeps the gates of what was shown, and the
    archive. One that lost the lease without noticing does no harm: seals may be repeated, the archive refuses
    a second version, and gates are saved by the holder only.

    Args:
        log: The log that is counted; seals are appended to it.
        store: What the workers write to.
        **publishing: See `Publishing`.

    Raises:
        LeaseLostError: If another publisher is at work.
        AheadError: If the store has applied records that the log does not hold.
        CorruptStoreError: If the store contradicts itself.
    """

    def __init__(self, log: Log, store: SharedStore, **publishing: Unpack[Publishing]) -> None:
        self._log, self._store, self._quiet = log, store, 0
        store.hold_lease()
        self._counter = SharedCounter(log, store)
        self._publication = Publication(log, self._counter, gates=store, **publishing)

    @property
    def states(self) -> Mapping[int, PartitionState]:
        """Partition -> its state as last seen, without ids."""
        return self._counter.states

    def step(self) -> int:
        """Look at what the workers have saved, seal and release what is due, show the rest.

        Returns:
            How many records were applied since the last step.

        Raises:
            PartitionMapGrownError: If the log has got more partitions: another publisher must begin.
            AggregatorError: On any invariant violation; the publisher must not be used any more.
        """
        watched = len(self._counter.states)
        if self._log.partitions != watched:
            raise PartitionMapGrownError(
                f"the log has {self._log.partitions} partitions, {watched} are watched"
            )
        self._quiet = (self._quiet + 1) % _QUIET_STEPS
        if not self._quiet:
            self._store.verify()
        applied = self._publication.advance()
        self._publication.seal_due()
        if applied or (not self._quiet and self._publication.has_other_ends):
            self._publication.release_and_show()
        return applied

    def run(self, stop: threading.Event) -> None:
        """Step until `stop` is set.

        Raises:
            LeaseLostError: If another publisher is at work.
        """
        while not stop.wait(_POLL_S):
            self._store.hold_lease()
            self.step()
