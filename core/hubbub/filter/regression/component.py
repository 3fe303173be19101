"""The loss of a record's numbers by regressions: an upper bound that is proved, not sampled.

The largest likelihood ratio of two records is max l less min l over the box. For linear scores l is concave:
its minimum is at a corner, its maximum a concave problem with a proof by duality. For truncated and logistic
scores both are searched by branch and bound. Bounds err upwards, so a query may be refused that would have
fitted; none is accepted that does not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final

import numpy as np

from hubbub.channels.divergence import UNITS_PER_NAT, Detail
from hubbub.channels.symbols import Symbol
from hubbub.errors import ParameterError
from hubbub.filter.regression.branching import BranchAndBound
from hubbub.filter.regression.concave import Corners, largest
from hubbub.filter.regression.curves import Floats
from hubbub.filter.regression.regression import Box, Regression, curves_of
from hubbub.filter.regression.relaxation import WorkBudget

MAX_CORNERS: Final = 12
"""The most numbers d whose 2^d corners are kept, 32 KiB; with more, the minimum is searched too."""

MAX_NODES: Final = 128
"""The most boxes searched for one bound, about a millisecond each; what is not proved by then counts as
lost."""

MAX_REPLAYED: Final = 512
"""The most boxes where all answers of a ledger are bounded at once, in the place of a search each."""

MAX_EVALUATIONS: Final = 4000.0
"""The work budget of one decision, or of one answer, in curve evaluations of 0.05 to 0.1 ms each
(`WorkBudget`): some tenths of a second, whatever is asked."""

MAX_SEARCHED: Final = 512
"""The most answers about one box that are searched; each further one counts its epsilon."""

MAX_COMBINED: Final = 3
"""The most pending answers of which every combination is tried; others count their epsilon each."""

_GAP: Final = 1e-7
"""Nats between a point and a proof at which a search has done its work."""

Answers = Sequence[tuple[Regression, int]]


@dataclass(slots=True)
class RegressionComponent:
    """The state of one box of numbers, in the place of a component of coordinates with finite domains.

    Attributes:
        keys: Its one coordinate, the name of the numbers together.
        box: Their domain.
        pending: Its pending regressions by ticket.
        answers: The regressions that were answered, each with its answer.
        loss: An upper bound of the realised loss, units.
        worst: An upper bound of the loss if every pending one gets its worst answer, units.
    """

    keys: tuple[Hashable, ...]
    box: Box
    pending: dict[int, Regression] = field(default_factory=dict)
    answers: list[tuple[Regression, int]] = field(default_factory=list)
    loss: int = 0
    worst: int = 0
    _linear: _Linear | None = field(init=False)
    _known: dict[tuple[tuple[Regression, int], ...], float | _Search] = field(default_factory=dict)
    """Bounds of linear answers, and searches of others, by what was tried beside `answers`."""
    _unbounded: bool = False

    def __post_init__(self) -> None:
        fits = len(self.box.low) <= MAX_CORNERS and not self.box.whole
        self._linear = _Linear.over(self.box) if fits else None

    def worst_with(
        self,
        queries: Sequence[Regression],
        goal: int,
        *,
        detail: Detail = "pairs",
        work: WorkBudget | None = None,
    ) -> int:
        """Return an upper bound of the worst loss with more queries, in units, to compare with the goal.

        Args:
            queries: What would be asked beside all that is pending.
            goal: What it must not exceed, units: a search stops once it knows on which side the loss is.
            detail: "largest" adds every query's epsilon and searches nothing.
            work: What the decision may still do; MAX_EVALUATIONS, if None. Once it is used up, epsilons add.
        """
        simple = self.worst + sum(query.worst for query in queries)
        work = WorkBudget(MAX_EVALUATIONS) if work is None else work
        waiting = [*self.pending.values(), *queries]
        if not waiting or simple <= goal or detail == "largest" or work.evaluations <= 0.0:
            return simple  # where nothing waits, the worst case is the loss, which is bounded already
        # A query that was refused since is not tried again.
        self._known = {
            tried: each for tried, each in self._known.items() if all(query in waiting for query, _ in tried)
        }
        added = sum(query.worst for query in waiting[MAX_COMBINED:])
        bound = 0
        for symbols in product((1, 0), repeat=min(len(waiting), MAX_COMBINED)):
            tried = list(zip(waiting, symbols, strict=False))
            each = self._bound(tried, goal - added, work)
            bound = max(bound, added + each)
            if bound > goal:
                break
        return min(simple, bound)

    def reserve(self, tickets: Sequence[int], queries: Sequence[Regression], worst: int) -> None:
        """Take in queries for which `worst_with` gave this number."""
        self.pending.update(zip(tickets, queries, strict=True))
        self.worst = worst

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Replace a pending query by its answer; `worst` falls or stays.

        Raises:
            ParameterError: The answer is not 0 or 1; nothing has changed.
        """
        before = self.loss
        query, symbol = answer = self._answered(ticket, symbol)
        known = self._bound([answer], 0, WorkBudget(MAX_EVALUATIONS))
        self._take(answer)
        self._lower(min(known, before + query.worst))

    def reapply(self, ticket: int, symbol: Symbol) -> None:
        """Take an answer in without a search: its epsilon counts in full until `tighten`.

        Raises:
            ParameterError: As `record`.
        """
        answer = self._answered(ticket, symbol)
        self._take(answer)
        self.loss += answer[0].worst
        self._unbounded = True

    def tighten(self, goal: int) -> None:
        """Bound the loss of all reapplied answers in one search; `loss` and `worst` fall or stay.

        *It is at least the true loss.* That is max l - min l, of the sum l of all answers' log-likelihoods: a
        function of the answers, not of when anybody bounded them. The search bounds it from above as
        `record` does; of answers beyond MAX_SEARCHED each adds its epsilon, which no ratio of its two
        likelihoods exceeds. The number before is an upper bound too, so the lesser of both is one.

        *Nothing is accepted without proof.* A decision compares with the budget what is above the true worst
        case, whatever was bounded on the way. Where this search ends lower than those of the account's
        first life, what was refused then may fit now: it does fit. Where it ends higher, more is refused.

        Args:
            goal: What the worst case must not exceed for more to be granted, units, as in `worst_with`.
        """
        if not self._unbounded:
            return
        self._unbounded = False
        count = len(self.answers) if self._is_linear(self.answers) else MAX_SEARCHED
        work = WorkBudget(MAX_EVALUATIONS)
        found = self._bound([], 0, work, count=count)
        self._lower(min(self.loss, found + sum(query.worst for query, _ in self.answers[count:])))
        self.worst = self.worst_with([], goal, work=work)

    def _answered(self, ticket: int, symbol: Symbol) -> tuple[Regression, int]:
        if not isinstance(symbol, int) or symbol not in (0, 1):
            raise ParameterError(f"a symbol must be within 0 to 1, got {symbol!r}")
        return self.pending.pop(ticket), symbol

    def _take(self, answer: tuple[Regression, int]) -> None:
        # Trials that began with this answer are now trials beside one answer more.
        self._known = {
            tried[1:]: each for tried, each in self._known.items() if tried[0] == answer and tried[1:]
        }
        self.answers.append(answer)
        if self._linear is not None and answer[0].kind == "linear":
            self._linear.add(answer)

    def _lower(self, loss: int) -> None:
        self.worst = min(self.worst, loss + sum(other.worst for other in self.pending.values()))
        self.loss = min(loss, self.worst)

    def cancel(self, ticket: int) -> None:
        """Take out a pending query that will never be answered; `worst` falls or stays.

        What the others could reach together was searched with it; without it, the lesser of that and of the
        sum of their epsilons is an upper bound still.
        """
        del self.pending[ticket]
        self._known = {}
        self.worst = min(self.worst, self.loss + sum(query.worst for query in self.pending.values()))

    def _is_linear(self, answers: Answers) -> bool:
        return self._linear is not None and all(query.kind == "linear" for query, _ in answers)

    def _bound(self, tried: Answers, goal: int, work: WorkBudget, *, count: int | None = None) -> int:
        """Return an upper bound of the loss of all answers, or of the first `count`, with some more, units.

        It is on its side of the goal. Linear answers are always bounded together, `count` must be all.
        """
        answers = [*self.answers[:count], *tried]
        slack = 2 * sum(query.slack for query, _ in answers)
        if self._linear is not None and self._is_linear(answers):
            known = self._known.get(tuple(tried))
            spread = known if isinstance(known, float) else self._linear.spread(tried)
            if tried:
                self._known[tuple(tried)] = spread
        elif len(answers) == 1:  # as of every round of numbers that change
            ((query, symbol),) = answers
            return min(query.loss_of(symbol), query.worst)
        elif len(answers) > MAX_SEARCHED:
            spread = math.inf
        else:
            search = self._known.pop(tuple(tried), None) if count is None else None
            if not isinstance(search, _Search):
                search = _Search.over(self.box, answers, work)
            nodes = MAX_NODES if count is None else MAX_REPLAYED
            spread = search.spread((goal - slack) / UNITS_PER_NAT, work, nodes)
            if count is None and work.evaluations > 0.0:
                self._known[tuple(tried)] = search
        if not math.isfinite(spread):  # arithmetic that failed proves nothing: every answer counts in full
            return sum(query.worst for query, _ in answers)
        return math.ceil(max(spread, 0.0) * UNITS_PER_NAT) + slack


