"""The smoothed view of a number's distribution: expectation maximisation, each step followed by smoothing.

Plain expectation maximisation climbs to the distribution under which what was counted is likeliest; on noisy
counts that is spiky. Smoothed after every step (Li et al. 2020, "Estimating numerical distributions under
local differential privacy"), it settles near the smooth distribution that explains the counts. The view is
non-negative and sums to one, and it is biased: towards smoothness, towards where it started. It is shown
beside the unbiased estimates, never instead, and has no standard errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]

TOLERANCE: Final = 1e-3
"""Steps end when the log-likelihood of all reports changes by less, as in Li et al."""

MAX_STEPS: Final = 10_000
"""Steps at most; some hundreds are usual."""

MAX_CELLS: Final = 1 << 20
"""Largest K M of a smoothed view: a step passes over the whole matrix twice, a millisecond or two."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smoothed view of one estimate.

    Attributes:
        values: Frequencies, shape (K,), >= 0, summing to one. Biased.
        log_likelihood: Of all reports under these frequencies, but for a constant.
        steps: Steps taken.
        settled: Whether the steps ended by the rule, not at MAX_STEPS.
    """

    values: Floats
    log_likelihood: float
    steps: int
    settled: bool


def maximise(
    rows: Floats,
    counts: NDArray[Any],
    *,
    order: NDArray[np.intp] | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> Smoothed:
    """Return the frequencies that expectation maximisation ends at, from equal ones.

    Args:
        rows: Probabilities of the symbols given each input, shape (K, M), every symbol possible.
        counts: Reports per symbol, shape (M,), >= 0, not all 0.
        order: The inputs that are smoothed, as neighbours follow each other, shape (k,); the others keep what
            a step gives them. None: no smoothing, the likelihood then never falls.
        tolerance: See TOLERANCE.
        max_steps: See MAX_STEPS.

    Raises:
        ParameterError: Shapes do not fit, or nothing was counted.
    """
    tallies = np.asarray(counts, dtype=np.float64)
    if tallies.shape != (rows.shape[1],):
        raise ParameterError(f"counts must have shape ({rows.shape[1]},), got {tallies.shape}")
    total = float(tallies.sum())
    if not (total > 0.0 and tallies.min() >= 0.0):
        raise ParameterError(f"counts must be >= 0 with a sum above 0, got a sum of {total:g}")
    shares = np.full(rows.shape[0], 1.0 / rows.shape[0])
    mixture = shares @ rows
    likelihood = float(tallies @ np.log(mixture))
    for step in range(1, max_steps + 1):
        shares = shares * (rows @ (tallies / mixture)) / total
        if order is not None:
            shares[order] = _spread(shares[order])
        mixture = shares @ rows
        before, likelihood = likelihood, float(tallies @ np.log(mixture))
        if abs(likelihood - before) < tolerance:
            return Smoothed(shares, likelihood, step, settled=True)
    return Smoothed(shares, likelihood, max_steps, settled=False)


def neighbours(points: Floats | None, missing: int | None) -> NDArray[np.intp]:
    """Return the inputs in the order of their numbers; what has none is left out.

    Raises:
        ParameterError: There are no numbers, or they are not equally spaced.
    """
    if points is None:
        raise ParameterError("a smoothed view needs inputs that are numbers, got labels")
    order = np.argsort(points, kind="stable")
    if missing is not None:
        order = order[order != missing]
    order = order[~np.isnan(points[order])]
    gaps = np.diff(points[order])
    if gaps.size == 0 or not math.isclose(float(gaps.min()), float(gaps.max()), rel_tol=1e-6):
        raise ParameterError("a smoothed view needs numbers that are equally spaced, got gaps that differ")
    return order


def _spread(frequencies: Floats) -> Floats:
    """Return a quarter of every share to either side; at an end it stays."""
    padded = np.concatenate([frequencies[:1], frequencies, frequencies[-1:]])
    return np.asarray((padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0)
