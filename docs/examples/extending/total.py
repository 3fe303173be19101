"""The form of a survey that asks for the sum of several integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub import mechanisms
from hubbub.channels.channel import Channel
from hubbub.numeric.randomness import SYSTEM, Source
from hubbub.survey.domain import Attribute, IntegerDomain
from hubbub.survey.form import BaseForm, FormEntry, FormRequest
from hubbub.survey.rules import MISSING, Rules, check_attributes
from hubbub.survey.table import check_size
from hubbub.wire import packing

if TYPE_CHECKING:
    from hubbub import estimation


@dataclass(frozen=True, eq=False)
class Total(BaseForm):
    """The sum of several integers; missing where one of them is.

    Attributes:
        attributes: Two to ten, of integers.
    """

    attributes: tuple[Attribute, ...]

    def asks_for(self, attributes: Sequence[str]) -> str:
        """Return what the owner of a device reads that it asks for: the sum."""
        return f"the sum of {'; '.join(attributes)}"

    @cached_property
    def mapping(self) -> NDArray[np.intp]:
        """Input of every combination of indices, shape (size_1 + 1, ..., size_k + 1)."""
        sizes = [attribute.size for attribute in self.attributes]
        places = np.indices([size + 1 for size in sizes])
        whole = (places < np.reshape(sizes, (-1, *[1] * len(sizes)))).all(axis=0)
        found = np.where(whole, places.sum(axis=0), len(self.sums))
        found.setflags(write=False)
        return found

    @cached_property
    def sums(self) -> range:
        """The sums that there can be, lowest first."""
        domains = [each.domain for each in self.attributes if isinstance(each.domain, IntegerDomain)]
        return range(sum(domain.low for domain in domains), sum(domain.high for domain in domains) + 1)

    @property
    def input_labels(self) -> tuple[str, ...]:
        """The sums and "missing"."""
        return (*map(str, self.sums), MISSING)

    @property
    def category_names(self) -> tuple[str, ...]:
        """The sums as one category, and "missing"."""
        return ("answered", MISSING)

    @cached_property
    def category_of(self) -> NDArray[np.intp]:
        """Category of every input, shape (K,)."""
        return np.append(np.zeros(len(self.sums), dtype=np.intp), 1)

    @property
    def points(self) -> NDArray[np.float64]:
        """The sum of every input, shape (K,), nan at missing."""
        return np.append(np.array(self.sums, dtype=np.float64), np.nan)

    def check_attributes(self, rules: Rules) -> None:
        """Refuse attributes that are not integers, or too many, before anything of their size is built."""
        check_attributes(rules, self.attributes, 2, 10)
        for i, attribute in enumerate(self.attributes):
            if not isinstance(attribute.domain, IntegerDomain):
                rules.refuse(f"attribute[{i}].type", "must be integer in a total", attribute.id)
        check_size(rules, self.attributes, (len(self.sums) + 1,))

    def check(self, rules: Rules, channel: Channel) -> None:
        """Refuse what does not fit together.

        Raises:
            SurveyError: If the attributes are not such, or not those of the channel.
        """
        self.check_attributes(rules)
        if channel.inputs != len(self.sums) + 1:
            rules.refuse("mechanism", f"must have a channel of {len(self.sums) + 1} inputs", channel.inputs)

    def input_of(self, values: Sequence[object], source: Source) -> int:
        """Return the channel's input for one value per attribute; nothing is drawn."""
        del source
        pairs = zip(self.attributes, values, strict=True)
        return int(self.mapping[tuple(attribute.index_of(value) for attribute, value in pairs)])

    def number_of(self, values: Sequence[object]) -> float | None:
        """Return the sum, None where a value is missing."""
        place = self.input_of(values, SYSTEM)
        return float(self.sums[place]) if place < len(self.sums) else None

    def estimator(self, channel: Channel) -> estimation.AnyEstimator:
        """Return the unbiased estimator of the sums' frequencies and of their mean."""
        from hubbub import estimation  # noqa: PLC0415 - not on a device

        return estimation.estimator_for(
            channel, category_of=self.category_of, points=self.points, missing=len(self.sums)
        )

    def to_spec(self) -> list[object]:
        """Return the form as plain values that msgpack carries: its name says all of it."""
        return ["total"]


def _read(attributes: tuple[Attribute, ...], fields: list[object], epsilon: float) -> Total:
    del epsilon
    packing.array(fields, "total", 1)
    return Total(attributes)


def _of_request(request: FormRequest) -> tuple[Total, Channel]:
    form = Total(tuple(each.attribute for each in request.asked))
    form.check_attributes(request.rules)
    return form, mechanisms.grr(len(form.sums) + 1, epsilon=request.epsilon)


ENTRY: Final = FormEntry(read=_read, mechanism="total", compile=_of_request)
