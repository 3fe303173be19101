"""Noise kernels on a grid: how likely an output is by its distance, before any region is boosted.

Each is a family in one number, its spread; the kernel epsilon that follows, ln k(0) - ln k(length), is what
the kernel spends over the whole length of the grid when its tails are not cut. Distances are shares of that
length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub_authoring.mechanisms.boosted.scale_laws import ScaleLaw

KernelName = Literal["laplace", "gaussian", "r2dp", "staircase", "uniform"]
KERNELS: Final[tuple[KernelName, ...]] = get_args(KernelName)


@dataclass(frozen=True)
class GridKernel:
    """One kernel.

        laplace     exp(-spread d)
        gaussian    exp(-spread d^2); cut to the grid, hence of finite epsilon
        r2dp        E[u exp(-u d)] for a law of u, rescaled so that E[u] is the spread (r2dp section III)
        staircase   exp(-spread k) on a first part of [k, k + 1), exp(-spread (k + 1)) on the rest (Geng and
                    Viswanath 2016); the first part has the share 1/(1 + e^(spread/2)), least for E|noise|
        uniform     1, whatever the spread

    Attributes:
        name: Which of these.
        law: The law of u for "r2dp", up to its scale; None for any other.
    """

    name: KernelName
    law: ScaleLaw | None = None

    def __post_init__(self) -> None:
        if self.name not in KERNELS:
            raise ParameterError(f"kernel must be one of {', '.join(sorted(KERNELS))}, got {self.name!r}")
        if (self.name == "r2dp") != isinstance(self.law, ScaleLaw):
            raise ParameterError(f"law must be a scale law for kernel r2dp, and only there, got {self.law!r}")

    def weights(self, last: int, reach: int, spread: float) -> NDArray[np.float64]:
        """Return the weight of every distance 0..reach in grid steps, 1 at 0, shape (reach + 1,), float64.

        Args:
            last: Length of the grid in steps, >= 1.
            reach: The largest distance between an input and an output.
            spread: >= 0.
        """
        steps = np.arange(reach + 1)
        distance = steps / last
        if self.name == "staircase":
            first = max(round(last / (1.0 + math.exp(spread / 2.0))), 1)
            return np.asarray(np.exp(-spread * (steps // last + (steps % last >= first))))
        if self.name == "gaussian":
            return np.asarray(np.exp(-spread * distance**2))
        if self.name == "uniform":
            return np.ones(reach + 1)
        if self.law is None or spread == 0.0:
            return np.asarray(np.exp(-spread * distance))
        density = self.law.scaled(spread / self._mean_rate).tilted(1, distance)
        return np.asarray(density / density[0])

    def spread_of(self, kernel_epsilon: float) -> float:
        """Return the spread of a kernel epsilon; they differ for r2dp only."""
        if self.law is None or kernel_epsilon == 0.0:
            return kernel_epsilon
        return self.law.fitted(kernel_epsilon, 1.0).moment(1)

    def epsilon_of(self, spread: float) -> float:
        """Return the kernel epsilon of a spread."""
        if self.law is None or spread == 0.0:
            return spread
        return self.law.scaled(spread / self._mean_rate).epsilon(1.0)

    @cached_property
    def _mean_rate(self) -> float:
        return 1.0 if self.law is None else self.law.moment(1)
