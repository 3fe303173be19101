"""The form of a survey that asks for one attribute: its values, or categories of them, or a number's grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import ParameterError
from hubbub.filter.query import MAX_CELLS
from hubbub.mechanisms.rounding import stochastic, stochastic_many
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import (
    Attribute,
    IntegerDomain,
    LabelDomain,
    NumberDomain,
    exact_number,
    number_names,
)
from hubbub.survey.form import BaseForm, Law
from hubbub.survey.rules import MISSING, Rules, check_names

if TYPE_CHECKING:
    from hubbub import estimation, mechanisms


@dataclass(frozen=True, eq=False)
class Single(BaseForm):
    """One attribute, and which of the channel's K inputs each of its values is.

    Attributes:
        attribute: What is asked for.
        inputs: K; the last one means missing.
        places: Input of every index of the attribute's domain and, last, of missing, shape (size + 1,);
            None where that is the order of the domain, and for numbers, whose inputs are grid points.
        category_names: Names of the m categories, the last one "missing".
        sizes: Inputs of every category, in their order.
    """

    attribute: Attribute
    inputs: int
    places: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.places is not None and np.array_equal(self.places, np.arange(self.inputs)):
            object.__setattr__(self, "places", None)

    @cached_property
    def mapping(self) -> NDArray[np.intp] | None:
        """Input of every index of the domain and, last, of missing, shape (size + 1,); None for numbers."""
        if isinstance(self.attribute.domain, NumberDomain):
            return None
        found = np.arange(self.inputs) if self.places is None else self.places
        found.setflags(write=False)
        return found

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,), contiguous and rising."""
        found = np.repeat(np.arange(len(self.sizes)), self.sizes)
        found.setflags(write=False)
        return found

    @property
    def map_entries(self) -> int:
        """The entries of its map or of the index of its labels; 0 for whole numbers in their order."""
        domain = self.attribute.domain
        labels = len(domain.labels) if isinstance(domain, LabelDomain) else 0
        return max(labels, 0 if self.places is None else len(self.places))

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attribute, alone."""
        return (self.attribute,)

    @property
    def grid_points(self) -> int | None:
        """Points of a number's grid; None for any other attribute."""
        return self.inputs - 1 if isinstance(self.attribute.domain, NumberDomain) else None

    @property
    def apart(self) -> str:
        """The name "wide" where the domain has more cells than a coordinate that surveys share."""
        return "wide" if self.grid_points is None and self.attribute.size >= MAX_CELLS else ""

    def likelihood(self, channel: Channel) -> Law:
        """Return the channel's law; a constant, where the domain is too large for cells."""
        if not self.apart:
            return channel
        from hubbub.filter import constant_law  # noqa: PLC0415 - few surveys need it

        return constant_law(channel, cast("mechanisms.LocalHashing", channel).odds)

    @property
    def joins_values(self) -> bool:
        """True if values are told by category alone: an input stands for several of them."""
        return self.mapping is not None and len(self.mapping) > self.inputs

    alone: ClassVar[bool] = True
    """True: it asks for one attribute."""

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the attribute."""
        return "; ".join(attributes)

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If categories or mapping are not such, or not those of the channel.
        """
        self._check_categories(rules, channel)
        self._check_mapping(rules)
        if isinstance(self.attribute.domain, NumberDomain):
            try:
                self.attribute.domain.grid(self.inputs - 1)
            except ParameterError as error:
                rules.refuse("attribute", f"must leave room for its inputs ({error})", self.attribute.id)

    def _check_categories(self, rules: Rules, channel: Channel) -> None:
        names, sizes = self.category_names, self.sizes
        if self.inputs < 3:
            rules.refuse("attribute", "must have at least two inputs beside missing", self.inputs - 1)
        if (
            len(sizes) != len(names)
            or len(sizes) < 2
            or min(sizes) < 1
            or sum(sizes) != self.inputs
            or sizes[-1] != 1
        ):
            rules.refuse(
                "category", "must partition the inputs in order, missing last and alone", list(names)
            )
        if channel.needs_map and (rule := channel.category_rule(self.category_of)):
            rules.refuse("category", rule, list(names))
        check_names(rules, "category", names)

    def _check_mapping(self, rules: Rules) -> None:
        attribute, mapping, missing = self.attribute, self.places, self.inputs - 1
        if isinstance(attribute.domain, NumberDomain):
            if mapping is not None:
                rules.refuse("attribute.type", "must not be a number where there is a mapping", len(mapping))
            return
        size = attribute.size
        if size >= MAX_INPUTS and self.inputs <= size:
            rules.refuse(
                "attribute", f"must have at most {MAX_INPUTS - 1} values unless each is hashed", size
            )
        if mapping is None:
            if self.inputs != size + 1:
                rules.refuse("attribute", f"must have {missing} values where each is an input", size)
            return
        if mapping.shape != (size + 1,) or mapping.min() < 0 or mapping.max() > missing:
            rules.refuse(
                "attribute", f"must have {size + 1} mapped indices within 0 to {missing}", len(mapping)
            )
        values_per_input = np.bincount(mapping, minlength=self.inputs)
        if mapping[size] != missing or values_per_input[missing] != 1 or not values_per_input.all():
            rules.refuse("attribute", "must map onto every input, and only missing to the last", attribute.id)
        together = values_per_input[self.category_of.argsort(kind="stable")] > 1
        inputs_per_category = np.bincount(self.category_of)
        if (inputs_per_category[self.category_of[together]] > 1).any():
            rules.refuse(
                "category", "must be one input where one of its inputs holds several values", attribute.id
            )

    def to_spec(self) -> list[object]:
        """Return the mapping and the categories as plain values that msgpack carries."""
        return [
            None if self.places is None else self.places.tolist(),
            [[name, size] for name, size in zip(self.category_names, self.sizes, strict=True)],
        ]

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, the last one "missing"."""
        domain = self.attribute.domain
        if isinstance(domain, NumberDomain):
            return (*number_names(domain.grid(self.inputs - 1).tolist()), MISSING)
        assert self.mapping is not None  # noqa: S101 - `check` refuses that
        first, shared = _order(self.mapping)
        inputs = zip(first.tolist(), shared.tolist(), self.category_of[:-1].tolist(), strict=True)
        return (
            *(
                self.category_names[category] if several else self.attribute.label_of(index)
                for index, several, category in inputs
            ),
            MISSING,
        )

    @cached_property
    def points(self) -> NDArray[np.float64] | None:
        """The number that each input stands for, shape (K,), nan at missing; None without numbers."""
        domain = self.attribute.domain
        if isinstance(domain, NumberDomain):
            numbers = domain.grid(self.inputs - 1)
        else:
            assert self.mapping is not None  # noqa: S101 - `check` refuses that
            first, shared = _order(self.mapping)
            if not isinstance(domain, IntegerDomain) or shared.any():
                return None
            numbers = domain.low + first.astype(np.float64)
        points = np.append(numbers, np.nan)
        points.setflags(write=False)
        return points

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for a value; see `Survey.input_of`."""
        (value,) = values
        domain = self.attribute.domain
        if self.mapping is not None:
            return int(self.mapping[self.attribute.index_of(value)])
        assert isinstance(domain, NumberDomain)  # noqa: S101 - `check` refuses any other
        number: Fraction | None = exact_number(value)
        if number is None or not domain.low <= number <= domain.high:
            return self.inputs - 1
        return stochastic(number, domain.low, domain.high, self.inputs - 1, source=source)

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Return the grid points of many devices' numbers, for simulation: within 2^-50 of `input_of`'s law.

        Args:
            columns: The numbers, one column of shape (n,), float, nan where missing, else in the domain.
            source: Where the bytes come from.
        """
        (numbers,) = columns
        domain, missing = self.attribute.domain, self.inputs - 1
        assert isinstance(domain, NumberDomain)  # noqa: S101 - only a number's survey has no map
        inputs = np.full(numbers.shape, missing, dtype=np.intp)
        present = ~np.isnan(numbers)
        inputs[present] = stochastic_many(numbers[present], domain.low, domain.high, missing, source=source)
        return inputs

    def number_of(self, values: Sequence[object]) -> float | None:
        """Return the number that the released mean is the mean of; see `Form.number_of`."""
        if self.points is None:
            return None
        (value,) = values
        domain = self.attribute.domain
        if isinstance(domain, NumberDomain):
            number = exact_number(value)
            return float(number) if number is not None and domain.low <= number <= domain.high else None
        assert self.mapping is not None  # noqa: S101 - `check` refuses that
        place = int(self.mapping[self.attribute.index_of(value)])
        return None if place == self.inputs - 1 else float(self.points[place])

    def estimator(self, channel: Channel) -> estimation.AnyEstimator:
        """Return the unbiased estimator of the channel, categories and points."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.estimator_for(
            channel,
            category_of=self.category_of,
            points=self.points,
            missing=self.inputs - 1,
            rounding="stochastic" if self.mapping is None else "none",
        )


def _order(mapping: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the first domain index of each input but missing, and whether it has others."""
    inputs = int(mapping[-1])
    order = np.argsort(mapping[:-1], kind="stable")
    first = np.searchsorted(mapping[order], np.arange(inputs))
    return order[first], np.bincount(mapping[:-1], minlength=inputs) > 1
