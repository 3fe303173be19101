"""The estimates of a release as JSON types, and the method that its intervals were made with.

Method 10: score intervals, per cell and simultaneous, within what is possible; errors by the law at the
estimate, never 0; the exact law where a score takes two values, elsewhere the reach of every kind of devices;
a band of curves that is wider where errors are skew, and none in rounds too small for it. Beside these, which
are of the devices counted, errors and intervals of everybody who could have been asked. Rounds count from 1.
A mean's candidates are judged by the law that each of them implies, where a channel has a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation import Estimate, PoisonMargin, curve_cohort
from hubbub.survey import Survey

Document: TypeAlias = dict[str, Any]
Columns: TypeAlias = dict[str, NDArray[np.float64]]

METHOD: Final = 10
"""The method of every release; those of others are refused."""

QUARTILES: Final = (0.25, 0.5, 0.75)
"""The quantiles that a release states; others are read from the curve's band."""

_NONE: Final[Document] = {
    "values": [],
    "categories": [],
    "mean": None,
    "consistent": {"values": [], "categories": []},
    "poison_margin": None,
}
"""The keys that `estimates` fills, and what a round that shows nothing has there."""


def estimates(survey: Survey, estimate: Estimate, *, level: float, asked: int | None) -> Document:
    """Return the parts of a release that hold estimates.

    Args:
        survey: The survey.
        estimate: The estimate of the round.
        level: The coverage of the intervals.
        asked: Devices that the survey was offered to, as stated; None if not stated.
    """
    names = survey.category_names
    # A score has a mean alone: what its two inputs stand for is nobody's value.
    labels = survey.input_labels if estimate.values.size else ()
    value_columns, category_columns, ends = _columns(estimate, level)
    more, others, crowd_ends = _columns(estimate.of_crowd(asked=asked), level)
    value_columns |= _of_crowd(more)
    category_columns |= _of_crowd(others)
    values = _cells(labels, value_columns)
    if survey.category_of.ndim == 1:
        for cell, category in zip(values, survey.category_of.tolist(), strict=True):
            cell["category"] = names[category]
    else:  # in a cross table a cell is in a category of every attribute: its own label says which
        for cell in values:
            cell["category"] = None
    categories = _cells(names, category_columns)
    for cell, (depth, above) in zip((*categories, *values), survey.form.cell_levels or (), strict=False):
        cell |= {"tree_level": depth, "category": above}
    mean = None
    if estimate.mean is not None and math.isfinite(estimate.mean):
        parts = (estimate.mean, estimate.printed_mean_error, *ends)
        mean = dict(zip(("estimate", "error", "low", "high"), map(_number, parts), strict=True))
        mean |= dict(zip(("crowd_low", "crowd_high"), map(_number, crowd_ends), strict=True))
    consistent = estimate.consistent()
    return {
        "values": values,
        "categories": categories,
        "mean": mean,
        "consistent": {
            "values": [_number(value) for value in consistent.values.tolist()],
            "categories": [_number(value) for value in consistent.categories.tolist()],
        },
        "poison_margin": _poison_margin(estimate, level),
    }


def no_estimates() -> Document:
    """Return the estimates of a round that shows none: the keys that `estimates` fills, each empty."""
    return deepcopy(_NONE)


def _columns(estimate: Estimate, level: float) -> tuple[Columns, Columns, tuple[float | None, float | None]]:
    """Return the columns of values and categories, and the ends of the mean's interval."""
    spans, band, errors = estimate.intervals(level), estimate.simultaneous(level), estimate.printed_errors
    values: Columns = {
        "estimate": estimate.values,
        "error": errors[0],
        "low": spans.values_low,
        "high": spans.values_high,
        "simultaneous_low": band.values_low,
        "simultaneous_high": band.values_high,
    }
    categories: Columns = {
        "estimate": estimate.categories,
        "error": errors[1],
        "low": spans.categories_low,
        "high": spans.categories_high,
        "simultaneous_low": band.categories_low,
        "simultaneous_high": band.categories_high,
    }
    return values, categories, (spans.mean_low, spans.mean_high)


def _of_crowd(columns: Columns) -> Columns:
    """Return the columns under the names of those of the crowd; the estimate is the same."""
    return {f"crowd_{name}": column for name, column in columns.items() if name != "estimate"}


def _poison_margin(estimate: Estimate, level: float) -> Document | None:
    """Return the forged reports that move each cell by its margin of error; None where that is unknown."""
    try:
        margin: PoisonMargin = estimate.poison_margin(level)
    except ParameterError:
        return None
    return {
        "values": [_number(count) for count in margin.values.tolist()],
        "categories": [_number(count) for count in margin.categories.tolist()],
    }


def _cells(labels: Iterable[str], columns: Columns) -> list[Document]:
    """Return one cell per label: the label, and a number of every column."""
    numbers = [
        column.tolist() if np.isfinite(column).all() else [_number(each) for each in column.tolist()]
        for column in columns.values()
    ]
    names = ("label", *columns)
    return [dict(zip(names, row, strict=True)) for row in zip(labels, *numbers, strict=True)]


def _number(value: float | None) -> float | None:
    """Return the number, or None for what JSON has no word for: nan and infinity mean not identifiable."""
    return float(value) if value is not None and math.isfinite(value) else None


def no_curve(survey: Survey) -> Document:
    """Return the keys of a release that states no curve: none at all where a survey never has one."""
    return {"cumulative": None, "quantiles": []} if survey.channel.shows_curve else {}


def curve(survey: Survey, estimate: Estimate, level: float, *, asked: int | None) -> Document:
    """Return the cumulative shares with their simultaneous bands, and the quartiles with their intervals.

    Args:
        survey: The survey.
        estimate: That of the round.
        level: The coverage of a band, and of all quartiles at once.
        asked: Devices that the survey was offered to, as stated; None if not stated.
    """
    least = curve_cohort(len(estimate.values))
    if not survey.channel.shows_curve or least is None or estimate.n < least:
        return no_curve(survey)
    found = estimate.cumulative(level)
    crowd = estimate.of_crowd(asked=asked).cumulative(level)
    if found is None or crowd is None:
        return no_curve(survey)
    quantiles = [(found.quantile(share), crowd.quantile(share)) for share in QUARTILES]
    return {
        "cumulative": {
            "level": level,
            "points": found.points.tolist(),
            "shares": found.shares.tolist(),
            "errors": found.errors.tolist(),
            "low": found.low.tolist(),
            "high": found.high.tolist(),
            "crowd_errors": crowd.errors.tolist(),
            "crowd_low": crowd.low.tolist(),
            "crowd_high": crowd.high.tolist(),
        },
        "quantiles": [
            {"share": own.share, "estimate": own.estimate, "low": own.low, "high": own.high}
            | {"crowd_low": other.low, "crowd_high": other.high}
            for own, other in quantiles
        ],
    }
