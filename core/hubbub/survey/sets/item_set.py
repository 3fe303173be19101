"""The form of a survey that asks which of some items a device has, any number of them, in one answer.

Each item's share is estimated by itself: shares of items add up to no total. A device that has more items
than count sends as many of them, drawn at random, so shares are then too low by at most the share of such
devices. A survey may ask for that share in the same answer: such a device sends one item less, and "more".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from hubbub import mechanisms
from hubbub.channels.channel import Channel
from hubbub.errors import ABSENT, WireError
from hubbub.filter import constant_law
from hubbub.numeric.randomness import Source
from hubbub.numeric.subsets import subset_masks
from hubbub.survey.domain import Attribute, SetDomain
from hubbub.survey.form import BaseForm, FormEntry, FormRequest, Law
from hubbub.survey.rules import MISSING, MORE, Rules, check_attributes
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation

FORM: Final = "set"


@dataclass(frozen=True, eq=False)
class ItemSet(BaseForm):
    """One attribute whose values are sets of items.

    Attributes:
        attribute: What is asked for.
        most: L, the most items of one device that count.
        tells_more: Whether "more than L" is an item of its own, which nobody has by name.
    """

    attribute: Attribute
    most: int
    tells_more: bool = False

    noun: ClassVar[str] = "set"
    """The word for what an answer tells apart, for the owner of a device."""

    cost: ClassVar[str] = (
        "Its cost adds to that of every other survey, because what it says of one item depends on all others."
    )
    """The sentence about the cost of an answer beside its loss."""

    of_sets: ClassVar[bool] = True
    """True: a device's value is a set."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attribute, alone."""
        return (self.attribute,)

    @cached_property
    def domain(self) -> SetDomain:
        """The items."""
        return cast(SetDomain, self.attribute.domain)

    @property
    def apart(self) -> str:
        """The name of its coordinate: the padded set, which no other survey reads."""
        return FORM

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the items."""
        more = ", and whether you have more" if self.tells_more else ""
        return f"{attributes[0]}, {self.most} of yours at most{more}"

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If the attribute has no sets, or the channel is none of its items.
        """
        check_attributes(rules, self.attributes, 1, 1)
        if not isinstance(self.attribute.domain, SetDomain):
            rules.refuse("attribute.type", "must be set for the mechanism set", self.attribute.to_spec()[2])
        if not isinstance(channel, mechanisms.SetSelection) or channel.most != self.most:
            rules.refuse("mechanism", f"must be set selection of {self.most} items at most", channel.kind)
        own = self.domain.items.labels
        if channel.inputs != len(self.input_labels):
            rules.refuse("attribute", f"must have {channel.inputs - 1 - self.tells_more} items", len(own))
        if self.tells_more and (self.most < 2 or self.more in own):
            rules.refuse("mechanism.more", f"must be of 2 items or more, none named {self.more!r}", self.most)

    def likelihood(self, channel: Channel) -> Law:
        """Return a constant law: sets are too many for cells."""
        return constant_law(channel, cast(mechanisms.SetSelection, channel).odds)

    @property
    def more(self) -> str:
        """The name of having more items than count."""
        return f"more than {self.most}"

    @cached_property
    def input_labels(self) -> tuple[str, ...]:
        """Names of the items, then of having more than count where it is told, the last one "missing"."""
        return (*self.domain.items.labels, *([self.more] if self.tells_more else []), MISSING)

    @property
    def category_names(self) -> tuple[str, ...]:
        """None: items are in no categories."""
        return ()

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """No grouping of the items, shape (0, V): their shares add up to no total."""
        return np.empty((0, len(self.input_labels)), dtype=np.intp)

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the sum of 2^i over the items that a device sends; missing alone for what is no set.

        Of a larger set as many items as count are drawn, one less where "more" is told: another call may draw
        others.

        Args:
            values: The set, as texts of items; others in it are left out.
            source: Where the draw's bytes come from.
        """
        members = self.domain.members(values[0])
        if members is None:
            return 1 << len(self.input_labels) - 1
        if len(members) > self.most:
            (drawn,) = subset_masks(len(members), [self.most - self.tells_more], source)
            members = [member for place, member in enumerate(members) if drawn >> place & 1]
            members += [len(self.domain.items.labels)] if self.tells_more else []
        return sum(1 << member for member in members)

    def estimator(self, channel: Channel) -> estimation.ItemsEstimator:
        """Return the unbiased estimator of the items' shares."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.ItemsEstimator(cast(mechanisms.SetSelection, channel))

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries; `set_from_spec` reads them."""
        return [FORM, self.most, *([MORE] if self.tells_more else [])]


def set_from_spec(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> ItemSet:
    """Return the form that `ItemSet.to_spec` described; `ItemSet.check` says whether it makes sense.

    Raises:
        WireError: If it has another shape or other types.
    """
    del epsilon
    more = fields[2:] == [MORE]
    packing.array(fields, "set", 2 + more)
    if len(attributes) != 1:
        raise WireError(f"a survey of sets must ask for one attribute, got {len(attributes)}")
    return ItemSet(attributes[0], packing.integer(fields[1], "set", 1, mechanisms.MAX_MOST), more)


def _of_request(request: FormRequest) -> tuple[ItemSet, Channel]:
    """Return the form and the channel of a survey file."""
    rules, keys = request.rules, request.keys
    if request.participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for sets", request.participation)
    attributes = [each.attribute for each in request.asked]
    check_attributes(rules, attributes, 1, 1)
    domain = attributes[0].domain
    if not isinstance(domain, SetDomain):
        rules.refuse("attribute.type", "must be set for the mechanism set", attributes[0].to_spec()[2])
    if request.asked[0].categories:
        rules.refuse("category", "must not be given for sets", request.asked[0].categories[0].name)
    most = _number(rules, keys, "most", len(domain.items.labels))
    if most is None:
        rules.refuse("mechanism.most", "must be given: how many items of one device count", ABSENT)
    more = keys.get(MORE, False)
    if not isinstance(more, bool):
        rules.refuse("mechanism.more", "must be true or false", more)
    form = ItemSet(attributes[0], most, more)
    inputs = len(form.input_labels)
    size = _number(rules, keys, "size", inputs)
    return form, mechanisms.set_selection(inputs, most=most, epsilon=request.epsilon, size=size)


def _number(rules: Rules, keys: Mapping[str, object], key: str, high: int) -> int | None:
    if key not in keys:
        return None
    return rules.integer(f"mechanism.{key}", keys[key], 1, min(high, mechanisms.MAX_MOST))


ENTRY: Final = FormEntry(
    read=set_from_spec, mechanism="set", keys=("most", "size", MORE), compile=_of_request
)
