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
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.component import Component
from hubbub.accounting.divergence import QUANTA_PER_NAT, BlockDivergence
from hubbub.accounting.numbers import Numbers
from hubbub.accounting.query import MAX_CELLS, Detail, Joint, Likelihood, Model, Query, is_frozen
from hubbub.accounting.regression import Regression
from hubbub.errors import BudgetError, ParameterError

MAX_BUDGET: Final = 4096.0
"""Nats. Below it every quantity is an exact float64, and no sum of accepted divergences overflows int64."""

_REMEMBERED: Final = 64
"""Queries kept by channel and mapping, so that a step does not work their divergence out again."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """In the place of coordinates whose product is too large to join: their joint queries stand alone."""

    coordinates: tuple[Hashable, ...]


@dataclass(slots=True, eq=False)
class _Group:
    """Queries of one schedule that fall into one component, and the coordinates of that component."""

    sizes: dict[Hashable, int]
    members: list[int]
    queries: list[tuple[tuple[Hashable, ...], Model]]


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

    _detail: ClassVar[Detail] = "pairs"

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
        self._components: dict[Hashable, Component | Numbers] = {}
        self._closed: set[Hashable] = set()
        self._pending: dict[int, Hashable] = {}
        self._tickets = 0
        self._loss = 0
        self._worst = 0
        self._known: dict[tuple[int, int], tuple[Query, Model]] = {}

    @property
    def budget(self) -> float:
        """The lifetime epsilon, nats."""
        return self._budget

    @property
    def limit(self) -> int:
        """The budget in whole quanta, rounded down: what `committed` is compared with."""
        return self._limit

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
        channel: Likelihood | Regression,
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

    def reserve_all(self, queries: Sequence[Query]) -> tuple[int, ...] | None:  # noqa: PLR0912 - one transaction
        """Sets aside what a whole schedule could cost at worst, or nothing of it.

        Args:
            queries: Every answer that the schedule asks for.

        Returns:
            One ticket per query, in their order; None if the schedule does not fit, and nothing has changed.

        Raises:
            ParameterError: A mapping is not one of the channel's inputs, or a coordinate's domain has another
                size than it had before; nothing has changed.
        """
        asked = self._finite(queries)
        numeric = self._numeric(queries) if len(asked) < len(queries) else {}
        models = self._models(asked)
        trial: list[tuple[_Group, Component, BlockDivergence | None, list[BlockDivergence], int]] = []
        after = self._worst
        for group in self._groups(asked, models):
            before = self._parts(group)
            if len(before) == 1 and len(before[0].keys) == len(group.sizes):
                component: Component | None = before[0]
            else:
                component = Component.joined(before, limit=self._limit)
            if component is None:
                return None
            found = component.total(group.queries, limit=self._limit)
            if found is None:
                return None
            worst = component.worst_with(found[0])
            for part in before:
                after -= part.worst
            after += worst
            trial.append((group, component, *found, worst))
        limit = self._limit - self._tickets - len(queries)
        if after > limit:
            return None
        # Numbers come last: their bound is worked out only as far as what the others leave asks for.
        bounds: list[tuple[Numbers, list[int], int]] = []
        for numbers, members in numeric.values():
            after -= numbers.worst
            regressions = [_regression(queries[member]) for member in members]
            worst = numbers.worst_with(regressions, limit - after, detail=self._detail)
            after += worst
            if after > limit:
                return None
            bounds.append((numbers, members, worst))

        first = self._tickets
        places: Sequence[int] = range(len(queries))
        if numeric:
            places = [member for member in places if not isinstance(queries[member].channel, Regression)]
            for numbers, members, worst in bounds:
                own = [first + member for member in members]
                numbers.reserve(own, [_regression(queries[member]) for member in members], worst)
                self._components[numbers.keys[0]] = numbers
                self._pending.update(dict.fromkeys(own, numbers.keys[0]))
        for group, component, total, parts, worst in trial:
            tickets = [first + places[member] for member in group.members]
            component.reserve(tickets, group.queries, parts, total, worst)
            for key in group.sizes:
                self._components[key] = component
        for group, *_ in trial:
            for member, (keys, _) in zip(group.members, group.queries, strict=True):
                self._pending[first + places[member]] = keys[0]
        self._worst = after
        self._tickets += len(queries)
        return tuple(range(first, self._tickets))

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
        key = self._pending.get(ticket, self)
        if key is self:
            raise BudgetError(f"a ticket must be reserved and not yet recorded, got {ticket!r}")
        component = self._components[key]
        loss, worst = component.loss, component.worst
        component.record(ticket, symbol)
        self._loss += component.loss - loss
        self._worst += component.worst - worst
        del self._pending[ticket]

    def check(self, queries: Sequence[Query]) -> None:
        """Raises what `reserve_all` would raise for these queries; changes nothing."""
        self._groups(asked := self._finite(queries), self._models(asked))
        self._numeric(queries)

    def restrict(self, limit: int) -> bool:
        """Lowers the budget to a number of quanta, if what is committed fits it.

        Args:
            limit: Quanta, at most the present limit.

        Returns:
            Whether it was lowered.
        """
        if limit > self._limit or self._worst + self._tickets > limit:
            return False
        self._limit, self._budget = limit, limit / QUANTA_PER_NAT
        return True

    def close(self, coordinate: Hashable) -> None:
        """Settles a coordinate that no later query will read; `loss` and `committed` stay what they are.

        A round that is over needs no likelihood any more. If it was joined with coordinates that go on, the
        best and the worst that it could contribute are kept over those; else only its numbers are. A pending
        query of a coordinate of its own is forfeited: it counts at its worst for good, its ticket is void.

        Args:
            coordinate: One that was reserved for and is not closed.

        Raises:
            BudgetError: A query that reads it together with others is pending.
            ParameterError: It is unknown, or closed already.
        """
        component = self._components.get(coordinate)
        if component is None:
            raise ParameterError(f"a coordinate must be in use to be closed, got {coordinate!r}")
        if isinstance(component, Numbers) or len(component.keys) == 1:
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
        self._closed.add(coordinate)

    def _models(self, queries: Sequence[Query]) -> list[Model]:
        """The model of every query, with a mapping that nobody can change."""
        models: list[Model] = []
        seen: dict[tuple[int, int], tuple[Query, Model]] = {}
        for query in queries:
            # Identities are safe as keys: `queries` and `_known` keep the objects alive.
            key = id(query.channel), id(query.mapping)
            found = self._known.get(key) or seen.get(key)
            if found is None or len(found[1].shape) != len(query.keys):
                found = seen[key] = query, Model.of(query, detail=self._detail)
                if _is_frozen(query.mapping):
                    self._remember(key, found)
            models.append(found[1])
        return models

    def _groups(self, queries: Sequence[Query], models: Sequence[Model]) -> list[_Group]:
        """The queries by the component that each falls into, if all of them are accepted."""
        if len(queries) == 1 and len(models[0].shape) == 1:  # by far the commonest: nothing to join
            query, model = queries[0], models[0]
            component = self._components.get(query.coordinate)
            if isinstance(component, Component) and component.shape == model.shape:
                return [_Group({query.coordinate: model.shape[0]}, [0], [(component.keys, model)])]
        groups: dict[Hashable, _Group] = {}
        for member, (query, model) in enumerate(zip(queries, models, strict=True)):
            keys = query.keys
            own: dict[int, _Group] = {}
            for key, size in zip(keys, model.shape, strict=True):
                group = self._group(groups, key, size)
                own[id(group)] = group
            cells = math.prod(size for group in own.values() for size in group.sizes.values())
            if len(own) > 1 and cells > MAX_CELLS:
                model = model.flat  # noqa: PLW2901 - a query over one value, the tuple of all
                keys = (_Apart(keys),)
                group = self._group(groups, keys[0], model.shape[0])
            else:
                group, *others = own.values()
                for other in others:
                    group.sizes.update(other.sizes)
                    group.members += other.members
                    group.queries += other.queries
                for key in group.sizes:
                    groups[key] = group
            group.members.append(member)
            group.queries.append((keys, model))
        distinct = {id(group): group for group in groups.values() if group.members}
        return list(distinct.values())

    def _group(self, groups: dict[Hashable, _Group], key: Hashable, size: int) -> _Group:
        group = groups.get(key)
        if group is None:
            if key in self._closed:
                raise ParameterError(f"a coordinate must be open to be queried, got {key!r}")
            component = self._components.get(key)
            if isinstance(component, Numbers):
                raise ParameterError(f"numbers must be asked by regressions, got another query of {key!r}")
            if component is None:
                group = groups[key] = _Group({key: size}, [], [])
            else:
                group = _Group(dict(zip(component.keys, component.shape, strict=True)), [], [])
                for other in component.keys:
                    groups[other] = group
        known = group.sizes[key]
        if known != size:
            raise ParameterError(f"the domain of a coordinate must keep its {known} values, got {size}")
        return group

    def _parts(self, group: _Group) -> list[Component]:
        """The components that a group joins; a coordinate that is new is one of its own."""
        if len(group.sizes) == 1:
            ((key, size),) = group.sizes.items()
            return [self._component(key, size)]
        parts: dict[int, Component] = {}
        for key, size in group.sizes.items():
            component = self._component(key, size)
            parts[id(component)] = component
        return list(parts.values())

    def _component(self, key: Hashable, size: int) -> Component:
        known = self._components.get(key)
        return known if isinstance(known, Component) else Component.fresh((key,), (size,))

    @staticmethod
    def _finite(queries: Sequence[Query]) -> Sequence[Query]:
        return [query for query in queries if not isinstance(query.channel, Regression)]

    def _numeric(self, queries: Sequence[Query]) -> dict[Hashable, tuple[Numbers, list[int]]]:
        """The regressions of a schedule by the numbers that they read; those may be new."""
        found: dict[Hashable, tuple[Numbers, list[int]]] = {}
        for member, query in enumerate(queries):
            if not isinstance(query.channel, Regression):
                continue
            key, box = query.coordinate, query.channel.box
            if isinstance(key, Joint) or query.mapping is not None:
                raise ParameterError(
                    "a regression must name its numbers by one coordinate, without a mapping"
                )
            known = found[key][0] if key in found else self._components.get(key)
            if key in self._closed or isinstance(known, Component):
                raise ParameterError(f"a regression must read open numbers, got {key!r}")
            numbers = Numbers((key,), box) if known is None else known
            if numbers.box != box:
                raise ParameterError(f"numbers must keep their box {numbers.box}, got {box}")
            found.setdefault(key, (numbers, []))[1].append(member)
        return found

    def _remember(self, key: tuple[int, int], found: tuple[Query, Model]) -> None:
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = found


def _regression(query: Query) -> Regression:
    assert isinstance(query.channel, Regression)  # noqa: S101 - only such members are listed
    return query.channel


def _is_frozen(mapping: object) -> bool:
    return mapping is None or is_frozen(mapping)
