"""A query as the filter sees it: the stored values that it reads, and its channel over their domain."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.divergence import MAX_BLOCKS, BlockDivergence, Detail, log_floor, log_floor_of
from hubbub.channels.partition import Partition
from hubbub.channels.symbols import SparseColumn, Symbol
from hubbub.errors import ParameterError
from hubbub.filter.regression.regression import Regression

MAX_CELLS: Final = 1 << 18
"""Combinations of values that joined coordinates may have: 2 MiB of likelihood, a few milliseconds a step."""

_FITTED: Final = 8
"""Partitions for which a query remembers where its columns fall."""


_BROADCAST_CELLS: Final = 1 << 20
"""Cells, and pairs of blocks, of the models over larger domains that are kept: 16 MiB."""

_SHORT: Final = 64
"""A run of so few cells is changed cell by cell where it is not made of whole blocks."""

FEW: Final = 4
"""The most blocks or cells that are listed and changed one by one, which is quicker than an array
operation."""

Places = list[int] | NDArray[np.intp]
"""Numbers of blocks or cells: a list of up to FEW, an array of more."""


class _RecentBroadcasts:
    """The models over larger domains that were made last, of all filters together.

    A pending query keeps its own model only: one over the cells of everything that it was joined with is two
    arrays of them, and hundreds of queries may wait.
    """

    def __init__(self) -> None:
        self._models: dict[tuple[Model, tuple[int, ...], tuple[int, ...]], Model] = {}
        self._cells = 0

    def get(self, model: Model, axes: tuple[int, ...], shape: tuple[int, ...]) -> Model | None:
        """Return what was put for a model, its axes and the shape; None if it is gone."""
        return self._models.get((model, axes, shape))

    def put(self, model: Model, axes: tuple[int, ...], shape: tuple[int, ...], made: Model) -> None:
        """Keep a model, and let go of all others where that would be more than _BROADCAST_CELLS."""
        cells = math.prod(shape) + made.divergence.blocks**2 + _SHORT
        if self._cells + cells > _BROADCAST_CELLS:
            self._models, self._cells = {}, 0
        self._models[model, axes, shape] = made
        self._cells += cells


class LikelihoodIncrements(NamedTuple):
    """The increments of an answer on a few cells; it adds nothing to all others.

    Attributes:
        blocks: Blocks of a partition all of whose cells get `lift`.
        cells: Single cells that get `lift`.
        lift: In units.
        extra: What the cells of the symbol's own input get on top, in units.
    """

    blocks: Places
    cells: Places
    lift: int
    extra: int


class Likelihood(Protocol):
    """The part of a channel that the filter reads; `hubbub.channels.channel.Channel` is one."""

    @property
    def inputs(self) -> int:
        """K, how many inputs there are."""

    def column(self, symbol: Any, /) -> NDArray[np.int64]:  # noqa: ANN401 - of whichever type it sends
        """Return the weights of a symbol for every input, shape (K,), int64, >= 1; refuse an unknown one."""

    def blocks(self) -> BlockDivergence:
        """Return the max-divergence of every pair of inputs, rounded up."""


@runtime_checkable
class SparseLikelihood(Protocol):
    """The sparse columns of a structured channel, with which a step does not look at every input."""

    def sparse_column(self, symbol: Any, /) -> tuple[SparseColumn, int]:  # noqa: ANN401 - the same
        """Return the weights of `column` as three numbers, and the symbol's own input, -1 for none.

        For input x, column(symbol)[x] is `true` at the symbol's own input, `near` where start <= x < stop,
        and `rest` elsewhere.

        Raises:
            ParameterError: If the symbol is unknown.
        """


@dataclass(frozen=True, slots=True, init=False)
class Joint:
    """Several coordinates that one query reads together.

    Attributes:
        coordinates: Two or more different ones, in the order of the axes of the query's mapping.

    Raises:
        ParameterError: There are fewer than two, or one occurs twice.
    """

    coordinates: tuple[Hashable, ...]

    def __init__(self, *coordinates: Hashable) -> None:
        if len(coordinates) < 2 or len(set(coordinates)) < len(coordinates):
            raise ParameterError(
                f"a joint query must read two or more different coordinates, got {coordinates}"
            )
        object.__setattr__(self, "coordinates", coordinates)


class Query(NamedTuple):
    """One answer that a survey asks for.

    Attributes:
        coordinate: Names the stored value that the channel reads, or is a `Joint` of several. Queries share a
            coordinate only if they read the same stored value: sharing it wrongly understates the loss.
        channel: The channel that will draw the answer. A `Regression` reads a box of numbers, which the
            coordinate names together; it has no mapping.
        mapping: Input of every value of the coordinate's domain, shape (D,), integers in 0..K-1. None: the
            domain is the channel's inputs. For a joint query it must be given, shape (D_1, ..., D_k), at most
            MAX_CELLS entries. A read-only array is used as it is, a writable one is copied.
    """

    coordinate: Hashable
    channel: Likelihood | Regression
    mapping: NDArray[np.integer[Any]] | None = None

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """The coordinates that it reads."""
        return self.coordinate.coordinates if isinstance(self.coordinate, Joint) else (self.coordinate,)


class Model:
    """A channel read through a mapping: likelihood and divergence over the domain of what it reads.

    Attributes:
        channel: The channel.
        mapping: Input of every cell of the domain, shape (D,), read-only; None for the channel's inputs.
        shape: The sizes of the coordinates that it reads, of product D.
        divergence: Max-divergence over the D cells, at most MAX_BLOCKS blocks.
        sparse: Whether the channel has sparse columns, of which `steps` makes increments.
    """

    def __init__(
        self,
        channel: Likelihood,
        mapping: NDArray[np.integer[Any]] | None,
        shape: tuple[int, ...] | None = None,
        *,
        detail: Detail = "pairs",
    ) -> None:
        self.channel = channel
        self.mapping = mapping
        divergence = channel.blocks()
        if mapping is not None:
            divergence = divergence.pulled_back(mapping)
        if divergence.blocks > MAX_BLOCKS or detail == "largest":
            divergence = divergence.coarsened()
        self._detail: Detail = detail
        self.divergence = divergence
        self.shape = (divergence.inputs,) if shape is None else shape
        self._sparse = channel.sparse_column if isinstance(channel, SparseLikelihood) else None
        self.sparse = self._sparse is not None
        self._values: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None
        self._fits: dict[int, tuple[Partition, dict[SparseColumn, LikelihoodIncrements | None]]] = {}

    @classmethod
    def of(cls, query: Query, *, detail: Detail = "pairs") -> Model:
        """Return the model of a query, with a copy of its mapping if that could change.

        Raises:
            ParameterError: The mapping is not one of the channel's inputs, or has another number of axes than
                the query has coordinates.
        """
        mapping, axes, channel = query.mapping, len(query.keys), query.channel
        if isinstance(channel, Regression):
            raise ParameterError("a regression must be accounted for by its box of numbers, not by cells")
        if mapping is None:
            if axes > 1:
                raise ParameterError(f"a query of {axes} coordinates must have a mapping, got none")
            return cls(channel, None, detail=detail)
        if not is_frozen(mapping):
            mapping = np.array(mapping)
            mapping.setflags(write=False)
        if mapping.ndim != axes:
            raise ParameterError(
                f"a mapping must have one axis per coordinate, {axes}, got shape {mapping.shape}"
            )
        if axes > 1 and mapping.size > MAX_CELLS:
            raise ParameterError(f"a joint mapping must have at most {MAX_CELLS} entries, got {mapping.size}")
        return cls(channel, mapping.reshape(-1), mapping.shape, detail=detail)

    @cached_property
    def flattened(self) -> Model:
        """The model over one axis, whose values are the tuples of what it reads."""
        return Model(self.channel, self.mapping, detail=self._detail)

    def broadcast(self, axes: tuple[int, ...], shape: tuple[int, ...]) -> Model:
        """Return the model over the cells of a larger domain, whose other axes it does not read.

        Args:
            axes: Where each of this model's axes is among those of the larger domain.
            shape: The sizes of the larger domain.
        """
        if len(axes) == len(shape) and axes == tuple(range(len(shape))):
            return self
        known = _BROADCAST.get(self, axes, shape)
        if known is None:
            size = math.prod(self.shape)
            flat = np.arange(size, dtype=np.intp) if self.mapping is None else self.mapping
            order = np.argsort(axes)
            spread = np.ones(len(shape), dtype=np.intp)
            spread[list(axes)] = self.shape
            cells = flat.reshape(self.shape).transpose(order).reshape(tuple(spread.tolist()))
            mapping = np.ascontiguousarray(np.broadcast_to(cells, shape)).reshape(-1)
            mapping.setflags(write=False)
            known = Model(self.channel, mapping, detail=self._detail)
            _BROADCAST.put(self, axes, shape, known)
        return known

    def log_likelihood(self, symbol: Symbol) -> NDArray[np.int64]:
        """Return L(x, symbol) = floor(2^40 ln w) over the domain, shape (D,), int64, units; a new array."""
        logs = log_floor(self.channel.column(symbol))
        if self.mapping is None:
            return logs
        mapped: NDArray[np.int64] = logs[self.mapping]
        return mapped

    def steps(self, symbol: Symbol, partition: Partition) -> tuple[LikelihoodIncrements, Places] | None:
        """Return a symbol's likelihood increments: its log-likelihood less the value of most cells.

        Returns:
            The increments, and the cells of the symbol's own input; None if the channel is not sparse, or its
            run is long and not made of whole blocks.
        """
        if self._sparse is None:
            return None
        column, value = self._sparse(symbol)
        fit = self._fits.get(id(partition))
        if fit is None or fit[0] is not partition:  # a copy of an account has other partitions
            if len(self._fits) >= _FITTED:
                self._fits.clear()
            fit = self._fits[id(partition)] = partition, {}
        known = fit[1]
        if column not in known:
            known[column] = self._placed(column, partition)
        steps = known[column]
        if steps is None:
            return None
        if self.mapping is None:
            return steps, [value] if value >= 0 else []
        return steps, _listed(self._cells(value, value + 1)) if value >= 0 else []

    def _placed(self, column: SparseColumn, partition: Partition) -> LikelihoodIncrements | None:
        """Return a column as steps over a partition: its run as whole blocks, or as cells if they are few.

        With L = floor(2^40 ln w), the run's cells get lift = L(near) - L(rest), and those of the symbol's own
        input extra = L(true) - L(near) on top, or L(true) - L(rest) where the run is empty. None: the run is
        long, and not made of whole blocks.
        """
        rest, start, stop, near, true = column
        cells = self._cells(start, stop)
        blocks, few = _NONE, _NONE
        if 0 < cells.size <= _SHORT:
            block = partition.labels[cells[0]]
            whole = partition.sizes[block] == cells.size and bool((partition.labels[cells] == block).all())
            blocks, few = (np.array([block]), _NONE) if whole else (_NONE, cells)
        elif cells.size:
            counts = np.bincount(partition.labels[cells], minlength=partition.sizes.size)
            blocks = np.flatnonzero(counts)
            if (counts[blocks] != partition.sizes[blocks]).any():
                return None
        lift = log_floor_of(near) - log_floor_of(rest)
        extra = log_floor_of(true) - log_floor_of(near if start < stop else rest)
        return LikelihoodIncrements(_listed(blocks), _listed(few), lift, extra)

    def _cells(self, start: int, stop: int) -> NDArray[np.intp]:
        """Return the cells of the domain whose input is in start..stop-1."""
        if self.mapping is None:
            return np.arange(start, stop, dtype=np.intp)
        if self._values is None:
            order = np.argsort(self.mapping, kind="stable")
            counts = np.bincount(self.mapping, minlength=self.channel.inputs)
            self._values = order, np.concatenate([[0], np.cumsum(counts)])
        order, starts = self._values
        return order[starts[start] : starts[stop]]


_NONE: Final = np.empty(0, dtype=np.intp)
_BROADCAST: Final = _RecentBroadcasts()


def _listed(places: NDArray[np.intp]) -> Places:
    return places.tolist() if places.size <= FEW else places


def is_frozen(array: object) -> bool:
    """Return whether nobody can write to an array, or to one that it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        if array.base is None or isinstance(array.base, bytes):
            return True
        array = array.base
    return False
