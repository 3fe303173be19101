"""One component of a record: coordinates that queries have joined, and what was asked and answered on them.

Its likelihood lives on the cells of the product of its coordinates' domains. Coordinates that no later query
will read can be closed: the most that they add, max over them of l, and the least, min over them, are kept
over the cells that remain, so two sums take the place of one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import BlockDivergence
from hubbub.channels.partition import Partition
from hubbub.channels.symbols import Symbol
from hubbub.errors import ParameterError
from hubbub.filter.log_likelihood import TOP, LogLikelihoodSum
from hubbub.filter.query import Model


class PendingQuery(NamedTuple):
    """A pending query.

    Attributes:
        keys: The coordinates that it reads, in the order of its model's axes.
        model: Over the domain of those coordinates.
        coarse: Whether `Component.reserved` has its largest divergence for every pair. What it has is worked
            out again when the query goes: arrays of all cells for each would add up.
    """

    keys: tuple[Hashable, ...]
    model: Model
    coarse: bool


class Proposal(NamedTuple):
    """A component with more queries, before anything has changed.

    Attributes:
        reserved: What would be reserved in all; None if nothing would be.
        queries: The pending queries as they would be kept.
        worst: What would be committed, units.
    """

    reserved: BlockDivergence | None
    queries: list[PendingQuery]
    worst: int


@dataclass(slots=True)
class Component:
    """A set of coordinates with their pending queries and their recorded likelihood.

    Attributes:
        keys: Its coordinates.
        shape: The sizes of their domains.
        pending: Its pending queries by ticket.
        reserved: The sum of their divergences over the cells; None if there are none.
        upper: The recorded log-likelihood, at most over what is closed; None before any answer.
        lower: The same, at least; the same object as `upper` where nothing is closed.
        answer: Instead of both, the only answer, as it came: most coordinates see one in their life, and an
            array for each would add up over the years.
        loss: max upper - min lower, units.
        worst: max over pairs of upper - lower + reserved, units.
    """

    keys: tuple[Hashable, ...]
    shape: tuple[int, ...]
    pending: dict[int, PendingQuery]
    reserved: BlockDivergence | None = None
    upper: LogLikelihoodSum | None = None
    lower: LogLikelihoodSum | None = None
    answer: tuple[Model, Symbol] | None = None
    loss: int = 0
    worst: int = 0

    @classmethod
    def fresh(cls, keys: Sequence[Hashable], shape: Sequence[int]) -> Component:
        """Return a component of coordinates on which nothing was asked yet."""
        return cls(tuple(keys), tuple(shape), {})

    @classmethod
    def joined(cls, parts: Sequence[Component], *, limit: int) -> Component | None:
        """Return several components as one: likelihoods add up over the product of their cells.

        Args:
            parts: Two or more without a common coordinate; they stay as they are.
            limit: See `propose`.

        Returns:
            The component, with all their queries; None if its worst case cannot be represented within the
            limit, which can only be where divergences had to be made coarser.
        """
        keys = tuple(key for part in parts for key in part.keys)
        shape = tuple(size for part in parts for size in part.shape)
        made = cls.fresh(keys, shape)
        scored = [part for part in parts if part.recorded() is not None]
        if scored:
            closed = any(part.upper is not part.lower for part in scored)
            made._hold(
                _outer(parts, [part._values(part.upper) for part in parts]),
                _outer(parts, [part._values(part.lower) for part in parts]) if closed else None,
            )
        queries = sorted((ticket, queries) for part in parts for ticket, queries in part.pending.items())
        return made if made._take(queries, limit) else None

    def without(self, key: Hashable, *, limit: int) -> Component | None:
        """Return this component after one of its coordinates is closed; it stays as it is.

        Args:
            key: One of several coordinates, which no pending query reads.
            limit: See `propose`.
        """
        axis = self.keys.index(key)
        made = Component.fresh(
            (*self.keys[:axis], *self.keys[axis + 1 :]), (*self.shape[:axis], *self.shape[axis + 1 :])
        )
        if self.recorded() is not None and self.upper is not None and self.lower is not None:
            made._hold(
                self.upper.values().reshape(self.shape).max(axis=axis).ravel(),
                self.lower.values().reshape(self.shape).min(axis=axis).ravel(),
            )
        return made if made._take(list(self.pending.items()), limit) else None

    def broadcast(self, keys: tuple[Hashable, ...], model: Model) -> Model:
        """Return a model over some of the coordinates, over all cells."""
        return model if keys == self.keys else model.broadcast(tuple(map(self.keys.index, keys)), self.shape)

    def propose(
        self, queries: Iterable[tuple[tuple[Hashable, ...], Model]], *, limit: int
    ) -> Proposal | None:
        """Return what would be reserved and committed with more queries.

        Args:
            queries: The coordinates that each reads, and its model over them.
            limit: Units. Recorded answers can speak against a pair by the budget at most, so a sum above
                twice the budget never fits; refusing it here keeps every integer within int64.

        Returns:
            For `reserve`; None if the sum of the divergences exceeds twice the limit.
        """
        total, proposed, own = self.reserved, [], self.keys
        for keys, model in queries:
            part = (model if keys is own else self.broadcast(keys, model)).divergence
            added = part
            if total is None:
                total = part
            else:
                total, added = total.plus(part)
                if total.largest > 2 * limit:
                    return None
            proposed.append(PendingQuery(keys, model, added is not part))
        return Proposal(total, proposed, self.worst_with(total))

    def worst_with(self, total: BlockDivergence | None) -> int:
        """Return the largest upper - lower + total over all pairs of cells, units."""
        if total is None:
            return self.loss
        upper = self.upper if self.answer is None else self.recorded()
        if upper is None or self.lower is None:
            return total.largest
        return upper.worst_with(total, self.lower)

    def recorded(self) -> LogLikelihoodSum | None:
        """Return the log-likelihood sum, made from the only answer if need be; None before any answer."""
        if self.answer is not None:
            model, symbol = self.answer
            self.upper = self.lower = LogLikelihoodSum(model.divergence.partition)
            self.upper.add(model, symbol)
            self.answer = None
        return self.upper

    def reserve(self, tickets: Iterable[int], proposal: Proposal) -> None:
        """Take in the queries of a proposal that was made from this component as it is."""
        for ticket, query in zip(tickets, proposal.queries, strict=True):
            self.pending[ticket] = query
        self.reserved, self.worst = proposal.reserved, proposal.worst

    def record(self, ticket: int, symbol: Symbol) -> None:
        """Replace the part of a pending query by what an answer realised.

        Raises:
            ParameterError: The symbol is not one of the channel's, or the channel's divergence is below its
                own likelihood; nothing has changed.
        """
        query = self.pending[ticket]
        model = self.broadcast(query.keys, query.model)
        earlier, lower = self.recorded(), self.lower
        upper = LogLikelihoodSum(model.divergence.partition) if earlier is None else earlier
        lower = upper if lower is None else lower
        scores = (upper,) if upper is lower else (upper, lower)
        for each in scores:
            each.add(model, symbol)
        loss = worst = upper.top - lower.bottom
        rest = None
        if len(self.pending) > 1 and self.reserved is not None:
            rest = self.reserved.without(_part(query, model))
            worst = upper.worst_with(rest, lower)
        if worst > self.worst:
            for each in scores:
                each.add(model, symbol, times=-1)
            raise ParameterError(
                f"a channel's divergence must bound its likelihood, got {worst - self.worst} units above it"
            )
        del self.pending[ticket]
        if upper.top > TOP:
            amount = -upper.top
            for each in scores:
                each.shift(amount)
        self.reserved, self.loss, self.worst = rest, loss, worst
        if earlier is None and rest is None and len(self.keys) == 1:
            self.answer = query.model, symbol
        else:
            self.upper, self.lower = upper, lower

    def worst_without(self, ticket: int) -> int:
        """Return what would be committed without a pending query; nothing changes."""
        if len(self.pending) == 1 or self.reserved is None:
            return self.loss
        query = self.pending[ticket]
        part = _part(query, self.broadcast(query.keys, query.model))
        return self.worst_with(self.reserved.without(part))

    def cancel(self, ticket: int) -> None:
        """Take out the part of a pending query that will never be answered; `worst` falls or stays."""
        query = self.pending.pop(ticket)
        rest = None
        if self.pending and self.reserved is not None:
            rest = self.reserved.without(_part(query, self.broadcast(query.keys, query.model)))
        self.reserved, self.worst = rest, self.worst_with(rest)

    def _values(self, scores: LogLikelihoodSum | None) -> NDArray[np.int64] | None:
        """Return one log-likelihood sum, shifted to a largest `upper` of 0, so that no sum overflows."""
        return None if scores is None or self.upper is None else scores.values() - self.upper.top

    def _hold(self, upper: NDArray[np.int64], lower: NDArray[np.int64] | None) -> None:
        whole, top = Partition.whole(upper.size), upper.max()
        self.upper = self.lower = LogLikelihoodSum.of(whole, upper - top)
        if lower is not None:
            self.lower = LogLikelihoodSum.of(whole, lower - top)
        self.loss = self.worst = self.upper.top - self.lower.bottom

    def _take(self, queries: list[tuple[int, PendingQuery]], limit: int) -> bool:
        """Reserve pending queries anew over these cells; False if their sum is beyond the limit."""
        proposal = self.propose([(each.keys, each.model) for _, each in queries], limit=limit)
        if proposal is None:
            return False
        self.reserve([ticket for ticket, _ in queries], proposal)
        return True


def _part(query: PendingQuery, model: Model) -> BlockDivergence:
    """Return what was added for a query, whose model over all cells is given."""
    return model.divergence.coarsened() if query.coarse else model.divergence


def _outer(parts: Sequence[Component], values: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64]:
    """Return the sum of scores over the product of the parts' cells, shape (D,)."""
    total = np.zeros(1, dtype=np.int64)
    for part, own in zip(parts, values, strict=True):
        size = math.prod(part.shape)
        total = (total[:, None] + (np.zeros(size, dtype=np.int64) if own is None else own)).ravel()
    return total
