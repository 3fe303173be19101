"""Counting without a memory of ids, to measure it alone; every other check is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from hubbub import Survey
from hubbub_aggregator.counting.counting import apply_many, keep_freed_memory
from hubbub_aggregator.counting.dedup import Fresh
from hubbub_aggregator.counting.partition import Counts, PartitionState

GROUP_BYTES = 1 << 20


class Unchecked:
    """A set that takes every id for new and remembers none."""

    def fresh(self, columns: Sequence[bytes]) -> Fresh:
        """Return every id as new."""
        return Fresh(None, np.empty(0, dtype=np.uint64))

    def known(self, ids: bytes) -> np.ndarray:
        """Return False for every id."""
        return np.zeros(len(ids) // 16, dtype=np.bool_)

    def add(self, fresh: Fresh) -> None:
        """Do nothing."""

    def __len__(self) -> int:
        return 0


def count_only(survey: Survey, records: Iterable[bytes]) -> Counts:
    """Return reports per bin of one survey, all rounds together, with duplicates and past any quota."""
    keep_freed_memory()
    total: Counts = np.zeros(survey.channel.bins, dtype=np.int64)
    # A survey that is replaced compiles its channel anew.
    surveys = {survey.digest: survey if survey.quota is None else replace(survey, quota=None)}
    for group in groups(records):
        state = PartitionState(surveys=surveys, id_set=Unchecked)
        for (digest, _), new in apply_many(state, enumerate(group)).rounds.items():
            if digest == survey.digest and len(new.counts):
                total += new.counts
    return total


def groups(records: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the records in groups of about a MiB."""
    group: list[bytes] = []
    size = 0
    for record in records:
        group.append(record)
        size += len(record)
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