@dataclass(slots=True)
class _Search:
    """The search for the largest and for the least sum of the same answers, which can be gone on with.

    The boxes that it splits do not depend on where it is to stop: one that a decision stopped ends, when the
    answer is recorded, at the bound that a search from the start would end at.
    """

    upper: BranchAndBound
    lower: BranchAndBound

    @classmethod
    def over(cls, box: Box, answers: Answers, work: WorkBudget) -> _Search:
        curves = curves_of(answers)
        low, high = np.array(box.low), np.array(box.high)
        return cls(
            BranchAndBound(curves, low, high, box.whole, work=work),
            BranchAndBound(curves.mirrored(), low, high, box.whole, work=work),
        )

    def spread(self, target: float, work: WorkBudget, nodes: int = MAX_NODES) -> float:
        """Return an upper bound of the largest sum less the least, on its side of the target."""
        upper, lower = self.upper, self.lower
        upper.work = lower.work = work
        while True:
            bound = upper.bound + lower.bound
            refused = 0.0 < target < upper.best + lower.best
            done = upper.gap + lower.gap <= _GAP or upper.nodes + lower.nodes >= nodes
            if bound <= target or refused or done or work.evaluations <= 0.0:
                return bound
            (upper if upper.gap >= lower.gap else lower).step()


