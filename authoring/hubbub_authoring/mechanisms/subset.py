"""The entry of subset in survey files and for the designer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from hubbub.mechanisms import SubsetSelection, subset_selection
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


def _of_request(request: Request) -> SubsetSelection:
    return subset_selection(request.inputs, epsilon=request.epsilon)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    inputs, categories, epsilon = workload.inputs, len(workload.sizes), workload.epsilon
    if workload.kind == "labels" and grouped(workload):
        yield Trial(
            {"reading": "category"},
            lambda: subset_selection(categories, epsilon=epsilon),
            1,
            by_category=True,
        )
    yield Trial(grid_parameters(workload), lambda: subset_selection(inputs, epsilon=epsilon), 6)


ENTRIES: Final = (
    Mechanism(
        name="subset",
        purpose="many values without categories",
        keys=(READING, POINTS),
        takes=frozenset({"labels", "numbers", "table"}),
        build=_of_request,
        trials=_trials,
    ),
)
