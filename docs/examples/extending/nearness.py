"""The exponential mechanism over values in order: the nearer a value is to the true one, the likelier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.mechanisms import integer_rows, with_missing
from hubbub.numeric import checked_epsilon
from hubbub_authoring.mechanisms.mechanism import Judge, Mechanism, RealKey, Request, Trial

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload


def nearness(values: int, *, epsilon: float, reach: float = 1.0) -> DenseChannel:
    """Return the channel whose log-probabilities fall evenly with the distance, missing last.

    Args:
        values: Values in order, without the missing one.
        epsilon: The declared epsilon, per report.
        reach: The share of the range over which they fall, above 0, at most 1; beyond it they stay.

    Raises:
        ParameterError: If a parameter is out of range, or no integers keep the declared epsilon.
    """
    slope = 0.5 * checked_epsilon(epsilon)
    steps = np.abs(np.arange(values)[:, None] - np.arange(values))
    rows = np.exp(-slope * np.minimum(steps / max(1.0, reach * (values - 1)), 1.0))
    rows /= rows.sum(axis=1, keepdims=True)
    return DenseChannel(integer_rows(with_missing(rows, epsilon=epsilon), epsilon=epsilon))


REACH: Final = RealKey(
    "reach", "`reach`, the share of the range over which chances fall (1)", low=1e-3, high=1.0
)


def _of_request(request: Request) -> DenseChannel:
    reach = REACH.read(request)
    return nearness(request.points, epsilon=request.epsilon, reach=1.0 if reach is None else reach)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    if workload.points is None or len(workload.sizes) > 2:
        return
    yield Trial({}, lambda: nearness(workload.inputs - 1, epsilon=workload.epsilon), simplicity=3)


ENTRIES: Final = (
    Mechanism(
        name="nearness",
        purpose="integers in order, where a near miss is better than a far one",
        keys=(REACH,),
        takes=frozenset({"labels"}),
        build=_of_request,
        trials=_trials,
    ),
)
