"""`hubbub survey check`, `design` and `compile`: read a survey file and say what it asks and buys."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hubbub_deploy.commands.arguments import positive
from hubbub_deploy.commands.survey import compatibility, plan
from hubbub_deploy.files import compiled, load_survey_and_text, said_of_auto, writing

if TYPE_CHECKING:
    from hubbub import Channel, Survey


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verbs to `hubbub survey`."""
    check = verbs.add_parser(
        "check",
        help="compile it and say what a device would be asked for; with NEW, refuse what mixes answers",
    )
    check.add_argument(
        "file", type=Path, help="a survey file, - for stdin; with NEW, a file or folder before"
    )
    check.add_argument("new", nargs="?", type=Path, metavar="NEW", help="the file or folder after a change")
    check.add_argument("--json", action="store_true", help="print the facts as JSON")
    check.set_defaults(run=_check)
    design = verbs.add_parser("design", help="what it buys: every mechanism that fits, by exact variance")
    design.add_argument("file", type=Path, help="a survey file, - for stdin")
    design.add_argument(
        "--objective",
        choices=("value", "category", "both", "mean", "cdf", "quantiles", "shape", "hit"),
        help="what mechanisms are judged by (default: the mean for numbers; values, and categories if any)",
    )
    design.add_argument("--within", type=float, help="for hit: how near a report must be to its value")
    design.add_argument("--plot", type=Path, help="draw the trade-offs here (.png, .svg, .pdf, .html)")
    design.add_argument(
        "--write",
        type=Path,
        help="write the survey with the best mechanism in place of its own here; never over a file",
    )
    design.add_argument(
        "--epsilon", type=plan.numbers, metavar="0.5,1,2", help="show the accuracy at these epsilons instead"
    )
    design.add_argument(
        "--devices", type=plan.wholes, metavar="5000,50000", help="and for these numbers of devices"
    )
    design.add_argument(
        "--want",
        type=plan.wanted,
        metavar="1pt",
        help="half a 95 %% interval, in percentage points (1pt) or for a mean in its unit (0.5): say the "
        "least epsilon and the fewest devices for it",
    )
    design.add_argument("--budget", type=float, help="lifetime epsilon of the devices, to see if it fits")
    design.add_argument(
        "--over",
        type=positive,
        metavar="ROUNDS",
        help="say how to spend --budget over so many rounds instead: in every round, or by turns",
    )
    design.add_argument(
        "--max-gain",
        type=float,
        metavar="POINTS",
        help="choose only mechanisms whose shares 1 %% of forged reports move by at most this many points",
    )
    design.add_argument(
        "--missing",
        type=float,
        metavar="SHARE",
        help="of the devices that will have no value (0)",
    )
    design.add_argument(
        "--shuffled",
        type=positive,
        metavar="REPORTS",
        help="say what readers of a release of so many honest reports learn of one person at most",
    )
    design.add_argument(
        "--delta", type=float, default=1e-6, help="for --shuffled: its delta (default: %(default)g)"
    )
    design.add_argument("--json", action="store_true", help="print the design as JSON")
    design.set_defaults(run=_design)
    compiled = verbs.add_parser("compile", help="write the canonical bytes that devices and servers agree on")
    compiled.add_argument("file", type=Path, help="a survey file, - for stdin")
    compiled.add_argument("--out", type=Path, required=True, help="file to write")
    compiled.set_defaults(run=_compile)


