"""The mechanism of `mechanism = "auto"` in a survey: the one of least exact variance, and why.

Only an author's machine designs: a device reads canonical bytes, and never loads the rooms of design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ABSENT
from hubbub.survey import (
    Attribute,
    Choice,
    Compared,
    DeclaredAttribute,
    IntegerDomain,
    NumberDomain,
    Rules,
    owners_of,
)
from hubbub_authoring.files.grid import DEFAULT_POINTS, grid_points
from hubbub_authoring.mechanisms.mechanism import POINTS

if TYPE_CHECKING:
    from hubbub_authoring.design import Candidate, Comparison
    from hubbub_authoring.mechanisms.workload import Workload

MAX_POINTS: Final = 256
"""Points of a grid whose mechanism is left to "auto": it inverts some hundred dense channels, K^3 each."""

MAX_CATEGORIES: Final = 1024
"""Categories of an attribute whose mechanism is left to "auto", which compiles PB-GRR some forty times."""

MAX_SIZES: Final = 32
"""Different sizes among them: the logarithms of each size's weights are certified in decimal every time."""


def chosen_mechanism(
    rules: Rules,
    asked: DeclaredAttribute,
    keys: Mapping[str, object],
    *,
    epsilon: float,
    devices: int,
    participation: float,
    compare: Comparison | None,
) -> Choice:
    """Return the mechanism of least exact variance for the objective, and its keys.

    Args:
        rules: How to refuse.
        asked: The attribute.
        keys: The other keys of its mechanism, as declared.
        epsilon: Declared.
        devices: How many the design counts on.
        participation: Chance of the participation coin.
        compare: How mechanisms are compared; None for the usual way.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no mechanism can answer the objective.
    """
    from hubbub_authoring.design.comparison import answered  # noqa: PLC0415 - only an author's machine designs
    from hubbub_authoring.mechanisms.workload import OBJECTIVES, QUANTITIES, Objective, Workload  # noqa: PLC0415

    attribute = asked.attribute
    numbers = isinstance(attribute.domain, NumberDomain)
    if numbers:
        points = grid_points(rules, keys, DEFAULT_POINTS)
        if points > MAX_POINTS:
            rules.refuse(POINTS.place, f"must be at most {MAX_POINTS} for auto", points)
        owners = np.zeros(points, dtype=np.intp)
    elif "points" in keys:
        rules.refuse("mechanism.points", "must be absent unless the attribute is a number", keys["points"])
    else:
        if len(asked.categories) > MAX_CATEGORIES:
            rules.refuse("category", f"must be at most {MAX_CATEGORIES} for auto", len(asked.categories))
        owners = owners_of(rules, asked)
        sizes = np.unique(np.bincount(owners)).size
        if sizes > MAX_SIZES:
            rules.refuse("category", f"must have at most {MAX_SIZES} different sizes for auto", sizes)
    category_of = np.append(np.sort(owners), owners.max() + 1)
    objective = None
    if "within" in keys and keys.get("objective") != "hit":
        rules.refuse("mechanism.within", "must be absent unless the objective is hit", keys["within"])
    if "objective" in keys:
        quantity = rules.choice("mechanism.objective", keys["objective"], QUANTITIES)
        weight = rules.real("mechanism.category_weight", keys.get("category_weight", 0.5), 0.0, 1.0)
        of = rules.choice("mechanism.of", keys.get("of", "means"), ("means", "totals"))
        within = None
        if quantity == "hit":
            if "within" not in keys:
                rules.refuse("mechanism.within", "must be given for the objective hit", ABSENT)
            within = rules.real("mechanism.within", keys["within"], 0.0)
        objective = Objective(OBJECTIVES[quantity], weight, "totals" if of == "totals" else "means", within)
    most = rules.real("mechanism.max_gain", keys["max_gain"], 1.0) if "max_gain" in keys else None
    question = Workload.uniform(
        kind="grid" if numbers else "labels",
        epsilon=epsilon,
        category_of=category_of,
        devices=devices,
        points=_points(attribute, owners),
        objective=objective,
        participation=participation,
        max_gain=most,
    )
    return _chosen(question, answered(question, _found(question, compare)))


def chosen_in_table(
    names: Sequence[str],
    inputs: int,
    *,
    epsilon: float,
    devices: int,
    participation: float,
    compare: Comparison | None,
) -> Choice:
    """Return the mechanism of least variance over a table's combinations, all of them equally common.

    Args:
        names: The mechanisms that a table allows.
        inputs: Combinations of readings, "everything is missing" included.
        epsilon: Declared.
        devices: How many the design counts on.
        participation: Chance of the participation coin.
        compare: How mechanisms are compared; None for the usual way.
    """
    from hubbub_authoring.mechanisms.workload import Workload  # noqa: PLC0415

    question = Workload.uniform(
        kind="labels",
        epsilon=epsilon,
        category_of=np.append(np.zeros(inputs - 1, dtype=np.intp), 1),
        devices=devices,
        points=None,
        objective=None,
        participation=participation,
    )
    return _chosen(question, [found for found in _found(question, compare) if found.mechanism in names])


def _found(question: Workload, compare: Comparison | None) -> list[Candidate]:
    from hubbub_authoring.design import comparison  # noqa: PLC0415 - only an author's machine designs

    return (compare or comparison.compare)(question)


def _chosen(question: Workload, found: Sequence[Candidate]) -> Choice:
    compared = tuple(
        Compared(one.mechanism, dict(one.parameters), one.label, one.cost, one.refusal) for one in found
    )
    return Choice(question.objective.quantity, question.devices, compared)


def _points(attribute: Attribute, owners: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """Return the number of every input, nan at missing; None for labels."""
    domain = attribute.domain
    if isinstance(domain, NumberDomain):
        return np.append(domain.grid(len(owners)), np.nan)
    if isinstance(domain, IntegerDomain):
        return np.append(domain.low + np.argsort(owners, kind="stable").astype(np.float64), np.nan)
    return None
