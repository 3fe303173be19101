"""The compiler of a tree of labels, from categories within categories, and of a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hubbub.channels import Channel
from hubbub.survey import (
    Category,
    DeclaredAttribute,
    DeclaredMechanism,
    LabelTree,
    NumberDomain,
    Rules,
    owners_of,
)
from hubbub_authoring.mechanisms.levels import CELLS, nested_channel
from hubbub_authoring.mechanisms.mechanism import Request


def is_tree(asked: DeclaredAttribute | Sequence[DeclaredAttribute], mechanism: DeclaredMechanism) -> bool:
    """Return whether a file asks for a tree: it has categories within categories, or cells of a heat map."""
    several = [asked] if isinstance(asked, DeclaredAttribute) else asked
    nested = any(category.within for each in several for category in each.categories)
    return nested or CELLS.name in mechanism.keys


def tree_survey(
    rules: Rules,
    asked: DeclaredAttribute | Sequence[DeclaredAttribute],
    mechanism: DeclaredMechanism,
    *,
    epsilon: float,
) -> tuple[LabelTree, Channel]:
    """Return form and channel of a tree of labels, or of a heat map.

    Args:
        rules: How to refuse.
        asked: One attribute with nested categories, or two integers.
        mechanism: As declared; only "levels" asks for trees.
        epsilon: Declared.

    Raises:
        SurveyError: If the categories do not partition the domain, or a key breaks its rule.
        ParameterError: If no channel of integers keeps the declared epsilon.
    """
    if mechanism.name != "levels":
        rules.refuse("mechanism.name", "must be levels where categories are nested", mechanism.name)
    form = _heat_map(rules, asked, mechanism) if CELLS.name in mechanism.keys else _labels(rules, asked)
    request = Request(
        rules, mechanism.keys, form.inputs, epsilon, np.arange(form.inputs), categories=len(form.sizes[0])
    )
    return form, nested_channel(request, form.hierarchy())


def _labels(rules: Rules, asked: DeclaredAttribute | Sequence[DeclaredAttribute]) -> LabelTree:
    if not isinstance(asked, DeclaredAttribute):
        rules.refuse("attribute", "must be one [attribute] where categories are nested", len(asked))
    attribute = asked.attribute
    if isinstance(attribute.domain, NumberDomain):
        rules.refuse("category", "must not be given for an attribute of numbers", asked.categories[0].name)
    levels: list[list[Category]] = []
    nodes = list(asked.categories)
    while not levels or nodes != levels[-1]:
        levels.append(nodes)
        nodes = [below for node in nodes for below in node.within or (node,)]
    # The last level has no nested ones, and partitions the domain as categories always do.
    owners = owners_of(rules, replace(asked, categories=levels[-1]))
    held = dict(zip(map(id, levels[-1]), np.bincount(owners).tolist(), strict=True))
    mapping = np.empty(attribute.size + 1, dtype=np.intp)
    mapping[np.argsort(owners, kind="stable")] = np.arange(attribute.size)
    mapping[-1] = attribute.size
    return LabelTree(
        (attribute,),
        mapping,
        tuple(tuple(_size(node, held) for node in level) for level in levels),
        tuple(tuple(node.name for node in level) for level in levels),
    )


def _size(category: Category, held: dict[int, int]) -> int:
    """Return how many values are in a category, from those of the innermost ones by their identity."""
    return sum(_size(each, held) for each in category.within) if category.within else held[id(category)]


def _heat_map(
    rules: Rules, asked: DeclaredAttribute | Sequence[DeclaredAttribute], mechanism: DeclaredMechanism
) -> LabelTree:
    rules.choice(CELLS.place, mechanism.keys[CELLS.name], CELLS.choices)
    if isinstance(asked, DeclaredAttribute):
        rules.refuse("attribute", "must be two [[attribute]] tables of integers in a heat map", 1)
    for each in asked:
        if each.categories:
            rules.refuse(f"{each.key}.category", "must not be given in a heat map", each.categories[0].name)
    return LabelTree.quadtree(rules, [each.attribute for each in asked])
