"""The entry of local_hashing in survey files and for the designer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hubbub.channels import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms import MAX_SYMBOLS, LocalHashing, local_hashing
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    READING,
    IntegerKey,
    Judge,
    Mechanism,
    Parameters,
    Request,
    Trial,
    grid_parameters,
    grouped,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload


MAX_COMPARED: Final = 2**23
"""The most buckets of all seeds, times categories of several values, at which the designer tries it: every
category is summed over every bucket, some 10 s for so many. An author who names it gets it at any size."""


_BUCKETS: Final = IntegerKey(
    "buckets",
    "`buckets`, cells of a hash, a prime or a power of two (the number of least error if left out)",
    low=2,
    high=MAX_SYMBOLS,
)


def _of_request(request: Request) -> LocalHashing:
    return local_hashing(request.inputs, epsilon=request.epsilon, buckets=_BUCKETS.read(request))


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    if workload.kind == "labels" and grouped(workload):
        yield _trial(workload, len(workload.sizes), {"reading": "category"}, 1)
    yield _trial(workload, workload.inputs, grid_parameters(workload), 6)


def _trial(workload: Workload, inputs: int, parameters: Parameters, simplicity: int) -> Trial:
    def told(channel: Channel) -> Parameters:
        buckets: Parameters = {"buckets": cast(LocalHashing, channel).pool.buckets}
        return buckets | parameters if "points" in parameters else parameters | buckets

    def build() -> LocalHashing:
        channel = local_hashing(inputs, epsilon=workload.epsilon)
        several = 0 if "reading" in parameters else np.count_nonzero(np.asarray(workload.sizes) > 1)
        if (cells := several * channel.outputs) > MAX_COMPARED:
            raise ParameterError(
                f"local hashing must have at most {MAX_COMPARED} cells of categories to be compared, "
                f"got {cells}"
            )
        return channel

    return Trial(
        parameters,
        build,
        simplicity,
        by_category="reading" in parameters,
        told=told,
    )


ENTRIES: Final = (
    Mechanism(
        name="local_hashing",
        purpose="many values, in reports of a few bytes",
        keys=(READING, _BUCKETS, POINTS),
        takes=frozenset({"labels", "numbers"}),
        build=_of_request,
        trials=_trials,
    ),
)
