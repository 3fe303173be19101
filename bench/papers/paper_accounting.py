"""The papers' own accountants, for comparison only: several are unsafe, and set no parameter.

budget-recycling-dp (Theorems 1 to 3, Algorithms 1 to 3) and privacy-boosting (Theorems 1 and 2, Propositions
1 to 5) multiply the probability of the misaligned part of two regions with the whole loss distribution of
the kernel, as if the two were independent. Both are functions of one output, so the product is neither an
upper nor a lower bound. `profile` has what is exact; docs/papers.md has how far apart they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.boost import AbsoluteRegion, BoostedNoise
from hubbub_lab.continuous_noise.noise import Gaussian, Laplace, NoiseKernel
from hubbub_lab.continuous_noise.pair import PairLoss
from hubbub_lab.continuous_noise.profile import Profile, gaussian_sigma

__all__ = [
    "BudgetRecycling",
    "Split",
    "pair_epsilon",
    "paper_br_boost",
    "paper_br_composed_delta",
    "paper_br_delta",
    "paper_br_design",
    "paper_br_epsilon",
    "paper_br_laplace_design",
    "paper_pb_composed_delta",
    "paper_pb_delta",
    "paper_pb_epsilon",
    "paper_pb_proposition_4",
    "paper_pb_proposition_5",
    "paper_pb_proposition_7",
    "paper_pb_renyi",
    "paper_pb_split",
    "paper_r2_two_point_epsilon",
    "split_delta",
    "split_epsilon",
]

_TOLERANCE: Final = 1e-12

DeltaOf = Callable[[float], float]
"""A privacy profile: delta of any epsilon, of either sign."""


def _kernel_delta(kernel: NoiseKernel, sensitivity: float) -> DeltaOf:
    return PairLoss(BoostedNoise(kernel), 0.0, sensitivity).delta


# budget-recycling-dp


@dataclass(frozen=True)
class BudgetRecycling:
    """A mechanism as budget-recycling-dp's Algorithms 1 and 2 would set it.

    Attributes:
        kernel: Gaussian or Laplace, of the kernel's share of epsilon.
        kernel_epsilon: That share.
        boost: The recycling rate q.
        acceptance: Pr(|noise| <= half_width), eq. 9.
        law: The mechanism itself.
    """

    kernel: Gaussian | Laplace
    kernel_epsilon: float
    boost: float
    acceptance: float
    law: BoostedNoise


def misalignment(kernel: NoiseKernel, half_width: float, sensitivity: float) -> float:
    """Return W of budget-recycling-dp eq. 7."""
    low, high = -half_width, half_width
    return max(
        kernel.mass(low, min(low + sensitivity, high)),
        kernel.mass(max(high, low + sensitivity), high + sensitivity),
    )


def paper_br_delta(
    kernel: NoiseKernel, half_width: float, boost: float, sensitivity: float, epsilon: float
) -> float:
    """Return (1 - W) delta_Z(epsilon) + W delta_Z(epsilon - L), L = -ln(1 - q) (BR-DP eq. 8)."""
    delta = _kernel_delta(kernel, sensitivity)
    share = misalignment(kernel, half_width, sensitivity)
    if boost >= 1.0:
        return (1.0 - share) * delta(epsilon) + share
    return (1.0 - share) * delta(epsilon) + share * delta(epsilon + math.log1p(-boost))


def paper_br_epsilon(
    kernel: NoiseKernel, half_width: float, boost: float, sensitivity: float, delta: float
) -> float:
    """Return the epsilon >= 0 at which eq. 8 gives delta."""
    return _solve(lambda epsilon: paper_br_delta(kernel, half_width, boost, sensitivity, epsilon), delta)


def paper_br_boost(
    kernel: NoiseKernel, half_width: float, sensitivity: float, epsilon: float, delta: float
) -> float:
    """Return the largest recycling rate that eq. 8 allows (budget-recycling-dp Algorithm 1)."""
    low, high = 0.0, 1.0
    while high - low > _TOLERANCE:
        middle = 0.5 * (low + high)
        if paper_br_delta(kernel, half_width, middle, sensitivity, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def paper_br_design(half_width: float, sensitivity: float, epsilon: float, delta: float) -> BudgetRecycling:
    """Return the split of greatest acceptance by the paper's accounting (budget-recycling-dp Algorithm 2).

    A ternary search over the kernel's epsilon, as printed, with delta_y = delta.
    """

    def kernel(kernel_epsilon: float) -> Gaussian:
        return Gaussian(gaussian_sigma(kernel_epsilon, delta, sensitivity))

    return _ternary(kernel, half_width, sensitivity, epsilon, delta)


def paper_br_laplace_design(
    half_width: float, sensitivity: float, epsilon: float, delta: float
) -> BudgetRecycling:
    """Return the same for a Laplace kernel of scale sensitivity / epsilon_y, which needs no delta_y.

    The paper draws its Figure 5(b) of it and does not say how the kernel's delta is spent.
    """
    return _ternary(
        lambda kernel_epsilon: Laplace(sensitivity / kernel_epsilon), half_width, sensitivity, epsilon, delta
    )


def _ternary(
    kernel_of: Callable[[float], Gaussian | Laplace],
    half_width: float,
    sensitivity: float,
    epsilon: float,
    delta: float,
) -> BudgetRecycling:
    """Return the end of Algorithm 2's ternary search, which supposes an objective of one peak."""

    def at(kernel_epsilon: float) -> BudgetRecycling:
        kernel = kernel_of(kernel_epsilon)
        boost = paper_br_boost(kernel, half_width, sensitivity, epsilon, delta)
        law = BoostedNoise(kernel, AbsoluteRegion(half_width), boost)
        return BudgetRecycling(kernel, kernel_epsilon, boost, law.confidence(0.0), law)

    low, high = 0.0, epsilon
    while high - low > 1e-6 * epsilon:
        first, second = low + (high - low) / 3.0, high - (high - low) / 3.0
        if at(first).acceptance < at(second).acceptance:
            low = first
        else:
            high = second
    return at(0.5 * (low + high))


