"""What a survey of several attributes buys before it is launched, in one sentence."""

from __future__ import annotations

import json
import math
from typing import Any, Literal

import numpy as np

from hubbub import Survey
from hubbub.survey_score import Score


def facts(survey: Survey) -> dict[str, Any]:
    """The design of a cross table or a score as JSON types.

    Errors of a table are those of devices spread evenly over the combinations; that of a score is the largest
    there can be, where the mean output lies half-way between its ends.
    """
    inputs, devices = survey.channel.inputs, survey.planned_devices
    estimate = survey.estimator().foresee(np.full(inputs, 1.0 / inputs), devices)
    half = estimate.intervals(0.95)
    found: dict[str, Any] = {
        "survey": survey.id,
        "devices": devices,
        "declared_epsilon": survey.epsilon,
        "epsilon": survey.channel.epsilon,
        "inputs": inputs,
        "mechanism": survey.channel.kind,
    }
    if isinstance(survey.form, Score):
        width = float(half.mean_high or 0.0) - float(half.mean_low or 0.0)
        return found | {
            "standard_error": {"mean": estimate.mean_error},
            "sentence": f"With {devices:,} devices, the mean score, {survey.form.low:g} to "
            f"{survey.form.high:g}, is known to ±{width / 2:.3g} or better (95 % intervals).",
        }
    cell, margin = (
        math.sqrt(float(np.mean(errors**2))) for errors in (estimate.value_errors, estimate.category_errors)
    )
    points = [
        100 * float(np.sqrt(np.mean(((high - low) / 2) ** 2)))
        for low, high in (
            (half.values_low, half.values_high),
            (half.categories_low, half.categories_high),
        )
    ]
    return found | {
        "standard_error": {"value": cell, "category": margin},
        "sentence": f"With {devices:,} devices, a combination's share is known to ±{points[0]:.2g} points, "
        f"a share of one attribute's to ±{points[1]:.2g} points (95 % intervals).",
    }


def show(survey: Survey, output: Literal["table", "json"]) -> None:
    """Prints the design."""
    found = facts(survey)
    if output == "json":
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
        return
    print(f"{survey.title}: epsilon {survey.epsilon:g} declared, {survey.channel.epsilon!r} certified")
    print(found["sentence"])
