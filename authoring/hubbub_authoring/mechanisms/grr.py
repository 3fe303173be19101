"""The entry of grr in survey files and for the designer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hubbub import mechanisms
from hubbub.mechanisms import GRR
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    READING,
    Judge,
    Mechanism,
    Request,
    Trial,
    grid_parameters,
    grouped,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload


def _of_request(request: Request) -> GRR:
    return mechanisms.grr(request.inputs, epsilon=request.epsilon)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    inputs, categories, epsilon = workload.inputs, len(workload.sizes), workload.epsilon
    simplicity = 5 if workload.kind == "grid" else 0
    yield Trial(grid_parameters(workload), lambda: mechanisms.grr(inputs, epsilon=epsilon), simplicity)
    if workload.kind == "labels" and grouped(workload):
        yield Trial(
            {"reading": "category"}, lambda: mechanisms.grr(categories, epsilon=epsilon), 1, by_category=True
        )


ENTRIES: Final = (
    Mechanism(
        name="grr",
        purpose="few values",
        keys=(READING, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=_of_request,
        trials=_trials,
    ),
)
