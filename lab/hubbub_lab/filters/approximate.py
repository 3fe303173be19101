"""The (epsilon, delta) filter: many small answers by their squares, then what their realised loss leaves.

Two phases, each absorbed once it is over.

*Advanced.* Queries are accepted whatever was answered, while, over all of them, pending ones included,

    sqrt(2 ln(1/delta) sum epsilon_i^2) + sum epsilon_i^2 / 2 <= epsilon

(Whitehouse, Ramdas, Rogers and Wu, "Fully adaptive composition in differential privacy", theorem 1, for pure
mechanisms). For two records x and x' the loss, less half the squares, is a supermartingale with increments of
at most epsilon_i either way, so the chance under x that it ever passes epsilon is at most delta.

*Pure.* At its first refusal the first phase is over for good, whatever smaller query may follow. Once all
that was pending is recorded, the realised loss is looked at. If it is above epsilon, nothing is accepted any
more. Otherwise the pure Bayesian filter goes on with everything recorded so far, and keeps the loss of every
pair within epsilon.

*The guarantee.* Transcripts whose ratio for x and x' exceeds e^epsilon are among those whose ratio did so at
the end of the first phase, since the second either stops there or never lets it. They have probability at
most delta under x. So Pr(T in S | x) <= e^epsilon Pr(T in S | x') + delta for every set S, every pair and
every adaptive querier. A filter that accepts whenever either phase would does not keep delta: the first runs
on after the second has spent its room (Pan, algorithm 4, absorbs the halt of its first filter, not what is
pending).

*What a ledger stores.* Here a refusal can be a step: the one that ends the first phase. Every change of state
is a `Step`, handed to the journal when it is taken, and a filter made of the same steps is the same filter.
A device that dies before it stored `Ended` goes on in the first phase, which is sound: nothing was accepted
by the second, whose first reservation comes after `Ended` in the journal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import UNITS_PER_NAT, Symbol
from hubbub.errors import BudgetError, ParameterError
from hubbub.filter import MAX_BUDGET, BayesianFilter, Likelihood, Query, Regression

Phase = Literal["advanced", "waiting", "pure", "stopped"]


@dataclass(frozen=True, slots=True)
class Reserved:
    """A step: a schedule was accepted.

    Attributes:
        queries: The schedule.
        tickets: One for each query.
    """

    queries: tuple[Query, ...]
    tickets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A step: an answer was recorded.

    Attributes:
        ticket: Of the query that it answers.
        symbol: The answer.
    """

    ticket: int
    symbol: Symbol


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A step: a query was cancelled that nobody will ever answer.

    Attributes:
        ticket: Of the query.
    """

    ticket: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A step: a coordinate was closed.

    Attributes:
        coordinate: Which.
    """

    coordinate: Hashable


@dataclass(frozen=True, slots=True)
class Ended:
    """A step: a schedule did not fit the first phase, and so ended it."""


Step = Reserved | Recorded | Cancelled | Closed | Ended
"""A change of state. Any refusal but that of `Ended` changes nothing."""


def _no_journal(step: Step) -> None:
    """Keep nothing."""


