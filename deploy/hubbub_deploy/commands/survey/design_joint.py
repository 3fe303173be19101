"""The design of a survey of several attributes before its launch: a sentence, and JSON for programs."""

from __future__ import annotations

import json
import math
from typing import Any, Final, Literal, cast

import numpy as np

from hubbub import Survey
from hubbub.errors import ParameterError
from hubbub.estimation import Estimate, Intervals
from hubbub.mechanisms import SampledParts, SetSelection
from hubbub.survey import Bundle, ItemSet, KeyValue
from hubbub_authoring.design import (
    Comparison,
    Crowd,
    Workload,
    accuracy,
    better,
    candidates,
    report_bytes,
    survey_distances,
    survey_variance,
)
from hubbub_authoring.files import TABLE_MECHANISMS
from hubbub_deploy.commands.survey import floors

INTERVAL_95: Final = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


def facts(survey: Survey, participation: float, study: Comparison) -> dict[str, Any]:
    """Return the design of a cross table, a score or a tree of labels as JSON types; null: does not apply.

    Errors of a table are those of devices spread evenly over the combinations; that of a score is the largest
    there can be, where the mean output lies half-way between its ends. A table's alternatives are judged by
    its combinations, with nobody missing; a score is always asked by randomised response, and has none,
    nor has a tree, which is asked level by level.

    Args:
        survey: A table, a score or a tree.
        participation: The share of devices that answer, as its file has it.
        study: How mechanisms are compared.
    """
    inputs, devices = survey.channel.inputs, survey.planned_per_round
    known = survey_distances(survey, participation=participation)
    found: dict[str, Any] = {
        **floors.facts(known),
        "least": floors.sentence(known, survey.epsilon),
        "survey": survey.id,
        "devices": devices,
        "declared_epsilon": survey.epsilon,
        "epsilon": survey.channel.epsilon,
        "mechanism": survey.channel.kind,
        "inputs": inputs,
        "outputs": None if survey.channel.width else survey.channel.bins,
        "bytes_per_report": report_bytes(survey.channel),
    }
    if survey.form.samples_parts:
        return found | _of_bundle(survey, cast(Bundle, survey.form))
    estimate = survey.estimator().expected_estimate(np.full(inputs, 1.0 / inputs), devices)
    half = estimate.intervals(0.95)
    rows, ends = survey.channel.probabilities(), survey.points
    if not survey.form.tells_values and rows is not None and ends is not None:
        width = float(half.mean_high or 0.0) - float(half.mean_low or 0.0)
        return found | {
            "standard_error": {"value": None, "category": None, "mean": estimate.mean_error},
            "leverage": float(np.abs(np.linalg.inv(rows)).max()),
            "alternatives": [],
            "sentence": f"With {devices:,} devices, the mean score, {ends[0]:g} to "
            f"{ends[1]:g}, is known to ±{width / 2:.3g} or better (95 % intervals).",
        }
    if survey.form.of_sets:
        return found | _of_sets(survey)
    if isinstance(survey.form, KeyValue):
        return found | _of_key_value(survey, survey.form)
    if survey.form.cell_levels is not None:
        return found | _of_tree(survey, estimate, half)
    cell, margin = (
        math.sqrt(float(np.mean(errors**2))) for errors in (estimate.value_errors, estimate.category_errors)
    )
    widths = (half.values_high - half.values_low, half.categories_high - half.categories_low)
    points = [50 * math.sqrt(float(np.mean(width**2))) for width in widths]
    workload = Workload.uniform(
        kind="labels",
        epsilon=survey.epsilon,
        category_of=np.append(np.zeros(inputs - 1, dtype=np.intp), 1),
        devices=devices,
        points=None,
        objective=None,
        participation=participation,
    )
    return found | {
        "standard_error": {"value": cell, "category": margin, "mean": None},
        "leverage": accuracy(survey.channel, workload).leverage,
        "alternatives": [
            {
                "mechanism": other.mechanism,
                "parameters": other.parameters,
                "cost": other.cost,
                "epsilon": other.channel.epsilon,
                "bytes_per_report": other.accuracy.bytes_per_report,
                "standard_error": {"value": other.accuracy.errors.value, "category": None, "mean": None},
                "leverage": other.accuracy.leverage,
            }
            for other in study(workload)
            if other.mechanism in TABLE_MECHANISMS
            and other.accuracy is not None
            and other.channel is not None
            and other.channel != survey.channel
        ],
        "sentence": f"With {devices:,} devices, a combination's share is known to ±{points[0]:.2g} points, "
        f"a share of one attribute's to ±{points[1]:.2g} points (95 % intervals).",
    }