def _check(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands.survey.given_up import (  # noqa: PLC0415
        answers,
        identifier,
        no_round_shown,
    )

    if options.new is not None:
        return compatibility.run(options)
    survey, text = load_survey_and_text(options.file)
    facts: dict[str, Any] = {
        "id": survey.id,
        "version": survey.version,
        "title": survey.title,
        "attributes": [attribute.id for attribute in survey.attributes],
        "kind": "static" if all(each.kind == "static" for each in survey.attributes) else "evolving",
        "inputs": survey.channel.inputs,
        **_symbols(survey.channel),
        **identifier(survey),
        **_choice(survey),
        "categories": list(survey.category_names),
        "declared_epsilon": survey.epsilon,
        "epsilon": survey.channel.epsilon,
        "rounds": survey.rounds,
        **({"rotation": survey.rotation, "answers": answers(survey)} if survey.rotation > 1 else {}),
        **_cohort(survey),
        **_floors(survey, text),
        **_unsent(survey),
        **_quota(survey),
        "digest": survey.digest.hex(),
    }
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        from hubbub_deploy.commands.survey import floors  # noqa: PLC0415

        told = {
            "workload": f"variance x devices: {floors.line(facts['workload'])}",
            "questions": "; ".join(map(floors.line, facts["questions"][1:])) or "no others",
        }
        for key, value in facts.items():
            print(f"{key:18} {told.get(key) or _read(value)}")
    empty = no_round_shown(survey)
    if empty is not None:
        print(f"{survey.id}: {empty}", file=sys.stderr)
    return 0 if empty is None else 1


def _cohort(survey: Survey) -> dict[str, object]:
    """Return the minimum cohort, the least at which intervals hold, and how wide they are there."""
    from hubbub_authoring.design import cohort_widths, least_cohort  # noqa: PLC0415
    from hubbub_deploy.commands.survey.given_up import planned  # noqa: PLC0415

    estimator = survey.estimator()
    least = least_cohort(estimator)
    found = cohort_widths(estimator, least, inputs=survey.channel.inputs)
    points = {"value": found.value, "category": found.category}
    widths = {name: f"{100 * width:.0f} points" for name, width in points.items() if width is not None}
    if found.mean is not None and math.isfinite(found.mean):
        widths["mean"] = f"{found.mean:.3g}"
    facts: dict[str, object] = {
        "minimum_cohort": survey.minimum_cohort,
        "least_cohort": least,
        "intervals_there": widths,
        **_curve(survey),
    }
    for key, devices, said in (
        ("small_rounds", survey.minimum_cohort, "are enough for a release"),
        ("small_plan", survey.planned_per_round, planned(survey)),
    ):
        if devices < least:
            facts[key] = f"95 % intervals are known to hold from {least:,} devices on, and {devices:,} {said}"
    return facts


def _floors(survey: Survey, text: str | None) -> dict[str, object]:
    """Return how far its questions are from the least error that any mechanism can have.

    A compiled survey does not tell what it was chosen for, nor its coin: its floor is that of answers by all.
    """
    from hubbub_authoring.design import survey_distances  # noqa: PLC0415
    from hubbub_deploy.commands.survey import floors  # noqa: PLC0415

    objective, participation = (None, 1.0) if text is None else floors.asked(survey, text)
    found = survey_distances(survey, objective=objective, participation=participation)
    said = floors.sentence(found, survey.epsilon)
    return {**floors.facts(found), **({"least": said} if said else {})}


def _curve(survey: Survey) -> dict[str, object]:
    """Return the fewest devices of a round that states a curve; nothing where the survey asks for none."""
    from hubbub.estimation import curve_cohort  # noqa: PLC0415
    from hubbub_deploy.commands.survey.given_up import planned, without_curve  # noqa: PLC0415

    if not survey.channel.shows_curve:
        return {}
    said = without_curve(survey, survey.minimum_cohort, "are enough for a release")
    said = said or without_curve(survey, survey.planned_per_round, planned(survey))
    facts: dict[str, object] = {"curve_cohort": curve_cohort(survey.channel.inputs)}
    return facts if said is None else {**facts, "rounds_without_curve": said}


def _unsent(survey: Survey) -> dict[str, object]:
    """Return what a survey of sets says of devices with more items than count; nothing of any other."""
    if not survey.form.of_sets:
        return {}
    from hubbub.survey import ItemSet  # noqa: PLC0415
    from hubbub_deploy.commands.survey.design_joint import unsent  # noqa: PLC0415

    return {"unsent": unsent(cast(ItemSet, survey.form))}


def _quota(survey: Survey) -> dict[str, object]:
    """Return the quota and what it does not protect from; nothing where the survey has none."""
    if survey.quota is None:
        return {}
    return {
        "quota": survey.quota,
        "beware": "anybody may upload, so one stranger can fill a round with reports of its own, and nobody "
        "else's count then; let only known devices reach the collector where that matters",
    }


def _choice(survey: Survey) -> dict[str, object]:
    """Return what "auto" chose in this file, and why; nothing where the file names its mechanism."""
    if survey.choice is None:
        return {}
    return {
        "mechanism": {"name": survey.choice.mechanism, **survey.choice.parameters},
        "why": f"auto: {survey.choice.why}",
    }


def _read(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(str(item) if key == "name" else f"{key} {item}" for key, item in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)


def _symbols(channel: Channel) -> dict[str, int]:
    """Return the kind of a report's symbol: so many numbers, or sets of so many cells."""
    if channel.width:
        return {"cells": channel.bins, "symbol_bytes": channel.width}
    return {"outputs": channel.bins}


def _design(options: argparse.Namespace) -> int:
    from hubbub_deploy.commands.survey import design, risks  # noqa: PLC0415

    return design.run(
        design.DesignSettings(
            file=options.file,
            objective=options.objective,
            within=options.within,
            plot=options.plot,
            write=options.write,
            output="json" if options.json else "table",
            epsilon=options.epsilon,
            devices=options.devices,
            want=options.want,
            budget=options.budget,
            over=options.over,
            max_gain=options.max_gain,
            missing=options.missing,
            shuffled=None if options.shuffled is None else risks.Shuffling(options.shuffled, options.delta),
        )
    )


def _compile(options: argparse.Namespace) -> int:
    survey, _ = compiled(options.file)
    for line in said_of_auto(survey):
        print(f"{options.file}: {line}", file=sys.stderr)
    with writing(options.out):
        options.out.write_bytes(survey.canonical)
    print(f"{len(survey.canonical)} bytes, digest {survey.digest.hex()}")
    return 0
