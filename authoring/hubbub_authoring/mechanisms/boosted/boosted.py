"""Boosted noise on a grid: a noise kernel, a region where outputs are wanted, a boost of that region.

Inputs are the points 0..K-1 of an equally spaced grid, outputs the points -margin..K-1+margin. The row of x
is

    f(y|x) = k(|y - x|) * { 1 if y in S(x), else 1 - q } / Z(x)

(privacy-boosting section 3, budget-recycling-dp section 3). The kernel k is Laplace, Gaussian, r2dp,
staircase or uniform. The region S(x) is absolute, |y - x| <= half_width; relative, |y - x| <= share |x| +
half_width; or fixed, low <= y <= high. Z makes the row sum to one over the outputs that exist: nothing lies
beyond the margin. The uniform kernel with an absolute region is a discrete Square Wave mechanism (Li et al.
2020).

No formula for epsilon is trusted: it is computed from the rows, the free parameter is found by bisection on
it, and what is printed and enforced comes from the compiled integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import MAX_WEIGHTS, DenseChannel
from hubbub.errors import ParameterError
from hubbub.mechanisms import column_epsilon, integer_rows
from hubbub.numeric import checked_epsilon
from hubbub_authoring.mechanisms.boosted.grid import Absolute, Fixed, Region, Relative, mean_variance
from hubbub_authoring.mechanisms.boosted.kernels import GridKernel, KernelName
from hubbub_authoring.mechanisms.boosted.scale_laws import ScaleLaw
from hubbub_authoring.mechanisms.boosted.search import NOTHING, ParameterSearch

__all__ = ["Absolute", "Boosted", "BoostedDesign", "Fixed", "GridKernel", "Relative", "boosted", "brdp"]

SEARCHED: Final = Absolute()
"""An absolute region whose half width is searched."""


@dataclass(frozen=True)
class BoostedDesign:
    """The parameters that a boosted channel was compiled from, searched or given.

    Attributes:
        points: K without the missing input.
        kernel: The noise kernel, for r2dp with its law (whose scale is the one of kernel_epsilon).
        region: The region, nothing left open.
        kernel_epsilon: The kernel's own ln k(0)/k(K - 1) over the whole grid; 0 for uniform.
        boost: q in [0, 1).
        margin: Outputs beyond each end of the inputs, in grid steps.
        confidence: Least probability, over the inputs, that the output lies in the region.
        mean_variance: Variance that one report adds to the estimated sum of values, on [-1, 1], averaged over
            a uniform choice of the input (missing, counted as 0, included where it is one); the spread of
            the values themselves and rounding are not in it. inf when the channel hides the mean.
    """

    points: int
    kernel: GridKernel
    region: Region
    kernel_epsilon: float
    boost: float
    margin: int
    confidence: float
    mean_variance: float


class Boosted(DenseChannel):
    """A dense channel that remembers its design; on the wire it is any dense channel.

    Attributes:
        design: What was compiled.
    """

    def __init__(self, weights: NDArray[np.int64], design: BoostedDesign) -> None:
        super().__init__(weights)
        self.design = design

    def symbol_numbers(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the places of the symbols on the grid and beyond it; see `Channel.symbol_numbers`."""
        low, high = points[0], points[-2]
        places = np.arange(self.outputs - 1) - self.design.margin
        return np.append(low + places * ((high - low) / (len(points) - 2)), np.nan)


