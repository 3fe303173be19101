"""The grouping of a schedule's queries: the components of one record, and how queries join them.

Coordinates that one query reads together become one component, and so does everything that shares a
coordinate with them. Which components a schedule would make is worked out here without making them: the
filter decides first.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hubbub.channels.divergence import Detail
from hubbub.errors import ParameterError
from hubbub.filter.component import Component
from hubbub.filter.query import MAX_CELLS, Joint, Model, Query, is_frozen
from hubbub.filter.regression.component import RegressionComponent
from hubbub.filter.regression.regression import Regression

_REMEMBERED: Final = 64
"""Queries kept by channel and mapping, so that a step does not work their divergence out again."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """A stand-in for coordinates whose product is too large to join: their joint queries stand alone."""

    coordinates: tuple[Hashable, ...]


@dataclass(slots=True, eq=False)
class Group:
    """A group of queries of one schedule that fall into one component.

    Attributes:
        sizes: The coordinates of that component, with the sizes of their domains.
        members: Positions of the queries in the schedule.
        queries: The coordinates that each of them reads, and its model over them.
        before: The units committed by the components that it replaces.
    """

    sizes: dict[Hashable, int]
    members: list[int] = field(default_factory=list)
    queries: list[tuple[tuple[Hashable, ...], Model]] = field(default_factory=list)
    before: int = 0


@dataclass(slots=True, eq=False)
class RegressionGroup:
    """A group of regressions of one schedule that read the same numbers.

    Attributes:
        numbers: The numbers, known or new.
        members: Positions of the regressions in the schedule.
        queries: The regressions.
    """

    numbers: RegressionComponent
    members: list[int] = field(default_factory=list)
    queries: list[Regression] = field(default_factory=list)

    @property
    def key(self) -> Hashable:
        """The coordinate that names the numbers."""
        return self.numbers.keys[0]

    @property
    def is_searched(self) -> bool:
        """True if the numbers are asked about more than once: one answer has a closed form."""
        return len(self.queries) + len(self.numbers.pending) + len(self.numbers.answers) > 1


class Grouping:
    """The components of one record.

    Attributes:
        components: The component of every open coordinate.
        closed: Coordinates that no query may read any more.
    """

    def __init__(self, detail: Detail) -> None:
        """Start without coordinates.

        Args:
            detail: How finely divergences are kept.
        """
        self.components: dict[Hashable, Component | RegressionComponent] = {}
        self.closed: set[Hashable] = set()
        self._detail: Detail = detail
        self._known: dict[tuple[int, int], tuple[Query, Model]] = {}

    def sorted(self, queries: Sequence[Query]) -> tuple[list[Group], list[RegressionGroup]]:
        """Return the queries over finite domains by component, the regressions by their numbers.

        Raises:
            ParameterError: A mapping does not fit its channel, or a coordinate its domain, or it is closed; a
                regression does not name open numbers of its box by one coordinate.
        """
        return self._groups(queries), self._numbers(queries)

    def _groups(self, queries: Sequence[Query]) -> list[Group]:
        groups: dict[Hashable, Group] = {}
        seen: dict[tuple[int, int], tuple[Query, Model]] = {}
        for member, query in enumerate(queries):
            if isinstance(query.channel, Regression):
                continue
            model = self._model(query, seen)
            keys = query.keys
            own: dict[int, Group] = {}
            for key, size in zip(keys, model.shape, strict=True):
                group = self._group(groups, key, size)
                own[id(group)] = group
            cells = math.prod(size for group in own.values() for size in group.sizes.values())
            if len(own) > 1 and cells > MAX_CELLS:
                model = model.flattened  # a query over one value, the tuple of all
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

    def _numbers(self, queries: Sequence[Query]) -> list[RegressionGroup]:
        found: dict[Hashable, RegressionGroup] = {}
        for member, query in enumerate(queries):
            if not isinstance(query.channel, Regression):
                continue
            key, box = query.coordinate, query.channel.box
            if isinstance(key, Joint) or query.mapping is not None:
                raise ParameterError(
                    "a regression must name its numbers by one coordinate, without a mapping"
                )
            if key not in found:
                known = self.components.get(key)
                if key in self.closed or isinstance(known, Component):
                    raise ParameterError(f"a regression must read open numbers, got {key!r}")
                found[key] = RegressionGroup(known or RegressionComponent((key,), box, self._detail))
            group = found[key]
            if group.numbers.box != box:
                raise ParameterError(f"numbers must keep their box {group.numbers.box}, got {box}")
            group.members.append(member)
            group.queries.append(query.channel)
        return list(found.values())

    def join(self, group: Group, *, limit: int) -> Component | None:
        """Find the component of a group, a new one where several are joined; those stay as they are.

        Args:
            group: From `sorted`; its `before` is set here.
            limit: See `Component.propose`.

        Returns:
            The component to be, or None if its worst case cannot be represented within the limit.
        """
        parts = self.parts(group)
        group.before = sum([part.worst for part in parts])
        return parts[0] if len(parts) == 1 else Component.joined(parts, limit=limit)

    def alone(self, queries: Sequence[Query]) -> tuple[Component, Model] | None:
        """Return the place of a query whose coordinate is in use, by itself, and has its domain."""
        if len(queries) != 1:
            return None
        query = queries[0]
        component = self.components.get(query.coordinate)
        if not isinstance(component, Component) or isinstance(query.channel, Regression):
            return None
        model = self._model(query)
        return (component, model) if component.shape == model.shape else None

    def _model(self, query: Query, seen: dict[tuple[int, int], tuple[Query, Model]] | None = None) -> Model:
        """Return the model of a query over finite domains.

        `seen` keeps those that only this schedule may share.
        """
        # Identities are safe as keys: `seen` and `_known` keep the objects alive, a copy's are told apart.
        key = id(query.channel), id(query.mapping)
        found = self._known.get(key) or (seen.get(key) if seen else None)
        if (
            found is None
            or found[0].channel is not query.channel
            or found[0].mapping is not query.mapping
            or len(found[1].shape) != len(query.keys)
        ):
            found = query, Model.of(query, detail=self._detail)
            if seen is not None:
                seen[key] = found
            if query.mapping is None or is_frozen(query.mapping):
                self._remember(key, found)
        return found[1]

    def _remember(self, key: tuple[int, int], found: tuple[Query, Model]) -> None:
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = found

    def _group(self, groups: dict[Hashable, Group], key: Hashable, size: int) -> Group:
        group = groups.get(key)
        if group is None:
            if key in self.closed:
                raise ParameterError(f"a coordinate must be open to be queried, got {key!r}")
            component = self.components.get(key)
            if isinstance(component, RegressionComponent):
                raise ParameterError(f"numbers must be asked by regressions, got another query of {key!r}")
            if component is None:
                group = groups[key] = Group({key: size})
            else:
                group = Group(dict(zip(component.keys, component.shape, strict=True)))
                for other in component.keys:
                    groups[other] = group
        known = group.sizes[key]
        if known != size:
            raise ParameterError(f"the domain of a coordinate must keep its {known} values, got {size}")
        return group

    def parts(self, group: Group) -> list[Component]:
        """Return the components that a group joins; a coordinate that is new is one of its own."""
        if len(group.sizes) == 1:
            ((key, size),) = group.sizes.items()
            return [self._component(key, size)]
        parts: dict[int, Component] = {}
        for key, size in group.sizes.items():
            component = self._component(key, size)
            parts[id(component)] = component
        return list(parts.values())

    def _component(self, key: Hashable, size: int) -> Component:
        known = self.components.get(key)
        return known if isinstance(known, Component) else Component.fresh((key,), (size,))
