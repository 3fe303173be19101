"""The entries of mixtures of levels: levels of categories, and trees of ranges.

The designer searches for the share of each level of categories, and tries several branchings of trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from hubbub import mechanisms
from hubbub.channels import MAX_INPUTS, Channel
from hubbub.mechanisms import PURPOSES, STEPS, Hierarchy, Purpose, nested_levels
from hubbub.survey import QUADTREE
from hubbub_authoring.mechanisms.boosted.search import least
from hubbub_authoring.mechanisms.mechanism import (
    POINTS,
    ChoiceKey,
    IntegerKey,
    Judge,
    Key,
    Mechanism,
    Parameters,
    RealKey,
    Request,
    Trial,
    grid_parameters,
    grouped,
)

if TYPE_CHECKING:
    from hubbub_authoring.mechanisms.workload import Workload

LEAST_SHARE: Final = 1e-3
"""The smallest share of reports that a level can have: one that hardly anyone reports about says nothing."""

LEAST_TRIED: Final = 1 / 64
"""The smallest share that the designer tries."""

_SHARE: Final = RealKey(
    "category_share",
    "`category_share`, the share of category reports (0.5)",
    low=LEAST_SHARE,
    high=1.0 - LEAST_SHARE,
)
_ORACLES: Final = ChoiceKey(
    "oracles",
    '`oracles = "grr"` keeps reports to one or two bytes where sets would be more exact',
    choices=("best", "grr"),
)


CELLS: Final = ChoiceKey(
    "cells",
    '`cells = "quadtree"` makes a heat map of two integers, at every level of zoom',
    choices=(QUADTREE,),
)
"""The key of a heat map; the compiler reads it."""

_LEVEL: Final = Key(
    "tuned_for",
    'where categories are nested, `tuned_for`, whose error the shares of the levels make small: "levels" '
    "(the default), all of them alike, or the number of one, 1 the coarsest",
)
_SHARES: Final = Key(
    "shares", "or `shares`, a list of thousandths of devices that report about each level, coarsest first"
)


def _levels_of(request: Request) -> Channel:
    for key in (_LEVEL, _SHARES):
        if key.given(request):
            key.refuse(request, "must be absent unless categories are nested")
    sizes = request.sizes
    if len(sizes) < 3 or max(sizes) == 1:
        rule = "must be two or more for levels, one of them of several values"
        request.rules.refuse("category", rule, request.categories)
    share = _SHARE.read(request)
    return _compiled(sizes, request.epsilon, 0.5 if share is None else share, _ORACLES.read(request))


def nested_channel(request: Request, hierarchy: Hierarchy) -> Channel:
    """Return the channel of a tree of labels.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    if _SHARE.given(request):
        _SHARE.refuse(request, "must be absent where categories are nested: tuned_for or shares are for them")
    shares, depth = _given_shares(request, _LEVEL), len(hierarchy.bins)
    level = request.keys.get(_LEVEL.name, "levels")
    if level != "levels" and (type(level) is not int or not 1 <= level <= depth):
        _LEVEL.refuse(request, f'must be "levels" or a level from 1 to {depth}')
    return nested_levels(
        hierarchy,
        epsilon=request.epsilon,
        tuned_for=level - 1 if isinstance(level, int) else None,
        shares=shares,
        oracles=_oracles(_ORACLES.read(request)),
    )


def _given_shares(request: Request, other: Key) -> list[int] | None:
    """Return the thousandths of each level that a file gives; None where it leaves them to `other`."""
    if not _SHARES.given(request):
        return None
    if other.given(request):
        other.refuse(request, "must be absent where shares are given")
    given = request.keys[_SHARES.name]
    if not isinstance(given, list) or not all(type(share) is int for share in given):
        _SHARES.refuse(request, f"must be a list of thousandths that sum to {STEPS}")
    return given


def _compiled(sizes: list[int], epsilon: float, share: float, oracles: str) -> Channel:
    return mechanisms.levels(sizes, epsilon=epsilon, shares=[share, 1.0 - share], oracles=_oracles(oracles))


def _oracles(chosen: str) -> Literal["best", "grr"]:
    return "grr" if chosen == "grr" else "best"


def _levels_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    if not grouped(workload) or workload.objective.quantity == "category":
        return
    for oracles in ("grr", "best"):
        yield _levels_trial(workload, judge, oracles)


def _levels_trial(workload: Workload, judge: Judge, oracles: str) -> Trial:
    def build(share: float) -> Channel:
        return _compiled(workload.sizes, workload.epsilon, share, oracles)

    share = least(lambda share: judge(lambda: build(share)), LEAST_TRIED, 1.0 - LEAST_TRIED)
    parameters: Parameters = {"category_share": share, "oracles": oracles}
    return Trial(parameters, lambda: build(share), 2)


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


def _tree_of(request: Request) -> Channel:
    if request.categories:
        request.rules.refuse("category", "must not be given for a tree", request.categories)
    if request.span is None and not request.integers:
        request.rules.refuse("attribute.type", "must be integer or number for a tree", "label")
    branching = _BRANCHING.read(request, request.points - 1)
    shares = _given_shares(request, _TUNED_FOR)
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


def _tree_trials(workload: Workload, judge: Judge) -> Iterator[Trial]:
    del judge
    points, quantity = workload.inputs - 1, workload.objective.quantity
    if quantity not in ("cdf", "quantiles") or workload.points is None or len(workload.sizes) > 2:
        return
    if not (np.diff(workload.points[:-1]) > 0).all():
        return
    for branching in BRANCHINGS:
        if branching < points:
            yield _tree_trial(workload, branching, "quantiles" if quantity == "quantiles" else "cdf")


def _tree_trial(workload: Workload, branching: int, purpose: Purpose) -> Trial:
    points, epsilon = workload.inputs - 1, workload.epsilon
    parameters: Parameters = {"branching": branching, "tuned_for": purpose, **grid_parameters(workload)}
    return Trial(
        parameters,
        lambda: mechanisms.tree(points, epsilon=epsilon, branching=branching, tuned_for=purpose),
        8,
    )


ENTRIES: Final = (
    Mechanism(
        name="levels",
        purpose="values and categories both, nested ones too: a public coin picks whether a device tells its "
        "category, at one level of them, or its value, each at the full epsilon",
        keys=(_SHARE, _LEVEL, _SHARES, CELLS, _ORACLES),
        takes=frozenset({"labels"}),
        build=_levels_of,
        trials=_levels_trials,
    ),
    Mechanism(
        name="tree",
        purpose="numbers, for their cumulative shares, quantiles and ranges: a public coin picks a level of "
        "a tree of ranges, and a device reports its range of that level at the full epsilon",
        keys=(POINTS, _BRANCHING, _TUNED_FOR, _SHARES, _ORACLES),
        takes=frozenset({"labels", "numbers"}),
        build=_tree_of,
        trials=_tree_trials,
    ),
)
