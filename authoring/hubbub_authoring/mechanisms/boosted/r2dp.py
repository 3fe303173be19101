"""Laplace noise of a random scale (r2dp): how useful it is, the best law with two atoms, and its channel.

For noise N with inverse scale u of moment generating function M (r2dp, Table I):

    usefulness  Pr(|N| <= gamma) = 1 - M(-gamma)
    l1          E|N| = E[1/u]                     (the integral of M(-x))
    l2          sqrt(E N^2) = sqrt(2 E[1/u^2])    (the root of twice the double integral)
    entropy     ln 2 - ln E[u] + integral of M(-x) M''(-x) / M'(-x) over x > 0

Table I prints the entropy without ln 2 - ln E[u]: for plain Laplace noise that gives 1 whatever its scale,
where 1 + ln(2 b) is the truth.

Only mixtures of Laplace densities can be reached; the optimum over all densities is the staircase (Geng and
Viswanath 2016).
"""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

import numpy as np

from hubbub.errors import ParameterError
from hubbub.numeric import checked_epsilon
from hubbub_authoring.mechanisms.boosted.boosted import Boosted, boosted
from hubbub_authoring.mechanisms.boosted.grid import Absolute
from hubbub_authoring.mechanisms.boosted.scale_laws import Floats, ScaleLaw, TwoPoint

Metric = Literal["usefulness", "l1", "l2", "entropy"]
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)

_ZOOMS: Final = 40
_MARKS: Final = 33
_STEPS: Final = 160
"""Points of an even grid over ln w, for laws with two atoms."""


def best_two_point(
    *, epsilon: float, sensitivity: float, within: float | None = None, metric: Metric = "usefulness"
) -> TwoPoint:
    """Return the law of the inverse scale whose noise is the best by a metric at an exact epsilon.

    With h(u) = u (e^(-u Delta) - e^-eps) the epsilon is kept iff E[h(u)] >= 0. What is to be made small,
    E[e^(-u gamma)], E[1/u] or E[1/u^2], is linear in the law, and the entropy is concave in it: so some best
    law has at most two atoms, one on each side of eps/Delta, and its share follows from E[h] = 0. The two
    atoms are found on a grid that zooms in. Where nothing beats plain Laplace noise (as for epsilon <= 1),
    that is what comes out, with both atoms at eps/Delta.

    Args:
        epsilon: Of the noise, for values that differ by at most the sensitivity.
        sensitivity: Delta > 0, in the value's units.
        within: gamma > 0, in the value's units; for "usefulness", and only there.
        metric: What is made small, or for "usefulness" large: a line of r2dp's Table I.

    Raises:
        ParameterError: If a parameter is out of range.
    """
    if metric not in METRICS:
        raise ParameterError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if (metric == "usefulness") != (within is not None):
        raise ParameterError(
            f"within must be given for the metric usefulness, and only there, got {within!r}"
        )
    distance = sensitivity if within is None else within
    for name, number in (("sensitivity", sensitivity), ("within", distance)):
        if isinstance(number, bool) or not 0.0 < number < math.inf:
            raise ParameterError(f"{name} must be a finite number above 0, got {number!r}")
    eps, gamma = checked_epsilon(epsilon), distance / sensitivity
    # ln(eps/slow) in (0, 40), ln(fast/eps) in (0, ln(1 + far/eps)): everything beyond is as good as its end.
    lows = np.array([1e-9, 1e-9])
    highs = np.array([40.0, math.log1p(200.0 / (eps * min(gamma, 1.0)))])
    bottom, top = lows.copy(), highs.copy()
    alone = np.array(eps)
    best = (float(_cost(metric, alone, alone, np.array(1.0), gamma)), eps, eps, 1.0)
    for _ in range(_ZOOMS):
        down, up = (np.linspace(low, high, _MARKS) for low, high in zip(lows, highs, strict=True))
        slow, fast = eps * np.exp(-down)[:, None], eps * np.exp(up)[None, :]
        gain, debt = slow * (np.exp(-slow) - math.exp(-eps)), fast * (math.exp(-eps) - np.exp(-fast))
        share = gain / (gain + debt)
        cost = _cost(metric, fast, slow, share, gamma)
        i, j = np.unravel_index(int(np.argmin(cost)), cost.shape)
        best = min(best, (float(cost[i, j]), float(fast[0, j]), float(slow[i, 0]), float(share[i, j])))
        centre, width = np.array([down[i], up[j]]), (highs - lows) / 3.0
        lows, highs = np.maximum(centre - width, bottom), np.minimum(centre + width, top)
    _, fast_rate, slow_rate, probability = best
    return TwoPoint(fast_rate / sensitivity, slow_rate / sensitivity, probability)


