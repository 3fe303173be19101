"""The loss of a record's numbers by regressions: an upper bound that is proved, not sampled.

The largest likelihood ratio of two records is max l less min l over the box. For linear scores l is concave:
its minimum is at a corner, its maximum a concave problem with a proof by duality. For truncated and logistic
scores both are searched by branch and bound. Bounds err upwards, so a query may be refused that would have
fitted; none is accepted that does not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Final, TypeAlias

import numpy as np

from hubbub.channels.divergence import UNITS_PER_NAT, Detail
from hubbub.channels.symbols import Symbol
from hubbub.errors import ParameterError
from hubbub.filter.regression.branching import BranchAndBound
from hubbub.filter.regression.curves import Corners, Floats, largest
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

Bound: TypeAlias = tuple[int, int]
"""(loss, worst): what is proved of a box of numbers, units; see `RegressionComponent`."""


@dataclass(slots=True)
class RegressionComponent:
    """The state of one box of numbers, in the place of a component of coordinates with finite domains.

    Its bounds are searched whenever a query or an answer comes or goes, whatever the budget is: so they
    depend on what happened to this box alone, not on when other coordinates asked.

    Attributes:
        keys: Its one coordinate, the name of the numbers together.
        box: Their domain.
        detail: "largest" adds the epsilons of what is pending and searches none of it.
        pending: Its pending regressions by ticket.
        answers: The regressions that were answered, each with its answer.
        loss: An upper bound of the realised loss, units.
        worst: An upper bound of the loss if every pending one gets its worst answer, units.
    """

    keys: tuple[Hashable, ...]
    box: Box
    detail: Detail = "pairs"
    pending: dict[int, Regression] = field(default_factory=dict)
    answers: list[tuple[Regression, int]] = field(default_factory=list)
    loss: int = 0
    worst: int = 0
    _linear: _Linear | None = None
    """The linear answers, from the first bound on that asks for them."""
    _proved: bool = True

    def worst_with(self, queries: Sequence[Regression], work: WorkBudget | None = None) -> int:
        """Return an upper bound of the worst loss with more queries, in units.

        Args:
            queries: What would be asked beside all that is pending.
            work: What the decision may do for it; MAX_EVALUATIONS, if None. Once it is used up, epsilons add.
        """
        work = WorkBudget(MAX_EVALUATIONS) if work is None else work
        simple = self.worst + _sum(queries)
        return min(simple, self._worst_case([*self.pending.values(), *queries], work))

    def reserve(self, tickets: Sequence[int], queries: Sequence[Regression], worst: int) -> None:
        """Take in queries for which `worst_with` gave this number."""
        self.pending.update(zip(tickets, queries, strict=True))
        self.worst = worst

    def reserve_again(self, tickets: Sequence[int], queries: Sequence[Regression], worst: int) -> None:
        """Take in queries that were granted before, at a worst case that is still to be bounded."""
        self.reserve(tickets, queries, worst)
        self._proved = False

    def bound_after(self, ticket: int, symbol: Symbol | None) -> Bound:
        """Return what will be proved once a pending query is answered, or cancelled; nothing changes.

        `worst` does not rise: it holds for every answer, and without one for what is left.

        Args:
            ticket: Of a pending query.
            symbol: Its answer; None where it is cancelled.

        Raises:
            ParameterError: The answer is not 0 or 1.
        """
        query = self.pending[ticket]
        answered = [] if symbol is None else [(query, _checked(symbol))]
        rest = [other for number, other in self.pending.items() if number != ticket]
        loss = self.loss
        if answered:
            share = WorkBudget(MAX_EVALUATIONS * (0.5 if rest else 1.0))
            loss = min(loss + query.worst, self._bound([answered], share))
        worst = min(self.worst, loss + _sum(rest))
        if rest:
            worst = min(worst, self._worst_case(rest, WorkBudget(0.5 * MAX_EVALUATIONS), answered))
        return min(loss, worst), worst

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Replace a pending query by its answer; `worst` falls or stays.

        Raises:
            ParameterError: The answer is not 0 or 1; nothing has changed.
        """
        bound = self.bound_after(ticket, symbol)
        self.reapply(ticket, symbol)
        self.restore(bound)

    def reapply(self, ticket: int, symbol: Symbol) -> None:
        """Take an answer in without a search: its epsilon counts in full until a bound is known.

        Raises:
            ParameterError: As `record`.
        """
        answer = self.pending[ticket], _checked(symbol)
        del self.pending[ticket]
        self.answers.append(answer)
        if self._linear is not None and answer[0].kind == "linear":
            self._linear.add(answer)
        self.loss += answer[0].worst
        self._proved = False

    def restore(self, bound: Bound) -> None:
        """Take in what was proved of the queries and answers that are here now; nothing rises."""
        self.worst = min(self.worst, bound[1])
        self.loss = min(self.loss, bound[0], self.worst)
        self._proved = True

    def cancel(self, ticket: int) -> None:
        """Take out a pending query that will never be answered; `worst` falls or stays."""
        bound, proved = self.bound_after(ticket, None), self._proved
        self.cancel_again(ticket)
        self.restore(bound)
        self._proved = proved

    def cancel_again(self, ticket: int) -> None:
        """Take out a query that was cancelled before, without a search."""
        del self.pending[ticket]
        self.worst = min(self.worst, self.loss + _sum(self.pending.values()))
        self._proved = False

    def tighten(self) -> None:
        """Bound what was taken in again and no proof is known of; `loss` and `worst` fall or stay.

        *It is at least the true loss.* That is max l - min l, of the sum l of all answers' log-likelihoods: a
        function of the answers, not of when anybody bounded them. The search bounds it from above as
        `record` does; of answers beyond MAX_SEARCHED each adds its epsilon, which no ratio of its two
        likelihoods exceeds. The number before is an upper bound too, so the lesser of both is one.
        """
        if self._proved:
            return
        work = WorkBudget(MAX_EVALUATIONS)
        rest: Answers = ()
        if self.answers:
            count = len(self.answers) if _is_linear(self.answers) else MAX_SEARCHED
            searched, rest = self.answers[:count], self.answers[count:]
            found = self._bound([[]], work, MAX_REPLAYED, searched)
            self.loss = min(self.loss, found + sum(query.worst for query, _ in rest))
        waiting = list(self.pending.values())
        self.worst = min(self.worst, self.loss + _sum(waiting))
        if waiting:
            self.worst = min(self.worst, self._worst_case(waiting, work))
        self.loss = min(self.loss, self.worst)
        self._proved = True

    def _worst_case(self, waiting: Sequence[Regression], work: WorkBudget, beside: Answers = ()) -> int:
        """Return an upper bound of the loss, whatever is answered to what waits, in units."""
        if not waiting:
            return self.loss
        if self.detail == "largest":
            return self.worst + _sum(waiting)
        waiting = sorted(waiting, key=_place)
        tried = waiting[:MAX_COMBINED]
        trials = [
            [*beside, *zip(tried, symbols, strict=True)] for symbols in product((1, 0), repeat=len(tried))
        ]
        return self._bound(trials, work) + _sum(waiting[MAX_COMBINED:])

    def _bound(
        self,
        trials: Sequence[Answers],
        work: WorkBudget,
        nodes: int = MAX_NODES,
        answers: Answers | None = None,
    ) -> int:
        """Return an upper bound of the largest loss of all answers with any one of some trials, units.

        The trials are other answers to the same queries. `answers` are the first ones, where not all are
        searched.
        """
        answers = self.answers if answers is None else answers
        first = [*answers, *trials[0]]
        simple = sum(query.worst for query, _ in first)
        slack = 2 * sum(query.slack for query, _ in first)
        if len(first) == 1:  # as of every round of numbers that change
            (query, _) = first[0]
            return min(simple, max(query.loss_of(y) for trial in trials for _, y in [*answers, *trial]))
        if _is_linear(first) and len(self.box.low) <= MAX_CORNERS and not self.box.whole:
            if self._linear is None:
                self._linear = _Linear.over(self.box, self.answers)
            spread = max(self._linear.spread(trial) for trial in trials)
        elif len(first) > MAX_SEARCHED or work.evaluations < 2 * len(trials):
            return simple  # with less, not every search could begin
        else:
            searches = [_Search.over(self.box, [*answers, *trial], work) for trial in trials]
            spread = _largest_spread(searches, work, nodes)
        if not math.isfinite(spread):  # arithmetic that failed proves nothing: every answer counts in full
            return simple
        return min(simple, math.ceil(max(spread, 0.0) * UNITS_PER_NAT) + slack)


