"""The Bayesian privacy filter: accepts queries about a record while no run of answers can exceed its budget.

The object of privacy is the whole record of one device's owner; two records are neighbours whatever they
differ in. The guarantee: whatever the querier asks, and however it adapts to what it has seen, any transcript
of accepted queries is at most e^budget times as probable under one record as under another (Pan, "Knowledge
gain as privacy loss in local privacy accounting", Corollary 4.1, extended to queries that are accepted and
not yet answered).

A *coordinate* is one stored value that channels read, for example the memoised value of a static attribute,
or what one round reads of an evolving one. Recorded answers on a coordinate merge into one likelihood
l(x) = sum of ln w_i(x, y_i); the losses of different coordinates add. Coordinates that one query reads
together count as one, whose values are their combinations. With D_i the max-divergence of a pending query i,
the filter keeps

    G = sum over coordinates of max_{x, x'} [ l(x) - l(x') + sum over its pending queries of D_i(x, x') ]

and reserves a query only if G stays within the budget. G is not a bound of the worst case, it is the worst
case: answers are drawn independently, so that all pending ones can reach their divergence for the same pair.

All numbers are whole units of 2^-40 nats, in integers. With L_i(x, y) = floor(2^40 ln w_i(x, y)) in place of
the logarithm, with D_i rounded up, and with one unit for every query ever reserved,

    committed = queries + sum over coordinates of max_{x, x'} [
        sum over recorded ones of (L_i(x, y_i) - L_i(x', y_i)) + sum over pending ones of D_i(x, x') ]

*It is never below the truth.* 2^40 ln(w/w') < L - L' + 1, because a floor falls short by less than one: the
unit of a recorded query covers its rounding, and D_i covers its own.

*Recording an answer never raises it.* L - L' < 2^40 ln(w/w') + 1 <= D + 1 as real numbers, and L - L' and D
are integers, so L_i(x, y) - L_i(x', y) <= D_i(x, x') for every pair and symbol. Putting the left side in the
place of the right lowers or keeps every term of the maximum, and the number of queries stays. What the answer
did not realise is free again at once.

*It exceeds the truth by less than two units a query for structured channels, three for dense ones.* Compiled
channels stay 16 units (2^-36) below the epsilon they declare, so declared epsilons that add up to the budget
fit it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import UNITS_PER_NAT, Detail
from hubbub.channels.symbols import Symbol
from hubbub.errors import BudgetError, ParameterError
from hubbub.filter.component import Component, Proposal
from hubbub.filter.grouping import Group, Grouping, RegressionGroup
from hubbub.filter.query import Likelihood, Model, Query
from hubbub.filter.regression.component import MAX_EVALUATIONS, Bound, RegressionComponent
from hubbub.filter.regression.regression import Regression
from hubbub.filter.regression.relaxation import WorkBudget

Branch: TypeAlias = Literal["joined", "apart"]
"""The place of an answer about a part: with what is known of the values that it read, or by itself."""

_MOVING: Final = -1
"""The ticket of an answer on its way, which no other query has."""

MAX_BUDGET: Final = 4096.0
"""Nats. Below it every quantity is an exact float64, and no sum of accepted divergences overflows int64."""


class BayesianFilter:
    """A filter that decides which queries one record may still answer, for its whole life.

    Its decisions depend on channels and recorded symbols alone, never on a value, and are the same on every
    machine: a ledger that repeats the accepted `reserve_all`, `record` and `cancel` calls in order rebuilds
    the same state and gets the same tickets, 0, 1, 2 and so on. Refusals leave no trace. Only the bounds of
    regressions come from floats: a ledger that may hold some repeats its calls by `reapply_all`, `reapply`
    and `cancel`, and ends with `tighten`.

    >>> from hubbub import mechanisms
    >>> channel = mechanisms.grr(4, epsilon=0.6)
    >>> accountant = BayesianFilter(budget=1.0)
    >>> first = accountant.reserve("colour", channel)
    >>> accountant.reserve("colour", channel) is None  # two at their worst would be 1.2
    True
    >>> accountant.record(first, 2)
    >>> round(accountant.loss, 6), round(accountant.committed, 6)
    (0.6, 0.6)
    """

    _detail: ClassVar[Detail] = "pairs"

    def __init__(self, budget: float) -> None:
        """Start without queries.

        Args:
            budget: The lifetime epsilon of the record, nats, above 0 and at most MAX_BUDGET.

        Raises:
            ParameterError: The budget is not such a number.
        """
        if not (isinstance(budget, int | float) and 0 < budget <= MAX_BUDGET):
            raise ParameterError(f"budget must be above 0 and at most {MAX_BUDGET}, got {budget!r}")
        self._budget = float(budget)
        self._limit = math.floor(Fraction(self._budget) * UNITS_PER_NAT)
        self._grouping = Grouping(self._detail)
        self._components = self._grouping.components
        self._pending: dict[int, Hashable] = {}
        self._tickets = 0
        self._loss = 0
        self._worst = 0
        self._has_numbers = False

    @property
    def budget(self) -> float:
        """The lifetime epsilon, nats."""
        return self._budget

    @property
    def limit(self) -> int:
        """The budget in whole units, rounded down: what `committed` is compared with."""
        return self._limit

    @property
    def loss(self) -> float:
        """An upper bound, tight to a unit an answer, of the realised loss: nats, at most `committed`."""
        return (self._loss + self._tickets - len(self._pending)) / UNITS_PER_NAT

    @property
    def committed(self) -> float:
        """The loss if every pending query gets its worst answer: nats, at most the budget.

        After `reapply_all` it may be above it, see there.
        """
        return (self._worst + self._tickets) / UNITS_PER_NAT

    @property
    def headroom(self) -> float:
        """The budget less what is committed, nats: any query of this epsilon or less will be accepted."""
        return (self._limit - self._worst - self._tickets) / UNITS_PER_NAT

    @property
    def pending(self) -> tuple[int, ...]:
        """Tickets that are reserved and not recorded, oldest first."""
        return tuple(sorted(self._pending))

    def reserve(
        self,
        coordinate: Hashable,
        channel: Likelihood | Regression,
        *,
        mapping: NDArray[np.integer[Any]] | None = None,
    ) -> int | None:
        """Set aside what one answer could cost at worst.

        Args:
            coordinate: See `Query`.
            channel: See `Query`.
            mapping: See `Query`.

        Returns:
            The ticket to record its answer with, or None if some answers to what is pending could then exceed
            the budget; in that case nothing has changed.

        Raises:
            ParameterError: As for `reserve_all`.
        """
        tickets = self.reserve_all([Query(coordinate, channel, mapping)])
        return None if tickets is None else tickets[0]

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        """Set aside what a whole schedule could cost at worst, or nothing of it.

        Args:
            queries: Every answer that the schedule asks for.

        Returns:
            One ticket per query, in their order; None if the schedule does not fit, and nothing has changed.

        Raises:
            ParameterError: A mapping is not one of the channel's inputs, or a coordinate's domain has another
                size than it had before; nothing has changed.
        """
        return self._reserve(queries, "decide")

    def reapply_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        """Set aside again what `reserve_all` granted at this point of the filter's life, for its ledger.

        Bounds of regressions come from floats: on another machine, or without the refusals in between, a
        search may end a little higher. What was granted was proved then. So once regressions take part,
        nothing is decided anew and nothing is searched: `committed` may exceed the budget until `tighten`,
        and after it by the difference of the bounds. Nothing more is granted while it does. Without
        regressions the decision is exact, and is made again.

        Args:
            queries: As they were granted together.

        Returns:
            As `reserve_all`.

        Raises:
            ParameterError: As `reserve_all`.
        """
        return self._reserve(queries, "repeat")

    def _reserve(self, queries: Sequence[Query], what: Literal["decide", "repeat"]) -> tuple[int, ...] | None:
        alone = self._grouping.alone(queries)
        if alone is not None:
            return self._reserve_one(*alone, proved=what == "repeat" and self._has_numbers)
        groups, numeric = self._grouping.sorted(queries)
        after, limit = self._worst, self._limit - self._tickets - len(queries)
        proved = what == "repeat" and (self._has_numbers or bool(numeric))
        trials: list[tuple[Group, Component, Proposal]] = []
        for group in groups:
            component = self._grouping.join(group, limit=self._limit)
            proposal = None if component is None else component.propose(group.queries, limit=self._limit)
            if component is None or proposal is None:
                return None
            after += proposal.worst - group.before
            trials.append((group, component, proposal))
        if after - sum(asked.numbers.worst for asked in numeric) > limit and not proved:
            return None  # whatever is found about the numbers
        bounds = self._bounds(numeric, "repeat" if proved else "decide")
        after += sum(worst - asked.numbers.worst for asked, worst in bounds)
        if after > limit and not proved:
            return None

        tickets = tuple(range(self._tickets, self._tickets + len(queries)))
        for group, component, proposal in trials:
            own = [tickets[member] for member in group.members]
            component.reserve(own, proposal)
            for key in group.sizes:
                self._components[key] = component
            for ticket in own:
                self._pending[ticket] = component.keys[0]
        for asked, worst in bounds:
            own = [tickets[member] for member in asked.members]
            take = asked.numbers.reserve_again if proved else asked.numbers.reserve
            take(own, asked.queries, worst)
            self._components[asked.key] = asked.numbers
            for ticket in own:
                self._pending[ticket] = asked.key
        self._worst = after
        self._tickets += len(queries)
        if numeric:
            self._has_numbers = True
        return tickets

    @staticmethod
    def _bounds(
        numeric: Sequence[RegressionGroup], what: Literal["decide", "repeat"]
    ) -> list[tuple[RegressionGroup, int]]:
        """Return the worst cases of numbers with what is asked of them, units."""
        if what == "repeat":
            return [
                (asked, asked.numbers.worst + sum(query.worst for query in asked.queries))
                for asked in numeric
            ]
        # Each has its share of the work, so that none is bounded better for being asked first.
        share = MAX_EVALUATIONS / max(1, sum(asked.is_searched for asked in numeric))
        return [(asked, asked.numbers.worst_with(asked.queries, WorkBudget(share))) for asked in numeric]

    def _reserve_one(self, component: Component, model: Model, *, proved: bool) -> tuple[int, ...] | None:
        """Reserve one query that stays within one coordinate in use."""
        proposal = component.propose([(component.keys, model)], limit=self._limit)
        if proposal is None:
            return None
        ticket, after = self._tickets, self._worst - component.worst + proposal.worst
        if after + ticket + 1 > self._limit and not proved:
            return None
        component.reserve((ticket,), proposal)
        self._pending[ticket] = component.keys[0]
        self._worst, self._tickets = after, ticket + 1
        return (ticket,)

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Replace what was set aside for one answer by what the answer realised; never raises `committed`.

        Args:
            ticket: From `reserve` or `reserve_all`; consumed by this call.
            symbol: The answer that was sent: a number in 0..M-1, or a packed set.

        Raises:
            BudgetError: The ticket was not issued by this filter, or is already consumed.
            ParameterError: The symbol is not one of the channel's, or the channel's divergence is below its
                own likelihood. The ticket is not consumed.
        """
        self._record(ticket, symbol, "decide")

    def reapply(self, ticket: int, symbol: Symbol) -> None:
        """Record an answer again, for a ledger; a regression's answer counts its epsilon until `tighten`.

        Args:
            ticket: See `record`.
            symbol: See `record`.

        Raises:
            BudgetError: As `record`.
            ParameterError: As `record`.
        """
        self._record(ticket, symbol, "repeat")

    def _record(self, ticket: int, symbol: Symbol, what: Literal["decide", "repeat"]) -> None:
        component = self._components[self._waiting(ticket)]
        if what == "repeat" and isinstance(component, RegressionComponent):
            take = component.reapply
        else:
            take = component.record
        self._change(component, lambda: take(ticket, symbol))
        del self._pending[ticket]

    def resolve(
        self, ticket: int, query: Query | None, symbol: Symbol, *, own: Symbol, branch: Branch | None = None
    ) -> Branch:
        """Record an answer that turned out to be about some of what its ticket was reserved for.

        A ticket that stands for every part of a bundle was reserved on a coordinate of its own, at the most
        that any part can cost. The answer is about one part: here it moves to the stored values which that
        part reads, unless there are too many combinations of those, or the sum would then be above what it
        was. Where it stays, it counts at the most that it can have told. Neither ever raises `committed`, so
        no answer is refused, and the part does not matter for what is accepted later before it is known.

        Args:
            ticket: From `reserve` or `reserve_all`; consumed by this call.
            query: The stored values that the answer reads, and the channel that drew it from them. They must
                be named as every other query names them, over their whole domains. None where no coordinate
                may be shared: for a number, or what a round reads.
            symbol: The answer, as the channel of the ticket's own query takes it.
            own: The answer, as the channel of `query` takes it.
            branch: What this call returned when it was first made, for a ledger; None to decide.

        Returns:
            Whether the answer is "joined" with what is known of those values, or kept "apart".

        Raises:
            BudgetError: As `record`.
            ParameterError: As `record`, or a query is malformed, or was joined once and can no longer be.
        """
        held = self._components[self._waiting(ticket)]
        moved = None if query is None or branch == "apart" else self._moved(query, own)
        if branch == "joined" and moved is None:
            raise ParameterError("an answer that was joined with others must be joined again")
        if (
            not isinstance(held, Component)
            or moved is None
            or not (branch == "joined" or self._lowers(ticket, held, moved))
        ):
            self._record(ticket, symbol, "decide")
            return "apart"
        before, joined = moved
        self._loss += joined.loss - sum(part.loss for part in self._replaced(joined))
        self._worst += joined.worst - before
        self._cancel(ticket, "decide")
        if not held.pending and held.recorded() is None:
            for key in held.keys:
                del self._components[key]
        for key in joined.keys:
            self._components[key] = joined
        return "joined"

    def branch_of(self, ticket: int, query: Query | None, own: Symbol) -> Branch:
        """Return what `resolve` would decide, for a ledger to store with the answer; nothing changes.

        Args:
            ticket: See `resolve`.
            query: See `resolve`.
            own: See `resolve`.

        Raises:
            BudgetError: As `resolve`.
            ParameterError: As `resolve`.
        """
        held = self._components[self._waiting(ticket)]
        moved = None if query is None else self._moved(query, own)
        lowers = isinstance(held, Component) and moved is not None and self._lowers(ticket, held, moved)
        return "joined" if lowers else "apart"

    @staticmethod
    def _lowers(ticket: int, held: Component, moved: tuple[int, Component]) -> bool:
        """Return whether nothing is committed beyond what was, once an answer has moved."""
        before, joined = moved
        return joined.worst + held.worst_without(ticket) <= before + held.worst

    def _moved(self, query: Query, symbol: Symbol) -> tuple[int, Component] | None:
        """Return what the components that a query joins commit, and the one with its answer in their place.

        None where they cannot be joined. Nothing changes.
        """
        if not self._grouping.closed.isdisjoint(query.keys):
            return None
        groups, numeric = self._grouping.sorted([query])
        if numeric or not set(query.keys) <= set(groups[0].sizes):
            return None  # numbers, or a tuple of too many values to be joined
        parts = self._grouping.parts(groups[0])
        limit = self._limit
        made = Component.joined(parts, limit=limit)
        proposal = None if made is None else made.propose(groups[0].queries, limit=limit)
        if made is None or proposal is None:
            return None
        made.reserve((_MOVING,), proposal)
        made.record(_MOVING, symbol)
        return sum(part.worst for part in parts), made

    def _replaced(self, joined: Component) -> list[Component]:
        """Return the different components that now hold the coordinates of another one."""
        found = {id(part): part for key in joined.keys if (part := self._components.get(key)) is not None}
        return [part for part in found.values() if isinstance(part, Component)]

    def bound(self, coordinate: Hashable) -> Bound | None:
        """Return what is proved of the numbers that a coordinate names; None where it names none."""
        numbers = self._components.get(coordinate)
        return (numbers.loss, numbers.worst) if isinstance(numbers, RegressionComponent) else None

    def bound_after(self, ticket: int, symbol: Symbol | None) -> Bound | None:
        """Return what `bound` will be once a pending ticket is recorded, or cancelled; nothing changes.

        So a ledger can store the proof in one row with the answer: `reapply` or `recancel`, then `restore`
        take both in, in this life as in every later one.

        Args:
            ticket: See `record`.
            symbol: The answer; None where the query is cancelled.

        Raises:
            BudgetError: As `record`.
            ParameterError: As `record`.
        """
        component = self._components[self._waiting(ticket)]
        return component.bound_after(ticket, symbol) if isinstance(component, RegressionComponent) else None

    def restore(self, coordinate: Hashable, bound: Bound) -> None:
        """Take in what was proved of a coordinate's numbers; nothing rises.

        Args:
            coordinate: One whose queries and answers are those that the proof was made for.
            bound: From `bound` or `bound_after`.

        Raises:
            BudgetError: The coordinate names no numbers, or the bound is none.
        """
        numbers = self._components.get(coordinate)
        if not isinstance(numbers, RegressionComponent) or not 0 <= bound[0] <= bound[1]:
            raise BudgetError(f"a proof must be of numbers, and its loss within its worst, got {bound}")
        self._change(numbers, lambda: numbers.restore(bound))

    def tighten(self) -> None:
        """Bound what was repeated and not restored; see `RegressionComponent.tighten`."""
        for component in self._components.values():
            if isinstance(component, RegressionComponent):
                self._change(component, component.tighten)

    def _change(self, component: Component | RegressionComponent, change: Callable[[], object]) -> None:
        loss, worst = component.loss, component.worst
        change()
        self._loss += component.loss - loss
        self._worst += component.worst - worst

    def cancel(self, ticket: int) -> None:
        """Release what was set aside for a query that nobody will ever answer; its ticket is void.

        Sound only if no answer was drawn and none will be: the caller keeps a record that outlives clocks,
        restarts and this object. The choice of what to cancel may depend on every answer so far: the rest is
        within the budget, whatever is taken out.

        Args:
            ticket: From `reserve` or `reserve_all`; not recorded.

        Raises:
            BudgetError: The ticket was not issued by this filter, or is already consumed.
        """
        self._cancel(ticket, "decide")

    def recancel(self, ticket: int) -> None:
        """Void a ticket again, for a ledger; numbers keep a looser bound until `restore`.

        Args:
            ticket: See `cancel`.

        Raises:
            BudgetError: As `cancel`.
        """
        self._cancel(ticket, "repeat")

    def _cancel(self, ticket: int, what: Literal["decide", "repeat"]) -> None:
        component = self._components[self._waiting(ticket)]
        if what == "repeat" and isinstance(component, RegressionComponent):
            take = component.cancel_again
        else:
            take = component.cancel
        self._change(component, lambda: take(ticket))
        del self._pending[ticket]

    def _waiting(self, ticket: int) -> Hashable:
        """Return the coordinate of a pending ticket."""
        key = self._pending.get(ticket, self)
        if key is self:
            raise BudgetError(f"a ticket must be reserved and not yet recorded, got {ticket!r}")
        return key

    def check(self, queries: Sequence[Query]) -> None:
        """Raise what `reserve_all` would raise for these queries; changes nothing."""
        self._grouping.sorted(queries)

    def close(self, coordinate: Hashable) -> None:
        """Close a coordinate that no later query will read; `loss` and `committed` stay as they are.

        A round that is over needs no likelihood any more. If it was joined with coordinates that stay open,
        the best and the worst that it could contribute are kept over those; otherwise only its loss is kept.
        A pending query of a coordinate of its own is forfeited: it counts at its worst for good, its ticket
        is void, and its own unit is in `loss` from then on.

        Args:
            coordinate: One that was reserved for and is not closed.

        Raises:
            BudgetError: A query that reads it together with others is pending.
            ParameterError: It is unknown, or closed already.
        """
        component = self._components.get(coordinate)
        if component is None:
            raise ParameterError(f"a coordinate must be in use to be closed, got {coordinate!r}")
        if isinstance(component, RegressionComponent):
            self._change(component, component.tighten)
        if isinstance(component, RegressionComponent) or len(component.keys) == 1:
            for ticket in component.pending:
                del self._pending[ticket]
        else:
            waiting = [ticket for ticket, held in component.pending.items() if coordinate in held.keys]
            if waiting:
                raise BudgetError(
                    f"a joined coordinate must have nothing pending to close, got {len(waiting)}"
                )
            rest = component.without(coordinate, limit=self._limit)
            if rest is None:
                raise BudgetError(f"a joined coordinate must leave a sum that fits, got {component.worst}")
            self._loss += rest.loss - component.loss
            self._worst += rest.worst - component.worst
            for key in rest.keys:
                self._components[key] = rest
            self._pending.update({ticket: held.keys[0] for ticket, held in rest.pending.items()})
        del self._components[coordinate]
        self._grouping.closed.add(coordinate)

    def close_joined(self, coordinate: Hashable) -> bool:
        """Close a coordinate that was joined with others, if no pending query is forfeited by that.

        Args:
            coordinate: One that no later query will read.

        Returns:
            Whether it was closed: not where it is unknown, by itself, or read by a pending query.
        """
        component = self._components.get(coordinate)
        if not isinstance(component, Component) or len(component.keys) == 1:
            return False
        try:
            self.close(coordinate)
        except BudgetError:
            return False
        return True
