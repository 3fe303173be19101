"""The convex programme behind every floor: its solution, and the certificate that makes a number a floor.

A channel of K inputs is a mixture of columns. Up to post-processing, the column of an extremal epsilon-LDP
channel is proportional to q = 1 + (a - 1) 1_S, with a = e^epsilon and S a set of inputs (Kairouz, Oh and
Viswanath 2016). With p the prior, mu_S >= 0 the share of reports with column S and r_S = q_S/(p . q_S) - 1,
the rows of the channel sum to one iff

    sum_S mu_S = 1,    sum_S mu_S r_S = 0,

and the information about the shares of the inputs is J = 1 1^T + sum_S mu_S r_S r_S^T. The best linear
unbiased estimate of W^(1/2) f has the error tr(W J^-1), from which tr(W diag p) is taken for sampling. As
J p = 1 and r_S . p = 0, a vector l has l^T J^-1 l = (l . p)^2 + l'^T J^-1 l' with l' = l - (l . p) 1, and for
any y

    l'^T J^-1 l' >= 2 l' . y - sum_S mu_S (y . r_S)^2.

So with R' the centred columns of W^(1/2), any matrix Y and any vector nu (a multiplier of the rows):

    error >= constant + 2 <R', Y> - max_S h_S,     h_S = |Y^T r_S|^2 - nu . r_S,

and by the best multiple of Y, error >= constant + <R', Y>^2 / max_S h_S. This holds for *every* Y and nu: the
floor rests on the largest h_S alone, not on how Y was found. Symmetric questions also have scalar parts c_i /
(sum_S mu_S g_iS), which are bounded in the same way: 1/t >= 2 u - u^2 t for any u, so A = sum c_i u_i + <R',
Y> and h_S gains sum c_i u_i^2 g_iS.

The point is found by an interior point method over a list of columns; the columns that are not on the list
are priced by a function that knows them all, and join it while some h_S is above the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MARGIN: Final = 2.0**-38
"""Share of the terms' absolute sum that covers their rounding: 2^-53 each, in sums of far less than 2^14."""

GAP: Final = 1e-9
"""The end of the search: the primal and the dual value agree to this share. It is no part of the proof."""

_RIDGE: Final = 1e-12

_END: Final = 1e-13
"""A gap, as a share of the error, below which rounding stops all progress."""

Pace = Literal["fast", "steady"]
"""Fall of complementarity from step to step: as fast as it can, or not before the dual equations hold."""

_STEPS: Final = 200
"""Steps of the interior point method; 20 to 60 are usual."""

_OFF: Final = 1e-6
"""The most by which the rows of a mixture may miss one for its error to be that of a channel."""

_LISTED: Final = 600
"""Columns kept among the constraints; beyond it those with the least shares are dropped."""

