"""A missing value as an input of its own, so that a device without a value answers like any other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.mechanisms.integers import DESIGN_EXCESS, column_epsilon


def with_missing(design: NDArray[np.float64], *, epsilon: float) -> NDArray[np.float64]:
    """Return the design with one more input (missing, the last row) and one more symbol (the last column).

    With column minima m_y of the design, s = sum_y m_y and a = e^epsilon, an input that has a value sends the
    new symbol with probability

        w = (1 - s) / (a - s)

    and follows its old row otherwise; the missing input sends y with (1 - w) m_y and the new symbol with
    the rest, 1 - (1 - w) s = a w. Old columns keep their largest ratio, and the new one's is exactly a: the
    share w taken from real values is the least that any such extension needs.

    Args:
        design: Probabilities, shape (K, M), > 0, each row summing to one.
        epsilon: The design's epsilon, or more; the result has this epsilon.

    Returns:
        Probabilities, shape (K + 1, M + 1).

    Raises:
        ParameterError: If the design's own epsilon exceeds epsilon (by more than rounding).
    """
    own = column_epsilon(design)
    if not own <= epsilon * (1.0 + DESIGN_EXCESS):
        raise ParameterError(f"a design's epsilon must be at most {epsilon:.9g}, got {own:.9g}")
    inputs, outputs = design.shape
    least = design.min(axis=0)
    floor = float(least.sum())
    taken = (1.0 - floor) / (math.exp(epsilon) - floor)
    extended = np.empty((inputs + 1, outputs + 1))
    extended[:inputs, :outputs] = (1.0 - taken) * design
    extended[:inputs, outputs] = taken
    extended[inputs, :outputs] = (1.0 - taken) * least
    extended[inputs, outputs] = 1.0 - (1.0 - taken) * floor
    return extended
