"""Bundles for tests: survey files of some attributes, each with its readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hubbub.survey.domain import Attribute
from hubbub.survey.survey import Survey

BEGIN = """\
id = "{name}"
version = 1
title = "Tables of many attributes"
epsilon = {epsilon}
planned_devices = 45222
minimum_cohort = 50

[schedule]
start = 2026-01-01T00:00:00Z
round = "24h"
rounds = {rounds}
lateness = "6h"
skew = "5m"

[mechanism]
name = "bundle"

[bundle]
tables = {tables}
"""


def bundle_text(
    sizes: Mapping[str, int],
    *,
    tables: str = '"pairs"',
    epsilon: float = 1.0,
    kind: str = "static",
    rounds: int = 2,
    name: str = "bundle",
    cuts: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    more: str = "",
) -> str:
    """The file of integers 0..size-1, some of them cut into ranges."""
    text = BEGIN.format(name=name, epsilon=epsilon, rounds=rounds, tables=tables) + more
    for attribute, size in sizes.items():
        text += f'\n[[attribute]]\nid = "{attribute}"\nkind = "{kind}"\ntype = "integer"\nlow = 0\n'
        text += f"high = {size - 1}\n"
        for low, high in (cuts or {}).get(attribute, ()):
            text += f'\n[[attribute.category]]\nname = "{low} to {high}"\nrange = [{low}, {high}]\n'
    return text


def bundle(sizes: Mapping[str, int], **terms: object) -> Survey:
    return Survey.parse(bundle_text(sizes, **terms))


def attributes(sizes: Mapping[str, int], kind: str = "static") -> list[Attribute]:
    return [Attribute.integer(name, 0, size - 1, kind=kind) for name, size in sizes.items()]
