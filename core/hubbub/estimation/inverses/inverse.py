"""The contract of a channel's linear inverse, as the estimator uses it.

Reports are counted per symbol, C of shape (M,). A left inverse B of shape (K, M) satisfies B @ P.T = I for
the channel's row probabilities P of shape (K, M), so B @ C is an unbiased estimate of how many devices hold
each input, whatever the data. Summing rows of B estimates categories; h @ B estimates any functional h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.estimation.intervals.laws import ScoreLaws
from hubbub.estimation.poison import Reach

# float64 in production; object arrays of Fraction when unbiasedness is checked exactly by the same code.
Numbers = NDArray[Any]
Arithmetic = Literal["float64", "fractions"]


@dataclass(frozen=True)
class Solution:
    """The estimates from one vector of counts, in devices (not yet divided by n).

    Attributes:
        values: Devices per input, shape (K,); nan where the channel hides it.
        value_variances: Their variances over the randomisation, shape (K,), >= 0; inf where hidden.
        categories: Devices per category, shape (m,); nan where hidden.
        category_variances: Their variances, shape (m,), >= 0; inf where hidden.
    """

    values: Numbers
    value_variances: Numbers
    categories: Numbers
    category_variances: Numbers


class Inverse(Protocol):
    """A left inverse B of one channel, with its inputs grouped into categories."""

    @property
    def inputs(self) -> int:
        """K, the number of inputs."""

    @property
    def outputs(self) -> int:
        """M, the number of symbols."""

    def solve(self, counts: Numbers) -> Solution:
        """Estimate values and categories, with variances, from counts of shape (M,)."""

    def pull_back(self, functional: Numbers) -> Numbers | None:
        """Return symbol weights g, shape (M,), with P g = functional, shape (K,); None if there are none."""

    def reach(self) -> Reach:
        """Return the least and the largest that one report can add to every value and category."""

    def laws(self, counts: Numbers, solution: Solution) -> ScoreLaws:
        """Return the laws of the scores of values and categories, for their intervals."""

    def matrix(self) -> Numbers:
        """Return B, shape (K, M); rows that the channel hides are nan."""


def excess(coefficients: Numbers) -> Numbers:
    """Return b^2 - b, what one report at coefficient b adds to the estimated variance of its cell.

    A 0/1 cell is estimated by summing b over the reports. Over the randomisation of a device whose cell holds
    v in {0, 1}, E[b] = v = v^2 = E[b]^2, hence Var[b] = E[b^2 - b]: the sum over reports is unbiased for
    the variance, and equals B diag(C) B^T - diag(B C) on the diagonal.
    """
    return coefficients * coefficients - coefficients


def quotients(
    numerators: NDArray[np.int64], denominators: NDArray[np.int64], *, arithmetic: Arithmetic
) -> Numbers:
    """Divide integers elementwise, as float64 or as exact Fractions in an object array."""
    if arithmetic == "float64":
        return np.asarray(numerators / denominators, dtype=np.float64)
    divide: Callable[[Any, Any], Any] = np.frompyfunc(lambda a, b: Fraction(int(a), int(b)), 2, 1)
    return np.asarray(divide(numerators, denominators), dtype=object)