def paper_br_composed_delta(
    composed: DeltaOf,
    *,
    kernel: NoiseKernel,
    half_width: float,
    boost: float,
    sensitivity: float,
    times: int,
    epsilon: float,
    first: int = 0,
) -> float:
    """Return delta after `times` releases (budget-recycling-dp Theorem 3; first=1 is Algorithm 3 as printed).

    Args:
        composed: Profile of the kernel alone after `times` releases.
        kernel: Of one release.
        half_width: Of the absolute region.
        boost: The recycling rate.
        sensitivity: Largest distance of neighbours.
        times: T.
        epsilon: >= 0.
        first: Where the sum starts: k = 0 is the term in which every release was misaligned.
    """
    share = misalignment(kernel, half_width, sensitivity)
    leap = -math.log1p(-boost)
    return math.fsum(
        _binomial(times, k, 1.0 - share) * composed(epsilon - (times - k) * leap)
        for k in range(first, times + 1)
    )


# privacy-boosting


@dataclass(frozen=True)
class Split:
    """The parameters of privacy-boosting's loss distribution (its eq. 4 and 6) for a pair of values.

    Attributes:
        shift: L1 = ln Z(x')/Z(x).
        leap: L2 = -ln(1 - q).
        gain: W1, the probability of the leap.
        loss: W2, the probability of its opposite.
    """

    shift: float
    leap: float
    gain: float
    loss: float

    @property
    def rest(self) -> float:
        """W3."""
        return 1.0 - self.gain - self.loss


def paper_pb_split(law: BoostedNoise, x: float, other: float) -> Split:
    """Return L1, L2, W1, W2 of privacy-boosting eq. 4 and 6, for finite regions."""
    (low, high), (other_low, other_high) = law.around(x), law.around(other)
    mass = law.kernel.mass
    return Split(
        shift=math.log(law.normaliser(other) / law.normaliser(x)),
        leap=-math.log1p(-law.boost) if law.boost < 1.0 else math.inf,
        gain=mass(min(high, other_high) - x, max(high, other_high) - x),
        loss=mass(min(low, other_low) - x, max(low, other_low) - x),
    )


def paper_pb_delta(law: BoostedNoise, x: float, other: float, epsilon: float) -> float:
    """Return W1 d(e - L1 - L2) + W2 d(e - L1 + L2) + W3 d(e - L1) (privacy-boosting Proposition 1)."""
    return split_delta(law.kernel, abs(other - x), paper_pb_split(law, x, other), epsilon)


def split_delta(kernel: NoiseKernel, sensitivity: float, split: Split, epsilon: float) -> float:
    """Return Proposition 1 for parameters that are given: its eq. 6 and its Proposition 4 differ."""
    delta = _kernel_delta(kernel, sensitivity)
    at = epsilon - split.shift
    return (
        split.gain * (delta(at - split.leap) if split.leap < math.inf else 1.0)
        + split.loss * (delta(at + split.leap) if split.leap < math.inf else 0.0)
        + split.rest * delta(at)
    )


def split_epsilon(kernel: NoiseKernel, sensitivity: float, split: Split, delta: float) -> float:
    """Return the epsilon >= 0 at which `split_delta` gives delta."""
    return _solve(lambda epsilon: split_delta(kernel, sensitivity, split, epsilon), delta)


def pair_epsilon(pair: PairLoss, delta: float) -> float:
    """Return the exact epsilon >= 0 of one pair in one direction, to set beside a paper's."""
    return _solve(pair.delta, delta)


def paper_pb_epsilon(law: BoostedNoise, x: float, other: float, delta: float) -> float:
    """Return the epsilon >= 0 at which Proposition 1 gives delta, for this pair and direction."""
    return _solve(lambda epsilon: paper_pb_delta(law, x, other, epsilon), delta)


def _cumulative(kernel: NoiseKernel, w: float) -> float:
    return 1.0 - kernel.tail(w) if w >= 0 else kernel.tail(-w)


