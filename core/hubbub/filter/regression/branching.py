"""Branch and bound: the largest sum of curves of scores over a box, enclosed by a point and a proof.

A node is the box with an interval for every score. Its bound is Lagrange's: for any prices m,

    max_x sum_i f_i(a_i.x + k_i)
        <= sum_i max_{t in interval i} [f_i(t) - m_i t] + max_{x in box} sum_i m_i (a_i.x + k_i),

in closed form on both sides. So the search for the prices need not be trusted; only this formula is, with a
margin for its own rounding. Good prices are the slopes, at its best point, of the concave problem in which
every curve is replaced by the least concave one above it (Pan, section 5.4, relaxes likewise). To split the
score whose curve is farthest below that replacement makes the two agree in the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.filter.regression.curves import Curves, Floats

_ROUNDING: Final = 2.0**-48
"""Sixteen units in the last place for every term of a bound: no sum here loses as much."""

_SMOOTH: Final = (1e-1, 5e-3, 2e-4, 1e-5, 4e-7, 1e-8, 5e-10)
"""Weights of the barrier that keeps a point inside the box, from far inside to almost on it."""

_NEWTON: Final = 25
"""Steps for each weight; two or three are the rule."""


_FLOPS: Final = 2.0**-19
"""Evaluations that one multiplication of a Newton step counts as: 64 curves of 90 numbers double the cost."""


_WIDER: Final = 2.0**-40
"""The share of its size that a score's interval keeps beyond a cut made for another: far above rounding."""


@dataclass(slots=True)
class WorkBudget:
    """The work budget that searches share; one that has used it up keeps the bound that it has.

    Attributes:
        evaluations: Evaluations of all curves at one point that are left, about 0.2 ms each; negative once
            the budget is used up.
    """

    evaluations: float


@dataclass(frozen=True, slots=True, eq=False)
class _BoundedBox:
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


