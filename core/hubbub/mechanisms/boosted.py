"""Boosted noise on a grid: a noise kernel, a region where outputs are wanted, a boost of that region.

Inputs are the points 0..K-1 of an equally spaced grid, outputs the points -margin..K-1+margin. The row of x
is

    f(y|x) = k(|y - x|) * { 1 if y in S(x), else 1 - q } / Z(x)

(privacy-boosting section 3, budget-recycling-dp section 3), with the kernel k either Laplace,
exp(-kernel_epsilon |y - x| / (K - 1)), or uniform, and the region S(x) either absolute, |y - x| <=
half_width, or fixed, low <= y <= high. Z makes the row sum to one over the outputs that exist: nothing lies
beyond the margin. The uniform kernel with an absolute region is a discrete Square Wave mechanism (Li et al.
2020).

No formula for epsilon is trusted: it is computed from the rows, the free parameter is found by bisection on
it, and what is printed and enforced comes from the compiled integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hubbub.channel import MAX_WEIGHTS, DenseChannel
from hubbub.errors import ParameterError
from hubbub.exact import checked_epsilon
from hubbub.mechanisms.integers import column_epsilon, integer_rows
from hubbub.mechanisms.missing import with_missing

MAX_BOOST_LOG: Final = 20.0
"""Largest ln(1/(1-q)) searched where boosting is free: outputs outside the region are then 2e-9 as likely."""

SEARCH_POINTS: Final = 65
"""Larger grids are searched on this many points, then solved on their own: the optimum scales along."""

ROUNDING: Final = 1e-9
"""A float design may exceed epsilon by this share, so that kernel_epsilon = epsilon is not refused for its
last digit; the integers it becomes are clamped below epsilon all the same."""

_BISECTIONS: Final = 44
_GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0

Kernel = Literal["laplace", "uniform"]


@dataclass(frozen=True)
class Absolute:
    """Outputs are wanted within half_width grid steps of the input.

    Attributes:
        half_width: In grid steps, >= 0; None: searched for the least variance of the mean.
    """

    half_width: float | None = None


@dataclass(frozen=True)
class Fixed:
    """Outputs are wanted within one and the same range, whatever the input.

    Attributes:
        low: First wanted grid position, in grid steps from the first input.
        high: Last wanted grid position, >= low.
    """

    low: float
    high: float


@dataclass(frozen=True)
class Design:
    """The parameters that a boosted channel was compiled from, searched or given.

    Attributes:
        points: K without the missing input.
        kernel: The noise kernel.
        region: The region, nothing left open.
        kernel_epsilon: The kernel's own epsilon over the whole grid before it is cut to the outputs; 0 for
        uniform.
        boost: q in [0, 1).
        margin: Outputs beyond each end of the inputs, in grid steps.
        hit_rate: Least probability, over the inputs, that the output lies in the region.
        mean_variance: Variance that one report adds to the estimated sum of values, on [-1, 1], averaged over
            a uniform choice of the input (missing, counted as 0, included where it is one); the spread of
            the values themselves and rounding are not in it. inf when the channel hides the mean.
    """

    points: int
    kernel: Kernel
    region: Absolute | Fixed
    kernel_epsilon: float
    boost: float
    margin: int
    hit_rate: float
    mean_variance: float


class Boosted(DenseChannel):
    """A dense channel that remembers its design. Its description on the wire is that of any dense channel.

    Attributes:
        design: What was compiled.
    """

    def __init__(self, weights: NDArray[np.int64], design: Design) -> None:
        super().__init__(weights)
        self.design = design


def boosted(
    inputs: int,
    *,
    epsilon: float,
    kernel: Kernel = "laplace",
    region: Absolute | Fixed = Absolute(),
    kernel_epsilon: float | None = None,
    boost: float | None = None,
    margin: int | None = None,
    missing: Literal["none", "input"] = "none",
) -> Boosted:
    """Gives a boosted-noise channel on a grid, of at most the declared epsilon per report.

    Kernel and boost share the epsilon. Give one of kernel_epsilon and boost, and the other is made as large
    as epsilon allows; give neither, and the split (with an open half_width, that too) is the one that lets
    the mean of a uniform crowd be estimated with the least variance; give both, and they are only checked.
    That mean is no judge of a fixed region: boosting one brings outputs into the region and always costs
    the mean, so state how much boost is wanted. About the middle of the grid any boost costs no epsilon.

    Args:
        inputs: Grid points K, >= 2, without the missing input.
        epsilon: The declared epsilon, per report, over all pairs of inputs.
        kernel: "laplace", or "uniform", which spends nothing on the kernel.
        region: Absolute or Fixed, in grid steps.
        kernel_epsilon: The Laplace kernel's epsilon over the grid, >= 0; None: solved or searched.
        boost: q in [0, 1); None: solved or searched.
        margin: Grid steps of outputs beyond each end; None: half_width for an absolute region (every row then
            holds its whole region); for a fixed one K - 1, or what it takes to hold it (cutting the kernel
            at the ends of the grid instead multiplies the mean's variance by 5 at epsilon 1).
        missing: "input" adds the input K and the last symbol, for devices without a value.

    Returns:
        A channel of K inputs (K + 1 with missing) and K + 2 margin outputs (one more with missing).

    Raises:
        ParameterError: A parameter breaks its rule or leaves nothing to learn; where the rule depends on
        epsilon,
            the message names the nearest value that epsilon allows.
    """
    problem = _Problem(
        points=_whole(inputs, "inputs", 2),
        target=checked_epsilon(epsilon),
        kernel=_kernel(kernel, kernel_epsilon),
        missing=_choice(missing, "missing", ("none", "input")) == "input",
        margin=None if margin is None else _whole(margin, "margin", 0),
    )
    spread = 0.0 if kernel == "uniform" else kernel_epsilon
    if spread is not None:
        spread = _within(spread, "kernel_epsilon", 0.0, math.inf)
    push = None if boost is None else -math.log1p(-_within(boost, "boost", 0.0, 1.0))
    _check_region(problem, region)
    if isinstance(region, Absolute) and region.half_width is None:
        region = problem.search_region(spread, push)
    spread, push = problem.split(region, spread, push)
    shape = problem.shape(region)
    rows = shape.rows(spread, push)
    design = problem.extended(rows)
    own = column_epsilon(design)
    if own < 1e-9:
        raise ParameterError(
            f"kernel and region must let outputs depend on the value, got {kernel} with {region}"
        )
    return Boosted(
        integer_rows(design, epsilon=epsilon),
        Design(
            points=problem.points,
            kernel=kernel,
            region=region,
            kernel_epsilon=spread,
            boost=-math.expm1(-push),
            margin=shape.margin,
            hit_rate=float(np.where(shape.inside, rows, 0.0).sum(axis=1).min()),
            mean_variance=mean_variance(design, problem.points),
        ),
    )


def mean_variance(rows: NDArray[np.float64], points: int) -> float:
    """Gives the variance per report of the best linear unbiased estimate of a uniform crowd's mean.

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
    scaled = rows / np.sqrt(rows.mean(axis=0))
    weights = np.linalg.lstsq(scaled, values, rcond=1e-10)[0]
    if not float(np.abs(scaled @ weights - values).max()) <= 1e-7:
        return math.inf
    return float(weights @ weights - (values * values).mean())


@dataclass(frozen=True)
class _Shape:
    """Kernel exponents and region of one grid, from which rows follow for any split."""

    distance: NDArray[np.float64]
    inside: NDArray[np.bool_]
    margin: int

    def rows(self, spread: float, push: float) -> NDArray[np.float64]:
        """Rows for a kernel epsilon and a boost ln(1/(1-q)), shape (K, M)."""
        weights = np.exp(-spread * self.distance)
        weights[~self.inside] *= math.exp(-push)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Problem:
    """What the caller fixed; finds the rest."""

    points: int
    target: float
    kernel: Kernel
    missing: bool
    margin: int | None

    def shape(self, region: Absolute | Fixed) -> _Shape:
        """The grid's distances (1 = the whole grid) and region; the window must meet the region."""
        last = self.points - 1
        if self.margin is not None:
            margin = self.margin
        elif isinstance(region, Absolute):
            margin = math.floor(_open(region))
        else:
            margin = max(last, math.ceil(-region.low), math.ceil(region.high - last))
        size = self.points * (self.points + 2 * margin)
        if size > MAX_WEIGHTS:
            raise ParameterError(f"inputs times outputs must be at most {MAX_WEIGHTS}, got {size}")
        outputs = np.arange(-margin, last + margin + 1)
        steps = np.abs(outputs - np.arange(self.points)[:, None])
        if isinstance(region, Absolute):
            inside = steps <= _open(region)
        else:
            wanted = (outputs >= region.low) & (outputs <= region.high)
            if not wanted.any():
                raise ParameterError(
                    f"region must hold one of the outputs {-margin} to {last + margin}, got {region}"
                )
            inside = np.broadcast_to(wanted, steps.shape)
        return _Shape(steps / last, inside, margin)

    def extended(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows with the missing input, where there is one; it spends the epsilon in full."""
        return with_missing(rows, epsilon=self.target) if self.missing else rows

    def split(
        self, region: Absolute | Fixed, spread: float | None, push: float | None
    ) -> tuple[float, float]:
        """Kernel epsilon and boost ln(1/(1-q)): the given ones checked, the open ones found."""
        shape = self.shape(region)
        if spread is not None and push is not None:
            self._check(shape, spread, push)
            return spread, push
        if spread is not None:
            self._check(shape, spread, 0.0)
            return spread, self._best_push(shape, spread)
        if push is not None:
            self._check(shape, 0.0, push)
            return self._most_spread(shape, push), push
        return self._best_split(region, shape)

    def search_region(self, spread: float | None, push: float | None) -> Absolute:
        """The half width that lets the mean be estimated best; scanned coarsely, then step by step."""
        small = self._small()
        cost: dict[int, float] = {}

        def judge(width: int) -> float:
            if width not in cost:
                cost[width] = small._cost_of(Absolute(width), spread, push)
            return cost[width]

        last = small.points - 1
        stride = max(1, last // 16)
        best = min(range(0, last + 1, stride), key=judge)
        while stride > 1:
            stride = (stride + 1) // 2
            near = [w for w in (best - stride, best, best + stride) if 0 <= w <= last]
            best = min(near, key=judge)
        if not math.isfinite(judge(best)):
            raise ParameterError(
                "no half_width lets the mean be estimated: leave kernel_epsilon, boost and margin open"
            )
        return Absolute(float(round(best * (self.points - 1) / last)))

    def _cost_of(self, region: Absolute, spread: float | None, push: float | None) -> float:
        shape = self.shape(region)
        if spread is not None and self._excess(shape, spread, push or 0.0):
            return math.inf
        if spread is not None and push is None:
            push = self._most_push(shape, spread)
        elif spread is None and push is not None:
            if self._excess(shape, 0.0, push):
                return math.inf
            spread = self._most_spread(shape, push)
        if spread is not None and push is not None:
            return self._cost(shape, spread, push)
        top = self._most_spread(shape, 0.0)
        splits = [(share * top, self._most_push(shape, share * top)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        return min(self._cost(shape, *one) for one in splits)

    def _best_split(self, region: Absolute | Fixed, shape: _Shape) -> tuple[float, float]:
        small = self._small()
        scale = (small.points - 1) / (self.points - 1)
        if isinstance(region, Absolute):
            # The boost follows from the kernel's share of what a kernel alone could spend.
            probe = small.shape(Absolute(float(round(_open(region) * scale))) if scale < 1 else region)
            top = small._most_spread(probe, 0.0)
            share = _least(lambda s: small._cost(probe, s * top, small._most_push(probe, s * top)), 0.0, 1.0)
            spread = share * self._most_spread(shape, 0.0)
            return spread, self._most_push(shape, spread)
        # A fixed region may cost nothing, so here the kernel follows from the boost.
        probe = small.shape(Fixed(region.low * scale, region.high * scale) if scale < 1 else region)
        highest = small._most_push(probe, 0.0)
        push = _least(lambda p: small._cost(probe, small._most_spread(probe, p), p), 0.0, highest)
        return self._most_spread(shape, push), push

    def _best_push(self, shape: _Shape, spread: float) -> float:
        highest = self._most_push(shape, spread)
        if highest < MAX_BOOST_LOG:
            return highest
        return _least(lambda push: self._cost(shape, spread, push), 0.0, highest)

    def _most_push(self, shape: _Shape, spread: float) -> float:
        return _largest(lambda push: not self._excess(shape, spread, push), MAX_BOOST_LOG, MAX_BOOST_LOG)

    def _most_spread(self, shape: _Shape, push: float) -> float:
        # Cut to a finite window the kernel costs at most twice its own epsilon and no less than half.
        return _largest(lambda spread: not self._excess(shape, spread, push), self.target, 64.0 * self.target)

    def _cost(self, shape: _Shape, spread: float, push: float) -> float:
        return mean_variance(self.extended(shape.rows(spread, push)), self.points)

    def _excess(self, shape: _Shape, spread: float, push: float) -> bool:
        return not column_epsilon(shape.rows(spread, push)) <= self.target * (1.0 + ROUNDING)

    def _check(self, shape: _Shape, spread: float, push: float) -> None:
        if not self._excess(shape, spread, push):
            return
        boost = -math.expm1(-push)
        if not self._excess(shape, 0.0, push):
            most = self._most_spread(shape, push)
            raise ParameterError(
                f"kernel_epsilon must be at most {most:.6g} for boost {boost:.6g} to keep within epsilon, "
                f"got {spread:.6g}"
            )
        most = -math.expm1(-self._most_push(shape, 0.0))
        raise ParameterError(f"boost must be at most {most:.6g} to keep within epsilon, got {boost:.6g}")

    def _small(self) -> _Problem:
        if self.points <= SEARCH_POINTS:
            return self
        margin = self.margin
        if margin is not None:
            margin = round(margin * (SEARCH_POINTS - 1) / (self.points - 1))
        return _Problem(SEARCH_POINTS, self.target, self.kernel, self.missing, margin)


def _largest(allowed: Callable[[float], bool], start: float, limit: float) -> float:
    """The largest allowed number up to the limit, by doubling and bisection; 0 is taken to be allowed.

    Where what is allowed is not one interval from 0, the result is still allowed, though not the largest.
    """
    low, high = 0.0, start
    while allowed(high):
        if high >= limit:
            return high
        low, high = high, min(2.0 * high, limit)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if allowed(middle):
            low = middle
        else:
            high = middle
    return low


def _least(cost: Callable[[float], float], low: float, high: float) -> float:
    """Where the cost is least: a coarse scan, for it need not have one valley, then golden section."""
    marks = np.linspace(low, high, 13).tolist()
    costs = [cost(mark) for mark in marks]
    best = int(np.argmin(costs))
    left, right = marks[max(best - 1, 0)], marks[min(best + 1, len(marks) - 1)]
    found = (costs[best], marks[best])
    for _ in range(20):
        inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
        at_inner, at_outer = cost(inner), cost(outer)
        found = min(found, (at_inner, inner), (at_outer, outer))
        if at_inner <= at_outer:
            right = outer
        else:
            left = inner
    return float(found[1])


def _open(region: Absolute) -> float:
    assert region.half_width is not None  # noqa: S101 - resolved before any shape is made
    return region.half_width


def _kernel(kernel: Kernel, kernel_epsilon: float | None) -> Kernel:
    _choice(kernel, "kernel", ("laplace", "uniform"))
    if kernel == "uniform" and kernel_epsilon not in (None, 0, 0.0):
        raise ParameterError(
            f"kernel_epsilon must be 0 or left open for a uniform kernel, got {kernel_epsilon!r}"
        )
    return kernel


def _check_region(problem: _Problem, region: Absolute | Fixed) -> None:
    if isinstance(region, Absolute):
        if region.half_width is not None:
            _within(region.half_width, "half_width", 0.0, float(MAX_WEIGHTS))
    elif isinstance(region, Fixed):
        for name, end in (("low", region.low), ("high", region.high)):
            _within(end, f"region.{name}", -float(MAX_WEIGHTS), float(MAX_WEIGHTS))
        if region.low > region.high:
            raise ParameterError(
                f"region.low must be at most region.high, got {region.low!r} > {region.high!r}"
            )
        if problem.kernel == "uniform":
            raise ParameterError(
                "kernel must be laplace for a fixed region: with a uniform one no output depends on the value"
            )
    else:
        raise ParameterError(f"region must be Absolute or Fixed, got {type(region).__name__}")


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
