"""The truth beside the release, which an evaluation knows and a server never does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import hubbub


@dataclass(frozen=True)
class Truth:
    """The true frequencies of a set of values under a survey.

    Attributes:
        values: Share of devices per channel input, shape (K,), float64, sums to 1.
        categories: Share of devices per category, shape (m,), float64.
        mean: Mean of the values that are present, in the attribute's units, or of the score; None unless
            numeric.
    """

    values: NDArray[np.float64]
    categories: NDArray[np.float64]
    mean: float | None


@dataclass(frozen=True)
class EvaluationRow:
    """One line of the table: a quantity, its truth, and what the release says of it."""

    kind: Literal["category", "value", "mean"]
    label: str
    truth: float
    estimate: float
    error: float
    low: float
    high: float

    @property
    def covers_truth(self) -> bool:
        """True if the interval covers the truth."""
        return self.low <= self.truth <= self.high


def truth_of(survey: hubbub.Survey, values: Sequence[object]) -> Truth:
    """Return the true frequencies of `values` (one entry per device; None is missing).

    Where a survey asks for several attributes an entry is a tuple of their values.

    A number counts at the grid points around it in the proportions of its stochastic rounding, which is
    what the channel's inputs are on average; the mean is that of the numbers themselves.
    """
    held = [value if isinstance(value, tuple) else (value,) for value in values]
    numbers = [number for each in held if (number := survey.form.number_of(each)) is not None]
    mean = float(np.mean(numbers)) if numbers else None
    if not survey.form.tells_values:
        return Truth(np.empty(0), np.empty(0), mean)
    inputs = len(survey.input_labels)
    shares = np.zeros(inputs, dtype=np.float64)
    if survey.points is None or survey.mapping is not None:
        for each in held:
            shares[survey.input_of(*each)] += 1.0
    else:
        grid = np.asarray(survey.points[: survey.missing_input], dtype=np.float64)
        low, high, step = grid[0], grid[-1], grid[1] - grid[0]
        for value in values:
            if not isinstance(value, Real) or isinstance(value, bool) or not low <= value <= high:
                shares[survey.missing_input] += 1.0
                continue
            place = min((float(value) - low) / step, len(grid) - 1.0)
            below = min(int(place), len(grid) - 2)
            shares[below] += 1.0 - (place - below)
            shares[below + 1] += place - below
    shares /= max(len(values), 1)
    categories = np.zeros(len(survey.category_names), dtype=np.float64)
    for margin in np.atleast_2d(survey.category_of):
        np.add.at(categories, margin, shares)
    return Truth(shares, categories, mean)


def rows_of(release: dict[str, Any], truth: Truth) -> list[EvaluationRow]:
    """Return the release's lines with the truth beside each: categories, values, then the mean."""
    rows: list[EvaluationRow] = []
    sections: tuple[tuple[Literal["category", "value"], str, NDArray[np.float64]], ...] = (
        ("category", "categories", truth.categories),
        ("value", "values", truth.values),
    )
    for kind, key, shares in sections:
        for entry, share in zip(release[key], shares, strict=True):
            if entry["estimate"] is not None:
                rows.append(_row(kind, entry["label"], float(share), entry))
    if release["mean"] is not None and truth.mean is not None:
        rows.append(_row("mean", "mean", truth.mean, release["mean"]))
    return rows


def _row(
    kind: Literal["category", "value", "mean"], label: str, truth: float, entry: dict[str, Any]
) -> EvaluationRow:
    return EvaluationRow(kind, label, truth, entry["estimate"], entry["error"], entry["low"], entry["high"])
