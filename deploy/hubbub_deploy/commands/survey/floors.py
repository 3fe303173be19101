"""The distance of a survey from the least error of any mechanism, in a sentence and as JSON types."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from hubbub import Survey
from hubbub_authoring.design import Distance, Objective


def facts(found: Sequence[Distance]) -> dict[str, Any]:
    """Return the distance of the question that is asked first, and those of all questions answered."""
    every = [each.facts() for each in found]
    return {"workload": every[0], "questions": every}


def asked(survey: Survey, text: str) -> tuple[Objective | None, float]:
    """Return what a survey's mechanism was chosen for, None if it is named, and the share that answers.

    Args:
        survey: The survey.
        text: The TOML that it was loaded from.
    """
    keys = tomllib.loads(text)["mechanism"]
    objective = None
    if survey.choice is not None and "objective" in keys:
        weight, of = keys.get("category_weight", 0.5), keys.get("of", "means")
        objective = Objective(keys["objective"], weight, of, keys.get("within"))
    return objective, float(keys.get("participation", 1.0))


def sentence(found: Sequence[Distance], epsilon: float) -> str:
    """Return how much more variance than the least each question has, rounded up; "" where nothing is known.

    Only of an evenly spread crowd: elsewhere a floor may be far below what is possible.
    """
    known = [f"{each.asked} {above(each.above)}" for each in found if each.above is not None]
    if not known:
        return ""
    return (
        f"More variance than the least that any mechanism at epsilon {epsilon:g} can have, at most, with "
        f"{found[0].crowd}: {', '.join(known)}."
    )


def line(found: Mapping[str, Any]) -> str:
    """Return one question of `facts` in words: n times the summed variance, and its floor rounded down."""
    total, floor = found["total"], found["floor"]
    if total is None:
        return f"{found['asked']}: not told"
    if not floor:
        return f"{found['asked']}: {total:.4g}, no floor known"
    digits = 3 - math.floor(math.log10(floor))
    least = math.floor(floor * 10.0**digits) / 10.0**digits
    return f"{found['asked']}: {total:.4g}, by no mechanism below {least:.4g} ({found['proof']})"


def above(share: float | None) -> str:
    """Return a share above the floor as a percentage, rounded up; far above, as a multiple of the floor."""
    if share is None:
        return "-"
    percent = 100.0 * max(share, 0.0)
    if percent >= 1000.0:
        return f"{math.ceil(1.0 + share):,} times"
    return f"{math.ceil(percent * 10.0) / 10.0:g} %" if percent < 10.0 else f"{math.ceil(percent)} %"
