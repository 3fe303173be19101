"""The one process that seals, releases and shows what others count: it reads their store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from hubbub.estimation import AlertRules
from hubbub_aggregator.counting.partition import PartitionState
from hubbub_aggregator.counting.seals import SignSeal
from hubbub_aggregator.errors import PartitionMapGrownError
from hubbub_aggregator.release.enrolment import FleetStatement
from hubbub_aggregator.release.sealing import DEFAULT_GRACE_S
from hubbub_aggregator.runners.counters import SharedCounter
from hubbub_aggregator.runners.publication import Publication
from hubbub_aggregator.stores.archive import Archive
from hubbub_aggregator.stores.store import SharedStore
from hubbub_aggregator.web.view import LiveView
from hubbub_topic import Log

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
        archive: Where releases go.
        view: Where readers look.
        grace_s: How long after a round's lateness its seal waits, seconds.
        clock: Seconds since 1970, for seals; see `Publication`.
        fleet: What the operator states about the devices asked; None states nothing.
        alerts: The thresholds of alerts on releases; None for the usual ones.
        sign: Signs seals; without it they are not signed.

    Raises:
        LeaseLostError: If another publisher is at work.
        AheadError: If the store has applied records that the log does not hold.
        CorruptStoreError: If the store contradicts itself.
    """

    def __init__(
        self,
        log: Log,
        store: SharedStore,
        *,
        archive: Archive,
        view: LiveView,
        grace_s: float = DEFAULT_GRACE_S,
        clock: Callable[[], float] = time.time,
        fleet: FleetStatement | None = None,
        alerts: AlertRules | None = None,
        sign: SignSeal | None = None,
    ) -> None:
        self._log, self._store, self._quiet = log, store, 0
        store.hold_lease()
        self._counter = SharedCounter(log, store)
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
            sign=sign,
        )

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
