"""The writer of batches: it lingers, writes in a thread of its own, and answers every upload that waits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Final

import numpy as np

from hubbub.numeric import Source
from hubbub.wire import SHORT_REPORT, Malformed, Report, encode_record
from hubbub_collector.admission import Admission, Key, Verdict
from hubbub_collector.batching.batcher import Batch, parts_of
from hubbub_collector.batching.pending_batch import PendingBatch, Waiting, WaitingCoroutine
from hubbub_collector.boot_clock import boot_s
from hubbub_collector.errors import NotDurableError
from hubbub_collector.metrics import Fate, Metrics
from hubbub_collector.settings import GatewaySettings
from hubbub_topic import Log, LogError

_LOG = logging.getLogger("hubbub.collector")
# An overload sheds with every batch; a line a minute says that it goes on.
_WARNING_S: Final = 60.0


def never_gone() -> bool:
    """Return False: a sender whose connection is not known counts as present."""
    return False


class Writer:
    """A writer that stores each batch in the log once: durable, or forgotten and reported as such.

    One task lives on the event loop and one thread does the blocking work, so that uploads are accepted while
    a batch is written. Several batches may wait at once; they are appended one by one, in order.
    Make it on that event loop, while it runs.

    Args:
        log: Where batches go.
        settings: Linger and batch size.
        admission: The judge of reports side by side.
        source: Randomness of the order within a batch.
        metrics: Where the writer counts.
        target_partitions: Return the partitions that the reports of a (digest, round) go to; all if absent.
        boot_clock: Seconds since the machine started, suspended ones included.
    """

    def __init__(
        self,
        log: Log,
        settings: GatewaySettings,
        admission: Admission,
        *,
        source: Source,
        metrics: Metrics,
        target_partitions: Callable[[Key | None], range] | None = None,
        boot_clock: Callable[[], float] = boot_s,
    ) -> None:
        self._target_partitions, self._admission, self._boot_clock = target_partitions, admission, boot_clock
        self._log, self._settings, self._source, self._metrics = log, settings, source, metrics
        self._loop = asyncio.get_running_loop()
        self._queue: deque[PendingBatch] = deque()
        # The last of the queue, while it takes more.
        self._open: PendingBatch | None = None
        self._wake = asyncio.Event()
        self._flush = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hubbub-log")
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        # From when a batch is chosen to be written until what became of it is known.
        self._is_writing = False
        self._broken: BaseException | None = None
        self._warn_again_s = -math.inf
        self.healthy = True

    def start(self) -> None:
        """Begin to write."""
        self._task = self._loop.create_task(self._run(), name="hubbub-writer")

    def submit(
        self,
        reports: Sequence[Report | Malformed],
        verdicts: Sequence[Verdict],
        now_s: float,
        *,
        began_s: float | None = None,
        is_gone: Callable[[], bool] = never_gone,
    ) -> asyncio.Future[bytes]:
        """Put an upload that was judged into the open batch.

        Args:
            reports: The reports.
            verdicts: One for each.
            now_s: When they were judged, seconds since 1970.
            began_s: What the boot clock said before that; None for now.
            is_gone: Return whether the sender hung up; then the upload is dropped if it is not written yet.

        Returns:
            The answer to it, when the batch is durable; NotDurableError when it was forgotten, or waited too
            long.

        Raises:
            NotDurableError: If the writer takes no more.
        """
        waiting = self._waiting(began_s, is_gone)
        pending = self._open or self._begin()
        pending.add(reports, verdicts, now_s, waiting)
        self._close_if_full(pending)
        return waiting.future

    def submit_rows(
        self,
        rows: bytes,
        now_s: float,
        form: np.dtype[np.void] = SHORT_REPORT,
        *,
        began_s: float | None = None,
        is_gone: Callable[[], bool] = never_gone,
    ) -> asyncio.Future[bytes]:
        """Put an upload of reports side by side, which are judged later, into the open batch.

        Args:
            rows: The reports, side by side in `form`.
            now_s: When they came, seconds since 1970; they are judged by it.
            form: SHORT_REPORT, WIDE_REPORT, or one of `hubbub.wire.set_reports`.
            began_s: As for `submit`.
            is_gone: As for `submit`.

        Returns:
            As `submit` does.

        Raises:
            NotDurableError: If the writer takes no more.
        """
        waiting = self._waiting(began_s, is_gone)
        self.take_rows(rows, now_s, form, waiting)
        return waiting.future

    def take_rows(self, rows: bytes, now_s: float, form: np.dtype[np.void], waiting: Waiting) -> None:
        """Do as `submit_rows` does, and tell whoever waits."""
        pending = self._open or self._begin()
        pending.add_rows(rows, now_s, form, waiting)
        self._close_if_full(pending)

    @property
    def takes_uploads(self) -> bool:
        """True from its start to its end, unless it failed."""
        return self._task is not None and not self._stopping and self._broken is None

    def _waiting(self, began_s: float | None, is_gone: Callable[[], bool]) -> WaitingCoroutine:
        began_s = self._boot_clock() if began_s is None else began_s
        return WaitingCoroutine(self._loop.create_future(), began_s, is_gone)

    def _begin(self) -> PendingBatch:
        if not self.takes_uploads:
            raise NotDurableError("the gateway must be running to take uploads, got a stopped one")
        self._open = PendingBatch(self._new_batch, self._loop.time() + self._settings.linger_s)
        self._queue.append(self._open)
        self._wake.set()
        return self._open

    def _new_batch(self) -> Batch:
        return Batch(self._log.partitions, self._target_partitions)

    def _close_if_full(self, pending: PendingBatch) -> None:
        """Take no more into the open batch if it is full, or may be written now, and do not let it linger."""
        if self._is_full(pending):
            self._open = None
            self._flush.set()
        elif pending.uploads >= self._settings.linger_uploads and not self._is_writing:
            # The next uploads are taken while this one is written: were all senders in it, all would wait.
            self._open, self._is_writing = None, True
            self._flush.set()

    def _is_full(self, pending: PendingBatch) -> bool:
        return pending.is_full(self._settings.max_batch_reports, self._settings.max_batch_bytes)

    async def stop(self) -> None:
        """Write what is waiting, without lingering, and end; uploads from here on raise NotDurableError."""
        self._stopping, self._open = True, None
        self._wake.set()
        self._flush.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        while True:
            self._is_writing = False
            await self._wake.wait()
            if not self._queue:
                if self._stopping:
                    return
                self._wake.clear()
                continue
            await self._linger(self._queue[0])
            self._is_writing = True
            pending = self._queue.popleft()
            # If all that waits fits into one batch, no work is saved by refusing it.
            more_waits = self._is_full(pending)
            if pending is self._open:
                self._open = None
            if self._broken is not None:
                pending.forget(NotDurableError("the writer failed"))
                continue
            self._shed(
                pending, self._settings.linger_s + self._settings.max_wait_s if more_waits else math.inf
            )
            if pending.is_empty:
                continue
            fate, error = await self._store(pending)
            self._metrics.batch_done(fate)
            if error is None:
                self._metrics.reports.update(pending.batch.outcomes())
                pending.answer_all()
            else:
                pending.forget(error)

    def _shed(self, pending: PendingBatch, most_s: float) -> None:
        """Refuse what waited too long, and drop what nobody waits for, before any work is spent on it."""
        now_s = self._boot_clock()
        error = NotDurableError(
            f"an upload must be written within {self._settings.max_wait_s:g} s of its linger"
        )
        refused, dropped = pending.shed(now_s - most_s, error)
        self._metrics.shed["waited"] += refused
        self._metrics.shed["gone"] += dropped
        if refused and now_s >= self._warn_again_s:
            self._warn_again_s = now_s + _WARNING_S
            _LOG.warning(
                "uploads get 503: more come than the log takes, and they waited longer than %g s",
                self._settings.max_wait_s,
            )

    async def _store(self, pending: PendingBatch) -> tuple[Fate, NotDurableError | None]:
        """Judge and append a batch; return what became of it, and why those who wait hear no outcome."""
        try:
            pending.judge(self._admission)
            await self._loop.run_in_executor(self._thread, self._write, pending.batch)
        except LogError as cause:
            if self.healthy:
                _LOG.warning("uploads get 503 until the log takes them again: %s", cause)
            self.healthy = False
            return "forgotten", NotDurableError(f"the log did not take a batch: {cause}")
        except Exception as cause:
            # Not a failing disk but a bug: nothing more is taken, and the operator sees where it is.
            self._broken, self._open, self.healthy = cause, None, False
            _LOG.exception("the gateway takes no more uploads")
            return "forgotten", NotDurableError("the writer failed")
        if (overdue := self._overdue(pending)) is not None:
            if self.healthy:
                _LOG.warning("uploads get 503: %s", overdue)
            self.healthy = False
            return "overdue", overdue
        if not self.healthy:
            _LOG.warning("the log takes uploads again")
            self.healthy = True
        return "stored", None

    def _overdue(self, pending: PendingBatch) -> NotDurableError | None:
        """Return an error if a batch took so long from judgement to log that a seal may have come before it.

        This process may have been stopped, or its machine asleep, in between: what was `accepted` then would
        be late to whoever counts. Asked for again, every report gets the verdict of that time.
        """
        took_s = self._boot_clock() - pending.began_s
        if took_s <= self._settings.delivery_s:
            return None
        return NotDurableError(
            f"a batch must be in the log {self._settings.delivery_s:g} s after it was judged, "
            f"took {took_s:.1f} s"
        )

    async def _linger(self, pending: PendingBatch) -> None:
        """Wait until the batch is due, has company enough, or takes no more."""
        if pending is not self._open or pending.uploads >= self._settings.linger_uploads:
            return
        self._flush.clear()
        remaining_s = pending.due - self._loop.time()
        if remaining_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._flush.wait(), remaining_s)

    def _write(self, batch: Batch) -> None:
        """Encode the records and append them; runs in the writer's thread."""
        begin = perf_counter()
        records = {
            partition: [encode_record(part) for part in parts_of(record)]
            for partition, record in batch.records(self._source).items()
        }
        self._log.append(records)
        size = sum(len(record) for column in records.values() for record in column)
        self._metrics.stored(sum(map(len, records.values())), size, perf_counter() - begin)
