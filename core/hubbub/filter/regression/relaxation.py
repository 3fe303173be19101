"""The concave problem of a node: every curve replaced by the least concave one above it; its best point.

Nothing here has to be right for a bound to hold: the search takes the slopes at the best point for prices,
and any prices give a bound. It is solved by an interior point method: sides of the box, and ends of intervals
that were cut, are rows `row.z + slack = end` with a multiplier each, slack and multiplier above 0. A step is
Newton's, towards where every slack times its multiplier is a fraction of what it is on average now. Five to
ten steps are the rule, some thirty calls of NumPy each; with a dozen curves they cost what the calls cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.filter.regression.curves import Curves, Floats

STEPS: Final = 39
"""The most steps of a climb; one that has not arrived by then is at a node without a point, or stuck."""

_FIRST: Final = 1e-2
"""A slack times its multiplier at first, as a share of the largest rise."""

_SLACK: Final = 0.1
"""The least slack at first, of rows whose values on the box are within 1 of the middle's."""

_NEXT: Final = 0.02
"""The share of the mean of slack times multiplier that a step goes for."""

_SHORT: Final = 0.99
"""The most that a step takes away of any slack or multiplier."""

_HOPELESS: Final = 1e9
"""Nats between point and price at which a climb has failed."""

_FLOPS: Final = 2.0**-19
"""Evaluations that one multiplication of a Newton step counts as: 64 curves of 90 numbers double the cost."""


@dataclass(slots=True)
class WorkBudget:
    """The work budget that searches share; one that has used it up keeps the bound that it has.

    Attributes:
        evaluations: Evaluations of all curves at one point that are left, 0.05 to 0.1 ms each; negative once
            the budget is used up.
    """

    evaluations: float


@dataclass(frozen=True, slots=True, eq=False)
class BoundedBox:
    """A node: a box, an interval for every score, and a proved bound of the sum on them.

    The concave curve that replaces a curve on its interval is a line as far as its tangent point, and the
    curve itself from there on::

        start ------ line ------ tangent ~~~~~~ curve ~~~~~~ stop

    Attributes:
        centre: The middle of the box, shape (d,).
        reach: Half its sides, shape (d,); 0 where a coordinate is fixed.
        start: The least value of every score, shape (n,).
        stop: The largest, shape (n,).
        tangents: Where the line from the left end touches each curve, shape (n,).
        lines: Value at the left end and slope of each line, shapes (n,).
        cut: Which intervals are shorter than the box alone makes them, shape (n,).
        bound: No sum within is larger.
    """

    centre: Floats
    reach: Floats
    start: Floats
    stop: Floats
    tangents: Floats
    lines: tuple[Floats, Floats]
    cut: NDArray[np.bool_]
    bound: float


