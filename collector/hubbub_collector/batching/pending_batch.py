"""A batch that fills up, and the uploads that wait for it: judged, answered, refused or dropped together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hubbub.wire import Malformed, Outcome, Report, encode_response
from hubbub_collector.admission import Admission, Verdict
from hubbub_collector.batching.batcher import Batch, largest_row
from hubbub_collector.errors import NotDurableError


class Waiting(Protocol):
    """A wait for the answer to an upload, ended once by one of two methods, which do not raise."""

    @property
    def began_s(self) -> float:
        """When the upload came, by the boot clock."""

    @property
    def has_given_up(self) -> bool:
        """True if nobody will read the answer: the sender hung up, or the process stops."""

    def answer(self, outcomes: bytes) -> None:
        """Say that it is durable, and give its encoded outcomes."""

    def refuse(self, error: NotDurableError) -> None:
        """Say that nothing was stored."""


@dataclass(slots=True, eq=False)
class WaitingCoroutine:
    """A coroutine that waits for the answer to an upload.

    Attributes:
        future: The answer.
        began_s: When the upload came, by the boot clock.
        is_gone: Return whether the sender hung up.
    """

    future: asyncio.Future[bytes]
    began_s: float
    is_gone: Callable[[], bool]

    @property
    def has_given_up(self) -> bool:
        """True if nobody will read the answer."""
        return self.future.done() or self.is_gone()

    def answer(self, outcomes: bytes) -> None:
        """Return its outcomes to it, unless it was cancelled."""
        if not self.future.done():
            self.future.set_result(outcomes)

    def refuse(self, error: NotDurableError) -> None:
        """Raise an error in it, unless it was cancelled."""
        if not self.future.done():
            self.future.set_exception(error)


class _UnjudgedReports:
    """The uploads of reports side by side that are judged when their batch is written.

    Attributes:
        form: The form of all of them.
        row_bytes: Bytes that one of its reports may add to a batch.
        uploads: The reports of each, when it came (seconds since 1970), and who waits for the answer.
    """

    def __init__(self, form: np.dtype[np.void]) -> None:
        self.form, self.row_bytes = form, largest_row(form)
        self.uploads: list[tuple[bytes, float, Waiting]] = []


class PendingBatch:
    """A batch that fills up, and the uploads that wait for it.

    Args:
        new_batch: Return an empty batch.
        due: The end of its linger, in the event loop's time.

    Attributes:
        batch: The reports that were judged.
        due: As above.
        uploads: The number of uploads that it took.
        unjudged: The number of reports beside `batch`, which are judged together when it is written.
        unjudged_bytes: The bytes that they may add to it, whatever their verdicts will be.
    """

    def __init__(self, new_batch: Callable[[], Batch], due: float) -> None:
        self._new_batch = new_batch
        self.batch = new_batch()
        self.due = due
        self.uploads = self.unjudged = self.unjudged_bytes = 0
        # By form. Senders choose them, out of few: four for each width of sets that is served, and two.
        self._unjudged: dict[np.dtype[np.void], _UnjudgedReports] = {}
        # The uploads that were judged one by one.
        self._judged: list[tuple[Sequence[Report | Malformed], Sequence[Verdict], float, Waiting]] = []
        # All that were judged in the end, and the answer to each.
        self._waiting: list[Waiting] = []
        self._answers: list[bytes] = []

    def add(
        self,
        reports: Sequence[Report | Malformed],
        verdicts: Sequence[Verdict],
        now_s: float,
        waiting: Waiting,
    ) -> None:
        """Take an upload that was judged."""
        self.batch.add(reports, verdicts, now_s)
        self._judged.append((reports, verdicts, now_s, waiting))
        self.uploads += 1

    def add_rows(self, rows: bytes, now_s: float, form: np.dtype[np.void], waiting: Waiting) -> None:
        """Take an upload of reports side by side."""
        unjudged = self._unjudged.get(form)
        if unjudged is None:
            unjudged = self._unjudged[form] = _UnjudgedReports(form)
        unjudged.uploads.append((rows, now_s, waiting))
        self.uploads += 1
        reports = len(rows) // form.itemsize
        self.unjudged += reports
        self.unjudged_bytes += reports * unjudged.row_bytes

    def is_full(self, most_reports: int, most_bytes: int) -> bool:
        """Return whether its reports reach one of two bounds, whatever their verdicts will be."""
        return (
            self.batch.attempts + self.unjudged >= most_reports
            or self.batch.size + self.unjudged_bytes >= most_bytes
        )

    @property
    def is_empty(self) -> bool:
        """True if nobody waits for it."""
        return not any(True for _ in self._all())

    @property
    def began_s(self) -> float:
        """The time when the first of its uploads came, by the boot clock."""
        return min(waiting.began_s for waiting in self._all())

    def _all(self) -> Iterator[Waiting]:
        for unjudged in self._unjudged.values():
            for *_, waiting in unjudged.uploads:
                yield waiting
        for *_, waiting in self._judged:
            yield waiting

    def shed(self, since_s: float, error: NotDurableError) -> tuple[int, int]:
        """Refuse the uploads that came before a time, and drop those whose senders have given up.

        Args:
            since_s: The time, by the boot clock.
            error: What their senders hear.

        Returns:
            How many were refused though their senders still waited, and how many were dropped.
        """
        shed = [waiting for waiting in self._all() if waiting.began_s < since_s or waiting.has_given_up]
        if not shed:
            return 0, 0
        refused = sum(not waiting.has_given_up for waiting in shed)
        for waiting in shed:
            waiting.refuse(error)
        leave = set(map(id, shed))
        for unjudged in self._unjudged.values():
            unjudged.uploads = [upload for upload in unjudged.uploads if id(upload[-1]) not in leave]
        judged = [upload for upload in self._judged if id(upload[-1]) not in leave]
        if len(judged) < len(self._judged):
            # A batch cannot give back what it has taken.
            self._judged, self.batch = judged, self._new_batch()
            for reports, verdicts, now_s, _ in judged:
                self.batch.add(reports, verdicts, now_s)
        return refused, len(shed) - refused

    def judge(self, admission: Admission) -> None:
        """Judge the reports that are not judged yet, all of one form at once."""
        for _, verdicts, _, waiting in self._judged:
            self._waiting.append(waiting)
            self._answers.append(encode_response([verdict.outcome for verdict in verdicts]))
        for form, unjudged in self._unjudged.items():
            if not unjudged.uploads:
                continue
            uploads, times_s, waiting_for = zip(*unjudged.uploads, strict=True)
            rows = np.frombuffer(b"".join(uploads), dtype=form)
            lengths = [len(upload) // form.itemsize for upload in uploads]
            verdicts, which = admission.judge_rows(rows, np.repeat(times_s, lengths))
            self.batch.add_rows(rows, verdicts, which, max(times_s))
            self._answers += _answers([verdict.outcome for verdict in verdicts], which.tolist(), lengths)
            self._waiting += waiting_for

    def answer_all(self) -> None:
        """Answer everyone."""
        for waiting, answer in zip(self._waiting, self._answers, strict=True):
            waiting.answer(answer)

    def forget(self, error: NotDurableError) -> None:
        """Tell everyone that nothing was stored."""
        for waiting in self._all():
            waiting.refuse(error)


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
