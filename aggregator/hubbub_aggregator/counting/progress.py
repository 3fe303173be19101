"""The progress of a worker, for who watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """A worker's progress, for who watches it.

    Attributes:
        generation: Assignments that began, 0 before the first.
        offsets: The next offset of each partition that is counted here.
        lags: Records of each that wait, as of the last look at the log's end.
        records: Records counted since the process began.
    """

    generation: int
    offsets: Mapping[int, int]
    lags: Mapping[int, int]
    records: int
