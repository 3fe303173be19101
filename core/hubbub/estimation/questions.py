"""The inputs as an estimator knows them: categories, numbers, a population's frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError

Floats = NDArray[np.float64]
Rounding = Literal["none", "stochastic"]


class Expecting(Protocol):
    """The part of a channel that tells what counts to expect."""

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""

    def expected(self, frequencies: Floats, /) -> Floats:
        """Return the expected counts of one report of a population."""


@dataclass(frozen=True, eq=False)
class InputNumbers:
    """The numbers of the inputs, centred and scaled: so they lose no digits to a far origin such as years.

    Attributes:
        unit: Every input's number, less `centre` and over `scale`, shape (K,), in -1..1; 0 at missing.
        answered: 1 for an input that has a number, 0 at missing and absent, shape (K,).
        centre: The middle of the numbers.
        scale: Half their span.
        rounding_variance: What stochastic rounding adds to one device's variance at most, in units.
    """

    unit: Floats
    answered: Floats
    centre: float
    scale: float
    rounding_variance: float

    @classmethod
    def of(
        cls, inputs: int, *, points: Floats | None, missing: int | None, rounding: Rounding
    ) -> InputNumbers | None:
        """Return the numbers of a survey; None where it has none.

        Raises:
            ParameterError: Shapes or ranges do not fit.
        """
        if missing is not None and not 0 <= missing < inputs:
            raise ParameterError(f"missing must be an input in 0..{inputs - 1}, got {missing!r}")
        if rounding not in ("none", "stochastic"):
            raise ParameterError(f'rounding must be "none" or "stochastic", got {rounding!r}')
        if points is None:
            return None
        numbers = np.array(points, dtype=np.float64)
        if numbers.shape != (inputs,):
            raise ParameterError(f"points must have shape ({inputs},), got {numbers.shape}")
        if missing is not None:
            numbers[missing] = np.nan
        answered = 1.0 - np.isnan(numbers)
        real = numbers[answered > 0]
        if not np.isfinite(real).all() or not real.size or (missing is None and real.size < inputs):
            raise ParameterError("points must be finite except at the missing input and what has no number")
        centre = float(real.max() + real.min()) / 2
        scale = float(real.max() - real.min()) / 2 or 1.0
        unit = np.where(answered > 0, (np.nan_to_num(numbers) - centre) / scale, 0.0)
        gap = float(np.diff(np.unique(real)).max(initial=0.0)) if rounding == "stochastic" else 0.0
        return cls(unit, answered, centre, scale, (gap / scale) ** 2 / 4)

    def scaled(self, mean: float, variance: float) -> tuple[float, float]:
        """Return a mean and its standard error in the points' own terms, from units."""
        return self.centre + self.scale * mean, self.scale * math.sqrt(variance)

    def ratio(self, values: Floats, n: int, variance: Callable[[Floats], float]) -> tuple[float, float]:
        """Return the mean over devices with a value, a ratio, and its error by the delta method.

        Args:
            values: Shares of the inputs, shape (K,).
            n: Reports.
            variance: Return the variance of a linear functional of the shares, shape (K,).

        Returns:
            In the points' own terms; nan and inf where nobody seems to have a value.
        """
        answered = float((self.answered * values).sum())
        if answered <= 0:
            return math.nan, math.inf
        mean = float((self.unit * values).sum()) / answered
        spread = max(variance((self.unit - mean * self.answered) / answered), 0.0)
        return self.scaled(mean, spread + self.rounding_variance / (answered * n))


def checked_categories(category_of: NDArray[np.integer[Any]], inputs: int) -> NDArray[np.intp]:
    """Return the category of every input, shape (K,), if every category from 0 up has one.

    Raises:
        ParameterError: They do not.
    """
    groups = np.asarray(category_of)
    if groups.shape != (inputs,) or groups.dtype.kind not in "iu":
        raise ParameterError(
            f"category_of must be {inputs} integers, got {groups.dtype} of shape {groups.shape}"
        )
    if groups.min() < 0 or (np.bincount(groups) == 0).any():
        raise ParameterError("category_of must use every category from 0 up, got a gap or a negative one")
    return groups.astype(np.intp)


def checked_frequencies(shares: Floats, inputs: int) -> Floats:
    """Return a population's frequencies of the inputs, shape (K,), if they are such.

    Raises:
        ParameterError: They are not >= 0, or do not sum to one.
    """
    population = np.asarray(shares, dtype=np.float64)
    if population.shape != (inputs,):
        raise ParameterError(f"frequencies must have shape ({inputs},), got {population.shape}")
    if not (population.min() >= 0.0 and abs(float(population.sum()) - 1.0) <= 1e-9):
        raise ParameterError(
            f"frequencies must be at least 0 and sum to one, got a sum of {population.sum()}"
        )
    return population


def checked_counts(counts: NDArray[np.integer[Any]], bins: int, n: int) -> NDArray[np.integer[Any]]:
    """Return the counts of n reports, each of which may be in several bins.

    Raises:
        ParameterError: The shape, the type, n or a count is wrong.
    """
    tallies = np.asarray(counts)
    if tallies.shape != (bins,):
        raise ParameterError(f"counts must have shape ({bins},), got {tallies.shape}")
    if tallies.dtype.kind not in "iu":
        raise ParameterError(f"counts must be integers, got {tallies.dtype}")
    low, high = int(tallies.min()), int(tallies.max())
    if n < 1 or not 0 <= low <= high <= n:
        raise ParameterError(f"counts must be within 0 to n = {n} >= 1, got {low} to {high}")
    return tallies


def expected_counts(channel: Expecting, frequencies: Floats, n: int) -> Floats:
    """Return the expected counts of n devices before any has reported.

    Raises:
        ParameterError: Frequencies or n break their rule.
    """
    population = checked_frequencies(frequencies, channel.inputs)
    if n < 1:
        raise ParameterError(f"n must be at least 1, got {n}")
    return n * channel.expected(population)
