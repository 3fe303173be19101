"""The compiler of a bundle: tables of many attributes, each device asked for one sampled part of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from hubbub.errors import ABSENT
from hubbub.mechanisms import MAX_BUNDLED, MAX_ORDER, MAX_PARTS, SampledParts
from hubbub.survey import (
    Attribute,
    Bundle,
    DeclaredAttribute,
    FormRequest,
    NumberDomain,
    Rules,
    check_attributes,
    owners_of,
)
from hubbub_authoring.design.parts import PartKinds, design_parts

BUNDLE: Final = "bundle"
"""The name of the mechanism, and of its table in a survey file."""

KEYS: Final = ("tables", "weight", "error", "order", "parts")
MAX_WEIGHT: Final = 1e6


def bundle_survey(request: FormRequest) -> tuple[Bundle, SampledParts]:
    """Return the form and the channel of a bundle, whose keys are those of [bundle].

    Raises:
        SurveyError: If attributes, tables or keys break a rule.
        ParameterError: If no integers keep the declared epsilon.
    """
    rules, table = request.rules, request.keys
    if request.participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for a bundle", request.participation)
    attributes, readings, names = read_attributes(rules, request.asked, MAX_BUNDLED, "a bundle")
    tables = _tables(rules, [attribute.id for attribute in attributes], table)
    form = Bundle(attributes, readings, names, tables)
    order = table.get("order")
    if order is not None:
        order = rules.integer("bundle.order", order, 1, MAX_ORDER)
    if "error" in table:
        rules.real("bundle.error", table["error"], 1e-9, 1.0)
    kinds = cast(PartKinds, rules.choice("bundle.parts", table.get("parts", "tables"), get_args(PartKinds)))
    weights = _weights(rules, table, len(tables))
    designed = design_parts(
        form.shape, tables, epsilon=request.epsilon, weights=weights, order=order, kinds=kinds
    )
    return form, designed.channel


def read_attributes(
    rules: Rules, asked: Sequence[DeclaredAttribute], most: int, where: str
) -> tuple[tuple[Attribute, ...], tuple[NDArray[np.intp], ...], tuple[tuple[str, ...] | None, ...]]:
    """Return 2 to `most` attributes, what every index of each is read as, missing last, and names.

    Raises:
        SurveyError: If one has numbers, or a single category.
    """
    attributes = tuple(each.attribute for each in asked)
    check_attributes(rules, attributes, 2, most)
    readings, names = [], []
    for each in asked:
        if isinstance(each.attribute.domain, NumberDomain):
            rules.refuse(f"{each.key}.type", f"must be integer or label in {where}", "number")
        if len(each.categories) == 1:
            rules.refuse(f"{each.key}.category", "must be two or more", each.categories[0].name)
        own = owners_of(rules, each) if each.categories else np.arange(each.attribute.size)
        readings.append(np.append(own, own.max() + 1))
        names.append(tuple(category.name for category in each.categories) or None)
    return attributes, tuple(readings), tuple(names)


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
