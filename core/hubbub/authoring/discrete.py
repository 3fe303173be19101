"""The channel of a survey of integers or labels: which input every value is, and the mechanism's own keys.

Inputs are numbered category by category and missing comes last: what every mechanism with categories expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.authoring.declared import Category, DeclaredAttribute, Mechanism, owners_of
from hubbub.authoring.unordered import unordered_channel
from hubbub.channels.channel import Channel
from hubbub.mechanisms.levels.levels import levels
from hubbub.mechanisms.neighbourhood import neighbourhood
from hubbub.mechanisms.pbgrr import pbgrr
from hubbub.survey.domain import Attribute, IntegerDomain
from hubbub.survey.rules import MISSING, Rules

# The one category beside missing where a survey declares none: the share of devices that have a value.
ANSWERED: Final = "answered"
# The smallest share of reports that a level can have: a level that hardly anyone reports about says nothing.
LEAST_SHARE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled channel and how a domain and its categories relate to the inputs, as in `Single`."""

    channel: Channel
    mapping: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]


def discrete_plan(
    rules: Rules, asked: DeclaredAttribute, mechanism: Mechanism, *, epsilon: float, devices: int
) -> Plan:
    """Return the channel of one attribute of integers or labels, and where its values stand in it.

    Args:
        rules: How to refuse.
        asked: The attribute and its categories.
        mechanism: As declared, not "auto".
        epsilon: Declared.
        devices: How many the design counts on.

    Raises:
        SurveyError: If the categories do not partition the domain, or a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    attribute, categories = asked.attribute, asked.categories
    if "points" in mechanism.keys:
        rules.refuse(
            "mechanism.points", "must be absent unless the attribute is a number", mechanism.keys["points"]
        )
    size = attribute.size
    names = (*(category.name for category in categories), MISSING) if categories else (ANSWERED, MISSING)
    owners = owners_of(rules, asked)
    mapping = np.empty(size + 1, dtype=np.intp)
    mapping[size] = size
    mapping[np.argsort(owners, kind="stable")] = np.arange(size)
    category_of = np.append(np.sort(owners), len(names) - 1)

    if mechanism.name == "pbgrr":
        if not categories:
            rules.refuse("category", "must be given for pbgrr", "nothing")
        if "boost_epsilon" not in mechanism.keys:
            rules.refuse("mechanism.boost_epsilon", "must be given", "nothing")
        boost = rules.real("mechanism.boost_epsilon", mechanism.keys["boost_epsilon"])
        if not 0 <= boost <= epsilon:
            rules.refuse("mechanism.boost_epsilon", f"must be from 0 to epsilon {epsilon:g}", boost)
        sizes = np.bincount(category_of).tolist()
        channel: Channel = pbgrr(sizes, epsilon=epsilon, boost_epsilon=boost)
        return Plan(channel, mapping, names, category_of)

    if mechanism.name == "levels":
        return Plan(
            _levels(rules, categories, mechanism.keys, category_of, epsilon), mapping, names, category_of
        )

    if mechanism.name == "neighbourhood":
        channel = _neighbourhood(rules, attribute, mechanism.keys, mapping, epsilon=epsilon, devices=devices)
        return Plan(channel, mapping, names, category_of)

    reading = rules.choice("mechanism.reading", mechanism.keys.get("reading", "value"), ("value", "category"))
    if reading == "category":
        if len(categories) < 2:
            rules.refuse("category", "must be two or more for reading by category", len(categories))
        mapping = np.append(owners, len(categories))
        category_of = np.arange(len(names))
    channel = unordered_channel(rules, mechanism.name, mechanism.keys, len(category_of), epsilon)
    return Plan(channel, mapping, names, category_of)


def _levels(
    rules: Rules,
    categories: Sequence[Category],
    keys: Mapping[str, object],
    category_of: NDArray[np.intp],
    epsilon: float,
) -> Channel:
    sizes = np.bincount(category_of).tolist()
    if len(sizes) < 3 or max(sizes) == 1:
        rules.refuse(
            "category", "must be two or more for levels, one of them of several values", len(categories)
        )
    share = rules.real(
        "mechanism.category_share", keys.get("category_share", 0.5), LEAST_SHARE, 1.0 - LEAST_SHARE
    )
    chosen = rules.choice("mechanism.oracles", keys.get("oracles", "best"), ("best", "grr"))
    return levels(
        sizes, epsilon=epsilon, shares=[share, 1.0 - share], oracles="grr" if chosen == "grr" else "best"
    )


def _neighbourhood(
    rules: Rules,
    attribute: Attribute,
    keys: Mapping[str, object],
    mapping: NDArray[np.intp],
    *,
    epsilon: float,
    devices: int,
) -> Channel:
    if "boost_epsilon" not in keys:
        rules.refuse("mechanism.boost_epsilon", "must be given", "nothing")
    boost = rules.real("mechanism.boost_epsilon", keys["boost_epsilon"])
    size = attribute.size
    if "window" in keys and not isinstance(attribute.domain, IntegerDomain):
        rules.refuse("mechanism.window", "must be pairs for an attribute of labels", keys["window"])
    if ("window" in keys) == ("pairs" in keys):
        rules.refuse("mechanism", "must have either window or pairs", sorted(keys))
    order = mapping[:size]
    near = np.zeros((size, size), dtype=np.bool_)
    if "window" in keys:
        window = rules.integer("mechanism.window", keys["window"], 0, size - 1)
        steps = np.abs(np.arange(size)[:, None] - np.arange(size))
        near[np.ix_(order, order)] = steps <= window
    else:
        for one, other in _pairs(rules, attribute, keys["pairs"]):
            near[order[one], order[other]] = near[order[other], order[one]] = True
    return neighbourhood(
        size, epsilon=epsilon, boost_epsilon=boost, relation=near, devices=devices, missing="input"
    )


def _pairs(rules: Rules, attribute: Attribute, value: object) -> list[tuple[int, int]]:
    """Return indices of the values that are near each other."""
    found = []
    if not isinstance(value, list):
        rules.refuse("mechanism.pairs", "must be a list of [value, value]", value)
    for i, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            rules.refuse(f"mechanism.pairs[{i}]", "must be [value, value]", pair)
        one, other = (attribute.index_of(member) for member in pair)
        if attribute.size in (one, other):
            rules.refuse(f"mechanism.pairs[{i}]", "must hold values of the attribute's domain", pair)
        found.append((one, other))
    return found
