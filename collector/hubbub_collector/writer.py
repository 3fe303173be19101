"""The road from judged uploads to the log: linger, write in a thread of its own, tell everyone who waits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from hubbub.randomness import Source
from hubbub.records import encode_record
from hubbub.wire import Malformed, Report
from hubbub_collector.admission import Key, Verdict
from hubbub_collector.batcher import Batch
from hubbub_collector.errors import LogError, NotDurable
from hubbub_collector.log import Log
from hubbub_collector.metrics import Metrics
from hubbub_collector.settings import GatewaySettings

_LOG = logging.getLogger("hubbub.collector")


class _Pending:
    """A batch that fills up, and the uploads that wait for it."""

    def __init__(self, batch: Batch, due: float) -> None:
        self.batch = batch
        self.due = due
        self.waiting: list[asyncio.Future[None]] = []

    def settle(self, error: NotDurable | None) -> None:
        for future in self.waiting:
            # A request that was cancelled, when the process stops, no longer waits.
            if not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)


class Writer:
    """Writes each batch to the log once: durable, or forgotten and reported as such.

    One task lives on the event loop and one thread does the blocking work, so that uploads are accepted while
    a batch is written. Lingers of several batches never overlap in the log: they are appended one by one.

    Args:
        log: Where batches go.
        settings: Linger and batch size.
        source: Randomness of the order within a batch.
        metrics: Where the writer counts.
        home: Which partitions the reports of a (digest, round) go to; all if absent.
    """

    def __init__(
        self,
        log: Log,
        settings: GatewaySettings,
        *,
        source: Source,
        metrics: Metrics,
        home: Callable[[Key | None], range] | None = None,
    ) -> None:
        self._home = home
        self._log, self._settings, self._source, self._metrics = log, settings, source, metrics
        self._queue: deque[_Pending] = deque()
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hubbub-log")
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._broken: BaseException | None = None
        self.healthy = True

    def start(self) -> None:
        """Begins to write; call it on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="hubbub-writer")

    def submit(
        self, reports: Sequence[Report | Malformed], verdicts: Sequence[Verdict], now_s: float
    ) -> asyncio.Future[None]:
        """Puts an upload into the open batch.

        Returns:
            A future that is done when the batch is durable, and raises NotDurable when it was forgotten.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if self._task is None or self._stopping or self._broken is not None:
            future.set_exception(NotDurable("the gateway must be running to take uploads, got a stopped one"))
            return future
        if not self._queue or self._is_full(self._queue[-1].batch):
            batch = Batch(self._log.partitions, self._home)
            self._queue.append(_Pending(batch, loop.time() + self._settings.linger_s))
        pending = self._queue[-1]
        pending.batch.add(reports, verdicts, now_s)
        pending.waiting.append(future)
        self._wake.set()
        if self._is_full(pending.batch):
            self._hurry.set()
        return future

    def _is_full(self, batch: Batch) -> bool:
        settings = self._settings
        return batch.attempts >= settings.max_batch_reports or batch.size >= settings.max_batch_bytes

    async def stop(self) -> None:
        """Writes what is waiting, without lingering, and ends; uploads from here on raise NotDurable."""
        self._stopping = True
        self._wake.set()
        self._hurry.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            if not self._queue:
                if self._stopping:
                    return
                self._wake.clear()
                continue
            await self._linger(self._queue[0])
            pending = self._queue.popleft()
            error: NotDurable | None = None
            if self._broken is not None:
                pending.settle(NotDurable("the writer failed"))
                continue
            try:
                await loop.run_in_executor(self._thread, self._write, pending.batch)
            except LogError as cause:
                error = NotDurable(f"the log did not take a batch: {cause}")
                if self.healthy:
                    _LOG.warning("uploads get 503 until the log takes them again: %s", cause)
                self.healthy = False
            except Exception as cause:
                # Not a failing disk but a bug: nothing more is taken, and the operator sees where it is.
                error = NotDurable("the writer failed")
                self._broken, self.healthy = cause, False
                _LOG.exception("the gateway takes no more uploads")
            else:
                if not self.healthy and self._broken is None:
                    _LOG.warning("the log takes uploads again")
                    self.healthy = True
            self._metrics.batch_done("stored" if error is None else "forgotten")
            pending.settle(error)

    async def _linger(self, pending: _Pending) -> None:
        """Waits until the batch is due, full, or the writer is asked to stop."""
        if self._stopping or self._is_full(pending.batch):
            return
        self._hurry.clear()
        remaining_s = pending.due - asyncio.get_running_loop().time()
        if remaining_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), remaining_s)

    def _write(self, batch: Batch) -> None:
        """Encodes and appends; runs in the writer's thread."""
        begin = perf_counter()
        records = {p: [encode_record(record)] for p, record in batch.records(self._source).items()}
        self._log.append(records)
        size = sum(len(record) for column in records.values() for record in column)
        self._metrics.stored(len(records), size, perf_counter() - begin)
