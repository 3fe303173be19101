"""The form of a survey that asks for a number that not every device has: who has one, and their mean.

A device answers with a point of a grid, with "absent" (it is known to have no number) or with missing (nobody
knows). So absent is one more input of channels that exist: no mechanism is new. The share who have the number
is the first category; the mean among them is the ratio of two sums of shares, as any mean of those who
answered. On two points the grid is the two ends of the number, to which a device moves by an exact coin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import ParameterError, WireError
from hubbub.mechanisms.rounding import stochastic, stochastic_many
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import (
    ABSENT_VALUE,
    Attribute,
    IntegerDomain,
    NumberDomain,
    exact_number,
    number_names,
)
from hubbub.survey.form import BaseForm, FormEntry
from hubbub.survey.rules import MISSING, Rules
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "key_value"
PRESENT: Final = "present"
"""The name of the category of devices that have the number."""


@dataclass(frozen=True, eq=False)
class KeyValue(BaseForm):
    """One attribute of numbers, of which "absent" is a value.

    Attributes:
        attribute: What is asked for.
        grid: The points of its grid, >= 2; the channel's inputs are these, absent and missing.
        share: The share of the devices that is planned to have a number, above 0 and below 1: designs are
            for it, and estimates hold whatever the true one is.
    """

    attribute: Attribute
    grid: int
    share: float

    tells_absent: ClassVar[bool] = True
    """True: absent is an input, and missing another."""

    category_names: ClassVar[tuple[str, ...]] = (PRESENT, ABSENT_VALUE, MISSING)
    """The names of the three categories."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attribute, alone."""
        return (self.attribute,)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number."""
        domain = self.attribute.domain
        assert isinstance(domain, IntegerDomain | NumberDomain)  # noqa: S101 - `check` refuses any other
        return float(domain.low), float(domain.high)

    @property
    def whole(self) -> bool:
        """True if every value is a point, so that nothing is rounded: an integer with as many values."""
        return isinstance(self.attribute.domain, IntegerDomain) and self.attribute.size == self.grid + 1

    @cached_property
    def mapping(self) -> NDArray[np.intp] | None:
        """Input of every index, shape (size + 1,), where every value is a point; None for rounded ones."""
        if not self.whole:
            return None
        found = np.arange(self.grid + 2)
        found.setflags(write=False)
        return found

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the number, or that there is none."""
        return attributes[0]

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If the attribute cannot be absent, or grid or share do not fit.
        """
        if not self.attribute.tells_absent:
            rules.refuse("attribute.absent", "must be true for the mechanism key_value", False)
        rules.integer("mechanism.points", self.grid, 2, MAX_INPUTS - 2)
        check_share(rules, self.share)
        if channel.inputs != self.grid + 2:
            rules.refuse("mechanism.points", f"must be {channel.inputs - 2} for its channel", self.grid)
        if channel.needs_map and (rule := channel.category_rule(self.category_of)):
            rules.refuse("mechanism", rule, channel.kind)
        try:
            NumberDomain(*self.ends).grid(self.grid)
        except ParameterError as error:
            rules.refuse("mechanism.points", f"must leave points that differ ({error})", self.grid)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """The number that each input stands for, shape (K,), nan at absent and missing."""
        found = np.append(np.linspace(*self.ends, self.grid), [np.nan, np.nan])
        found.setflags(write=False)
        return found

    @property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, the last ones "absent" and "missing"."""
        return (*number_names(self.points[: self.grid].tolist()), ABSENT_VALUE, MISSING)

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,): present, absent or missing."""
        found = np.append(np.zeros(self.grid, dtype=np.intp), [1, 2])
        found.setflags(write=False)
        return found

    def number_of(self, values: Sequence[object]) -> float | None:
        """Return the number of a device that has one, for the mean among those who do."""
        number, (low, high) = exact_number(values[0]), self.ends
        if number is None or not low <= number <= high:
            return None
        whole = not isinstance(self.attribute.domain, IntegerDomain) or number.denominator == 1
        return float(number) if whole else None

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for a value; see `Survey.input_of`."""
        value = values[0]
        if isinstance(value, str) and value == ABSENT_VALUE:
            return self.grid
        number = exact_number(value)
        if number is None or self.number_of(values) is None:
            return self.grid + 1
        return stochastic(number, *self.ends, self.grid, source=source)

    def inputs_of(self, columns: Sequence[NDArray[np.float64]], source: Source) -> NDArray[np.intp]:
        """Return the inputs of many devices, for simulation: within 2^-50 of `input_of`'s law.

        Args:
            columns: The numbers, one column of shape (n,), float, nan where missing, inf where absent.
            source: Where the bytes come from.
        """
        (numbers,) = columns
        inputs = np.where(np.isnan(numbers), self.grid + 1, self.grid).astype(np.intp)
        present = np.isfinite(numbers)
        inputs[present] = stochastic_many(numbers[present], *self.ends, self.grid, source=source)
        return inputs

    def estimator(self, channel: Channel) -> estimation.AnyEstimator:
        """Return the unbiased estimator of the shares, and of the mean among those who have a number."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.estimator_for(
            channel,
            category_of=self.category_of,
            points=self.points,
            missing=self.grid + 1,
            rounding="none" if self.whole else "stochastic",
        )

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `key_value_from_spec` reads them."""
        return [FORM, self.grid, self.share]


def check_share(rules: Rules, value: object) -> float:
    """Return the planned share of devices that have a number.

    Raises:
        SurveyError: If it is none above 0 and below 1.
    """
    share = rules.real("mechanism.share", value, 0.0, 1.0)
    if not 0.0 < share < 1.0:
        rules.refuse("mechanism.share", "must lie strictly between 0 and 1", value)
    return share


def key_value_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> KeyValue:
    """Return the form that `KeyValue.to_spec` described; `KeyValue.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    del epsilon
    packing.array(fields, "key_value", 3)
    if len(attributes) != 1:
        raise WireError(f"a survey of key_value must ask for one attribute, got {len(attributes)}")
    grid = packing.integer(fields[1], "key_value points", 2, MAX_INPUTS - 2)
    return KeyValue(attributes[0], grid, packing.real(fields[2], "key_value share"))


ENTRY: Final = FormEntry(read=key_value_from_spec)
