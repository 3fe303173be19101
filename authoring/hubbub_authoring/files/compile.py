"""The compiler of a survey: it makes form and channel of what a survey file declares.

One attribute of integers or labels is compiled by `discrete`, a number's grid by `grid`; the mechanism
of "auto" is found by `auto`. Tables are put together here. A form with a mechanism of its own, as a score, is
compiled by its own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hubbub.channels import Channel
from hubbub.errors import ParameterError, SurveyError
from hubbub.survey import (
    MAX_ATTRIBUTES,
    MISSING,
    Category,
    Choice,
    CrossTable,
    DeclaredAttribute,
    DeclaredMechanism,
    Form,
    FormRequest,
    NumberDomain,
    Rules,
    Single,
    check_attributes,
    check_size,
    forms_by_mechanism,
    owners_of,
)
from hubbub_authoring.files.auto import chosen_in_table, chosen_mechanism
from hubbub_authoring.files.discrete import ANSWERED, Plan, discrete_plan
from hubbub_authoring.files.grid import grid_channel
from hubbub_authoring.mechanisms.mechanism import POINTS, READING, Request
from hubbub_authoring.mechanisms.registry import mechanisms, mechanisms_for

# Those that know single inputs only: a table has no categories that partition its inputs.
TABLE_MECHANISMS: Final = tuple(mechanisms_for("table"))


def compile_survey(
    rules: Rules,
    asked: DeclaredAttribute | Sequence[DeclaredAttribute],
    mechanism: DeclaredMechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> tuple[Form, Channel, Choice | None]:
    """Return the form and the channel of one survey, and what "auto" chose if it was left to choose.

    The channel is without its participation coin, which "auto" reckons with.

    Args:
        rules: How to refuse.
        asked: One attribute, or several for a cross table or a form with a mechanism of its own.
        mechanism: As declared.
        epsilon: Declared.
        devices: How many the design counts on.
        participation: As declared, unchecked.

    Raises:
        SurveyError: If the categories do not partition the domain, the mechanism's keys break a rule, or no
            channel of integers keeps the declared epsilon.
    """
    try:
        own = forms_by_mechanism().get(mechanism.name)
        if own is not None and own.compile is not None:
            several = [asked] if isinstance(asked, DeclaredAttribute) else asked
            return *own.compile(FormRequest(rules, several, mechanism.keys, epsilon, participation)), None
        if not isinstance(asked, DeclaredAttribute):
            return _table(
                rules, asked, mechanism, epsilon=epsilon, devices=devices, participation=participation
            )
        plan, choice = _single(
            rules, asked, mechanism, epsilon=epsilon, devices=devices, participation=participation
        )
    except SurveyError:
        raise
    except ParameterError as error:
        raise SurveyError(rules.file, "mechanism", f"must compile ({error})", mechanism.name) from None
    form = Single(asked.attribute, plan.channel.inputs, plan.mapping, plan.category_names, plan.category_of)
    _check_labels(rules, form)
    return form, plan.channel, choice


def _check_labels(rules: Rules, form: Form) -> None:
    """Refuse two inputs of one name: a label that is a category's too, or labels that are one when joined."""
    seen: set[str] = set()
    for label in form.input_labels:
        if label in seen:
            rules.refuse("attribute", "must give every input a name of its own", label)
        seen.add(label)


def _single(
    rules: Rules,
    asked: DeclaredAttribute,
    mechanism: DeclaredMechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> tuple[Plan, Choice | None]:
    attribute, choice = asked.attribute, None
    if mechanism.name == "auto":
        choice = chosen_mechanism(
            rules,
            asked,
            mechanism.keys,
            epsilon=epsilon,
            devices=devices,
            participation=rules.real("mechanism.participation", participation, 0.0, 1.0),
        )
        mechanism = DeclaredMechanism(choice.mechanism, choice.parameters)
    if isinstance(attribute.domain, NumberDomain):
        return _grid(rules, attribute.domain, asked.categories, mechanism, epsilon), choice
    entry = mechanisms()[mechanism.name]
    if "labels" not in entry.takes:
        rules.refuse("attribute.type", f"must be number for {mechanism.name}", attribute.to_spec()[2])
    return discrete_plan(rules, asked, mechanism, entry, epsilon=epsilon, devices=devices), choice


def _table(
    rules: Rules,
    asked: Sequence[DeclaredAttribute],
    mechanism: DeclaredMechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> tuple[CrossTable, Channel, Choice | None]:
    """Return the cross table of several attributes: every combination of readings is an input."""
    attributes = tuple(each.attribute for each in asked)
    check_attributes(rules, attributes, 2, MAX_ATTRIBUTES)
    readings, names = [], []
    for each in asked:
        if isinstance(each.attribute.domain, NumberDomain):
            rules.refuse(f"{each.key}.type", "must be integer or label in a table", "number")
        if len(each.categories) == 1:
            rules.refuse(f"{each.key}.category", "must be two or more", each.categories[0].name)
        own = owners_of(rules, each) if each.categories else np.arange(each.attribute.size)
        readings.append(np.append(own, own.max() + 1))
        names.append(tuple(category.name for category in each.categories) or None)
    form = CrossTable(attributes, tuple(readings), tuple(names))
    check_size(rules, attributes, form.shape)
    _check_labels(rules, form)
    allowed = ("auto", *TABLE_MECHANISMS)
    if mechanism.name not in allowed:
        rules.refuse("mechanism.name", f"must be one of {', '.join(allowed)} in a table", mechanism.name)
    own_keys = [] if mechanism.name == "auto" else [key.name for key in mechanisms()[mechanism.name].keys]
    for key, value in mechanism.keys.items():
        if key not in own_keys or key in (READING.name, POINTS.name):
            rules.refuse(f"mechanism.{key}", "must be absent in a table", value)
    choice = None
    if mechanism.name == "auto":
        coin = rules.real("mechanism.participation", participation, 0.0, 1.0)
        choice = chosen_in_table(
            TABLE_MECHANISMS, form.inputs, epsilon=epsilon, devices=devices, participation=coin
        )
        mechanism = DeclaredMechanism(choice.mechanism, choice.parameters)
    whole = np.append(np.zeros(form.inputs - 1, dtype=np.intp), 1)
    request = Request(rules, mechanism.keys, form.inputs, epsilon, whole)
    return form, mechanisms()[mechanism.name].build(request), choice


def _grid(
    rules: Rules,
    domain: NumberDomain,
    categories: Sequence[Category],
    mechanism: DeclaredMechanism,
    epsilon: float,
) -> Plan:
    known = mechanisms_for("numbers")
    if mechanism.name not in known:
        # A grid has no categories, and what a neighbourhood is to labels, boosted noise is to numbers.
        rules.refuse(
            "mechanism.name",
            f"must be auto, {', '.join(known)} for an attribute of numbers, which has no "
            "categories and whose near values are those of boosted",
            mechanism.name,
        )
    if READING.name in mechanism.keys:
        rule = "must be absent for an attribute of numbers"
        rules.refuse(READING.place, rule, mechanism.keys[READING.name])
    if categories:
        rules.refuse("category", "must not be given for an attribute of numbers", categories[0].name)
    channel = grid_channel(rules, domain, known[mechanism.name], mechanism.keys, epsilon)
    category_of = np.zeros(channel.inputs, dtype=np.intp)
    category_of[-1] = 1
    return Plan(channel, None, (ANSWERED, MISSING), category_of)