def _cost(metric: Metric, fast: Floats, slow: Floats, share: Floats, gamma: float) -> Floats:
    """Return the cost that a metric minimises, for laws with two atoms whose shapes broadcast."""
    if metric == "usefulness":
        return np.asarray(share * np.exp(-fast * gamma) + (1.0 - share) * np.exp(-slow * gamma))
    if metric == "entropy":
        return _two_point_entropy(fast, slow, share)
    power = 1 if metric == "l1" else 2
    return np.asarray(share / fast**power + (1.0 - share) / slow**power)


def _two_point_entropy(fast: Floats, slow: Floats, share: Floats) -> Floats:
    """Return the entropy of noise of laws with two atoms at once, by the trapezoidal rule in ln w.

    With g the density of |N|, it is ln 2 minus the integral of g ln g; in ln w the integrand falls like w
    below, and doubly exponentially above, so that a smooth sum over an even grid converges geometrically.
    """
    first, last = np.log(1e-14 / fast), np.log(60.0 / slow)
    step = (last - first) / (_STEPS - 1)
    total = np.zeros(np.broadcast_shapes(fast.shape, slow.shape))
    for k in range(_STEPS):
        w = np.exp(first + k * step)
        g = share * fast * np.exp(-fast * w) + (1.0 - share) * slow * np.exp(-slow * w)
        total -= w * g * np.log(np.maximum(g, 1e-300))
    return np.asarray(math.log(2.0) + total * step)


def r2dp(
    inputs: int,
    *,
    epsilon: float,
    law: ScaleLaw | None = None,
    within: float | None = None,
    metric: Metric = "usefulness",
    margin: int | None = None,
    missing: Literal["none", "input"] = "none",
) -> Boosted:
    """Return Laplace noise of a random scale on a grid, of at most the declared epsilon per report.

    The law's shape is kept and its scale made as tight as epsilon allows, by bisection on the epsilon of the
    rows; no theorem is trusted, and what is enforced comes from the integers. `design.confidence` is the
    least probability that the output is within reach, `design.kernel_epsilon` the law's own epsilon.

    Args:
        inputs: Grid points K, >= 2, without the missing input.
        epsilon: The declared epsilon, per report.
        law: The law of the inverse scale, up to its scale; None: the best two-point law by the metric.
        within: gamma, in grid steps, > 0: how near to the value an output is wanted; needed where a law is
            searched for usefulness.
        metric: What an open law is searched for: "usefulness", "l1", "l2" or "entropy" (r2dp, Table I), of
            the noise before it is cut to the grid.
        margin: Grid steps of outputs beyond each end; None: K - 1.
        missing: "input" adds the input K and the last symbol, for devices without a value.

    Raises:
        ParameterError: If a parameter is out of range.
    """
    if isinstance(inputs, bool) or not isinstance(inputs, int | np.integer) or inputs < 2:
        raise ParameterError(f"inputs must be an integer of at least 2, got {inputs!r}")
    if law is None:
        reach = within if metric == "usefulness" else None
        law = best_two_point(epsilon=epsilon, sensitivity=float(inputs - 1), within=reach, metric=metric)
    return boosted(
        inputs,
        epsilon=epsilon,
        kernel="r2dp",
        law=law,
        region=Absolute(0.0 if within is None else within),
        boost=0.0,
        margin=inputs - 1 if margin is None else margin,
        missing=missing,
    )
