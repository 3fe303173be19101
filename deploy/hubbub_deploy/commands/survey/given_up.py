"""The price and the limits of a survey in words: what one person gives up, and where it cannot work."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hubbub import Survey
from hubbub.estimation import MAX_CURVE, curve_cohort
from hubbub_authoring.design import Errors
from hubbub_client import owner_page
from hubbub_client.surveys import most_answers, window_of

_HALF: Final = 1.96


def factor(epsilon: float) -> str:
    """Return e^epsilon as people read it, rounded up."""
    return owner_page.factor(epsilon)


def answers(survey: Survey) -> int:
    """Return how many answers of a device cost budget: one if all is static, else one a round or a cycle."""
    return most_answers(survey, -1)


def identifier(survey: Survey) -> dict[str, float]:
    """Return the bits by which a memoised answer tells devices apart, at most, and those that tell all apart.

    A static survey's answer is drawn once and sent every round. So it is a name that the device keeps: log2
    of the symbols that there are, one bit a cell for sets. Those of several surveys add.
    """
    if any(attribute.kind != "static" for attribute in survey.attributes):
        return {}
    bins = survey.channel.bins
    bits = float(min(bins, 8 * survey.channel.width)) if survey.channel.width else math.log2(bins)
    return {"memoised_bits": round(bits, 1), "bits_of_devices": round(math.log2(survey.planned_devices), 1)}


def given_up(survey: Survey) -> str:
    """Return what one person gives up in one report and over all rounds, as odds."""
    one, times = survey.channel.epsilon, answers(survey)
    said = (
        f"What one person gives up: a report changes the odds between any two values by a factor of at most "
        f"{factor(one)}"
    )
    if survey.rounds == 1:
        return f"{said}."
    if times == 1:
        name = identifier(survey)
        return (
            f"{said}; all {survey.rounds} rounds send the same noisy answer, and change them no further. "
            f"It is a name that the device keeps, of at most {name['memoised_bits']:g} bits; "
            f"{name['bits_of_devices']:g} tell all planned devices apart."
        )
    rounds = f"all {times} rounds"
    if survey.rotation > 1:
        rounds = f"its {times} of {survey.rounds} rounds, one in every {survey.rotation},"
    return (
        f"{said}, {rounds} together by at most {factor(one * times)}: only a device that has "
        f"{one * times:.4g} of its budget left takes part. In any 7 days: by at most "
        f"{factor(window_of(survey))}, between values that differ only in what changed then."
    )


def warnings(survey: Survey, errors: Errors | None, *, budget: float | None = None) -> list[str]:
    """Return the reasons why a survey cannot work as it stands; none where it can.

    Args:
        survey: The survey.
        errors: Standard errors of its mechanism with the planned devices; None where they are not known.
        budget: The lifetime epsilon of its devices; None if it is not known.
    """
    found = []
    if (empty := no_round_shown(survey)) is not None:
        found.append(empty)
    if errors is not None:
        found += _too_wide(survey, errors)
    curve = without_curve(survey, survey.planned_per_round, planned(survey))
    if curve is not None:
        found.append(curve)
    spent = survey.channel.epsilon * answers(survey)
    if budget is not None and spent > budget:
        fits, many = math.floor(budget / survey.channel.epsilon), answers(survey)
        several = "rounds" if survey.rotation == 1 else "answers"
        what = "a report costs" if many == 1 else f"its {many} {several} cost"
        room = "" if fits == 0 else f"; {fits} of them {'fits' if fits == 1 else 'fit'}"
        found.append(
            f"{what} {spent:.4g} and devices have {budget:g} for life: none of them takes part{room}"
        )
    return found


def no_round_shown(survey: Survey) -> str | None:
    """Return why no round of so many planned devices would be released; None where one may be."""
    if survey.minimum_cohort <= survey.planned_per_round:
        return None
    devices = f"planned {survey.planned_devices:,} devices"
    if survey.rotation > 1:
        devices = f"{survey.planned_per_round:,} of a round, one in {survey.rotation} of the {devices}"
    return f"minimum_cohort {survey.minimum_cohort:,} is above the {devices}: no round would be shown"


def planned(survey: Survey) -> str:
    """Return what `planned_per_round` devices are, a verb first: planned, or their share in a rotation."""
    if survey.rotation == 1:
        return "are planned"
    return f"answer in a round, of {survey.planned_devices:,} planned, one in {survey.rotation} each"


def without_curve(survey: Survey, devices: int, said: str) -> str | None:
    """Return why rounds of so many devices state no curve; None where they do, or the survey asks for none.

    Args:
        survey: The survey.
        devices: How many.
        said: What these devices are, a verb first.
    """
    inputs = survey.channel.inputs
    least = curve_cohort(inputs)
    if not survey.channel.shows_curve or (least is not None and devices >= least):
        return None
    if least is None:
        return f"a release states a curve of at most {MAX_CURVE:,} inputs, and here are {inputs:,}"
    return f"a release states its curve and quartiles from {least:,} devices on, and {devices:,} {said}"


def _too_wide(survey: Survey, errors: Errors) -> list[str]:
    found = []
    for name, error in (("value", errors.value), ("category", errors.category)):
        if math.isfinite(error) and 2 * _HALF * error > 1.0:
            found.append(
                f"a {name}'s share is known to ±{100 * _HALF * error:.3g} points only: the interval is "
                "wider than the whole scale"
            )
    points = survey.points
    if errors.mean is not None and math.isfinite(errors.mean) and points is not None:
        low, high = float(np.nanmin(points)), float(np.nanmax(points))
        if 2 * _HALF * errors.mean > high - low:
            found.append(
                f"the mean is known to ±{_HALF * errors.mean:.3g} only: the interval is wider than the "
                f"scale from {low:g} to {high:g}"
            )
    return found
