"""The channel of a survey of numbers: the points of its grid, and its mechanism's channel over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from hubbub.channels import MAX_WEIGHTS, Channel
from hubbub.errors import ABSENT
from hubbub.survey import NumberDomain, Rules
from hubbub_authoring.mechanisms.mechanism import POINTS, Mechanism, Request

DEFAULT_POINTS: Final = 33
"""Points of a grid where the file states none: rounding to it adds under 1 % of the variance at epsilon <=
4."""


def grid_channel(
    rules: Rules, domain: NumberDomain, entry: Mechanism, keys: Mapping[str, object], epsilon: float
) -> Channel:
    """Return the channel of a survey of numbers, missing last.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    points = grid_points(rules, keys)
    domain.grid(points)  # refuses points that no float tells apart
    category_of = np.append(np.zeros(points, dtype=np.intp), 1)
    span = (domain.low, domain.high)
    return entry.build(Request(rules, keys, points + 1, epsilon, category_of, span=span))


def grid_points(rules: Rules, keys: Mapping[str, object], default: int | None = None) -> int:
    """Return the number of points of the grid; the key is required where there is no default."""
    if POINTS.name not in keys:
        if default is not None:
            return default
        rules.refuse(POINTS.place, POINTS.required, ABSENT)
    points = rules.integer(POINTS.place, keys[POINTS.name], POINTS.low, POINTS.high)
    if (points + 1) ** 2 > MAX_WEIGHTS:
        rules.refuse(POINTS.place, f"must leave a matrix of at most {MAX_WEIGHTS} weights", points)
    return points