MAX_ROUNDS: Final = 200
"""Rounds of column generation; what is then reached is a valid floor all the same."""


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of channels, in the coordinates of a programme.

    Attributes:
        deviations: r per column, shape (n, d), float64, in coordinates of the plane r . p = 0.
        gains: g per column, shape (n, q), float64, >= 0.
    """

    deviations: Floats
    gains: Floats

    def __len__(self) -> int:
        return len(self.deviations)

    def take(self, chosen: NDArray[Any]) -> Columns:
        """Return the chosen columns, an array of indices or of bools."""
        return Columns(self.deviations[chosen], self.gains[chosen])

    def joined(self, other: Columns) -> Columns:
        """Return the columns of both."""
        return Columns(
            np.concatenate([self.deviations, other.deviations]), np.concatenate([self.gains, other.gains])
        )


@dataclass(frozen=True, eq=False)
class Aim:
    """The error that is made small: constant + sum_i costs_i / (mu . g_i) + tr(pull^T J^-1 pull).

    Attributes:
        pull: R', shape (d, r), in the coordinates of the columns' deviations.
        costs: c, shape (q,), >= 0; 0 for a part that is not asked for.
        constant: What every channel has: sum of (l . p)^2, less the sampling.
    """

    pull: Floats
    costs: Floats
    constant: float


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A point of the dual programme; every one of them gives a floor.

    Attributes:
        slopes: Y, shape (d, r).
        rates: u, shape (q,), >= 0.
        rows: nu, shape (d,).
    """

    slopes: Floats
    rates: Floats
    rows: Floats

    def heights(self, aim: Aim, columns: Columns) -> tuple[Floats, Floats]:
        """Return h of every column, and the absolute sum of its terms; both of shape (n,)."""
        squares = ((columns.deviations @ self.slopes) ** 2).sum(axis=1)
        scalar, linear = aim.costs * self.rates**2, columns.deviations @ self.rows
        h = squares + columns.gains @ scalar - linear
        size = ((np.abs(columns.deviations) + 1.0) @ np.abs(self.slopes)) ** 2
        terms = (
            size.sum(axis=1) + columns.gains @ scalar + (np.abs(columns.deviations) + 1.0) @ np.abs(self.rows)
        )
        return h, terms

    def gain(self, aim: Aim) -> float:
        """Return A, rounded down."""
        parts = (aim.costs * self.rates).sum() + (aim.pull * self.slopes).sum()
        size = (aim.costs * self.rates).sum() + (np.abs(aim.pull) * np.abs(self.slopes)).sum()
        return float(parts - MARGIN * size)

    def floor(self, aim: Aim, highest: float) -> float:
        """Return the error that no channel can be below, given a bound of h over all columns."""
        gain = self.gain(aim)
        if gain <= 0.0:
            return aim.constant - MARGIN * abs(aim.constant)
        bound = gain * gain / highest
        return float(bound + aim.constant - MARGIN * (bound + abs(aim.constant)))


def highest_of(point: DualPoint, aim: Aim, columns: Columns) -> float:
    """Return a number that no column's h exceeds, rounded up."""
    h, terms = point.heights(aim, columns)
    return float((h + MARGIN * terms).max())


@dataclass(frozen=True, eq=False)
class Optimum:
    """The solution of a programme over some columns.

    Attributes:
        point: The dual point.
        shares: mu of the columns, shape (n,), float64: nearly feasible, for design and not for proof.
        columns: The columns.
        value: The dual value over these columns, without the constant.
        error: The error of the mixture, without the constant: at an optimum the two are equal.
    """

    point: DualPoint
    shares: Floats
    columns: Columns
    value: float
    error: float

    @property
    def off(self) -> float:
        """By how much the rows of the mixture miss one; much of it where no mixture is a channel."""
        return float(np.abs(self.shares @ self.columns.deviations).max(initial=0.0))