def _of_sets(survey: Survey) -> dict[str, Any]:
    """Return what a design says of sets beside its floor: of an item that hardly anyone has.

    It is held beside asking each device about one of the V items at random, by two answers at full epsilon,
    whose variance is V a/(a - 1)^2 + (V - 1) f (1 - f) for an item of share f, a = e^epsilon: there chance
    picks who is asked, too. Both grow with f, and from some f on one item is the better question.
    """
    channel, devices = cast(SetSelection, survey.channel), survey.planned_per_round
    form = cast(ItemSet, survey.form)
    p, q, ratio = float(channel.p), float(channel.q), math.exp(survey.epsilon)
    own, grows = (each / (p - q) ** 2 for each in (q * (1.0 - q), p * (1.0 - p) - q * (1.0 - q)))
    alone = channel.inputs * ratio / (ratio - 1.0) ** 2
    slope = channel.inputs - 1.0 - grows
    turn = (slope + math.sqrt(slope**2 + 4.0 * (channel.inputs - 1.0) * max(alone - own, 0.0))) / 2.0
    turn /= channel.inputs - 1.0
    error, single = math.sqrt(own / devices), math.sqrt(alone / devices)
    reach = {"item": (1.0 - q) / (p - q), "all": (channel.size - channel.inputs * q) / (p - q)}
    half = f"±{100 * INTERVAL_95 * single:.2g}"
    advice = f"ask each device about one item instead, for {half}"
    if error <= single:
        common = f", and less than sets for items that {100 * turn:.0f} % or more have" if turn < 1.0 else ""
        advice = f"asking about one item a device would give {half}{common}"
    return {
        "standard_error": {"value": error, "category": None, "mean": None},
        "leverage": reach["item"],
        "leverage_of_all": reach["all"],
        "single_item_error": single,
        "single_item_from": (turn if turn < 1.0 else None) if error <= single else 0.0,
        "alternatives": [],
        "sentence": f"With {devices:,} devices, the share of a rare item is known to "
        f"±{100 * INTERVAL_95 * error:.2g} points (95 % intervals); {advice}. One forged report counts as "
        f"{reach['item']:.3g} devices for an item, and as {reach['all']:.3g} for all items together. "
        + unsent(form),
    }


def unsent(form: ItemSet) -> str:
    """Return how far the shares of items are from the truth where a device has more of them than count."""
    if form.tells_more:
        return (
            f'An item\'s true share is between its estimate and that plus the share of "{form.more}", '
            "which is asked in the same answer."
        )
    return (
        f"Of {form.more} items {form.most} are drawn: true shares are above the estimates by at most the "
        "share of such devices, which `more = true` asks for."
    )


def _of_key_value(survey: Survey, form: KeyValue) -> dict[str, Any]:
    """Return what a design says of a key-value survey beside its floors, at its planned crowd and at others.

    Its alternative is the other of the two channels. `if_share` has the mean's error where another share than
    the planned one has a number, as it is and had that been planned: what a wrong plan costs.
    """
    devices, root = survey.planned_per_round, math.sqrt(survey.planned_per_round)
    crowd = Crowd.of(form.attribute, form.share).shares(form.grid)
    foreseen = survey.estimator().expected_estimate(crowd, devices)
    half = foreseen.intervals(0.95)
    mean = (float(half.mean_high or 0.0) - float(half.mean_low or 0.0)) / 2
    share = 50 * float(half.categories_high[0] - half.categories_low[0])
    own = math.sqrt(survey_variance(form, survey.channel)) / root
    others = [
        (other, channel, math.sqrt(survey_variance(other, channel)) / root)
        for other, channel in candidates(form.attribute, form.share, form.grid, survey.epsilon)
        if other.grid != form.grid
    ]
    wrong = []
    for at in (form.share / 2.0, min(2.0 * form.share, (1.0 + form.share) / 2.0)):
        planned = better(form.attribute, at, form.grid, survey.epsilon)
        errors = [math.sqrt(survey_variance(*each, at)) / root for each in ((form, survey.channel), planned)]
        wrong.append({"share": at, "error": errors[0], "planned_error": errors[1]})
    said = [
        f"{100 * each['share']:g} % ±{INTERVAL_95 * each['error']:.3g} "
        f"(±{INTERVAL_95 * each['planned_error']:.3g} if planned)"
        for each in wrong
    ]
    return {
        "standard_error": {"value": None, "category": foreseen.category_errors[0], "mean": own},
        "leverage": float(foreseen.reach().categories_high[0]),
        "alternatives": [
            {
                "mechanism": "key_value",
                "parameters": {"points": other.grid},
                "cost": error**2,
                "epsilon": channel.epsilon,
                "bytes_per_report": report_bytes(channel),
                "standard_error": {"value": None, "category": None, "mean": error},
                "leverage": None,
            }
            for other, channel, error in others
        ],
        "if_share": wrong,
        "sentence": f"With {devices:,} devices, of which {100 * form.share:g} % have a number, their share "
        f"is known to ±{share:.2g} points and the mean among them, {form.ends[0]:g} to {form.ends[1]:g}, to "
        f"±{mean:.3g} (95 % intervals). If another share has one, the mean is known at {' and '.join(said)}.",
    }


