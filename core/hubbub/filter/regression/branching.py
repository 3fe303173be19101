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
from dataclasses import replace
from itertools import product
from typing import Final

import numpy as np

from hubbub.filter.regression.curves import Curves, Floats
from hubbub.filter.regression.relaxation import BoundedBox, Relaxation, WorkBudget

_ROUNDING: Final = 2.0**-48
"""Sixteen units in the last place for every term of a bound: no sum here loses as much."""

_SHARP: Final = 0.003
"""The share of the distance between bound and best sum that a price may be off by to be tried."""

_COARSE: Final = 0.1
"""Nats that the first node's first price may be off by."""

_EVERY: Final = 13
"""Steps of a climb after which a price is tried, whatever it is off by; divides STEPS."""

_CLOSE: Final = 200.0
"""Times that a node's bound must be above the best sum by what its price is off by, to be split."""

_EXACT: Final = 1e-10
"""Nats that a price is off by when it is as good as the best."""

_WIDER: Final = 2.0**-40
"""The share of its size that a score's interval keeps beyond a cut made for another: far above rounding."""


class BranchAndBound:
    """The search for the largest sum, one node at a time, so that its user stops when it knows enough.

    Attributes:
        best: The largest sum found so far; the truth is at least this.
        point: Where, shape (d,).
        bound: No sum is larger.
        nodes: How many were bounded.
        work: The work budget; it can be replaced between steps.
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
        self.work = WorkBudget(np.inf) if work is None else work
        self._curves = curves
        self.best, self.point, self.nodes = -np.inf, 0.5 * (low + high), 0
        self._heap: list[tuple[float, int, BoundedBox, Floats]] = []
        self._bends = np.array(curves.bends)
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
        short = Relaxation(curves, node, self.work).above(np.minimum(t, curves.kinks))[0] - curves.values(t)
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
                BoundedBox(node.centre, node.reach, start, stop, tangents, lines, cut, node.bound), point
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
        self._bound(BoundedBox(centre, reach, start, stop, tangents, lines, cut, np.inf), centre)

    def _lines(self, start: Floats, tangents: Floats) -> tuple[Floats, Floats]:
        """Return the value at the left end and the slope of the first line of every curve."""
        foot, top = self._curves.values(start), self._curves.values(tangents)
        width = tangents - start
        return foot, np.where(width > 0.0, (top - foot) / np.where(width > 0.0, width, 1.0), 0.0)

    def _bound(self, node: BoundedBox, near: Floats) -> None:
        self.nodes += 1
        value = node.bound
        point = near
        wanted = _SHARP * (value - self.best) if np.isfinite(value - self.best) else _COARSE
        climb = Relaxation(self._curves, node, self.work).climb(near)
        for number, (point, multipliers, doubt) in enumerate(climb, 1):
            # Until a price is worth it, it is tried now and then: a node without a point is closed by any.
            if doubt > wanted and number % _EVERY and self.work.evaluations > 0.0:
                continue
            self.offer(point)
            value = min(value, self._dual(node, multipliers))
            if value <= self.best or value - self.best > _CLOSE * doubt or doubt < _EXACT:
                break  # a sharper price could not close the node: to split it is worth more
            wanted = min(0.5 * wanted, _SHARP * (value - self.best))
        if value > self.best:
            heapq.heappush(self._heap, (-value, self.nodes, replace(node, bound=value), point))

    def _dual(self, node: BoundedBox, multipliers: Floats) -> float:
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
        size += (curves.sizes @ np.abs(multipliers)) @ (np.abs(node.centre) + node.reach)
        slack = _ROUNDING * (1.0 + size)
        return float(tops.sum() + fixed.sum() + centre.sum() + reach.sum() + slack)


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