class BranchAndBound:
    """The search for the largest sum, one node at a time, so that its user stops when it knows enough.

    Attributes:
        best: The largest sum found so far; the truth is at least this.
        point: Where, shape (d,).
        bound: No sum is larger.
        nodes: How many were bounded.
    """

    def __init__(
        self,
        curves: Curves,
        low: Floats,
        high: Floats,
        discrete: tuple[int, ...] = (),
        *,
        work: WorkBudget | None = None,
    ) -> None:
        """Begin with the whole box.

        Args:
            curves: n curves over d coordinates.
            low: The least value of every coordinate, shape (d,).
            high: The largest, shape (d,).
            discrete: Coordinates that hold whole numbers only; every combination becomes a first node.
            work: The work budget; without it there is no limit. A node takes one evaluation at least.
        """
        self._work = WorkBudget(np.inf) if work is None else work
        self._evaluation = 1.0 + _FLOPS * curves.slopes.size * low.size
        self._curves = curves
        self.best, self.point, self.nodes = -np.inf, 0.5 * (low + high), 0
        self._heap: list[tuple[float, int, _BoundedBox, Floats]] = []
        self._bends = np.array(curves.bends)
        self._steep = float(10.0 * (curves.rise / curves.low).sum())
        self._parallel = _parallel(curves, np.maximum(np.abs(low), np.abs(high)))
        whole = [np.arange(np.ceil(low[j]), np.floor(high[j]) + 1.0) for j in discrete]
        for values in product(*whole):
            bottom, top = low.copy(), high.copy()
            bottom[list(discrete)] = top[list(discrete)] = values
            self._open(bottom, top)

    @property
    def bound(self) -> float:
        """No sum is larger than this."""
        return max(self.best, -self._heap[0][0]) if self._heap else float(self.best)

    @property
    def gap(self) -> float:
        """The distance between the proved bound and the best point."""
        return self.bound - float(self.best)

    def offer(self, point: Floats) -> None:
        """Try a point of the box that may be good."""
        value = float(self._curves.values(self._curves.slopes @ point + self._curves.offsets).sum())
        if value > self.best:
            self.best, self.point = value, point

    def step(self) -> None:
        """Split the node with the largest bound."""
        if not self._heap:
            return
        _, _, node, point = heapq.heappop(self._heap)
        curves = self._curves
        t = curves.slopes @ point + curves.offsets
        t = np.clip(t, node.start, node.stop)
        width = node.stop - node.start
        # Between bound and sum lies, above all, the score whose curve is farthest below its replacement.
        short = self._above(node, t) - curves.values(t)
        i = int(short.argmax())
        if short[i] <= 0.0:
            # The replacement is exact here: what is left of the gap is owed to the prices.
            i = int((width * curves.rise).argmax())
        # Away from the ends, so that neither half stays nearly as large as the whole.
        at = float(np.clip(t[i], node.start[i] + 0.1 * width[i], node.stop[i] - 0.1 * width[i]))
        for left in (True, False):
            start, stop, tangents, cut = (
                node.start.copy(),
                node.stop.copy(),
                node.tangents.copy(),
                node.cut.copy(),
            )
            (stop if left else start)[i] = at
            touched = [i, *self._confine(i, at, left, start, stop)]
            for j in touched:
                tangents[j] = curves.tangent(j, float(start[j]), float(stop[j]))
            cut[touched] = True
            lines = self._lines(start, tangents)
            self._bound(
                _BoundedBox(node.centre, node.reach, start, stop, tangents, lines, cut, node.bound), point
            )

    def _confine(self, i: int, at: float, left: bool, start: Floats, stop: Floats) -> list[int]:
        """Cut with score i every score that is a multiple of it, a little wider; return which were cut.

        Without it two questions about one direction would be split without knowing of each other, and their
        bounds would close very slowly.
        """
        touched = []
        for j, ratio, shift, slack in self._parallel[i]:
            end = ratio * at + shift
            if left == (ratio > 0.0):
                if start[j] < end + slack < stop[j]:
                    stop[j] = end + slack
                    touched.append(j)
            elif start[j] < end - slack < stop[j]:
                start[j] = end - slack
                touched.append(j)
        return touched

    def _open(self, low: Floats, high: Floats) -> None:
        curves = self._curves
        centre, reach = 0.5 * (low + high), 0.5 * (high - low)
        middle = curves.slopes @ centre + curves.offsets
        spread = np.abs(curves.slopes) @ reach
        # Outwards: an interval that rounding made too short would leave out a point of the box.
        spread += _ROUNDING * (np.abs(middle) + spread + np.abs(curves.offsets))
        start, stop = middle - spread, middle + spread
        tangents = np.array(
            [
                curves.tangent(i, a, b)
                for i, (a, b) in enumerate(zip(start.tolist(), stop.tolist(), strict=True))
            ]
        )
        cut = np.zeros(start.size, dtype=np.bool_)
        lines = self._lines(start, tangents)
        self._bound(_BoundedBox(centre, reach, start, stop, tangents, lines, cut, np.inf), centre)

    def _lines(self, start: Floats, tangents: Floats) -> tuple[Floats, Floats]:
        """Return the value at the left end and the slope of the first line of every curve."""
        foot, top = self._curves.values(start), self._curves.values(tangents)
        width = tangents - start
        return foot, np.where(width > 0.0, (top - foot) / np.where(width > 0.0, width, 1.0), 0.0)

    def _bound(self, node: _BoundedBox, near: Floats) -> None:
        self.nodes += 1
        value = node.bound
        # Each round smooths less than the one before: its prices are sharper, and dearer by some Newton
        # steps.
        for point, multipliers, doubt in self._relax(node, near):
            self.offer(point)
            value = min(value, self._dual(node, multipliers))
            if value <= self.best or value - self.best > doubt:
                break  # a sharper price could not close the node: to split it is worth more
        if value > self.best:
            heapq.heappush(self._heap, (-value, self.nodes, replace(node, bound=value), point))

    def _dual(self, node: _BoundedBox, multipliers: Floats) -> float:
        curves = self._curves
        tops = curves.conjugate(multipliers, node.start, node.stop)
        weights = curves.slopes.T @ multipliers
        fixed, centre, reach = (
            multipliers * curves.offsets,
            weights * node.centre,
            np.abs(weights) * node.reach,
        )
        # The only line that a proof rests on: the formula of the module, and on top all that rounding may
        # lose.
        size = np.abs(tops).sum() + np.abs(fixed).sum() + np.abs(multipliers * node.stop).sum()
        size += (np.abs(curves.slopes).T @ np.abs(multipliers)) @ (np.abs(node.centre) + node.reach)
        slack = _ROUNDING * (1.0 + size)
        return float(tops.sum() + fixed.sum() + centre.sum() + reach.sum() + slack)

    def _above(self, node: _BoundedBox, t: Floats) -> Floats:
        return self._concave_above(node, t, 1e-9)[0]

    def _concave_above(self, node: _BoundedBox, t: Floats, width: float) -> tuple[Floats, Floats, Floats]:
        """Return the least concave curves above, on the intervals of a node: value, slope and bend."""
        curves = self._curves
        bent = curves.kinks < node.stop - 1e-9
        kinked = bool(bent.any())
        if kinked:
            # The corner of a ramp is rounded: its slope there is any between the two beside it.
            beyond = np.where(bent, t - curves.kinks, 0.0)
            size = np.hypot(beyond, 2.0 * width)
            t = np.where(bent, t - 0.5 * (beyond + size), t)
            first = np.where(bent, 0.5 * (1.0 - beyond / size), 1.0)
            second = np.where(bent, -2.0 * width * width / size**3, 0.0)
        value, slope, bend = curves.parts(t)
        # Left of its tangent point a curve is replaced by the line; one that is concave throughout has none.
        straight = (t < node.tangents) | (node.tangents >= node.stop)
        straight &= node.tangents > node.start
        if straight.any():
            foot, line = node.lines
            value = np.where(straight, foot + line * (t - node.start), value)
            slope = np.where(straight, line, slope)
            bend = np.where(straight, 0.0, bend)
        bend = np.minimum(bend, 0.0)
        if kinked:
            bend = bend * first * first + slope * second
            slope = slope * first
        return value, slope, bend

    def _relax(self, node: _BoundedBox, near: Floats) -> Iterator[tuple[Floats, Floats, float]]:
        """Return better and better points of the concave problem, their slopes, and the cost of smoothing."""
        curves = self._curves
        free = np.flatnonzero(node.reach > 0.0)
        inside = np.where(
            node.reach > 0.0, (near - node.centre) / np.where(node.reach > 0.0, node.reach, 1.0), 0.0
        )
        # From the parent's best point, in [-1, 1] of every free side, kept off the walls of the barrier.
        z = np.clip(inside, -0.98, 0.98)[free]
        slopes = curves.slopes[:, free] * node.reach[free]
        base = curves.slopes @ node.centre + curves.offsets
        scale = float(curves.rise.max()) + 1e-12
        for weight in _SMOOTH:
            z, multipliers = self._climb(node, z, slopes, base, weight * scale)
            point = node.centre.copy()
            point[free] += node.reach[free] * z
            yield point, multipliers, 2.0 * weight * scale * (free.size + self._steep * int(node.cut.sum()))
            if self._work.evaluations <= 0.0:
                return

    def _climb(
        self, node: _BoundedBox, z: Floats, slopes: Floats, base: Floats, weight: float
    ) -> tuple[Floats, Floats]:
        def look(z: Floats) -> tuple[float, Floats, Floats]:
            self._work.evaluations -= self._evaluation
            t = base + slopes @ z
            value, slope, bend = self._concave_above(node, t, weight)
            if node.cut.any():
                extra = self._walls(node, t, weight)
                value, slope, bend = value + extra[0], slope + extra[1], bend + extra[2]
            wall = weight * (np.log1p(-z) + np.log1p(z)).sum()
            return float(value.sum() + wall), slope, bend

        # Newton's method on a concave function: curvature is what bends it down, so a step goes uphill.
        value, slope, bend = look(z)
        for _ in range(_NEWTON):
            if self._work.evaluations <= 0.0:
                break
            gradient = slope @ slopes + weight * (1.0 / (1.0 + z) - 1.0 / (1.0 - z))
            curvature = (slopes.T * -bend) @ slopes
            curvature.flat[:: z.size + 1] += weight * ((1.0 + z) ** -2 + (1.0 - z) ** -2)
            # In a direction that no score sees, rounding may leave the matrix singular: a ridge keeps it
            # whole.
            curvature.flat[:: z.size + 1] += 1e-13 * curvature.trace()
            try:
                step = np.linalg.solve(curvature, gradient)
            except np.linalg.LinAlgError:
                break
            gain = float(step @ gradient)
            with np.errstate(divide="ignore"):
                room = np.where(step > 0.0, (1.0 - z) / step, np.where(step < 0.0, (-1.0 - z) / step, np.inf))
            # Never onto a wall, where the barrier is infinite; then halved until enough of the gain is real.
            length = min(1.0, 0.995 * float(room.min(initial=np.inf)))
            for _ in range(30):
                proposal = z + length * step
                found = look(proposal)
                if found[0] >= value + 1e-4 * length * gain:
                    break
                length *= 0.5
            else:
                break
            z, (value, slope, bend) = proposal, found
            # Nearer than the smoothing shifts the optimum: the next weight goes on from here.
            if gain < 3e-2 * weight:
                break
        return z, slope

    def _walls(self, node: _BoundedBox, t: Floats, weight: float) -> tuple[Floats, Floats, Floats]:
        """Return the walls that keep scores within their intervals: steep outside, rounded at the foot."""
        steep = np.where(node.cut, self._steep, 0.0)
        value, slope, bend = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for outside, side in ((t - node.stop, 1.0), (node.start - t, -1.0)):
            size = np.hypot(outside, 2.0 * weight)
            value -= steep * 0.5 * (outside + size)
            slope -= side * steep * 0.5 * (1.0 + outside / size)
            bend -= steep * 2.0 * weight * weight / size**3
        return value, slope, bend


def _parallel(curves: Curves, far: Floats) -> list[list[tuple[int, float, float, float]]]:
    """Return for every score i the others j that are nearly a multiple of it: j, ratio, shift and slack.

    Where no coordinate is larger than `far`, score j is within `slack` of ratio * (score i) + shift.
    """
    slopes, offsets = curves.slopes, curves.offsets
    sizes = np.abs(slopes) @ far + np.abs(offsets)
    lengths = np.einsum("ij,ij->i", slopes, slopes)
    found: list[list[tuple[int, float, float, float]]] = [[] for _ in slopes]
    for i in np.flatnonzero(lengths > 0.0):
        ratios = slopes @ slopes[i] / lengths[i]
        slacks = np.abs(slopes - ratios[:, None] * slopes[i]) @ far
        slacks += _WIDER * (sizes + np.abs(ratios) * sizes[i])
        shifts = offsets - ratios * offsets[i]
        for j in np.flatnonzero((slacks <= 4.0 * _WIDER * sizes) & (ratios != 0.0)):
            if j != i:
                found[i].append((int(j), float(ratios[j]), float(shifts[j]), float(slacks[j])))
    return found
