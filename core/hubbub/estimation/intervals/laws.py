"""The law of a cell's score: variance and third moment of the sum under any candidate share.

These laws are all that a mechanism has to give for its intervals. For a device in the cell the score has
mean 1, for any other mean 0; a `MixedLaw` holds its second and third central moments for a device in the
cell (*own*), for one in the same category (*near*), and for all others (*far*).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class SumLaw(Protocol):
    """The law of c sums of scores as `score_interval` reads it, each a function of a share or a place."""

    @property
    def step(self) -> Floats:
        """The step of the lattice that the sum lies on, shape (c,), in devices; 0 where there is none."""

    @property
    def odds(self) -> Floats | None:
        """The odds of the larger value of a score of two, in the cell and elsewhere, shape (2, c).

        nan for cells whose score takes more values, or values that do not tell a count; None: for all.
        """

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variances and third central moments of the sum's independent parts, shape (kinds, c) each.

        The parts are the devices in the cell, those elsewhere, and the like.

        Args:
            shares: The cells' true shares, shape (c,).
        """


class CellLaw(SumLaw, Protocol):
    """The law of the summed scores of c cells, as a function of the cells' true shares."""

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variance and third central moment of the sum, shape (c,) each, at shares of shape (c,)."""

    def tilt(self, shares: Floats) -> Floats:
        """Return f (1 - f) times how the sum's variance grows with the share f in a cell, shape (c,).

        It is the covariance of the noise's variance with how many of the devices drawn are in the cell.
        """


class MeanLaw(Protocol):
    """The law of an estimated mean."""

    def of_crowd(self, drawn: float) -> MeanLaw:
        """Return the law about the crowd's mean, of which a random part is counted; see `crowd_laws`."""

    def interval(self, z: float) -> tuple[float, float]:
        """Return the ends of the mean's interval at a normal quantile z > 0, within the survey's numbers."""


@dataclass(frozen=True, eq=False)
class ScoreLaws:
    """The laws of one round's estimates.

    Attributes:
        values: Of the values, c = K.
        categories: Of the categories, c = m.
        mean: Of the mean; None without numbers.
    """

    values: CellLaw
    categories: CellLaw
    mean: MeanLaw | None = None


@dataclass(frozen=True, eq=False)
class MixedLaw:
    """A sum over n devices of three kinds: in the cell, near it, far from it.

    Attributes:
        n: Devices.
        own: Second and third central moments of one score of a device in the cell, shape (2, c).
        far: The same of a device elsewhere, shape (2, c).
        step: Lattice step of the sum, shape (c,).
        near: The same of a device in the cell's category but not in the cell, shape (2, c); None: as `far`.
        around: The estimated share of the cell's category, shape (c,); with `near` only.
        observed: The mean of b^2 over the reports, shape (c,): the variance is then at least what the
            counts say of it, n (mean b^2 - f). It is for scores whose variance depends on where the rest is.
        most_skew: The skewness up to which the sum is read as a gamma law. Beyond it, a few rare and large
            scores lie beside a bulk, whose short tail is read as normal.
        odds: See `CellLaw`.
    """

    n: float
    own: Floats
    far: Floats
    step: Floats
    near: Floats | None = None
    around: Floats | None = None
    observed: Floats | None = None
    most_skew: float = np.inf
    odds: Floats | None = None

    @classmethod
    def of_two_values(cls, n: float, high: ArrayLike, low: ArrayLike) -> MixedLaw:
        """Return the law of an unbiased score that takes two values; see `two_valued` for them."""
        gap = np.subtract(high, low)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.stack([np.subtract(1.0, low), np.negative(low)]) / gap
        return cls(n, *two_valued(high, low), gap, odds=np.where(gap > 0, odds, np.nan))

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variances and third central moments of own, near and far devices, shape (kinds, c) each."""
        rest, parts = 1.0 - shares, [shares * self.own]
        if self.near is not None and self.around is not None:
            near = np.clip(self.around, shares, 1.0) - shares
            rest = rest - near
            parts.append(near * self.near)
        parts.append(rest * self.far)
        variances, thirds = self.n * np.stack(parts, axis=1)
        if self.observed is not None:
            variances[-1] += np.maximum(self.n * (self.observed - shares) - variances.sum(axis=0), 0.0)
        return variances, thirds

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return variance and third central moment of the sum, shape (c,) each, at shares of shape (c,)."""
        f, rest = shares, 1.0 - shares
        variance, third = f * self.own[0], f * self.own[1]
        if self.near is not None and self.around is not None:
            near = np.clip(self.around, f, 1.0) - f
            rest = rest - near
            variance, third = variance + near * self.near[0], third + near * self.near[1]
        variance, third = variance + rest * self.far[0], third + rest * self.far[1]
        if self.observed is not None:
            variance = np.maximum(variance, self.observed - f)
        return self.n * variance, self.n * third

    def tilt(self, shares: Floats) -> Floats:
        """Return f (1 - f) times how the variance grows with the share f of a cell, shape (c,)."""
        # Of the others as they are together: where a device comes from, and where it goes, is not known.
        return np.asarray(shares * (self.n * self.own[0] - self.moments(shares)[0]))

    @property
    def is_even(self) -> bool:
        """True if all cells have one law."""
        if self.near is not None or self.observed is not None:
            return False
        tables = [self.own, self.far, self.step[None], *([] if self.odds is None else [self.odds])]
        return all(bool((table == table[:, :1]).all()) for table in tables)

    def picked(self, cells: NDArray[np.intp]) -> MixedLaw:
        """Return the law of some cells, in the order of their indices."""
        return replace(
            self,
            own=self.own[:, cells],
            far=self.far[:, cells],
            step=self.step[cells],
            near=None if self.near is None else self.near[:, cells],
            around=None if self.around is None else self.around[cells],
            observed=None if self.observed is None else self.observed[cells],
            odds=None if self.odds is None else self.odds[:, cells],
        )


