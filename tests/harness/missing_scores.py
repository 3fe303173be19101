"""Scores of one number that differ in what a missing value counts as."""

from __future__ import annotations

from hubbub import Survey
from hubbub.survey.domain import Attribute

X = Attribute.number("x", 0.0, 1.0, kind="static")


def score(name: str, epsilon: float, *, falling: bool, default: float) -> Survey:
    """g = x, or g = 1 - x where it falls."""
    slope, intercept = (-1.0, 1.0) if falling else (1.0, 0.0)
    return Survey.parse(
        f'id = "{name}"\nversion = 1\ntitle = "{name}"\nepsilon = {epsilon}\nminimum_cohort = 10\n'
        "planned_devices = 100000\n"
        '[schedule]\nstart = 2026-01-01T00:00:00Z\nround = "1d"\nrounds = 2\nlateness = "1h"\nskew = "5m"\n'
        f'[[attribute]]\nid = "x"\nkind = "static"\ntype = "number"\nlow = 0.0\nhigh = 1.0\n'
        f"coefficient = {slope}\ndefault = {default}\n"
        f'[mechanism]\nname = "regression"\nscore = "linear"\nintercept = {intercept}\n'
        "low = 0.0\nhigh = 1.0\n"
    )


def in_turn(epsilon: float, count: int) -> list[Survey]:
    """Whoever has nothing says 1 to all of them: g = x with default 1, g = 1 - x with default 0, in turn."""
    return [score(f"s{i}", epsilon, falling=bool(i % 2), default=0.0 if i % 2 else 1.0) for i in range(count)]
