"""Mechanisms for the mean of a number in [-1, 1], on a grid: Duchi's one bit, Piecewise, Hybrid, Square Wave.

They are here to be compared with (Duchi et al. 2018; Wang et al. 2019; Li et al. 2020). Each symbol has a
decoded value, a number whose expectation is the device's value, so that the mean of the decoded values is
unbiased.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import DenseChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import integer_rows, with_missing
from hubbub.numeric import HEADROOM, checked_epsilon
from hubbub_authoring.mechanisms.boosted.boosted import Absolute, Boosted, boosted
from hubbub_authoring.mechanisms.boosted.grid import MAX_GRID_WEIGHTS

HYBRID_FROM: Final = 0.61
"""Epsilon above which Hybrid mixes Piecewise in (Wang et al. 2019, eq. 8)."""

Missing = Literal["none", "input"]
Floats = NDArray[np.float64]


class ScalarChannel(DenseChannel):
    """A dense channel whose outputs decode without bias; on the wire it is any dense channel.

    Attributes:
        decoded: The number that each symbol stands for, shape (M,), float64, 0 for the missing one:
            sum_y Pr(y|x) decoded_y is the point of x, and 0 for a missing value, to the 32 bits or more
            that the integers resolve.
        variances: The variance of the decoded value of one report, per grid point, shape (points,), float64.
    """

    def __init__(self, weights: NDArray[np.int64], decoded: Floats, points: int) -> None:
        super().__init__(weights)
        self.decoded = decoded
        rows = weights[:points] / self.total
        self.variances = np.asarray(rows @ decoded**2 - (rows @ decoded) ** 2)

    def symbol_numbers(self, points: Floats) -> Floats:
        """Return the numbers as which the authors read the symbols; see `Channel.symbol_numbers`."""
        low, high = points[0], points[-2]
        return np.append((0.5 * (low + high) + 0.5 * (high - low) * self.decoded)[:-1], np.nan)


def duchi(inputs: int, *, epsilon: float, missing: Missing = "none") -> ScalarChannel:
    """Return Duchi's one bit: +-c, plus with probability 1/2 + x/(2 c), c = (e^eps + 1)/(e^eps - 1).

    The variance is c^2 - x^2. Values are hidden; only the mean can be estimated.

    Args:
        inputs: Grid points K over [-1, 1], without the missing input, >= 2.
        epsilon: The declared epsilon, per report.
        missing: "input" adds the input K and the last symbol, for devices without a value.

    Raises:
        ParameterError: If a parameter is out of range.
    """
    target = _checked(inputs, epsilon)
    return _compiled(_duchi_rows(inputs, target), _duchi_decoded(target), inputs, epsilon, missing)


def piecewise(inputs: int, *, epsilon: float, missing: Missing = "none") -> ScalarChannel:
    """Return the Piecewise mechanism: a window of likelier outputs that moves with the value.

    The window has the share (C - 1)/(2 C) of all outputs, C = (e^(eps/2) + 1)/(e^(eps/2) - 1), and inside it
    an output is e^eps times as likely. On a grid it holds a whole number of outputs, the one of the two next
    to that share which has the smaller worst variance; the decoded values then follow exactly. The worst
    variance of the continuous original is 4 e^(eps/2) / (3 (e^(eps/2) - 1)^2), at x = +-1.
    Arguments and errors are those of `duchi`.
    """
    rows, decoded = _piecewise(inputs, _checked(inputs, epsilon))
    return _compiled(rows, decoded, inputs, epsilon, missing)


def hybrid(inputs: int, *, epsilon: float, missing: Missing = "none") -> ScalarChannel:
    """Return the Hybrid mechanism: a coin between Piecewise and Duchi's, above epsilon 0.61.

    The symbol shows which of the two was drawn. That costs nothing, because both have the same epsilon.
    Arguments and errors are those of `duchi`.
    """
    target = _checked(inputs, epsilon)
    if target <= HYBRID_FROM:
        return duchi(inputs, epsilon=epsilon, missing=missing)
    rows, decoded = _piecewise(inputs, target)
    share = -math.expm1(-target / 2.0)
    rows = np.hstack([share * rows, (1.0 - share) * _duchi_rows(inputs, target)])
    decoded = np.concatenate([decoded, _duchi_decoded(target)])
    return _compiled(rows, decoded, inputs, epsilon, missing)


def square_wave(inputs: int, *, epsilon: float, missing: Missing = "none") -> Boosted:
    """Return the Square Wave mechanism: uniform noise with an absolute bump of its own half width.

    The half width is (eps e^eps - e^eps + 1)/(2 e^eps (e^eps - 1 - eps)) of the grid's length (Li et al.
    2020, section 5.3). `boosted` with kernel "uniform" searches it instead.
    Arguments and errors are those of `duchi`, on any grid.
    """
    e = _checked(inputs, epsilon)
    # In the limit 1/2, where both terms cancel.
    half = 0.5 if e < 1e-3 else (e - 1.0 + math.exp(-e)) / (2.0 * (math.expm1(e) - e))
    width = float(max(round(half * (inputs - 1)), 0))
    return boosted(inputs, epsilon=epsilon, kernel="uniform", region=Absolute(width), missing=missing)


def _checked(inputs: int, epsilon: float) -> float:
    if isinstance(inputs, bool) or not isinstance(inputs, int | np.integer) or inputs < 2:
        raise ParameterError(f"inputs must be an integer of at least 2, got {inputs!r}")
    target = checked_epsilon(epsilon) - HEADROOM
    if inputs * inputs > MAX_GRID_WEIGHTS // 2:
        raise ParameterError(f"inputs times outputs must be at most {MAX_GRID_WEIGHTS}, got {inputs} inputs")
    return target


def _duchi_rows(inputs: int, epsilon: float) -> Floats:
    lean = math.tanh(epsilon / 2.0) * np.linspace(-1.0, 1.0, inputs) / 2.0
    return np.stack([0.5 - lean, 0.5 + lean], axis=1)


def _duchi_decoded(epsilon: float) -> Floats:
    size = 1.0 / math.tanh(epsilon / 2.0)
    return np.array([-size, size])


def _piecewise(inputs: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return the better of the two whole windows next to the share that the continuous mechanism has."""
    window = (inputs - 1) * math.exp(-epsilon / 2.0)
    tried = [_windowed(inputs, max(w, 1), epsilon) for w in (math.floor(window), math.ceil(window))]
    return min(tried, key=lambda one: float((one[0] @ one[1] ** 2).max()))


def _windowed(inputs: int, window: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return rows with `window` likelier outputs from x on, and their unbiased decoded values."""
    outputs = inputs - 1 + window
    first = np.arange(inputs)[:, None]
    place = np.arange(outputs)
    bump = math.exp(epsilon)
    rows = np.where((place >= first) & (place < first + window), bump, 1.0)
    whole = bump * window + outputs - window
    # From end to end the window's centre moves K - 1 places, with the excess mass (e^eps - 1) window/whole.
    travel = (bump - 1.0) * window * (inputs - 1) / whole
    return rows / whole, np.asarray((place - (outputs - 1) / 2.0) * (2.0 / travel), dtype=np.float64)


def _compiled(rows: Floats, decoded: Floats, points: int, epsilon: float, missing: Missing) -> ScalarChannel:
    if missing not in ("none", "input"):
        raise ParameterError(f"missing must be one of none, input, got {missing!r}")
    if missing == "input":
        target = checked_epsilon(epsilon)
        extended = with_missing(rows, epsilon=target)
        kept = 1.0 - float(extended[0, -1])
        rows, decoded = extended, np.append(decoded / kept, 0.0)
    return ScalarChannel(integer_rows(rows, epsilon=epsilon), decoded, points)
