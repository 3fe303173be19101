"""The declared parts of a survey file: attributes, categories and mechanism, not yet compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hubbub.survey.domain import ABSENT_VALUE, Attribute, IntegerDomain
from hubbub.survey.rules import Rules


@dataclass(frozen=True, slots=True)
class Category:
    """A category as declared.

    Attributes:
        key: Where its members stand in the file, for messages.
        name: What people read.
        is_range: Whether `members` are the two ends of a range rather than the values themselves.
        members: Values of the domain, as they stand in the file.
        within: The categories that it consists of, in place of members; () for any other.
    """

    key: str
    name: str
    is_range: bool
    members: Sequence[object]
    within: Sequence[Category] = ()


@dataclass(frozen=True, slots=True)
class DeclaredMechanism:
    """A mechanism as declared: its name, and its keys, unchecked."""

    name: str
    keys: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
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


def owners_of(rules: Rules, asked: DeclaredAttribute) -> NDArray[np.intp]:
    """Return the category of every value of a discrete domain, shape (size,); all 0 where none is declared.

    Raises:
        SurveyError: If the categories do not partition the domain.
    """
    attribute, categories, size = asked.attribute, asked.categories, asked.attribute.size
    if not categories:
        return np.zeros(size, dtype=np.intp)
    found = np.full(size, -1, dtype=np.intp)
    for number, category in enumerate(categories):
        indices = _indices(rules, attribute, category)
        for index in indices:
            if found[index] >= 0:
                other = categories[int(found[index])]
                where = "itself" if other is category else f"{other.key} ({other.name})"
                rules.refuse(category.key, f"must not overlap {where}", attribute.label_of(index))
            found[index] = number
    if (found < 0).any():
        missed = attribute.label_of(int(np.argmin(found)))
        key = categories[0].key.partition("category")[0] + "category"
        rules.refuse(key, "must cover the whole domain", f"no category for {missed}")
    return found


def _indices(rules: Rules, attribute: Attribute, category: Category) -> Sequence[int]:
    """Return the indices of a category's members in the domain."""
    domain = attribute.domain
    if category.is_range and not isinstance(domain, IntegerDomain):
        rules.refuse(category.key, "must be values for an attribute of labels", list(category.members))
    kind, what = (int, "integers") if isinstance(domain, IntegerDomain) else (str, "labels")
    absent = (ABSENT_VALUE,) if attribute.tells_absent and not category.is_range else ()
    found = []
    for member in category.members:
        index = attribute.index_of(member) if type(member) is kind or member in absent else attribute.size
        if index == attribute.size:
            rules.refuse(category.key, f"must hold {what} of the attribute's domain", member)
        found.append(index)
    if not category.is_range:
        return found
    low, high = found
    if low > high:
        rules.refuse(category.key, "must be [lowest, highest]", list(category.members))
    return range(low, high + 1)