class Relaxation:
    """The concave problem of one node.

    Attributes:
        work: The work budget that every evaluation takes from.
    """

    def __init__(self, curves: Curves, node: BoundedBox, work: WorkBudget) -> None:
        """Take the node, and work out what its evaluations share."""
        self.work = work
        self._curves, self._node = curves, node
        self._evaluation = 1.0 + _FLOPS * curves.slopes.size * node.centre.size
        # Left of its tangent point a curve is replaced by the line; one that is concave throughout has none.
        until = np.where(node.tangents >= node.stop, np.inf, node.tangents)
        self._until = np.where(node.tangents > node.start, until, -np.inf)
        # Ramps that stop rising within their intervals.
        self._bent = np.flatnonzero(curves.kinks < node.stop - 1e-9)

    def climb(self, near: Floats) -> Iterator[tuple[Floats, Floats, float]]:
        """Return better and better points of the box, with prices, and the nats that both may still gain.

        The nats are those of the concave problem: an estimate, where the point is outside an interval that
        was cut, or a corner was rounded.

        Args:
            near: A point of the box to start from, shape (d,): the parent's best.
        """
        node, curves = self._node, self._curves
        free = np.flatnonzero(node.reach > 0.0)
        reach, base = node.reach[free], curves.slopes @ node.centre + curves.offsets
        if not free.size:
            yield node.centre, self.above(base)[1], 0.0
            return
        slopes = curves.slopes[:, free] * reach
        held, walls, ends = self._walls(slopes, base)
        each = np.eye(free.size)
        rows = np.concatenate([slopes, each, -each, walls])
        columns = np.ascontiguousarray(rows.T)
        n, box = base.size, 2 * free.size
        ends = np.concatenate([np.ones(box), ends])
        z = np.minimum(np.maximum((near[free] - node.centre[free]) / reach, -0.9), 0.9)
        at = rows.dot(z)
        slack = np.maximum(ends - at[n:], _SLACK)
        load = _FIRST * curves.scale / slack
        heavy, force = np.empty(n + ends.size), np.empty(n + ends.size)
        corners = _Corners(self._bent, curves.kinks, at[:n] + base, _FIRST * curves.scale)
        for _ in range(STEPS):
            self.work.evaluations -= self._evaluation
            mean = (float(slack.dot(load)) + corners.products) / (ends.size + 2 * corners.which.size)
            t = at[:n] + base
            there = corners.put(t)
            _, slope, bend = self.above(t)
            prices = corners.prices(slope) - held.dot(load[box:])
            weights = columns[:, :n].dot(prices)
            gap = float(np.add.reduce(np.abs(weights)) - weights.dot(z)) + corners.gap(there, slope)
            gap += float(np.abs(ends[box:] - at[n + box :]).dot(load[box:]))
            if not gap < _HOPELESS:
                return
            yield self._place(free, reach * z), prices, gap
            if self.work.evaluations <= 0.0:
                return
            # Newton's step for z; what slack and multipliers do follows from it.
            aim, stiff, short = _NEXT * mean / slack, load / slack, at[n:] + slack - ends
            np.negative(bend, out=heavy[:n])
            heavy[n:] = stiff
            force[:n] = slope
            np.negative(aim + stiff * short, out=force[n:])
            corners.eliminate(_NEXT * mean, there, heavy, force)
            curvature = (columns * heavy).dot(rows)
            try:
                step = np.linalg.solve(curvature, columns.dot(force))
            except np.linalg.LinAlgError:
                return
            moved = rows.dot(step)
            closer = moved[n:] + short
            more = aim - load + stiff * closer
            lengths = corners.follow(moved, _length(closer, slack), _length(-more, load))
            z, at, slack = z + lengths[0] * step, at + lengths[0] * moved, slack - lengths[0] * closer
            load = load + lengths[1] * more

    def _place(self, free: NDArray[np.intp], away: Floats) -> Floats:
        point = self._node.centre.copy()
        point[free] += away
        return point

    def _walls(self, slopes: Floats, base: Floats) -> tuple[Floats, Floats, Floats]:
        """Return a row for every end of an interval that was cut: how it enters prices, the row, and its end.

        Rows are scaled to be within 1 of 0 on the box.

        Args:
            slopes: Of scores in z, shape (n, free).
            base: Scores at the middle of the box, shape (n,).
        """
        node, spread = self._node, np.abs(slopes).sum(axis=1)
        cut = node.cut & (spread > 0.0)
        upper = np.flatnonzero(cut & (node.stop < base + spread))
        lower = np.flatnonzero(cut & (node.start > base - spread))
        which = np.concatenate([upper, lower])
        share = np.concatenate([1.0 / spread[upper], -1.0 / spread[lower]])
        ends = np.concatenate([node.stop[upper], node.start[lower]]) - base[which]
        held = np.zeros((base.size, which.size))
        held[which, np.arange(which.size)] = share
        return held, slopes[which] * share[:, None], ends * share

    def above(self, t: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the least concave curves above, on the intervals of the node: value, slope and bend.

        Args:
            t: The score of every curve, shape (n,); at a ramp, not beyond its corner.
        """
        node = self._node
        value, slope, bend = self._curves.parts(t)
        straight = t < self._until
        if np.logical_or.reduce(straight):
            foot, line = node.lines
            value = np.where(straight, foot + line * (t - node.start), value)
            slope = np.where(straight, line, slope)
            bend = np.where(straight, 0.0, bend)
        return value, slope, np.minimum(bend, 0.0)


class _Corners:
    """The scores of ramps that stop rising within their intervals: u in place of t, u <= t and u <= kink.

    Both are rows with slack and multiplier like those of the box; but u is in these two alone, so that it is
    eliminated from every step, curve by curve.
    """

    def __init__(self, which: NDArray[np.intp], kinks: Floats, t: Floats, load: float) -> None:
        self.which, self.kinks = which, kinks[which]
        self.u = np.minimum(t[which], self.kinks) - _SLACK
        self.slack = np.stack([t[which] - self.u, self.kinks - self.u])
        self.load = load / self.slack

    @property
    def products(self) -> float:
        """Slack times multiplier, in all."""
        return float((self.slack * self.load).sum()) if self.which.size else 0.0

    def put(self, t: Floats) -> Floats:
        """Put u in the place of a score, and return what was there."""
        there: Floats = t[self.which]
        t[self.which] = self.u
        return there

    def prices(self, slope: Floats) -> Floats:
        """Return slopes with the price of t in the place of that of u."""
        if not self.which.size:
            return slope
        prices = slope.copy()
        prices[self.which] = self.load[0]
        return prices

    def gap(self, there: Floats, slope: Floats) -> float:
        """Return about how many nats u and its multipliers may still gain."""
        if not self.which.size:
            return 0.0
        rows = np.abs(np.stack([there, self.kinks]) - self.u) * self.load
        return float(rows.sum() + np.abs(slope[self.which] - self.load.sum(axis=0)).sum())

    def eliminate(self, aim: float, there: Floats, heavy: Floats, force: Floats) -> None:
        """Put in the place of a curve's bend and slope those of the best u for any t nearby."""
        if not self.which.size:
            return
        self._aim, self._stiff = aim / self.slack, self.load / self.slack
        self._short = self.u + self.slack - np.stack([there, self.kinks])
        pull = self._aim + self._stiff * self._short
        self._whole = heavy[self.which] + self._stiff.sum(axis=0)
        self._rest = force[self.which] - pull.sum(axis=0)
        share = self._stiff[0] / self._whole
        heavy[self.which] = self._stiff[0] - self._stiff[0] * share
        force[self.which] = pull[0] + share * self._rest

    def follow(self, moved: Floats, length: float, longer: float) -> tuple[float, float]:
        """Take the step that follows from the scores' own; return the lengths that both allow."""
        if not self.which.size:
            return length, longer
        step = (self._rest + self._stiff[0] * moved[self.which]) / self._whole
        closer = self._short + step
        closer[0] -= moved[self.which]
        more = self._aim - self.load + self._stiff * closer
        length = min(length, _length(closer.ravel(), self.slack.ravel()))
        longer = min(longer, _length(-more.ravel(), self.load.ravel()))
        self.u = self.u + length * step
        self.slack = self.slack - length * closer
        self.load = self.load + longer * more
        return length, longer


def _length(falls: Floats, of: Floats) -> float:
    """Return the share of a step, at most 1, that leaves everything above 0 above 0."""
    most = float(np.maximum.reduce(falls / of))
    return 1.0 if most <= _SHORT else _SHORT / most
