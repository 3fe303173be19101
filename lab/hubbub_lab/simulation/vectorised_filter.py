"""The privacy ledgers of many simulated devices at once, as columns.

Every number comes from `hubbub.filter.BayesianFilter` itself: devices whose answers on a coordinate, or
on coordinates that a query has joined, are the same have the same state there, so the filter is asked once
for each different run of answers. Its results are whole units of 2^-40 nats, exact in float64, so sums over
coordinates are exact in any order, and a device's decisions and totals are those that an agent with the same
answers would come to.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import UNITS_PER_NAT, Channel, Symbol
from hubbub.errors import BudgetError
from hubbub.filter import MAX_BUDGET, BayesianFilter, Joint, Query
from hubbub.mechanisms import LocalHashing

_WAITING: Final = -1
_ABSENT: Final = -2

Floats = NDArray[np.float64]


@dataclass(slots=True)
class _Component:
    """One coordinate of every device, or several that queries have joined.

    Attributes:
        keys: Its coordinates.
        queries: What was reserved on them, oldest first.
        answers: Symbol of every device for each query, shape (n,), int64; or _WAITING, or _ABSENT: not asked.
        sets: The packed sets that a query's symbols number, where it has such; else None.
        loss: Realised loss of every device, shape (n,).
        worst: The same with what is pending at its worst.
    """

    keys: tuple[Hashable, ...]
    queries: list[Query]
    answers: list[NDArray[np.int64]]
    sets: list[list[bytes] | None]
    loss: Floats
    worst: Floats


class VectorisedFilter:
    """The ledgers of n devices with one lifetime budget each.

    Args:
        devices: n, >= 1.
        budget: Lifetime epsilon of every device.

    Raises:
        ParameterError: If the budget is not one.
    """

    def __init__(self, devices: int, *, budget: float) -> None:
        self._scratch = BayesianFilter(MAX_BUDGET)
        self._uses = 0
        # The agent's filter compares whole units with the budget's whole units; so does this.
        self._limit = math.floor(Fraction(BayesianFilter(budget).budget) * UNITS_PER_NAT) / UNITS_PER_NAT
        self._components: dict[Hashable, _Component] = {}
        # One answer on a coordinate of its own is by far the commonest case, and repeats in every round.
        self._single: dict[tuple[int, int, object], tuple[float, float, Query]] = {}
        self._holds: dict[int, tuple[NDArray[np.int64], Query]] = {}
        self._zero = np.zeros(devices)
        self.loss: Floats = np.zeros(devices)
        self.committed: Floats = np.zeros(devices)

    def reserve_all(self, queries: Sequence[Query], among: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Reserve a whole schedule on each device, and return which devices could.

        Args:
            queries: Every answer that the schedule asks for, none on a coordinate of another.
            among: Devices that ask, shape (n,).

        Returns:
            Shape (n,), bool.
        """
        asking = np.where(among, _WAITING, _ABSENT).astype(np.int64)
        proposal: list[tuple[Query, list[_Component], Floats]] = []
        extra = np.zeros_like(self.committed)
        fresh: dict[tuple[int, int], Floats] = {}
        for query in queries:
            parts = self._parts(query)
            if not parts:
                key = (id(query.channel), id(query.mapping))
                if key not in fresh:
                    fresh[key] = self._evaluate([query], [asking], [None])[1]
                worst = fresh[key]
                extra += worst
            else:
                worst = self._evaluate(
                    [*(each for part in parts for each in part.queries), query],
                    [*(each for part in parts for each in part.answers), asking],
                    [*(each for part in parts for each in part.sets), None],
                )[1]
                extra += worst - sum(part.worst for part in parts)
            proposal.append((query, parts, worst))
        accepted: NDArray[np.bool_] = among & (self.committed + extra <= self._limit)
        column = np.where(accepted, _WAITING, _ABSENT).astype(np.int64)
        self.committed += np.where(accepted, extra, 0.0)
        shared: dict[int, Floats] = {}
        for query, parts, worst in proposal:
            kept = shared.get(id(worst))  # every round of one survey shares one array
            if kept is None:
                kept = np.where(accepted, worst, sum((part.worst for part in parts), start=self._zero))
                shared[id(worst)] = kept
            joined = _Component(
                tuple(dict.fromkeys((*(key for part in parts for key in part.keys), *query.keys))),
                [*(each for part in parts for each in part.queries), query],
                [*(each for part in parts for each in part.answers), column],
                [*(each for part in parts for each in part.sets), None],
                sum((part.loss for part in parts), start=self._zero),
                kept,
            )
            self._components.update(dict.fromkeys(joined.keys, joined))
        return accepted

    def reserve_rounds(
        self, query: Query, units: int, most: int, drawn: NDArray[np.intp], among: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Reserve rounds of a survey, each on a fresh coordinate of its own, and return which devices could.

        Nothing else is ever asked there, so that what a round costs adds: no coordinate is kept.

        Args:
            query: One of the rounds.
            units: What one of them is decided to take at its worst, as `round_units` says.
            most: How many rounds each device must have room for.
            drawn: How many it reserves then, shape (n,), at most `most`.
            among: Devices that ask, shape (n,).
        """
        room: NDArray[np.bool_] = self.committed + most * (units / UNITS_PER_NAT) <= self._limit
        accepted = among & room
        self.committed += np.where(accepted, drawn * self._single_answer(query, _WAITING)[1], 0.0)
        return accepted

    def record_round(
        self, query: Query, devices: NDArray[np.intp], symbols: NDArray[np.unsignedinteger]
    ) -> None:
        """Replace what was set aside for a round of some devices by what their answers realised.

        Args:
            query: The round's.
            devices: Which devices, shape (k,), none twice, each with a round reserved.
            symbols: Their answers, as in `record`.
        """
        sets = None if symbols.ndim == 1 else [row.tobytes() for row in symbols]
        column = symbols.astype(np.int64) if sets is None else np.arange(len(symbols))
        loss, worst = self._evaluate([query], [column], [sets])
        self.loss[devices] += loss
        self.committed[devices] += worst - self._single_answer(query, _WAITING)[1]

    @property
    def headroom(self) -> float:
        """The most that any device has left, nats."""
        return float(self._limit - self.committed.min())

    def record(
        self,
        query: Query,
        devices: NDArray[np.intp],
        symbols: NDArray[np.unsignedinteger],
        *,
        last: bool,
    ) -> None:
        """Replace what was set aside for one answer of some devices by what it realised.

        Args:
            query: As it was reserved: the same coordinate and channel.
            devices: Which devices, shape (k,), none twice.
            symbols: Their answers, shape (k,), or packed sets, shape (k, bytes of one).
            last: Whether this coordinate is never asked again, so that only its totals need be kept.
        """
        state = self._components[query.keys[0]]
        index = next(i for i, known in enumerate(state.queries) if known.channel is query.channel)
        column = state.answers[index].copy()
        if (column[devices] != _WAITING).any():
            raise BudgetError("an answer must consume a reservation of its device")
        if symbols.ndim == 2:
            sets = state.sets[index] = state.sets[index] or []
            column[devices] = len(sets) + np.arange(len(symbols))
            sets += [row.tobytes() for row in symbols]
        else:
            column[devices] = symbols
        state.answers[index] = column
        loss, worst = self._evaluate(state.queries, state.answers, state.sets)
        self.loss += loss - state.loss
        self.committed += worst - state.worst
        state.loss, state.worst = loss, worst
        if last and not (column == _WAITING).any():
            for key in state.keys:
                del self._components[key]

    def _parts(self, query: Query) -> list[_Component]:
        """Return the components that a query reads, none twice."""
        found = (self._components.get(key) for key in query.keys)
        return list({id(part): part for part in found if part is not None}.values())

    def _evaluate(
        self,
        queries: Sequence[Query],
        answers: Sequence[NDArray[np.int64]],
        sets: Sequence[list[bytes] | None],
    ) -> tuple[Floats, Floats]:
        """Return loss and committed of every device on one component, shape (n,) each."""
        if len(queries) == 1:
            different, inverse = np.unique(answers[0], return_inverse=True)
            found = [self._single_answer(queries[0], _named(each, sets[0])) for each in different.tolist()]
        else:
            rows, inverse = np.unique(np.stack(answers, axis=1), axis=0, return_inverse=True)
            found = [
                self._ask(queries, [_named(each, known) for each, known in zip(row, sets, strict=True)])
                for row in rows.tolist()
            ]
        table = np.array(found, dtype=np.float64).reshape(-1, 2)
        where = inverse.ravel()
        return table[where, 0], table[where, 1]

    def _single_answer(self, query: Query, symbol: Symbol) -> tuple[float, float]:
        shape: object = symbol
        if isinstance(symbol, bytes):
            # Hardly two sets are equal, but a lone answer costs what its extreme weights are apart.
            weights = cast(Channel, query.channel).column(symbol)
            reached = weights if query.mapping is None else weights[query.mapping]
            shape = (int(reached.min()), int(reached.max()))
        elif symbol >= 0 and isinstance(query.channel, LocalHashing):
            # So does a hash: whether its bucket holds some inputs, and all, is known of all symbols at once.
            channel = query.channel
            if (known_of := self._holds.get(id(channel))) is None:
                held = channel.held(np.ones(channel.inputs, dtype=np.bool_))
                known_of = self._holds[id(channel)] = ((held > 0) + 2 * (held < channel.inputs), query)
            shape = ("holds", int(known_of[0][symbol]))
        key = (id(query.channel), id(query.mapping), shape)
        known = self._single.get(key)
        if known is None:
            known = self._single[key] = (*self._ask([query], [symbol]), query)  # keeps the ids in use
        return known[:2]

    def _ask(self, queries: Sequence[Query], symbols: Iterable[Symbol]) -> tuple[float, float]:
        """Return loss and committed of one run of answers, on fresh coordinates of a filter kept for that."""
        taken = [(query, symbol) for query, symbol in zip(queries, symbols, strict=True) if symbol != _ABSENT]
        if not taken:
            return 0.0, 0.0
        for _ in range(2):
            scratch = self._scratch
            loss, committed = scratch.loss, scratch.committed
            self._uses += 1
            tickets = scratch.reserve_all(
                [Query(self._fresh(query), query.channel, query.mapping) for query, _ in taken]
            )
            if tickets is not None:
                for ticket, (_, symbol) in zip(tickets, taken, strict=True):
                    if symbol != _WAITING:
                        scratch.record(ticket, symbol)
                return scratch.loss - loss, scratch.committed - committed
            self._scratch = BayesianFilter(MAX_BUDGET)  # the old one is full
        return math.inf, math.inf  # beyond any budget there is

    def _fresh(self, query: Query) -> Hashable:
        """Return a query's coordinate under a name that the filter has not met."""
        names = [(self._uses, key) for key in query.keys]
        return names[0] if len(names) == 1 else Joint(*names)


def _named(symbol: int, sets: list[bytes] | None) -> Symbol:
    """Return the symbol itself, where it is the number of a set."""
    return symbol if sets is None or symbol < 0 else sets[symbol]
