"""The compiler of a survey: it makes form and channel of what a survey file declares.

A number's grid is compiled by `grid`, and the mechanism of "auto" is found by `auto`. Attributes of integers
and labels, and tables, are put together here. A form with a mechanism of its own, as a score, is compiled by
its own module. Inputs are numbered category by category and missing comes last, as every mechanism with
categories expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import MAX_INPUTS, Channel
from hubbub.errors import ParameterError, SurveyError
from hubbub.mechanisms import LocalHashing
from hubbub.survey import (
    ANSWERED,
    MAX_ATTRIBUTES,
    MISSING,
    Asks,
    Attribute,
    Category,
    Choice,
    CrossTable,
    DeclaredAttribute,
    DeclaredMechanism,
    DictionaryDomain,
    Form,
    FormRequest,
    IntegerDomain,
    LabelDomain,
    NumberDomain,
    Rules,
    SetDomain,
    Single,
    Transition,
    check_size,
    check_transition_size,
    forms_by_mechanism,
    owners_of,
)
from hubbub_authoring.files.auto import chosen_in_table, chosen_mechanism
from hubbub_authoring.files.bundle import BUNDLE, bundle_survey, read_attributes
from hubbub_authoring.files.grid import grid_channel
from hubbub_authoring.files.key_value import KEY_VALUE, key_value_survey
from hubbub_authoring.files.label_tree import is_tree, tree_survey
from hubbub_authoring.mechanisms.mechanism import POINTS, READING, Mechanism, Request
from hubbub_authoring.mechanisms.registry import mechanisms, mechanisms_for

if TYPE_CHECKING:
    from hubbub_authoring.design import Comparison

HASHED: Final = LocalHashing.kind
"""The mechanism that may ask about more values than any other."""


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
    compare: Comparison | None,
    transition: DeclaredTransition | None = None,
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
        compare: How "auto" compares mechanisms; None for the usual way.
        transition: What is asked of two rounds; None where one is asked for.

    Raises:
        SurveyError: If the categories do not partition the domain, the mechanism's keys break a rule, or no
            channel of integers keeps the declared epsilon.
    """
    try:
        pairs = None
        if transition is not None:
            pairs = _pairs(rules, asked, transition)
            _check_labels(rules, pairs)
            asked = _labels_of(pairs)
        own = forms_by_mechanism().get(mechanism.name)
        if own is not None and pairs is not None:
            rules.refuse("mechanism.name", "must be one for labels in a transition", mechanism.name)
        if own is not None and own.compile is not None:
            several = [asked] if isinstance(asked, DeclaredAttribute) else asked
            return *own.compile(FormRequest(rules, several, mechanism.keys, epsilon, participation)), None
        for each in [asked] if isinstance(asked, DeclaredAttribute) else asked:
            if isinstance(each.attribute.domain, SetDomain):
                rules.refuse(f"{each.key}.type", "must not be set unless mechanism.name is set", "set")
        made = _own_form(rules, asked, mechanism, epsilon=epsilon, participation=participation)
        if made is not None:
            return *made, None
        if not isinstance(asked, DeclaredAttribute):
            return _table(
                rules,
                asked,
                mechanism,
                epsilon=epsilon,
                devices=devices,
                participation=participation,
                compare=compare,
            )
        plan, choice = _single(
            rules,
            asked,
            mechanism,
            epsilon=epsilon,
            devices=devices,
            participation=participation,
            compare=compare,
        )
    except SurveyError:
        raise
    except ParameterError as error:
        raise SurveyError(rules.file, "mechanism", f"must compile ({error})", mechanism.name) from None
    if pairs is not None:
        return pairs, plan.channel, choice
    sizes = tuple(np.bincount(plan.category_of).tolist())
    single = Single(asked.attribute, plan.channel.inputs, plan.mapping, plan.category_names, sizes)
    _check_labels(rules, single)
    return single, plan.channel, choice


