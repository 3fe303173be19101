"""The road from judged uploads to the log: linger, write in a thread of its own, tell everyone who waits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from hubbub.numeric import Source
from hubbub.wire import SHORT_REPORT, WIDE_REPORT, Malformed, Outcome, Report, encode_record, encode_response
from hubbub_collector.admission import Admission, Key, Verdict
from hubbub_collector.batcher import LARGEST_ROW, Batch
from hubbub_collector.boot_clock import boot_s
from hubbub_collector.errors import NotDurable
from hubbub_collector.metrics import Fate, Metrics
from hubbub_collector.settings import GatewaySettings
from hubbub_topic import Log, LogError

_LOG = logging.getLogger("hubbub.collector")


class _UnjudgedReports:
    """The uploads of reports side by side that are judged when their batch is written.

    Attributes:
        form: SHORT_REPORT or WIDE_REPORT.
        uploads: The reports of each.
        times_s: When each came, seconds since 1970.
        waiting: Who waits for the answer to each.
    """

    def __init__(self, form: np.dtype[np.void]) -> None:
        self.form = form
        self.uploads: list[bytes] = []
        self.times_s: list[float] = []
        self.waiting: list[asyncio.Future[bytes]] = []


class _PendingBatch:
    """A batch that fills up, and the uploads that wait for it.

    Attributes:
        due: When it has lingered long enough, in the event loop's time.
        began_s: When the first of it was judged, by the boot clock.
        unjudged: How many reports it has beside its batch, to be judged together when it is written.
        room: How many of them it can have, whatever they turn out to be.
    """

    def __init__(self, batch: Batch, due: float, began_s: float) -> None:
        self.batch = batch
        self.due = due
        self.began_s = began_s
        self.unjudged = self.capacity = 0
        self._unjudged = {
            SHORT_REPORT: _UnjudgedReports(SHORT_REPORT),
            WIDE_REPORT: _UnjudgedReports(WIDE_REPORT),
        }
        # The uploads that were judged, and the answer to each.
        self._waiting: list[asyncio.Future[bytes]] = []
        self._answers: list[bytes] = []

    def add(
        self,
        reports: Sequence[Report | Malformed],
        verdicts: Sequence[Verdict],
        now_s: float,
        future: asyncio.Future[bytes],
    ) -> None:
        """Take an upload that was judged."""
        self.batch.add(reports, verdicts, now_s)
        self._waiting.append(future)
        self._answers.append(encode_response([verdict.outcome for verdict in verdicts]))

    def add_rows(
        self, rows: bytes, now_s: float, form: np.dtype[np.void], future: asyncio.Future[bytes]
    ) -> None:
        """Take an upload of reports side by side."""
        unjudged = self._unjudged[form]
        unjudged.uploads.append(rows)
        unjudged.times_s.append(now_s)
        unjudged.waiting.append(future)
        self.unjudged += len(rows) // form.itemsize

    def judge(self, admission: Admission) -> None:
        """Judge what was not judged: all of one form at once."""
        for form, unjudged in self._unjudged.items():
            if not unjudged.uploads:
                continue
            rows = np.frombuffer(b"".join(unjudged.uploads), dtype=form)
            lengths = [len(upload) // form.itemsize for upload in unjudged.uploads]
            verdicts, which = admission.judge_rows(rows, np.repeat(unjudged.times_s, lengths))
            self.batch.add_rows(rows, verdicts, which, max(unjudged.times_s))
            self._answers += _answers([verdict.outcome for verdict in verdicts], which.tolist(), lengths)
            self._waiting += unjudged.waiting

    def answer_all(self) -> None:
        """Answer everyone."""
        for future, answer in zip(self._waiting, self._answers, strict=True):
            # A request that was cancelled, when the process stops, no longer waits.
            if not future.done():
                future.set_result(answer)

    def forget(self, error: NotDurable) -> None:
        """Tell everyone that nothing was stored."""
        unjudged = [future for uploads in self._unjudged.values() for future in uploads.waiting]
        for future in {*self._waiting, *unjudged}:
            if not future.done():
                future.set_exception(error)


def _answers(outcomes: Sequence[Outcome], which: Sequence[int], lengths: Sequence[int]) -> Iterator[bytes]:
    """Return the answer to each upload from the places of its reports' outcomes; most are alike."""
    known: dict[tuple[int, ...], bytes] = {}
    begin = 0
    for length in lengths:
        places = tuple(which[begin : begin + length])
        begin += length
        answer = known.get(places)
        if answer is None:
            answer = known[places] = encode_response([outcomes[place] for place in places])
        yield answer


