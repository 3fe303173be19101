"""From what a survey file declares to a channel and the map from the attribute's domain to its inputs.

Inputs are numbered category by category and missing comes last: what every mechanism with categories expects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.channel import MAX_INPUTS, MAX_WEIGHTS, Channel
from hubbub.domain import Attribute, IntegerDomain, NumberDomain
from hubbub.errors import ParameterError, SurveyError
from hubbub.mechanisms.boosted import Absolute, Fixed, boosted
from hubbub.mechanisms.grr import grr
from hubbub.mechanisms.levels import levels
from hubbub.mechanisms.pbgrr import pbgrr
from hubbub.mechanisms.subset import subset_selection
from hubbub.mechanisms.unary import unary
from hubbub.survey_rules import MISSING, Rules

# The one category beside missing where a survey declares none: the share of devices that have a value.
ANSWERED: Final = "answered"
# The smallest share of reports that a level can have: a level that hardly anyone reports about says nothing.
LEAST_SHARE: Final = 1e-3
_REGION_KEYS: Final = {"absolute": ("half_width",), "fixed": ("low", "high")}


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
class Plan:
    """A compiled channel and how a domain and its categories relate to the inputs, as in Survey."""

    channel: Channel
    mapping: NDArray[np.intp] | None
    category_names: tuple[str, ...]
    category_of: NDArray[np.intp]


def compile_survey(
    rules: Rules, attribute: Attribute, categories: Sequence[Category], mechanism: Mechanism, epsilon: float
) -> Plan:
    """The compiled plan of one survey.

    Raises:
        SurveyError: If the categories do not partition the domain, the mechanism's keys break a rule, or no
            channel of integers keeps the declared epsilon.
    """
    try:
        if mechanism.name == "boosted":
            return _boosted(rules, attribute, categories, mechanism.keys, epsilon)
        return _discrete(rules, attribute, categories, mechanism, epsilon)
    except SurveyError:
        raise
    except ParameterError as error:
        raise SurveyError(rules.file, "mechanism", f"must compile ({error})", mechanism.name) from None


def _discrete(
    rules: Rules, attribute: Attribute, categories: Sequence[Category], mechanism: Mechanism, epsilon: float
) -> Plan:
    if isinstance(attribute.domain, NumberDomain):
        rules.refuse("mechanism.name", "must be boosted for an attribute of numbers", mechanism.name)
    size = attribute.size
    names = (*(category.name for category in categories), MISSING) if categories else (ANSWERED, MISSING)
    owners = _owners(rules, attribute, categories) if categories else np.zeros(size, dtype=np.intp)
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

    reading = rules.choice("mechanism.reading", mechanism.keys.get("reading", "value"), ("value", "category"))
    if reading == "category":
        if len(categories) < 2:
            rules.refuse("category", "must be two or more for reading by category", len(categories))
        mapping = np.append(owners, len(categories))
        category_of = np.arange(len(names))
    return Plan(_flat(rules, mechanism, len(category_of), epsilon), mapping, names, category_of)


def _flat(rules: Rules, mechanism: Mechanism, inputs: int, epsilon: float) -> Channel:
    """The channel of a mechanism that knows no categories."""
    if mechanism.name == "subset":
        return subset_selection(inputs, epsilon=epsilon)
    if mechanism.name == "unary":
        chosen = mechanism.keys.get("variant", "optimised")
        variant = rules.choice("mechanism.variant", chosen, ("optimised", "symmetric"))
        return unary(inputs, epsilon=epsilon, variant="symmetric" if variant == "symmetric" else "optimised")
    return grr(inputs, epsilon=epsilon)


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


def _owners(rules: Rules, attribute: Attribute, categories: Sequence[Category]) -> NDArray[np.intp]:
    """The category of every value of a discrete domain, shape (size,), if they partition it."""
    size = attribute.size
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
        rules.refuse("category", "must cover the whole domain", f"no category for {missed}")
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


def _boosted(
    rules: Rules,
    attribute: Attribute,
    categories: Sequence[Category],
    keys: Mapping[str, object],
    epsilon: float,
) -> Plan:
    domain = attribute.domain
    if not isinstance(domain, NumberDomain):
        rules.refuse("attribute.type", "must be number for boosted noise", type(domain).__name__)
    if categories:
        rules.refuse("category", "must not be given for an attribute of numbers", categories[0].name)
    if "points" not in keys:
        rules.refuse("mechanism.points", "must be given", "nothing")
    points = rules.integer("mechanism.points", keys["points"], 2, MAX_INPUTS - 1)
    if (points + 1) ** 2 > MAX_WEIGHTS:
        rules.refuse("mechanism.points", f"must leave a matrix of at most {MAX_WEIGHTS} weights", points)
    domain.grid(points)  # refuses points that no float tells apart
    kernel = rules.choice("mechanism.kernel", keys.get("kernel", "uniform"), ("laplace", "uniform"))
    region = _region(rules, keys, domain, points)
    channel = boosted(
        points,
        epsilon=epsilon,
        kernel="laplace" if kernel == "laplace" else "uniform",
        region=region,
        kernel_epsilon=_optional(rules, keys, "kernel_epsilon", epsilon),
        boost=_optional(rules, keys, "boost", 1.0),
        missing="input",
    )
    category_of = np.zeros(points + 1, dtype=np.intp)
    category_of[points] = 1
    return Plan(channel, None, (ANSWERED, MISSING), category_of)


def _optional(rules: Rules, keys: Mapping[str, object], name: str, high: float) -> float | None:
    return rules.real(f"mechanism.{name}", keys[name], 0.0, high) if name in keys else None


def _region(rules: Rules, keys: Mapping[str, object], domain: NumberDomain, points: int) -> Absolute | Fixed:
    """The region in steps of the grid; the file speaks in the attribute's units."""
    shape = rules.choice("mechanism.region", keys.get("region", "absolute"), tuple(_REGION_KEYS))
    for other, names in _REGION_KEYS.items():
        for name in names:
            if other != shape and name in keys:
                rules.refuse(f"mechanism.{name}", f"must be absent for a region that is {shape}", keys[name])
            if other == shape == "fixed" and name not in keys:
                rules.refuse(f"mechanism.{name}", "must be given for a region that is fixed", "nothing")
    step = (domain.high - domain.low) / (points - 1)
    if shape == "absolute":
        half_width = _optional(rules, keys, "half_width", domain.high - domain.low)
        return Absolute(None if half_width is None else half_width / step)
    low, high = (rules.real(f"mechanism.{name}", keys[name]) for name in _REGION_KEYS[shape])
    return Fixed((low - domain.low) / step, (high - domain.low) / step)
