"""The form of a survey that asks for one attribute: its values, or categories of them, or a number's grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import Channel
from hubbub.errors import ParameterError
from hubbub.mechanisms.rounding import stochastic, stochastic_many
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import Attribute, IntegerDomain, NumberDomain, exact_number, number_names
from hubbub.survey.form import BaseForm
from hubbub.survey.rules import MISSING, Rules, check_names

if TYPE_CHECKING:
    from hubbub import estimation


@dataclass(frozen=True, eq=False)
class Single(BaseForm):
    """One attribute, and which of the channel's K inputs each of its values is.

    Attributes:
        attribute: What is asked for.
        inputs: K; the last one means missing.
        mapping: Input of every index of the attribute's domain and, last, of missing, shape (size + 1,);
            None for numbers, whose inputs are grid points.
        category_names: Names of the m categories, the last one "missing".
        category_of: Category of every input, shape (K,), contiguous and rising.
    """

    attribute: Attribute
    inputs: int
    mapping: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]

    def __post_init__(self) -> None:
        for array in (self.category_of, self.mapping):
            if array is not None:
                array.setflags(write=False)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attribute, alone."""
        return (self.attribute,)

    @property
    def grid_points(self) -> int | None:
        """Points of a number's grid; None for any other attribute."""
        return self.inputs - 1 if self.mapping is None else None

    alone: ClassVar[bool] = True
    """True: it asks for one attribute, and has the canonical layout of one."""

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
        names, category_of = self.category_names, self.category_of
        if self.inputs < 3:
            rules.refuse("attribute", "must have at least two inputs beside missing", self.inputs - 1)
        steps = np.diff(category_of)
        if (
            category_of.shape != (self.inputs,)
            or category_of[0] != 0
            or category_of[-1] != len(names) - 1
            or not np.isin(steps, (0, 1)).all()
            or steps[-1] != 1
        ):
            rules.refuse(
                "category", "must partition the inputs in order, missing last and alone", list(names)
            )
        if rule := channel.category_rule(category_of):
            rules.refuse("category", rule, list(names))
        check_names(rules, "category", names)

    def _check_mapping(self, rules: Rules) -> None:
        attribute, mapping, missing = self.attribute, self.mapping, self.inputs - 1
        if (mapping is None) != isinstance(attribute.domain, NumberDomain):
            rules.refuse(
                "attribute.type", "must be a number where there is no mapping, and only there", mapping
            )
        if mapping is None:
            return
        size = attribute.size
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
        sizes = np.bincount(self.category_of).tolist()
        mapping = self.mapping
        # Nil where the order of the domain is the order of the inputs, and for grid points.
        plain = mapping is None or np.array_equal(mapping, np.arange(len(mapping)))
        return [
            None if mapping is None or plain else mapping.tolist(),
            [[name, size] for name, size in zip(self.category_names, sizes, strict=True)],
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
