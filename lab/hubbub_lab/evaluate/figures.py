"""The figures of a case: errors and coverage over its repeats, beside exact errors and the floor."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hubbub import Survey
from hubbub.estimation import Estimate
from hubbub.mechanisms import BundleEstimator
from hubbub.survey import AnyEstimator
from hubbub_authoring.design import Floors, Workload, measured, measured_by_category
from hubbub_lab.evaluation.evaluation import Truth

Floats = NDArray[np.float64]
Quantity = Literal["value", "category", "mean"]
QUANTITIES: Final[tuple[Quantity, ...]] = ("value", "category", "mean")

LEVEL: Final = 0.95
"""The coverage that intervals aim at, as those of releases do."""


@dataclass(frozen=True, slots=True)
class QuantityFigures:
    """The findings of a case about one quantity; shares as shares, the mean in its units.

    Attributes:
        cells: Values or categories, missing left out; 1 for the mean.
        error: Root mean square of estimate less truth, over cells and repeats.
        error_se: The standard error of that, from how repeats differ; None of one repeat.
        consistent: The root mean square of the consistent view less truth, beside those of others who clip;
            None for the mean.
        exact: The same by exact variance, for this population and as many reports as were accepted.
        bias: Root mean square over cells of the mean error, in its own exact standard errors: about 1 where
            nothing biases.
        shift: The mean error of the cell that is moved farthest, in its standard errors.
        shifted: That cell's label.
        intervals: How many intervals there were.
        hits: How many of them hold the truth.
        uniform: The exact error where all values are equally common; None for a cross table.
        floor: The least of that which any mechanism could have; None where it is not known.
    """

    cells: int
    error: float
    error_se: float | None
    consistent: float | None
    exact: float
    bias: float
    shift: float
    shifted: str
    intervals: int
    hits: int
    uniform: float | None
    floor: float | None

    @property
    def ratio(self) -> float:
        """The error measured over the exact one."""
        return self.error / self.exact

    def ratio_text(self, digits: int) -> str:
        """Return the ratio with its standard error, as people read them."""
        beside = "" if self.error_se is None else f" ± {self.error_se / self.exact:.{digits}f}"
        return f"{self.ratio:.{digits}f}{beside}"

    @property
    def coverage(self) -> float:
        """The share of intervals that hold the truth."""
        return self.hits / self.intervals

    @property
    def above_floor(self) -> float | None:
        """The variance beyond the floor's, as a share of it, both for values equally common."""
        if self.uniform is None or self.floor is None or not math.isfinite(self.uniform):
            return None
        return (self.uniform / self.floor) ** 2 - 1.0

    def as_json(self) -> dict[str, Any]:
        """Return every figure as JSON types."""
        return {
            "cells": self.cells,
            "error": self.error,
            "error_se": self.error_se,
            "consistent": self.consistent,
            "exact": self.exact,
            "ratio": self.ratio,
            "bias": self.bias,
            "shift": self.shift,
            "shifted": self.shifted,
            "intervals": self.intervals,
            "hits": self.hits,
            "coverage": self.coverage,
            "uniform": self.uniform if self.uniform is not None and math.isfinite(self.uniform) else None,
            "floor": self.floor,
            "above_floor": self.above_floor,
        }


@dataclass(slots=True)
class _Sums:
    """The sums over repeats, one number a cell."""

    off: Floats
    squares: Floats
    hits: NDArray[np.int64]
    consistent: Floats
    rounds: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, cells: int) -> _Sums:
        return cls(np.zeros(cells), np.zeros(cells), np.zeros(cells, dtype=np.int64), np.zeros(cells))

    def error_se(self, error: float) -> float | None:
        """Return the standard error of an error, from the repeats: cells of one are not independent."""
        if len(self.rounds) < 2:
            return None
        mean, spread = float(np.mean(self.rounds)), float(np.std(self.rounds, ddof=1))
        return error * spread / mean / math.sqrt(len(self.rounds)) / 2.0 if mean > 0.0 else 0.0

    def add(self, off: Floats, covers: NDArray[np.bool_], counted: slice) -> None:
        self.off += off
        self.squares += off**2
        self.hits += covers
        told = off[counted]
        self.rounds.append(float((told[np.isfinite(told)] ** 2).sum()))