def _sum(queries: Iterable[Regression]) -> int:
    return sum(query.worst for query in queries)


def _checked(symbol: Symbol) -> int:
    if not isinstance(symbol, int) or symbol not in (0, 1):
        raise ParameterError(f"a symbol must be within 0 to 1, got {symbol!r}")
    return symbol


def _is_linear(answers: Answers) -> bool:
    return all(query.kind == "linear" for query, _ in answers)


def _place(query: Regression) -> tuple[object, ...]:
    """Return where a query stands among others, the costliest first, whichever was asked first."""
    return -query.worst, query.kind, query.coefficients, query.intercept, query.low, query.high


@dataclass(slots=True)
class _Search:
    """The search for the largest and for the least sum of the same answers."""

    upper: BranchAndBound
    lower: BranchAndBound

    @classmethod
    def over(cls, box: Box, answers: Answers, work: WorkBudget) -> _Search:
        curves = curves_of(sorted(answers, key=lambda answer: (_place(answer[0]), answer[1])))
        low, high = np.array(box.low), np.array(box.high)
        return cls(
            BranchAndBound(curves, low, high, box.whole, work=work),
            BranchAndBound(curves.mirrored(), low, high, box.whole, work=work),
        )

    @property
    def bound(self) -> float:
        """The largest sum less the least is no more than this."""
        return self.upper.bound + self.lower.bound

    def is_done(self, nodes: int) -> bool:
        """Return whether a step more is not worth it, or not allowed."""
        upper, lower = self.upper, self.lower
        return upper.gap + lower.gap <= _GAP or upper.nodes + lower.nodes >= nodes

    def step(self) -> None:
        """Split the node that leaves more open."""
        (self.upper if self.upper.gap >= self.lower.gap else self.lower).step()


def _largest_spread(searches: Sequence[_Search], work: WorkBudget, nodes: int) -> float:
    """Return an upper bound of all searches' spreads: the work goes where the bound is the largest."""
    while True:
        widest = max(searches, key=lambda search: search.bound)
        if widest.is_done(nodes) or work.evaluations <= 0.0:
            return widest.bound
        widest.step()


@dataclass(slots=True)
class _Linear:
    """The linear answers as logarithms of affine functions of z in [-1, 1]^d."""

    centre: Floats
    reach: Floats
    slopes: Floats
    offsets: Floats
    corners: Corners

    @classmethod
    def over(cls, box: Box, answers: Answers) -> _Linear:
        low, high = np.array(box.low), np.array(box.high)
        size = low.size
        made = cls(0.5 * (low + high), 0.5 * (high - low), np.empty((0, size)), np.empty(0), Corners(size))
        for answer in answers:
            made.add(answer)
        return made

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
        # From the middle, not from where the last search ended: the bound must not depend on what was asked
        # in between.
        most, _ = largest(
            np.vstack([self.slopes, slopes]),
            np.append(self.offsets, offsets),
            np.zeros_like(self.centre),
        )
        return most - least