Price = Callable[[DualPoint], tuple[float, Columns]]
"""Return a bound of h over all columns, and columns near it that ought to be constraints."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """A floor and its proof.

    Attributes:
        floor: The least error that any epsilon-LDP channel can have, rounded down.
        point: The dual point that proves it.
        highest: The bound of h over all columns.
        reached: The error that the found mixture of columns has, in floats: the floor's distance from it is
            the gap that the search left.
        solution: The last restricted solution.
    """

    floor: float
    point: DualPoint
    highest: float
    reached: float
    solution: Optimum


def certify(aim: Aim, start: Columns, price: Price, *, gap: float = GAP, first: float = GAP) -> Certificate:
    """Return the floor of a programme, by column generation.

    Args:
        aim: The error.
        start: Columns to begin with, whose mixtures include a channel that tells all inputs apart.
        price: The pricing of all columns.
        gap: Where the search may end, as a share of the error.
        first: Where the search of the first round may end; later ones end nearer.
    """
    columns, best, found, near = start, -np.inf, None, max(gap, first)
    last = np.inf
    for _ in range(MAX_ROUNDS):
        solution = solve(aim, columns, gap=near)
        highest, more = price(solution.point)
        floor = solution.point.floor(aim, highest)
        if floor > best:
            best, found = floor, (solution.point, highest)
        left = (solution.value + aim.constant - best) / max(solution.value, 1e-300)
        # Columns that lie on one side mix to no channel, and their value says nothing: it may rise.
        closed = solution.off <= _OFF
        if closed and (max(left, near) <= gap or (near <= gap and solution.value >= last * (1.0 - 1e-14))):
            break
        last = solution.value if closed and near <= gap else np.inf
        # A restricted solution that ended early has a small gap of its own: go on to a nearer end.
        near = max(gap, min(near, 0.1 * left if left > near else 0.01 * near))
        if len(columns) > _LISTED:
            columns = columns.take(np.argsort(-solution.shares)[: _LISTED // 2])
        columns = columns.joined(more)
    assert found is not None  # noqa: S101 - the loop ran at least once
    return Certificate(best, *found, solution.error + aim.constant, solution)


def solve(aim: Aim, columns: Columns, *, gap: float = GAP) -> Optimum:
    """Return the solution over the given columns, by a primal-dual interior point method.

    Minimises F(mu) = sum_i costs_i / (mu . g_i) + tr(R'^T (sum_S mu_S r_S r_S^T)^-1 R') subject to mu >= 0
    and the rows' equations, which are linear; the dual point is u_i = 1/(mu . g_i), Y = (sum mu r r^T)^-1
    R' and the multipliers of the equations. With a large gap it ends well inside, where prices are steadier.

    Where shares and reduced costs are complementary long before the dual equations hold, as at a large
    epsilon where the best channel hides what nobody asks for, the steps are taken again with more care.
    """
    scale = np.maximum(columns.gains.max(axis=0, initial=0.0), 1e-300)
    spread = np.maximum(np.abs(columns.deviations).max(axis=0, initial=0.0), 1e-300)
    inner = _InteriorPoint(
        Aim(aim.pull / spread[:, None], aim.costs / scale, 0.0),
        Columns(columns.deviations / spread, columns.gains / scale),
    )

    def end_of(pace: Pace) -> Optimum:
        shares, rows = inner.run(gap, pace)
        u, y = inner.best(shares)
        point = DualPoint(y / spread[:, None], u / scale, rows / spread)
        gain, highest = point.gain(aim), float(point.heights(aim, columns)[0].max())
        error = float((inner.aim.costs * u).sum() + (inner.aim.pull * y).sum())
        return Optimum(point, shares / shares.sum(), columns, gain**2 / highest, error)

    found = end_of("fast")
    if found.error - found.value <= 10.0 * gap * found.error:
        return found
    slower = end_of("steady")
    return slower if slower.value > found.value * (1.0 + gap) else found


class _InteriorPoint:
    """The primal over listed columns."""

    def __init__(self, aim: Aim, columns: Columns) -> None:
        self.aim, self.r, self.g = aim, columns.deviations, columns.gains
        self.equations = np.concatenate([np.ones((len(self.r), 1)), self.r], axis=1)
        # The best channel for few functionals may not tell all inputs apart: a trace of information keeps the
        # matrix regular. It moves the point by next to nothing, and any point gives a floor.
        self._trace = _RIDGE * (self.r**2).sum() / max(self.r.size, 1) * np.eye(self.r.shape[1])

    def best(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return u and Y of shares."""
        slopes = np.linalg.solve(self._information(shares), self.aim.pull)
        return 1.0 / (shares @ self.g), np.asarray(slopes, dtype=np.float64)

    def _information(self, shares: Floats) -> Floats:
        return np.asarray((self.r * shares[:, None]).T @ self.r + self._trace)

    def run(self, end: float, pace: Pace) -> tuple[Floats, Floats]:
        """Return the shares, shape (n,), and the multipliers nu, shape (d,), at the end of the path."""
        n, e = self.equations.shape
        shares = np.full(n, 1.0 / n)
        wanted = np.eye(e)[0]
        u, y = self.best(shares)
        size = float((self.aim.costs * u).sum() + (self.aim.pull * y).sum())
        reduced, multipliers = np.full(n, size), np.zeros(e)
        for _ in range(_STEPS):
            slope, features = self._derivatives(shares)
            dual = self.equations @ multipliers + reduced - slope
            primal = wanted - self.equations.T @ shares
            gap = float(shares @ reduced)
            size = abs(float(slope @ shares))
            small = gap <= 0.1 * end * size and np.abs(primal).max() <= 1e-2 * end
            if (small and np.abs(dual).max() <= 0.1 * end * size) or gap <= _END * size:
                break
            try:
                system = self._system(features, shares, reduced)
            except np.linalg.LinAlgError:
                break  # rounding has the last word; the point so far gives a floor as any does
            zero = np.zeros(n)
            dx, dy, dz = self._direction(system, shares, reduced, dual, primal, zero)
            reach, back = _reach(shares, dx), _reach(reduced, dz)
            after = max(float((shares + reach * dx) @ (reduced + back * dz)), 0.0)
            less = max((after / gap) ** 3, 1e-6)
            if pace == "steady":
                less = max(less, min(0.1 * float(shares @ np.abs(dual)) / gap, 1.0))
            t = gap / n * less
            dx, dy, dz = self._direction(system, shares, reduced, dual, primal, t - reach * back * dx * dz)
            length = 0.99 * min(_reach(shares, dx), _reach(reduced, dz))
            shares, multipliers, reduced = (
                shares + length * dx,
                multipliers + length * dy,
                reduced + length * dz,
            )
        return shares, -multipliers[1:]

    def _derivatives(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of F, shape (n,), and Phi of shape (n, q + d r) with Hessian Phi Phi^T."""
        u, y = self.best(shares)
        along = self.r @ y
        gradient = -(self.g @ (self.aim.costs * u**2)) - (along**2).sum(axis=1)
        features = [self.g * np.sqrt(2.0 * self.aim.costs * u**3)]
        if self.r.shape[1]:
            # 2 (along along^T) * (r S^-1 r^T), entry by entry.
            values, vectors = np.linalg.eigh(self._information(shares))
            half = self.r @ (vectors / np.sqrt(np.maximum(values, 1e-300)))
            features += [2.0**0.5 * along[:, j : j + 1] * half for j in range(along.shape[1])]
        return gradient, np.concatenate(features, axis=1)

    def _system(self, features: Floats, shares: Floats, reduced: Floats) -> _System:
        # The matrix is diag(reduced/shares) + Phi Phi^T; with dx = shares w no entry is much larger than
        # the rest.
        scaled = features * shares[:, None]
        matrix = scaled @ scaled.T
        matrix[np.diag_indices(len(matrix))] += shares * reduced
        root = 1.0 / np.sqrt(matrix.diagonal())
        matrix = matrix * root[:, None] * root
        matrix[np.diag_indices(len(matrix))] += 1e-15
        inverse = (shares * root)[:, None] * np.linalg.inv(matrix) * (shares * root)
        return _System(inverse, self.equations.T @ inverse @ self.equations)

    def _direction(  # noqa: PLR0917 - the six arrays of one step
        self,
        system: _System,
        shares: Floats,
        reduced: Floats,
        dual: Floats,
        primal: Floats,
        target: Floats,
    ) -> tuple[Floats, Floats, Floats]:
        """Return the step to shares * reduced = target: changes of shares, multipliers and reduced costs."""
        right = dual + target / shares - reduced
        dy = np.linalg.lstsq(system.schur, primal - self.equations.T @ (system.inverse @ right), rcond=1e-14)[
            0
        ]
        dx: Floats = system.inverse @ (right + self.equations @ dy)
        return dx, np.asarray(dy, dtype=np.float64), (target - reduced * dx) / shares - reduced


@dataclass(frozen=True, eq=False)
class _System:
    """The inverse of a step's matrix over the columns, and the matrix over the equations."""

    inverse: Floats
    schur: Floats


def _reach(values: Floats, steps: Floats) -> float:
    """Return the longest part of a step, 1 at most, that keeps positive values positive."""
    falling = steps < 0.0
    return min(1.0, float((-values[falling] / steps[falling]).min(initial=1.0)))
