"""The channel of a survey of integers or labels: which input every value is, and the mechanism's own keys.

Inputs are numbered category by category and missing comes last: what every mechanism with categories expects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.survey import MISSING, DeclaredAttribute, DeclaredMechanism, IntegerDomain, Rules, owners_of
from hubbub_authoring.mechanisms.mechanism import POINTS, READING, Mechanism, Request

# The one category beside missing where a survey declares none: the share of devices that have a value.
ANSWERED: Final = "answered"


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled channel and how a domain and its categories relate to the inputs, as in `Single`."""

    channel: Channel
    mapping: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]


def discrete_plan(
    rules: Rules,
    asked: DeclaredAttribute,
    mechanism: DeclaredMechanism,
    entry: Mechanism,
    *,
    epsilon: float,
    devices: int,
) -> Plan:
    """Return the channel of one attribute of integers or labels, and where its values stand in it.

    Args:
        rules: How to refuse.
        asked: The attribute and its categories.
        mechanism: As declared, not "auto".
        entry: Its entry.
        epsilon: Declared.
        devices: How many the design counts on.

    Raises:
        SurveyError: If the categories do not partition the domain, or a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    attribute, categories = asked.attribute, asked.categories
    if POINTS.name in mechanism.keys:
        rule = "must be absent unless the attribute is a number"
        rules.refuse(POINTS.place, rule, mechanism.keys[POINTS.name])
    size = attribute.size
    names = (*(category.name for category in categories), MISSING) if categories else (ANSWERED, MISSING)
    owners = owners_of(rules, asked)
    mapping = np.empty(size + 1, dtype=np.intp)
    mapping[size] = size
    mapping[np.argsort(owners, kind="stable")] = np.arange(size)
    category_of = np.append(np.sort(owners), len(names) - 1)

    request = Request(
        rules,
        mechanism.keys,
        len(category_of),
        epsilon,
        category_of,
        categories=len(categories),
        devices=devices,
        attribute=attribute,
        order=mapping,
        integers=isinstance(attribute.domain, IntegerDomain),
    )
    if READING in entry.keys and READING.read(request) == "category":
        if len(categories) < 2:
            rules.refuse("category", "must be two or more for reading by category", len(categories))
        mapping = np.append(owners, len(categories))
        category_of = np.arange(len(names))
        request = replace(
            request,
            inputs=len(names),
            category_of=category_of,
            attribute=None,
            order=None,
            integers=False,
            joined=tuple(request.sizes[:-1]),
        )
    return Plan(entry.build(request), mapping, names, category_of)
