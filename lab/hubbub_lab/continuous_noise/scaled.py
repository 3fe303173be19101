"""Kernels of another width: the noise f N for noise N and a factor f."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.errors import ParameterError
from hubbub_lab.continuous_noise.noise import Floats, Gaussian, Laplace, NoiseKernel

__all__ = ["Scaled", "scaled"]


def scaled(kernel: NoiseKernel, factor: float) -> NoiseKernel:
    """Return the kernel of `factor` times the noise.

    Args:
        kernel: Any.
        factor: > 0.

    >>> scaled(Laplace(2.0), 1.5)
    Laplace(scale=3.0)
    """
    if isinstance(kernel, Laplace):
        return Laplace(factor * kernel.scale)
    if isinstance(kernel, Gaussian):
        return Gaussian(factor * kernel.sigma)
    return Scaled(kernel, factor)


@dataclass(frozen=True)
class Scaled(NoiseKernel):
    """A kernel's noise times a factor.

    Attributes:
        kernel: Whose noise.
        factor: > 0.
    """

    kernel: NoiseKernel
    factor: float

    def __post_init__(self) -> None:
        if not 0.0 < self.factor < math.inf:
            raise ParameterError(f"factor must be a positive finite number, got {self.factor!r}")

    @property
    def kinks(self) -> tuple[float, ...]:
        """The kinks of the kernel, multiplied by the factor."""
        return tuple(self.factor * kink for kink in self.kernel.kinks)

    def log_density(self, w: float) -> float:
        """Return ln f(w / factor) - ln factor."""
        return self.kernel.log_density(w / self.factor) - math.log(self.factor)

    def tail(self, w: float) -> float:
        """Return the kernel's tail at w / factor."""
        return self.kernel.tail(w / self.factor)

    def tails(self, w: Floats) -> Floats:
        """Return `tail` of many distances."""
        return self.kernel.tails(w / self.factor)

    def log_ratio(self, w: float, shift: float) -> float:
        """Return the kernel's log-ratio, both distances divided by the factor."""
        return self.kernel.log_ratio(w / self.factor, shift / self.factor)

    def crossing(self, target: float, low: float, high: float, shift: float) -> float:
        """Return the kernel's crossing, multiplied by the factor."""
        f = self.factor
        return min(max(f * self.kernel.crossing(target, low / f, high / f, shift / f), low), high)

    def crossings(self, targets: Floats, low: float, high: float, shift: float) -> Floats:
        """Return `crossing` of many targets."""
        f = self.factor
        return np.clip(f * self.kernel.crossings(targets, low / f, high / f, shift / f), low, high)

    def panels(self, shift: float, order: float) -> list[float]:
        """Return the kernel's panels, multiplied by the factor."""
        return [self.factor * end for end in self.kernel.panels(shift / self.factor, order)]