def paper_pb_proposition_4(
    kernel: NoiseKernel, ratio: float, half_width: float, boost: float, sensitivity: float
) -> Split:
    """Return L1, L2, W1 and W2 for |y - x| <= ratio |x| + half_width, letter by letter (Proposition 4).

    Its pair is (0, sensitivity), and its W1, W2 are not those of eq. 6, which `paper_pb_split` gives.
    """

    def cdf(w: float) -> float:
        return _cumulative(kernel, w)

    wide, narrow = ratio * sensitivity + half_width, half_width
    return Split(
        shift=math.log(
            (1.0 - (1.0 - cdf(wide) + cdf(-wide)) * boost)
            / (1.0 - (1.0 - cdf(narrow) + cdf(-narrow)) * boost)
        ),
        leap=-math.log1p(-boost),
        gain=cdf(ratio * sensitivity + half_width) - cdf(half_width),
        loss=cdf(ratio * sensitivity - half_width) - cdf(-half_width),
    )


def paper_pb_proposition_5(
    kernel: NoiseKernel, low: float, high: float, boost: float, sensitivity: float
) -> Split:
    """Return L1 for the fixed region [low, high], letter by letter (Proposition 5); W1 = W2 = 0.

    Its pair is (low, low + sensitivity): a value at the region's edge, and one inside.
    """

    def cdf(w: float) -> float:
        return _cumulative(kernel, w)

    length = high - low
    inside = 1.0 - (1.0 - cdf(length - sensitivity) + cdf(-sensitivity)) * boost
    edge = 1.0 - (1.0 - cdf(length) + cdf(0.0)) * boost
    return Split(shift=math.log(inside / edge), leap=0.0, gain=0.0, loss=0.0)


def paper_pb_proposition_7(
    region: int, values: int, epsilon: float, boost_epsilon: float
) -> tuple[float, float, float]:
    """Return p, p_s and p_o of PB-GRR for a region of that many values (Proposition 7)."""
    true, near = math.exp(epsilon), math.exp(epsilon - boost_epsilon)
    total = true + (region - 1) * near + values - region
    return true / total, near / total, 1.0 / total


def paper_pb_renyi(law: BoostedNoise, x: float, other: float, order: float) -> float:
    """Return e0 + L1 + ln(W1 e^((a-1) L2) + W2 e^(-(a-1) L2) + W3) / (a - 1) (Proposition 2)."""
    split = paper_pb_split(law, x, other)
    kernel = Profile(BoostedNoise(law.kernel), abs(other - x)).renyi(order)
    power = (order - 1.0) * split.leap
    terms = split.gain + split.loss * math.exp(-2.0 * power) + split.rest * math.exp(-power)
    return kernel + split.shift + split.leap + math.log(terms) / (order - 1.0)


def paper_pb_composed_delta(composed: DeltaOf, split: Split, times: int, epsilon: float) -> float:
    """Return delta after `times` releases (privacy-boosting Proposition 3).

    Args:
        composed: Profile of the kernel alone after `times` releases.
        split: Of the pair.
        times: T.
        epsilon: >= 0.
    """
    # the law of e1 - e2 by repeated squaring of one step
    steps = {1: split.gain, -1: split.loss, 0: split.rest}
    law, left = {0: 1.0}, times
    while left:
        if left & 1:
            law = _convolve(law, steps)
        steps, left = _convolve(steps, steps), left >> 1
    return math.fsum(
        p * composed(epsilon - times * split.shift - k * split.leap) for k, p in law.items() if p > 0.0
    )


# r2dp


def paper_r2_two_point_epsilon(rates: tuple[float, float], probability: float, sensitivity: float) -> float:
    """Return ln(p e^(sensitivity u0) + (1 - p) e^(sensitivity u1)) (r2dp Theorem 4.4), which is wrong.

    The exact value is `Profile(BoostedNoise(LaplaceMixture(...)), sensitivity).largest` (r2dp Corollary 3.3).

    Args:
        rates: The two inverse scales.
        probability: Of the first.
        sensitivity: Of the query.
    """
    if not 0.0 <= probability <= 1.0:
        raise ParameterError(f"probability must be in [0, 1], got {probability!r}")
    return math.log(
        probability * math.exp(sensitivity * rates[0])
        + (1.0 - probability) * math.exp(sensitivity * rates[1])
    )


def _convolve(first: dict[int, float], second: dict[int, float]) -> dict[int, float]:
    result: dict[int, float] = {}
    for a, p in first.items():
        for b, r in second.items():
            if p * r > 1e-30:
                result[a + b] = result.get(a + b, 0.0) + p * r
    return result


def _binomial(times: int, k: int, probability: float) -> float:
    if probability in (0.0, 1.0):
        return 1.0 if k == (times if probability else 0) else 0.0
    ways = math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1)
    return math.exp(ways + k * math.log(probability) + (times - k) * math.log1p(-probability))


def _solve(delta_of: DeltaOf, delta: float) -> float:
    if not 0.0 < delta < 1.0:
        raise ParameterError(f"delta must be strictly between 0 and 1, got {delta!r}")
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of(high) > delta:
        low, high = high, 2.0 * high
        if high > 1e4:
            return math.inf
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (low, middle) if delta_of(middle) <= delta else (middle, high)
