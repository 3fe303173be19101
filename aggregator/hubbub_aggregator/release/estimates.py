"""The estimates of a release as JSON types, by the method that its intervals were made with.

Method 1, before releases had a `method`: standard errors read off the counts, intervals symmetric about the
estimates by the normal law, neither simultaneous nor cut. They covered too little in small rounds, and are
made only to recompute what was released with them. Method 2: score intervals, per cell and simultaneous,
within what is possible; errors by the law at the estimate, never 0; but those of method 1 still where reports
are of orbits, a mean too narrow where the channel hides squares (`duchi`), and too skew a law of level
sampling and of rare large scores. Method 3: none of these, but a wrong law where all reports of a tree or of
levels are about one level. Method 4: nor that, but a band of curves by the normal law, at any number of
devices. Method 5: a band that is wider where errors are skew, and none in rounds too small for it; but one
gamma law of every cell's sum, false for all values at once at large epsilon. Method 6: the exact law where a
score takes two values, elsewhere the reach of every kind of devices. Method 7: beside these, which are of the
devices counted, errors and intervals of everybody who could have been asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation import Estimate, PoisonMargin
from hubbub.survey import Survey

Document: TypeAlias = dict[str, Any]
Method: TypeAlias = Literal[1, 2, 3, 4, 5, 6, 7]
Columns: TypeAlias = dict[str, NDArray[np.float64]]

METHOD: Final[Method] = 7
"""The method of what is released from now on."""

METHODS: Final[tuple[Method, ...]] = (1, 2, 3, 4, 5, 6, 7)
"""Every method that releases were made with."""


_KEYS: Final[dict[str, tuple[Method, Any]]] = {
    "values": (1, []),
    "categories": (1, []),
    "mean": (1, None),
    "consistent": (1, {"values": [], "categories": []}),
    "poison_margin": (1, None),
}
"""The keys that `estimates` fills: since which method, and what a round that shows nothing has there."""


def estimates(
    survey: Survey, estimate: Estimate, *, level: float, method: Method, asked: int | None = None
) -> Document:
    """Return the parts of a release that hold estimates.

    Args:
        survey: The survey.
        estimate: The estimate of the round.
        level: The coverage of the intervals.
        method: How intervals and errors are made.
        asked: Devices that the survey was offered to, as stated; None if not stated.
    """
    if method not in (6, 7):
        estimate = estimate.with_former_laws(method)
    names = survey.category_names
    # A score has a mean alone: what its two inputs stand for is nobody's value.
    labels = survey.input_labels if estimate.values.size else ()
    value_columns, category_columns, ends = _columns(estimate, level, method)
    crowd_ends: tuple[float | None, float | None] = (None, None)
    if method > 6:
        more, others, crowd_ends = _columns(estimate.of_crowd(asked=asked), level, method)
        value_columns |= _of_crowd(more)
        category_columns |= _of_crowd(others)
    values = _cells(labels, value_columns)
    if survey.category_of.ndim == 1:
        for cell, category in zip(values, survey.category_of.tolist(), strict=True):
            cell["category"] = names[category]
    else:  # in a cross table a cell is in a category of every attribute: its own label says which
        for cell in values:
            cell["category"] = None
    mean = None
    if estimate.mean is not None and math.isfinite(estimate.mean):
        parts = (estimate.mean, estimate.mean_error, *ends)
        mean = dict(zip(("estimate", "error", "low", "high"), map(_number, parts), strict=True))
        if method > 6:
            mean |= dict(zip(("crowd_low", "crowd_high"), map(_number, crowd_ends), strict=True))
    consistent = estimate.consistent()
    found = {
        "values": values,
        "categories": _cells(names, category_columns),
        "mean": mean,
        "consistent": {
            "values": [_number(value) for value in consistent.values.tolist()],
            "categories": [_number(value) for value in consistent.categories.tolist()],
        },
        "poison_margin": _poison_margin(estimate, level, method),
    }
    return {key: found[key] for key in no_estimates(method)}


def no_estimates(method: Method = METHOD) -> Document:
    """Return the estimates of a round that shows none: the keys that `estimates` fills, each empty.

    Args:
        method: The method of the release; it has the keys that came with it or before.
    """
    return {key: deepcopy(empty) for key, (since, empty) in _KEYS.items() if since <= method}


def _columns(
    estimate: Estimate, level: float, method: Method
) -> tuple[Columns, Columns, tuple[float | None, float | None]]:
    """Return the columns of values and categories, and the ends of the mean's interval."""
    if method == 1:
        spans, errors = estimate.normal_intervals(level), (estimate.value_errors, estimate.category_errors)
    else:
        spans, errors = estimate.intervals(level), estimate.printed_errors
    values: Columns = {
        "estimate": estimate.values,
        "error": errors[0],
        "low": spans.values_low,
        "high": spans.values_high,
    }
    categories: Columns = {
        "estimate": estimate.categories,
        "error": errors[1],
        "low": spans.categories_low,
        "high": spans.categories_high,
    }
    if method > 1:
        band = estimate.simultaneous(level)
        values |= {"simultaneous_low": band.values_low, "simultaneous_high": band.values_high}
        categories |= {"simultaneous_low": band.categories_low, "simultaneous_high": band.categories_high}
    return values, categories, (spans.mean_low, spans.mean_high)


def _of_crowd(columns: Columns) -> Columns:
    """Return the columns under the names of those of the crowd; the estimate is the same."""
    return {f"crowd_{name}": column for name, column in columns.items() if name != "estimate"}


def _poison_margin(estimate: Estimate, level: float, method: Method) -> Document | None:
    """Return the forged reports that move each cell by its margin of error; None where that is unknown."""
    try:
        margin: PoisonMargin = (
            estimate.normal_poison_margin(level) if method == 1 else estimate.poison_margin(level)
        )
    except ParameterError:
        return None
    return {
        "values": [_number(count) for count in margin.values.tolist()],
        "categories": [_number(count) for count in margin.categories.tolist()],
    }


def _cells(labels: Iterable[str], columns: Columns) -> list[Document]:
    """Return one cell per label: the label, and a number of every column."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [
        {"label": label, **dict(zip(columns, map(_number, row), strict=True))}
        for label, row in zip(labels, rows, strict=True)
    ]


def _number(value: float | None) -> float | None:
    """Return the number, or None for what JSON has no word for: nan and infinity mean not identifiable."""
    return float(value) if value is not None and math.isfinite(value) else None