def boosted(
    inputs: int,
    *,
    epsilon: float,
    kernel: KernelName = "laplace",
    law: ScaleLaw | None = None,
    region: Region = SEARCHED,
    kernel_epsilon: float | None = None,
    boost: float | None = None,
    margin: int | None = None,
    missing: Literal["none", "input"] = "none",
    objective: Literal["mean", "hits"] = "mean",
) -> Boosted:
    """Return a boosted-noise channel on a grid, of at most the declared epsilon per report.

    Kernel and boost share the epsilon. Give one of kernel_epsilon and boost, and the other is made as large
    as epsilon allows; give neither, and the split (with an open half_width, that too) is the one that lets
    the mean of a uniform population be estimated with the least variance; give both, and they are only
    checked.
    That variance cannot judge a fixed region: boosting one brings outputs into the region and always makes
    the mean less accurate, so state how much boost is wanted. About the middle of the grid any boost costs no
    epsilon.

    Args:
        inputs: Grid points K, >= 2, without the missing input.
        epsilon: The declared epsilon, per report, over all pairs of inputs.
        kernel: "laplace", "gaussian", "r2dp" (Laplace of a random scale), "staircase", or "uniform", which
            spends nothing on the kernel.
        law: The law of the inverse scale for "r2dp", up to its scale, which kernel_epsilon sets.
        region: Absolute, Relative or Fixed, in grid steps.
        kernel_epsilon: The kernel's ln k(0)/k(K - 1) over the grid, >= 0; None: solved or searched. For
            Laplace, staircase and r2dp noise with uncut tails it is their epsilon over the grid.
        boost: q in [0, 1); None: solved or searched.
        margin: Grid steps of outputs beyond each end; None: the region's largest half width where it follows
            the input (every row then holds its whole region); for a fixed one K - 1, or what it takes to
            hold it (cutting the kernel at the ends of the grid instead multiplies the mean's variance by 5
            at epsilon 1).
        missing: "input" adds the input K and the last symbol, for devices without a value.
        objective: What an open split is searched for: "mean" as above, or "hits", the largest probability, at
            the input where it is least, that the output lies in the region (which must be given).

    Returns:
        A channel of K inputs (K + 1 with missing) and K + 2 margin outputs (one more with missing).

    Raises:
        ParameterError: A parameter breaks its rule or leaves nothing to learn; where the rule depends on
            epsilon, the message names the nearest value that epsilon allows.
    """
    shape = GridKernel(kernel, law)
    if kernel == "uniform" and kernel_epsilon not in (None, 0, 0.0):
        raise ParameterError(
            f"kernel_epsilon must be 0 or left open for a uniform kernel, got {kernel_epsilon!r}"
        )
    search = ParameterSearch(
        points=_whole(inputs, "inputs", 2),
        kernel=shape,
        target=checked_epsilon(epsilon),
        missing=_choice(missing, "missing", ("none", "input")) == "input",
        margin=None if margin is None else _whole(margin, "margin", 0),
    )
    spread = 0.0 if kernel == "uniform" else kernel_epsilon
    if spread is not None:
        spread = shape.spread_of(_within(spread, "kernel_epsilon", 0.0, math.inf))
    push = None if boost is None else -math.log1p(-_within(boost, "boost", 0.0, 1.0))
    _check_region(region, kernel)
    last = search.points - 1
    if isinstance(region, Fixed) and margin is None and (region.low > last or region.high < 0.0):
        raise ParameterError(
            f"region must meet the values, 0 to {last}, got {region.low!r} to {region.high!r}"
        )
    if isinstance(region, Absolute) and region.half_width is None:
        if objective == "hits":
            raise ParameterError("half_width must be given where hits are aimed at, got None")
        region = search.search_region(spread, push)
    if _choice(objective, "objective", ("mean", "hits")) == "hits" and spread is None and push is None:
        spread, push = search.most_confident(region)
    spread, push = search.split(region, spread, push)
    grid = search.grid(region)
    rows = grid.rows(spread, push)
    if column_epsilon(rows) < NOTHING:
        raise ParameterError(
            f"kernel and region must let outputs depend on the value, got {kernel} with {region}"
        )
    design = search.extended(rows)
    return Boosted(
        integer_rows(design, epsilon=epsilon),
        BoostedDesign(
            points=search.points,
            kernel=shape,
            region=region,
            kernel_epsilon=shape.epsilon_of(spread),
            boost=-math.expm1(-push),
            margin=grid.margin,
            confidence=min(1.0, grid.confidence(design[: search.points, : rows.shape[1]])),
            mean_variance=mean_variance(design, search.points),
        ),
    )


def brdp(
    inputs: int,
    *,
    epsilon: float,
    half_width: float,
    kernel: KernelName = "laplace",
    kernel_epsilon: float | None = None,
    recycling: float | None = None,
    margin: int | None = None,
    missing: Literal["none", "input"] = "none",
) -> Boosted:
    """Return budget recycling (BR-DP): draw noise; if it exceeds half_width, with probability q draw anew.

    The recycler is rejection sampling of the boosted law with an absolute region (budget-recycling-dp,
    section 3.2): after any number of rounds an acceptable output has its kernel probability times the same
    factor, any other 1 - q times that. So this is `boosted` under the paper's names; a device draws once.

    Args:
        inputs: Grid points K, >= 2, without the missing input.
        epsilon: The declared epsilon, per report: kernel and recycler together.
        half_width: theta, in grid steps: acceptable are outputs within it.
        kernel: The noise kernel.
        kernel_epsilon: Its share of the budget; None: solved from the recycling rate, or searched.
        recycling: q in [0, 1); None: solved from kernel_epsilon, or searched.
        margin: Grid steps of outputs beyond each end; None: half_width.
        missing: "input" adds an input for devices without a value.

    Raises:
        ParameterError: As `boosted`.
    """
    return boosted(
        inputs,
        epsilon=epsilon,
        kernel=kernel,
        region=Absolute(_within(half_width, "half_width", 0.0, float(MAX_WEIGHTS))),
        kernel_epsilon=kernel_epsilon,
        boost=None if recycling is None else _within(recycling, "recycling", 0.0, 1.0),
        margin=margin,
        missing=missing,
    )


def _check_region(region: Region, kernel: KernelName) -> None:
    limit = float(MAX_WEIGHTS)
    if isinstance(region, Absolute):
        if region.half_width is not None:
            _within(region.half_width, "half_width", 0.0, limit)
    elif isinstance(region, Relative):
        _within(region.share, "region.share", 0.0, limit)
        _within(region.half_width, "region.half_width", 0.0, limit)
        _within(region.origin, "region.origin", -limit, limit)
    elif isinstance(region, Fixed):
        for name, end in (("low", region.low), ("high", region.high)):
            _within(end, f"region.{name}", -limit, limit)
        if region.low > region.high:
            raise ParameterError(
                f"region.low must be at most region.high, got {region.low!r} > {region.high!r}"
            )
        if kernel == "uniform":
            raise ParameterError(
                "kernel must not be uniform for a fixed region: no output would depend on the value"
            )
    else:
        raise ParameterError(f"region must be Absolute, Relative or Fixed, got {type(region).__name__}")


def _whole(value: int, subject: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(f"{subject} must be an integer of at least {least}, got {value!r}")
    return int(value)


def _within(value: float, subject: str, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not low <= value < high:
        raise ParameterError(f"{subject} must be a number in [{low:g}, {high:g}), got {value!r}")
    return float(value)


def _choice(value: str, subject: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ParameterError(f"{subject} must be one of {', '.join(choices)}, got {value!r}")
    return value
