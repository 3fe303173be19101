"""The Bayesian privacy filter: accepts queries about a record while no run of answers can exceed its budget.

The object of privacy is the whole record of one device's owner; two records are neighbours whatever they
differ in. The guarantee: whatever the querier asks, and however it adapts to what it has seen, any transcript
of accepted queries is at most e^budget times as probable under one record as under another (Pan, "Knowledge
gain as privacy loss in local privacy accounting", Corollary 4.1, extended to queries that are accepted and
not yet answered).

A *coordinate* is one stored value that channels read, for example a pinned attribute, or one round's draw of
a changing one. Recorded answers on a coordinate merge into one likelihood l(x) = sum of ln w_i(x, y_i); the
losses of different coordinates add. With D_i the max-divergence of a pending query i, the filter keeps

    G = sum over coordinates of max_{x, x'} [ l(x) - l(x') + sum over its pending queries of D_i(x, x') ]

and reserves a query only if G stays within the budget. G is not a bound of the worst case, it is the worst
case: answers are drawn independently, so that all pending ones can reach their divergence for the same pair.

All numbers are whole quanta of 2^-40 nats, in integers. With L_i(x, y) = floor(2^40 ln w_i(x, y)) in place of
the logarithm, with D_i rounded up, and with one quantum for every query ever reserved,

    committed = queries + sum over coordinates of max_{x, x'} [
        sum over recorded ones of (L_i(x, y_i) - L_i(x', y_i)) + sum over pending ones of D_i(x, x') ]

*It is never below the truth.* 2^40 ln(w/w') < L - L' + 1, because a floor falls short by less than one: the
quantum of a recorded query covers its rounding, and D_i covers its own.

*Recording an answer never raises it.* L - L' < 2^40 ln(w/w') + 1 <= D + 1 as real numbers, and L - L' and D
are integers, so L_i(x, y) - L_i(x', y) <= D_i(x, x') for every pair and symbol. Putting the left side in the
place of the right lowers or keeps every term of the maximum, and the number of queries stays. What the answer
did not realise is free again at once.

*It exceeds the truth by less than two quanta a query for structured channels, three for dense ones.* Compiled
channels stay 16 quanta (2^-36) below the epsilon they declare, so declared epsilons that add up to the budget
fit it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.divergence import MAX_BLOCKS, QUANTA_PER_NAT, BlockDivergence, log_floor
from hubbub.errors import BudgetError, ParameterError

MAX_BUDGET: Final = 4096.0
"""Nats. Below it every quantity is an exact float64, and no sum of accepted divergences overflows int64."""

_REMEMBERED: Final = 64
"""Divergences kept by channel and mapping, so that a step does not compute them again."""


class Likelihood(Protocol):
    """What the filter reads of a channel; `hubbub.channel.Channel` is one."""

    @property
    def inputs(self) -> int:
        """K, how many inputs there are."""

    def column(self, symbol: int, /) -> NDArray[np.int64]:
        """Weights of a symbol for every input, shape (K,), int64, >= 1; ParameterError if unknown."""

    def blocks(self) -> BlockDivergence:
        """The max-divergence of every pair of inputs, rounded up."""


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One answer that a survey asks for.

    Attributes:
        coordinate: Names the stored value that the channel reads. Queries share a coordinate only if they
            read the same stored value: sharing it wrongly understates the loss.
        channel: The channel that will draw the answer.
        mapping: Input of every value of the coordinate's domain, shape (D,), integers in 0..K-1. None: the
            domain is the channel's inputs. A read-only array is used as it is, a writable one is copied.
    """

    coordinate: Hashable
    channel: Likelihood
    mapping: NDArray[np.integer[Any]] | None = None


@dataclass(slots=True)
class _Coordinate:
    """The state of one coordinate.

    Attributes:
        size: D, values of its domain.
        waiting: How many of its queries are pending.
        reserved: The sum of their divergences; None if there are none.
        scores: The sum of the recorded L_i, shape (D,), int64, shifted to a largest of 0; None before any.
        answer: Instead of `scores`, the only answer, as it came: most coordinates see one in their life, and
            an array for each would add up over the years.
        loss: The spread of the recorded L_i, quanta.
        worst: The maximum of the formula above, quanta.
    """

    size: int
    waiting: int = 0
    reserved: BlockDivergence | None = None
    scores: NDArray[np.int64] | None = None
    answer: tuple[Query, int] | None = None
    loss: int = 0
    worst: int = 0

    def recorded(self) -> NDArray[np.int64] | None:
        """The recorded log-likelihood over the domain, shape (D,), int64; None before any answer."""
        if self.answer is not None:
            self.scores, self.answer = _log_likelihood(*self.answer), None
        return self.scores


