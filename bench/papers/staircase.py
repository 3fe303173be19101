"""The staircase kernel (Geng and Viswanath): closed forms of its errors, and its exact loss, boosted or not.

Its density is level on [k D, (k + first) D) and on [(k + first) D, (k + 1) D), D the sensitivity, and falls
by e^-epsilon at every step down. No theorem of the papers names it as a kernel, though all of them allow any:
it is the noise of least error at a pure epsilon, with which all that gains on Laplace noise is compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hubbub_lab.continuous_noise import BoostedNoise
from hubbub_lab.continuous_noise.noise import NoiseKernel

NEGLIGIBLE: Final = 1e-30
"""Steps whose density is below this share of the first are left out of breaks."""


@dataclass(frozen=True)
class Staircase(NoiseKernel):
    """A kernel of staircase noise for a sensitivity.

    Attributes:
        epsilon: Of the noise alone, nats, > 0.
        sensitivity: D > 0, the length of one stair.
        first: Share of a stair that is still as high as the one before, in (0, 1).
    """

    epsilon: float
    sensitivity: float
    first: float

    def __post_init__(self) -> None:
        assert self.epsilon > 0 and self.sensitivity > 0 and 0 < self.first < 1

    @property
    def _height(self) -> float:
        decay = math.exp(-self.epsilon)
        stair = self.first + decay * (1.0 - self.first)
        return (1.0 - decay) / (2.0 * self.sensitivity * stair)

    @property
    def kinks(self) -> tuple[float, ...]:
        """The jumps, until the density is negligible."""
        last = math.ceil(-math.log(NEGLIGIBLE) / self.epsilon)
        ends = [(k + part) * self.sensitivity for k in range(last) for part in (0.0, self.first)][1:]
        return tuple(sorted([*ends, *(-end for end in ends)]))

    def steps_down(self, w: float) -> int:
        """Return how many steps below the top the density is at w."""
        stair, rest = divmod(abs(w) / self.sensitivity, 1.0)
        return int(stair) + (rest >= self.first)

    def log_density(self, w: float) -> float:
        """Return the logarithm of the density."""
        return math.log(self._height) - self.epsilon * self.steps_down(w)

    def tail(self, w: float) -> float:
        """Return Pr(N > w) for w >= 0."""
        if math.isinf(w):
            return 0.0
        stair, rest = divmod(w / self.sensitivity, 1.0)
        decay = math.exp(-self.epsilon)
        left = max(self.first - rest, 0.0) + decay * min(1.0 - rest, 1.0 - self.first)
        beyond = decay * (self.first + decay * (1.0 - self.first)) / (1.0 - decay)
        return self._height * self.sensitivity * math.exp(-self.epsilon * stair) * (left + beyond)

    def log_ratio(self, w: float, shift: float) -> float:
        """Return epsilon times the steps between w and w - shift."""
        if math.isinf(w):
            return math.copysign(self.epsilon * shift / self.sensitivity, -w * shift)
        return self.epsilon * (self.steps_down(w - shift) - self.steps_down(w))

    def panels(self, shift: float, order: float) -> list[float]:
        """Return the jumps of both copies."""
        return sorted({*self.kinks, *(kink + shift for kink in self.kinks)})


def least_absolute_error(epsilon: float) -> float:
    """Return the least E|N| of any noise at this pure epsilon and sensitivity 1, a staircase's."""
    return math.exp(epsilon / 2.0) / math.expm1(epsilon)


def least_variance(epsilon: float) -> float:
    """Return the least E N^2 of any noise at this pure epsilon and sensitivity 1, a staircase's."""
    b = math.exp(-epsilon)
    return (2.0 ** (-2.0 / 3.0) * (b * (1.0 + b)) ** (2.0 / 3.0) + b) / (1.0 - b) ** 2