@dataclass(frozen=True, eq=False)
class JoinedLaw:
    """A law of several families of cells, one after the other."""

    parts: Sequence[CellLaw]

    @property
    def step(self) -> Floats:
        """The parts' steps, shape (c,)."""
        return np.concatenate([part.step for part in self.parts])

    @property
    def odds(self) -> Floats | None:
        """The parts' odds, shape (2, c); nan where a part has none."""
        return np.concatenate(
            [np.full((2, len(part.step)), np.nan) if part.odds is None else part.odds for part in self.parts],
            axis=1,
        )

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the parts' kinds, shape (kinds, c) each; those that a part does not have are 0."""
        found = [part.kinds(piece) for part, piece in zip(self.parts, self._split(shares), strict=True)]
        most = max(len(variances) for variances, _ in found)
        columns = [
            [
                table if len(table) == most else np.pad(table, ((0, most - len(table)), (0, 0)))
                for table in pair
            ]
            for pair in zip(*found, strict=True)
        ]
        return np.concatenate(columns[0], axis=1), np.concatenate(columns[1], axis=1)

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the parts' moments, shape (c,) each."""
        found = [part.moments(piece) for part, piece in zip(self.parts, self._split(shares), strict=True)]
        return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])

    def tilt(self, shares: Floats) -> Floats:
        """Return the parts' tilts, shape (c,)."""
        pieces = self._split(shares)
        return np.concatenate([part.tilt(piece) for part, piece in zip(self.parts, pieces, strict=True)])

    def _split(self, shares: Floats) -> list[Floats]:
        return np.split(shares, np.cumsum([len(part.step) for part in self.parts])[:-1])


@dataclass(frozen=True, eq=False)
class ReorderedLaw:
    """A law whose cells are numbered anew.

    Attributes:
        part: The law.
        cells: The index in `part` of every cell, each exactly once, shape (c,).
    """

    part: CellLaw
    cells: NDArray[np.intp]

    @property
    def step(self) -> Floats:
        """The steps, shape (c,)."""
        return np.asarray(self.part.step[self.cells])

    @property
    def odds(self) -> Floats | None:
        """The odds, shape (2, c)."""
        return None if self.part.odds is None else self.part.odds[:, self.cells]

    def kinds(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the kinds, shape (kinds, c) each."""
        return self._reordered(self.part.kinds, shares)

    def moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the moments, shape (c,) each."""
        return self._reordered(self.part.moments, shares)

    def tilt(self, shares: Floats) -> Floats:
        """Return the tilts, shape (c,)."""
        return self._reordered(lambda inner: (self.part.tilt(inner),) * 2, shares)[0]

    def _reordered(
        self, found: Callable[[Floats], tuple[Floats, Floats]], shares: Floats
    ) -> tuple[Floats, Floats]:
        inner = np.empty_like(shares)
        inner[self.cells] = shares
        variance, third = found(inner)
        return variance[..., self.cells], third[..., self.cells]


def moments_of(scores: ArrayLike, odds: ArrayLike) -> Floats:
    """Return second and third central moments of a score that takes few values, shape (2, ...).

    Args:
        scores: The values, shape (k, ...).
        odds: Their probabilities, of the same shape, summing to one along the first axis.
    """
    b, p = np.asarray(scores, np.float64), np.asarray(odds, np.float64)
    off = b - (p * b).sum(axis=0)
    return np.stack([(p * off**2).sum(axis=0), (p * off**3).sum(axis=0)])


def two_valued(high: ArrayLike, low: ArrayLike) -> tuple[Floats, Floats]:
    """Return the moments, own and far, of an unbiased score that takes two values, shape (2, c) each.

    The probabilities of its two values follow from its means: 1 for a device in the cell, 0 for others.

    Args:
        high: The larger value, shape (c,), >= 1.
        low: The smaller, shape (c,), <= 0; for a cell that all devices are in, both may be 1.
    """
    up, down = np.broadcast_arrays(np.asarray(high, np.float64), np.asarray(low, np.float64))
    gap = up - down
    sure = gap <= 0
    gap = np.where(sure, 1.0, gap)
    found = []
    for mean in (1.0, 0.0):
        p = np.clip((mean - down) / gap, 0.0, 1.0)
        spread = np.where(sure, 0.0, p * (1.0 - p))
        found.append(np.stack([gap**2 * spread, gap**3 * spread * (1.0 - 2.0 * p)]))
    return found[0], found[1]
