"""From a design in floats to the integers of a dense channel, without ever exceeding its epsilon.

Each column gets a box: from its least entry m to floor(a m), a <= e^epsilon. Entries are rounded into their
boxes, and what a row then lacks or has too much is spread over the room that its boxes leave. So every
column's ratio is at most a by construction. (Giving a row's remainder to its largest entry would raise
epsilon: that entry is usually the largest of its column, too.) A missing value may be an input of its own.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_WEIGHTS
from hubbub.channels.finite import DenseChannel
from hubbub.errors import ParameterError
from hubbub.numeric.exact import HEADROOM, checked_epsilon, exp_below

TOTALS: Final = (2**32, 2**62)
"""Powers of two: no draw is ever rejected. The first costs four random bytes per report, the second eight."""

NARROW_LOSS: Final = 1e-6
"""Four bytes are enough when they cost less than this share of epsilon."""

DESIGN_EXCESS: Final = 1e-6
"""A design may exceed the epsilon by this share, which rounding removes; more would be a different design."""


def integer_rows(design: NDArray[np.float64], *, epsilon: float) -> NDArray[np.int64]:
    """Return integer weights whose certified epsilon is at least 2^-36 below the declared one.

    Args:
        design: Probabilities, shape (K, M), >= 0, each row summing to one.
        epsilon: The declared epsilon, per report.

    Returns:
        Weights, shape (K, M), int64, >= 1, all rows with the same total, 2^32 or 2^62.

    Raises:
        ParameterError: If the design is not a matrix of probabilities, has a larger epsilon than the declared
            one, or has entries too small for a total of 2^62.
    """
    rows = _checked(design)
    declared = checked_epsilon(epsilon)
    ceiling = exp_below(declared - HEADROOM)
    own = column_epsilon(rows)
    if own > declared * (1.0 + DESIGN_EXCESS):
        raise ParameterError(f"a design's epsilon must be at most {declared:.9g}, got {own:.9g}")
    for total in TOTALS:
        weights = _fit(rows, total, ceiling)
        if weights is None:
            continue
        if total == TOTALS[-1] or column_epsilon(weights) >= min(own, declared) * (1.0 - NARROW_LOSS):
            return weights
    raise ParameterError(f"no total up to 2^62 can express this design at epsilon {declared:.9g}")


def integerise(design: NDArray[np.float64], *, epsilon: float) -> DenseChannel:
    """Return the dense channel of a design; see `integer_rows` for arguments, guarantee and errors.

    >>> integerise(np.array([[0.7, 0.3], [0.3, 0.7]]), epsilon=0.85).total == 2**32
    True
    """
    return DenseChannel(integer_rows(design, epsilon=epsilon))


def column_epsilon(rows: NDArray[Any]) -> float:
    """Return the largest log-ratio within a column in floats: for design, not for proof. inf with a zero."""
    highest, lowest = rows.max(axis=0), rows.min(axis=0)
    if lowest.min() <= 0:
        return math.inf
    return float(np.log(highest / lowest).max())


def _checked(design: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = np.asarray(design, dtype=np.float64)
    if rows.ndim != 2 or min(rows.shape) < 2 or rows.size > MAX_WEIGHTS:
        raise ParameterError(
            f"a design must be a matrix of 2 x 2 to {MAX_WEIGHTS} probabilities, got {rows.shape}"
        )
    # A nan fails every comparison, so each rule is stated as what must hold.
    if not rows.min() >= 0.0:
        raise ParameterError(f"a design's probabilities must be at least 0, got {rows.min()}")
    worst = float(np.abs(rows.sum(axis=1) - 1.0).max())
    if not worst <= 1e-9:
        raise ParameterError(f"each row of a design must sum to one, got one that is off by {worst}")
    return rows


def _fit(rows: NDArray[np.float64], total: int, ceiling: Fraction) -> NDArray[np.int64] | None:
    """Return weights with this total inside the columns' boxes.

    None where some row cannot reach the total.
    """
    scaled = rows * float(total)
    # The boxes hold each column's largest entry: what is clamped away there would be a multiple of the
    # least entries, once it is spread over them. For the same reason minima are rounded up.
    least = np.maximum(scaled.min(axis=0), scaled.max(axis=0) / float(ceiling))
    low = np.maximum(np.ceil(least), 1.0).astype(np.int64)
    high = np.array([min(math.floor(ceiling * m), total) for m in low.tolist()], dtype=np.int64)
    if sum(low.tolist()) > total or sum(high.tolist()) < total:
        return None
    weights = np.clip(np.rint(scaled), low, high).astype(np.int64)
    np.clip(weights, low, high, out=weights)  # float64 cannot hold every bound above 2^53 exactly
    for row in weights:
        _adjust_row(row, low, high, total)
    return weights


def _adjust_row(row: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], total: int) -> None:
    """Move one row's entries, in place and inside their boxes, until it sums to the total."""
    while lacking := total - sum(row.tolist()):
        room = high - row if lacking > 0 else row - low
        wanted = abs(lacking)
        share = np.minimum(np.floor(room * min(wanted / float(room.sum(dtype=np.float64)), 1.0)), room)
        step = share.astype(np.int64)
        if not step.any():
            # Fewer units left than entries: one each, where there is most room.
            chosen = np.argsort(-room, kind="stable")[:wanted]
            step[chosen] = np.minimum(room[chosen], 1)
        row += step if lacking > 0 else -step


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
