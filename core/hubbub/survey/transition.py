"""The form of a survey that asks who changed: the value some rounds ago and the value now, in one answer.

Asked apart, each value would have half of epsilon, and somebody would have to link the two answers. Asked
together they are one input at the full epsilon, and one transition is told apart from all others. Each value
is read by itself or by category, as in a table, and may be missing by itself. There are three ways to ask:

    "pairs"      every (then, now), each of them missing or not: (r + 1)^2 inputs for r values
    "changed"    pairs of two values, in the categories "same" and "changed"; a pair that lacks one is missing
    "direction"  of two values: up, same, down, missing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.channel import MAX_INPUTS, Channel
from hubbub.errors import WireError
from hubbub.filter.query import MAX_CELLS
from hubbub.numeric.randomness import Source
from hubbub.survey.domain import Attribute
from hubbub.survey.form import BaseForm, FormEntry
from hubbub.survey.rules import ANSWERED, MAX_ROUNDS, MISSING, Rules
from hubbub.survey.table import check_reading, reading_from_spec
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "transition"
Asks: TypeAlias = Literal["pairs", "changed", "direction"]
ASKS: Final[tuple[Asks, ...]] = get_args(Asks)

_MOVES: Final = ("up", "same", "down")


@dataclass(frozen=True, eq=False)
class Transition(BaseForm):
    """An evolving attribute, now and some rounds before.

    Attributes:
        attribute: What is asked for, with a discrete domain.
        encoding: The encoded value of every index of its domain and, last, of missing, as a table has it.
        names: Names of the encoded values without missing; None where every value is encoded as itself.
        lag: Rounds between the two values, >= 1.
        asks: What of the two values is told apart.
    """

    attribute: Attribute
    encoding: NDArray[np.intp]
    names: tuple[str, ...] | None
    lag: int = field()  # without it that of BaseForm would be a default
    asks: Asks = field()

    tells_absent: ClassVar[bool] = True
    """True: absent is a value as others are."""

    alone: ClassVar[bool] = True
    """True: it asks for one attribute."""

    noun: ClassVar[str] = "pair of values"
    """The word for what an answer tells apart, for the owner of a device."""

    cost: ClassVar[str] = "The older value is kept on this device until the answer, and then deleted."
    """The sentence about the cost of an answer beside its loss."""

    def __post_init__(self) -> None:
        self.encoding.setflags(write=False)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attribute, alone."""
        return (self.attribute,)

    @property
    def reads(self) -> tuple[Attribute, ...]:
        """The attribute, then and now."""
        return self.attribute, self.attribute

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the attribute, and since when."""
        (words,) = attributes
        return f"{words}, now and {'a round' if self.lag == 1 else f'{self.lag} rounds'} before"

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If attribute, reading, lag or question are not such, or not those of the channel.
        """
        if self.attribute.kind != "evolving":
            rules.refuse("attribute.kind", "must be evolving in a transition", self.attribute.kind)
        check_reading(rules, "attribute", self.attribute, self.encoding, self.names)
        rules.integer("transition.lag", self.lag, 1, MAX_ROUNDS)
        rules.choice("transition.asks", self.asks, ASKS)
        values = int(self.encoding[-1])
        if self.asks == "direction" and values != 2:
            rules.refuse("transition.asks", "must be of two values for a direction", values)
        check_transition_size(rules, self.attribute, values)
        inputs = len(self.category_of)
        if channel.inputs != inputs:
            rules.refuse("transition.asks", f"must have the channel's {channel.inputs} inputs", inputs)
        if rule := channel.category_rule(self.category_of):
            rules.refuse("transition.asks", rule, self.asks)

    @cached_property
    def mapping(self) -> NDArray[np.intp]:
        """Input of every pair of indices, then and now, shape (size + 1, size + 1)."""
        values = int(self.encoding[-1])
        then, now = self.encoding[:, None], self.encoding[None, :]
        if self.asks == "pairs":
            found = then * (values + 1) + now
        elif self.asks == "direction":
            found = np.where((then == values) | (now == values), 3, 1 + then - now)
        else:
            # The r pairs of one value are first, then the r - 1 others of each.
            other = values + then * (values - 1) + now - (now > then)
            found = np.where(then == now, then, other)
            found = np.where((then == values) | (now == values), values * values, found)
        found.setflags(write=False)
        return found

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,), contiguous and rising, missing last and alone."""
        values = int(self.encoding[-1])
        sizes = {
            "pairs": [(values + 1) ** 2 - 1, 1],
            "changed": [values, values * (values - 1), 1],
            "direction": [len(_MOVES), 1],
        }[self.asks]
        found: NDArray[np.intp] = np.repeat(np.arange(len(sizes)), sizes)
        found.setflags(write=False)
        return found

    @property
    def category_names(self) -> tuple[str, ...]:
        """Names of the categories, the last one "missing"."""
        return ("same", "changed", MISSING) if self.asks == "changed" else (ANSWERED, MISSING)

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the K inputs, such as "car > train", the last one "missing"."""
        if self.asks == "direction":
            return (*_MOVES, MISSING)
        values = self.names or tuple(map(self.attribute.label_of, range(self.attribute.size)))
        pairs = list(product(values, repeat=2))
        if self.asks == "pairs":
            pairs = list(product((*values, MISSING), repeat=2))[:-1]
        else:
            pairs.sort(key=lambda pair: pair[0] != pair[1])
        return (*(f"{then} > {now}" for then, now in pairs), MISSING)

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for the values then and now; see `Survey.input_of`."""
        then, now = map(self.attribute.index_of, values)
        return int(self.mapping[then, now])

    def estimator(self, channel: Channel) -> estimation.AnyEstimator:
        """Return the unbiased estimator of the channel and its categories."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.estimator_for(
            channel,
            category_of=self.category_of,
            points=None,
            missing=len(self.category_of) - 1,
            rounding="none",
        )

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `transition_from_spec` reads them."""
        plain = np.array_equal(self.encoding, np.arange(len(self.encoding)))
        names = None if self.names is None else list(self.names)
        return [FORM, None if plain else self.encoding.tolist(), names, self.lag, self.asks]


def check_transition_size(rules: Rules, attribute: Attribute, values: int) -> None:
    """Refuse a transition that is too large, before anything of its size is built.

    Raises:
        SurveyError: If it is.
    """
    if (values + 1) ** 2 > MAX_INPUTS or (attribute.size + 1) ** 2 > MAX_CELLS:
        rules.refuse("attribute", f"must have at most {MAX_CELLS} pairs of values", (attribute.size + 1) ** 2)


def transition_from_spec(
    attributes: tuple[Attribute, ...], fields: list[object], epsilon: float
) -> Transition:
    """Return the form that `Transition.to_spec` described; `Transition.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    del epsilon
    packing.array(fields, "transition", 5)
    if len(attributes) != 1:
        raise WireError(f"a transition must describe one attribute, got {len(attributes)}")
    encoding, names = reading_from_spec(attributes[0], fields[1], fields[2])
    lag = packing.integer(fields[3], "transition lag", 1, MAX_ROUNDS)
    asks = packing.text(fields[4], "transition question", max(map(len, ASKS)))
    if asks not in ASKS:
        raise WireError(f"a transition must ask for {', '.join(ASKS)}, got {asks!r}")
    return Transition(attributes[0], encoding, names, lag, asks)


ENTRY: Final = FormEntry(read=transition_from_spec)
