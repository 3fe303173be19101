"""The entry of optimal channels: solutions of the programme of floors itself, compiled to integers.

Three questions have no formula for their best channel: the mean of a number on a grid, its cumulative shares,
and categories of different sizes that are asked alone. On an author's machine a linear programme (`readings`)
finds the first, a search over columns (`patterns`) the others; devices see a finite channel like any
other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hubbub.channels import CurveChannel, DenseChannel, WeightedChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import integerise, middle
from hubbub_authoring.floor.columns import exp_above
from hubbub_authoring.floor.patterns import best_columns
from hubbub_authoring.floor.programme import Floats
from hubbub_authoring.floor.readings import best_readings
from hubbub_authoring.floor.spectral import cumulative_questions
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    READING,
    ChoiceKey,
    Judge,
    Mechanism,
    Request,
    Trial,
    grid_parameters,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

MAX_POINTS: Final = 128
"""Points whose programme of the mean is solved: ten seconds, and 129 inputs and 260 outputs at most."""

MAX_CURVE_POINTS: Final = 33
"""Points whose cumulative shares are searched for: some five seconds, eight times that for twice as many."""

MAX_CATEGORIES: Final = 32

OUTPUTS: Final = 255
"""Outputs of a searched channel: at 33 points its error is 0.5 % above that of twice as many."""

_FEW: Final = 65
_FINE: Final = {True: 241, False: 121}
"""Readings of the grid: a few points have time for more."""

_SHOWN: Final = 1e-5
"""The least singular value, as a share of the largest, of a channel that tells all inputs apart."""

_COIN: Final = 2e-3
"""The share of reports by randomised response in a channel that else would not: what the mean loses."""

_SINGLE: Final = 0.25
"""The weight of the mean error of single values beside cumulative shares, each kind of which has 1."""

_NOBODY: Final = 10**6
"""A value is so many times as common as a missing one where estimates weigh outputs by that."""

_SELDOM: Final = 100
"""A value is so many times as common as a missing one where estimates of the mean weigh outputs by that.