def _own_form(
    rules: Rules,
    asked: DeclaredAttribute | Sequence[DeclaredAttribute],
    mechanism: DeclaredMechanism,
    *,
    epsilon: float,
    participation: object,
) -> tuple[Form, Channel] | None:
    """Return form and channel of a tree, a key-value survey or a bundle; None where it is another's."""
    if is_tree(asked, mechanism):
        return tree_survey(rules, asked, mechanism, epsilon=epsilon)
    several = [asked] if isinstance(asked, DeclaredAttribute) else asked
    request = FormRequest(rules, several, mechanism.keys, epsilon, participation)
    if mechanism.name == KEY_VALUE:
        return key_value_survey(request)
    return bundle_survey(request) if mechanism.name == BUNDLE else None


@dataclass(frozen=True, slots=True)
class DeclaredTransition:
    """The question of a file about values of two rounds: the rounds between them, and what is told apart."""

    lag: int
    asks: Asks


def _pairs(
    rules: Rules, asked: DeclaredAttribute | Sequence[DeclaredAttribute], transition: DeclaredTransition
) -> Transition:
    """Return the form of a transition, its attribute read by value, or by category where it has some."""
    if not isinstance(asked, DeclaredAttribute):
        rules.refuse("transition", "must be of one [attribute]", len(asked))
    if isinstance(asked.attribute.domain, NumberDomain):
        rules.refuse("attribute.type", "must be integer or label in a transition", "number")
    owners = owners_of(rules, asked) if asked.categories else np.arange(asked.attribute.size)
    names = tuple(category.name for category in asked.categories) or None
    encoding = np.append(owners, owners.max() + 1)
    check_transition_size(rules, asked.attribute, int(encoding[-1]))
    return Transition(asked.attribute, encoding, names, transition.lag, transition.asks)


def _labels_of(form: Transition) -> DeclaredAttribute:
    """Return the inputs of a transition as labels, in its categories, as mechanisms are compiled for them."""
    labels = [str(place) for place in range(len(form.category_of) - 1)]
    of = form.category_of[:-1].tolist()
    members = [[label for label, own in zip(labels, of, strict=True) if own == c] for c in range(max(of) + 1)]
    categories = [
        Category("transition", name, is_range=False, members=own)
        for name, own in zip(form.category_names, members, strict=False)
    ]
    attribute = Attribute(form.attribute.id, "evolving", LabelDomain(tuple(labels)))
    return DeclaredAttribute("attribute", attribute, categories if len(categories) > 1 else ())


def _check_labels(rules: Rules, form: Form) -> None:
    """Refuse two inputs of one name: a label that is a category's too, or labels that are one when joined.

    Texts of a dictionary are numbered.
    """
    if any(isinstance(each.domain, DictionaryDomain) for each in form.attributes) and form.alone:
        return
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
    compare: Comparison | None,
) -> tuple[Plan, Choice | None]:
    attribute, choice = asked.attribute, None
    if (
        not isinstance(attribute.domain, NumberDomain)
        and attribute.size >= MAX_INPUTS
        and mechanism.name != HASHED
    ):
        rule = f"must have at most {MAX_INPUTS - 1} values unless mechanism.name is {HASHED}"
        rules.refuse("attribute", rule, attribute.size)
    if mechanism.name == "auto":
        choice = chosen_mechanism(
            rules,
            asked,
            mechanism.keys,
            epsilon=epsilon,
            devices=devices,
            participation=rules.real("mechanism.participation", participation, 0.0, 1.0),
            compare=compare,
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
    compare: Comparison | None,
) -> tuple[CrossTable, Channel, Choice | None]:
    """Return the cross table of several attributes: every combination of readings is an input."""
    attributes, readings, names = read_attributes(rules, asked, MAX_ATTRIBUTES, "a table")
    form = CrossTable(attributes, readings, names)
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
            TABLE_MECHANISMS,
            form.inputs,
            epsilon=epsilon,
            devices=devices,
            participation=coin,
            compare=compare,
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
