"""From what a survey file declares to a channel and the map from the attribute's domain to its inputs.

Inputs are numbered category by category and missing comes last: what every mechanism with categories expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.accounting.regression import MAX_NUMBERS
from hubbub.channel import Channel
from hubbub.domain import Attribute, IntegerDomain, LabelDomain, NumberDomain
from hubbub.errors import ParameterError, SurveyError
from hubbub.mechanisms.levels import levels
from hubbub.mechanisms.neighbourhood import neighbourhood
from hubbub.mechanisms.pbgrr import pbgrr
from hubbub.survey_flat import FLAT, flat_channel
from hubbub.survey_forms import Form
from hubbub.survey_grid import DEFAULT_POINTS, GRID_KEYS, grid_channel, grid_points
from hubbub.survey_rules import MISSING, Rules, check_attributes
from hubbub.survey_score import KINDS, Score, score_channel
from hubbub.survey_single import Single
from hubbub.survey_table import MAX_ATTRIBUTES, Table, check_size

# The one category beside missing where a survey declares none: the share of devices that have a value.
ANSWERED: Final = "answered"
# The smallest share of reports that a level can have: a level that hardly anyone reports about says nothing.
LEAST_SHARE: Final = 1e-3
# The mechanism that makes a survey a score.
REGRESSION: Final = "regression"
# Those that know single inputs only: a table has no categories that partition its inputs.
_TABLE_MECHANISMS: Final = ("grr", "subset", "unary")


@dataclass(frozen=True, slots=True)
class Category:
    """A category as declared.

    Attributes:
        key: Where its members stand in the file, for messages.
        name: What people read.
        is_range: Whether `members` are the two ends of a range rather than the values themselves.
        members: Values of the domain, as they stand in the file.
    """

    key: str
    name: str
    is_range: bool
    members: Sequence[object]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A mechanism as declared: its name, and its keys, unchecked."""

    name: str
    keys: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """An attribute as declared, and the categories of its values.

    Attributes:
        key: Where it stands in the file, for messages.
        attribute: The attribute.
        categories: Its categories, () without any.
        terms: What the mechanism reads of it, by key, unchecked.
    """

    key: str
    attribute: Attribute
    categories: Sequence[Category]
    terms: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled channel and how a domain and its categories relate to the inputs, as in `Single`."""

    channel: Channel
    mapping: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]


def compile_survey(
    rules: Rules,
    asked: Asked | Sequence[Asked],
    mechanism: Mechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> tuple[Form, Channel]:
    """The form and the channel of one survey, without its participation coin, which "auto" reckons with.

    Args:
        rules: How to refuse.
        asked: One attribute, or several for a cross table or a score.
        mechanism: As declared.
        epsilon: Declared.
        devices: How many the design counts on.
        participation: As declared, unchecked.

    Raises:
        SurveyError: If the categories do not partition the domain, the mechanism's keys break a rule, or no
            channel of integers keeps the declared epsilon.
    """
    try:
        if mechanism.name == REGRESSION:
            several = [asked] if isinstance(asked, Asked) else asked
            return _score(rules, several, mechanism.keys, epsilon=epsilon, participation=participation)
        if not isinstance(asked, Asked):
            return _table(
                rules, asked, mechanism, epsilon=epsilon, devices=devices, participation=participation
            )
        plan = _single(rules, asked, mechanism, epsilon=epsilon, devices=devices, participation=participation)
    except SurveyError:
        raise
    except ParameterError as error:
        raise SurveyError(rules.file, "mechanism", f"must compile ({error})", mechanism.name) from None
    form = Single(asked.attribute, plan.channel.inputs, plan.mapping, plan.category_names, plan.category_of)
    return form, plan.channel


def _single(
    rules: Rules,
    asked: Asked,
    mechanism: Mechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> Plan:
    attribute, categories = asked.attribute, asked.categories
    if mechanism.name == "auto":
        mechanism = chosen_mechanism(
            rules,
            attribute,
            categories,
            mechanism.keys,
            epsilon=epsilon,
            devices=devices,
            participation=rules.real("mechanism.participation", participation, 0.0, 1.0),
        )
    if isinstance(attribute.domain, NumberDomain):
        return _grid(rules, attribute.domain, categories, mechanism, epsilon)
    if mechanism.name in GRID_KEYS:
        rules.refuse(
            "attribute.type", f"must be number for {mechanism.name}", type(attribute.domain).__name__
        )
    return _discrete(rules, attribute, categories, mechanism, epsilon=epsilon, devices=devices)


def _score(
    rules: Rules,
    asked: Sequence[Asked],
    keys: Mapping[str, object],
    *,
    epsilon: float,
    participation: object,
) -> tuple[Score, Channel]:
    """The score of several numbers, in the order of their ids: one score has one encoding."""
    if participation != 1:
        rules.refuse("mechanism.participation", "must be 1 for a regression", participation)
    check_attributes(rules, [each.attribute for each in asked], 1, MAX_NUMBERS)
    pairs = {}
    for each in asked:
        domain = each.attribute.domain
        if isinstance(domain, LabelDomain):
            rules.refuse(f"{each.key}.type", "must be integer or number in a score", "label")
        if each.categories:
            rules.refuse(f"{each.key}.category", "must not be given in a score", each.categories[0].name)
        pairs[each.attribute.id] = (
            rules.real(f"{each.key}.coefficient", each.terms["coefficient"]),
            rules.real(f"{each.key}.default", each.terms["default"], float(domain.low), float(domain.high)),
        )
    for key in ("score", "intercept"):
        if key not in keys:
            rules.refuse(f"mechanism.{key}", "must be given", "nothing")
    chosen = rules.choice("mechanism.score", keys["score"], KINDS)
    kind = next(kind for kind in KINDS if kind == chosen)
    ends = {}
    for key, fixed in (("low", 0.0), ("high", 1.0)):
        if kind == "logistic" and key in keys:
            rules.refuse(f"mechanism.{key}", f"must be absent for a logistic score, {fixed:g}", keys[key])
        if kind != "logistic" and key not in keys:
            rules.refuse(f"mechanism.{key}", "must be given", "nothing")
        ends[key] = rules.real(f"mechanism.{key}", keys.get(key, fixed))
    attributes = sorted((each.attribute for each in asked), key=lambda attribute: attribute.id)
    form = Score(
        tuple(attributes),
        kind,
        tuple(pairs[attribute.id][0] for attribute in attributes),
        rules.real("mechanism.intercept", keys["intercept"]),
        tuple(pairs[attribute.id][1] for attribute in attributes),
        ends["low"],
        ends["high"],
        epsilon,
    )
    return form, score_channel(form.regression)


def _table(
    rules: Rules,
    asked: Sequence[Asked],
    mechanism: Mechanism,
    *,
    epsilon: float,
    devices: int,
    participation: object,
) -> tuple[Table, Channel]:
    """The cross table of several attributes: every combination of readings is an input."""
    attributes = tuple(each.attribute for each in asked)
    check_attributes(rules, attributes, 2, MAX_ATTRIBUTES)
    readings, names = [], []
    for each in asked:
        if isinstance(each.attribute.domain, NumberDomain):
            rules.refuse(f"{each.key}.type", "must be integer or label in a table", "number")
        if len(each.categories) == 1:
            rules.refuse(f"{each.key}.category", "must be two or more", each.categories[0].name)
        own = _owners(rules, each) if each.categories else np.arange(each.attribute.size)
        readings.append(np.append(own, own.max() + 1))
        names.append(tuple(category.name for category in each.categories) or None)
    form = Table(attributes, tuple(readings), tuple(names))
    check_size(rules, attributes, form.shape)
    allowed = ("auto", *_TABLE_MECHANISMS)
    if mechanism.name not in allowed:
        rules.refuse("mechanism.name", f"must be one of {', '.join(allowed)} in a table", mechanism.name)
    for key, value in mechanism.keys.items():
        if key != "variant":
            rules.refuse(f"mechanism.{key}", "must be absent in a table", value)
    if mechanism.name == "auto":
        coin = rules.real("mechanism.participation", participation, 0.0, 1.0)
        mechanism = _chosen_in_table(form.inputs, epsilon, devices, coin)
    return form, flat_channel(rules, mechanism.name, mechanism.keys, form.inputs, epsilon)


def _chosen_in_table(inputs: int, epsilon: float, devices: int, participation: float) -> Mechanism:
    """The mechanism whose combinations have the least exact variance, all of them equally common."""
    from hubbub.design.comparison import compare  # noqa: PLC0415 - only an author's machine designs
    from hubbub.design.question import Question  # noqa: PLC0415

    question = Question.uniform(
        kind="labels",
        epsilon=epsilon,
        category_of=np.append(np.zeros(inputs - 1, dtype=np.intp), 1),
        devices=devices,
        points=None,
        objective=None,
        participation=participation,
    )
    best = next(found for found in compare(question) if found.mechanism in _TABLE_MECHANISMS)
    return Mechanism(best.mechanism, dict(best.parameters))


def chosen_mechanism(
    rules: Rules,
    attribute: Attribute,
    categories: Sequence[Category],
    keys: Mapping[str, object],
    *,
    epsilon: float,
    devices: int,
    participation: float,
) -> Mechanism:
    """What "auto" stands for: the mechanism of least exact variance for the objective, and its keys.

    Raises:
        SurveyError: If a key breaks its rule.
        ParameterError: If no mechanism can answer the objective.
    """
    # Only an author's machine designs; a device reads canonical bytes.
    from hubbub.design.comparison import choose  # noqa: PLC0415
    from hubbub.design.question import OBJECTIVES, QUANTITIES, Objective, Question  # noqa: PLC0415

    numbers = isinstance(attribute.domain, NumberDomain)
    if numbers:
        points = grid_points(rules, keys, DEFAULT_POINTS)
        owners = np.zeros(points, dtype=np.intp)
    elif "points" in keys:
        rules.refuse("mechanism.points", "must be absent unless the attribute is a number", keys["points"])
    else:
        owners = (
            _owners(rules, Asked("attribute", attribute, categories))
            if categories
            else np.zeros(attribute.size, np.intp)
        )
    category_of = np.append(np.sort(owners), owners.max() + 1)
    objective = None
    if "within" in keys and keys.get("objective") != "hit":
        rules.refuse("mechanism.within", "must be absent unless the objective is hit", keys["within"])
    if "objective" in keys:
        quantity = rules.choice("mechanism.objective", keys["objective"], QUANTITIES)
        weight = rules.real("mechanism.category_weight", keys.get("category_weight", 0.5), 0.0, 1.0)
        of = rules.choice("mechanism.of", keys.get("of", "means"), ("means", "totals"))
        within = None
        if quantity == "hit":
            if "within" not in keys:
                rules.refuse("mechanism.within", "must be given for the objective hit", "nothing")
            within = rules.real("mechanism.within", keys["within"], 0.0)
        objective = Objective(OBJECTIVES[quantity], weight, "totals" if of == "totals" else "means", within)
    found = choose(
        Question.uniform(
            kind="grid" if numbers else "labels",
            epsilon=epsilon,
            category_of=category_of,
            devices=devices,
            points=_points(attribute, owners),
            objective=objective,
            participation=participation,
        )
    )
    return Mechanism(found.mechanism, dict(found.parameters))


def _points(attribute: Attribute, owners: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """The number of every input, nan at missing; None for labels."""
    domain = attribute.domain
    if isinstance(domain, NumberDomain):
        return np.append(domain.grid(len(owners)), np.nan)
    if isinstance(domain, IntegerDomain):
        return np.append(domain.low + np.argsort(owners, kind="stable").astype(np.float64), np.nan)
    return None


def _grid(
    rules: Rules,
    domain: NumberDomain,
    categories: Sequence[Category],
    mechanism: Mechanism,
    epsilon: float,
) -> Plan:
    if mechanism.name not in FLAT and mechanism.name not in GRID_KEYS:
        # A grid has no categories, and what a neighbourhood is to labels, boosted noise is to numbers.
        rules.refuse(
            "mechanism.name",
            f"must be auto, {', '.join((*FLAT, *GRID_KEYS))} for an attribute of numbers, which has no "
            "categories and whose near values are those of boosted",
            mechanism.name,
        )
    if "reading" in mechanism.keys:
        rules.refuse(
            "mechanism.reading", "must be absent for an attribute of numbers", mechanism.keys["reading"]
        )
    if categories:
        rules.refuse("category", "must not be given for an attribute of numbers", categories[0].name)
    channel = grid_channel(rules, domain, mechanism.name, mechanism.keys, epsilon)
    category_of = np.zeros(channel.inputs, dtype=np.intp)
    category_of[-1] = 1
    return Plan(channel, None, (ANSWERED, MISSING), category_of)


def _discrete(
    rules: Rules,
    attribute: Attribute,
    categories: Sequence[Category],
    mechanism: Mechanism,
    *,
    epsilon: float,
    devices: int,
) -> Plan:
    if "points" in mechanism.keys:
        rules.refuse(
            "mechanism.points", "must be absent unless the attribute is a number", mechanism.keys["points"]
        )
    size = attribute.size
    names = (*(category.name for category in categories), MISSING) if categories else (ANSWERED, MISSING)
    owners = (
        _owners(rules, Asked("attribute", attribute, categories))
        if categories
        else np.zeros(size, dtype=np.intp)
    )
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
    channel = flat_channel(rules, mechanism.name, mechanism.keys, len(category_of), epsilon)
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
    """Indices of the values that are near each other."""
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


def _owners(rules: Rules, asked: Asked) -> NDArray[np.intp]:
    """The category of every value of a discrete domain, shape (size,), if they partition it."""
    attribute, categories, size = asked.attribute, asked.categories, asked.attribute.size
    owners = np.full(size, -1, dtype=np.intp)
    for number, category in enumerate(categories):
        indices = _indices(rules, attribute, category)
        for index in indices:
            if owners[index] >= 0:
                other = categories[int(owners[index])]
                where = "itself" if other is category else f"{other.key} ({other.name})"
                rules.refuse(category.key, f"must not overlap {where}", attribute.label_of(index))
            owners[index] = number
    if (owners < 0).any():
        missed = attribute.label_of(int(np.argmin(owners)))
        key = categories[0].key.partition("category")[0] + "category"
        rules.refuse(key, "must cover the whole domain", f"no category for {missed}")
    return owners


def _indices(rules: Rules, attribute: Attribute, category: Category) -> Sequence[int]:
    """Where a category's members stand in the domain."""
    domain = attribute.domain
    if category.is_range and not isinstance(domain, IntegerDomain):
        rules.refuse(category.key, "must be values for an attribute of labels", list(category.members))
    kind, what = (int, "integers") if isinstance(domain, IntegerDomain) else (str, "labels")
    found = []
    for member in category.members:
        index = attribute.index_of(member) if type(member) is kind else attribute.size
        if index == attribute.size:
            rules.refuse(category.key, f"must hold {what} of the attribute's domain", member)
        found.append(index)
    if not category.is_range:
        return found
    low, high = found
    if low > high:
        rules.refuse(category.key, "must be [lowest, highest]", list(category.members))
    return range(low, high + 1)
