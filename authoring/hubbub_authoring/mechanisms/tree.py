"""The entry of trees of ranges: their keys, and the designer's trials of several branchings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hubbub import mechanisms
from hubbub.channels import MAX_INPUTS, Channel
from hubbub.mechanisms import PURPOSES, STEPS, Purpose
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    ChoiceKey,
    IntegerKey,
    Judge,
    Key,
    Mechanism,
    Parameters,
    Request,
    Trial,
    grid_parameters,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

BRANCHINGS: Final = (2, 3, 4, 8, 16)
"""The branchings that the designer tries."""

_BRANCHING: Final = IntegerKey(
    "branching",
    "`branching`, the ranges that a range is split into (2)",
    low=2,
    high=MAX_INPUTS,
)
_TUNED_FOR: Final = ChoiceKey(
    "tuned_for",
    '`tuned_for`, the error that the shares of the levels make small: "cdf" (the default), "quantiles", '
    '"value" or "mean"',
    choices=PURPOSES,
)
_SHARES: Final = Key(
    "shares", "or `shares`, a list of thousandths of devices that report about each level, coarsest first"
)
_ORACLES: Final = ChoiceKey(
    "oracles",
    '`oracles = "grr"` keeps reports to one or two bytes where sets would be more exact',
    choices=("best", "grr"),
)


def _of_request(request: Request) -> Channel:
    if request.categories:
        request.rules.refuse("category", "must not be given for a tree", request.categories)
    if request.span is None and not request.integers:
        request.rules.refuse("attribute.type", "must be integer or number for a tree", "label")
    branching = _BRANCHING.read(request, request.points - 1)
    shares = None
    if _SHARES.given(request):
        if _TUNED_FOR.given(request):
            _TUNED_FOR.refuse(request, "must be absent where shares are given")
        given = request.keys[_SHARES.name]
        if not isinstance(given, list) or not all(type(share) is int for share in given):
            _SHARES.refuse(request, f"must be a list of thousandths that sum to {STEPS}")
        else:
            shares = given
    return mechanisms.tree(
        request.points,
        epsilon=request.epsilon,
        branching=2 if branching is None else branching,
        tuned_for=_purpose(_TUNED_FOR.read(request)),
        shares=shares,
        oracles=_oracles(_ORACLES.read(request)),
    )


def _purpose(chosen: str) -> Purpose:
    return next(purpose for purpose in PURPOSES if purpose == chosen)


def _oracles(chosen: str) -> Literal["best", "grr"]:
    return "grr" if chosen == "grr" else "best"


def _trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    points, quantity = workload.inputs - 1, workload.objective.quantity
    if quantity not in ("cdf", "quantiles") or workload.points is None or len(workload.sizes) > 2:
        return
    if not (np.diff(workload.points[:-1]) > 0).all():
        return
    for branching in BRANCHINGS:
        if branching < points:
            yield _trial(workload, branching, "quantiles" if quantity == "quantiles" else "cdf")


def _trial(workload: Workload, branching: int, purpose: Purpose) -> Trial:
    points, epsilon = workload.inputs - 1, workload.epsilon
    parameters: Parameters = {"branching": branching, "tuned_for": purpose, **grid_parameters(workload)}
    return Trial(
        parameters,
        lambda: mechanisms.tree(points, epsilon=epsilon, branching=branching, tuned_for=purpose),
        8,
    )


ENTRIES: Final = (
    Mechanism(
        name="tree",
        purpose="numbers, for their cumulative shares, quantiles and ranges: a public coin picks a level of "
        "a tree of ranges, and a device reports its range of that level at the full epsilon",
        keys=(POINTS, _BRANCHING, _TUNED_FOR, _SHARES, _ORACLES),
        takes=frozenset({"labels", "numbers"}),
        build=_of_request,
        trials=_trials,
    ),
)
