"""The laws of estimates about a crowd, of which the devices counted are a random part.

The devices counted miss the crowd's share f of a cell, too: of n of them A are in the cell, n f but for the
luck of who answered. Given them the sum S has the mean A and the law of their noise, so about n f

    variance      V + a,                            a = d n f (1 - f)
    third moment  K + 3 cov(A, V) + a (1 - 2 f)(2 d - 1)

where d is 1 of a crowd without end, and 1 - n/N if N devices were asked (A is then hypergeometric). With
d = 1 these are the moments of n reports drawn from the crowd's own mixture of laws: of a two-valued score
those of a binomial. What holds of the crowd presumes that those who answered are like a random part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ParameterError
from hubbub.estimation.intervals.laws import CellLaw, MixedLaw, ScoreLaws

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrowdLaw:
    """The law of sums about the crowd's shares.

    Attributes:
        noise: The law about the shares of the devices counted.
        n: Those devices.
        drawn: d, the part of the draw that is left to chance, 0 to 1.
    """

    noise: CellLaw
    n: int
    drawn: float

    @property
    def step(self) -> Floats:
        """The noise's steps: devices are whole, and so is what they add, shape (c,)."""
        return self.noise.step

    @property
    def odds(self) -> None:
        """None: who is counted is not two binomials."""
        return None

    @property
    def is_even(self) -> bool:
        """True if all cells have one law."""
        return getattr(self.noise, "is_even", False)

    def picked(self, cells: NDArray[np.intp]) -> CrowdLaw:
        """Return the law of some cells, where it is even; see `MixedLaw.picked`."""
        return replace(self, noise=cast(MixedLaw, self.noise).picked(cells))

    @property
    def most_skew(self) -> float:
        """The noise's own; see `MixedLaw.most_skew`."""
        return getattr(self.noise, "most_skew", np.inf)

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the noise's kinds and the draw of devices, shape (kinds + 1, c) each."""
        variances, thirds = self.noise.kinds(shares)
        variance, third = self._draw(shares)
        return np.vstack([variances, variance]), np.vstack([thirds, third])

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variance and third central moment of the sum, shape (c,) each, at shares of shape (c,)."""
        (variance, third), (more, skew) = self.noise.moments(shares), self._draw(shares)
        return variance + more, third + skew

    def tilt(self, shares: Floats) -> Floats:
        """Return that of the noise, shape (c,)."""
        return self.noise.tilt(shares)

    def _draw(self, shares: Floats) -> tuple[Floats, Floats]:
        variance = self.drawn * self.n * shares * (1.0 - shares)
        third = variance * (1.0 - 2.0 * shares) * (2.0 * self.drawn - 1.0)
        return variance, third + 3.0 * self.drawn * self.noise.tilt(shares)


def crowd_laws(laws: ScoreLaws, n: int, *, drawn: float) -> ScoreLaws:
    """Return the laws about everybody who could have been asked.

    Args:
        laws: The laws about the devices counted.
        n: Those devices, >= 1.
        drawn: 1 - n/N if N devices were asked; 1 of a crowd without end, which is wider.

    Raises:
        ParameterError: If `drawn` is not within 0 to 1.
    """
    if not 0.0 <= drawn <= 1.0:
        raise ParameterError(f"drawn must be within 0 to 1, got {drawn!r}")
    values, categories = (CrowdLaw(law, n, drawn) for law in (laws.values, laws.categories))
    return ScoreLaws(values, categories, None if laws.mean is None else laws.mean.of_crowd(drawn))
