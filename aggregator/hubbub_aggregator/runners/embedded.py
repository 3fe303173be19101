"""One loop over a log's partitions: read, apply, save, seal, release, show.

The first three are `LogCounter.advance` (`counters`), the others `Publication` (`publication`);
`Worker.step` says when each has its turn.

Everything in memory can be had again from store, archive and log, so that a worker may be killed between any
two instructions: what was applied but not saved is read and applied again, and what was sealed but not
released is released at the next start. Any invariant violation raises and ends the worker; its host starts
another.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from hubbub.estimation import AlertRules
from hubbub_aggregator.counting.dead_letters import DeadLetters
from hubbub_aggregator.counting.partition import RoundKey
from hubbub_aggregator.counting.skipping import Skips
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.sealing import DEFAULT_GRACE_S
from hubbub_aggregator.runners.counters import DEFAULT_READ_RECORDS, LogCounter
from hubbub_aggregator.runners.publication import Publication
from hubbub_aggregator.runners.retention import Retention
from hubbub_aggregator.stores.archive import Archive
from hubbub_aggregator.stores.store import Store
from hubbub_aggregator.web.view import LiveView
from hubbub_topic import Log

_IDLE_S: Final = 0.05  # how long `run` rests when the log has nothing new


class Worker:
    """A worker that counts every partition of one log, and publishes what it counts.

    Args:
        log: What to count.
        store: Where counts are kept; it decides where to read on.
        archive: Where releases go.
        view: Where readers look.
        grace_s: How long after a round's lateness its seal waits, seconds; see `sealing`.
        clock: Seconds since 1970, for seals; see `Publication`.
        read_records: The most records of a partition that one step applies and saves together.
        dead_letters: Where letters about what cannot be counted go; None keeps none.
        fleet: What the operator states about the devices asked; None states nothing.
        alerts: The thresholds of alerts on releases; None for the usual ones.
        skips: The records that an operator said to pass over; see `skipping`.
        retention: The bounds of the log; None where it keeps everything.

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
        archive: Archive,
        view: LiveView,
        grace_s: float = DEFAULT_GRACE_S,
        clock: Callable[[], float] = time.time,
        read_records: int = DEFAULT_READ_RECORDS,
        dead_letters: DeadLetters | None = None,
        fleet: FleetStatement | None = None,
        alerts: AlertRules | None = None,
        skips: Skips | None = None,
        retention: Retention | None = None,
    ) -> None:
        self._retention = retention
        self._counter = LogCounter(
            log, store, read_records=read_records, dead_letters=dead_letters, skips=skips
        )
        self._publication = Publication(
            log,
            self._counter,
            gates=store,
            archive=archive,
            view=view,
            grace_s=grace_s,
            clock=clock,
            fleet=fleet,
            alerts=alerts,
        )

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