class Writer:
    """A writer that stores each batch in the log once: durable, or forgotten and reported as such.

    One task lives on the event loop and one thread does the blocking work, so that uploads are accepted while
    a batch is written. Lingers of several batches never overlap in the log: they are appended one by one.
    Make it on that event loop, while it runs.

    Args:
        log: Where batches go.
        settings: Linger and batch size.
        admission: What judges reports side by side.
        source: Randomness of the order within a batch.
        metrics: Where the writer counts.
        home: Which partitions the reports of a (digest, round) go to; all if absent.
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
        self._queue: deque[_PendingBatch] = deque()
        # The last of the queue, while it takes more.
        self._open: _PendingBatch | None = None
        self._wake = asyncio.Event()
        self._flush = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hubbub-log")
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._broken: BaseException | None = None
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
    ) -> asyncio.Future[bytes]:
        """Put an upload that was judged into the open batch.

        Args:
            reports: The reports.
            verdicts: One for each.
            now_s: When they were judged, seconds since 1970.
            began_s: What the boot clock said before that; None for now.

        Returns:
            The answer to it, when the batch is durable; NotDurable when it was forgotten.

        Raises:
            NotDurable: If the writer takes no more.
        """
        future: asyncio.Future[bytes] = self._loop.create_future()
        pending = self._open or self._begin(began_s)
        pending.add(reports, verdicts, now_s, future)
        pending.capacity = self._capacity(pending.batch)
        if pending.unjudged >= pending.capacity:
            self._close()
        return future

    def submit_rows(
        self,
        rows: bytes,
        now_s: float,
        form: np.dtype[np.void] = SHORT_REPORT,
        *,
        began_s: float | None = None,
    ) -> asyncio.Future[bytes]:
        """Put an upload of reports side by side, which are judged later, into the open batch.

        Raises:
            NotDurable: If the writer takes no more.
        """
        future: asyncio.Future[bytes] = self._loop.create_future()
        pending = self._open or self._begin(began_s)
        pending.add_rows(rows, now_s, form, future)
        if pending.unjudged >= pending.capacity:
            self._close()
        return future

    def _begin(self, began_s: float | None) -> _PendingBatch:
        if self._task is None or self._stopping or self._broken is not None:
            raise NotDurable("the gateway must be running to take uploads, got a stopped one")
        batch = Batch(self._log.partitions, self._target_partitions)
        began_s = self._boot_clock() if began_s is None else began_s
        self._open = _PendingBatch(batch, self._loop.time() + self._settings.linger_s, began_s)
        self._open.capacity = self._capacity(batch)
        self._queue.append(self._open)
        self._wake.set()
        return self._open

    def _capacity(self, batch: Batch) -> int:
        """Return the number of reports that the batch can still take."""
        settings = self._settings
        return min(
            settings.max_batch_reports - batch.attempts,
            (settings.max_batch_bytes - batch.size) // LARGEST_ROW,
        )

    def _close(self) -> None:
        """Take no more into the open batch, and do not let it linger."""
        self._open = None
        self._flush.set()

    async def stop(self) -> None:
        """Write what is waiting, without lingering, and ends; uploads from here on raise NotDurable."""
        self._stopping, self._open = True, None
        self._wake.set()
        self._flush.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            if not self._queue:
                if self._stopping:
                    return
                self._wake.clear()
                continue
            await self._linger(self._queue[0])
            pending = self._queue.popleft()
            if pending is self._open:
                self._open = None
            if self._broken is not None:
                pending.forget(NotDurable("the writer failed"))
                continue
            fate, error = await self._store(pending)
            self._metrics.batch_done(fate)
            if error is None:
                self._metrics.reports.update(pending.batch.outcomes())
                pending.answer_all()
            else:
                pending.forget(error)

    async def _store(self, pending: _PendingBatch) -> tuple[Fate, NotDurable | None]:
        """Judge and append a batch; return what became of it, and why those who wait hear no outcome."""
        try:
            pending.judge(self._admission)
            await self._loop.run_in_executor(self._thread, self._write, pending.batch)
        except LogError as cause:
            if self.healthy:
                _LOG.warning("uploads get 503 until the log takes them again: %s", cause)
            self.healthy = False
            return "forgotten", NotDurable(f"the log did not take a batch: {cause}")
        except Exception as cause:
            # Not a failing disk but a bug: nothing more is taken, and the operator sees where it is.
            self._broken, self._open, self.healthy = cause, None, False
            _LOG.exception("the gateway takes no more uploads")
            return "forgotten", NotDurable("the writer failed")
        if (overdue := self._overdue(pending)) is not None:
            if self.healthy:
                _LOG.warning("uploads get 503: %s", overdue)
            self.healthy = False
            return "overdue", overdue
        if not self.healthy:
            _LOG.warning("the log takes uploads again")
            self.healthy = True
        return "stored", None

    def _overdue(self, pending: _PendingBatch) -> NotDurable | None:
        """Return an error if a batch took so long from judgement to log that a seal may have come before it.

        This process may have been stopped, or its machine asleep, in between: what was `accepted` then would
        be late to whoever counts. Asked for again, every report gets the verdict of that time.
        """
        took_s = self._boot_clock() - pending.began_s
        if took_s <= self._settings.delivery_s:
            return None
        return NotDurable(
            f"a batch must be in the log {self._settings.delivery_s:g} s after it was judged, "
            f"took {took_s:.1f} s"
        )

    async def _linger(self, pending: _PendingBatch) -> None:
        """Wait until the batch is due, or take no more."""
        if pending is not self._open:
            return
        self._flush.clear()
        remaining_s = pending.due - self._loop.time()
        if remaining_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._flush.wait(), remaining_s)

    def _write(self, batch: Batch) -> None:
        """Encode and appends; runs in the writer's thread."""
        begin = perf_counter()
        records = {p: [encode_record(record)] for p, record in batch.records(self._source).items()}
        self._log.append(records)
        size = sum(len(record) for column in records.values() for record in column)
        self._metrics.stored(len(records), size, perf_counter() - begin)