@dataclass(slots=True)
class _Linear:
    """The linear answers as logarithms of affine functions of z in [-1, 1]^d."""

    centre: Floats
    reach: Floats
    slopes: Floats
    offsets: Floats
    corners: Corners
    near: Floats

    @classmethod
    def over(cls, box: Box) -> _Linear:
        low, high = np.array(box.low), np.array(box.high)
        size = low.size
        return cls(
            0.5 * (low + high),
            0.5 * (high - low),
            np.empty((0, size)),
            np.empty(0),
            Corners(size),
            np.zeros(size),
        )

    def terms(self, answers: Answers) -> tuple[Floats, Floats]:
        """Return slopes and offsets of the probabilities of answers, shapes (n, d) and (n,)."""
        curves = curves_of(answers)
        rise = curves.rise[:, None]
        offsets = curves.low + curves.rise * (curves.slopes @ self.centre + curves.offsets)
        return rise * curves.slopes * self.reach, offsets

    def add(self, answer: tuple[Regression, int]) -> None:
        slopes, offsets = self.terms([answer])
        self.slopes, self.offsets = np.vstack([self.slopes, slopes]), np.append(self.offsets, offsets)
        self.corners.add(slopes[0], float(offsets[0]))

    def spread(self, tried: Answers) -> float:
        """Return an upper bound of the largest sum less the smallest."""
        slopes, offsets = self.terms(tried) if tried else (self.slopes[:0], self.offsets[:0])
        sums = self.corners.sums
        for slope, offset in zip(slopes, offsets.tolist(), strict=True):
            sums = sums + np.log(self.corners.points @ slope + offset)
        least = self.corners.least(sums)
        most, self.near = largest(
            np.vstack([self.slopes, slopes]),
            np.append(self.offsets, offsets),
            self.near,
        )
        return most - least
