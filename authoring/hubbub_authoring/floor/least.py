"""The least error of a question, with the name of what proves it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hubbub.errors import ParameterError
from hubbub.mechanisms import middle as middle_points
from hubbub_authoring.floor.linear import MOST_READ, MOST_SEARCHED, reading_floor, searched_floor
from hubbub_authoring.floor.orbits import MAX_ORBITS, Classes, Weights, orbit_floor
from hubbub_authoring.floor.patterns import MAX_PATTERN_INPUTS, pattern_floor
from hubbub_authoring.floor.programme import MARGIN, Floats
from hubbub_authoring.floor.spectral import (
    cumulative_questions,
    spectral_floor,
    spectral_shares,
    spectral_tables,
)

Proof = Literal["orbits", "patterns", "pricing", "interpolated", "spectral", "pooled", "split"]


@dataclass(frozen=True)
class Floor:
    """An error that no epsilon-LDP mechanism can be below.

    It holds for every unbiased linear estimate, of one-shot and of sequentially interactive mechanisms
    alike, on average over populations drawn from the prior; estimates that are biased by what they presume
    can be below.

    Attributes:
        error: n times the variance over the randomisation, rounded down.
        proof: "orbits": all sets up to symmetry; "patterns": all sets; "pricing": the worst set found
            exactly. These three have the optimum as their limit, and are below it by as much as the search
            for it left when it ended. "interpolated": by pricing, at the dual point of fewer points;
            "spectral", "pooled", "split": lower bounds that may be far below the optimum.
    """

    error: float
    proof: Proof

    def behind_coin(self, share: float, *, sampling: float, rest: float = 0.0) -> Floor | None:
        """Return the floor of channels behind a coin that lets a share of the devices answer; None at 0.

        Args:
            share: Above 0, at most 1.
            sampling: What was taken off the error: n times the summed variance over crowds.
            rest: An error that every mechanism has on top.
        """
        least = ((self.error + sampling) / share - sampling + rest) * (1.0 - MARGIN)
        return Floor(least, self.proof) if least > 0.0 else None


def shares_floor(sizes: Sequence[int], *, epsilon: float, weights: Weights, missing: bool = True) -> Floor:
    """Return the floor of a weighted sum of the mean error of values and that of categories.

    Args:
        sizes: Values per category, missing left out; the prior is uniform over values.
        epsilon: Of the channels.
        weights: The two factors, >= 0, not both 0.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If an argument breaks its rule.

    >>> floor = shares_floor([10] * 9, epsilon=1.0, weights=Weights(0.5, 0.5))
    >>> round(floor.error, 3), floor.proof
    (5.89, 'orbits')
    """
    if min(weights.value, weights.category) < 0.0 or max(weights.value, weights.category) <= 0.0:
        raise ParameterError(f"weights must be >= 0 and not both 0, got {weights}")
    if weights.category == 0.0:
        sizes = [sum(sizes)]  # without categories in the error any grouping has the same optimum
    if Classes.of(sizes, missing=missing).orbits <= MAX_ORBITS:
        return Floor(orbit_floor(sizes, epsilon=epsilon, weights=weights, missing=missing).floor, "orbits")
    values = 0.0
    if weights.value > 0.0:
        alone = orbit_floor(
            [sum(sizes)], epsilon=epsilon, weights=Weights(weights.value, 0.0), missing=missing
        )
        values = alone.floor
    spectral = spectral_shares(sizes, epsilon=epsilon, weights=weights)
    try:
        split = values + weights.category * category_floor(sizes, epsilon=epsilon, missing=missing)
    except ParameterError:
        return Floor(spectral, "spectral")
    return sharper(Floor(split, "split"), spectral)


def sharper(known: Floor | None, spectral: float) -> Floor:
    """Return the greater of a floor, where there is one, and the spectral floor; of a tie the former."""
    if known is not None and known.error >= spectral * (1.0 - _TIE):
        return known
    return Floor(spectral, "spectral")


def category_floor(sizes: Sequence[int], *, epsilon: float, missing: bool) -> float:
    """Return the floor of the mean error of categories, by the channel that reads the category alone.

    A channel of values, fed a random value of a category, is a channel of categories with the same errors.

    Raises:
        ParameterError: If there are more categories than `pattern_floor` takes.
    """
    many = len(sizes)
    if many + missing > MAX_PATTERN_INPUTS:
        raise ParameterError(
            f"categories of many different sizes must be at most {MAX_PATTERN_INPUTS - missing}, got {many}"
        )
    prior = np.array([*sizes, *([0] if missing else [])]) / sum(sizes)
    questions = np.eye(many, len(prior)) / np.sqrt(many)
    return pattern_floor(questions, prior, epsilon=epsilon).floor


def mean_floor(points: Floats | Sequence[float], *, epsilon: float, missing: bool = True) -> Floor:
    """Return the floor of the error of the mean over those who have a value, a uniform prior over the points.

    Args:
        points: The number of every input, shape (K,), without missing.
        epsilon: Of the channels.
        missing: Whether there is an input for "no value".

    Raises:
        ParameterError: If there are fewer than two points, or they are not finite numbers.
    """
    numbers = np.asarray(points, dtype=np.float64)
    if numbers.ndim != 1 or len(numbers) < 2 or not np.isfinite(numbers).all():
        raise ParameterError("points must be a row of two finite numbers or more")
    functional, prior = numbers - numbers.mean(), np.full(len(numbers), 1.0 / len(numbers))
    if missing:
        functional, prior = np.append(functional, 0.0), np.append(prior, 0.0)
    return functional_floor(functional, prior, epsilon=epsilon)


def functional_floor(functional: Floats, prior: Floats, *, epsilon: float) -> Floor:
    """Return the floor of the error of one linear functional.

    Args:
        functional: Its coefficient per input, shape (K,).
        prior: Shares of the inputs, shape (K,), >= 0, summing to one.
        epsilon: Of the channels.
    """
    if len(prior) <= MAX_LISTED:
        return Floor(pattern_floor(functional[None, :], prior, epsilon=epsilon).floor, "patterns")
    try:
        proof: Proof = "pricing" if np.count_nonzero(prior) <= MOST_READ else "interpolated"
        return Floor(reading_floor(functional, prior, epsilon=epsilon), proof)
    except ModuleNotFoundError:
        proof = "pricing" if np.count_nonzero(prior) <= MOST_SEARCHED else "interpolated"
        return Floor(searched_floor(functional, prior, epsilon=epsilon), proof)


def cumulative_floor(points: int, *, epsilon: float, missing: bool = True, middle: bool = False) -> Floor:
    """Return a floor of the mean error of the cumulative shares of K points, a uniform prior.

    It is the optimum for few points; for more the greater of the spectral floor and a bound from points
    pooled to cells.

    Args:
        points: K, at least 2.
        epsilon: Of the channels.
        missing: Whether there is an input for "no value".
        middle: Whether only the shares from 1/8 to 7/8 count, as for quantiles.

    Raises:
        ParameterError: If there are fewer than two points.
    """
    if points < 2:
        raise ParameterError(f"points must be at least 2, got {points}")
    low, high = middle_points(points) if middle else (1, points - 1)
    questions = cumulative_questions(points, low, high)
    if points + missing <= MAX_LISTED:
        prior = np.full(points, 1.0 / points)
        if missing:
            questions = np.pad(questions, ((0, 0), (0, 1)))
            prior = np.append(prior, 0.0)
        return Floor(pattern_floor(questions, prior, epsilon=epsilon).floor, "patterns")
    spectral = spectral_floor(questions, np.full(points, 1.0 / points), epsilon=epsilon)
    return sharper(
        Floor(_pooled(points, range(low, high + 1), epsilon=epsilon, missing=missing), "pooled"), spectral
    )


def table_floor(readings: Sequence[int], tables: Sequence[Sequence[int]], *, epsilon: float) -> Floor:
    """Return the floor of the summed error of all cells of some tables, all combinations equally common.

    Args:
        readings: r_j per attribute, at least 2, missing included.
        tables: The attributes of every table that is asked.
        epsilon: Of the channels.
    """
    inputs = math.prod(readings)
    known: Floor | None = None
    if inputs <= MAX_LISTED:
        at = np.unravel_index(np.arange(inputs), tuple(readings))
        cells = [np.ravel_multi_index([at[j] for j in t], [readings[j] for j in t]) for t in tables]
        rows = np.concatenate([np.arange(cell.max() + 1)[:, None] == cell for cell in cells]).astype(float)
        prior = np.full(inputs, 1.0 / inputs)
        known = Floor(pattern_floor(rows, prior, epsilon=epsilon).floor, "patterns")
    elif len(tables) == 1:
        values = Weights(float(inputs), 0.0)
        known = shares_floor([inputs], epsilon=epsilon, weights=values, missing=False)
    return sharper(known, spectral_tables(readings, tables, epsilon=epsilon))


def _pooled(points: int, cuts: range, *, epsilon: float, missing: bool) -> float:
    """Return a floor of the mean error of some cumulative shares, from floors of every few of them.

    A channel of points, fed a random point of a cell, is a channel of cells with the same errors at the
    cells' ends. So every few cuts have the floor of the cells between them, and all have the sum.
    """
    parts = -(-len(cuts) // (MAX_LISTED - missing - 1))
    total = 0.0
    for part in range(parts):
        own = cuts[part::parts]
        ends = np.array([0, *own, points])
        prior = np.diff(ends) / points
        questions = np.tril(np.ones((len(own), len(own) + 1)))
        if missing:
            questions, prior = np.pad(questions, ((0, 0), (0, 1))), np.append(prior, 0.0)
        total += pattern_floor(questions, prior, epsilon=epsilon).floor
    return total / len(cuts) * (1.0 - MARGIN)


_TIE = 1e-6

MAX_LISTED = 9
"""Inputs up to which all sets are tried for numbers: half a second; more would take minutes."""