The channel is made for a round in which nobody misses. Weighed as if as many missed as have any one value,
its error there was twice the floor at 12 points and epsilon 8; weighed by this it is within .3 %.
"""

_SEARCHED: Final = 16.0
"""The largest epsilon that is searched at: beyond, floats resolve no gain, and the best outputs stay."""

_LEAST: Final = 1e-7
"""A probability that an output has for no input is left out: its share is given to the others."""


def optimal_mean(points: int, *, epsilon: float) -> WeightedChannel:
    """Return the channel of least error of the mean of equally spaced points, with a missing input, last.

    Args:
        points: Points of the grid, 2 to MAX_POINTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.

    Raises:
        ParameterError: If a parameter is out of range, or scipy is not installed.
    """
    if not 2 <= points <= MAX_POINTS:
        raise ParameterError(f"points must be 2 to {MAX_POINTS} for an optimal channel, got {points}")
    return _mean(points, epsilon)


@lru_cache(maxsize=8)
def _mean(points: int, epsilon: float) -> WeightedChannel:
    functional = np.append(np.linspace(-1.0, 1.0, points), 0.0)
    prior = np.append(np.full(points, 1.0 / points), 0.0)
    try:
        found = best_readings(functional, prior, _searched_at(epsilon), fine=_FINE[points <= _FEW])
    except ModuleNotFoundError:
        raise ParameterError("an optimal channel needs scipy: install hubbub[bench]") from None
    return WeightedChannel(_compiled(found.rows, epsilon).weights(), [*(_SELDOM for _ in range(points)), 1])


def optimal_curve(
    points: int, *, epsilon: float, tuned_for: Literal["cdf", "quantiles"] = "cdf"
) -> CurveChannel:
    """Return a channel of small error of the cumulative shares of points, with a missing input, last.

    What is made small is the error of shares of all devices, for which alone the best channel does not tell
    missing from the last point; that of shares of those who have a value; and a part of that of single
    values, without which some are hidden, and one forged report stands for thousands.

    Args:
        points: Points in order, 2 to MAX_CURVE_POINTS.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.
        tuned_for: Whether all shares count, or those from 1/8 to 7/8.

    Raises:
        ParameterError: If a parameter is out of range.
    """
    if not 2 <= points <= MAX_CURVE_POINTS:
        raise ParameterError(
            f"points must be 2 to {MAX_CURVE_POINTS} for an optimal channel of the {tuned_for}, got {points}"
        )
    return _curve(points, epsilon, tuned_for)


@lru_cache(maxsize=8)
def _curve(points: int, epsilon: float, tuned_for: str) -> CurveChannel:
    low, high = middle(points) if tuned_for == "quantiles" else (1, points - 1)
    below = cumulative_questions(points, low, high)
    of_those = below - below.mean(axis=1, keepdims=True)
    questions = np.concatenate(
        [
            np.pad(np.concatenate([below, of_those]), ((0, 0), (0, 1))),
            np.sqrt(_SINGLE / (points + 1.0)) * np.eye(points + 1),
        ]
    )
    prior = np.append(np.full(points, 1.0 / points), 0.0)
    return CurveChannel(_searched(questions, prior, epsilon).weights())


def optimal_categories(sizes: Sequence[int], *, epsilon: float) -> WeightedChannel:
    """Return a channel of least mean error of categories, each one input, with a missing input, last.

    Args:
        sizes: Values per category, 2 to MAX_CATEGORIES; a category's prior is its share of the values.
        epsilon: The declared epsilon, per report; the certified one is at least 2^-36 below it.

    Raises:
        ParameterError: If a parameter is out of range.
    """
    if not 2 <= len(sizes) <= MAX_CATEGORIES:
        raise ParameterError(
            f"categories must be 2 to {MAX_CATEGORIES} for an optimal channel, got {len(sizes)}"
        )
    if min(sizes) < 1:
        raise ParameterError(f"sizes must be counts >= 1, got {min(sizes)}")
    return _categories(tuple(sizes), epsilon)


@lru_cache(maxsize=8)
def _categories(sizes: tuple[int, ...], epsilon: float) -> WeightedChannel:
    many = len(sizes)
    questions = np.eye(many, many + 1) / np.sqrt(many)
    table = _searched(questions, np.append(np.array(sizes) / sum(sizes), 0.0), epsilon)
    return WeightedChannel(table.weights(), [*(_NOBODY * size for size in sizes), 1])


def _searched(questions: Floats, prior: Floats, epsilon: float) -> DenseChannel:
    return _compiled(best_columns(questions, prior, _searched_at(epsilon), most=OUTPUTS), epsilon)


def _searched_at(epsilon: float) -> float:
    return exp_above(min(epsilon, _SEARCHED))


def _compiled(rows: Floats, epsilon: float) -> DenseChannel:
    """Return the channel of rows that were found at this epsilon, or at the largest that is searched at."""
    return integerise(_resolved(_sparse(rows, epsilon), epsilon), epsilon=epsilon)


def _sparse(rows: Floats, epsilon: float) -> Floats:
    """Return the columns in use, with rows that sum to one and ratios that reach epsilon."""
    kept = rows[:, rows.max(axis=0) > _LEAST]
    a = float(np.exp(epsilon))
    if epsilon > _SEARCHED:
        most = kept.max(axis=0)
        kept = most * np.clip(kept / most, np.exp(-_SEARCHED), 1.0) ** (epsilon / _SEARCHED)
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
    if len(sizes) == inputs and sizes[-1] > _SHOWN * sizes[0]:
        return rows
    truth = np.ones((inputs, inputs)) + (np.exp(epsilon) - 1.0) * np.eye(inputs)
    coin = truth / truth.sum(axis=1, keepdims=True)
    return np.concatenate([(1.0 - _COIN) * rows, _COIN * coin], axis=1)


_TUNED_FOR: Final = ChoiceKey(
    "tuned_for",
    '`tuned_for`, the error that is made least of numbers and integers: "mean" (the default), "cdf" or '
    '"quantiles"',
    choices=("mean", "cdf", "quantiles"),
)


def _of_request(request: Request) -> DenseChannel:
    if request.joined:
        if _TUNED_FOR.given(request):
            _TUNED_FOR.refuse(request, "must be absent for categories")
        if len(request.joined) > MAX_CATEGORIES:
            many = len(request.joined)
            request.rules.refuse("category", f"must be at most {MAX_CATEGORIES} for an optimal channel", many)
        return optimal_categories(request.joined, epsilon=request.epsilon)
    if request.span is None and (request.categories or not request.integers):
        READING.refuse(request, 'must be "category" for an optimal channel of labels or categories')
    tuned_for = _TUNED_FOR.read(request)
    most = MAX_POINTS if tuned_for == "mean" else MAX_CURVE_POINTS
    if not 2 <= request.points <= most:
        rule = f"must be 2 to {most} for an optimal channel of the {tuned_for}"
        if request.span is not None:
            POINTS.refuse(request, rule)
        request.rules.refuse("attribute", f"{rule}, counting its integers", request.points)
    if tuned_for == "mean":
        return optimal_mean(request.points, epsilon=request.epsilon)
    return optimal_curve(
        request.points, epsilon=request.epsilon, tuned_for="cdf" if tuned_for == "cdf" else "quantiles"
    )


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    points, epsilon, quantity = workload.inputs - 1, workload.epsilon, workload.objective.quantity
    sizes = tuple(workload.sizes[:-1])
    if workload.kind == "grid" and quantity == "mean" and points <= MAX_POINTS:
        yield Trial({"points": points}, lambda: optimal_mean(points, epsilon=epsilon), 9)
    if quantity == "category" and 2 <= len(sizes) <= MAX_CATEGORIES and len(set(sizes)) > 1:
        # Of categories of one size orbits are the best already.
        yield Trial(
            {"reading": "category"}, lambda: optimal_categories(sizes, epsilon=epsilon), 9, by_category=True
        )
    if quantity not in ("cdf", "quantiles") or workload.points is None or len(sizes) > 1:
        return
    if points <= MAX_CURVE_POINTS and (np.diff(workload.points[:-1]) > 0).all():
        purpose: Literal["cdf", "quantiles"] = "cdf" if quantity == "cdf" else "quantiles"
        yield Trial(
            {"tuned_for": purpose, **grid_parameters(workload)},
            lambda: optimal_curve(points, epsilon=epsilon, tuned_for=purpose),
            9,
        )


ENTRIES: Final = (
    Mechanism(
        name="optimal",
        purpose="the mean of a number, its cumulative shares, or categories alone, at or near the least "
        "error that any mechanism can have",
        keys=(POINTS, READING, _TUNED_FOR),
        takes=frozenset({"labels", "numbers"}),
        build=_of_request,
        trials=_trials,
    ),
)