def _of_tree(survey: Survey, estimate: Estimate, half: Intervals) -> dict[str, Any]:
    """Return what a design says of a tree of labels beside its floors: the errors of every level."""
    rows = survey.category_of
    ends = np.cumsum([np.ptp(row) + 1 for row in rows])[:-1]
    errors = [*np.split(estimate.category_errors, ends), estimate.value_errors]
    widths = [*np.split(half.categories_high - half.categories_low, ends), half.values_high - half.values_low]
    points = [f"{50 * math.sqrt(float(np.mean(each**2))):.2g}" for each in widths]
    try:
        reach = estimate.reach()
        leverage = float(max(reach.values_high.max(), reach.categories_high.max()))
    except ParameterError:
        leverage = None  # of thousands of values nobody reckons it
    return {
        "standard_error": {
            "value": math.sqrt(float(np.mean(errors[-1] ** 2))),
            "category": math.sqrt(float(np.mean(estimate.category_errors**2))),
            "mean": None,
        },
        "level_errors": [math.sqrt(float(np.mean(each**2))) for each in errors],
        "leverage": leverage,
        "alternatives": [],
        "sentence": f"With {survey.planned_per_round:,} devices, shares are known to "
        + ", ".join(f"±{each} points at level {level}" for level, each in enumerate(points, start=1))
        + " (95 % intervals).",
    }


def _of_bundle(survey: Survey, form: Bundle) -> dict[str, Any]:
    """Return what a design says of a bundle beside its floors, devices spread evenly over combinations."""
    devices, channel = survey.planned_per_round, cast(SampledParts, survey.channel)
    foreseen = form.estimator(channel).uniform_estimate(devices)
    cell, margin = (
        math.sqrt(float(np.mean(errors**2))) for errors in (foreseen.value_errors, foreseen.category_errors)
    )
    reach = foreseen.reach()
    parts = [
        {
            "attributes": [form.attributes[j].id for j in part.members],
            "tells": "interaction" if part.classes > 1 else "table",
            "share": part.share / 2**32,
            "cells": oracle.inputs,
            "set": part.size,
        }
        for part, oracle in zip(channel.parts, channel.oracles, strict=True)
    ]
    return {
        "standard_error": {"value": cell, "category": margin, "mean": None},
        "leverage": float(np.max(np.abs(np.concatenate([reach.values_low, reach.values_high])))),
        "parts": parts,
        "alternatives": [],
        "sentence": f"With {devices:,} devices, each answering one of {len(parts)} parts, a cell of a table "
        f"is known to ±{100 * INTERVAL_95 * cell:.2g} points, a share of one attribute's to "
        f"±{100 * INTERVAL_95 * margin:.2g} points (95 % intervals).",
    }


def devices_for(survey: Survey, error: float) -> int:
    """Return the least devices of which a cell of a bundle's tables has a wanted error, on average squared.

    Args:
        survey: A bundle.
        error: The standard error that is wanted.
    """
    total = survey_distances(survey)[0].total or 0.0
    return math.ceil(total / (len(survey.input_labels) * error**2))


def show(
    survey: Survey,
    participation: float,
    output: Literal["table", "json"],
    study: Comparison,
    *,
    error: float | None = None,
) -> None:
    """Print the design, of a bundle with the least devices for an error if one is wanted; see `facts`."""
    found = facts(survey, participation, study)
    if error is not None:
        found["devices_for_error"] = devices = devices_for(survey, error)
        found["sentence"] += f" For a standard error of {error:g} it takes {devices:,} devices."
    if output == "json":
        print(json.dumps(found, ensure_ascii=False, allow_nan=False))
        return
    print(f"{survey.title}: epsilon {survey.epsilon:g} declared, {survey.channel.epsilon!r} certified")
    for other in found["alternatives"]:
        errors, variant = (
            other["standard_error"],
            "".join(f" {value}" for value in other["parameters"].values()),
        )
        told = f"a combination's share to ±{100 * INTERVAL_95 * (errors['value'] or 0.0):.2g} points"
        if errors["value"] is None:
            told = f"the mean to ±{INTERVAL_95 * errors['mean']:.3g}"
        print(f"  instead by {other['mechanism']}{variant}: {told}")
    if found["least"]:
        print(found["least"])
    print(found["sentence"])
