"""The entry of optimal channels: the solution of the programme of readings itself, compiled to integers.

The mean of a number on a grid, with a missing input, has no formula for its best channel. On an author's
machine the linear programme of `readings` finds it; devices see a finite channel like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hubbub.channels.finite import DenseChannel
from hubbub.design.floor.columns import exp_above
from hubbub.design.floor.programme import Floats
from hubbub.design.floor.readings import best_readings
from hubbub.errors import ParameterError
from hubbub.mechanisms.integers import integerise
from hubbub.mechanisms.mechanism import POINTS, Judge, Mechanism, Request, Trial

if TYPE_CHECKING:
    from hubbub.design.workload import Workload

MAX_POINTS: Final = 128
"""Points whose programme is solved: some ten seconds, and channels of 129 inputs and 260 outputs at most."""

_FEW: Final = 65
_FINE: Final = {True: 241, False: 121}
"""Readings of the grid: a few points have time for more."""

_SHOWN: Final = 1e-5
"""The least singular value, as a share of the largest, of a channel that tells all inputs apart."""

_COIN: Final = 2e-3
"""The share of reports by randomised response in a channel that else would not: what the mean loses."""

_LEAST: Final = 1e-9
"""A probability below which an output is left out: its share is given to the others, column by column."""


def optimal_mean(points: int, *, epsilon: float) -> DenseChannel:
    """Return the channel of least error of the mean of equally spaced points, with a missing input, last.

    Args:
        points: Points of the grid, 2 to MAX_POINTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.

    Raises:
        ParameterError: If a parameter is out of range, or scipy is not installed.
    """
    if not 2 <= points <= MAX_POINTS:
        raise ParameterError(f"points must be 2 to {MAX_POINTS} for an optimal channel, got {points}")
    return _solved(points, epsilon)


@lru_cache(maxsize=8)
def _solved(points: int, epsilon: float) -> DenseChannel:
    functional = np.append(np.linspace(-1.0, 1.0, points), 0.0)
    prior = np.append(np.full(points, 1.0 / points), 0.0)
    try:
        found = best_readings(functional, prior, exp_above(epsilon), fine=_FINE[points <= _FEW])
    except ModuleNotFoundError:
        raise ParameterError("an optimal channel needs scipy: install hubbub[server]") from None
    return integerise(_resolved(_sparse(found.rows, epsilon), epsilon), epsilon=epsilon)


def _sparse(rows: Floats, epsilon: float) -> Floats:
    """Return the columns in use, with rows that sum to one and ratios within epsilon."""
    kept = rows[:, rows.min(axis=0) > _LEAST]
    a = float(np.exp(epsilon))
    for _ in range(100):
        least = kept.min(axis=0)
        kept = np.clip(kept, np.maximum(least, kept.max(axis=0) / a), None)
        kept /= kept.sum(axis=1, keepdims=True)
    return np.asarray(kept)


def _resolved(rows: Floats, epsilon: float) -> Floats:
    """Return rows that tell all inputs apart, with a little randomised response by a public coin if needed.

    At small epsilon the best channel for the mean hides some differences of shares. Rounded to integers it
    would show them at the scale of the rounding, and estimates of them would be nothing but noise.
    """
    inputs = len(rows)
    sizes = np.linalg.svd(rows / np.sqrt(rows.mean(axis=0)), compute_uv=False)
    if sizes[-1] > _SHOWN * sizes[0]:
        return rows
    truth = np.ones((inputs, inputs)) + (np.exp(epsilon) - 1.0) * np.eye(inputs)
    coin = truth / truth.sum(axis=1, keepdims=True)
    return np.concatenate([(1.0 - _COIN) * rows, _COIN * coin], axis=1)


def _of_request(request: Request) -> DenseChannel:
    if request.points > MAX_POINTS:
        POINTS.refuse(request, f"must be at most {MAX_POINTS} for an optimal channel")
    return optimal_mean(request.points, epsilon=request.epsilon)


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    points = workload.inputs - 1
    if workload.kind == "grid" and workload.objective.quantity == "mean" and points <= MAX_POINTS:
        yield Trial({"points": points}, lambda: optimal_mean(points, epsilon=workload.epsilon), 8)


ENTRIES: Final = (
    Mechanism(
        name="optimal",
        purpose="the mean of a number, at the least error that any mechanism can have",
        keys=(POINTS,),
        takes=frozenset({"numbers"}),
        build=_of_request,
        trials=_trials,
    ),
)
