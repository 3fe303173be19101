"""The grid of boosted noise: regions, kernels, rows, and how well a mean can be estimated from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms.boosted.kernels import GridKernel

_REPRODUCED: Final = 1e-7
"""Symbol weights count as unbiased when they give every point back to this accuracy."""

MAX_GRID_WEIGHTS: Final = 2**22
"""Weights of noise on a grid: as many as a survey's bytes hold. Compiling more takes seconds for nothing."""


@dataclass(frozen=True)
class Absolute:
    """A region of outputs within half_width grid steps of the input.

    Attributes:
        half_width: In grid steps, >= 0; None: searched for the least variance of the mean.
    """

    half_width: float | None = None

    @property
    def width(self) -> float:
        """The half width, once it is known."""
        if self.half_width is None:
            raise ParameterError("half_width must be given or searched before a grid is made, got None")
        return self.half_width

    def scaled(self, factor: float) -> Absolute:
        """Return the region on a grid of factor times the steps, in whole steps."""
        return Absolute(float(round(self.width * factor)))


@dataclass(frozen=True)
class Relative:
    """A region of outputs within share |x| + half_width grid steps of the input, x counted from an origin.

    Attributes:
        share: theta >= 0, per unit of |x|.
        half_width: tau >= 0, in grid steps: the width left where x is 0.
        origin: Grid position of the value zero.
    """

    share: float
    half_width: float
    origin: float = 0.0

    def scaled(self, factor: float) -> Relative:
        """Return the region on a grid of factor times the steps."""
        return Relative(self.share, self.half_width * factor, self.origin * factor)


@dataclass(frozen=True)
class Fixed:
    """A region of outputs that is one range, whatever the input.

    Attributes:
        low: First wanted grid position, in grid steps from the first input.
        high: Last wanted grid position, >= low.
    """

    low: float
    high: float

    def scaled(self, factor: float) -> Fixed:
        """Return the region on a grid of factor times the steps."""
        return Fixed(self.low * factor, self.high * factor)


Region: TypeAlias = Absolute | Relative | Fixed


@dataclass(frozen=True)
class Grid:
    """The distances and the region of one grid, which give rows for any spread and boost of its kernel.

    Attributes:
        kernel: The noise kernel.
        steps: |y - x| in grid steps, shape (K, M).
        inside: Whether y is in the region of x, shape (K, M).
        margin: Outputs beyond each end of the inputs.
    """

    kernel: GridKernel
    steps: NDArray[np.intp]
    inside: NDArray[np.bool_]
    margin: int

    def rows(self, spread: float, push: float) -> NDArray[np.float64]:
        """Return rows for a kernel epsilon and a boost ln(1/(1-q)), shape (K, M)."""
        last = len(self.steps) - 1
        weights = self.kernel.weights(last, last + self.margin, spread)[self.steps]
        weights[~self.inside] *= math.exp(-push)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def confidence(self, rows: NDArray[np.float64]) -> float:
        """Return the least probability, over the inputs, that the output lies in the region."""
        return float(np.where(self.inside, rows, 0.0).sum(axis=1).min())


def grid_of(points: int, kernel: GridKernel, region: Region, margin: int | None) -> Grid:
    """Return the grid of a kernel and a region; without a margin, the default that `boosted` documents.

    Raises:
        ParameterError: If the region holds no output, or inputs times outputs exceed MAX_GRID_WEIGHTS.
    """
    last = points - 1
    if margin is not None:
        pass
    elif isinstance(region, Absolute):
        margin = math.floor(region.width)
    elif isinstance(region, Relative):
        margin = math.floor(
            region.share * max(abs(region.origin), abs(last - region.origin)) + region.half_width
        )
    else:
        margin = max(last, math.ceil(-region.low), math.ceil(region.high - last))
    size = points * (points + 2 * margin)
    if size > MAX_GRID_WEIGHTS:
        raise ParameterError(f"inputs times outputs must be at most {MAX_GRID_WEIGHTS}, got {size}")
    outputs = np.arange(-margin, last + margin + 1)
    inputs = np.arange(points)[:, None]
    steps = np.abs(outputs - inputs)
    if isinstance(region, Absolute):
        inside = steps <= region.width
    elif isinstance(region, Relative):
        inside = steps <= region.share * np.abs(inputs - region.origin) + region.half_width
    else:
        wanted = (outputs >= region.low) & (outputs <= region.high)
        if not wanted.any():
            raise ParameterError(
                f"region must hold one of the outputs {-margin} to {last + margin}, got {region}"
            )
        inside = np.broadcast_to(wanted, steps.shape)
    return Grid(kernel, steps, inside, margin)


def mean_variance(rows: NDArray[np.float64], points: int) -> float:
    """Return the variance per report of the best linear unbiased estimate of a uniform population's mean.

    With prior pi = mean row, the weights g minimise sum_y pi_y g_y^2 subject to sum_y f(y|x) g_y = a_x, the
    points; the variance given the values is that minimum less the mean of a_x^2.

    Args:
        rows: Probabilities, shape (K, M), K = points or one more for missing, which counts as 0.
        points: Grid points, equally spaced over [-1, 1].

    Returns:
        The variance; inf when no unbiased estimator exists.
    """
    values = np.zeros(len(rows))
    values[:points] = np.linspace(-1.0, 1.0, points)
    shares = rows.mean(axis=0)
    if shares.min() <= 0.0:  # equal rows leave nothing for a missing input to send: nothing can be estimated
        return math.inf
    scaled = rows / np.sqrt(shares)
    for solve in (_by_normal_equations, _by_least_squares):
        weights = solve(scaled, values)
        if weights is not None and float(np.abs(scaled @ weights - values).max()) <= _REPRODUCED:
            return float(weights @ weights - (values * values).mean())
    return math.inf


def _by_normal_equations(
    scaled: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    # Ten times faster than the general way, and good enough for all grids but nearly singular ones.
    try:
        return np.asarray(scaled.T @ np.linalg.solve(scaled @ scaled.T, values))
    except np.linalg.LinAlgError:
        return None


def _by_least_squares(scaled: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.lstsq(scaled, values, rcond=1e-10)[0])