def best_first(epsilon: float, error: Literal["absolute", "square"]) -> float:
    """Return the share of a stair of that least error."""
    b = math.exp(-epsilon)
    if error == "absolute":
        return 1.0 / (1.0 + math.exp(epsilon / 2.0))
    root = (b - 2.0 * b**2 + 2.0 * b**4 - b**5) ** (1.0 / 3.0)
    return -b / (1.0 - b) + root / (2.0 ** (1.0 / 3.0) * (1.0 - b) ** 2)


def stair_errors(kernel: Staircase) -> tuple[float, float]:
    """Return E|N| and E N^2, by summing all stairs in closed form."""
    b, g = math.exp(-kernel.epsilon), kernel.first
    # Moments of a stair [k, k + 1), its second part b times as high, are polynomials in k: sums of k^i b^k.
    sums = (1.0 / (1.0 - b), b / (1.0 - b) ** 2, b * (1.0 + b) / (1.0 - b) ** 3)
    mass = g + b * (1.0 - g)
    one = (g**2 + b * (1.0 - g**2)) / 2.0
    two = (g**3 + b * (1.0 - g**3)) / 3.0
    unit = (1.0 - b) / mass  # 2 D times the height
    absolute = unit * (mass * sums[1] + one * sums[0])
    square = unit * (mass * sums[2] + 2.0 * one * sums[1] + two * sums[0])
    return kernel.sensitivity * absolute, kernel.sensitivity**2 * square


def loss_pieces(law: BoostedNoise, shift: float) -> list[tuple[float, float, float]]:
    """Return (loss, mass here, mass there) of stretches on which two staircases `shift` apart are level."""
    kernel = law.kernel
    assert isinstance(kernel, Staircase)
    regions = [law.around(0.0), law.around(shift)]
    ends = {*kernel.kinks, *(kink + shift for kink in kernel.kinks), *regions[0], *regions[1]}
    inner = sorted(end for end in ends if math.isfinite(end))
    norms = law.normaliser(0.0), law.normaliser(shift)
    found = []
    for low, high in zip([-math.inf, *inner], [*inner, math.inf], strict=True):
        if low == -math.inf or high == math.inf:
            middle = inner[0] - 1e-9 if low == -math.inf else inner[-1] + 1e-9
        else:
            middle = 0.5 * (low + high)
        here, there = (
            (1.0 if region[0] <= middle <= region[1] else 1.0 - law.boost) / norm
            for region, norm in zip(regions, norms, strict=True)
        )
        masses = here * kernel.mass(low, high), there * kernel.mass(low - shift, high - shift)
        if masses[0] > 0.0:
            ratio = kernel.log_ratio(middle, shift) + (math.log(here / there) if there else math.inf)
            found.append((ratio, *masses))
    return found


def stair_epsilon(law: BoostedNoise, sensitivity: float, *, shifts: int = 64) -> float:
    """Return the pure epsilon of staircase noise, boosted or not: the largest loss of any shift.

    Args:
        law: Its kernel is a `Staircase`.
        sensitivity: Largest shift.
        shifts: Equally spaced shifts that are tried; losses change at finitely many, in between are level.
    """
    tried = [sensitivity * (i + 1) / shifts for i in range(shifts)]
    return max(loss for shift in tried for loss, _, _ in loss_pieces(law, shift))


def stair_delta(law: BoostedNoise, sensitivity: float, epsilon: float) -> float:
    """Return delta(epsilon) of two values a sensitivity apart."""
    pieces = loss_pieces(law, sensitivity)
    return math.fsum(max(0.0, here - math.exp(epsilon) * there) for _, here, there in pieces)


def best_acceptance(epsilon: float, sensitivity: float, half_width: float) -> float:
    """Return the most Pr(|N| <= half_width) of any staircase of this epsilon."""
    shares = np.linspace(0.0005, 0.9995, 1999)
    kernels = (Staircase(epsilon, sensitivity, float(share)) for share in shares)
    return max(1.0 - 2.0 * kernel.tail(half_width) for kernel in kernels)
