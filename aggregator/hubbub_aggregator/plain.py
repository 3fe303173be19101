"""Counting without a framework: one loop over all partitions of a log, on the same assignment as Faust's.

For one worker that needs no group, for replay of a topic, and as the measure of what a framework costs.
"""

from __future__ import annotations

import threading

from hubbub_aggregator.assignment import Assignment
from hubbub_aggregator.log import Log
from hubbub_aggregator.worker import DEFAULT_READ_RECORDS

_IDLE_S = 0.02  # how long to rest while the log has nothing new


def count(
    log: Log, assignment: Assignment, stop: threading.Event, *, read_records: int = DEFAULT_READ_RECORDS
) -> None:
    """Counts every partition until `stop` is set, and then what the log still holds.

    Raises:
        AggregatorError: On any doubt; what was saved is right, and a new process goes on from there.
    """
    following = assignment.load(range(log.partitions))
    while True:
        stopping, applied = stop.is_set(), 0
        for partition, offset in following.items():
            records = log.read(partition, offset, read_records)
            if records:
                seek = assignment.take(partition, records)
                following[partition] = records[-1][0] + 1 if seek is None else seek.offset
                applied += len(records)
        if not applied:
            if stopping:
                return
            stop.wait(_IDLE_S)