@dataclass(slots=True, eq=False)
class RepeatedErrors:
    """The errors of one survey's estimates, repeat by repeat.

    Attributes:
        survey: The survey.
        answered: The true frequencies of those who answered.
        truth: Those that the estimates are held against: others where values have drifted.
    """

    survey: Survey
    answered: Truth
    truth: Truth
    _sums: dict[Quantity, _Sums] = field(default_factory=dict)
    _accepted: list[int] = field(default_factory=list)

    def add(self, estimate: Estimate) -> None:
        """Take in the estimate of one repeat."""
        spans, view = estimate.intervals(LEVEL), estimate.consistent()
        found: dict[Quantity, tuple[Any, Any, Any, Any]] = {
            "value": (estimate.values, self.truth.values, spans.values_low, spans.values_high),
            "category": (
                estimate.categories,
                self.truth.categories,
                spans.categories_low,
                spans.categories_high,
            ),
        }
        if estimate.mean is not None and self.truth.mean is not None:
            found["mean"] = (estimate.mean, self.truth.mean, spans.mean_low, spans.mean_high)
        for quantity, (estimates, truths, lows, highs) in found.items():
            off = np.atleast_1d(np.asarray(estimates - truths, dtype=np.float64))
            covers = np.atleast_1d((lows <= truths) & (truths <= highs))
            counted = slice(None, -1 if quantity != "mean" and self.survey.form.alone else None)
            sums = self._sums.setdefault(quantity, _Sums.of(len(off)))
            sums.add(off, covers, counted)
            if quantity != "mean":
                sums.consistent += ((view.values if quantity == "value" else view.categories) - truths) ** 2
        self._accepted.append(estimate.n)

    def figures(self, estimator: AnyEstimator) -> dict[Quantity, QuantityFigures]:
        """Return what the repeats say of each quantity that the survey makes known."""
        repeats, n = len(self._accepted), round(sum(self._accepted) / len(self._accepted))
        if self.answered.parts:
            expected: Estimate = cast(BundleEstimator, estimator).expected_of_parts(self.answered.parts, n)
        else:
            expected = estimator.expected_estimate(self.answered.values, n)
        exact: dict[Quantity, tuple[Floats, tuple[str, ...]]] = {
            "value": (expected.value_errors, self.survey.input_labels),
            "category": (expected.category_errors, self.survey.category_names),
            "mean": (np.array([expected.mean_error], dtype=np.float64), ("mean",)),
        }
        found: dict[Quantity, QuantityFigures] = {}
        for quantity, sums in self._sums.items():
            errors, labels = exact[quantity]
            kept = np.isfinite(errors) & (errors > 0.0) & np.isfinite(sums.off)
            if quantity != "mean" and self.survey.form.alone:
                kept[-1] = False  # missing is not what was asked
            if not kept.any() or quantity not in self._told:
                continue
            cells = np.flatnonzero(kept)
            scaled = sums.off[cells] / (errors[cells] * math.sqrt(repeats))
            farthest = int(np.argmax(np.abs(scaled)))
            error = math.sqrt(float(sums.squares[cells].mean()) / repeats)
            found[quantity] = QuantityFigures(
                cells=len(cells),
                error=error,
                error_se=sums.error_se(error),
                consistent=None if quantity == "mean" else _root_mean(sums.consistent[cells], repeats),
                exact=math.sqrt(float((errors[cells] ** 2).mean())),
                bias=math.sqrt(float((scaled**2).mean())),
                shift=float(sums.off[cells[farthest]]) / repeats,
                shifted=labels[int(cells[farthest])],
                intervals=repeats * len(cells),
                hits=int(sums.hits[cells].sum()),
                uniform=_uniform(self.survey, n).get(quantity),
                floor=_floor(self.survey, n, quantity),
            )
        return found

    @property
    def _told(self) -> tuple[Quantity, ...]:
        """The quantities that say something of their own: categories may be the values, or hide them."""
        survey = self.survey
        if not survey.form.alone:
            return QUANTITIES
        if survey.form.joins_values:
            return ("category", "mean")
        if 2 < len(survey.category_names) < len(survey.input_labels):
            return QUANTITIES
        return ("value", "mean")


def _root_mean(squares: Floats, repeats: int) -> float | None:
    """Return the root of the mean over cells and repeats; None where a cell is hidden."""
    mean = float(squares.mean()) / repeats
    return math.sqrt(mean) if math.isfinite(mean) else None


@cache
def _uniform(survey: Survey, devices: int) -> dict[str, float | None]:
    """Return the exact errors where all values are equally common; nothing for a cross table."""
    if not survey.form.alone:
        return {}
    asked = replace(Workload.of_survey(survey), devices=devices)
    measure = measured if survey.channel.inputs == asked.inputs else measured_by_category
    known = measure("", {}, asked, survey.channel).accuracy
    assert known is not None  # noqa: S101 - it was measured
    errors = known.errors
    return {"value": errors.value, "category": errors.category, "mean": errors.mean}


def _floor(survey: Survey, devices: int, quantity: Quantity) -> float | None:
    if not survey.form.alone:
        return None
    cost = _floors(survey, devices).cost(quantity)
    return None if cost is None else math.sqrt(cost)


@cache
def _floors(survey: Survey, devices: int) -> Floors:
    return Floors(replace(Workload.of_survey(survey), devices=devices))