class BayesianFilter:
    """Decides which queries one record may still answer, for its whole life.

    Its decisions depend on channels and recorded symbols alone, never on a value, and are the same on every
    machine: a ledger that repeats the accepted `reserve_all` and `record` calls in order rebuilds the same
    state and gets the same tickets, 0, 1, 2 and so on. Refusals leave no trace.

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

    def __init__(self, budget: float) -> None:
        """Opens an account.

        Args:
            budget: The lifetime epsilon of the record, nats, above 0 and at most MAX_BUDGET.

        Raises:
            ParameterError: The budget is not such a number.
        """
        if not (isinstance(budget, int | float) and 0 < budget <= MAX_BUDGET):
            raise ParameterError(f"budget must be above 0 and at most {MAX_BUDGET}, got {budget!r}")
        self._budget = float(budget)
        self._limit = math.floor(Fraction(self._budget) * QUANTA_PER_NAT)
        self._coordinates: dict[Hashable, _Coordinate] = {}
        self._pending: dict[int, tuple[Query, BlockDivergence]] = {}
        self._tickets = 0
        self._loss = 0
        self._worst = 0
        self._known: dict[tuple[int, int], tuple[Query, BlockDivergence]] = {}

    @property
    def budget(self) -> float:
        """The lifetime epsilon, nats."""
        return self._budget

    @property
    def loss(self) -> float:
        """An upper bound, tight to a quantum an answer, of the realised loss: nats, at most `committed`."""
        return (self._loss + self._tickets - len(self._pending)) / QUANTA_PER_NAT

    @property
    def committed(self) -> float:
        """The loss if every pending query gets its worst answer: nats, at most the budget."""
        return (self._worst + self._tickets) / QUANTA_PER_NAT

    @property
    def headroom(self) -> float:
        """The budget less what is committed, nats: any query of this epsilon or less will be accepted."""
        return (self._limit - self._worst - self._tickets) / QUANTA_PER_NAT

    @property
    def pending(self) -> tuple[int, ...]:
        """Tickets that are reserved and not recorded, oldest first."""
        return tuple(self._pending)

    def reserve(
        self,
        coordinate: Hashable,
        channel: Likelihood,
        *,
        mapping: NDArray[np.integer[Any]] | None = None,
    ) -> int | None:
        """Sets aside what one answer could cost at worst.

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
        """Sets aside what a whole schedule could cost at worst, or nothing of it.

        Args:
            queries: Every answer that the schedule asks for.

        Returns:
            One ticket per query, in their order; None if the schedule does not fit, and nothing has changed.

        Raises:
            ParameterError: A mapping is not one of the channel's inputs, or a coordinate's domain has another
                size than it had before; nothing has changed.
        """
        pending = self._prepared(queries)
        trial: dict[Hashable, BlockDivergence] = {}
        for index, (query, divergence) in enumerate(pending):
            reserved = trial.get(query.coordinate)
            if reserved is None and query.coordinate in self._coordinates:
                reserved = self._coordinates[query.coordinate].reserved
            if reserved is None:
                trial[query.coordinate] = divergence
                continue
            total, part = reserved.plus(divergence)
            # Recorded answers can speak against a pair by the budget at most. This also bounds every integer.
            if total.largest > 2 * self._limit:
                return None
            trial[query.coordinate] = total
            pending[index] = query, part

        worst = {}
        for coordinate, total in trial.items():
            state = self._coordinates.get(coordinate)
            worst[coordinate] = total.worst(None if state is None else state.recorded())
        before = sum(self._coordinates[key].worst for key in worst if key in self._coordinates)
        after = self._worst - before + sum(worst.values())
        if after + self._tickets + len(pending) > self._limit:
            return None

        for coordinate, total in trial.items():
            state = self._coordinates.setdefault(coordinate, _Coordinate(total.inputs))
            state.reserved, state.worst = total, worst[coordinate]
        tickets = tuple(range(self._tickets, self._tickets + len(pending)))
        for ticket, (query, divergence) in zip(tickets, pending, strict=True):
            self._coordinates[query.coordinate].waiting += 1
            self._pending[ticket] = query, divergence
        self._worst = after
        self._tickets += len(pending)
        return tickets

    def record(self, ticket: int, symbol: int) -> None:
        """Replaces what was set aside for one answer by what the answer realised; never raises `committed`.

        Args:
            ticket: From `reserve` or `reserve_all`; consumed by this call.
            symbol: The answer that was sent, in 0..M-1.

        Raises:
            BudgetError: The ticket was not issued by this filter, or is already consumed.
            ParameterError: The symbol is not one of the channel's, or the channel's divergence is below its
                own likelihood. The ticket is not consumed.
        """
        held = self._pending.get(ticket)
        if held is None:
            raise BudgetError(f"a ticket must be reserved and not yet recorded, got {ticket!r}")
        query, divergence = held
        state = self._coordinates[query.coordinate]
        earlier = state.recorded()
        scores = _log_likelihood(query, symbol)
        if earlier is not None:
            scores += earlier
        scores -= scores.max()
        loss = worst = -int(scores.min())
        rest = None
        if state.waiting > 1 and state.reserved is not None:
            rest = state.reserved.without(divergence)
            worst = rest.worst(scores)
        if worst > state.worst:
            raise ParameterError(
                f"a channel's divergence must bound its likelihood, got {worst - state.worst} quanta above it"
            )

        self._loss += loss - state.loss
        self._worst += worst - state.worst
        state.waiting -= 1
        state.reserved, state.loss, state.worst = rest, loss, worst
        if earlier is None and rest is None:
            state.answer = query, symbol
        else:
            state.scores = scores
        del self._pending[ticket]

    def _prepared(self, queries: Sequence[Query]) -> list[tuple[Query, BlockDivergence]]:
        """The queries with mappings that nobody can change, and their divergences over the domain."""
        prepared: list[tuple[Query, BlockDivergence]] = []
        sizes: dict[Hashable, int] = {}
        seen: dict[tuple[int, int], tuple[Query, BlockDivergence]] = {}
        for query in queries:
            # Identities are safe as keys: `queries` and `_known` keep the objects alive.
            key = id(query.channel), id(query.mapping)
            found = self._known.get(key) or seen.get(key)
            if found is None:
                found = seen[key] = _over_domain(query)
                if found[0] is query:
                    self._remember(key, found)
            model, divergence = found
            state = self._coordinates.get(query.coordinate)
            size = sizes.setdefault(query.coordinate, divergence.inputs if state is None else state.size)
            if size != divergence.inputs:
                raise ParameterError(
                    f"the domain of a coordinate must keep its {size} values, got {divergence.inputs}"
                )
            prepared.append((Query(query.coordinate, query.channel, model.mapping), divergence))
        return prepared

    def _remember(self, key: tuple[int, int], found: tuple[Query, BlockDivergence]) -> None:
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = found


def _over_domain(query: Query) -> tuple[Query, BlockDivergence]:
    """The query, with a copy of its mapping if that could change, and its divergence over the domain."""
    divergence = query.channel.blocks()
    if query.mapping is not None:
        mapping = query.mapping
        if not _is_frozen(mapping):
            mapping = np.array(mapping)
            mapping.setflags(write=False)
            query = Query(query.coordinate, query.channel, mapping)
        divergence = divergence.pulled_back(mapping)
    if divergence.blocks > MAX_BLOCKS:
        divergence = divergence.coarsened()
    return query, divergence


def _is_frozen(array: object) -> bool:
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        if array.base is None or isinstance(array.base, bytes):
            return True
        array = array.base
    return False


def _log_likelihood(query: Query, symbol: int) -> NDArray[np.int64]:
    """L(x, symbol) over the query's domain, shape (D,), int64, quanta; a new array."""
    logs = log_floor(query.channel.column(symbol))
    if query.mapping is None:
        return logs
    mapped: NDArray[np.int64] = logs[query.mapping]
    return mapped