class ApproximateFilter:
    """A filter that keeps a record's whole life (epsilon, delta)-private.

    All channels are pure; their own delta is 0. Decisions depend on channels and recorded symbols alone, and
    the journal's steps in their order give the same state again.

    >>> from hubbub import mechanisms
    >>> accountant, channel = ApproximateFilter(1.0, delta=1e-5), mechanisms.grr(2, epsilon=0.01)
    >>> sum(accountant.reserve("colour", channel) is not None for _ in range(1000)), accountant.phase
    (416, 'waiting')
    """

    def __init__(
        self, epsilon: float, *, delta: float, journal: Callable[[Step], object] = _no_journal
    ) -> None:
        """Start without queries.

        Args:
            epsilon: Nats, above 0 and at most MAX_BUDGET.
            delta: In 0 < delta < 1.
            journal: Called with every step right after it was taken; a step should be stored before anything
                that depends on it leaves the device.

        Raises:
            ParameterError: Epsilon or delta is not such a number.
        """
        pure = BayesianFilter(epsilon)
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0.0 < delta < 1.0:
            raise ParameterError(f"delta must be above 0 and below 1, got {delta!r}")
        self._epsilon, self._delta = pure.budget, float(delta)
        self._limit = pure.limit
        self._room = _squares(self._epsilon, self._delta)
        self._squares = 0
        self._phase: Phase = "advanced"
        self._account = BayesianFilter(MAX_BUDGET)
        self._journal = journal

    @classmethod
    def replayed(
        cls,
        steps: Iterable[Step],
        epsilon: float,
        *,
        delta: float,
        journal: Callable[[Step], object] = _no_journal,
    ) -> Self:
        """Return the filter that earlier steps led to; its journal is called with later ones only.

        Args:
            steps: All steps of a filter of this epsilon and delta, oldest first.
            epsilon: As for a new one.
            delta: As for a new one.
            journal: As for a new one.

        Raises:
            ParameterError: Epsilon or delta is not a number for a filter, or a step's query cannot be asked.
            BudgetError: A step does not follow from those before it.
        """
        made = cls(epsilon, delta=delta)
        for step in steps:
            made._reapply(step)
        made._journal = journal
        return made

    @property
    def epsilon(self) -> float:
        """The epsilon that holds but for delta, nats."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The probability with which that epsilon may not hold."""
        return self._delta

    @property
    def phase(self) -> Phase:
        """The phase: "advanced", "waiting" for its last answers, "pure", or "stopped" for good."""
        return self._phase

    @property
    def loss(self) -> float:
        """The realised loss, nats; in the first phase it may pass `epsilon`."""
        return self._account.loss

    @property
    def pending(self) -> tuple[int, ...]:
        """Tickets that are reserved and not recorded, oldest first."""
        return self._account.pending

    def reserve(
        self,
        coordinate: Hashable,
        channel: Likelihood | Regression,
        *,
        mapping: NDArray[np.integer[Any]] | None = None,
    ) -> int | None:
        """Return `reserve_all` of one query."""
        tickets = self.reserve_all([Query(coordinate, channel, mapping)])
        return None if tickets is None else tickets[0]

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:
        """Set aside a whole schedule, or refuse it; the first refusal ends the first phase.

        Args:
            queries: Every answer that the schedule asks for.

        Returns:
            One ticket per query, in their order; None if the schedule does not fit.

        Raises:
            ParameterError: As for `BayesianFilter.reserve_all`; nothing has changed.
        """
        if self._phase == "advanced":
            squares = self._squares + sum(_largest(query) ** 2 for query in queries)
            # Fitting or not, it must be a schedule that could be asked.
            tickets = self._account.reserve_all(queries) if squares <= self._room else None
            if tickets is not None:
                self._squares = squares
                self._journal(Reserved(tuple(queries), tickets))
                return tickets
            self._account.check(queries)
            self._end()
        tickets = self._account.reserve_all(queries) if self._phase == "pure" else None
        if tickets is not None:
            self._journal(Reserved(tuple(queries), tickets))
        return tickets

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Take in one answer, as `BayesianFilter.record`."""
        self._account.record(ticket, symbol)
        self._close_phase()
        self._journal(Recorded(ticket, symbol))

    def cancel(self, ticket: int) -> None:
        """Void a ticket, as `BayesianFilter.cancel`; in the first phase its square stays counted."""
        self._account.cancel(ticket)
        self._close_phase()
        self._journal(Cancelled(ticket))

    def close(self, coordinate: Hashable) -> None:
        """Settle a coordinate, as `BayesianFilter.close`; what it forfeits counts at its worst for good."""
        self._account.close(coordinate)
        self._close_phase()
        self._journal(Closed(coordinate))

    def _end(self) -> None:
        self._phase = "waiting"
        self._close_phase()
        self._journal(Ended())

    def _reapply(self, step: Step) -> None:
        match step:
            case Recorded(ticket, symbol):
                self.record(ticket, symbol)
            case Cancelled(ticket):
                self.cancel(ticket)
            case Closed(coordinate):
                self.close(coordinate)
            case Ended():
                if self._phase != "advanced":
                    raise BudgetError("the first phase must end once, got a second end")
                self._end()
            case Reserved(queries, tickets):
                phase = self._phase
                if self.reserve_all(queries) != tickets or self._phase != phase:
                    raise BudgetError(f"a step must follow from those before it, got tickets {tickets}")

    def _close_phase(self) -> None:
        if self._phase != "waiting" or self._account.pending:
            return
        if self._account.restrict(self._limit):
            self._phase = "pure"
        else:
            self._phase = "stopped"


def _largest(query: Query) -> int:
    """Return the query's epsilon in units, rounded up."""
    channel = query.channel
    return channel.worst if isinstance(channel, Regression) else channel.blocks().largest


def _squares(epsilon: float, delta: float) -> int:
    """Return the largest sum of squares, in squared units, that the first phase allows.

    With L = ln(1/delta), sqrt(2 L S) + S/2 <= epsilon if and only if
    S <= (sqrt(2 L + 2 epsilon) - sqrt(2 L))^2.
    """
    context = Context(prec=60, rounding=ROUND_FLOOR)
    double = context.multiply(Decimal(-2), context.ln(Decimal(delta)))
    more = context.add(double, Decimal(2) * Decimal(epsilon))
    root = context.subtract(context.sqrt(more), context.sqrt(double))
    # Each operation is off by one unit of its 60th digit at most; sixteen digits of margin are plenty.
    safe = Fraction(root) * (1 - Fraction(1, 10**44))
    return math.floor(safe * safe * UNITS_PER_NAT * UNITS_PER_NAT)
