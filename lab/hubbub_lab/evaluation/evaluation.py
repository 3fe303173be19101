"""The truth beside the release, which an evaluation knows and a server never does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

import hubbub
from hubbub.mechanisms import SampledParts
from hubbub.survey import Bundle

Floats = NDArray[np.float64]

_NAMES: Final = {0.25: "first quartile", 0.5: "median", 0.75: "third quartile"}

_SAME: Final = 1e-9
"""So much of a device: a share of a whole number of them is that number, whatever floats make of it."""


ROUNDING: Final = 1e-12
"""The most that rounding takes off a sum of as many shares as surveys have values, as a share of it."""


@dataclass(frozen=True)
class Truth:
    """The true frequencies of a set of values under a survey.

    Attributes:
        values: Share of devices per channel input, shape (K,), float64, sums to 1.
        categories: Share of devices per category, shape (m,), float64.
        mean: Mean of the values that are present, in the attribute's units, or of the score; None unless
            numeric.
        numbers: The values that are present, rising; empty unless numeric.
        parts: Of a bundle the shares in each part's table; else empty.
    """

    values: Floats
    categories: Floats
    mean: float | None
    numbers: tuple[float, ...] = ()
    parts: tuple[Floats, ...] = ()

    def quantile(self, share: float) -> float:
        """Return the least number that at least a share of those with one have at most."""
        return self.numbers[max(math.ceil(share * len(self.numbers) - _SAME), 1) - 1]


@dataclass(frozen=True)
class EvaluationRow:
    """One line of the table: a quantity, its truth, and what the release says of it.

    A quantile has an interval and no standard error.
    """

    kind: Literal["category", "value", "mean", "quantile"]
    label: str
    truth: float
    estimate: float
    error: float | None
    low: float
    high: float

    @property
    def covers_truth(self) -> bool:
        """True if the interval covers the truth, which may be a sum of rounded shares."""
        spare = ROUNDING * max(1.0, abs(self.truth))
        return self.low - spare <= self.truth <= self.high + spare


def truth_of(
    survey: hubbub.Survey, values: Sequence[object], *, weights: NDArray[np.int64] | None = None
) -> Truth:
    """Return the true frequencies of `values` (one entry per device; None is missing).

    Where a survey asks for several attributes an entry is a tuple of their values. With `weights`, an entry
    stands for as many devices; the truth then has no numbers to read quantiles from.

    A number counts at the grid points around it in the proportions of its stochastic rounding, which is
    what the channel's inputs are on average; the mean is that of the numbers themselves.
    """
    held = [value if isinstance(value, tuple) else (value,) for value in values]
    many = np.ones(len(held)) if weights is None else weights.astype(np.float64)
    numbered = [
        (number, devices)
        for each, devices in zip(held, many.tolist(), strict=True)
        if devices and (number := survey.form.number_of(each)) is not None
    ]
    numbers = [number for number, _ in numbered]
    mean = float(np.average(numbers, weights=[devices for _, devices in numbered])) if numbers else None
    if not survey.form.tells_values:
        return Truth(np.empty(0), np.empty(0), mean)
    if survey.form.samples_parts:
        return _truth_of_tables(survey, held, many)
    inputs = len(survey.input_labels)
    shares = np.zeros(inputs, dtype=np.float64)
    if survey.points is None or survey.mapping is not None:
        for each, devices in zip(held, many, strict=True):
            shares[survey.input_of(*each)] += devices
    else:
        grid = survey.points[~np.isnan(survey.points)]
        low, step = grid[0], grid[1] - grid[0]
        for value, devices in zip(values, many, strict=True):
            if (number := survey.form.number_of((value,))) is None:
                shares[survey.input_of(value)] += devices
                continue
            place = min((number - low) / step, len(grid) - 1.0)
            below = min(int(place), len(grid) - 2)
            shares[below] += devices * (1.0 - (place - below))
            shares[below + 1] += devices * (place - below)
    shares /= max(float(many.sum()), 1.0)
    categories = np.zeros(len(survey.category_names), dtype=np.float64)
    for margin in np.atleast_2d(survey.category_of):
        np.add.at(categories, margin, shares)
    sorted_numbers = () if weights is not None else tuple(sorted(float(number) for number in numbers))
    return Truth(shares, categories, mean, sorted_numbers)


def _truth_of_tables(survey: hubbub.Survey, held: Sequence[Sequence[object]], many: Floats) -> Truth:
    form, channel = cast(Bundle, survey.form), cast(SampledParts, survey.channel)
    places = [[a.index_of(value) for a, value in zip(survey.attributes, each, strict=True)] for each in held]
    readings = np.array([form.readings_of(each) for each in places], dtype=np.intp).reshape(len(held), -1)

    def shares(members: Sequence[int]) -> Floats:
        shape = [channel.readings[member] for member in members]
        cells = np.ravel_multi_index(tuple(readings[:, list(members)].T), shape)
        return np.bincount(cells, many, math.prod(shape)) / max(float(many.sum()), 1.0)

    return Truth(
        np.concatenate([shares(table) for table in form.tables]),
        np.concatenate([shares([member]) for member in range(len(channel.readings))]),
        None,
        parts=tuple(shares(part.members) for part in channel.parts),
    )


def rows_of(release: dict[str, Any], truth: Truth) -> list[EvaluationRow]:
    """Return the release's lines with the truth beside each: categories, values, mean, then quantiles."""
    rows: list[EvaluationRow] = []
    sections: tuple[tuple[Literal["category", "value"], str, Floats], ...] = (
        ("category", "categories", truth.categories),
        ("value", "values", truth.values),
    )
    for kind, key, shares in sections:
        for entry, share in zip(release[key], shares, strict=True):
            if entry["estimate"] is not None:
                rows.append(_row(kind, entry["label"], float(share), entry))
    if release["mean"] is not None and truth.mean is not None:
        rows.append(_row("mean", "mean", truth.mean, release["mean"]))
    if truth.numbers:
        for entry in release.get("quantiles", ()):
            name = _NAMES.get(entry["share"], f"{entry['share']:g} quantile")
            rows.append(_row("quantile", name, truth.quantile(entry["share"]), entry))
    return rows


def _row(
    kind: Literal["category", "value", "mean", "quantile"], label: str, truth: float, entry: dict[str, Any]
) -> EvaluationRow:
    return EvaluationRow(
        kind, label, truth, entry["estimate"], entry.get("error"), entry["low"], entry["high"]
    )
