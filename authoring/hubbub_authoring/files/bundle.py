"""The compiler of a bundle: tables of many attributes, each device asked for one sampled part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, cast, get_args

import numpy as np

from hubbub.errors import ABSENT
from hubbub.mechanisms import MAX_BUNDLED, MAX_ORDER, MAX_PARTS, SampledParts
from hubbub.survey import Bundle, DeclaredAttribute, NumberDomain, Rules, check_attributes, owners_of
from hubbub_authoring.design.parts import PartKinds, design_parts

BUNDLE: Final = "bundle"
"""The name of the mechanism, and of its table in a survey file."""

KEYS: Final = ("tables", "weight", "error", "order", "parts")
MAX_WEIGHT: Final = 1e6


def bundle_survey(
    rules: Rules,
    asked: Sequence[DeclaredAttribute],
    table: Mapping[str, object],
    *,
    epsilon: float,
    participation: object,
) -> tuple[Bundle, SampledParts]:
    """Return the form and the channel of a bundle.

    Args:
        rules: How to refuse.
        asked: Its attributes, with their categories.
        table: The keys of [bundle].
        epsilon: Declared.
        participation: As declared.

    Raises:
        SurveyError: If attributes, tables or keys break a rule.
        ParameterError: If no integers keep the declared epsilon.
    """
    if participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for a bundle", participation)
    attributes = tuple(each.attribute for each in asked)
    check_attributes(rules, attributes, 2, MAX_BUNDLED)
    readings, names = [], []
    for each in asked:
        if isinstance(each.attribute.domain, NumberDomain):
            rules.refuse(f"{each.key}.type", "must be integer or label in a bundle", "number")
        if len(each.categories) == 1:
            rules.refuse(f"{each.key}.category", "must be two or more", each.categories[0].name)
        own = owners_of(rules, each) if each.categories else np.arange(each.attribute.size)
        readings.append(np.append(own, own.max() + 1))
        names.append(tuple(category.name for category in each.categories) or None)
    tables = _tables(rules, [attribute.id for attribute in attributes], table)
    form = Bundle(attributes, tuple(readings), tuple(names), tables)
    order = table.get("order")
    if order is not None:
        order = rules.integer("bundle.order", order, 1, MAX_ORDER)
    if "error" in table:
        rules.real("bundle.error", table["error"], 1e-9, 1.0)
    kinds = cast(PartKinds, rules.choice("bundle.parts", table.get("parts", "tables"), get_args(PartKinds)))
    weights = _weights(rules, table, len(tables))
    designed = design_parts(form.shape, tables, epsilon=epsilon, weights=weights, order=order, kinds=kinds)
    return form, designed.channel


def _tables(rules: Rules, ids: Sequence[str], table: Mapping[str, object]) -> tuple[tuple[int, ...], ...]:
    """Return the tables that a file asks for, by the places of their attributes."""
    value, key, count = table.get("tables", ABSENT), "bundle.tables", len(ids)
    if value == "single":
        return tuple((j,) for j in range(count))
    if value == "pairs":
        return tuple(combinations(range(count), 2))
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PARTS:
        rules.refuse(key, 'must be "pairs", "single" or a list of lists of attributes', value)
    found = []
    for i, names in enumerate(value):
        if (
            not isinstance(names, list)
            or not 1 <= len(names) <= MAX_ORDER
            or len(set(map(str, names))) < len(names)
        ):
            rules.refuse(f"{key}[{i}]", f"must be a list of 1 to {MAX_ORDER} different attributes", names)
        for name in names:
            if name not in ids:
                rules.refuse(f"{key}[{i}]", f"must be of the attributes {', '.join(ids)}", name)
        found.append(tuple(sorted(ids.index(cast(str, name)) for name in names)))
    if len(set(found)) < len(found):
        rules.refuse(key, "must be tables that differ", value)
    missing = set(range(count)) - {j for one in found for j in one}
    if missing:
        rules.refuse(key, "must have every attribute in a table", ids[min(missing)])
    return tuple(found)


def _weights(rules: Rules, table: Mapping[str, object], count: int) -> list[float] | None:
    value = table.get("weight")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != count:
        rules.refuse("bundle.weight", f"must be a list of {count} numbers, one per table", value)
    return [
        rules.real(f"bundle.weight[{i}]", each, 1.0 / MAX_WEIGHT, MAX_WEIGHT) for i, each in enumerate(value)
    ]
